"""The real FDB in its own process: one JSON line in, one JSON line out.

FDB's library prints to stdout and may abort on unexpected input, so it never runs inside the tests.
A line is ``[operation, argument …]``; the answer is ``{"ok": …}`` or ``{"error": text}``. `peer.Fdb` starts
this program, and documents the arguments of each operation.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

PIECE = 1 << 20


class Driver:
    """One FDB at a time, in a folder of the caller's."""

    def __init__(self) -> None:
        import pyfdb

        self.pyfdb = pyfdb
        self.fdb: Any = None

    def open(self, folder: str, schema: str) -> str:
        """Makes an FDB in an empty folder, or opens an existing one; returns its configuration's path."""
        base = Path(folder)
        root, config = base / "root", base / "config.yaml"
        if not config.exists():
            root.mkdir(parents=True)
            (base / "schema").write_text(schema)
            spaces = [{"handler": "Default", "roots": [{"path": str(root)}]}]
            settings = {"type": "local", "engine": "toc", "schema": str(base / "schema"), "spaces": spaces}
            config.write_text(json.dumps(settings))
        self.fdb = self.pyfdb.FDB(config)
        return str(config)

    def archive(self, key: dict[str, str] | None, data: str) -> None:
        """Archives one field; without a key the data are GRIB. `data` is Latin-1: any byte is legal."""
        self.fdb.archive(data.encode("latin-1"), key)

    def flush(self) -> None:
        self.fdb.flush()

    def list(self, request: dict[str, Any], level: int, masked: bool) -> list[Any]:
        """[levels of the key, length] for every element."""
        found = self.fdb.list(request, include_masked=masked, level=level)
        return [[element.keys(), element.length() if level == 3 else 0, str(element)] for element in found]

    def axes(self, request: dict[str, Any], level: int) -> dict[str, list[str]]:
        return {keyword: sorted(values) for keyword, values in self.fdb.axes(request, level=level).items()}

    def retrieve(self, request: dict[str, Any]) -> str:
        read = bytearray()
        piece = memoryview(bytearray(PIECE))
        with self.fdb.retrieve(request) as handle:
            while (n := handle.readinto(piece)) > 0:
                read += piece[:n]
        return read.decode("latin-1")


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    driver = Driver()
    for line in sys.stdin:
        operation, *arguments = json.loads(line)
        try:
            reply = {"ok": getattr(driver, operation)(*arguments)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()

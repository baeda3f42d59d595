"""Backups for the small reader: the version that one shows (store-format.md, 15.7 and 13)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

NAME = "fieldstone.copy"
FORM = (
    rb"(fieldstone copy\nformat 2\nstate (backup|promoted)\nid [0-9a-f]{32}\n(?:formerly [0-9a-f]{32}\n)*"
    rb"version (\S+)\ntime -?\d+\n)crc32c ([0-9a-f]{8})\n(beside\n(?:\d+ -?\d+ [^\n]+\n)*)"
)


class Shown:
    """A version: the newest takeover of each user, and the last commit of each living log."""

    def __init__(self, reader: SimpleNamespace, text: str) -> None:
        data = base64.urlsafe_b64decode(text[1:] + "=" * (-len(text[1:]) % 4))
        whole = text[0] in "wT"
        reader.check(reader.crc32c(data[:-4]) == int.from_bytes(data[-4:], "little"), "a version is damaged")
        self.numbers: dict[str, int] = {}
        self.sequences: dict[bytes, int] = {}
        with reader.parts_of(data[:-4], "version") as c:
            for _ in range(c.one("v") if text[0] in "tT" else 0):
                owner = f"u{c.one('v')}" if c.one("B") == 1 else c.take(8).hex()
                self.numbers[owner], _digest = c.get("vQ")
            for _ in range(c.one("v")):
                writer = c.take(16 if whole else 8)
                self.sequences[writer] = c.one("v")


def last(copy: Shown | None, writer: bytes, end: int | None) -> int | None:
    """The last commit of a log that counts, where it ends with `end` otherwise."""
    if copy is None:
        return end
    shown = marked(copy, writer)
    return shown if end is None else min(shown, end)


def marked(copy: Shown | None, writer: bytes) -> int:
    """The commit of a log up to which the mark of a copy vouches for all of them."""
    return 0 if copy is None else copy.sequences.get(writer, copy.sequences.get(writer[:8], 0))


def shown(reader: SimpleNamespace, store: Path) -> tuple[Shown | None, Callable[[bytes], int]]:
    """The version that a backup shows, None for other stores; and what the mark of any copy vouches for."""
    if not (store / NAME).exists():
        return None, partial(marked, None)
    parts = re.fullmatch(FORM, (store / NAME).read_bytes())
    reader.check(parts, f"{NAME} is damaged")
    reader.check(reader.crc32c(parts[1] + parts[5]) == int(parts[4], 16), f"{NAME} is damaged")
    version = Shown(reader, parts[3].decode())
    return version if parts[2] == b"backup" else None, partial(marked, version)

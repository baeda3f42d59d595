"""Both stores side by side: `Fdb`, the real one in a child process, and `Ours`, with the same calls."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fieldstone as fst

Operation = list[Any]
Reply = dict[str, Any]


class Fdb:
    """FDB behind `driver.py`; a new process starts when an operation kills it."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[str] | None = None
        self.place: tuple[str, str] | None = None
        self.deaths = 0

    def run(self, operations: Iterable[Operation]) -> list[Reply]:
        """Runs operations one after another. The answer to one that kills the process is ``died``."""
        waiting = list(operations)
        replies: list[Reply] = []
        while len(replies) < len(waiting):
            replies += self._some(waiting[len(replies) :])
        return replies

    def call(self, *operation: Any) -> Any:
        """One operation: its result, or RuntimeError with FDB's words."""
        reply = self.run([list(operation)])[0]
        if "ok" not in reply:
            raise RuntimeError(reply.get("error") or reply["died"])
        return reply["ok"]

    def _some(self, operations: list[Operation]) -> list[Reply]:
        child = self._started()
        replies: list[Reply] = []
        try:
            # Only a few at a time, so that neither pipe fills up while the other side writes.
            for start in range(0, len(operations), 20):
                part = operations[start : start + 20]
                child.stdin.write("".join(json.dumps(operation) + "\n" for operation in part))
                child.stdin.flush()
                for operation in part:
                    line = child.stdout.readline()
                    if not line:
                        raise BrokenPipeError
                    replies.append(json.loads(line))
                    if operation[0] == "open":
                        self.place = (operation[1], operation[2])
        except BrokenPipeError:
            child.kill()
            self.deaths += 1
            replies.append({"died": f"ended with {child.wait()}"})
            self.child = None
        return replies

    def _started(self) -> subprocess.Popen[str]:
        if self.child is None:
            environment = {**os.environ, "FDB_HOME": "/nonexistent"}
            self.child = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("driver.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                env=environment,
            )
            if self.place is not None:
                self.child.stdin.write(json.dumps(["open", *self.place]) + "\n")
                self.child.stdin.flush()
                self.child.stdout.readline()
        return self.child

    def close(self) -> None:
        if self.child is not None:
            self.child.stdin.close()
            self.child.wait()


class Ours:
    """Fieldstone with the calls of `driver.Driver`."""

    def open(self, schema: str) -> None:
        self.store = fst.open("memory:", schema=schema)

    def run(self, operations: Iterable[Operation]) -> list[Reply]:
        return [self.one(*operation) for operation in operations]

    def one(self, operation: str, *arguments: Any) -> Reply:
        try:
            return {"ok": getattr(self, operation)(*arguments)}
        except fst.Error as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def archive(self, key: dict[str, str], data: str) -> None:
        self.store.archive(key, data.encode("latin-1"))

    def flush(self) -> None:
        self.store.flush()

    def list(self, request: dict[str, Any], level: int, masked: bool) -> list[Any]:
        found = self.store.list(request, depth=level, masked=masked)
        return [[_levels(entry.key), entry.nbytes if level == 3 else 0, str(entry.key)] for entry in found]

    def axes(self, request: dict[str, Any], level: int) -> dict[str, list[str]]:
        return {keyword: sorted(values) for keyword, values in self.store.axes(request).items()}

    def retrieve(self, request: dict[str, Any]) -> str:
        return self.store.retrieve(request, strict=False).read().decode("latin-1")


PAIR = re.compile(r'([^={},]+)=("(?:[^"\\]|\\.)*"|[^,{}]*)')


def _levels(key: fst.Key) -> list[dict[str, str]]:
    """The levels of a key from its text, ``{a=1,b=2}{c=3}{d=4}``, without absent keywords."""
    levels: list[dict[str, str]] = [{}]
    text, at = str(key), 1
    while at < len(text):
        if found := PAIR.match(text, at):
            word, value = found.groups()
            levels[-1][word] = json.loads(value) if value.startswith('"') else value
            at = found.end()
        elif text[at] == "{":
            levels.append({})
            at += 1
        else:
            at += 1
    return levels

"""Support for the tests of the helper process: a pipe to a real one, and a stand-in for a store."""

from __future__ import annotations

import atexit
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Frame = tuple[dict[str, Any], bytes]


def frame(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """One frame, written only from spec/helper-protocol.md."""
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + struct.pack("<Q", len(payload)) + payload


def parse(data: bytes) -> list[Frame]:
    """All frames of a reply stream; every byte must belong to one."""
    frames, position = [], 0
    while position < len(data):
        (n,) = struct.unpack_from("<I", data, position)
        header = json.loads(data[position + 4 : position + 4 + n])
        position += 4 + n
        (n,) = struct.unpack_from("<Q", data, position)
        payload = data[position + 8 : position + 8 + n]
        assert len(payload) == n
        frames.append((header, payload))
        position += 8 + n
    return frames


def talk(requests: bytes, timeout: float = 600) -> SimpleNamespace:
    """Runs a helper on a stream of request bytes: frames, exit code, stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "fieldstone._helper"], input=requests, capture_output=True, timeout=timeout
    )
    return SimpleNamespace(frames=parse(done.stdout), code=done.returncode, stderr=done.stderr.decode())


def ask(header: dict[str, Any], payload: bytes = b"") -> list[Frame]:
    """The replies to one request. The requests of a test process share a helper, like those of a store."""
    global _helper
    if _helper is None or _helper.poll() is not None or _begun != dict(os.environ):
        _helper = begin()
    _helper.stdin.write(frame(header, payload))
    _helper.stdin.flush()
    frames = [read_frame(_helper)]
    while frames[-1][0]["kind"] not in ("done", "error"):
        frames.append(read_frame(_helper))
    return frames


_helper: subprocess.Popen[bytes] | None = None
_begun: dict[str, str] = {}
"""The environment in which the helper was started."""


def begin() -> subprocess.Popen[bytes]:
    """Starts a helper, and ends the previous one."""
    end()
    _begun.clear()
    _begun.update(os.environ)
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-m", "fieldstone._helper"], stdin=pipe, stdout=pipe)


@atexit.register
def end() -> None:
    """Closes the helper's stdin, which ends it."""
    if _helper is not None:
        _helper.communicate()


def read_frame(helper: subprocess.Popen[bytes]) -> Frame:
    """The next frame; fails the test if the helper has ended."""

    def take(n: int) -> bytes:
        data = helper.stdout.read(n)
        assert len(data) == n, f"the helper ended: {helper.wait()}"
        return data

    header = json.loads(take(struct.unpack("<I", take(4))[0]))
    return header, take(struct.unpack("<Q", take(8))[0])


def ingest(path: Path | str) -> list[Frame]:
    """The replies for one file."""
    return ask({"op": "ingest", "path": str(path)})


def ingest_all(paths: Iterable[Path]) -> list[list[Frame]]:
    """The replies for each file, all from one helper."""
    done = talk(b"".join(frame({"op": "ingest", "path": str(p)}) for p in paths), timeout=300)
    assert done.code == 0, done.stderr
    answers: list[list[Frame]] = [[]]
    for header, payload in done.frames:
        answers[-1].append((header, payload))
        if header["kind"] in ("done", "error"):
            answers.append([])
    return answers[:-1]


def of_kind(frames: Iterable[Frame], kind: str) -> list[dict[str, Any]]:
    """Headers of the frames of a kind."""
    return [header for header, _ in frames if header["kind"] == kind]


def array(header: dict[str, Any], payload: bytes) -> np.ndarray:
    """The array of a field frame."""
    shape = header.get("count", header["shape"])
    return np.frombuffer(payload, np.dtype(header["dtype"])).reshape(shape)


def flat(key: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """A key in hashable form."""
    return tuple(sorted((k, str(v)) for k, v in key.items()))


class Shelf:
    """A store as the engine sees it: fields by key, and a record of reads."""

    url = "shelf"
    version = "1"

    def __init__(self) -> None:
        self.fields: dict[tuple[tuple[str, str], ...], Any] = {}
        self.reads: list[tuple[dict[str, str], Any, Any]] = []
        self._store: Any = None

    def put(self, key: dict[str, Any], data: Any) -> None:
        self.fields[flat(key)] = data
        self._store = None

    def take(self, frames: Iterable[Frame]) -> Shelf:
        """Keeps the fields of a reply stream, as the native side would."""
        for header, payload in frames:
            if header["kind"] != "field":
                continue
            if "grib" in header:
                key = dict(header["grib"])
                for keyword, value in header["apart"]:
                    if self.fields.get(flat(key)) in (None, payload):
                        break
                    key[keyword] = value
                self.put(key, payload)
            elif header.get("opaque"):
                self.put(header["key"], payload)
            elif "start" in header:
                empty = np.zeros(header["shape"], header["dtype"])
                whole = self.fields.setdefault(flat(header["key"]), empty)
                box = zip(header["start"], header["count"], strict=True)
                whole[tuple(slice(s, s + n) for s, n in box)] = array(header, payload)
            else:
                self.put(header["key"], array(header, payload))
        return self

    def _real(self) -> Any:
        """A real store of the fields."""
        import fieldstone as fst

        if self._store is None:
            grib = any(name == "param" for key in self.fields for name, _ in key)
            self._store = fst.open("memory:", schema="mars" if grib else "simulation")
            self._store.archive_many([dict(key) for key in self.fields], self.fields.values())
            self._store.flush()
        return self._store

    def __getattr__(self, name: str) -> Any:
        if name not in ("list", "axes", "retrieve", "version", "_cubes", "_catalog"):
            raise AttributeError(name)
        return getattr(self._real(), name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_store": None}

    def get(self, key: dict[str, str], start: Any = None, count: Any = None) -> Any:
        self.reads.append((key, start, count))
        return self._real().get(key, start, count)

    def close(self) -> None:
        pass

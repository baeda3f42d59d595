"""Frames on a pipe: ``[u32 LE header length][JSON header][u64 LE payload length][payload]``.

Example: the version request is ``10 00 00 00 {"op":"version"}`` followed by eight zero bytes (the
length counts the bytes of the JSON text).
"""

from __future__ import annotations

import json
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:  # loading typing takes longer than everything used from it
    from collections.abc import Mapping
    from typing import Any, BinaryIO

MAX_HEADER = 16 << 20
MAX_REQUEST_PAYLOAD = 4 << 30


class ProtocolError(Exception):
    """The other side sent bytes that are not a frame."""


class RequestError(Exception):
    """A request that cannot be answered: error kind, message, hint, and a code of that kind."""

    def __init__(self, kind: str, message: str, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.hint = hint
        self.code = code


class Channel:
    """The two ends of the pipe, with a method for each kind of reply that is used in several places."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO) -> None:
        self._in = requests
        self._out = replies
        self._done: dict[str, Any] | None = None

    def receive(self) -> tuple[dict[str, Any], bytes] | None:
        """The next frame, or None if the pipe ends between two frames."""
        first = self._in.read(4)
        if not first:
            return None
        (length,) = struct.unpack("<I", self._rest(first, 4))
        if length > MAX_HEADER:
            raise ProtocolError(f"header of {length} bytes, more than {MAX_HEADER}")
        try:
            header = json.loads(self._rest(b"", length))
        except ValueError as error:
            raise ProtocolError(f"header is not JSON: {error}") from None
        if not isinstance(header, dict):
            raise ProtocolError("header is not a JSON object")
        (length,) = struct.unpack("<Q", self._rest(b"", 8))
        if length > MAX_REQUEST_PAYLOAD:
            raise ProtocolError(f"payload of {length} bytes, more than {MAX_REQUEST_PAYLOAD}")
        return header, self._rest(b"", length)

    def _rest(self, start: bytes, length: int) -> bytes:
        data = start + self._in.read(length - len(start)) if length > len(start) else start
        if len(data) != length:
            raise ProtocolError("the pipe ended inside a frame")
        return data

    def send(self, header: Mapping[str, Any], payload: Any = b"") -> None:
        """Sends one frame; `payload` is any contiguous buffer."""
        text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
            "utf-8", "backslashreplace"
        )
        if len(text) > MAX_HEADER:
            raise RequestError("Invalid", f"a frame header of {len(text)} bytes is more than {MAX_HEADER}")
        view = memoryview(payload).cast("B") if len(payload) else b""
        self._out.write(struct.pack("<I", len(text)) + text + struct.pack("<Q", len(view)))
        self._out.write(view)
        self._out.flush()

    def skipped(self, what: str, why: str) -> None:
        """Reports a skipped part."""
        self.send({"kind": "skipped", "what": what, "why": " ".join(why.split())})

    def progress(self, done: int, of: int) -> None:
        """Reports the bytes of the source handled so far."""
        self.send({"kind": "progress", "done": done, "of": of})

    def done(self, **facts: Any) -> None:
        """Records that a request succeeded; `end` sends this when all files of the request are closed."""
        self._done = {"kind": "done", **facts}

    def end(self) -> None:
        """Ends a successful request; from here on users may change its files."""
        if self._done is None:
            raise RuntimeError("the request ended without a reply")
        told, self._done = self._done, None
        self.send(told)

    def fail(self, kind: str, message: str, hint: str | None = None, code: str | None = None) -> None:
        """Ends a failed request."""
        self._done = None
        told = {"kind": "error", "error_kind": kind, "message": message, "hint": hint}
        self.send(told if code is None else told | {"code": code})

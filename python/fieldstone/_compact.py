"""Progress of ``store.compact``, ``store.purge`` and ``store.maintain``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TextIO

from .errors import Invalid

_Progress = Callable[[int, int], object]


def seconds(grace: float | timedelta) -> float:
    """A span of time in seconds."""
    if isinstance(grace, timedelta):
        return grace.total_seconds()
    try:
        return float(grace)
    except (TypeError, ValueError):
        raise Invalid(f"grace={grace!r} is not a time", "give seconds, or a timedelta") from None


def shown(progress: Any, out: TextIO) -> _Progress | None:
    """The function that receives progress reports: the caller's, or one that writes a line on a terminal."""
    return _received(progress, out, "compacting: {} logs, {} entries")


def purging(progress: Any, out: TextIO) -> _Progress | None:
    """The same for a purge."""
    return _received(progress, out, "purging: {} fields, {} bytes given back")


def maintaining(progress: Any, out: TextIO) -> Callable[[str, str, int, int], object] | None:
    """The same for maintenance."""
    if callable(progress):
        return progress
    if not (progress and out.isatty()):
        return None

    def show(action: str, request: str, done: int, nbytes: int) -> None:
        out.write(f"\r\x1b[Kmaintaining: {action} {request[:40]} {done} done, {nbytes} bytes given back")
        out.flush()

    return show


def _received(progress: Any, out: TextIO, text: str) -> _Progress | None:
    if callable(progress):
        return progress
    return _line(out, text) if progress and out.isatty() else None


def _line(out: TextIO, text: str) -> _Progress:
    """A line that is overwritten. The call that it is of removes it."""

    def show(done: int, more: int) -> None:
        out.write("\r\x1b[K" + text.format(done, more))
        out.flush()

    return show

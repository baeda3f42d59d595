"""Progress of ``store.compact``."""

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
    if callable(progress):
        return progress
    return _line(out) if progress and out.isatty() else None


def _line(out: TextIO) -> _Progress:
    """A line that is overwritten. ``store.compact`` removes it."""

    def show(logs: int, entries: int) -> None:
        out.write(f"\r\x1b[Kcompacting: {logs} logs, {entries} entries")
        out.flush()

    return show

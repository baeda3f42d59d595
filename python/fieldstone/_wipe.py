"""Ages of ``store.wipe``."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Any

from ._values import datetime_ns
from .errors import Invalid

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def before(older_than: Any) -> int | None:
    """Nanoseconds since 1970 of a moment, or of one so long ago."""
    match older_than:
        case None:
            return None
        case bool():
            raise Invalid(f"older_than={older_than} is not an age", "give seconds, a timedelta or a datetime")
        case timedelta():
            return _ago(older_than.total_seconds())
        case int() | float():
            return _ago(older_than)
        case str() if span := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", older_than.strip()):
            return _ago(float(span[1]) * _UNITS[span[2]])
    return datetime_ns(older_than)


def _ago(seconds: float) -> int:
    if not 0 <= seconds < 2**33:
        raise Invalid(f"older_than={seconds} is not an age", "give seconds, 0 or more")
    return time.time_ns() - int(seconds * 1e9)

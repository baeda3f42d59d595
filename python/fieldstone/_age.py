"""Ages of content, as calls take them."""

from __future__ import annotations

import math
import re
import time
from datetime import date, datetime, timedelta
from typing import Any

from ._values import datetime_ns
from .errors import Invalid

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def before(older_than: Any) -> int | None:
    """The moment before which content is older than an age, in nanoseconds since 1970; None for None.

    An age is a number of seconds, a timedelta, or a text such as ``"12h"``; a moment is a datetime,
    a date, a numpy.datetime64 or an ISO text.
    """
    if older_than is None:
        return None
    seconds = seconds_of(older_than)
    if seconds is None:
        return datetime_ns(older_than)
    if not 0 <= seconds < math.inf:
        raise Invalid(f"older_than={older_than!r} is not an age", "give 0 seconds or more")
    moment = time.time_ns() - round(seconds * 1e9)
    if moment < -(2**63):
        raise Invalid(f"older_than={older_than!r} is longer ago than 1677", "give a shorter age")
    return moment


def seconds_of(older_than: Any) -> float | None:
    """Seconds of an age; None for a moment."""
    if isinstance(older_than, bool):
        return math.nan
    if isinstance(older_than, timedelta):
        return older_than.total_seconds()
    if isinstance(older_than, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|min|h|d|w|)", older_than)
        return float(found[1]) * _UNITS[found[2]] if found else None
    if isinstance(older_than, (date, datetime)) or hasattr(older_than, "dtype"):
        return None
    try:
        return float(older_than)
    except (TypeError, ValueError):
        return None

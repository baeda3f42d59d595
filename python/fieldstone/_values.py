"""Ranges and moments as values of metadata."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from .errors import Invalid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class IntRange(NamedTuple):
    """Integers from `low` to `high`, both included. Made by ``fieldstone.int_range``."""

    low: int
    high: int


class FloatRange(NamedTuple):
    """Numbers from `low` to `high`, both included. Made by ``fieldstone.float_range``."""

    low: float
    high: float


class Uniform(NamedTuple):
    """Coordinates ``first + i * spacing``. Made by ``fieldstone.uniform``."""

    first: float
    spacing: float


def plain(text: Any) -> Any:
    """The value itself; Invalid for text with lone surrogates, such as names of files that are not UTF-8."""
    if isinstance(text, str) and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Invalid(
                f"{text!r} is text that UTF-8 cannot encode", "give text without lone surrogates"
            ) from None
    return text


def int_range(low: int, high: int) -> IntRange:
    """The integers from `low` to `high`, both included, as one value for ``contains`` and ``between``."""
    import operator

    low, high = operator.index(low), operator.index(high)
    if low > high:
        raise Invalid(f"the range {low}..{high} is empty", "give the lower end first")
    return IntRange(low, high)


def float_range(low: float, high: float) -> FloatRange:
    """The numbers from `low` to `high`, both included, as one value for ``contains`` and ``between``."""
    low, high = float(low), float(high)
    if not low <= high:
        raise Invalid(f"the range {low}..{high} is empty", "give the lower end first; NaN is not an end")
    return FloatRange(low, high)


def uniform(first: float, spacing: float) -> Uniform:
    """Coordinates of a dimension whose element i is at ``first + i * spacing``, for ``create_variable``."""
    if not float(spacing):
        raise Invalid("coordinates with a spacing of 0", "give the distance between two elements")
    return Uniform(float(first), float(spacing))


def datetime_ns(moment: Any) -> int:
    """Nanoseconds since 1970 of a datetime (UTC if it has no zone), date, numpy.datetime64 or ISO text."""
    import numpy as np

    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise Invalid(
                f"{moment!r} is not a valid time", "write it as 2026-11-21 or 2026-11-21T06:00:00Z"
            ) from None
    if hasattr(moment, "to_datetime64"):  # a pandas Timestamp, to the nanosecond
        moment = moment.to_datetime64()
    if isinstance(moment, np.datetime64):
        if np.isnat(moment):
            raise Invalid(f"{moment} is not a valid time", "leave it out")
        return int(datetimes_ns(moment).astype("i8"))
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if not isinstance(moment, datetime):
        raise Invalid(
            f"{moment!r} is not a valid time", "give a datetime, a date, a numpy.datetime64 or ISO text"
        )
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    nanoseconds = since // _MICROSECOND * 1000
    if nanoseconds < -(2**63) < nanoseconds + 1000:
        # The first microsecond, written by a clock set before 1678; the lowest number is NaT.
        nanoseconds = -(2**63) + 1
    if not -(2**63) <= nanoseconds < 2**63:
        raise Invalid(f"{moment} does not fit into 64 bits as nanoseconds since 1970")
    return nanoseconds


def datetimes_ns(moments: Any) -> Any:
    """A numpy array or scalar of datetime64 in nanoseconds; Invalid if that is not exact."""
    import numpy as np

    # If 64 bits cannot hold a moment, numpy wraps around; it cuts off what is finer than a nanosecond.
    exact = moments.astype("M8[ns]")
    wrong = np.atleast_1d((exact.astype(moments.dtype) != moments) & ~np.isnat(moments))
    if wrong.any():
        first = np.atleast_1d(moments)[wrong][0]
        raise Invalid(
            f"{first} cannot be stored exactly as nanoseconds since 1970 in 64 bits",
            "give times from 1678 to 2261 in whole nanoseconds",
        )
    return exact

"""Times of validity of GRIB messages, and one datetime axis of them.

They follow from date, time and step of a message (``hdate`` replaces the date of a hindcast, ``fcmonth`` a
step in months), or from ``validity`` if its header differs from these. Under ``time_dim="valid_time"`` the
time of validity replaces them as dimension.

Invariant: a variable has one message for a time; otherwise Invalid names two.

Example: ``moment({"date": "20260101", "time": "1200", "step": "6"})`` is 2026-01-01T18:00.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from fieldstone._helper import grib_keys
from fieldstone._xarray.messages import VALIDITY, Messages
from fieldstone.errors import Invalid

NAME = "valid_time"
KEYWORDS = ("hdate", "date", "time", "fcmonth", "step")
RANGE = (np.datetime64("1678-01-01", "s"), np.datetime64("2262-01-01", "s"))
"""Every second between these can be a time in nanoseconds."""

ATTRS = {"standard_name": "time", "long_name": "time of validity"}


@dataclass(frozen=True)
class Timed(Messages):
    """Messages with an axis ``valid_time``; `rows` has keywords and values of each of its times.

    `plain` are the same messages along the axes of their keys.
    """

    rows: Sequence[tuple[tuple[str, str], ...]] = ()
    plain: Messages | None = None


def timed(held: Sequence[Messages]) -> list[Messages]:
    """Messages along their time of validity; unchanged if all are valid at the same time.

    A variable without a time is left out with a warning, unless it is the only one.
    """
    made: list[Timed] = []
    refused: list[Invalid] = []
    for m in held:
        try:
            made.append(one(m))
        except TimeUnknown as error:
            refused.append(error)
    if not made:
        raise refused[0]
    for error in refused:
        warnings.warn(f"left out: {error.message}", stacklevel=2)
    if len({m.axes[NAME] for m in made}) == 1 and len(made[0].rows) == 1:
        return [m.plain for m in made if m.plain is not None]
    return [*made]


class TimeUnknown(Invalid):
    """A message has no time of validity."""


def one(m: Messages) -> Timed:
    """The messages of a variable along their time of validity; a warning names those without one."""
    hindcast = "hdate" in m.key or "hdate" in m.axes
    varied = [k for k in (*KEYWORDS, VALIDITY) if k in m.axes and not (hindcast and k == "date")]
    sizes = {k: len(values) for k, values in m.axes.items()}
    values_of: dict[str, Sequence[str | None]] = dict(m.axes)
    present = np.arange(math.prod(sizes.values())) if m.present is None else m.present
    numbers = dict(zip(sizes, np.unravel_index(present, list(sizes.values())), strict=True)) if sizes else {}
    if m.tied is not None:
        varied.append(m.tied.keyword)
        numbers[m.tied.keyword], values_of[m.tied.keyword] = m.tied.numbers, m.tied.values
    extents = [len(values_of[k]) for k in varied]
    flat = np.zeros(len(present), np.int64)
    if varied:
        flat = np.ravel_multi_index([numbers[k] for k in varied], extents)
    # Each combination of the varying keywords is examined once, however many fields share it.
    chosen, index = np.unique(flat, return_inverse=True)
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    texts: list[str | None] = []
    lost: list[Mapping[str, str]] = []
    for place in chosen:
        where = np.unravel_index(place, extents) if varied else ()
        said = ((k, values_of[k][i]) for k, i in zip(varied, where, strict=True))
        row = tuple((k, text) for k, text in said if text is not None)
        if grib_keys.moment(key := {**m.key, **dict(row)}) is None:
            lost.append(key)
            texts.append(None)
            continue
        text = str(moment(key))
        if text in found:
            name = m.head.attrs.get("short_name", dict(m.group))
            raise Invalid(
                f"{name} has two fields that are valid at {text}: {label(found[text])} and {label(row)}",
                "give a request that selects one forecast for each time, or leave out time_dim",
            )
        found[text] = row
        texts.append(text)
    if lost and not found:
        raise unknown(lost[0])
    if lost:
        warnings.warn(f"left out: {unknown(lost[0]).message}", stacklevel=2)
    # ISO texts of equal length sort by time. Fields without a time get -1, and are dropped from all columns.
    values = tuple(sorted(found))
    rank: dict[str | None, int] = {None: -1, **{text: i for i, text in enumerate(values)}}
    numbers[NAME] = np.array([rank[text] for text in texts], np.int64)[index]
    numbers = {k: column[numbers[NAME] >= 0] for k, column in numbers.items()}
    axes: dict[str, tuple[str | None, ...]] = {k: v for k, v in m.axes.items() if k not in varied}
    axes[NAME] = values
    shape = [len(v) for v in axes.values()]
    places = np.sort(np.ravel_multi_index([numbers[k] for k in axes], shape))
    complete = len(places) == math.prod(shape)
    rows = tuple(found[text] for text in values)
    return Timed(m.group, m.key, axes, None if complete else places, m.head, rows=rows, plain=m)


def label(row: tuple[tuple[str, str], ...]) -> str:
    """Keywords and values for messages."""
    return ",".join(f"{k}={v}" for k, v in row)


def moment(key: Mapping[str, str]) -> np.datetime64:
    """The time of validity of a message, to the second, by its key."""
    seconds = grib_keys.moment(key)
    if seconds is None:
        raise unknown(key)
    return np.datetime64(seconds, "s")


def unknown(key: Mapping[str, str]) -> TimeUnknown:
    """The error for a key without a time of validity."""
    word = "hdate" if "hdate" in key else "date"
    day, time, step = key.get(word, ""), key.get("time", "0000"), key.get("step", "0")
    return TimeUnknown(
        f"a field of {word} {day!r}, time {time!r} and step {step!r} has no time of validity",
        "give a request without it, or leave out time_dim",
    )


def variable(dims: Sequence[str], texts: Sequence[str]) -> xr.Variable:
    """The coordinate of these times."""
    times = np.array(texts, "M8[s]")
    return coordinate(dims, times if dims else times[0])


def coordinate(dims: Sequence[str], times: np.ndarray | np.datetime64) -> xr.Variable:
    """The coordinate of times to the second, in nanoseconds if they fit; NaT if there is none."""
    return xr.Variable(tuple(dims), precise(np.asarray(times)), ATTRS)


def precise(times: np.ndarray) -> np.ndarray:
    """Times in nanoseconds, if all of them fit."""
    inside = (np.isnat(times) | ((times >= RANGE[0]) & (times < RANGE[1]))).all()
    return times.astype("M8[ns]") if inside else times

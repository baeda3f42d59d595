"""One datetime axis for GRIB messages: the time for which each is valid.

Date, time and step of a message say it (``hdate`` in place of the date of a hindcast, ``fcmonth`` in place of
a step in months). Under ``time_dim="valid_time"`` it takes their place as dimension.

Invariant: a variable has one message for a time, else Invalid names two.

Example: ``moment({"date": "20260101", "time": "1200", "step": "6"})`` is 2026-01-01T18:00.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from fieldstone._xarray.messages import Messages
from fieldstone.errors import Invalid

NAME = "valid_time"
KEYWORDS = ("hdate", "date", "time", "fcmonth", "step")
UNITS = {"": "h", "h": "h", "m": "m", "s": "s", "D": "D"}
STEP = re.compile(r"(?:-?\d+[a-zA-Z]?-)?(-?\d+)([a-zA-Z]?)")
RANGE = (np.datetime64("1678-01-01", "s"), np.datetime64("2262-01-01", "s"))
"""Between these every second is a time in nanoseconds."""

ATTRS = {"standard_name": "time", "long_name": "time of validity"}


@dataclass(frozen=True)
class Timed(Messages):
    """Messages with an axis ``valid_time``; `rows` has keywords and values of each of its times."""

    rows: Sequence[tuple[tuple[str, str], ...]] = ()


def timed(held: Sequence[Messages]) -> list[Messages]:
    """Messages along their time of validity; as they are where all are valid at one time."""
    made = [one(m) for m in held]
    return list(held) if len({m.axes[NAME] for m in made}) == 1 and len(made[0].rows) == 1 else [*made]


def one(m: Messages) -> Timed:
    """The messages of a variable along their time of validity."""
    hindcast = "hdate" in m.key or "hdate" in m.axes
    varied = [k for k in KEYWORDS if k in m.axes and not (hindcast and k == "date")]
    sizes = {k: len(values) for k, values in m.axes.items()}
    present = np.arange(math.prod(sizes.values())) if m.present is None else m.present
    numbers = dict(zip(sizes, np.unravel_index(present, list(sizes.values())), strict=True)) if sizes else {}
    extents = [sizes[k] for k in varied]
    flat = np.zeros(len(present), np.int64)
    if varied:
        flat = np.ravel_multi_index([numbers[k] for k in varied], extents)
    chosen, index = np.unique(flat, return_inverse=True)
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    texts = []
    for place in chosen:
        where = np.unravel_index(place, extents) if varied else ()
        row = tuple((k, str(m.axes[k][i])) for k, i in zip(varied, where, strict=True))
        text = str(moment({**m.key, **dict(row)}))
        if text in found:
            name = m.head.attrs.get("short_name", dict(m.group))
            raise Invalid(
                f"{name} has two fields that are valid at {text}: {label(found[text])} and {label(row)}",
                "give a request that selects one forecast for each time, or leave time_dim out",
            )
        found[text] = row
        texts.append(text)
    values = tuple(sorted(found))
    rank = {text: i for i, text in enumerate(values)}
    numbers[NAME] = np.array([rank[text] for text in texts], np.int64)[index]
    axes: dict[str, tuple[str | None, ...]] = {k: v for k, v in m.axes.items() if k not in varied}
    axes[NAME] = values
    shape = [len(v) for v in axes.values()]
    places = np.sort(np.ravel_multi_index([numbers[k] for k in axes], shape))
    complete = len(places) == math.prod(shape)
    return Timed(
        m.group, m.key, axes, None if complete else places, m.head, tuple(found[text] for text in values)
    )


def label(row: tuple[tuple[str, str], ...]) -> str:
    """Keywords and values as people write them."""
    return ",".join(f"{k}={v}" for k, v in row)


def moment(key: Mapping[str, str]) -> np.datetime64:
    """When a message is valid: to the second, by its date, time and step."""
    word = "hdate" if "hdate" in key else "date"
    day, time, step = key.get(word, ""), key.get("time", "0000"), key.get("step", "0")
    lead = STEP.fullmatch(step)
    try:
        if (
            lead is None
            or lead[2] not in UNITS
            or not time.isdigit()
            or not (len(day) == 8 and day.isdigit())
        ):
            raise ValueError
        start = np.datetime64(f"{day[:4]}-{day[4:6]}-{day[6:]}", "D")
        if "fcmonth" in key:
            month = start.astype("M8[M]") + (int(key["fcmonth"]) - 1)
            return month.astype("M8[s]")
        clock = int(time[:2]) * 60 + int(time[2:4] or 0)
        return (
            start.astype("M8[s]") + np.timedelta64(clock, "m") + np.timedelta64(int(lead[1]), UNITS[lead[2]])
        )
    except ValueError:
        raise Invalid(
            f"nothing tells when a field of {word} {day!r}, time {time!r} and step {step!r} is valid",
            "give a request without it, or leave time_dim out",
        ) from None


def variable(dims: Sequence[str], texts: Sequence[str]) -> xr.Variable:
    """The coordinate of these times."""
    times = np.array(texts, "M8[s]")
    inside = bool(((times >= RANGE[0]) & (times < RANGE[1])).all())
    times = times.astype("M8[ns]") if inside else times
    return xr.Variable(tuple(dims), times if dims else times[0], ATTRS)

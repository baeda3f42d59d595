"""Coordinates of time for GRIB variables: the time of validity of each field, and the interval of a
statistic.

Invariants:

* ``valid_time`` agrees with eccodes for each message, but comes only from its key: no header is read for it;
* a message without a time has NaT if others have one; if none has one, there is no coordinate, and a warning;
* the interval of an accumulation, a mean or an extreme is read from the headers on demand.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from fieldstone._helper import grib_keys
from fieldstone._xarray import valid
from fieldstone._xarray.arrays import Parts
from fieldstone._xarray.lazy import Axis, Box, FieldArray, Tied, lazy
from fieldstone._xarray.messages import VALIDITY, Messages
from fieldstone._xarray.source import Key, Source

BOUNDS = "bounds"
"""The dimension of begin and end."""
MOMENT = np.dtype("M8[ns]")

Texts = Mapping[str, Sequence[str]]


def add_valid_time(
    parts: Parts, held: Mapping[str, Messages], union: Texts, alone: Mapping[str, str]
) -> None:
    """Adds the time of validity along those dimensions of the Dataset that determine it.

    `union` has the values of the dimensions, `alone` those of keywords with one value in all variables. A
    variable with other times of validity than another one has its own coordinate.
    """
    known = {**{k: [v] for k, v in alone.items()}, **union}
    if VALIDITY in union:
        parts.variables[valid.NAME] = valid.variable((VALIDITY,), [moment_of(t) for t in union[VALIDITY]])
        parts.coords.append(valid.NAME)
        return
    start = "hdate" if "hdate" in known else "date"
    lead = "fcmonth" if "fcmonth" in known else "step"
    if start not in known or "time" not in known or lead not in known:
        return
    words = (start, "time", lead)
    dims = tuple(k for k in words if k in union)
    times = by_keys([known[k] for k in words], lead).reshape([len(union[k]) for k in dims])
    shared = np.full(times.shape, np.datetime64("NaT", "s"))
    # Variables whose validity follows from their keys share the coordinate.
    for name, m in sorted(held.items(), key=lambda item: item[1].tied is not None or VALIDITY in item[1].key):
        own = by_headers(m, words, dims, union, times)
        if own is None:
            continue
        both = ~np.isnat(own) & ~np.isnat(shared)
        if (own[both] != shared[both]).any():
            add(parts, f"{valid.NAME}_{name}", dims, np.where(np.isnat(own), times, own))
        else:
            shared = np.where(np.isnat(own), shared, own)
    add(parts, valid.NAME, dims, np.where(np.isnat(shared), times, shared))


def add(parts: Parts, name: str, dims: tuple[str, ...], times: np.ndarray) -> None:
    """Adds a coordinate of times, with a warning if some are missing."""
    lacking = np.isnat(times)
    if lacking.any():
        what = "none of the fields has" if lacking.all() else f"{lacking.sum()} of {lacking.size} lack"
        warnings.warn(f"{name}: {what} a date, time and step that make a moment", stacklevel=2)
    if not lacking.all():
        parts.variables[name] = valid.coordinate(dims, times)
        parts.coords.append(name)


def by_keys(texts: Sequence[Sequence[str]], lead: str) -> np.ndarray:
    """The moments of dates, times and steps (or months), in all combinations; NaT if there is none."""
    days, clocks, leads = texts
    if lead == "fcmonth":
        keys = ({"date": d, "time": c, lead: n} for d in days for c in clocks for n in leads)
        times = [moment_of(None, key) for key in keys]
        return np.array(times, "M8[s]").reshape(len(days), len(clocks), len(leads))
    midnight = np.array([seconds(grib_keys.since_1970(day, "0000")) for day in days], "M8[s]")
    clock = np.array([seconds(grib_keys.since_1970("19700101", text)) for text in clocks], "m8[s]")
    ends = np.array([seconds(grib_keys.seconds_of(grib_keys.ends_of(text)[1])) for text in leads], "m8[s]")
    return midnight[:, None, None] + clock[:, None] + ends


def seconds(number: int | None) -> int | str:
    """Seconds in numpy's form."""
    return "NaT" if number is None else number


def moment_of(validity: str | None, key: Key | None = None) -> str:
    """A moment in numpy's form."""
    said = grib_keys.moment(key if key is not None else {VALIDITY: validity or ""})
    return "NaT" if said is None else str(np.datetime64(said, "s"))


def by_headers(
    m: Messages, words: tuple[str, ...], dims: tuple[str, ...], union: Texts, times: np.ndarray
) -> np.ndarray | None:
    """Times of validity of the messages of a variable, on the grid of `dims`; NaT for none or several.

    None if they depend on other dimensions.
    """
    if any(k in m.axes and k not in dims for k in words):
        return None
    sizes = [len(values) for values in m.axes.values()]
    present = np.arange(math.prod(sizes)) if m.present is None else m.present
    numbers = dict(zip(m.axes, np.unravel_index(present, sizes), strict=True)) if sizes else {}
    index = []
    for k in dims:
        rank = {text: i for i, text in enumerate(union[k])}
        own = m.axes.get(k, (m.key.get(k),))
        if any(text not in rank for text in own):
            return None
        places = np.array([rank[text] for text in own], np.int64)
        index.append(places[numbers[k]] if k in numbers else np.full(len(present), places[0]))
    flat = np.ravel_multi_index(index, times.shape) if dims else np.zeros(len(present), np.int64)
    said = times.ravel()[flat]
    if m.tied is not None:
        values = np.array([moment_of(text) for text in m.tied.values], "M8[s]")[m.tied.numbers]
        said = np.where(np.isnat(values), said, values)
    elif VALIDITY in m.key:
        said = np.full(len(present), np.datetime64(moment_of(m.key[VALIDITY]), "s"))
    made = np.full(times.size, np.datetime64("NaT", "s"))
    made[flat] = said
    # A place shared by messages with different times has none.
    made[flat[made[flat] != said]] = np.datetime64("NaT", "s")
    return made.reshape(times.shape)


def add_interval(parts: Parts, source: Source, m: Messages, name: str, axes: Mapping[str, Axis]) -> None:
    """Adds begin and end of the interval of each field if the variable is a statistic; they are read on
    demand.

    `axes` are the leading dimensions of the variable. Fields that differ only in member or level are assumed
    to have the same interval: that of the first of them.
    """
    if m.head.attrs.get("GRIB_stepType", "instant") == "instant":
        return
    dims = [d for d, axis in axes.items() if axis.keyword in (*valid.KEYWORDS, valid.NAME, VALIDITY)]
    ordered = [k for k in m.axes if any(axes[d].keyword == k for d in dims)]
    dims.sort(key=lambda d: ordered.index(axes[d].keyword))
    sizes = [len(values) for values in m.axes.values()]
    present = np.arange(math.prod(sizes)) if m.present is None else m.present
    numbers = dict(zip(m.axes, np.unravel_index(present, sizes), strict=True)) if sizes else {}
    key, kept = dict(m.key), np.ones(len(present), bool)
    # Of the other keywords (member, level) only the first value is used.
    for keyword, values in m.axes.items():
        if keyword not in ordered:
            first = numbers[keyword][0]
            kept &= numbers[keyword] == first
            if (text := values[first]) is not None:
                key[keyword] = text
    extents = [len(m.axes[k]) for k in ordered]
    flat = np.zeros(int(kept.sum()), np.int64)
    if ordered:
        flat = np.ravel_multi_index([numbers[k][kept] for k in ordered], extents)
    tied = None if m.tied is None else Tied(m.tied.keyword, m.tied.values, m.tied.numbers[kept])
    array = FieldArray(
        source,
        key,
        [axes[d] for d in dims],
        (2,),
        MOMENT,
        present=flat,
        tied=tied,
        read=Interval(),
        fill=np.datetime64("NaT", "ns"),
    )
    coordinate = f"{name}_{BOUNDS}"
    attrs = {"long_name": f"begin and end of the interval of {name}"}
    parts.variables[coordinate] = xr.Variable((*dims, BOUNDS), lazy(array), attrs)
    parts.coords.append(coordinate)


@dataclass(frozen=True)
class Interval:
    """Reads begin and end of the interval of a message."""

    def __call__(self, source: Source, key: Key, shape: tuple[int, ...], box: Box) -> np.ndarray:
        """A box of the two; NaT if the header lacks it."""
        from fieldstone._helper import grib

        with grib.Handle(source.bytes(key)) as handle:
            both = [seconds(s) for s in grib_keys.interval_of(handle)]
        values = np.array(both, "M8[s]").astype(MOMENT)
        return values[tuple(slice(s, s + c) for s, c in zip(*box, strict=True))]

"""GRIB fields as variables: a dimension per MARS keyword with several values, and the grid's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._xarray.arrays import Box, FieldArray, Key, Parts, chunks, lazy, typed
from fieldstone._xarray.source import Source

AXES = (
    "number",
    "hdate",
    "date",
    "time",
    "fcmonth",
    "step",
    "direction",
    "frequency",
    "channel",
    "levelist",
)
"""Keywords that become dimensions, outermost first; any other one makes variables of its own."""

Group = tuple[tuple[str, str], ...]


def describe(source: Source, request: Any) -> Parts:
    """Variables of GRIB messages: a group of keys that differ in nothing but AXES."""
    groups: dict[Group, list[Key]] = {}
    for entry in source.store.list({} if request is None else request):
        key = dict(entry.key)
        group = tuple((k, v) for k, v in key.items() if k not in AXES)
        groups.setdefault(group, []).append(key)
    if not groups:
        raise ValueError("nothing to open: no field matches the request")
    order = source.store.axes({} if request is None else request)
    heads = {group: head(source, keys[0]) for group, keys in groups.items()}
    names = name_all({g: facts["attrs"].get("short_name", unnamed(g)) for g, facts in heads.items()})
    grids: dict[str, str] = {}
    parts = Parts({})
    shared: dict[str, list[str]] = {}
    for group, keys in groups.items():
        for dim, keyword in dims_of(group, keys, groups).items():
            present = {key[keyword] for key in keys if keyword in key}
            known = shared.setdefault(dim, [])
            known += [v for v in order.get(keyword, sorted(present)) if v in present and v not in known]
            known.sort(key=order.get(keyword, known).index)
    for group, keys in groups.items():
        facts = heads[group]
        suffix = grids.setdefault(facts["grid"], "" if not grids else f"_{len(grids) + 1}")
        rename = {dim: dim + suffix for _, (dims, _) in facts["coords"].items() for dim in dims}
        inner = tuple(rename.get(d, d + suffix) for d in facts["dims"])
        for name, (dims, data) in facts["coords"].items():
            parts.variables.setdefault(
                name + suffix, xr.Variable(tuple(rename[d] for d in dims), data, coordinate_attrs(name))
            )
            parts.coords.append(name + suffix)
        lead = dims_of(group, keys, groups)
        ranks = {dim: {v: i for i, v in enumerate(shared[dim])} for dim in lead}
        places = {tuple(ranks[dim][key[k]] for dim, k in lead.items()): key for key in keys}
        shape = tuple(len(shared[dim]) for dim in lead)
        read = MessageReader(facts["grid"])
        array = FieldArray(source, places, shape, facts["shape"], np.dtype("f8"), read, np.float64(np.nan))
        made = xr.Variable((*lead, *inner), lazy(array), attrs_of(group, keys, facts, lead))
        made.encoding["preferred_chunks"] = chunks(list(lead), list(inner), facts["shape"])
        parts.variables[names[group]] = made
    for dim, texts in shared.items():
        parts.variables[dim] = xr.Variable((dim,), axis_values(dim, texts), axis_attrs(dim))
    single(parts, groups, shared)
    return parts


def dims_of(group: Group, keys: list[Key], groups: dict[Group, list[Key]]) -> dict[str, str]:
    """Dimension → keyword of the keywords with several values; levels of two kinds get two names."""
    held = {}
    for keyword in AXES:
        values = {key.get(keyword) for key in keys}
        if len(values) < 2:
            continue
        if None in values:
            raise ValueError(f"some fields of {dict(group)} lack {keyword}; narrow the request")
        kinds = {level_type(g) for g, ks in groups.items() if len({k.get("levelist") for k in ks}) > 1}
        dim = f"levelist_{level_type(group)}" if keyword == "levelist" and len(kinds) > 1 else keyword
        held[dim] = keyword
    return held


def level_type(group: Group) -> str:
    """What kind of level a group has."""
    facts = dict(group)
    return facts.get("typeoflevel") or facts.get("levtype", "")


def name_all(short: dict[Group, str]) -> dict[Group, str]:
    """A name per group: the short name, with the keywords that differ where it is not unique."""
    names = {}
    for group, name in short.items():
        twins = [dict(g) for g, n in short.items() if n == name]
        differing = [k for k in sorted({k for t in twins for k in t}) if len({t.get(k) for t in twins}) > 1]
        # typeoflevel says more than levtype; param says what the name says, in another table.
        for more, less in (("typeoflevel", "levtype"), ("levtype", "param"), ("typeoflevel", "param")):
            if more in differing and less in differing:
                differing.remove(less)
        own = dict(group)
        names[group] = "_".join([name, *(own[k] for k in differing if k in own)])
    if len(set(names.values())) < len(names):
        names = {g: "_".join([short[g], *(v for _, v in g)]) for g in names}
    return names


def unnamed(group: Group) -> str:
    """A name for a parameter that eccodes' tables do not know."""
    facts = dict(group)
    return f"param_{facts.get('parameter', facts.get('param', ''))}"


def head(source: Source, key: Key) -> dict[str, Any]:
    """Grid, coordinates and attributes, from one message."""
    from fieldstone._helper import grib

    with grib.Handle(source.bytes(key)) as handle:
        shape, coords = grib.grid_of(handle)
        dims = ("values",)
        if len(shape) == 2:
            dims = ("latitude", "longitude") if coords["latitude"][1].ndim == 1 else ("y", "x")
        return {
            "shape": shape,
            "dims": dims,
            "coords": coords,
            "attrs": grib.attributes_of(handle),
            "grid": grid_id(handle),
        }


@dataclass(frozen=True)
class MessageReader:
    """Reads boxes of messages that all have one grid."""

    grid: str

    def __call__(self, source: Source, key: Key, shape: tuple[int, ...], box: Box) -> np.ndarray:
        """A box of a message's values."""
        from fieldstone._helper import grib

        with grib.Handle(source.bytes(key)) as handle:
            if grid_id(handle) != self.grid:
                raise ValueError(f"the field {key} has another grid than its neighbours; narrow the request")
            values = grib.values_of(handle, shape)
        return values[tuple(slice(s, s + c) for s, c in zip(*box, strict=True))]


def grid_id(handle: Any) -> str:
    """What two messages of one grid have in common."""
    return f"{handle.text('gridType')} {handle.text('numberOfPoints')} {handle.text('md5GridSection')}"


def attrs_of(group: Group, keys: list[Key], facts: dict[str, Any], lead: dict[str, str]) -> dict[str, Any]:
    """The header's words, and the keywords with one value."""
    attrs = dict(facts["attrs"])
    for keyword, value in keys[0].items():
        if keyword not in lead.values():
            attrs[f"GRIB_{keyword}"] = value
    return attrs


def single(parts: Parts, groups: dict[Group, list[Key]], shared: dict[str, list[str]]) -> None:
    """Scalar coordinates of the axes with one value in all fields, and the time of validity."""
    everything = [key for keys in groups.values() for key in keys]
    for keyword in AXES:
        values = {key.get(keyword) for key in everything}
        if len(values) == 1 and None not in values and keyword not in parts.variables:
            (text,) = values
            parts.variables[keyword] = xr.Variable((), axis_values(keyword, [text])[0], axis_attrs(keyword))
            parts.coords.append(keyword)
    pieces = [parts.variables.get(k) for k in ("date", "time", "step")]
    if any(p is None for p in pieces) or pieces[2].dtype.kind != "i":
        return
    dims = tuple(d for p in pieces for d in p.dims)
    date, time, step = (p.values.reshape([-1 if d in p.dims else 1 for d in dims]) for p in pieces)
    clock = np.array([int(t[:2]) * 60 + int(t[2:4]) for t in time.astype(str).ravel()])
    minutes = clock.reshape(time.shape) + step * 60
    valid = date + minutes.astype("timedelta64[m]")
    parts.variables["valid_time"] = xr.Variable(
        dims, valid.astype("datetime64[ns]"), {"standard_name": "time", "long_name": "time of validity"}
    )
    parts.coords.append("valid_time")


def axis_values(keyword: str, texts: list[str]) -> np.ndarray:
    """Values of an axis: dates as datetime64, times as HHMM text, numbers where they are numbers."""
    if keyword in ("date", "hdate"):
        try:
            days = [f"{t[:4]}-{t[4:6]}-{t[6:]}" for t in texts]
            return np.array(days, dtype="datetime64[D]").astype("datetime64[ns]")
        except ValueError:
            return np.array(texts, dtype=str)
    if keyword == "time":
        return np.array(texts, dtype=str)
    return typed(texts)


def axis_attrs(keyword: str) -> dict[str, str]:
    """What an axis means."""
    known = {
        "date": {"long_name": "date of the forecast's start"},
        "time": {"long_name": "time of the forecast's start, HHMM"},
        "number": {"long_name": "ensemble member", "standard_name": "realization"},
    }
    return known.get(keyword, {"long_name": keyword})


def coordinate_attrs(name: str) -> dict[str, str]:
    """CF attributes of latitude and longitude."""
    units = {"latitude": "degrees_north", "longitude": "degrees_east"}
    return {"units": units[name], "standard_name": name}

"""GRIB fields as variables: a dimension per MARS keyword with several values, and the grid's.

A variable is one cube (``store._cubes``): messages that differ in nothing but :data:`AXES`. Its grid is told
by one message; each message says its own when it is read, and one of another grid is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._xarray.arrays import Cube, Parts, Shared, typed
from fieldstone._xarray.lazy import Axis, Box, FieldArray, chunks, lazy
from fieldstone._xarray.source import Key, Source
from fieldstone.errors import Invalid

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
NODES = ("centre", "class", "expver", "stream", "domain", "type")
"""Keywords that become levels of a tree where they have several values, outermost first."""
LEVELS = ("typeoflevel", "levtype")
"""Keywords of which the first that a variable has is the last level of a tree."""

Group = tuple[tuple[str, str], ...]


@dataclass
class Head:
    """What one message tells of its grid and its meaning."""

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    coords: dict[str, Any]
    attrs: dict[str, Any]
    grid: str


@dataclass(frozen=True)
class Messages:
    """Messages that make one variable: of a cube, those of one grid."""

    group: Group
    key: Key
    axes: dict[str, tuple[str | None, ...]]
    present: np.ndarray | None
    head: Head

    @property
    def lead(self) -> dict[str, tuple[str | None, ...]]:
        """The keywords with several values, in the order of AXES."""
        return {k: self.axes[k] for k in AXES if k in self.axes}


class Heads:
    """Reads headers; the coordinates of each grid once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._grids: dict[str, tuple[tuple[int, ...], Any]] = {}

    def of(self, key: Key) -> Head:
        """Grid, coordinates and attributes, from one message."""
        from fieldstone._helper import grib

        with grib.Handle(self._source.bytes(key)) as handle:
            grid = grid_id(handle)
            if grid not in self._grids:
                self._grids[grid] = grib.grid_of(handle)
            shape, coords = self._grids[grid]
            dims: tuple[str, ...] = ("values",)
            if len(shape) == 2:
                dims = ("latitude", "longitude") if coords["latitude"][1].ndim == 1 else ("y", "x")
            return Head(shape, dims, coords, grib.attributes_of(handle), grid)


def describe(source: Source, request: Any) -> Parts:
    """Variables of GRIB messages."""
    cubes, order = cubes_of(source, request)
    heads = Heads(source)
    held = [whole(cube, heads.of(next(keys_of(cube)))) for cube in cubes]
    return assemble(source, held, Shared(order))


def groups(source: Source, request: Any) -> Iterator[tuple[str, Parts]]:
    """The nodes of a tree with their variables: by NODES, by level type, and by grid where it differs."""
    cubes, order = cubes_of(source, request)
    heads, shared = Heads(source), Shared(order)
    varied = [k for k in NODES if len({cube.key.get(k) for cube in cubes}) > 1]
    nodes: dict[str, list[Messages]] = {}
    for cube in cubes:
        level = next((k for k in LEVELS if k in cube.key), LEVELS[-1])
        path = "/".join(f"{k}={cube.key.get(k, '')}" for k in (*varied, level))
        nodes.setdefault(path, []).extend(by_grid(cube, heads))
    for path, held in nodes.items():
        grids = list(dict.fromkeys(m.head.grid for m in held))
        if len(grids) == 1:
            yield path, assemble(source, held, shared)
            continue
        for grid in grids:
            same = [m for m in held if m.head.grid == grid]
            kind, points, _ = grid.split(" ")
            name = f"grid={kind}-{points}"
            twins = [g for g in grids if g.split(" ")[:2] == [kind, points]]
            name += f"-{twins.index(grid) + 1}" if len(twins) > 1 else ""
            yield f"{path}/{name}", assemble(source, same, shared)


def cubes_of(source: Source, request: Any) -> tuple[list[Any], dict[str, tuple[str | None, ...]]]:
    """The cubes of a request, all of messages."""
    cubes, order = source.store._cubes(request, along=AXES)
    for cube in cubes:
        if cube.dtype is not None or (cube.odd and cube.odd[1] is not None):
            raise Invalid(
                f"the request selects GRIB messages and arrays, such as {dict(cube.key)}",
                "give a request that selects either",
            )
    return cubes, order


def whole(cube: Any, head: Head) -> Messages:
    """All messages of a cube."""
    made = Cube(cube)
    lacking = [k for k, values in made.axes.items() if None in values]
    if lacking:
        raise Invalid(
            f"some fields of {dict(cube.key)} lack {', '.join(lacking)}",
            "give a request that selects those that have it",
        )
    return Messages(tuple(cube.key.items()), made.key, made.axes, made.present, head)


def by_grid(cube: Any, heads: Heads) -> list[Messages]:
    """The messages of a cube by their grid.

    The shortest and the longest message are asked; where they have one grid, so have all between, or they
    say otherwise when they are read.
    """
    ends = [heads.of(dict(key)) for key in dict.fromkeys((cube.shortest, cube.longest))]
    everything = whole(cube, ends[0])
    if len({head.grid for head in ends}) == 1:
        return [everything]
    found: dict[str, tuple[Head, list[int]]] = {}
    for place, key in zip(places_of(cube), keys_of(cube), strict=True):
        head = heads.of(key)
        found.setdefault(head.grid, (head, []))[1].append(int(place))
    parts = (narrowed(everything, np.array(places, np.int64), head) for head, places in found.values())
    return list(parts)


def narrowed(messages: Messages, places: np.ndarray, head: Head) -> Messages:
    """Some messages of a variable, with those values of its axes that they have."""
    names = list(messages.axes)
    numbers = np.unravel_index(places, [len(messages.axes[k]) for k in names]) if names else ()
    key, axes, columns = dict(messages.key), {}, []
    for keyword, column in zip(names, numbers, strict=True):
        held, index = np.unique(column, return_inverse=True)
        values = tuple(messages.axes[keyword][i] for i in held)
        if len(values) == 1:
            key[keyword] = str(values[0])
        else:
            axes[keyword] = values
            columns.append(index)
    sizes = [len(values) for values in axes.values()]
    flat = np.sort(np.ravel_multi_index(columns, sizes)) if axes else np.zeros(1, np.int64)
    present = None if len(flat) == math.prod(sizes) else flat
    return replace(messages, key=key, axes=axes, present=present, head=head)


def places_of(cube: Any) -> np.ndarray:
    """The combinations of a cube's axes that have a field, as positions in C order."""
    if cube.places is not None:
        return np.frombuffer(cube.places, np.int64)
    return np.arange(math.prod(len(values) for values in cube.axes.values()))


def keys_of(cube: Any) -> Iterator[Key]:
    """The keys of a cube's fields, in the order of :func:`places_of`."""
    sizes = [len(values) for values in cube.axes.values()]
    for place in places_of(cube):
        numbers = np.unravel_index(place, sizes) if sizes else ()
        chosen = ((k, v[i]) for (k, v), i in zip(cube.axes.items(), numbers, strict=True))
        yield {**cube.key, **{k: v for k, v in chosen if v is not None}}


def assemble(source: Source, held: Sequence[Messages], shared: Shared) -> Parts:
    """The variables of messages, with their dimensions and coordinates."""
    parts = Parts({})
    short = {i: m.head.attrs.get("short_name", unnamed(m.group)) for i, m in enumerate(held)}
    names = name_all(short, held)
    kinds = {level_type(m.group) for m in held if "levelist" in m.axes}
    dims: dict[str, list[tuple[str | None, ...]]] = {}
    for m in held:
        for keyword, values in m.lead.items():
            dims.setdefault(dim_of(keyword, m.group, kinds), []).append(values)
    keywords = {d: "levelist" if d.startswith("levelist") else d for d in dims}
    union = {d: shared.union(keywords[d], axes) for d, axes in dims.items()}
    grids: dict[str, str] = {}
    for i, name in names.items():
        m = held[i]
        head = m.head
        suffix = grids.setdefault(head.grid, "" if not grids else f"_{len(grids) + 1}")
        rename = {dim: dim + suffix for _, (along, _) in head.coords.items() for dim in along}
        inner = tuple(rename.get(d, d + suffix) for d in head.dims)
        for coord, (along, data) in head.coords.items():
            parts.variables.setdefault(
                coord + suffix, xr.Variable(tuple(rename[d] for d in along), data, coordinate_attrs(coord))
            )
            parts.coords.append(coord + suffix)
        lead = {dim_of(k, m.group, kinds): values for k, values in m.lead.items()}
        # Axes stand in the store's order, dimensions in that of AXES.
        axes = [Axis(keywords[d], values, shared.places(union[d], values)) for d, values in lead.items()]
        present = reordered(m, [keywords[d] for d in lead])
        read = MessageReader(head.grid)
        array = FieldArray(
            source,
            m.key,
            axes,
            head.shape,
            np.dtype("f8"),
            present=present,
            read=read,
            fill=np.float64(np.nan),
        )
        made = xr.Variable((*lead, *inner), lazy(array), attrs_of(m))
        made.encoding["preferred_chunks"] = chunks(list(lead), list(inner), head.shape)
        parts.variables[name] = made
    for dim, values in union.items():
        texts = [str(v) for v in values]
        parts.variables[dim] = xr.Variable((dim,), axis_values(dim, texts), axis_attrs(dim))
    single(parts, held)
    return parts


def reordered(m: Messages, names: list[str]) -> np.ndarray | None:
    """The combinations that have a field, over the axes in another order."""
    if m.present is None or names == list(m.axes):
        return m.present
    sizes = {k: len(values) for k, values in m.axes.items()}
    numbers = dict(zip(sizes, np.unravel_index(m.present, list(sizes.values())), strict=True))
    return np.sort(np.ravel_multi_index([numbers[k] for k in names], [sizes[k] for k in names]))


def dim_of(keyword: str, group: Group, kinds: set[str]) -> str:
    """The dimension of a keyword; levels of two kinds get two names."""
    return f"levelist_{level_type(group)}" if keyword == "levelist" and len(kinds) > 1 else keyword


def level_type(group: Group) -> str:
    """What kind of level a group has."""
    facts = dict(group)
    return facts.get("typeoflevel") or facts.get("levtype", "")


def name_all(short: dict[int, str], held: Sequence[Messages]) -> dict[int, str]:
    """A name for each: the short name, with the keywords that differ where it is not unique."""
    names = {}
    for i, name in short.items():
        twins = [dict(held[j].group) for j, n in short.items() if n == name]
        differing = [k for k in sorted({k for t in twins for k in t}) if len({t.get(k) for t in twins}) > 1]
        # typeoflevel says more than levtype; param says what the name says, in another table.
        for more, less in (("typeoflevel", "levtype"), ("levtype", "param"), ("typeoflevel", "param")):
            if more in differing and less in differing:
                differing.remove(less)
        own = dict(held[i].group)
        names[i] = "_".join([name, *(own[k] for k in differing if k in own)])
    if len(set(names.values())) < len(names):
        names = {i: "_".join([short[i], *(v for _, v in held[i].group)]) for i in names}
    return names


def unnamed(group: Group) -> str:
    """A name for a parameter that eccodes' tables do not know."""
    facts = dict(group)
    return f"param_{facts.get('parameter', facts.get('param', ''))}"


@dataclass(frozen=True)
class MessageReader:
    """Reads boxes of messages that all have one grid."""

    grid: str

    def __call__(self, source: Source, key: Key, shape: tuple[int, ...], box: Box) -> np.ndarray:
        """A box of a message's values."""
        from fieldstone._helper import grib

        with grib.Handle(source.bytes(key)) as handle:
            if grid_id(handle) != self.grid:
                raise Invalid(
                    f"the field {key} has another grid than its neighbours",
                    "give a request that selects one grid, or open_datatree, which makes a node of each",
                )
            values = grib.values_of(handle, shape)
        return values[tuple(slice(s, s + c) for s, c in zip(*box, strict=True))]


def grid_id(handle: Any) -> str:
    """What two messages of one grid have in common."""
    return f"{handle.text('gridType')} {handle.text('numberOfPoints')} {handle.text('md5GridSection')}"


def attrs_of(m: Messages) -> dict[str, Any]:
    """The header's words, and the keywords with one value."""
    return {**m.head.attrs, **{f"GRIB_{keyword}": value for keyword, value in m.key.items()}}


def single(parts: Parts, held: Sequence[Messages]) -> None:
    """Scalar coordinates of the axes with one value in all fields, and the time of validity."""
    for keyword in AXES:
        values = {m.key.get(keyword) for m in held}
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

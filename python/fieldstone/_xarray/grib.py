"""GRIB fields as variables: a dimension per MARS keyword with several values, and the grid's.

A variable is one cube (``store._cubes``): messages that differ in nothing but :data:`AXES`. Its grid is told
by one message; each message says its own when it is read, and one of another grid is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._xarray import valid
from fieldstone._xarray.arrays import Parts, Shared, typed
from fieldstone._xarray.lazy import Axis, Box, FieldArray, Joint, chunks, lazy
from fieldstone._xarray.messages import (
    Group,
    Heads,
    Messages,
    by_grid,
    by_keywords,
    ends,
    first,
    grid_id,
    whole,
)
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


def describe(source: Source, request: Any, time_dim: str | None) -> Parts:
    """Variables of GRIB messages."""
    cubes, order = cubes_of(source, request)
    shared = Shared(order)
    heads = Heads(source)
    heads.expect(first(cube) for cube in cubes)
    return assemble(source, [whole(cube, heads) for cube in cubes], shared, time_dim)


def groups(source: Source, request: Any, time_dim: str | None) -> Iterator[tuple[str, Parts]]:
    """The nodes of a tree with their variables: by NODES, by level type, and by grid where it differs.

    A branch has no level for a keyword that its messages lack.
    """
    cubes, order = cubes_of(source, request)
    shared = Shared(order)
    heads = Heads(source)
    heads.expect(key for cube in cubes for key in ends(cube))
    varied = [k for k in NODES if len({cube.key.get(k) for cube in cubes}) > 1]
    nodes: dict[str, list[Messages]] = {}
    for cube in cubes:
        level = next((k for k in LEVELS if k in cube.key), LEVELS[-1])
        above = [f"{k}={cube.key[k]}" for k in varied if k in cube.key]
        for lacking, places in by_keywords(cube):
            path = "/".join([*above, *(f"{k}=" for k in lacking), f"{level}={cube.key.get(level, '')}"])
            nodes.setdefault(path, []).extend(by_grid(cube, places, heads))
    for path, held in nodes.items():
        grids = list(dict.fromkeys(m.head.grid for m in held))
        if len(grids) == 1:
            yield path, assemble(source, held, shared, time_dim)
            continue
        for grid in grids:
            same = [m for m in held if m.head.grid == grid]
            kind, points, _ = grid.split(" ")
            name = f"grid={kind}-{points}"
            twins = [g for g in grids if g.split(" ")[:2] == [kind, points]]
            name += f"-{twins.index(grid) + 1}" if len(twins) > 1 else ""
            yield f"{path}/{name}", assemble(source, same, shared, time_dim)


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


def assemble(source: Source, held: Sequence[Messages], shared: Shared, time_dim: str | None) -> Parts:
    """The variables of messages, with their dimensions and coordinates."""
    parts = Parts({})
    if time_dim:
        held = valid.timed(held)
    short = {i: m.head.attrs.get("short_name", unnamed(m.group)) for i, m in enumerate(held)}
    names = name_all(short, held)
    kinds = {level_type(m.group) for m in held if "levelist" in m.axes}
    dims: dict[str, list[tuple[str | None, ...]]] = {}
    for m in held:
        for keyword, values in lead_of(m).items():
            dims.setdefault(dim_of(keyword, m.group, kinds), []).append(values)
    keywords = {d: "levelist" if d.startswith("levelist") else d for d in dims}
    union = {d: shared.union(keywords[d], axes) for d, axes in dims.items() if d != valid.NAME}
    if valid.NAME in dims:
        union[valid.NAME] = tuple(sorted({text for axis in dims[valid.NAME] for text in axis if text}))
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
        lead = {dim_of(k, m.group, kinds): values for k, values in lead_of(m).items()}
        # Axes stand in the store's order, dimensions in that of AXES.
        axes = [
            axis_of(m, keywords[d], values, shared.places(union[d], values)) for d, values in lead.items()
        ]
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
        if dim == valid.NAME:
            parts.variables[dim] = valid.variable((dim,), texts)
            continue
        parts.variables[dim] = xr.Variable((dim,), axis_values(dim, texts), axis_attrs(dim))
    single(parts, held)
    if time_dim and valid.NAME not in parts.variables:
        parts.variables[valid.NAME] = valid.variable((), [str(valid.moment(held[0].key))])
        parts.coords.append(valid.NAME)
    return parts


def axis_of(m: Messages, keyword: str, values: tuple[str | None, ...], places: np.ndarray | None) -> Axis:
    """A leading dimension of a variable."""
    if isinstance(m, valid.Timed) and keyword == valid.NAME:
        return Joint(keyword, values, places, m.rows)
    return Axis(keyword, values, places)


def lead_of(m: Messages) -> dict[str, tuple[str | None, ...]]:
    """The keywords with several values, in the order of AXES."""
    return {k: m.axes[k] for k in (AXES[0], valid.NAME, *AXES[1:]) if k in m.axes}


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
    if valid.NAME in parts.variables:
        return
    pieces = [parts.variables.get(k) for k in ("date", "time", "step")]
    if any(p is None for p in pieces) or pieces[2].dtype.kind != "i":
        return
    dims = tuple(d for p in pieces for d in p.dims)
    date, time, step = (p.values.reshape([-1 if d in p.dims else 1 for d in dims]) for p in pieces)
    clock = np.array([int(t[:2]) * 60 + int(t[2:4]) for t in time.astype(str).ravel()])
    minutes = clock.reshape(time.shape) + step * 60
    moments = date + minutes.astype("timedelta64[m]")
    parts.variables[valid.NAME] = xr.Variable(dims, moments.astype("datetime64[ns]"), valid.ATTRS)
    parts.coords.append(valid.NAME)


def axis_values(keyword: str, texts: list[str]) -> np.ndarray:
    """Values of an axis: dates as datetime64, times as HHMM text, numbers where they are numbers."""
    if keyword in ("date", "hdate"):
        try:
            days = np.array([f"{t[:4]}-{t[4:6]}-{t[6:]}" for t in texts], dtype="datetime64[D]")
            # Nanoseconds reach from 1678 to 2262.
            near = all("1678" <= t[:4] < "2262" for t in texts)
            return days.astype("datetime64[ns]" if near else "datetime64[s]")
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

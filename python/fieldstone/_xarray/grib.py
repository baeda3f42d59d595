"""GRIB fields as variables: a dimension for each MARS keyword with several values, and those of the grid.

A variable is one cube (``store._cubes``): messages that differ only in :data:`AXES`. One message determines
its grid; each message has its own header when it is read, and one with another grid is refused.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._helper import grib_keys
from fieldstone._xarray import moments, valid
from fieldstone._xarray.arrays import Parts, Shared, typed
from fieldstone._xarray.lazy import Axis, Box, FieldArray, Joint, Tied, chunks, lazy
from fieldstone._xarray.messages import (
    DEPTHS,
    VALIDITY,
    FoldedCube,
    Group,
    Heads,
    Messages,
    by_grid,
    by_keywords,
    ends,
    every_one,
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
    *DEPTHS,
    VALIDITY,
)
"""Keywords that become dimensions, outermost first; any other keyword splits variables."""
NODES = ("centre", "class", "expver", "stream", "domain", "type")
"""Keywords that become levels of a tree if they have several values, outermost first."""
LEVELS = ("typeoflevel", "levtype")
"""Keywords of which the first one of a variable is the last level of a tree."""


def describe(source: Source, request: Any, time_dim: str | None) -> Parts:
    """Variables of GRIB messages."""
    cubes, order = cubes_of(source, request)
    shared = Shared(order)
    heads = Heads(source)
    heads.expect(first(cube) for cube in cubes)
    held = list(every_one(cubes, lambda cube: whole(cube, heads)))
    return assemble(source, held, shared, heads, time_dim)


def groups(source: Source, request: Any, time_dim: str | None) -> Iterator[tuple[str, Parts]]:
    """The nodes of a tree with their variables: by NODES, by level type, and by grid if it differs.

    A branch has no level for a keyword that its messages lack.
    """
    cubes, order = cubes_of(source, request)
    shared = Shared(order)
    heads = Heads(source)
    heads.expect(key for cube in cubes for key in ends(cube))
    varied = [k for k in NODES if len({cube.key.get(k) for cube in cubes}) > 1]
    nodes: dict[str, list[Messages]] = {}

    def placed(cube: Any) -> list[tuple[str, list[Messages]]]:
        level = next((k for k in LEVELS if k in cube.key), LEVELS[-1])
        above = [f"{k}={cube.key[k]}" for k in varied if k in cube.key]
        found = []
        for lacking, places in by_keywords(cube):
            path = "/".join([*above, *(f"{k}=" for k in lacking), f"{level}={cube.key.get(level, '')}"])
            found.append((path, by_grid(cube, places, heads)))
        return found

    for found in every_one(cubes, placed):
        for path, own in found:
            nodes.setdefault(path, []).extend(own)
    yield from timed_nodes(
        ((path, held) for place, own in nodes.items() for path, held in of_grids(place, own)),
        lambda held: assemble(source, held, shared, heads, time_dim),
    )


def of_grids(path: str, held: list[Messages]) -> Iterator[tuple[str, list[Messages]]]:
    """The node of some messages, with one node below it for each grid if they have several."""
    grids = list(dict.fromkeys(m.head.grid for m in held))
    if len(grids) == 1:
        yield path, held
        return
    for grid in grids:
        kind, points, _ = grid.split(" ")
        name = f"grid={kind}-{points}"
        twins = [g for g in grids if g.split(" ")[:2] == [kind, points]]
        name += f"-{twins.index(grid) + 1}" if len(twins) > 1 else ""
        yield f"{path}/{name}", [m for m in held if m.head.grid == grid]


def timed_nodes(
    nodes: Iterator[tuple[str, list[Messages]]], make: Callable[[list[Messages]], Parts]
) -> Iterator[tuple[str, Parts]]:
    """The nodes; a node without a time of validity is left out with a warning, unless it is the only one."""
    refused: valid.TimeUnknown | None = None
    count = 0
    for path, held in nodes:
        try:
            parts = make(held)
        except valid.TimeUnknown as error:
            refused = refused or error
            warnings.warn(f"left out: {error.message}, at node /{path}", stacklevel=3)
            continue
        count += 1
        yield path, parts
    if refused is not None and not count:
        raise refused


def cubes_of(source: Source, request: Any) -> tuple[list[Any], dict[str, tuple[str | None, ...]]]:
    """The cubes of a request, which must all be messages."""
    cubes, order = source.store._cubes(request, along=AXES)
    for cube in cubes:
        if cube.dtype is not None or (cube.odd and cube.odd[1] is not None):
            raise Invalid(
                f"the request selects GRIB messages and arrays, such as {dict(cube.key)}",
                "give a request that selects one kind",
            )
    return [FoldedCube(cube) for cube in cubes], order


def assemble(
    source: Source, held: Sequence[Messages], shared: Shared, heads: Heads, time_dim: str | None
) -> Parts:
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
    if "step" in union:
        union["step"] = by_length(union["step"])
    if valid.NAME in dims:
        union[valid.NAME] = tuple(sorted({text for axis in dims[valid.NAME] for text in axis if text}))
    grids: dict[str, str] = {}
    named: dict[str, Messages] = {}
    for i, name in names.items():
        m = named[name] = held[i]
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
        # Axes are in the store's order, dimensions in that of AXES.
        axes = [
            axis_of(m, keywords[d], values, shared.places(union[d], values)) for d, values in lead.items()
        ]
        present, tied = reordered(m, [keywords[d] for d in lead])
        read = MessageReader(head.grid)
        array = FieldArray(
            source,
            m.key,
            axes,
            head.shape,
            np.dtype("f8"),
            present=present,
            tied=tied,
            read=read,
            fill=np.float64(np.nan),
        )
        made = xr.Variable((*lead, *inner), lazy(array), attrs_of(m))
        made.encoding["preferred_chunks"] = chunks(list(lead), list(inner), head.shape)
        parts.variables[name] = made
        moments.add_interval(parts, source, m, name, dict(zip(lead, axes, strict=True)))
    for dim, values in union.items():
        texts = texts_of(dim, values, held, heads)
        if dim == valid.NAME:
            parts.variables[dim] = valid.variable((dim,), texts)
            continue
        parts.variables[dim] = xr.Variable((dim,), axis_values(dim, texts), axis_attrs(dim))
    alone = single(parts, held)
    if valid.NAME not in parts.variables:
        moments.add_valid_time(parts, named, {k: v for k, v in union.items() if None not in v}, alone)
    if time_dim and valid.NAME not in parts.variables:
        parts.variables[valid.NAME] = valid.variable((), [str(valid.moment(held[0].key))])
        parts.coords.append(valid.NAME)
    return parts


def by_length(steps: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Steps ordered by their ends; the store orders steps of minutes as text."""
    if not any(step and step.endswith("s") for step in steps):
        return steps
    return tuple(sorted(steps, key=lambda step: grib_keys.seconds_of(grib_keys.ends_of(step or "0")[1]) or 0))


def axis_of(m: Messages, keyword: str, values: tuple[str | None, ...], places: np.ndarray | None) -> Axis:
    """A leading dimension of a variable."""
    if isinstance(m, valid.Timed) and keyword == valid.NAME:
        return Joint(keyword, values, places, m.rows)
    return Axis(keyword, values, places)


def lead_of(m: Messages) -> dict[str, tuple[str | None, ...]]:
    """The keywords with several values, in the order of AXES."""
    return {k: m.axes[k] for k in (AXES[0], valid.NAME, *AXES[1:]) if k in m.axes}


def reordered(m: Messages, names: list[str]) -> tuple[np.ndarray | None, Tied | None]:
    """The combinations that have a field, over the axes in another order, and the tied value of each."""
    if m.present is None or names == list(m.axes):
        return m.present, m.tied
    sizes = {k: len(values) for k, values in m.axes.items()}
    numbers = dict(zip(sizes, np.unravel_index(m.present, list(sizes.values())), strict=True))
    flat = np.ravel_multi_index([numbers[k] for k in names], [sizes[k] for k in names])
    order = np.argsort(flat, kind="stable")
    tied = None if m.tied is None else replace(m.tied, numbers=m.tied.numbers[order])
    return flat[order], tied


def texts_of(dim: str, values: Sequence[str | None], held: Sequence[Messages], heads: Heads) -> list[str]:
    """The values of a dimension as text; a surface that is not in the key comes from a header."""
    if None not in values:
        return [str(v) for v in values]
    said = ""
    for m in held:
        own = m.axes.get(dim, ())
        if None in own:
            said = heads.level(without(m, dim), dim)
            break
    return [said if v is None else v for v in values]


def without(m: Messages, keyword: str) -> Key:
    """The key of the first message of a variable that lacks a keyword."""
    sizes = [len(values) for values in m.axes.values()]
    present = np.arange(math.prod(sizes)) if m.present is None else m.present
    numbers = dict(zip(m.axes, np.unravel_index(present, sizes), strict=True))
    at = int(np.argmax(numbers[keyword] == m.axes[keyword].index(None)))
    chosen = {k: values[numbers[k][at]] for k, values in m.axes.items()}
    if m.tied is not None:
        chosen[m.tied.keyword] = m.tied.values[m.tied.numbers[at]]
    return {**m.key, **{k: text for k, text in chosen.items() if text is not None}}


def dim_of(keyword: str, group: Group, kinds: set[str]) -> str:
    """The dimension of a keyword; levels of two kinds get two names."""
    return f"levelist_{level_type(group)}" if keyword == "levelist" and len(kinds) > 1 else keyword


def level_type(group: Group) -> str:
    """The kind of level of a group."""
    facts = dict(group)
    return facts.get("typeoflevel") or facts.get("levtype", "")


def name_all(short: dict[int, str], held: Sequence[Messages]) -> dict[int, str]:
    """A name for each: the short name, with the keywords that differ if it is not unique."""
    names = {}
    for i, name in short.items():
        twins = [dict(held[j].group) for j, n in short.items() if n == name]
        differing = [k for k in sorted({k for t in twins for k in t}) if len({t.get(k) for t in twins}) > 1]
        # typeoflevel is more precise than levtype; param is the name again, in another table.
        for more, less in (("typeoflevel", "levtype"), ("levtype", "param"), ("typeoflevel", "param")):
            if more in differing and less in differing:
                differing.remove(less)
        own = dict(held[i].group)
        names[i] = "_".join([name, *(own[k] for k in differing if k in own)])
    if len(set(names.values())) < len(names):
        names = {i: "_".join([short[i], *(v for _, v in held[i].group)]) for i in names}
    return names


def unnamed(group: Group) -> str:
    """A name for a parameter that is not in eccodes' tables."""
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
                    f"the field {key} has a different grid than the other fields",
                    "give a request that selects one grid, or open_datatree, which makes a node for each",
                )
            values = grib.values_of(handle, shape)
        return values[tuple(slice(s, s + c) for s, c in zip(*box, strict=True))]


def attrs_of(m: Messages) -> dict[str, Any]:
    """Attributes from the header, and the keywords with one value."""
    return {**m.head.attrs, **{f"GRIB_{keyword}": value for keyword, value in m.key.items()}}


def single(parts: Parts, held: Sequence[Messages]) -> dict[str, str]:
    """Scalar coordinates of the axes with one value in all fields; returns these values as text."""
    alone: dict[str, str] = {}
    for keyword in AXES:
        values = {m.key.get(keyword) for m in held}
        if len(values) == 1 and None not in values and keyword not in parts.variables:
            (text,) = values
            alone[keyword] = str(text)
            if keyword == VALIDITY:
                continue
            parts.variables[keyword] = xr.Variable((), axis_values(keyword, [text])[0], axis_attrs(keyword))
            parts.coords.append(keyword)
    return alone


def axis_values(keyword: str, texts: list[str]) -> np.ndarray:
    """Values of an axis: dates as datetime64, times as HHMM text, numbers if all are numbers."""
    if keyword in ("date", "hdate"):
        try:
            days = np.array([f"{t[:4]}-{t[4:6]}-{t[6:]}" for t in texts], dtype="datetime64[D]")
            # Nanoseconds cover 1678 to 2262.
            near = all("1678" <= t[:4] < "2262" for t in texts)
            return days.astype("datetime64[ns]" if near else "datetime64[s]")
        except ValueError:
            return np.array(texts, dtype=str)
    if keyword == VALIDITY:
        return valid.precise(np.array([moments.moment_of(text) for text in texts], "M8[s]"))
    if keyword == "time":
        return np.array(texts, dtype=str)
    return typed(texts)


def axis_attrs(keyword: str) -> dict[str, str]:
    """The attributes that describe an axis."""
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

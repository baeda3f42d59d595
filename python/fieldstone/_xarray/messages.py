"""Groups GRIB messages into variables, and reads the headers that opening a Dataset needs.

One message of each variable is read for its grid and its meaning. Facts that ingest declared in the catalog
are taken from there: eccodes needs 0.3 s to load the names of a centre's parameters, and for the points of a
grid a time proportional to their number.

Invariants:

* messages of one variable have one grid; one that differs raises when it is read;
* `validity`, the time in a header that differs from the key, is not an axis if other keywords determine it;
* coordinates of two dimensions, and those of reduced grids, are read on demand.

Example: ``Heads(source).of(key)`` is the :class:`Head` of a message.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fieldstone._helper import grib_keys
from fieldstone._xarray.declared import DeclaredMessages
from fieldstone._xarray.lazy import Box, FieldArray, Tied, lazy
from fieldstone._xarray.source import Key, Source
from fieldstone.errors import Error, Invalid

LAZY = ("reduced_ll", "reduced_gg", "healpix")
"""Types of one-dimensional grids whose points eccodes always knows."""
SPECTRAL = (50, 51, 52, 53)
"""Grid templates that do not determine the number of values of a message."""
DOUBLE = np.dtype("f8")
VALIDITY = "validity"
"""The keyword of the time of validity, if date, time and step differ from the header."""
DEPTHS = tuple(grib_keys.LEVELS)
"""Keywords of surfaces that distinguish messages with the same key; the first message lacks them."""

Group = tuple[tuple[str, str], ...]
Coordinates = dict[str, tuple[tuple[str, ...], Any]]


@dataclass
class Head:
    """Grid and meaning from one message."""

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    coords: Coordinates
    attrs: dict[str, Any]
    grid: str


@dataclass(frozen=True)
class Messages:
    """Messages that make one variable: those of a cube with one grid."""

    group: Group
    key: Key
    axes: dict[str, tuple[str | None, ...]]
    present: np.ndarray | None
    head: Head
    tied: Tied | None = None


class FoldedCube:
    """A cube of the store without the axis `validity`, if the other axes determine it."""

    def __init__(self, cube: Any) -> None:
        self.key, self.dtype, self.odd = cube.key, cube.dtype, cube.odd
        self.shortest, self.longest = cube.shortest, cube.longest
        self.axes: dict[str, tuple[str | None, ...]] = dict(cube.axes)
        self.present = None if cube.places is None else np.frombuffer(cube.places, np.int64)
        self.tied: Tied | None = None
        if self.present is not None and len(self.axes.get(VALIDITY, ())) > 1:
            self._fold(self.present)

    def _fold(self, present: np.ndarray) -> None:
        numbers = dict(zip(self.axes, np.unravel_index(present, self._extents()), strict=True))
        axes = {k: values for k, values in self.axes.items() if k != VALIDITY}
        extents = [len(values) for values in axes.values()]
        flat = np.zeros(len(present), np.int64)
        if axes:
            flat = np.ravel_multi_index([numbers[k] for k in axes], extents)
        if len(np.unique(flat)) < len(flat):
            return
        order = np.argsort(flat, kind="stable")
        self.tied = Tied(VALIDITY, self.axes[VALIDITY], numbers[VALIDITY][order])
        self.axes, self.present = axes, flat[order]

    def _extents(self) -> list[int]:
        return [len(values) for values in self.axes.values()]

    @property
    def places(self) -> np.ndarray:
        """The combinations of the axes that have a field, as positions in C order."""
        return np.arange(math.prod(self._extents())) if self.present is None else self.present


class Heads:
    """Reads headers: each grid once, and names from the catalog if it has them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._declared = DeclaredMessages()
        self._ids: dict[bytes, str] = {}
        self._grids: dict[str, tuple[tuple[int, ...], Coordinates]] = {}

    def expect(self, keys: Iterable[Key]) -> None:
        """Queries the catalog once for all messages whose heads will be needed."""
        self._declared.load(self._source.store, keys)

    def of(self, key: Key) -> Head:
        """Grid, coordinates and attributes, from one message."""
        from fieldstone._helper import grib

        message = self._source.bytes(key)
        with grib.Handle(message) as handle:
            grid = self._id(message, handle)
            if grid not in self._grids:
                self._grids[grid] = self._points(key, handle, grid)
            shape, coords = self._grids[grid]
            dims: tuple[str, ...] = ("values",)
            if len(shape) == 2:
                straight = "latitude" in coords and coords["latitude"][0] == ("latitude",)
                dims = ("latitude", "longitude") if straight else ("y", "x")
            known = self._declared.names(key, handle.text("centre"))
            return Head(shape, dims, coords, grib.attributes_of(handle, known), grid)

    def grid(self, key: Key) -> str:
        """The grid of a message."""
        from fieldstone._helper import grib

        message = self._source.bytes(key)
        known = self._ids.get(grid_section(message))
        if known is not None:
            return known
        with grib.Handle(message) as handle:
            return self._id(message, handle)

    def level(self, key: Key, keyword: str) -> str:
        """The value of a surface in the header of a message."""
        from fieldstone._helper import grib

        with grib.Handle(self._source.bytes(key)) as handle:
            return grib_keys.level_of(handle, grib_keys.LEVELS[keyword])

    def _id(self, message: bytes, handle: Any) -> str:
        section = grid_section(message)
        if not section:
            return grid_id(handle)
        if section not in self._ids:
            self._ids[section] = grid_id(handle)
        return self._ids[section]

    def _points(self, key: Key, handle: Any, grid: str) -> tuple[tuple[int, ...], Coordinates]:
        from fieldstone._helper import grib

        kind, shape = grid.split(" ")[0], grib.shape_of(handle)
        if len(shape) == 2 and kind in grib.STRAIGHT:
            said = self._declared.points(key, kind, shape, grib.corners_of(handle))
            if said is not None:
                return shape, {name: ((name,), values) for name, values in said.items()}
        elif len(shape) == 1 and not grib.is_laid_out(handle):
            return shape, no_points(key, kind)
        elif len(shape) == 2 or kind in LAZY:
            along = ("y", "x") if len(shape) == 2 else ("values",)
            names = ("latitude", "longitude")
            arrays = [FieldArray(self._source, key, (), shape, DOUBLE, read=Points(name)) for name in names]
            return shape, {name: (along, lazy(array)) for name, array in zip(names, arrays, strict=True)}
        shape, coords = grib.grid_of(handle)
        return shape, coords or (no_points(key, kind) if kind != "sh" else {})


def no_points(key: Key, kind: str) -> Coordinates:
    """No coordinates, with a warning."""
    warnings.warn(f"eccodes cannot lay out the grid ({kind}) of {key}: it has no coordinates", stacklevel=2)
    return {}


@dataclass(frozen=True)
class Points:
    """Reads latitudes or longitudes of a message's grid."""

    name: str

    def __call__(self, source: Source, key: Key, shape: tuple[int, ...], box: Box) -> np.ndarray:
        """A box of them."""
        from fieldstone._helper import grib

        with grib.Handle(source.bytes(key)) as handle:
            try:
                values = grib.points_of(handle, f"{self.name}s", shape)
            except (grib.eccodes.CodesInternalError, ValueError):
                values = np.empty(0)
            if values.shape != shape:
                no_points(key, handle.text("gridType"))
                return np.full(box[1], np.nan)
        return values[tuple(slice(s, s + c) for s, c in zip(*box, strict=True))]


def grid_id(handle: Any) -> str:
    """The same text for two messages of one grid."""
    return f"{handle.text('gridType')} {handle.text('numberOfPoints')} {handle.text('md5GridSection')}"


def grid_section(message: bytes) -> bytes:
    """The bytes that describe a message's grid; empty if they do not determine all of it."""
    if message[7] == 2:
        at = 16
        while at + 14 <= len(message) and (length := int.from_bytes(message[at : at + 4], "big")) >= 5:
            if message[at + 4] == 3:
                template = int.from_bytes(message[at + 12 : at + 14], "big")
                return b"" if template in SPECTRAL else message[at : at + length]
            at += length
        return b""
    if not message[15] & 0x80:
        return b""
    at = 8 + int.from_bytes(message[8:11], "big")
    section = message[at : at + int.from_bytes(message[at : at + 3], "big")]
    return section if len(section) > 5 and section[5] not in SPECTRAL else b""


def ends(cube: Any) -> list[Key]:
    """The shortest and the longest message of a cube."""
    return [dict(key) for key in dict.fromkeys((cube.shortest, cube.longest))]


def whole(cube: Any, heads: Heads) -> Messages:
    """All messages of a cube."""
    if lacking := [k for k in lacked(cube) if k not in DEPTHS]:
        raise Invalid(
            f"some fields of {dict(cube.key)} lack {', '.join(lacking)}",
            "give a request that selects only fields with it, or open_datatree, which makes a node for each",
        )
    return every(cube, heads.of(first(cube)))


def every(cube: Any, head: Head) -> Messages:
    """The messages of a cube, with any keywords."""
    key, axes = dict(cube.key), {}
    for keyword, values in cube.axes.items():
        if len(values) > 1:
            axes[keyword] = values
        elif values[0] is not None:
            key[keyword] = values[0]
    return Messages(tuple(cube.key.items()), key, axes, cube.present, head, cube.tied)


def lacked(cube: Any) -> list[str]:
    """The keywords that some messages of a cube have and others lack."""
    return [k for k, values in cube.axes.items() if None in values and len(values) > 1]


def every_one(cubes: Iterable[Any], make: Any, what: str = "messages") -> Iterator[Any]:
    """The result of `make` for each cube; a cube that eccodes cannot read is left out, and a warning names
    it."""
    from fieldstone._helper import grib

    failed: Exception | None = None
    count = 0
    for cube in cubes:
        try:
            made = make(cube)
        except (grib.eccodes.CodesInternalError, ValueError) as error:
            if isinstance(error, Error):
                raise
            failed = error
            warnings.warn(f"left out: {what} such as {dict(cube.shortest)}: {error}", stacklevel=3)
            continue
        count += 1
        yield made
    if failed is not None and not count:
        raise Invalid(
            f"eccodes cannot read the {what} that the request selects: {failed}",
            "read their bytes with store.retrieve",
        ) from failed


def first(cube: Any) -> Key:
    """The key of a cube's first message."""
    return next(keys_of(cube, cube.places))


def by_keywords(cube: Any) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """The messages of a cube as places, grouped by the keywords that they lack and others have."""
    places = cube.places
    names = [k for k in lacked(cube) if k not in DEPTHS]
    if not names:
        yield (), places
        return
    numbers = dict(
        zip(cube.axes, np.unravel_index(places, [len(v) for v in cube.axes.values()]), strict=True)
    )
    lacks = np.stack([numbers[k] == cube.axes[k].index(None) for k in names], axis=1)
    for row in np.unique(lacks, axis=0):
        lacking = tuple(k for k, is_so in zip(names, row, strict=True) if is_so)
        yield lacking, places[(lacks == row).all(axis=1)]


def by_grid(cube: Any, places: np.ndarray, heads: Heads) -> list[Messages]:
    """Some messages of a cube, grouped by grid.

    The shortest and the longest message of the cube are examined; if they have the same grid, the others are
    assumed to have it, too; one that differs raises when it is read.
    """
    held = cube.places
    everything = every(cube, heads.of(ends(cube)[0]))
    if all(heads.grid(key) == everything.head.grid for key in ends(cube)[1:]):
        if len(places) == len(held):
            return [everything]
        return [narrowed(everything, places, heads.of(next(keys_of(cube, places))))]
    found: dict[str, tuple[Key, list[int]]] = {}
    for place, key in zip(places, keys_of(cube, places), strict=True):
        found.setdefault(heads.grid(key), (key, []))[1].append(int(place))
    return [narrowed(everything, np.array(own, np.int64), heads.of(key)) for key, own in found.values()]


def narrowed(messages: Messages, places: np.ndarray, head: Head) -> Messages:
    """Some messages of a variable, with only those values of its axes that they have."""
    names = list(messages.axes)
    numbers = np.unravel_index(places, [len(messages.axes[k]) for k in names]) if names else ()
    key, axes, columns = dict(messages.key), {}, []
    for keyword, column in zip(names, numbers, strict=True):
        held, index = np.unique(column, return_inverse=True)
        values = tuple(messages.axes[keyword][i] for i in held)
        if values == (None,):
            continue
        if len(values) == 1:
            key[keyword] = str(values[0])
        else:
            axes[keyword] = values
            columns.append(index)
    sizes = [len(values) for values in axes.values()]
    flat = np.sort(np.ravel_multi_index(columns, sizes)) if axes else np.zeros(1, np.int64)
    present = None if len(flat) == math.prod(sizes) else flat
    tied = messages.tied
    if tied is not None and messages.present is not None:
        own = tied.numbers[np.searchsorted(messages.present, np.sort(places))]
        tied = replace(tied, numbers=own)
    return replace(messages, key=key, axes=axes, present=present, head=head, tied=tied)


def keys_of(cube: Any, places: np.ndarray) -> Iterator[Key]:
    """The keys of some of a cube's fields."""
    sizes = [len(values) for values in cube.axes.values()]
    for place in places:
        numbers = np.unravel_index(place, sizes) if sizes else ()
        chosen = [(k, v[i]) for (k, v), i in zip(cube.axes.items(), numbers, strict=True)]
        if cube.tied is not None:
            at = int(np.searchsorted(cube.present, place))
            chosen.append((cube.tied.keyword, cube.tied.values[cube.tied.numbers[at]]))
        yield {**cube.key, **{k: v for k, v in chosen if v is not None}}

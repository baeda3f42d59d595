"""Files split in time, members or tiles as one Dataset.

Each file is decoded by its own packing, units of time and calendar; then its variables get their places
(:mod:`fieldstone._xarray.places`) in lazy arrays (:mod:`fieldstone._xarray.joined`; B-16).

* A variable has the dimensions that it has in its files, after those that the files do not have (members).
* A variable that does not depend on the joint appears once if it is equal in all files; if it differs, it
  gets the joint as dimension. A coordinate that differs, unless it has a single value, means another grid:
  Invalid.
* Only attributes that all files share are kept. Units must be the same in all files, otherwise Invalid.

Example: ``dataset(source, files, False)`` of 24 months is what ``open_mfdataset`` makes of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._xarray.declared import ENCODED
from fieldstone._xarray.joined import Joined, Seam
from fieldstone._xarray.lazy import Variable, lazy
from fieldstone._xarray.places import ONE, Along, File, calendar, find, kind, text_of
from fieldstone._xarray.source import Source
from fieldstone.errors import Invalid

SECONDARY = ("bounds", "climatology", "grid_mapping", "cell_measures", "formula_terms", "coordinates")
"""Attributes whose words name auxiliary variables, which describe the place of a file's data."""
PACKED = ("dtype", "scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
"""Encodings that belong together: if files differ in one, none is kept."""
COMPARED = 1 << 24
"""Bytes that are read at once to compare variables that are stored separately."""


def dataset(source: Source, files: Sequence[File], by_run: bool) -> xr.Dataset:
    """The files as one Dataset, without indexes; with `by_run` runs can be a dimension."""
    return Join(source, files, by_run).dataset()


class Join:
    """Files to be joined."""

    def __init__(self, source: Source, files: Sequence[File], by_run: bool) -> None:
        self._files = files
        self._shared = Shared(source, files)
        self._secondary = [described(file.data) for file in files]
        self._mapping = {n for f in files for n in described(f.data, ("grid_mapping",))}
        self._kept = [
            [str(n) for n in file.data.data_vars if n not in own]
            for file, own in zip(files, self._secondary, strict=True)
        ]
        self._along = find(files, self._kept, self._repeats, by_run)

    def _repeats(self, one: int, other: int, name: str) -> bool:
        """Whether this variable is common to two files that otherwise hold different variables."""
        return set(self._kept[one]) != set(self._kept[other]) and self._same(one, other, name)

    def dataset(self) -> xr.Dataset:
        """The Dataset."""
        names = dict.fromkeys(str(n) for file in self._files for n in file.data.variables)
        coords = {str(n) for file in self._files for n in file.data.coords}
        made: dict[str, xr.Variable] = {}
        for along in self._along:
            if along.by == along.dim:
                made[along.dim] = coordinate(along)
        for name in names:
            if name not in made and (variable := self._variable(name, name in coords)) is not None:
                made[name] = variable
        order = {name: made[name] for name in (*names, *made) if name in made}
        indexed = {n: v for n, v in order.items() if n in coords or v.dims == (n,)}
        data = {n: v for n, v in order.items() if n not in indexed}
        attrs = common([file.data.attrs for file in self._files])
        joined = xr.Dataset(data, coords=xr.Coordinates(indexed, indexes={}), attrs=attrs)
        unlimited = {d for file in self._files for d in file.data.encoding.get("unlimited_dims", ())}
        first = self._files[0].data.encoding
        joined.encoding = {**first, "unlimited_dims": {d for d in unlimited if d in joined.dims}}
        return joined

    def _variable(self, name: str, is_coordinate: bool) -> xr.Variable | None:
        having = [i for i, file in enumerate(self._files) if name in file.data.variables]
        parts = {i: self._files[i].data.variables[name] for i in having}
        first = parts[having[0]]
        self._agree(name, parts)
        if first.dims == (name,) and all(a.dim != name for a in self._along):
            return with_attrs(first, list(parts.values()))
        describes = is_coordinate or any(name in own for own in self._secondary)
        seams = [a for a in self._along if (not describes if a.new else a.dim in first.dims)]
        seams = self._deciding(name, having, seams, is_coordinate)
        if not seams:
            return with_attrs(first, list(parts.values()))
        placed: dict[tuple[Any, ...], xr.Variable] = {}
        for i in having:
            placed.setdefault(place_of(seams, i), parts[i])
        # Files spread over several dimensions leave far more empty places than there are files.
        places = itertools.product(*(range(len(a.coords)) for a in seams))
        lacking = next((place for place in places if place not in placed), None)
        if lacking is None:
            return joint([str(d) for d in first.dims], seams, [placed[place] for place in sorted(placed)])
        if is_coordinate and not first.ndim:
            return None
        words = " and ".join(a.words(p) for a, p in zip(seams, lacking, strict=True))
        raise Invalid(f"no file has {name} at {words}", f"leave it out (drop_variables={name!r}), or {ONE}")

    def _agree(self, name: str, parts: dict[int, xr.Variable]) -> None:
        """Refuses variables with different meanings or dimensions."""
        (one, first), *others = parts.items()
        for other, variable in others:
            for what, mine, theirs in (
                ("the dimensions", list(first.dims), list(variable.dims)),
                ("the units", first.attrs.get("units"), variable.attrs.get("units")),
                ("the calendar", calendar(first), calendar(variable)),
                ("values of the kind", kind(first), kind(variable)),
                *((k, first.attrs.get(k), variable.attrs.get(k)) for k in ENCODED if k != "coordinates"),
            ):
                if not equal(mine, theirs):
                    raise Invalid(
                        f"variable {name} has {what} {text_of(mine)} in the file {self._files[one].name}, "
                        f"but {text_of(theirs)} in {self._files[other].name}",
                        ONE,
                    )

    def _deciding(
        self, name: str, having: Sequence[int], seams: list[Along], is_coordinate: bool
    ) -> list[Along]:
        """The dimensions on which a variable depends: the given ones, and others along which it differs."""
        twins = self._differing(name, having, seams)
        if twins is None:
            return seams
        one, other = (self._files[i].name for i in twins)
        scalar = not self._files[having[0]].data.variables[name].ndim
        if name in self._mapping or (is_coordinate and not scalar):
            raise Invalid(f"{name} of the files {one} and {other} differs: they have different grids", ONE)
        rest = [a for a in self._along if a not in seams and all(a.place[i] is not None for i in having)]
        for n in range(1, len(rest) + 1):
            for more in itertools.combinations(rest, n):
                if self._differing(name, having, [*seams, *more]) is None:
                    return [*seams, *more]
        raise Invalid(f"variable {name} of the files {one} and {other} differs, but they overlap", ONE)

    def _differing(self, name: str, having: Sequence[int], seams: Sequence[Along]) -> tuple[int, int] | None:
        """Two files that differ in the variable of this name at one place."""
        firsts: dict[Any, int] = {}
        for i in having:
            first = firsts.setdefault(place_of(seams, i), i)
            if first != i and not self._same(first, i, name):
                return first, i
        return None

    def _same(self, one: int, other: int, name: str) -> bool:
        """Whether a variable is the same in two files."""
        a, b = (self._files[i].data.variables[name] for i in (one, other))
        if a.dims != b.dims or a.shape != b.shape:
            return False
        if name in self._mapping and not equal(a.attrs, b.attrs):
            return False
        if packing(a) == packing(b) and self._shared.holds(one, other, name):
            return True
        rows = max(1, COMPARED * max(len(a), 1) // max(a.nbytes, 1)) if a.ndim else 1
        pieces = [slice(n, n + rows) for n in range(0, len(a), rows)] if a.ndim else [...]
        return all(equal(a[piece].values, b[piece].values) for piece in pieces)


class Shared:
    """The fields of files that are stored once: files of one ingest share the storage of equal fields."""

    def __init__(self, source: Source, files: Sequence[File]) -> None:
        self._source = source
        self._files = files
        self._found: dict[tuple[int, str], str | None] = {}

    def holds(self, one: int, other: int, name: str) -> bool:
        """Whether a variable that is one field in each of two files is stored once."""
        mine, theirs = (self._location(i, name) for i in (one, other))
        return mine is not None and mine == theirs

    def _location(self, i: int, name: str) -> str | None:
        if (i, name) not in self._found:
            file = self._files[i]
            key = {**file.key, "variable": f"{file.group}/{name}".lstrip("/")}
            entries = [
                e for e in self._source.store.list({k: [v] for k, v in key.items()}) if dict(e.key) == key
            ]
            location = entries[0].location if entries else ""
            # Without an offset, two fields cannot be distinguished.
            self._found[i, name] = location if ":" in location else None
        return self._found[i, name]


def place_of(seams: Sequence[Along], i: int) -> tuple[int | None, ...]:
    """The place of a file."""
    return tuple(a.place[i] for a in seams)


def described(data: xr.Dataset, words: Sequence[str] = SECONDARY) -> set[str]:
    """Auxiliary variables of a file, which describe others."""
    return {
        word.strip(":")
        for variable in data.variables.values()
        for said in (variable.attrs, variable.encoding)
        for attribute in words
        if isinstance(said.get(attribute), str)
        for word in said[attribute].split()
    }


def coordinate(along: Along) -> xr.Variable:
    """The coordinate of a dimension along which files are joined, whose values are in memory."""
    values = [c.values.reshape(-1) for c in along.coords]
    made = xr.Variable((along.dim,), np.concatenate([v for v in values if v.size] or values))
    made.attrs = common([c.attrs for c in along.coords])
    made.encoding = encoding(along.coords)
    return made


def with_attrs(variable: xr.Variable, parts: Sequence[xr.Variable]) -> xr.Variable:
    """A variable that is the same in all files, with their common attributes."""
    made = Variable(variable._dims, variable._data, common([p.attrs for p in parts]), fastpath=True)
    made.encoding = variable.encoding
    return made


def joint(dims: Sequence[str], seams: Sequence[Along], parts: Sequence[xr.Variable]) -> xr.Variable:
    """A lazy variable of parts, which are in C order over the seams."""
    front = [a.dim for a in seams if a.dim not in dims]
    out = [*front, *dims]
    cuts = [Seam(out.index(a.dim), a.lengths, a.dim in dims) for a in seams]
    sizes = dict(zip(dims, parts[0].shape, strict=True)) | {a.dim: sum(a.lengths) for a in seams}
    counts = [len(a.coords) for a in seams]
    preferred: dict[str, Any] = dict.fromkeys(front, 1)
    for dim in dims:
        axis = next((n for n, a in enumerate(seams) if a.dim == dim), None)
        firsts = [parts[0]]
        if axis is not None:
            stride = math.prod(counts[axis + 1 :])
            firsts = [parts[n * stride] for n in range(counts[axis])]
        pieces = [length for part in firsts for length in pieces_of(part, dim)]
        preferred[dim] = pieces[0] if len(set(pieces)) == 1 else tuple(pieces)
    dtype = np.result_type(*{p.dtype for p in parts})
    array = Joined(cuts, parts, tuple(sizes[d] for d in out), dtype)
    made = Variable(tuple(out), lazy(array), common([p.attrs for p in parts]), fastpath=True)
    made.encoding = {**encoding(parts), "preferred_chunks": preferred}
    return made


def pieces_of(part: xr.Variable, dim: str) -> list[int]:
    """The chunks of a file's variable along a dimension."""
    size = part.sizes[dim]
    chunk = part.encoding.get("preferred_chunks", {}).get(dim, size) or 1
    return [min(chunk, size - start) for start in range(0, size, chunk)]


def common(said: Sequence[dict[Any, Any]]) -> dict[Any, Any]:
    """Attributes that all have in common."""
    first, *others = said
    return {k: v for k, v in first.items() if all(k in other and equal(v, other[k]) for other in others)}


def encoding(parts: Sequence[xr.Variable]) -> dict[str, Any]:
    """The encoding of joined values: that of the files if they agree."""
    said = [{k: v for k, v in p.encoding.items() if k != "preferred_chunks"} for p in parts]
    kept = common(said)
    if any(packing(p) != packing(parts[0]) for p in parts):
        kept = {k: v for k, v in kept.items() if k not in PACKED}
    for word in ("units", "calendar"):
        # Times count from different moments, and fractions of a unit are not whole numbers.
        if word in said[0] and word not in kept:
            kept = {k: v for k, v in kept.items() if k not in PACKED} | {word: said[0][word]}
    return kept


def packing(variable: xr.Variable) -> str:
    """How a variable is packed, in comparable form."""
    return repr([(k, variable.encoding.get(k)) for k in (*PACKED, "units", "calendar")])


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same; missing values are equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(v, other[k]) for k, v in one.items())
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())

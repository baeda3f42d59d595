"""The places of files in a Dataset: along coordinates that differ and do not overlap.

A file has a place along each :class:`Along`: a dimension whose coordinate differs between files (time, tiles
of x and y), or a new dimension, of a scalar coordinate or a keyword of the key (a member, a run), if files
would otherwise have one variable at the same place.

Invariants:

* along a dimension the coordinates of two files are equal or disjoint and not interleaved; otherwise Invalid
  names coordinate and files;
* one file has a variable at one place.

Example: 24 files of a month each, of 10 members, have places along ``time`` and ``number``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._xarray.arrays import typed
from fieldstone._xarray.source import Key
from fieldstone.errors import Invalid

ONE = "choose one, such as request={'run': …}, or open all with xarray.open_datatree"
"""The hint for files that do not join."""
FIRST = "combine=None opens the one whose key has only the keywords of the request"
RUNS = "combine='run' makes a dimension of their runs"
NAMES = ("project", "run")
"""Keywords that name a file's run."""


Repeats = Callable[[int, int, str], bool]
"""Whether two files, by number, have a common variable although they otherwise hold different variables."""


@dataclass
class File:
    """A file to be joined, or one group of it.

    `name` is its name in messages; `data` is its content, decoded and without indexes.
    """

    name: str
    key: Key
    group: str
    data: xr.Dataset
    _read: dict[str, xr.Variable] = field(default_factory=dict)

    def coordinate(self, name: str) -> xr.Variable:
        """A coordinate, read only once."""
        if name not in self._read:
            lazy = self.data.variables[name]
            self._read[name] = xr.Variable(lazy.dims, lazy.values, lazy.attrs, lazy.encoding, fastpath=True)
        return self._read[name]


@dataclass
class Along:
    """A dimension along which files are joined.

    The coordinate `by` orders them; it has the dimension's name if possible. `place` has the position of each
    file, None if it has none, `coords` the coordinate at each position: for a new dimension a scalar.
    """

    dim: str
    by: str
    new: bool
    place: list[int | None]
    coords: list[xr.Variable]

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length of each position."""
        return tuple(c.size for c in self.coords)

    def words(self, position: int) -> str:
        """The name of a position for messages."""
        values = self.coords[position].values.ravel()
        return f"{self.by} {said(values)}"


def find(files: Sequence[File], kept: Sequence[Sequence[str]], repeats: Repeats, by_run: bool) -> list[Along]:
    """The dimensions along which files lie; `kept` has the variables of each that are not auxiliary.

    The name of a run distinguishes files only `by_run`, because it may be the name of a file.
    """
    found = []
    for dim in dict.fromkeys(str(d) for file in files for d in file.data.dims):
        if (along := along_dimension(files, dim)) is not None:
            found.append(along)
    # Files that still have a variable at the same place need another dimension. A candidate is kept only if
    # it resolves some of these conflicts.
    missing = conflicts(kept, found, repeats)
    for name, values in candidates(files, by_run) if missing else ():
        if not missing:
            break
        new = along_values(name, values)
        fewer = conflicts(kept, [*found, new], repeats)
        if len(fewer) < len(missing):
            found.append(new)
            missing = fewer
    if missing:
        (one, other), name = next(iter(missing.items()))
        dims = [str(d) for d in files[one].data[name].dims if d in files[one].data.coords]
        where = f"at the same {', '.join(dims)}" if dims else "and no coordinate distinguishes them"
        raise Invalid(
            f"the files {files[one].name} and {files[other].name} overlap: both have {name} {where} "
            f"({keys(files[one], files[other])})",
            f"{ONE}; {FIRST if files[one].key.get('run') == files[other].key.get('run') else RUNS}",
        )
    return found


def along_dimension(files: Sequence[File], dim: str) -> Along | None:
    """The places of files along a dimension that they have; None if they are alike."""
    having = [i for i, file in enumerate(files) if dim in file.data.dims]
    bare = [i for i in having if not lies_along(files[i], dim, dim)]
    if not bare:
        agree(files, having, dim)
        if len({identity(files[i].coordinate(dim)) for i in having}) > 1:
            return laid(files, having, dim, dim)
    # A dimension may only count; then another coordinate has the file's position on it.
    counts = all(kind(c) == "number" and "units" not in c.attrs for c in plain(files, having, dim))
    names = dict.fromkeys(str(c) for i in having for c in files[i].data.coords if c != dim)
    for name in names if counts else ():
        if all(lies_along(files[i], name, dim) for i in having):
            agree(files, having, name)
            held = [files[i].coordinate(name) for i in having]
            if len({identity(c) for c in held}) == len(held) > 1 and (
                bare or kind(held[0]).startswith("time")
            ):
                return laid(files, having, dim, name)
    sizes = {i: files[i].data.sizes[dim] for i in having}
    others = [i for i in having if i not in bare or sizes[i] != sizes[bare[0]]] if bare else []
    if others:
        raise Invalid(
            f"dimension {dim} has no coordinate in the file {files[bare[0]].name}, and "
            f"{sizes[bare[0]]} values there, but {sizes[others[0]]} in {files[others[0]].name}",
            ONE,
        )
    return None


def lies_along(file: File, name: str, dim: str) -> bool:
    """Whether a file has a variable along only this dimension."""
    variable = file.data.variables.get(name)
    return variable is not None and variable.dims == (dim,)


def plain(files: Sequence[File], having: Sequence[int], dim: str) -> list[xr.Variable]:
    """The coordinates of a dimension, of files that have one."""
    return [files[i].coordinate(dim) for i in having if lies_along(files[i], dim, dim)]


def laid(files: Sequence[File], having: Sequence[int], dim: str, by: str) -> Along:
    """The places of files along a dimension, by a coordinate that differs."""
    coords = {i: files[i].coordinate(by) for i in having}
    distinct: dict[Any, int] = {}
    place: list[int | None] = [None] * len(files)
    firsts: list[int] = []
    for i in having:
        number = distinct.setdefault(identity(coords[i]), len(distinct))
        if number == len(firsts):
            firsts.append(i)
        place[i] = number
    order = ordered(files, by, firsts)
    rank = {number: position for position, number in enumerate(order)}
    places = [None if p is None else rank[p] for p in place]
    return Along(dim, by, False, places, [coords[firsts[number]] for number in order])


def agree(files: Sequence[File], having: Sequence[int], name: str) -> None:
    """Refuses files in which a coordinate has a different meaning: other units, calendar or kind of value."""
    first = files[having[0]]
    for i in having[1:]:
        one, other = first.coordinate(name), files[i].coordinate(name)
        for what, mine, theirs in (
            ("the units", one.attrs.get("units"), other.attrs.get("units")),
            ("the calendar", calendar(one), calendar(other)),
            ("values of the kind", kind(one), kind(other)),
        ):
            if mine != theirs:
                raise Invalid(
                    f"coordinate {name} has {what} {text_of(mine)} in the file {first.name}, "
                    f"but {text_of(theirs)} in {files[i].name}",
                    ONE,
                )


def calendar(variable: xr.Variable) -> str | None:
    """The calendar of times; None if the values are not times."""
    if variable.dtype.kind == "M":
        return "standard"
    if variable.dtype.kind != "O" or not variable.size:
        return None
    return getattr(variable[(0,) * variable.ndim].values[()], "calendar", None)


def kind(variable: xr.Variable) -> str:
    """The kind of values: numbers, text, times, or times that numpy cannot hold."""
    if variable.dtype.kind == "O" and calendar(variable) is not None:
        return "time of cftime"
    words = {"M": "time", "m": "duration", "U": "text", "S": "text", "O": "text"}
    return words.get(variable.dtype.kind, "number")


def identity(variable: xr.Variable) -> Any:
    """A key that is the same for coordinates of equal values."""
    values = variable.values
    if values.dtype.kind in "iufb":
        wide = values.astype("f8")
        exact = values.dtype.kind in "fb" or bool((np.abs(wide) < 2**53).all())
        return (values.size, (wide + 0.0).tobytes() if exact else values.tobytes())
    if values.dtype.kind in "Mm":
        return (values.size, values.astype(f"{values.dtype.kind}8[ns]").tobytes())
    return tuple(map(str, values.ravel()))


def ordered(files: Sequence[File], name: str, firsts: Sequence[int]) -> list[int]:
    """The order of coordinates that differ, as numbers in `firsts`; Invalid if two overlap."""
    values = [files[i].coordinate(name).values for i in firsts]
    filled = [n for n, v in enumerate(values) if v.size]
    lacking = next((n for n in filled if np.any(values[n] != values[n])), None)
    if lacking is not None:
        raise Invalid(f"coordinate {name} has missing values in the file {files[firsts[lacking]].name}", ONE)
    ranges = {n: ends(values[n]) for n in filled}
    order = sorted(filled, key=lambda n: ranges[n][0])
    text = kind(files[firsts[0]].coordinate(name)) == "text"
    taken: dict[Any, int] = {}
    # Sorted by their first ends, numbers overlap only with their predecessor; texts have no order, so any
    # equal value is an overlap.
    for before, n in zip([None, *order], order, strict=False):
        twin = None
        if text:
            twin = next((taken[v] for v in values[n].tolist() if v in taken), None)
            taken |= dict.fromkeys(values[n].tolist(), n)
        elif before is not None and ranges[n][0] <= ranges[before][1]:
            twin = before
        if twin is not None:
            one, other = sorted((twin, n), key=lambda k: firsts[k])
            raise Invalid(
                f"coordinate {name} of the files {files[firsts[one]].name} ({said(values[one])}) and "
                f"{files[firsts[other]].name} ({said(values[other])}) overlaps, but differs",
                ONE,
            )
    # Falling coordinates stay falling across files.
    falls = [bool(v[0] > v[-1]) for v in values if v.size > 1]
    if falls and all(falls):
        order.reverse()
    return [n for n, v in enumerate(values) if not v.size] + order


def ends(values: np.ndarray) -> tuple[Any, Any]:
    """The minimum and the maximum."""
    if values.dtype.kind in "OUS":
        return min(values.tolist()), max(values.tolist())
    return values.min(), values.max()


def conflicts(
    kept: Sequence[Sequence[str]], found: Sequence[Along], repeats: Repeats
) -> dict[tuple[int, int], str]:
    """Pairs of files that have a variable at the same place, with the variable."""
    seen: dict[Any, int] = {}
    twins: dict[tuple[int, int], str] = {}
    for i, names in enumerate(kept):
        place = tuple(along.place[i] for along in found)
        for name in names:
            first = seen.setdefault((name, place), i)
            if first != i and not repeats(first, i, name):
                twins.setdefault((first, i), name)
    return twins


def candidates(files: Sequence[File], by_run: bool) -> list[tuple[str, list[xr.Variable | None]]]:
    """Candidates that may distinguish files of one place: scalar coordinates, then keywords of the keys, the
    run last."""
    made: list[tuple[str, list[xr.Variable | None]]] = []
    names = dict.fromkeys(str(c) for f in files for c, v in f.data.coords.items() if v.ndim == 0)
    for name in names:
        if all(name in f.data.variables and not f.data.variables[name].ndim for f in files):
            having = list(range(len(files)))
            agree(files, having, name)
            made.append((name, [f.coordinate(name) for f in files]))
    keywords = dict.fromkeys(k for f in files for k in f.key if k not in ("source", *NAMES))
    for keyword in [*keywords, *(NAMES if by_run else ())]:
        texts = [f.key.get(keyword) for f in files]
        if None in texts or any(keyword in f.data.variables or keyword in f.data.dims for f in files):
            continue
        values = typed(texts)
        made.append((keyword, [xr.Variable((), value) for value in values]))
    return [(name, held) for name, held in made if len({identity(v) for v in held if v is not None}) > 1]


def along_values(name: str, values: Sequence[xr.Variable | None]) -> Along:
    """A new dimension, with the values of the files."""
    by = {identity(v): v for v in values if v is not None}
    order = sorted(by, key=lambda key: by[key].values[()])
    rank = {key: position for position, key in enumerate(order)}
    place = [None if v is None else rank[identity(v)] for v in values]
    return Along(name, name, True, place, [by[key] for key in order])


def keys(one: File, other: File) -> str:
    """The differences of the keys of two files, by which a request can choose."""
    names = [k for k in {**one.key, **other.key} if one.key.get(k) != other.key.get(k)]
    said = [[f"{k}={f.key[k]}" if k in f.key else f"no {k}" for k in names] for f in (one, other)]
    return ", ".join(map(",".join, said))


def text_of(value: Any) -> str:
    """A value of a file, for a sentence."""
    return "none" if value is None else str(value)


def said(values: np.ndarray) -> str:
    """Values in a few words: the only one, or the first and the last."""

    def one(value: Any) -> str:
        if isinstance(value, np.datetime64):
            return str(value.astype("M8[s]"))
        return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)

    if not len(values):
        return "none"
    first, last = one(values[0]), one(values[-1])
    return first if len(values) == 1 else f"{first} to {last}"

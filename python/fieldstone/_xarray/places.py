"""Where the files of a Dataset lie beside one another: along coordinates that differ and do not overlap.

A file has a place along each :class:`Along`: a dimension whose coordinate differs between files (time, tiles
of x and y), or a new one, of a scalar coordinate or a keyword of the key (a member, a run), where files have
one variable at one place otherwise.

Invariants:

* along a dimension the coordinates of two files are equal or have no value in common, nor one between those
  of the other; else Invalid names coordinate and files;
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
"""What can be done where files do not join."""
FIRST = "combine=None opens the one whose key has nothing but what the request says"
RUNS = "combine='run' makes a dimension of their runs"
NAMES = ("project", "run")
"""Keywords that name a file's run."""


Repeats = Callable[[int, int, str], bool]
"""Whether two files, by number, have a variable in common although they hold different things."""


@dataclass
class File:
    """A file that is to be joined, or one group of it.

    People call it `name`; `data` is what it holds, decoded and without indexes.
    """

    name: str
    key: Key
    group: str
    data: xr.Dataset
    _read: dict[str, xr.Variable] = field(default_factory=dict)

    def coordinate(self, name: str) -> xr.Variable:
        """A coordinate, which is read once."""
        if name not in self._read:
            lazy = self.data.variables[name]
            self._read[name] = xr.Variable(lazy.dims, lazy.values, lazy.attrs, lazy.encoding, fastpath=True)
        return self._read[name]


@dataclass
class Along:
    """A dimension along which files are joined.

    They lie by the coordinate `by`, which has the dimension's name where it can. `place` has the position of
    each file, None where it has none, `coords` the coordinate at each position: of a new dimension a scalar.
    """

    dim: str
    by: str
    new: bool
    place: list[int | None]
    coords: list[xr.Variable]

    @property
    def lengths(self) -> tuple[int, ...]:
        """How much each position takes."""
        return tuple(c.size for c in self.coords)

    def words(self, position: int) -> str:
        """A position as people name it."""
        values = self.coords[position].values.ravel()
        return f"{self.by} {said(values)}"


def find(files: Sequence[File], kept: Sequence[Sequence[str]], repeats: Repeats, by_run: bool) -> list[Along]:
    """The dimensions along which files lie; `kept` has the variables of each that describe no other.

    What a run is called tells files apart only `by_run`: it may be the name of a file.
    """
    found = []
    for dim in dict.fromkeys(str(d) for file in files for d in file.data.dims):
        if (along := along_dimension(files, dim)) is not None:
            found.append(along)
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
        where = f"at the same {', '.join(dims)}" if dims else "and no coordinate tells them apart"
        raise Invalid(
            f"the files {files[one].name} and {files[other].name} overlap: both have {name} {where} "
            f"({keys(files[one], files[other])})",
            f"{ONE}; {FIRST if files[one].key.get('run') == files[other].key.get('run') else RUNS}",
        )
    return found


def along_dimension(files: Sequence[File], dim: str) -> Along | None:
    """How files lie along a dimension that they have; None where they are alike."""
    having = [i for i, file in enumerate(files) if dim in file.data.dims]
    bare = [i for i in having if not lies_along(files[i], dim, dim)]
    if not bare:
        agree(files, having, dim)
        if len({identity(files[i].coordinate(dim)) for i in having}) > 1:
            return laid(files, having, dim, dim)
    # A dimension may only count, and another coordinate say where on it the file is.
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
            f"{sizes[bare[0]]} values there beside {sizes[others[0]]} in {files[others[0]].name}",
            ONE,
        )
    return None


def lies_along(file: File, name: str, dim: str) -> bool:
    """Whether a file has a variable along this dimension alone."""
    variable = file.data.variables.get(name)
    return variable is not None and variable.dims == (dim,)


def plain(files: Sequence[File], having: Sequence[int], dim: str) -> list[xr.Variable]:
    """The coordinates of a dimension, where files have one."""
    return [files[i].coordinate(dim) for i in having if lies_along(files[i], dim, dim)]


def laid(files: Sequence[File], having: Sequence[int], dim: str, by: str) -> Along:
    """How files lie along a dimension by a coordinate that differs."""
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
    """Refuses files in which a coordinate means something else: other units, calendar or kind of value."""
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
                    f"and {text_of(theirs)} in {files[i].name}",
                    ONE,
                )


def calendar(variable: xr.Variable) -> str | None:
    """The calendar of times; None where values are none."""
    if variable.dtype.kind == "M":
        return "standard"
    if variable.dtype.kind != "O" or not variable.size:
        return None
    return getattr(variable[(0,) * variable.ndim].values[()], "calendar", None)


def kind(variable: xr.Variable) -> str:
    """What values are: numbers, text, times, or times that numpy does not hold."""
    if variable.dtype.kind == "O" and calendar(variable) is not None:
        return "time of cftime"
    words = {"M": "time", "m": "duration", "U": "text", "S": "text", "O": "text"}
    return words.get(variable.dtype.kind, "number")


def identity(variable: xr.Variable) -> Any:
    """What coordinates of equal values have in common."""
    values = variable.values
    if values.dtype.kind in "iufb":
        wide = values.astype("f8")
        exact = values.dtype.kind in "fb" or bool((np.abs(wide) < 2**53).all())
        return (values.size, (wide + 0.0).tobytes() if exact else values.tobytes())
    if values.dtype.kind in "Mm":
        return (values.size, values.astype(f"{values.dtype.kind}8[ns]").tobytes())
    return tuple(map(str, values.ravel()))


def ordered(files: Sequence[File], name: str, firsts: Sequence[int]) -> list[int]:
    """The order of coordinates that differ, as numbers in `firsts`; Invalid where two overlap."""
    values = [files[i].coordinate(name).values for i in firsts]
    filled = [n for n, v in enumerate(values) if v.size]
    lacking = next((n for n in filled if np.any(values[n] != values[n])), None)
    if lacking is not None:
        raise Invalid(f"coordinate {name} has missing values in the file {files[firsts[lacking]].name}", ONE)
    ranges = {n: ends(values[n]) for n in filled}
    order = sorted(filled, key=lambda n: ranges[n][0])
    text = kind(files[firsts[0]].coordinate(name)) == "text"
    taken: dict[Any, int] = {}
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
                f"{files[firsts[other]].name} ({said(values[other])}) overlaps and is not the same",
                ONE,
            )
    falls = [bool(v[0] > v[-1]) for v in values if v.size > 1]
    if falls and all(falls):
        order.reverse()
    return [n for n, v in enumerate(values) if not v.size] + order


def ends(values: np.ndarray) -> tuple[Any, Any]:
    """The least and the greatest value."""
    if values.dtype.kind in "OUS":
        return min(values.tolist()), max(values.tolist())
    return values.min(), values.max()


def conflicts(
    kept: Sequence[Sequence[str]], found: Sequence[Along], repeats: Repeats
) -> dict[tuple[int, int], str]:
    """Pairs of files that have a variable at one place, with the variable."""
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
    """What may tell files of one place apart: scalar coordinates, then keywords of the keys, the run last."""
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
    """A new dimension, of the values that files have."""
    by = {identity(v): v for v in values if v is not None}
    order = sorted(by, key=lambda key: by[key].values[()])
    rank = {key: position for position, key in enumerate(order)}
    place = [None if v is None else rank[identity(v)] for v in values]
    return Along(name, name, True, place, [by[key] for key in order])


def keys(one: File, other: File) -> str:
    """Where the keys of two files differ, which a request can choose by."""
    names = [k for k in {**one.key, **other.key} if one.key.get(k) != other.key.get(k)]
    said = [[f"{k}={f.key[k]}" if k in f.key else f"no {k}" for k in names] for f in (one, other)]
    return ", ".join(map(",".join, said))


def text_of(value: Any) -> str:
    """What a file says, in a sentence."""
    return "none" if value is None else str(value)


def said(values: np.ndarray) -> str:
    """Values in a few words: the one, or the first and the last."""

    def one(value: Any) -> str:
        if isinstance(value, np.datetime64):
            return str(value.astype("M8[s]"))
        return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)

    if not len(values):
        return "none"
    first, last = one(values[0]), one(values[-1])
    return first if len(values) == 1 else f"{first} to {last}"

"""The variables of a store of array fields that were archived by key.

A variable is one or more cubes (``store._cubes``): fields that differ only in some keywords. Each keyword
with several values is a dimension, with those values as coordinate; missing combinations are filled.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._native import _CoordinateAxis
from fieldstone._xarray.declared import (
    Declarations,
    Declared,
    DeclaredVariable,
    RunOf,
    parameter,
    run_names,
)
from fieldstone._xarray.lazy import Axis, FieldArray, Tied, chunks, lazy
from fieldstone._xarray.source import Source
from fieldstone.errors import Conflict, Invalid

TIME = "time"
"""The keyword that becomes a coordinate of the others if each of their combinations has one value of it."""


@dataclass
class Parts:
    """Variables not yet decoded, and the other parts of a Dataset."""

    variables: dict[str, xr.Variable]
    attrs: dict[str, Any] = field(default_factory=dict)
    coords: list[str] = field(default_factory=list)
    unlimited: set[str] = field(default_factory=set)
    select: dict[str, list[int]] = field(default_factory=dict)
    plain: bool = False
    """Whether there is nothing to decode."""


@dataclass(frozen=True)
class Roles:
    """The keywords that are project, run (one or several), step and variable in the store's schema, and
    whether its rules differ in them: a store of arrays and of GRIB messages."""

    project: str | None
    run: list[str]
    step: str | None
    variable: str | None
    is_mixed: bool

    @classmethod
    def of(cls, store: Any) -> Roles:
        return cls(*store._catalog().roles())


class Shared:
    """Axes in typed order, the coordinates made of them, and declarations of runs, shared by many
    Datasets."""

    def __init__(
        self, order: dict[str, tuple[str | None, ...]], declarations: Declarations | None = None
    ) -> None:
        self.declarations = declarations or Declarations()
        self._ranks: dict[str, dict[str | None, int]] = {}
        self._order = order
        self._coordinates: dict[tuple[str, int], tuple[Any, xr.Variable]] = {}
        self._places: dict[tuple[int, int], tuple[Any, Any, np.ndarray | None]] = {}

    def union(self, keyword: str, axes: Sequence[tuple[str | None, ...]]) -> tuple[str | None, ...]:
        """The values of several axes, in typed order."""
        first = axes[0]
        if all(axis is first or axis == first for axis in axes):
            return first
        if keyword not in self._ranks:
            self._ranks[keyword] = {None: -1, **{v: i for i, v in enumerate(self._order[keyword])}}
        return tuple(sorted({v for axis in axes for v in axis}, key=self._ranks[keyword].__getitem__))

    def coordinate(self, keyword: str, values: tuple[str | None, ...]) -> xr.Variable:
        """The coordinate variable of an axis."""
        kept = self._coordinates.get((keyword, id(values)))
        if kept is None:
            kept = (values, xr.IndexVariable((keyword,), typed(values)))
            self._coordinates[keyword, id(values)] = kept
        return kept[1]

    def places(self, whole: tuple[str | None, ...], part: tuple[str | None, ...]) -> np.ndarray | None:
        """The position in `part`, or -1, of each value of `whole`; None if they are equal."""
        if whole is part or whole == part:
            return None
        kept = self._places.get((id(whole), id(part)))
        if kept is None:
            at = {value: i for i, value in enumerate(part)}
            kept = (whole, part, np.array([at.get(value, -1) for value in whole], dtype=np.int64))
            self._places[id(whole), id(part)] = kept
        return kept[2]


def with_coordinates(source: Source, cubes: Sequence[Any], roles: Roles, shared: Shared) -> list[Any]:
    """The cubes, with their coordinates that the request left out: for variables that runs declare with
    dimensions, these are fields without a step with the name of a dimension, or named in ``coordinates``.
    """
    cubes = list(cubes)
    made = [Cube(cube) for cube in cubes if cube.dtype is not None]
    for cube in made:
        check(cube, roles)
    runs = runs_of(made, roles)
    shared.declarations.load(source.store, runs)
    said = shared.declarations.of(runs).variables
    own = {str(cube.key.get(roles.variable)) for cube in made}
    beside = {
        f"{name.rpartition('/')[0]}/{word}".lstrip("/")
        for name in own & said.keys()
        for word in said[name].beside()
    }
    lacking = sorted((beside & said.keys()) - own)
    if not lacking or not roles.variable:
        return cubes
    keywords = [k for k in (roles.project, *roles.run) if k]
    values = {k: {v for cube in made for v in cube.axes.get(k, (cube.key.get(k),))} for k in keywords}
    request: dict[str, Any] = {k: [*held] for k, held in values.items() if None not in held}
    request |= {roles.variable: lacking} | ({roles.step: "!*"} if roles.step else {})
    found, _ = source.store._cubes(request, by=[roles.variable])
    return cubes + [c for c in found if c.dtype is not None and Cube(c).axes.keys() <= {*keywords}]


def describe(source: Source, cubes: Sequence[Any], roles: Roles, shared: Shared, group: str = "") -> Parts:
    """The variables of cubes of array fields: one cube for each variable, or several with the same name. In a
    group, variables have their names in that group.
    """
    parts = Parts({}, plain=True)
    made = [Cube(cube) for cube in cubes if cube.dtype is not None]
    for cube in made:
        check(cube, roles)
    tie(made)
    held: dict[str, list[tuple[str | None, ...]]] = {}
    for cube in made:
        for keyword, values in cube.axes.items():
            if len(values) > 1 and (None not in values or len(values) > 2):
                held.setdefault(keyword, []).append(values)
    dims = {keyword: shared.union(keyword, axes) for keyword, axes in held.items()}
    runs = runs_of(made, roles)
    shared.declarations.load(source.store, runs)
    said = shared.declarations.of(runs)
    inner = Inner(set(dims))
    for cube in made:
        own = str(cube.key.get(roles.variable, "field"))
        name = own.removeprefix(f"{group}/") if group else own
        name = f"variable_{name}" if name in dims else name  # the coordinate of the dimension has this name
        parts.variables[name] = variable(
            source, name, cube, roles, dims, inner, shared, said.variables.get(own)
        )
    for keyword, values in dims.items():
        parts.variables[keyword] = shared.coordinate(keyword, values)
    for dim, along in inner.coords.items():
        parts.variables.setdefault(dim, xr.IndexVariable((dim,), along, words_of(dim)))
    scalars(parts, made, roles, dims)
    times(parts, made, dims, shared)
    of_runs(parts, made, roles, dims, said)
    parts.plain = not said.is_encoded
    return parts


def words_of(dim: str) -> dict[str, str]:
    """Attributes of a coordinate that a run declares: a longitude or a latitude is one by its name."""
    axis = _CoordinateAxis(dim, "", "")
    if axis.is_longitude:
        return {"standard_name": "longitude", "long_name": "longitude", "units": "degrees_east"}
    if axis.is_called("lat") and axis.is_called("latitude"):
        return {"standard_name": "latitude", "long_name": "latitude", "units": "degrees_north"}
    return {}


class Inner:
    """Dimensions of the arrays themselves: one for each name, extent and coordinate."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._sizes: dict[str, int] = {}
        self.coords: dict[str, np.ndarray] = {}

    def take(self, name: str, place: int, size: int, said: DeclaredVariable | None) -> str:
        """The name of a dimension of variable `name`."""
        wanted = said.name_of(place) if said else ""
        along = said.coordinate(place) if said else None
        if along is not None and len(along) != size:
            along = None
        tried = [f"dim_{place}", f"{name}_dim_{place}"]
        if wanted and wanted not in self._taken:
            tried = [wanted, f"{name}_{wanted}"]
        for dim in tried:
            known = self.coords.get(dim)
            fits = known is None or along is None or np.array_equal(known, along)
            if fits and self._sizes.setdefault(dim, size) == size:
                break
        if along is not None:
            self.coords.setdefault(dim, along)
        return dim


class Cube:
    """A cube of the store, with axes of one value moved to the common keywords."""

    def __init__(self, cube: Any) -> None:
        self.key: dict[str, str] = dict(cube.key)
        self.dtype: np.dtype = cube.dtype
        self.shape: tuple[int, ...] = cube.shape
        self.chunks: tuple[int, ...] = cube.chunks or cube.shape
        self.packed: bool | None = cube.packed
        self.odd = cube.odd
        self.axes: dict[str, tuple[str | None, ...]] = {}
        for keyword, values in cube.axes.items():
            if len(values) > 1:
                self.axes[keyword] = values
            else:
                self.key[keyword] = values[0]
        self.present = None if cube.places is None else np.frombuffer(cube.places, np.int64)
        self.tied: Tied | None = None

    def tie(self) -> bool:
        """Removes the time from the axes if the others determine it, and returns whether they do."""
        if self.present is None or None in self.axes[TIME]:
            return False
        names = list(self.axes)
        sizes = [len(self.axes[k]) for k in names]
        numbers = np.unravel_index(self.present, sizes)
        others = [i for i, k in enumerate(names) if k != TIME]
        shape = [sizes[i] for i in others]
        flat = np.ravel_multi_index([numbers[i] for i in others], shape) if others else np.zeros(1, np.int64)
        if not others or len(np.unique(flat)) != len(flat):
            return False
        order = np.argsort(flat, kind="stable")
        self.tied = Tied(TIME, self.axes[TIME], numbers[names.index(TIME)][order].astype(np.int64))
        self.axes = {k: v for k, v in self.axes.items() if k != TIME}
        self.present = None if len(flat) == math.prod(shape) else flat[order].astype(np.int64)
        return True


def runs_of(cubes: Sequence[Cube], roles: Roles) -> list[RunOf]:
    """Projects and names of the runs of cubes, with every possible name of a run of several keywords."""
    found: dict[RunOf, None] = {}
    for cube in cubes:
        values = [cube.axes.get(k, (cube.key.get(k),)) for k in roles.run]
        projects: Sequence[str | None] = (None,)
        if roles.project:
            projects = cube.axes.get(roles.project, (cube.key.get(roles.project),))
        names = [name for chosen in itertools.product(*values) for name in run_names(chosen)]
        found |= dict.fromkeys((project, name) for project in projects for name in names)
    return list(found)


def check(cube: Cube, roles: Roles) -> None:
    """Refuses a cube whose fields are not alike."""
    if cube.odd is None:
        return
    key, dtype, shape = cube.odd
    where = ", ".join(f"{k}={v}" for k, v in cube.key.items())
    more = [k for k in cube.axes if k != roles.step]
    of_runs = [k for k in (roles.project, *roles.run) if k in cube.axes]
    # Runs that do not fit into one Dataset are a Conflict, whatever the difference.
    pairs = re.split("[{},]", str(key))
    kind = Conflict if any(f"{k}={cube.axes[k][0]}" not in pairs for k in of_runs) else Invalid
    raise kind(
        f"the fields of {where} differ in type or shape: {cube.dtype} {cube.shape} first, but {key} is "
        f"{dtype or 'opaque bytes'} {shape or ''}".rstrip(),
        f"give a request that selects equal ones, such as one value of {' or '.join(more or list(cube.axes))}"
        + (", or open_datatree, which makes a node for each" if more else ""),
    )


def tie(cubes: Sequence[Cube]) -> None:
    """Makes the time a coordinate along other dimensions, if it is one in every cube that has it."""
    having = [cube for cube in cubes if TIME in cube.axes]
    before = [(cube.axes, cube.present) for cube in having]
    if not all([cube.tie() for cube in having]):
        for cube, (axes, present) in zip(having, before, strict=True):
            cube.axes, cube.present, cube.tied = axes, present, None


def variable(
    source: Source,
    name: str,
    cube: Cube,
    roles: Roles,
    dims: dict[str, tuple[str | None, ...]],
    inner: Inner,
    shared: Shared,
    said: DeclaredVariable | None = None,
) -> xr.Variable:
    """One variable, of one cube; `said` is its declaration by runs."""
    lacking = [k for k, values in cube.axes.items() if None in values]
    if lacking:
        raise Invalid(
            f"some fields of variable {name} lack {', '.join(lacking)}",
            "give a request that selects only fields that have it",
        )
    axes = [Axis(k, values, shared.places(dims[k], values)) for k, values in cube.axes.items()]
    complete = cube.present is None and all(axis.places is None for axis in axes)
    dtype, fill = cube.dtype, None
    if not complete:
        # Combinations without a field are missing values, so integers become floats.
        if dtype.kind in "iub":
            dtype = np.dtype("f8")
        elif dtype.kind not in "fcMm":
            names = ", ".join(cube.axes)
            raise Invalid(
                f"variable {name} has no field for some combinations of {names}, but its type {dtype} has "
                "no missing value",
                "give a request that selects all combinations",
            )
        fill = np.array("NaT" if dtype.kind in "Mm" else np.nan, dtype=dtype)[()]
    own = said.attrs_for(cube.dtype) if said else {}
    if said and said.dims and len(said.dims) != len(cube.shape):
        said = None
    named = [inner.take(name, i, n, said) for i, n in enumerate(cube.shape)]
    array = FieldArray(
        source,
        cube.key,
        axes,
        cube.shape,
        dtype,
        present=cube.present,
        tied=cube.tied,
        fill=fill,
        stored=cube.dtype,
        packed=cube.packed if dtype == cube.dtype else None,
    )
    # Identifies this variable's one value of a dimension that other variables have.
    attrs = own | {k: typed((v,))[0] for k, v in cube.key.items() if k in dims and k != roles.variable}
    made = xr.Variable((*cube.axes, *named), lazy(array), attrs, fastpath=True)
    made.encoding = {"preferred_chunks": chunks(list(cube.axes), named, cube.chunks)}
    return made


def scalars(parts: Parts, cubes: Sequence[Cube], roles: Roles, dims: dict[str, Any]) -> None:
    """A scalar coordinate for each keyword that has one value in all fields."""
    first = cubes[0].key if cubes else {}
    for keyword, value in first.items():
        if keyword in (roles.variable, *dims) or keyword in parts.variables:
            continue
        if all(cube.key.get(keyword) == value for cube in cubes):
            parts.variables[keyword] = xr.Variable((), typed((value,))[0])
            parts.coords.append(keyword)


def of_runs(parts: Parts, cubes: Sequence[Cube], roles: Roles, dims: dict[str, Any], said: Declared) -> None:
    """Coordinates from the declarations of runs: times along the steps, parameters along the runs."""
    if not said.runs:
        return
    first, step = cubes[0].key, roles.step
    keywords = [k for k in (roles.project, *roles.run) if k]
    values = [dims.get(k, (first.get(k),)) for k in keywords]
    along = [k for k in keywords if k in dims]
    runs = []
    for chosen in itertools.product(*values):
        project = chosen[0] if roles.project else None
        names = [(project, name) for name in run_names(chosen[1:] if roles.project else chosen)]
        runs.append(said.first(names))

    def add(name: str, names: Sequence[str], found: np.ndarray) -> None:
        shape = [len(dims[k]) for k in names]
        parts.variables[name] = xr.Variable(names, found.reshape(shape) if names else found.reshape(())[()])
        parts.coords.append(name)

    steps = dims.get(step) if step else None
    if steps is None and step and step in parts.variables:
        steps = (str(parts.variables[step].values),)
    if steps is not None and TIME not in parts.variables:
        numbers = [int(s) if s is not None and s.lstrip("-").isdigit() else None for s in steps]
        found = np.array(
            [[np.nan if n is None else run.times.get(n, np.nan) for n in numbers] for run in runs]
        )
        if not np.isnan(found).all():
            own = [step] if step in dims else []
            # Times that are equal in all runs depend only on the step.
            same = np.array_equal(found, np.broadcast_to(found[:1], found.shape), equal_nan=True)
            add(TIME, own if same else [*along, *own], found[0] if same else found)
    for name in dict.fromkeys(name for run in runs for name in run.params):
        held = np.empty(len(runs), dtype=object)
        held[:] = [run.params.get(name) for run in runs]
        taken = name in parts.variables or name in dims
        add(f"param.{name}" if taken else name, along, parameter(held))


def times(parts: Parts, cubes: Sequence[Cube], dims: dict[str, Any], shared: Shared) -> None:
    """The coordinate of a time that other keywords determine: along the steps, or along several dimensions if
    needed."""
    tied = [cube for cube in cubes if cube.tied is not None]
    if not tied or TIME in parts.variables:
        return
    values = shared.union(TIME, [cube.tied.values for cube in tied if cube.tied])
    data = typed(values)
    common = [k for k in dims if all(k in cube.axes for cube in tied)]
    for n in range(1, len(common) + 1):
        for names in itertools.combinations(common, n):
            found = decided(tied, names, dims, values)
            if found is None:
                continue
            if (found < 0).any():
                if data.dtype.kind == "U":
                    return
                data = np.append(data.astype("f8"), np.nan)
            parts.variables[TIME] = xr.Variable(names, data[found])
            parts.coords.append(TIME)
            return


def decided(
    cubes: Sequence[Cube], names: Sequence[str], dims: dict[str, Any], values: Sequence[str | None]
) -> np.ndarray | None:
    """Position in `values` of the time, by keywords; None if these do not determine it."""
    found = np.full([len(dims[k]) for k in names], -1, dtype=np.int64)
    numbers = {value: i for i, value in enumerate(values)}
    rows = []
    for cube in cubes:
        sizes = [len(axis) for axis in cube.axes.values()]
        place = np.arange(math.prod(sizes)) if cube.present is None else cube.present
        positions = dict(zip(cube.axes, np.unravel_index(place, sizes), strict=True))
        index = []
        for keyword in names:
            rank = {value: i for i, value in enumerate(dims[keyword])}
            index.append(np.array([rank[v] for v in cube.axes[keyword]])[positions[keyword]])
        tied = cube.tied
        time = np.array([numbers[v] for v in tied.values])[tied.numbers] if tied else np.array([])
        found[tuple(index)] = time
        rows.append((tuple(index), time))
    return found if all((found[index] == time).all() for index, time in rows) else None


def typed(texts: Sequence[str | None]) -> np.ndarray:
    """Values of a keyword: as whole numbers if possible, else numbers, else text."""
    for kind in (int, float):
        try:
            return np.array([kind(text) for text in texts])  # type: ignore[arg-type]
        except (ValueError, TypeError):
            continue
    return np.array(["" if text is None else text for text in texts], dtype=str)

"""Declarations of runs: names of dimensions, attributes, coordinates, times of steps, parameters.

If several runs of a Dataset declare a variable, dimensions, shape and units have to be the same; otherwise
Conflict names two runs that differ (a tree shows each run separately). Attributes and coordinates are kept if
all runs share them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fieldstone._native import Test
from fieldstone.errors import Conflict, Unavailable

RunOf = tuple[str | None, str]
"""Project (None if it has none) and name of a run."""

ENCODED = (
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "_Unsigned",
    "calendar",
    "coordinates",
)
"""Attributes by which CF marks values as encoded."""

PACKING = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
"""Those of them that depend on the stored type."""

ROUNDED = 2e-3
"""Degrees by which the header of a GRIB message may round the ends of its grid."""


@dataclass
class DeclaredVariable:
    """A variable as declared by runs."""

    run: str
    dims: tuple[str, ...]
    shape: tuple[int, ...] | None
    attrs: dict[str, Any]
    coords: dict[str | int, np.ndarray]
    dtype: np.dtype[Any] | None = None

    def attrs_for(self, dtype: np.dtype[Any]) -> dict[str, Any]:
        """The attributes of fields of a type. Attributes of packing apply to the declared type, and if none
        is declared, a scale applies to whole numbers: fields archived as another type are not packed, and
        read back unchanged.
        """
        if self.dtype is None:
            packed = dtype.kind in "iu" or not {"scale_factor", "add_offset"} & self.attrs.keys()
        else:
            packed = self.dtype.newbyteorder("=") == dtype.newbyteorder("=")
        return {k: v for k, v in self.attrs.items() if packed or k not in PACKING}

    def name_of(self, place: int) -> str:
        """The name of a dimension; empty if it has none."""
        return self.dims[place] if place < len(self.dims) else ""

    def coordinate(self, place: int) -> np.ndarray | None:
        """The coordinate along a dimension."""
        return self.coords.get(self.name_of(place) or place, self.coords.get(place))

    def beside(self) -> list[str]:
        """Names of variables that may be its coordinates: of dimensions without one, and those that it
        names."""
        without = [name for name in self.dims if name and name not in self.coords]
        return without + str(self.attrs.get("coordinates", "")).split()

    def merged(self, name: str, other: DeclaredVariable) -> DeclaredVariable:
        """The common declaration of both runs."""
        for what, mine, theirs in (
            ("dimensions", self.dims, other.dims),
            ("extents", self.shape, other.shape),
            ("units", self.attrs.get("units"), other.attrs.get("units")),
        ):
            if mine != theirs:
                raise Conflict(
                    f"variable {name} has the {what} {mine} in run {self.run}, "
                    f"but {theirs} in run {other.run}",
                    "request runs that agree, or open_datatree, which makes a node for each",
                )
        attrs = {k: v for k, v in self.attrs.items() if k in other.attrs and _same(v, other.attrs[k])}
        coords = {k: v for k, v in self.coords.items() if k in other.coords and _same(v, other.coords[k])}
        dtype = self.dtype if self.dtype == other.dtype else None
        return DeclaredVariable(self.run, self.dims, self.shape, attrs, coords, dtype)


@dataclass
class DeclaredRun:
    """The declarations of one run."""

    variables: dict[str, DeclaredVariable] = field(default_factory=dict)
    times: dict[int, float] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)


@dataclass
class Declared:
    """The joint declarations of the runs of a Dataset."""

    variables: dict[str, DeclaredVariable]
    runs: dict[RunOf, DeclaredRun]

    def first(self, names: Sequence[RunOf]) -> DeclaredRun:
        """The declarations of the first of these runs that has any."""
        found = [self.runs[name] for name in names if name in self.runs]
        return next((run for run in found if run.variables or run.times or run.params), DeclaredRun())

    @property
    def is_encoded(self) -> bool:
        """Whether values of some variable have to be decoded by CF's rules."""
        said = [variable.attrs for variable in self.variables.values()]
        return any(set(ENCODED) & set(attrs) or " since " in str(attrs.get("units", "")) for attrs in said)


class Declarations:
    """Declarations of runs of a store, queried once for all runs of a Dataset or tree."""

    def __init__(self) -> None:
        self._runs: dict[RunOf, DeclaredRun] = {}
        self._has_some: bool | None = None

    def load(self, store: Any, runs: Sequence[RunOf]) -> None:
        """Queries the runs that are not known yet; does nothing if the store's logs declare nothing."""
        new = {run for run in runs if run not in self._runs}
        if self._has_some is None and new:
            self._has_some = store._catalog().has_declarations()
        if not new or not self._has_some:
            return
        self._runs |= {run: DeclaredRun() for run in new}
        terms = {"run": [Test().equal(name) for name in sorted({name for _, name in new})]}
        newest: dict[tuple[RunOf, str], int] = {}
        for row in store.variables(**terms):
            run = (row.project, row.run)
            if run not in new or not row.declared or newest.get((run, row.name), row.version) > row.version:
                continue
            newest[run, row.name] = row.version
            self._runs[run].variables[row.name] = _variable(row)
        for step in store.steps(**terms):
            if (step.project, step.run) in new and step.time is not None:
                self._runs[step.project, step.run].times[step.step] = step.time
        for run in store.runs(**terms):
            if (run.project, run.name) in new:
                self._runs[run.project, run.name].params = run.params

    def of(self, runs: Sequence[RunOf]) -> Declared:
        """The joint declarations of these runs, which must be loaded."""
        found = Declared({}, {run: self._runs[run] for run in runs if run in self._runs})
        for own in found.runs.values():
            for name, variable in own.variables.items():
                known = found.variables.get(name)
                found.variables[name] = variable if known is None else known.merged(name, variable)
        return found


class DeclaredMessages:
    """Declarations of an ingest of GRIB messages: names of parameters, points of regular grids."""

    def __init__(self) -> None:
        self._keywords: list[str] = []
        self._variable = ""
        self._rows: dict[tuple[str, str], list[Any]] = {}

    def load(self, store: Any, keys: Iterable[Mapping[str, str]]) -> None:
        """Queries the runs of these messages; does nothing if the store's logs declare nothing.

        If the catalog is out of reach, eccodes takes its place, so that a store of messages still opens.
        """
        _, self._keywords, _, self._variable, _ = store._catalog().roles()
        names = {name for key in keys for name in self._runs(key)}
        rows: Iterable[Any] = ()
        with contextlib.suppress(Unavailable):
            if names and store._catalog().has_declarations():
                rows = store.variables(run=[Test().equal(name) for name in sorted(names)])
        for row in rows:
            if row.declared and "GRIB_grid" in row.attrs:
                self._rows.setdefault((row.run, row.name), []).append(row)

    def names(self, key: Mapping[str, str], centre: str) -> dict[str, str] | None:
        """The declaration of a message's parameter; None if there is none, or more than one."""
        from fieldstone._helper.grib import NAMED

        said = [row.attrs for row in self._of(key) if row.attrs.get("GRIB_centre") == centre]
        names = [{name: attrs[name] for name in NAMED if name in attrs} for attrs in said]
        return names[0] if names and all(own == names[0] for own in names) else None

    def points(
        self, key: Mapping[str, str], kind: str, shape: tuple[int, ...], corners: Sequence[float]
    ) -> dict[str, np.ndarray] | None:
        """Latitudes and longitudes of a message's regular grid; None if they are not declared.

        `corners` are the latitudes of its first and last point, and the longitudes: an undeclared message may
        have another grid than those of its run.
        """
        rows = [row for row in self._of(key) if row.attrs.get("GRIB_gridType") == kind and row.shape == shape]
        if len({row.attrs["GRIB_grid"] for row in rows}) != 1:
            return None
        found = {}
        for dim in ("latitude", "longitude"):
            given = rows[0].coords.get(dim)
            values = None if given is None or isinstance(given, str) else _values(given, rows[0], dim)
            if values is None:
                return None
            found[dim] = values
        ends = [float(values[i]) for values in found.values() for i in (0, -1)]
        off = (np.subtract(ends, corners) + 180) % 360 - 180
        return found if (np.abs(off) < ROUNDED).all() else None

    def _of(self, key: Mapping[str, str]) -> list[Any]:
        variable = key.get(self._variable, "")
        return [row for run in self._runs(key) for row in self._rows.get((run, variable), [])]

    def _runs(self, key: Mapping[str, str]) -> list[str]:
        return run_names([key.get(keyword) for keyword in self._keywords])


def run_names(values: Sequence[str | None]) -> list[str]:
    """The possible names of a run whose keywords have these values.

    In the name of a run of several keywords, a keyword that its rule knows and the key lacks leaves an empty
    place, while one that its rule does not know leaves none; the keys do not show which it is.
    """
    if len(values) == 1:
        return [values[0]] if values[0] is not None else []
    if not any(values):
        return []
    parts = [("", None) if v is None else (v.replace("%", "%25").replace("/", "%2F"),) for v in values]
    return ["/".join(p for p in chosen if p is not None) for chosen in itertools.product(*parts)]


def _variable(row: Any) -> DeclaredVariable:
    coords = {}
    for dim, given in (row.coords or {}).items():
        values = None if isinstance(given, str) else _values(given, row, dim)
        if values is not None:
            coords[dim] = values
    return DeclaredVariable(row.run, tuple(row.dims), row.shape, dict(row.attrs), coords, row.dtype)


def _values(coordinate: Any, row: Any, dim: str | int) -> np.ndarray | None:
    """The values of a coordinate along a dimension; None if its extent is unknown."""
    if not isinstance(coordinate, tuple):
        return np.asarray(coordinate)
    place = row.dims.index(dim) if isinstance(dim, str) else dim
    if row.shape is None or place >= len(row.shape):
        return None
    first, spacing = coordinate
    return first + spacing * np.arange(row.shape[place])


def _same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def parameter(values: np.ndarray) -> np.ndarray:
    """Values of a parameter as an array of their type; the value of a run without it is NaN, NaT or None.

    Numbers and bools become floats if some are missing.
    """
    held = [value for value in values.ravel() if value is not None]
    kinds = {type(value) for value in held}
    lacking = len(held) < values.size
    if kinds <= {bool} and not lacking:
        return values.astype(bool)
    if kinds <= {int, float} or kinds <= {bool}:
        if not lacking and kinds == {int} and all(abs(value) < 2**63 for value in held):
            return values.astype("i8")
        return np.array([np.nan if value is None else value for value in values.ravel()], "f8").reshape(
            values.shape
        )
    if all(hasattr(value, "isoformat") for value in held):
        flat = [
            np.datetime64("NaT") if v is None else np.datetime64(v.replace(tzinfo=None))
            for v in values.ravel()
        ]
        return np.array(flat, "M8[ns]").reshape(values.shape)
    # Lists and mappings cannot be elements of an array in a file.
    text = [
        v if v is None or isinstance(v, str | bool | int | float) else json.dumps(v, default=str)
        for v in values.ravel()
    ]
    if not lacking and all(isinstance(value, str) for value in text):
        return np.array(text, dtype=str).reshape(values.shape)
    made = np.empty(len(text), dtype=object)
    made[:] = text
    return made.reshape(values.shape)

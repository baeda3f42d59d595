"""Containers (netCDF classic, or with a partitioned header) as Datasets, without a store.

The variables of one path are one Dataset; variables whose names have no path belong to the root. Elements are
read when they are needed. Values, attributes and CF's decoding are the same as with xarray's netCDF engines.

A dimension is named by the last part of its path if it is in the Dataset's own path, or in the nearest
enclosing path with a dimension of that name; otherwise by its full path: ``b/x``, or ``/x`` at the root. In a
tree, xarray treats dimensions with the same name in a node and in its child as the same dimension, so
different ones get their full paths.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from fieldstone import container
from fieldstone._xarray.arrays import Parts
from fieldstone.errors import NotFound

MEANING = {"units", "calendar", "scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned"}
"""Attributes that determine the meaning of stored numbers."""

PARTITIONED = b"FSP"
"""The first bytes of a file with a partitioned header."""


def is_container(path: str) -> bool:
    """Whether a path is a file, as containers are and stores are not."""
    return os.path.isfile(path)


def is_partitioned(path: str) -> bool:
    """Whether a file has a partitioned header, which no other engine opens."""
    try:
        with open(path, "rb") as file:
            return file.read(len(PARTITIONED)) == PARTITIONED
    except OSError:
        return False


class File:
    """An open container behind lazy variables, opened again when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.url = os.path.abspath(path)
        self._open: container.Container | None = container.open(self.url)

    @property
    def open(self) -> container.Container:
        """The open container."""
        if self._open is None:
            self._open = container.open(self.url)
        return self._open

    def close(self) -> None:
        """Closes the file; reading opens it again."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "_open": None}


class ContainerArray(BackendArray):
    """The elements of a variable, read when they are needed."""

    def __init__(self, file: File, variable: container.Variable) -> None:
        self._file = file
        self._name = variable.name
        self._variable: container.Variable | None = variable
        self.shape = variable.shape
        self.dtype = variable.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self._select
        )

    def _select(self, key: tuple[Any, ...]) -> np.ndarray:
        file = self._file.open
        if self._variable is None or self._variable._file is not file:
            self._variable = file[self._name]
        # The shape is that at opening, even if the file has grown since.
        key = tuple(
            slice(*part.indices(n)) if isinstance(part, slice) else part
            for part, n in zip(key, self.shape, strict=True)
        )
        return np.asarray(self._variable[key])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_variable": None}


def dataset(file: File, group: str | None) -> Parts:
    """The variables of one path of a container, by default of the root."""
    path = (group or "").strip("/")
    variables = file.open.vars.under(path)
    held = {path: [(variable.name.rpartition("/")[2], variable) for variable in variables]}
    attributes = _attributes(file, lambda other: other == path)
    if path and not variables and path not in attributes:
        raise NotFound(f"no path {path!r} in {file.url}", "open it with xarray.open_groups to see its paths")
    return dict(_described(file, held, attributes, set()))[path]


def groups(file: File) -> Iterator[tuple[str, Parts]]:
    """The paths of a container with their variables."""
    return _all(file, lambda path: True, lambda held: set())


def tree(file: File, group: str) -> Iterator[tuple[str, Parts]]:
    """The path `group` and all paths below it, with names of dimensions that are valid in one tree."""
    return _all(file, lambda path: _encloses(group, path), lambda held: _apart(file, held))


_Held = dict[str, list[tuple[str, container.Variable]]]
"""The variables of each path, by the last part of their names."""

_Attributes = dict[str, dict[str, Any]]
"""Global attributes by path."""


def _all(
    file: File, wanted: Callable[[str], bool], apart: Callable[[_Held], set[str]]
) -> Iterator[tuple[str, Parts]]:
    """The wanted paths; a path that has only attributes has no variables."""
    held: _Held = {}
    for name, variable in file.open.vars.items():
        path, _, last = name.rpartition("/")
        if wanted(path):
            held.setdefault(path, []).append((last, variable))
    attributes = _attributes(file, wanted)
    for path in attributes:
        held.setdefault(path, [])
    return _described(file, held, attributes, apart(held))


def _described(
    file: File, held: _Held, attributes: _Attributes, apart: set[str]
) -> Iterator[tuple[str, Parts]]:
    for path, variables in held.items():
        parts = Parts({}, attributes.get(path, {}))
        names = _names(path, (dim for _, variable in variables for dim in variable.dims), apart)
        for last, variable in variables:
            data = indexing.LazilyIndexedArray(ContainerArray(file, variable))
            attrs = {key: decode(key, kind, value) for key, kind, value in variable.attrs.raw()}
            parts.variables[last] = xr.Variable([names[dim] for dim in variable.dims], data, attrs)
            if variable._native.is_record:
                parts.unlimited.add(names[variable.dims[0]])
        yield path, parts


def _encloses(outer: str, path: str) -> bool:
    return not outer or path == outer or path.startswith(f"{outer}/")


def _names(path: str, dims: Iterable[str], apart: Container[str] = ()) -> dict[str, str]:
    """The names of dimensions in the Dataset of a path; those in `apart` are full paths."""
    names: dict[str, str] = {}
    taken = set()
    for dim in sorted(set(dims), key=lambda dim: -dim.count("/")):
        above, _, short = dim.rpartition("/")
        near = _encloses(above, path) and short not in taken
        if near:
            taken.add(short)
        names[dim] = short if near and dim not in apart else dim if above else f"/{dim}"
    return names


def _apart(file: File, held: _Held) -> set[str]:
    """Dimensions that cannot have their short names in a tree.

    Of two with the same name, the inner one gets its full path, unless it has a coordinate: then the inner
    node would inherit a coordinate of the outer dimension under the same name.
    """
    apart: set[str] = set()
    short: dict[str, dict[str, str]] = {}
    lengths: dict[str, int] = {}
    for path, variables in held.items():
        for _, variable in variables:
            lengths.update(zip(variable.dims, variable.shape, strict=True))
        names = _names(path, (dim for _, variable in variables for dim in variable.dims))
        short[path] = {name: dim for dim, name in names.items() if dim.rpartition("/")[2] == name}

    def coordinate(path: str, name: str) -> container.Variable | None:
        dims = (short[path][name],)
        return next((v for last, v in held[path] if last == name and v.dims == dims), None)

    for path in short:
        outer = path
        while outer:
            outer = outer.rpartition("/")[0]
            for name in short[path].keys() & short.get(outer, {}).keys():
                own, other = short[path][name], short[outer][name]
                if own == other or own in apart or other in apart:
                    continue
                mine, its = coordinate(path, name), coordinate(outer, name)
                same = mine is None or its is None or _equal(mine, its)
                # Equal dimensions can share a name in the tree, because inheriting the coordinate is then
                # harmless.
                if lengths[own] != lengths[other] or not same:
                    apart.add(own if mine is None else other)
    return apart


def _equal(one: container.Variable, other: container.Variable) -> bool:
    """Whether two coordinates of equal length have equal stored values and encodings."""
    kept = [{name: value for name, *value in v.attrs.raw() if name in MEANING} for v in (one, other)]
    return kept[0] == kept[1] and np.array_equal(one[...], other[...])


def _attributes(file: File, wanted: Callable[[str], bool]) -> _Attributes:
    """The attributes of the wanted paths; the root is included whenever it is wanted."""
    held: _Attributes = {"": {}} if wanted("") else {}
    for name, kind, value in file.open.attrs.raw():
        path, _, last = name.rpartition("/")
        if wanted(path):
            held.setdefault(path, {})[last] = decode(last, kind, value)
    return held


def decode(name: str, kind: str, value: bytes) -> Any:
    """An attribute's value in the form of netCDF4, which xarray's users know."""
    if kind == "S1" and name != "_FillValue":
        return value.decode("utf-8", "replace").replace("\0", "")
    return container._values.decode(name, kind, value)

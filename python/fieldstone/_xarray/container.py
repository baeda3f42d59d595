"""Containers (netCDF classic, or with a partitioned header) as Datasets, without a store.

The variables of one path are one Dataset; the variables whose names have no path are the root. A variable
reads what is asked for, when it is asked for. Values, attributes and CF's decoding are as with xarray's
engine for netCDF.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from fieldstone import container
from fieldstone._xarray.arrays import Parts
from fieldstone.errors import NotFound

PARTITIONED = b"FSP"
"""The first bytes of a file with a partitioned header."""


def is_container(path: str) -> bool:
    """Whether a path is a file, as containers are and stores are not."""
    return os.path.isfile(path)


def is_partitioned(path: str) -> bool:
    """Whether a file says that its header is partitioned: no other engine opens it."""
    try:
        with open(path, "rb") as file:
            return file.read(len(PARTITIONED)) == PARTITIONED
    except OSError:
        return False


class File:
    """An open container behind lazy variables: opened again where it is unpickled."""

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
        """Lets go of the file; reading opens it again."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "_open": None}


class ContainerArray(BackendArray):
    """The elements of a variable, read when they are asked for."""

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
        # The shape is that of the moment of opening, also where the file has grown since.
        key = tuple(
            slice(*part.indices(n)) if isinstance(part, slice) else part
            for part, n in zip(key, self.shape, strict=True)
        )
        return np.asarray(self._variable[key])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_variable": None}


def dataset(file: File, group: str | None) -> Parts:
    """The variables of one path of a container; of the root without one."""
    path = (group or "").strip("/")
    found = dict(groups(file, path))
    if path not in found:
        if path:
            raise NotFound(
                f"no path {path!r} in {file.url}", "open it with xarray.open_groups to see its paths"
            )
        return Parts({}, _attributes(file, ""))
    return found[path]


def groups(file: File, only: str | None = None) -> Iterator[tuple[str, Parts]]:
    """The paths of a container with their variables; `only` one of them."""
    made: dict[str, Parts] = {}
    held = _held(file)
    record = file.open.record_dim
    for name, variable in file.open.vars.items():
        path, _, last = name.rpartition("/")
        if only is not None and path != only:
            continue
        parts = made.get(path)
        if parts is None:
            parts = made[path] = Parts({}, held.get(path, {}))
        dims = _last_parts(variable.dims)
        data = indexing.LazilyIndexedArray(ContainerArray(file, variable))
        attrs = {key: decode(key, kind, value) for key, kind, value in variable.attrs.raw()}
        parts.variables[last] = xr.Variable(dims, data, attrs)
        if record in variable.dims[:1]:
            parts.unlimited.add(dims[0])
    for path in held:
        if path not in made and only in (None, path):
            made[path] = Parts({}, held[path])
    yield from made.items()


def _last_parts(dims: tuple[str, ...]) -> tuple[str, ...]:
    """Names of dimensions within a path; where two would be one, the whole path of the outer."""
    last = [dim.rpartition("/")[2] for dim in dims]
    if len(set(last)) == len(set(dims)):
        return tuple(last)
    inner = {short: max((d for d in dims if d.rpartition("/")[2] == short), key=len) for short in last}
    return tuple(s if inner[s] == dim else dim for s, dim in zip(last, dims, strict=True))


def _held(file: File) -> dict[str, dict[str, Any]]:
    """Global attributes by path."""
    held: dict[str, dict[str, Any]] = {"": {}}
    for name, kind, value in file.open.attrs.raw():
        path, _, last = name.rpartition("/")
        held.setdefault(path, {})[last] = decode(last, kind, value)
    return held


def _attributes(file: File, path: str) -> dict[str, Any]:
    return _held(file).get(path, {})


def decode(name: str, kind: str, value: bytes) -> Any:
    """An attribute's value as netCDF4 gives it, which xarray's users know."""
    if kind == "S1" and name != "_FillValue":
        return value.decode("utf-8", "replace").replace("\0", "")
    return container._values.decode(name, kind, value)

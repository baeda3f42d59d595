"""xarray's Datasets and DataTrees into containers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Invalid
from ._file import Container, Format, Index, create

if TYPE_CHECKING:
    import xarray as xr

NARROW = ("cdf1", "cdf2")
"""Formats without 64-bit and unsigned integers."""


def write_dataset(
    dataset: xr.Dataset | xr.DataTree,
    path: str | os.PathLike[str],
    *,
    format: Format = "cdf5",
    encoding: Mapping[str, Mapping[str, Any]] | None = None,
    unlimited_dims: str | Iterable[str] | None = None,
    index: Index = "auto",
) -> None:
    """Writes a Dataset, or a tree of them, as a container; `xarray.open_dataset` gives it back.

    Times, texts, packed and missing values are encoded by CF's rules, as ``Dataset.to_netcdf`` does;
    `encoding` overrides the variables' own. Of a tree each node is a path. The dimension in `unlimited_dims`
    becomes the record dimension; without it the one that the Dataset was read with, where it is the first of
    every variable that has it. A dimension whose name has a ``/`` is the one of that path, as xarray's engine
    ``fieldstone`` calls it. Lazy arrays are computed and written chunk by chunk. Until all is written, a file
    that was at `path` stays.
    """
    nodes = dict(_nodes(dataset))
    made = {at: _Node(at, node, format, _below(encoding, at)) for at, node in nodes.items()}
    lengths = _place(made)
    record = _record(made, lengths, unlimited_dims)
    with create(path, format=format, index=index) as file:
        numbers = {dim: file.def_dims([dim], [None if dim == record else n])[0] for dim, n in lengths.items()}
        for node in made.values():
            node.define(file, numbers)
        file.enddef()
        _write(file, made.values())


def _nodes(dataset: Any) -> Iterator[tuple[str, xr.Dataset]]:
    if hasattr(dataset, "subtree"):
        for node in dataset.subtree:
            yield node.path.strip("/"), node.to_dataset(inherit=False)
    else:
        yield "", dataset


def _below(encoding: Mapping[str, Any] | None, path: str) -> dict[str, Any]:
    """Encodings of the variables of one path, without it."""
    prefix = f"{path}/" if path else ""
    given = {name.strip("/"): options for name, options in (encoding or {}).items()}
    return {
        name[len(prefix) :]: options
        for name, options in given.items()
        if name.startswith(prefix) and "/" not in name[len(prefix) :]
    }


class _Node:
    """The encoded variables of one Dataset."""

    def __init__(self, path: str, dataset: xr.Dataset, format: str, encoding: dict[str, Any]) -> None:
        from xarray import conventions
        from xarray.backends.common import ensure_dtype_not_object

        self.path = path
        self.unlimited = _dims(dataset.encoding.get("unlimited_dims") or ())
        variables, attrs = conventions.encode_dataset_coordinates(dataset)
        for name in encoding:
            if name not in variables:
                raise Invalid(
                    f"encoding for {name!r}, which is no variable", f"it has {', '.join(variables)}"
                )
        self.variables: dict[str, xr.Variable] = {}
        for name, variable in variables.items():
            if name in encoding:
                variable = variable.copy(deep=False)
                variable.encoding = dict(encoding[name])
            encoded = conventions.encode_cf_variable(variable, name=name)
            encoded = ensure_dtype_not_object(encoded, name=name)
            self.variables[str(name)] = _encode(encoded, str(name), format)
        self.attrs = {str(name): value for name, value in attrs.items()}
        self.sizes = {
            str(d): n for v in self.variables.values() for d, n in zip(v.dims, v.shape, strict=True)
        }
        self.paths: dict[str, str] = {}
        """The path of each dimension."""

    def dims(self, variable: xr.Variable) -> list[str]:
        """Paths of a variable's dimensions."""
        return [self.paths[str(dim)] for dim in variable.dims]

    def define(self, file: Container, numbers: Mapping[str, int]) -> None:
        """Defines what the node holds, over dimensions that are defined."""
        for name, value in self.attrs.items():
            file.put_att(_join(self.path, name), _plain(value, file.format))
        for name, variable in self.variables.items():
            attrs = {str(k): _plain(v, file.format) for k, v in variable.attrs.items()}
            full, dims = _join(self.path, name), self.dims(variable)
            if all(_found(numbers, self.path, dim) == dim for dim in dims):
                file.def_var(full, variable.dtype, dims, attrs)
            else:  # by its name another one would be found first
                ids = np.array([[numbers[dim] for dim in dims]])
                file.def_many([full], [variable.dtype], ids, [attrs])


def _place(nodes: Mapping[str, _Node]) -> dict[str, int]:
    """Gives each dimension its path; lengths by path, in the order of nodes.

    One that a node of an enclosing path calls by the same name, and has with the same length, is that one.
    """
    own = {_join(at, dim): n for at, node in nodes.items() for dim, n in node.sizes.items() if "/" not in dim}
    lengths: dict[str, int] = {}
    called: dict[str, int] = {}
    for at, node in nodes.items():
        # Whole paths first: what they take is no dimension of another name.
        for dim, n in sorted(node.sizes.items(), key=lambda item: "/" not in item[0]):
            if "/" in dim:
                full = dim.strip("/")
                if own.get(full, n) != n or lengths.get(full, n) != n:
                    full = _join(at, full)
            else:
                full = _found(called, at, dim) or ""
                if called.get(full) != n or full in node.paths.values():
                    full = _join(at, dim)
                called[full] = n
            if lengths.setdefault(full, n) != n:
                raise Invalid(
                    f"dimension {dim!r} of length {n} would be {full!r}, whose length is {lengths[full]}",
                    "rename one of them",
                )
            node.paths[dim] = full
    return lengths


def _found(defined: Mapping[str, int], path: str, dim: str) -> str | None:
    """The dimension that a variable of a path finds by a name; None where there is none."""
    while (full := _join(path, dim)) not in defined:
        if not path:
            return None
        path = path.rpartition("/")[0]
    return full


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _dims(given: str | Iterable[Any]) -> set[str]:
    """Names of dimensions, of which one may stand alone."""
    return {given} if isinstance(given, str) else {str(dim) for dim in given}


def _record(
    nodes: Mapping[str, _Node], lengths: Mapping[str, int], asked: str | Iterable[str] | None
) -> str | None:
    """The dimension that is to be the record dimension."""
    if asked is None:
        found = {node.paths[dim] for node in nodes.values() for dim in node.unlimited & node.paths.keys()}
        behind = {dim for node in nodes.values() for v in node.variables.values() for dim in node.dims(v)[1:]}
        # Nobody asked for it now: what the format does not have as a record dimension becomes a fixed one.
        return found.pop() if len(found) == 1 and not found & behind else None
    names = {name.strip("/") for name in _dims(asked)}
    if names - lengths.keys():
        raise Invalid(f"no dimension {sorted(names - lengths.keys())[0]!r} to be the record dimension")
    if len(names) > 1:
        raise Invalid(
            f"{len(names)} unlimited dimensions: {', '.join(sorted(names))}", "netCDF has one at most"
        )
    return next(iter(names), None)


def _encode(variable: xr.Variable, name: str, format: str) -> xr.Variable:
    """Texts as bytes, booleans as bytes, and for old formats integers as narrower ones where they fit."""
    from xarray.backends.netcdf3 import encode_nc3_variable
    from xarray.coding import strings

    if format in NARROW:
        return encode_nc3_variable(variable, name=name)
    for coder in (strings.EncodedStringCoder(allows_unicode=False), strings.CharacterArrayCoder()):
        variable = coder.encode(variable, name=name)
    return variable


def _plain(value: Any, format: str) -> Any:
    """An attribute's value; for old formats integers are 32 bits where they fit."""
    if isinstance(value, str | bytes):
        return value
    found = np.asarray(value)
    if format in NARROW and found.dtype.kind in "iu" and found.dtype.itemsize == 8:
        narrow = found.astype("i4")
        if (narrow == found).all():
            return narrow
    return value


def _write(file: Container, nodes: Iterable[_Node]) -> None:
    sources, targets = [], []
    for node in nodes:
        for name, variable in node.variables.items():
            target = file[_join(node.path, name)]
            if hasattr(variable._data, "dask"):
                sources.append(variable._data)
                targets.append(_Target(target))
            elif variable.size:
                target[...] = variable.values
    if sources:
        import dask.array

        dask.array.store(sources, targets, lock=True)  # type: ignore[arg-type]


class _Target:
    """What dask writes chunks to."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        self.shape = variable.shape
        self.dtype = variable.dtype

    def __setitem__(self, key: Any, values: Any) -> None:
        self._variable[key] = values

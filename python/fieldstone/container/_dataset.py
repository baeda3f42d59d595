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
    `encoding` overrides the variables' own. Of a tree each node is a path. The dimension in `unlimited_dims`,
    without it the one that the Dataset was read with, becomes the record dimension. Lazy arrays are
    computed and written chunk by chunk. Until all is written, a file that was at `path` stays.
    """
    nodes = dict(_nodes(dataset))
    made = {at: _Node(at, node, format, _below(encoding, at)) for at, node in nodes.items()}
    record = _record(made, unlimited_dims)
    with create(path, format=format, index=index) as file:
        defined: dict[str, int] = {}
        for node in made.values():
            node.define(file, record, defined)
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
        self.unlimited = set(dataset.encoding.get("unlimited_dims", ()))
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
        self.sizes = {d: n for v in self.variables.values() for d, n in zip(v.dims, v.shape, strict=True)}

    def define(self, file: Container, record: str | None, defined: dict[str, int]) -> None:
        """Defines what the node holds; a dimension that an enclosing path has is that one."""
        for name, value in self.attrs.items():
            file.put_att(_join(self.path, name), _plain(value, file.format))
        for dim, n in self.sizes.items():
            full = _join(self.path, str(dim))
            if _found(defined, self.path, str(dim)) != n:
                file.def_dim(full, None if full == record else n)
                defined[full] = n
        for name, variable in self.variables.items():
            attrs = {str(k): _plain(v, file.format) for k, v in variable.attrs.items()}
            dims = [str(d) for d in variable.dims]
            file.def_var(_join(self.path, name), variable.dtype, dims, attrs)


def _found(defined: Mapping[str, int], path: str, dim: str) -> int | None:
    """Length of a dimension as a variable of a path finds it; None where there is none."""
    while (n := defined.get(_join(path, dim))) is None and path:
        path = path.rpartition("/")[0]
    return n


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _record(nodes: Mapping[str, _Node], asked: str | Iterable[str] | None) -> str | None:
    """The dimension that is to be the record dimension."""
    if asked is not None:
        names = {asked} if isinstance(asked, str) else set(asked)
    else:
        names = {_join(at, dim) for at, node in nodes.items() for dim in node.unlimited if dim in node.sizes}
    known = {_join(at, str(dim)) for at, node in nodes.items() for dim in node.sizes}
    if asked is not None and names - known:
        raise Invalid(f"no dimension {sorted(names - known)[0]!r} to be the record dimension")
    if len(names) > 1:
        if asked is None:
            return None
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

"""Builds a Dataset from described variables: CF's decoding, lazy variables, coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import xarray as xr
from xarray import conventions

from fieldstone._xarray.arrays import Parts
from fieldstone._xarray.lazy import Variable
from fieldstone._xarray.source import Source


def dataset(
    source: Source, parts: Parts, drop_variables: str | Iterable[str] | None, decoding: dict[str, Any]
) -> xr.Dataset:
    """A Dataset without indexes, decoded if anything is encoded."""
    drop = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
    variables, attrs, coords = parts.variables, parts.attrs, set(parts.coords)
    if parts.plain:
        variables = {name: v for name, v in variables.items() if name not in drop}
    else:
        variables, attrs, named = conventions.decode_cf_variables(
            variables, attrs, drop_variables=drop, **decoding
        )
        coords |= set(named)
    held: dict[Any, xr.Variable] = {}
    for name, v in variables.items():
        if not isinstance(v, xr.IndexVariable):
            v = Variable(v._dims, v._data, v._attrs, v._encoding, fastpath=True)
        held[name] = v
    indexed = {n: v for n, v in held.items() if n in coords or v.dims == (n,)}
    data = {n: v for n, v in held.items() if n not in indexed}
    made = xr.Dataset(data, coords=xr.Coordinates(indexed, indexes={}), attrs=attrs)
    if parts.select:
        made = made.isel({dim: index for dim, index in parts.select.items() if dim in made.dims})
    made.encoding = {"unlimited_dims": parts.unlimited, "source": source.url}
    return made


def with_indexes(made: xr.Dataset) -> xr.Dataset:
    """The Dataset with an index for each dimension coordinate, as ``xarray.open_dataset`` makes them."""
    found = {name: c.variable for name, c in made.coords.items() if c.dims == (name,)}
    return made.assign_coords(xr.Coordinates(found))

"""Cuts boxes in coordinates out of a Dataset: grids of one and of two dimensions, across the seam.

A range refers to a coordinate by its name or standard name, or as ``lat`` and ``lon`` if it is a latitude or
longitude, by the same rules as queries. Ranges are in the coordinate's own unit, both ends included;
longitudes wrap around. A slice counts elements, half-open.

Along one dimension cells are selected, and those of a range that crosses the seam are ordered from west to
east. For coordinates of several dimensions, the rectangle around the selected cells remains; others in it are
masked.

Invariant: a cell is kept if it satisfies all ranges for which its variable has coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._native import _Catalog, _CoordinateAxis
from fieldstone.errors import Invalid


@dataclass
class Cells:
    """The selected part of each dimension, and the selected cells of several dimensions."""

    along: dict[str, np.ndarray] = field(default_factory=dict)
    masks: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)

    def take(self, dim: str, chosen: np.ndarray) -> None:
        """Narrows a dimension to elements selected both before and now, in the order of `chosen`."""
        before = self.along.get(dim)
        self.along[dim] = chosen if before is None else chosen[np.isin(chosen, before)]


def cut(data: xr.Dataset, box: Any) -> xr.Dataset:
    """The part of a Dataset in a box; Invalid if it lacks the dimension or coordinate of a range."""
    found = cells(data.coords, dict(data.sizes), box)
    data = data.isel({dim: chosen for dim, chosen in found.along.items() if dim in data.dims})
    for dims, mask in found.masks.items():
        lies = xr.DataArray(mask, dims=dims).isel({d: found.along[d] for d in dims if d in found.along})
        around = {
            dim: np.flatnonzero(lies.any([other for other in dims if other != dim]).values) for dim in dims
        }
        spans = {dim: slice(at[0], at[-1] + 1) if len(at) else slice(0, 0) for dim, at in around.items()}
        data, lies = data.isel(spans), lies.isel(spans)
        if not bool(lies.all()):
            masked = {
                name: variable.where(lies)
                for name, variable in data.data_vars.items()
                if set(dims) <= set(variable.dims)
            }
            data = data.assign({n: v.transpose(*data[n].dims) for n, v in masked.items()})
    return data


def cells(coords: Mapping[Any, xr.DataArray], sizes: dict[Any, int], box: Any) -> Cells:
    """The cells of a box, for coordinates and dimensions with these lengths."""
    found = Cells()
    for name, physical, (low, high) in _Catalog.ranges(box):
        if not physical:
            if name not in sizes:
                raise Invalid(f"there is no dimension {name!r}", f"there are {', '.join(map(str, sizes))}")
            found.take(str(name), np.arange(sizes[name])[slice(low, high)])
            continue
        meant = [coord for coord in coords.values() if coord.ndim and _axis(coord).is_called(str(name))]
        if not meant:
            have = ", ".join(str(n) for n, c in coords.items() if c.ndim) or "none"
            raise Invalid(f"there is no coordinate {name!r} along a dimension", f"there are {have}")
        for coord in meant:
            inside = _inside(coord, low, high)
            dims = tuple(map(str, coord.dims))
            if len(dims) == 1:
                found.take(dims[0], _in_order(np.flatnonzero(inside), coord))
            else:
                before = found.masks.get(dims)
                found.masks[dims] = inside if before is None else before & inside
    return found


def _axis(coord: xr.DataArray) -> _CoordinateAxis:
    attrs = coord.attrs
    return _CoordinateAxis(str(coord.name), str(attrs.get("standard_name", "")), str(attrs.get("units", "")))


def _inside(coord: xr.DataArray, low: float, high: float) -> np.ndarray:
    values = np.ascontiguousarray(coord.values, "f8")
    return np.frombuffer(_axis(coord).within(low, high, values), "?").reshape(values.shape)


def _in_order(chosen: np.ndarray, coord: xr.DataArray) -> np.ndarray:
    """The selected part of a dimension; longitudes in two parts begin with the one after the gap."""
    gaps = np.flatnonzero(np.diff(chosen) > 1)
    return np.roll(chosen, -int(gaps[0]) - 1) if len(gaps) == 1 and _axis(coord).is_longitude else chosen

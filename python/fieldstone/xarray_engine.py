"""The xarray engine ``fieldstone``: a store as a lazy Dataset.

* A store (or request) that holds one ingested netCDF file opens as that file: its dimensions,
  coordinates, attributes, packing and types, from the header of ``spec/netcdf-header.md``.
* Array fields written by key get a leading dimension per keyword with several values.
* GRIB fields get their dimensions from the MARS axes and their values from eccodes.

Nothing is read before it is asked for, except dimension coordinates and, for GRIB, one message per
variable, which alone tells the grid. Arrays hold no lock and can be pickled; all of a Dataset reads
the one snapshot that was current when it was opened.

Example::

    ds = xarray.open_dataset("forecast.store", engine="fieldstone", request={"run": "era5"})
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xarray as xr
from xarray.backends import AbstractDataStore, BackendEntrypoint, StoreBackendEntrypoint

from fieldstone._xarray import arrays, grib, netcdf
from fieldstone._xarray.source import Source

MARKER = "fieldstone.store"
"""The file that makes a folder a store."""


class FieldstoneBackend(BackendEntrypoint):
    """``xarray.open_dataset(url, engine="fieldstone", request=…)``."""

    description = "Open a Fieldstone store"
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "request",
        "at",
        "group",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether this is a store: a ``fieldstone:`` URL, or a folder that says so."""
        try:
            path = os.fspath(filename_or_obj)
        except TypeError:
            return False
        if not isinstance(path, str):
            return False
        return path.startswith("fieldstone:") or (Path(path) / MARKER).is_file()

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool | None = None,
        decode_times: Any = None,
        concat_characters: bool | None = None,
        decode_coords: Any = None,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        request: Any = None,
        at: Any = None,
        group: str | None = None,
    ) -> xr.Dataset:
        """Opens what `request` selects of a store, as it was `at` a version, decoded by CF's rules."""
        source = Source.open(os.fspath(filename_or_obj), at)
        given = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        decoding = {name: value for name, value in given.items() if value is not None}
        return _dataset(source, request, group, drop_variables, decoding)


def to_xarray(store: Any, request: Any = None) -> xr.Dataset:
    """What `request` selects of an open store as a lazy Dataset."""
    dataset = _dataset(Source(store), request, None, None, {})
    # xarray.open_dataset gives dimension coordinates their indexes; here nobody else does.
    indexed = {name: c.variable for name, c in dataset.coords.items() if c.dims == (name,)}
    return dataset.assign_coords(xr.Coordinates(indexed))


def _dataset(
    source: Source, request: Any, group: str | None, drop_variables: Any, decoding: dict[str, Any]
) -> xr.Dataset:
    axes = source.store.axes({} if request is None else request)
    if "param" in axes:
        parts = grib.describe(source, request)
    elif (headers := netcdf.headers(source, axes)) is not None:
        parts = netcdf.describe(source, request, headers, group)
    else:
        parts = arrays.describe(source, request)
    dataset = StoreBackendEntrypoint().open_dataset(
        _Parts(source, parts), drop_variables=drop_variables, **decoding
    )
    if parts.select:
        dataset = dataset.isel({dim: index for dim, index in parts.select.items() if dim in dataset.dims})
    dataset = dataset.set_coords([name for name in parts.coords if name in dataset.variables])
    dataset.encoding["source"] = source.url
    return dataset


class _Parts(AbstractDataStore):
    """What was described, in the form that xarray decodes."""

    def __init__(self, source: Source, parts: arrays.Parts) -> None:
        self._source = source
        self._parts = parts

    def get_variables(self) -> dict[str, xr.Variable]:
        return self._parts.variables

    def get_attrs(self) -> dict[str, Any]:
        return self._parts.attrs

    def get_dimensions(self) -> dict[str, int]:
        return {d: n for v in self._parts.variables.values() for d, n in v.sizes.items()}

    def get_encoding(self) -> dict[str, Any]:
        return {"unlimited_dims": self._parts.unlimited}

    def close(self) -> None:
        self._source.close()

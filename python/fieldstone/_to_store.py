"""``fieldstone.to_store`` writes xarray Datasets into a store, whole or region by region, also with dask."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ._native import open
from ._store import Store
from ._transaction import Transaction
from .errors import Invalid

if TYPE_CHECKING:  # xarray is imported where it is used
    import xarray as xr


def to_store(
    dataset: xr.Dataset | xr.DataArray | xr.DataTree,
    store: Store | Transaction | str | os.PathLike[str],
    key: Mapping[str, Any] | None = None,
    *,
    region: Mapping[str, slice | Literal["auto"]] | Literal["auto"] | None = None,
    compute: bool = True,
    step_dim: str | Literal[False] | None = None,
    overwrite: bool = False,
    append_dim: str | None = None,
) -> Any:
    """Writes a Dataset; ``xarray.open_dataset(url, engine="fieldstone", request=key)`` reads it back.

    `store` is an open store, a URL, or a transaction, whose commit then makes everything visible. `key` has
    ``run`` and any further keywords of the fields, such as ``{"run": "a", "member": 3}``.

    A variable becomes one field, or, if its first dimension is unlimited or has a coordinate that is not
    horizontal (time, level), one field for each index of it, which is ``step``. `step_dim` names the
    dimension to split along instead; False splits nothing. Values are encoded as ``to_netcdf`` does.

    Dask arrays are written block by block, in parallel, by threads, processes or a cluster; their blocks need
    not match the store's. The whole Dataset becomes visible at once when the call returns, or, after an
    error, nothing of it. Conflict if the run already has fields, unless `overwrite` is true.

    `region` writes into arrays of an existing run, at ``{"x": slice(10, 20)}``, or with "auto" at the place
    that has the same values of coordinates. Any number of processes may do so at the same time with any
    regions; if they overlap, the one that finishes last wins. Variables need at least one of the region's
    dimensions; coordinates without one are skipped.

    `append_dim`, such as ``append_dim="time"``, appends to a run along that dimension: all variables of the
    run along it grow together and keep their encoding, and everything becomes visible at once.

    Labels (values of coordinates) that both the run and the Dataset have are compared: Invalid names a
    coordinate with other values, or another order, in the run. A value that would read back as another one,
    because it does not fit the packing, type or units, is also Invalid, with its variable and the range that
    fits.

    With ``compute=False`` the header, arrays that are not dask arrays, and empty arrays become visible at
    once, and the call returns a dask Delayed, which writes the dask arrays; each block is visible when it is
    written.

    Raises Invalid for content without a form in netCDF, naming the variable or attribute, and in regions for
    variables, dimensions, types and places that do not fit; NotFound if `region` finds no Dataset.
    """
    try:
        import xarray as xr
    except ImportError:
        raise Invalid("to_store needs xarray", "pip install 'fieldstone[xarray]'") from None
    from ._writing.append import write_append
    from ._writing.region import write_region
    from ._writing.whole import write_whole

    base = _base(key)
    if isinstance(dataset, xr.DataArray):
        dataset = _named(dataset)
    if not isinstance(dataset, xr.Dataset | xr.DataTree):
        raise Invalid(f"{type(dataset).__name__} is not a Dataset, DataArray or DataTree")
    part = "region" if region is not None else "append_dim" if append_dim is not None else None
    if region is not None and append_dim is not None:
        raise Invalid("region and append_dim exclude each other", "give one: append_dim writes after the end")
    if part and not isinstance(dataset, xr.Dataset):
        raise Invalid(f"{part} needs a Dataset, and this is a DataTree", "write its Datasets one by one")
    if part and (overwrite or step_dim is not None):
        raise Invalid(f"{part} excludes overwrite and step_dim, which the run determines")
    if not isinstance(store, Store | Transaction):
        with open(store) as opened:
            return to_store(
                dataset,
                opened,
                key,
                region=region,
                compute=compute,
                step_dim=step_dim,
                overwrite=overwrite,
                append_dim=append_dim,
            )
    if region is not None:
        return write_region(dataset, store, base, region, compute)
    if append_dim is not None:
        return write_append(dataset, store, base, append_dim, compute)
    return write_whole(dataset, store, base, compute, step_dim, overwrite)


def _base(key: Mapping[str, Any] | None) -> dict[str, Any]:
    """The keywords of all fields."""
    if not isinstance(key, Mapping) or key.get("run") is None:
        raise Invalid("key has no run", 'give the run to write to: key={"run": "a"}')
    for keyword in ("variable", "step"):
        if keyword in key:
            raise Invalid(f"{keyword} comes from the Dataset and cannot be given in the key")
    return {keyword: value for keyword, value in key.items() if value is not None}


def _named(array: xr.DataArray) -> xr.Dataset:
    if array.name is None:
        raise Invalid("the DataArray has no name", 'give it one: array.rename("t")')
    try:
        return array.to_dataset()
    except ValueError as error:
        raise Invalid(str(error), "array.rename changes its name") from None

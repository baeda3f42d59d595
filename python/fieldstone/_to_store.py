"""``fieldstone.to_store``: xarray Datasets into a store, whole or region by region, also by dask."""

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
) -> Any:
    """Writes a Dataset; ``xarray.open_dataset(url, engine="fieldstone", request=key)`` gives it back.

    `store` is an open store, a URL, or a transaction: then all becomes visible when that is committed.
    `key` has ``run`` and any further keywords of the fields, as ``{"run": "a", "member": 3}``.

    A variable becomes a field, or, where its first dimension is unlimited or has a coordinate that does not
    run along the ground (time, level), a field per index of it, which is ``step``. `step_dim` names the
    dimension to split along instead; False splits nothing. Values are encoded as ``to_netcdf`` does.

    Dask arrays are written block by block, in parallel, in threads, processes or on a cluster; their blocks
    need not fit the store's. The whole Dataset becomes visible at once when this returns, or, after an
    error, nothing of it. Conflict where the run has fields already, unless `overwrite` is true.

    `region` writes into arrays of a run that is there, at ``{"x": slice(10, 20)}``, or "auto", which finds
    the place by the coordinates' values. Any number of processes may do so at the same time, wherever their
    regions lie; where they overlap, the one that finished later wins. Variables need at least one of the
    region's dimensions; coordinates without one are passed over.

    With ``compute=False`` the header, what is no dask array, and empty arrays become visible at once, and a
    dask Delayed is returned, which writes the dask arrays; each block is visible when it is written.

    Raises Invalid for what has no form in netCDF, naming the variable or attribute; in regions for
    variables, dimensions, types and places that do not fit; NotFound where `region` finds no Dataset.
    """
    try:
        import xarray as xr
    except ImportError:
        raise Invalid("to_store needs xarray", "pip install 'fieldstone[xarray]'") from None
    from ._writing.region import write_region
    from ._writing.whole import write_whole

    base = _base(key)
    if isinstance(dataset, xr.DataArray):
        dataset = _named(dataset)
    if not isinstance(dataset, xr.Dataset | xr.DataTree):
        raise Invalid(f"{type(dataset).__name__} is no Dataset, DataArray or DataTree")
    if region is not None and not isinstance(dataset, xr.Dataset):
        raise Invalid("a region of a DataTree cannot be written", "write its Datasets one by one")
    if region is not None and (overwrite or step_dim is not None):
        raise Invalid("region goes with neither overwrite nor step_dim: the run decides")
    if not isinstance(store, Store | Transaction):
        with open(store) as opened:
            return to_store(
                dataset, opened, key, region=region, compute=compute, step_dim=step_dim, overwrite=overwrite
            )
    if region is not None:
        return write_region(dataset, store, base, region, compute)
    return write_whole(dataset, store, base, compute, step_dim, overwrite)


def _base(key: Mapping[str, Any] | None) -> dict[str, Any]:
    """The keywords of all fields."""
    if not isinstance(key, Mapping) or key.get("run") is None:
        raise Invalid("key has no run", 'say under which run to write: key={"run": "a"}')
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
        raise Invalid(str(error), "array.rename gives it another name") from None

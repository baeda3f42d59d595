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
    append_dim: str | None = None,
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

    `append_dim` writes behind what a run holds along that dimension, ``append_dim="time"``: all of the run's
    variables along it grow together, encoded as they are, and all becomes visible at once.

    What a run and the Dataset both have labels for (values of coordinates) is compared: Invalid names a
    coordinate that has other values, or another order, in the run. A value that reads back as another one,
    as it does not fit the packing, type or units, is Invalid, too, with its variable and the range that fits.

    With ``compute=False`` the header, what is no dask array, and empty arrays become visible at once, and a
    dask Delayed is returned, which writes the dask arrays; each block is visible when it is written.

    Raises Invalid for what has no form in netCDF, naming the variable or attribute; in regions for
    variables, dimensions, types and places that do not fit; NotFound where `region` finds no Dataset.
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
        raise Invalid(f"{type(dataset).__name__} is no Dataset, DataArray or DataTree")
    part = "region" if region is not None else "append_dim" if append_dim is not None else None
    if region is not None and append_dim is not None:
        raise Invalid(
            "region and append_dim do not go together", "give either: append_dim writes behind the end"
        )
    if part and not isinstance(dataset, xr.Dataset):
        raise Invalid(f"{part} is for a Dataset, and this is a DataTree", "write its Datasets one by one")
    if part and (overwrite or step_dim is not None):
        raise Invalid(f"{part} goes with neither overwrite nor step_dim: the run decides")
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

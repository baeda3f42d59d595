"""A store's arrays as Zarr 3, for programs that read Zarr: read-only, nothing copied.

The arrays are those of ``store.to_xarray``, so that fields become variables in one way for all readers.
:mod:`.layout` turns described variables into nodes (metadata documents, grids of chunks), :mod:`.store`
serves zarr-python. A reader sees one version of the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # zarr and xarray are optional
    from fieldstone._native import _Request
    from fieldstone._store import Store
    from fieldstone._zarr.store import FieldstoneZarr


def zarr_store(
    store: Store | str | PathLike[str],
    request: _Request = None,
    *,
    tree: bool = False,
    chunks: Mapping[str, int] | Literal["stored"] | None = None,
) -> FieldstoneZarr:
    """The fields that `request` selects as a Zarr 3 store: a read-only ``zarr.abc.store.Store`` (needs
    ``fieldstone[zarr]``). `store` is an open store, or the URL of one.

    Its arrays are the variables of ``store.to_xarray(request)``, with attributes and coordinates:
    ``xarray.open_zarr(fst.zarr_store(store, request))``. Keywords with several values are leading dimensions,
    with one field in each chunk. With ``tree=True`` there is a group for each node of ``open_datatree``.

    Chunks are read on demand. They are the stored blocks of a field, with small ones combined up to 1 MiB;
    ``chunks="stored"`` keeps each block separate, and a mapping of dimensions to extents cuts those
    dimensions accordingly, whatever is stored. Everything is of the version that is visible now, also after
    unpickling; a store in memory stays in its process.

    Raises NotFound if nothing is selected, and Invalid if the fields do not make one Dataset (see `tree`).
    """
    from fieldstone._zarr.store import FieldstoneZarr

    return FieldstoneZarr(store, request, tree=tree, chunks=chunks)

"""A store's arrays as Zarr 3, for programs that read Zarr: read-only, nothing copied.

The arrays are those of ``store.to_xarray``: one way to lay out fields as variables, whoever reads them.
:mod:`.layout` makes nodes of what was described (metadata documents, grids of chunks), :mod:`.store` answers
zarr-python. Whatever a reader sees is of one version of the store.
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
    """What `request` selects as a Zarr 3 store: a read-only ``zarr.abc.store.Store`` (needs
    ``fieldstone[zarr]``). `store` is an open store, or the URL of one.

    Its arrays are the variables of ``store.to_xarray(request)``, with attributes and coordinates:
    ``xarray.open_zarr(fst.zarr_store(store, request))``. Keywords with several values are leading dimensions,
    one field to a chunk. With ``tree=True`` there is a group for each node that ``open_datatree`` gives.

    Chunks are read when they are asked for. They are the blocks of a field as they are stored, small ones
    taken together up to 1 MiB; ``chunks="stored"`` takes each alone, and a mapping of dimensions to extents
    cuts those dimensions so, whatever is stored. Everything is of the version that is visible now, also where
    it is unpickled; a store in memory stays in its process.

    Raises NotFound where nothing is selected, and Invalid where fields make no Dataset (see `tree`).
    """
    from fieldstone._zarr.store import FieldstoneZarr

    return FieldstoneZarr(store, request, tree=tree, chunks=chunks)

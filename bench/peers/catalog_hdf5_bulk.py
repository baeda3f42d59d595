"""Attributes in packet tables, whole tables at once; see `catalog_hdf5`."""

from peers.catalog_hdf5 import Bulk as Store

__all__ = ["Store"]

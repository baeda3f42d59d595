"""Attributes in SQLite with an index on a curve key; see `catalog_sqlite`."""

from peers.catalog_sqlite import Curve as Store

__all__ = ["Store"]

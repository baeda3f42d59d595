"""Fieldstone: one store for a simulation's fields, their metadata and their provenance.

::

    import fieldstone as fst

    with fst.open("forecast.store") as store:
        store.archive({"run": "a", "variable": "t", "step": 6}, array)

    fst.open("forecast.store", mode="r").get({"run": "a", "variable": "t", "step": 6})

Requests are MARS text (``"run=a,step=0/to/24/by/6"``) or mappings of keywords to values, lists and
ranges. Errors are ``fieldstone.Error`` with a kind and a hint.
"""

from collections.abc import Mapping as _Mapping

from . import _exit
from ._checkpoint import checkpoint_interval, checkpoint_overhead
from ._fields import FieldWriter
from ._ingest import ingest
from ._native import Entry, Field, Fields, Key, Listing, Request, Store, Table, __version__, open
from ._to_store import to_store
from ._transaction import Transaction
from ._transfer import copy, move
from .errors import Conflict, Corrupt, Denied, Error, Internal, Invalid, NotFound, Unavailable
from .reports import (
    CheckpointReport,
    Damage,
    ExportReport,
    IngestReport,
    Skipped,
    Stats,
    Status,
    Taken,
    TransactionStatus,
    TransferReport,
    VerifyReport,
    WriterStatus,
)

__all__ = [
    "CheckpointReport",
    "Conflict",
    "Corrupt",
    "Damage",
    "Denied",
    "Entry",
    "Error",
    "ExportReport",
    "Field",
    "FieldWriter",
    "Fields",
    "IngestReport",
    "Internal",
    "Invalid",
    "Key",
    "Listing",
    "NotFound",
    "Request",
    "Skipped",
    "Stats",
    "Status",
    "Store",
    "Table",
    "Taken",
    "Transaction",
    "TransactionStatus",
    "TransferReport",
    "Unavailable",
    "VerifyReport",
    "WriterStatus",
    "__version__",
    "checkpoint_interval",
    "checkpoint_overhead",
    "copy",
    "ingest",
    "move",
    "open",
    "to_store",
]

_Mapping.register(Key)
_exit.install()

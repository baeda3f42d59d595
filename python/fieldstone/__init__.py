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
from ._array_files import (
    ArrayTable,
    ArrayTables,
    History,
    Import,
    ImportedVariable,
    JobMesh,
    Mesh,
    Partition,
)
from ._arrays import ArrayGroup, ArrayJob, JobReport, SetInfo
from ._backup import backup, promote
from ._checkpoint import checkpoint_interval, checkpoint_overhead
from ._execution import Execution, execution
from ._fields import FieldWriter
from ._graph import Edge, Graph, GraphCheck, GraphStats, Stamp, Vertex
from ._hand_over import hand_over, hand_overs
from ._hits import Hits
from ._hold import Hold
from ._ingest import ingest
from ._lineage import Lineage
from ._native import (
    Entry,
    Field,
    Fields,
    Hit,
    Key,
    Listing,
    Region,
    Related,
    Request,
    Table,
    Test,
    View,
    Where,
    Writer,
    __version__,
    open,
)
from ._partitions import Partitions, Slot, SlotStep
from ._retention import Rules
from ._rows import Box, Rows, Step, Tag, Variable
from ._run import Run
from ._store import Store
from ._terms import (
    above,
    at_least,
    at_most,
    below,
    between,
    contains,
    covers,
    equal,
    exact,
    exists,
    glob,
    isin,
    overlaps,
    related,
    where,
    within,
)
from ._to_store import to_store
from ._transaction import Transaction
from ._transfer import copy, move
from ._travel import Explanation, Path, Travel, Travelled, TravelStep, VertexSet
from ._values import FloatRange, IntRange, float_range, int_range, uniform
from ._views import Moved, block, cyclic, irregular, joined, pio_decomposition
from ._zarr import zarr_store
from .errors import Conflict, Corrupt, Denied, Error, Internal, Invalid, NotFound, Unavailable
from .reports import (
    AcceptanceReport,
    Advice,
    ArchiveReport,
    BackupReport,
    CheckpointReport,
    CompactReport,
    Damage,
    DatasetLock,
    DeleteReport,
    ErasureReport,
    ExportReport,
    HandOverInfo,
    HandOverReport,
    HiddenFields,
    HoldInfo,
    IngestReport,
    LeftBehind,
    LeftLog,
    MaintainReport,
    MaintainStep,
    MendedPart,
    OverlaidFields,
    PointedFields,
    PrefetchReport,
    Problem,
    PurgeReport,
    RebuildReport,
    ReindexReport,
    RepairReport,
    RetentionRule,
    Skipped,
    Stats,
    Status,
    Taken,
    TransactionStatus,
    TransferReport,
    Unreadable,
    VerifyReport,
    WipeReport,
    WriterStatus,
    XdmfReport,
)

__all__ = [
    "AcceptanceReport",
    "Advice",
    "ArchiveReport",
    "ArrayGroup",
    "ArrayJob",
    "ArrayTable",
    "ArrayTables",
    "BackupReport",
    "Box",
    "CheckpointReport",
    "CompactReport",
    "Conflict",
    "Corrupt",
    "Damage",
    "DatasetLock",
    "DeleteReport",
    "Denied",
    "Edge",
    "Entry",
    "ErasureReport",
    "Error",
    "Execution",
    "Explanation",
    "ExportReport",
    "Field",
    "FieldWriter",
    "Fields",
    "FloatRange",
    "Graph",
    "GraphCheck",
    "GraphStats",
    "HandOverInfo",
    "HandOverReport",
    "HiddenFields",
    "History",
    "Hit",
    "Hits",
    "Hold",
    "HoldInfo",
    "Import",
    "ImportedVariable",
    "IngestReport",
    "IntRange",
    "Internal",
    "Invalid",
    "JobMesh",
    "JobReport",
    "Key",
    "LeftBehind",
    "LeftLog",
    "Lineage",
    "Listing",
    "MaintainReport",
    "MaintainStep",
    "MendedPart",
    "Mesh",
    "Moved",
    "NotFound",
    "OverlaidFields",
    "Partition",
    "Partitions",
    "Path",
    "PointedFields",
    "PrefetchReport",
    "Problem",
    "PurgeReport",
    "RebuildReport",
    "Region",
    "ReindexReport",
    "Related",
    "RepairReport",
    "Request",
    "RetentionRule",
    "Rows",
    "Rules",
    "Run",
    "SetInfo",
    "Skipped",
    "Slot",
    "SlotStep",
    "Stamp",
    "Stats",
    "Status",
    "Step",
    "Store",
    "Table",
    "Tag",
    "Taken",
    "Test",
    "Transaction",
    "TransactionStatus",
    "TransferReport",
    "Travel",
    "TravelStep",
    "Travelled",
    "Unavailable",
    "Unreadable",
    "Variable",
    "VerifyReport",
    "Vertex",
    "VertexSet",
    "View",
    "Where",
    "WipeReport",
    "Writer",
    "WriterStatus",
    "XdmfReport",
    "__version__",
    "above",
    "at_least",
    "at_most",
    "backup",
    "below",
    "between",
    "block",
    "checkpoint_interval",
    "checkpoint_overhead",
    "contains",
    "copy",
    "covers",
    "cyclic",
    "equal",
    "exact",
    "execution",
    "exists",
    "float_range",
    "glob",
    "hand_over",
    "hand_overs",
    "ingest",
    "int_range",
    "irregular",
    "isin",
    "joined",
    "move",
    "open",
    "overlaps",
    "pio_decomposition",
    "promote",
    "related",
    "to_store",
    "uniform",
    "where",
    "within",
    "zarr_store",
]

_Mapping.register(Key)
_exit.install()

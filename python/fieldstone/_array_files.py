"""Imports that a job reads, and the meshes, histories and SDM tables that a store keeps for jobs.

Calls on imports and on a job's meshes are collective; calls on those of a store concern only this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from .errors import Invalid, NotFound

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import xarray as xr

    from ._native import View, _JobImport, _JobMesh, _Partition
    from ._store import Store

_LOCATIONS = ("node", "edge", "face", "volume")


class ImportedVariable:
    """A variable of an imported file."""

    def __init__(self, owner: Import, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._owner = owner
        self.name = name
        self.dtype = dtype
        self.shape = shape

    def read(
        self, view: View | None = None, into: np.ndarray[Any, Any] | None = None
    ) -> np.ndarray[Any, Any]:
        """The part that this rank holds by `view`; without one, its share of a balanced cut of the first
        dimension. Collective.
        """
        return self._owner._native.read(self.name, view, into)

    def __repr__(self) -> str:
        return f"<fieldstone.ImportedVariable {self.name!r}: {self.dtype} {self.shape}>"


class Import:
    """A file from outside that all ranks have open. Made by ``job.import_file``. A mapping of names to
    variables."""

    def __init__(self, path: str, native: _JobImport) -> None:
        self.path = path
        self._native = native
        self._variables = {
            name: ImportedVariable(self, name, dtype, tuple(shape))
            for name, dtype, shape in native.variables()
        }

    def __getitem__(self, name: str) -> ImportedVariable:
        try:
            return self._variables[name]
        except KeyError:
            raise NotFound(
                f"the import of {self.path} has no variable {name!r}",
                f"its variables are {', '.join(self._variables)}",
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def keys(self) -> Sequence[str]:
        """Names of its variables."""
        return list(self._variables)

    def close(self) -> None:
        """Closes the file. Collective."""
        self._native.close()


class JobMesh:
    """A mesh that all ranks of a job have open. Made by ``job.create_mesh`` and ``job.mesh``."""

    def __init__(self, native: _JobMesh) -> None:
        self._native = native
        self.name, counts, self._sum, path, arrays = native.info()
        self.counts = dict(zip(_LOCATIONS, counts, strict=True))
        """Number of nodes, edges, faces and volumes, by location."""
        self.path = str(path)
        """Path of its file."""
        self.arrays = tuple(arrays)
        """Its arrays: those of x, y, z, edges, faces and volumes that it has."""

    @property
    def checksum(self) -> str:
        """Checksum of its content."""
        return self._sum.hex()

    def read(
        self, array: str, view: View | None = None, into: np.ndarray[Any, Any] | None = None
    ) -> np.ndarray[Any, Any]:
        """An array by `view`; without one, this rank's share of a balanced cut. Node numbers begin at 0.
        Collective."""
        return self._native.read(array, view, into)

    def close(self) -> None:
        """Closes its file. Collective."""
        self._native.close()

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {word}s" for word, count in self.counts.items() if count)
        return f"<fieldstone.JobMesh {self.name!r}: {counts}>"


class Partition:
    """One rank's part of an unstructured mesh. Made by ``job.partition``. Its arrays are read-only."""

    def __init__(self, native: _Partition) -> None:
        self._native = native
        self.nodes: np.ndarray[Any, Any] = native.nodes()
        """Global numbers of nodes from 0: the rank's own, ascending, then ghosts, ascending. int64."""
        self.edges: np.ndarray[Any, Any] = native.edges()
        """Global numbers of all edges with an end of this rank's own: those whose first end is, ascending,
        then the others, ascending. int64."""
        self.ends: np.ndarray[Any, Any] = native.ends()
        """Both ends of each edge, as positions in ``nodes``: shape (edges, 2), int32 (uint32 from 2**31 nodes
        on)."""

    @property
    def owned(self) -> int:
        """Number of this rank's own nodes, which come first."""
        return self._native.owned

    @property
    def owned_edges(self) -> int:
        """Number of edges whose first end is this rank's own, which come first."""
        return self._native.owned_edges

    @property
    def source(self) -> str:
        """ "computed", "edges" (from edges that an earlier run kept) or "parts" (finished parts)."""
        return self._native.source

    @property
    def ignored(self) -> list[str]:
        """Kept files that could not be used, with the reason."""
        return self._native.ignored

    @property
    def node_view(self) -> View:
        """The view of this rank on an array at the nodes: it writes its own nodes and also reads ghosts."""
        return self._native.node_view

    @property
    def edge_view(self) -> View:
        """The view of this rank on an array at the edges."""
        return self._native.edge_view

    def update(self, *arrays: np.ndarray[Any, Any]) -> None:
        """Copies the owners' values into ghosts, in place, in arrays at the nodes: shape (nodes, ...).
        Collective."""
        self._native.update(list(arrays))

    def __repr__(self) -> str:
        ghosts, edges = len(self.nodes) - self.owned, len(self.edges)
        return f"<fieldstone.Partition {self.source}: {self.owned} nodes, {ghosts} ghosts, {edges} edges>"


class _MeshRow(NamedTuple):
    name: str
    """Its name."""
    counts: dict[str, int]
    """Number of nodes, edges, faces and volumes, by location."""
    checksum: str
    """Checksum of its content."""
    path: str
    """Path of its file, which has UGRID's conventions."""


class Mesh(_MeshRow):
    """A mesh that a store keeps. Made by ``store.mesh`` and ``store.meshes``."""

    _sums: tuple[int, int, list[int]] | None = None

    def to_xarray(self) -> xr.Dataset:
        """Its file as an xarray Dataset (needs the extra ``fieldstone[xarray]``).

        The call first reads the whole file and compares it with the checksums in the store: Corrupt names the
        file and the bytes that differ.
        """
        import xarray as xr

        _native._check_mesh(self.path, self._sums)
        return xr.open_dataset(self.path)


class History(NamedTuple):
    """A partition that a store keeps for later runs. Made by ``store.histories``."""

    path: str
    """Path of its file."""
    mesh: str
    """Checksum of the mesh."""
    nodes: int
    """Nodes of the mesh."""
    edges: int
    """Edges of the mesh."""
    ranks: int | None
    """The number of ranks of finished parts; None for edges, which serve any number."""


class ArrayTable:
    """One of SDM's six tables."""

    def __init__(self, name: str, columns: list[str], rows: list[list[Any]]) -> None:
        self.name = name
        self.columns = tuple(columns)
        self.rows = [dict(zip(columns, row, strict=True)) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def to_arrow(self) -> pa.Table:
        """An Arrow table (needs pyarrow)."""
        import pyarrow as pa

        return pa.table({name: [row[name] for row in self.rows] for name in self.columns})

    def __repr__(self) -> str:
        return f"<fieldstone.ArrayTable {self.name}: {len(self.rows)} rows of {', '.join(self.columns)}>"


class ArrayTables:
    """The six tables of SDM's database, as views over the catalog of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def _table(self, name: str) -> ArrayTable:
        return ArrayTable(name, *_native._array_table(self._store, name))

    def run_table(self) -> ArrayTable:
        """Runs with their parameters."""
        return self._table("run_table")

    def access_pattern_table(self) -> ArrayTable:
        """Sets of groups: type, order, view, pattern, level."""
        return self._table("access_pattern_table")

    def execution_table(self) -> ArrayTable:
        """Flushed steps of sets, with `file_name` and `file_offset`: where the elements of each begin.

        A file is named relative to the store's folder; for a step in several pieces it is the file of the
        first piece. The catalog's view of this name, for SQL, lacks these two columns, because only the
        store's index knows locations.
        """
        table = self._table("execution_table")
        catalog = self._store._catalog()
        for row in table.rows:
            key = catalog.key_of((row["project"] or None, row["runid"]), row["dataset"], row["timestep"])
            places = (str(entry.location) for entry in self._store.list(dict(key)) if entry.location)
            name, _, offset = next(places, "").rpartition(":")
            row["file_name"], row["file_offset"] = name or None, int(offset) if offset else None
        table.columns = (*table.columns, "file_name", "file_offset")
        return table

    def import_table(self) -> ArrayTable:
        """Files from outside, and their variables."""
        return self._table("import_table")

    def index_table(self) -> ArrayTable:
        """Kept partitions."""
        return self._table("index_table")

    def index_history_table(self) -> ArrayTable:
        """The contents of kept partitions, for each rank."""
        return self._table("index_history_table")


def meshes_of(store: Store) -> list[Mesh]:
    """Meshes of a store, by name."""
    found = []
    for name, counts, checksum, path, sums in _native._meshes(store):
        by_location = dict(zip(_LOCATIONS, counts, strict=True))
        mesh = Mesh(name, by_location, checksum.hex(), _within(store, path))
        mesh._sums = sums
        found.append(mesh)
    return found


def mesh_of(store: Store, name: str) -> Mesh:
    """A mesh of a store."""
    all = meshes_of(store)
    for mesh in all:
        if mesh.name == name:
            return mesh
    known = ", ".join(mesh.name for mesh in all) or "none"
    raise NotFound(f"the store has no mesh {name!r}", f"its meshes: {known}", "variable-not-found")


def histories_of(store: Store) -> list[History]:
    """Kept partitions of a store."""
    return [
        History(_within(store, path), mesh.hex(), nodes, edges, ranks)
        for path, mesh, nodes, edges, ranks in _native._histories(store)
    ]


def _within(store: Store, path: str) -> str:
    import os

    return os.path.join(store.url.removeprefix("file://").removeprefix("file:"), *path.split("/"))


def raw_row(name: Any, row: Any) -> tuple[Any, ...]:
    """Name, dtype, offset and shape of a variable of a raw file."""
    import numpy as np

    try:
        dtype, offset, shape = row
        dtype = np.dtype(dtype).str
    except (TypeError, ValueError):
        raise Invalid(
            f"variable {name!r}: {row!r}",
            'give (dtype, byte offset, shape), such as ("<f8", 0, (n, 3))',
            "argument",
        ) from None
    extents = [shape] if not hasattr(shape, "__iter__") else list(shape)
    return str(name), dtype, _count(name, offset), [_count(name, extent) for extent in extents]


def mesh_rows(given: Any, what: str) -> Any:
    """Rows of node numbers, as int64."""
    import numpy as np

    rows = np.asarray(given)
    if rows.ndim != 2 or (rows.size and rows.dtype.kind not in "iu"):
        raise Invalid(
            f"{what} of dtype {rows.dtype} and shape {rows.shape}",
            "give one row of whole numbers for each",
            "argument",
        )
    return np.ascontiguousarray(rows, "i8")


def _count(name: Any, number: Any) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__") or number.__index__() < 0:
        raise Invalid(
            f"variable {name!r}: {number!r}", "offsets and extents are whole numbers, 0 or more", "argument"
        )
    return number.__index__()

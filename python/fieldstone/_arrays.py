"""Distributed arrays: jobs, whose ranks write and read groups of sets together.

All calls on a job and its groups are collective: all ranks of its communicator make them in the same order. A
failure on one rank raises the same kind of error on all ranks and names that rank; the job can go on::

    job = store.arrays("astro3d-42", comm=MPI.COMM_WORLD)
    group = job.group("analysis", {"p": "f4"}, shape=(256, 256, 256), dims=("z", "y", "x"))
    group.view(fst.block(grid=(2, 2, 1)))
    group.write("p", 0, mine)
    job.flush()
"""

from __future__ import annotations

import operator
import zlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from . import _metis, _native
from ._array_files import (
    ArrayTables,
    Import,
    ImportedVariable,
    JobMesh,
    Partition,
    mesh_rows,
    raw_row,
)
from ._native import _comm_of
from .errors import Conflict, Error, Invalid

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike

    from ._native import View, _ArrayGroup, _ArrayJob
    from ._run import Run
    from ._store import Store

_Extents = int | Sequence[int | None]
_PROPERTIES = ("dtype", "shape", "dims", "attrs", "fill")


class JobReport(NamedTuple):
    """Counters of this rank since its job began."""

    exchanged: int
    """Bytes of elements and indices sent to other ranks."""
    written: int
    """Bytes written to files."""
    read: int
    """Bytes read from files."""
    opened: int
    """Files created or opened."""
    plans: int
    """Exchanges planned."""
    connections: int
    """Number of times the catalog's engine was opened: 1 on rank 0, 0 on others."""
    seconds: dict[str, float]
    """Seconds by phase: plan, write, sync, commit, read."""


class SetInfo(NamedTuple):
    """A set as it was declared."""

    dtype: np.dtype[Any]
    """Type of its elements."""
    shape: tuple[int | None, ...]
    """Global shape; a first extent of None differs from step to step."""
    dims: tuple[str, ...]
    """Names of its dimensions; in files, a dimension with an empty name is named after its extent."""


class ArrayGroup:
    """Sets of arrays that are written alike. Made by ``job.group``. Its calls are collective."""

    def __init__(self, job: ArrayJob, native: _ArrayGroup) -> None:
        self.job = job
        self._native = native

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its sets, in the order of their declaration."""
        return tuple(name for name, *_ in self._native.sets())

    @property
    def sets(self) -> dict[str, SetInfo]:
        """Its sets, by name."""
        return {
            name: SetInfo(dtype, tuple(shape), tuple(dims))
            for name, dtype, shape, dims in self._native.sets()
        }

    @property
    def level(self) -> int | None:
        """1: a file for each set and step; 2: for each set; 3: for the group; None if arrays are in the
        store's logs."""
        return self._native.level

    @property
    def method(self) -> str:
        """How elements reach files: "auto", "direct", "exchange" or "view"."""
        return self._native.method

    @property
    def why(self) -> str:
        """The reasons for level and method, with the costs compared."""
        return self._native.why

    @property
    def files(self) -> list[str]:
        """Paths of the netCDF files that this job created for the group."""
        return [str(path) for path in self._native.files]

    def view(self, view: View, names: str | Sequence[str] | None = None) -> None:
        """Sets what this rank holds from now on, for all sets or for those named.

        NotFound if the group lacks a set. The next call checks whether the view fits.
        """
        if names is not None:
            names = [names] if isinstance(names, str) else list(names)
        self._native.view(view, names)

    def local_shape(self, name: str) -> tuple[int, ...]:
        """The shape of this rank's part of a set, by its view."""
        return tuple(self._native.local_shape(name))

    def write(
        self,
        name: str,
        step: int,
        values: ArrayLike,
        *,
        wait: bool = True,
        hints: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes a set at a step; each rank gives the part that it holds by its view.

        `values` is an array of the view's local shape and the set's dtype, in either byte order and with any
        strides. The job itself can read it at once, all others after ``job.flush()``. Writing the step again
        makes a new version. Conflict if ranks write different bytes to one element, or name different sets or
        steps; Invalid for another shape or dtype, naming the rank. The write then has no effect.

        With ``wait=False`` the call returns when the elements are exchanged: `values` may be changed, and a
        thread writes the bytes and begins their sync while the job computes. A later call, at the latest the
        flush, raises its errors. `hints` are MPI_Info hints of this call, in addition to the group's: for its
        exchange (``cb_nodes``) and for a file that it creates.
        """
        try:
            step = _step(step)
        except Error as error:
            self._native.fail_write(str(name), 0, error)
            raise
        self._native.write(name, step, values, wait, hints)

    def write_many(
        self,
        step: int,
        values: Mapping[str, ArrayLike],
        *,
        wait: bool = True,
        hints: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes many sets at a step: a mapping of names to arrays, in the same order on all ranks."""
        for name, array in values.items():
            self.write(name, step, array, wait=wait, hints=hints)

    def read(
        self,
        name: str,
        step: int,
        view: View | None = None,
        into: np.ndarray[Any, Any] | None = None,
        *,
        hints: Mapping[str, Any] | None = None,
    ) -> np.ndarray[Any, Any]:
        """The part of a set at a step that this rank holds, by `view` or by default by the view of the set.

        Without a view, a job of one process reads the whole array; with several ranks each reads nothing.
        `into` is a writable array of the local shape and the set's dtype, with any strides, which is filled
        and returned. NotFound for a set or step that does not exist; Corrupt if the bytes in the file differ
        from those written.
        """
        return self._native.read(name, _step(step), view, into, hints)

    def read_many(
        self, step: int, names: Sequence[str] | None = None, view: View | None = None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Many sets at a step, by name: those given, or all."""
        return {name: self.read(name, step, view) for name in (self.names if names is None else names)}

    def steps(self, name: str) -> list[int]:
        """Steps at which a set is flushed and complete, ascending."""
        return self._native.steps(name)

    def last_step(self) -> int | None:
        """The newest step at which all sets are flushed and complete; None if there is none."""
        return self._native.last_step()

    def __repr__(self) -> str:
        return f"<fieldstone.ArrayGroup {self.name!r} of run {self.job.run.name!r}: {', '.join(self.names)}>"


class ArrayJob:
    """The ranks of a communicator and the run that they write. Made by ``store.arrays``. Its calls are
    collective.

    ``with store.arrays(…) as job:`` flushes and closes at the end. An exception on one rank ends the job on
    all: writes that were not flushed are lost, and each other rank raises the error in its current or next
    call.
    """

    def __init__(self, store: Store, native: _ArrayJob, comm: Any, txn: str | None) -> None:
        self.store = store
        self._native = native
        self._comm = comm
        self._txn = txn

    @property
    def run(self) -> Run:
        """The run. Calls on it are not collective; a job writes attributes from one rank."""
        from ._run import Run

        project, name = self._native.run
        return Run(self.store, name, project, self._txn)

    @property
    def rank(self) -> int:
        """This rank's number."""
        return self._native.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._native.size

    def group(
        self,
        name: str,
        sets: Mapping[str, Any] | Sequence[str] | None = None,
        *,
        dtype: DTypeLike = None,
        shape: _Extents | None = None,
        dims: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
        fill: Any = None,
        order: Literal["C", "F"] = "C",
        level: int | Literal["auto"] = "auto",
        method: Literal["auto", "direct", "exchange", "view"] = "auto",
        mesh: str | None = None,
        location: Literal["node", "edge", "face", "volume"] | None = None,
        chunks: int | Sequence[int] | None = None,
        compression: str | None = None,
        hints: Mapping[str, Any] | None = None,
    ) -> ArrayGroup:
        """Declares a group of sets; without `sets`, opens it as it was declared.

        `sets` maps names to dtypes, or to mappings of ``dtype``, ``shape``, ``dims``, ``attrs`` and ``fill``
        for a set that differs from the rest; a sequence of names uses `dtype` for all. New sets are added to
        the group, even if it is open or an earlier job declared it. `shape` is the global shape; a first
        extent of None is the sum over the ranks' parts, at each step (``fst.joined``). `fill` is the value
        of elements that no rank writes. `attrs` are attributes of all its sets and of its files; an attribute
        of a set overrides one of the same name; in files, ``_FillValue`` and the type ``dtype`` come from
        `fill`, so both are Invalid in `attrs`. With ``order="F"`` the first dimension varies fastest in
        files, whose dimensions are then reversed, as netCDF's Fortran interface shows them.

        `level` 1 makes a file for each set and step, 2 for each set, 3 for the group; "auto" measures the
        cost of opening a file. `method` is how elements reach files. With `mesh` and `location` sets take
        their first extent and its dimension from a mesh of the store, and carry UGRID's attributes; another
        extent is Invalid. `chunks` (extents) and `compression` (as in ``store.archive``) apply to jobs with
        layout "fields". `hints` are MPI_Info hints, in addition to the job's; ``group.why`` names the unused
        ones. Conflict if ranks, or an earlier declaration, differ.
        """
        rows, wrong = None, None
        said = (dtype, shape, dims, attrs, fill, mesh, location, chunks, compression, hints)
        if sets is None and any(one is not None for one in said):
            # Raised on all ranks, which are already in the call.
            wrong = Invalid(
                f"group {name!r} is opened as it was declared, but properties are given",
                "give sets, too, to declare it: properties have to be the same as before",
                "argument",
            )
        properties: tuple[Any, ...] = (0, "auto", "C", None, None, None, None, None, None)
        if sets is not None:
            try:
                if mesh is not None and shape is None:
                    shape = ()
                rows = _rows(sets, {"dtype": dtype, "shape": shape, "dims": dims, "fill": fill})
                own = None if attrs is None else dict(attrs)
                cut = None if chunks is None else _chunks(chunks)
                properties = (
                    _level(level),
                    str(method),
                    str(order),
                    own,
                    mesh,
                    location,
                    cut,
                    compression,
                    hints,
                )
            except Exception as error:  # reported to the ranks that are already in the call
                rows, wrong = [], error
        return ArrayGroup(self, self._native.group(str(name), rows, properties, wrong))

    def import_file(
        self,
        path: str | os.PathLike[str],
        variables: Mapping[str, tuple[DTypeLike, int, _Extents]] | Sequence[str] | None = None,
        *,
        format: Literal["raw", "netcdf"] | None = None,
        checksum: bool = False,
    ) -> Import:
        """Opens a file from outside, which ranks read through views; the catalog records its size and time.

        For a raw file `variables` maps names to (dtype, byte offset, shape); for a netCDF classic file it
        names the variables to use (default: all). A mapping implies ``format="raw"``, anything else
        ``"netcdf"``. The call reads no values, except with `checksum`, which reads these variables once to
        record it. NotFound if there is no such file or variable; Corrupt if the file ends before a variable
        does; Invalid for netCDF-4, which is HDF5.
        """
        import os

        rows, names, wrong = None, [], None
        try:
            rows_given = isinstance(variables, Mapping)
            if format is None:
                format = "raw" if rows_given else "netcdf"
            if format not in ("raw", "netcdf"):
                raise Invalid(f"format={format!r}", 'give "raw" or "netcdf"', "option")
            if format == "netcdf" and rows_given:
                hint = 'give the names of variables, or format="raw"'
                raise Invalid(
                    "rows of (dtype, offset, shape) for a netCDF file, which has them itself", hint, "option"
                )
            if format == "raw":
                rows = [raw_row(name, row) for name, row in dict(variables or {}).items()]
            else:
                names = [variables] if isinstance(variables, str) else list(variables or [])
        except Exception as error:  # reported to the ranks that are already in the call
            rows, wrong = [], error
        path = os.path.abspath(os.fspath(path))
        return Import(path, self._native.import_file(path, rows, names, checksum, wrong))

    def create_mesh(
        self,
        name: str,
        *,
        nodes: Mapping[str, ArrayLike],
        edges: ArrayLike | None = None,
        faces: ArrayLike | None = None,
        volumes: ArrayLike | None = None,
        base: int = 0,
        attrs: Mapping[str, Any] | None = None,
        coordinate_attrs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> JobMesh:
        """Makes a mesh from each rank's contiguous share. The store keeps it once for each content, as a file
        with UGRID's conventions.

        `nodes` has coordinates ``x``, ``y`` and, in space, ``z``, of each node. `edges` has two nodes in each
        row, `faces` and `volumes` as many as the largest one has, filled up with -1; `base` is the number of
        the first node. `coordinate_attrs` are attributes of ``x``, ``y``, ``z``, such as ``standard_name``
        and ``units``. Invalid for an entry that is not the number of a node, with rank, position and value;
        Conflict if another mesh has the name.
        """
        import numpy as np

        parts: tuple[Any, ...] = ([], None, None, None, 0)
        wrong = None
        try:
            words = [word for word in "xyz" if word in nodes]
            if len(words) < 2 or set(nodes) - set("xyz"):
                raise Invalid(
                    f"nodes with {', '.join(map(str, nodes))}", "give x, y and, in space, z", "argument"
                )
            more = coordinate_attrs or {}
            columns = [
                (np.ascontiguousarray(nodes[word], "f8"), dict(more[word]) if word in more else None)
                for word in words
            ]
            rows = [
                None if given is None else mesh_rows(given, what)
                for given, what in ((edges, "edges"), (faces, "faces"), (volumes, "volumes"))
            ]
            parts = (columns, *rows, operator.index(base))
        except Exception as error:  # reported to the ranks that are already in the call
            wrong = error
        own = None if attrs is None else dict(attrs)
        return JobMesh(self._native.create_mesh(str(name), parts, own, wrong))

    def partition(
        self,
        edges: str | tuple[Any, Any],
        vector: ArrayLike | str | os.PathLike[str],
        *,
        nodes: int | None = None,
        base: int = 0,
        history: bool = True,
        method: Literal["direct", "ring"] = "direct",
    ) -> Partition:
        """This rank's part of an unstructured mesh: its own nodes, ghosts, and the edges with an end of its
        own.

        `edges` is the name of a mesh of the store (its edges, or else those of its faces or volumes), or a
        pair: two variables of an import, or two arrays, of which each rank gives its contiguous share.
        `vector` assigns nodes to ranks: an array of all nodes, equal on all ranks, or each rank's contiguous
        share of it; a METIS file; "block"; for a mesh "hilbert"; or "metis", which rank 0 computes from all
        edges with pymetis (extra ``fieldstone[mesh]``), so that few edges cross ranks. Arrays of equal length
        that differ are shares if `nodes`, the number of all nodes, says so, and otherwise a Conflict. `base`
        is the number of the first node in the edges.

        With `history`, a partition that an earlier run kept is used, before edges are read; a newly computed
        one is kept: a thread writes it, and the next flush declares it. ``part.source`` says which of the two
        it was, and ``part.ignored`` lists files that could not be used. `method` "ring" is the paper's.
        Invalid, with rank, position and value, for a vector or an edge that names a rank or node that does
        not exist.
        """
        import os

        import numpy as np

        given: tuple[Any, Any, Any] = (None, None, None)
        how: tuple[str, Any, Any] = ("block", None, None)
        mesh, wrong = None, None
        try:
            given, mesh = self._edges_of(edges)
            if isinstance(vector, str) and vector in ("block", "hilbert", "metis"):
                how = (vector, None, None)
            elif isinstance(vector, (str, os.PathLike)):
                how = ("file", None, os.path.abspath(os.fspath(vector)))
            else:
                ranks = np.asarray(vector)
                if ranks.ndim != 1 or (ranks.size and ranks.dtype.kind not in "iu"):
                    raise Invalid(
                        f"a vector of dtype {ranks.dtype} and shape {ranks.shape}",
                        "give a rank for each node",
                        "argument",
                    )
                how = ("replicated", np.ascontiguousarray(ranks, "i8"), None)
        except Exception as error:  # reported to the ranks that are already in the call
            wrong = error
        total = nodes if nodes is not None else mesh.counts["node"] if mesh else None
        wants_metis = how[0] == "metis"
        if self.size > 1:
            said = f"{len(how[1])} {zlib.crc32(how[1])}" if how[0] == "replicated" else how[0]
            # Ranks agree on this, so that none waits for one that failed or is in another call.
            all_said = self._native.say_of_partition(said, wrong)
            if wants_metis and any(one != "metis" for one in all_said):
                wrong = Conflict(
                    'vector="metis" on some ranks', "give the same on all ranks", "collective-mismatch"
                )
                wants_metis = False
            elif _are_shares(all_said, total):
                how = ("shares", how[1], None)
                wrong = _unclear(all_said, total)
        if wants_metis and wrong is None:
            ends = self._ends_of(edges, mesh, base)
            share, wrong = _metis.shares(self._comm, self.size, self.rank, ends, total)
            how = ("shares" if self.size > 1 else "replicated", share, None)
        native = self._native.partition(given, how, nodes, base, history, str(method), wrong)
        return Partition(native)

    def _edges_of(self, edges: Any) -> tuple[tuple[Any, Any, Any], JobMesh | None]:
        import numpy as np

        if isinstance(edges, str):
            mesh = self.mesh(edges)
            return (None, None, mesh._native), mesh
        first, second = edges
        if isinstance(first, ImportedVariable) and isinstance(second, ImportedVariable):
            if first._owner is not second._owner:
                raise Invalid("edges of two imports", "import both ends from one file", "argument")
            return (None, (first._owner._native, first.name, second.name), None), None
        rows = []
        for ends in (first, second):
            row = np.asarray(ends)
            if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
                raise Invalid(
                    f"edges of dtype {row.dtype} and shape {row.shape}",
                    "give two rows of node numbers",
                    "argument",
                )
            rows.append(np.ascontiguousarray(row, "i8"))
        return ((rows[0], rows[1]), None, None), None

    def _ends_of(self, edges: Any, mesh: JobMesh | None, base: int) -> tuple[Any, Any]:
        """Both ends of this rank's share of the edges, counted from 0. Collective."""
        import numpy as np

        if mesh is not None:
            rows = mesh._native.edges()
            return rows[:, 0], rows[:, 1]
        first, second = (
            one.read() if isinstance(one, ImportedVariable) else np.asarray(one, "i8") for one in edges
        )
        return first.astype("i8") - base, second.astype("i8") - base

    def mesh(self, name: str) -> JobMesh:
        """A mesh that the store keeps, opened by all ranks. NotFound if no mesh has the name."""
        return JobMesh(self._native.mesh(str(name)))

    def tables(self) -> ArrayTables:
        """The six tables of SDM's database as seen by the store's catalog. Not collective: only this rank
        asks the catalog.
        """
        return ArrayTables(self.store)

    def flush(self) -> None:
        """Makes all writes since the last flush durable and visible, or none of them, in one commit."""
        self._native.flush()

    def discard(self) -> None:
        """Drops all writes since the last flush."""
        self._native.discard()

    def close(self) -> None:
        """Flushes, and closes all files. Closing again does nothing."""
        self._native.close()

    def report(self) -> JobReport:
        """Counters of this rank so far."""
        *counts, seconds = self._native.report()
        return JobReport(*counts, dict(seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._native.leave(error)

    def __repr__(self) -> str:
        return f"<fieldstone.ArrayJob of run {self.run.name!r}, rank {self.rank} of {self.size}>"


def open_job(
    store: Store,
    name: str | None,
    comm: Any,
    project: str | None,
    writers: int | None,
    readers: int | None,
    buffer: int,
    layout: str,
    hints: Mapping[str, Any] | None,
    txn: str | None,
) -> ArrayJob:
    """Opens a job; see ``Store.arrays``."""
    comm = _comm_of(store) if comm is None else comm
    native = _native._open_arrays(store, name, comm, project, writers, readers, buffer, layout, hints, txn)
    return ArrayJob(store, native, comm, txn)


def _are_shares(said: list[str], nodes: int | None) -> bool:
    """Whether ranks gave shares of a vector rather than all of it, judged by lengths and checksums."""
    lengths = [one.partition(" ")[0] for one in said]
    if not all(length.isdigit() for length in lengths):
        return False
    if nodes is not None:
        return any(int(length) != nodes for length in lengths)
    return any(one != said[0] for one in said)


def _unclear(said: list[str], nodes: int | None) -> Exception | None:
    """The reason why the vectors of the ranks are neither whole nor shares; the same on all ranks."""
    lengths = [int(one.partition(" ")[0]) for one in said]
    all = sum(lengths)
    if nodes is not None and all != nodes:
        rank = next(rank for rank, length in enumerate(lengths) if length != nodes)
        return Invalid(
            f"the vector of rank {rank} has {lengths[rank]} entries, all ranks together {all}, and there are "
            f"{nodes} nodes",
            "give all ranks a rank for each node, or each its share of them",
            "shape-mismatch",
        )
    if nodes is None and len(set(lengths)) == 1:
        rank = next(rank for rank, one in enumerate(said) if one != said[0])
        return Conflict(
            f"ranks 0 and {rank} give vectors of {lengths[0]} entries that differ",
            f"give nodes={lengths[0]} if each is the whole vector, nodes={all} if they are shares",
            "collective-mismatch",
        )
    return None


def _step(step: Any) -> int:
    try:
        return operator.index(step)
    except TypeError:
        raise Invalid(f"step={step!r}", "steps are whole numbers", "argument") from None


def _level(level: Any) -> int:
    if level == "auto":
        return 0
    number = _step(level) if not isinstance(level, str) else -1
    if number not in (1, 2, 3):
        raise Invalid(
            f"level={level!r}",
            '1: a file for each set and step; 2: for each set; 3: for the group; or "auto"',
            "option",
        )
    return number


def _chunks(chunks: Any) -> list[int]:
    extents = list(chunks) if hasattr(chunks, "__iter__") else [chunks]
    return [_extent("chunks", extent) for extent in extents]


def _rows(sets: Any, shared: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Name, dtype, extents, names of dimensions, attributes and bytes of the fill value of each set."""
    if isinstance(sets, str):
        sets = [sets]
    if not isinstance(sets, Mapping):
        sets = {name: {} for name in sets}
    if not sets:
        raise Invalid("a group without sets", 'name some: {"p": "f8"}', "argument")
    return [_row(name, own, shared) for name, own in sets.items()]


def _row(name: Any, own: Any, shared: dict[str, Any]) -> tuple[Any, ...]:
    import numpy as np

    own = dict(own) if isinstance(own, Mapping) else {"dtype": own}
    for word in own:
        if word not in _PROPERTIES:
            raise Invalid(f"set {name!r} with {word!r}", f"a set has {', '.join(_PROPERTIES)}", "argument")
    said = shared | own
    if said["dtype"] is None:
        raise Invalid(f"set {name!r} has no dtype", 'give it one: {"p": "f8"}', "argument")
    if said["shape"] is None:
        raise Invalid(f"set {name!r} has no shape", "give shape= to the group, or to the set", "argument")
    try:
        dtype = np.dtype(said["dtype"])
    except TypeError:
        raise Invalid(
            f"set {name!r}: {said['dtype']!r} is not a dtype", "write it as in numpy", "dtype"
        ) from None
    shape = said["shape"]
    shape = [shape] if shape is None or not hasattr(shape, "__iter__") else list(shape)
    extents = [None if extent is None else _extent(name, extent) for extent in shape]
    dims = said["dims"]
    dims = (
        []
        if dims is None
        else [dims]
        if isinstance(dims, str)
        else [d if d is None else str(d) for d in dims]
    )
    fill = said["fill"]
    if fill is not None:
        fill = np.asarray(fill, dtype.newbyteorder("=")).tobytes()
    attrs = said.get("attrs")
    return str(name), dtype.str, extents, dims, None if attrs is None else dict(attrs), fill


def _extent(name: Any, extent: Any) -> int:
    number = _step(extent)
    if number < 0:
        raise Invalid(
            f"set {name!r}: the extent is {number}", "give a number that is not negative, or None", "argument"
        )
    return number

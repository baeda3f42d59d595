"""The class ``Store``: an open store, as users see it.

Its base ``_Store`` is native and has the life of the handle and the calls on fields, which do not pass
through this file. This class adds the calls on the catalog and everything else that Python does; it is the
only place of their signatures and docs (B-14). ``fieldstone.open``, unpickling and all other ways to open a
store make an object of this class::

    with fieldstone.open("memory:") as store:
        store.create_run("a").annotate("maximum", 3.5)
        assert store.attributes(tag="maximum").first().value == 3.5
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, final, overload

from ._age import before
from ._array_files import History, Mesh, histories_of, mesh_of, meshes_of
from ._arrays import ArrayJob, open_job
from ._compact import maintaining, purging, seconds, shown
from ._graph import Graph
from ._hits import Hits
from ._hold import Hold, set_hold
from ._native import (
    Table,
    _compact,
    _erase,
    _export_grib,
    _exports_grib,
    _holds,
    _items,
    _list_since,
    _maintain,
    _prefetch,
    _purge,
    _Query,
    _retain,
    _rules,
    _transaction,
    _wipe,
)
from ._outside import declare
from ._repair import Repairing
from ._retention import Rules, age
from ._rows import Missing, Rows, RunRows, Step, Tag, Variable, missing_of, tags_of, tell, variables_of
from ._run import Run
from ._stats import StatsRows, stats_by
from ._terms import Terms
from ._transaction import Transaction
from ._values import datetime_ns, plain
from .errors import Error, Invalid
from .reports import (
    CompactReport,
    DeleteReport,
    ErasureReport,
    ExportReport,
    HoldInfo,
    MaintainReport,
    PrefetchReport,
    PurgeReport,
    RebuildReport,
    RetentionRule,
    Stats,
    WipeReport,
)

if TYPE_CHECKING:  # imported where it is used: xarray is optional
    import xarray as xr

    from ._native import Entry, _Request, _Where

_R = TypeVar("_R", bound=Rows[Any])


@final
class Store(Repairing):
    """A store of fields. Made by ``fieldstone.open``.

    ``with fieldstone.open(url) as store:`` flushes and closes at the end; an exception discards what was not
    flushed. A program that ends normally flushes its open stores. Any number of threads may share a store; a
    forked child is a writer of its own.
    """

    __slots__ = ()

    # -- fields

    def to_xarray(
        self,
        request: _Request = None,
        *,
        combine: Literal["auto", "run"] | None = "auto",
        time_dim: Literal["valid_time"] | None = None,
        box: Any = None,
        level: int | None = None,
    ) -> xr.Dataset:
        """The fields that `request` selects as a lazy xarray Dataset (needs the extra
        ``fieldstone[xarray]``). It shows what is visible now, except for a store in memory, whose values are
        those at the time of reading.

        Several files are joined along coordinates that differ and do not overlap (time, member, tile), each
        decoded by its own packing; if that is impossible, Invalid names the coordinate and the files.
        ``combine="run"`` adds a dimension of runs whose files have equal coordinates; with None, several
        files are Invalid. With ``time_dim="valid_time"`` GRIB messages have one datetime axis in place of
        date, time and step.

        `box` keeps what is inside it and works like ``box=`` of queries: slices of elements, or ranges of
        coordinates, also across the seam: ``{"lat": fst.between(30, 60), "lon": fst.between(170, -170)}``.
        Along one dimension it selects cells; if coordinates have two dimensions, lat(y, x), it keeps the
        rectangle around the selected cells and marks the others in it as missing. Invalid if nothing has such
        a coordinate or dimension.

        With `level` it is the Dataset of this level of an adaptive mesh, with the names of variables on that
        level: ``rho`` is ``level_1/rho``, also in `request`.
        """
        pinned = self._pinned()
        from .xarray_engine import to_xarray

        return to_xarray(pinned, request, combine, time_dim, box, level)

    def export(
        self,
        request: _Request,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        overwrite: bool = False,
    ) -> ExportReport:
        """Writes what `request` selects to a file: GRIB messages unchanged, one after the other, or netCDF.

        `format` is "grib", "netcdf4", "netcdf4-classic", "netcdf3", "cdf1", "cdf2" or "cdf5". By default the
        path's suffix selects GRIB (.grib, .grib1, .grib2, .grb, .bin) or netCDF (.nc, .nc4, .cdf, .h5), and
        an ingested file or a stored Dataset keeps its own format. If the path is an existing folder, it gets
        a netCDF file for each run; otherwise several files are joined into one, as `to_xarray` shows them.

        A netCDF file also holds the metadata of the fields: parameters, steps, declarations, tags,
        attributes, as far as ``copy`` takes them along. `ingest` reads them back. GRIB messages have no place
        for them.

        The file appears whole or not at all. Conflict if it exists, unless `overwrite`; NotFound if nothing
        is selected; Invalid names what the format cannot hold. Returns an `ExportReport`: the files, fields,
        bytes, and in `skipped` what a file lacks or changes.
        """
        if _exports_grib(path, format):
            return _export_grib(self, request, path, overwrite)
        from ._export import export

        return export(self, request, path, format, overwrite)

    def follow(
        self, request: _Request = None, *, since: str | None = None, timeout: float | None = None
    ) -> Iterator[Entry]:
        """The fields that `request` selects, as entries, as they become visible: those that other processes
        flush from now on, or that they flushed after `since`, a ``store.version``.

        A field is returned again with each newer version or piece; ``entry.complete`` says whether it is
        complete. The iteration ends when nothing has come for `timeout` seconds; without a timeout it goes on
        until Ctrl-C.
        """
        seen = self.version if since is None else since
        return self._news(request, seen, timeout)

    def _news(self, request: _Request, seen: str, timeout: float | None) -> Iterator[Entry]:
        last = time.monotonic()
        while True:
            left = None if timeout is None else max(0.0, last + timeout - time.monotonic())
            if not self.wait(seen, left):
                return
            listing, seen = _list_since(self, request, seen)
            for entry in listing:
                yield entry
                last = time.monotonic()

    def transaction(self, id: str | None = None, *, comm: Any = None) -> Transaction:
        """A transaction: everything written through it becomes visible together, or not at all.

        ``with store.transaction() as tx:`` commits at the end; an exception aborts. With `id` you join a
        transaction that another process opened: leaving the block flushes, and the opener decides for all.
        With `comm`, a communicator of mpi4py, all ranks open one together; it is decided when all have left
        the block.
        """
        if comm is None:
            return Transaction(self, _transaction(self, id))
        if id is not None:
            raise Invalid("a transaction has id= and comm=", "give one of them: with comm= rank 0 begins it")
        native = _transaction(self, None) if comm.rank == 0 else None
        begun = comm.bcast(native.id if native else None, root=0)
        return Transaction(self, native or _transaction(self, begun), comm)

    def arrays(
        self,
        name: str | None = None,
        comm: Any = None,
        *,
        project: str | None = None,
        writers: int | None = None,
        readers: int | None = None,
        buffer: int = 64 << 20,
        layout: Literal["files", "fields"] = "files",
        hints: Mapping[str, Any] | None = None,
    ) -> ArrayJob:
        """A job: the ranks of `comm` write and read distributed arrays of a run together. Collective.

        `name` is the run's, which is created or continued; None creates a new one, equal on all ranks
        (``job.run.name``). `comm` is a communicator of mpi4py; without one this process is alone. `writers`
        and `readers` are the number of ranks that own a range of the file in an exchange (default: all),
        `buffer` the bytes that a rank may use to move elements. With `layout` "files" arrays are in netCDF
        files that belong to the store; with "fields" they are in its logs, chunked and compressed, and each
        rank archives pieces, of any type. `hints` are keys and values of MPI_Info, the same on all ranks, for
        all files of the job; ``cb_nodes`` also sets how many ranks own a range, and ``direct_write`` and
        ``direct_read`` bypass the page cache.

        ``with store.arrays(…) as job:`` flushes and closes at the end; after an exception on any rank, all
        discard. Denied if the run belongs to another user; NotFound for a run that does not exist, in a store
        opened for reading.
        """
        return open_job(self, name, comm, project, writers, readers, buffer, layout, hints, None)

    def mesh(self, name: str) -> Mesh:
        """A mesh that the store keeps: ``.counts``, ``.checksum``, ``.path``. NotFound if no mesh has the
        name."""
        return mesh_of(self, name)

    def meshes(self) -> list[Mesh]:
        """Meshes that the store keeps, by name."""
        return meshes_of(self)

    def histories(self) -> list[History]:
        """Partitions of meshes that the store keeps for later runs."""
        return histories_of(self)

    @property
    def graph(self) -> Graph:
        """The provenance graph: users, executions and data, and the origin of each result."""
        return Graph(self)

    # -- administration

    @overload
    def stats(self, request: _Request = None) -> Stats: ...
    @overload
    def stats(self, request: _Request = None, *, by: str) -> StatsRows: ...
    def stats(self, request: _Request = None, *, by: str | None = None) -> Stats | StatsRows:
        """Counts of the fields that one request selects, and of the store's files, as a Stats.

        With `by`, which is "owner", "dataset", "writer" or a keyword, a sequence of rows in place of it, in
        the order of the values: ``row.name`` (None for fields without the keyword), ``row.fields``, the bytes
        of these fields (``row.nbytes``), the bytes that they take in the store (``row.stored``), and those of
        versions that newer ones hide and of removed and wiped fields (``row.dead``); ``to_arrow()`` returns a
        table. An owner is the user to whom the dataset belongs, a writer the process that archived, by the
        id of its log. A field of several pieces counts where its newest piece does.

        Raises Invalid for several requests and for a keyword that the schema does not know.
        """
        return self._stats(request) if by is None else stats_by(self, request, by)

    def compact(
        self,
        request: _Request = None,
        *,
        max_bytes: int | None = None,
        rate: int | None = None,
        grace: float | timedelta = 3600,
        progress: Literal["auto"] | bool | Callable[[int, int], object] | None = None,
    ) -> CompactReport:
        """Puts one file, a takeover, in the place of this user's logs whose processes have closed them, so
        that past writers cost nothing any more. Returns a CompactReport.

        No answer changes, also at older versions, and other processes may read and write meanwhile. With
        `request` it takes only logs that hold something that the request selects. `max_bytes` bounds the
        bytes of logs that are read; the next call goes on. `rate` bounds the bytes that are copied in a
        second, so that others who write wait less. Replaced files stay for `grace`, in seconds or as
        a timedelta, for processes that still read them; a later call removes them. Use 0 only if no other
        process has the store open.

        A log with damage stays as it is: ``report.left`` names it, and ``report.ok`` is False.

        `progress`: "auto" shows a line on a terminal; a function is called with (logs taken over, entries
        written), and an exception from it ends the call. Takeovers made before stay.

        Raises Denied for a store opened for reading and for a store of format 1, Invalid for a store in
        memory, Unavailable if other processes compact the same logs all the time.
        """
        show = shown(progress, sys.stderr)
        try:
            return _compact(self, request, (max_bytes, rate), seconds(grace), show)
        finally:
            if show is not None and show is not progress:
                sys.stderr.write("\r\x1b[K")

    def purge(
        self,
        request: _Request = None,
        *,
        doit: bool = False,
        all: bool = False,
        grace: float | timedelta = 3600,
        max_bytes: int | None = None,
        rate: int | None = None,
        progress: Literal["auto"] | bool | Callable[[int, int], object] | None = None,
    ) -> PurgeReport:
        """Drops versions of this user's fields that newer ones hide, removed and wiped fields, and what
        aborted transactions left, and gives their room back to the disk. Returns a PurgeReport; without
        `doit` it says what would go.

        Nothing that anybody sees changes, but older versions of the store (``at=``) no longer have what was
        dropped: a key that is absent there raises NotFound with the code "version-purged". `request` selects
        datasets or indexes; give ``all=True`` for every one. A version goes once it was hidden for `grace`,
        in seconds or as a timedelta, and its writer has closed; files go a grace after that, by a later
        call. Array files of ended jobs that nothing names go, too, and meshes that no group or variable names
        any more. Use 0 only if no other process has the store open. Open transactions, and logs that lost
        commits, keep what they may concern. `max_bytes` bounds the bytes that are copied; the next call goes
        on. `rate` bounds those of a second.

        `progress`: "auto" shows a line on a terminal; a function is called with (fields looked at, bytes
        given back), and an exception from it ends the call. Versions dropped before are gone.

        Raises Invalid without a request or ``all=True``, for a keyword of single fields and for a store in
        memory, Denied for another user's dataset, for a store opened for reading and for a store of format
        1.
        """
        show = purging(progress, sys.stderr)
        try:
            return _purge(self, request, (doit, all), (max_bytes, rate), seconds(grace), show)
        finally:
            if show is not None and show is not progress:
                sys.stderr.write("\r\x1b[K")

    def prefetch(self, request: Any = None) -> PrefetchReport:
        """Reads fields ahead, where the store is: a later read finds their bytes in the memory of that
        machine, as long as it keeps them there. Takes a request, a list of requests, or hits. Returns a
        PrefetchReport.

        Each byte is compared with its checksum. A field that cannot be read is named in ``report.damaged``,
        and is not an error; neither is a listed value without a field.
        """
        if isinstance(request, Hits):
            request = request._query if request._table is None else request._table
        return _prefetch(self, request)

    def wipe(
        self,
        request: _Request = None,
        *,
        older_than: float | timedelta | datetime | str | None = None,
        doit: bool = False,
        all: bool = False,
    ) -> WipeReport:
        """Hides for good the whole datasets, or whole indexes of them, that a request selects. Returns a
        WipeReport.

        With ``doit=False`` nothing changes, and the report says what would. Nobody sees the fields from then
        on, and nothing brings them back; older versions of the store (``at=``) still show them, and their
        bytes keep their space until a purge. Runs, attributes and lineage stay. Fields that others flush
        meanwhile or later stay as well, and so do those of a transaction that is not committed yet.

        `older_than` limits it to fields of which everything was archived longer ago than this: seconds, a
        timedelta, text such as "5d", or before a datetime. A request that names no values means the whole
        store, and needs ``all=True``.

        Raises Invalid for a keyword below the second level of keys (`remove` takes single fields), Denied for
        datasets of other users, for a store opened for reading, and for a store of format 1.
        """
        return _wipe(self, request, before(older_than), doit, all)

    def erase(self, what: _Request, *, doit: bool = False) -> ErasureReport:
        """Makes unreadable, in every file of the store, what a request selects and nothing shows any more:
        removed, wiped and replaced fields, deleted and replaced attributes. Returns an ErasureReport.

        Use it for what was recorded by mistake: remove or delete that first, and flush. Visible fields and
        attributes stay; ``report.visible`` counts them. With ``doit=False`` the report says what would go.
        Older versions of the store (``at=``) no longer have what was erased.

        ``report.left`` names what may still hold it, each with a reason: logs that other processes write,
        transactions that can be switched off, other users' logs and caches. Call it again once these are
        gone. Copies and backups outside of the store stay as they are.

        Raises Invalid for a request that names nothing or does not list values, and for a store in memory;
        Denied for other users' datasets, for a store opened for reading, and for a store of format 1.
        """
        return _erase(self, what, doit)

    def retain(
        self,
        request: _Request = None,
        *,
        older_than: float | timedelta | str | None = None,
        versions: int | None = None,
        drop: bool = False,
        all: bool = False,
        query: str | None = None,
        to: str | os.PathLike[str] | Store | None = None,
    ) -> RetentionRule:
        """Keeps a rule of retention in the store, for the whole datasets or indexes that the request selects
        now and later. Returns it as a RetentionRule.

        `older_than` is the age from which on fields are wiped: seconds, a timedelta, or text such as "5d".
        `versions` is the number of versions of each field that stay, the visible one among them. The request
        is the name of its rule: another one replaces it, ``drop=True`` ends it. Nothing goes until `maintain`
        applies the rule.

        `to`, another store or its URL, moves fields there in place of wiping them, with everything on them;
        the request may then name single fields, or `query` is a text for `find`: the fields under its hits
        move. The other store must exist when `maintain` runs.

        A rule counts for the data of whoever made it; those of root and of the owner of the store's folder of
        logs count for all data. A request that names no values means the whole store, and needs ``all=True``.

        Raises Invalid for a keyword below the second level of keys, without an age and versions, for
        ``versions=0``, and for a `query` without `to`; Denied for datasets of other users, for a store opened
        for reading, and for a store of format 1; NotFound if the rule to drop does not exist.
        """
        there = to.url if isinstance(to, Store) else None if to is None else os.fspath(to)
        return _retain(self, request, age(older_than), versions, (query, there), (drop, all))

    def rules(self) -> Rules:
        """The rules of retention that are in force, by owner and request: a tuple of RetentionRule."""
        return Rules(_rules(self))

    def hold(self, lasts: float | timedelta | str = 3600, why: str | None = None) -> Hold:
        """Keeps a purge from dropping anything, and maintenance from removing files that it replaced, until
        the hold expires or is released: for whoever copies the store file by file, and for long jobs that
        read an older version. Returns a Hold, which a ``with`` statement releases at its end.

        `lasts` is seconds, a timedelta, or text such as "2h". Reports of purges name the hold and `why`.

        Raises Invalid for a time of nothing, and for more than a year; Denied for a store opened for reading,
        and for a store of format 1.
        """
        return set_hold(self, lasts, why)

    def holds(self) -> tuple[HoldInfo, ...]:
        """The holds in force, by their ends: a tuple of HoldInfo."""
        return _holds(self)

    def maintain(
        self,
        *,
        grace: float | timedelta = 3600,
        max_bytes: int | None = None,
        rate: int | None = None,
        dry_run: bool = False,
        progress: Literal["auto"] | bool | Callable[[str, str, int, int], object] | None = None,
    ) -> MaintainReport:
        """Looks after this user's data: moves fields as rules of retention say, removes files that nothing
        names any more, wipes fields that rules call too old, purges versions that rules let go, and merges
        ended logs. Returns a MaintainReport, whose steps say what each gained, or why it was left: only what
        pays is done.

        Other processes may read and write meanwhile, and a call that ends early leaves the rest to the next
        one. The room of fields that a rule wipes comes back by a later call, a `grace` after (seconds, or a
        timedelta): call it daily. Under a rule with an age alone, older versions that newer ones hide stay;
        under one with `versions`, only these. Without rules nothing goes. Use ``grace=0`` only if no other
        process has the store open. `max_bytes` bounds the bytes that are written again; the next call goes
        on. `rate` bounds those of a second.

        `progress`: "auto" shows a line on a terminal; a function is called with (action, request of its rule,
        fields or entries done, bytes given back), and an exception from it ends the call.

        Raises Denied for a store opened for reading, and for a store of format 1. An error of one step is in
        the report (``report.ok`` is False).
        """
        show = maintaining(progress, sys.stderr)
        try:
            return _maintain(self, (max_bytes, rate), seconds(grace), dry_run, show)
        finally:
            if show is not None and show is not progress:
                sys.stderr.write("\r\x1b[K")

    # -- writing to the catalog

    def create_run(
        self,
        name: str,
        *,
        params: Mapping[str, Any] | None = None,
        project: str | None = None,
        job: str | None = None,
        created: datetime | str | None = None,
        grid: Any = None,
        notes: str | None = None,
        outside: Any = None,
        exist_ok: bool = False,
        annotate: Literal["all", "owner"] = "all",
        if_exists: Literal["new", "error"] | None = None,
        txn: str | None = None,
    ) -> Run:
        """Declares a run: a name, unique in its project, with parameters. Returns a Run.

        `params` is a dict of values; `job` the name that the batch system gave; `created` a datetime
        (default: now); `grid` and `notes` can be anything; `outside` says where the run's data are, if not in
        the store; `txn` is the id of the transaction to which it belongs. Conflict if the run is already
        declared, unless ``exist_ok=True`` and the declaration is the same; Denied if its fields belong to
        another user. This process sees the run at once, all others after the flush. The run belongs to its
        creator: others can only annotate it, under their own names; with ``annotate="owner"`` they cannot
        even do that. `if_exists` sets what ``run.write`` does if its field exists, whoever wrote it: "error"
        raises Conflict, "new" makes a newer version; by default the store decides.
        """
        # 0 means now by the store's clock, which works for years that Python's overflows.
        moment = 0 if created is None else datetime_ns(created)
        params = dict(params) if params is not None else None
        pair = (plain(project), _name(name))
        self._catalog().create_run(
            pair,
            params,
            plain(job),
            moment,
            grid,
            plain(notes),
            declare(outside),
            annotate,
            if_exists,
            exist_ok,
            txn,
        )
        return Run(self, name, project, txn)

    def run(self, name: str, *, project: str | None = None, txn: str | None = None) -> Run:
        """The Run of this name, declared or named by fields. NotFound if there is none, Invalid if several
        projects have one and `project` is not given; ``project=""`` selects the run without a project.
        """
        info = self._catalog().run(plain(project), _name(name), txn)
        return Run(self, info["name"], info["project"], txn, info)

    def create_tag(
        self, name: str, type: str, unit: str | None = None, *, version: int = 0, txn: str | None = None
    ) -> Tag:
        """Declares a tag: a named kind of metadata, shared by all runs. Returns a Tag.

        `type` is bool, int, uint, float, text, bytes, datetime, int_range, float_range, array or json.
        Declaring the same again is allowed. If the name has a tag with another type or unit, that one stays,
        and this one gets its own version: the one of the Tag returned.
        """
        return self.create_tags([_name(name)], type=type, unit=unit, version=version, txn=txn)[0]

    def create_tags(
        self,
        names: Iterable[str],
        *,
        type: str | Iterable[str],
        unit: str | Iterable[str | None] | None = None,
        version: int | Iterable[int] = 0,
        txn: str | None = None,
    ) -> Rows[Tag]:
        """Declares many tags, like ``create_tag``; `type`, `unit` and `version` are one value for all or one
        for each."""
        names = _items(names)
        columns = {"type": type, "unit": unit, "version": version}
        types, units, versions = (_column(of, name, len(names)) for name, of in columns.items())
        rows = [
            (plain(name), number, kind, plain(of or ""))
            for name, number, kind, of in zip(names, versions, types, units, strict=True)
        ]
        return tags_of(self._catalog().create_tags(rows, txn))

    def repoint(
        self,
        old: str | os.PathLike[str],
        new: str | os.PathLike[str],
        where: _Where = None,
        /,
        **terms: Unpack[Terms],
    ) -> tuple[str, ...]:
        """Records that data outside the store have moved from folder `old` to folder `new`.

        It applies to all runs whose ``outside`` has a root, or an absolute template, in that folder; terms
        choose among them as in ``runs``, names as in ``delete``. Returns their names. This process sees the
        change at once, all others after the flush; older versions of the store still answer as recorded.
        NotFound if no run matches, Denied if one belongs to another user; then nothing changes.
        """
        paths = [os.path.abspath(os.fspath(path)) for path in (old, new)]
        return tuple(self._catalog().repoint(*paths, _Query(where, terms)))

    def delete(
        self,
        *,
        run: Any = None,
        variable: Any = None,
        tag: Any = None,
        step: Any = None,
        where: _Where = None,
        level: Any = None,
        project: Any = None,
        fields: bool = False,
        doit: bool = False,
        txn: str | None = None,
    ) -> DeleteReport:
        """Deletes from the catalog and returns a DeleteReport; without ``doit=True`` it only counts.

        It deletes the deepest thing named: with only `run`, the run and everything below it; with `step`, the
        step; with `variable`, the variable, or with `level` that variable on the level of an adaptive mesh,
        or all variables on it; with only `tag`, the tag and its attributes in all runs; with `tag` and
        others, with `variable` and `step`, and with `where`, the matching attributes. ``fields=True`` also
        removes the fields of deleted runs, steps and variables. Older versions of the store keep all of it.

        Names are literal: text with ``*``, ``?`` or ``[`` is the name with that character, here and in
        `where`; ``fst.glob("a*")`` (in text: ``run like 'a*'``) is a pattern. Invalid if several projects
        have a run of the name and `project` is not given.

        Denied for runs, steps and variables of other users, and for a tag that others declared or use in
        their runs. Of attributes, it deletes those that this user wrote, and all in this user's runs;
        ``others`` of the report counts the rest, and if there are only others it is Denied.
        """
        terms = {
            "run": run,
            "project": project,
            "variable": variable,
            "level": level,
            "tag": tag,
            "step": step,
        }
        named = [name for name, term in (terms | {"where": where}).items() if term is not None]
        query = _Query(where, terms | {"txn": txn})
        counts, done, others = self._catalog().delete(named, query, fields, doit, txn)
        if not any(counts) and not others:
            tell(missing_of(self._catalog().missing_to_change(query)), 2)
        return DeleteReport(*counts, done, others)

    # -- querying the catalog

    def attributes(self, where: _Where = None, /, *, comm: Any = None, **terms: Unpack[Terms]) -> Hits:
        """The attributes that match all terms, as Hits, which are lazy: they ask the catalog when they are
        used.

        Terms: run project job params attr created step time variable version level tag tag_version unit value
        scope box extent volume keywords user writer also without, and txn order limit pick. Names are text, a
        pattern with ``*``, ``?`` or ``[``, a list, or a test; ``fieldstone.above`` and similar functions test
        values; `box` is a dict of slices by dimension. `where` is a condition made by ``fieldstone.where``,
        or text. With `comm`, an mpi4py communicator, all ranks call together, the query runs once, and each
        rank gets the hits that overlap its own `box`.
        """
        if comm is not None:
            from ._comm import shared

            return shared(self, where, comm, dict(terms))
        return Hits(self, _Query(where, terms))

    def find(self, text: str, /, *, txn: str | None = None) -> Hits:
        """The attributes that a query in text selects, as Hits: ``store.find("tag=maximum and value>9000 and
        box=z:50:100")``. Invalid points at the wrong character.
        """
        if not isinstance(text, str):
            raise Invalid(f"{text!r} is not text", "store.attributes takes keywords")
        return Hits(self, _Query.parse(plain(text), txn))

    def runs(self, where: _Where = None, /, **terms: Unpack[Terms]) -> RunRows[Run]:
        """The runs, as Rows of Run. With a tag, value or box term, the runs of matching attributes; otherwise
        all runs that exist. Terms are those of ``attributes``; `attr` also tests parameters.
        ``to_arrow(params=True)`` of the result has a column for each parameter.
        """
        query = _Query(where, terms)
        found = self._catalog().runs(query)
        rows = [Run(self, info["name"], info["project"], query.txn, info) for info in found]
        every = _Query(None, {"txn": query.txn})
        return self._told(RunRows(rows, found, self._why(query), lambda: self._catalog().runs(every)))

    @staticmethod
    def _told(rows: _R) -> _R:
        if not rows:
            tell(rows.why(), 3)
        return rows

    def _why(self, query: _Query) -> Callable[[], Missing | None]:
        return lambda: missing_of(self._catalog().missing(query))

    def steps(self, where: _Where = None, /, **terms: Unpack[Terms]) -> Rows[Step]:
        """The steps, as Rows of Step: ``.run``, ``.step``, ``.time``. Terms work as in ``runs``.

        A step that is not a whole number of hours is the text of its keys ("15m", "0-24"); in a table it is
        null, and a further column, ``lead``, has all steps as text.
        """
        query = _Query(where, terms)
        table = self._catalog().steps(query)
        columns = [table.values(name) for name in ("run", "step", "time", "project")]
        if "lead" in table.columns:
            leads = table.values("lead")
            columns[1] = [
                lead if step is None else step for step, lead in zip(columns[1], leads, strict=True)
            ]
        rows = [Step(*row) for row in zip(*columns, strict=True)]
        return self._told(Rows(rows, lambda: table, self._why(query), self._moments))

    def _moments(self, runs: Iterable[tuple[str | None, str]]) -> set[tuple[str, str]]:
        """Those of these runs (project, name) whose times are seconds since 1970: files and Datasets."""
        found = set()
        for project, run in set(runs):
            pairs = {"run": run, "variable": "@header"} | ({"project": project} if project else {})
            try:
                if next(iter(self.list(pairs)), None) is not None:
                    found.add((project or "", run))
            except Error:  # a schema without such keys
                continue
        return found

    def variables(self, where: _Where = None, /, **terms: Unpack[Terms]) -> Rows[Variable]:
        """The variables, as Rows of Variable: ``.run``, ``.name``, ``.dtype``, ``.shape`` … Terms work as in
        ``runs``; `attr` tests their attributes: ``attr={"units": "K", "standard_name": "sea*"}``. A `box` in
        coordinates, without a term of attributes, matches a variable with at least one point inside:
        ``box={"lat": fst.between(30, 60), "lon": fst.between(170, -170)}``, in the coordinates' own units.
        """
        query = _Query(where, terms)
        return self._told(variables_of(self._catalog().variables(query), self._why(query)))

    def tags(self, where: _Where = None, /, **terms: Unpack[Terms]) -> Rows[Tag]:
        """The tags, as Rows of Tag: ``.name``, ``.version``, ``.type``, ``.unit``. Terms work as in
        ``runs``.
        """
        query = _Query(where, terms)
        return self._told(tags_of(self._catalog().tags(query), self._why(query)))

    def aggregate(
        self, where: _Where = None, /, *, by: str | Sequence[str] = (), **terms: Unpack[Terms]
    ) -> Table:
        """Count, minimum, maximum and mean of the attributes that match all terms, as a Table; `by` groups by
        "run", "step", "variable", "tag" or several of these.
        """
        return Hits(self, _Query(where, terms)).aggregate(by)

    def sql(self, statement: str) -> Table:
        """The rows of a read-only SQL statement over the documented views, as a Table."""
        return self._catalog().sql(plain(statement))

    def rebuild(self) -> RebuildReport:
        """Rebuilds the catalog's index from the store's logs; answers stay the same. Returns a report."""
        return RebuildReport(*self._catalog().rebuild())

    def conflicts(self) -> list[str]:
        """Contradicting definitions in the logs, in words; of each, the older one counts."""
        return self._catalog().conflicts()

    def _repr_html_(self) -> str:
        from ._html import store

        return store(self)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise Invalid(f"{name!r} is not a name", "names are text")
    return str(plain(name))


def _column(column: Any, name: str, rows: int) -> list[Any]:
    """One value for all rows, or one for each."""
    if column is None or isinstance(column, str | int):
        return [column] * rows
    column = _items(column)
    if len(column) != rows:
        raise Invalid(
            f"{name} has {len(column)} rows, and there are {rows} names", "give one for each, or one for all"
        )
    return column

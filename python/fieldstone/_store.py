"""The class ``Store``: what people hold of a store that is open.

Its base ``_Store`` is native: the life of the handle and the calls on fields, none of which passes through
here. This class has the calls on the catalog and what else Python does; their signatures and docs stand here
alone (B-14). ``fieldstone.open``, unpickling, and all else that opens a store makes an object of this class::

    with fieldstone.open("memory:") as store:
        store.create_run("a").annotate("maximum", 3.5)
        assert store.attributes(tag="maximum").first().value == 3.5
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, final

from ._array_files import History, Mesh, histories_of, mesh_of, meshes_of
from ._arrays import ArrayJob, open_job
from ._graph import Graph
from ._hits import Hits
from ._native import Table, _export_grib, _exports_grib, _items, _list_since, _Query, _Store, _transaction
from ._outside import declare
from ._rows import Missing, Rows, RunRows, Step, Tag, Variable, missing_of, tags_of, tell, variables_of
from ._run import Run
from ._terms import Terms
from ._transaction import Transaction
from ._values import datetime_ns, plain
from .errors import Invalid
from .reports import DeleteReport, ExportReport, RebuildReport

if TYPE_CHECKING:  # imported where it is used: xarray is optional
    import xarray as xr

    from ._native import Entry, _Request, _Where

_R = TypeVar("_R", bound=Rows[Any])


@final
class Store(_Store):
    """A store of fields. Made by ``fieldstone.open``.

    ``with fieldstone.open(url) as store:`` flushes and closes at the end; an exception discards what
    was not flushed. A program that ends normally flushes what is open. Any number of threads may share
    a store; a forked child writes for itself.
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
        """What `request` selects as a lazy xarray Dataset (needs the extra ``fieldstone[xarray]``), of what
        is visible now; of a store in memory as it is when values are read.

        Several files are joined along coordinates that differ and do not overlap (time, member, tile), each
        decoded by its own packing; Invalid names coordinate and files where that cannot be. ``combine="run"``
        makes a dimension of runs whose files have equal coordinates; with None several files are Invalid.
        With ``time_dim="valid_time"`` GRIB messages have one datetime axis in place of date, time and step.

        `box` keeps what lies in it, as ``box=`` of queries takes it: slices of elements, coordinates, also
        across the seam: ``{"lat": fst.between(30, 60), "lon": fst.between(170, -170)}``. Cells along one
        dimension are chosen; of coordinates of two, lat(y, x), the rectangle around the cells stays and the
        others in it are missing. Invalid where nothing has such a coordinate or dimension.

        With `level` it is the Dataset of this level of an adaptive mesh, its variables called as they are
        there: ``rho`` is ``level_1/rho``, in `request` as well.
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
        """Writes what `request` selects to a file: GRIB messages as they are, one behind the other, or
        netCDF.

        `format` is "grib", "netcdf4", "netcdf4-classic", "netcdf3", "cdf1", "cdf2" or "cdf5"; without one the
        path's suffix says GRIB (.grib, .grib1, .grib2, .grb, .bin) or netCDF (.nc, .nc4, .cdf, .h5), and a
        file that was ingested, or a Dataset that was stored, keeps its own format. A folder that exists gets
        a netCDF file for each run; a path that is none gets several files joined, as `to_xarray` shows them.

        A netCDF file keeps what stands on the fields: parameters, steps, declarations, tags, attributes, as
        much as ``copy`` takes along. `ingest` reads it back. GRIB messages have no place for it.

        A file is there whole or not at all. Conflict where it exists, unless `overwrite`; NotFound where
        nothing is selected; Invalid names what the format cannot hold. Returns an `ExportReport`: the files,
        fields, bytes, and in `skipped` what a file has not, or not as it was.
        """
        if _exports_grib(path, format):
            return _export_grib(self, request, path, overwrite)
        from ._export import export

        return export(self, request, path, format, overwrite)

    def follow(
        self, request: _Request = None, *, since: str | None = None, timeout: float | None = None
    ) -> Iterator[Entry]:
        """The fields that `request` selects, as entries, as they become visible: what other processes flush
        from now on, or what they flushed after `since`, a ``store.version``.

        A field comes again with each newer version or piece of it; ``entry.complete`` says when it is
        whole. It ends when nothing came for `timeout` seconds; without one it goes on for ever, until Ctrl-C.
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
        """A transaction: what is written through it becomes visible together, or not at all.

        ``with store.transaction() as tx:`` commits at the end; an exception aborts. With `id` you join
        one that another process opened: leaving it flushes, and the opener decides for all. With `comm`, a
        communicator of mpi4py, all ranks open one together, and it is decided when all have left the block.
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
        """A job: the ranks of `comm` write and read distributed arrays of a run, together. Collective.

        `name` is the run's, made or continued; None makes a new one, equal on all ranks (``job.run.name``).
        `comm` is a communicator of mpi4py; without one this process is alone. `writers` and `readers` are how
        many ranks own a range of the file in an exchange (all), `buffer` the bytes that a rank may use for
        moving elements. With `layout` "files" arrays lie in netCDF files that belong to the store; with
        "fields" in its logs, chunked and compressed: each rank archives pieces, of any type. `hints` are keys
        and values of MPI_Info, the same on all ranks, for all files of the job; ``cb_nodes`` is also how many
        ranks own a range, and ``direct_write`` and ``direct_read`` go past the page cache.

        ``with store.arrays(…) as job:`` flushes and closes at the end; after an exception on any rank all
        discard. Denied where the run is another's; NotFound for a run that is not there, in a store open for
        reading.
        """
        return open_job(self, name, comm, project, writers, readers, buffer, layout, hints, None)

    def mesh(self, name: str) -> Mesh:
        """A mesh that the store keeps: ``.counts``, ``.checksum``, ``.path``. NotFound where there is none of
        the name.
        """
        return mesh_of(self, name)

    def meshes(self) -> list[Mesh]:
        """Meshes that the store keeps, by name."""
        return meshes_of(self)

    def histories(self) -> list[History]:
        """Partitions of meshes that the store keeps for runs to come."""
        return histories_of(self)

    @property
    def graph(self) -> Graph:
        """The provenance graph: users, executions and data, and where a result came from."""
        return Graph(self)

    # -- what the catalog is given

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
        exist: Literal["new", "error"] | None = None,
        txn: str | None = None,
    ) -> Run:
        """Declares a run: a name, unique within its project, with parameters. Returns a Run.

        `params` is a dict of values; `job` the name that the batch system gave; `created` a datetime (now
        if absent); `grid` and `notes` are free; `outside` says where the run's data lie, if not in the
        store; `txn` is the id of a transaction to belong to. Conflict where the run is declared already,
        unless ``exist_ok=True`` and it says the same; Denied where its fields are another user's. Visible to
        this process at once, to all at flush. The run is its maker's: others annotate it under their own
        names and no more; with ``annotate="owner"`` not even that. `exist` says what ``run.write`` does
        where its field is there, by whomever: "error" is Conflict, "new" makes a newer version; else as the
        store says.
        """
        # 0: now, by the clock of the store, which holds where Python's overflows.
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
            exist,
            exist_ok,
            txn,
        )
        return Run(self, name, project, txn)

    def run(self, name: str, *, project: str | None = None, txn: str | None = None) -> Run:
        """The Run of this name, declared or named by fields. NotFound where there is none, Invalid where
        several projects have one and `project` is not given; ``project=""`` is the run of no project.
        """
        info = self._catalog().run(plain(project), _name(name), txn)
        return Run(self, info["name"], info["project"], txn, info)

    def create_tag(
        self, name: str, type: str, unit: str | None = None, *, version: int = 0, txn: str | None = None
    ) -> Tag:
        """Declares a tag: a named kind of metadata, shared by all runs. Returns a Tag.

        `type` is bool, int, uint, float, text, bytes, datetime, int_range, float_range, array or json.
        The same again is no error. A tag of the name with another type or unit stays, and this one gets a
        version of its own: the Tag returned has it.
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
        """Declares many tags, as ``create_tag`` one; `type`, `unit` and `version` are one for all or one
        each.
        """
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
        """Says that data outside which lay below the folder `old` lie below `new` from now on.

        Of all runs whose ``outside`` has a root, or an absolute template, there; terms choose among them, as
        in ``runs``, names as in ``delete``. Returns their names. Visible to this process at once, to all at
        flush; older versions of the store answer as they were recorded. Raises NotFound where no run says so,
        Denied where one is another's: then nothing changes.
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

        What goes is the deepest that is named: of `run` alone the run with all below it; with `step` the
        step; with `variable` the variable, with `level` that on the level of an adaptive mesh, or all there
        are on it; of `tag` alone the tag with its attributes in all runs; of `tag`
        with others, of `variable` with `step`, and with `where`, the attributes for which they hold.
        ``fields=True`` removes the fields of deleted runs, steps and variables, too. Older versions of the
        store still have all of it.

        Names are names: text with ``*``, ``?`` or ``[`` is the name that is written so, here and in `where`;
        ``fst.glob("a*")`` (in text: ``run like 'a*'``) asks for a pattern. Invalid where a run is named that
        several projects have, and `project` is not given.

        Runs, steps and variables of other users are Denied, and a tag that others declared or use in their
        runs. Of attributes, those go that this user wrote, and all in his own runs; ``others`` of the report
        counts the rest, and where there is nothing else it is Denied.
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

    # -- what the catalog is asked

    def attributes(self, where: _Where = None, /, *, comm: Any = None, **terms: Unpack[Terms]) -> Hits:
        """The attributes for which all terms hold, as Hits: lazy, asked when they are used.

        Terms: run project job params attr created step time variable version level tag tag_version unit value
        scope box extent volume keywords user writer also without, and txn order limit pick. Names are text, a
        pattern with ``*``, ``?`` or ``[``, a list, or a test; values are tested by ``fieldstone.above`` and
        its like; `box` is a dict of slices by dimension. `where` is a condition made by ``fieldstone.where``,
        or text. With `comm`, an mpi4py communicator, all ranks call together, the query runs once, and each
        rank gets the hits that overlap its own `box`.
        """
        if comm is not None:
            from ._comm import shared

            return shared(self, where, comm, dict(terms))
        return Hits(self, _Query(where, terms))

    def find(self, text: str, /, *, txn: str | None = None) -> Hits:
        """The attributes that a query in text selects, as Hits:
        ``store.find("tag=maximum and value>9000 and box=z:50:100")``. Invalid points at the character.
        """
        if not isinstance(text, str):
            raise Invalid(f"{text!r} is no text", "store.attributes takes keywords")
        return Hits(self, _Query.parse(plain(text), txn))

    def runs(self, where: _Where = None, /, **terms: Unpack[Terms]) -> RunRows[Run]:
        """The runs, as Rows of Run. With a tag, value or box term those that matching attributes stand on;
        without one those that exist. Terms are those of ``attributes``; `attr` tests
        parameters, too. Their ``to_arrow(params=True)`` has a
        column for each parameter.
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

        A step that is no whole number of hours is the text of its keys ("15m", "0-24"); in a table it is
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
        return self._told(Rows(rows, lambda: table, self._why(query)))

    def variables(self, where: _Where = None, /, **terms: Unpack[Terms]) -> Rows[Variable]:
        """The variables, as Rows of Variable: ``.run``, ``.name``, ``.dtype``, ``.shape`` … Terms work as in
        ``runs``; `attr` tests their attributes: ``attr={"units": "K", "standard_name": "sea*"}``. A `box` in
        coordinates, with no term of attributes beside it, holds a variable when one of its points lies in it:
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
        """Count, least, greatest and mean number of the attributes for which the terms hold, as a Table;
        `by` groups by "run", "step", "variable", "tag" or several of these.
        """
        return Hits(self, _Query(where, terms)).aggregate(by)

    def sql(self, statement: str) -> Table:
        """The rows of a read-only SQL statement over the documented views, as a Table."""
        return self._catalog().sql(plain(statement))

    def rebuild(self) -> RebuildReport:
        """Makes the catalog's index again from the store's logs, and returns a RebuildReport. No answer
        changes.
        """
        return RebuildReport(*self._catalog().rebuild())

    def conflicts(self) -> list[str]:
        """Contradicting definitions that the logs hold, in words: of each the older one counts."""
        return self._catalog().conflicts()

    def _repr_html_(self) -> str:
        from ._html import store

        return store(self)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise Invalid(f"{name!r} is no name", "names are text")
    return str(plain(name))


def _column(column: Any, name: str, rows: int) -> list[Any]:
    """One value for all rows, or one each."""
    if column is None or isinstance(column, str | int):
        return [column] * rows
    column = _items(column)
    if len(column) != rows:
        raise Invalid(
            f"{name} has {len(column)} rows, and there are {rows} names", "give one each, or one for all"
        )
    return column

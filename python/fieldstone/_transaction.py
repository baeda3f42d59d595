"""Transactions: data from any number of processes that becomes visible together."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ._arrays import ArrayJob, open_job
from ._fields import FieldWriter
from ._graph import Graph
from ._hits import Hits
from ._native import Fields, Listing, Table, _Transaction
from ._rows import Rows, RunRows, Step, Tag, Variable
from ._run import Run
from ._terms import TermsInTransaction
from ._together import decide
from .reports import DeleteReport

if TYPE_CHECKING:
    from ._native import _Where
    from ._store import Store

_forks = 0
"""How often this process was forked: a child inherits everything of its parent, including transactions."""


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(before=_count_fork)


class Transaction:
    """Everything archived through it becomes visible together, or not at all. Made by ``store.transaction``.

    Only calls on the transaction belong to it; its own reads see what any process flushed into it. ``with
    store.transaction() as tx:`` commits at the end, and an exception aborts. Another process joins by
    ``store.transaction(id=tx.id)``, or by unpickling it; leaving a joined transaction flushes (durable and
    invisible), and an exception discards what was not flushed. The opener decides for all.

    With `comm` all ranks are in it from the start, and ``commit``, ``abort`` and the end of the block are
    collective: it commits when all ranks have arrived and flushed, and aborts if one of them arrives with an
    exception, which all ranks then raise.

    A failed flush of this store, even of another transaction, may lose what was archived here and not
    flushed. From then on ``flush`` and ``commit`` raise that error: the transaction can only be aborted.
    """

    def __init__(self, store: Store, native: _Transaction, comm: Any = None) -> None:
        self.store = store
        self._native = native
        self._comm = comm
        self._forks = _forks

    @property
    def id(self) -> str:
        """The text with which other processes join."""
        return self._native.id

    @property
    def joined(self) -> bool:
        """Whether another process began it, which then decides."""
        return self._native.joined

    def archive(self, key: Any, data: Any, **options: Any) -> None:
        """Same as ``store.archive``, in the transaction."""
        self.store.archive(key, data, txn=self._open(), **options)

    def archive_many(self, keys: Iterable[Any], datas: Iterable[Any], **options: Any) -> None:
        """Same as ``store.archive_many``, in the transaction."""
        self.store.archive_many(keys, datas, txn=self._open(), **options)

    def archive_grib(self, source: Any, key: Any = None) -> int:
        """Same as ``store.archive_grib``, in the transaction."""
        return self.store.archive_grib(source, key, txn=self._open())

    def create_field(self, key: Any, dtype: Any, shape: Any, **options: Any) -> FieldWriter:
        """Same as ``store.create_field``, in the transaction; the writer's pieces belong to it, too."""
        return self.store.create_field(key, dtype, shape, txn=self._give(), **options)

    @property
    def graph(self) -> Graph:
        """Same as ``store.graph``, in the transaction: puts belong to it, and reads see it."""
        return Graph(self.store, self)

    def remove(self, request: Any) -> int:
        """Same as ``store.remove``, in the transaction; also removes fields flushed into it."""
        return self.store.remove(request, txn=self._open())

    def flush(self) -> None:
        """Makes what this process archived here durable; it stays invisible until the commit."""
        self.store.flush(txn=self._open())

    def get(self, key: Any, start: Any = None, count: Any = None) -> Any:
        """Same as ``store.get``; sees fields flushed into the transaction."""
        return self.store.get(key, start, count, txn=self._reading())

    def retrieve(self, request: Any = None, *, strict: bool = True) -> Fields:
        """Same as ``store.retrieve``; sees fields flushed into the transaction."""
        return self.store.retrieve(request, strict=strict, txn=self._reading())

    def list(self, request: Any = None, *, depth: int = 3, masked: bool = False) -> Listing:
        """Same as ``store.list``; sees fields flushed into the transaction."""
        return self.store.list(request, depth=depth, masked=masked, txn=self._reading())

    def axes(self, request: Any = None) -> dict[str, builtins.list[str]]:
        """Same as ``store.axes``; sees fields flushed into the transaction."""
        return self.store.axes(request, txn=self._reading())

    def create_run(self, name: str, **options: Any) -> Run:
        """Same as ``store.create_run``, in the transaction, to which everything that the run writes
        belongs."""
        return self.store.create_run(name, txn=self._give(), **options)

    def run(self, name: str, *, project: str | None = None) -> Run:
        """Same as ``store.run``, in the transaction: writes of the run belong to it, and reads see it."""
        return self.store.run(name, project=project, txn=self._give())

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
        """Same as ``store.arrays``, in the transaction, whose commit makes flushed arrays visible."""
        given = self._give()
        return open_job(self.store, name, comm, project, writers, readers, buffer, layout, hints, given)

    def create_tag(self, name: str, *options: Any, **more: Any) -> Tag:
        """Same as ``store.create_tag``, in the transaction."""
        return self.store.create_tag(name, *options, txn=self._open(), **more)

    def create_tags(self, names: Iterable[str], **options: Any) -> Rows[Tag]:
        """Same as ``store.create_tags``, in the transaction."""
        return self.store.create_tags(names, txn=self._open(), **options)

    def delete(self, **options: Any) -> DeleteReport:
        """Same as ``store.delete``, in the transaction."""
        return self.store.delete(txn=self._open(), **options)

    def attributes(
        self, where: _Where = None, /, *, comm: Any = None, **terms: Unpack[TermsInTransaction]
    ) -> Hits:
        """Same as ``store.attributes``; sees the contents of the transaction."""
        return self.store.attributes(where, comm=comm, txn=self._reading(), **terms)

    def find(self, text: str, /) -> Hits:
        """Same as ``store.find``; sees the contents of the transaction."""
        return self.store.find(text, txn=self._reading())

    def runs(self, where: _Where = None, /, **terms: Unpack[TermsInTransaction]) -> RunRows[Run]:
        """Same as ``store.runs``; sees the contents of the transaction."""
        self._native.note_given()
        return self.store.runs(where, txn=self._reading(), **terms)

    def steps(self, where: _Where = None, /, **terms: Unpack[TermsInTransaction]) -> Rows[Step]:
        """Same as ``store.steps``; sees the contents of the transaction."""
        return self.store.steps(where, txn=self._reading(), **terms)

    def variables(self, where: _Where = None, /, **terms: Unpack[TermsInTransaction]) -> Rows[Variable]:
        """Same as ``store.variables``; sees the contents of the transaction."""
        return self.store.variables(where, txn=self._reading(), **terms)

    def tags(self, where: _Where = None, /, **terms: Unpack[TermsInTransaction]) -> Rows[Tag]:
        """Same as ``store.tags``; sees the contents of the transaction."""
        return self.store.tags(where, txn=self._reading(), **terms)

    def aggregate(
        self, where: _Where = None, /, *, by: str | Sequence[str] = (), **terms: Unpack[TermsInTransaction]
    ) -> Table:
        """Same as ``store.aggregate``; sees the contents of the transaction."""
        return self.store.aggregate(where, by=by, txn=self._reading(), **terms)

    def activate(self, *kinds: str) -> None:
        """Flushes, and makes the content of these kinds in the transaction visible to all.

        Kinds: fields, run, step, variable, tag, run_attribute, step_attribute, variable_attribute, relation.
        The transaction stays open.
        """
        self._native.activate(kinds, True)

    def deactivate(self, *kinds: str) -> None:
        """Makes these kinds invisible again, also after the commit; reads that name the id still see them."""
        self._native.activate(kinds, False)

    def commit(self) -> None:
        """Flushes, and makes everything that any process flushed into the transaction visible.

        Raises Conflict if it was aborted, and the earlier error if a part of it was lost. Committing again
        does nothing.
        """
        self._decide(True)

    def abort(self) -> None:
        """Drops everything that any process archived into the transaction.

        Raises Conflict if it was committed. Aborting again does nothing.
        """
        self._decide(False)

    def _decide(self, commit: bool) -> None:
        self._note_forks()
        if self._comm is None:
            self._native.decide(commit)
        else:
            decide(self._comm, self, None, commit)

    def _note_forks(self) -> None:
        if self._forks != _forks:
            self._native.note_given()

    def _open(self) -> str:
        return self._native.writing()

    def _give(self) -> str:
        """The id, for objects that other processes may get and write with."""
        self._native.note_given()
        return self._open()

    def _reading(self) -> str | None:
        """The id for reads; None after the decision, when nothing is hidden."""
        return self._native.reading()

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._note_forks()
        if self._comm is None:
            self._native.leave(kind is None)
        elif self._native.reading() is not None:
            decide(self._comm, self, error, True)

    def __reduce__(self) -> tuple[Any, ...]:
        return _join, (self.store, self.id)

    def __repr__(self) -> str:
        id = self._native.text
        return f"<fieldstone.Transaction {id} {self._native.state}>"


def _join(store: Store, id: str) -> Transaction:
    return store.transaction(id=id)

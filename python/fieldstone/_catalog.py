"""The catalog's calls on a store, each over one of the native ``_Catalog``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ._hits import Hits
from ._native import Store, Table, _Catalog, _items, _Query
from ._outside import declare
from ._rows import Rows, Step, Tag, Variable
from ._run import Run
from ._values import datetime_ns
from .errors import Invalid
from .reports import DeleteReport, RebuildReport


def create_run(
    store: Store,
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
    annotate: str = "all",
    txn: str | None = None,
) -> Run:
    """See ``Store.create_run``."""
    moment = time.time_ns() if created is None else datetime_ns(created)
    params = dict(params) if params is not None else None
    store._catalog().create_run(
        (project, _name(name)), params, job, moment, grid, notes, declare(outside), annotate, exist_ok, txn
    )
    return Run(store, name, project, txn)


def run(store: Store, name: str, *, project: str | None = None, txn: str | None = None) -> Run:
    """See ``Store.run``."""
    info = store._catalog().run(project, _name(name), txn)
    return Run(store, info["name"], info["project"], txn, info)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise Invalid(f"{name!r} is no name", "names are text")
    return name


def create_tag(
    store: Store,
    name: str,
    *,
    type: str,
    unit: str | None = None,
    version: int = 0,
    txn: str | None = None,
) -> Tag:
    """See ``Store.create_tag``."""
    return create_tags(store, [_name(name)], type=type, unit=unit, version=version, txn=txn)[0]


def create_tags(
    store: Store,
    names: Iterable[str],
    *,
    type: str | Iterable[str],
    unit: str | Iterable[str | None] | None = None,
    version: int | Iterable[int] = 0,
    txn: str | None = None,
) -> Rows[Tag]:
    """See ``Store.create_tags``."""
    names = _items(names)
    columns = {"type": type, "unit": unit, "version": version}
    types, units, versions = (_column(of, name, len(names)) for name, of in columns.items())
    rows = [
        (name, number, kind, of or "")
        for name, number, kind, of in zip(names, versions, types, units, strict=True)
    ]
    return _tags(store._catalog().create_tags(rows, txn))


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


def _tags(rows: list[tuple[str, int, str, str, int]]) -> Rows[Tag]:
    tags = [Tag(name, shown, kind, unit or None, asked) for name, asked, kind, unit, shown in rows]
    columns = ("name", "version", "type", "unit")
    return Rows(tags, lambda: _table(columns, [[getattr(tag, name) for tag in tags] for name in columns]))


def _table(names: Iterable[str], rows: list[list[Any]]) -> Table:
    return _Catalog.table(list(names), rows)


def attributes(store: Store, where: Any = None, /, *, comm: Any = None, **terms: Any) -> Hits:
    """See ``Store.attributes``."""
    if comm is not None:
        from ._comm import shared

        return shared(store, where, comm, terms)
    return Hits(store, _Query(where, terms))


def find(store: Store, text: str, /, *, txn: str | None = None) -> Hits:
    """See ``Store.find``."""
    if not isinstance(text, str):
        raise Invalid(f"{text!r} is no text", "store.attributes takes keywords")
    return Hits(store, _Query.parse(text, txn))


def runs(store: Store, where: Any = None, /, **terms: Any) -> Rows[Run]:
    """See ``Store.runs``."""
    query = _Query(where, terms)
    found = store._catalog().runs(query)
    rows = [Run(store, info["name"], info["project"], query.txn, info) for info in found]
    names = ("project", "name", "job", "created", "params", "grid", "notes", "declared")
    return Rows(rows, lambda: _table(names, [[info[name] for info in found] for name in names]))


def steps(store: Store, where: Any = None, /, **terms: Any) -> Rows[Step]:
    """See ``Store.steps``."""
    table = store._catalog().steps(_Query(where, terms))
    columns = [table.values(name) for name in ("run", "step", "time", "project")]
    return Rows([Step(*row) for row in zip(*columns, strict=True)], lambda: table)


def variables(store: Store, where: Any = None, /, **terms: Any) -> Rows[Variable]:
    """See ``Store.variables``."""
    rows = [Variable(**info) for info in store._catalog().variables(_Query(where, terms))]
    return Rows(rows, lambda: _table_of_variables(rows))


def _table_of_variables(rows: list[Variable]) -> Table:
    import numpy as np

    def numbers(extents: tuple[int, ...] | None) -> Any:
        return None if extents is None else np.array(extents, "i8")

    columns: dict[str, list[Any]] = {
        name: [getattr(row, name) for row in rows] for name in ("project", "run", "name", "version")
    }
    columns["dtype"] = [None if row.dtype is None else row.dtype.str for row in rows]
    columns["shape"] = [numbers(row.shape) for row in rows]
    columns["dims"] = [np.array(row.dims, dtype=str) if row.dims else None for row in rows]
    columns["attrs"] = [row.attrs for row in rows]
    columns["declared"] = [row.declared for row in rows]
    return _table(columns, list(columns.values()))


def tags(store: Store, where: Any = None, /, **terms: Any) -> Rows[Tag]:
    """See ``Store.tags``."""
    return _tags(store._catalog().tags(_Query(where, terms)))


def aggregate(store: Store, where: Any = None, /, *, by: Any = (), **terms: Any) -> Table:
    """See ``Store.aggregate``."""
    return Hits(store, _Query(where, terms)).aggregate(by)


def delete(
    store: Store,
    *,
    run: Any = None,
    variable: Any = None,
    tag: Any = None,
    step: Any = None,
    where: Any = None,
    project: Any = None,
    fields: bool = False,
    doit: bool = False,
    txn: str | None = None,
) -> DeleteReport:
    """See ``Store.delete``."""
    terms = {"run": run, "project": project, "variable": variable, "tag": tag, "step": step}
    named = [name for name, term in (terms | {"where": where}).items() if term is not None]
    query = _Query(where, terms | {"txn": txn})
    counts, done, others = store._catalog().delete(named, query, fields, doit, txn)
    return DeleteReport(*counts, done, others)


def sql(store: Store, statement: str) -> Table:
    """See ``Store.sql``."""
    return store._catalog().sql(statement)


def rebuild(store: Store) -> RebuildReport:
    """See ``Store.rebuild``."""
    return RebuildReport(*store._catalog().rebuild())


def conflicts(store: Store) -> list[str]:
    """See ``Store.conflicts``."""
    return store._catalog().conflicts()

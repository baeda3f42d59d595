"""Rows that the catalog returns: steps, variables, tags, boxes, and sequences of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ._native import _Catalog, _level_of
from ._record import Record

if TYPE_CHECKING:  # imported where it is used
    import numpy as np
    import pandas as pd

    from ._native import Table

_Row = TypeVar("_Row")
_SHOWN = 10


class Step(Record):
    """A step of a run: its number, and its time in the run's unit.

    A step that is not a whole number of hours is the text of its keys.
    """

    run: str
    step: int | str
    time: float | None = None
    project: str | None = None


class Tag(Record):
    """A tag: a named kind of metadata. `version` is the version shown, `type` one of the value types."""

    name: str
    version: int
    type: str
    unit: str | None = None
    _asked: int = field(default=0, repr=False, compare=False)

    def _row(self) -> tuple[str, int, str, str]:
        return self.name, self._asked, self.type, self.unit or ""


class Variable(Record):
    """A variable of a run, as declared, or, if it was not declared, as its fields describe it."""

    run: str
    name: str
    version: int = 0
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] | None = None
    dims: tuple[str, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict, hash=False)
    coords: dict[str | int, Any] = field(default_factory=dict, hash=False, compare=False)
    decomposition: tuple[int, ...] | None = None
    find: Any = field(default=None, hash=False, compare=False)
    declared: bool = True
    project: str | None = None

    @property
    def level(self) -> int | None:
        """The level of an adaptive mesh that it is on; None if it is on none."""
        found = _level_of(self.name)
        return None if found is None else found[0]


class Box(Record):
    """The box of at least one attribute: ``start`` and ``count`` for each dimension, half-open."""

    run: str
    step: int | None
    variable: str | None
    start: tuple[int, ...]
    count: tuple[int, ...]
    variable_version: int | None = None
    project: str | None = None

    @property
    def box(self) -> tuple[slice, ...]:
        """The box as slices, which can index a numpy array and serve as a ``box=`` term."""
        return tuple(slice(a, a + n) for a, n in zip(self.start, self.count, strict=True))


class Missing(Record):
    """A name in a query that nothing in the store has. ``str()`` explains why the query finds nothing."""

    what: str  # "run", "variable", "level", "tag" or "parameter"
    name: str
    did_you_mean: str | None = None

    def __str__(self) -> str:
        near = f"; {self.did_you_mean}" if self.did_you_mean else ""
        return f"there is no {self.what} {self.name!r}{near}"


def tell(missing: Missing | None, level: int) -> None:
    """Warns the caller, `level` frames above, of a name in the query that nothing has."""
    if missing is not None:
        warnings.warn(f"nothing is found: {missing}", UserWarning, stacklevel=level + 1)


def missing_of(found: tuple[str, str, str | None] | None) -> Missing | None:
    """The `Missing` for the native catalog's answer on a query that finds nothing."""
    return None if found is None else Missing(*found)


class Rows(Sequence[_Row], Generic[_Row]):
    """The result of a catalog call: a sequence of rows that does not change.

    ``to_arrow()`` returns them as a Table, ``to_pandas()`` as a DataFrame. If the result is empty because the
    query has a name that nothing has, a warning says so, and so does ``why()``.
    """

    def __init__(
        self,
        rows: list[_Row],
        table: Callable[[], Table],
        why: Callable[[], Missing | None] | None = None,
        moments: Callable[[Iterable[tuple[str | None, str]]], set[tuple[str, str]]] | None = None,
    ) -> None:
        self._rows = rows
        self._table = table
        self._why = why
        self._moments = moments

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int, /) -> _Row: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[_Row]: ...
    def __getitem__(self, index: Any, /) -> Any:
        return self._rows[index]

    def __iter__(self) -> Iterator[_Row]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Rows | list | tuple) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def nbytes(self) -> int:
        """Approximate bytes that the table of them takes in memory."""
        return self.to_arrow().nbytes

    @property
    def truncated(self) -> bool:
        """Whether rows were left out. Always false: all rows found are here."""
        return False

    def to_arrow(self) -> Table:
        """A Table, which pyarrow, polars, DuckDB and others accept."""
        return self._table()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The stream that pyarrow, polars, DuckDB and others read in place of ``to_arrow()``."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def why(self) -> Missing | None:
        """If an unknown name is why nothing was found: that name, with the nearest ones."""
        return self._why() if self._why is not None else None

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame. pyarrow is not needed."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        shown = [f"  {_bounded(row)}" for row in self._rows[:_SHOWN]]
        if len(self._rows) > _SHOWN:
            shown.append(f"  … {len(self._rows) - _SHOWN} more")
        if not shown and (missing := self.why()) is not None:
            shown = [f"  {missing}"]
        return "\n".join([f"<fieldstone.Rows: {len(self._rows)}>", *shown])

    def _repr_html_(self) -> str:
        from ._html import rows

        return rows(self._rows, _SHOWN, self._moments)


class RunRows(Rows[_Row]):
    """Runs, whose table can have a column for each parameter."""

    def __init__(
        self,
        rows: list[_Row],
        found: list[dict[str, Any]],
        why: Callable[[], Missing | None] | None = None,
        known: Callable[[], list[dict[str, Any]]] = list,
    ) -> None:
        super().__init__(rows, lambda: self._columns(False), why)
        self._found = found
        self._known = known

    def _repr_html_(self) -> str:
        from ._html import rows

        names = ("project", "name", "job", "created", "notes", "params")
        return rows([{name: info[name] for name in names} for info in self._found], _SHOWN)

    def to_arrow(self, params: bool = False) -> Table:
        """A Table, which pyarrow, polars, DuckDB and others accept. With ``params=True`` each parameter has a
        column, ``params.NAME``, null for a run that lacks it; otherwise all are one column of JSON text. A
        table without runs has the columns that all runs of the store would give it.
        """
        return self._columns(params)

    def to_pandas(self, params: bool = False) -> pd.DataFrame:
        """A pandas DataFrame with the columns of ``to_arrow``. pyarrow is not needed."""
        return self.to_arrow(params).to_pandas()

    def _columns(self, params: bool) -> Table:
        found = self._found or (self._known() if params else [])
        columns = {name: [info[name] for info in found] for name in _OF_RUNS}
        if params:
            columns.pop("params")
            given = dict.fromkeys(name for info in found for name in info["params"])
            for name in given:
                columns[f"params.{name}"] = [info["params"].get(name) for info in found]
        return table_of(columns, _OF_RUNS, empty=not self._found)


# Columns and their types, also of a table without rows.
_OF_RUNS = {
    "project": "text",
    "name": "text",
    "job": "text",
    "created": "datetime",
    "params": "json",
    "grid": "json",
    "notes": "text",
    "declared": "bool",
}
_OF_TAGS = {"name": "text", "version": "int", "type": "text", "unit": "text"}
_OF_VARIABLES = {
    "project": "text",
    "run": "text",
    "name": "text",
    "version": "int",
    "dtype": "text",
    "shape": "ints",
    "dims": "texts",
    "attrs": "json",
    "declared": "bool",
}


def table_of(columns: Mapping[str, list[Any]], kinds: Mapping[str, str], empty: bool = False) -> Table:
    """Makes a Table of columns by name. They have these types unless a value requires another one; `empty`:
    no row."""
    return _Catalog.table(list(columns), list(columns.values()), [kinds.get(name) for name in columns], empty)


def tags_of(
    found: list[tuple[str, int, str, str, int]], why: Callable[[], Missing | None] | None = None
) -> Rows[Tag]:
    """Tags from the rows of the native catalog."""
    tags = [Tag(name, shown, kind, unit or None, asked) for name, asked, kind, unit, shown in found]
    table = {name: [getattr(tag, name) for tag in tags] for name in _OF_TAGS}
    return Rows(tags, lambda: table_of(table, _OF_TAGS), why)


def variables_of(
    found: list[dict[str, Any]], why: Callable[[], Missing | None] | None = None
) -> Rows[Variable]:
    """Variables from the rows of the native catalog."""
    rows = [Variable(**info) for info in found]
    return Rows(rows, lambda: _table_of_variables(rows), why)


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
    return table_of(columns, _OF_VARIABLES)


def _bounded(row: object) -> str:
    text = repr(row)
    return text if len(text) <= 160 else text[:159] + "…"

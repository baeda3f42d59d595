"""Hits: the attributes that a query finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, overload

from ._native import Hit, Table, _Catalog, _HitTable, _items, _level_of, _name_at, _Query
from ._outside import read as outside
from ._rows import Box, Missing, Rows, missing_of, tell
from .errors import Invalid, NotFound

if TYPE_CHECKING:  # imported where it is used: pandas and polars are optional
    import pandas as pd
    import polars as pl

    from ._store import Store

_SHOWN = 10


class Hits:
    """The attributes that a query finds. Made by ``store.attributes`` and ``store.find``.

    It is lazy: each use asks the catalog again. ``len(hits)`` counts, ``for h in hits`` streams in bounded
    memory, ``to_arrow()`` and ``to_pandas()`` return all in columns. ``collect()`` asks once and keeps the
    result, as do hits made with ``comm=``. If counting or iterating finds none because the query has a name
    that nothing has, a warning says so, and so does ``why()``.
    """

    # B-2: hits pin nothing; otherwise hits that are kept would keep a read of the engine open.
    def __init__(self, store: Store, query: _Query, table: _HitTable | None = None) -> None:
        self.store = store
        self._query = query
        self._table = table

    @property
    def _ask(self) -> _Catalog:
        return self.store._catalog()

    def collect(self) -> Hits:
        """The same hits, found now and kept; each takes memory."""
        return Hits(self.store, self._query, self._found())

    def _found(self) -> _HitTable:
        return self._table if self._table is not None else self._ask.hits(self._query)

    def count(self) -> int:
        """The number of hits."""
        return self._count(3)

    def _count(self, level: int) -> int:
        if self._table is not None:
            return len(self._table)
        found = self._ask.count(self._query)
        if not found:
            tell(self.why(), level)
        return found

    def __len__(self) -> int:
        return self._count(3)

    def __bool__(self) -> bool:
        return self.first() is not None

    def __iter__(self) -> Iterator[Hit]:
        if self._table is None:
            return self._told(self._ask.stream(self._query))
        txn, table = self._query.txn, self._table
        return (table.hit(self.store, txn, row) for row in range(len(table)))

    def _told(self, stream: Iterator[Hit]) -> Iterator[Hit]:
        """The same hits, with a warning about a name that nothing has if there are none."""
        first = next(stream, None)
        if first is None:
            tell(self.why(), 2)
            return
        yield first
        yield from stream

    @overload
    def __getitem__(self, row: int, /) -> Hit: ...
    @overload
    def __getitem__(self, row: slice, /) -> list[Hit]: ...
    def __getitem__(self, row: Any, /) -> Any:
        if isinstance(row, slice):
            ahead = row.stop is not None and row.stop >= 0 and (row.start or 0) >= 0 and (row.step or 1) > 0
            hits = self.head(row.stop) if ahead and self._table is None else self.collect()
            return list(hits)[row] if self._table is None else [hits[i] for i in range(len(hits))[row]]
        if self._table is None:
            if row < 0:
                return self.collect()[row]
            found = next(islice(self.head(row + 1), row, None), None)
            if found is None:
                raise IndexError(f"no hit has index {row}")
            return found
        place = row + len(self._table) if row < 0 else row
        if not 0 <= place < len(self._table):
            raise IndexError(f"there are {len(self._table)} hits, none has index {row}")
        return self._table.hit(self.store, self._query.txn, place)

    def head(self, n: int = 5) -> Hits:
        """The first `n` of them, in their order; as lazy as these hits."""
        if n < 0:
            raise Invalid(f"head of {n} hits", "give a number that is not negative")
        if self._table is None:
            return Hits(self.store, self._query.limited(_least(self._query.limit, n)))
        return Hits(self.store, self._query, self._table.chosen(list(range(min(n, len(self._table))))))

    def read(self, within: Any = None, *, variable: str | None = None) -> Any:
        """Reads the data that all hits point to: one array with one hit in each row if all have the same
        shape and dtype, otherwise a list, in their order. `within` and `variable` are those of ``Hit.read``.
        If the data exceed memory, read hit by hit.
        """
        import numpy as np

        found = [hit.read(within, variable=variable) for hit in self.collect()]
        alike = {(part.shape, part.dtype) if isinstance(part, np.ndarray) else None for part in found}
        return np.stack(found) if len(alike) == 1 and None not in alike else found

    def why(self) -> Missing | None:
        """Why nothing is found: the run, variable, tag or parameter in the query that nothing has, with the
        nearest names. None if every name is known.
        """
        return missing_of(self._ask.missing(self._query))

    def first(self) -> Hit | None:
        """The first one in their order; None if there is none."""
        if self._table is not None:
            return self[0] if len(self._table) else None
        limit = 1 if self._query.limit is None else min(1, self._query.limit)
        return next(iter(self._ask.stream(self._query.limited(limit))), None)

    def last(self) -> Hit | None:
        """The last one in their order; None if there is none. Finds all of them."""
        hits = self.collect()
        return hits[-1] if hits.count() else None

    @property
    def nbytes(self) -> int:
        """Approximate bytes that ``to_arrow()`` takes in memory. Finds all of them."""
        return self.to_arrow().nbytes

    @property
    def truncated(self) -> bool:
        """Whether there are more than the query's ``limit``."""
        limit = self._query.limit
        return limit is not None and self._ask.count(self._query.limited(limit + 1)) > limit

    def to_arrow(self, *, with_related: bool = False) -> Table:
        """A Table with a row for each hit: project run step time variable variable_version tag tag_version
        unit value type start count cells user, and ``keyword.NAME`` for each further keyword that some hit
        has. pyarrow, polars, DuckDB and others accept it.

        `with_related`: adds to each hit the attributes that ``with_related=`` of the query found for it, in
        columns ``related.step``, ``related.value`` and so on (for several terms ``related1.step`` …, in their
        order). A hit with several such attributes has several rows; the query's ``limit`` counts hits.

        ``value`` has the type of the values if all have the same; numbers of several types become doubles,
        other mixtures JSON text. ``start`` and ``count`` are lists of int64, null if there is no box; so is
        ``cells``, null if the attribute is on all elements of its box.
        """
        if with_related:
            return self._beside()
        table = self._found()
        limit = self._query.limit
        full = limit is not None and len(table) == limit
        # Without hits, the column of values has the type that hits would give it.
        kind = None if len(table) or self._table is not None else self._ask.value_kind(self._query)
        return table.table(full and self.truncated, kind)

    def _beside(self) -> Table:
        if self._table is not None:
            raise Invalid(
                "collected hits lack related attributes",
                "ask for with_related=True before collect(), or without comm=",
            )
        hits, others = self._ask.pairs(self._query)
        return hits.beside(others)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The stream that pyarrow, polars, DuckDB and others read in place of ``to_arrow()``."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, with_related: bool = False) -> pd.DataFrame:
        """A pandas DataFrame with the columns of ``to_arrow``. pyarrow is not needed."""
        return self.to_arrow(with_related=with_related).to_pandas()

    def to_polars(self, *, with_related: bool = False) -> pl.DataFrame:
        """A polars DataFrame with the columns of ``to_arrow``."""
        import polars as pl

        return pl.DataFrame(self.to_arrow(with_related=with_related))

    def aggregate(self, by: str | Sequence[str] = ()) -> Table:
        """Count, minimum, maximum and mean of the hits, as a Table with a row for each group.

        `by`: "run", "step", "variable", "tag", or several of these. Values that are not numbers are only
        counted.
        """
        return self._ask.aggregate(self._query, [by] if isinstance(by, str) else _items(by))

    def time_series(self) -> Table:
        """Count, minimum, maximum and mean for each run and step: columns run step time count min max
        mean."""
        return self.aggregate(("run", "step"))

    def boxes(self) -> Rows[Box]:
        """The distinct boxes of the hits: rows with run, step, variable, start, count."""
        table = self._ask.boxes(self._query)
        names = ("run", "step", "variable", "start", "count", "variable_version", "project")
        columns = [table.values(name) for name in names]
        rows = [Box(*row) for row in zip(*columns, strict=True)]
        return Rows(rows, lambda: table)

    def explain(self) -> str:
        """How the query is answered: the plan, and the rows visited and returned."""
        return self._ask.explain(self._query)

    def __repr__(self) -> str:
        text = str(self._query)
        head = f"<fieldstone.Hits of {text if len(text) <= 160 else text[:159] + '…'!r}>"
        if self.store.closed:
            return head
        few = self._query.limited(_least(self._query.limit, _SHOWN + 1))
        shown = self._ask.stream(few) if self._table is None else self
        rows = [repr(hit) for hit, _ in zip(shown, range(_SHOWN + 1), strict=False)]
        if len(rows) > _SHOWN:
            rows[_SHOWN:] = ["…"]
        if not rows:
            missing = self.why()
            rows = ["none" if missing is None else f"none: {missing}"]
        return "\n".join([head, *("  " + row for row in rows)])

    def _repr_html_(self) -> str:
        from ._html import hits

        limit = _least(self._query.limit, 21)
        found = self._table if self._table is not None else self._ask.hits(self._query.limited(limit))
        return hits(found.table(False), self.store._moments)


def _least(limit: int | None, other: int) -> int:
    return other if limit is None else min(limit, other)


def read(store: Store, hit: Hit, within: Any, other: str | None, txn: str | None) -> Any:
    """Reads a hit's box, for ``Hit.read``: of another variable, or inside another box, if given."""
    if other is not None and hit.variable is not None:
        return _of_other(store, hit, other, within, txn)
    if hit.variable is None:
        raise Invalid(
            f"{hit!r} is not on a variable, so it does not point to a field",
            "read a field of the run: store.run(hit.run).read(variable, hit.step)",
        )
    if within is None:
        found = _box(store, hit, hit.start, hit.count, txn)
        return found if hit.cells is None else _at_cells(hit, found, hit.start)
    variable = store._catalog().variable((hit.project, hit.run), hit.variable, hit.variable_version, txn)
    shape = variable["shape"]
    if shape is None:
        raise Invalid(f"the shape of variable {hit.variable} is unknown", "leave out within=")
    if hit.cells is None and _in_coordinates(store, hit, variable, within):
        return _in_grid(store, hit, variable, within, txn)
    start, extents = _meet(hit.start, hit.count, variable, within)
    if 0 in extents:
        import numpy as np

        return np.empty(extents, variable["dtype"])
    found = _box(store, hit, start, extents, txn)
    return found if hit.cells is None else _at_cells(hit, found, start)


def _of_other(store: Store, hit: Hit, name: str, within: Any, txn: str | None) -> Any:
    """The elements of another variable in a hit's box, at its step."""
    pair = (hit.project, hit.run)
    own = store._catalog().variable(pair, hit.variable, hit.variable_version, txn)
    start, count = hit.start, hit.count
    if within is not None:
        if own["shape"] is None:
            raise Invalid(f"the shape of variable {hit.variable} is unknown", "leave out within=")
        start, count = _meet(start, count, own, within)
        if 0 in count:
            import numpy as np

            return np.empty(count, store._catalog().variable(pair, name, None, txn)["dtype"])
    key = dict(store._catalog().key_of(pair, name, hit.step)) | hit.keywords
    try:
        found = store.get(key, start, count, txn=txn)
    except NotFound as missing:
        found = outside(store, pair, name, None, hit.step, start, count, txn, missing)
    return found if hit.cells is None else _at_cells(hit, found, start)


def _meet(start: Any, count: Any, variable: dict[str, Any], within: Any) -> tuple[list[int], list[int]]:
    """Start and count of the intersection of both boxes; a hit without a box has the variable's whole
    shape."""
    shape = variable["shape"]
    start = list(start if start is not None else (0,) * len(shape))
    stop = [a + n for a, n in zip(start, count if count is not None else shape, strict=True)]
    for dim, (low, high) in elements(within, variable).items():
        start[dim], stop[dim] = max(start[dim], low), min(stop[dim], high)
    return start, [max(b - a, 0) for a, b in zip(start, stop, strict=True)]


def _in_coordinates(store: Store, hit: Hit, variable: dict[str, Any], within: Any) -> bool:
    """Whether a box names a longitude, or a coordinate that is not declared along a dimension of the same
    name."""
    dims, declared = variable["dims"], variable["coords"]
    for name, physical, (low, high) in _Catalog.ranges(within):
        if not physical:
            continue
        if name not in dims or low > high or isinstance(declared.get(name), (str, type(None))):
            return True
        beside = name if hit.level is None else _name_at(name, hit.level)
        try:
            attrs = store._catalog().variable((hit.project, hit.run), beside, None, None)["attrs"]
        except NotFound:
            attrs = {}
        named = name in ("lon", "longitude") or attrs.get("standard_name") == "longitude"
        if named or (str(attrs.get("units")).startswith("degree") and str(attrs["units"])[-1] in "tE"):
            return True
    return False


def _in_grid(store: Store, hit: Hit, variable: dict[str, Any], within: Any, txn: str | None) -> Any:
    """The elements of a hit's box inside ranges of coordinates of its grid, also of two dimensions.

    If coordinates have one dimension, returns the elements inside, across the seam from west to east. If they
    have several, returns a masked array of the rectangle around them.
    """
    import numpy as np

    from ._xarray.region import cells

    level, name = _level_of(variable["name"]) or (None, variable["name"])
    data = store.to_xarray(dict(hit.key), level=level)
    grid = data[name if name in data else next(iter(data.data_vars))]
    dims, shape = [str(dim) for dim in grid.dims], variable["shape"]
    # Leading dimensions of the Dataset come from keywords; the field itself has only the last ones.
    dims = dims[len(dims) - len(shape) :]
    of = cells(grid.coords, dict(grid.sizes), within)
    chosen = [of.along.get(dim, np.arange(extent)) for dim, extent in zip(dims, shape, strict=True)]
    if hit.start is not None:
        bounds = zip(chosen, hit.start, hit.count, strict=True)
        chosen = [along[(along >= a) & (along < a + n)] for along, a, n in bounds]
    hidden = np.zeros([len(along) for along in chosen], bool)
    # A mask covers some of the dimensions, in its own order: bring it into the variable's, then broadcast.
    for named, mask in of.masks.items():
        places = [dims.index(dim) for dim in named]
        part = mask[np.ix_(*(chosen[place] for place in places))].transpose(np.argsort(places))
        hidden |= ~np.expand_dims(part, [place for place in range(len(dims)) if place not in places])
    if of.masks:
        # The smallest box around the cells that remain, so that the read is no larger than needed.
        around = []
        for place in range(len(dims)):
            lies = np.flatnonzero((~hidden).any(tuple(other for other in range(len(dims)) if other != place)))
            around.append(slice(lies[0], lies[-1] + 1) if len(lies) else slice(0, 0))
        hidden = hidden[tuple(around)]
        chosen = [along[span] for along, span in zip(chosen, around, strict=True)]
    if any(len(along) == 0 for along in chosen):
        return np.empty([len(along) for along in chosen], variable["dtype"])
    # One read of the enclosing box; the elements are picked from it, also those on both sides of the seam.
    start = [int(along.min()) for along in chosen]
    extents = [int(along.max()) + 1 - first for along, first in zip(chosen, start, strict=True)]
    found = _box(store, hit, start, extents, txn)
    found = found[np.ix_(*(along - first for along, first in zip(chosen, start, strict=True)))]
    return np.ma.masked_array(found, hidden) if of.masks else found


def _at_cells(hit: Hit, found: Any, start: Any) -> Any:
    """The elements at the hit's cells, of a box that begins at `start`."""
    along: int = hit._cells_along
    cells = hit.cells - start[along]
    return found.take(cells[(cells >= 0) & (cells < found.shape[along])], axis=along)


def _box(store: Store, hit: Hit, start: Any, count: Any, txn: str | None) -> Any:
    """A box of the field, or of the files that hold it according to the run."""
    try:
        return store.get(hit.key, start, count, txn=txn)
    except NotFound as missing:
        place = hit.variable, hit.variable_version, hit.step
        return outside(store, (hit.project, hit.run), *place, start, count, txn, missing)


def elements(box: Any, variable: dict[str, Any]) -> dict[int, tuple[int, int]]:
    """First element and end of a box along each dimension that it names, for a variable with its shape."""
    dims, shape = variable["dims"], variable["shape"]
    found: dict[int, tuple[int, int]] = {}
    for name, physical, (low, high) in _Catalog.ranges(box):
        dim = name if isinstance(name, int) else dims.index(name) if name in dims else -1
        if not 0 <= dim < len(shape):
            have = ", ".join(dims) or f"by index, 0 to {len(shape) - 1}"
            raise Invalid(
                f"variable {variable['name']} has no dimension {name!r}", f"its dimensions are {have}"
            )
        if physical:
            low, high = _indices(variable, dim, low, high)
        found[dim] = (max(low or 0, 0), shape[dim] if high is None else min(high, shape[dim]))
    return found


def _indices(variable: dict[str, Any], dim: int, low: float, high: float) -> tuple[int, int]:
    """Elements whose coordinates are between two values, both included."""
    import numpy as np

    dims = variable["dims"]
    name = dims[dim] if dims else dim
    coordinates = variable["coords"].get(name)
    if coordinates is None or isinstance(coordinates, str):
        kind = "no coordinates" if coordinates is None else f"a {coordinates} grid"
        raise Invalid(
            f"dimension {name} of variable {variable['name']} has {kind}", "give a slice of elements"
        )
    if isinstance(coordinates, tuple):
        first, spacing = coordinates
        coordinates = first + spacing * np.arange(variable["shape"][dim])
    inside = np.flatnonzero((coordinates >= low) & (coordinates <= high))
    return (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)

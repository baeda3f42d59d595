"""Rows of ``store.stats(by=…)``: fields and bytes by owner, dataset, writer or keyword."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ._html import counts
from ._native import _stats_by

if TYPE_CHECKING:  # pyarrow is optional
    import pyarrow as pa

    from ._native import _Request, _Store


class StatsRow(NamedTuple):
    """The fields of one owner, dataset or writer, or with one value of a keyword (``name``; None without the
    keyword): visible fields and their bytes, the bytes that they take in the store (``stored``), and those of
    versions that newer ones hide and of removed fields (``dead``)."""

    name: str | None
    fields: int
    nbytes: int
    stored: int
    dead: int


class StatsRows(Sequence[StatsRow]):
    """Rows in the order of the values. Made by ``store.stats(by=…)``."""

    __slots__ = ("_rows", "by")

    def __init__(self, by: str, rows: list[StatsRow]) -> None:
        self.by, self._rows = by, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __repr__(self) -> str:
        return f"<fieldstone.StatsRows by {self.by}: {len(self)} rows>"

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table: name, fields, nbytes, stored, dead."""
        import pyarrow as pa

        columns = dict(zip(StatsRow._fields, zip(*self._rows, strict=True), strict=False))
        types = {name: pa.uint64() for name in StatsRow._fields} | {"name": pa.string()}
        return pa.table({name: pa.array(columns.get(name, ()), of) for name, of in types.items()})

    def _repr_html_(self) -> str:
        return counts(self.by, self._rows)


def stats_by(store: _Store, request: _Request, by: str) -> StatsRows:
    """The rows of a store."""
    return StatsRows(by, [StatsRow(*row) for row in _stats_by(store, request, by)])

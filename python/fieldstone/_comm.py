"""One query for all ranks of a job: rank 0 asks, and each rank gets the hits that overlap its own box."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._hits import Hits, elements
from ._native import Region, _Catalog, _HitTable, _Query
from .errors import Error, Invalid

if TYPE_CHECKING:
    from ._store import Store

_Ranges = list[tuple[str | int, bool, tuple[Any, Any]]]


def shared(store: Store, where: Any, comm: Any, terms: dict[str, Any]) -> Hits:
    """The hits of this rank. `comm` has ``rank``, ``allgather`` and ``scatter``, like mpi4py's communicators.

    All ranks call it, with terms that differ only in `box`; a rank without a box gets all hits. An error on
    any rank is raised on every rank, so that none waits for another. `limit` counts hits before they are
    distributed.
    """
    box = terms.pop("box", None)
    query: _Query | None = None
    ranges: _Ranges | None = None
    failed: Exception | None = None
    try:
        query = _Query(where, terms | {"box": box})
        ranges = _ranges(box)
    except Exception as error:
        failed = error
    everybody = comm.allgather((ranges, failed))
    _raise(failed, [error for _, error in everybody])
    tables: list[tuple[_HitTable | None, Exception | None]] | None = None
    if comm.rank == 0:
        try:
            asked = [ranges for ranges, _ in everybody]
            found = store._catalog().hits(_Query(where, terms | {"box": _hull(asked)}))
            tables = [(_part(store, found, ranges, terms.get("txn")), None) for ranges in asked]
        except Exception as error:
            tables = [(None, error)] * len(everybody)
    table, error = comm.scatter(tables, root=0)
    _raise(error if comm.rank == 0 else None, [error])
    assert query is not None  # otherwise it was raised above
    return Hits(store, query, table)


def _raise(own: Exception | None, errors: list[Exception | None]) -> None:
    """Raises this rank's error, or else the first of another rank."""
    if own is not None:
        raise own
    for rank, error in enumerate(errors):
        if error is not None:
            kind = type(error) if isinstance(error, Error) else Invalid
            raise kind(f"rank {rank}: {error}")


def _ranges(box: Any) -> _Ranges | None:
    if isinstance(box, Region):
        if box.relation != "overlaps":
            raise Invalid("with comm= each rank gets the hits that overlap its box", "give the box itself")
        return box.ranges()
    return None if box is None else _Catalog.ranges(box)


def _hull(asked: list[_Ranges | None]) -> dict[str | int, slice] | None:
    """The box around the boxes of all ranks, if each rank names its elements."""
    spans: list[dict[str | int, tuple[Any, Any]]] = []
    for ranges in asked:
        if ranges is None:
            return None
        spans.append({name: ends for name, physical, ends in ranges if not physical})
    hull = {}
    for name in set.intersection(*(set(span) for span in spans)):
        low = min(span[name][0] or 0 for span in spans)
        ends = [span[name][1] for span in spans]
        hull[name] = slice(low, None if None in ends else max(ends))
    return hull or None


def _part(store: Store, found: _HitTable, ranges: _Ranges | None, txn: str | None) -> _HitTable:
    """The hits that overlap a box."""
    if ranges is None:
        return found
    from ._terms import between

    box = {name: between(*ends) if physical else slice(*ends) for name, physical, ends in ranges}
    boxes: list[list[tuple[int, int, int]] | None] = []
    for project, run, name, version in found.variables():
        if name is None:
            boxes.append(None)  # an attribute without a variable has no box
            continue
        variable = store._catalog().variable((project, run), name, version, txn)
        boxes.append([(dim, low, high) for dim, (low, high) in elements(box, variable).items()])
    return found.touching(boxes)

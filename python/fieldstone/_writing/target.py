"""Targets to which dask's tasks write their blocks: arrays in a store, from any thread, process or host.

A :class:`Target` is one variable. ``target[slices] = block`` archives the block as pieces of the variable's
fields. In the process that began the write it leaves the flush to the end; elsewhere, or if nothing waits for
the end, it flushes before it returns, through a store handle that no other task uses at the same time. So the
pieces of a task that returned are durable, and a failed task does not discard the pieces of another. A task
that runs again writes the same elements again, which changes nothing.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._fields import restore_store
from ..errors import Invalid
from . import faithful

_Opening = tuple[Any, ...]

IDLE = 8
"""Maximum number of store handles that a process keeps open between tasks."""

_idle: list[tuple[tuple[str, _Opening], Any]] = []
_beginners: dict[str, tuple[int, Any]] = {}
_guard = threading.Lock()


@dataclass(frozen=True)
class Place:
    """The store that tasks write to, for one call of ``to_store``.

    `store` is set only for a store in memory, which other processes cannot reach.
    """

    call: str
    opening: _Opening | None
    txn: str | None
    store: Any = None


def place_of(store: Any, call: str, txn: str | None) -> Place:
    """The place for tasks that write to an open store."""
    try:
        _, opening = store.__reduce__()
    except Invalid:
        return Place(call, None, txn, store)
    return Place(call, opening, txn)


@contextmanager
def beginning(call: str, store: Any) -> Iterator[None]:
    """While it is active, tasks of `call` in this process archive through `store` and do not flush."""
    _beginners[call] = (os.getpid(), store)
    try:
        yield
    finally:
        del _beginners[call]


@contextmanager
def handle(place: Place) -> Iterator[Any]:
    """A store for one task, whose pieces are flushed at the end."""
    pid, store = _beginners.get(place.call, (None, None))
    if pid == os.getpid():
        yield store
        return
    if place.opening is None:
        yield place.store
        place.store.flush(txn=place.txn)
        return
    key = (place.call, place.opening)
    store = _take(key) or restore_store(*place.opening)
    try:
        yield store
        store.flush(txn=place.txn)
    except BaseException:
        store.discard(txn=place.txn)
        store.close()
        raise
    _give_back(key, store)


def _take(key: tuple[str, _Opening]) -> Any:
    with _guard:
        for i, (held, store) in enumerate(_idle):
            if held == key:
                del _idle[i]
                return store
    return None


def _give_back(key: tuple[str, _Opening], store: Any) -> None:
    with _guard:
        _idle.append((key, store))
        surplus = [_idle.pop(0)[1] for _ in range(len(_idle) - IDLE)]
    for old in surplus:
        old.close()


@dataclass(frozen=True)
class Target:
    """A variable, or a region of it, to which blocks are written.

    `start` is the position of its first element in the stored variable, whose shape is `shape`. `whole` means
    that each block holds whole fields, which then need not have been created.
    """

    place: Place
    name: str
    key: dict[str, Any]
    dtype: str
    shape: tuple[int, ...]
    split: bool
    start: tuple[int, ...]
    chunks: tuple[int, ...] | None = None
    fill: Any = None
    whole: bool = False

    def __setitem__(self, index: Any, block: Any) -> None:
        """Writes the elements that the slices of `index` select."""
        values = self._checked(index, block)
        begin = tuple(s + (i.start or 0) for s, i in zip(self.start, index, strict=True))
        with handle(self.place) as store:
            if not self.split:
                self._piece(store, self.key, values, begin, self.shape)
                return
            for step, inner in zip(itertools.count(begin[0]), values, strict=False):
                self._piece(store, {**self.key, "step": step}, inner, begin[1:], self.shape[1:])

    def _piece(
        self,
        store: Any,
        key: dict[str, Any],
        values: np.ndarray,
        start: tuple[int, ...],
        shape: tuple[int, ...],
    ) -> None:
        place = {} if self.whole or not shape else {"start": start, "shape": shape}
        store.archive(key, values, chunks=self.chunks, txn=self.place.txn, **place)

    def _checked(self, index: tuple[slice, ...], block: Any) -> np.ndarray:
        """The block as an array of the stored type; Invalid if its type or shape differs from the announced
        one."""
        dtype = np.dtype(self.dtype)
        if np.ma.isMaskedArray(block):
            if self.fill is None and dtype.kind not in "fc" and np.ma.is_masked(block):
                raise Invalid(
                    f"variable {self.name} has masked values and no _FillValue",
                    "fill them, or give the variable an encoding with _FillValue",
                )
            block = np.ma.filled(block, np.nan if self.fill is None else self.fill)
        values = np.asarray(block)
        wide = dtype.kind in "SU" and values.dtype.itemsize > dtype.itemsize
        if values.dtype != dtype and (wide or not np.can_cast(values.dtype, dtype, "same_kind")):
            raise Invalid(
                f"a block of variable {self.name} has dtype {values.dtype}, the variable {dtype}",
                "dask has another dtype than its function returns: check the meta or dtype given to dask",
            )
        sizes = tuple(len(range(*i.indices(2**62))) for i in index)
        if sizes != values.shape:
            raise Invalid(f"a block of variable {self.name} has shape {values.shape}, but its target {sizes}")
        return faithful.cast(f"{self.name} (in a block)", values, dtype)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return ("fieldstone.Target", self.place.call, self.name, sorted(self.key.items()), self.start)

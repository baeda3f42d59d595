"""Fields from store to store."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from ._native import _transfer, open
from ._store import Store
from .errors import NotFound
from .reports import TransferReport

_StoreOrUrl = Store | str | os.PathLike[str]
_Progress = Callable[[int, int], object]


def copy(
    store: _StoreOrUrl,
    request: Any = None,
    *,
    to: _StoreOrUrl,
    strict: bool = True,
    progress: _Progress | None = None,
) -> TransferReport:
    """Copies the fields that `request` names into the store `to`, all of them or none.

    Arrays keep dtype, byte order, shape, chunks, and whether they are compressed; a field that is not
    complete is copied as it is, with what was written and its fill. Fields taken with ``copy=False``
    become fields with bytes of their own. The target keeps its own schema; one that is new gets the
    source's. Fields that it has already, equal in every element, are not written again.

    What the target has durably is read back and compared before it becomes visible. Memory holds 16 MiB
    of an array, or one chunk or one opaque field where these are longer.

    Raises NotFound where ``strict=True`` and a listed value or combination has no field, Invalid where
    the target's schema has no place for a key (before any byte moves), Corrupt where bytes are damaged.
    `progress` is called with (fields done, fields in all); an exception from it ends the copy, and
    nothing of it stays.
    """
    return _between(store, request, to, False, strict, progress)


def move(
    store: _StoreOrUrl,
    request: Any = None,
    *,
    to: _StoreOrUrl,
    strict: bool = True,
    progress: _Progress | None = None,
) -> TransferReport:
    """Copies as ``copy`` does, then removes from `store` the very versions that were carried over.

    A newer version that somebody writes meanwhile stays in `store` and is named in the report. After a
    crash a field is in one store or in both. What was moved stays readable in older versions of `store`
    (``open(url, at=version)``). Files outside, taken with ``copy=False``, stay where they are.
    """
    return _between(store, request, to, True, strict, progress)


def _between(
    store: _StoreOrUrl, request: Any, to: _StoreOrUrl, moving: bool, strict: bool, progress: _Progress | None
) -> TransferReport:
    with ExitStack() as opened:
        if not isinstance(store, Store):
            # A store that is only copied from need not be writable.
            open(store, "r").close()
            store = opened.enter_context(open(store, "a" if moving else "r"))
        if not isinstance(to, Store):
            to = opened.enter_context(_target(to, store))
        return _transfer(store, request, to, moving, strict, progress)


def _target(url: str | os.PathLike[str], source: Store) -> Store:
    try:
        open(url, "r").close()
    except NotFound:
        return open(url, schema=source.schema)
    return open(url)

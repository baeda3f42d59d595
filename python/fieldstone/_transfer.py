"""Copies and moves fields with their metadata between stores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date, timedelta
from typing import Any

from ._age import before
from ._hits import Hits
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
    fields: bool = False,
    strict: bool = True,
    older_than: float | timedelta | str | date | None = None,
    versions: bool = False,
    progress: _Progress | None = None,
) -> TransferReport:
    """Copies fields with their metadata into the store `to`: all of it or nothing.

    A request selects fields; the copy includes attributes on them, and on the variables, steps and runs that
    have one of them; parameters of these runs, times of these steps, declarations of these variables, and
    tags. A request with only run, variable and step also takes what is declared or annotated there without a
    field. Hits (``store.attributes(…)``, one hit, or a list of hits) select these attributes, the whole
    fields that they are on, and the declarations of their runs, steps, variables and tags. With
    ``fields=True`` only fields are copied; ``report.left`` lists the rest. A list of requests is one copy.

    With `older_than`, an age (seconds, a timedelta, ``"12h"``, ``"5d"``) or a moment (a datetime, a date, ISO
    text), only fields of which every part was flushed before then are copied, by the clocks of their writers,
    and what stands on them.

    Fields keep the time when they were flushed first, their attempt and their commit. With ``versions=True``
    the older values that they hide go with them, in their order (``to.list(masked=True)``).

    Arrays keep dtype, byte order, shape, chunks, and whether they are compressed; an incomplete field is
    copied as it is, with its written part and its fill. Fields ingested with ``copy=False`` become fields
    with their own bytes. The target keeps its schema; a new one gets the source's. Fields that it already has
    with equal elements are not written again. Copied attributes belong to the caller.

    The durable fields in the target are read back and compared before they become visible. Memory holds 16
    MiB of an array, or one chunk or one opaque field if these are longer, and a page of attributes.

    Raises NotFound if ``strict=True`` and a listed value or combination has no field, Conflict if the target
    declares a run, step, variable or tag differently, Invalid if its schema has no place for a key (all
    before any byte moves); also Conflict if others write one of the keys in the target during the copy. A
    field that cannot be read is skipped: ``report.damaged`` and a warning name it. `progress` is called with
    (fields done, fields in total); an exception from it ends the copy, and nothing of it stays.
    """
    return _between(store, request, to, False, strict, fields, older_than, versions, progress)


def move(
    store: _StoreOrUrl,
    request: Any = None,
    *,
    to: _StoreOrUrl,
    fields: bool = False,
    strict: bool = True,
    older_than: float | timedelta | str | date | None = None,
    versions: bool = False,
    progress: _Progress | None = None,
) -> TransferReport:
    """Copies like ``copy``, then removes the copied content from `store`.

    Attributes go with their field; attributes on a step, a whole variable or a run go when nothing of it
    stays. With hits, the attributes themselves go. A newer version of a field that another process writes
    during the move stays in `store`, as does a field that cannot be read; the report names both. After a
    crash, each field is in one store or in both, even if other moves take it elsewhere at the same time: a
    removed field has always been written into `to`, even if it was already there. Moved fields stay readable
    in older versions of `store` (``open(url, at=version)``). Outside files, ingested with ``copy=False``,
    stay where they are. Fields that root moves stay their owners': each owner's go in one transaction.
    """
    return _between(store, request, to, True, strict, fields, older_than, versions, progress)


def _between(
    store: _StoreOrUrl,
    request: Any,
    to: _StoreOrUrl,
    moving: bool,
    strict: bool,
    fields: bool,
    older_than: Any,
    versions: bool,
    progress: _Progress | None,
) -> TransferReport:
    moment = before(older_than)
    if isinstance(request, Hits):
        request = request._query if request._table is None else request._table
    with ExitStack() as opened:
        if not isinstance(store, Store):
            # The source of a copy need not be writable.
            open(store, "r").close()
            store = opened.enter_context(open(store, "a" if moving else "r"))
        if not isinstance(to, Store):
            to = opened.enter_context(_target(to, store))
        report = _transfer(store, request, to, moving, strict, fields, moment, versions, progress)
    if report.damaged:
        count, first = len(report.damaged), report.damaged[0]
        text = f"{count} of the fields cannot be read and stay where they are: {first.key}: {first.why}"
        warnings.warn(text, stacklevel=3)
    return report


def _target(url: str | os.PathLike[str], source: Store) -> Store:
    try:
        open(url, "r").close()
    except NotFound:
        return open(url, schema=source.schema)
    return open(url)

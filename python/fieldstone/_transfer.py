"""Fields, and what stands on them, from store to store."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

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
    progress: _Progress | None = None,
) -> TransferReport:
    """Copies fields, and what stands on them, into the store `to`: all of it or nothing.

    By request: the fields that it names; attributes on them, and on the variables, steps and runs of
    which one is; parameters of these runs, times of these steps, declarations of these variables, tags.
    A request of run, variable and step alone takes what is declared or annotated there, field or not. By
    hits (``store.attributes(…)``, one hit, or a list of hits): these attributes, the whole fields under
    them, and the declarations of what they stand on. With ``fields=True`` fields alone; ``report.left``
    says what stays behind.

    Arrays keep dtype, byte order, shape, chunks, and whether they are compressed; a field that is not
    complete is copied as it is, with what was written and its fill. Fields taken with ``copy=False``
    become fields with bytes of their own. The target keeps its own schema; one that is new gets the
    source's. What it has already, equal in every element, is not written again. Attributes are of the
    caller there.

    What the target has durably is read back and compared before it becomes visible. Memory holds 16 MiB
    of an array, or one chunk or one opaque field where these are longer, and a page of attributes.

    Raises NotFound where ``strict=True`` and a listed value or combination has no field, Conflict where
    the target declares a run, step, variable or tag otherwise, Invalid where its schema has no place for
    a key (all before any byte moves); Conflict also where others write one of the keys in the target
    meanwhile. A field that cannot be read is passed over: ``report.damaged`` names it, and a warning
    says so. `progress` is called with (fields done, fields in all); an exception from it ends the copy,
    and nothing of it stays.
    """
    return _between(store, request, to, False, strict, fields, progress)


def move(
    store: _StoreOrUrl,
    request: Any = None,
    *,
    to: _StoreOrUrl,
    fields: bool = False,
    strict: bool = True,
    progress: _Progress | None = None,
) -> TransferReport:
    """Copies as ``copy`` does, then removes from `store` what was carried over.

    Attributes go with their field; those on a step, a whole variable or a run go with it, once nothing
    of it stays. Of hits the attributes themselves go. A newer version of a field that somebody writes
    meanwhile stays in `store` and is named in the report, and so is one that cannot be read. After a
    crash a field is in one store or in both, also where other moves carry it elsewhere at the same time:
    what is removed was written into `to`, also what was there already. What was moved stays readable in
    older versions of `store` (``open(url, at=version)``). Files outside, taken with ``copy=False``, stay
    where they are.
    """
    return _between(store, request, to, True, strict, fields, progress)


def _between(
    store: _StoreOrUrl,
    request: Any,
    to: _StoreOrUrl,
    moving: bool,
    strict: bool,
    fields: bool,
    progress: _Progress | None,
) -> TransferReport:
    if isinstance(request, Hits):
        request = request._query if request._table is None else request._table
    with ExitStack() as opened:
        if not isinstance(store, Store):
            # A store that is only copied from need not be writable.
            open(store, "r").close()
            store = opened.enter_context(open(store, "a" if moving else "r"))
        if not isinstance(to, Store):
            to = opened.enter_context(_target(to, store))
        report = _transfer(store, request, to, moving, strict, fields, progress)
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

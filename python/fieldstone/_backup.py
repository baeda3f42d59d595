"""Backups: a folder that shows one version of a store, and is brought up to date by what is new."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

from ._native import _backup, _promote, open
from ._store import Store
from .errors import Denied
from .reports import BackupReport


def backup(
    store: Store | str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    follow: bool = False,
    purge: bool = False,
    verify: bool = True,
    rate: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> BackupReport:
    """Copies what is visible in a store to its backup `to`, a folder that the first call makes: at first all,
    later what is new. Returns a BackupReport.

    Others may read and write the store meanwhile; a hold keeps purges from dropping anything until the call
    ends. The backup has the id and the versions of the store, and opens with mode "r" only until `promote`.
    It is whole at every moment: it shows its version of before until everything of the new one is on its
    disk. It keeps all that purges of the store drop, for older versions, until a call with ``purge=True``.

    With ``follow=True`` the call goes on until an exception (Ctrl-C) ends it; a flush is in the backup a few
    seconds later. `progress` is called with (files, bytes) copied. The call reads back all that it copied,
    unless ``verify=False``; ``report.damaged`` and a warning name what does not match its checksum. `rate`
    bounds the bytes that are copied in a second, so that others who write meanwhile wait less.

    Raises Conflict if `to` is anything else than a backup of this store, and leaves it alone; Corrupt if the
    store has lost commits; Denied if files of other users would lose their owners (call it as root); Invalid
    for a store in memory, and for a folder inside of the store.
    """
    if isinstance(store, Store):
        report = _backup(store, to, (follow, purge, verify), rate, progress)
    else:
        with _source(store) as opened:
            report = _backup(opened, to, (follow, purge, verify), rate, progress)
    if report.damaged:
        count, first = len(report.damaged), report.damaged[0]
        warnings.warn(
            f"{count} parts are damaged in the store: {first.key or first.file}: {first.why}", stacklevel=2
        )
    return report


def _source(url: str | os.PathLike[str]) -> Store:
    try:
        return open(url, "r+")
    except Denied:  # a user who may only read may make a copy, too
        return open(url, "r")


def promote(to: str | os.PathLike[str]) -> str:
    """Makes the backup in a folder a store of its own, which opens for writing; returns its new id. Its
    content and its older versions stay. Raises Invalid for any other folder.
    """
    return _promote(to)

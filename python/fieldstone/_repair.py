"""Repair: damaged files are mended from a backup."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._datasets import Datasets
from ._native import _repair
from .reports import RepairReport

if TYPE_CHECKING:
    from ._native import _Request


class Repairing(Datasets):
    """The call of a store that mends it."""

    def repair(
        self,
        request: _Request = None,
        *,
        source: str | os.PathLike[str] | None = None,
        doit: bool = False,
    ) -> RepairReport:
        """Mends damaged and missing parts of the store's files, byte for byte, from `source`, a backup of it
        or another copy of its folder; without one, from what the store itself has twice, and what follows
        from other files. Returns a RepairReport: ``.mended`` (key, file, how) and ``.left`` (key, file, why),
        which `accept` gives up.

        With ``doit=False`` nothing changes, and the report says what would. A byte of the backup counts only
        where a checksum covers it, and where nothing whole in the store contradicts. Bytes that match are
        never written: the call may end at any moment, and others may read and write meanwhile. A request
        limits it to the fields that it selects, and the index, in which they are found. Handles that are open
        see mended files when they are opened again.

        Raises Conflict if `source` is of another store, Invalid for a store in memory, Denied if all that
        could be mended is in files of other users: the owner of a file mends it, or root.
        """
        return _repair(self, request, source, doit)

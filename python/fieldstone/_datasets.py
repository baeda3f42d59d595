"""Calls about whole datasets that somebody can take back: locks, hides and overlays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ._native import (
    _hidden,
    _locks,
    _overlays,
    _pointers,
    _reindex,
    _set_hidden,
    _set_lock,
    _set_overlay,
    _Store,
)
from .reports import DatasetLock, HiddenFields, OverlaidFields, PointedFields, ReindexReport

if TYPE_CHECKING:
    from ._native import _Request


class Datasets(_Store):
    """The calls of a store that lock and hide whole datasets, and show fields under other values."""

    def lock(self, request: _Request, what: Literal["archive", "list", "retrieve", "wipe"]) -> int:
        """Forbids calls of one kind in the datasets that a request selects, durably and for everybody, until
        `unlock`. Returns how many datasets there are.

        "archive" refuses archives, pieces of fields and removals, at the call; a program that has not seen
        the lock yet gets Denied at its flush. "list" refuses lists and axes, "retrieve" reads of fields; with
        ``strict=False`` a retrieve passes the datasets. "wipe" refuses wipes and purges.

        Raises Invalid for a keyword below the first level of keys, NotFound if no dataset is selected, Denied
        for datasets of other users, for a store opened for reading, and for a store of format 1.
        """
        return _set_lock(self, request, what, True)

    def unlock(self, request: _Request, what: Literal["archive", "list", "retrieve", "wipe"]) -> int:
        """Ends locks of one kind on the datasets that a request selects. Returns how many were locked. Raises
        what `lock` raises, but for NotFound."""
        return _set_lock(self, request, what, False)

    def locks(self) -> list[DatasetLock]:
        """The locks in force, by dataset."""
        return _locks(self)

    def hide(self, request: _Request) -> int:
        """Hides all fields that a request selects, durably and for everybody, until `unhide`: whole datasets,
        or whole indexes of them. Returns how many fields vanish. No list, read, axis, statistic or query of
        the catalog shows them; older versions of the store do. Runs, attributes and lineage stay, and so do
        fields that others flush meanwhile or later. Their files stay: `purge` leaves hidden fields alone, and
        `wipe` takes them.

        Raises Invalid for a keyword below the second level of keys and for a request that names no values,
        and Denied for datasets of other users, unless you own the store's folder ``logs`` or are root.
        """
        return _set_hidden(self, request, True)

    def unhide(self, request: _Request = None) -> int:
        """Shows again what hides within a request hid; without a request, all that is hidden. Returns how
        many fields are there again. Raises Invalid if only hides of more than the request concern it, and
        Denied for what another user hid, unless you own the store's folder ``logs`` or are root."""
        return _set_hidden(self, request, False)

    def hidden(self) -> list[HiddenFields]:
        """The hides in force, oldest first."""
        return _hidden(self)

    def overlay(self, request: _Request, values: _Request, remove: bool = False) -> int:
        """Lets all fields that a request selects appear under other values, too, durably and for everybody:
        ``store.overlay("run=a", {"run": "b"})``. Returns how many fields do so. Fields that are archived
        later under the request appear like these, and removed, wiped or hidden ones no longer. Lists,
        axes and reads by request or key find them. All else goes by the keys under which fields were
        archived: the catalog, lineage, statistics, wipes, purges, moves and removals. A field that
        was archived under such a key counts in its place. With ``remove=True`` it ends; the number is that of
        the fields that appeared so.

        Raises Invalid for a keyword that the schema lacks, for one to which the request does not give one
        value, and where the schema would name the fields otherwise; NotFound if nothing is selected, or no
        such overlay is in force; Conflict if it is in force already; Denied if the fields would appear in
        datasets of other users, unless you own the store's folder ``logs`` or are root.
        """
        return _set_overlay(self, request, values, not remove)

    def overlays(self) -> list[OverlaidFields]:
        """The overlays in force, oldest first."""
        return _overlays(self)

    def reindex(self, request: _Request, to: _Store, end: bool = False) -> ReindexReport | None:
        """Lets another store name the fields that a request selects, under keys of its own schema, durably.
        No byte is copied: reads there fetch the bytes from here, also after this store was compacted or
        purged. This store records who names its fields, and its purges leave them; with ``end=True`` they no
        longer do. A later value here is not seen there. Fields that the other schema cannot name are in the
        report's ``left``.

        Raises Invalid for a store in memory, for one and the same store, and for a request that does not list
        values; NotFound if nothing is selected; Denied if the other store is only read, and for datasets of
        others there.
        """
        return _reindex(self, request, to, end)

    def pointers(self) -> list[PointedFields]:
        """The stores that name fields of this one, oldest first: what its purges leave for them."""
        return _pointers(self)

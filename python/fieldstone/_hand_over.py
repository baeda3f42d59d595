"""``fieldstone.hand_over``: what belongs to a user belongs to another one from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import _hand_over, _hand_overs

if TYPE_CHECKING:
    from ._store import Store
    from .reports import HandOverInfo, HandOverReport


def hand_over(store: Store, from_user: str | int, to_user: str | int) -> HandOverReport:
    """Hands over to a user, durably, all datasets and runs that belong to another one, both by name or
    number: when somebody leaves, or a project changes hands. The new owner may from now on do there whatever
    the old one could: archive, remove, wipe, lock, hide, annotate, decide on transactions. Content of the old
    one counts as before, but not if he writes it there later, also from a process that goes on. Datasets that
    he begins later are his own. Another hand-over gives everything back. Older versions of the store show the
    owners of their time.

    Raises NotFound for a name that this host does not know, Invalid if both are one user, and Denied unless
    you own the store's folder ``logs`` or are root, for a store opened for reading, and for a store of format
    1.
    """
    return _hand_over(store, str(from_user), str(to_user))


def hand_overs(store: Store) -> list[HandOverInfo]:
    """All hand-overs of a store, oldest first."""
    return _hand_overs(store)

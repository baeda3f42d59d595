"""Holds: while one stands, nothing of a store goes."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, final

from ._age import seconds_of
from ._native import _hold, _release
from .errors import Invalid, NotFound

if TYPE_CHECKING:
    from ._native import _Store
    from .reports import HoldInfo


def lasting(lasts: Any) -> float:
    """A time that something lasts, in seconds."""
    seconds = seconds_of(lasts)
    if seconds is None or not 0 < seconds < 2**34:
        raise Invalid(f"lasts={lasts!r} is not a time", 'give seconds, a timedelta, or a text such as "2h"')
    return seconds


def set_hold(store: _Store, lasts: Any, why: str | None) -> Hold:
    """Sets a new hold."""
    return Hold(store, _hold(store, "", lasting(lasts), why or ""))


@final
class Hold:
    """A hold on a store, made by ``store.hold``. It stands until it expires or is released::

    with store.hold("2h", "copying to tape") as hold:
        print(hold.name, hold.until)
    """

    def __init__(self, store: _Store, info: HoldInfo) -> None:
        self._store = store
        self._info = info

    @property
    def name(self) -> str:
        """Its name."""
        return self._info.name

    @property
    def why(self) -> str:
        """The reason; empty if none was given."""
        return self._info.why

    @property
    def until(self) -> datetime:
        """The moment at which it expires."""
        return self._info.until

    @property
    def version(self) -> str:
        """The version of the store for which it was set."""
        return self._info.version

    def extend(self, lasts: float | timedelta | str) -> None:
        """Lets it stand for a time from now on."""
        self._info = _hold(self._store, self.name, lasting(lasts), self.why)

    def release(self) -> None:
        """Ends it before it expires. Raises NotFound if it has expired."""
        _release(self._store, self.name)

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(NotFound):  # it expired by itself
            self.release()

    def __repr__(self) -> str:
        return f"Hold({self.name!r}, until={self.until:%Y-%m-%d %H:%M:%S}, why={self.why!r})"

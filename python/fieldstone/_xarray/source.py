"""The store behind lazy arrays, pinned to one version and opened again when they are unpickled.

Arrays travel to other processes as URL and version. A process opens each such pair once, for any number of
arrays, and keeps the last few open.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldstone._native import _field

if TYPE_CHECKING:
    from fieldstone._native import Field

Key = dict[str, str]

KEPT = 8
"""The number of stores that a process keeps open for unpickled arrays."""

_open: OrderedDict[tuple[str, Any], Any] = OrderedDict()
_lock = threading.Lock()


class Source:
    """A store pinned to one version.

    If opened by URL, it pickles as URL and version; if made from an open store, it pickles that store.
    """

    def __init__(self, store: Any, url: str | None = None, at: Any = None) -> None:
        self._store = store
        self._at = at
        self._reopen = url is not None
        self._token: str | None = None
        self.url = url if url is not None else str(getattr(store, "url", ""))

    @classmethod
    def open(cls, url: str, at: Any = None) -> Source:
        """Opens a store for reading and pins what is visible now."""
        import fieldstone

        if at is None:
            at = fieldstone.open(url, mode="r").version
        return cls(fieldstone.open(url, mode="r", at=at), url, at)

    @property
    def store(self) -> Any:
        """The open store."""
        if self._store is None:
            self._store = reopened(self.url, self._at)
        return self._store

    @property
    def token(self) -> str:
        """The same text for two sources of the same content, in every process.

        A version names its snapshot by the random ids of its logs, so it also identifies the store.
        """
        if self._token is None:
            version = self._at if self._at is not None else self.store.version
            self._token = digest(version)
        return self._token

    def bytes(self, key: Key) -> bytes:
        """An opaque field."""
        return bytes(self._get(key, {}, lambda field: field.read()))

    def box(self, key: Key, start: tuple[int, ...], count: tuple[int, ...]) -> np.ndarray:
        """A box of an array field; only the blocks that it touches are read. Without a start, the whole
        field."""
        box = {"start": start, "count": count} if start else {}
        return np.asarray(self._get(key, box, lambda field: field.array(**box)))

    def field(self, key: Key) -> Field:
        """A field, from which parts can be read."""
        try:
            return _field(self.store, key)
        except ValueError:
            if (field := self._exactly(key)) is None:
                raise
            return field

    def _get(self, key: Key, box: dict[str, tuple[int, ...]], read: Callable[[Any], Any]) -> Any:
        try:
            return self.store.get(key, **box)
        except ValueError:
            if (field := self._exactly(key)) is None:
                raise
            return read(field)

    def _exactly(self, key: Key) -> Field | None:
        """The field with exactly this key, if the key also selects fields with further keywords."""
        found = self.store.retrieve({k: [v] for k, v in key.items()})
        return next((field for field in found if dict(field.key) == key), None)

    def close(self) -> None:
        """Closes a store that was opened here; reading opens it again."""
        if self._reopen:
            self._store = None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._reopen:
            state["_store"] = None
        return state


def reopened(url: str, at: Any) -> Any:
    """The store of a URL at a version, opened once in this process."""
    import fieldstone

    with _lock:
        store = _open.pop((url, at), None)
        if store is None:
            store = fieldstone.open(url, mode="r", at=at)
        _open[url, at] = store
        while len(_open) > KEPT:
            _open.popitem(last=False)
        return store


def digest(*parts: Any) -> str:
    """The same short text for equal parts in every process; the repr of a part must contain all of it."""
    return hashlib.blake2b("\0".join(map(repr, parts)).encode(), digest_size=16).hexdigest()

"""The store behind lazy arrays, opened again where they are unpickled."""

from __future__ import annotations

from typing import Any

import numpy as np

Key = dict[str, str]


class Source:
    """A store pinned to one version.

    Opened by URL it pickles as URL and version; made from an open store it pickles that store.
    """

    def __init__(self, store: Any, url: str | None = None, at: Any = None) -> None:
        self._store = store
        self._at = at
        self._reopen = url is not None
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
            import fieldstone

            self._store = fieldstone.open(self.url, mode="r", at=self._at)
        return self._store

    def bytes(self, key: Key) -> bytes:
        """An opaque field."""
        return bytes(self._get(key, {}))

    def box(self, key: Key, start: tuple[int, ...], count: tuple[int, ...]) -> np.ndarray:
        """A box of an array field; only the blocks it touches are read."""
        return np.asarray(self._get(key, {"start": start, "count": count} if start else {}))

    def _get(self, key: Key, box: dict[str, tuple[int, ...]]) -> Any:
        try:
            return self.store.get(key, **box)
        except ValueError:
            # The key may also select fields with further keywords; this one has none of them.
            for field in self.store.retrieve({k: [v] for k, v in key.items()}):
                if dict(field.key) == key:
                    return field.array(**box) if box else field.read()
            raise

    def close(self) -> None:
        """Closes a store that was opened here."""
        if self._reopen and self._store is not None:
            self._store.close()
            self._store = None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._reopen:
            state["_store"] = None
        return state

"""Results of pyfdb's calls: handles on data, and elements of lists.

Only the calls of :class:`~fieldstone.pyfdb.FDB` make them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from enum import IntEnum, auto
from typing import Any

from fieldstone._native import Entry
from fieldstone.pyfdb._types import URI, ControlIdentifier, raised, user_error
from fieldstone.reports import Stats

_MADE = object()


def _made_here(mark: object, name: str) -> None:
    if mark is not _MADE:
        raise TypeError(f"Creating a {name} from user code is not supported.")


class DataHandle:
    """Fields one after another, read like a file; empty if there is no store."""

    def __init__(self, found: Any, *, mark: object = None) -> None:
        _made_here(mark, "DataHandle")
        self._found = found
        self._file: Any = None

    @property
    def opened(self) -> bool:
        """Whether it is open."""
        return self._file is not None

    def open(self) -> None:
        """Opens it at its beginning; does nothing if it is open."""
        if self._file is None:
            with raised():
                self._file = io.BytesIO() if self._found is None else self._found.open()

    def close(self) -> None:
        """Closes it; it can be opened again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def size(self) -> int:
        """The total number of bytes."""
        with raised():
            return 0 if self._found is None else self._found.nbytes

    def read(self, len: int = -1) -> bytes:
        """Up to `len` of the following bytes, all of them for -1; empty at the end."""
        with raised():
            return self._opened().read(len)

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer, and returns the number of bytes read."""
        with raised():
            return self._opened().readinto(buffer)

    def readall(self, buffer_size: int = 1 << 20) -> bytes:
        """All following bytes; opens and closes by itself."""
        self.open()
        try:
            return self.read()
        finally:
            self.close()

    def _opened(self) -> io.BufferedReader:
        if self._file is None:
            raise RuntimeError("DataHandle: Read occured before the handle was opened. Must be opened first.")
        return self._file

    def __enter__(self) -> DataHandle:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"[{'Opened' if self.opened else 'Closed'}] Datahandle: {self._found!r}"


class ListElement:
    """A dataset, an index or a field, depending on its level."""

    def __init__(
        self, entry: Entry | None, store: Any = None, level: int = 3, *, mark: object = None
    ) -> None:
        _made_here(mark, "ListElement")
        assert entry is not None
        self._entry = entry
        self._store = store
        self._levels = levels(entry.key)
        self._is_field = level == 3

    def has_location(self) -> bool:
        """Whether it is a field, with bytes."""
        return self._is_field and self._entry.location is not None

    def offset(self) -> int | None:
        """Position of the stored field in its file; None if this is not a field."""
        place = self._place()
        return place and place[1]

    def length(self) -> int | None:
        """The field's bytes; None if this is not a field."""
        return self._entry.nbytes if self.has_location() else None

    def combined_key(self) -> dict[str, str]:
        """Keywords and values down to its level."""
        return {keyword: value for level in self._levels for keyword, value in level.items()}

    def keys(self) -> list[dict[str, str]]:
        """Keywords and values by level; empty below the level of the list."""
        return [*self._levels, *({} for _ in range(3 - len(self._levels)))]

    @property
    def data_handle(self) -> DataHandle | None:
        """The field's bytes; None if this is not a field."""
        if not self.has_location():
            return None
        if self._entry.masked:
            raise user_error(
                f"{self._entry.key} is masked by a newer version; read it in an older version of the store",
                "fieldstone.open(url, at=version).get(key)",
            )
        with raised():
            return DataHandle(self._store.retrieve({k: [v] for k, v in self._entry.key.items()}), mark=_MADE)

    @property
    def uri(self) -> URI | None:
        """The file that has the field; None if this is not a field."""
        place = self._place()
        return place and URI(f"{self._store.url.rstrip('/')}/{place[0]}")

    def _place(self) -> tuple[str, int] | None:
        if not self.has_location():
            return None
        file, _, offset = str(self._entry.location).rpartition(":")
        return file, int(offset)

    def __repr__(self) -> str:
        text = str(self._entry.key)
        if self.has_location():
            text += f", FieldLocation[uri={self.uri},offset={self.offset()},length={self.length()}]"
        time = int(self._entry.time.timestamp()) if self._is_field else 0
        return f"{text}, length={self.length() or 0}, timestamp={time}"


class WipeElementType(IntEnum):
    """The kind of thing that would be removed, or was."""

    ERROR = 0
    CATALOGUE_INFO = auto()
    CATALOGUE = auto()
    CATALOGUE_INDEX = auto()
    CATALOGUE_SAFE = auto()
    CATALOGUE_CONTROL = auto()
    STORE = auto()
    STORE_AUX = auto()
    STORE_SAFE = auto()
    UNKNOWN = auto()

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


class WipeElement:
    """A dataset, an index or a field that is removed."""

    def __init__(self, kind: WipeElementType | None, text: str = "", uris: Any = (), *, mark: object = None):
        _made_here(mark, "WipeElement")
        self._kind, self._text, self._uris = kind, text, list(uris)

    def type(self) -> WipeElementType:
        """Its kind."""
        assert self._kind is not None
        return self._kind

    def msg(self) -> str:
        """Its description."""
        return self._text

    def uris(self) -> list[URI]:
        """The files that have it; the files stay, and so do older versions of the store."""
        return self._uris

    def __repr__(self) -> str:
        return self._text


class PurgeElement:
    """A version of a field that a newer one masks."""

    def __init__(self, text: str | None, *, mark: object = None) -> None:
        _made_here(mark, "PurgeElement")
        self._text = text

    def __repr__(self) -> str:
        return str(self._text)


class StatusElement:
    """A dataset, with its forbidden actions."""

    def __init__(
        self, key: Any, url: str = "", forbidden: Iterable[ControlIdentifier] = (), *, mark: object = None
    ) -> None:
        _made_here(mark, type(self).__name__)
        self._key = {keyword: [value] for keyword, value in key.items()}
        self._location = URI(f"{url}#{':'.join(key.values())}")
        self._forbidden = list(forbidden)

    def location(self) -> URI:
        """The store and its dataset."""
        return self._location

    def controlIdentifiers(self) -> list[ControlIdentifier]:
        """The forbidden actions."""
        return list(self._forbidden)

    def key(self) -> dict[str, list[str]]:
        """The dataset's keywords."""
        return self._key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StatusElement):
            return False
        return (self._location, self._key) == (other._location, other._key)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(control_identifiers={self.controlIdentifiers()}, key={self.key()}, "
            f"location={self.location()})"
        )


class ControlElement(StatusElement):
    """Same as :class:`StatusElement`."""


class StatsElement:
    """Counts of a dataset."""

    def __init__(self, stats: Stats | None, *, mark: object = None) -> None:
        _made_here(mark, "StatsElement")
        self._stats: Any = stats

    def index_statistics(self) -> str:
        """Fields and their bytes."""
        s = self._stats
        return _lines(
            ("Fields", s.fields + s.masked),
            ("Size of fields", _size(s.bytes)),
            ("Reacheable fields", s.fields),
            ("Reachable size", _size(s.bytes)),
        )

    def db_statistics(self) -> str:
        """Datasets and indexes, and their stored bytes."""
        s = self._stats
        return _lines(
            ("Databases", s.datasets), ("Index files", s.indexes), ("Total owned size", _size(s.stored_bytes))
        )

    def __repr__(self) -> str:
        return f"Index Statistics:\n{self.index_statistics()}\nDB Statistics:\n{self.db_statistics()}"


def _lines(*rows: tuple[str, Any]) -> str:
    return "".join(
        f"{name:<32}: {value:,}\n" if isinstance(value, int) else f"{name:<32}: {value}\n"
        for name, value in rows
    )


def _size(nbytes: int) -> str:
    return f"{nbytes:,} ({nbytes / 1024:,.1f} Kbytes)"


def levels(key: Any) -> list[dict[str, str]]:
    """Keywords and values of a key by the level of the schema, without absent ones."""
    _, (parts, _) = key.__reduce__()
    return [{keyword: key[keyword] for keyword, _ in level if keyword in key} for level in parts]


def make(kind: Callable[..., Any], *args: Any) -> Any:
    """An element; only this package can make one."""
    return kind(*args, mark=_MADE)

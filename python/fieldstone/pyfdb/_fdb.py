"""The class ``FDB``: pyfdb's calls, each of which uses one of a store's calls.

Example::

    fdb = FDB("forecast.store")
    for element in fdb.list({"class": "od"}, level=1):
        print(element)
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import fieldstone
from fieldstone.errors import NotFound
from fieldstone.pyfdb._axes import IndexAxis, optional_keywords
from fieldstone.pyfdb._config import Configuration, Given, read
from fieldstone.pyfdb._elements import (
    ControlElement,
    DataHandle,
    ListElement,
    PurgeElement,
    StatsElement,
    StatusElement,
    WipeElement,
    WipeElementType,
    levels,
    make,
)
from fieldstone.pyfdb._types import (
    ControlAction,
    ControlIdentifier,
    MarsIdentifier,
    MarsSelection,
    key_of,
    raised,
    raising,
    request_of,
    user_error,
)

if TYPE_CHECKING:
    from fieldstone._store import Store


_LOCKS: dict[ControlIdentifier, Literal["archive", "list", "retrieve", "wipe"]] = {
    ControlIdentifier.LIST: "list",
    ControlIdentifier.RETRIEVE: "retrieve",
    ControlIdentifier.ARCHIVE: "archive",
    ControlIdentifier.WIPE: "wipe",
}


def _dataset(key: Mapping[str, str]) -> str:
    """A dataset as locks name it."""
    return ",".join(f"{keyword}={value}" for keyword, value in key.items())


class FDB:
    """A store with pyfdb's calls.

    `config` is FDB's configuration as text (YAML), a dict, or the path of a file; or a store's path or URL.
    By default FDB's environment variables name it. `user_config` is kept and returned by ``config()``. The
    first call that needs the store opens it. Threads may share an FDB.
    """

    def __init__(self, config: Given = None, user_config: Given = None) -> None:
        # A wrong configuration raises at once, a missing one in the first call.
        self._given = Configuration.of(config) if config is not None else None
        user = read(user_config) if user_config is not None else {}
        self._user: dict[str, Any] = user if isinstance(user, dict) else {"url": user}

    @cached_property
    def _config(self) -> Configuration:
        return self._given or Configuration.of(None)

    @cached_property
    def _store(self) -> Store:
        config = self._config
        mode = "a" if config.writable else "r"
        schema = Path(config.schema) if config.schema and _is_file(config.schema) else config.schema
        return fieldstone.open(config.url, mode, schema=schema)

    def __enter__(self) -> FDB:
        return self

    def __exit__(self, *_: object) -> None:
        if "_store" in self.__dict__:
            self.flush()

    # -- writing

    @raising
    def archive(self, data: bytes, identifier: MarsIdentifier | None = None) -> None:
        """Archives `data` under a key; without one, as GRIB messages, whose headers have their keys."""
        if identifier is None:
            self._store.archive_grib(data)
        else:
            self._store.archive(key_of(identifier), data)

    @raising
    def flush(self) -> None:
        """Makes archived fields durable and visible, all or nothing."""
        self._store.flush()

    @raising
    def dirty(self) -> bool:
        """Whether there are archived fields that are not flushed."""
        return self._store.unflushed > 0

    # -- reading

    @raising
    def retrieve(self, mars_selection: MarsSelection) -> DataHandle:
        """The existing fields of a selection, one after another in its order."""
        if len(mars_selection) == 0:
            raise TypeError("FDB.retrieve: Wildcard selection aren't support for retrieving.")
        self._check_visitable("retrieve")
        request = request_of(mars_selection)
        return make(DataHandle, self._store.retrieve(request, strict=False) if self._is_there() else None)

    def list(
        self, mars_selection: MarsSelection, include_masked: bool = False, level: int = 3
    ) -> Iterator[ListElement]:
        """Fields (`level` 3), indexes (2) or datasets (1), in the order of their keys."""
        self._check_visitable("list")
        with raised():
            request = request_of(mars_selection)
            if not self._is_there():
                return
            pinned = self._pinned()
            entries = iter(pinned.list(request, depth=level, masked=include_masked))
        while True:
            with raised():
                entry = next(entries, None)
            if entry is None:
                return
            yield make(ListElement, entry, pinned, level)

    def inspect(self, mars_selection: MarsSelection) -> Iterator[ListElement]:
        """The existing fields of a selection."""
        return self.list(mars_selection)

    @raising
    def axes(self, mars_selection: MarsSelection, level: int = 3) -> IndexAxis:
        """The existing values of each keyword, down to a level; "" if a field lacks an optional one."""
        request = request_of(mars_selection)
        if not self._is_there():
            return IndexAxis({})
        axes = self._store.axes(request)
        at = self._levels(request)
        found = {keyword: values for keyword, values in axes.items() if at.get(keyword, 3) <= level}
        for required, optional in optional_keywords(self._store.schema):
            if axes and all(keyword in axes for keyword in required):
                for keyword, place in optional:
                    if place > level or (keyword in request and keyword in axes):
                        continue
                    keys = (entry.key for entry in self._store.list(request, depth=place))
                    if keyword not in axes or any(keyword not in key for key in keys):
                        found[keyword] = ["", *axes.get(keyword, [])]
        return IndexAxis(found)

    def status(self, mars_selection: MarsSelection) -> Iterator[StatusElement]:
        """The datasets of a selection, each with its forbidden actions."""
        elements = list(self.list(mars_selection, level=1))
        forbidden = self._forbidden() if elements else {}
        for element in elements:
            key = element.combined_key()
            yield make(StatusElement, key, self._store.url, forbidden.get(_dataset(key), ()))

    def stats(self, mars_selection: MarsSelection) -> Iterator[StatsElement]:
        """Counts of the indexes that a selection touches, dataset by dataset."""
        request = request_of(mars_selection)
        if not self._is_there():
            return
        with raised():
            at = self._levels(request)
        whole = {keyword: values for keyword, values in request.items() if at.get(keyword, 3) < 3}
        for element in self.list(mars_selection, level=1):
            with raised():
                stats = self._store.stats({**whole, **_lists(element.combined_key())})
            yield make(StatsElement, stats)

    # -- removing

    def wipe(
        self,
        mars_selection: MarsSelection,
        doit: bool = False,
        porcelain: bool = False,
        unsafe_wipe_all: bool = False,
    ) -> Iterator[WipeElement]:
        """The elements that are removed: whole datasets and indexes, and the fields in them.

        With ``doit=True`` they are removed when the last element has been read. Older versions of the store
        still have them.
        """
        self._check_writable("wipe")
        request = request_of(mars_selection)
        if not self._is_there():
            return
        with raised():
            at = self._levels(request)
            deep = [keyword for keyword in request if at.get(keyword, 1) > 2]
        if deep:
            raise user_error(
                f"wipe removes whole indexes, but {deep[0]} is a keyword of their fields",
                "leave it out; store.remove removes single fields",
            )
        for level, kind in ((1, "CATALOGUE"), (2, "CATALOGUE_INDEX"), (3, "STORE")):
            for element in self.list(mars_selection, level=level):
                uris = [element.uri] if element.uri is not None else []
                text = ("" if porcelain else f"{kind}: ") + str(element.uri if porcelain else element)
                if not (porcelain and not uris):
                    yield make(WipeElement, WipeElementType[kind], text, uris)
        if doit:
            with raised():
                # Dataset by dataset, because a store does not remove fields that no request names.
                datasets = [levels(entry.key)[0] for entry in self._store.list(request, depth=1)]
                self._store.remove([{**request, **_lists(own)} for own in datasets])
                self._store.flush()

    def purge(
        self, mars_selection: MarsSelection, doit: bool = False, porcelain: bool = False
    ) -> Iterator[PurgeElement]:
        """The versions of fields that newer ones mask, and a last line with their number.

        With ``doit=True`` they are dropped when the last element has been read, those that were masked within
        the last hour excepted: somebody may still read them.
        """
        masked = 0
        for element in self.list(mars_selection, include_masked=True):
            if element._entry.masked:
                masked += 1
                yield make(PurgeElement, str(element.uri if porcelain else element))
        if not porcelain:
            yield make(PurgeElement, f"{masked} masked versions")
        if doit and masked:
            request = request_of(mars_selection)
            with raised():
                self._store.purge(request or None, all=not request, doit=True)

    # -- permissions

    def control(
        self,
        mars_selection: MarsSelection,
        control_action: ControlAction,
        control_identifiers: Collection[ControlIdentifier],
    ) -> Iterator[ControlElement]:
        """Forbids actions in the datasets of a selection (DISABLE), or allows them again (ENABLE), for
        everybody and at once. The elements are these datasets, each with its forbidden actions.

        A store has locks on lists, reads, archives and wipes; UNIQUEROOT is Invalid with DISABLE.
        """
        self._check_writable("control")
        asked = {one for flags in control_identifiers for one in ControlIdentifier if flags & one}
        if control_action == ControlAction.DISABLE and ControlIdentifier.UNIQUEROOT in asked:
            raise user_error(
                "a store has one folder, so that UNIQUEROOT cannot be disabled",
                "disable LIST, RETRIEVE, ARCHIVE or WIPE",
            )
        kinds = [kind for one, kind in _LOCKS.items() if one in asked]
        if not self._is_there():
            return iter(())
        request = request_of(mars_selection)
        with raised():
            if control_action == ControlAction.ENABLE:
                for kind in kinds:
                    self._store.unlock(request, kind)
            keys = [element.combined_key() for element in self.list(mars_selection, level=1)]
            if control_action == ControlAction.DISABLE and keys:
                for kind in kinds:
                    self._store.lock(request, kind)
            forbidden = self._forbidden()
        url = self._store.url
        return (make(ControlElement, key, url, forbidden.get(_dataset(key), ())) for key in keys)

    def _forbidden(self) -> dict[str, list[ControlIdentifier]]:
        """The forbidden actions of each dataset."""
        named: dict[str, ControlIdentifier] = {kind: one for one, kind in _LOCKS.items()}
        forbidden: dict[str, list[ControlIdentifier]] = {}
        with raised():
            for lock in self._store.locks():
                forbidden.setdefault(lock.dataset, []).append(named[lock.what])
        return {dataset: sorted(set(these)) for dataset, these in forbidden.items()}

    def enabled(self, control_identifier: ControlIdentifier) -> bool:
        """Whether the configuration allows an action: ``writable``, ``visitable``."""
        config = self._config
        if control_identifier & (ControlIdentifier.ARCHIVE | ControlIdentifier.WIPE) and not config.writable:
            return False
        seen = ControlIdentifier.LIST | ControlIdentifier.RETRIEVE
        return config.visitable or not control_identifier & seen

    def config(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The configurations of the system and of the user."""
        return dict(self._config.system), dict(self._user)

    def _check_visitable(self, what: str) -> None:
        if not self._config.visitable:
            raise user_error(f"the configuration has visitable: false, which forbids {what}")

    def _check_writable(self, what: str) -> None:
        if not self._config.writable:
            raise user_error(f"the configuration has writable: false, which forbids {what}")

    def _is_there(self) -> bool:
        """Whether there is a store, or one that is not flushed yet; without one nothing is found, as in
        FDB."""
        try:
            next(iter(self._store.list(depth=1)), None)
        except NotFound:
            return False
        return True

    def _pinned(self) -> Any:
        """The store as it is now, without unflushed fields."""
        try:
            return self._store._pinned()
        except NotFound:
            return self._store

    def _levels(self, request: dict[str, Any]) -> dict[str, int]:
        """The level of each keyword, for the fields that a request selects."""
        found: dict[str, int] = {}
        seen: set[tuple[tuple[str, ...], ...]] = set()
        for entry in self._store.list(request, depth=2):
            parts = levels(entry.key)
            names = tuple(tuple(part) for part in parts)
            if names not in seen:
                seen.add(names)
                found |= {keyword: n for n, part in enumerate(parts, 1) for keyword in part}
        axes = self._store.axes(request)
        return {**dict.fromkeys(axes, 3), **dict.fromkeys(request, 3), **found}

    def __repr__(self) -> str:
        return f"FDB({self._config.url!r})" if self._given is not None else "FDB()"


def _lists(key: dict[str, str]) -> dict[str, Any]:
    """A key as a request with the same values."""
    return {keyword: [value] for keyword, value in key.items()}


def _is_file(text: str) -> bool:
    return "[" not in text and os.path.isfile(text)

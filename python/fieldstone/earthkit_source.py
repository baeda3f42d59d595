"""The source ``fieldstone`` of earthkit-data: GRIB messages of a store as a FieldList, arrays as a Dataset.

earthkit-data finds it by the package's entry point. It takes a request of ours, and keywords like earthkit's
source ``fdb``. It selects from the version that is visible when the source is made, and reads a message when
its header or values are needed.

Example::

    data = earthkit.data.from_source("fieldstone", "forecast.store", {"param": "t", "levelist": [500, 850]})
    data.to_fieldlist().sel({"parameter.variable": "t"})
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from earthkit.data import from_object
from earthkit.data.core.config import CONFIG
from earthkit.data.data.grib import GribData
from earthkit.data.field.grib.create import create_grib_field
from earthkit.data.indexing.simple import SimpleFieldListBase
from earthkit.data.readers.grib.handle import GribCodesHandle, GribHandle, GribHandleCache
from earthkit.data.sources import Source

from fieldstone._xarray import views
from fieldstone._xarray.source import Source as Pinned
from fieldstone.errors import Invalid


class FieldstoneSource(Source):
    """``from_source("fieldstone", store, request, **keywords)``.

    `store` is an open store or the URL of one, which is opened `at` a version if given; `request` is one of
    our requests, several of them, or None; `keywords` are further keywords of each.
    """

    name = "fieldstone"

    def __init__(
        self, store: Any, *requests: Any, request: Any = None, at: str | None = None, **keywords: Any
    ):
        super().__init__()
        if isinstance(store, str | os.PathLike):
            self._pinned = Pinned.open(os.fspath(store), at)
        elif at is None:
            self._pinned = Pinned(store._pinned())
        else:
            raise Invalid(
                "at= is for a URL", "open the store at that version: fieldstone.open(url, at=version)"
            )
        self._request = _request([*requests, *([] if request is None else [request])], keywords)
        self._is_grib = views.is_grib(self._pinned, self._request)

    def mutate(self) -> Source:
        return self

    def to_data_object(self) -> Any:
        """The object that ``from_source`` returns: GRIB data, or earthkit's object for a Dataset."""
        return GribData(self) if self._is_grib else from_object(self.to_xarray())

    def to_fieldlist(self, *args: Any, **options: Any) -> Any:
        """The messages, or the fields that earthkit finds in a Dataset."""
        if not self._is_grib:
            return from_object(self.to_xarray()).to_fieldlist(*args, **options)
        return StoreFieldList(self._pinned.store.retrieve(self._request))

    def to_xarray(self, *args: Any, **options: Any) -> Any:
        """For messages, the Dataset of earthkit's own engine; for arrays, that of ``store.to_xarray``."""
        if self._is_grib:
            return self.to_fieldlist().to_xarray(*args, **options)
        return self._pinned.store.to_xarray(self._request)

    def to_pandas(self, *args: Any, **options: Any) -> Any:
        """Same as :meth:`to_fieldlist`."""
        return self.to_fieldlist().to_pandas(*args, **options)

    def to_numpy(self, *args: Any, **options: Any) -> Any:
        """Same as :meth:`to_fieldlist`."""
        return self.to_fieldlist().to_numpy(*args, **options)

    def to_array(self, *args: Any, **options: Any) -> Any:
        """Same as :meth:`to_fieldlist`."""
        return self.to_fieldlist().to_array(*args, **options)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_fieldlist())

    def __len__(self) -> int:
        return len(self.to_fieldlist())

    def _default_encoder(self) -> Any:
        return self.to_fieldlist()._default_encoder()

    def _encode(self, encoder: Any, *args: Any, **options: Any) -> Any:
        # earthkit's targets call this: files, and everything else it writes to.
        return self.to_fieldlist()._encode(encoder, *args, **options)


class StoreFieldList(SimpleFieldListBase):
    """Messages of a store in the order of the request."""

    def __init__(self, found: Any) -> None:
        self._found = found

    @cached_property
    def _fields(self) -> list[Any]:
        kept = GribHandleCache(cache_size=CONFIG.get("grib-handle-cache-size"))
        cache = CONFIG.get("use-grib-metadata-cache")
        return [
            create_grib_field(StoreHandle(field, i, kept), cache=cache) for i, field in enumerate(self._found)
        ]

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"StoreFieldList({len(self)} fields)"


class StoreHandle(GribHandle):
    """A message of a store, decoded when it is needed; a few of a list are kept."""

    path = ""
    """Together with `offset`, identifies a message in earthkit's cache of handles; each list has its own
    cache."""

    def __init__(self, field: Any, place: int, kept: GribHandleCache) -> None:
        self._field = field
        self._kept = kept
        self.offset = place

    @property
    def handle(self) -> GribCodesHandle:
        """eccodes' handle."""
        return self._kept.get(self, self._decoded)

    def _decoded(self) -> GribCodesHandle:
        message = self._field.read()
        if message[:4] != b"GRIB":
            raise Invalid(
                f"{self._field.key} is not a GRIB message", "give a request that selects only messages"
            )
        return GribCodesHandle.from_message(message)

    def release(self) -> None:
        """Drops the decoded message."""
        self._kept.remove(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"field": self._field, "place": self.offset, "kept": self._kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["field"], state["place"], state["kept"])  # type: ignore[misc]


def _request(given: list[Any], keywords: dict[str, Any]) -> Any:
    """Our requests, each with the keywords added."""
    requests: list[Any] = []
    for one in given:
        requests += one if isinstance(one, list | tuple) else [one]
    if not keywords:
        return requests or None
    made = []
    for one in requests or [{}]:
        if not isinstance(one, dict):
            raise Invalid(
                "keywords need a request that is a dict",
                "write them into the text of the request, or give a dict",
            )
        made.append({**one, **keywords})
    return made

"""The Zarr store over one of our stores, in the interface of zarr-python.

Keys are those of Zarr 3: ``zarr.json``, ``t/zarr.json``, ``t/c/0/0``. The value of a key is made on demand,
in a thread, and the native half reads without the GIL; so zarr-python's reads of several chunks overlap. No
read chunk is kept.

Example::

    root = zarr.open_group(FieldstoneZarr("forecast.store", "run=a"))
    root["t"][0, 10:20]
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Literal

from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from fieldstone import xarray_engine
from fieldstone._xarray import netcdf, views
from fieldstone._xarray.arrays import Parts
from fieldstone._xarray.encoded import encoded
from fieldstone._xarray.source import Source
from fieldstone._zarr.layout import Array, Group, Index, groups
from fieldstone.errors import Invalid

METADATA = "zarr.json"


class FieldstoneZarr(Store):
    """Arrays of a store as a read-only Zarr 3 store. Made by ``fieldstone.zarr_store``."""

    supports_writes: bool = False
    supports_deletes: bool = False
    supports_listing: bool = True

    def __init__(
        self,
        store: Any,
        request: Any = None,
        *,
        tree: bool = False,
        chunks: Mapping[str, int] | Literal["stored"] | None = None,
        read_only: bool = True,
    ) -> None:
        if not read_only:
            raise Invalid(
                "the Zarr store of a Fieldstone store is read-only", "write with archive or to_store"
            )
        super().__init__(read_only=True)
        if not (chunks is None or chunks == "stored" or isinstance(chunks, Mapping)):
            raise Invalid(f"chunks={chunks!r}", 'give "stored" or extents by dimension, such as {"x": 100}')
        if isinstance(store, str | os.PathLike):
            source = Source.open(os.fspath(store))
        else:
            source = Source(store._pinned())
        found = views.tree(source, request) if tree else [("", views.dataset(source, request, None))]
        found = ((path, described(source, one)) for path, one in found)
        self._source = source
        self._asked = repr((request, tree, chunks))
        self._nodes = groups(found, chunks)

    def __repr__(self) -> str:
        arrays = sum(isinstance(node, Array) for node in self._nodes.values())
        return f"<FieldstoneZarr of {self._source.url!r}: {arrays} arrays, read-only>"

    def __eq__(self, other: object) -> bool:
        """Two are equal if they show one version of one store with the same arguments."""
        return (
            isinstance(other, FieldstoneZarr)
            and self._asked == other._asked
            and self._source.token == other._source.token
        )

    __hash__ = None  # type: ignore[assignment]

    # -- reading

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """The value of a key, or some bytes of it; None if there is none."""
        made = (prototype or default_buffer_prototype()).buffer
        path, index = self._parsed(key)
        node = self._nodes.get(path)
        if node is None:
            return None
        if index is None:
            return _cut(made.from_bytes(self._document(path, node)), byte_range)
        value = node.value(index) if isinstance(node, Array) else None
        if value is None:
            return None
        read = made.from_bytes if isinstance(value, bytes) else made.from_array_like
        return _cut(read(value), byte_range)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Same as :meth:`get_sync`, in a thread."""
        if not self._is_open:
            await self._open()
        return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Some bytes of several keys, in their order."""
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def exists(self, key: str) -> bool:
        """Whether a key has a value; reads nothing."""
        return self._size(key) is not None

    async def getsize(self, key: str) -> int:
        """The bytes of a value; reads nothing."""
        size = self._size(key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    def _size(self, key: str) -> int | None:
        path, index = self._parsed(key)
        node = self._nodes.get(path)
        if node is None:
            return None
        if index is None:
            return len(self._document(path, node))
        return node.length(index) if isinstance(node, Array) else None

    # -- listing

    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        for key in self._keys(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """All keys at and below a path.

        As in a folder, zarr-python's prefix is the whole name of an array: "t" does not include "time".
        """
        for key in self._keys(prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The children directly below a path: documents, members, parts of the keys of chunks."""
        path = prefix.strip("/")
        node = self._nodes.get(path)
        if isinstance(node, Array):
            yield METADATA
            yield "c"
        elif node is not None:
            yield METADATA
            below = f"{path}/" if path else ""
            for name in self._nodes:
                if name.startswith(below) and name != path and "/" not in name[len(below) :]:
                    yield name[len(below) :]
        else:
            names = (key[len(path) + 1 :].split("/")[0] for key in self._keys(path) if key != path)
            for name in dict.fromkeys(names):
                yield name

    def _keys(self, prefix: str) -> Iterator[str]:
        prefix = prefix.rstrip("/")
        below = f"{prefix}/" if prefix else ""
        for path, node in self._nodes.items():
            start = f"{path}/" if path else ""
            if not (start.startswith(below) or below.startswith(start)):
                continue
            keys: Iterable[str] = [start + METADATA]
            if isinstance(node, Array):
                chunks = ("/".join(map(str, ("c", *index))) for index in node.indices())
                keys = itertools.chain(keys, (start + chunk for chunk in chunks))
            yield from (key for key in keys if key == prefix or key.startswith(below))

    # -- writing, which is refused

    async def set(self, key: str, value: Buffer) -> None:
        """Refused: only ``archive``, ``write`` and ``to_store`` write to a store."""
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Refused, like :meth:`set`."""
        self._check_writable()

    # -- keys and documents

    def _parsed(self, key: str) -> tuple[str, Index | None]:
        """Path of the node, and the index of the chunk; None for its document."""
        if key == METADATA or key.endswith(f"/{METADATA}"):
            return key[: -len(METADATA)].rstrip("/"), None
        path, mark, numbers = f"/{key}/".rpartition("/c/")
        digits = numbers.strip("/").split("/") if numbers.strip("/") else []
        # int() accepts more than Zarr's keys may contain.
        if not mark or not all(n.isascii() and n.isdigit() and str(int(n)) == n for n in digits):
            return "\0", None
        return path.strip("/"), tuple(int(n) for n in digits)

    def _document(self, path: str, node: Group | Array) -> bytes:
        document = node.document()
        if not path:
            below = {name: held.document() for name, held in self._nodes.items() if name}
            document["consolidated_metadata"] = {
                "kind": "inline",
                "must_understand": False,
                "metadata": below,
            }
        return json.dumps(document).encode()


def described(source: Source, members: Parts | list[netcdf.Member] | Exception) -> Parts:
    """Variables that are not decoded, also those of joined files."""
    if isinstance(members, Exception):
        raise members
    if isinstance(members, Parts):
        return members
    variables, attrs = encoded(xarray_engine._made(source, members, None, {}, "auto"))
    return Parts(variables, attrs)


def _cut(value: Buffer, part: ByteRequest | None) -> Buffer:
    """Some bytes of a value."""
    if part is None:
        return value
    if isinstance(part, RangeByteRequest):
        return value[part.start : part.end]
    if isinstance(part, OffsetByteRequest):
        return value[part.offset :]
    if isinstance(part, SuffixByteRequest):
        return value[max(len(value) - part.suffix, 0) :]
    raise TypeError(f"Unexpected byte_range, got {part}.")

"""Python parts of native fields: files, writers of created fields, and the functions that unpickle them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from ._native import Field, Fields, Key, _Reader, open
from .errors import Corrupt, Invalid

if TYPE_CHECKING:  # imported where it is used: a program without arrays starts faster
    import numpy as np

    from ._store import Store

_Opening = tuple[str, str | None, str | None]


class _FieldsFile(io.RawIOBase):
    """Fields one after another as a raw file."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        self._check_open()
        return self._reader.readinto(buffer)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._check_open()
        return self._reader.seek(offset, whence)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


def open_file(reader: _Reader, buffer_size: int) -> io.BufferedReader:
    """A buffered file over a reader."""
    return io.BufferedReader(_FieldsFile(reader), buffer_size)


class FieldWriter:
    """An array field that was created and is written in pieces. Made by ``store.create_field``.

    Pickling keeps the store's URL: other processes write their pieces, each flushing its own store.
    """

    def __init__(
        self,
        store: Store,
        key: Key,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        chunks: tuple[int, ...] | None,
        txn: str | None,
    ) -> None:
        self.store = store
        self.key = key
        self.dtype = dtype
        self.shape = shape
        self._chunks = chunks
        self._txn = txn

    def write(self, piece: Any, start: int | tuple[int, ...]) -> None:
        """Archives the piece whose first element is at `start` (one number for each dimension) of the array.

        The piece must have the field's dtype, in either byte order, and fit into the field's shape; otherwise
        Invalid. It is visible after ``store.flush()``.
        """
        import numpy as np

        array = np.asanyarray(piece)
        if array.dtype != self.dtype:
            if array.dtype != self.dtype.newbyteorder():
                raise Invalid(
                    f"the piece has dtype {array.dtype}, field {self.key} has {self.dtype}",
                    f"give piece.astype({self.dtype.str!r})",
                    "dtype-mismatch",
                )
            array = array.astype(self.dtype)
        start = start if isinstance(start, tuple | list) else (start,)
        self.store.archive(self.key, array, start=start, shape=self.shape, chunks=self._chunks, txn=self._txn)

    def flush(self) -> None:
        """Flushes the store, or, in a transaction, what was archived into the transaction."""
        self.store.flush(txn=self._txn)

    def __repr__(self) -> str:
        return f"<fieldstone.FieldWriter {self.key} {self.dtype.str} {self.shape}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return FieldWriter, (self.store, self.key, self.dtype, self.shape, self._chunks, self._txn)


def decode_grib(data: bytes, name: str) -> np.ndarray[Any, Any]:
    """The values of a GRIB message. Invalid if the bytes are not one, or ecCodes is not installed."""
    if data[:4] != b"GRIB" or data[7:8] not in (b"\x01", b"\x02"):
        raise Invalid(f"{name} is opaque bytes, not an array", "use read()", "not-an-array")
    try:
        from ._helper import grib
    except (ImportError, RuntimeError, OSError) as e:
        raise Invalid(
            f"{name} is a GRIB message, and ecCodes cannot be loaded to decode it: {e}",
            "pip install 'fieldstone[grib]', or use read()",
        ) from None
    try:
        return grib.values(data)
    except Exception as e:  # eccodes has an exception type for each return code
        raise Corrupt(f"{name}: ecCodes cannot decode the message: {e}", "read() returns its bytes") from None


def fill_bytes(fill: Any, dtype: np.dtype[Any]) -> bytes:
    """The bytes of a fill value as an element of `dtype`; Invalid if it cannot be one."""
    import numpy as np

    try:
        given = np.asarray(fill)
        element = given.astype(dtype) if given.dtype.kind == dtype.kind else np.asarray(fill, dtype)
        exact = dtype.kind not in "iub" or element == given
    except (TypeError, ValueError, OverflowError) as e:
        raise Invalid(
            f"fill={fill!r} is not a {dtype}: {e}", "give one element of the field's dtype"
        ) from None
    if element.ndim != 0 or not exact:
        raise Invalid(f"fill={fill!r} is not a {dtype}", "give one element of the field's dtype")
    return element.tobytes()


def restore_store(
    url: str,
    mode: str,
    schema: str | None,
    at: str | None,
    compression: str | None,
    catalog: str | None = None,
    attempt: str | None = None,
    if_exists: str | None = None,
) -> Store:
    """A store that was pickled."""
    options = {"schema": schema, "at": at, "compression": compression, "catalog": catalog}
    return open(url, mode, attempt=attempt, if_exists=if_exists, **options)


def restore_fields(rows: list[tuple[_Opening, str, str, bool, str | None]]) -> Fields:
    """Fields that were pickled: each part by its store, version and request."""
    parts = [
        open(opening[0], "r", at=version).retrieve(request, strict=strict, txn=txn)
        for opening, version, request, strict, txn in rows
    ]
    fields = parts[0]
    for part in parts[1:]:
        fields = fields + part
    return fields


def restore_field(opening: _Opening, version: str, key: Key, strict: bool, txn: str | None) -> Field:
    """A field that was pickled: by its store, version and key."""
    (field,) = open(opening[0], "r", at=version).retrieve(key, strict=strict, txn=txn)
    return field

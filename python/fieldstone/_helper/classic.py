"""The positions of a netCDF classic file's bytes, read only from its header.

netCDF-C reads missing bytes of a truncated classic file as zeros, without an error. The reader first checks
here whether the bytes of a slice are in the file.

    header  = magic numrecs dim_list gatt_list var_list
    list    = ABSENT | tag nelems [...]          tag: 10 dims, 11 variables, 12 attributes
    var     = name ndims [dimid ...] vatt_list type vsize begin
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import BinaryIO

SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}


class HeaderError(Exception):
    """The header does not follow the grammar."""


@dataclass
class Place:
    """The location of a variable: `begin`, bytes of one leading slice, and the distance between slices."""

    begin: int
    slice_bytes: int
    stride: int
    record: bool


class Layout:
    """Places of all variables of a classic file, and the number of records that its bytes hold."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.places: dict[str, Place] = {}
        self._begin(file, size)
        dims = self._dimensions()
        self._attributes()
        shapes = [self._variable() for _ in range(self._list(11))]
        self._place(dims, shapes)

    @classmethod
    def global_attributes(cls, file: BinaryIO, size: int) -> list[str]:
        """Names of a file's global attributes; does not read its variables."""
        layout = cls.__new__(cls)
        layout._begin(file, size)
        layout._dimensions()
        return layout._attributes()

    def missing(self, name: str, first: int, count: int) -> bool:
        """Whether any byte of `count` leading slices from `first` is beyond the end of the file."""
        place = self.places.get(name)
        if place is None or count == 0 or place.slice_bytes == 0:
            return False
        return place.begin + (first + count - 1) * place.stride + place.slice_bytes > self._size

    def _begin(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        magic = self._take(4)
        if magic[:3] != b"CDF" or magic[3] not in (1, 2, 5):
            raise HeaderError("not a classic file")
        self._wide = magic[3] == 5
        self._offset_wide = magic[3] != 1
        self._count()  # numrecs is not used: netCDF-C reports the length

    def _dimensions(self) -> list[int]:
        return [(self._name(), self._count())[1] for _ in range(self._list(10))]

    def _place(self, dims: list[int], shapes: list[tuple[str, list[int], int, int]]) -> None:
        padded = []
        for name, ids, kind, begin in shapes:
            if any(i >= len(dims) for i in ids):
                raise HeaderError(f"variable {name} refers to a dimension that does not exist")
            record = bool(ids) and dims[ids[0]] == 0
            slice_bytes = SIZES[kind]
            for i in ids[1:]:
                slice_bytes *= dims[i]
            self.places[name] = Place(begin, slice_bytes, slice_bytes, record)
            if record:
                padded.append((name, (slice_bytes + 3) & ~3))
        # A file with a single record variable packs its records without padding.
        record_bytes = sum(n for _, n in padded)
        if len(padded) > 1:
            for name, _ in padded:
                self.places[name].stride = record_bytes

    def _take(self, n: int) -> bytes:
        data = self._file.read(n)
        if len(data) != n:
            raise HeaderError("the header is truncated")
        return data

    def _u32(self) -> int:
        return struct.unpack(">I", self._take(4))[0]

    def _count(self) -> int:
        return struct.unpack(">Q", self._take(8))[0] if self._wide else self._u32()

    def _name(self) -> str:
        n = self._count()
        if n > self._size:
            raise HeaderError(f"a name of {n} bytes")
        # Some files have names that a NUL ends; netCDF-C ends them there.
        return self._take((n + 3) & ~3)[:n].split(b"\0")[0].decode("utf-8", "replace")

    def _list(self, tag: int) -> int:
        found, n = self._u32(), self._count()
        if ((found, n) != (0, 0) and found != tag) or n * 4 > self._size:
            raise HeaderError(f"list tag {found} with {n} elements where tag {tag} belongs")
        return n

    def _attributes(self) -> list[str]:
        names = []
        for _ in range(self._list(12)):
            names.append(self._name())
            kind, n = self._u32(), self._count()
            if kind not in SIZES:
                raise HeaderError(f"unknown type {kind}")
            skip = (n * SIZES[kind] + 3) & ~3
            if skip > self._size:
                raise HeaderError(f"an attribute of {skip} bytes")
            self._file.seek(skip, os.SEEK_CUR)
        return names

    def _variable(self) -> tuple[str, list[int], int, int]:
        name, rank = self._name(), self._count()
        if rank > 1024:
            raise HeaderError(f"variable {name} of rank {rank}")
        ids = [self._count() for _ in range(rank)]
        self._attributes()
        kind = self._u32()
        if kind not in SIZES:
            raise HeaderError(f"variable {name} of unknown type {kind}")
        self._count()  # vsize is redundant, and wrong for large variables
        begin = struct.unpack(">Q", self._take(8))[0] if self._offset_wide else self._u32()
        return name, ids, kind, begin

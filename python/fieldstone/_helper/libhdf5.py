"""The contents of an HDF5 file, listed by HDF5 itself: netCDF-C silently skips unknown objects.

It uses the few calls of HDF5 that list names and classes of types, and remove names, in the library that
netCDF4-python brought (B-6).

Invariants:

* a list reads no values and writes nothing;
* if HDF5 cannot list the contents, nothing is reported: the file is read anyway.

Example::

    held = contents("a.h5")       # {"g/odd": Object("reference", {"units": "string"}), ...}
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from typing import Any

from fieldstone._helper import libnetcdf

READ_ONLY, READ_WRITE, DEFAULT, BY_NAME, NATIVE = 0, 1, 0, 0, 2
GROUP, DATASET, TYPE = 0, 1, 2
NULL_SPACE = 2
EMPTY = "empty"
"""The kind of an object without values, not even an empty list of them."""
DEEPEST = 100
MOST = 20_000
"""Maximum number of objects that are examined; in a file with more, only its variables are listed."""

CLASSES = {
    0: "integer",
    1: "float",
    2: "time",
    3: "string",
    4: "bit field",
    5: "opaque",
    6: "compound",
    7: "reference",
    8: "enum",
    9: "variable-length",
    10: "array",
    11: "complex",
}

INNER = {
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "_NCProperties",
    "_NCCOPY",
}
"""Attributes in which the netCDF-4 format describes itself; netCDF-C hides them."""

NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
RENAMED = "_nc4_non_coord_"


@dataclass
class Object:
    """A group, a dataset or a type with a name: the class of its type, "" for a group; and of its
    attributes."""

    path: str
    kind: str
    attrs: dict[str, str] = field(default_factory=dict)
    is_type: bool = False


class _Info(ctypes.Structure):
    """``H5G_stat_t``."""

    _fields_ = [
        ("fileno", ctypes.c_ulong * 2),
        ("objno", ctypes.c_ulong * 2),
        ("nlink", ctypes.c_uint),
        ("type", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    ]


_Take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p)
"""The callback for each name of a group."""


class HDF5Error(Exception):
    """HDF5 refused a call, or lacks it."""


def contents(path: str) -> dict[str, Object] | None:
    """The contents of a file by the paths of netCDF, "" for the root; None if HDF5 cannot list them."""
    try:
        library = _library()
        file = _call(library.H5Fopen, os.fsencode(path), ctypes.c_uint(READ_ONLY), ctypes.c_int64(DEFAULT))
        try:
            return _Walk(library).all(file)
        finally:
            library.H5Fclose(ctypes.c_int64(file))
    except (HDF5Error, AttributeError, OSError):
        return None


def remove(path: str, objects: list[str], attrs: list[tuple[str, str]]) -> None:
    """Removes objects from a file, and attributes of others; HDF5Error if HDF5 refuses."""
    library = _library()
    file = _call(library.H5Fopen, os.fsencode(path), ctypes.c_uint(READ_WRITE), ctypes.c_int64(DEFAULT))
    at, default = ctypes.c_int64(file), ctypes.c_int64(DEFAULT)
    try:
        for holder, name in attrs:
            _call(library.H5Adelete_by_name, at, _raw(f"/{holder}"), _raw(name), default)
        for name in objects:
            _call(library.H5Ldelete, at, _raw(f"/{name}"), default)
    finally:
        library.H5Fclose(at)


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _library() -> ctypes.CDLL:
    library = libnetcdf.library()
    made = ("H5Fopen", "H5Gopen2", "H5Dopen2", "H5Topen2", "H5Aopen", "H5Aopen_by_idx")
    for name in (*made, "H5Dget_type", "H5Aget_type", "H5Dget_space", "H5Aget_space"):
        getattr(library, name).restype = ctypes.c_int64
    library.H5Aget_name.restype = ctypes.c_ssize_t
    # HDF5's messages on stderr are for programmers.
    library.H5Eset_auto2(ctypes.c_int64(0), None, None)
    return library


def _call(function: Any, *arguments: Any) -> int:
    code = function(*arguments)
    if code < 0:
        raise HDF5Error(function.__name__)
    return code


class _Walk:
    """One walk through a file."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.found: dict[str, Object] = {}

    def all(self, file: int) -> dict[str, Object]:
        root = _call(self.library.H5Gopen2, ctypes.c_int64(file), b"/", ctypes.c_int64(DEFAULT))
        try:
            self.group(root, "", frozenset())
        finally:
            self.library.H5Gclose(ctypes.c_int64(root))
        return self.found

    def group(self, group: int, path: str, above: frozenset[tuple[int, ...]]) -> None:
        """A group and its contents; links to other files, and cycles, are not followed."""
        library, at = self.library, ctypes.c_int64(group)
        self.found[path] = Object(path, "", self.attributes(group))
        names: list[bytes] = []
        take = _Take(lambda _, name, __: names.append(name) or 0)
        _call(library.H5Giterate, at, b".", None, take, None)
        for text in names:
            info = _Info()
            _call(library.H5Gget_objinfo, at, text, ctypes.c_int(0), ctypes.byref(info))
            name = _text(text)
            below = f"{path}/{name}" if path else name
            number = (*info.fileno, *info.objno)
            if info.type == DATASET:
                self.dataset(group, text, path, name)
            elif info.type == TYPE:
                kind = self.kind(_call(library.H5Topen2, at, text, ctypes.c_int64(DEFAULT)))
                self.found[f"{below}:type"] = Object(below, kind, is_type=True)
            elif info.type == GROUP and number not in above and len(above) < DEEPEST:
                inner = _call(library.H5Gopen2, at, text, ctypes.c_int64(DEFAULT))
                try:
                    self.group(inner, below, above | {number})
                finally:
                    library.H5Gclose(ctypes.c_int64(inner))

    def dataset(self, group: int, text: bytes, path: str, name: str) -> None:
        """A dataset, unless it only gives a dimension its name."""
        library = self.library
        opened = _call(library.H5Dopen2, ctypes.c_int64(group), text, ctypes.c_int64(DEFAULT))
        try:
            kind = self.kind(_call(library.H5Dget_type, ctypes.c_int64(opened)))
            kind = EMPTY if self.is_null(library.H5Dget_space(ctypes.c_int64(opened))) else kind
            attrs = self.attributes(opened)
            if attrs.get("NAME") == "string" and self.is_dimension(opened):
                return
            own, shown = (f"{path}/{n}" if path else n for n in (name, name.removeprefix(RENAMED)))
            self.found[shown] = Object(own, kind, attrs)
        finally:
            library.H5Dclose(ctypes.c_int64(opened))

    def is_dimension(self, opened: int) -> bool:
        """Whether its NAME attribute marks it as not a variable."""
        library = self.library
        attribute = library.H5Aopen(ctypes.c_int64(opened), b"NAME", ctypes.c_int64(DEFAULT))
        if attribute < 0:
            return False
        kind = library.H5Aget_type(ctypes.c_int64(attribute))
        try:
            size = library.H5Tget_size(ctypes.c_int64(kind))
            if library.H5Tis_variable_str(ctypes.c_int64(kind)) or not 0 < size < 4096:
                return False
            text = ctypes.create_string_buffer(size + 1)
            _call(library.H5Aread, ctypes.c_int64(attribute), ctypes.c_int64(kind), text)
            return text.value.startswith(NO_VARIABLE)
        finally:
            library.H5Tclose(ctypes.c_int64(kind))
            library.H5Aclose(ctypes.c_int64(attribute))

    def attributes(self, opened: int) -> dict[str, str]:
        """Names of attributes, and the classes of their types."""
        library, at, found = self.library, ctypes.c_int64(opened), {}
        if len(self.found) > MOST:
            return found
        for place in range(_call(library.H5Aget_num_attrs, at)):
            attribute = _call(
                library.H5Aopen_by_idx,
                at,
                b".",
                ctypes.c_int(BY_NAME),
                ctypes.c_int(NATIVE),
                ctypes.c_ulonglong(place),
                ctypes.c_int64(DEFAULT),
                ctypes.c_int64(DEFAULT),
            )
            one = ctypes.c_int64(attribute)
            try:
                length = _call(library.H5Aget_name, one, ctypes.c_size_t(0), None)
                text = ctypes.create_string_buffer(length + 1)
                _call(library.H5Aget_name, one, ctypes.c_size_t(length + 1), text)
                kind = self.kind(_call(library.H5Aget_type, one))
                found[_text(text.value)] = EMPTY if self.is_null(library.H5Aget_space(one)) else kind
            finally:
                library.H5Aclose(one)
        return found

    def kind(self, kind: int) -> str:
        """The class of a type, which this call closes."""
        number = self.library.H5Tget_class(ctypes.c_int64(kind))
        self.library.H5Tclose(ctypes.c_int64(kind))
        return CLASSES.get(number, "unknown")

    def is_null(self, space: int) -> bool:
        """Whether a dataspace has no values; this call closes it."""
        if space < 0:
            raise HDF5Error("space")
        found = self.library.H5Sget_simple_extent_type(ctypes.c_int64(space))
        self.library.H5Sclose(ctypes.c_int64(space))
        return found == NULL_SPACE

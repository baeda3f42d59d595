"""The few calls of netCDF-C that netCDF4-python lacks, in the library that it brought (B-6).

netCDF4-python does not distinguish a text attribute from an array of one string, drops NUL bytes, replaces
bytes that are not UTF-8, and leaves and enters define mode for each variable.

Invariants:

* every call's code is checked; a failure is an :class:`NetCDFError` that names the object;
* texts go to the library as UTF-8 bytes, with their length, so that any byte survives.

Example::

    with netCDF4.Dataset("a.nc") as file:
        attribute(file._grpid, GLOBAL, "title")   # ("c", b"a title")
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import netCDF4
import numpy as np

GLOBAL = -1
CHAR, STRING = 2, 12
TYPES = {1: "i1", 3: "i2", 4: "i4", 5: "f4", 6: "f8", 7: "u1", 8: "u2", 9: "u4", 10: "i8", 11: "u8"}
"""Number types of netCDF-C by their codes, native byte order."""

CODES = {**{np.dtype(name).str.lstrip("<>|="): code for code, name in TYPES.items()}, "S1": CHAR}
"""Codes by the part of a dtype's text after the byte order."""

MODES = {
    "NETCDF3_CLASSIC": 0,
    "NETCDF3_64BIT_OFFSET": 0x0200,
    "NETCDF3_64BIT_DATA": 0x0020,
    "NETCDF4": 0x1000,
    "NETCDF4_CLASSIC": 0x1000 | 0x0100,
}
"""Flags of ``nc_create`` by data model."""

CLASSIC_FORMAT = 1
"""``NC_FORMAT_CLASSIC`` of ``nc_set_default_format``."""

HDF5_ERROR = -101
NO_CLOBBER = 0x0004
NO_FILL = 0x100
CHUNKED, CONTIGUOUS = 0, 1
BIG = 2
SHUFFLE_DEFLATE = ("zlib", "shuffle", "complevel")
FILTERS = {"zstd": 32015, "bzip2": 307}
"""HDF5's numbers of the filters that have one parameter, the level."""

SZIP = {"ec": 4, "nn": 32}


class NetCDFError(Exception):
    """netCDF-C refused something; has the object and netCDF-C's message. `full`: the disk failed, not the
    format."""

    full = False


@functools.cache
def library() -> ctypes.CDLL:
    """The library that netCDF4-python is linked to."""
    found = ctypes.CDLL(netCDF4._netCDF4.__file__)
    found.nc_strerror.restype = ctypes.c_char_p
    return found


def call(what: str, name: str, *arguments: Any) -> None:
    """One call; NetCDFError if its code is not 0."""
    code = getattr(library(), name)(*arguments)
    if code:
        error = NetCDFError(f"{what}: {library().nc_strerror(code).decode('utf-8', 'replace')}")
        # Positive codes are those of the system; HDF5 reports a failed write with its own code.
        error.full = code > 0 or code == HDF5_ERROR
        raise error


def attribute(group: int, variable: int, name: str) -> tuple[str, Any]:
    """An attribute as ("c", bytes), ("s", list of bytes) or ("n", array); NetCDFError for other types."""
    kind, length = ctypes.c_int(), ctypes.c_size_t()
    at = (ctypes.c_int(group), ctypes.c_int(variable), name.encode())
    call(name, "nc_inq_att", *at, ctypes.byref(kind), ctypes.byref(length))
    n = length.value
    if kind.value == CHAR:
        raw = ctypes.create_string_buffer(n + 1)
        call(name, "nc_get_att", *at, raw)
        return "c", raw.raw[:n]
    if kind.value == STRING:
        texts = (ctypes.c_char_p * n)()
        call(name, "nc_get_att", *at, texts)
        values = [text or b"" for text in texts]
        if n:
            call(name, "nc_free_string", length, texts)
        return "s", values
    if kind.value not in TYPES:
        raise NetCDFError("type not supported")
    array = np.empty(n, TYPES[kind.value])
    call(name, "nc_get_att", *at, array.ctypes.data_as(ctypes.c_void_p))
    return "n", array


def put_attribute(group: int, variable: int, name: str, kind: str, value: Any) -> None:
    """Writes an attribute in the form that :func:`attribute` returns."""
    at = (ctypes.c_int(group), ctypes.c_int(variable), name.encode())
    if kind == "c":
        call(name, "nc_put_att_text", *at, ctypes.c_size_t(len(value)), value)
    elif kind == "s":
        texts = (ctypes.c_char_p * len(value))(*value)
        call(name, "nc_put_att_string", *at, ctypes.c_size_t(len(value)), texts)
    else:
        array = np.ascontiguousarray(value)
        code = CODES[array.dtype.str[1:]]
        data = array.astype(array.dtype.newbyteorder("="), copy=False).ctypes.data_as(ctypes.c_void_p)
        call(name, "nc_put_att", *at, ctypes.c_int(code), ctypes.c_size_t(array.size), data)


def has_no_fill(group: int, variable: int) -> bool:
    """Whether HDF5 is set to leave unwritten elements as they are."""
    off = ctypes.c_int()
    call("fill", "nc_inq_var_fill", ctypes.c_int(group), ctypes.c_int(variable), ctypes.byref(off), None)
    return bool(off.value)


class Definition:
    """A new file in define mode: dimensions, types, variables and attributes, then :meth:`close`."""

    def __init__(self, path: str, model: str) -> None:
        made = ctypes.c_int()
        # Without a flag, and if some code chose a format for the process, as netCDF4-python does for every
        # file that it makes, netCDF-C uses that format again.
        before = ctypes.c_int()
        call(path, "nc_set_default_format", ctypes.c_int(CLASSIC_FORMAT), ctypes.byref(before))
        try:
            mode = ctypes.c_int(MODES[model] | NO_CLOBBER)
            call(path, "nc_create", path.encode(), mode, ctypes.byref(made))
        finally:
            call(path, "nc_set_default_format", before, None)
        self.root = made.value
        self.enhanced = MODES[model] & MODES["NETCDF4"] != 0
        if not self.enhanced:
            # Every element is written; filling first would write twice.
            call(path, "nc_set_fill", made, ctypes.c_int(NO_FILL), ctypes.byref(ctypes.c_int()))

    def group(self, parent: int, name: str) -> int:
        """Makes a group; returns its id."""
        return self._made(f"group {name}", "nc_def_grp", ctypes.c_int(parent), name.encode())

    def dimension(self, group: int, name: str, length: int | None) -> int:
        """Makes a dimension, unlimited without a length; returns its id."""
        n = ctypes.c_size_t(length or 0)
        return self._made(f"dimension {name}", "nc_def_dim", ctypes.c_int(group), name.encode(), n)

    def enum(self, group: int, name: str, dtype: str, values: list[list[Any]]) -> int:
        """Makes an enumeration of names and whole numbers; returns its type."""
        base = np.dtype(dtype).newbyteorder("=")
        code = ctypes.c_int(CODES[base.str[1:]])
        made = self._made(f"type {name}", "nc_def_enum", ctypes.c_int(group), code, name.encode())
        for word, number in values:
            data = np.array([number], base).ctypes.data_as(ctypes.c_void_p)
            call(
                f"type {name}", "nc_insert_enum", ctypes.c_int(group), ctypes.c_int(made), word.encode(), data
            )
        return made

    def variable(self, group: int, name: str, kind: int, dims: list[int]) -> int:
        """Makes a variable with a type's code; returns its id."""
        ids = (ctypes.c_int * len(dims))(*dims)
        what = f"variable {name}"
        return self._made(
            what,
            "nc_def_var",
            ctypes.c_int(group),
            name.encode(),
            ctypes.c_int(kind),
            ctypes.c_int(len(dims)),
            ids,
        )

    def layout(
        self, group: int, variable: int, name: str, chunks: list[int] | None, filters: dict
    ) -> list[str]:
        """Sets chunks and filters of a variable of netCDF-4; returns filters for which the library has no
        encoder."""
        at = (ctypes.c_int(group), ctypes.c_int(variable))
        if chunks:
            sizes = (ctypes.c_size_t * len(chunks))(*chunks)
            call(name, "nc_def_var_chunking", *at, ctypes.c_int(CHUNKED), sizes)
        missing = []
        if filters.get("zlib") or filters.get("shuffle"):
            words = [int(filters.get("shuffle", 0)), int(bool(filters.get("zlib")))]
            call(
                name,
                "nc_def_var_deflate",
                *at,
                *map(ctypes.c_int, [*words, int(filters.get("complevel", 4))]),
            )
        if filters.get("fletcher32"):
            call(name, "nc_def_var_fletcher32", *at, ctypes.c_int(1))
        for word, held in filters.items():
            try:
                if word == "szip" and isinstance(held, dict):
                    mask, pixels = SZIP[held["coding"]], int(held["pixels_per_block"])
                    call(name, "nc_def_var_szip", *at, ctypes.c_int(mask), ctypes.c_int(pixels))
                elif word in FILTERS:
                    level = ctypes.c_uint(int(filters.get("complevel", 4)))
                    number = ctypes.c_uint(FILTERS[word])
                    call(name, "nc_def_var_filter", *at, number, ctypes.c_size_t(1), ctypes.byref(level))
                elif word not in (*SHUFFLE_DEFLATE, "fletcher32"):
                    missing.append(word)
            except (NetCDFError, KeyError, TypeError):
                missing.append(word)
        return missing

    def big_endian(self, group: int, variable: int, name: str) -> None:
        """Makes HDF5 store the most significant byte first."""
        call(name, "nc_def_var_endian", ctypes.c_int(group), ctypes.c_int(variable), ctypes.c_int(BIG))

    def no_fill(self, group: int, variable: int, name: str) -> None:
        """Makes HDF5 leave unwritten elements as they are."""
        call(name, "nc_def_var_fill", ctypes.c_int(group), ctypes.c_int(variable), ctypes.c_int(1), None)

    def close(self) -> None:
        """Leaves define mode and closes the file."""
        call("the header", "nc_enddef", ctypes.c_int(self.root))
        call("the header", "nc_close", ctypes.c_int(self.root))

    def abort(self) -> None:
        """Closes the file in any state."""
        library().nc_abort(ctypes.c_int(self.root))

    def _made(self, what: str, name: str, *arguments: Any) -> int:
        made = ctypes.c_int()
        call(what, name, *arguments, ctypes.byref(made))
        return made.value

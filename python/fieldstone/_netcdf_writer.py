"""Writes netCDF files from a description and a function that reads blocks: the inverse of the ingest's
reader.

The description is that of ``spec/netcdf-header.md``: groups with dimensions, types, attributes and variables.
A function returns the values block by block, packed and unmasked, as they are to be in the file.

Invariants:

* the file is defined in one step, before any value, and every attribute has exactly its type;
* things that netCDF-C can read but not create (a variable, its layout, a type) are left out or simplified,
  and reported; the rest of the file is written;
* memory holds one block of at most ``PIECE_BYTES`` (and one chunk's row of the leading dimension);
* blocks that the function lacks are written as the variable's fill value.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import netCDF4
import numpy as np

from fieldstone._export_form import cast
from fieldstone._helper import PIECE_BYTES, attributes, libnetcdf
from fieldstone._helper.classic import Layout
from fieldstone._helper.files import boxes
from fieldstone.errors import Error, Invalid, Unavailable

FILL = "_FillValue"
PARKED = "_FillValu_"
"""Temporary name for a classic variable's fill value of another type, until the values are written: netCDF-C
reads such an attribute but refuses to write values next to it. A name of equal length moves no bytes."""

Facts = dict[str, Any]
Box = tuple[tuple[int, ...], tuple[int, ...]]
Read = Callable[[Facts, Box], np.ndarray | None]
"""Returns the values of a box of a variable, None if there are none."""


def write(path: str, model: str, groups: list[Facts], read: Read) -> list[tuple[str, str]]:
    """Writes a new file; returns the differences from the description, with reasons.

    Invalid names what the format cannot hold; Unavailable reports an error of the disk.
    """
    try:
        made = libnetcdf.Definition(path, model)
    except libnetcdf.NetCDFError as error:
        raise Unavailable(f"cannot write {error}", code="io-failed") from None
    try:
        told, left = define(made, groups)
    except libnetcdf.NetCDFError as error:
        if error.full:
            raise Unavailable(f"cannot write: {error}", code="io-failed") from None
        raise Invalid(f"{model} cannot hold {error}", "choose another format=") from None
    try:
        with netCDF4.Dataset(path, "r+") as file:
            file.set_auto_maskandscale(False)
            file.set_auto_chartostring(False)
            if not model.startswith("NETCDF4"):
                file.set_fill_off()
            for group in groups:
                home = file[group["path"]] if group["path"] else file
                for facts in group["variables"]:
                    if _join(group["path"], facts["name"]) in left:
                        continue
                    variable = home.variables[facts["name"]]
                    fill_in(variable, facts, read)
                    if PARKED in variable.ncattrs():
                        variable.renameAttribute(PARKED, FILL)
        if not model.startswith("NETCDF4"):
            pad(path, [facts for facts in groups[0]["variables"] if facts["name"] not in left])
    except Error:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        # Not an error of the disk: netCDF4 rejects the value.
        raise Invalid(f"{model} cannot hold a value: {error}", "choose another format=") from None
    except (OSError, RuntimeError) as error:
        # netCDF-C reports a full disk as an error of HDF5 or of a system call.
        raise Unavailable(f"cannot write: {getattr(error, 'strerror', None) or error}") from None
    return told


def define(made: libnetcdf.Definition, groups: list[Facts]) -> tuple[list[tuple[str, str]], set[str]]:
    """Creates everything in a new file except values; returns the differences from the description, and the
    variables that are missing."""
    told: list[tuple[str, str]] = []
    left: set[str] = set()
    try:
        ids, dims, types = {"": made.root}, {}, {}
        for group in groups:
            at = group["path"]
            if at:
                parent, _, name = at.rpartition("/")
                ids[at] = made.group(ids[parent], name)
            for facts in group["dims"]:
                length = None if facts["unlimited"] else facts["length"]
                dims[_join(at, facts["name"])] = made.dimension(ids[at], facts["name"], length)
            for facts in group.get("types", []):
                path, words = _join(at, facts["name"]), (facts["name"], facts["dtype"], facts["values"])
                with _told(told, path, "left out; its variables are plain numbers"):
                    types[path] = made.enum(ids[at], *words)
        for group in groups:
            here = ids[group["path"]]
            for name, coded in group["attrs"]:
                told += _attribute(here, libnetcdf.GLOBAL, group["path"] or "the file", name, coded)
            for facts in group["variables"]:
                path = _join(group["path"], facts["name"])
                left.add(path)
                with _told(told, path, "left out"):
                    told += _variable(made, here, group["path"], facts, dims, types)
                    left.remove(path)
        made.close()
    except BaseException:
        made.abort()
        raise
    return told, left


@contextlib.contextmanager
def _told(told: list[tuple[str, str]], what: str, how: str) -> Iterator[None]:
    """Reports things that netCDF-C refuses, and continues; an error of the disk ends the file."""
    try:
        yield
    except libnetcdf.NetCDFError as error:
        if error.full:
            raise
        told.append((what, f"{how}: {error}"))


def _variable(
    made: libnetcdf.Definition, here: int, at: str, facts: Facts, dims: dict[str, int], types: dict[str, int]
) -> list[tuple[str, str]]:
    name = facts["name"]
    if facts.get("strings"):
        kind = libnetcdf.STRING
    elif facts.get("enum") in types:
        kind = types[facts["enum"]]
    else:
        kind = libnetcdf.CODES.get(np.dtype(facts["dtype"]).str[1:], 0)
        if not kind:
            raise libnetcdf.NetCDFError(f"netCDF has no type for {np.dtype(facts['dtype'])}")
    new = made.variable(here, name, kind, [dims[d] for d in facts["dims"]])
    missing: list[str] = []
    told: list[tuple[str, str]] = []
    if made.enhanced:
        path = _join(at, name)
        if facts["dims"]:
            with _told(told, path, "kept in other chunks"):
                missing = made.layout(here, new, name, facts.get("chunks"), facts.get("filters") or {})
        if facts.get("endian") == "big":
            with _told(told, path, "kept in the other byte order"):
                made.big_endian(here, new, name)
        # HDF5 always fills texts of variable length.
        if facts.get("nofill") and not facts.get("strings"):
            with _told(told, path, "filled before it is written"):
                made.no_fill(here, new, name)
    for word, coded in facts["attrs"]:
        other = word == FILL and not made.enhanced and coded.get("dtype") != facts["dtype"]
        own = PARKED if other and facts["dtype"] != "|S1" else word
        told += _attribute(here, new, _join(at, name), own, coded)
    return told + [(_join(at, name), f"netCDF-C has no encoder for the filter {word}") for word in missing]


def _attribute(
    here: int, variable: int, where: str, name: str, coded: dict[str, Any]
) -> list[tuple[str, str]]:
    """Makes an attribute; one that netCDF-C can read but not create is left out and reported."""
    try:
        attributes.put(here, variable, name, coded)
    except libnetcdf.NetCDFError as error:
        if error.full:
            raise
        return [(f"{where}: attribute {name}", f"left out: {error}")]
    return []


def fill_in(variable: netCDF4.Variable, facts: Facts, read: Read) -> None:
    """Writes the values of a variable block by block."""
    shape = tuple(facts["shape"])
    if 0 in shape:
        return
    for start, count in blocks(shape, np.dtype(facts["dtype"]).itemsize, facts.get("chunks")):
        wanted = (start[:-1], count[:-1]) if facts.get("chars") else (start, count)
        values = read(facts, wanted)
        if values is None:
            kind = "U1" if facts.get("chars") else facts["dtype"]
            values = np.full(wanted[1], "" if facts.get("chars") else fill_of(facts), np.dtype(kind))
        values = cast(np.asarray(values), facts).reshape(count)
        box = tuple(slice(s, s + c) for s, c in zip(start, count, strict=True))
        if facts.get("strings"):
            values = values.astype(object)
        variable[box or ...] = values if box or not facts.get("strings") else values.item()


def pad(path: str, variables: list[Facts]) -> None:
    """Fills the bytes after values that do not end at a multiple of four with the variable's fill value.

    The format requires this, and netCDF-C does it if it fills; if all values are written, it leaves zeros
    there.
    """
    with open(path, "r+b") as file:
        places = Layout(file, os.fstat(file.fileno()).st_size).places
        for facts in variables:
            dtype, place, shape = np.dtype(facts["dtype"]), places[facts["name"]], facts["shape"]
            records, inner = (shape[0], shape[1:]) if place.record else (1, shape)
            nbytes = dtype.itemsize * math.prod(inner)
            # If only one variable has records, they follow one another without a gap.
            n = 0 if place.record and place.stride == nbytes else -nbytes % 4
            if not n or 0 in shape:
                continue
            value = np.array(fill_of(facts), dtype.newbyteorder(">")).tobytes()
            for record in range(records):
                file.seek(place.begin + record * place.stride + nbytes)
                file.write((value * n)[:n])


def blocks(shape: tuple[int, ...], itemsize: int, chunks: list[int] | None) -> list[Box]:
    """Boxes of at most PIECE_BYTES that begin, along the first dimension, at chunks of the file."""
    row = itemsize
    for n in shape[1:]:
        row *= n
    step = chunks[0] if chunks else 1
    if shape and step > 1 and row * step <= PIECE_BYTES:
        n = PIECE_BYTES // (row * step) * step
        inner = tuple(shape[1:])
        return [
            ((first, *(0,) * len(inner)), (min(n, shape[0] - first), *inner))
            for first in range(0, shape[0], n)
        ]
    return list(boxes(shape, itemsize, PIECE_BYTES))


def fill_of(facts: Facts) -> Any:
    """The value of unwritten elements: ``_FillValue``, or netCDF's own value for the type."""
    for name, coded in facts["attrs"]:
        text = "dtype" not in coded and np.dtype(facts["dtype"]).kind in "SU"
        if name == FILL and (coded.get("dtype") == facts["dtype"] or text):
            return (
                attributes.decode(coded)
                if facts.get("strings")
                else attributes.decoded([[name, coded]])[FILL]
            )
    dtype = np.dtype(facts["dtype"])
    return "" if dtype.kind == "U" else netCDF4.default_fillvals[dtype.str[1:]]


def _join(at: str, name: str) -> str:
    return f"{at}/{name}" if at else name


def discard(path: str) -> None:
    """Removes an unfinished file."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)

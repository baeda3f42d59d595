"""GRIB files as fields: one for each message, byte for byte, under the keys of its header.

Messages are located by their own lengths, so that the reader skips a damaged one and still takes its
neighbours; eccodes reads the keys, whose rules are in ``spec/helper-protocol.md``, "GRIB keys".

Invariants:

* a field's bytes run from ``GRIB`` to ``7777`` and are those of the file;
* memory holds one message.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import eccodes
import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.frames import Channel, RequestError
from fieldstone._helper.grib_keys import MISSING_DOUBLE, MISSING_LONG, UNKNOWN, apart_of, key_of
from fieldstone._helper.grib_words import where_and_when

CHUNK = 1 << 20
PROJECTED = ("mercator", "lambert", "polar_stereographic")
STRAIGHT = ("regular_ll", "regular_gg")
RECTANGULAR = (*STRAIGHT, "rotated_ll", *PROJECTED)
ABSENT = 9999e20
"""The value of missing points while a message is decoded."""
LISTED = ("regular_ll", "regular_gg", "reduced_ll", "reduced_gg", "healpix", "unstructured_grid")

ECKIT_GEO = "ECCODES_ECKIT_GEO"
"""Makes eccodes compute the points of grids with eckit; importing earthkit.data sets it."""


def lay_out_by_eccodes() -> None:
    """Makes eccodes in this process compute points itself, unless it has been used before.

    eccodes reads the variable at its first use. With eckit, longitudes begin at -180, and if rounded
    increments give a row fewer points than its header says, the last ones are uninitialised memory.
    """
    asked = os.environ.pop(ECKIT_GEO, None)
    try:
        eccodes.codes_definition_path()
    finally:
        if asked is not None:
            os.environ[ECKIT_GEO] = asked


lay_out_by_eccodes()


@dataclass
class Found:
    """A part of a GRIB file: a message, or bytes that are not one (`why` has the reason)."""

    offset: int
    message: bytes
    why: str = ""


def ingest(channel: Channel, path: str) -> None:
    """Sends every message of a file with its key."""
    size = os.stat(path).st_size
    fields, ordinal, reported = 0, 0, 0.0
    with open_plain(path) as file:
        for found in messages(file, size):
            ordinal += 1
            what = f"message {ordinal} at byte {found.offset}"
            if found.why:
                channel.skipped(what, found.why)
                continue
            try:
                with Handle(found.message) as handle:
                    key = key_of(handle)
                    apart = apart_of(handle, key)
            except Exception as error:  # eccodes has an exception type for each return code
                channel.skipped(what, f"eccodes cannot read its header: {error}")
                continue
            frame = {"kind": "field", "grib": key, "apart": apart, "offset": found.offset}
            channel.send(frame, found.message)
            fields += 1
            now = time.monotonic()
            if now - reported > 0.1:
                reported = now
                channel.progress(found.offset + len(found.message), size)
    channel.progress(size, size)
    channel.done(format="grib", fields=fields)


def messages(file: BinaryIO, size: int) -> Iterator[Found]:
    """The messages of a file in order; bytes between them (padding, bulletins) are skipped."""
    position = 0
    while (start := find(file, position)) is not None:
        length, why = length_at(file, start, size)
        if why:
            yield Found(start, b"", why)
            position = start + 4
            continue
        file.seek(start)
        message = file.read(length)
        if len(message) != length or message[-4:] != b"7777":
            why = f"its length of {length} bytes does not end in 7777"
            yield Found(start, b"", why)
            position = start + 4
            continue
        # eccodes may crash on section lengths that point outside the message.
        if why := bad_sections(message):
            yield Found(start, b"", why)
            position = start + 4
            continue
        yield Found(start, message)
        position = start + length


def find(file: BinaryIO, position: int) -> int | None:
    """Offset of the next ``GRIB`` with a known edition at or after `position`."""
    file.seek(position)
    kept, base = b"", position
    while chunk := file.read(CHUNK):
        window = kept + chunk
        at = window.find(b"GRIB")
        while at >= 0:
            if len(window) < at + 8:
                break  # the edition is in the next chunk
            if window[at + 7] in (1, 2):
                return base + at
            at = window.find(b"GRIB", at + 1)
        keep = min(len(window), 7)
        base, kept = base + len(window) - keep, window[-keep:]
    return None


def length_at(file: BinaryIO, start: int, size: int) -> tuple[int, str]:
    """Length of the message at `start`, or why there is none."""
    file.seek(start)
    head = file.read(16)
    if head[7] == 2:
        if len(head) < 16:
            return 0, "cut short"
        length = int.from_bytes(head[8:16], "big")
    else:
        length = int.from_bytes(head[4:7], "big")
        if length & 0x800000:
            length = large_grib1(file, start, length, size)
    if length < 12:
        return 0, f"its length of {length} bytes is impossible"
    if start + length > size:
        return 0, f"cut short: {length} bytes long, {size - start} left in the file"
    return length, ""


def large_grib1(file: BinaryIO, start: int, coded: int, size: int) -> int:
    """Length of a GRIB1 message above 8 MB: ECMWF counts it in units of 120 bytes.

    The length of section 4 is then a correction: the total length is ``120 * units - section 4's length +
    4``, as in eccodes.
    """
    total = (coded & 0x7FFFFF) * 120
    position = start + 8
    file.seek(position)
    section1 = file.read(8)
    if len(section1) < 8:
        return coded & 0x7FFFFF
    position += int.from_bytes(section1[:3], "big")
    for flag in (0x80, 0x40):
        if section1[7] & flag:
            file.seek(position)
            position += int.from_bytes(file.read(3), "big")
    if position + 3 > size:
        return total
    file.seek(position)
    section4 = int.from_bytes(file.read(3), "big")
    if section4 < 120:
        return total - section4 + 4
    return coded


def bad_sections(message: bytes) -> str:
    """Why the lengths of the sections do not add up to the message; empty if they do."""
    end = len(message) - 4
    if message[7] == 2:
        position = 16
        while position < end:
            length = int.from_bytes(message[position : position + 4], "big")
            if length < 5 or position + length > end or not 1 <= message[position + 4] <= 7:
                return f"its sections do not add up at byte {position} of it"
            position += length
        return ""
    position = 8 + int.from_bytes(message[8:11], "big")
    flags = message[15]
    for flag in (0x80, 0x40, 0):
        if position + 3 > end:
            return f"its sections do not add up at byte {position} of it"
        if flag and flags & flag:
            position += int.from_bytes(message[position : position + 3], "big")
    data = int.from_bytes(message[position : position + 3], "big")
    # Above 8 MB the length of section 4 is a correction rather than a length.
    if len(message) <= 0x7FFFFF and position + data > end:
        return f"its sections do not add up at byte {position} of it"
    return ""


class Handle:
    """An eccodes handle that is released when its block ends."""

    def __init__(self, message: bytes) -> None:
        self._handle = eccodes.codes_new_from_message(message)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        eccodes.codes_release(self._handle)

    def text(self, name: str) -> str:
        """A header key as text; empty if it is absent or undetermined."""
        try:
            if not eccodes.codes_is_defined(self._handle, name):
                return ""
            value = eccodes.codes_get_string(self._handle, name)
        except eccodes.CodesInternalError:
            return ""
        return "" if value in UNKNOWN else value

    def number(self, name: str) -> int:
        """A header key as a whole number."""
        return eccodes.codes_get_long(self._handle, name)

    def whole(self, name: str) -> int | None:
        """A header key as a whole number; None if it is absent or undetermined."""
        try:
            value = eccodes.codes_get_long(self._handle, name)
        except eccodes.CodesInternalError:
            return None
        return None if value == MISSING_LONG else value

    def exact(self, name: str) -> float | None:
        """A header key as its exact double; None if it is absent or undetermined."""
        try:
            value = eccodes.codes_get_double(self._handle, name)
        except eccodes.CodesInternalError:
            return None
        return None if value == MISSING_DOUBLE else value

    def array(self, name: str) -> np.ndarray:
        """A key that holds many doubles."""
        return np.asarray(eccodes.codes_get_double_array(self._handle, name))

    def mars(self) -> dict[str, str]:
        """The MARS keys that the message holds, without undetermined and internal ones."""
        found = {}
        names = eccodes.codes_keys_iterator_new(self._handle, "mars")
        try:
            while eccodes.codes_keys_iterator_next(names):
                name = eccodes.codes_keys_iterator_get_name(names)
                value = self.text(name)
                if value and not name.startswith("_"):
                    found[name.lower()] = value
        finally:
            eccodes.codes_keys_iterator_delete(names)
        return found

    def set(self, name: str, value: float) -> None:
        """Sets a key of this handle, for decoding only."""
        eccodes.codes_set(self._handle, name, value)


def decode_request(channel: Channel, payload: bytes) -> None:
    """Answers `decode`: the values of one message with their coordinates."""
    try:
        with Handle(payload) as handle:
            values, coords, attrs = decode(handle)
            attrs |= where_and_when(handle)
    except Exception as error:
        raise RequestError("Corrupt", f"eccodes cannot decode the message: {error}") from None
    header: dict[str, Any] = {
        "kind": "field",
        "dtype": values.dtype.str,
        "shape": list(values.shape),
        "attrs": attrs,
        "coords": [
            {"name": name, "dims": list(dims), "dtype": data.dtype.str, "shape": list(data.shape)}
            for name, (dims, data) in coords.items()
        ],
    }
    parts = [values, *(data for _, data in coords.values())]
    channel.send(header, b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    channel.done()


Coords = dict[str, tuple[tuple[str, ...], np.ndarray]]

DECLARED = (
    "short_name",
    "long_name",
    "units",
    "standard_name",
    "GRIB_paramId",
    "GRIB_centre",
    "GRIB_gridType",
)
"""Attributes that are the same for all messages of one parameter and grid."""


NAMED = DECLARED[:5]
"""Those of them that eccodes looks up in the tables of a centre."""


def declared_request(channel: Channel, header: dict[str, Any], payload: bytes) -> None:
    """Answers `grib_declared`: the declarations of each message for a catalog, with coordinates of regular
    grids."""
    lengths = header.get("lengths")
    if not isinstance(lengths, list) or sum(lengths) != len(payload):
        raise RequestError("Invalid", "grib_declared needs the lengths of the messages in the payload")
    variables: list[dict[str, Any]] = []
    arrays: list[np.ndarray] = []
    # For each grid its dimensions, its shape, and the positions of its coordinates among the arrays.
    grids: dict[str, tuple[list[str], list[int], list[list[int]]]] = {}
    position = 0
    for length in lengths:
        message, position = payload[position : position + length], position + length
        try:
            with Handle(message) as handle:
                grid = handle.text("md5GridSection") or str(len(variables))
                if grid not in grids:
                    grids[grid] = describe(handle, arrays)
                said = attributes_of(handle)
        except Exception:  # eccodes has an exception type for each return code; the field is sent anyway
            variables.append({"name": "", "dtype": "<f8", "shape": [], "dims": [], "attrs": [], "coords": []})
            continue
        dims, shape, coords = grids[grid]
        attrs = [[name, {"text": said[name]}] for name in DECLARED if name in said]
        facts = {"name": "grib", "dtype": "<f8", "shape": shape, "dims": dims, "attrs": attrs}
        variables.append(facts | {"coords": coords})
    told = {"kind": "declared", "attrs": [], "arrays": [len(a) for a in arrays], "variables": variables}
    payloads = b"".join(array.astype("<f8").tobytes() for array in arrays)
    channel.send(told | {"times": None}, payloads)
    channel.done()


def describe(handle: Handle, arrays: list[np.ndarray]) -> tuple[list[str], list[int], list[list[int]]]:
    """Dimensions and shape of a grid, and its coordinates if each depends on one dimension; adds these to
    `arrays`."""
    shape = list(shape_of(handle))
    if len(shape) == 1:
        return ["values"], shape, []
    if handle.text("gridType") not in STRAIGHT:
        return ["y", "x"], shape, []
    _, coords = grid_of(handle)
    if not coords:
        return ["y", "x"], shape, []
    places = []
    for dim, name in enumerate(("latitude", "longitude")):
        values = coords[name][1]
        steps = np.diff(values)
        # Longitudes that pass 360 degrees in a row are not a monotonic coordinate.
        if (steps > 0).all() or (steps < 0).all():
            places.append([dim, len(arrays)])
            arrays.append(values)
    return ["latitude", "longitude"], shape, places


def shape_of(handle: Handle) -> tuple[int, int] | tuple[int]:
    """Rows and columns of a regular or projected grid, else the number of values."""
    kind = handle.text("gridType")
    if kind in RECTANGULAR:
        ni, nj = handle.number("Ni"), handle.number("Nj")
        if ni > 0 and nj > 0 and ni * nj == handle.number("numberOfPoints"):
            return nj, ni
    return (handle.number("numberOfValues" if kind == "sh" else "numberOfPoints"),)


def grid_of(handle: Handle) -> tuple[tuple[int, ...], Coords]:
    """Shape and coordinates of a message without its values.

    Regular grids are (latitude, longitude), in the order of the message; rotated and projected ones are (y,
    x) with coordinates in two dimensions; everything else is one dimension, `values`. If eccodes cannot
    compute the points, there are no coordinates.
    """
    kind, shape = handle.text("gridType"), shape_of(handle)
    if len(shape) == 2:
        try:
            lats, lons = (latlon(handle, name, shape) for name in ("latitudes", "longitudes"))
        except (eccodes.CodesInternalError, ValueError):
            return shape, {}
        if kind in STRAIGHT:
            return shape, {
                "latitude": (("latitude",), lats[:, 0].copy()),
                "longitude": (("longitude",), lons[0].copy()),
            }
        return shape, {"latitude": (("y", "x"), lats), "longitude": (("y", "x"), lons)}
    (n,) = shape
    try:
        lats, lons = handle.array("latitudes"), handle.array("longitudes")
        # For some projections eccodes lists the points in an order that differs from that of the values.
        paired = kind in LISTED or np.array_equal(handle.array("latLonValues")[2::3], handle.array("values"))
    except eccodes.CodesInternalError:
        return (n,), {}
    if not paired or lats.size != n or lons.size != n:
        return (n,), {}
    return (n,), {"latitude": (("values",), lats), "longitude": (("values",), lons)}


def is_laid_out(handle: Handle) -> bool:
    """Whether the header of a grid in one dimension agrees with the number of its values.

    The check computes no point; a grid that eccodes cannot compute for other reasons is noticed when its
    points are read.
    """
    kind, points = handle.text("gridType"), handle.number("numberOfPoints")
    if kind == "healpix":
        side = handle.whole("Nside") or 0
        return 12 * side * side == points
    if kind.startswith("reduced_"):
        try:
            return int(eccodes.codes_get_long_array(handle._handle, "pl").sum()) >= points
        except eccodes.CodesInternalError:
            return False
    return True


def corners_of(handle: Handle) -> list[float]:
    """Latitudes of the first and the last point of a grid, and longitudes, from the header."""
    words = [
        f"{along}Of{end}GridPointInDegrees"
        for along in ("latitude", "longitude")
        for end in ("First", "Last")
    ]
    return [eccodes.codes_get_double(handle._handle, word) for word in words]


def points_of(handle: Handle, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Latitudes or longitudes of a grid in the shape of its values."""
    return latlon(handle, name, shape) if len(shape) == 2 else handle.array(name)


def latlon(handle: Handle, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Latitudes or longitudes as rows of columns."""
    values = handle.array(name)
    if handle.text("gridType") in PROJECTED:
        # eccodes lists these points from the first row and column upwards, for all scanning modes.
        return values.reshape(shape)
    if handle.number("jPointsAreConsecutive"):
        return values.reshape(shape[::-1]).T
    return values.reshape(shape)


def arrange(handle: Handle, values: np.ndarray, nj: int, ni: int) -> np.ndarray:
    """Values in scanning order, rearranged to the rows and columns of :func:`latlon`."""
    rows = values.reshape(ni, nj) if handle.number("jPointsAreConsecutive") else values.reshape(nj, ni)
    if handle.number("alternativeRowScanning"):
        rows = rows.copy()
        rows[1::2] = rows[1::2, ::-1]
    if handle.number("jPointsAreConsecutive"):
        rows = rows.T
    if handle.text("gridType") in PROJECTED:
        rows = rows[:, ::-1] if handle.number("iScansNegatively") else rows
        rows = rows if handle.number("jScansPositively") else rows[::-1]
    return rows


def decode(handle: Handle) -> tuple[np.ndarray, Coords, dict[str, str]]:
    """Values (NaN if missing), coordinates and descriptive attributes of a message."""
    shape, coords = grid_of(handle)
    return values_of(handle, shape), coords, attributes_of(handle)


def values(message: bytes) -> np.ndarray:
    """The values of a message without its coordinates."""
    with Handle(message) as handle:
        return values_of(handle, shape_of(handle))


def values_of(handle: Handle, shape: tuple[int, ...]) -> np.ndarray:
    """The decoded values in `shape`, NaN if the message has none."""
    values = masked(handle)
    if len(shape) == 2:
        values = arrange(handle, values, *shape)
    if values.shape != shape:
        raise ValueError(f"{values.size} values, but the grid has {shape}")
    return np.ascontiguousarray(values)


def masked(handle: Handle) -> np.ndarray:
    """The decoded values, NaN if there is none: by the bitmap, or by a packing that can mark missing values
    itself."""
    values = decoded(handle, ABSENT)
    absent = values == ABSENT
    if absent.any():
        # A real value may equal this number: it stays when missing points get another number.
        if handle.whole("numberOfMissing") != np.count_nonzero(absent):
            absent &= decoded(handle, -ABSENT) == -ABSENT
        values = np.where(absent, np.nan, values)
    return values


def decoded(handle: Handle, absent: float) -> np.ndarray:
    """The values, with `absent` for missing ones."""
    handle.set("missingValue", absent)
    return handle.array("values")


def attributes_of(handle: Handle, known: dict[str, str] | None = None) -> dict[str, str]:
    """The meaning of the values; `known` has everything in :data:`NAMED`, if it has been looked up before."""
    names = {
        "short_name": "shortName",
        "long_name": "name",
        "units": "units",
        "standard_name": "cfName",
        "GRIB_paramId": "paramId",
        "GRIB_centre": "centre",
        "GRIB_typeOfLevel": "typeOfLevel",
        "GRIB_gridType": "gridType",
        "GRIB_stepType": "stepType",
    }
    said = {}
    for name, key in names.items():
        value = handle.text(key) if known is None or name not in NAMED else known.get(name, "")
        if value:
            said[name] = value
    return said

"""A reader of GRIB files for tests, which shares no code with the package: messages by their own lengths.

It skips a damaged message, and still takes its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

CHUNK = 1 << 20


@dataclass
class Found:
    """A part of a GRIB file: a message, or bytes that are not one (`why` has the reason)."""

    offset: int
    message: bytes
    why: str = ""


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

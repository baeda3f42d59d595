"""Entries that name an entry of another store (spec/takeovers.md, 6.5) for the small reader."""

from __future__ import annotations

import os
import re
from math import prod
from pathlib import Path
from urllib.parse import parse_qs

SCHEME = "fieldstone+"


class Named:
    """The bytes of the entry that a URL names, as those of a file; its own store compares them."""

    def __init__(self, reader: type, url: str, length: int) -> None:
        place, _, query = url.removeprefix(SCHEME).rpartition("?")
        self.name, named = url, {name: value[0] for name, value in parse_qs(query).items()}
        path = re.sub(b"%(..)", lambda code: bytes.fromhex(code[1].decode()), place[7:].encode())
        store = reader(Path(os.fsdecode(path)))
        of = (
            bytes.fromhex(named["log"]),
            int(named["commit"]),
            int(named["entry"]),
            bytes.fromhex(named["key"]),
        )
        found = [
            e for e in store.entries if (e.log.writer, e.number, e.ordinal, e.key) == of and e.place[0] != 9
        ]
        if len(found) != 1:
            raise ValueError(f"{url}: it is not there")
        e = found[0]
        # As a field of its own, of which the box is all.
        store.fields = lambda: {"": [e._replace(shape=e.count, start=(0,) * len(e.count))]}
        self.bytes = store.read("")
        if len(self.bytes) != length:
            raise ValueError(f"{url}: it has {len(self.bytes)} bytes in place of {length}")

    def read(self, at: int, length: int, _crc: int | None = None, _copy: int | None = None) -> bytes:
        return self.bytes[at : at + length]


def opened(reader: type, outside: type, where: tuple, e: object) -> object:
    """A file outside the store, or an entry of another store."""
    length = prod(e.count) * e.size
    if where[0].startswith(SCHEME):
        return Named(reader, where[0], length)
    return outside(*where, length)

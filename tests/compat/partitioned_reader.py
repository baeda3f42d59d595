"""Reads containers with a partitioned header in plain Python, written from spec/partitioned-header.md alone.

    python partitioned_reader.py FILE [NAME]

Numbers in comments are sections of that text. The reader reads everything at once.
"""

from __future__ import annotations

import json
import struct
import sys
from itertools import pairwise
from math import prod
from pathlib import Path

PAGE = 4096
TYPES = [None, "b", "c", "h", "i", "f", "d", "B", "H", "I", "q", "Q"]
SIZES = [0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8]
CRC = list(range(256))
for _ in range(8):
    CRC = [c >> 1 ^ (0x82F63B78 if c & 1 else 0) for c in CRC]


class Damage(ValueError):
    """Bytes that break a rule of the specification."""


def check(right: object, problem: str) -> None:
    if not right:
        raise Damage(problem)


def crc32c(data: bytes) -> int:
    crc, table = 0xFFFFFFFF, CRC
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def values(code: int, data: bytes) -> str | list[float]:
    if code == 2:
        return data.decode("latin-1")
    return list(struct.unpack(f">{len(data) // SIZES[code]}{TYPES[code]}", data))


class Container:
    def __init__(self, path: str | Path) -> None:
        self.data = data = Path(path).read_bytes()
        check(data[:4] != b"FSUP", "the file was never finished")
        check(data[:4] == b"FSP\0", "no partitioned header of version 0")
        # 3
        check(struct.unpack_from(">I", data, 156)[0] == crc32c(data[4:8] + data[24:156]), "head")
        self.numrecs, crc = struct.unpack_from(">QI", data, 8)
        check(crc == crc32c(data[8:16]), "number of records")
        counts = struct.unpack_from(">10Q", data, 24)
        self.totals, self.paths, self.record_dim, self.record_size = counts[:3], *counts[3:6]
        self.data_begin, self.record_begin, table, length = counts[6:]
        crc, blocks, writers, _, self.paths_at, self.paths_pages = struct.unpack_from(">4I2Q", data, 104)
        # 4
        check(crc == crc32c(data[table : table + length]), "index table")
        self.blocks = [struct.unpack_from(">Q6IQ2H", data, table + 44 * i) for i in range(blocks)]
        at = table + 44 * blocks
        self.writers = [struct.unpack_from(">I3QI", data, at + 32 * i) for i in range(writers)]
        at += 32 * writers
        self.table_at = table
        self.ranges = []
        for block in self.blocks:
            least, greatest = block[8:]
            texts = data[at : at + least], data[at + least : at + least + greatest]
            self.ranges.append(tuple(text.decode() for text in texts))
            at += least + greatest
        check(at == table + length, "index table has another length")
        for kind in range(3):
            total = sum(block[3 + kind] for block in self.blocks)
            check(total == self.totals[kind], "sums of the table")
        self.dims: list[tuple[str, int | None]] = []
        self.attrs: dict[str, tuple[int, bytes]] = {}
        self.vars: list[dict] = []
        for number in range(blocks):
            self.read_block(number)
        self.by_name = {var["name"]: var for var in self.vars}
        check(len(self.by_name) == len(self.vars), "two variables of one name")

    def read_block(self, number: int) -> None:  # 5
        offset, length, crc, *counts = self.blocks[number][:7]
        block = self.data[offset : offset + length]
        check(crc == crc32c(block), f"block {number} at offset {offset} {self.ranges[number]}")
        sizes = struct.unpack_from(">4I", block)
        check(list(sizes) == [counts[3], *counts[:3]], f"counts of block {number}")
        starts = [*struct.unpack_from(f">{sum(sizes)}I", block, 16), length]
        entries = [block[a:b] for a, b in pairwise(starts)]
        kinds = [[entries.pop(0) for _ in range(size)] for size in sizes]
        paths = [path.decode() for path in kinds[0]]
        if paths:
            check((min(paths), max(paths)) == self.ranges[number], f"paths of block {number}")

        def name(path: int, last: bytes) -> str:
            return f"{paths[path]}/{last.decode()}" if paths[path] else last.decode()

        def attr(entry: bytes, at: int) -> tuple[bytes, tuple[int, bytes], int]:
            long, code, zero, size = struct.unpack_from(">HBBQ", entry, at)
            end = at + 12 + long + size
            check(zero == 0 and end <= len(entry) and size % SIZES[code] == 0, "attribute")
            return entry[at + 12 : at + 12 + long], (code, entry[at + 12 + long : end]), end

        for entry in kinds[1]:
            path, record, size = struct.unpack_from(">IIQ", entry)
            self.dims.append((name(path, entry[16:]), None if record else size))
        for entry in kinds[2]:
            last, value, end = attr(entry, 4)
            check(end == len(entry), "attribute")
            self.attrs[name(struct.unpack_from(">I", entry)[0], last)] = value
        for entry in kinds[3]:
            path, code, record, long, ndims, nattrs, begin = struct.unpack_from(">IBBHIIQ", entry)
            dims = struct.unpack_from(f">{ndims}Q", entry, 24)
            at = 24 + 8 * ndims + long
            var = {"name": name(path, entry[at - long : at]), "type": code, "dims": dims, "attrs": {}}
            var |= {"record": bool(record), "begin": begin}
            for _ in range(nattrs):
                last, value, at = attr(entry, at)
                var["attrs"][last.decode()] = value
            check(at == len(entry), f"variable {var['name']}")
            check(var["record"] == (dims[:1] == (self.record_dim,)), f"records of {var['name']}")
            self.vars.append(var)

    def get(self, name: str) -> str | list[float]:  # 6
        var = self.by_name[name]
        lengths = [self.dims[dim][1] for dim in var["dims"]]
        code, size = var["type"], prod(n for n in lengths if n is not None) * SIZES[var["type"]]
        if not var["record"]:
            begin = self.data_begin + var["begin"]
            return values(code, self.data[begin : begin + size].ljust(size, b"\0"))
        begins = [self.record_begin + var["begin"] + i * self.record_size for i in range(self.numrecs)]
        return values(code, b"".join(self.data[at : at + size].ljust(size, b"\0") for at in begins))

    def pages(self, offset: int, entry: int, pages: int) -> list[bytes]:  # 7
        found: list[bytes] = []
        for number in range(pages):
            page = self.data[offset + number * PAGE :][:PAGE]
            crc, count = struct.unpack_from(">II", page)
            check(crc == crc32c(page[4:]) and 0 < count <= (PAGE - 8) // entry, f"page {number} at {offset}")
            found += [page[8 + i * entry :][:entry] for i in range(count)]
        check(found == sorted(found), "entries out of order")
        return found

    def check_indexes(self) -> None:  # 7
        """Checks that the indexes have every object once. It computes no hashes: they only help to search."""
        index = self.pages(self.paths_at, 32, self.paths_pages)
        check(len({entry[:16] for entry in index}) == self.paths, "number of paths")
        counts = [struct.unpack(">4I", entry[16:]) for entry in index]
        before = 0
        for writer, (blocks, offset, entries, *_) in enumerate(self.writers):
            own = [block[3:6] for block in self.blocks[before : before + blocks]]
            before += blocks
            dims, attrs, variables = (sum(block[kind] for block in own) for kind in range(3))
            said = [[entry[kind] for entry in counts if entry[0] == writer] for kind in range(1, 4)]
            check([sum(kind) for kind in said] == [dims, attrs, variables], f"paths of writer {writer}")
            found = self.pages(offset, 8, -(-entries // 511))
            numbers = sorted(struct.unpack(">I", entry[4:])[0] for entry in found)
            check(numbers == [*range(dims), *(1 << 31 | i for i in range(variables))], f"names of {writer}")

    def path_lists(self) -> list[dict[str, tuple[int, ...]]]:  # 8
        """For each writer: path → counts by kind, first and last block, bytes, bytes per record."""
        lists = []
        at = self.table_at - sum(writer[3] for writer in self.writers)
        for number, (blocks, _, _, length, crc) in enumerate(self.writers):
            data, at = self.data[at : at + length], at + length
            check(crc == crc32c(data), f"path list {number}")
            paths: dict[str, tuple[int, ...]] = {}
            before = None
            while data:
                long, *numbers = struct.unpack_from(">H5I2Q", data)
                path, data = data[38 : 38 + long], data[38 + long :]
                check(len(path) == long and any(numbers[:3]), f"path list {number}")
                check(before is None or before < path, f"order of path list {number}")
                check(numbers[3] <= numbers[4] < blocks, f"blocks in path list {number}")
                paths[path.decode()] = tuple(numbers)
                before = path
            lists.append(paths)
        return lists

    def path_totals(self) -> dict[str, list[int]]:  # 8
        """Path → dimensions, attributes, variables, bytes of data, from the path lists alone."""
        found: dict[str, list[int]] = {}
        for paths in self.path_lists():
            for path, (*counts, _, _, fixed, record) in paths.items():
                own = [*counts, fixed + record * self.numrecs]
                found[path] = [a + b for a, b in zip(found.get(path, [0] * 4), own, strict=True)]
        return found

    def describe(self) -> dict:
        """Everything except the data, as plain values."""

        def attrs(items: dict[str, tuple[int, bytes]]) -> dict:
            return {name: [code, values(code, value)] for name, (code, value) in items.items()}

        variables = [var | {"attrs": attrs(var["attrs"])} for var in self.vars]
        return {"dims": self.dims, "attrs": attrs(self.attrs), "vars": variables, "numrecs": self.numrecs}


if __name__ == "__main__":
    container = Container(sys.argv[1])
    print(json.dumps(container.get(sys.argv[2]) if len(sys.argv) > 2 else container.describe()))

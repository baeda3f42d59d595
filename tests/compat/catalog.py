"""Lists a store's catalog with plain Python, written from spec/catalog-records.md alone.

    python catalog.py STORE

Numbers in comments are sections of that text. reader.py finds the commits; zstd frames need `zstandard`.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import reader
from reader import check, parts_of

TYPES = ["bool", "int", "uint", "float", "text", "bytes", "datetime", "int_range", "float_range", "array"]
TYPES.append("json")
FLAGS = STEPS, BOXES, CONTINUES, SINGLES, ONE_BOX, ONE_VALUE = [1 << bit for bit in range(6)]


def signed(value: int) -> int:
    """A 64-bit number, wrapped around."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


class Cursor(reader.Cursor):
    """Reads the words of section 1 and the columns of section 7."""

    def zigzag(self) -> int:
        value = self.one("v")
        return value >> 1 ^ -(value & 1)

    def floats64(self, n: int) -> tuple[float, ...]:
        return struct.unpack(f"<{n}d", self.take(8 * n))

    def optional(self, read: object) -> object:
        return read() if self.one("f") else None

    def many(self, read: object) -> list:
        return [read() for _ in range(self.one("v"))]

    def named(self) -> dict:
        return dict(self.many(lambda: (self.one("t"), self.value())))

    def value(self, kind: int | None = None, depth: int = 0) -> object:
        """A value (2)."""
        kind = self.one("B") if kind is None else kind
        check(depth <= 64, "nested too deeply")
        match kind:
            case 0:
                return None
            case 1:
                return bool(self.one("f"))
            case 2 | 7:
                return self.zigzag()
            case 3:
                return self.one("v")
            case 4:
                return self.floats64(1)[0]
            case 5:
                return self.one("t")
            case 6:
                return self.one("b")
            case 8:
                return self.zigzag(), self.zigzag()
            case 9:
                return self.floats64(2)
            case 10:
                n = self.one("v")
                kind = self.one("B") if n else 2
                check(kind in (1, 2, 3, 4, 5, 7), f"array of type {kind}")
                return [self.value(kind, depth + 1) for _ in range(n)]
            case 11:
                return self.many(lambda: self.value(None, depth + 1))
            case 12:
                return dict(self.many(lambda: (self.one("t"), self.value(None, depth + 1))))
        raise reader.Damage(f"value of type {kind}")

    def bits(self, n: int, width: int) -> list[int]:
        stream = int.from_bytes(self.take((n * width + 7) // 8), "little")
        return [stream >> i * width & (1 << width) - 1 for i in range(n)]

    def ints(self, n: int) -> list[int]:
        form = self.one("B")
        check(n >= 1 and form <= 3, f"numbers of form {form}")
        if form == 0:
            return [self.zigzag()] * n
        if form == 3:
            d = self.one("v")
            check(2 <= d <= 256, f"list of {d}")
            words = self.ints(d)
            return [words[code] for code in self.bits(n, (d - 1).bit_length())]
        first = self.zigzag() if form == 2 else 0
        least, width = self.zigzag(), self.one("B")
        check(width <= 64, f"{width} bits")
        if form == 1:
            return [signed(least + bits) for bits in self.bits(n, width)]
        values = [first]
        for bits in self.bits(n - 1, width):
            values.append(signed(values[-1] + least + bits))
        return values

    def floats(self, n: int) -> list[float]:
        form = self.one("B")
        if form == 2:
            return [float(value) for value in self.ints(n)]
        if form == 3:
            return list(struct.unpack(f"<{n}d", struct.pack(f"<{n}q", *self.ints(n))))
        check(form <= 1, f"floats of form {form}")
        width, letter = ((8, "d"), (4, "f"))[form]
        planes = self.take(width * n)
        return list(struct.unpack(f"<{n}{letter}", b"".join(planes[i::n] for i in range(n))))

    def plain(self, n: int) -> list[bytes]:
        return [self.take(length) for length in self.ints(n)]

    def texts(self, n: int) -> list[bytes]:
        form = self.one("B")
        check(form <= 1, f"texts of form {form}")
        if form == 0:
            return self.plain(n)
        words = self.plain(self.one("v"))
        return [words[code] for code in self.ints(n)]

    def run(self) -> tuple[str, str]:
        return self.get("tt")

    def tag(self) -> tuple[str, int, str, str]:
        name, version, kind, unit = self.one("t"), self.zigzag(), self.one("B"), self.one("t")
        return name, version, TYPES[kind - 1], unit


def runs(c: Cursor, flags: bool = False) -> Iterator[tuple]:
    for _ in range(c.one("v")):
        run, job, params, created = c.run(), c.optional(lambda: c.one("t")), c.named(), c.take(8)
        grid, notes, outside = c.optional(c.value), c.optional(lambda: c.one("t")), c.optional(c.value)
        facts = {"job": job, "params": params, "grid": grid, "notes": notes, "outside": outside}
        facts["created"] = int.from_bytes(created, "little", signed=True)
        if flags:
            flag = c.one("B")
            check(flag <= 1, f"run with flags {flag}")
            facts["annotate"] = ("all", "owner")[flag]
        yield "run", run, facts


def runs_with_flags(c: Cursor) -> Iterator[tuple]:
    yield from runs(c, flags=True)


def steps(c: Cursor) -> Iterator[tuple]:
    run, n = c.run(), c.one("v")
    numbers, form, times = c.ints(n), c.one("B"), [None] * n
    if form == 1:
        times = c.floats(n)
    if form == 2:
        there, some = c.bits(n, 1), iter(c.floats(c.one("v")))
        times = [next(some) if bit else None for bit in there]
    yield from (("step", (run, number), time) for number, time in zip(numbers, times, strict=True))


def variables(c: Cursor) -> Iterator[tuple]:
    def coordinate() -> object:
        dim, form = c.get("vB")
        if form == 1:
            return dim, c.floats(c.one("v"))
        return dim, c.floats64(2) if form == 0 else c.one("t")

    run = c.run()
    for _ in range(c.one("v")):
        name, version = c.one("t"), c.zigzag()
        facts = {
            "dtype": c.optional(lambda: c.one("t")),
            "shape": c.optional(lambda: c.many(lambda: c.one("v"))),
        }
        facts |= {"dims": c.many(lambda: c.one("t")), "attrs": c.named(), "coords": c.many(coordinate)}
        facts["decomposition"] = c.optional(lambda: c.many(lambda: c.one("v")))
        facts["finders"] = c.optional(c.value)
        yield "variable", (run, (name, version)), facts


def tags(c: Cursor) -> Iterator[tuple]:
    yield from (("tag", tag, None) for tag in c.many(c.tag))


def attributes(c: Cursor) -> Iterator[tuple]:
    """Rows (5) as place, value, and the call to which each belongs."""
    run, tag, flags, rows = c.run(), c.tag(), c.one("B"), c.one("v")
    check(flags < 64 and 1 <= rows <= 65_536, f"flags {flags}, {rows} rows")
    names = c.many(lambda: (c.one("t"), c.zigzag()))
    at = c.ints(rows) if flags & STEPS else [None] * rows
    on = c.ints(rows) if len(names) > 1 else [0] * rows
    boxes = [None] * rows
    if flags & BOXES:
        n, rank = 1 if flags & ONE_BOX else rows, c.one("v")
        check(1 <= rank <= 64, f"rank {rank}")
        sides = [(c.ints(n), c.ints(n)) for _ in range(rank)]
        boxes = [tuple((start[i], count[i]) for start, count in sides) for i in range(n)]
        boxes *= rows if flags & ONE_BOX else 1
    n, form = 1 if flags & ONE_VALUE else rows, c.one("B")
    check(form <= 8, f"values of form {form}")
    values = {
        0: lambda: [bool(bit) for bit in c.bits(n, 1)],
        1: lambda: c.ints(n),
        2: lambda: [value % (1 << 64) for value in c.ints(n)],
        3: lambda: c.floats(n),
        4: lambda: [text.decode() for text in c.texts(n)],
        5: lambda: [c.value() for _ in range(n)],
        6: lambda: [(a, signed(a + d)) for a, d in zip(c.ints(n), c.ints(n), strict=True)],
        7: lambda: list(zip(c.floats(n), c.floats(n), strict=True)),
        8: lambda: c.texts(n),
    }[form]()
    values *= rows if flags & ONE_VALUE else 1
    for row in range(rows):
        place = (run, tag, at[row], names[on[row]] if names else None, boxes[row])
        yield "attribute", place, (values[row], row, flags)


def removals(c: Cursor) -> Iterator[tuple]:
    for _ in range(c.one("v")):
        kind = c.one("B")
        check(kind <= 4, f"deletion of kind {kind}")
        if kind == 4:
            writers, n = c.many(lambda: c.one("i")), c.one("v")
            columns = zip(c.ints(n), c.ints(n), c.ints(n), c.ints(n), strict=True)
            yield "remove", kind, {(writers[w], s % (1 << 64), record, row) for w, s, record, row in columns}
        elif kind == 3:
            yield "remove", kind, c.tag()
        else:
            run = c.run()
            below = {0: lambda: None, 1: c.zigzag, 2: lambda: (c.one("t"), c.zigzag())}[kind]()
            yield "remove", kind, (run, below)


BODIES = dict(enumerate([runs, steps, variables, tags, attributes, removals, runs_with_flags], 0x0100))
RUN, STEP, VARIABLE, TAG = 2, 4, 8, 16


def said(kind: int, data: bytes) -> list[tuple]:
    """The contents of a side record (3)."""
    with parts_of(data, f"record of kind {kind:#06x}") as c:
        packed = c.one("f")
        length = c.one("v") if packed else 0
        body = c.take(len(data) - c.at)
        if packed:
            import zstandard  # the only import outside the standard library

            check(length <= min(1 << 30, 32_768 * len(body)), "a body of an impossible length")
            body = zstandard.ZstdDecompressor().stream_reader(body).read(length + 1)
            check(len(body) == length, "a body of another length")
    cursor = Cursor(body)
    try:
        what = list(BODIES[kind](cursor))
        check(cursor.at == len(body), "bytes are left over")
    except (ValueError, LookupError) as error:
        raise reader.Damage(f"record of kind {kind:#06x}: {error}") from error
    return what


def bits_of(what: tuple) -> int:
    """The bits that a decision needs to show the content (8)."""
    kind, place, _value = what
    if kind == "attribute":
        return 32 if place[2:4] == (None, None) else 128 if place[3] else 64
    if kind == "remove":
        return {0: RUN, 1: STEP, 2: VARIABLE, 3: TAG, 4: 32 | 64 | 128}[place]
    return {"run": RUN, "step": STEP, "variable": VARIABLE, "tag": TAG}[kind]


def visible(
    store: reader.Store, txn: tuple, writer: bytes, stamp: int, sequence: int, bits: int
) -> int | None:
    """The stamp that orders a commit's content of these kinds; None if it is not visible (8)."""
    if not txn:
        return stamp
    order, covered, ended = None, 0, False
    for decided, _, verdict, kinds, covers in sorted(store.decisions.get(txn, [])):
        if ended and not verdict:
            continue
        covered = covered if ended else max(covered, covers.get(writer, 0))
        ended = ended or not verdict or kinds == 2**32 - 1
        if not verdict:
            return None
        order = (order or decided) if kinds & bits == bits and covered >= sequence else None
    return order


def commits(store: reader.Store) -> Iterator[tuple]:
    """(transaction, writer, stamp, sequence, side records) of each commit that has side records."""
    slots: dict = {}
    for path in store.path.glob("logs/*.log"):
        log = reader.Log(store.path, bytes.fromhex(path.stem), slots.get(path.stem, (0, 0, 0)))
        for frame, (stamp, _, _, (offset, length, crc, count), _) in log.commits(log.last()):
            if not count:
                continue
            at = frame.at + frame.length - 52 - 2 * frame.size
            record = reader.Cursor(log.read(at, frame.size, frame.crc, at + frame.size))
            record.get("QQQQQ")
            txn = record.get("i" * record.one("f"))
            with parts_of(log.read(offset, length, crc), f"{log.name}: side records at {offset}") as c:
                found = [(int.from_bytes(c.take(2), "little"), c.one("b")) for _ in range(count)]
            yield txn, log.writer, stamp, frame.sequence, found


def catalog(path: Path | str) -> dict[str, list]:
    """The contents of the catalog, after corrections and deletions (8)."""
    store = reader.open_store(path)
    told = []
    for txn, writer, stamp, sequence, records in commits(store):
        call = 0
        for record, (kind, data) in enumerate(records):
            if not 0x0100 <= kind <= 0x01FF:
                continue
            for what in said(kind, data):
                row, flags = what[2][1:] if what[0] == "attribute" else (0, 0)
                if flags & SINGLES or (row == 0 and not flags & CONTINUES):
                    call += 1
                order = visible(store, txn, writer, stamp, sequence, bits_of(what))
                if order is not None:
                    told.append(((order, writer, sequence, record, call), row, what))
    told.sort(key=lambda one: one[:2])
    found: dict[str, dict] = {"run": {}, "step": {}, "variable": {}, "tag": {}, "attribute": {}}
    for order, row, (kind, place, value) in told:
        if kind == "remove":
            delete(found, place, value)
        elif kind != "attribute":
            found[kind].setdefault(place, value)
        else:
            call = order[1], order[2], order[4]
            found["tag"].setdefault(place[1], None)
            if (newest := found[kind].get(place)) is None or newest[0] != call:
                newest = found[kind][place] = (call, {})
            newest[1][(order[1], order[2], order[3], row)] = value[0]
    rows = [(place, value) for place, (_, values) in found["attribute"].items() for value in values.values()]
    lists = {name: list(found[name].items()) for name in ("run", "step", "variable")}
    return lists | {"tag": list(found["tag"]), "attribute": rows}


def delete(found: dict[str, dict], kind: int, what: object) -> None:
    """Removes everything older than the deletion (8)."""
    attributes = found["attribute"]
    if kind == 4:
        for place, (call, rows) in list(attributes.items()):
            left = {name: value for name, value in rows.items() if name not in what}
            attributes[place] = (call, left)
            if not left:
                del attributes[place]
        return
    if kind == 3:
        found["tag"].pop(what, None)
        gone = lambda place: place[1] == what  # noqa: E731
    else:
        run, below = what
        if kind == 0:
            found["run"].pop(run, None)
        for name in ("step", "variable"):
            for place in [p for p in found[name] if p[0] == run and (kind == 0 or p == what)]:
                if kind == 0 or name == ("step", "variable")[kind - 1]:
                    del found[name][place]
        gone = lambda place: place[0] == run and (kind == 0 or place[1 + kind] == below)  # noqa: E731
    for place in [place for place in attributes if gone(place)]:
        del attributes[place]


if __name__ == "__main__":
    for name, rows in catalog(sys.argv[1]).items():
        for row in rows:
            print(name, json.dumps(row, default=repr))

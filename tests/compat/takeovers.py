"""Takeovers (spec/takeovers.md) for the small reader: files that stand in for ended logs.

Numbers in comments are sections of that text. `Takeovers` gives the reader what the logs would have given:
entries, decisions, attempts, oldest commits of datasets, accepted losses. The reader hands over the classes
and functions of its own that are needed here, as it may be loaded under any name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

ALL_KINDS = 2**32 - 1
NAMES, COMMITS, ENTRIES, TRANSACTIONS, RECORDS, DATASETS, ATTEMPTS = 1, 2, 3, 4, 6, 7, 9


def big(key: bytes) -> int:
    return int.from_bytes(key, "big")


def unpack(reader: SimpleNamespace, packed: bytes) -> bytes:
    """The body of a block of form 1 (2)."""
    import zstandard

    c = reader.Cursor(packed)
    _form, length = c.get("Bv")
    reader.check(length <= min(1 << 30, 32768 * len(packed)), f"a block cannot hold {length} bytes")
    body = zstandard.ZstdDecompressor().stream_reader(packed[c.at :]).read(length + 1)
    reader.check(len(body) == length, f"a block of {len(body)} bytes in place of {length}")
    return body


def open_one(reader: SimpleNamespace, store: Path, name: str) -> SimpleNamespace:
    """Header and record (3), from whichever copies are whole."""
    file, check = reader.File(store, f"logs/{name}.takeover"), reader.check
    tail = file.read(file.end - 16, 16) if file.end >= 16 else b""
    header, problems = None, []
    for copy in (0, 1):
        try:
            if copy:
                same = reader.crc32c(tail[:4]) == int.from_bytes(tail[4:8], "little")
                check(same and tail[8:] == b"FStakend", f"{file.name}: its tail is damaged")
            length = int.from_bytes(tail[:4] if copy else file.read(20, 4), "little")
            at = file.end - 16 - length if copy else 0
            body = file.read(at, length - 4, int.from_bytes(file.read(at + length - 4, 4), "little"))
            header = header or parse_header(reader, file, body)
        except (reader.Damage, OSError, ValueError, OverflowError) as damage:
            problems.append(str(damage))
    check(header, f"{file.name}: {problems[:1]}")
    check(header.name == name, f"{file.name}: it carries another name")
    header.file, header.problems = file, problems
    at, length, crc = header.place
    header.file.sums = [(file, at + n * length, length, crc) for n in (0, 1)]
    with reader.parts_of(file.read(at, length, crc, at + length), f"{file.name}: record") as c:
        header.data_logs = c.list("vv")
        _removals, _bytes = c.get("fv")
        header.tables = {number: table for number, *table in c.list("BvBvvvIbb")}
    return header


def parse_header(reader: SimpleNamespace, file: object, body: bytes) -> SimpleNamespace:
    with reader.parts_of(body, f"{file.name}: header") as c:
        magic, (version, _length, ident, store, number) = c.take(16), c.get("IIiiQ")
        reader.check((magic, version) == (b"FIELDSTONE-TAKE\0", 2), "magic or version")
        _created, _newest, floor, *place = c.get("QQQQII")
        owner = reader.Log.owner_of(c)
        reader.check(len(owner) == 1, "it is not of a user")
        _maker, _purge = c.get("IIttt"), c.one("f")
        live, _replaced, _schema = c.list("vQ"), c.list("v"), c.one("t")
    return SimpleNamespace(
        writer=ident, store=store, floor=floor, place=place, owner=owner[0], live=live, number=number,
        name=f"u{owner[0]}-{number}",
    )  # fmt: skip


class Takeovers:
    """Those of a store that count (7.1), read whole."""

    def __init__(self, reader: SimpleNamespace, store: object) -> None:
        self.reader, self.store, self.all, self.began = reader, store, [], {}
        self.logs: dict[tuple[int, bytes], SimpleNamespace] = {}  # by owner and writer
        self.entries, self.oldest, self.losses, self.floors = [], [], [], {}
        self.transactions: set[tuple[int, bytes]] = set()  # with their owners
        self.damaged: list[tuple[tuple, str]] = []  # blocks of entries: how an acceptance names each, and why
        self.stamps: dict[bytes, list[tuple[int, int]]] = {}  # sequences and stamps of kept commits
        newest: dict[str, int] = {}
        folder_owner = (store.path / "logs").stat().st_uid
        for path in store.path.glob("logs/*.takeover"):
            found = re.fullmatch(r"(u(0|[1-9]\d*))-([1-9]\d*)", path.stem)
            last = store.copy.numbers.get(found[1], 0) if found and store.copy else None
            if last is not None and int(found[3]) > last:
                continue  # of a backup: its version does not have it (store-format.md, 15.7)
            if found and path.stat().st_uid in {0, folder_owner, int(found[2])}:
                newest[found[1]] = max(int(found[3]), newest.get(found[1], 0))
        for owner, number in sorted(newest.items()):
            with store.noting((b"", None)):
                self.all += self.of_owner(owner, number)
        self.owners = {one.writer: one.owner for one in self.all}
        for one in self.all:
            with store.noting((b"", None)):
                self.read_logs(one)
        for one in self.all:
            with store.noting((b"", None)):
                self.read_rest(one)

    def of_owner(self, owner: str, number: int) -> list[SimpleNamespace]:
        first = open_one(self.reader, self.store.path, f"{owner}-{number}")
        found = [first, *(open_one(self.reader, self.store.path, f"{owner}-{n}") for n, _ in first.live)]
        may = {0, (self.store.path / "logs").stat().st_uid}
        for one in found:
            self.reader.check(one.file.owner in may | {one.owner}, f"{one.file.name}: its file is another's")
            self.store.problems += one.problems
            self.store.sums += one.file.sums
        self.floors[first.owner] = first.floor
        return found

    def rows(self, one: SimpleNamespace, table: int) -> Iterator[tuple[bytes, bytes]]:
        """The rows of a table in order (2)."""
        if table not in one.tables:
            return
        count, height, *root, first, last = one.tables[table]
        self.tolerant = table == ENTRIES
        rows = list(self.block(one, root, height, count, first))
        right = rows[-1][1] is None or rows[-1][0] == last
        self.reader.check(right, f"{one.file.name}: table {table} ends with another key")
        pairs = [(a[0], b[0]) for a, b in pairwise(rows)]
        right = all(a < b or (a == b and table == ENTRIES) for a, b in pairs)
        self.reader.check(right, f"{one.file.name}: order of table {table}")
        yield from rows

    def block(
        self, one: SimpleNamespace, place: list, height: int, count: int, first: bytes
    ) -> Iterator[tuple[bytes, bytes]]:
        file, at, stored, crc = place
        data = self.store.file(one, file) if file else one.file
        try:
            packed = data.read(at, stored, crc)
        except self.reader.Damage as damage:
            if not self.tolerant:
                raise
            self.damaged.append(((one.writer, file, at, 3), str(damage)))
            yield from [(first, None)] * count  # whether somebody gave them up is known later
            return
        self.reader.check(packed[0] < 2, f"{one.file.name}: form of the block at {at}")
        body = unpack(self.reader, packed) if packed[0] else packed[1:]
        found = []
        with self.reader.parts_of(body, f"{one.file.name}: block at {at}") as c:
            while c.at < len(body):
                child = None if height == 0 else c.get("vvvIv")
                key = c.one("k")
                if child:
                    found += self.block(one, list(child[:4]), height - 1, child[4], key)
                else:
                    found.append((key, c.one("b")))
        self.reader.check(found and found[0][0] == first, f"{one.file.name}: first key of the block at {at}")
        self.reader.check(len(found) == count, f"{one.file.name}: rows of the block at {at}")
        yield from found

    def read_logs(self, one: SimpleNamespace) -> None:
        """Attempts and names (4.1): each log that it replaces, as far as entries need it."""
        attempts = []
        for name, row in self.rows(one, ATTEMPTS):
            began = self.began.setdefault((one.owner, name.decode()), [])
            with self.reader.parts_of(row, f"{one.file.name}: attempt {name!r}") as c:
                began.append(c.get("Qi"))
            attempts.append(began)
        one.names = []
        for writer, row in self.rows(one, NAMES):
            with self.reader.parts_of(row, f"{one.file.name}: name of {writer.hex()}") as c:
                taken, sequence = c.get("vv")
                _end, _hash, _stamp, _time, _began, _created, _uid, _process, _rank = c.get("vIvQvQIIv")
                (how, _facts, attempt), data_logs = c.get("Bvv"), c.list("vv")
                self.reader.check(how < 3, "how it ended")
            began = attempts[attempt - 1] if attempt else []
            log = SimpleNamespace(
                writer=writer, owner=one.owner, name=one.file.name, began=began, taken=taken,
                sequence=sequence, data_logs=data_logs,
            )  # fmt: skip
            one.names.append(log)
            self.logs[one.owner, writer] = log
        one.where = lambda *parts: (one.names[parts[0]] if len(parts) == 2 else one, parts[-1])

    def replaces(self, log: object) -> bool:
        """Whether a log does not count itself (7.2)."""
        return (log.owner, log.writer) in self.logs

    def read_rest(self, one: SimpleNamespace) -> None:
        check, parts_of = self.reader.check, self.reader.parts_of
        commits = []
        for key, row in self.rows(one, COMMITS):
            with parts_of(row, f"{one.file.name}: commit") as c:
                stamp, time, flags = c.get("vvB")
                check(flags < 16 and flags & 5 != 5, f"flags {flags} of a commit")
                transaction = c.get("i" * (flags & 1))
                origin = self.reader.Log.origin(c) if flags & 2 else ()
                if flags & 4:  # a place in the order in place of a decision that is forgotten
                    transaction = (c.get("vi"),)
                _view, _taken, _fields, _bytes = c.get("v" * (flags >> 3)), *c.get("vvv")
            log, sequence = self.logs.get((one.owner, key[:16])), big(key[16:24])
            check(log, f"{one.file.name}: a commit of a log without a name")
            if flags & 4:
                decided = (*transaction[0], 1, ALL_KINDS, {})
                decided = self.store.decisions.setdefault(transaction, [decided])[0]
                decided[-1][log.writer] = 2**64
            self.stamps.setdefault(log.writer, []).append((sequence, stamp))
            commits.append(
                (log, (sequence, stamp, transaction, origin, self.reader.wipes.time_of(stamp, time)))
            )
        numbers = [row for _, row in commits]
        for key, value in self.rows(one, ENTRIES):
            if value is None:
                continue
            entry = self.reader.parse_entry(key, value, one, numbers, 2)
            commit = self.reader.Cursor(value).one("v")
            self.entries.append(entry._replace(log=commits[commit][0]))
        for key, value in self.rows(one, TRANSACTIONS):
            self.read_transaction(one, key, value)
        for key, value in self.rows(one, DATASETS):
            with parts_of(value, f"{one.file.name}: dataset") as c:
                stamp, writer, *_numbers = c.get("vivvv")
                self.reader.check(c.get("B" * (c.at < len(value))) in ((), (1,)), "the end of its row")
            self.oldest.append((stamp, writer, key, one.owner))
        for key, value in self.rows(one, RECORDS):
            with parts_of(value, f"{one.file.name}: record of the store") as c:
                _owner, _time, low, high, data = self.reader.Log.owner_of(c), *c.get("QBBb")
            side = bytes([low, high]) + varint(len(data)) + data
            order = (big(key[:8]), key[8:24], big(key[24:32]))
            self.losses += [(order, one.owner, *loss) for loss in self.reader.acceptances(side, 1)]
            self.store.wipes.take_all(side, 1, one.owner, order)

        for table in one.tables.keys() - {NAMES, COMMITS, ENTRIES, TRANSACTIONS, RECORDS, DATASETS, ATTEMPTS}:
            with self.store.noting():  # the reader needs none of their rows
                _rows = list(self.rows(one, table))

    def read_transaction(self, one: SimpleNamespace, key: bytes, value: bytes) -> None:
        with self.reader.parts_of(value, f"{one.file.name}: transaction") as c:
            _sealed = c.one("v")
            for _ in range(c.one("v")):
                stamp, writer, sequence, verdict, kinds = c.get("vivfI")
                self.store.sequences[stamp, writer] = sequence
                decision = (stamp, writer, verdict, kinds, dict(c.list("iv")))
                self.store.decisions.setdefault((key,), []).append(decision)
            _prepared = c.list("ivvQ")
        self.transactions |= {(one.owner, key)}

    def settle(self) -> None:
        """Leaves out what came late for transactions that are forgotten (7.4); names what nobody gave up."""
        for place, damage in self.damaged:
            if place not in self.store.gone:
                self.store.problems.append(damage)
                self.store.lost += [(b"", None)]

        def counts(e: object) -> bool:
            if not e.txn or (e.log.owner, e.log.writer) in self.logs:
                return True
            is_known = (e.log.owner, e.txn[0]) in self.transactions
            return is_known or big(e.txn[0][:8]) >= self.floors.get(e.log.owner, 0)

        self.store.entries = [e for e in self.store.entries if counts(e)]


def holder(e: object) -> tuple[bytes, int]:
    """The writer whose log or data log an entry names, and the number of that file."""
    log, number = e.place[1] if isinstance(e.place[1], tuple) else (e.log, e.place[1])
    return log.writer, number


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])

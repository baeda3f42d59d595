"""Lists, reads and verifies a Fieldstone store with plain Python, written from spec/ alone.

    python reader.py STORE [list | get KEY | verify]

Numbers in comments are sections of store-format.md. The whole index is read; packed blocks need `zstandard`.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from math import prod
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))
import copies
import takeovers
import wipes


class Damage(ValueError):
    """Bytes that break a rule of the specification."""


CRC = list(range(256))
for _ in range(8):
    CRC = [c >> 1 ^ (0x82F63B78 if c & 1 else 0) for c in CRC]


def crc32c(data: bytes) -> int:
    crc, table = 0xFFFFFFFF, CRC
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def check(right: object, problem: str, error: type[Exception] = Damage) -> None:
    if not right:
        raise error(problem)


class Cursor:
    """Reads parts one by one: v varint, b bytes, t text, i id, f flag, s summary, B I Q u8 u32 u64 (2), and
    of
    keys T text, N int, V value (7), k a key that shares its beginning with the last (6.2)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.before = data, 0, b""

    def take(self, length: int) -> bytes:
        check(length <= len(self.data) - self.at, f"{length} bytes do not fit at {self.at}")
        self.at += length
        return self.data[self.at - length : self.at]

    def one(self, letter: str) -> int | bytes | str | None:
        if letter == "v":
            value, shift, byte = 0, 0, 0x80
            while byte >= 0x80:
                byte = self.take(1)[0]
                value, shift = value | (byte & 0x7F) << shift, shift + 7
                check(value < 1 << 64 and shift <= 70, "varint of more than 64 bits")
            return value
        if letter in "bt":
            data = self.take(self.one("v"))
            return data.decode() if letter == "t" else data
        if letter == "T":
            data = self.take(self.data.index(b"\0\1", self.at) + 2 - self.at)
            return data[:-2].replace(b"\0\xff", b"\0").decode()
        if letter == "N":
            head = self.take(1)[0]
            size = head - 0x80 if head >= 0x80 else 0x7F - head
            check(size <= 8, "whole number of more than 8 bytes")
            return int.from_bytes(self.take(size), "big") - (0 if head >= 0x80 else 256**size)
        if letter == "V":
            parts = {0x01: "", 0x10: "N", 0x20: "QT", 0x28: "NNT", 0x30: "T"}[self.one("B")]
            return str(self.get(parts)[-1]) if parts else None
        if letter == "k":
            shared, rest = self.get("vb")
            check(shared <= len(self.before), "key shares more than there is")
            self.before = self.before[:shared] + rest
            return self.before
        if letter == "s":
            return self.take({0: 0, 1: 16, 2: 16, 3: 16, 4: 0}[self.one("B")]), self.one("v")
        value = int.from_bytes(self.take({"f": 1, "B": 1, "I": 4, "Q": 8, "i": 16}[letter]), "little")
        check(letter != "f" or value <= 1, f"flag {value}")
        return value.to_bytes(16, "little") if letter == "i" else value

    def get(self, letters: str) -> tuple:
        return tuple(self.one(letter) for letter in letters)

    def list(self, letters: str) -> list[tuple]:
        return [self.get(letters) for _ in range(self.one("v"))]


@contextmanager
def parts_of(data: bytes, what: str) -> Iterator[Cursor]:
    try:
        cursor = Cursor(data)
        yield cursor
        check(cursor.at == len(data), f"{len(data) - cursor.at} bytes are left over")
    except (ValueError, LookupError) as error:
        raise Damage(f"{what}: {error}") from error


class File:
    """A file of the store, with its length and owner at the time of the snapshot."""

    def __init__(self, store: Path, name: str) -> None:
        self.name, self.handle = name, open(store / name, "rb")  # noqa: SIM115 (it stays open with the store)
        self.end, self.owner = (status := os.fstat(self.handle.fileno())).st_size, status.st_uid

    def read(self, at: int, length: int, crc: int | None = None, copy: int | None = None) -> bytes:
        data = os.pread(self.handle.fileno(), length, at) if at + length <= self.end else b""
        if len(data) == length and (crc is None or crc32c(data) == crc):
            return data
        check(copy is not None, f"{self.name}: {length} bytes at {at} are not there or not as their checksum")
        return self.read(copy, length, crc)


class Outside(File):
    """Ranges of a file outside the store (8), read as if they were contiguous."""

    def __init__(
        self, url: str, size: int, mtime: int, at: int, parts: int, stride: int, length: int
    ) -> None:
        name = re.sub(b"%(..)", lambda code: bytes.fromhex(code[1].decode()), url[7:].encode())
        super().__init__(Path("/"), os.fsdecode(name))
        now = os.fstat(self.handle.fileno()).st_mtime_ns
        check((self.end, now % 2**64) == (size, mtime), f"{url} was changed")
        places = (at + n * stride for n in range(parts))
        self.bytes = b"".join(os.pread(self.handle.fileno(), length // parts, place) for place in places)

    def read(self, at: int, length: int, crc: int | None = None, copy: int | None = None) -> bytes:
        check(crc32c(self.bytes[at : at + length]) == crc, f"{self.name}: {at} is not as its checksum")
        return self.bytes[at : at + length]


Frame = namedtuple("Frame", "at length sequence size crc body_crc hash version")
Entry = namedtuple(
    "Entry", "log key number stamp txn origin time ordinal flags dtype size shape start count chunk place"
)


class Log(File):
    """The log of one writer (4). `problem`: the damage of its header; its commits still count."""

    def __init__(self, store: Path, writer: bytes, slot: tuple, marked: int = 0) -> None:
        super().__init__(store, f"logs/{writer.hex()}.log")
        self.writer, self.slot, self.sealed, self.problem, self.lowest = writer, slot, {}, "", 24
        self.attempt, self.began = None, []  # of its last commit; when its attempt began, by log
        self.other, self.marked = False, marked  # whether it is of another version; the mark of a copy
        start = self.read(0, min(24, self.end)).ljust(24, b"\0")
        self.first = int.from_bytes(start[20:], "little")
        try:
            body = max(self.first, 4) - 4
            with parts_of(self.read(0, body, int.from_bytes(self.read(body, 4), "little")), "header") as c:
                magic, (version, _length, owner) = c.take(16), c.get("IIi")
                self.other = version not in (1, 2)
                right = (magic, self.other, owner) == (b"FIELDSTONE-LOG\0\0", False, writer)
                check(right, f"magic, writer, or version {version}")
                _about, self.sealed = c.get("iQIItttt"), dict(c.list("iv"))
                if version == 2:
                    _job, _owner, _process = c.get("ttv"), self.owner_of(c), c.get("tQQ")
            self.lowest = self.first
        except Damage as damage:
            self.problem = f"{self.name}: {damage}"

    @classmethod
    def origin(cls, c: Cursor) -> tuple:
        """The origin of moved entries (6.2): stamp and writer, and when their attempt began."""
        _store, writer, _sequence, stamp, _time = c.get("iivvv")
        cls.owner_of(c)
        return stamp, writer, c.get("tQi")[1:] if c.one("f") else ()

    @staticmethod
    def owner_of(c: Cursor) -> tuple:
        """Nothing, a user, or issuer and subject (takeovers.md, 1)."""
        form = c.one("B")
        check(form < 3, f"owner of form {form}")
        return c.get(("", "I", "tt")[form])

    def frame(self, at: int, end: int) -> Frame | None:
        """The frame that begins at an offset, by its head, or ends at one, by its foot (4.2)."""
        head, foot = (os.pread(self.handle.fileno(), 52, max(place, 0)).ljust(52) for place in (at, end - 52))
        found = []
        if head[:8] in (b"FSfr\1\0\0\0", b"FSfr\2\0\0\0"):
            found = [(head[4:8], Frame(at, *struct.unpack_from("<QQ4I", head, 8), head[4]))]
        known = foot[:8] in (b"FSnd\1\0\0\0", b"FSnd\2\0\0\0")
        if known and crc32c(foot[:48]) == int.from_bytes(foot[48:], "little"):
            found.append((foot[4:8], Frame(*struct.unpack_from("<QQQ4I", foot, 8), foot[4])))
        for version, f in found:
            room = self.lowest <= f.at <= self.end - f.length and f.length >= 92 + 2 * f.size
            own = crc32c(b"FSfr" + version + struct.pack("<QQIIIQ", *f[1:6], f.at))
            if room and f.hash == own and (f.at == at or f.at + f.length == end):
                with suppress(Damage):
                    return f if self.record(f) else None
        return None

    def record(self, f: Frame) -> tuple:
        """The commit record (5), either of its two copies: `size` bytes with this `crc`."""
        first, second = (f.at + f.length - 52 - n * f.size for n in (2, 1))
        with parts_of(self.read(first, f.size, f.crc, second), f"{self.name}: record at {first}") as c:
            stamp, _time, previous, _decision, _side = c.get("QQQQQ")
            _transaction, _prepared = c.get("i" * c.one("f")), c.list("ivvQ")
            _totals, _data_logs, runs = c.get("vv"), c.list("vv"), c.list("vvvvIvv")
            side, _condemned = c.get("vvIv"), c.list("t")
            decision = [(*c.get("ifI"), dict(c.list("iv")))] if c.one("f") else []
            self.attempt = c.get("tQ") if f.version == 2 and c.one("f") else None
            _stack = (c.list("ivv"), c.list("i"), c.get("v"), c.list("v")) if f.version == 2 else ()
            return stamp, previous, runs, side, decision

    def is_whole(self, f: Frame) -> bool:
        """Whether the body matches, or a board's slot or a copy's mark vouches for it (14, step 3)."""
        vouched = f.at < self.slot[1] or (f.at, f.hash) == tuple(self.slot[1:]) or f.sequence <= self.marked
        return vouched or crc32c(self.read(f.at + 40, f.length - 92 - 2 * f.size)) == f.body_crc

    def last(self) -> Frame | None:
        end = len(os.pread(self.handle.fileno(), self.end, 0).rstrip(b"\0"))
        last = next(filter(self.is_whole, filter(None, (self.frame(0, end + n) for n in range(4)))), None)
        frame = None if last else self.frame(self.first, 0)
        while frame:
            last = frame if self.is_whole(frame) else last
            frame = self.frame(frame.at + frame.length, 0)
        return last

    def commits(self, f: Frame | None) -> Iterator[tuple[Frame, tuple]]:
        at, sequence, stamp = self.end, 1 << 64, 1 << 64
        while f:
            record = self.record(f)
            check(f.at < at and f.sequence < sequence and record[0] < stamp, f"{self.name}: order at {f.at}")
            yield f, record
            at, sequence, stamp, f = f.at, f.sequence, record[0], record[1] and self.frame(record[1], f.at)
            check(f is not None, f"{self.name}: no commit at {record[1]}")


def parse_key(data: bytes) -> tuple[dict[str, str], bytes]:
    """A key (7) without absent keywords, and its encoded first level, which names the dataset."""
    key, ends = {}, []
    with parts_of(data, f"key {data!r}") as c:
        for _ in range(3):
            keywords = []
            check(c.take(1) == b"\2", "level without a start")
            while c.data[c.at] != 3:
                keywords.append(c.one("T"))
            c.take(1)
            key.update({keyword: c.one("V") for keyword in keywords})
            ends.append(c.at)
    return {keyword: value for keyword, value in key.items() if value is not None}, data[: ends[0]]


def parse_entry(key: bytes, data: bytes, log: Log, table: list[tuple], version: int) -> Entry:
    """An entry (8). Opaque bytes become an array of bytes, without dtype, whose chunks are the blocks."""
    with parts_of(data, f"entry of {key!r}") as c:
        commit, ordinal, flags, length = c.get("vvBv")
        check(flags < 32 and (flags & 1 or flags in (0, 2)) and flags & 6 != 6, f"flags {flags}")
        dtype, size, shape, start = "", 1, (length,), (0,)
        if flags & 1:
            dtype, rank = c.get("tv")
            found = re.fullmatch(r"[<>|][biufcSUMm](\d+)(\[\w+\])?", dtype)
            check(found and rank <= 32, f"dtype {dtype}, rank {rank}")
            size = int(found[1]) * (4 if dtype[1] == "U" else 1)
            shape, start = c.get("v" * rank), c.get("v" * rank * (flags >> 2 & 1)) or (0,) * rank
        count = c.get("v" * len(shape)) if flags & 4 else shape
        chunk = c.get("v" * len(shape)) if flags & 8 else tuple(max(n, 1) for n in count)
        _fill, _summary = c.get("b" * (flags >> 4)), c.get("s" * (flags & 1))
        inside = all(a + n <= whole for a, n, whole in zip(start, count, shape, strict=True))
        check(inside and 0 not in chunk and length == prod(count) * size, "box, chunks and length disagree")
        kind = c.one("B")
        where = getattr(log, "where", lambda number: number)  # of a takeover (takeovers.md, 4.3)
        far, kind = kind & 0x40, kind & ~0x40
        check(not far or (hasattr(log, "where") and kind in (1, 2, 5, 8)), f"location {kind + far}")
        check(kind != 6 or (flags, length) == (2, 0), "removal with flags or a length")
        check((kind == 9) == (flags == 0) and (flags or not length), "tombstone with flags or a length")
        check(kind != 9 or version >= 2, "tombstone in version 1")
        outside = c.get("tQQvvv" if kind in (3, 5) else "")
        form = {
            0: "",
            1: "hvvv",
            2: "hvvvvvI",
            3: "v",
            4: "bI",
            5: "vhvvvI",
            6: "ivv" * (kind == 6 and c.one("f")),
            7: "tvvv",
            8: "tvvvhvvvI",
            9: "tQi",
        }
        head, _, tail = form[kind].partition("h")  # h: the log whose file is named, and nothing in logs
        place, holder, tail = c.get(head), c.get("v" if far else ""), c.get(tail)
        place = (*place, where(*holder, tail[0]), *tail[1:]) if tail else place
        if kind in (7, 8):
            check(version >= 2 and flags & 15 == 3 and length, "file of the store: version, flags or length")
            check(not {"", ".", ".."} & {*place[0].split("/")}, f"path {place[0]!r}")
            check(place[2] % size == 0 and place[3] <= length // size, "file of the store: size or holes")
        if kind in (3, 5):  # as in kinds 1 and 2: file, offset, size
            place = (outside, 0, place[0], *place[1:])
        chunk = (place[2] or max(length, 1),) if kind in (1, 2, 3, 5) and not dtype else chunk
        place = (kind, *place, *((c.take(len(data) - c.at),) if kind in (1, 3, 7) else ()))
        return Entry(log, key, *table[commit], ordinal, flags, dtype, size, shape, start, count, chunk, place)


def acceptances(data: bytes, count: int) -> list[tuple]:
    """The side records (4.3) that accept a loss (4.6): writer, file, form, and the part given up."""
    found = []
    with parts_of(data, "side records") as c:
        for low, high, record in (c.get("BBb") for _ in range(count)):
            if low | high << 8 != 0x0302:
                continue
            body = record[1:]
            if record[0] == 1:
                import zstandard

                head = Cursor(body)
                length = head.one("v")
                body = zstandard.ZstdDecompressor().stream_reader(body[head.at :]).read(length + 1)
            with parts_of(body, "acceptance") as a:
                writer, number, form = a.get("ivB")
                check(form < 4 and (form == 2 or bool(form % 3) == bool(number)), f"acceptance form {form}")
                what = a.get("vv")[0] if form == 0 else a.list("vv") if form > 1 else None
                found.append((writer, number, form, what, a.get("tv"), a.list("t"))[:4])
    return found


class Store:
    """A snapshot. `problems` names damage, `lost` the ranges of keys that may lack entries."""

    def __init__(self, path: Path | str) -> None:
        self.path, self.problems, self.lost, self.data = Path(path), [], [], {}
        self.entries, self.sums, self.decisions, slots = [], [], {}, {}
        own, self.sequences, owners, absent, logs = SimpleNamespace(**globals()), {}, {}, {}, {}
        self.wipes, (self.copy, self.marked) = wipes.Wipes(own, self), copies.shown(own, self.path)
        self.taken = takeovers.Takeovers(own, self)
        check((self.path / "logs").is_dir(), "the folder logs is missing")
        for path in self.path.glob("boards/*.board"):
            board = path.read_bytes()
            for at in range(0, len(board) - 127, 128):
                begin, writer, _, *slot, crc = struct.unpack_from("<8s16sQQ8xQI4x8x52xI", board, at)
                if begin[:6] == b"FSbd\1\0" and crc == crc32c(board[at : at + 124]):
                    slots[writer] = max(slot, slots.get(writer, slot))  # by sequence
                    owners[writer] = path.stat().st_uid
        found = (log.stem for log in self.path.glob("logs/*.log") if re.fullmatch("[0-9a-f]{32}", log.stem))
        for writer in {*map(bytes.fromhex, found), *slots}:
            try:
                logs[writer] = Log(self.path, writer, slots.get(writer, (0, 0, 0)), self.marked(writer))
            except (Damage, OSError) as problem:
                absent[writer] = str(problem)
        self.logs = logs = {writer: log for writer, log in logs.items() if not self.taken.replaces(log)}
        for log in list(logs.values()):
            for writer, length in log.sealed.items():
                if writer in logs and logs[writer].owner == log.owner:
                    logs[writer].end = min(logs[writer].end, length)
        for path in self.path.glob("logs/*.end"):
            with self.noting():
                self.obey(path, logs)
        ends, self.gone = self.accepted(logs, owners | {log.writer: log.owner for log in logs.values()})
        for writer, problem in absent.items():
            if writer not in ends and (owners.get(writer), writer) not in self.taken.logs:
                self.problems.append(problem)
        for log in logs.values():
            last, end = log.last(), copies.last(self.copy, log.writer, ends.get(log.writer))
            if last and end is not None:
                last = next((f for f, _ in log.commits(last) if f.sequence <= end), None)
            runs = log.record(last)[2] if last else []
            if last and log.attempt:
                log.began = self.taken.began.setdefault((log.owner, log.attempt[0]), [])
                log.began.append((log.attempt[1], log.writer))
            for run in runs:
                with self.noting((b"", None)):
                    self.read_run(log, *run)
            with self.noting():
                for f, (stamp, _, _, side, decision) in log.commits(last):
                    if not log.frame(f.at, 0) or not log.frame(0, f.at + f.length):
                        self.problems.append(f"{log.name}: head or foot of the frame at {f.at}")
                    self.sums.append((log, *side[:3]))
                    own = [of[1:] for of in self.gone if of[0] == log.writer and len(of) == 4]
                    if not any(0 <= b - f.at < f.length if n == 3 else a == f.sequence for a, b, n in own):
                        self.sums.append((log, f.at + 40, f.length - 92 - 2 * f.size, f.body_crc))
                    self.sums += [(log, f.at + f.length - 52 - n * f.size, f.size, f.crc) for n in (1, 2)]
                    for transaction, *verdict in decision:
                        if transaction == b"FIELDSTONESCHEMA" and f.version > 1:
                            self.wipes.take_frame(log, side, (stamp, log.writer, f.sequence))
                        self.sequences[stamp, log.writer] = f.sequence
                        self.decisions.setdefault((transaction,), []).append((stamp, log.writer, *verdict))
                torn = not log.other and (not last or (last.sequence == 1 and not log.slot[0]))  # 4.1
                check(not log.problem or torn, log.problem)
                there = last.sequence if last else 0
                check(log.slot[0] <= there or there == end, f"{log.name}: its board has more")
        self.taken.settle()
        self.entries = [
            e
            for e in self.entries + self.taken.entries
            if (e.log.writer, e.number, e.ordinal, 2) not in self.gone
            and (e.place[0] not in (1, 2) or takeovers.holder(e) not in self.gone)
        ]
        with self.noting():
            form = rb"(fieldstone store\nformat 1\nid [0-9a-f]{32}\n)crc32c ([0-9a-f]{8})\n(schema\n(?s:.*))"
            parts = re.fullmatch(form, (self.path / "fieldstone.store").read_bytes())
            check(parts and crc32c(parts[1] + parts[3]) == int(parts[2], 16), "fieldstone.store is damaged")

    def obey(self, path: Path, logs: dict[bytes, Log]) -> None:
        """An end file (takeovers.md, 5): its log ends with the commit that it names."""
        data = path.read_bytes()
        check(crc32c(data[:-4]) == int.from_bytes(data[-4:], "little"), f"{path.name} is damaged")
        with parts_of(data[:-4], path.name) as c:
            magic, (version, _length, writer, _store) = c.take(16), c.get("IIii")
            right = (magic, version, f"{writer.hex()}.end") == (b"FIELDSTONE-ENDS\0", 2, path.name)
            check(right, "magic, version or writer")
            _sequence, end, *_about = c.get("QQIQIBt")
        if writer in logs:
            may = {0, (self.path / "logs").stat().st_uid, logs[writer].owner}
            if path.stat().st_uid in may:
                logs[writer].end = min(logs[writer].end, end)

    def accepted(
        self, logs: dict[bytes, Log], owners: dict[bytes, int]
    ) -> tuple[dict[bytes, int], set[tuple]]:
        """Accepted losses (4.6): the ends of logs; data logs and entries that do not count."""
        found, ends, given_up = list(self.taken.losses), {}, set()
        for log in logs.values():
            with suppress(Damage, OSError):  # the code that reads the log names its damage
                for f, (stamp, _, _, side, decision) in log.commits(log.last()):
                    if f.version > 1 and any(of == b"FIELDSTONESCHEMA" for of, *_ in decision):
                        own = acceptances(log.read(*side[:3]), side[3])
                        found += [((stamp, log.writer, f.sequence), log.owner, *loss) for loss in own]
        may = {0, (self.path / "logs").stat().st_uid}
        for (_, log, sequence), user, writer, number, form, what in sorted(found, key=lambda loss: loss[0]):
            denied = user not in may and user != owners.get(writer, self.taken.owners.get(writer))
            if denied or sequence > ends.get(log, sequence):
                continue
            if form == 0:
                ends[writer] = min(what, ends.get(writer, what))
            given_up |= (
                {(writer, number)} if form == 1 else {(writer, *e, form) for e in what} if form > 1 else set()
            )
        return ends, given_up

    @contextmanager
    def noting(self, *lost: tuple[bytes, bytes | None]) -> Iterator[None]:
        try:
            yield
        except (Damage, OSError) as problem:
            self.problems.append(str(problem))
            self.lost += lost

    def file(self, log: Log, number: int | tuple) -> File:
        log, number = number if isinstance(number, tuple) else (log, number)
        name = f"data/{log.writer.hex()}-{number}.data"
        if number and name not in self.data:
            file = self.data[name] = File(self.path, name)
            header = b"FIELDSTONE-DATA\0" + struct.pack("<I16sI", 1, log.writer, number)  # section 11
            self.sums.append((file, 0, 44, crc32c(header + struct.pack("<I", crc32c(header)))))
        return self.data[name] if number else getattr(log, "file", log)

    def read_run(self, log: Log, number: int, offset: int, length: int, size: int, crc: int, *_: int) -> None:
        """The entries of a segment (6)."""
        file, second = self.file(log, number), offset + length - size
        check(2 * size <= length, "meta part of more than half of its segment")
        self.sums += [(file, offset, size, crc), (file, second, size, crc)]
        with parts_of(file.read(offset, size, crc, second), f"{file.name}: segment at {offset}") as c:
            version, commits, sequence, stamp = c.get("Bvv")[0], [], 0, 0
            check(version in (1, 2), "version of the segment")
            for growth, stamp_growth, time, flags in (c.get("vvvB") for _ in range(c.one("v"))):
                check(flags < (2, 8)[version - 1], f"flags {flags} of a commit")
                sequence, stamp = sequence + growth, stamp + stamp_growth
                row = (sequence, stamp, c.get("i" * (flags & 1)), Log.origin(c) if flags & 2 else ())
                _view, commits = c.get("v" * (flags >> 2)), [*commits, (*row, wipes.time_of(stamp, time))]
            first = c.before = c.one("b")
            last, c.before = c.one("k"), first
            _datasets, c.before = (c.one("B"), c.list("kv")), first
            _axes = [(c.get("Btf"), c.list("V")) for _ in range(c.one("v"))]
            (filter_length, _hashes, filter_crc), directory = c.get("vBI"), c.list("vIvk")
        at, ends = offset + size, [*(first for _, _, _, first in directory[1:]), last]
        for (length, crc, count, first), end in zip(directory, ends, strict=True):
            safe = suppress(Damage) if (log.writer, number, at, 3) in self.gone else self.noting((first, end))
            with safe, parts_of(file.read(at, length, crc), f"{file.name} at {at}") as c:
                entries = []
                while c.at < length:
                    entries.append(parse_entry(c.one("k"), c.one("b"), log, commits, version))
                check(len(entries) == count, "number of entries")
                self.entries += entries
            at += length
        check(at + filter_length == second, "lengths of the blocks")
        self.sums.append((file, at, filter_length, filter_crc))

    def order(self, e: Entry, counts: Callable[[tuple], bool] = lambda _: True) -> tuple | None:
        """Orders entries: a newer one is greater (14, step 6); None: not visible by these decisions."""
        own = e.origin[:2] or (e.stamp, e.log.writer)  # A moved entry keeps the place of its origin.
        place, covered, ended = None if e.txn else own, 0, False
        for *decided, verdict, kinds, covers in sorted(filter(counts, self.decisions.get(e.txn, []))):
            if ended and not verdict:
                continue
            covered = covered if ended else max(covered, covers.get(e.log.writer, 0))
            ended = ended or not verdict or kinds == 2**32 - 1
            place = (place or decided) if verdict and kinds & 1 and covered >= e.number else None
            if not verdict:
                break
        return (*(e.origin[:2] or place), e.stamp, e.log.writer, e.number, e.ordinal) if place else None

    @staticmethod
    def attempt(e: Entry) -> tuple:
        """When the attempt of an entry began: stamp and writer; nothing without one."""
        if e.place[0] == 9:
            return e.place[2:4]
        return e.origin[2] if e.origin else min(e.log.began, default=())

    def fields(self) -> dict[str, list[Entry]]:
        """The visible generation of each key (14, steps 5 to 7), newest entry first, by the key as JSON."""
        oldest = [(e.stamp, e.log.writer, parse_key(e.key)[1], e.log.owner) for e in self.entries]
        owners, fields = wipes.Owners(self.wipes.handed, sorted(oldest + self.taken.oldest)), {}
        visible = [e for e in self.entries if self.order(e) and owners.counts(e, parse_key(e.key)[1])]
        for e in sorted(visible, key=self.order, reverse=True):
            fields.setdefault(e.key, []).append(e)
        for key, newest_first in fields.items():
            kept, fields[key], last, attempt = [], [], None, ()
            for e in reversed(self.wipes.leave(newest_first)):
                if e.place[0] != 6 or e.place[1:] in ((), last):
                    kept, attempt = [*kept, e], max(attempt, self.attempt(e))
                if e.place[0] not in (6, 9) and (not self.attempt(e) or self.attempt(e) == attempt):
                    last = (e.log.writer, e.number, e.ordinal)
                if kept and e is kept[-1] and e.flags & 2 and self.attempt(e) and self.attempt(e) == attempt:
                    kept = [one for one in kept[:-1] if self.attempt(one)] + [e]
            kept = [e for e in kept if self.attempt(e) in ((), attempt) and e.place[0] != 9]
            while kept and not (fields[key] and fields[key][-1].flags & 2):
                fields[key].append(kept.pop())
            fields[key] = [e for e in fields[key] if e.place[0] != 6]
        fields = self.wipes.overlaid({key: found for key, found in fields.items() if found}, owners)
        return {json.dumps(parse_key(key)[0], ensure_ascii=False): fields[key] for key in sorted(fields)}

    def blocks(self, e: Entry) -> Iterator[tuple[tuple, tuple, bytes]]:
        """Start, count and raw bytes of each block (9) of an entry, compared with their checksum; in a file
        of the store, which holds ranges in C order, the first element and the number of elements."""
        kind, *place = e.place
        if kind == 4:
            check(crc32c(place[0]) == place[1], "bytes in an entry are not as their checksum")
            yield e.start, e.count, place[0]
        if kind in (7, 8):
            path, at, step, _holes, *table = place
            file, step = File(self.path, path), step or prod(e.count) * e.size
            if kind == 8:
                table = [self.file(e.log, table[0]).read(*table[1:])]
            with parts_of(table[0], "list of blocks") as c:
                for begin in range(0, length := prod(e.count) * e.size, step):
                    (stored, crc, _), here = c.get("vIs"), min(step, length - begin)
                    check(stored == here, f"a block of {stored} bytes in place of {here}")
                    yield begin // e.size, here // e.size, file.read(at + begin, here, crc)
        if kind in (1, 2, 3, 5):
            (where, at, _), table = place[:3], place[3:]
            file = wipes.opened(Store, Outside, where, e) if kind in (3, 5) else self.file(e.log, where)
            if kind in (2, 5):
                table = [(file if kind == 2 else self.file(e.log, table[0])).read(*table[-3:])]
            with parts_of(table[0], "list of blocks") as c:
                for corner in product(*(range(0, n, step) for n, step in zip(e.count, e.chunk, strict=True))):
                    start = tuple(a + i for a, i in zip(e.start, corner, strict=True))
                    count = tuple(min(c, n - i) for c, n, i in zip(e.chunk, e.count, corner, strict=True))
                    (stored, crc, *_), length = c.get("vIs" if e.dtype else "vI"), prod(count) * e.size
                    raw = file.read(at, stored, crc)
                    if stored != length:
                        import zstandard  # the only import outside the standard library

                        check(length <= 32768 * stored, f"a block of {stored} bytes cannot hold {length}")
                        raw = zstandard.ZstdDecompressor().stream_reader(raw).read(length + 1)
                    yield start, count, raw
                    at += stored

    def read(self, key: str) -> bytes:
        """The value under a key; an array in C order."""
        entries = self.fields()[key]
        first, size, shape = entries[0], entries[0].size, entries[0].shape
        check(not any(a <= first.key <= (b or first.key) for a, b in self.lost), f"{key}: damaged index")
        value, written = bytearray(prod(shape) * size), bytearray(prod(shape))
        for e in reversed(entries):
            check(e[9:12] == first[9:12], f"{key}: {e.log.name} and {first.log.name} disagree", RuntimeError)
            for start, count, raw in self.blocks(e):
                if e.place[0] in (7, 8):  # a range of all its elements
                    value[start * size : (start + count) * size] = raw
                    written[start : start + count] = bytes([not e.place[4]]) * count
                    continue
                check(len(raw) == prod(count) * size, f"{key}: a block of {len(raw)} raw bytes")
                row, outer = prod(count[-1:]), zip(start[:-1], count[:-1], strict=True)
                for n, index in enumerate(product(*(range(a, a + n) for a, n in outer))):
                    at = sum(i * prod(e.shape[d + 1 :]) for d, i in enumerate(index + start[-1:]))
                    value[at * size : (at + row) * size] = raw[n * row * size : (n + 1) * row * size]
                    written[at : at + row] = b"\1" * row
        holes = max(e.place[4] if e.place[0] in (7, 8) else 0 for e in entries)
        check(all(written), f"{key}: {holes or written.count(0)} elements are missing", LookupError)
        return bytes(value)

    def verify(self) -> list[str]:
        """All problems, including those found at opening; compares every checksum (17)."""
        for file, *place in self.sums:
            with self.noting():
                file.read(*place)
        for e in self.entries:
            with self.noting():
                _blocks = list(self.blocks(e))
        return self.problems


def main(path: str, verb: str = "list", key: str = "") -> int:
    store = Store(path)
    if verb == "get":
        sys.stdout.buffer.write(store.read(key))
    for text, (e, *_) in store.fields().items() if verb == "list" else ():
        print(text, e.dtype or "bytes", list(e.shape), prod(e.shape) * e.size)
    problems = store.verify() if verb == "verify" else store.problems
    print("".join(problem + "\n" for problem in problems), end="", file=sys.stderr)
    return 5 if problems else 0


open_store = Store
if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Accepted losses (4.6 of the store format): the test writes the log that gives them up."""

from __future__ import annotations

import shutil
import struct
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import fieldstone as fst
import pytest

HERE = Path(__file__).parent
WRITER = bytes(range(16))

spec = spec_from_file_location("accepting_reader", HERE / "reader.py")
reader = sys.modules["accepting_reader"] = module_from_spec(spec)
spec.loader.exec_module(reader)


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def text(value: str) -> bytes:
    return varint(len(value)) + value.encode()


def summed(data: bytes) -> bytes:
    return data + struct.pack("<I", reader.crc32c(data))


def accepting(store: Path, writer: bytes, what: bytes, number: int = 0) -> None:
    """Adds a log of format 2 with one commit, which accepts a loss."""
    marker = (store / "fieldstone.store").read_text()
    identity = bytes.fromhex(marker.split("\nid ")[1][:32])
    about = struct.pack("<qII", 0, 0, 1) + text("host") + text("user") + text("test")
    about += text(marker.split("schema\n", 1)[1]) + varint(0) + text("") + text("") + varint(0)
    about += b"\0" + text("") + bytes(16)  # no owner, no process
    body = WRITER + identity + about
    log = summed(b"FIELDSTONE-LOG\0\0" + struct.pack("<II", 2, 28 + len(body)) + body)
    record = b"\0" + writer + varint(number) + what + text("no tape") + varint(0) + varint(0)
    side = struct.pack("<H", 0x0302) + varint(len(record)) + record
    at = len(log)
    stamp = 2_000_000_000_000_000_000
    commit = struct.pack("<QqQQQ", stamp, stamp, 0, 0, 0) + bytes(6)
    commit += (
        varint(at + 40) + varint(len(side)) + struct.pack("<I", reader.crc32c(side)) + varint(1) + varint(0)
    )
    commit += (
        b"\1FIELDSTONESCHEMA\1" + b"\xff" * 4 + varint(0) + b"\0" + bytes(4)
    )  # no attempt, flushes, open ids, stack
    length = 40 + len(side) + 2 * len(commit) + 52
    sums = struct.pack("<QQIII", length, 1, len(commit), reader.crc32c(commit), reader.crc32c(side))
    head = b"FSfr\2\0\0\0" + sums
    own = struct.pack("<I", reader.crc32c(head + struct.pack("<Q", at)))
    foot = summed(b"FSnd\2\0\0\0" + struct.pack("<Q", at) + sums + own)
    (store / "logs" / f"{WRITER.hex()}.log").write_bytes(log + head + own + side + commit + commit + foot)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    shutil.copytree(HERE / "fixtures" / "writers" / "store", tmp_path / "store")
    return tmp_path / "store"


def keys(store: Path) -> set[str]:
    opened = reader.Store(store)
    assert opened.verify() == []
    shown = fst.open(str(store), mode="r")
    assert shown.verify().ok and shown.status().code == 0
    found = set(opened.fields())
    assert {str(sorted(dict(entry.key).items())) for entry in shown.list()} == {
        str(sorted(reader.json.loads(key).items())) for key in found
    }
    return found


def test_a_log_that_is_given_up_never_counts_again(store: Path) -> None:
    logs = sorted((store / "logs").glob("*.log"))
    before, lost = keys(store), logs[0]
    own = {
        key
        for key, entries in reader.Store(store).fields().items()
        if entries[0].log.name.endswith(lost.name)
    }
    assert own
    shutil.move(lost, store.parent / "tape")
    assert reader.Store(store).problems != []
    accepting(store, bytes.fromhex(lost.stem), b"\0" + varint(0) + varint(9))
    left = keys(store)
    assert left <= before and not own & left
    shutil.move(store.parent / "tape", lost)
    assert keys(store) == left


def test_entries_that_are_given_up_are_left_out(store: Path) -> None:
    before = keys(store)
    key, (entry, *_) = sorted(reader.Store(store).fields().items())[0]
    what = b"\2" + varint(1) + varint(entry.number) + varint(entry.ordinal)
    accepting(store, entry.log.writer, what)
    assert before - keys(store) <= {key}
    names = [(e.log.writer, e.number, e.ordinal) for e in reader.Store(store).entries]
    assert (entry.log.writer, entry.number, entry.ordinal) not in names


def test_a_block_of_an_index_that_is_given_up_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with fst.open(path) as made:
        for step in range(900):
            made.archive(f"run=a,variable=t,step={step}", f"value {step}".encode())
    (log,) = (path / "logs").glob("*.log")
    whole = log.read_bytes()
    for at in range(10_000, len(whole), 4_000):
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        opened = reader.Store(path)
        if [end is not None for _, end in opened.lost] == [True]:
            break
    (problem,) = opened.problems
    offset = int(reader.re.search(r"bytes at (\d+)", problem)[1])
    accepting(path, bytes.fromhex(log.stem), b"\3" + varint(1) + varint(0) + varint(offset))
    opened = reader.Store(path)
    assert opened.problems == [] and opened.verify() == []
    found = opened.fields()
    assert 100 < len(found) < 900
    for key in list(found)[::120]:
        assert opened.read(key) == b"value " + reader.json.loads(key)["step"].encode()

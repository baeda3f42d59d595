"""The small reader that knows only spec/ reads arrays in files of the store (format version 2).

A test of crates/store makes the store and also reads it: `stored::the_kept_store_with_arrays_in_files`.
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILE = "arrays/a/0123/t.nc"

spec = spec_from_file_location("stored_reader", HERE / "reader.py")
reader = sys.modules["stored_reader"] = module_from_spec(spec)
spec.loader.exec_module(reader)


def key(step: int, variable: str = "t") -> str:
    return json.dumps({"run": "a", "variable": variable, "step": str(step)})


def doubles(first: int, count: int) -> bytes:
    return struct.pack(f">{count}d", *range(first, first + count))


WHOLE = {key(0): doubles(0, 60), key(1): doubles(100, 60), key(3): doubles(300, 600)}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    shutil.copytree(HERE / "stored" / "store", tmp_path / "store")
    return tmp_path / "store"


def test_the_reader_reads_arrays_in_files_of_the_store(store: Path) -> None:
    opened = reader.open_store(store)
    fields = opened.fields()
    assert fields.keys() == {*WHOLE, key(2), key(0, "u")}
    assert {entries[0].place[0] for entries in fields.values()} == {1, 7, 8}
    for text, value in WHOLE.items():
        assert (opened.read(text), fields[text][0].dtype) == (value, ">f8")
    assert opened.read(key(0, "u")) == b"of version 1"
    with pytest.raises(LookupError, match=r"7 elements are missing"):
        opened.read(key(2))
    assert opened.verify() == []


def test_what_is_added_to_the_file_changes_nothing(store: Path) -> None:
    with open(store / FILE, "ab") as file:
        file.write(bytes(5000))
    assert reader.open_store(store).verify() == []


def test_a_damaged_block_is_named_and_the_rest_stays_readable(store: Path) -> None:
    content = bytearray((store / FILE).read_bytes())
    content[4 + 480 + 250] ^= 1
    (store / FILE).write_bytes(content)
    opened = reader.open_store(store)
    with pytest.raises(reader.Damage, match=FILE):
        opened.read(key(1))
    assert [opened.read(key(step)) for step in (0, 3)] == [WHOLE[key(0)], WHOLE[key(3)]]
    assert len(opened.verify()) == 1
    (store / FILE).unlink()
    assert len(reader.open_store(store).verify()) == 4


def test_logs_of_both_versions_stand_side_by_side_and_a_later_one_is_refused(store: Path) -> None:
    versions = {}
    for log in (store / "logs").iterdir():
        versions[log.read_bytes()[16]] = log
    assert versions.keys() == {1, 2}
    data = bytearray(versions[2].read_bytes())
    length = int.from_bytes(data[20:24], "little")
    data[16] = 3
    data[length - 4 : length] = struct.pack("<I", reader.crc32c(data[: length - 4]))
    versions[2].write_bytes(data.replace(b"FSfr\2", b"FSfr\3").replace(b"FSnd\2", b"FSnd\3"))
    opened = reader.open_store(store)
    assert list(opened.fields()) == [key(0, "u")]
    assert any("version 3" in problem for problem in opened.problems)


def test_of_attempts_the_newest_counts(tmp_path: Path) -> None:
    """A test of crates/store makes the store and also reads it: `attempts::the_kept_store_with_attempts`."""
    shutil.copytree(HERE / "attempts" / "store", tmp_path / "store")
    opened = reader.open_store(tmp_path / "store")
    assert opened.read(key(0)) == struct.pack("<12i", *[5] * 6, *[2] * 6)
    assert opened.verify() == []
    # Three attempts and a writer without an attempt wrote; one attempt is left.
    assert {entry.log.attempt and entry.log.attempt[0] for entry in opened.fields()[key(0)]} == {
        "1177.2",
        None,
    }
    all_attempts = {entry.log.attempt and entry.log.attempt[0] for entry in opened.entries}
    assert all_attempts == {"1177.1", "1177.2", None}

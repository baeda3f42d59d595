"""The small reader that knows only spec/ reads takeovers (spec/takeovers.md).

A test of crates/store makes the store, and the program's side reads it:
`takeover_kept::r15_the_kept_store_with_takeovers_reads_as_it_was_made`.
"""

from __future__ import annotations

import base64
import json
import sys
import tarfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import fieldstone as fst
import pytest

HERE = Path(__file__).parent
KEPT = HERE / "takeovers"

spec = spec_from_file_location("takeovers_reader", HERE / "reader.py")
reader = sys.modules["takeovers_reader"] = module_from_spec(spec)
spec.loader.exec_module(reader)


def lines(opened: object) -> list[str]:
    """The lines that the program wrote of each field: key, bytes and their checksum."""
    found, fields = [], opened.fields()
    opened.fields = lambda: fields  # the reader finds them again for each key
    for text in fields:
        key = ",".join(f"{keyword}={value}" for keyword, value in json.loads(text).items())
        value = opened.read(text)
        found.append(f"{key}\t{len(value)}\t{reader.crc32c(value):08x}")
    return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with tarfile.open(KEPT / "store.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


def test_the_reader_finds_the_fields_that_the_program_found(store: Path) -> None:
    opened = reader.open_store(store)
    assert lines(opened) == (KEPT / "fields.tsv").read_text().splitlines()
    assert opened.verify() == []


def test_the_reader_finds_the_same_fields_after_a_purge(store: Path) -> None:
    with fst.open(str(store)) as program:
        for value in (b"first", b"second"):
            program.archive({"run": "purged", "variable": "t", "step": 0}, value)
            program.flush()
        program.remove("run=purged")
        program.flush()
    with fst.open(str(store)) as program:
        assert program.purge(all=True, grace=0, doit=True).versions >= 3
    opened = reader.open_store(store)
    assert lines(opened) == (KEPT / "fields.tsv").read_text().splitlines()
    assert opened.verify() == []


def test_the_version_names_the_newest_takeover_and_the_living_log(store: Path) -> None:
    opened = reader.open_store(store)
    text = (KEPT / "versions.txt").read_text().splitlines()[0]
    data = base64.urlsafe_b64decode(text[1:] + "=" * (-len(text[1:]) % 4))
    assert text[0] == "t"
    assert int.from_bytes(data[-4:], "little") == reader.crc32c(data[:-4])
    with reader.parts_of(data[:-4], "version") as c:
        owners = [c.get("BvvQ") for _ in range(c.one("v"))]
        living = [(c.take(8), c.one("v")) for _ in range(c.one("v"))]
    newest = max(opened.taken.all, key=lambda one: one.number)
    assert [owner[:3] for owner in owners] == [(1, newest.owner, newest.number)]
    (log,) = (store / "logs").glob("*.log")
    assert living == [(bytes.fromhex(log.stem)[:8], 1)]


def test_its_files_have_the_forms_that_the_text_has(store: Path) -> None:
    opened = reader.open_store(store)
    assert len(opened.taken.all) == 2
    holders = {entry.place[1][0].writer for entry in opened.taken.entries if entry.place[0] in (1, 2)}
    own = {one.writer for one in opened.taken.all}
    assert own & holders
    assert holders - own, "bytes that stayed in the data log of a writer"
    assert any(entry.log.began for entry in opened.taken.entries), "an attempt"


@pytest.mark.parametrize("where", ["header", "copy", "tail"])
def test_either_copy_of_the_header_serves(store: Path, where: str) -> None:
    path = sorted((store / "logs").glob("*.takeover"))[-1]
    data = bytearray(path.read_bytes())
    data[{"header": 30, "copy": len(data) - 40, "tail": len(data) - 2}[where]] ^= 1
    path.write_bytes(data)
    opened = reader.open_store(store)
    assert lines(opened) == (KEPT / "fields.tsv").read_text().splitlines()
    assert any(path.name in problem for problem in opened.verify())


def test_a_takeover_that_is_listed_and_missing_is_named(store: Path) -> None:
    path = sorted((store / "logs").glob("*.takeover"))[0]
    path.unlink()
    assert any(path.name in problem for problem in reader.open_store(store).problems)


def test_changed_bytes_are_found(store: Path) -> None:
    for path in (store / "logs").glob("*.takeover"):
        whole = path.read_bytes()
        for at in range(0, len(whole), max(len(whole) // 40, 1)):
            data = bytearray(whole)
            data[at] ^= 0x40
            path.write_bytes(data)
            opened = reader.open_store(store)
            found = [*opened.problems]
            for file, *place in opened.sums:
                with opened.noting():
                    file.read(*place)
            assert found or opened.problems, f"byte {at} of {path.name}"
        path.write_bytes(whole)

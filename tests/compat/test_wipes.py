"""The small reader that knows only spec/ obeys wipes (spec/takeovers.md, 6.2).

A test of crates/store makes the store, and the program's side reads it:
`wipe_kept::r26_the_kept_store_with_wipes_reads_as_it_was_made`.
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import fieldstone as fst
import numpy as np

HERE = Path(__file__).parent
KEPT = HERE / "wiped"

spec = spec_from_file_location("wipes_reader", HERE / "reader.py")
reader = sys.modules["wipes_reader"] = module_from_spec(spec)
spec.loader.exec_module(reader)


def lines(store: object) -> list[str]:
    """The lines that the program wrote of each field: key, bytes and their checksum."""
    found, fields = [], store.fields()
    store.fields = lambda: fields  # the reader finds them again for each key
    for text in fields:
        key = ",".join(f"{keyword}={value}" for keyword, value in json.loads(text).items())
        value = store.read(text)
        found.append(f"{key}\t{len(value)}\t{reader.crc32c(value):08x}")
    return found


def opened(folder: Path) -> object:
    with tarfile.open(KEPT / "store.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return reader.open_store(folder / "store")


def test_the_reader_finds_the_fields_that_the_program_found(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert lines(store) == (KEPT / "fields.tsv").read_text().splitlines()
    assert store.verify() == []


def test_the_reader_passes_over_hidden_fields_until_they_are_shown(tmp_path: Path) -> None:
    def found() -> str:
        store = reader.open_store(tmp_path / "s")
        assert store.verify() == []
        return "".join(sorted(json.loads(text)["run"] for text in store.fields()))

    with fst.open(tmp_path / "s") as store:
        for run in "abc":
            store.archive({"run": run, "variable": "t", "step": 0}, run.encode())
        store.flush()
        assert [store.hide(request) for request in ("run=a", "run=b")] == [1, 1]
    for request, left in [("run=a", "ac"), (None, "abc")]:
        for shows in (False, True):
            with fst.open(tmp_path / "s") as store:
                if shows:
                    store.unhide(request)
                else:
                    store.compact(grace=0)
            assert found() == (left if shows else "c" if left == "ac" else "ac")


def test_the_reader_finds_fields_under_the_values_of_overlays(tmp_path: Path) -> None:
    def found() -> dict[str, bytes]:
        store = reader.open_store(tmp_path / "s")
        assert store.verify() == []
        return {json.loads(text)["run"]: store.read(text) for text in store.fields()}

    own = {"a": b"a", "c": b"c"}
    with fst.open(tmp_path / "s") as store:
        for run in own:
            store.archive({"run": run, "variable": "t", "step": 0}, own[run])
        store.flush()
        assert store.overlay("run=a", {"run": "b"}) == 1
        assert store.overlay("run=a,variable=t", {"run": "c"}) == 0, "c has a field of its own"
    for _ in range(2):
        assert found() == own | {"b": b"a"}
        with fst.open(tmp_path / "s") as store:
            store.compact(grace=0)
    with fst.open(tmp_path / "s") as store:
        assert store.overlay("run=a", {"run": "b"}, remove=True) == 1
    assert found() == own


def test_the_reader_finds_fields_that_another_store_holds(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store, fst.open(tmp_path / "to") as to:
        store.archive({"run": "a", "variable": "t", "step": 0}, b"opaque")
        store.archive({"run": "a", "variable": "u", "step": 0}, np.arange(70_000.0).reshape(100, 700))
        store.flush()
        assert store.reindex("run=a", to).fields == 2
    for _ in range(2):
        other = reader.open_store(tmp_path / "to")
        values = [other.read(text) for text in other.fields()]
        assert values == [b"opaque", np.arange(70_000.0).tobytes()] and other.verify() == []
        with fst.open(tmp_path / "s") as store:
            store.compact(grace=0)


def test_without_its_wipes_the_store_has_more_fields(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert len(store.wipes.all) == 4, "of a takeover and of a living log"
    assert {wipe.age is None for wipe in store.wipes.all} == {True, False}
    left = len(store.fields())
    store.wipes.all = []
    assert len(store.fields()) > left + 300


def test_the_reader_knows_whose_a_dataset_is_after_hand_overs(tmp_path: Path) -> None:
    me, other = os.getuid(), 4242

    def found() -> dict[str, bytes]:
        store = reader.open_store(tmp_path / "s")
        assert store.verify() == []
        return {json.loads(text)["run"]: store.read(text) for text in store.fields()}

    def archive(**values: bytes) -> None:
        with fst.open(tmp_path / "s") as store:
            for run, value in values.items():
                store.archive({"run": run, "variable": "t", "step": 0}, value)

    archive(a=b"first", c=b"c")
    with fst.open(tmp_path / "s") as store:
        fst.hand_over(store, me, other)
    for _ in range(2):
        assert found() == {"a": b"first", "c": b"c"}
        with fst.open(tmp_path / "s") as store:
            store.compact(grace=0)
    archive(d=b"of mine")
    assert found() == {"a": b"first", "c": b"c", "d": b"of mine"}
    own = reader.open_store(tmp_path / "s")
    own.wipes.handed.made = own.wipes.handed.made * 2 + [((2**63, b"", 0), me, other, me)]
    owners = reader.wipes.Owners(own.wipes.handed, [(1, b"", b"x", me), (2, b"", b"y", other)])
    found_then = [owners.at(b"x"), owners.at(b"x", 2**62), owners.at(b"y"), owners.at(b"z")]
    assert found_then == [me, other, me, None]
    with fst.open(tmp_path / "s") as store:
        fst.hand_over(store, other, me)
    archive(a=b"again")
    assert found() == {"a": b"again", "c": b"c", "d": b"of mine"}

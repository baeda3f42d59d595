"""The small reader that knows only spec/ obeys end files (takeovers.md, 5).

A test of crates/store makes the store and also reads it:
`ends::r12_the_kept_store_has_a_whole_frame_beyond_an_end`.
"""

from __future__ import annotations

import json
import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

HERE = Path(__file__).parent

spec = spec_from_file_location("ends_reader", HERE / "reader.py")
reader = sys.modules["ends_reader"] = module_from_spec(spec)
spec.loader.exec_module(reader)


def key(variable: str) -> str:
    return json.dumps({"run": "a", "variable": variable})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    shutil.copytree(HERE / "ends" / "store", tmp_path / "store")
    return tmp_path / "store"


def test_a_frame_beyond_the_end_does_not_count(store: Path) -> None:
    opened = reader.open_store(store)
    assert opened.fields().keys() == {key("kept"), key("after")}
    assert (opened.read(key("kept")), opened.verify()) == (b"1", [])


def test_without_the_end_file_the_next_header_says_the_same(store: Path) -> None:
    (end,) = (store / "logs").glob("*.end")
    end.unlink()
    assert reader.open_store(store).fields().keys() == {key("kept"), key("after")}


def test_a_damaged_end_file_is_named(store: Path) -> None:
    (end,) = (store / "logs").glob("*.end")
    data = bytearray(end.read_bytes())
    data[60] ^= 1
    end.write_bytes(data)
    assert any(end.name in problem for problem in reader.open_store(store).verify())

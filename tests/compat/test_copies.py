"""The small reader that knows only spec/ reads backups (spec/store-format.md, 15.7)."""

from __future__ import annotations

import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import fieldstone as fst
import pytest

HERE = Path(__file__).parent

spec = spec_from_file_location("copies_reader", HERE / "reader.py")
reader = sys.modules["copies_reader"] = module_from_spec(spec)
spec.loader.exec_module(reader)


def values(path: Path) -> dict[str, bytes]:
    opened = reader.open_store(path)
    assert opened.verify() == []
    return {key: opened.read(key) for key in opened.fields()}


def test_the_reader_shows_the_version_of_a_backup_and_nothing_newer(tmp_path: Path) -> None:
    source, copy = tmp_path / "s", tmp_path / "copy"
    living = fst.open(source)
    living.archive("run=a,variable=t,step=0", b"first")
    living.flush()
    with fst.open(source) as other:
        other.archive("run=b,variable=t,step=0", b"x" * 2_000_000)
    fst.backup(source, copy)
    was = values(copy)
    assert sorted(map(len, was.values())) == [5, 2_000_000]
    # Files that a round brings count for nothing until the file names their version.
    living.archive("run=a,variable=t,step=0", b"second")
    living.flush()
    with fst.open(source) as other:
        other.archive("run=b,variable=t,step=0", b"y")
        other.compact(grace=0)
    for folder in ("data", "logs"):
        shutil.copytree(source / folder, copy / folder, dirs_exist_ok=True)
    assert values(copy) == was
    with fst.open(copy, mode="r") as shown:
        assert shown.get("run=a,variable=t,step=0") == b"first"
    fst.backup(source, copy)
    assert values(copy) == values(source) != was
    fst.promote(copy)
    with fst.open(copy) as promoted:
        promoted.archive("run=c,variable=t,step=0", b"its own")
    assert len(values(copy)) == 3
    living.close()


def test_a_damaged_file_of_a_backup_is_damage(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        store.archive("run=a,variable=t,step=0", b"first")
        store.flush()
        fst.backup(store, tmp_path / "copy")
    mark = tmp_path / "copy" / "fieldstone.copy"
    mark.write_bytes(mark.read_bytes().replace(b"time 1", b"time 2"))
    with pytest.raises(reader.Damage):
        reader.open_store(tmp_path / "copy")
    with pytest.raises(fst.Corrupt):
        fst.open(tmp_path / "copy", mode="r")

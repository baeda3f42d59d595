"""``store.erase``: what was recorded by mistake becomes unreadable, or the report names what holds it."""

from pathlib import Path

import fieldstone as fst
import pytest

SECRET = b"MARKER-of-a-mistake"


def holding(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET in path.read_bytes()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_r36_fields_and_attributes_go_from_every_file(folder: Path) -> None:
    with fst.open(folder) as store:
        run = store.create_run("a")
        store.archive({"run": "a", "variable": "t", "step": 0}, SECRET)
        run.annotate("note", SECRET.decode())
        run.annotate("kept", 1.5)
        store.flush()
        version = store.version
        store.remove("run=a")
        assert store.delete(run="a", tag="note", doit=True).attributes == 1
        store.flush()
        assert holding(folder)
        would = store.erase("run=a")
        assert (would.fields, would.versions, would.attributes, would.visible) == (1, 2, 1, 1)
        assert not would.done
        assert holding(folder)
        report = store.erase("run=a", doit=True)
        assert (report.fields, report.versions, report.attributes, report.left) == (1, 2, 1, ())
        assert report.done
        assert report.files > 0
        assert "ErasureReport(fields=1, versions=2" in repr(report)
        assert not holding(folder)
        assert [hit.value for hit in store.attributes(run="a")] == [1.5]
    assert fst.open(folder, mode="r").verify().ok
    with fst.open(folder, mode="r", at=version) as older, pytest.raises(fst.NotFound) as raised:
        older.get({"run": "a", "variable": "t", "step": 0})
    assert raised.value.code == "version-purged"


def test_another_process_that_writes_is_named(folder: Path) -> None:
    other = fst.open(folder)
    other.archive({"run": "a", "variable": "t"}, SECRET)
    other.flush()
    with fst.open(folder) as store:
        store.remove("run=a")
        store.flush()
        report = store.erase("run=a", doit=True)
        assert any("still writes" in left.why for left in report.left)
        assert {folder / left.file for left in report.left} >= set(holding(folder)) != set()
        other.close()
        assert store.erase("run=a", doit=True).left == ()
    assert not holding(folder)


def test_what_cannot_be_erased_is_refused(folder: Path) -> None:
    with fst.open(folder) as store:
        store.archive({"run": "a", "variable": "t"}, SECRET)
        store.flush()
        for request in (None, "", "run=*", "run=a*", {"run": fst.glob("a*")}):
            with pytest.raises(fst.Invalid):
                store.erase(request, doit=True)
        assert store.erase({"run": "a"}, doit=True).visible == 1
    with fst.open(folder, mode="r") as reader, pytest.raises(fst.Denied):
        reader.erase("run=a", doit=True)
    with fst.open("memory:") as memory, pytest.raises(fst.Invalid):
        memory.erase("run=a", doit=True)

"""Backups and holds: a copy that shows a version, whole at every moment, until it is promoted."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest

KEY = "run=a,variable=t,step=0"


@pytest.fixture
def store(tmp_path: Path):
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("a")
        run.create_variable("t", dtype="f8", shape=(4,))
        run.write("t", 0, np.arange(4.0))
        run.annotate("note", "first")
        store.flush()
        yield store


def test_a_backup_answers_as_its_source_did(store: fst.Store, tmp_path: Path) -> None:
    calls = []
    first = fst.backup(store, tmp_path / "copy", progress=lambda files, nbytes: calls.append((files, nbytes)))
    assert first.before is None and first.held and first.damaged == () and calls
    version = store.version
    store.run("a").write("t", 0, np.ones(4))
    store.run("a").annotate("more", "second")
    store.flush()
    with fst.open(tmp_path / "copy", mode="r") as copy:
        assert copy.version == first.version and copy.get(KEY).tolist() == [0, 1, 2, 3]
        assert [hit.value for hit in copy.attributes(tag="note")] == ["first"]
        assert copy.verify().ok and copy.status().code == 0
        with pytest.raises(fst.Denied, match="backup"):
            copy.archive(KEY, b"x")
    for mode in ("a", "r+"):
        with pytest.raises(fst.Denied, match="backup") as caught:
            fst.open(tmp_path / "copy", mode=mode)
        assert "fieldstone promote" in str(caught.value.hint)
    second = fst.backup(store.url, tmp_path / "copy")
    assert second.before == first.version and second.nbytes < 2**20
    with fst.open(tmp_path / "copy", mode="r") as copy:
        assert copy.get(KEY).tolist() == [1, 1, 1, 1]
        assert [hit.value for hit in copy.attributes(tag="more")] == ["second"]
    with fst.open(tmp_path / "copy", at=version) as older:
        assert older.get(KEY).tolist() == [0, 1, 2, 3]


def test_a_promoted_copy_is_a_store_of_its_own(store: fst.Store, tmp_path: Path) -> None:
    fst.backup(store, tmp_path / "copy")
    fst.promote(tmp_path / "copy")
    with fst.open(tmp_path / "copy") as own:
        assert own.status().id != store.status().id
        own.run("a").annotate("own", "its own")
        own.archive("run=b,variable=t,step=0", b"new")
        own.flush()
        own.compact(grace=0)
        assert [hit.value for hit in own.attributes(tag="own")] == ["its own"]
        assert [hit.value for hit in own.attributes(tag="note")] == ["first"]
        assert own.verify().ok and own.get(KEY).tolist() == [0, 1, 2, 3]
    with pytest.raises(fst.Conflict):
        fst.backup(store, tmp_path / "copy")
    with pytest.raises(fst.Invalid):
        fst.promote(tmp_path / "copy")
    with pytest.raises(fst.Invalid):
        fst.promote(store.url)


def test_a_backup_follows_its_source(store: fst.Store, tmp_path: Path) -> None:
    stop = threading.Event()

    def progress(files: int, nbytes: int) -> None:
        if stop.is_set():
            raise KeyboardInterrupt

    def follow() -> None:
        with pytest.raises(KeyboardInterrupt):
            fst.backup(store.url, tmp_path / "copy", follow=True, progress=progress)

    thread = threading.Thread(target=follow)
    thread.start()
    store.archive("run=b,variable=t,step=0", b"later")
    store.flush()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with fst.open(tmp_path / "copy", mode="r") as copy:
                if any(copy.list("run=b")):
                    break
        except fst.NotFound:
            pass
        time.sleep(0.2)
    else:
        pytest.fail("the flush does not come")
    stop.set()
    thread.join()
    assert store.holds() == ()


def test_arrays_in_files_and_damage_are_named(tmp_path: Path) -> None:
    url = tmp_path / "s"
    with fst.open(url) as store:
        store.archive(KEY, np.arange(300_000.0))
        store.archive("run=b,variable=t,step=0", np.ones(300_000))
    (data,) = (url / "data").iterdir()
    bytes_ = bytearray(data.read_bytes())
    bytes_[1000] ^= 1
    data.write_bytes(bytes_)
    with pytest.warns(UserWarning, match="damaged"):
        report = fst.backup(url, tmp_path / "copy")
    assert [damage.key for damage in report.damaged] == ["{run=a}{variable=t}{step=0}"]
    (url / "notes.txt").write_text("not the store's")
    assert fst.backup(url, tmp_path / "copy", verify=False).foreign == ("notes.txt",)


def test_wrong_targets_are_refused(store: fst.Store, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    with pytest.raises(fst.Conflict):
        fst.backup(store, tmp_path / "full")
    assert os.listdir(tmp_path / "full") == ["file"]
    with pytest.raises(fst.Invalid):
        fst.backup(store, Path(store.url) / "copy")
    with fst.open("memory:") as memory, pytest.raises(fst.Invalid, match="checkpoint"):
        fst.backup(memory, tmp_path / "copy")
    with pytest.raises(fst.NotFound):
        fst.backup(tmp_path / "nowhere", tmp_path / "copy")


def test_holds(store: fst.Store) -> None:
    before = datetime.now(UTC)
    with store.hold("2h", "a copy to tape") as hold:
        (held,) = store.holds()
        assert (held.name, held.why) == (hold.name, "a copy to tape") and hold.version == held.version
        assert timedelta(hours=2) <= held.until - before <= timedelta(hours=2, minutes=5)
        store.run("a").write("t", 0, np.ones(4))
        store.flush()
        assert "tape" in store.purge(all=True, grace=0).kept
        hold.extend(10)
        assert hold.until < held.until
    assert store.holds() == ()
    with pytest.raises(fst.NotFound):
        hold.release()
    for wrong in (0, -1, "soon", float("nan"), None):
        with pytest.raises(fst.Invalid):
            store.hold(wrong)
    with fst.open(store.url, mode="r") as reader, pytest.raises(fst.Denied):
        reader.hold(10)


def test_verify_since_reads_what_is_new(store: fst.Store) -> None:
    version = store.version
    store.archive("run=b,variable=t,step=0", b"new")
    store.flush()
    report = store.verify(since=version)
    assert report.ok and report.fields == 1
    assert any("passed over" in note for note in report.notes)
    with pytest.raises(fst.Invalid):
        store.verify(since="nonsense")

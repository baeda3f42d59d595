"""Locks on datasets: every call that one forbids says so, and other datasets stay free."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest


@pytest.fixture
def store(tmp_path: Path):
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("a")
        run.create_variable("t", dtype="f8", shape=(4,))
        run.write("t", 0, np.arange(4.0))
        store.archive("run=b,variable=t,step=0", b"bytes")
        store.flush()
        yield store


def test_an_archive_lock_refuses_all_that_writes_fields(store: fst.Store) -> None:
    assert store.lock("run=a", "archive") == 1
    refused = [
        lambda: store.archive("run=a,variable=t,step=6", b"x"),
        lambda: store.archive("run=a,variable=t,step=6", np.ones(2), start=(0,), shape=(4,)),
        lambda: store.archive_many(["run=a,variable=t,step=6"], [b"x"]),
        lambda: store.create_field("run=a,variable=t,step=6", dtype="f8", shape=(4,)),
        lambda: store.run("a").write("t", 6, np.ones(4)),
        lambda: store.remove("run=a,variable=t"),
    ]
    for call in refused:
        with pytest.raises(fst.Denied, match="run=a") as caught:
            call()
            store.flush()
        assert caught.value.code == "dataset-locked"
    store.archive("run=b,variable=t,step=6", b"x")
    store.run("a").annotate("note", "locked")
    store.flush()
    assert store.get("run=a,variable=t,step=0").tolist() == [0, 1, 2, 3]
    assert store.unlock("run=a", "archive") == 1
    store.run("a").write("t", 6, np.ones(4))
    store.flush()


def test_locks_are_listed_and_last(store: fst.Store) -> None:
    before = datetime.now(UTC)
    store.lock(None, "list")
    store.lock({"run": "b"}, "wipe")
    with fst.open(store.url, mode="r") as reader:
        locks = reader.locks()
        assert [(lock.dataset, lock.what) for lock in locks] == [
            ("run=a", "list"),
            ("run=b", "list"),
            ("run=b", "wipe"),
        ]
        assert all(before <= lock.since <= datetime.now(UTC) and lock.by for lock in locks)
        with pytest.raises(fst.Denied):
            list(reader.list())
        with pytest.raises(fst.Denied):
            reader.axes("run=a")
        with pytest.raises(fst.Denied):
            reader.unlock("run=a", "list")
    with pytest.raises(fst.Denied, match="wipe"):
        store.wipe("run=b", doit=True)
    with pytest.raises(fst.Denied, match="wipe"):
        store.purge("run=b", doit=True)
    assert store.unlock(None, "list") == 2
    assert store.unlock(None, "list") == 0
    assert len(list(store.list())) == 2


def test_wrong_calls_say_why(store: fst.Store) -> None:
    with pytest.raises(fst.Invalid, match="variable"):
        store.lock("run=a,variable=t", "archive")
    with pytest.raises(fst.Invalid, match="archiv"):
        store.lock("run=a", "archiv")  # type: ignore[arg-type]
    with pytest.raises(fst.NotFound):
        store.lock("run=z", "archive")
    assert store.locks() == []

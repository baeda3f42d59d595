"""Pickled objects open again when they are unpickled: the same store, snapshot and fields."""

from __future__ import annotations

import datetime
import os
import pickle

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import run_python, sim


@pytest.fixture
def store(tmp_path):
    store = fst.open(tmp_path / "store")
    store.archive(sim(1), b"one")
    store.archive(sim(2), np.arange(4.0))
    store.flush()
    return store


def again(thing):
    return pickle.loads(pickle.dumps(thing))


def test_stores_open_again(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    near = fst.open("store", compression="zstd")
    text = pickle.dumps(near)
    monkeypatch.chdir("/")
    far = pickle.loads(text)
    assert far.get(sim(1)) == b"one" and far.mode == "a" and far.url == str(tmp_path / "store")
    far.archive(sim(3), b"x" * 9999)
    far.flush()
    assert store.get(sim(3)) == b"x" * 9999 and store.stats("step=3").stored_bytes < 999
    old = fst.open(tmp_path / "store", at=store.version)
    store.archive(sim(1), b"newer")
    store.flush()
    assert again(old).get(sim(1)) == b"one" and again(store).get(sim(1)) == b"newer"
    assert again(fst.open(tmp_path / "new", mode="x", schema="mars")).mode == "a"
    assert "class" in again(fst.open(tmp_path / "new", schema="mars")).schema
    store.close()
    assert again(store).get(sim(1)) == b"newer", "a closed store also opens"


def test_a_store_in_memory_refuses():
    store = fst.open("memory:")
    store.archive(sim(1), b"x")
    store.flush()
    for thing in (store, store.retrieve({}), store.retrieve({})[0], store.transaction()):
        with pytest.raises(fst.Invalid, match="memory"):
            pickle.dumps(thing)
    assert again(next(store.list()).key) == sim("1")


def test_fields_keep_their_snapshot(store):
    fields, field = store.retrieve("step=1/2/9", strict=False), store.retrieve("step=2")[0]
    both = store.retrieve("step=2") + store.retrieve("step=1")
    store.archive(sim(1), b"newer")
    store.archive(sim(9), b"newer")
    store.archive(sim(2), np.zeros(1))
    store.flush()
    assert again(fields).read() == fields.read() == b"one" + np.arange(4.0).tobytes()
    assert again(fields).missing == fields.missing and len(again(fields).missing) == 1
    assert again(field).array().tolist() == [0, 1, 2, 3] and again(field).key == field.key
    assert again(both).read() == both.read() and len(again(again(both))) == 2
    assert again(again(fields)[0]).read() == b"one"


def test_keys_and_requests(store):
    for entry in store.list():
        key = again(entry.key)
        assert key == entry.key and hash(key) == hash(entry.key) and key.typed == entry.key.typed
        assert str(key) == str(entry.key) and not key < entry.key
    dated = fst.open("memory:", schema="date: Date; [run [date [step?]]]")
    dated.archive("run=a,date=20250101", b"x")
    dated.flush()
    assert again(next(dated.list()).key).typed["date"] == datetime.date(2025, 1, 1)
    (dataset,) = store.list(depth=1)
    assert dict(again(dataset.key)) == {"run": "a"}
    request = fst.Request(run=["a/b", "*"], step=range(5))
    assert again(request) == request


def test_another_process_reads_what_is_pickled(store, tmp_path):
    (tmp_path / "pickled").write_bytes(pickle.dumps((store, store.retrieve("step=1"))))
    code = """
        import pickle
        store, fields = pickle.load(open(sys.argv[1], "rb"))
        assert fields.read() == b"one"
        store.archive({"run": "a", "variable": "t", "step": 5}, b"child")
        """
    run_python(code, tmp_path / "pickled")
    assert store.get(sim(5)) == b"child"


def test_writers_of_created_fields_and_transactions(store, tmp_path):
    made = store.create_field(sim(7), dtype="i4", shape=(2, 2))
    store.flush()
    tx = store.transaction()
    (tmp_path / "pickled").write_bytes(pickle.dumps((made, tx)))
    code = """
        import pickle
        made, tx = pickle.load(open(sys.argv[1], "rb"))
        made.write(np.full((1, 2), 5, "i4"), start=(1, 0)); made.flush()
        with tx: tx.archive({"run": "a", "variable": "t", "step": 8}, b"joined")
        """
    run_python(code, tmp_path / "pickled")
    made.write(np.full((1, 2), 4, "i4"), start=(0, 0))
    store.flush()
    assert store.get(sim(7)).tolist() == [[4, 4], [5, 5]]
    assert [e.key["step"] for e in store.list("step=8")] == []
    tx.commit()
    assert store.get(sim(8)) == b"joined"
    assert os.getpid() == store.status().writers[0].process or len(store.status().writers) > 1

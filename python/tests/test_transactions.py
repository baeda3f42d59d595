"""Everything in a transaction becomes visible together, from any process, or never."""

from __future__ import annotations

import multiprocessing
import pathlib
import pickle

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import run_python, sim, steps


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


@pytest.fixture
def store(url):
    store = fst.open(url)
    store.archive(sim(0), b"before")
    store.flush()
    return store


def test_leaving_commits_and_an_exception_aborts(store):
    with store.transaction() as tx:
        tx.archive(sim(1), b"one")
        tx.archive_many([sim(2), sim(3)], [b"two", b"three"])
        store.archive(sim(9), b"outside")
        tx.flush()
        assert steps(store) == ["0"] and steps(tx) == ["0", "1", "2", "3"]
        assert steps(store, None) == ["0"] and len(list(store.list(txn=tx.id))) == 4
    assert steps(store) == ["0", "1", "2", "3"], "only calls on tx belong to it"
    store.flush()
    with pytest.raises(RuntimeError, match="stop"), store.transaction() as tx:
        tx.archive(sim(4), b"lost")
        tx.flush()
        tx.archive(sim(5), b"lost")
        raise RuntimeError("stop")
    assert steps(store) == ["0", "1", "2", "3", "9"] and store.status().transactions == ()


def test_reads_with_the_id_see_what_was_flushed_into_it(store):
    tx = store.transaction()
    tx.archive(sim(0), b"after")
    tx.archive(sim(1), np.arange(4))
    assert tx.get(sim(0)) == b"before", "unflushed fields are visible nowhere"
    tx.flush()
    assert tx.get(sim(0)) == store.get(sim(0), txn=tx.id) == b"after" and store.get(sim(0)) == b"before"
    assert tx.get(sim(1), start=1, count=2).tolist() == [1, 2]
    assert tx.retrieve("step=0/1").nbytes == 5 + 32 and len(store.retrieve("step=0/1", strict=False)) == 1
    assert tx.axes()["step"] == ["0", "1"] and store.axes()["step"] == ["0"]
    assert store.where(txn=tx.id) != store.where()
    (waiting,) = store.status().transactions
    assert waiting.id == tx.id and waiting.fields == 2 and len(waiting.owners) == 1
    tx.commit()
    assert store.get(sim(0)) == b"after" and tx.get(sim(0)) == b"after"


def test_a_decided_transaction_takes_nothing_more(store):
    tx = store.transaction()
    tx.archive(sim(1), b"x")
    tx.commit()
    tx.commit()
    for call in (lambda: tx.archive(sim(2), b"x"), tx.flush, lambda: tx.create_field(sim(2), "f4", (1,))):
        with pytest.raises(fst.Invalid, match="committed"):
            call()
    with pytest.raises(fst.Conflict, match="committed"):
        tx.abort()
    late = store.transaction(id=tx.id)
    late.archive(sim(3), b"late")
    with pytest.raises(fst.Conflict, match="committed"):
        late.flush()
    assert steps(store) == ["0", "1"]


def test_processes_join_by_id_and_the_opener_decides(store, url):
    code = """
        store = fst.open(sys.argv[1])
        with store.transaction(id=sys.argv[2]) as tx:
            n = int(sys.argv[3])
            tx.archive({"run": "a", "variable": "t", "step": n}, b"joined")
            whole = {"run": "a", "variable": "whole", "step": 0}
            tx.archive(whole, np.full(2, n), start=2 * (n - 1), shape=6)
        """
    for commit, visible in ((False, ["0"]), (True, ["0", "1", "2", "3"])):
        tx = store.transaction()
        for n in (1, 2, 3):
            run_python(code, url, tx.id, n)
        assert steps(store) == ["0"] and len(list(tx.list())) == 5
        tx.commit() if commit else tx.abort()
        assert steps(store, "variable=t") == visible
    assert store.get(sim(0, "whole")).tolist() == [1, 1, 2, 2, 3, 3]


def test_a_joined_process_that_fails_adds_nothing(store, url):
    code = """
        store = fst.open(sys.argv[1])
        with store.transaction(id=sys.argv[2]) as tx:
            tx.archive({"run": "a", "variable": "t", "step": 1}, b"lost")
            raise RuntimeError("stop")
        """
    with store.transaction() as tx:
        run_python(code, url, tx.id, fails=True)
        tx.archive(sim(2), b"kept")
    assert steps(store) == ["0", "2"]


def test_created_fields_belong_to_their_transaction(store):
    with store.transaction() as tx:
        made = tx.create_field(sim(1), dtype="i2", shape=(4,))
        made.write(np.arange(4, dtype="i2"), start=0)
        made.flush()
        assert steps(store) == ["0"] and tx.get(sim(1)).tolist() == [0, 1, 2, 3]
    assert store.get(sim(1)).tolist() == [0, 1, 2, 3]


def test_wrong_ids_are_refused(store):
    for wrong in ("", "nonsense", "0" * 31, "G" * 32):
        with pytest.raises(fst.Invalid, match="txn"):
            store.transaction(id=wrong)
        with pytest.raises(fst.Invalid, match="txn"):
            store.list(txn=wrong)


def remove_logs(url):
    for log in (pathlib.Path(url) / "logs").iterdir():
        log.unlink()


def test_a_transaction_that_was_robbed_can_only_be_aborted(store, url):
    large = np.random.default_rng(0).bytes(2 << 20)
    with pytest.raises(fst.Unavailable, match=r"cannot be committed.*step=7"), store.transaction() as tx:
        small = store.transaction()
        small.archive(sim(5), b"kept")
        tx.archive(sim(7), large)
        store.archive(sim(8), b"x")
        remove_logs(url)
        with pytest.raises(fst.Unavailable, match="step=8"):
            store.flush()
        for call in (tx.flush, tx.commit, tx.commit):
            with pytest.raises(fst.Unavailable, match=f"{tx.id}.*step=7") as told:
                call()
            assert "abort" in told.value.hint
    tx.abort()
    small.commit()
    left = store.retrieve({}, strict=False)
    assert [field.key["step"] for field in left] == ["5"], "fields in memory went into the next log"


def test_a_store_that_is_gone_is_not_made_again(store, url):
    moved = url + ".moved"
    pathlib.Path(url).rename(moved)
    for _ in range(3):
        store.archive(sim(1), b"x")
        with pytest.raises(fst.Unavailable, match="is gone"):
            store.flush()
    assert not pathlib.Path(url).exists()
    pathlib.Path(moved).rename(url)
    store.archive(sim(1), b"x")
    store.flush()
    assert steps(store) == ["0", "1"]


def test_an_abort_of_nothing_is_told_to_those_who_joined(store, url):
    tx = store.transaction()
    with fst.open(url) as other:
        joined = other.transaction(id=tx.id)
        joined.archive(sim(1), b"late")
        tx.abort()
        with pytest.raises(fst.Conflict, match="aborted"):
            joined.flush()
        other.discard(txn=tx.id)
    assert steps(store) == ["0"]


def give_by_fork(tx):
    child = multiprocessing.get_context("fork").Process(target=str)
    child.start()
    child.join()


@pytest.mark.parametrize(
    ("give", "written"),
    [
        (lambda tx: None, False),
        (lambda tx: tx.archive(sim(1), b"x"), False),
        (lambda tx: tx.id, True),
        (lambda tx: pickle.dumps(tx), True),
        (lambda tx: tx.create_field(sim(1), "f4", (1,)), True),
        (lambda tx: tx.create_run("r"), True),
        (give_by_fork, True),
        (lambda tx: (tx.archive(sim(1), b"x"), tx.flush()), True),
    ],
    ids=["nothing", "archive", "id", "pickle", "writer", "run", "fork", "flush"],
)
def test_an_abort_is_written_where_somebody_may_have_the_id(store, give, written):
    before = sum(writer.commits for writer in store.status().writers)
    tx = store.transaction()
    give(tx)
    flushed = sum(writer.commits for writer in store.status().writers) - before
    tx.abort()
    after = sum(writer.commits for writer in store.status().writers)
    assert after - before - flushed == int(written)

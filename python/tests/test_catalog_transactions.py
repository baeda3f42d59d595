"""Transactions over fields and catalog, deletions, threads, forks, several processes."""

from __future__ import annotations

import multiprocessing
import pickle
import threading

import fieldstone as fst
import numpy as np
import pytest


@pytest.fixture
def store(tmp_path):
    with fst.open(tmp_path / "store") as store:
        yield store


def names(rows):
    return [row.name for row in rows]


def values(reader, **terms):
    return sorted(h.value for h in reader.attributes(**terms))


def fill(writer):
    """A run with a field, a step, a tag and attributes of every kind."""
    run = writer.create_run("r")
    writer.create_tag("t", type="int")
    run.create_variable("u", "f8", (4,), ("x",))
    run.create_step(6, time=0.5)
    run.write("u", 6, np.arange(4.0))
    run.annotate("t", 1)
    run.annotate("t", 2, step=6)
    run.annotate("t", 3, variable="u", step=6, start=(1,), count=(2,))
    return run


def test_a_transaction_is_all_or_nothing_over_fields_and_catalog(store):
    with store.transaction() as tx:
        run = fill(tx)
        assert values(tx) == values(run) == [1, 2, 3]
        assert names(tx.runs()) == ["r"] and names(tx.tags()) == ["t"] and names(tx.variables()) == ["u"]
        assert [s.step for s in tx.steps()] == [6]
        assert tx.find("tag=t and value>1").count() == 2
        assert tx.aggregate().values("count") == [3]
        assert values(store) == [] and names(store.runs()) == [] and names(store.tags()) == []
        assert values(store, txn=tx.id) == [1, 2, 3]
        tx.flush()
        assert values(store) == [] and list(store.list()) == []
        (hit,) = tx.attributes(value=3)
        assert hit.read().tolist() == [1, 2]
    assert values(store) == [1, 2, 3] and names(store.runs()) == ["r"]
    assert store.run("r").read("u", 6).tolist() == [0, 1, 2, 3]


def test_an_exception_aborts_it(store):
    with pytest.raises(RuntimeError), store.transaction() as tx:
        fill(tx)
        tx.flush()
        raise RuntimeError
    assert values(store) == [] and names(store.runs()) == [] and list(store.list()) == []
    with pytest.raises(fst.Invalid, match="aborted"):
        tx.create_run("s")


def test_only_calls_on_it_belong_to_it(store):
    run = store.create_run("r")
    tx = store.transaction()
    run.annotate("t", 1)
    tx.run("r").annotate("t", 2, step=1)
    assert values(store) == [1] and values(tx) == [1, 2]
    store.flush()
    tx.abort()
    assert values(store) == [1]


def test_a_tag_made_in_it_is_known_in_it(store):
    with store.transaction() as tx:
        tx.create_tag("t", type="float", unit="K")
        tx.create_run("r").annotate("t", 1)
        (hit,) = tx.attributes()
        assert (hit.value, hit.unit, hit.tag_version) == (1.0, "K", 0)
    (hit,) = store.attributes()
    assert (hit.value, hit.unit) == (1.0, "K")


def join(url, tx_id, n):
    with fst.open(url) as mine, mine.transaction(id=tx_id) as joined:
        joined.run("r").annotate("joined", n, step=n)
        joined.archive({"run": "r", "variable": f"v{n}", "step": 1}, np.full(3, n))


def test_any_process_joins_by_id(store):
    store.create_run("r")
    store.flush()
    tx = store.transaction()
    workers = [
        multiprocessing.get_context(kind).Process(target=join, args=(store.url, tx.id, n))
        for n, kind in enumerate(["fork", "spawn"])
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert values(store) == [] and values(tx) == values(store, txn=tx.id) == [0, 1]
    tx.commit()
    assert values(store) == [0, 1] and len(list(store.list())) == 2
    assert pickle.loads(pickle.dumps(tx)).id == tx.id


def test_kinds_are_activated_and_deactivated(store):
    tx = store.transaction()
    fill(tx)
    tx.activate("run", "step", "variable", "tag")
    assert names(store.runs()) == ["r"] and names(store.tags()) == ["t"]
    assert values(store) == [] and list(store.list()) == []
    tx.activate("step_attribute")
    assert values(store) == [2]
    tx.activate("run_attribute", "variable_attribute")
    assert values(store) == [1, 2, 3]
    tx.deactivate("step_attribute")
    assert values(store) == [1, 3] and values(tx) == [1, 2, 3]
    tx.commit()
    assert values(store) == [1, 2, 3] and len(list(store.list())) == 1
    tx.deactivate("variable_attribute")
    assert values(store) == [1, 2]
    with pytest.raises(fst.Invalid, match="variable_attribute"):
        tx.activate("atribute")
    with pytest.raises(fst.Invalid, match="list of kinds is empty"):
        tx.activate()


# -- deletions


def test_deletions_cascade(store):
    run = fill(store)
    other = store.create_run("s")
    other.annotate("t", 4)
    store.flush()
    before = store.version

    report = store.delete(run="r")
    assert (report.runs, report.attributes, report.done) == (1, 3, False)
    assert values(store) == [1, 2, 3, 4]

    report = store.delete(run="r", step=6, doit=True)
    assert (report.steps, report.attributes, report.fields, report.done) == (1, 2, 0, True)
    assert values(store) == [1, 4]
    report = store.delete(tag="t", run="r", doit=True)
    assert (report.attributes, report.tags) == (1, 0) and values(store) == [4]
    run.annotate("t", 5, variable="u", step=12)
    assert store.delete(run="r", variable="u", doit=True).attributes == 1
    assert values(store) == [4]
    report = store.delete(tag="t", doit=True)
    assert (report.tags, report.attributes) == (1, 1)
    assert names(store.tags()) == [] and values(store) == []
    store.delete(run="s", doit=True)
    store.flush()
    assert "s" not in names(store.runs())
    with fst.open(store.url, at=before) as old:
        assert values(old) == [1, 2, 3, 4] and names(old.runs()) == ["r", "s"]


def test_fields_go_only_when_asked(store):
    fill(store)
    store.flush()
    store.delete(run="r", doit=True)
    store.flush()
    assert len(list(store.list())) == 1 and not store.run("r").declared
    report = store.delete(run="r", fields=True, doit=True)
    store.flush()
    assert report.fields == 1 and list(store.list()) == [] and names(store.runs()) == []


def test_where_deletes_attributes(store):
    run = fill(store)
    assert store.delete(run="r", where=fst.where(value=fst.above(2)), doit=True).attributes == 1
    assert values(store) == [1, 2]
    assert store.delete(where="value=2", doit=True).attributes == 1
    assert values(store) == [1]
    run.annotate("t", 9, step=6)
    assert values(store) == [1, 9]


def test_a_deletion_belongs_to_its_transaction(store):
    fill(store)
    store.flush()
    tx = store.transaction()
    tx.delete(run="r", doit=True)
    assert values(tx) == [] and values(store) == [1, 2, 3]
    tx.commit()
    assert values(store) == []


def test_deletions_that_name_nothing_are_refused(store):
    fill(store)
    for terms in ({}, {"doit": True}, {"project": "p", "doit": True}):
        with pytest.raises(fst.Invalid, match="no arguments that select"):
            store.delete(**terms)
    with pytest.raises(fst.Invalid, match="no fields of their own"):
        store.delete(tag="t", fields=True)
    with pytest.raises(TypeError):
        store.delete(runs="r")


# -- threads and forks


def test_threads_share_a_store(store):
    run = store.create_run("r")
    failed = []

    def work(n):
        try:
            for i in range(50):
                run.annotate(f"t{n}", i, step=i)
                assert len(run.attributes(tag=f"t{n}", step=i)) == 1
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    store.flush()
    assert len(run.attributes()) == 200


def child(store, n, queue):
    run = store.run("r")
    run.annotate("t", n, step=n)
    queue.put(values(store))
    store.flush()


def test_a_forked_child_writes_for_itself(store):
    run = store.create_run("r")
    run.annotate("t", 0, step=0)
    store.flush()
    run.annotate("t", 100, step=100)  # of the parent alone
    assert values(store) == [0, 100]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    worker = context.Process(target=child, args=(store, 1, queue))
    worker.start()
    assert queue.get(timeout=300) == [0, 1]
    worker.join()
    assert worker.exitcode == 0
    assert values(store) == [0, 1, 100]
    store.flush()
    with fst.open(store.url, "r") as reader:
        assert values(reader) == [0, 1, 100]


def annotate(url, n):
    with fst.open(url) as store:
        run = store.create_run("r", params={"n": 1}, created="2026-01-01", exist_ok=True)
        run.annotate_many("t", np.arange(100) + 1000 * n, step=np.arange(100) + 1000 * n)


def test_processes_share_a_folder(tmp_path):
    url = str(tmp_path / "store")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=annotate, args=(url, n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    with fst.open(url, "r") as store:
        assert len(store.attributes()) == 400 and names(store.runs()) == ["r"]
        assert store.conflicts() == []

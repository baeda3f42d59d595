"""Spans go to Python's logging, for those who enable it; and no call waits for another because of them."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading

import fieldstone as fst
import pytest
from fieldstone import container
from keys_and_stores import sim


@pytest.fixture
def told():
    """A list of the records of a logger, and a way to set levels that ends with the test."""
    records: list[logging.LogRecord] = []

    class Keeps(logging.Handler):
        def emit(self, record):
            records.append(record)

    handler, touched = Keeps(), []

    def listen(level, name="fieldstone"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(level)
        touched.append(logger)
        return records

    yield listen
    for logger in touched:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    fst.open("memory:").refresh()  # such calls look up the enabled levels


def names(records):
    return [(record.name, record.getMessage().split()[0]) for record in records]


def write(store, step=1):
    store.archive(sim(step), b"x")
    store.flush()


def test_silent_by_default(tmp_path, told):
    records = told(logging.WARNING)
    store = fst.open(tmp_path / "s")
    write(store)
    store.runs()
    assert records == []
    store.get(sim(1))  # a read does not log: its records would come with the next call
    told(5)
    store.flush()
    assert names(records) == [("fieldstone.journal", "flush")]


def test_spans_have_names_and_counts(tmp_path, told):
    records = told(logging.DEBUG)
    store = fst.open(tmp_path / "s")
    write(store)
    store.refresh()
    list(store.runs())
    with store.transaction() as tx:
        tx.archive(sim(2), b"y")
    found = names(records)
    for span in ["open", "commit", "flush", "refresh", "decide"]:
        assert ("fieldstone.journal", span) in found
    assert ("fieldstone.journal", "follow") in found and ("fieldstone.catalog", "query") in found
    commit = next(r.getMessage() for r in records if r.getMessage().startswith("commit"))
    assert "fields=1" in commit and "syncs=1" in commit and "bytes=" in commit and "took=" in commit
    assert {record.levelno for record in records} == {logging.DEBUG}


def test_containers_tell_their_collective_steps(tmp_path, told):
    records = told(5, "fieldstone.array")
    told(5, "fieldstone.core")
    with container.create(tmp_path / "c.nc") as file:
        file.def_dim("x", 3)
    found = names(records)
    assert ("fieldstone.array", "create") in found and ("fieldstone.array", "enddef") in found
    assert ("fieldstone.core", "step") in found


def test_a_level_counts_from_the_next_call_that_may_wait(tmp_path, told):
    records = told(logging.DEBUG)
    store = fst.open(tmp_path / "s")
    records.clear()
    told(logging.INFO)
    write(store)
    assert records == []
    told(5, "fieldstone.journal")
    store.flush()
    store.get(sim(1))
    store.refresh()
    assert ("fieldstone.journal", "look") in names(records)
    logging.disable(logging.CRITICAL)
    try:
        records.clear()
        write(store, 2)
        assert records == []
    finally:
        logging.disable(logging.NOTSET)


def test_a_handler_that_raises_or_uses_a_store_takes_nothing_from_the_caller(tmp_path, told, monkeypatch):
    records = told(logging.DEBUG)
    store, inner = fst.open(tmp_path / "s"), fst.open(tmp_path / "t")
    calls = []

    class Bad(logging.Handler):
        def handle(self, record):
            calls.append(record)
            write(inner, len(calls))
            raise RuntimeError("a bad handler")

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    bad = Bad()
    logging.getLogger("fieldstone").addHandler(bad)
    try:
        write(store)
    finally:
        logging.getLogger("fieldstone").removeHandler(bad)
    assert store.get(sim(1)) == b"x"
    assert [record.getMessage().split()[0] for record in calls] == ["commit", "flush"]
    records.clear()
    store.flush()
    assert names(records) == [("fieldstone.journal", "flush")], "calls of the handler are not logged"


def test_ctrl_c_in_a_handler_is_not_lost(tmp_path, told):
    told(logging.DEBUG)
    store = fst.open(tmp_path / "s")

    class Interrupted(logging.Handler):
        def handle(self, record):
            raise KeyboardInterrupt

    handler = Interrupted()
    logging.getLogger("fieldstone").addHandler(handler)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # libraries of other tests take it
    try:
        with pytest.raises(KeyboardInterrupt):
            write(store)
            for _ in range(1000):
                pass
    finally:
        signal.signal(signal.SIGINT, before)
        logging.getLogger("fieldstone").removeHandler(handler)


def test_threads_that_flush_query_and_log_never_wait_for_one_another_for_ever(tmp_path):
    code = """
import logging, sys, threading
import fieldstone as fst
seen = []
class Slow(logging.Handler):
    def emit(self, record):
        seen.append(record.getMessage())
logging.getLogger("fieldstone").addHandler(Slow())
logging.getLogger("fieldstone").setLevel(5)
store = fst.open(sys.argv[1])
def work(n):
    for step in range(20):
        store.archive({"run": f"r{n}", "variable": "t", "step": step}, b"x")
        store.flush()
        if step % 5 == 0:
            list(store.runs())
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
[t.start() for t in threads]
[t.join() for t in threads]
store.close()
assert sum(m.startswith("commit") for m in seen) >= 20, len(seen)
print(len(seen))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "s")], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_beside_threads_that_log_goes_on(tmp_path):
    code = """
import logging, os, sys, threading
import fieldstone as fst
seen = []
class Keeps(logging.Handler):
    def emit(self, record):
        seen.append((os.getpid(), record.getMessage()))
logging.getLogger("fieldstone").addHandler(Keeps())
logging.getLogger("fieldstone").setLevel(5)
store = fst.open(sys.argv[1])
stop = threading.Event()
def work(n):
    step = 0
    while not stop.is_set():
        store.archive({"run": f"r{n}", "variable": "t", "step": (step := step + 1)}, b"x")
        store.flush()
threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
[t.start() for t in threads]
for i in range(10):
    child = os.fork()
    if child == 0:
        seen.clear()
        own = fst.open(f"{sys.argv[1]}-{i}")
        own.archive({"run": "a", "variable": "t", "step": 0}, b"x")
        own.flush()
        commits = [m for _, m in seen if m.startswith("commit")]
        os._exit(0 if len(commits) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
[t.join() for t in threads]
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "s")],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_tells_nothing_of_its_parent(tmp_path):
    code = """
import logging, os, sys
import fieldstone as fst
seen = []
class Keeps(logging.Handler):
    def emit(self, record):
        seen.append(record.getMessage())
logging.getLogger("fieldstone").addHandler(Keeps())
logging.getLogger("fieldstone").setLevel(5)
store = fst.open(sys.argv[1])
store.archive({"run": "a", "variable": "t", "step": 0}, b"x")
store.flush()
for _ in range(50):
    store.get({"run": "a", "variable": "t", "step": 0})
seen.clear()
child = os.fork()
store.flush()
looks = sum(m.startswith("look") for m in seen)
if child == 0:
    os._exit(0 if looks < 10 else 1)
assert looks >= 50, looks
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "s")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_more_records_than_the_queue_takes_are_dropped_and_said(tmp_path, told):
    records = told(5, "fieldstone.journal")
    told(logging.WARNING, "fieldstone.core")
    store = fst.open(tmp_path / "s")
    write(store)
    # Reads do not log: they only put into the queue.
    reader = threading.Thread(target=lambda: [store.get(sim(1)) for _ in range(12_000)])
    reader.start()
    reader.join()
    store.refresh()
    assert any("dropped" in record.getMessage() for record in records)
    assert len(records) < 10_100

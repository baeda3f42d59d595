"""Threads share a store; whatever waits lets the others run."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import fieldstone as fst
import pytest
from keys_and_stores import sim


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


def test_8_four_threads_share_a_handle(url):
    store = fst.open(url)

    def work(thread: int) -> None:
        for step in range(100):
            store.archive(sim(step, f"v{thread}"), f"{thread}:{step}".encode() * 50)
            if step % 25 == thread:
                store.flush()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    store.flush()
    assert len(list(store.list())) == 400
    for thread in range(4):
        for step in range(100):
            assert store.get(sim(step, f"v{thread}")) == f"{thread}:{step}".encode() * 50
    assert store.verify().ok


def test_threads_share_fields_files_and_listings(url):
    store = fst.open(url)
    store.archive_many([sim(n) for n in range(500)], [b"%d;" % n for n in range(500)])
    store.flush()
    fields, listing, file = store.retrieve({}), store.list(), store.retrieve({}).open()
    expected = [b"%d;" % n for n in range(500)]

    def read(_: int) -> list[str]:
        assert [f.read() for f in fields] == expected and fields.read() == b"".join(expected)
        return [e.key["step"] for e in listing]

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(read, range(4)))
        reads = list(pool.map(lambda _: file.read(7), range(250)))
    assert sorted((step for part in parts for step in part), key=int) == [str(n) for n in range(500)]
    assert sum(map(len, reads)) == min(250 * 7, sum(map(len, expected)))


def test_blocking_calls_let_other_threads_run(url):
    """Flushes of 32 MiB in one thread; the other must count on meanwhile."""
    store = fst.open(url)
    data = bytes(32 << 20)
    longest, stop = 0.0, threading.Event()

    def watch() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not stop.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    while time.perf_counter() - began < 0.5:
        store.archive(sim(1), data)
        store.flush()
        store.get(sim(1))
    stop.set()
    watcher.join()
    per_call = time.perf_counter() - began
    assert longest < max(0.25, per_call / 2), f"a thread waited {longest:.3f} s"

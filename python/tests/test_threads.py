"""Threads share a store; whatever waits lets the others run."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import fieldstone as fst
import numpy as np
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


BIG = bytes(48 << 20)


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.archive(sim(2), BIG),
        lambda store: store.flush(),
        lambda store: store.archive_many([sim(2)], [BIG]),
        lambda store: store.get(sim(1)),
        lambda store: store.get(sim(1, "array")),
        lambda store: store.retrieve(sim(1)).read(),
        lambda store: store.retrieve(sim(1))[0].read(),
        lambda store: store.retrieve(sim(1)).readinto(bytearray(len(BIG))),
        lambda store: store.verify(),
    ],
    ids=["archive", "flush", "archive_many", "get", "get_array", "read", "field_read", "readinto", "verify"],
)
def test_blocking_calls_let_other_threads_run(url, call, request):
    """While a call takes its time, another thread counts on."""
    with fst.open(url) as store:
        store.archive(sim(1), BIG)
        store.archive(sim(1, "array"), np.zeros(len(BIG) // 8))
        store.flush()
        ticks: list[float] = []
        stop = threading.Event()

        def count() -> None:
            while not stop.is_set():
                time.sleep(0.0005)
                ticks.append(time.perf_counter())

        counter = threading.Thread(target=count)
        counter.start()
        spans: list[tuple[float, float]] = []
        while sum(end - start for start, end in spans) < 0.2:
            if request.node.callspec.id == "flush":
                store.archive(sim(2), BIG)
            start = time.perf_counter()
            call(store)
            spans.append((start, time.perf_counter()))
            store.discard()
        stop.set()
        counter.join()
    during = sum(start + 0.001 < tick < end - 0.001 for tick in ticks for start, end in spans)
    assert during >= 3, f"{during} ticks in {sum(end - start for start, end in spans):.3f} s of calls"

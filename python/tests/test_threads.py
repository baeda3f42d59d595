"""Threads share a store; a waiting call lets the others run."""

from __future__ import annotations

import pathlib
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
    """While a call runs, another thread keeps counting."""
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


def remove_logs(url: str) -> None:
    for log in (pathlib.Path(url) / "logs").iterdir():
        log.unlink()


def test_a_failed_flush_is_told_to_each_thread_that_archived(url):
    store = fst.open(url)
    store.archive(sim(0), b"before")
    store.flush()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other, ThreadPoolExecutor(1) as none:
        one.submit(store.archive, sim(1, "one"), b"x").result()
        other.submit(store.archive, sim(2, "other"), b"x").result()
        store.archive(sim(3, "main"), b"x")
        remove_logs(url)
        with pytest.raises(fst.Unavailable, match=r"variable=main.*is gone") as told:
            store.flush()
        assert "variable=one" in told.value.message and "variable=other" in told.value.message
        none.submit(store.flush).result()
        store.flush()
        for pool, variable in ((one, "one"), (other, "other")):
            with pytest.raises(fst.Unavailable, match=f"variable={variable}") as told:
                pool.submit(store.flush).result()
            assert told.value.message.count("variable=") == 1
            pool.submit(store.archive, sim(1, variable), b"again").result()
            pool.submit(store.flush).result()
    # A log is gone: the rest is read leniently.
    left = store.retrieve({}, strict=False)
    assert sorted(field.key["variable"] for field in left) == ["one", "other"]
    store.close()


def test_a_close_tells_what_another_thread_lost(url):
    store = fst.open(url)
    store.archive(sim(0), b"before")
    store.flush()
    store.archive(sim(1, "main"), b"x")
    remove_logs(url)
    with ThreadPoolExecutor(1) as pool, pytest.raises(fst.Unavailable):
        pool.submit(store.flush).result()
    store.archive(sim(2, "rest"), b"x")
    with pytest.raises(fst.Unavailable, match="variable=main"):
        store.close()
    store.close()
    with fst.open(url, "r") as reader:
        left = reader.retrieve({}, strict=False)
        assert [field.key["variable"] for field in left] == ["rest"]


def test_flushing_by_itself_tells_once(url):
    store = fst.open(url, autoflush=0.2)
    store.archive(sim(0), b"before")
    store.flush()
    remove_logs(url)
    store.archive(sim(1, "lost"), b"x")
    end = time.monotonic() + 30
    with pytest.raises(fst.Unavailable, match=r"flushing automatically.*variable=lost"):
        while time.monotonic() < end:
            time.sleep(0.02)
            store.refresh()
    store.flush()
    store.close()

"""``comm=``: one query for a job, and each rank gets the hits that overlap its own box."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import fieldstone as fst
import numpy as np
import pytest
from fieldstone import _native


class Threads:
    """A communicator of threads; it pickles everything, as between processes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = threading.Barrier(size, timeout=300)
        self._slots: list[Any] = [None] * size

    def rank(self, rank: int) -> Rank:
        return Rank(self, rank)

    def exchange(self, rank: int, item: Any) -> list[Any]:
        self._slots[rank] = pickle.dumps(item)
        self._barrier.wait()
        items = [pickle.loads(slot) for slot in self._slots]
        self._barrier.wait()
        return items


class Rank:
    """One rank, with the methods of mpi4py's communicators."""

    def __init__(self, threads: Threads, rank: int) -> None:
        self._threads, self.rank, self.size = threads, rank, threads.size

    def allgather(self, item: Any) -> list[Any]:
        return self._threads.exchange(self.rank, item)

    def scatter(self, items: list[Any] | None, root: int = 0) -> Any:
        return self._threads.exchange(self.rank, items)[root][self.rank]


def on_ranks(size, function):
    """The result of `function(comm)` on each rank, or the exception that it raises."""
    threads = Threads(size)
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        try:
            results[rank] = function(threads.rank(rank))
        except Exception as error:
            results[rank] = error

    workers = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = fst.open(tmp_path_factory.mktemp("comm") / "store")
    run = store.create_run("r")
    run.create_variable("u", "f8", (64, 8), ("y", "x"), coords={"y": fst.uniform(0.0, 0.5)})
    run.create_variable("v", "f8", (64, 8), ("y", "x"))
    rng = np.random.default_rng(0)
    n = 300
    start = np.stack([rng.integers(0, 60, n), rng.integers(0, 6, n)], axis=1)
    run.annotate_many("t", np.arange(n), variable=["u", "v"] * (n // 2), step=0, start=start, count=(4, 2))
    run.annotate("whole", 1.5, variable="u", step=0)
    run.annotate("step", True, step=0)
    store.flush()
    yield store
    store.close()


@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize("spelling", ["names", "tuple", "coordinates"])
def test_each_rank_gets_the_hits_of_its_own_box(store, size, spelling, monkeypatch):
    edges = [64 * rank // size for rank in range(size + 1)]

    def box(rank: int) -> Any:
        low, high = edges[rank], edges[rank + 1]
        if spelling == "coordinates":
            return {"y": fst.between(low * 0.5, (high - 1) * 0.5)}
        return {"y": slice(low, high), "x": slice(0, 3)} if spelling == "names" else (slice(low, high),)

    def terms(rank):
        return {"tag": ["t", "whole"], "variable": "u", "box": box(rank)}

    def ask(comm):
        hits = store.attributes(comm=comm, **terms(comm.rank))
        return [(h.tag, h.value, h.start) for h in hits], len(hits), hits.to_arrow().values("value")

    results = on_ranks(size, ask)
    for rank, (hits, count, values) in enumerate(results):
        alone = [(h.tag, h.value, h.start) for h in store.attributes(**terms(rank))]
        assert sorted(map(repr, hits)) == sorted(map(repr, alone)) and len(alone) == count == len(values) > 1


def test_the_query_runs_once(store, monkeypatch):
    asked = []
    catalog = fst.Store._catalog

    class Counting:
        def __init__(self, inner: _native._Catalog) -> None:
            self._inner = inner

        def hits(self, query):
            asked.append(str(query))
            return self._inner.hits(query)

        def __getattr__(self, name):
            return getattr(self._inner, name)

    class Store:
        """A store whose catalog counts."""

        def _catalog(self):
            return Counting(catalog(store))

        def __getattr__(self, name):
            return getattr(store, name)

    from fieldstone._comm import shared

    def ask(comm):
        box = {"y": slice(16 * comm.rank, 16 * comm.rank + 16)}
        return len(shared(Store(), None, comm, {"tag": "t", "box": box}))

    results = on_ranks(4, ask)
    assert all(isinstance(n, int) and n > 0 for n in results), results
    assert asked == ["tag=t and box=y:0:64"]


def test_what_has_no_box_is_in_none(store):
    condition = "(variable=u or scope=step) and tag in (whole, step)"

    def ask(comm):
        box = {"y": fst.between(8.0 * comm.rank, 8.0 * comm.rank + 7.5)}
        return [h.tag for h in store.attributes(condition, box=box, comm=comm)]

    assert on_ranks(4, ask) == [["whole"]] * 4


def test_without_a_box_every_rank_gets_all(store):
    results = on_ranks(2, lambda comm: len(store.attributes(tag="t", comm=comm)))
    assert results == [300, 300]


def test_a_rank_reads_what_its_hits_point_to(tmp_path):
    with fst.open(tmp_path / "store") as store:
        run = store.create_run("r")
        run.create_variable("u", "f8", (8,), ("x",))
        run.write("u", 0, np.arange(8.0))
        run.annotate_many("t", [0, 1], variable="u", step=0, start=[(0,), (4,)], count=(4,))
        store.flush()

        def ask(comm):
            box = {"x": slice(4 * comm.rank, 4 * comm.rank + 4)}
            return [h.read(within=box).tolist() for h in store.attributes(tag="t", box=box, comm=comm)]

        assert on_ranks(2, ask) == [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]


def test_values_of_every_type_cross(tmp_path):
    values = [True, -1, 2**64 - 1, 0.5, "x", b"\0", fst.int_range(1, 2), np.array([1, 2]), {"a": [None]}]
    with fst.open("memory:") as store:
        run = store.create_run("r", project="p")
        for step, value in enumerate(values):
            run.annotate(f"t{step}", value, step=step)
        results = on_ranks(2, lambda comm: [h.value for h in store.attributes(order="step", comm=comm)])
        for back in results:
            assert [type(v) for v in back] == [type(v) for v in values]
            assert all(np.array_equal(a, b) for a, b in zip(back, values, strict=True))


def test_errors_are_raised_on_every_rank(store):
    results = on_ranks(3, lambda comm: store.attributes(box={"nowhere": slice(0, 1)}, tag="t", comm=comm))
    assert all(isinstance(error, fst.Invalid) and "nowhere" in str(error) for error in results)

    def one_is_wrong(comm):
        return store.attributes(box={"y": "x" if comm.rank == 1 else slice(0, 1)}, comm=comm)

    results = on_ranks(3, one_is_wrong)
    assert all(isinstance(error, fst.Invalid) for error in results)
    assert "rank 1" in str(results[0]) and "rank 1" in str(results[2])
    for relation in (fst.within, fst.covers):
        results = on_ranks(2, lambda comm, r=relation: store.attributes(box=r({"y": slice(0, 1)}), comm=comm))
        assert all(isinstance(error, fst.Invalid) for error in results)

"""The view of the graph cut into slots, from Python: answers, figures, refusals."""

from __future__ import annotations

import itertools

import fieldstone as fst
import pytest

HUB, MESH = ("job", "hub"), ("file", "/mesh.nc")


@pytest.fixture
def url(tmp_path):
    url = str(tmp_path / "store")
    with fst.open(url) as store:
        g = store.graph
        g.put_many(edges=[("write", HUB, ("file", f"/out/{i}")) for i in range(300)])
        g.put_many(edges=[("read", ("job", str(i)), MESH) for i in range(300)])
        g.put_many(edges=[("read", ("job", str(i)), ("file", f"/out/{i}")) for i in range(50)])
    return url


def walks(g, engine):
    t = g.travel()
    up = g.travel(causal=True).v(("file", "/out/3")).e("wasReadBy").e("read")
    jobs = t.v(HUB).e("write").rtn().e("wasReadBy").e("read").run(engine=engine)
    paths = [str(path) for path in t.v(HUB).e("write").e("wasReadBy").return_fp().run(engine=engine)]
    sets = [sorted(vertices.pairs()) for vertices in jobs.sets]
    return sets, sorted(paths), sorted(v.pair for v in up.run(engine=engine))


@pytest.mark.parametrize("partitioner", ["dido", "giga+", "edge-cut", "vertex-cut"])
def test_answers_stay_the_same(url, partitioner):
    with fst.open(url) as store:
        g = store.graph
        whole = walks(g, "sync")
        assert len(whole[0][0]) == 50, "only vertices that reach the end"
        parts = g.partition(slots=5, partitioner=partitioner, threshold=16)
        assert (len(parts), parts.partitioner, parts.threshold, parts.unfinished) == (5, partitioner, 16, 0)
        assert (parts.splits > 0) == (partitioner in ("dido", "giga+"))
        assert sum(slot.relations for slot in parts) >= 650
        for engine in ("sync", "plain", "async"):
            assert walks(g, engine) == whole
        assert g.verify().ok
    with fst.open(url) as store:
        assert store.graph.partitions().partitioner == partitioner
        assert walks(store.graph, "async") == whole
        assert len(store.graph.partition()) == 1
        assert store.graph.travel().v(HUB).e("write").explain().slots == []


def test_what_each_slot_did_adds_up(url):
    with fst.open(url) as store:
        g = store.graph
        g.partition(slots=8, threshold=16)
        t = g.travel().v(HUB).e("write").e("wasReadBy")
        figures = [t.explain(engine=engine) for engine in ("sync", "plain", "async")]
        for e in figures:
            assert [step.relations for step in e] == [300, 50]
            assert sum(step.relations for step in e.slots) == 350
            assert e.stat_comm == e.requests + e.forwards > 0
            assert 350 / 8 <= e.stat_reads <= 350 + 350
            assert "StatComm" in str(e)
        counted = {(e.stat_comm, e.stat_reads) for e in figures}
        assert len(counted) == 1, "counts do not depend on the engine"
        assert sum(step.prefetched for step in figures[0].slots) >= 0
        assert all(step.prefetched == 0 for e in figures[1:] for step in e.slots)


def test_more_comes_while_it_is_cut(url):
    with fst.open(url) as store, fst.open(url) as other:
        g = store.graph
        g.partition(slots=4, threshold=8)
        for n in range(20):
            g.put_edge("write", HUB, ("file", f"/more/{n}"))
            count = g.travel().v(HUB).e("write").run(engine=("sync", "async")[n % 2]).count()
            assert count == 301 + n, "a process sees its unflushed puts"
        assert other.graph.travel().v(HUB).e("write").run().count() == 300
        store.flush()
        assert other.graph.travel().v(HUB).e("write").run().count() == 320
        before = g.put_vertex(*MESH)
        g.delete_vertex(HUB)
        for engine, at in itertools.product(("sync", "async"), (None, before)):
            left = g.travel(at=at).v(("file", "/out/1")).e("wasWrittenBy").run(engine=engine)
            assert left.count() == int(at is not None), "a deletion ends relations in all slots"


def test_what_cannot_be_is_refused(url):
    with fst.open(url) as store:
        g = store.graph
        for wrong in ({"slots": 0}, {"slots": 2000}, {"slots": 10**9}, {"threshold": 0}, {"slots": -1}):
            with pytest.raises(fst.Invalid):
                g.partition(**wrong)
        with pytest.raises(fst.Invalid, match="partitioner"):
            g.partition(slots=2, partitioner="metis")
        with pytest.raises(fst.Invalid, match="labels"):
            g.partition(slots=2, labels="roman")
        with pytest.raises(fst.Invalid, match="engine"):
            g.travel().v(HUB).run(engine="warp")
        assert len(g.partitions()) == 1

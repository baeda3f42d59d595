"""``g.archive``: hidden versions move to another store, and reads of them name that store."""

from __future__ import annotations

import fieldstone
import pytest

FILE, JOB = ("file", "/a"), ("job", "17")


@pytest.fixture
def store(tmp_path):
    with fieldstone.open(tmp_path / "store") as store:
        yield store


def put(g):
    for time in (10, 20, 30):
        g.put_vertex(*FILE, static={"mode": time}, props={"n": time}, time=time)
        g.put_edge("write", JOB, FILE, props={"bytes": time}, time=time)


def test_it_counts_and_then_moves(store, tmp_path):
    g, cold = store.graph, tmp_path / "cold"
    put(g)
    tree = str(g.trace(FILE))
    report = g.archive(before=25, to=cold)
    assert (report.vertices, report.relations, report.others, report.done) == (1, 1, 0, False)
    assert not cold.exists()
    assert g.versions(FILE)[2].props == {"n": 10}
    report = g.archive(before=25, to=cold, doit=True)
    assert (report.vertices, report.relations, report.done) == (1, 1, True)
    assert [v.archived for v in g.versions(FILE)] == [None, None, str(cold)]
    assert [(e.props, e.archived) for e in g.edges(FILE, versions=True)] == [
        ({"bytes": 30}, None),
        ({"bytes": 20}, None),
        ({}, str(cold)),
    ]
    assert g.edges(FILE, at=15)[0].archived == str(cold)
    assert g.vertex(FILE, at=25).props == {"n": 20}
    with pytest.raises(fieldstone.NotFound, match="cold"):
        g.vertex(FILE, at=15)
    with pytest.raises(fieldstone.NotFound, match="cold"):
        g.find("file", at=15, n=10)
    lineage = g.trace(FILE)
    assert (str(lineage), lineage.archived) == (tree, {str(cold): 1})
    assert g.stats().archives == [(str(cold), 25 * 10**9)]
    with fieldstone.open(cold, mode="r") as there:
        assert there.graph.vertex(FILE).static == {"mode": 10}
        assert [e.props for e in there.graph.edges(JOB)] == [{"bytes": 10}]
        assert there.graph.vertex(FILE).stamp == 10 * 10**9


def test_it_is_refused(store, tmp_path):
    put(store.graph)
    with pytest.raises(fieldstone.Invalid):
        store.graph.archive(before=4e9, to=tmp_path / "cold", doit=True)
    with pytest.raises(fieldstone.Invalid):
        store.graph.archive(before=None, to=tmp_path / "cold")
    with pytest.raises(fieldstone.Invalid):
        store.graph.archive(before=25, to=tmp_path / "store", doit=True)
    with store.transaction() as tx, pytest.raises(fieldstone.Invalid):
        tx.graph.archive(before=25, to=tmp_path / "cold")


def test_slots_keep_what_a_mark_says(tmp_path):
    cold = tmp_path / "cold"

    def said(g):
        edges = g.edges(FILE, versions=True)
        return [(v.stamp, v.archived, v.props) for v in [*g.versions(FILE), *edges]]

    with fieldstone.open(tmp_path / "store") as store:
        g = store.graph
        put(g)
        g.archive(before=25, to=cold, doit=True)
        whole = said(g)
        assert sum(archived == str(cold) for _, archived, _ in whole) == 2
        g.partition(slots=3)
        assert said(g) == whole and g.verify().ok
        asked = g.travel(at=15).v(JOB).e("write").ea("bytes", fieldstone.above(5))
        for engine in ("sync", "plain", "async"):
            with pytest.raises(fieldstone.NotFound, match="cold") as refusal:
                asked.run(engine=engine)
            error = refusal.value
            assert error.code == "version-archived"
            assert error.hint == "open that store and read the version there"
    with fieldstone.open(tmp_path / "store") as store:
        assert len(store.graph.partitions()) == 3 and said(store.graph) == whole

"""``g.find`` with the name of a relation: relations by their properties."""

from __future__ import annotations

import fieldstone as fst
import pytest

A, B, C = (("dataset", name) for name in "abc")


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


def define(g):
    g.define_edge("derives", reverse="wasDerivedFrom", index=["weight"])


def ends(edges):
    return sorted((e.src[1], e.dst[1]) for e in edges)


def test_relations_are_found_by_value_as_they_are_and_were(url):
    with fst.open(url) as store:
        g = store.graph
        define(g)
        g.put_edge("derives", A, B, props={"weight": 0.2, "how": "mean"}, time=10)
        g.put_edge("derives", A, C, props={"weight": 0.9, "how": "max"}, time=10, until=20)
        g.put_edge("derives", A, B, props={"weight": 0.7, "how": "median"}, time=30)
        heavy = fst.above(0.5)
        assert ends(g.find("derives", weight=heavy)) == [("a", "b"), ("a", "c")], "unflushed ones included"
        assert ends(g.find("derives", weight=heavy, at=15)) == [("a", "c")]
        assert not g.find("derives", weight=0.2) and len(g.find("derives", weight=0.2, at=15)) == 1
        store.flush()
        (found,) = g.find("derives", weight=0.7)
        (shown,) = (e for e in g.edges(A) if e.dst == B)
        assert (found.type, found.src, found.dst, found.props) == ("derives", A, B, shown.props)
        assert (found.stamp, found.time, found.user) == (shown.stamp, shown.time, shown.user)
        assert found.until is None
        (found,) = g.find("derives", how=fst.glob("max*"))
        assert found.until == 20 * 10**9
        assert len(g.find("derives")) == 2 and len(g.find("derives", limit=1)) == 1
        assert len(g.find("derives", weight=fst.between(0.6, 0.8), how="median")) == 1

        g.delete_edge("derives", A, B, time=40)
        assert ends(g.find("derives", weight=heavy)) == [("a", "c")]
        g.delete_vertex(C, time=50)
        assert g.find("derives", weight=heavy) == []
        assert ends(g.find("derives", weight=heavy, at=45)) == [("a", "c")]
        assert ends(g.find("derives", weight=heavy, at=35)) == [("a", "b"), ("a", "c")]


def test_its_far_end_has_a_name_of_its_own(url):
    with fst.open(url) as store:
        g = store.graph
        define(g)
        g.put_edge("derives", A, B, props={"weight": 1})
        (back,) = g.find("wasDerivedFrom", weight=1)
        assert (back.type, back.src, back.dst) == ("wasDerivedFrom", B, A)
        g.put_edge("run", ("user", "1"), ("job", "2"), props={"weight": 1})
        g.put_edge("own", ("user", "1"), A, props={"weight": 2})
        assert g.find("run", weight=1) == [], "a run is a vertex"
        assert [e.type for e in g.find("~wasRunBy", weight=1)] == ["run"]
        assert [e.dst for e in g.find("wasRunBy")] == [("user", "1")]
        assert [e.dst for e in g.find("own", weight=2)] == [A], "without a declaration"
        assert [e.src for e in g.find("~own")] == [A]
        g.put_vertex("own", "1")
        assert [v.pair for v in g.find("own")] == [("own", "1")]


def test_a_transaction_shows_its_own(url):
    with fst.open(url) as store:
        define(store.graph)
        store.graph.put_edge("derives", A, B, props={"weight": 1})
        with store.transaction() as tx:
            tx.graph.put_edge("derives", A, C, props={"weight": 1})
            assert ends(tx.graph.find("derives", weight=1)) == [("a", "b"), ("a", "c")]
            assert ends(store.graph.find("derives", weight=1)) == [("a", "b")]
        assert len(store.graph.find("derives", weight=1)) == 2


def test_slots_give_each_once(url):
    with fst.open(url) as store:
        g = store.graph
        define(g)
        g.put_many(edges=[("derives", A, ("dataset", str(i)), {"weight": i}) for i in range(300)])
        g.put_many(edges=[("derives", ("dataset", str(i)), B, {"weight": 300 + i}) for i in range(300)])
        g.partition(slots=5, threshold=16)
        assert sorted(e.props["weight"] for e in g.find("derives", weight=fst.at_least(100))) == list(
            range(100, 600)
        )
        assert len(g.find("wasDerivedFrom")) == 600
    with fst.open(url) as store:
        assert [e.src for e in store.graph.find("derives", weight=450)] == [("dataset", "150")]


def test_what_was_moved_is_said_and_not_missed(url, tmp_path):
    with fst.open(url) as store:
        g = store.graph
        define(g)
        for time in (10, 20, 30):
            g.put_edge("derives", A, B, props={"weight": time}, time=time)
        g.archive(before=25, to=tmp_path / "cold", doit=True)
        assert [e.props for e in g.find("derives", weight=30)] == [{"weight": 30}]
        assert g.find("derives", weight=10) == []
        assert [e.props for e in g.find("derives", weight=20, at=25)] == [{"weight": 20}]
        with pytest.raises(fst.NotFound, match="cold"):
            g.find("derives", weight=10, at=15)
        assert [e.archived for e in g.find("derives", at=15)] == [str(tmp_path / "cold")]

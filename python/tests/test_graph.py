"""The graph from Python: puts read back, with their versions, at every moment, from both ends."""

from __future__ import annotations

import os
import pwd
import time
from datetime import UTC, date, datetime, timedelta

import fieldstone as fst
import numpy as np
import pytest
from fieldstone._graph import Stamp

JOB, MESH, OUT = ("job", "17"), ("file", "/data/mesh.nc"), ("file", "/data/out.nc")


@pytest.fixture
def graph():
    with fst.open("memory:") as store:
        yield store.graph


def seen(edges):
    """Relations as sets of (type, near end, far end)."""
    found = {(e.type, e.src, e.dst) for e in edges}
    assert len(found) == len(edges)
    return found


# -- vertices


def test_a_vertex_is_read_as_it_was_put(graph):
    before = time.time()
    stamp = graph.put_vertex("file", "/data/out.nc", static={"mode": 0o644}, props={"quality": 3})
    vertex = graph.vertex(OUT)
    assert (vertex.type, vertex.id, vertex.pair) == ("file", "/data/out.nc", OUT)
    assert (vertex.static, vertex.props) == ({"mode": 0o644}, {"quality": 3})
    assert vertex.stamp == stamp and isinstance(stamp, Stamp) and isinstance(vertex.stamp, Stamp)
    assert vertex.user == pwd.getpwuid(os.getuid()).pw_name and not vertex.deleted
    assert before - 1 <= vertex.time.timestamp() <= time.time() + 1 and vertex.time.tzinfo is UTC
    assert before * 1e9 - 1e9 <= stamp <= time.time() * 1e9 + 1e9
    assert repr(stamp) == f"Stamp({int(stamp)})" and repr(vertex) == "<fieldstone.Vertex file:/data/out.nc>"


def test_a_vertex_equals_its_pair(graph):
    graph.put_vertex(*OUT)
    graph.put_vertex(*MESH)
    vertex = graph.vertex(OUT)
    assert vertex == OUT and vertex == graph.vertex(OUT) and {vertex: 1}[OUT] == 1
    assert vertex != MESH and vertex != graph.vertex(MESH) and vertex != "file:/data/out.nc"
    assert graph.vertex(vertex) == vertex, "it names itself in every call"
    graph.put_edge("write", JOB, vertex)
    assert seen(graph.edges(vertex)) == {("wasWrittenBy", OUT, JOB)} and vertex in graph.trace(vertex)


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -5, 2**63 - 1, 2**63, 0.5, float("inf"), "", "Größe", b"\x00\xff",
        datetime(2026, 11, 23, 6, tzinfo=UTC), [1, 2, 3], ["a", None], {"a": {"b": [1.5]}}, [], {},
    ],
)  # fmt: skip
def test_every_value_comes_back(graph, value):
    graph.put_vertex("file", "a", static={"v": value}, props={"v": value})
    graph.put_edge("write", JOB, ("file", "a"), props={"v": value})
    vertex, (edge,) = graph.vertex(("file", "a")), graph.edges(JOB)
    for props in (vertex.static, vertex.props, edge.props):
        assert props == {"v": value} and type(props["v"]) is type(value)


def test_props_are_replaced_and_static_stays(graph):
    graph.put_vertex(*OUT, static={"mode": 1}, props={"a": 1, "b": 2})
    graph.put_vertex(*OUT, props={"c": 3})
    assert (graph.vertex(OUT).static, graph.vertex(OUT).props) == ({"mode": 1}, {"c": 3})
    graph.put_vertex(*OUT)
    assert (graph.vertex(OUT).static, graph.vertex(OUT).props) == ({"mode": 1}, {})
    graph.put_vertex(*OUT, static={"size": 5})
    assert graph.vertex(OUT).static == {"size": 5}
    graph.put_vertex(*OUT, static={})
    assert graph.vertex(OUT).static == {}, "an empty value is a value"


def test_every_put_is_a_version(graph):
    stamps = [graph.put_vertex(*OUT, props={"n": n}) for n in range(5)]
    assert stamps == sorted(set(stamps))
    assert [v.props["n"] for v in graph.versions(OUT)] == [4, 3, 2, 1, 0]
    assert [v.stamp for v in graph.versions(OUT)] == stamps[::-1]
    assert [graph.vertex(OUT, at=stamp).props["n"] for stamp in stamps] == [0, 1, 2, 3, 4]
    assert graph.versions(MESH) == []


def test_equal_vertices_of_one_time_are_one_version(graph):
    for n in (1, 2, 2):
        graph.put_vertex(*OUT, props={"n": n}, time=100)
        graph.put_edge("write", JOB, OUT, props={"n": n}, time=100)
    assert [v.props for v in graph.versions(OUT)] == [{"n": 2}], "the last one counts"
    assert [e.props for e in graph.edges(JOB, versions=True)] == [{"n": 2}]


def test_what_is_not_there_is_not_found(graph):
    graph.put_vertex(*MESH, time=100)
    for call in (
        lambda: graph.vertex(OUT),
        lambda: graph.trace(OUT),
        lambda: graph.vertex(MESH, at=99),
        lambda: graph.delete_vertex(OUT),
        lambda: graph.delete_edge("read", JOB, MESH),
    ):
        with pytest.raises(fst.NotFound) as caught:
            call()
        assert isinstance(caught.value, KeyError) and caught.value.hint
    assert graph.edges(OUT) == graph.versions(OUT) == []


@pytest.mark.parametrize(
    "name",
    [
        "/data/a.nc",
        ("file",),
        ("file", 1),
        ("file", "a", "b"),
        ["file", "a"],
        7,
        None,
        ("", "a"),
        ("file", ""),
    ],
)
def test_what_names_no_vertex_is_refused(graph, name):
    with pytest.raises(fst.Invalid):
        graph.put_edge("read", JOB, name)
    assert graph.edges(JOB) == []


def test_names_have_limits_and_odd_ones_are_kept(graph):
    for bad in (("a:b", "x"), ("t" * 256, "x"), ("file", "x" * 65537)):
        with pytest.raises(fst.Invalid, match="255 bytes and no ':'"):
            graph.put_vertex(*bad)
    for odd in [("t" * 255, "x" * 65536), ("Ö", "a:b\n'\"\0é"), ("~", "~read")]:
        graph.put_edge("read", JOB, odd)
        assert graph.vertex(odd) == odd and graph.edges(odd)[0].dst == JOB


# -- relations


def test_a_relation_is_seen_from_both_ends(graph):
    stamp = graph.put_edge("write", JOB, OUT, props={"bytes": 10}, time=1000, until=1600)
    (there,), (back,) = graph.edges(JOB), graph.edges(OUT)
    assert (there.type, there.src, there.dst) == ("write", JOB, OUT)
    assert (back.type, back.src, back.dst) == ("wasWrittenBy", OUT, JOB)
    for edge in (there, back):
        assert edge.props == {"bytes": 10} and edge.stamp == stamp == 1000 * 10**9 and not edge.deleted
        assert edge.until == 1600 * 10**9 and isinstance(edge.until, Stamp)
        assert edge.time == datetime(1970, 1, 1, 0, 16, 40, tzinfo=UTC)
        assert edge.user == graph.vertex(JOB).user == pwd.getpwuid(os.getuid()).pw_name
    assert repr(back) == "<fieldstone.Edge file:/data/out.nc wasWrittenBy job:17>"


BUILT_IN = [
    ("run", "wasRunBy", "user", "job"), ("contains", "belongs", "job", "process"),
    ("exe", "exedBy", "job", "file"), ("read", "wasReadBy", "job", "file"),
    ("write", "wasWrittenBy", "process", "file"), ("has", "belongsTo", "directory", "file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reverse", "source", "target"), [*BUILT_IN, ("likes", "~likes", "x", "y")])
def test_every_relation_has_a_name_from_the_far_end(graph, name, reverse, source, target):
    a, b = (source, "1"), (target, "2")
    graph.put_edge(name, a, b, time=1)
    graph.put_edge(reverse, b, a, time=1)
    assert seen(graph.edges(a)) == {(name, a, b)} and seen(graph.edges(b)) == {(reverse, b, a)}
    for near, kinds in ((a, (name, "~" + reverse)), (b, (reverse, "~" + name))):
        for kind in kinds:
            assert len(graph.edges(near, kind)) == 1, kind
            assert graph.edges(b if near == a else a, kind) == [], kind
    assert len(graph.edges(a, versions=True)) == 1, "one relation, whichever end named it"
    graph.delete_edge(reverse, b, a)
    assert graph.edges(a) == graph.edges(b) == []


def test_a_relation_makes_its_ends(graph):
    stamp = graph.put_edge("write", JOB, OUT)
    for end in (JOB, OUT):
        vertex = graph.vertex(end)
        assert (vertex.props, vertex.static, vertex.stamp) == ({}, {}, stamp) and graph.versions(end) == []
    with pytest.raises(fst.NotFound):
        graph.vertex(OUT, at=1)
    graph.put_vertex(*OUT, props={"a": 1})
    assert graph.vertex(OUT).props == {"a": 1}


def test_a_relation_may_lead_back_to_its_source(graph):
    graph.put_edge("likes", JOB, JOB)
    assert seen(graph.edges(JOB)) == {("likes", JOB, JOB), ("~likes", JOB, JOB)}
    assert len(graph.trace(JOB)) == 1


def test_edges_are_chosen_by_type_moment_and_number(graph):
    for n in range(6):
        graph.put_edge("read", JOB, ("file", f"in{n}"), time=100 + n)
        graph.put_edge("write", JOB, ("file", f"out{n}"), time=200 + n)
    assert len(graph.edges(JOB)) == 12
    assert {e.dst[1] for e in graph.edges(JOB, "read")} == {f"in{n}" for n in range(6)}
    assert {e.dst[1] for e in graph.edges(JOB, at=102)} == {"in0", "in1", "in2"}
    assert {e.dst[1] for e in graph.edges(JOB, "write", at=200)} == {"out0"}
    assert graph.edges(JOB, at=99) == graph.edges(JOB, "exe") == graph.edges(JOB, "wasReadBy") == []
    all = [(e.type, e.dst) for e in graph.edges(JOB)]
    for limit in (0, 1, 7, 12, 100):
        assert [(e.type, e.dst) for e in graph.edges(JOB, limit=limit)] == all[:limit]
    assert len(graph.edges(JOB, "write", limit=4)) == 4


def test_versions_of_relations_are_all_or_those_of_a_range(graph):
    for n in (1, 2, 3, 4):
        graph.put_edge("write", JOB, OUT, props={"n": n}, time=100 * n)
    graph.delete_edge("write", JOB, OUT, time=500)

    def ns(**options):
        return [e.props.get("n", "deleted" if e.deleted else None) for e in graph.edges(OUT, **options)]

    assert ns() == [] and ns(at=450) == [4] and ns(at=250) == [2] and ns(versions=False) == []
    assert ns(versions=True) == ["deleted", 4, 3, 2, 1], "newest first"
    assert ns(versions=(200, 300)) == [3, 2], "both ends belong to it"
    assert ns(versions=(None, 200)) == [2, 1] and ns(versions=(400, None)) == ["deleted", 4]
    assert ns(versions=(201, 299)) == ns(versions=(300, 200)) == []
    assert ns(versions=(datetime(1970, 1, 1, 0, 5), None), limit=2) == ["deleted", 4]
    assert [e.props for e in graph.edges(JOB, versions=(100, 100))] == [{"n": 1}]


# -- times

MOMENT = 1_790_000_000
SAME = [
    MOMENT, float(MOMENT), Stamp(MOMENT * 10**9), datetime.fromtimestamp(MOMENT, UTC),
    datetime.fromtimestamp(MOMENT, UTC).replace(tzinfo=None), np.datetime64(MOMENT, "s"),
    datetime.fromtimestamp(MOMENT, UTC).isoformat(), np.float64(MOMENT),
    datetime.fromtimestamp(MOMENT, UTC).astimezone(tz=None),
]  # fmt: skip


@pytest.mark.parametrize("moment", SAME, ids=lambda moment: type(moment).__name__)
def test_a_time_is_seconds_a_datetime_or_a_stamp(graph, moment):
    assert graph.put_vertex(*OUT, time=moment) == MOMENT * 10**9
    assert graph.put_edge("write", JOB, OUT, time=moment, until=moment) == MOMENT * 10**9
    assert graph.edges(JOB)[0].until == MOMENT * 10**9
    assert graph.vertex(OUT, at=moment) and graph.edges(JOB, versions=(moment, moment))
    assert (
        len(graph.trace(OUT, at=moment)) == 2 and len(graph.trace(JOB, direction="down", since=moment)) == 2
    )
    assert graph.delete_vertex(OUT, time=moment) == MOMENT * 10**9


def test_parts_of_seconds_and_dates_count(graph):
    assert graph.put_vertex(*OUT, time=0.25) == 250_000_000
    assert graph.put_vertex(*OUT, time=date(1970, 1, 2)) == 86400 * 10**9
    assert graph.put_vertex(*OUT, time="1970-01-03T00:00:00.000001Z") == 2 * 86400 * 10**9 + 1000
    assert graph.put_vertex(*OUT, time=0) == 0 and graph.vertex(OUT, at=0).stamp == 0


BAD_TIMES = [
    -1, -0.5, 2**40, 1e300, float("nan"), float("inf"), True, False, "yesterday", datetime(1969, 1, 1),
    datetime(2262, 1, 1), datetime(2200, 1, 1), np.datetime64("NaT"), [1], {}, b"1", timedelta(1),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_TIMES, ids=repr)
def test_a_bad_time_is_refused(graph, bad):
    graph.put_edge("write", JOB, OUT, time=5)
    for call in (
        lambda: graph.put_vertex(*OUT, time=bad),
        lambda: graph.put_edge("write", JOB, MESH, time=bad),
        lambda: graph.put_edge("write", JOB, MESH, time=5, until=bad),
        lambda: graph.put_many(edges=[("write", JOB, MESH, None, bad)]),
        lambda: graph.delete_vertex(OUT, time=bad),
    ):
        with pytest.raises(fst.Invalid):
            call()
    if not isinstance(bad, datetime) or bad.year < 1970:  # asking about the future is not an error
        with pytest.raises(fst.Invalid):
            graph.vertex(OUT, at=bad)
    assert len(graph.edges(JOB, versions=True)) == 1 and graph.versions(OUT) == []


def test_a_relation_does_not_end_before_it_begins(graph):
    with pytest.raises(fst.Invalid, match="before it begins"):
        graph.put_edge("write", JOB, OUT, time=10, until=9)
    with pytest.raises(fst.Invalid, match="before it begins"):
        graph.put_edge("write", JOB, OUT, until=9)
    graph.put_edge("write", JOB, OUT, time=10, until=10)
    assert graph.edges(JOB)[0].until == 10 * 10**9


def test_what_is_put_after_what_was_read_is_newer(graph):
    ahead = datetime.now(UTC) + timedelta(days=1)
    first = graph.put_vertex(*MESH, time=ahead)
    assert graph.put_vertex(*OUT) > first, "whatever the clock says"
    assert graph.put_vertex(*OUT, time=3) == 3 * 10**9


def test_history_is_put_in_any_order(graph):
    for n in (3, 1, 4, 2):
        graph.put_vertex(*OUT, static={"s": n} if n % 2 else None, props={"n": n}, time=n)
    assert [v.props["n"] for v in graph.versions(OUT)] == [4, 3, 2, 1]
    assert [graph.vertex(OUT, at=n).props["n"] for n in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert [graph.vertex(OUT, at=n).static["s"] for n in (1, 2, 3, 4)] == [1, 1, 3, 3]


# -- deletion


def test_a_deleted_vertex_is_gone_and_was_there(graph):
    put = graph.put_vertex(*OUT, static={"mode": 1}, props={"n": 1})
    gone = graph.delete_vertex(OUT)
    assert gone > put and isinstance(gone, Stamp)
    with pytest.raises(fst.NotFound):
        graph.vertex(OUT)
    with pytest.raises(fst.NotFound):
        graph.delete_vertex(OUT)
    assert graph.vertex(OUT, at=put).props == {"n": 1}
    assert [(v.deleted, v.props) for v in graph.versions(OUT)] == [(True, {}), (False, {"n": 1})]
    assert repr(graph.versions(OUT)[0]) == "<fieldstone.Vertex file:/data/out.nc deleted>"
    graph.put_vertex(*OUT, props={"n": 2})
    assert graph.vertex(OUT).props == {"n": 2} and graph.vertex(OUT).static == {}, "static went with it"
    assert [v.deleted for v in graph.versions(OUT)] == [False, True, False]


def test_deleting_a_vertex_ends_relations_at_both_ends(graph):
    graph.put_edge("read", JOB, MESH, time=100)
    graph.put_edge("write", JOB, OUT, time=100)
    graph.put_edge("run", ("user", "0"), JOB, time=100)
    graph.delete_vertex(JOB, time=200)
    for vertex in (JOB, MESH, OUT, ("user", "0")):
        assert graph.edges(vertex) == graph.edges(vertex, at=200) == []
        assert graph.edges(vertex, at=199) != []
        with pytest.raises(fst.NotFound):
            graph.vertex(vertex)  # relations created it, and they have ended
        assert graph.vertex(vertex, at=199) == vertex
    assert not any(e.deleted for e in graph.edges(JOB, versions=True)) and len(graph.versions(JOB)) == 1
    graph.put_edge("read", JOB, MESH, time=300)
    assert seen(graph.edges(JOB)) == {("read", JOB, MESH)}, "it does not end later puts"
    assert graph.edges(JOB, at=250) == []


def test_a_deleted_relation_leaves_its_ends(graph):
    graph.put_vertex(*OUT)
    graph.put_vertex(*JOB)
    put = graph.put_edge("write", JOB, OUT, props={"n": 1})
    gone = graph.delete_edge("wasWrittenBy", OUT, JOB)
    assert graph.edges(JOB) == graph.edges(OUT) == [] and graph.vertex(OUT) and graph.vertex(JOB)
    assert [e.props for e in graph.edges(OUT, at=put)] == [{"n": 1}]
    deleted, kept = graph.edges(OUT, versions=True)
    assert (deleted.deleted, deleted.stamp, kept.deleted, kept.stamp) == (True, gone, False, put)
    assert repr(deleted) == "<fieldstone.Edge file:/data/out.nc wasWrittenBy job:17 deleted>"
    with pytest.raises(fst.NotFound, match="write"):
        graph.delete_edge("write", JOB, OUT)


def test_delete_many_deletes_all_or_nothing(graph):
    graph.put_many(edges=[("read", JOB, ("file", str(n))) for n in range(4)])
    graph.put_vertex(*MESH)
    with pytest.raises(fst.NotFound):
        graph.delete_many(vertices=[MESH], edges=[("read", JOB, ("file", "0")), ("read", JOB, OUT)])
    with pytest.raises(fst.NotFound):
        graph.delete_many(vertices=[MESH, OUT])
    assert len(graph.edges(JOB)) == 4 and graph.vertex(MESH)
    edges = graph.edges(JOB)[:2]
    graph.delete_many(vertices=iter([graph.vertex(MESH)]), edges=((e.type, e.src, e.dst) for e in edges))
    assert seen(graph.edges(JOB)).isdisjoint(seen(edges)) and len(graph.edges(JOB)) == 2
    assert [v.deleted for v in graph.versions(MESH)] == [True, False]
    assert graph.delete_many() and graph.put_many()


def test_a_vertex_is_asked_for_some_properties_and_for_versions(graph):
    first = graph.put_vertex(*OUT, static={"mode": 1, "size": 2}, props={"a": 1, "b": 2})
    second = graph.put_vertex(*OUT, props={"a": 3})
    graph.delete_vertex(OUT)
    old = graph.vertex(OUT, ["a", "mode"], at=first)
    assert (old.props, old.static) == ({"a": 1}, {"mode": 1})
    assert graph.vertex(OUT, "b", at=second).props == {}
    assert [v.props.get("a") for v in graph.vertex(OUT, versions=True)] == [None, 3, 1]
    assert [v.props for v in graph.vertex(OUT, "a", versions=(first, second))] == [{"a": 3}, {"a": 1}]
    assert graph.vertex(MESH, versions=True) == []
    with pytest.raises(fst.Invalid, match="both at and versions"):
        graph.vertex(OUT, at=first, versions=True)

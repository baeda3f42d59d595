"""Many vertices and relations at once, as rows and as columns; declared types; counts of a graph."""

from __future__ import annotations

from datetime import UTC, datetime

import fieldstone as fst
import numpy as np
import pytest
from fieldstone._graph import Stamp

JOB, OUT = ("job", "17"), ("file", "/data/out.nc")


@pytest.fixture
def graph():
    with fst.open("memory:") as store:
        yield store.graph


# -- rows


def test_rows_are_the_arguments_of_a_put_and_may_be_cut_short(graph):
    last = graph.put_many(
        vertices=[
            (OUT,),
            (("file", "b"), {"mode": 1}),
            (("file", "c"), None, {"n": 1}),
            (("file", "d"), {"mode": 2}, {"n": None}, 50),
        ],
        edges=(row for row in [
            ("write", JOB, OUT),
            ("write", JOB, graph_vertex(graph, "b"), {"bytes": 7}),
            ("wasReadBy", ("file", "c"), JOB, None, 60),
            ("read", JOB, ("file", "d"), {}, 60.5, datetime(1970, 1, 1, 0, 2, tzinfo=UTC)),
        ]),
    )  # fmt: skip
    assert last == 60.5e9 and isinstance(last, Stamp)
    assert graph.vertex(("file", "b")).static == {"mode": 1} and graph.vertex(OUT).static == {}
    assert graph.vertex(("file", "c")).props == {"n": 1}
    d = graph.versions(("file", "d"))[0]
    assert (d.static, d.props, d.stamp) == ({"mode": 2}, {"n": None}, 50 * 10**9)
    edges = {e.dst[1]: e for e in graph.edges(JOB)}
    assert set(edges) == {"/data/out.nc", "b", "c", "d"} and edges["b"].props == {"bytes": 7}
    assert edges["c"].type == "read" and edges["c"].stamp == 60 * 10**9 and edges["c"].until is None
    assert edges["d"].until == 120 * 10**9


def graph_vertex(graph, id):
    graph.put_vertex("file", id)
    return graph.vertex(("file", id))


def test_vertices_come_before_relations_each_with_its_stamp(graph):
    last = graph.put_many(
        edges=[("read", JOB, ("file", str(n))) for n in range(9)],
        vertices=[(("file", str(n)),) for n in range(9)],
    )
    vertices = [graph.vertex(("file", str(n))).stamp for n in range(9)]
    edges = [graph.edges(("file", str(n)))[0].stamp for n in range(9)]
    assert vertices + edges == sorted(set(vertices + edges)) and edges[-1] == last


@pytest.mark.parametrize(
    "rows",
    [
        {"vertices": [OUT]}, {"vertices": [7]}, {"vertices": [(OUT, 7)]}, {"vertices": 7},
        {"vertices": [(OUT, None, None, None, None)]}, {"edges": [("read", JOB)]},
        {"edges": [("", JOB, OUT)]}, {"edges": [(7, JOB, OUT)]},
        {"edges": [("read", "job:17", OUT)]}, {"edges": [("read", JOB, OUT, 7)]},
    ],
    ids=repr,
)  # fmt: skip
def test_bad_rows_are_refused_and_nothing_of_their_kind_is_put(graph, rows):
    ((kind, bad),), good = rows.items(), {"vertices": (OUT,), "edges": ("read", JOB, OUT)}
    many = [good[kind], *bad] if isinstance(bad, list) else bad
    with pytest.raises((fst.Invalid, TypeError, ValueError)):
        graph.put_many(**{kind: many})
    assert graph.versions(OUT) == graph.edges(OUT) == []


# -- columns


def test_columns_are_arrays_lists_or_one_value(graph):
    n = 100
    graph.put_many(
        vertices={"type": "file", "id": [f"f{i}" for i in range(n)], "static": {"mode": 0o644}, "time": 5},
        edges={
            "type": np.where(np.arange(n) % 2 == 0, "read", "write"),
            "src_type": "job",
            "src_id": np.array([str(i // 10) for i in range(n)]),
            "dst_type": ["file"] * n,
            "dst_id": tuple(f"f{i}" for i in range(n)),
            "props": {"bytes": np.arange(n, dtype="u4"), "rate": np.arange(n) / 2, "host": "node1"},
            "time": np.arange(n),
            "until": np.arange(n) + 0.5,
        },
    )
    for i in (0, 1, 55, 99):
        vertex, (edge,) = graph.vertex(("file", f"f{i}")), graph.edges(("file", f"f{i}"))
        assert vertex.static == {"mode": 0o644} and vertex.props == {} and vertex.stamp == 5 * 10**9
        assert edge.type == ("wasWrittenBy" if i % 2 else "wasReadBy") and edge.dst == ("job", str(i // 10))
        assert edge.props == {"bytes": i, "rate": i / 2, "host": "node1"} and type(edge.props["bytes"]) is int
        assert edge.stamp == i * 10**9 and edge.until == i * 10**9 + 5 * 10**8
    assert len(graph.edges(("job", "3"))) == 10 and graph.stats().relations == n


def test_columns_of_one_value_are_one_row(graph):
    graph.put_many(
        edges={"type": "read", "src_type": "job", "src_id": "1", "dst_type": "file", "dst_id": "a"}
    )
    assert len(graph.edges(("job", "1"))) == 1
    graph.put_many(vertices={"type": [], "id": []}, edges=[])
    graph.put_many(vertices={"type": "file", "id": np.array([], dtype=str)})
    assert graph.stats().vertices == 2


def test_columns_come_from_arrow_and_pandas(graph):
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": ["a", "b"], "n": [1.5, 2.5], "when": pd.to_datetime([10, 20], unit="s")})
    graph.put_many(
        vertices={"type": "file", "id": frame["id"], "props": {"n": frame["n"]}, "time": frame["when"]}
    )
    table = pa.table({"id": ["a", "b"], "n": [1, 2]})
    graph.put_many(
        edges={
            "type": "read", "src_type": "job", "src_id": "1", "dst_type": "file", "dst_id": table["id"],
            "props": {"n": table["n"]}, "time": pa.array([datetime(1970, 1, 1, 0, 1)] * 2),
        }
    )  # fmt: skip
    assert [graph.vertex(("file", id)).props["n"] for id in "ab"] == [1.5, 2.5]
    assert [graph.vertex(("file", id)).stamp for id in "ab"] == [10 * 10**9, 20 * 10**9]
    edges = {e.dst[1]: e for e in graph.edges(("job", "1"))}
    assert edges["a"].props == {"n": 1} and edges["b"].props == {"n": 2}
    assert edges["a"].stamp == 60 * 10**9


@pytest.mark.parametrize(
    "times",
    [
        [1, 2], [1.0, 2.0], [datetime(1970, 1, 1, 0, 0, 1), 2], [Stamp(10**9), Stamp(2 * 10**9)],
        [Stamp(10**9), 2], np.array([1, 2], "u1"), np.array([1, 2], "f4"), np.array([1, 2], "M8[s]"),
        ["1970-01-01T00:00:01Z", "1970-01-01T00:00:02"], (1, np.float64(2)),
    ],
    ids=repr,
)  # fmt: skip
def test_times_in_columns_are_those_of_single_puts(graph, times):
    graph.put_many(vertices={"type": "file", "id": ["a", "b"], "time": times})
    assert [graph.vertex(("file", id)).stamp for id in "ab"] == [10**9, 2 * 10**9]


def test_a_time_that_is_missing_is_now(graph):
    before = graph.put_vertex("file", "a")
    graph.put_many(vertices=[(("file", "b"), None, None, None), (("file", "c"), None, None, 7)])
    assert graph.vertex(("file", "b")).stamp > before and graph.vertex(("file", "c")).stamp == 7 * 10**9


GOOD = {"type": "read", "src_type": "job", "src_id": ["1", "2"], "dst_type": "file", "dst_id": ["a", "b"]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"dst_id": ["a", "b", "c"]}, "3 rows.*2"),
        ({"props": {"n": [1, 2, 3]}}, r'props\["n"\] has 3 rows'),
        ({"time": [1]}, "1 rows|2 rows"),
        ({"id": ["a", "b"]}, "'id' is not a column.*type, src_type, src_id"),
        ({"static": {"n": 1}}, "'static' is not a column"),
        ({"dst_id": [1, 2]}, "dst_id of row 0"),
        ({"dst_id": ["a", None]}, "dst_id.*row 1"),
        ({"dst_id": None}, "dst_id"),
        ({"dst_id": ["a", ""]}, "no type or no id"),
        ({"until": [-1, 5]}, "until"),
        ({"time": 10, "until": [11, 9]}, "before it begins"),
        ({"time": [1.0, -2.0]}, "time"),
        ({"time": [True, False]}, "time"),
        ({"time": np.array([1, -1])}, "time"),
    ],
    ids=lambda value: repr(value) if isinstance(value, dict) else None,
)
def test_bad_columns_are_refused_and_none_of_them_is_put(graph, change, complaint):
    with pytest.raises(fst.Invalid, match=complaint):
        graph.put_many(edges={**GOOD, **change})
    assert graph.edges(("job", "1")) == graph.edges(("job", "2")) == []


def test_a_column_that_is_needed_is_named(graph):
    for name in GOOD:
        with pytest.raises(fst.Invalid, match=f"the column {name} is missing"):
            graph.put_many(edges={key: column for key, column in GOOD.items() if key != name})
    with pytest.raises(fst.Invalid, match="the column id is missing"):
        graph.put_many(vertices={"type": ["file"]})


# -- types


def test_a_declared_relation_has_its_own_reverse(graph):
    graph.define_edge("derives", reverse="wasDerivedFrom", source="dataset", target="dataset", index=["w"])
    a, b = ("dataset", "a"), ("dataset", "b")
    graph.put_edge("wasDerivedFrom", b, a, props={"w": 1})
    (there,), (back,) = graph.edges(a), graph.edges(b)
    assert (there.type, there.dst, back.type, back.dst) == ("derives", b, "wasDerivedFrom", a)
    for kind in ("wasDerivedFrom", "~derives"):
        assert len(graph.edges(b, kind)) == 1 and graph.edges(a, kind) == []
    for ends in ((("file", "x"), b), (a, ("file", "x"))):
        with pytest.raises(fst.Invalid, match=r"derives.*dataset"):
            graph.put_edge("derives", *ends)
        with pytest.raises(fst.Invalid, match=r"derives.*dataset"):
            graph.put_edge("wasDerivedFrom", *ends[::-1])
        with pytest.raises(fst.Invalid, match=r"derives.*dataset"):
            graph.put_many(edges=[("derives", a, b), ("derives", *ends)])
    assert len(graph.edges(a, versions=True)) == 1


def test_a_relation_that_was_there_before_its_type_is_called_by_it(graph):
    graph.put_edge("cites", ("paper", "1"), ("paper", "2"))
    assert graph.edges(("paper", "2"))[0].type == "~cites"
    graph.define_edge("cites", reverse="isCitedBy")
    assert graph.edges(("paper", "2"))[0].type == "isCitedBy"
    assert len(graph.edges(("paper", "2"), "~cites")) == len(graph.edges(("paper", "2"), "isCitedBy")) == 1


def test_types_are_declared_once_and_again_alike(graph):
    for _ in range(2):
        graph.define_vertex("dataset", static={"mode": "int"}, index=["quality"], text=["title"])
        graph.define_edge("derives", reverse="wasDerivedFrom", source="dataset")
    for otherwise in (
        lambda: graph.define_vertex("dataset", static={"mode": "float"}, index=["quality"], text=["title"]),
        lambda: graph.define_vertex("dataset"),
        lambda: graph.define_edge("derives", reverse="wasDerivedFrom"),
        lambda: graph.define_edge("derives", reverse="other", source="dataset"),
        lambda: graph.define_edge("other", reverse="wasDerivedFrom"),
        lambda: graph.define_edge("wasDerivedFrom", reverse="other"),
        lambda: graph.define_edge("other", reverse="derives"),
        lambda: graph.define_edge("read", reverse="other"),
        lambda: graph.define_edge("other", reverse="wasWrittenBy"),
        lambda: graph.define_edge("same", reverse="same"),
        lambda: graph.define_edge("~other", reverse="more"),
    ):
        with pytest.raises(fst.Conflict) as caught:
            otherwise()
        assert caught.value.hint
    graph.define_edge("other", reverse="more")
    assert graph.stats().problems == []


def test_static_properties_are_those_declared(graph):
    graph.define_vertex("dataset", static={"mode": "int", "title": "text", "more": "json"})
    graph.put_vertex("dataset", "a", static={"mode": 1, "more": {"x": [1]}}, props={"anything": 1})
    with pytest.raises(fst.Invalid, match="mode"):
        graph.put_vertex("dataset", "a", static={"mode": "1"})
    with pytest.raises(fst.Invalid, match="size") as caught:
        graph.put_vertex("dataset", "a", static={"size": 1})
    assert "props" in caught.value.hint
    with pytest.raises(fst.Invalid, match="title"):
        graph.put_many(vertices={"type": "dataset", "id": ["a", "b"], "static": {"title": ["t", 5]}})
    assert len(graph.versions(("dataset", "a"))) == 1 and graph.versions(("dataset", "b")) == []
    graph.put_vertex("other", "a", static={"mode": "1"})


def test_a_declaration_names_types_that_there_are(graph):
    with pytest.raises(fst.Invalid, match="integer"):
        graph.define_vertex("dataset", static={"mode": "integer"})
    for bad in (
        lambda: graph.define_vertex(""),
        lambda: graph.define_vertex("dataset", static={"": "int"}),
        lambda: graph.define_vertex("dataset", index=[""]),
        lambda: graph.define_edge("", reverse="x"),
        lambda: graph.define_edge("x", reverse=""),
        lambda: graph.define_edge("x", reverse="y", source=""),
    ):
        with pytest.raises(fst.Invalid):
            bad()


# -- counts


def test_stats_count_versions_and_vertices(graph):
    empty = graph.stats()
    assert (empty.segments, empty.vertices, empty.relations, empty.problems) == (0, 0, 0, [])
    graph.put_many(edges=[("read", JOB, ("file", str(n % 10)), None, n) for n in range(30)])
    graph.store.flush()
    stats = graph.stats()
    assert (stats.segments, stats.vertices, stats.relations) == (1, 11, 30) and stats.nbytes > 30
    shown = "<fieldstone.GraphStats 30 versions of relations, 11 vertices, 1 segments>"
    assert repr(stats) == shown
    assert repr(graph) == "<fieldstone.Graph of memory:>"


def test_columns_are_deleted_at_once():
    files = [f"/{n}" for n in range(5)]
    with fst.open("memory:") as store:
        g = store.graph
        ends = {"src_type": "job", "src_id": "1", "dst_type": "file"}
        g.put_many(edges={"type": "write", **ends, "dst_id": files})
        g.put_many(vertices={"type": "file", "id": files})
        g.delete_many(edges={"type": "write", **ends, "dst_id": np.array(files[:2])})
        assert {e.dst[1] for e in g.edges(("job", "1"))} == set(files[2:])
        g.delete_many(vertices={"type": "file", "id": files[2:4]})
        assert {e.dst[1] for e in g.edges(("job", "1"))} == {"/4"}
        with pytest.raises(fst.NotFound):
            g.delete_many(vertices={"type": "file", "id": ["/4", "/nowhere"]})
        assert g.edges(("job", "1")), "all, or nothing"
        with pytest.raises(fst.Invalid, match="differ in length"):
            g.delete_many(vertices={"type": ["file", "file"], "id": ["/4"]})
        with pytest.raises(fst.Invalid, match="the columns are"):
            g.delete_many(vertices={"id": ["/4"]})

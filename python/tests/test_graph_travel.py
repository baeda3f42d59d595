"""Traversals from Python: steps, tests, sets, paths, text; vertices found by value and by word."""

from __future__ import annotations

import fieldstone as fst
import pytest

MESH, FIELD, PLOT = ("file", "/data/mesh.nc"), ("file", "/data/t.nc"), ("file", "/plots/t.png")
MODEL, DRAW = ("job", "17"), ("job", "18")
ANN, BOB = ("user", "1000"), ("user", "1001")


@pytest.fixture
def graph():
    with fst.open("memory:") as store:
        g = store.graph
        g.put_edge("run", ANN, MODEL)
        g.put_edge("run", BOB, DRAW)
        g.put_edge("read", MODEL, MESH, props={"bytes": 500})
        g.put_edge("write", MODEL, FIELD, props={"bytes": 8192})
        g.put_edge("read", DRAW, FIELD, props={"bytes": 4096})
        g.put_edge("write", DRAW, PLOT, props={"bytes": 900})
        g.put_vertex(*FIELD, static={"mode": 0o644}, props={"quality": 3})
        yield g


def pairs(result):
    found = [vertex.pair for vertex in result]
    assert len(found) == len(set(found))
    return set(found)


def test_a_step_leads_to_the_far_ends(graph):
    start = graph.travel().v(FIELD)
    assert pairs(start.run()) == {FIELD}
    assert pairs(start.e("wasReadBy").e("wasRunBy").run()) == {BOB}
    assert pairs(start.e("wasReadBy", "wasWrittenBy").run()) == {MODEL, DRAW}
    assert pairs(start.e().run()) == {MODEL, DRAW}, "without a type, all relations"
    assert pairs(graph.travel().v(("file", "/nowhere")).e().run()) == set()


def test_vertices_come_with_their_properties(graph):
    (vertex,) = graph.travel().v(MODEL).e("write").run()
    assert vertex == FIELD and vertex.static == {"mode": 0o644} and vertex.props == {"quality": 3}


def test_tests_are_of_vertices_and_of_relations(graph):
    jobs = graph.travel().v(type="job")
    assert pairs(jobs.e("write").ea("bytes", fst.above(1000)).run()) == {FIELD}
    assert pairs(jobs.e("write").ea("bytes", [900, 901]).run()) == {PLOT}
    assert pairs(jobs.e("write").va("quality", 3).run()) == {FIELD}
    assert pairs(jobs.e("write").va("mode", 0o644).va("quality", fst.below(3)).run()) == set(), (
        "both must hold"
    )
    assert pairs(graph.travel().v(type="file", quality=fst.exists()).run()) == {FIELD}
    assert pairs(jobs.e().v(type="file").run()) == {MESH, FIELD, PLOT}, "a later v keeps only matches"


def test_rtn_returns_those_from_which_the_end_is_reached(graph):
    r = graph.travel().v(ANN, BOB).rtn().e("run").rtn().e("write").ea("bytes", fst.above(1000)).run()
    assert [pairs(one) for one in r.sets] == [{ANN}, {MODEL}, {FIELD}]
    assert pairs(r) == {ANN, MODEL, FIELD} and r.count() == 3


def test_repeat_takes_all_hops_until_nothing_is_new(graph):
    back = graph.travel().v(PLOT).e("wasWrittenBy").e("read")
    assert pairs(back.repeat().run()) == {FIELD, MESH}
    assert pairs(back.repeat(1).run()) == {FIELD}
    assert pairs(back.repeat(0).run()) == set()
    assert pairs(back.repeat().e("wasWrittenBy").run()) == {MODEL}, "it continues from all rounds"
    assert pairs(back.repeat().va("quality", 3).run()) == {FIELD}, "a later test is not of every round"


def test_paths_are_whole_ways(graph):
    paths = list(graph.travel().v(PLOT).e("wasWrittenBy").e("read").repeat().return_fp().run())
    assert [p.vertices for p in paths] == [[PLOT, DRAW, FIELD], [PLOT, DRAW, FIELD, MODEL, MESH]]
    assert [(e.type, e.src, e.dst, e.props) for e in paths[0].edges] == [
        ("wasWrittenBy", PLOT, DRAW, {"bytes": 900}),
        ("read", DRAW, FIELD, {"bytes": 4096}),
    ]
    assert repr(paths[0]) == ("<fieldstone.Path file:/plots/t.png wasWrittenBy job:18 read file:/data/t.nc>")


def test_of_steps_as_written_a_vertex_may_come_twice_in_a_path(graph):
    walks = list(graph.travel().v(FIELD).e("wasWrittenBy").e("write").return_fp().run())
    assert [p.vertices for p in walks] == [[FIELD, MODEL, FIELD]]
    assert list(graph.travel().v(FIELD).e("wasWrittenBy").e("write").repeat().return_fp().run()) == []


def test_paths_stream_and_end_at_the_limit(graph):
    for n in range(40):
        for layer in range(8):
            graph.put_edge("next", ("n", f"{layer}/{n % 6}"), ("n", f"{layer + 1}/{n // 6}"))
    steps = graph.travel(limit=5).v(("n", "0/0"))
    for _ in range(8):
        steps = steps.e("next")
    r = steps.return_fp().run()
    assert not r.truncated and len(list(r)) == 5 and r.truncated
    assert r.count() == 5


def test_the_limit_bounds_sets(graph):
    r = graph.travel(limit=2).v(type="file").run()
    assert r.count() == 2 and r.truncated
    assert not graph.travel(limit=3).v(type="file").run().truncated


def test_at_holds_at_every_hop(graph):
    before = graph.put_vertex(*PLOT)
    graph.put_edge("write", ("job", "19"), FIELD)
    graph.delete_edge("read", DRAW, FIELD)
    now = graph.travel().v(FIELD)
    assert (
        pairs(now.e("wasWrittenBy").run()) == {MODEL, ("job", "19")}
        and pairs(now.e("wasReadBy").run()) == set()
    )
    then = graph.travel(at=before).v(FIELD)
    assert pairs(then.e("wasWrittenBy").run()) == {MODEL} and pairs(then.e("wasReadBy").run()) == {DRAW}
    assert pairs(now.e("wasReadBy", versions=True).run()) == {DRAW}
    assert pairs(now.e("wasReadBy", versions=(before, None)).run()) == set()


def test_versions_of_a_start_are_found(graph):
    graph.put_vertex(*FIELD, props={"quality": 9})
    assert pairs(graph.travel().v(type="file", quality=3).run()) == set()
    assert pairs(graph.travel().v(type="file", quality=3, versions=True).run()) == {FIELD}


def test_by_cause_a_walk_takes_what_had_a_part(graph):
    graph.put_edge("write", ("job", "19"), FIELD)
    back = ["wasWrittenBy", "read", "wasWrittenBy"]
    any_time, cause = graph.travel().v(PLOT), graph.travel(causal=True).v(PLOT)
    for step in back:
        any_time, cause = any_time.e(step), cause.e(step)
    assert pairs(any_time.run()) == {MODEL, ("job", "19")} and pairs(cause.run()) == {MODEL}


def test_a_job_and_its_processes_count_as_the_job(graph):
    ranks = [("process", f"20/{rank}") for rank in range(2)]
    graph.put_many(edges=[("contains", ("job", "20"), rank) for rank in ranks])
    graph.put_edge("read", ranks[0], FIELD)
    graph.put_edge("write", ranks[1], ("file", "/data/mean.nc"))
    back = graph.travel(jobs=True).v(("file", "/data/mean.nc")).e("wasWrittenBy")
    assert pairs(back.run()) == {("job", "20")} and pairs(back.e("read").run()) == {FIELD}
    assert pairs(graph.travel().v(("file", "/data/mean.nc")).e("wasWrittenBy").e("read").run()) == set()


def test_text_says_what_calls_say(graph):
    text = graph.travel().text("v(file:/plots/t.png).e('wasWrittenBy').v.e('read').repeat().return_fp()")
    assert [p.vertices[-1] for p in text.run()] == [FIELD, MESH]
    large = graph.travel().text("v(type=job).e(write).ea(bytes > 1000).va(quality in (3, 4))")
    assert pairs(large.run()) == {FIELD}
    with pytest.raises(fst.Invalid, match="closing bracket"):
        graph.travel().text("v(file:/a").run()


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (lambda t: t, "has no start"),
        (lambda t: t.e("read"), "has no start"),
        (lambda t: t.v(MESH).ea("bytes", 1), "ea has no e"),
        (lambda t: t.v(MESH).e("read").repeat().ea("bytes", 1), "ea has no e"),
        (lambda t: t.v(MESH).repeat(), "repeat has no e"),
        (lambda t: t.v(MESH).e("read").repeat().e("read").repeat(), "only one repeat"),
        (lambda t: t.v(MESH).e("read").rtn().return_fp(), "rtn and return_fp"),
        (lambda t: t.v(MESH).e("read").return_fp().e("read"), "not the last"),
        (lambda t: t.v("mesh"), "does not name a vertex"),
        (lambda t: t.v(MESH).e("read").repeat(-1), "max is -1"),
        (lambda t: t.v(MESH).e("read", versions=3), "versions is 3"),
    ],
)
def test_what_cannot_be_walked_is_refused(graph, steps, message):
    with pytest.raises(fst.Invalid, match=message):
        steps(graph.travel()).run()


def test_a_traversal_can_be_begun_once_and_gone_on_from_twice(graph):
    start = graph.travel().v(FIELD)
    assert pairs(start.e("wasReadBy").run()) == {DRAW} and pairs(start.e("wasWrittenBy").run()) == {MODEL}


def test_a_result_shows_the_moment_of_its_run(graph):
    r = graph.travel().v(MODEL).e("write").run()
    paths = graph.travel().v(MODEL).e("write").return_fp().run()
    graph.put_edge("write", MODEL, ("file", "/late"))
    graph.put_vertex(*FIELD, props={"quality": 0})
    assert [(v.pair, v.props) for v in r] == [(FIELD, {"quality": 3})]
    assert [p.vertices[-1] for p in paths] == [FIELD]


def test_a_transaction_walks_what_it_holds():
    with fst.open("memory:") as store:
        with store.transaction() as tx:
            tx.graph.put_edge("write", MODEL, FIELD)
            assert pairs(tx.graph.travel().v(MODEL).e("write").run()) == {FIELD}
            assert pairs(store.graph.travel().v(MODEL).e("write").run()) == set()
            assert [v.pair for v in tx.graph.find("job")] == [MODEL] and store.graph.find("job") == []
        assert pairs(store.graph.travel().v(MODEL).e("write").run()) == {FIELD}


def test_results_are_tables_and_graphs(graph):
    vertices = graph.travel().v(MODEL).e("write").run().to_arrow()
    assert vertices.select(["type", "id", "props"]).to_pylist() == [
        {"type": "file", "id": "/data/t.nc", "props": '{"quality": 3}'}
    ]
    paths = graph.travel().v(PLOT).e("wasWrittenBy").e("read").return_fp().run()
    rows = paths.to_pandas()
    assert list(rows["path"]) == [0, 0] and list(rows["position"]) == [0, 1]
    assert list(rows["type"]) == ["wasWrittenBy", "read"] and list(rows["dst_id"]) == ["18", "/data/t.nc"]
    assert set(paths.to_networkx().edges()) == {(PLOT, DRAW), (DRAW, FIELD)}
    assert set(graph.travel().v(MODEL).e("write").run().to_networkx().nodes()) == {FIELD}


def test_explain_says_what_each_hop_did(graph):
    steps = graph.travel().v(PLOT).e("wasWrittenBy").e("read").repeat().explain()
    assert [(s.hop, s.round, s.frontier, s.reached) for s in steps][:4] == [
        (0, 1, 1, 1),
        (1, 1, 1, 1),
        (0, 2, 1, 1),
        (1, 2, 1, 1),
    ]
    assert sum(s.relations for s in steps) >= 4 and all(s.seconds >= 0 for s in steps)
    assert str(steps).startswith("hop round") and len(str(steps).splitlines()) == len(steps) + 1


def test_large_sets_go_over_segments_to_the_same_end(tmp_path):
    n = 3002
    with fst.open(tmp_path / "s") as store:
        g = store.graph
        for first in (0, n // 2):
            ids = [str(i) for i in range(first, first + n // 2)]
            for step in (1, 7):
                to = [str((int(i) * 3 + step) % n) for i in ids]
                g.put_many(
                    edges={"type": "next", "src_type": "n", "src_id": ids, "dst_type": "n", "dst_id": to}
                )
            store.flush()
        g.delete_many(edges=[("next", ("n", str(i)), ("n", str((i * 3 + 1) % n))) for i in range(0, n, 5)])
        g.delete_vertex(("n", "4"))
        links = {i: {(i * 3 + 7) % n} | ({(i * 3 + 1) % n} if i % 5 else set()) for i in range(n)}
        links = {i: {j for j in far if 4 not in (i, j)} for i, far in links.items()}
        frontier, reached = {0}, set()
        for _ in range(14):
            frontier = set().union(*(links[i] for i in frontier)) - reached
            reached |= frontier
        r = g.travel().v(("n", "0")).e("next").repeat(14).run()
        assert {int(v.id) for v in r} == reached and r.count() > 500


# -- find and search


def test_vertices_are_found_by_their_properties(graph):
    graph.put_vertex("dataset", "lonely", props={"quality": 1, "note": "abc"})
    assert [v.pair for v in graph.find("dataset")] == [("dataset", "lonely")], "although it has no relations"
    assert [v.pair for v in graph.find("file", quality=3)] == [FIELD]
    assert [v.pair for v in graph.find(quality=fst.below(5)) if v.type == "file"] == [FIELD]
    assert len(graph.find(quality=fst.exists())) == 2 and len(graph.find(quality=fst.exists(), limit=1)) == 1
    assert graph.find("dataset", note=fst.contains("b")) and not graph.find("dataset", quality=2)
    assert {v.pair for v in graph.find("job")} == {MODEL, DRAW}, "including vertices that only relations name"


def test_found_vertices_are_as_they_are_or_were(graph):
    before = graph.put_vertex("dataset", "d", props={"quality": 1})
    graph.define_vertex("dataset", index=["quality"])
    graph.put_vertex("dataset", "d", props={"quality": 2})
    assert not graph.find("dataset", quality=1) and graph.find("dataset", quality=2)
    assert graph.find("dataset", quality=1, at=before)[0].props == {"quality": 1}
    graph.delete_vertex(("dataset", "d"))
    assert not graph.find("dataset") and graph.find("dataset", at=before)


def test_words_and_their_beginnings_are_found(graph):
    graph.define_vertex("dataset", text=["title"])
    graph.put_vertex("dataset", "d1", props={"title": "Plasma turbulence in 2026"})
    graph.put_vertex("dataset", "d2", props={"title": "Plasma, quiet", "note": "turbulence"})
    graph.put_vertex("job", "21", props={"name": "Turbulence_model"})
    assert [v.id for v in graph.search("plasma tur*")] == ["d1"]
    assert [v.pair for v in graph.search("TURBULENCE")] == [("dataset", "d1"), ("job", "21")]
    assert [v.id for v in graph.search("turbulence", type="job")] == ["21"]
    assert [v.pair for v in graph.search("t nc")] == [FIELD]
    assert len(graph.search("data", limit=1)) == 1 and graph.search("turbu") == []
    with pytest.raises(fst.Invalid, match="no words"):
        graph.search("*")

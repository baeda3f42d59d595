"""Lineage by cause: a result comes only from inputs that were read before it was written."""

from __future__ import annotations

import importlib.util
import random
from datetime import datetime

import fieldstone as fst
import pytest
from conftest import require

A, B, C, Z = (("file", f"/data/{name}") for name in "abcz")
WRITE_A, WRITE_B, WRITE_Z, ONLY_READ, MAKE_C, READ_C = (
    ("job", name) for name in ("write-a", "write-b", "write-z", "only-read", "make-c", "read-c")
)
JOB_OF_HTML = ("job", "<b>")
RANKS = [("process", f"make-c/{rank}") for rank in range(4)]


@pytest.fixture
def graph():
    with fst.open("memory:") as store:
        yield store.graph


@pytest.fixture
def story(graph):
    """Six jobs: three write A, B and Z, one reads A, one makes C from A and B with four ranks, one reads C.

    Ranks 0 and 1 read, 2 only computes, and 3 writes.
    """
    graph.put_edge("write", WRITE_A, A, time=10)
    graph.put_edge("write", WRITE_B, B, time=20)
    graph.put_edge("write", WRITE_Z, Z, time=30)
    graph.put_edge("read", ONLY_READ, A, time=40)
    graph.put_many(edges=[("contains", MAKE_C, rank, None, 50) for rank in RANKS])
    graph.put_edge("read", RANKS[0], A, time=51)
    graph.put_edge("read", RANKS[1], B, time=52)
    graph.put_edge("write", RANKS[3], C, time=55, until=58)
    graph.put_edge("read", READ_C, C, time=70)
    return graph


def put(graph, *rows):
    """Relations, each put at the second of its position: ("write", "j1", "f") with further values as
    props."""
    for second, (kind, job, file, *props) in enumerate(rows, 1):
        graph.put_edge(kind, ("job", job), ("file", file), time=second, props=props[0] if props else None)


def up(graph, id, **options):
    """Names of the sources of a file, without the file."""
    return {name for _, name in graph.trace(("file", id), **options).vertices} - {id}


def down(graph, id, **options):
    return {name for _, name in graph.trace(("file", id), direction="down", **options).vertices} - {id}


# -- the story


def test_a_result_comes_from_the_jobs_and_files_that_went_into_it(story):
    lineage = story.trace(C)
    assert set(lineage.vertices) == {C, MAKE_C, RANKS[0], RANKS[1], RANKS[3], A, B, WRITE_A, WRITE_B}
    assert Z not in lineage and WRITE_Z not in lineage and ONLY_READ not in lineage and READ_C not in lineage
    assert set(lineage.executions) == {MAKE_C, RANKS[0], RANKS[1], RANKS[3], WRITE_A, WRITE_B}
    assert (lineage.root, lineage.vertices[0], lineage.truncated) == (C, C, False)
    relations = [(e.type, e.src, e.dst) for e in lineage.edges]
    assert relations == [
        ("write", WRITE_A, A),
        ("write", WRITE_B, B),
        *(("contains", MAKE_C, RANKS[rank]) for rank in sorted((0, 1, 3), key=lambda rank: RANKS[rank])),
        ("read", RANKS[0], A),
        ("read", RANKS[1], B),
        ("write", RANKS[3], C),
    ]
    assert [e.stamp for e in lineage.edges] == sorted(e.stamp for e in lineage.edges)
    assert lineage.edges[-1].until == 58 * 10**9


def test_what_came_of_a_file(story):
    assert set(story.trace(A, direction="down")) == {A, ONLY_READ, MAKE_C, RANKS[0], RANKS[3], C, READ_C}
    assert set(story.trace(Z, direction="down")) == {Z}
    both = story.trace(C, direction="both")
    assert set(both) == {*story.trace(C), READ_C} and both.direction == "both"


def test_depth_counts_hops_between_data_and_executions(story):
    assert set(story.trace(C, depth=0)) == {C}
    assert set(story.trace(C, depth=1)) == {C, MAKE_C, RANKS[3]}, "a job and its processes are one"
    assert set(story.trace(C, depth=2)) == {C, MAKE_C, RANKS[0], RANKS[1], RANKS[3], A, B}
    assert story.trace(C, depth=3).depths == story.trace(C).depths
    assert story.trace(C).depths[WRITE_A] == 3 and story.trace(C).depths[MAKE_C] == 1


def test_a_limit_cuts_off_and_says_so(story):
    whole = len(story.trace(C))
    for limit in range(1, whole + 1):
        cut = story.trace(C, limit=limit)
        assert set(cut) <= set(story.trace(C)) and cut.root == C and (len(cut) < whole) == cut.truncated
    cut = story.trace(C, limit=1)
    assert cut.truncated and "cut off" in repr(cut) and "cut off" in str(cut)
    assert not story.trace(C, limit=whole).truncated


def test_a_removed_file_is_still_traced(story):
    story.delete_vertex(A)
    story.delete_vertex(B, time=60)
    assert len(story.trace(C)) == 9 and A in story.trace(C)
    assert set(story.trace(A)) == {A, WRITE_A}, "a removed vertex keeps its past"
    assert A not in story.trace(C, causal=False), "it does not exist now"
    assert A in story.trace(C, causal=False, at=58)


def test_a_deleted_relation_is_not_walked(story):
    story.delete_edge("write", WRITE_A, A)
    assert WRITE_A not in story.trace(C) and A in story.trace(C), "it never existed"
    assert WRITE_A in story.trace(C, at=58) and len(story.trace(C)) == 8


# -- by cause


def test_who_wrote_after_it_was_read_is_no_ancestor(graph):
    put(graph, ("write", "w1", "in"), ("read", "j", "in"), ("write", "j", "out"), ("write", "w2", "in"))
    assert up(graph, "out") == {"j", "in", "w1"}
    assert up(graph, "in") == {"w1", "w2"}
    assert up(graph, "out", causal=False) == {"j", "in", "w1", "w2"}
    assert down(graph, "in") == {"j", "out"}


def test_reading_before_writing_is_no_cause(graph):
    put(
        graph,
        ("write", "j", "out"),
        ("read", "j", "late"),
        ("read", "early", "out"),
        ("write", "early", "more"),
    )
    assert up(graph, "out") == {"j"}, "reads after the write have no effect"
    assert down(graph, "late") == {"j"}
    put(graph, ("read", "r", "f"), ("write", "w", "f"))
    assert down(graph, "f") == {"r"} and set(graph.trace(("job", "w"), direction="down")) == {
        ("job", "w"),
        ("file", "f"),
    }


def test_a_write_that_lasts_takes_in_what_is_read_meanwhile(graph):
    j = ("job", "j")
    graph.put_edge("write", j, ("file", "out"), time=10, until=30)
    graph.put_edge("read", j, ("file", "in"), time=20, until=25)
    graph.put_edge("read", j, ("file", "late"), time=31)
    graph.put_edge("write", ("job", "w"), ("file", "in"), time=24)
    graph.put_edge("write", ("job", "v"), ("file", "in"), time=26)
    assert up(graph, "out") == {"j", "in", "w"}
    assert down(graph, "in") == {"j", "out"} and down(graph, "late") == {"j"}


def test_every_version_of_a_relation_counts(graph):
    put(graph, ("write", "j", "out"), ("read", "j", "in"), ("write", "j", "out"), ("read", "j", "late"))
    assert up(graph, "out") == {"j", "in"}
    assert len(graph.trace(("file", "out")).edges) == 3
    assert up(graph, "out", at=2) == {"j"}


REPLACES = {"replaces": True}


def test_a_write_that_replaces_hides_older_writers_and_later_readers(graph):
    put(
        graph,
        ("write", "old", "f"),
        ("read", "early", "f"),
        ("write", "new", "f", REPLACES),
        ("write", "append", "f"),
        ("read", "late", "f"),
    )
    assert up(graph, "f") == {"new", "append"}
    assert up(graph, "f", at=2) == {"old"}
    descendants = graph.trace(("job", "old"), direction="down")
    assert set(descendants) == {("job", "old"), ("file", "f"), ("job", "early")}
    assert set(graph.trace(("job", "late"))) == {
        ("job", "late"),
        ("file", "f"),
        ("job", "new"),
        ("job", "append"),
    }
    assert set(graph.trace(("job", "early"))) == {("job", "early"), ("file", "f"), ("job", "old")}


def test_only_true_replaces(graph):
    for value in (1, "true", False, None):
        id = f"f{value!r}"
        put(graph, ("write", "old", id), ("write", "new", id, {"replaces": value}))
        assert up(graph, id) == {"old", "new"}


def test_a_program_is_a_cause_as_it_was_then(graph):
    put(
        graph,
        ("write", "build", "solver"),
        ("exe", "j", "solver"),
        ("write", "j", "out"),
        ("exe", "j", "later"),
    )
    assert up(graph, "out") == {"j", "solver", "build"}
    assert down(graph, "solver") == set(), "a program does not lead to its outputs"


def test_users_folders_and_other_relations_are_no_cause(graph):
    put(graph, ("write", "j", "out"))
    graph.put_edge("run", ("user", "0"), ("job", "j"), time=0)
    graph.put_edge("has", ("directory", "/data"), ("file", "out"), time=0)
    graph.put_edge("likes", ("job", "j"), ("file", "other"), time=0)
    assert set(graph.trace(("file", "out"), direction="both")) == {("file", "out"), ("job", "j")}


def test_data_of_every_kind_are_traced(graph):
    for kind in ("file", "directory", "field", "run", "commit", "own"):
        graph.put_edge("read", ("process", "p"), (kind, "in"), time=1)
        graph.put_edge("write", ("process", "p"), (kind, "out"), time=2)
    assert len(graph.trace(("own", "out"))) == 8 and len(graph.trace(("run", "in"), direction="down")) == 8


def test_at_and_since_bound_a_walk(story):
    assert set(story.trace(C, at=54)) == {C}
    assert set(story.trace(C, at=56)) == set(story.trace(C))
    assert set(story.trace(C, at=datetime(1970, 1, 1, 0, 0, 54, 999999))) == {C}
    assert set(story.trace(A, direction="down", since=41)) == set(story.trace(A, direction="down")) - {
        ONLY_READ
    }
    assert set(story.trace(A, direction="down", since=52)) == {A}


def test_a_loop_ends(graph):
    for n in range(20):
        put(graph, *[(kind, f"j{n}", f"f{(n + k) % 20}") for k, kind in enumerate(["read", "write"])])
    assert len(graph.trace(("file", "f0"), causal=False)) == 40
    assert len(graph.trace(("file", "f0"), direction="both")) > 2


def test_a_long_chain_is_walked_and_printed_in_bounds(graph):
    n = 3000
    jobs, files = [f"j{i}" for i in range(n)], [f"f{i}" for i in range(n + 1)]
    ends = {"src_type": "job", "src_id": jobs, "dst_type": "file"}
    graph.put_many(edges={"type": "read", **ends, "dst_id": files[:-1], "time": list(range(n))})
    graph.put_many(edges={"type": "write", **ends, "dst_id": files[1:], "time": [i + 0.5 for i in range(n)]})
    lineage = graph.trace(("file", f"f{n}"))
    assert len(lineage) == 2 * n + 1 and lineage.depths["file", "f0"] == 2 * n
    assert len(str(lineage).splitlines()) < 50 and "6001 vertices in all" in str(lineage)
    assert len(repr(lineage)) < 200 and len(lineage._repr_html_()) < 300_000


def test_wrong_options_are_refused(story):
    with pytest.raises(fst.Invalid, match='"up", "down" or "both"'):
        story.trace(C, direction="sideways")
    for bad in ({"depth": -1}, {"limit": -1}, {"depth": 1.5}):
        with pytest.raises((fst.Invalid, OverflowError, TypeError)):
            story.trace(C, **bad)
    with pytest.raises(fst.Invalid):
        story.trace("file:/data/c")


# -- the result


TREE = """\
file:/data/c
└─ wasWrittenBy process:make-c/3
   └─ belongs job:make-c
      ├─ contains process:make-c/0
      │  └─ read file:/data/a
      │     └─ wasWrittenBy job:write-a
      └─ contains process:make-c/1
         └─ read file:/data/b
            └─ wasWrittenBy job:write-b"""


def test_a_lineage_prints_as_a_tree(story):
    lineage = story.trace(C)
    assert str(lineage) == TREE
    assert repr(lineage) == "<fieldstone.Lineage of file:/data/c: 9 vertices, 8 relations>"
    down = str(story.trace(A, direction="down", depth=2)).splitlines()
    assert down[:2] == ["file:/data/a", "├─ wasReadBy job:only-read"] and len(down) == 6
    story.put_edge("write", JOB_OF_HTML, C)
    assert "&lt;b&gt;" in story.trace(C)._repr_html_()


def test_a_lineage_is_a_collection_of_vertices(story):
    lineage = story.trace(C)
    assert len(lineage) == len(list(lineage)) == len(lineage.vertices) == 9
    assert story.vertex(A) in lineage and A in lineage and Z not in lineage and "c" not in lineage
    assert [lineage.depths[vertex] for vertex in lineage] == sorted(lineage.depths.values())


def test_a_lineage_as_an_arrow_table(story):
    pa = pytest.importorskip("pyarrow")
    table = story.trace(C).to_arrow()
    names = ["type", "src_type", "src_id", "dst_type", "dst_id", "stamp", "time", "until", "user"]
    assert table.column_names == names and table.num_rows == 8
    last = table.slice(7).to_pylist()[0]
    assert (last["type"], last["src_id"], last["dst_id"]) == ("write", "make-c/3", "/data/c")
    assert (last["stamp"], last["until"]) == (55 * 10**9, 58 * 10**9)
    assert last["time"] == datetime.fromisoformat("1970-01-01T00:00:55Z") and table["until"].null_count == 7
    assert table["stamp"].type == pa.uint64()
    empty = story.trace(Z, at=1).to_arrow()
    assert empty.num_rows == 0 and empty.schema == table.schema


def test_a_lineage_as_a_networkx_graph(story):
    require("networkx", importlib.util.find_spec("networkx"), "networkx is not installed")
    import networkx as nx

    graph = story.trace(C).to_networkx()
    assert isinstance(graph, nx.MultiDiGraph) and graph.number_of_edges() == 8
    assert nx.ancestors(graph, A) == {WRITE_A, RANKS[0], MAKE_C}
    assert graph.edges[RANKS[3], C, 0]["type"] == "write"


# -- compared with an exhaustive walk


def test_a_program_is_what_it_was_when_its_execution_began(graph):
    model = ("file", "model")
    graph.put_edge("write", ("job", "compile-1"), model, props={"replaces": True}, time=1)
    graph.put_edge("exe", ("job", "run"), model, time=2, until=9)
    graph.put_edge("write", ("job", "compile-2"), model, props={"replaces": True}, time=4)
    graph.put_edge("write", ("job", "run"), ("file", "result"), time=8)
    assert up(graph, "result") == {"run", "model", "compile-1"}


def test_a_read_that_lasts_over_a_replacement_has_both(graph):
    graph.put_edge("write", ("job", "x"), ("file", "f"), props={"replaces": True}, time=1)
    graph.put_edge("read", ("job", "j"), ("file", "f"), time=2, until=10)
    graph.put_edge("write", ("job", "j"), ("file", "early"), time=5)
    graph.put_edge("write", ("job", "y"), ("file", "f"), props={"replaces": True}, time=8)
    graph.put_edge("write", ("job", "j"), ("file", "late"), time=20)
    for name in ("early", "late"):
        graph.put_edge("read", ("job", "k"), ("file", name), time=30)
    graph.put_edge("write", ("job", "k"), ("file", "sum"), time=40)
    assert up(graph, "early") == {"j", "f", "x"} and up(graph, "late") == {"j", "f", "y"}
    assert up(graph, "sum") == {"k", "early", "late", "j", "f", "x", "y"}


def walked(relations, root, upstream):
    """The result of an exhaustive walk by cause: every vertex at every time at which the walk reaches it."""
    reached, names, pending = set(), set(), [(root, 10**9 if upstream else 0)]
    while pending:
        here, time = state = pending.pop()
        if state in reached:
            continue
        reached.add(state)
        names.add(here)
        stamps = [b for kind, _, far, b, _, new in relations if kind == "write" and far == here and new]
        last = max((b for b in stamps if b <= time), default=-1)
        following = min((b for b in stamps if b > time), default=10**9)
        for kind, job, data, begin, end, _ in relations:
            if upstream and begin <= time:
                if kind == "write" and data == here and begin >= last:
                    pending.append((job, min(time, end)))
                elif kind in ("read", "exe") and job == here:
                    pending.append((data, min(time, begin if kind == "exe" else end)))
            elif not upstream and end >= time:
                if kind == "read" and data == here and begin <= following:
                    pending.append((job, max(time, begin)))
                elif kind == "write" and job == here:
                    pending.append((data, max(time, begin)))
    return names


def test_lineage_is_what_an_exhaustive_walk_finds(graph):
    dice = random.Random(11)
    for history in range(150):
        relations = []
        stamps = dice.sample(range(1, 60), 14)
        for begin in stamps:
            kind = dice.choice(["read", "read", "write", "write", "write", "exe"])
            job = ("job", f"{history}/{dice.randrange(3)}")
            data = ("file", f"{history}/{dice.randrange(3)}")
            end = begin + dice.choice([0, 0, 5, 30])
            new = kind == "write" and dice.random() < 0.5
            relations.append((kind, job, data, begin, end, new))
            props = {"replaces": True} if new else None
            graph.put_edge(kind, job, data, props=props, time=begin, until=end)
        for root in {relations[0][2], relations[-1][2], relations[0][1]}:
            for direction in ("up", "down"):
                found = set(graph.trace(root, direction=direction).vertices)
                assert found == walked(relations, root, direction == "up"), (root, direction, relations)

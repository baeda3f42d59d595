"""Visibility in the graph: flushes, transactions, older versions of a store, memory."""

from __future__ import annotations

import pickle
import time

import fieldstone as fst
import pytest
from keys_and_stores import run_python, sim

JOB, OUT = ("job", "17"), ("file", "/data/out.nc")
HEAD = """
    store = fst.open(sys.argv[1])
    g = store.graph
    def put(*ids): g.put_many(edges=[("write", ("job", "17"), ("file", id)) for id in ids])
    def files(g=g): return sorted(e.dst[1] for e in g.edges(("job", "17")))
    """


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


@pytest.fixture
def store(url):
    with fst.open(url) as store:
        yield store


def put(graph, *ids, **options):
    graph.put_many(edges=[("write", JOB, ("file", id)) for id in ids], **options)


def files(graph, **options):
    return sorted(e.dst[1] for e in graph.edges(JOB, **options))


# -- flush


def test_this_process_sees_it_at_once_and_all_at_flush(store, url):
    other = fst.open(url)
    store.archive(sim(0), b"x")
    store.flush()  # creates the store
    put(store.graph, "a")
    store.graph.define_edge("cites", reverse="isCitedBy")
    store.graph.put_edge("cites", JOB, OUT)
    assert files(store.graph) == ["/data/out.nc", "a"] and files(other.graph) == []
    assert run_python(f"{HEAD}\n    print(files())", url) == "[]\n"
    store.graph.flush()
    assert files(other.graph) == ["/data/out.nc", "a"] and other.graph.edges(OUT)[0].type == "isCitedBy"
    assert run_python(f"{HEAD}\n    print(files())", url) == "['/data/out.nc', 'a']\n"
    other.graph.delete_vertex(("file", "a"))
    assert files(other.graph) == ["/data/out.nc"] and len(files(store.graph)) == 2
    other.close()
    assert files(store.graph) == ["/data/out.nc"], "close flushes"


def test_fields_and_graph_are_flushed_together(store, url):
    store.archive(sim(1), b"x")
    put(store.graph, "a")
    reader = fst.open(url, mode="r") if store.flush() is None else None
    assert files(reader.graph) == ["a"] and len(list(reader.list())) == 1
    assert len(store.status().writers) == 1 and store.verify().ok


def test_a_store_of_nothing_but_a_graph(url):
    with fst.open(url) as store:
        put(store.graph, "a")
    with fst.open(url, mode="r") as reader:
        assert files(reader.graph) == ["a"] and list(reader.list()) == [] and reader.verify().ok


def test_an_exception_discards_what_was_not_flushed(url):
    with pytest.raises(RuntimeError), fst.open(url) as store:
        put(store.graph, "a")
        store.flush()
        put(store.graph, "b")
        raise RuntimeError
    assert files(fst.open(url, mode="r").graph) == ["a"]
    code = f"{HEAD}\n    put('c'); store.flush(); put('d'); raise RuntimeError"
    run_python(code, url, fails=True)
    run_python(f"{HEAD}\n    put('e')", url)
    assert files(fst.open(url, mode="r").graph) == ["a", "c", "e"], "a normal exit flushes"


def test_autoflush_flushes_what_was_put(url):
    store, other = fst.open(url, autoflush=0.01), fst.open(url)
    store.archive(sim(0), b"x")
    store.flush()
    put(store.graph, "a")
    ends = time.monotonic() + 10
    while not files(other.graph):
        assert time.monotonic() < ends, "a put alone triggers the flush"
        time.sleep(0.01)
    store.close()


def test_what_another_process_put_is_older_than_what_follows(store, url):
    ahead = 4_000_000_000
    code = f"{HEAD}\n    g.put_vertex('file', 'late', time={ahead})"
    run_python(code, url)
    assert store.graph.vertex(("file", "late")).stamp == ahead * 10**9
    assert store.graph.put_vertex(*OUT) > ahead * 10**9, "it is after a stamp that was read"


def test_a_mode_that_only_reads(store, url):
    with pytest.raises(fst.NotFound):
        fst.open(url, mode="r").graph.edges(JOB)
    put(store.graph, "a")
    store.flush()
    graph = fst.open(url, mode="r").graph
    for call in (
        lambda: graph.put_vertex(*OUT),
        lambda: graph.put_edge("write", JOB, OUT),
        lambda: graph.put_many(vertices=[(OUT,)]),
        lambda: graph.delete_vertex(JOB),
        lambda: graph.delete_edge("write", JOB, ("file", "a")),
        lambda: graph.define_vertex("x"),
        lambda: graph.define_edge("x", reverse="y"),
    ):
        with pytest.raises(fst.Denied):
            call()
    assert files(graph) == ["a"] and graph.stats().relations == 1


def test_a_closed_store_answers_nothing(url):
    store = fst.open(url)
    graph, (tx_graph, tx) = store.graph, (lambda tx: (tx.graph, tx))(store.transaction())
    put(graph, "a")
    lineage = graph.trace(JOB, direction="down")
    tx.abort()
    store.close()
    for call in (
        lambda: graph.edges(JOB),
        lambda: graph.vertex(JOB),
        lambda: graph.put_vertex(*OUT),
        lambda: graph.trace(JOB),
        lambda: graph.flush(),
        lambda: graph.stats(),
        lambda: tx_graph.edges(JOB),
        lambda: store.graph,
    ):
        with pytest.raises(fst.Invalid, match="closed"):
            call()
    assert len(lineage) == 2 and str(lineage) and lineage.edges[0].user, "results stay"


# -- older versions of a store


def test_an_older_version_of_the_store_is_what_was_known_then(store, url):
    graph = store.graph
    graph.put_vertex(*OUT, props={"n": 1}, time=100)
    store.flush()
    first = store.version
    graph.put_vertex(*OUT, props={"n": 2}, time=200)
    graph.put_vertex(*OUT, props={"n": 0}, time=50)
    put(graph, "a")
    store.flush()
    second = store.version
    graph.delete_vertex(OUT)
    store.flush()
    then, later = fst.open(url, at=first).graph, fst.open(url, at=second).graph
    assert then.vertex(OUT).props == {"n": 1} and files(then) == []
    assert then.vertex(OUT, at=250).props == {"n": 1}, "later puts were unknown"
    with pytest.raises(fst.NotFound):
        then.vertex(OUT, at=60)
    assert later.vertex(OUT).props == {"n": 2} and files(later) == ["a"]
    assert [later.vertex(OUT, at=at).props["n"] for at in (60, 150, 250)] == [0, 1, 2]
    with pytest.raises(fst.NotFound):
        store.graph.vertex(OUT)
    assert len(then.versions(OUT)) == 1 and len(later.versions(OUT)) == 3 and len(graph.versions(OUT)) == 4
    with pytest.raises(fst.Denied):
        then.put_vertex(*OUT)


# -- transactions


def test_a_transaction_is_all_or_nothing_over_fields_and_graph(store, url):
    other = fst.open(url)
    with store.transaction() as tx:
        tx.archive(sim(1), b"x")
        put(tx.graph, "a")
        tx.graph.define_edge("cites", reverse="isCitedBy")
        tx.graph.put_edge("isCitedBy", OUT, JOB)
        assert files(tx.graph) == ["/data/out.nc", "a"] and tx.graph.edges(OUT)[0].type == "isCitedBy"
        tx.flush()
        put(tx.graph, "b")
        put(store.graph, "outside")
        assert files(store.graph) == ["outside"] and files(tx.graph) == ["/data/out.nc", "a", "b", "outside"]
        assert files(other.graph) == [] and len(tx.graph.trace(("file", "a"))) == 2
        with pytest.raises(fst.NotFound):
            store.graph.trace(("file", "a"))
    assert files(store.graph) == ["/data/out.nc", "a", "b", "outside"]
    assert files(other.graph) == ["/data/out.nc", "a", "b"] and other.get(sim(1)) == b"x"
    assert other.graph.edges(OUT)[0].type == "isCitedBy"


def test_an_aborted_transaction_leaves_nothing(store, url):
    put(store.graph, "a")
    store.flush()
    with pytest.raises(RuntimeError), store.transaction() as tx:
        put(tx.graph, "b")
        tx.graph.delete_vertex(("file", "a"))
        tx.graph.define_vertex("x", static={"n": "int"})
        tx.flush()
        put(tx.graph, "c")
        assert files(tx.graph) == ["b", "c"]
        raise RuntimeError
    assert files(store.graph) == files(fst.open(url).graph) == ["a"]
    store.graph.define_vertex("x")
    with pytest.raises(fst.Invalid, match="aborted"):
        put(tx.graph, "d")


def test_a_process_joins_a_transaction_by_its_id(store, url):
    tx = store.transaction()
    code = f"""{HEAD}
    with store.transaction(id=sys.argv[2]) as tx:
        tx.graph.put_edge("write", ("job", "17"), ("file", sys.argv[3]))
        print(files(tx.graph))
    """
    put(tx.graph, "a")
    tx.flush()
    assert run_python(code, url, tx.id, "b") == "['a', 'b']\n"
    assert run_python(code, url, tx.id, "c") == "['a', 'b', 'c']\n"
    assert files(store.graph) == [] and files(tx.graph) == ["a", "b", "c"]
    tx.commit()
    assert files(store.graph) == files(fst.open(url).graph) == ["a", "b", "c"]


def test_the_graph_of_a_transaction_is_the_kind_relation(store, url):
    other, tx = fst.open(url).graph, store.transaction()
    tx.archive(sim(1), b"x")
    put(tx.graph, "a")
    tx.graph.put_vertex(*OUT, props={"n": 1})
    tx.activate("fields")
    assert files(other) == [] and len(list(store.list())) == 1
    tx.activate("relation")
    assert files(other) == ["a"] and other.vertex(OUT).props == {"n": 1}
    tx.deactivate("relation")
    assert files(other) == files(store.graph) == [] and files(tx.graph) == ["a"]
    put(tx.graph, "b")
    tx.activate("relation")
    tx.commit()
    assert files(other) == ["a", "b"]


def test_a_transaction_counts_when_it_is_put_and_not_when_it_is_decided(store):
    tx = store.transaction()
    tx.graph.put_vertex(*OUT, props={"by": "tx"}, time=100)
    store.graph.put_vertex(*OUT, props={"by": "store"}, time=200)
    store.flush()
    tx.commit()
    assert [v.props["by"] for v in store.graph.versions(OUT)] == ["store", "tx"]


# -- memory, pickling


def test_a_store_in_memory_has_a_graph_of_its_own(tmp_path):
    with fst.open("memory:") as store, fst.open("memory:") as other:
        put(store.graph, "a")
        store.flush()
        assert files(store.graph) == ["a"] and files(other.graph) == []
        with store.transaction() as tx:
            put(tx.graph, "b")
            assert files(store.graph) == ["a"]
        assert files(store.graph) == ["a", "b"]
        store.checkpoint(tmp_path / "kept")
    assert files(fst.open(tmp_path / "kept", mode="r").graph) == ["a", "b"]


def test_a_transaction_that_is_pickled_has_its_graph(store):
    tx = store.transaction()
    again = pickle.loads(pickle.dumps(tx))
    put(again.graph, "a")
    again.flush()
    assert files(store.graph) == [] and files(tx.graph) == ["a"]
    tx.commit()
    assert files(store.graph) == ["a"]

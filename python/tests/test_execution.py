"""Executions: their records in threads, tasks and processes, and the lineage that follows."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from contextlib import suppress

import fieldstone as fst
import numpy as np
import pytest


def key(variable: str, step: int = 0) -> dict[str, object]:
    return {"run": "a", "variable": variable, "step": step}


@pytest.fixture
def store():
    with fst.open("memory:") as store:
        yield store


def writers(store, variable: str, step: int = 0):
    (field,) = store.retrieve(key(variable, step))
    (commit,) = field._commits
    return [edge.dst for edge in store.graph.edges(("commit", commit), "wasWrittenBy")]


def test_what_is_archived_and_read_within_is_recorded(store):
    store.archive(key("before"), np.zeros(4))
    with fst.execution("regrid", store, params={"grid": "n80", "password": "hunter2"}) as x:
        data = store.get(key("before"))
        for step in range(10):
            store.archive(key("t", step), data)
    assert x.vertex[0] == "job" and x.vertex == x.job
    (write,) = store.graph.edges(x.vertex, "write")
    assert write.props == {"fields": 10, "bytes": 320}
    (read,) = (edge for edge in store.graph.edges(x.vertex, "read") if edge.dst[0] == "commit")
    assert read.props["fields"] == 1 and read.props["bytes"] == 32
    assert "before" in read.props["request"]
    props = store.graph.vertex(x.vertex).props
    assert props["name"] == "regrid" and props["exit"] == 0
    assert props["params"] == {"grid": "n80", "password": "***"}
    assert props["start"] < props["end"]
    assert [edge.dst[0] for edge in store.graph.edges(x.vertex, "exe")] == ["file"]
    store.archive(key("after"), np.zeros(4))
    store.flush()
    assert writers(store, "before") == [] == writers(store, "after")


def test_an_exception_is_recorded_and_passed_on(store):
    with pytest.raises(KeyError, match="oh"), fst.execution("regrid", store) as x:
        raise KeyError("oh")
    props = store.graph.vertex(x.vertex).props
    assert props["exit"] == 1 and props["error"] == "KeyError: 'oh'"
    with suppress(SystemExit), fst.execution("regrid", store) as x:
        sys.exit(3)
    assert store.graph.vertex(x.vertex).props["exit"] == 3


def test_executions_nest(store):
    with fst.execution("outer", store) as outer:
        store.archive(key("t", 0), b"0")
        with fst.execution("inner") as inner:
            store.archive(key("t", 1), b"1")
        store.archive(key("t", 2), b"2")
    assert inner.vertex[0] == "process" and inner.job == outer.vertex
    assert inner.vertex[1].startswith(outer.vertex[1] + "/")
    assert [writers(store, "t", step) for step in range(3)] == [
        [outer.vertex],
        [inner.vertex],
        [outer.vertex],
    ]
    assert [edge.dst for edge in store.graph.edges(outer.vertex, "contains")] == [inner.vertex]
    fields = store.graph.fields(outer.vertex)
    assert [e.key["step"] for e in fields] == ["0", "1", "2"]
    assert [e.key["step"] for e in store.graph.fields(inner)] == ["1"]


def test_a_function_is_an_execution_each_time_it_is_called(store):
    @fst.execution("double", params={"factor": 2})
    def double(s, step):
        """Doubles."""
        s.archive(key("t", step), b"x")
        return 2 * step

    assert double.__doc__ == "Doubles."
    assert [double(store, step) for step in range(3)] == [0, 2, 4]
    executions = [writers(store, "t", step)[0] for step in range(3)]
    assert len(set(executions)) == 3
    assert {store.graph.vertex(x).props["name"] for x in executions} == {"double"}

    @fst.execution(store=store)
    def named():
        store.archive(key("u"), b"x")

    named()
    assert store.graph.vertex(writers(store, "u")[0]).props["name"] == "named"

    @fst.execution("nowhere")
    def nowhere():
        raise AssertionError

    with pytest.raises(fst.Invalid, match="no store"):
        nowhere()


def test_tasks_of_one_thread_are_apart(store):
    async def part(n):
        with fst.execution(f"part {n}", store) as x:
            for step in range(5):
                store.archive(key(f"v{n}", step), b"x")
                await asyncio.sleep(0)
        return x.vertex

    async def everything():
        return await asyncio.gather(*(part(n) for n in range(4)))

    vertices = asyncio.run(everything())
    assert len(set(vertices)) == 4 and {kind for kind, _ in vertices} == {"job"}
    for n, vertex in enumerate(vertices):
        for step in range(5):
            assert writers(store, f"v{n}", step) == [vertex]

    @fst.execution("waits", store)
    async def waits():
        await asyncio.sleep(0)
        store.archive(key("w"), b"x")

    asyncio.run(waits())
    assert store.graph.vertex(writers(store, "w")[0]).props["name"] == "waits"


def test_threads_are_apart(store):
    found = {}

    def part(n):
        with fst.execution(f"part {n}", store) as x:
            found[n] = x.vertex
            for step in range(20):
                store.archive(key(f"v{n}", step), b"x")

    threads = [threading.Thread(target=part, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(3):
        assert all(writers(store, f"v{n}", step) == [found[n]] for step in range(20))

    two = fst.execution("two", store)
    with fst.execution("one", store):
        context = contextvars.Context()
        context.run(two.__enter__)
        thread = threading.Thread(target=lambda: store.archive(key("nobody"), b"x"))
        thread.start()
        thread.join()
        context.run(two.__exit__, None, None, None)
    assert writers(store, "nobody") == []


def test_threads_that_begin_at_once_are_apart():
    """A second execution that begins between another thread's look and its call takes nothing from it."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            with fst.open("memory:") as store:
                test_threads_are_apart(store)
    finally:
        sys.setswitchinterval(interval)


def test_a_thread_that_an_execution_starts_belongs_to_it(store):
    with fst.execution("starts", store) as x:
        thread = threading.Thread(target=lambda: store.archive(key("t"), b"x"))
        thread.start()
        thread.join()
    assert writers(store, "t") == [x.vertex]


def test_lineage_of_whatever_there_is(store):
    run = store.create_run("a")
    with fst.execution("model", store) as model:
        store.archive(key("t"), np.arange(4.0))
    with fst.execution("regrid", store) as regrid:
        store.archive(key("n"), store.get(key("t")) * 2)
    with fst.execution("tag", store) as tag:
        run.annotate("maximum", 6.0, variable="n", step=0)
    (field,) = store.retrieve(key("n"))
    lineage = field.lineage()
    assert lineage.root == ("commit", field._commits[0])
    assert lineage.executions == [regrid.vertex, model.vertex]
    (entry,) = store.list(key("n"))
    for x in (field, entry, entry.key, key("n"), "run=a,variable=n,step=0", fst.Request(key("n"))):
        assert store.graph.trace(x).vertices == lineage.vertices, x
    (hit,) = store.attributes(tag="maximum")
    assert {regrid.vertex, model.vertex, tag.vertex} <= set(hit.lineage().executions)
    assert {regrid.vertex, model.vertex, tag.vertex} >= set(run.lineage().executions) >= {regrid.vertex}
    (source,) = store.retrieve(key("t"))
    assert regrid.vertex in source.lineage(direction="down")
    assert field.lineage(depth=1).executions == [regrid.vertex]
    assert [e.key["variable"] for e in store.graph.fields(("commit", field._commits[0]))] == ["n"]
    with pytest.raises(fst.NotFound):
        store.graph.trace(key("absent"))
    store.archive(key("outside"), b"x")
    store.flush()
    assert len(store.graph.trace(key("outside"))) == 1


def test_whatever_is_traced_is_exported_compared_and_rebuilt_too(store):
    for variable, factor in (("n", 2), ("m", 3)):
        with fst.execution(f"model of {variable}", store, params={"factor": factor}) as x:
            store.archive(key(variable), np.arange(4.0) * factor)
    run = store.create_run("a")
    run.annotate("maximum", 9.0, variable="m", step=0)
    store.flush()
    (n,), (m,) = store.retrieve(key("n")), store.retrieve(key("m"))
    g, commit = store.graph, ("commit", m._commits[0])
    (entry,) = store.list(key("m"))
    (hit,) = store.attributes(tag="maximum")
    text, script = g.export(commit), g.script(commit)
    same = (m, entry, entry.key, key("m"), "run=a,variable=m,step=0", fst.Request(key("m")), m.lineage())
    for one in same:
        assert g.export(one) == text and g.script(one) == script, one
        rows = {(row.what, row.name): row.values for row in g.compare(n, one)}
        assert rows["argument", "factor"] == ["2", "3"], one
        assert g.compare(one, commit) == []
        assert g.trace(one).roots == [commit]
    assert "model of m" in g.export(hit, "dot") and g.script(x) == g.script(x.vertex)
    # All executions of several fields, not only the first.
    both = {"run": "a", "variable": ["n", "m"]}
    for several in (both, run):
        assert "model of n" in g.script(several) and "model of m" in g.script(several), several
    rows = {(row.what, row.name): row.values for row in g.compare(both, x)}
    assert rows["argument", "factor"] == ["2 | 3", "3"]
    assert len(g.trace(both).roots) == 2 and str(g.trace(both)).count("wasWrittenBy") == 2
    assert g.trace(g.trace(both, direction="down")).vertices == g.trace(both).vertices
    for wrong in (lambda: g.export(key("absent")), lambda: g.script(key("absent"))):
        with pytest.raises(fst.NotFound, match="absent"):
            wrong()


def test_lineage_goes_on_in_another_store(tmp_path):
    first, second = (str(tmp_path / name) for name in ("first", "second"))
    with fst.open(first) as source, fst.execution("model", source) as model:
        source.archive(key("t"), np.arange(4.0))
    with fst.open(second) as store:
        with fst.open(first, mode="r") as source, fst.execution("mean", store) as mean:
            store.archive(key("n"), source.get(key("t")))
        (field,) = store.retrieve(key("n"))
        for lineage in (field.lineage(), store.graph.trace(key("n")), store.graph.trace(mean)):
            assert lineage.executions == [mean.vertex, model.vertex]
            ((_, url, commits, left),) = lineage.stores
            assert (url, commits, left) == (first, 1, None)
        assert field.lineage(stores=False).executions == [mean.vertex]
        assert field.lineage(stores=False).stores == []
        text = store.graph.export(field, "dot")
        assert '"model' in text and field.lineage().export("dot") == text
        # Contents that another store has are given.
        assert "1 executions" in store.graph.script(field)
        (tmp_path / "first").rename(tmp_path / "gone")
        lineage = field.lineage()
        assert lineage.executions == [mean.vertex] and first in lineage.stores[0].left
        assert f"store {first} is not followed" in str(lineage)


def test_files_and_vertices_are_named(store, tmp_path):
    source, target = tmp_path / "in put.nc", tmp_path / "out.nc"
    source.write_bytes(b"12345")
    with fst.execution("x", store, reads=[source, ("run", "a")], writes=[tmp_path / "out*"]) as x:
        target.write_bytes(b"123")
    reads = {edge.dst: edge.props for edge in store.graph.edges(x.vertex, "read")}
    assert reads[("file", str(source))]["bytes"] == 5
    assert reads[("file", str(source))]["checksum"].startswith("xxh3:")
    assert ("run", "a") in reads
    (write,) = store.graph.edges(x.vertex, "write")
    assert write.dst == ("file", str(target))
    assert write.props["bytes"] == 3 and write.props["replaces"] is True
    assert ("file", str(source)) in store.graph.trace(("file", str(target)))
    with (
        pytest.warns(UserWarning, match="no file to read matches it"),
        fst.execution("x", store, reads="absent"),
    ):
        pass


def test_children_belong_to_the_job(tmp_path):
    url = str(tmp_path / "store")
    code = """
import sys, fieldstone as fst
with fst.open(sys.argv[1]) as store:
    store.archive({"run": "a", "variable": "t", "step": int(sys.argv[2])}, b"x")
    if sys.argv[2] == "0":
        with fst.execution("block") as x:
            store.archive({"run": "a", "variable": "t", "step": 2}, b"x")
"""
    with fst.open(url) as store:
        with fst.execution("parent", store) as x:
            for step in range(2):
                subprocess.run([sys.executable, "-c", code, url, str(step), "--password=hunter2"], check=True)
            reader = "import sys, fieldstone as fst; fst.open(sys.argv[1], mode='r').get('variable=t,step=0')"
            subprocess.run([sys.executable, "-c", reader, url], check=True)
        assert "FIELDSTONE_EXECUTION" not in os.environ
        processes = [edge.dst for edge in store.graph.edges(x.vertex, "contains")]
        assert len(processes) == 4
        assert {writers(store, "t", step)[0] for step in range(3)} < set(processes)
        block = writers(store, "t", 2)[0]
        assert store.graph.vertex(block).props["name"] == "block"
        assert store.graph.vertex(block).props["parent"] == writers(store, "t", 0)[0][1]
        readers = [p for p in processes if store.graph.edges(p, "read")]
        assert len(readers) == 1, "only the one that read"
        assert [e.key["step"] for e in store.graph.fields(x)] == ["0", "1", "2"]
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hunter2" not in stored


def test_an_execution_is_begun_once_and_asked_while_it_has(store):
    x = fst.execution("x", store)
    with pytest.raises(fst.Invalid, match="not begun"):
        _ = x.vertex
    with x, pytest.raises(fst.Invalid, match="begun already"):
        x.__enter__()
    with pytest.raises(fst.Invalid, match="reads holds 3"):
        fst.execution("x", store, reads=[3])


def test_the_record_needs_a_store_that_may_be_written_to(tmp_path):
    url = str(tmp_path / "store")
    with fst.open(url) as store:
        store.archive(key("t"), b"x")
    with pytest.raises(fst.Denied), fst.execution("x", fst.open(url, mode="r")):
        pass


def test_a_forked_child_is_a_process_of_the_job(tmp_path):
    url = str(tmp_path / "store")
    with fst.open(url) as store, fst.execution("parent", store) as x:
        store.archive(key("t", 0), b"parent")
        child = os.fork()
        if child == 0:
            try:
                store.archive(key("t", 1), b"child")
                store.flush()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    with fst.open(url, mode="r") as store:
        assert writers(store, "t", 0) == [x.vertex]
        (process,) = writers(store, "t", 1)
        assert process[0] == "process" and process[1].endswith(f"-{child}")
        assert ("process", process[1]) in [e.dst for e in store.graph.edges(x.vertex, "contains")]

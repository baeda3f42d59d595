"""Threads, forks, processes and users put into one graph at the same time."""

from __future__ import annotations

import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fieldstone as fst
import pytest
from conftest import require
from keys_and_stores import run_python

JOB = ("job", "17")
HEAD = """
    store = fst.open(sys.argv[1])
    g = store.graph
    def put(*ids): g.put_many(edges=[("write", ("job", "17"), ("file", id)) for id in ids])
    def files(g=g): return sorted(e.dst[1] for e in g.edges(("job", "17")))
    """


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


def files(graph, **options):
    return sorted(e.dst[1] for e in graph.edges(JOB, **options))


def test_threads_put_and_read_at_once(url):
    store = fst.open(url)
    graph = store.graph
    barrier = threading.Barrier(4)

    def work(thread):
        barrier.wait()
        for n in range(50):
            stamp = graph.put_edge("write", ("job", str(thread)), ("file", f"{thread}-{n}"), props={"n": n})
            assert len(graph.edges(("job", str(thread)), limit=n + 2)) == n + 1
            (edge,) = graph.edges(("file", f"{thread}-{n}"))
            assert edge.props == {"n": n} and edge.stamp == stamp
            if n % 20 == thread:
                store.flush()
        return [e.stamp for e in graph.edges(("job", str(thread)))]

    with ThreadPoolExecutor(4) as pool:
        stamps = [stamp for part in pool.map(work, range(4)) for stamp in part]
    assert len(set(stamps)) == 200, "each stamp is unique"
    store.close()
    reader = fst.open(url, mode="r").graph
    assert [len(reader.edges(("job", str(n)))) for n in range(4)] == [50] * 4


@pytest.mark.parametrize("end", ["store.flush()", "store.close()", "pass"])
def test_a_forked_child_flushes_only_its_own(url, end):
    code = f"""{HEAD}
    store.archive("run=a,variable=t", b"x")
    store.flush()  # creates the store
    put("parent")
    child = os.fork()
    if child == 0:
        assert files() == [], files()
        put("child")
        assert files() == ["child"]
        {end}
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert files(fst.open(sys.argv[1]).graph) == ["child"]
    assert files() == ["child", "parent"]
    put("more")
    """
    run_python(code, url)
    assert files(fst.open(url, mode="r").graph) == ["child", "more", "parent"]


def test_processes_put_at_once(url):
    code = f"""{HEAD}
    for n in range(30):
        put(sys.argv[2] + str(n))
        if n % 7 == 0: store.flush()
    """
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: run_python(code, url, name), "abc"))
    graph = fst.open(url, mode="r").graph
    assert files(graph) == sorted(f"{name}{n}" for name in "abc" for n in range(30))
    assert len(graph.edges(JOB, versions=True)) == 90


TWO_USERS = """
import traceback
root = sys.argv[1]
F, OWN, OTHER = ("file", "/f"), ("job", "1001"), ("job", "1002")

def act(uid, code):
    child = os.fork()
    if child == 0:
        os.setgid(uid); os.setuid(uid); os.umask(0o22)
        try:
            g = fst.open(root + "/S").graph
            exec(code, {**globals(), "g": g})
            g.store.close()
            os._exit(0)
        except BaseException:
            traceback.print_exc(); os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, code

def denied(call):
    try: call()
    except fst.Denied as error: assert "1001" in str(error), error
    else: raise AssertionError("not denied")

act(1001, "g.put_vertex(*F, props={'by': 1001}); g.put_edge('write', OWN, F)")
act(1002, '''
assert g.vertex(F).user == g.edges(F)[0].user == "1001" and g.vertex(F).props == {"by": 1001}
denied(lambda: g.delete_vertex(F))
denied(lambda: g.delete_edge("write", OWN, F))
g.put_edge("write", OTHER, F)
denied(lambda: g.delete_many(vertices=[OTHER], edges=[("write", OWN, F)]))
assert len(g.edges(F)) == 2 and {e.user for e in g.edges(F)} == {"1001", "1002"}
g.put_vertex(*F, props={"by": 1002})
''')
act(1001, '''
assert g.vertex(F).props == {"by": 1002} and len(g.trace(F)) == 3
g.put_vertex(*F, props={"by": "1001 again"})
g.delete_vertex(F)
''')
act(1002, '''
assert g.vertex(F).props == {"by": 1002}, "only the own versions of who deleted it are gone"
assert [e.dst for e in g.edges(F)] == [OTHER] and len(g.edges(F, versions=True)) == 2
assert len(g.trace(F)) == 2, "nobody wipes another's trail"
g.delete_vertex(F)
assert g.edges(F) == []
''')
"""


def test_who_put_a_version_deletes_it():
    require("root", os.geteuid() == 0, "only root acts as two users")
    with tempfile.TemporaryDirectory() as root:
        for name in ("", "S", "S/logs", "S/data", "S/boards"):
            (Path(root) / name).mkdir(exist_ok=True)
            os.chmod(Path(root) / name, 0o1777)
        run_python(TWO_USERS, root)

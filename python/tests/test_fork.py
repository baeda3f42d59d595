"""A forked child is its own writer: its exit flushes what it archived and nothing of its parent's."""

from __future__ import annotations

import fieldstone as fst
import pytest
from keys_and_stores import run_python, sim, steps

HEAD = """
    store = fst.open(sys.argv[1])
    def archive(step): store.archive({"run": "a", "variable": "t", "step": step}, b"%d" % step)
    """


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


@pytest.mark.parametrize("flush", ["store.flush()", "store.close()", "pass"])
def test_a_forked_child_flushes_only_its_own(url, flush):
    code = f"""{HEAD}
    archive(1)
    child = os.fork()
    if child == 0:
        archive(2)
        {flush}
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert [e.key["step"] for e in fst.open(sys.argv[1]).list()] == ["2"]
    archive(3)
    """
    run_python(code, url)
    store = fst.open(url, mode="r")
    assert steps(store) == ["1", "2", "3"] and store.retrieve({}).read() == b"123"
    assert len(store.status().writers) == 2 and store.verify().ok


def test_a_child_that_fails_discards_its_own_and_the_parent_flushes(url):
    code = f"""{HEAD}
    archive(1)
    child = os.fork()
    if child == 0:
        archive(2)
        raise RuntimeError("the child fails")
    assert os.waitpid(child, 0)[1] != 0
    """
    run_python(code, url)
    assert steps(fst.open(url, mode="r")) == ["1"]


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes_of_multiprocessing_flush_at_their_end(tmp_path, url, method):
    script = tmp_path / "script.py"
    script.write_text("""
import multiprocessing, sys
import fieldstone as fst
def work(url, store, step):
    store = store or fst.open(url)
    store.archive({"run": "a", "variable": "t", "step": step}, b"%d" % step)
    if step == 3:
        raise RuntimeError("the child fails")
if __name__ == "__main__":
    url, method = sys.argv[1:]
    store = fst.open(url)
    store.archive({"run": "a", "variable": "t", "step": 0}, b"0")
    context = multiprocessing.get_context(method)
    shared = store if method == "fork" else None
    children = [context.Process(target=work, args=(url, shared, step)) for step in (1, 2, 3)]
    for child in children: child.start()
    for child in children: child.join()
    assert [child.exitcode for child in children] == [0, 0, 1]
    found = [e.key["step"] for e in fst.open(url).list()]
    assert found == ["1", "2"], found
""")
    run_python(
        "import subprocess; subprocess.run([sys.executable, *sys.argv[1:]], check=True)", script, url, method
    )
    store = fst.open(url, mode="r")
    assert steps(store) == ["0", "1", "2"] and store.get(sim(2)) == b"2"


def test_a_retrieve_made_before_a_fork_is_read_by_both(url):
    code = f"""{HEAD}
    archive(1); store.flush()
    fields = store.retrieve("step=1")
    child = os.fork()
    assert fields.read() == b"1" and fields[0].key["step"] == "1"
    if child == 0: os._exit(7)
    assert os.waitpid(child, 0)[1] == 7 << 8
    """
    run_python(code, url)


def test_a_child_queries_while_threads_of_its_parent_do(url):
    """A thread may be anywhere in SQLite at the fork: SQLite's mutexes must be free in the child."""
    code = f"""{HEAD}
    import signal, threading, time
    run = store.create_run("a", exist_ok=True)
    store.create_tag("q", type="int")
    run.annotate("q", 0); store.flush(); list(store.attributes())
    stop = False
    def work():
        n = 0
        while not stop:
            n += 1
            run.annotate("q", n); store.flush(); list(store.attributes(tag="q"))
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads: thread.start()
    for k in range(25):
        time.sleep(0.003 * (k % 7))
        child = os.fork()
        if child == 0:
            signal.alarm(40)
            before = [hit.value for hit in store.attributes(tag="q")]
            run.annotate("q", -1 - k); store.flush()
            after = [hit.value for hit in store.attributes(tag="q")]
            os._exit(0 if len(before) == len(after) == 1 else 3)
        status = os.waitpid(child, 0)[1]
        assert status == 0, (k, status)
    stop = True
    for thread in threads: thread.join()
    assert store.verify().ok
    """
    run_python(code, url)


def test_a_forked_child_of_a_streaming_process_gets_an_error_and_queries_again(url):
    code = f"""{HEAD}
    run = store.create_run("a", exist_ok=True)
    store.create_tag("q", type="int")
    run.annotate_many("q", np.arange(5000), step=np.arange(5000)); store.flush()
    hits = iter(store.attributes(tag="q"))
    first = next(hits)
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(40)
        try:
            rest = sum(1 for _ in hits)
            correct = rest == 4999
        except fst.Unavailable as error:
            correct = "forked" in str(error)
        again = len(store.attributes(tag="q"))
        os._exit(0 if correct and again == 5000 else 3)
    assert os.waitpid(child, 0)[1] == 0
    assert sum(1 for _ in hits) == 4999
    """
    run_python(code, url)

"""A reader next to a writer: new fields, following, waiting, and the state of a run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from fieldstone.errors import Conflict, Invalid, NotFound

PROGRAM = Path(sys.executable).with_name("fieldstone")


def put(store: fst.Store, step: int, value: float = 0.0, run: str = "a") -> None:
    store.archive({"run": run, "variable": "t", "step": step}, np.full(3, value))
    store.flush()


def steps(entries) -> list[int]:
    return [entry.key.typed["step"] for entry in entries]


# -- new fields


def test_only_what_became_visible_after_a_version_is_listed(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store, fst.open(tmp_path / "s") as other:
        put(store, 0)
        first = store.version
        assert steps(store.list(since=first)) == []
        put(other, 1)
        put(store, 2)
        put(other, 2, 1.0)  # another writer's newer version of it
        second = store.version
        assert steps(store.list(since=first)) == [1, 2]
        put(store, 0, 5.0)
        assert steps(store.list(since=second)) == [0]
        assert steps(store.list(since=first)) == [0, 1, 2]
        assert steps(store.list("step=1/2", since=first)) == [1, 2]
        assert steps(store.list(["step=2", "step=0"], since=first)) == [2, 0]
        # Merged segments hold old and new commits.
        for step in range(3, 40):
            put(store, step)
        assert steps(store.list(since=second)) == [0, *range(3, 40)]
        third = store.version
        store.remove("step=0")
        store.flush()
        assert steps(store.list(since=third)) == []  # a removal leaves nothing to list
        with pytest.raises(Invalid, match="version"):
            store.list(since="vAA")
        with fst.open(tmp_path / "other") as stranger:
            put(stranger, 0)
            with pytest.raises(NotFound):
                store.list(since=stranger.version)
        with pytest.raises(Invalid):
            store.list(since=third, masked=True)


def test_pieces_and_transactions_are_new_when_they_show(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        put(store, 0)
        key = {"run": "a", "variable": "u", "step": 0}
        store.archive(key, np.zeros(2), start=0, shape=4)
        store.flush()
        seen = store.version
        store.archive(key, np.zeros(2), start=2, shape=4)
        store.flush()
        (entry,) = store.list(since=seen)
        assert entry.complete and entry.key["variable"] == "u"
        tx = store.transaction()
        tx.archive({"run": "a", "variable": "v", "step": 0}, b"x")
        tx.flush()
        prepared = store.version
        assert [e.key["variable"] for e in store.list(since=seen)] == ["u"]
        tx.commit()
        # Its commit is older than the version; its decision is not.
        assert [e.key["variable"] for e in store.list(since=prepared)] == ["v"]


def test_random_histories_list_what_differs(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    with fst.open(tmp_path / "s") as one, fst.open(tmp_path / "s") as two:
        history: list[tuple[str, dict[int, float]]] = []
        now: dict[int, float] = {}
        put(one, 0, -1.0)
        now[0] = -1.0
        for n in range(60):
            history.append((one.version, dict(now)))
            store = (one, two)[rng.integers(2)]
            for _ in range(rng.integers(1, 4)):
                step = int(rng.integers(12))
                if step in now and rng.integers(5) == 0:
                    store.remove({"run": "a", "variable": "t", "step": step})
                    store.flush()
                    del now[step]
                else:
                    put(store, step, float(n))
                    now[step] = n + rng.random() * 1e-9  # each write differs from all before
            version, then = history[rng.integers(len(history))]
            new = sorted(step for step, value in now.items() if then.get(step) != value)
            assert steps(one.list(since=version)) == new, n


# -- waiting and following


def test_a_wait_ends_with_a_flush_or_its_time(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store, fst.open(tmp_path / "s") as writer:
        put(store, 0)
        seen = store.version
        begun = time.monotonic()
        assert store.wait(seen, 0.1) is False
        assert time.monotonic() - begun >= 0.1
        thread = threading.Timer(0.1, put, (writer, 1))
        thread.start()
        assert store.wait(seen, 60) is True
        thread.join()
        assert store.wait(seen) is True and store.wait(store.version, 0) is False
        for wrong in (-1, float("nan")):
            with pytest.raises(Invalid, match="timeout"):
                store.wait(seen, wrong)
        with pytest.raises(Invalid):
            store.wait("no version")


def test_ctrl_c_ends_a_wait(tmp_path: Path) -> None:
    script = (
        "import fieldstone as fst, sys\n"
        "store = fst.open(sys.argv[1])\n"
        "store.archive('run=a,variable=t', b'x'); store.flush(); print('waits', flush=True)\n"
        "store.wait()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "s")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout and child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=120)
    assert b"KeyboardInterrupt" in errors


def test_fields_are_followed_as_they_become_visible(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as reader, fst.open(tmp_path / "s") as writer:
        put(writer, 0)
        seen = reader.version

        def write() -> None:
            for step in range(1, 6):
                put(writer, step)
                put(writer, step, run="other")
                time.sleep(0.02)

        thread = threading.Thread(target=write)
        thread.start()
        assert steps(reader.follow("run=a", since=seen, timeout=1)) == [1, 2, 3, 4, 5]
        thread.join()
        assert list(reader.follow(timeout=0.05)) == []


def test_the_program_follows_too(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        put(store, 0)
        seen = store.version
        put(store, 1)
        url = str(tmp_path / "s")
        told = subprocess.run(
            [PROGRAM, "list", url, "--since", seen], capture_output=True, text=True, check=True
        )
        assert told.stdout == "{run=a}{variable=t}{step=1}\n"
        following = [PROGRAM, "list", url, "run=a", "--follow", "--since", seen, "--jsonl", "--timeout", "20"]
        child = subprocess.Popen(following, stdout=subprocess.PIPE, text=True)
        assert child.stdout
        lines = [json.loads(child.stdout.readline())]
        for step in (2, 3):
            put(store, step)
            lines.append(json.loads(child.stdout.readline()))  # seen before the next one is written
        child.kill()
        child.wait()
        assert [int(line["key"]["step"]) for line in lines] == [1, 2, 3]
        wrong = subprocess.run([PROGRAM, "list", url, "--follow", "--json"], capture_output=True, text=True)
        assert wrong.returncode == 2 and "--jsonl" in wrong.stderr


# -- the state of a run


def test_a_block_says_how_its_run_goes(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store, fst.open(tmp_path / "s") as reader:
        with store.create_run("good") as run:
            assert run.state == reader.run("good").state == "running"
            store.archive({"run": "good", "variable": "t", "step": 0}, b"x")
        assert run.state == reader.run("good").state == "finished"
        assert reader.run("good").failure is None
        assert reader.axes("run=good") == {"run": ["good"], "variable": ["t"], "step": ["0"]}
        with pytest.raises(ZeroDivisionError), store.create_run("bad") as run:
            store.archive({"run": "bad", "variable": "t", "step": 0}, b"x")
            _ = 1 / 0
        bad = reader.run("bad")
        assert (bad.state, bad.failure) == ("failed", "ZeroDivisionError: division by zero")
        assert "bad" not in reader.axes()["run"] and store.unflushed == 1  # begin and fail did not flush it
        store.discard()
        run.begin()
        assert reader.run("bad").state == "running"
        run.fail("by hand")
        assert reader.run("bad").failure == "by hand"
        store.rebuild()
        assert store.run("good").state == "finished" and store.run("bad").state == "failed"
        plain = store.create_run("plain")
        assert plain.state == "unknown"


def test_a_run_whose_writer_is_gone_does_not_run(tmp_path: Path) -> None:
    url = str(tmp_path / "s")
    script = (
        "import fieldstone as fst, os, sys\n"
        "store = fst.open(sys.argv[1]); run = store.create_run('a'); run.begin()\n"
        "print(run.state, flush=True); sys.stdin.read(); os._exit(9)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout and child.stdout.readline() == "running\n"
    with fst.open(url) as store:
        run = store.run("a")
        assert run.state == "running"
        child.communicate()
        assert run.state == "unknown"
        run.finish()
        assert store.run("a").state == "finished"


def test_states_in_transactions_and_of_undeclared_runs(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        put(store, 0)
        with pytest.raises(NotFound, match="only through its fields"):
            store.run("a").finish()
        with store.transaction() as tx:
            run = tx.create_run("b")
            run.finish()
            with pytest.raises(NotFound):
                store.run("b")
        assert store.run("b").state == "finished"
        with pytest.raises((Conflict, ZeroDivisionError)), store.transaction() as tx:
            tx.run("b").fail("never")
            _ = 1 / 0
        assert store.run("b").state == "finished"

"""The effect of an archive whose key already has a field: by call, run, handle and store."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from fieldstone.errors import Conflict, Invalid

KEY = {"run": "a", "variable": "t", "step": 0}
PROGRAM = Path(sys.executable).with_name("fieldstone")


def refused(call, *words: str) -> None:
    with pytest.raises(Conflict) as caught:
        call()
    for word in ("step=0", "is there already" if not words else words[0]):
        assert word in str(caught.value), caught.value
    assert 'if_exists="new"' in caught.value.hint


def test_a_call_refuses_what_is_there(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, np.zeros(3), if_exists="error")
        refused(lambda: store.archive(KEY, np.ones(3), if_exists="error"), "archived here before")
        store.flush()
        refused(lambda: store.archive(KEY, np.ones(3), if_exists="error"))
        refused(lambda: store.create_field(KEY, "f8", 3, if_exists="error"))
        refused(lambda: store.archive_many([KEY], [b"x"], if_exists="error"))
        refused(lambda: store.archive(KEY, np.ones(1), start=0, shape=3, if_exists="error"))
        store.archive(KEY, np.ones(3))
        store.archive(KEY, np.full(3, 2.0), if_exists="new")
        store.flush()
        assert store.get(KEY).tolist() == [2, 2, 2]
        with pytest.raises(Invalid, match="if_exists"):
            store.archive(KEY, b"x", if_exists="never")


def test_a_handle_refuses_and_a_call_may_say_otherwise(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s", if_exists="error") as store:
        store.archive(KEY, np.zeros(3))
        store.flush()
        refused(lambda: store.archive(KEY, np.ones(3)))
        copy = pickle.loads(pickle.dumps(store))
        refused(lambda: copy.archive(KEY, np.ones(3)))
        store.archive(KEY, np.ones(3), if_exists="new")
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, np.full(3, 2.0))


def test_the_script_that_runs_again_by_mistake(tmp_path: Path) -> None:
    """A real case: writing steps 0 to 2 of 5 again made one run of two executions."""

    def script(steps: int) -> None:
        with fst.open(tmp_path / "s", if_exists="error") as store:
            for step in range(steps):
                store.archive({**KEY, "step": step}, np.full(2, steps))
                store.flush()

    script(5)
    refused(lambda: script(3))
    with fst.open(tmp_path / "s") as store:
        assert {field.array()[0] for field in store.retrieve()} == {5}


def test_a_flush_looks_again(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s", if_exists="error") as one, fst.open(tmp_path / "s") as two:
        one.archive(KEY, np.zeros(3))
        one.archive({**KEY, "step": 1}, np.zeros(3))
        two.archive(KEY, np.ones(3))
        two.flush()
        refused(one.flush)
        assert one.unflushed == 2 and two.axes()["step"] == ["0"]
        one.discard()
        one.archive({**KEY, "step": 1}, np.zeros(3))
        one.flush()
        assert two.axes()["step"] == ["0", "1"]
        with pytest.raises(Conflict), one.transaction() as tx:
            tx.archive({**KEY, "step": 2}, b"x")
            two.archive({**KEY, "step": 2}, b"y")
            two.flush()
        one.discard()
        assert one.get({**KEY, "step": 2}) == b"y"


def test_a_run_refuses_for_all_its_writers(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("a", if_exists="error")
        run.create_variable("t", "f8", (4,))
        run.write("t", 0, np.zeros(2), start=0)
        run.write("t", 0, np.zeros(2), start=2)
        store.flush()
    with fst.open(tmp_path / "s") as store:
        run = store.run("a")
        refused(lambda: run.write("t", 0, np.ones(4)))
        refused(lambda: run.write("t", 0, np.ones(2), start=1))
        run.write("t", 0, np.ones(4), if_exists="new")
        store.flush()
        # A second declaration must be the same; leaving the option out agrees.
        store.create_run("a", exist_ok=True)
        with pytest.raises(Conflict, match="existing fields"):
            store.create_run("a", if_exists="new", exist_ok=True)
        # It survives the loss of the engine.
        store.close()
    with fst.open(tmp_path / "s") as store:
        store.rebuild()
        refused(lambda: store.run("a").write("t", 0, np.ones(4)))
        other = store.create_run("b", if_exists="new")
        other.write("t", 0, np.zeros(2))
        store.set_if_exists("error")
        other.write("t", 0, np.ones(2))


def test_a_store_refuses_for_all(tmp_path: Path) -> None:
    url = str(tmp_path / "s")
    subprocess.run([PROGRAM, "init", url, "--if-exists", "error"], check=True, capture_output=True)
    with fst.open(url) as store:
        store.archive(KEY, np.zeros(3))
        store.flush()
        refused(lambda: store.archive(KEY, np.ones(3)))
        refused(lambda: store.run("a").write("t", 0, np.ones(3)))
    again = [PROGRAM, "archive", url, "run=a,variable=t,step=0"]
    ended = subprocess.run(again, input=b"x", capture_output=True)
    assert ended.returncode == 4 and b"is there already" in ended.stderr
    with fst.open(url, if_exists="new") as store:
        store.archive(KEY, np.ones(3))
    with fst.open(url) as store:
        refused(lambda: store.archive(KEY, np.ones(3)))
        # A job of arrays also refuses the step; writing a group again to other files does not.
        with store.arrays("b") as job:
            group = job.group("g", {"x": "f8"}, shape=(4,))
            group.write("x", 0, np.arange(4.0))
            job.flush()
        with pytest.raises(Conflict, match="step=0"), store.arrays("b") as job:
            job.group("g").write("x", 0, np.arange(4.0))
            job.flush()
    rewritten = subprocess.run([PROGRAM, "arrays", url, "b", "--rewrite"], capture_output=True, text=True)
    assert rewritten.returncode == 0, rewritten.stderr
    with fst.open(url) as store:
        store.set_if_exists("new")
        store.archive(KEY, np.ones(3))
    with fst.open(url) as store:
        store.archive(KEY, np.full(3, 7.0))
        store.flush()
        assert store.get(KEY).tolist() == [7, 7, 7]
        assert store.verify().ok


def test_a_restart_under_another_attempt_writes_what_the_dead_one_left_unfinished(tmp_path: Path) -> None:
    url = tmp_path / "s"

    def piece(attempt: str, start: int) -> None:
        with fst.open(url, attempt=attempt, if_exists="error") as store:
            store.archive(KEY, np.full(2, float(attempt)), start=start, shape=4)

    piece("1", 0)
    refused(lambda: piece("1", 0))
    piece("2", 0)
    piece("2", 2)
    refused(lambda: piece("3", 0), "attempt 2")
    with fst.open(url) as store:
        assert store.get(KEY).tolist() == [2, 2, 2, 2]

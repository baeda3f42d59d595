"""Attempts of a job: a reader sees one attempt of each field, even while stragglers of a dead one go on."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import fieldstone as fst
import numpy as np
import pyarrow as pa
import pytest
from conftest import LONG
from fieldstone import _native
from fieldstone.errors import Conflict, Denied, Invalid, NotFound
from mpi_job import mpirun

HEAD = """
import sys
import numpy as np
import fieldstone as fst
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank = comm.rank
"""
ROWS, STEPS = 24, 12
VARIABLES = ("p", "t")


def declared(url: str) -> None:
    with fst.open(url) as store:
        run = store.create_run("plate")
        for name in VARIABLES:
            run.create_variable(name, "f8", (ROWS, 2), dims=("y", "x"))


def rank_of(url: str, attempt: str, rank: int, ranks: int, first: int, began: int | None = None) -> None:
    """A rank writes its rows of each variable at each step, with one flush for each, like a model."""
    value = float(attempt)
    rows = np.array_split(np.arange(ROWS), ranks)[rank]
    with fst.open(url, attempt=attempt) as store:
        run = store.run("plate")
        for step in range(first, STEPS):
            for name in VARIABLES:
                run.write(name, step, np.full((len(rows), 2), value), start=(int(rows[0]), 0))
                store.flush()
            if began is not None:
                os.write(began, b".")


def fork(target, *arguments) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            target(*arguments)
            status = 0
        finally:
            os._exit(status)
    return child


def judge(url: str) -> dict[int, set[float]]:
    """The attempts of each step's complete fields; no field may mix two."""
    seen: dict[int, set[float]] = {}
    with fst.open(url, "r") as newest:
        version = newest.version
    with fst.open(url, at=version) as store:
        for entry in store.list("run=plate"):
            if entry.complete:
                values = {float(v) for v in np.unique(store.get(entry.key))}
                assert len(values) == 1, f"{entry.key} holds two attempts: {values}"
                assert {str(int(v)) for v in values} == {entry.attempt}
                seen.setdefault(entry.key.typed["step"], set()).update(values)
        last = store.run("plate").last_step()
        assert last is None or len(seen[last]) == 1
    return seen


@pytest.mark.parametrize("seed", range(100 if LONG else 16))
def test_a_job_that_is_killed_and_started_again_mixes_nothing(tmp_path: Path, seed: int) -> None:
    """Four ranks are killed at a seeded moment, except one that hangs; three others restart from the last
    complete step; then the hanging rank also continues.
    """
    rng, url = random.Random(seed), str(tmp_path / "plate.store")
    declared(url)
    ranks = [fork(rank_of, url, "1", rank, 4, 0) for rank in range(4)]
    time.sleep(rng.random() * 0.25)
    straggler = ranks.pop(rng.randrange(4))
    os.kill(straggler, signal.SIGSTOP)
    for rank in ranks:
        os.kill(rank, signal.SIGKILL)
        os.waitpid(rank, 0)
    judge(url)
    with fst.open(url, "r") as store:
        last = store.run("plate").last_step()
    first = 0 if last is None else last + 1
    heard, began = os.pipe()
    again = [fork(rank_of, url, "2", rank, 3, first, began) for rank in range(3)]
    os.close(began)
    os.read(heard, 1)  # empty if the first attempt had written everything
    os.close(heard)
    judge(url)
    os.kill(straggler, signal.SIGCONT)
    while again:
        judge(url)
        child, status = os.waitpid(again[-1], os.WNOHANG)
        if child:
            assert status == 0
            again.pop()
    assert os.waitpid(straggler, 0)[1] == 0
    seen = judge(url)
    assert sorted(seen) == list(range(STEPS))
    assert all(seen[step] == {2.0} for step in range(first, STEPS))
    with fst.open(url, "r") as store:
        assert store.run("plate").last_step() == STEPS - 1
        assert store.verify().ok


def test_an_attempt_is_named_everywhere(tmp_path: Path) -> None:
    url = str(tmp_path / "s")
    for attempt, value in (("one", 1.0), ("two", 2.0), (None, 3.0)):
        with fst.open(url, attempt=attempt) as store:
            store.archive(f"run=a,variable=t,step={int(value)}", np.full(3, value))
    with fst.open(url) as store:
        assert [entry.attempt for entry in store.list()] == ["one", "two", None]
        assert pa.table(store.list()).column("attempt").to_pylist() == ["one", "two", None]
        writers = store.status().writers
        assert {writer.attempt for writer in writers} == {"one", "two", None}
        assert store.status().format == 2
        # A pickled store continues in the attempt.
        with fst.open(url, attempt="three") as mine:
            other = pickle.loads(pickle.dumps(mine))
            other.archive("run=a,variable=t,step=4", np.zeros(3))
            other.close()
        assert [entry.attempt for entry in store.list("step=4")] == ["three"]
    for wrong in ("a\nb", "x" * 300):
        with pytest.raises(Invalid, match="attempt"):
            fst.open(url, attempt=wrong)


def test_an_attempt_does_not_raise_a_pinned_store(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("fieldstone")
    subprocess.run([program, "init", tmp_path / "s", "--format", "1"], check=True, capture_output=True)
    with fst.open(tmp_path / "s") as store:
        store.archive("run=a,variable=t", np.zeros(3))
        store.flush()
        with pytest.raises(Denied, match="attempt"):
            fst.open(tmp_path / "s", attempt="one")
        assert store.status().format == 1


def test_job_and_rank_are_the_schedulers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("JOB_ID", "1177"), ("STEP_ID", "0"), ("PROCID", "3"), ("NTASKS", "8")):
        monkeypatch.setenv(f"SLURM_{name}", value)
    with fst.open(tmp_path / "s", attempt="1177.0") as store:
        store.archive("run=a,variable=t", np.zeros(3))
        store.flush()
        (writer,) = store.status().writers
        assert (writer.attempt, writer.job, writer.rank) == ("1177.0", "1177.0", 3)


# -- the last whole step


def test_the_last_step_is_whole_for_all_variables(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("a")
        assert run.last_step() is None
        for name in ("t", "u"):
            run.create_variable(name, "f8", (4,))
        run.create_variable("mask", "f8", (4,))
        run.write("mask", None, np.zeros(4))
        for step in (0, 1, 2):
            run.write("t", step, np.zeros(4))
        run.write("u", 0, np.zeros(4))
        run.write("u", 1, np.zeros(4))
        run.write("u", 2, np.zeros(2), start=(0,))
        store.flush()
        # The step that is the newest to every reader of axes is incomplete.
        assert store.axes("run=a")["step"][-1] == "2"
        assert run.last_step() == 1
        assert run.last_step(["t"]) == 2
        assert run.last_step(variables=("t", "u")) == 1
        assert run.last_step(["w"]) is None
        run.write("u", 2, np.zeros(2), start=(2,))
        assert run.last_step() == 1
        store.flush()
        assert run.last_step() == 2
        run.create_variable("w", "f8", (4,))
        assert run.last_step() is None


def test_a_run_without_declarations_has_a_last_step(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        store.archive_many(
            [{"run": "a", "variable": v, "step": s} for v, s in (("t", 0), ("t", 6), ("u", 0))],
            [np.zeros(2)] * 3,
        )
        store.flush()
        assert store.run("a").last_step() == 0


def test_the_last_step_is_of_one_attempt(tmp_path: Path) -> None:
    url = tmp_path / "s"
    with fst.open(url, attempt="1") as store:
        run = store.create_run("a")
        run.create_variables(["t", "u"], dtype="f8", shape=(2,))
        for step in (0, 1):
            for name in ("t", "u"):
                run.write(name, step, np.zeros(2))
    with fst.open(url, attempt="2") as store:
        run = store.run("a")
        run.write("t", 1, np.ones(2))
        store.flush()
        assert run.last_step() == 0  # t of the second attempt, u of the first
        run.write("u", 1, np.ones(2))
        store.flush()
        assert run.last_step() == 1


# -- ranks of a communicator


def test_ranks_open_a_store_together(tmp_path: Path) -> None:
    url = tmp_path / "s"
    script = """
    with fst.open(sys.argv[1], comm=comm) as store:
        run = store.create_run("a", exist_ok=True)
        run.create_variable("t", "f8", (4, 2))
        run.write("t", 0, np.full((1, 2), float(rank)), start=(rank, 0))
    comm.Barrier()
    with fst.open(sys.argv[1], "r") as store:
        assert store.get("run=a,variable=t,step=0").tolist() == [[n, n] for n in range(4)]
        names = {(writer.attempt, writer.rank) for writer in store.status().writers}
        assert len({name for name, _ in names}) == 1 and {n for _, n in names} == {0, 1, 2, 3}, names
    # A job of the store's ranks needs no communicator.
    with fst.open(sys.argv[1], comm=comm) as store, store.arrays("b") as job:
        assert (job.rank, job.size) == (rank, 4)
    with fst.open(sys.argv[1], attempt="1177.2", comm=comm) as store:
        store.archive({"run": "c", "variable": "t", "step": rank}, np.zeros(2))
    comm.Barrier()
    with fst.open(sys.argv[1], "r") as store:
        assert {entry.attempt for entry in store.list("run=c")} == {"1177.2"}
    try:
        fst.open(sys.argv[1], attempt="a" if rank < 2 else "b", comm=comm)
    except fst.Invalid as error:
        assert "'a' on rank 0, 'b' on rank 2" in str(error)
    else:
        raise AssertionError("ranks of two attempts")
    try:
        fst.open(sys.argv[1] if rank else "/proc/none", "r", comm=comm)
    except fst.NotFound as error:
        assert ("rank 0: " in str(error)) == (rank > 0), error
    else:
        raise AssertionError("rank 0 failed")
    """
    mpirun(4, HEAD + textwrap.dedent(script), url)


def test_ranks_decide_a_transaction_together(tmp_path: Path) -> None:
    script = """
    store = fst.open(sys.argv[1])
    def put(tx, step):
        key = {"run": "a", "variable": "t", "step": step}
        tx.archive(key, np.full((1, 2), rank), start=(rank, 0), shape=(4, 2))
    with store.transaction(comm=comm) as tx:
        put(tx, 0)
    # All ranks have arrived when the block ends, so every rank sees everything.
    assert store.get("run=a,variable=t,step=0").tolist() == [[n, n] for n in range(4)]
    try:
        with store.transaction(comm=comm) as tx:
            put(tx, 1)
            if rank == 2:
                raise RuntimeError("the model blew up")
    except RuntimeError as error:
        assert rank == 2
    except fst.Invalid as error:
        assert rank != 2 and str(error).startswith("rank 2: RuntimeError: the model blew up"), error
    else:
        raise AssertionError("rank 2 failed")
    assert store.axes()["step"] == ["0"]
    tx = store.transaction(comm=comm)
    put(tx, 2)
    tx.commit()
    assert store.axes()["step"] == ["0", "2"]
    assert tx.get("run=a,variable=t,step=2").shape == (4, 2)
    tx = store.transaction(comm=comm)
    put(tx, 3)
    tx.abort()
    assert store.axes()["step"] == ["0", "2"]
    assert store.status().transactions == ()
    try:
        store.transaction(tx.id, comm=comm)
    except fst.Invalid:
        pass
    store.close()
    """
    mpirun(4, HEAD + textwrap.dedent(script), tmp_path / "s")


def test_one_process_is_a_communicator_of_one(tmp_path: Path) -> None:
    class Alone:
        rank, size = 0, 1

        def allgather(self, said):
            return [said]

        def bcast(self, said, root=0):
            return said

    comm = Alone()
    with fst.open(tmp_path / "s", comm=comm) as store:
        with store.transaction(comm=comm) as tx:
            tx.archive("run=a,variable=t", np.zeros(2))
        with pytest.raises(RuntimeError, match="wrong"), store.transaction(comm=comm) as tx:
            tx.archive("run=a,variable=u", np.zeros(2))
            raise RuntimeError("wrong")
        assert store.axes() == {"run": ["a"], "variable": ["t"]}
        (entry,) = store.list()
        assert entry.attempt is not None
        # Another process decided it in the meantime: the error is raised once.
        tx = store.transaction(comm=comm)
        tx.archive("run=a,variable=v", np.zeros(2))
        tx.flush()
        _native._decide(store, tx.id, False)
        with pytest.raises(Conflict):
            tx.commit()
    with pytest.raises((Denied, NotFound)):
        fst.open(tmp_path / "none", "r", comm=comm)

"""Ranks of a job are killed: each step in store and files is complete, and the run continues."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import fieldstone as fst
import netCDF4
import numpy as np
from mpi_job import mpiexec

NODES = 50_000

JOB = """
import os
import sys
import numpy as np
import fieldstone as fst
from mpi4py import MPI

comm = MPI.COMM_WORLD
with open(f"{sys.argv[1]}.pid.{comm.rank}", "w") as file:
    file.write(str(os.getpid()))
nodes = int(sys.argv[2])
mine = np.array_split(np.random.default_rng(1).permutation(nodes), comm.size)[comm.rank]
with fst.open(sys.argv[1]) as store, store.arrays("r", comm=comm) as job:
    group = job.group("g", {"a": "f8", "b": "f4"}, shape=nodes)
    group.view(fst.irregular(mine))
    last = group.last_step()
    first = 0 if last is None else last + 1
    if comm.rank == 0:
        print(first, flush=True)
    for step in range(first, first + 500):
        wait = step % 2 == 0
        group.write("a", step, mine + 1.0 * step, wait=wait)
        group.write("b", step, (mine * 2 + step).astype("f4"), wait=wait)
        job.flush()
        if comm.rank == 0:
            print(step, flush=True)
"""


def test_killed_jobs_leave_whole_steps_and_go_on(tmp_path: Path) -> None:
    program, environment = mpiexec()
    url = tmp_path / "store"
    dice = random.Random(5)
    before = 0
    for turn in range(4):
        ranks = dice.choice([2, 3])
        job = subprocess.Popen(
            [program, "-n", str(ranks), sys.executable, "-c", JOB, str(url), str(NODES)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert job.stdout is not None
        assert job.stdout.readline(), "the job did not begin"
        if turn == 3:
            assert job.stdout.readline(), "no step was flushed"
        time.sleep(dice.random() * 0.7)
        # One rank first: the others' actions until they are killed, too, must do no harm.
        order = list(range(ranks))
        dice.shuffle(order)
        for rank in order:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(Path(f"{url}.pid.{rank}").read_text()), signal.SIGKILL)
        assert job.wait(300) != 0
        job.stdout.close()
        if not (url / "fieldstone.store").exists():
            continue  # killed before its first commit
        with fst.open(url, "r") as store:
            report = store.verify()
            assert report.ok, report.damaged
            steps: dict[int, set[str]] = {}
            for entry in store.list("run=r"):
                assert entry.complete
                steps.setdefault(int(entry.key["step"]), set()).add(entry.key["variable"])
            assert sorted(steps) == list(range(len(steps)))
            assert all(variables == {"a", "b"} for variables in steps.values())
            assert len(steps) >= before
            before = len(steps)
            for step in dice.sample(sorted(steps), min(3, before)):
                assert (store.get(f"run=r,variable=a,step={step}") == np.arange(NODES) + step).all()
                b = (np.arange(NODES) * 2 + step).astype("f4")
                assert (store.get(f"run=r,variable=b,step={step}") == b).all()
        for path in url.rglob("*.nc"):
            with path.open("rb") as file:
                if file.read(3) != b"CDF":
                    continue  # the file is marked as unfinished
            with netCDF4.Dataset(path) as shown:
                assert set(shown["step"][:].tolist()) <= set(steps), path
    assert before > 0

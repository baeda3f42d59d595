"""Ranks of real MPI jobs that are killed while they create containers."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from conftest import require
from fieldstone import container
from fieldstone.errors import Error
from test_container_mpi import HEAD, mpiexec

VARIABLES = 400
# Many generations of one file, or separate files, so that a kill meets definition, enddef, writing and close,
# both when replacing a file and in place.
JOB = f"""
import itertools, os, pathlib
format, where = sys.argv[1:]
pathlib.Path(f"pid.{{rank}}").write_text(str(os.getpid()))
for n in itertools.count(1):
    path = "a.nc" if where == "same" else f"a{{n}}.nc"
    f = container.create(path, comm, format=format)
    f.def_dim("x", 50)
    f.def_many([f"r{{rank}}/v{{i}}" for i in range({VARIABLES})], "f4", dims=("x",))
    f.enddef()
    values = np.full(50, n, "f4")
    f.put_many([(f"r{{rank}}/v{{i}}", values) for i in range({VARIABLES})], collective=True)
    f.close()
    say(n)
"""


def judge(program: str, path: Path) -> int:
    """The generation of a complete container, or 0 for one that every reader refuses as unfinished."""
    told = subprocess.run([program, "container", "validate", path], capture_output=True, text=True)
    try:
        with container.open(path) as f:
            assert told.returncode == 0, told.stdout
            assert len(f.vars) == 2 * VARIABLES
            held = {value for name in f.vars for value in f[name][:].tolist()}
            (generation,) = held
            return int(generation)
    except Error:
        assert told.returncode != 0
        assert "never finished" in told.stdout, told.stdout + told.stderr
        return 0


@pytest.mark.parametrize("where", ["same", "new"])
@pytest.mark.parametrize("format", ["cdf5", "partitioned"])
def test_ranks_killed_at_any_time_leave_old_new_or_unfinished(tmp_path, format, where):
    program = str(Path(sys.executable).parent / "fieldstone")
    require("program", os.path.exists(program), "the program is not next to this Python")
    rng = random.Random(f"{format} {where}")
    whole = 0
    for kill in range(4):
        folder = tmp_path / str(kill)
        folder.mkdir()
        (folder / "job.py").write_text(HEAD + textwrap.dedent(JOB))
        running = subprocess.Popen(
            [mpiexec(), "-n", "2", sys.executable, "job.py", format, where],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        said, victim = folder / "said.0", folder / f"pid.{kill % 2}"
        give_up = time.monotonic() + 60
        while not (said.exists() and said.stat().st_size) and time.monotonic() < give_up:
            time.sleep(0.01)
        assert said.exists(), "no generation in a minute"
        time.sleep(rng.random() * 0.3)
        os.kill(int(victim.read_text()), signal.SIGKILL)
        assert running.wait(60) != 0
        done = max(int(line) for n in range(2) for line in (folder / f"said.{n}").read_text().split())
        found = {path.name: judge(program, path) for path in folder.glob("a*.nc")}
        if where == "same":
            # The file under the path is complete: the last generation that any rank saw closed, or the next.
            assert found["a.nc"] in (done, done + 1)
            assert all(judge(program, path) in (0, done + 1) for path in folder.glob(".a.nc.*.part"))
        else:
            generations = {f"a{n}.nc": n for n in range(1, done + 2)}
            assert all(generations[name] == n for name, n in found.items() if n)
            assert all(found[f"a{n}.nc"] for n in range(1, done + 1))
        whole += sum(1 for n in found.values() if n)
    assert whole >= 4

"""Jobs of several ranks under the mpiexec of the wheel `mpich`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from conftest import ROOT, require


def mpiexec() -> tuple[str, dict[str, str]]:
    """The program beside the interpreter or in PATH, and an environment where mpi4py takes its library."""
    beside = Path(sys.executable).parent / "mpiexec"
    program = str(beside) if beside.exists() else shutil.which("mpiexec")
    require("mpi", program, "no mpiexec (pip install mpich mpi4py)")
    assert program
    environment = os.environ.copy()
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    library = Path(program).resolve().parent.parent / "lib" / "libmpi.so.12"
    if library.exists():  # else the system's, which mpi4py finds
        environment["MPI4PY_LIBMPI"] = str(library)
    # More ranks than cores: who waits lets others run.
    environment["MPIR_CVAR_POLLS_BEFORE_YIELD"] = "1"
    return program, environment


def mpirun(
    ranks: int, script: str, *arguments: object, timeout: float = 60, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a script of Python on so many ranks; what it prints is that of all ranks, mixed."""
    program, environment = mpiexec()
    python = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(
        [program, "-n", str(ranks), *python],
        env=environment,
        cwd=ROOT,
        timeout=timeout,
        capture_output=True,
        text=True,
    )
    if check:
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done

"""Jobs of several ranks under the mpiexec of the wheel `mpich`, or under Open MPI's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from conftest import ROOT, require


def mpiexec() -> tuple[str, dict[str, str]]:
    """The program next to the interpreter or in PATH, and an environment in which mpi4py loads its
    library."""
    beside = Path(sys.executable).parent / "mpiexec"
    program = str(beside) if beside.exists() else shutil.which("mpiexec")
    require("mpi", program, "no mpiexec (pip install mpich mpi4py)")
    assert program
    environment = os.environ.copy()
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    library = Path(program).resolve().parent.parent / "lib" / "libmpi.so.12"
    if library.exists():  # otherwise mpi4py finds the system's
        environment["MPI4PY_LIBMPI"] = str(library)
    # More ranks than cores: a waiting rank must let others run.
    environment["MPIR_CVAR_POLLS_BEFORE_YIELD"] = "1"
    # With shared memory these do not let others run.
    for call in ("BARRIER", "ALLREDUCE", "BCAST", "REDUCE"):
        environment[f"MPIR_CVAR_{call}_POSIX_INTRA_ALGORITHM"] = "mpir"
    return program, environment


def openmpi() -> tuple[str, dict[str, str]]:
    """Open MPI 4's program under Debian's name next to another MPI's, and an environment for mpi4py."""
    program = shutil.which("mpiexec.openmpi")
    require("openmpi", program, "no mpiexec.openmpi (Debian: openmpi-bin)")
    assert program
    return program, of_openmpi("libmpi.so.40")


def openmpi_wheel() -> tuple[str, dict[str, str]]:
    """The program of the wheel `openmpi`, version 5, in its own folder because its names equal mpich's."""
    folder = Path(sys.prefix) / "openmpi"
    program = folder / "bin" / "mpiexec"
    why = f"no {program} (pip install --prefix {folder} --ignore-installed 'openmpi>=5')"
    require("openmpi-wheel", program.exists(), why)
    return str(program), of_openmpi(str(folder / "lib" / "libmpi.so.40"))


def of_openmpi(library: str) -> dict[str, str]:
    """An environment in which mpi4py loads this library of Open MPI."""
    given = {
        "MPI4PY_LIBMPI": library,
        "MPI4PY_MPIABI": "openmpi",
        # CI may be root; more ranks than cores: a waiting rank must let others run.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",  # version 4
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # version 5
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return os.environ | paths | given


def mpirun(
    ranks: int,
    script: str,
    *arguments: object,
    timeout: float = 300,
    check: bool = True,
    mpi: Callable[[], tuple[str, dict[str, str]]] = mpiexec,
) -> subprocess.CompletedProcess[str]:
    """Runs a script of Python on `ranks` ranks; returns the output of all ranks, mixed."""
    program, environment = mpi()
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

"""Runs the figures of distributed arrays: ranks under mpiexec, ours in Python and C, peers in C and numpy.

A small machine has fewer cores than ranks. MPICH's barrier, allreduce and broadcast through shared memory
then take 8 ms each, because a waiting rank does not yield its core; every peer starts with the same
environment, in which they take 25 µs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from creation import mpiexec
from measure import BENCH, Counts, Result, parse_trace, traced

if TYPE_CHECKING:
    from steps import Figure, Sitting

OURS = "fieldstone_store"  # the name of Fieldstone in `steps`
IN_C, NUMPY = "fieldstone-c", "numpy-alltoallv"
MPIIO, ALLTOALLV, PNETCDF, SEQUENTIAL = "mpiio", "alltoallv", "pnetcdf-arrays", "sequential"
PEERS = (IN_C, NUMPY, MPIIO, ALLTOALLV, PNETCDF, SEQUENTIAL)
RANKS = 4
WAITING = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    **{
        f"MPIR_CVAR_{call}_POSIX_INTRA_ALGORITHM": "mpir"
        for call in ("BARRIER", "ALLREDUCE", "BCAST", "REDUCE")
    },
}


def environment() -> dict[str, str]:
    """The environment of all ranks: how they wait, and which MPI mpi4py loads."""
    library = Path(sys.prefix) / "lib" / "libmpi.so.12"
    own = {"MPI4PY_LIBMPI": str(library)} if library.exists() else {}
    return {**os.environ, **WAITING, **own}


def launch(
    ranks: int, command: list[str], trace: Path | None = None, preload: Path | None = None
) -> tuple[dict[str, Any], dict[str, Counts]]:
    """Runs a program on ranks; returns its line of JSON, with calls on files below the folder `trace`."""
    argv, env = [mpiexec(), "-n", str(ranks), *command], environment()
    if preload:
        argv[3:3] = ["-env", "LD_PRELOAD", str(preload)]
    log = trace.parent / "strace" if trace else Path()
    if trace:
        argv, env = traced(argv, log), env | {"BENCH_TRACE": "1"}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"bench: {' '.join(command)} on {ranks} ranks failed:\n{done.stderr[-3000:]}")
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if not trace:
        return result, {}
    counts = parse_trace(log, trace)
    log.unlink()
    return result, counts


def in_python(
    work: str,
    ranks: int,
    trace: Path | None = None,
    program: str = "arrays_work.py",
    preload: Path | None = None,
    **a: Any,
) -> tuple[dict[str, Any], dict[str, Counts]]:
    """Runs the Python code of the ranks, under the name of `work`."""
    return launch(ranks, [sys.executable, str(BENCH / program), work, json.dumps(a)], trace, preload)


def slow_opens(work: Path) -> Path:
    """A library that makes each opening of a file of arrays take 10 ms longer."""
    library, source = work / "slow_opens.so", BENCH / "peers" / "slow_opens.c"
    if not library.exists():
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def compiled(name: str, work: Path) -> Path:
    """A program of bench/peers, compiled by the mpicc next to this Python."""
    program, peers = work / f"arrays_{name}", BENCH / "peers"
    source, header = peers / f"arrays_{name}.c", peers / "arrays.h"
    newest = max(file.stat().st_mtime for file in (source, header))
    if program.exists() and program.stat().st_mtime > newest:
        return program
    flags: list[str] = []
    if name == "fieldstone":
        library = BENCH.parent / "target" / "release"
        if not (library / "libfieldstone.so").exists():
            raise SystemExit(f"bench: {library} has no libfieldstone.so: start by bench/run.sh")
        flags = ["-I", str(BENCH.parent / "capi" / "include"), f"-L{library}", f"-Wl,-rpath,{library}"]
        flags.append("-lfieldstone")
    if name == "pnetcdf":
        home = os.environ.get("PNETCDF_DIR")
        if not home:
            raise SystemExit("bench: PNETCDF_DIR names no PnetCDF (built with the mpicc next to this Python)")
        flags = [f"-I{home}/include", f"-L{home}/lib", f"-Wl,-rpath,{home}/lib", "-lpnetcdf", "-lm"]
    mpicc = Path(mpiexec()).parent / "mpicc"
    subprocess.run([str(mpicc), "-O2", "-o", str(program), str(source), *flags], check=True)
    return program


def _summed(result: dict[str, Any]) -> Result:
    """Adds the wholes to their parts: writes with their syncs."""
    for step in ("first", "later"):
        if f"{step} sync" in result:
            result[f"{step} whole"] = result[step] + result[f"{step} sync"]
    result["later of first"] = result["later"] / result["first"]
    result["later read of first"] = result["later read"] / result["first read"]
    return result


def counts_of(marks: dict[str, Counts]) -> Result:
    """Counts of writes: syncs, calls, bytes; of reads: calls, bytes."""
    found: Result = {}
    if (c := marks.get("write")) is not None:
        found |= {
            "syncs": c.syncs,
            "write_calls": c.write_calls,
            "written": c.written,
            "files": len(c.files_written),
        }
    if (c := marks.get("read")) is not None:
        found |= {"read_calls": c.read_calls, "read": c.read + c.mapped}
    return found


# ---- steps by a view


def random_map(fig: Figure, at: Sitting, peer: str, trace: bool = False) -> Result:
    """Elements in a random order, written and read in some steps."""
    folder = _fresh(fig, at, peer)
    total, steps = 2_000_000 // (20 if at.quick else 1), 5
    numbers = at.work / fig.name / "map"
    if not numbers.exists():
        np.random.default_rng(7).permutation(total).tofile(numbers)
    below = folder if trace else None
    if peer in (OURS, NUMPY):
        name = "numpy" if peer == NUMPY else "fieldstone"
        result, marks = in_python(
            "random", RANKS, below, folder=str(folder), peer=name, steps=steps, total=total, map=str(numbers)
        )
    else:
        program = compiled({IN_C: "fieldstone", MPIIO: "mpiio", ALLTOALLV: "alltoallv"}[peer], at.work)
        command = [str(program), "random", str(folder), str(steps), str(total), str(numbers)]
        result, marks = launch(RANKS, command, below)
    return _done(folder, _summed(result), marks, trace)


def cube(fig: Figure, at: Sitting, peer: str, trace: bool = False) -> Result:
    """A cube cut into a grid of boxes, written and read in some steps."""
    folder = _fresh(fig, at, peer)
    edge, steps, grid = 32 if at.quick else 256, 4, fig.data["grid"]
    below = folder if trace else None
    if peer == OURS:
        result, marks = in_python(
            "grid", RANKS, below, folder=str(folder), peer=peer, steps=steps, edge=edge, grid=grid
        )
    else:
        names = {IN_C: "fieldstone", MPIIO: "mpiio", PNETCDF: "pnetcdf", SEQUENTIAL: "sequential"}
        alone = peer == SEQUENTIAL
        command = [str(compiled(names[peer], at.work)), "grid", str(folder), str(steps), str(edge)]
        command += [str(parts) for parts in ([1, 1, 1] if alone else grid)]
        result, marks = launch(1 if alone else RANKS, command, below)
    return _done(folder, _summed(result), marks, trace)


def random_map_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    return random_map(fig, at, peer, trace=True)


def cube_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    return cube(fig, at, peer, trace=True)


# ---- restart


def restart(fig: Figure, at: Sitting, peer: str, trace: bool = False) -> Result:
    """A state at nodes, written by four ranks and read again by three; raw by the same four."""
    folder = _fresh(fig, at, peer)
    a = {"folder": str(folder), "components": 5, "nodes": 2_500_000 // (50 if at.quick else 1)}
    a["peer"] = "raw" if peer == "raw" else "fieldstone"
    below = folder if trace else None
    result, marks = in_python("dump", RANKS, below, **a)
    again, more = in_python("restart", RANKS if peer == "raw" else 3, below, **a)
    result = {**result, **{f"{k} again" if k == "open" else k: v for k, v in again.items()}}
    result["whole"] = result["write"] + result["sync"] + result["read"]
    return _done(folder, result, {**marks, **more}, trace)


def restart_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    return restart(fig, at, peer, trace=True)


# ---- output during a computation


def overlap(fig: Figure, at: Sitting, peer: str) -> Result:
    """Two ranks that compute and write, with and without waiting."""
    folder = _fresh(fig, at, peer)
    nbytes, steps = (1 << 20, 3) if at.quick else (64 << 20, 8)
    result, _ = in_python("overlap", 2, folder=str(folder), bytes=nbytes, steps=steps)
    result["of waiting"] = result["hidden"] / result["waiting"]
    result["of compute"] = result["hidden"] / result["compute"]
    # The processor time of all ranks, divided by the two cores.
    result["floor"] = (result["compute"] + steps * result["output cpu"] / 2) / result["waiting"]
    return _done(folder, result, {}, False)


def _fresh(fig: Figure, at: Sitting, peer: str) -> Path:
    folder = at.fresh(fig.name, peer)
    folder.mkdir()
    return folder


def _done(folder: Path, result: Result, marks: dict[str, Counts], trace: bool) -> Result:
    shutil.rmtree(folder)
    return counts_of(marks) if trace else result

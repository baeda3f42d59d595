"""The paper's data set: 568,480 variables over 852,715 dimensions, created by ranks that share nothing.

`mpiexec -n P python bench/creation.py STRATEGY VARIABLES FILE LIMIT` defines it, ends definition, closes and
prints one line of JSON; `bench/peers/pnetcdf_create.c` does the same with PnetCDF. Both use the same names
and shapes: an event of a detector has eight arrays, each over one or two of its own dimensions. With
`partitioned` an event is a path ("event_0000007/node.x.5e1c2a"), otherwise a part of the name.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import BENCH, Result

if TYPE_CHECKING:
    from steps import Figure, Sitting

OURS = "fieldstone_store"  # the name of Fieldstone in `steps`

VARIABLES = 568_480
PARTS = ("x", "y", "edge_index", "nhits", "charge", "plane_u_id", "label", "vtx")
_WORD = (1 << 64) - 1


def mix(x: int) -> int:
    """The mixing function that both generators share."""
    x ^= x >> 31
    x = x * 0x9E3779B97F4A7C15 & _WORD
    return x ^ x >> 29


def columns(
    first: int, end: int, paths: bool
) -> tuple[list[str], list[int], list[str], list[tuple[str, ...]]]:
    """Names and lengths of the dimensions, names of the variables, and the dimensions of each."""
    dims, lengths, names, over = [], [], [], []
    for i in range(first, end):
        event = f"event_{i // 8:07}"
        own = []
        for k in range(1 + i % 2):
            own.append(f"dim_{i:08}_{k}.{mix(i):016x}.pad")
            lengths.append(4 + mix(2 * i + k) % 61)
        dims += [f"{event}/{name}" for name in own] if paths else own
        names.append(f"{event}{'/' if paths else '.'}node.{PARTS[i % 8]}.{mix(i + 7) & 0xFFFFFF:06x}")
        over.append(tuple(own))
    return dims, lengths, names, over


# ---- a rank


def rank(strategy: str, variables: int, path: str, limit: int = 0) -> None:
    """Creates this rank's share within `limit` bytes of memory (0: no limit); rank 0 prints the report."""
    comm: Any = None
    if "PMI_SIZE" in os.environ or "PMI_RANK" in os.environ:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    ranks, number = (comm.size, comm.rank) if comm else (1, 0)
    from fieldstone import container

    paths = strategy == "partitioned"
    first, end = variables * number // ranks, variables * (number + 1) // ranks
    dims, lengths, names, over = columns(first, end, paths)
    name, _, slots = strategy.partition(":")
    options: dict[str, Any] = {} if paths else {"strategy": name}
    if slots:
        options["hash_size"] = int(slots)
    before = _peak()
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    file = container.create(path, comm=comm, format="partitioned" if paths else "cdf5", **options)
    if comm:
        comm.Barrier()
    start, cpu = time.perf_counter(), time.process_time()
    file.def_dims(dims, lengths)
    file.def_many(names=names, dtypes="f4", dims=over)
    defined = time.perf_counter()
    file.enddef()
    ended, cpu = time.perf_counter(), time.process_time() - cpu
    after = _peak()
    file.close()
    closed = time.perf_counter()
    own = {
        "seconds": ended - start,
        "definition": defined - start,
        "close": closed - ended,
        "cpu": cpu,
        "peak": after,
        "growth": after - before,
        "report": facts(file.report),
    }
    everybody = comm.gather(own) if comm else [own]
    if number == 0:
        print(json.dumps(_largest(everybody)))


def facts(report: Any) -> dict[str, float]:
    """A report as flat numbers: counts, and the seconds and bytes of each phase."""
    numbers = {f"most {key}": value for key, value in vars(report).items() if key != "phases"}
    for phase in report.phases:
        numbers.setdefault(phase.name, phase.seconds)
        numbers[f"{phase.name} bytes"] = phase.peak_bytes
    return numbers


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _largest(everybody: list[dict[str, Any]]) -> dict[str, Any]:
    keys = ("seconds", "definition", "close", "cpu", "peak", "growth")
    found: dict[str, Any] = {key: max(own[key] for own in everybody) for key in keys}
    # Rank 0 of a library that gathers definitions grows more than the others.
    growths = [own["growth"] for own in everybody]
    found["root"] = growths[0] / max(growths[1:], default=growths[0])
    found["reports"] = [own["report"] for own in everybody]
    return found


# ---- steps of figures


def create(fig: Figure, at: Sitting, peer: str) -> Result:
    """One creation by a peer, in fresh processes."""
    root = at.fresh(fig.name, peer)
    root.mkdir(parents=True)
    variables = fig.data.get("variables", VARIABLES) // (50 if at.quick else 1)
    ranks, path = fig.data["ranks"], root / "made.nc"
    kind, _, how = ("fieldstone-scalable" if peer == OURS else peer).partition("-")
    if how == "alone":
        ranks, how = 1, "scalable"
    if kind == "pnetcdf":
        command = [str(pnetcdf_program(at.work)), str(variables), how, str(path)]
    elif how == "columns":
        command = [str(example("creation")), "--variables", str(variables), "--file", str(path)]
    else:
        command = [sys.executable, str(BENCH / "creation.py"), how, str(variables), str(path)]
        command.append(str(fig.data.get("limit", 0)))
    done = subprocess.run(
        [mpiexec(), "-n", str(ranks), *command], capture_output=True, text=True, check=False
    )
    # With a memory limit, failing is a result.
    if done.returncode and fig.data.get("limit"):
        shutil.rmtree(root)
        return {"finished": 0}
    if done.returncode:
        raise SystemExit(f"bench: {peer} on {ranks} ranks failed:\n{done.stderr[-3000:]}")
    result = _flat(json.loads(done.stdout.strip().splitlines()[-1]))
    size = path.stat().st_size
    shutil.rmtree(root)
    if "close" in result:
        result["whole"] = result["seconds"] + result["close"]
    return {**result, "per_variable": result["seconds"] / variables, "length": size, "finished": 1}


def _flat(result: dict[str, Any]) -> Result:
    """Only numbers: the largest of the ranks' reports, and how evenly the header's bytes are spread."""
    numbers = {key: value for key, value in result.items() if isinstance(value, int | float)}
    for phase in result.get("phases", []):
        numbers[phase["name"]] = phase["seconds"]
        numbers[f"{phase['name']} bytes"] = phase["peak_bytes"]
        numbers["seconds"] = numbers.get("seconds", 0) + phase["seconds"]
    if "before" in numbers:
        numbers["growth"] = numbers["peak"] - numbers["before"]
    reports = result.get("reports", [])
    for key in {key for report in reports for key in report} - numbers.keys():
        numbers[key] = max(report.get(key, 0) for report in reports)
    written = [report["most header_bytes_written"] for report in reports]
    if written and min(written):
        numbers["spread"] = max(written) / min(written)
    return numbers


def example(name: str) -> Path:
    """An example program that `bench/run.sh` has compiled from the sources."""
    program = BENCH.parent / "target" / "release" / "examples" / name
    if not program.exists():
        raise SystemExit(f"bench: {program} is missing: start by bench/run.sh")
    return program


def mpiexec() -> str:
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if not found:
        raise SystemExit("bench: mpiexec is missing: pip install mpich mpi4py")
    return found


def pnetcdf_program(work: Path, name: str = "pnetcdf_create") -> Path:
    """A driver of PnetCDF, compiled against the library in PNETCDF_DIR."""
    program, source = work / name, BENCH / "peers" / f"{name}.c"
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    home = os.environ.get("PNETCDF_DIR")
    if not home:
        raise SystemExit("bench: PNETCDF_DIR names no PnetCDF (built with the mpicc next to this Python)")
    mpicc = Path(mpiexec()).parent / "mpicc"
    flags = [f"-I{home}/include", f"-L{home}/lib", f"-Wl,-rpath,{home}/lib", "-lpnetcdf", "-lm"]
    subprocess.run([str(mpicc), "-O2", "-o", str(program), str(source), *flags], check=True)
    return program


if __name__ == "__main__":
    rank(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))

"""The operations on graphs that are timed, run by run: the steps of the figures.

    .venv-bench/bin/python bench/graph.py [--volume N] [--work DIR]

Without `--volume` this is `bench/run.py --only graph`. With it, the program puts N million relations,
rebuilds the view, asks for 1,000 lineages, and prints times and memory.

fjall runs in `bench/floor`, Kuzu in its own process; both refuse a second process, so the process that put
the relations reads the last one and its reverse.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import graph_data
import graph_work
from measure import BENCH, Result, machine, run_program, tree_size

if TYPE_CHECKING:
    from steps import Figure, Sitting

OURS, FJALL, KUZU = "fieldstone_store", "fjall", "kuzu"
_RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", BENCH.parent / "target")) / "release"
_FLOOR = BENCH / "floor" / "target" / "release" / "fjall"

COUNTS = {
    "singles": {OURS: 200_000, FJALL: 200_000, KUZU: 1_000},
    "batches": {OURS: 600_000, FJALL: 600_000, KUZU: 2_000},
    "columns": {OURS: 1_200_000, KUZU: 600_000},
}
"""Relations of a run: they take each peer some seconds."""
_BATCH = {"singles": 1, "batches": 1_000}


def _count(how: str, at: Sitting, peer: str) -> int:
    return max(COUNTS[how][peer] // (20 if at.quick else 1), 100)


def _edges(at: Sitting, shape: str, count: int) -> Path:
    path = at.work / f"{shape}-{count}.edges"
    if not path.exists():
        at.work.mkdir(parents=True, exist_ok=True)
        graph_data.write(path, graph_data.edges(shape, count))
    return path


def _fjall(at: Sitting, folder: Path, shape: str, count: int, batch: int, *scans: str | Path) -> Result:
    command = [_FLOOR, folder, _edges(at, shape, count), str(batch), *scans]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout)
    return {
        **result,
        "rate": result["edges"] / result["seconds"],
        "cpu_edge": result["cpu"] / result["edges"],
        "disk_edge": result["bytes"] / result["edges"],
    }


def put(fig: Figure, at: Sitting, peer: str) -> Result:
    """Puts relations until the last and its reverse can be read; ours by another process."""
    shape, how = fig.data["shape"], fig.data["how"]
    root, count = at.fresh(fig.name, peer), _count(how, at, peer)
    if peer == FJALL:
        return _fjall(at, root, shape, count, _BATCH[how])
    what = "put" if peer == OURS else "kuzu_put"
    result = graph_work.child(what, root=str(root), shape=shape, count=count, how=how)
    if peer == OURS:
        result["disk_edge"] = result["log_edge"] + result["view_edge"]
    else:
        result["disk_edge"] = tree_size(root / "db")["length"] / count if (root / "db").is_dir() else 0.0
        single = root / "db"
        if single.is_file():
            result["disk_edge"] = single.stat().st_size / count
    return result


def durable(fig: Figure, at: Sitting, peer: str) -> Result:
    """Puts one relation after another, each durable when the call returns; then with eight threads."""
    result: Result = {}
    for threads in (1, 8):
        root = at.fresh(fig.name, peer)
        run = graph_work.child("durable", root=str(root), threads=threads, count=80 if at.quick else 400)
        result |= {f"put_{threads}": run["put"], f"cpu_{threads}": run["cpu"] / run["puts"]}
    return result


def durable_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    """Syncs of the puts: those of a run with 400 more puts, less those of a run without."""
    result: Result = {}
    for threads in (1, 8):
        syncs = []
        for count in (threads, threads + 400):
            root = at.fresh(fig.name, peer)
            call = json.dumps({"what": "durable", "root": str(root), "threads": threads, "count": count})
            log = root.parent / "strace"
            command = ["strace", "-f", "-o", log, "-e", "trace=fdatasync,fsync,sync_file_range,syncfs", "--"]
            subprocess.run(
                [*command, sys.executable, BENCH / "graph_work.py", call],
                stdout=subprocess.DEVNULL,
                check=True,
            )
            calls = [line for line in log.read_text().splitlines() if "sync(" in line]
            syncs.append(len(calls))
        result[f"syncs_{threads}"] = (syncs[1] - syncs[0]) / (400 - 400 % threads)
    return result


def load(fig: Figure, at: Sitting, peer: str) -> Result:
    """The graph of a figure in a Fieldstone store: traversals start from it, too."""
    count = graph_data.EDGES // (20 if at.quick else 1)
    _edges(at, fig.data["shape"], count)
    if peer != OURS:
        return {}
    root = at.fresh(fig.name, peer)
    return graph_work.child("load", root=str(root), shape=fig.data["shape"], count=count)


def scans(fig: Figure, at: Sitting, peer: str) -> Result:
    """Reads the hub and 10,000 random vertices with all values, in Rust."""
    import numpy as np

    count, shape = graph_data.EDGES // (20 if at.quick else 1), fig.data["shape"]
    vertices = at.work / f"{shape}-{count}.vertices"
    sources = np.unique(graph_data.edges(shape, count)[:, 0])
    np.random.default_rng(3).choice(sources, 10_000 // (20 if at.quick else 1)).astype("<u4").tofile(vertices)
    asked = (str(graph_data.HUB), vertices)
    if peer == FJALL:
        return _fjall(at, at.fresh(fig.name, peer), shape, count, 1_000, *asked)
    command = [_RELEASE / "examples" / "graph_scan", at.root(fig.name, peer), *asked]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def reach_load(fig: Figure, at: Sitting, peer: str) -> Result:
    """The RMAT graph in a Fieldstone store, and in Kuzu."""
    if peer == KUZU:
        root = at.fresh(fig.name, peer)
        arguments = {"root": str(root), "shape": "rmat", "count": graph_data.EDGES, "how": "columns"}
        return graph_work.child("kuzu_put", **arguments)
    _edges(at, "rmat", graph_data.EDGES)
    root = at.fresh(fig.name, peer)
    return graph_work.child("load", root=str(root), shape="rmat", count=graph_data.EDGES)


def reach(fig: Figure, at: Sitting, peer: str) -> Result:
    """Reachability, each run in its own process, ours on a copy that it may change."""
    root = at.root(fig.name, peer)
    if peer == KUZU:
        return graph_work.child("kuzu_reach", root=str(root), repeat=3)
    copy = root.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(root, copy)
    return graph_work.child("reach", root=str(copy), repeat=3)


def _program() -> str:
    beside = shutil.which("fieldstone", path=str(Path(sys.executable).parent))
    return beside or str(_RELEASE / "fieldstone")


def trace(fig: Figure, at: Sitting, peer: str) -> Result:
    """`fieldstone trace` of a file with some ancestors, from start to end."""
    count = graph_data.EDGES // (20 if at.quick else 1)
    target = graph_data.edges(fig.data["shape"], count)[-1, 1]
    program = shutil.which("fieldstone", path=str(Path(sys.executable).parent)) or str(
        _RELEASE / "fieldstone"
    )
    argv = [program, "trace", str(at.root(fig.name, peer)), f"file:{graph_data.identifier(int(target))}"]
    return run_program([*argv, "--depth", "2"], {}, at.work / "trace.out")


# ---- many relations


def volume(millions: int, work: Path) -> None:
    """Prints first and last million's rates, rebuild, peak memory, lineages."""
    root = work / "volume"
    shutil.rmtree(root, ignore_errors=True)
    facts = machine(work) | {"load before": f"{os.getloadavg()[0]:.2f}"}
    figures: dict[str, Result] = {"put": graph_work.child("volume", root=str(root), millions=millions)}
    made = run_program([_program(), "rebuild", str(root)], {}, work / "rebuild.out")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024.0
    figures["rebuild"] = {**made, "rate": millions * 1e6 / made["seconds"], "peak_of_all": peak}
    print(json.dumps(figures), file=sys.stderr)
    figures["lineages"] = graph_work.child(
        "lineages", root=str(root), millions=millions, count=1_000, depth=4
    )
    print(json.dumps({"machine": facts, "millions": millions, **figures}, indent=1))
    shutil.rmtree(root, ignore_errors=True)


def main() -> None:
    about, *_ = (__doc__ or "").partition("\n\n")
    arguments = argparse.ArgumentParser(description=about)
    arguments.add_argument("--volume", type=int, metavar="N", help="N million relations; 1 GB of disk each")
    arguments.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "fieldstone-bench")
    given, rest = arguments.parse_known_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if given.volume:
        return volume(given.volume, given.work)
    command = [sys.executable, BENCH / "run.py", "--only", "graph", "--work", given.work, *rest]
    raise SystemExit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()

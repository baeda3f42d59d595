"""Times commits of fields and attributes: one writer, 64 at once, and transactions of every size.

A commit holds three fields of 8 x 8 doubles and an attribute with a box on each; the clock times the
flush, or the commit of the transaction: before it, everything is in memory or prepared. The
floor writes the same bytes to its own plain file and syncs it. Many writers commit once a second each,
at different moments, as simulations do: without a pause between commits, a writer would wait for the
processors, which the other writers keep busy.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measure
from measure import BENCH, Result, child, percentile

if TYPE_CHECKING:
    from steps import Figure, Sitting

FIELDS, EDGE = 3, 8
SIZES = (1, 1_000, 100_000, 1_000_000)

# ---- in the child


def _ours(root: Path, name: str) -> Any:
    import fieldstone as fst
    import numpy as np

    store = fst.open(str(root))
    run = store.create_run(name)
    run.create_variable("t", dtype="f8", shape=(EDGE, EDGE), dims=("y", "x"))
    array = np.random.default_rng(5).random((EDGE, EDGE))

    def commit(number: int) -> float:
        steps = [FIELDS * number + i for i in range(FIELDS)]
        for step in steps:
            store.archive({"run": name, "variable": "t", "step": step}, array)
        starts, counts = [[1, 2]] * FIELDS, [[3, 4]] * FIELDS
        run.annotate_many(
            "mark", [float(s) for s in steps], variable="t", step=steps, start=starts, count=counts
        )
        begin = time.perf_counter()
        store.flush()
        return time.perf_counter() - begin

    return commit


def _raw(root: Path, name: str) -> Any:
    root.mkdir(parents=True, exist_ok=True)
    fd, data = os.open(root / name, os.O_WRONLY | os.O_CREAT), bytes(FIELDS * (EDGE * EDGE * 8 + 300))

    def commit(number: int) -> float:
        begin = time.perf_counter()
        os.pwrite(fd, data, number * len(data))
        os.fdatasync(fd)
        return time.perf_counter() - begin

    return commit


def commit_writer(peer: Any, root: Path, name: str, commits: int, pace: float, go: str) -> dict[str, Any]:
    """One of many writers: reports that it is ready, and commits once the file `go` is there."""
    commit = (_raw if peer.__module__.endswith("raw") else _ours)(root, name)
    warm = [commit(number) for number in range(3)]
    Path(go + "-" + name).touch()
    while not Path(go).exists():
        time.sleep(0.01)
    seconds, next_one = [], time.monotonic() + random.random() * pace
    for number in range(commits):
        time.sleep(max(0.0, next_one - time.monotonic()))
        next_one += pace
        seconds.append(commit(len(warm) + number))
    return {"seconds": seconds}


def commit_sizes(peer: Any, root: Path, quick: bool) -> dict[str, float]:
    """Transactions of fields and increasingly many attributes: preparing them, and the commit."""
    import fieldstone as fst
    import numpy as np

    store, result, draw = fst.open(str(root)), {}, np.random.default_rng(5)
    run = store.create_run("a")
    run.create_variable("t", dtype="f8", shape=(4096,) * 3, dims=("z", "y", "x"))
    store.create_tag("mark", type="float")
    store.flush()
    for size in SIZES[: 2 if quick else None]:
        tx = store.transaction()
        tx.archive({"run": "a", "variable": "u", "step": size}, draw.random(1000))
        start, count = draw.integers(0, 4000, (size, 3)), draw.integers(1, 90, (size, 3))
        columns = {"variable": "t", "step": np.arange(size) // 1000, "start": start, "count": count}
        tx.run("a").annotate_many("mark", draw.random(size), **columns)
        begin = time.perf_counter()
        tx.flush()
        prepared = time.perf_counter()
        tx.commit()
        result |= {f"prepare_{size}": prepared - begin, f"commit_{size}": time.perf_counter() - prepared}
        assert store.attributes(run="a", tag="mark").count() >= size
    return result


# ---- in the parent


def commits(fig: Figure, at: Sitting, peer: str) -> Result:
    """Runs all writers at once; returns percentiles over all their commits."""
    root, writers = at.fresh(fig.name, peer), 4 if at.quick else int(fig.data["writers"])
    go, each = root.parent / "go", 10 if at.quick else int(fig.data["each"])
    go.unlink(missing_ok=True)
    running = []
    for number in range(writers):
        arguments = {"name": f"w{number:02}", "commits": each, "pace": fig.data["pace"], "go": str(go)}
        call = {"peer": peer, "what": "commit_writer", "root": str(root), "arguments": arguments}
        command = [measure.interpreter, str(BENCH / "scenarios.py"), json.dumps(call)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    while len(list(root.parent.glob("go-*"))) < writers and all(p.poll() is None for p in running):
        time.sleep(0.05)
    go.touch()
    begin, seconds = time.perf_counter(), []
    for process in running:
        out, problem = process.communicate()
        if process.returncode:
            raise SystemExit(f"bench: a writer of {peer} failed:\n{problem[-3000:]}")
        seconds += json.loads(out.strip().splitlines()[-1])["seconds"]
    for ready in root.parent.glob("go*"):
        ready.unlink()
    rate = len(seconds) / (time.perf_counter() - begin)
    return {
        "median": percentile(seconds, 0.5),
        "p99": percentile(seconds, 0.99),
        "longest": max(seconds),
        "rate": rate,
    }


def sizes(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "commit_sizes", at.fresh(fig.name, peer), quick=at.quick)
    return {**r, "worst": max(v for k, v in r.items() if k.startswith("commit_"))}

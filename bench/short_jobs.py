"""Short jobs and commits of several processes at once, of Fieldstone and of icechunk on a local folder.

`python bench/short_jobs.py PEER jobs ROOT NUMBER` runs short jobs one after another, each of which opens,
writes one step and commits; `PEER at_once ROOT PROCESSES EACH` lets processes commit at the same time, each
its own steps of one array. Each prints one line of JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import BENCH, Result, tree_size

if TYPE_CHECKING:
    from steps import Figure, Sitting

OURS, ICECHUNK = "fieldstone_store", "icechunk"
POINTS = 1_024


def _values(step: int) -> Any:
    import numpy as np

    return np.full(POINTS, step, dtype="f8")


def _fieldstone_job(root: str, step: int) -> None:
    import fieldstone

    with fieldstone.open(root, "a") as store:
        store.archive({"run": "a", "variable": "t", "step": step}, _values(step))
        store.flush()


def _repository(root: str) -> Any:
    import icechunk

    return icechunk.Repository.open_or_create(icechunk.local_filesystem_storage(root))


def _make_array(root: str, steps: int) -> None:
    import zarr

    session = _repository(root).writable_session("main")
    zarr.create_array(session.store, name="t", shape=(steps, POINTS), chunks=(1, POINTS), dtype="f8")
    session.commit("made")


def _icechunk_job(root: str, step: int) -> None:
    import zarr

    session = _repository(root).writable_session("main")
    zarr.open_group(session.store, mode="r+")["t"][step] = _values(step)
    session.commit(f"step {step}")


JOBS = {OURS: _fieldstone_job, ICECHUNK: _icechunk_job}


def jobs(peer: str, root: str, number: int) -> Result:
    """Seconds of the last ten jobs, bytes and files; the same after old versions have gone."""
    if peer == ICECHUNK:
        _make_array(root, number)
    seconds = []
    for step in range(number):
        start = time.perf_counter()
        JOBS[peer](root, step)
        seconds.append(time.perf_counter() - start)
    size = tree_size(Path(root))
    result = {"first": sum(seconds[:10]), "last": sum(seconds[-10:])}
    result |= {"bytes": size["length"], "files": size["files"]}
    start = time.perf_counter()
    if peer == ICECHUNK:
        repository, now = _repository(root), datetime.now(UTC)
        repository.expire_snapshots(older_than=now)
        repository.garbage_collect(delete_object_older_than=now)
    else:
        import fieldstone

        for _ in range(2):
            with fieldstone.open(root, "a") as store:
                store.compact(grace=0)
                store.purge(all=True, doit=True, grace=0)
    result["clean"] = time.perf_counter() - start
    size = tree_size(Path(root))
    return result | {"bytes_after": size["length"], "files_after": size["files"]}


def _commits(peer: str, root: str, steps: range, start: Any, out: Any) -> None:
    start.wait()
    kept, refused = [], 0
    for step in steps:
        try:
            JOBS[peer](root, step)
            kept.append(step)
        except Exception:
            refused += 1
    out.put((kept, refused))


def at_once(peer: str, root: str, processes: int, each: int) -> Result:
    """Commits that were acknowledged and are there, that were lost, and that were refused."""
    context = multiprocessing.get_context("spawn")
    start, out = context.Barrier(processes), context.Queue()
    if peer == ICECHUNK:
        _make_array(root, processes * each)
    workers = [
        context.Process(target=_commits, args=(peer, root, range(n * each, (n + 1) * each), start, out))
        for n in range(processes)
    ]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    answers = [out.get() for _ in workers]
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - began
    acknowledged = [step for kept, _ in answers for step in kept]
    there = [step for step in acknowledged if (_read(peer, root, step) == _values(step)).all()]
    return {
        "kept": len(there),
        "lost": len(acknowledged) - len(there),
        "refused": sum(refused for _, refused in answers),
        "rate": len(there) / seconds,
    }


def _read(peer: str, root: str, step: int) -> Any:
    if peer == ICECHUNK:
        import zarr

        return zarr.open_group(_repository(root).readonly_session("main").store, mode="r")["t"][step]
    import fieldstone

    with fieldstone.open(root, "r") as store:
        return store.get({"run": "a", "variable": "t", "step": step})


# ---- steps of figures


def _child(*arguments: Any) -> Result:
    command = [sys.executable, str(BENCH / "short_jobs.py"), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_jobs(fig: Figure, at: Sitting, peer: str) -> Result:
    return _child(peer, "jobs", at.fresh(fig.name, peer), 50 if at.quick else 1_000)


def run_at_once(fig: Figure, at: Sitting, peer: str) -> Result:
    return _child(peer, "at_once", at.fresh(fig.name, peer), 8, 5 if at.quick else 25)


if __name__ == "__main__":
    peer, verb, root, *numbers = sys.argv[1:]
    print(json.dumps({"jobs": jobs, "at_once": at_once}[verb](peer, root, *map(int, numbers))))

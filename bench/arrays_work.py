"""The work of each rank in a figure of distributed arrays, in Python: `python bench/arrays_work.py WORK
JSON`.

`bench/arrays.py` starts it under mpiexec; rank 0 prints one line of JSON. Times run from a barrier to the
return on the slowest rank; processor seconds are the sum over ranks. `bench/peers/arrays.h` does the same for
programs in C.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from measure import mark
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.rank, COMM.size
Arguments = dict[str, Any]


@contextmanager
def timed(times: dict[str, list[float]], name: str) -> Iterator[None]:
    """Appends to `times` the seconds from a barrier to the end on the slowest rank, under a name."""
    COMM.Barrier()
    start = time.perf_counter()
    yield
    times.setdefault(name, []).append(COMM.allreduce(time.perf_counter() - start, op=MPI.MAX))


@contextmanager
def counted(name: str) -> Iterator[None]:
    """Rank 0 marks for strace the calls that follow."""
    _mark(name)
    yield
    _mark("")


def _mark(name: str) -> None:
    if "BENCH_TRACE" in os.environ:
        # The mark of rank 0 is for the calls of all ranks: none may run past it, or lag behind it.
        COMM.Barrier()
        if RANK == 0:
            mark(name)
        COMM.Barrier()


class Processor:
    """Processor seconds of all ranks since the object was made."""

    def __init__(self) -> None:
        self._start = time.process_time()

    def seconds(self) -> float:
        return COMM.allreduce(time.process_time() - self._start)


def phases(job: Any, found: dict[str, Any], prefix: str = "") -> None:
    """The report of a job: seconds of the slowest rank by phase, counts of all ranks."""
    report = job.report()
    for phase, seconds in report.seconds.items():
        found[f"{prefix}{phase} phase"] = COMM.allreduce(seconds, op=MPI.MAX)
    for name in ("exchanged", "written", "read", "opened", "connections"):
        found[f"{prefix}{name}"] = COMM.allreduce(getattr(report, name))


def first_and_later(times: dict[str, list[float]]) -> dict[str, float]:
    """The first value of each, and the median of the later ones."""
    found = {}
    for name, values in times.items():
        words = {"write": "", "sync": " sync", "read": " read"}[name]
        found[f"first{words}"], found[f"later{words}"] = values[0], statistics.median(values[1:])
    return found


# ---- steps by a view: a random map, a box


class Ours:
    """Steps of one set, written by one job and read by another."""

    def __init__(self, a: Arguments, view: Callable[[], Any], shape: Any) -> None:
        import fieldstone

        self.store = fieldstone.open(Path(a["folder"]) / "run.store")
        self.shape, self.view, self.job = shape, view, self.store.arrays("steps", comm=COMM)

    def open(self, writing: bool) -> None:
        declared = ({"u": "f8"},) if writing else ()
        self.group = self.job.group("g", *declared, shape=self.shape if declared else None)
        self.group.view(self.view())

    def write(self, step: int, values: np.ndarray) -> None:
        self.group.write("u", step, values)

    def sync(self) -> None:
        self.job.flush()

    def read(self, step: int) -> np.ndarray:
        return self.group.read("u", step)

    def close(self) -> None:
        self.job.close()
        self.job = self.store.arrays("steps", comm=COMM)


class ByHand:
    """The exchange as users write it with numpy: sorted by owner, two Alltoallv, one pwrite a rank."""

    def __init__(self, a: Arguments, own: np.ndarray) -> None:
        self.path, self.own, self.total = Path(a["folder"]) / "steps", own, a["total"]

    def open(self, writing: bool) -> None:
        begins = np.array([self.total * r // RANKS for r in range(RANKS + 1)])
        owner = np.searchsorted(begins, self.own, side="right") - 1
        self.order = np.argsort(owner, kind="stable")
        self.sent = np.bincount(owner, minlength=RANKS).astype("i4")
        self.taken = np.empty(RANKS, "i4")
        COMM.Alltoall(self.sent, self.taken)
        at = np.empty(int(self.taken.sum()), "i4")
        COMM.Alltoallv([self.own[self.order].astype("i4"), self.sent], [at, self.taken])
        self.at, self.begin = at - begins[RANK], int(begins[RANK])
        self.range = np.empty(int(begins[RANK + 1]) - self.begin)
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT if writing else os.O_RDONLY)

    def write(self, step: int, values: np.ndarray) -> None:
        arrived = np.empty(len(self.at))
        COMM.Alltoallv([values[self.order], self.sent], [arrived, self.taken])
        self.range[self.at] = arrived
        os.pwrite(self.file, self.range, (self.total * step + self.begin) * 8)

    def sync(self) -> None:
        os.fsync(self.file)

    def read(self, step: int) -> np.ndarray:
        os.preadv(self.file, [self.range], (self.total * step + self.begin) * 8)
        arrived, values = np.empty(len(self.own)), np.empty(len(self.own))
        COMM.Alltoallv([self.range[self.at], self.taken], [arrived, self.sent])
        values[self.order] = arrived
        return values

    def close(self) -> None:
        os.close(self.file)


def course(peer: Any, numbers: np.ndarray, steps: int) -> dict[str, float]:
    """Writes a first step, which plans, then some later ones; then reads all of them."""
    times: dict[str, list[float]] = {}
    used = Processor()
    with counted("write"):
        for step in range(steps):
            values = numbers * 1.5 + step
            with timed(times, "write"):
                if step == 0:
                    peer.open(True)
                peer.write(step, values)
            with timed(times, "sync"):
                peer.sync()
    found: dict[str, Any] = {"cpu": used.seconds()}
    if isinstance(peer, Ours):
        phases(peer.job, found)
    peer.close()
    used = Processor()
    with counted("read"):
        for step in range(steps):
            with timed(times, "read"):
                if step == 0:
                    peer.open(False)
                got = peer.read(step)
            if not np.array_equal(got, numbers * 1.5 + step):
                raise SystemExit(f"rank {RANK}: another value was read than was written")
    found["read cpu"] = used.seconds()
    peer.close()
    return found | first_and_later(times)


def random(a: Arguments) -> dict[str, float]:
    total = a["total"]
    first, end = total * RANK // RANKS, total * (RANK + 1) // RANKS
    own = np.fromfile(a["map"], "i8", end - first, offset=8 * first)
    if a["peer"] == "numpy":
        return course(ByHand(a, own), own, a["steps"])
    import fieldstone

    return course(Ours(a, lambda: fieldstone.irregular(own), total), own, a["steps"])


def grid(a: Arguments) -> dict[str, float]:
    import fieldstone

    edge, parts = a["edge"], a["grid"]
    at = np.unravel_index(RANK, parts)
    cut = [np.arange(edge * c // p, edge * (c + 1) // p, dtype="f8") for c, p in zip(at, parts, strict=True)]
    z, y, x = np.meshgrid(*cut, indexing="ij", sparse=True)
    numbers = (z * edge + y) * edge + x
    return course(Ours(a, lambda: fieldstone.block(grid=parts), (edge,) * 3), numbers, a["steps"])


# ---- restart on another number of ranks


def _vector(a: Arguments, ranks: int, seed: int) -> np.ndarray:
    """The rank of each node: random, but the same on all ranks."""
    return np.random.default_rng(seed).integers(0, ranks, a["nodes"], dtype="u1")


def _state(nodes: np.ndarray, components: int) -> np.ndarray:
    """Values of nodes: all bits differ from node to node and from component to component."""
    bits = (nodes[:, None] * components + np.arange(components)).astype("u8")
    bits = (bits ^ bits >> np.uint64(31)) * np.uint64(0x9E3779B97F4A7C15)
    return bits.view("f8")


def dump(a: Arguments) -> dict[str, float]:
    """A job writes a state at nodes and makes it durable; raw, each rank writes its own file."""
    nodes = np.flatnonzero(_vector(a, RANKS, 1) == RANK)
    values, times = _state(nodes, a["components"]), {}
    used = Processor()
    folder = Path(a["folder"])
    with counted("write"):
        if a["peer"] == "raw":
            with timed(times, "write"), (folder / f"rank{RANK}").open("wb", buffering=0) as file:
                values.tofile(file)
            with timed(times, "sync"), (folder / f"rank{RANK}").open("rb+", buffering=0) as file:
                os.fsync(file.fileno())
            return {"write": times["write"][0], "sync": times["sync"][0], "cpu": used.seconds()}
        import fieldstone

        with timed(times, "open"):
            store = fieldstone.open(folder / "run.store")
            job = store.arrays("flow", comm=COMM)
        with timed(times, "write"):
            group = job.group("state", {"q": "f8"}, shape=(a["nodes"], a["components"]))
            group.view(fieldstone.irregular(nodes))
            group.write("q", 0, values)
        with timed(times, "sync"):
            job.flush()
    found: dict[str, Any] = {name: seconds[0] for name, seconds in times.items()}
    found["cpu"] = used.seconds()
    phases(job, found)
    job.close()
    return found


def restart(a: Arguments) -> dict[str, float]:
    """Another job reads it by another partition, and compares each bit; raw, each rank reads its file."""
    nodes = np.flatnonzero(_vector(a, RANKS, 1 if a["peer"] == "raw" else 2) == RANK)
    times: dict[str, list[float]] = {}
    used = Processor()
    folder = Path(a["folder"])
    with counted("read"):
        if a["peer"] == "raw":
            with timed(times, "read"):
                values = np.fromfile(folder / f"rank{RANK}").reshape(-1, a["components"])
        else:
            import fieldstone

            with timed(times, "open"):
                store = fieldstone.open(folder / "run.store")
                job = store.arrays("flow", comm=COMM)
            with timed(times, "read"):
                group = job.group("state")
                group.view(fieldstone.irregular(nodes))
                values = group.read("q", group.last_step())
    found: dict[str, Any] = {name: seconds[0] for name, seconds in times.items()}
    found["read cpu"] = used.seconds()
    equal = np.array_equal(values.view("u8"), _state(nodes, a["components"]).view("u8"))
    found["equal"] = COMM.allreduce(int(equal), op=MPI.MIN)
    if not found["equal"]:
        raise SystemExit(f"rank {RANK}: a restart is not bit-equal")
    return found


# ---- output during a computation


def _compute(units: int, field: np.ndarray) -> None:
    """Computes in the cache of a core: a number of passes over a field."""
    for _ in range(units):
        field *= 0.999
        field += 0.001


def overlap(a: Arguments) -> dict[str, float]:
    """Finds how many passes take as long as an output, then runs steps: alone, waiting, not waiting."""
    import fieldstone

    count, steps = a["bytes"] // 8 // RANKS, a["steps"]
    values, field = np.arange(count, dtype="f8") + RANK, np.ones(16_384)
    times: dict[str, list[float]] = {}
    with (
        fieldstone.open(Path(a["folder"]) / "run.store") as store,
        store.arrays("flow", comm=COMM) as job,
    ):
        group = job.group("state", {"q": "f8"}, shape=count * RANKS)
        group.view(fieldstone.block(grid=(RANKS,)))
        outputs = 4
        for step in range(outputs):
            if step == 1:
                used = Processor()
            with timed(times, "output"):
                group.write("q", step, values)
                job.flush()
        cpu = used.seconds() / (outputs - 1)
        output = statistics.median(times["output"][1:])
        _compute(200, field)
        with timed(times, "unit"):
            _compute(2_000, field)
        units = max(1, round(output / times["unit"][0] * 2_000))
        with timed(times, "compute"):
            for _ in range(steps):
                _compute(units, field)
        step = outputs
        with timed(times, "waiting"):
            for _ in range(steps):
                _compute(units, field)
                group.write("q", step, values)
                job.flush()
                step += 1
        with timed(times, "hidden"):
            for _ in range(steps):
                _compute(units, field)
                job.flush()
                group.write("q", step, values, wait=False)
                step += 1
            job.flush()
        if not np.array_equal(group.read("q", step - 1), values):
            raise SystemExit(f"rank {RANK}: another value was read than was written")
    found = {name: times[name][0] for name in ("compute", "waiting", "hidden")}
    return found | {"output": output, "output cpu": cpu}


if __name__ == "__main__":
    given = json.loads(sys.argv[2])
    works = {"random": random, "grid": grid, "dump": dump, "restart": restart, "overlap": overlap}
    done = works[sys.argv[1]](given)
    if RANK == 0:
        print(json.dumps(done))

"""The cases of SDM's paper, run by ranks in Python: `python bench/arrays_cases.py WORK JSON`, started by
`bench/arrays_paper.py` under mpiexec.

`mesh`: a job imports the edges of a mesh and partitions them, without a history and with one. `paper`: a job
writes groups of arrays at one level of file organisation and flushes them, and another job reads them.
`in_turn`: ranks write one after another, as the code did before SDM.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from arrays_work import COMM, RANK, RANKS, Arguments, Processor, counted, phases, timed
from mpi4py import MPI

# ---- a mesh: import and partition


def mesh(a: Arguments) -> dict[str, Any]:
    """A job that imports a file of edges, partitions it, with or without a history, and reads a set at edges.

    `source` is the place from which its parts must come.
    """
    import fieldstone

    edges, nodes = a["edges"], a["nodes"]
    vector = np.fromfile(a["vector"], "u1").astype("i8")
    variables = {"a": ("<i4", 0, edges), "b": ("<i4", 4 * edges, edges), "x": ("<f8", 8 * edges, edges)}
    times: dict[str, list[float]] = {}
    with (
        fieldstone.open(Path(a["folder"]) / "run.store") as store,
        store.arrays("flow", comm=COMM) as job,
        counted("mesh"),
    ):
        used = Processor()
        with timed(times, "import"):
            imported = job.import_file(a["file"], variables, format="raw")
        with timed(times, "distribution"):
            part = job.partition((imported["a"], imported["b"]), vector, nodes=nodes, history=a["history"])
        exchanged = COMM.allreduce(job.report().exchanged)
        with timed(times, "data"):
            values = imported["x"].read(part.edge_view)
        with timed(times, "flush"):
            job.flush()
        cpu = used.seconds()
    if part.source != a["source"] or part.ignored:
        raise SystemExit(f"source {part.source} in place of {a['source']}, ignored {part.ignored}")
    sums = [
        len(part.edges),
        len(part.nodes) - part.owned,
        int(part.nodes[part.ends].sum()),
        float(values.sum()),
    ]
    found: dict[str, Any] = {what: seconds[0] for what, seconds in times.items()}
    return found | {
        "exchanged": exchanged,
        "cpu": cpu,
        "check": [COMM.allreduce(number) for number in sums],
    }


# ---- groups at a level


def case(name: str, scale: int) -> tuple[list[dict[str, Any]], int]:
    """Groups of a case with their sets, and the number of dumps; `scale` divides sizes."""
    if name == "astro3d":
        edge = round(256 / scale ** (1 / 3))
        kinds = (("analysis", 6, "f4"), ("restart", 6, "f4"), ("pictures", 7, "u1"))
        return [
            {"name": kind, "shape": (edge,) * 3, "sets": {f"{kind[0]}{i}": dtype for i in range(count)}}
            for kind, count, dtype in kinds
        ], 1
    if name == "euler":
        cells = 194 * 34 * 34 // scale
        vectors = {"dtype": "f8", "shape": (cells, 5)}
        scalars = {"p": "f8", "t": "f8", "mach": "f8", "flag": "f4"}
        return [
            {"name": "flow", "shape": cells, "sets": {"q": vectors, "residual": vectors}},
            {"name": "scalars", "shape": cells, "sets": scalars},
        ], 10
    if name == "rt":
        nodes, triangles = 4_500_000 // scale, 9_250_000 // scale
        return [
            {"name": "nodes", "shape": nodes, "sets": {"u": "f8"}},
            {"name": "triangles", "shape": triangles, "sets": {"v": "f8"}},
        ], 5
    nodes, edges = 2_000_000 // scale, 18_000_000 // scale
    five = {"dtype": "f8", "shape": (nodes, 5)}
    return [
        {"name": "nodes", "shape": nodes, "sets": {"p": "f8", "t": "f8", "q": five}},
        {"name": "edges", "shape": edges, "sets": {"flux": "f8", "area": "f8"}},
    ], 2


def _own(extent: int) -> np.ndarray:
    """This rank's indices: patches of 256 are dealt out at random, like those of a mesh's partition."""
    patches = np.random.default_rng(extent).integers(0, RANKS, -(-extent // 256))
    return np.flatnonzero(np.repeat(patches, 256)[:extent] == RANK)


class _Group:
    """A group of a case, its view, and the values of its sets."""

    def __init__(self, job: Any, given: dict[str, Any], declared: bool, level: int | str) -> None:
        import fieldstone

        name, shape = given["name"], given["shape"]
        self.group = job.group(name) if declared else job.group(name, given["sets"], shape=shape, level=level)
        self.names = list(given["sets"])
        if isinstance(shape, int):
            own = _own(shape)
            self.group.view(fieldstone.irregular(own))
        else:
            self.group.view(fieldstone.block(grid=(2, 2, 1) if RANKS == 4 else (RANKS, 1, 1)))
        self.bases: dict[Any, np.ndarray] = {}

    def values(self, step: int) -> dict[str, np.ndarray]:
        """Several sets may share the same memory: only their types and shapes differ."""
        found = {}
        for name in self.names:
            kind = (self.group.sets[name].dtype, self.group.local_shape(name))
            if kind not in self.bases:
                count = int(np.prod(kind[1]))
                self.bases[kind] = (np.arange(count) * 7 % 251 + RANK).astype(kind[0]).reshape(kind[1])
            base = self.bases[kind]
            found[name] = base if step == 0 else base + np.asarray(step, base.dtype)
        return found


def paper(a: Arguments) -> dict[str, float]:
    """A case at a level: one job writes and flushes every dump; then another job reads everything."""
    import fieldstone

    groups, dumps = case(a["case"], a["scale"])
    level = a["level"] if a["level"] == "auto" else int(a["level"])
    times: dict[str, list[float]] = {}
    store = fieldstone.open(Path(a["folder"]) / "run.store")
    used = Processor()
    with timed(times, "open"):
        job = store.arrays("run", comm=COMM, hints=a.get("hints"))
    with counted("write"):
        with timed(times, "declare"):
            made = [_Group(job, given, False, level) for given in groups]
        for step in range(dumps):
            filled = [group.values(step) for group in made]
            with timed(times, "write"):
                for group, values in zip(made, filled, strict=True):
                    group.group.write_many(step, values)
            with timed(times, "sync"):
                job.flush()
            del filled
    found: dict[str, Any] = {"cpu": used.seconds()}
    phases(job, found)
    found["made"] = sum(len(group.group.files) for group in made)
    found["levels"] = sum(10**at * group.group.level for at, group in enumerate(reversed(made)))
    job.close()
    del made
    used = Processor()
    with counted("read"):
        job = store.arrays("run", comm=COMM, hints=a.get("hints"))
        known = [_Group(job, given, True, level) for given in groups]
        for step in range(dumps):
            with timed(times, "reads"):
                got = [group.group.read_many(step) for group in known]
            for group, arrays in zip(known, got, strict=True):
                wanted = group.values(step)
                if not all(np.array_equal(arrays[name], wanted[name]) for name in wanted):
                    raise SystemExit(f"rank {RANK}: another value was read than was written")
            del got, arrays, wanted
    found["read cpu"] = used.seconds()
    job.close()
    return found | _totals(times)


def _totals(times: dict[str, list[float]]) -> dict[str, float]:
    found = {name: sum(seconds) for name, seconds in times.items()}
    found["whole"] = found.get("declare", 0) + found["write"] + found["sync"]
    return found


def in_turn(a: Arguments) -> dict[str, float]:
    """Writes a file for each set of each dump: a rank writes its elements, native and in its own order, after
    the rank before it; the last rank syncs. All ranks read at once.
    """
    groups, dumps = case(a["case"], a["scale"])
    times: dict[str, list[float]] = {}
    folder, used = Path(a["folder"]), Processor()
    sizes = [len(_own(given["shape"])) for given in groups]
    begins = [COMM.exscan(size) or 0 for size in sizes]
    path = folder / "set{}.{}"
    with counted("write"):
        for step in range(dumps):
            filled = [np.arange(size, dtype="f8") + RANK + step for size in sizes]
            files = []
            with timed(times, "write"):
                for number, values in enumerate(filled):
                    if RANK:
                        COMM.recv(source=RANK - 1, tag=number)
                    file = os.open(str(path).format(number, step), os.O_RDWR | os.O_CREAT, 0o644)
                    os.pwrite(file, values, 8 * begins[number])
                    files.append(file)
                    if RANK + 1 < RANKS:
                        COMM.send(None, dest=RANK + 1, tag=number)
            with timed(times, "sync"):
                for file in files:
                    if RANK == RANKS - 1:
                        os.fsync(file)
                    os.close(file)
    found: dict[str, Any] = {"cpu": used.seconds(), "made": len(groups) * dumps}
    used = Processor()
    with counted("read"):
        for step in range(dumps):
            with timed(times, "reads"):
                for number, size in enumerate(sizes):
                    np.fromfile(str(path).format(number, step), "f8", size, offset=8 * begins[number])
    found["read cpu"] = used.seconds()
    found["bytes"] = COMM.allreduce(8 * dumps * sum(sizes), op=MPI.SUM)
    return found | _totals(times)


if __name__ == "__main__":
    given = json.loads(sys.argv[2])
    done = {"mesh": mesh, "paper": paper, "in_turn": in_turn}[sys.argv[1]](given)
    if RANK == 0:
        print(json.dumps(done))

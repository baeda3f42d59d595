"""Graph samples of a detector: many ranks write them into one file, and a loader reads them in mini-batches.

    mpiexec -n 4 python examples/detector.py write events.nc --events 1000
    python examples/detector.py read events.nc --batch 32

An event is a graph: its nodes are hits with features, and its edges join hits that may belong to one
particle.
Events differ in size. So each event has dimensions and variables of its own, under its own path::

    event_17/hits = 243, event_17/edges = 1102
    event_17/x(hits, feature)  event_17/edge_index(two, edges)  event_17/charge(hits)  event_17/label(edges)

Each rank simulates and defines only its own events. `enddef` makes one header of all definitions; no rank
ever holds the names of the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from fieldstone import container

FEATURES = 6
ARRAYS = {"x": "f4", "edge_index": "i4", "charge": "f4", "label": "i1"}
DIMS = {"x": ("hits", "feature"), "edge_index": ("two", "edges"), "charge": ("hits",), "label": ("edges",)}


@dataclass(frozen=True)
class Batch:
    """Several graphs joined to one, the form that libraries for graph networks take."""

    events: list[int]
    x: np.ndarray
    edge_index: np.ndarray
    charge: np.ndarray
    label: np.ndarray
    graph: np.ndarray
    """For each hit, the graph of the batch that it belongs to."""


def simulate(number: int) -> dict[str, np.ndarray]:
    """Simulates an event; the same number gives the same event on every rank."""
    random = np.random.default_rng(number)
    hits = int(random.integers(40, 400))
    edges = int(random.integers(hits, 5 * hits))
    return {
        "x": random.normal(size=(hits, FEATURES)).astype("f4"),
        "edge_index": random.integers(0, hits, (2, edges)).astype("i4"),
        "charge": random.exponential(size=hits).astype("f4"),
        "label": random.integers(0, 2, edges).astype("i1"),
    }


def write(path: str, events: int, comm: Any = None, **options: Any) -> int:
    """Writes events 0 to `events` - 1, divided among the ranks. Returns how many this rank wrote."""
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    mine = range(rank * events // size, (rank + 1) * events // size)
    samples = {number: simulate(number) for number in mine}
    with container.create(path, comm, **options) as f:
        # All ranks put the same attributes and dimensions, so the file has each of them once.
        f.put_att("title", "simulated detector events")
        f.put_att("events", np.int64(events))
        f.def_dims(["feature", "two"], [FEATURES, 2])
        # Two calls with columns define everything of this rank, however many events there are.
        f.def_dims(
            [f"event_{n}/{dim}" for n in mine for dim in ("hits", "edges")],
            [size for n in mine for size in (len(samples[n]["charge"]), len(samples[n]["label"]))],
        )
        f.def_many(
            names=[f"event_{n}/{array}" for n in mine for array in ARRAYS],
            dtypes=list(ARRAYS.values()) * len(mine),
            dims=list(DIMS.values()) * len(mine),
        )
        f.enddef()
        f.put_many(
            ((f"event_{n}/{array}", samples[n][array]) for n in mine for array in ARRAYS),
            collective=True,
        )
    return len(mine)


class Loader:
    """Mini-batches of events in random order; threads read a few of them ahead.

    Each iteration has another order, which depends on `seed` and on the number of iterations before it. If
    several loaders share the events (one per rank or worker), each takes its `share` of `shares`.
    """

    def __init__(
        self,
        path: str,
        batch: int = 32,
        *,
        seed: int = 0,
        ahead: int = 4,
        share: int = 0,
        shares: int = 1,
    ) -> None:
        self.file = container.open(path)
        self.events = np.arange(share, int(self.file.attrs["events"]), shares)
        self.batch = batch
        self.ahead = ahead
        self.seed = seed
        self.epoch = 0

    def __len__(self) -> int:
        return -(-len(self.events) // self.batch)

    def __iter__(self) -> Iterator[Batch]:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.events)
        self.epoch += 1
        parts = iter([order[i : i + self.batch] for i in range(0, len(order), self.batch)])
        with ThreadPoolExecutor(2, "loader") as threads:
            pending = [threads.submit(self.read, part) for part in islice(parts, self.ahead)]
            while pending:
                done = pending.pop(0)
                pending.extend(threads.submit(self.read, part) for part in islice(parts, 1))
                yield done.result()

    def read(self, events: Sequence[int]) -> Batch:
        """Reads one batch in joined requests; hits are numbered through all graphs of the batch."""
        names = [f"event_{n}/{array}" for n in events for array in ARRAYS]
        found = self.file.get_many(names)
        x, edge_index, charge, label = (found[i :: len(ARRAYS)] for i in range(len(ARRAYS)))
        sizes = np.array([len(part) for part in charge])
        first = np.cumsum(sizes) - sizes
        return Batch(
            events=[int(n) for n in events],
            x=np.concatenate(x),
            edge_index=np.concatenate([e + n for e, n in zip(edge_index, first, strict=True)], axis=1),
            charge=np.concatenate(charge),
            label=np.concatenate(label),
            graph=np.repeat(np.arange(len(sizes)), sizes),
        )


def main(arguments: Sequence[str]) -> None:
    """Runs the commands that the head of this file shows."""
    parser = argparse.ArgumentParser(description="Graph samples of a detector in one container.")
    parser.add_argument("what", choices=("write", "read"))
    parser.add_argument("path")
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--format", default="cdf5")
    given = parser.parse_args(arguments)
    if given.what == "write":
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        mine = write(given.path, given.events, comm, format=given.format)
        print(f"rank {comm.rank} of {comm.size}: {mine} events", flush=True)
        return
    loader = Loader(given.path, given.batch)
    hits = edges = 0
    for batch in loader:
        hits += len(batch.charge)
        edges += len(batch.label)
    print(f"{len(loader.events)} events in {len(loader)} batches: {hits} hits, {edges} edges")


if __name__ == "__main__":
    main(sys.argv[1:])

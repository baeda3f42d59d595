"""The wind carries a tracer round a globe, on an unstructured mesh, computed by the ranks of an MPI job.

    mpiexec -n 4 python flow.py STORE STEPS

The store keeps the mesh "globe" and, in the run "flow", the tracer at the mesh's nodes. The job continues
from the newest step, on any number of ranks: the number of ranks changes no bit of the result.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import fieldstone as fst
import numpy as np

WIND, SPREAD = 0.35, 0.04  # parts per step: of the way to a neighbour; of a difference that diffuses


class Part(NamedTuple):
    """Some nodes of a mesh, in degrees, and the edges between them."""

    lon: np.ndarray
    lat: np.ndarray
    edges: np.ndarray
    ends: np.ndarray
    """Both ends of each edge, as positions in the list of these nodes."""


def advance(tracer: np.ndarray, part: Part) -> np.ndarray:
    """Computes the next step: the flow through an edge leaves one node and enters the other.

    The part that owns a node has all edges of that node, and adds their flows in the order of the whole mesh,
    so that sums are rounded alike in all parts.
    """
    order = np.argsort(part.edges)
    first, second = part.ends[order].T
    lat = np.radians(part.lat)
    east = np.radians((part.lon[second] - part.lon[first] + 180) % 360 - 180)
    east *= np.cos((lat[first] + lat[second]) / 2)
    along = WIND * east  # the wind blows to the east
    flux = np.maximum(along, 0) * tracer[first] + np.minimum(along, 0) * tracer[second]
    flux += SPREAD * (tracer[first] - tracer[second])
    change = np.zeros_like(tracer)
    # Unbuffered and in order: each edge adds to both of its ends before the next edge does.
    np.add.at(change, np.stack([first, second], 1).ravel(), np.stack([-flux, flux], 1).ravel())
    return tracer + change


def main(url: str, steps: int) -> None:
    from mpi4py import MPI

    with fst.open(url) as store, store.arrays("flow", comm=MPI.COMM_WORLD) as job:
        # A Hilbert curve gives each rank neighbouring nodes, so that few edges cross between ranks.
        mine = job.partition("globe", "hilbert")  # own nodes, then ghosts
        mesh, group = job.mesh("globe"), job.group("state")
        group.view(mine.node_view)
        part = Part(mesh.read("x", mine.node_view), mesh.read("y", mine.node_view), mine.edges, mine.ends)
        begin = group.last_step()
        assert begin is not None, "the run has no step to continue from"
        tracer = group.read("tracer", begin)
        for step in range(begin + 1, begin + 1 + steps):
            tracer = advance(tracer, part)
            mine.update(tracer)  # ghosts get their owners' values
            group.write("tracer", step, tracer, wait=False)  # ghosts are not written
            job.flush()
        nodes = f"{mine.owned} nodes, {len(mine.nodes) - mine.owned} ghosts"
        said = f"rank {job.rank}: {nodes}, steps {begin + 1} to {begin + steps} (partition: {mine.source})"
        sys.stdout.write(said + "\n")  # one write, so that lines of several ranks do not mix


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

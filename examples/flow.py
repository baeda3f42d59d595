"""A tracer that the wind carries round a globe, on an unstructured mesh, by the ranks of an MPI job.

    mpiexec -n 4 python flow.py STORE STEPS

The store keeps the mesh "globe" and, of the run "flow", the tracer at its nodes at some step; the job goes on
from the newest one, on any number of ranks: which rank computes what changes no bit of a result.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import fieldstone as fst
import numpy as np

WIND, SPREAD = 0.35, 0.04  # of the way to a neighbour in a step; of a difference that is evened out


class Part(NamedTuple):
    """Some nodes of a mesh, in degrees, and edges between them."""

    lon: np.ndarray
    lat: np.ndarray
    edges: np.ndarray
    ends: np.ndarray
    """Both ends of each edge, as places among these nodes."""


def advance(tracer: np.ndarray, part: Part) -> np.ndarray:
    """The next step: what flows through an edge leaves one node and comes to the other.

    Nodes have all their edges in a part that owns them. They take them in the order of the whole mesh, so
    that sums are rounded alike in all parts.
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
    # One edge after another, each at both of its ends.
    np.add.at(change, np.stack([first, second], 1).ravel(), np.stack([-flux, flux], 1).ravel())
    return tracer + change


def main(url: str, steps: int) -> None:
    from mpi4py import MPI

    with fst.open(url) as store, store.arrays("flow", comm=MPI.COMM_WORLD) as job:
        mine = job.partition("globe", "hilbert")  # own nodes, then ghosts
        mesh, group = job.mesh("globe"), job.group("state")
        group.view(mine.node_view)
        part = Part(mesh.read("x", mine.node_view), mesh.read("y", mine.node_view), mine.edges, mine.ends)
        begin = group.last_step()
        assert begin is not None, "the run has no step to go on from"
        tracer = group.read("tracer", begin)
        for step in range(begin + 1, begin + 1 + steps):
            tracer = advance(tracer, part)
            mine.update(tracer)  # ghosts get their owners' values
            group.write("tracer", step, tracer, wait=False)  # ghosts are not written
            job.flush()
        nodes = f"{mine.owned} nodes, {len(mine.nodes) - mine.owned} ghosts"
        said = f"rank {job.rank}: {nodes}, steps {begin + 1} to {begin + steps} (partition: {mine.source})"
        sys.stdout.write(said + "\n")  # at once, beside those of other ranks


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

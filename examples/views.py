"""Two views of arrays, after SDM's figures: a regular view cuts a matrix into blocks with a halo; an
irregular view is a map array of the mesh nodes that a rank owns, and of its ghosts. The map comes from a
partition of the mesh's edges by a vector. A third group joins particles, whose number changes from step to
step.

    mpiexec -n 4 python views.py views.store
"""

from __future__ import annotations

import sys

import fieldstone as fst
import numpy as np
from mpi4py import MPI

ROWS, COLUMNS, NODES, COMPONENTS = 12, 10, 60, 3


def regular(job: fst.ArrayJob) -> None:
    """Writes rows of a matrix; each block has one more row on each side for the neighbours' values."""
    own = ROWS // job.size  # 1, 2, 3, 4 and 6 ranks cut 12 rows evenly
    group = job.group("regular", {"matrix": "f8"}, shape=(ROWS, COLUMNS), dims=("row", "column"))
    group.view(fst.block(grid=(job.size, 1), halo=(1, 0)))
    matrix = np.add.outer(np.arange(ROWS) * 100.0, np.arange(COLUMNS))
    memory = np.full((own + 2, COLUMNS), -1.0)
    memory[1:-1] = matrix[job.rank * own :][:own]
    group.write("matrix", 0, memory)  # leaves the halo out
    group.read("matrix", 0, into=memory)  # fills the halo
    if job.rank > 0:
        assert (memory[0] == matrix[job.rank * own - 1]).all()
    if job.rank < job.size - 1:
        assert (memory[-1] == matrix[(job.rank + 1) * own]).all()


def irregular(job: fst.ArrayJob) -> None:
    """Writes values at nodes, three components each. Node n belongs to rank 7 n mod size."""
    nodes = np.arange(NODES)
    ring = np.array_split(np.stack([nodes, (nodes + 1) % NODES], 1), job.size)[
        job.rank
    ]  # each rank brings its share of the edges
    part = job.partition((ring[:, 0], ring[:, 1]), 7 * nodes % job.size)
    group = job.group("irregular", {"velocity": "f8", "displacement": "f8"}, shape=(NODES, COMPONENTS))
    group.view(part.node_view)  # writes own nodes, reads ghosts too
    expected = part.nodes[:, None] + np.arange(COMPONENTS) / 10
    values = expected.copy()
    values[part.owned :] = -1
    group.write_many(0, {"velocity": values, "displacement": values})  # both by one plan
    assert (group.read("velocity", 0) == expected).all()
    part.update(values)  # sends the owners' values to the ghosts, without a file
    assert (values == expected).all()


def joined(job: fst.ArrayJob) -> None:
    """Writes particles: the parts of all ranks, one after another."""
    group = job.group("particles", {"x": {"dtype": "f4", "shape": (None, 3)}})
    for step in range(2):
        count = job.rank + 2 * step
        group.view(fst.joined(count))
        group.write("x", step, np.full((count, 3), job.rank, "f4"))


def main(url: str) -> None:
    with fst.open(url) as store, store.arrays("views", comm=MPI.COMM_WORLD) as job:
        regular(job)
        irregular(job)
        joined(job)
        job.flush()
        if job.rank == 0:
            print("bytes of files by rank 0" if job.report().written else "no byte of files by rank 0")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "views.store")

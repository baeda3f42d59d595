"""A simulation that writes three groups of arrays, each for one purpose and at its own frequency: analysis
every 2 steps, pictures every step, restart every 4 steps. A new start continues after the last restart step
that is whole, on any number of ranks. This is the program of SDM's Figure 1 (after ASTRO3D), on a smaller
cube.

    mpiexec -n 4 python astro3d.py astro3d.store

No call names a file: the name of a set and a step are enough.
"""

from __future__ import annotations

import sys

import fieldstone as fst
import numpy as np
from mpi4py import MPI

N = 16  # the cube's side
ANALYSIS, RESTART, PICTURES = 6, 6, 7  # the number of sets in each group
STEPS = 4  # computed by each start of the program


def fields(step: int, z: slice, y: slice) -> np.ndarray:
    """The values that the simulation "computes" at a step: all sets in a part of the cube."""
    sets = 1000.0 * np.arange(RESTART)[:, None, None, None]
    cells = np.arange(float(N**3)).reshape(1, N, N, N) / 64
    return (sets + 100.0 * step + cells)[:, z, y]


def main(url: str) -> None:
    comm = MPI.COMM_WORLD
    with fst.open(url) as store, store.arrays("astro3d", comm=comm) as job:
        shared = {"shape": (N, N, N), "dims": ("z", "y", "x")}
        analysis = job.group("analysis", [f"a{i}" for i in range(ANALYSIS)], dtype="f4", **shared)
        restart = job.group("restart", [f"r{i}" for i in range(RESTART)], dtype="f8", **shared)
        pictures = job.group("pictures", [f"p{i}" for i in range(PICTURES)], dtype="u1", **shared)

        # Each rank holds one box of a balanced cut: 2 x 2 x 1 boxes for four ranks, else slabs.
        grid = (2, 2, 1) if comm.size == 4 else (comm.size, 1, 1)
        for group in (analysis, restart, pictures):
            group.view(fst.block(grid=grid))
        own_z, own_y, _ = restart.local_shape("r0")
        z, y = comm.rank // grid[1] * own_z, comm.rank % grid[1] * own_y  # N is a multiple of 1, 2 and 4
        part = slice(z, z + own_z), slice(y, y + own_y)

        # Continue after the last restart step, or start at the beginning.
        first = 0
        if (step := restart.last_step()) is not None:
            first = step + 1
            known = restart.read_many(step)
            assert all((known[f"r{i}"] == values).all() for i, values in enumerate(fields(step, *part)))
            if comm.rank == 0:
                print(f"goes on after step {step}")

        for step in range(first, first + STEPS):
            state = fields(step, *part)
            if step % 2 == 0:
                analysis.write_many(step, {f"a{i}": state[i].astype("f4") for i in range(ANALYSIS)})
            if step % 4 == 3:
                # A thread writes while the job computes; the job may change its arrays at once.
                restart.write_many(step, {f"r{i}": state[i] for i in range(RESTART)}, wait=False)
            for i in range(PICTURES):
                pictures.write(f"p{i}", step, (state[i % RESTART] / 16 + i).astype("i8").astype("u1"))
            job.flush()  # makes all of the step durable and visible, or nothing of it

        last = pictures.last_step()
        if comm.rank == 0:
            print(f"level {analysis.level}, pictures up to step {last}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "astro3d.store")

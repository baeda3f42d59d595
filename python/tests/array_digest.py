"""The group of ``tests/array-files.sha256``, written by any ranks: ``python array_digest.py FOLDER``."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import fieldstone as fst
import numpy as np

LEVELS = [1, 2, 3]
METHODS = ["auto", "direct", "exchange", "view"]


def held(kind: int, rank: int, size: int) -> tuple[fst.View, np.ndarray]:
    """This rank's part of `a`, and the number of each element in its memory; -1 if it has none."""
    at = np.arange(240).reshape(24, 10)
    if kind == 0:
        return fst.block(grid=(size, 1)), np.array_split(at, size)[rank]
    if kind == 1:
        columns = np.array_split(at, size, 1)[rank]
        return fst.block(grid=(1, size), halo=1), np.pad(columns, 1, constant_values=-1)
    if kind == 2:
        blocks = [at[first : first + 5] for first in range(5 * rank, 24, 5 * size)]
        return fst.cyclic((size, 1), (5, 10)), np.concatenate([at[:0], *blocks])
    if kind == 3:
        rows = np.arange(24)[::-1][rank::size]
        return fst.irregular(rows), at[rows]
    own = (np.arange(240) * 7 % 240)[rank::size]
    numbers = np.concatenate([own, [-1, 5]])
    return fst.irregular(numbers, len(own), None), numbers


def write(path: Path, comm: Any, level: int, method: str, kind: int) -> None:
    rank, size = (comm.rank, comm.size) if comm else (0, 1)
    view, at = held(kind, rank, size)
    wanted = np.arange(60)[np.arange(60) % 7 != 3]
    own = wanted[rank::size][::-1]
    sets = {"a": "f8", "b": {"dtype": "i4", "shape": 60, "fill": -1}}
    with fst.open(path) as store, store.arrays("digest", comm=comm) as job:
        group = job.group("g", sets, shape=(24, 10), level=level, method=method)
        group.view(view, "a")
        group.view(fst.irregular(own), "b")
        for step in range(2):
            group.write("a", step, np.where(at < 0, np.nan, (1000 * step + at) / 8))
            group.write("b", step, (1000 * step + own).astype("i4"))
            job.flush()


def cases(comm: Any) -> list[tuple[int, str, int]]:
    """Level, method and view, different for each number of ranks."""
    size = comm.size if comm else 0
    both = [(level, method) for level in LEVELS for method in METHODS]
    return [(level, method, (number + size) % 5) for number, (level, method) in enumerate(both)]


def sums(path: Path) -> str:
    """The digest of names and bytes of a store's netCDF files."""
    content = hashlib.sha256()
    for file in sorted(path.rglob("*.nc"), key=lambda file: file.name):
        content.update(file.name.encode() + file.read_bytes())
    return content.hexdigest()


if __name__ == "__main__":
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    for level, method, kind in cases(world):
        write(Path(sys.argv[1]) / f"{level}-{method}", world, level, method, kind)

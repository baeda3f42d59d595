"""Random groups of arrays with numpy as the model: a script for any number of ranks of any MPI.

``python array_cases.py FOLDER SEED CASES METHOD...`` writes each case by every method into its own store in
FOLDER, reads each step back through other views, and prints for each case and method the SHA-256 of its
files. The seed alone determines a case; how ranks share it also depends on their number. So all numbers of
ranks print the same.
"""

from __future__ import annotations

import hashlib
import math
import sys
from pathlib import Path
from typing import Any

import fieldstone as fst
import numpy as np
from mpi4py import MPI

TYPES = ["bool", "i1", "u1", "i2", ">u2", "i4", "u4", "i8", "u8", "f4", "f8", ">f8", "c8", "c16", "S1", "S6"]


class Case:
    """An array at two steps, with its written elements and how they are written."""

    def __init__(self, seed: int, number: int) -> None:
        rng = np.random.default_rng([seed, number])
        self.number = number
        self.dtype = np.dtype(str(rng.choice(TYPES)))
        self.order = str(rng.choice(["C", "F"]))
        self.level = int(rng.integers(1, 4))
        dims = int(rng.integers(1, 4))
        self.shape = tuple(int(n) for n in rng.integers(1, [400, 30, 9][dims - 1], dims))
        self.how = str(rng.choice(["grid", "cyclic", "rows", "flat", "joined", "varying"]))
        if self.how == "varying":
            self.order = "C"
        self.fill = bool(rng.integers(2))
        if self.dtype.kind == "b":
            raw = [rng.integers(0, 2, self.shape).astype("b1") for _ in range(2)]
        else:
            raw = [self._noise(rng) for _ in range(2)]
        self.steps = raw
        # Unwritten rows, or elements.
        self.written = np.ones(self.shape, bool)
        if self.how == "rows":
            self.written &= (rng.random(self.shape[0]) < 0.8).reshape(-1, *(1,) * (dims - 1))
        elif self.how == "flat":
            self.written &= rng.random(self.shape) < 0.8

    def _noise(self, rng: np.random.Generator) -> np.ndarray:
        # Letters, because numpy drops trailing zeros of text.
        noise = rng.integers(65, 91, math.prod(self.shape) * self.dtype.itemsize, dtype="u1")
        return noise.view(self.dtype).reshape(self.shape)

    def stored(self, array: np.ndarray) -> np.ndarray:
        """Its elements as they are in files."""
        return array.ravel(order="F" if self.order == "F" else "C")

    def part(self, rng: np.random.Generator, comm: MPI.Comm, how: str) -> tuple[fst.View, np.ndarray]:
        """This rank's view, and the stored number of each of its elements; -1 if it has none."""
        shape, dims, size, rank = self.shape, len(self.shape), comm.size, comm.rank
        at = np.empty(shape, np.int64)
        numbers = np.arange(at.size)
        at[...] = numbers.reshape(shape) if self.order == "C" else numbers.reshape(shape[::-1]).T
        turn = int(rng.integers(dims))
        grid = [size if dim == turn else 1 for dim in range(dims)]
        place = [rank if dim == turn else 0 for dim in range(dims)]
        if how == "grid":
            cut = at
            for dim in range(dims):
                cut = np.array_split(cut, grid[dim], dim)[place[dim]]
            return fst.block(grid=grid), cut
        if how == "cyclic":
            blocks = [int(n) for n in rng.integers(1, 5, dims)]
            for dim in range(dims):
                index = np.arange(shape[dim])
                at = at.take(index[index // blocks[dim] % grid[dim] == place[dim]], dim)
            return fst.cyclic(grid, blocks), at
        if how in ("joined", "varying"):
            cuts = np.sort(rng.integers(0, shape[0] + 1, size - 1))
            cut = np.split(at, cuts, 0)[rank]
            return fst.joined(len(cut)), cut
        # Indices in any order, each with one owner, then ghosts and an entry without an element.
        if how == "rows":
            wanted = np.flatnonzero(self.written.reshape(shape[0], -1).any(1))
        else:
            wanted = np.flatnonzero(self.stored(self.written))
        owner = rng.integers(0, size, len(wanted))
        mine = wanted[owner == rank]
        np.random.default_rng(rank).shuffle(mine)
        map = np.concatenate([mine, wanted[: rank + 2], [-1]])
        local = at.take(map, 0) if how == "rows" else map.copy()
        local[map < 0] = -1
        return fst.irregular(map, len(mine), 0 if how == "rows" else None), local

    def asked(self, rng: np.random.Generator, comm: MPI.Comm) -> tuple[fst.View, np.ndarray]:
        """A view for reading: of another kind, a box with a halo, or a box with a stride."""
        how = str(rng.choice(["grid", "cyclic", "rows", "flat", "halo", "stride"]))
        if how not in ("halo", "stride"):
            return self.part(rng, comm, how)
        own = np.random.default_rng([comm.rank, int(rng.integers(1 << 30))])
        at = np.empty(self.shape, np.int64)
        numbers = np.arange(at.size)
        at[...] = numbers.reshape(self.shape) if self.order == "C" else numbers.reshape(self.shape[::-1]).T
        start = [int(own.integers(n + 1)) for n in self.shape]
        if how == "stride":
            count = [int(own.integers((n - s + 2) // 3 + 1)) for n, s in zip(self.shape, start, strict=True)]
            box = tuple(slice(s, s + 3 * n, 3) for s, n in zip(start, count, strict=True))
            return fst.block(start, count, stride=3), at[box]
        count = [int(own.integers(n - s + 1)) for n, s in zip(self.shape, start, strict=True)]
        wide = np.pad(at, 2, constant_values=-1)
        box = tuple(slice(s, s + n + 4) for s, n in zip(start, count, strict=True))
        return fst.block(start, count, halo=2), wide[box]

    def run(self, store: fst.Store, comm: MPI.Comm, seed: int, method: str) -> str:
        """Writes and reads it; returns the SHA-256 of its files."""
        # The same on all ranks, different for each number of them.
        rng = np.random.default_rng([seed, self.number, comm.size, len(method)])
        shape: tuple[Any, ...] = self.shape if self.how != "varying" else (None, *self.shape[1:])
        options: dict[str, Any] = {"dtype": self.dtype, "shape": shape}
        if self.fill:
            options["fill"] = self.dtype.type(b"" if self.dtype.kind == "S" else 1)
            if self.dtype.kind == "c":
                options["fill"] = complex(np.nan, np.nan)
        with store.arrays(f"r{self.number}", comm=comm, buffer=int(rng.choice([300, 1 << 20]))) as job:
            group = job.group("g", {"a": options}, level=self.level, method=method, order=self.order)
            for step, values in enumerate(self.steps):
                stored = self.stored(values)
                view, at = self.part(rng, comm, self.how)
                group.view(view)
                group.write("a", step, stored[at], wait=bool(rng.integers(2)))
                for flushed in (False, True):
                    if flushed:
                        job.flush()
                        if not (self.fill or self.written.all()):
                            break  # reading a field with holes as a whole finds none
                    view, at = self.asked(rng, comm)
                    into = np.zeros(at.shape, self.dtype)
                    group.read("a", step, view=view, into=into)
                    known = (at >= 0) & self.stored(self.written)[at]
                    assert (into[known] == stored[at][known]).all(), (self.number, step, view)
                    assert (into[at < 0] == np.zeros((), self.dtype)).all(), (self.number, step, view)
            files = sorted(group.files)
        comm.barrier()
        content = hashlib.sha256()
        for path in files:
            content.update(Path(path).name.encode() + Path(path).read_bytes())
        return content.hexdigest()


def main(folder: str, seed: str, cases: str, *methods: str) -> None:
    comm = MPI.COMM_WORLD
    for method in methods:
        with fst.open(Path(folder) / method) as store:
            for number in range(int(cases)):
                found = Case(int(seed), number).run(store, comm, int(seed), method)
                if comm.rank == 0:
                    print(number, method, found, flush=True)
        comm.barrier()
    if comm.rank == 0:
        for method in methods:
            with fst.open(Path(folder) / method, "r") as store:
                assert store.verify().ok


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Sixteen processes write boxes of one array, cut at random, and lose nothing.

    python examples/regions.py FOLDER [--seed N] [--writers N]

There are several rounds. In each round the boxes of all processes together fill the array, and have random
bounds, so that no chunk belongs to one writer. A numpy array that took the same boxes in the same order gives
the expected result. Then the same boxes go through zarr, whose writers read a chunk, change it and write it
back: each writer waits until all have read, as can happen on any busy machine, and overwrites the others'
values. Last, xarray's own to_zarr has to write such a box from a dask array, and refuses.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from pathlib import Path
from typing import Any

import fieldstone as fst
import numpy as np
import xarray as xr

SHAPE = (24, 30, 36)
DIMS = ("z", "y", "x")
ROUNDS = 3
PER_WRITER = 2
KEY = {"run": "regions"}

Box = tuple[tuple[int, int], ...]


def cut(rng: np.random.Generator, box: Box, parts: int) -> list[Box]:
    """Cuts a box into `parts` boxes, at random places."""
    if parts == 1:
        return [box]
    axis = int(np.argmax([stop - start for start, stop in box]))
    start, stop = box[axis]
    left = parts // 2
    middle = (
        int(rng.integers(start + 1, stop)) if stop - start < 6 else int(rng.integers(start + 2, stop - 2))
    )
    halves = [(*box[:axis], part, *box[axis + 1 :]) for part in ((start, middle), (middle, stop))]
    return cut(rng, halves[0], left) + cut(rng, halves[1], parts - left)


def plan(seed: int, writers: int) -> list[list[list[Box]]]:
    """The boxes by round and writer. Boxes of one round do not overlap."""
    rng = np.random.default_rng(seed)
    rounds = []
    for _ in range(ROUNDS):
        boxes = cut(rng, tuple((0, n) for n in SHAPE), writers * PER_WRITER)
        order = rng.permutation(len(boxes))
        rounds.append([[boxes[i] for i in order[w::writers]] for w in range(writers)])
    return rounds


def values(number: int, box: Box) -> np.ndarray:
    """The values that a round writes into a box: no two elements of any two rounds are equal."""
    whole = np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE) + 1e6 * (number + 1)
    return whole[tuple(slice(*part) for part in box)]


def dataset(number: int, box: Box) -> xr.Dataset:
    """A box as a Dataset."""
    return xr.Dataset({"t": (DIMS, values(number, box))})


def region(box: Box) -> dict[str, slice]:
    """A box in the form that to_store and to_zarr take."""
    return {dim: slice(*part) for dim, part in zip(DIMS, box, strict=True)}


def model(rounds: list[list[list[Box]]]) -> np.ndarray:
    """The array that numpy has after all rounds."""
    array = np.full(SHAPE, np.nan)
    for number, writers in enumerate(rounds):
        for box in (box for boxes in writers for box in boxes):
            array[tuple(slice(*part) for part in box)] = values(number, box)
    return array


def template() -> xr.Dataset:
    """The array before the first write; dask does not compute the arrays of a template."""
    import dask.array

    return xr.Dataset({"t": (DIMS, dask.array.full(SHAPE, np.nan, chunks=SHAPE))})


def write_fieldstone(url: str, rounds: list[list[list[Box]]], writer: int, barrier: Any) -> None:
    """Runs in each of the writing processes."""
    with fst.open(url) as store:
        for number, writers in enumerate(rounds):
            barrier.wait()
            for box in writers[writer]:
                fst.to_store(dataset(number, box), store, KEY, region=region(box))


def write_zarr(path: str, rounds: list[list[list[Box]]], writer: int, barrier: Any) -> None:
    """Does the same through zarr; every writer waits for the others before it writes a chunk back."""
    import zarr

    class Together(zarr.storage.LocalStore):
        async def set(self, key: str, value: Any) -> None:
            if "/c/" in key:
                barrier.wait()
            await super().set(key, value)

    array = zarr.open_array(Together(path), path="t", mode="r+")
    for number, writers in enumerate(rounds):
        for box in writers[writer]:
            array[tuple(slice(*part) for part in box)] = values(number, box)


def together(write: Any, where: str, rounds: list[list[list[Box]]], writers: int) -> None:
    """Runs the writers at the same time."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(writers, timeout=120)
    processes = [context.Process(target=write, args=(where, rounds, n, barrier)) for n in range(writers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a writer failed")


def with_fieldstone(folder: Path, rounds: list[list[list[Box]]], writers: int) -> np.ndarray:
    """The contents of the store after all processes have written."""
    url = str(folder / "regions.store")
    fst.to_store(template(), url, KEY, compute=False)
    together(write_fieldstone, url, rounds, writers)
    return xr.open_dataset(url, engine="fieldstone", request=KEY).t.values


def with_zarr(folder: Path, rounds: list[list[list[Box]]], writers: int) -> np.ndarray:
    """The contents of a zarr store after all processes have written; zarr chooses the chunks."""
    path = str(folder / "regions.zarr")
    xr.Dataset({"t": (DIMS, np.full(SHAPE, np.nan))}).to_zarr(path, consolidated=False)
    together(write_zarr, path, rounds, writers)
    return xr.open_zarr(path, consolidated=False).t.values


def by_to_zarr(folder: Path, box: Box) -> str:
    """The error of xarray for a dask array whose blocks are not zarr's chunks."""
    path = str(folder / "chunked.zarr")
    template().chunk(dict.fromkeys(DIMS, 10)).to_zarr(path, compute=False, consolidated=False)
    try:
        dataset(0, box).chunk(dict.fromkeys(DIMS, 7)).to_zarr(path, region=region(box), consolidated=False)
    except ValueError as error:
        return "refused: " + str(error).split(". ")[0].partition("\n")[0]
    return "written"


def main(arguments: list[str]) -> int:
    """Runs all three and prints how many elements are wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writers", type=int, default=16)
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    rounds = plan(given.seed, given.writers)
    expected = model(rounds)
    boxes = ROUNDS * PER_WRITER * given.writers
    print(f"{boxes} boxes by {given.writers} processes, seed {given.seed}")
    got = with_fieldstone(given.folder, rounds, given.writers)
    print(f"fieldstone:     {int((got != expected).sum())} of {expected.size} elements wrong")
    got = with_zarr(given.folder, rounds, given.writers)
    print(f"zarr:           {int((got != expected).sum())} of {expected.size} elements wrong")
    print(f"xarray to_zarr: {by_to_zarr(given.folder, ((3, 17), (5, 22), (1, 30)))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

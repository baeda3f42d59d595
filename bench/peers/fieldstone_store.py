"""Fieldstone through its Python package, on the built-in `mars` schema with the same keys as FDB."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workload import ARRAY_KEY, Key

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from workload import Box
    from workload import Runs as Shape

EVERYTHING = {"class": "rd", "expver": "xxxx"}


class Store:
    """See `peers.Peer`."""

    def __init__(self, root: Path) -> None:
        import fieldstone as fst

        self.store = fst.open(str(root), schema="mars")
        self.archive, self.flush, self.get = self.store.archive, self.store.flush, self.store.get
        self.archive_grib = self.store.archive_grib

    def entries(self) -> Iterator[Key]:
        for entry in self.store.list(EVERYTHING):
            yield dict(entry.key)

    def retrieve(self, request: dict[str, str | list[str]], room: memoryview) -> int:
        total = 0
        with self.store.retrieve(request).open() as fields:
            while (n := fields.readinto(room)) > 0:
                total += n
        return total

    def archive_array(self, array: np.ndarray) -> None:
        self.store.archive(ARRAY_KEY, array)

    def get_box(self, box: Box) -> np.ndarray:
        return self.store.get(ARRAY_KEY, start=box.start, count=box.count)

    @staticmethod
    def cli(root: Path) -> tuple[list[str], dict[str, str]]:
        return [str(Path(sys.prefix) / "bin" / "fieldstone"), "list", str(root)], {}


class Runs:
    """See `peers.Runs`: every field archived by its key, opened as a tree."""

    @staticmethod
    def prepare() -> None:
        import dask.array  # noqa: F401
        import fieldstone.xarray_engine  # noqa: F401
        import xarray as xr

        xr.backends.list_engines()

    @staticmethod
    def fill(root: Path, shape: Shape) -> None:
        import fieldstone as fst

        with fst.open(root) as store:
            for run in range(shape.runs):
                places = [(v, step) for v in range(shape.variables) for step in range(shape.steps)]
                store.archive_many(
                    [{"run": shape.run(run), "variable": f"v{v}", "step": step} for v, step in places],
                    [shape.values(run, v, step) for v, step in places],
                )
                if run % 100 == 99:
                    store.flush()

    @staticmethod
    def open(root: Path, shape: Shape) -> xr.DataTree:
        import xarray as xr

        return xr.open_datatree(root, engine="fieldstone")

    @staticmethod
    def value(opened: xr.DataTree, shape: Shape, run: int, variable: int, step: int) -> float:
        return float(opened[f"{shape.run(run)}/v{variable}"].isel(step=step, dim_0=0, dim_1=0))

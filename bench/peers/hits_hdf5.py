"""Chunks of arrays in HDF5 through h5py: a file per step, a data set per variable, the same chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hits import VARIABLES, Data


class Store:
    """The files below `root`."""

    def __init__(self, root: Path, data: Data) -> None:
        import h5py

        self.h5py, self.root, self.data = h5py, root, data
        self.files: dict[int, Any] = {}

    def create(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)

    def _path(self, step: int) -> Path:
        return self.root / f"step{step}.h5"

    def write(self, name: str, step: int, start: tuple[int, ...], values: Any) -> None:
        if step not in self.files:
            file = self.files[step] = self.h5py.File(self._path(step), "w")
            for variable in VARIABLES:
                file.create_dataset(variable, self.data.shape, "f8", chunks=(self.data.edge,) * 3)
        self.files[step][name][tuple(slice(a, a + self.data.edge) for a in start)] = values

    def flush(self) -> None:
        import os

        for step, file in self.files.items():
            file.flush()
            with self._path(step).open("rb") as f:
                os.fdatasync(f.fileno())

    def close(self) -> None:
        for file in self.files.values():
            file.close()
        self.files.clear()

    def read(self, name: str, step: int, start: tuple[int, ...], count: tuple[int, ...]) -> Any:
        if step not in self.files:
            self.files[step] = self.h5py.File(self._path(step), "r")
        return self.files[step][name][tuple(slice(a, a + n) for a, n in zip(start, count, strict=True))]

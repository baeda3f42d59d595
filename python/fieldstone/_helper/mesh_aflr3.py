"""AFLR3's meshes (``.ugrid``): text, or binary with or without Fortran's records (``.lb8.ugrid`` and others).

https://www.simcenter.msstate.edu/software/documentation/ug_io/3d_grid_file_type_ugrid.html
"""

from __future__ import annotations

import os

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.mesh_arrays import MeshArrays, damaged, named, placed, stacked
from fieldstone._helper.mesh_text import Table, read_text

# Byte order, bytes of a coordinate, bytes of a number, whether Fortran wrote records.
FORMS = {
    "b8l": (">", 8, 8, False),
    "b8": (">", 8, 4, False),
    "b4": (">", 4, 4, False),
    "lb8l": ("<", 8, 8, False),
    "lb8": ("<", 8, 4, False),
    "lb4": ("<", 4, 4, False),
    "r8": (">", 8, 4, True),
    "r4": (">", 4, 4, True),
    "lr8": ("<", 8, 4, True),
    "lr4": ("<", 4, 4, True),
}
# The corners of a pyramid's base, around it, and its apex.
_PYRAMID = [1, 0, 3, 4, 2]


def read(path: str) -> MeshArrays:
    """Faces and volumes, in the order of the file. RequestError: ``Corrupt`` if the file ends too early."""
    parts = os.path.basename(path).lower().split(".")
    form = FORMS.get(parts[-2]) if len(parts) > 2 else None
    numbers = _Text(path) if form is None else _Bytes(path, *form)
    counts = numbers.header()
    if min(counts) < 0:
        raise damaged(path, f"its header has a count of {min(counts)}")
    nodes, triangles, squares, tets, pyramids, wedges, hexes = counts
    numbers.begin()
    points = numbers.floats(3 * nodes).reshape(-1, 3)
    rows = [(triangles, 3, None), (squares, 4, None)]
    faces = [_rows(numbers, *one) for one in rows]
    numbers.integers(triangles + squares)
    volumes = [
        _rows(numbers, *one)
        for one in ((tets, 4, None), (pyramids, 5, _PYRAMID), (wedges, 6, None), (hexes, 8, None))
    ]
    found = {}
    for kind, blocks in (("faces", faces), ("volumes", volumes)):
        if present := [block for block in blocks if len(block)]:
            found[kind] = stacked(present)
    return placed("AFLR3", list(points.T), found)


def _rows(numbers: _Text | _Bytes, count: int, width: int, order: list[int] | None) -> np.ndarray:
    rows = numbers.integers(count * width).reshape(-1, width) - 1
    named(numbers.path, rows, "a row of nodes: number")
    return rows if order is None else rows[:, order]


class _Text:
    """The numbers of a text."""

    def __init__(self, path: str) -> None:
        self.path, self.at = path, 0
        content = read_text(path)
        self.values = Table(path, content, 0, len(content)).floats()

    def header(self) -> list[int]:
        return self.integers(7).tolist()

    def begin(self) -> None:
        """Called before the nodes."""

    def floats(self, count: int) -> np.ndarray:
        values = self.values[self.at : self.at + count]
        self.at += count
        if len(values) != count:
            raise damaged(self.path, f"it ends after {len(self.values)} numbers instead of {self.at} or more")
        return values

    def integers(self, count: int) -> np.ndarray:
        values = self.floats(count)
        whole = values.astype(np.int64)
        if not np.array_equal(whole, values):
            raise damaged(self.path, "a number of a node has a fraction")
        return whole


class _Bytes:
    """The numbers of a binary file."""

    def __init__(self, path: str, order: str, float_bytes: int, int_bytes: int, has_records: bool) -> None:
        self.path, self.at, self.has_records = path, 0, has_records
        self.float, self.int = np.dtype(f"{order}f{float_bytes}"), np.dtype(f"{order}i{int_bytes}")
        with open_plain(path) as file:
            self.content = file.read()

    def header(self) -> list[int]:
        if self.has_records:
            self.at += 4
        return self.integers(7).tolist()

    def begin(self) -> None:
        """Called before the nodes: skips the end of the header's record and the beginning of the next one."""
        if self.has_records:
            self.at += 8

    def take(self, dtype: np.dtype, count: int) -> np.ndarray:
        if count * dtype.itemsize > len(self.content) - self.at:
            raise damaged(self.path, f"it has {len(self.content)} bytes, fewer than its header requires")
        values = np.frombuffer(self.content, dtype, count, self.at)
        self.at += count * dtype.itemsize
        return values

    def floats(self, count: int) -> np.ndarray:
        return self.take(self.float, count).astype(np.float64)

    def integers(self, count: int) -> np.ndarray:
        return self.take(self.int, count).astype(np.int64)

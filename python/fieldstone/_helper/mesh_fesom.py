"""FESOM's folder of text files: ``nod2d.out``, ``elem2d.out`` and, if it exists, ``edges.out``.

Each of the first two begins with a count; nodes have a number, longitude, latitude (degrees) and a flag.
"""

from __future__ import annotations

import os

import numpy as np

from fieldstone._helper.mesh_arrays import LATITUDE, LONGITUDE, MeshArrays, damaged, named
from fieldstone._helper.mesh_text import Table, read_text


def read(path: str) -> MeshArrays:
    """The mesh of a folder. RequestError: ``Corrupt`` for a file whose lines do not match its count."""
    nodes = _rows(os.path.join(path, "nod2d.out"), True, 3)
    index = nodes[:, 0]
    if not np.array_equal(index, np.arange(1, len(index) + 1)):
        wrong = int(np.argmax(index != np.arange(1, len(index) + 1)))
        raise damaged(os.path.join(path, "nod2d.out"), f"node {wrong + 1} has the number {index[wrong]:.0f}")
    elements = os.path.join(path, "elem2d.out")
    faces = _rows(elements, True, 3)[:, :3].astype(np.int64) - 1
    rows = {"faces": named(elements, faces, "element")}
    if os.path.exists(edges := os.path.join(path, "edges.out")):
        rows["edges"] = _rows(edges, False, 2)[:, :2].astype(np.int64) - 1
    coordinates = {"x": np.ascontiguousarray(nodes[:, 1]), "y": np.ascontiguousarray(nodes[:, 2])}
    node_attrs = {"x": dict(LONGITUDE), "y": dict(LATITUDE)}
    return MeshArrays("FESOM2", coordinates, **rows, node_attrs=node_attrs)


def _rows(path: str, has_count: bool, least: int) -> np.ndarray:
    """The lines of a file as rows of numbers; their number must be that in its first line."""
    content = read_text(path)
    table = Table(path, content, 0, len(content))
    numbers, counts = table.floats(), table.counts
    if has_count:
        if not len(counts) or counts[0] != 1 or numbers[0] != len(counts) - 1:
            raise damaged(path, f"its first line is not the count of the {max(len(counts) - 1, 0)} others")
        numbers, counts = numbers[1:], counts[1:]
    if not len(counts) or counts[0] < least or (counts != counts[0]).any():
        raise damaged(path, f"some of its lines have fewer than {least} numbers")
    return numbers.reshape(len(counts), -1)

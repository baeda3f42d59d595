"""TetGen's and Triangle's meshes: ``NAME.node`` with the nodes, ``NAME.ele`` with the elements.

Elements refer to nodes by their numbers in the file; both keep the order of their files.
"""

from __future__ import annotations

import os

import numpy as np

from fieldstone._helper.frames import RequestError
from fieldstone._helper.mesh_arrays import MeshArrays, damaged, no_mesh, placed
from fieldstone._helper.mesh_cells import Cells, numbered, rows_of
from fieldstone._helper.mesh_text import Table, read_text

# VTK's type of an element, by the number of its nodes and the dimensions.
_TYPES = {(2, 3): 5, (2, 6): 69, (3, 4): 10, (3, 10): 71}


def read(path: str) -> MeshArrays:
    """The mesh of two files with one name. RequestError: ``NotFound`` if one of them is missing."""
    stem = os.path.splitext(path)[0]
    facts, nodes = _rows(f"{stem}.node", 4)
    dimension = facts[1]
    if dimension not in (2, 3):
        raise no_mesh(path, f"its nodes have {dimension} dimensions")
    facts, elements = _rows(f"{stem}.ele", 3)
    if (type_ := _TYPES.get((dimension, facts[1]))) is None:
        raise no_mesh(path, f"its elements have {facts[1]} nodes in {dimension} dimensions")
    cells = Cells.block(type_, elements[:, 1 : 1 + facts[1]].astype(np.int64))
    cells = numbered(f"{stem}.ele", cells, nodes[:, 0].astype(np.int64))
    rows, _ = rows_of(cells, path)
    return placed("TetGen", list(nodes[:, 1 : 1 + dimension].T), rows)


def _rows(path: str, facts: int) -> tuple[list[int], np.ndarray]:
    """The facts of the first line, and the following rows, whose number must be that in the first line."""
    try:
        content = read_text(path)
    except FileNotFoundError:
        raise RequestError("NotFound", f"there is no file {path}", "keep both in one folder") from None
    table = Table(path, content, 0, len(content), comment=b"#")
    numbers, counts = table.floats(), table.counts
    if not len(counts) or counts[0] < facts - 1:
        raise damaged(path, "its first line lacks the counts")
    head = [int(number) for number in numbers[: counts[0]]]
    rows = counts[1:]
    least = 1 + head[1]
    if len(rows) != head[0] or (len(rows) and ((rows != rows[0]).any() or rows[0] < least)):
        raise damaged(
            path, f"it declares {head[0]} lines of {least} numbers or more, but has {len(rows)} lines"
        )
    return head, numbers[counts[0] :].reshape(len(rows), -1) if len(rows) else np.zeros((0, least))

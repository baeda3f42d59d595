"""AVS' unstructured cell data (UCD), text:
https://dav.lbl.gov/archive/NERSC/Software/express/help6.1/help/reference/

Nodes are identified by their own numbers; nodes and cells keep the order of the file. Values are skipped.
"""

from __future__ import annotations

import re

import numpy as np

from fieldstone._helper.mesh_arrays import MeshArrays, damaged, no_mesh, placed
from fieldstone._helper.mesh_cells import Cells, numbered, rows_of, without_marks
from fieldstone._helper.mesh_text import Table, read_text

# VTK's type of each kind, and the places of UCD's nodes in VTK's order: UCD counts from the top.
KINDS = {
    b"pt": (1, (0,)),
    b"line": (3, (0, 1)),
    b"tri": (5, (0, 1, 2)),
    b"quad": (9, (0, 1, 2, 3)),
    b"tet": (10, (0, 1, 3, 2)),
    b"pyr": (14, (1, 2, 3, 4, 0)),
    b"prism": (13, (3, 4, 5, 0, 1, 2)),
    b"hex": (12, (4, 5, 6, 7, 0, 1, 2, 3)),
}


def read(path: str) -> MeshArrays:
    """The mesh of a file. RequestError: ``Invalid`` or ``Corrupt``, with the wrong cell."""
    content = read_text(path)
    if b"\0" in content[:4096]:
        raise no_mesh(path, "it is binary UCD, but only text is supported", "save it as text (ASCII UCD)")
    lines = [line for line in content.split(b"\n") if (own := line.split()) and not own[0].startswith(b"#")]
    head = lines[0].split() if lines else []
    if len(head) != 5 or not all(word.isdigit() for word in head):
        raise no_mesh(path, "it does not begin with five counts, as UCD files of AVS do")
    nodes, count = int(head[0]), int(head[1])
    if len(lines) < 1 + nodes + count:
        raise damaged(path, f"it has {len(lines) - 1} lines for {nodes} nodes and {count} cells")
    table = _table(path, lines[1 : 1 + nodes])
    if nodes and (table.counts != 4).any():
        raise damaged(path, f"node {int(np.argmax(table.counts != 4))} (from 0) lacks a number and x, y, z")
    points = table.floats().reshape(nodes, -1)
    if not nodes:
        raise no_mesh(path, "it has no nodes")
    cells = numbered(path, _cells(path, lines[1 + nodes : 1 + nodes + count]), points[:, 0].astype(np.int64))
    rows, vertices = rows_of(cells, path)
    rows, omitted = without_marks(rows, vertices, are_marks=False)
    return placed("AVS-UCD", list(points[:, 1:].T), rows, omitted=omitted)


def _table(path: str, lines: list[bytes]) -> Table:
    text = b"\n".join(lines)
    return Table(path, text, 0, len(text))


def _cells(path: str, lines: list[bytes]) -> Cells:
    """Lines: number, material, kind, nodes."""
    names = [words[2].lower() if len(words := line.split(None, 3)) > 3 else b"" for line in lines]
    for cell, name in enumerate(names):
        if name not in KINDS:
            raise no_mesh(
                path, f"cell {cell} (from 0) is of kind {name.decode('utf-8', 'replace') or 'none'}"
            )
    table = _table(path, [re.sub(rb"[A-Za-z]+", b"0", line, count=1) for line in lines])
    numbers, counts = table.integers(), table.counts
    types = np.array([KINDS[name][0] for name in names], np.int64)
    sizes = np.array([len(KINDS[name][1]) for name in names], np.int64)
    wrong = counts != sizes + 3
    if wrong.any():
        cell = int(np.argmax(wrong))
        raise damaged(path, f"cell {cell} (from 0) has {counts[cell] - 3} nodes instead of {sizes[cell]}")
    starts = np.cumsum(counts) - counts + 3
    for name in set(names):
        type_, order = KINDS[name]
        if order != tuple(sorted(order)):
            places = starts[types == type_][:, None]
            numbers[places + np.arange(len(order))] = numbers[places + np.array(order)]
    return Cells(types, starts, sizes, numbers).compact()

"""Exodus II: blocks of elements in a netCDF file,
https://sandialabs.github.io/seacas-docs/sphinx/html/index.html#exodus

Elements are in the order of their blocks, nodes in that of their coordinates; maps of numbers
(``node_num_map``) only give other names to them. A block without elements has no variable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldstone._helper.mesh_arrays import MeshArrays, named, no_mesh, placed, stacked
from fieldstone._helper.mesh_cells import without_marks
from fieldstone._helper.mesh_ugrid import floats

# Kind and corners of an element, by the beginning of its type's name; the first match counts.
TYPES = (
    ("NSIDED", "faces", None),
    ("TRISHELL", "faces", 3),
    ("TRI", "faces", 3),
    ("SHELL", "faces", None),
    ("QUAD", "faces", 4),
    ("TET", "volumes", 4),
    ("PYR", "volumes", 5),
    ("WED", "volumes", 6),
    ("HEX", "volumes", 8),
    ("BAR", "edges", 2),
    ("BEAM", "edges", 2),
    ("TRUSS", "edges", 2),
    ("ROD", "edges", 2),
    ("EDGE", "edges", 2),
    ("SPHERE", "points", 1),
    ("CIRCLE", "points", 1),
)
_HINT = "a mesh can have lines, faces of any size, tetrahedra, pyramids, wedges and hexahedra"


def is_exodus(dataset: Any) -> bool:
    """Whether a file has blocks of elements and coordinates."""
    names = set(dataset.variables)
    return any(name.startswith("connect") for name in names) and bool({"coord", "coordx"} & names)


def read(dataset: Any, sizes: dict[str, int], path: str) -> MeshArrays:
    """All blocks of a file with dimensions of these sizes, including those without a variable.

    RequestError: ``Invalid`` for a block of unsupported elements.
    """
    if "coord" in dataset.variables:
        coordinates = list(np.asarray(dataset["coord"].values, dtype=np.float64))
    else:
        present = [f"coord{axis}" for axis in "xyz" if f"coord{axis}" in dataset.variables]
        coordinates = [floats(dataset[name]) for name in present]
    numbers = [
        int(name[7:]) for name in dataset.variables if name.startswith("connect") and name[7:].isdigit()
    ]
    blocks: dict[str, list[np.ndarray]] = {}
    points = 0
    for number in range(1, max([*numbers, sizes.get("num_el_blk", 0)], default=0) + 1):
        if number not in numbers:
            if elements := sizes.get(f"num_el_in_blk{number}", 0):
                raise no_mesh(path, f"block {number} has {elements} elements but no connect{number}")
            continue
        kind, rows = _block(dataset, number, path)
        if kind == "points":
            points += len(rows)
        elif len(rows):
            blocks.setdefault(kind, []).append(rows)
    rows, omitted = without_marks({kind: stacked(parts) for kind, parts in blocks.items()}, points, False)
    for dimension, sides in (("num_ed_blk", "edges"), ("num_fa_blk", "faces")):
        if count := sizes.get(dimension, 0):
            omitted.append((f"{count} blocks of {sides}", "only elements are ingested, not their sides"))
    return placed("Exodus", coordinates, rows, omitted=omitted)


def _block(dataset: Any, number: int, path: str) -> tuple[str, np.ndarray]:
    """The location of a block, and its rows of nodes from 0."""
    variable = dataset[f"connect{number}"]
    said = variable.attrs.get("elem_type", "")
    name = (said.decode("ascii", "replace") if isinstance(said, bytes) else str(said)).strip("\0 ").upper()
    known = next((known for known in TYPES if name.startswith(known[0])), None)
    if known is None:
        raise no_mesh(path, f"block {number} has elements of type {name or 'unknown'}", _HINT)
    _, kind, corners = known
    entries = np.asarray(variable.values, dtype=np.int64) - 1
    counts = dataset.variables.get(f"ebepecnt{number}")
    if counts is not None and entries.ndim == 1:
        return kind, _polygons(entries, np.asarray(counts.values, dtype=np.int64), number, path)
    if entries.ndim != 2:
        raise no_mesh(path, f"block {number} of {name} has {entries.ndim} dimensions instead of two")
    width = entries.shape[1]
    if name.startswith("SHELL"):
        # A shell of three nodes is a triangle; MOAB and TempestRemap call polygons of any size shells. With
        # eight or nine nodes it is Exodus' own quadrilateral of order 2.
        corners = 4 if width in (8, 9) else width
    if width < (corners or 3) or (corners is not None and kind == "faces" and corners < 3):
        raise no_mesh(path, f"block {number} of {name} has {width} nodes in each element", _HINT)
    rows = entries[:, :corners]
    # Polygons with fewer nodes than their block may end with zeros.
    may_end = name.startswith(("SHELL", "NSIDED"))
    return kind, rows if may_end else named(path, rows, f"block {number}: element")


def _polygons(entries: np.ndarray, counts: np.ndarray, number: int, path: str) -> np.ndarray:
    """Elements of any number of nodes, which follow one another."""
    if counts.sum() != len(entries) or (counts < 3).any():
        raise no_mesh(path, f"ebepecnt{number} does not fit connect{number}")
    rows = np.full((len(counts), int(counts.max(initial=3))), -1, np.int64)
    rows[np.arange(rows.shape[1]) < counts[:, None]] = entries
    return rows

"""Medit's meshes, text (``.mesh``) and binary (``.meshb``): https://github.com/LoicMarechal/libMeshb

Each kind of cell has its own section; kinds keep the order of their sections. Edges along faces and volumes
mark ridges and are left out, as are corners, normals and required entities.
"""

from __future__ import annotations

import os
import re

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.mesh_arrays import MeshArrays, damaged, no_mesh, placed
from fieldstone._helper.mesh_cells import Cells, rows_of, without_marks
from fieldstone._helper.mesh_text import Table, read_text

# VTK's type and the number of nodes of a section's cells; with order 2 the corners come first.
CELLS = {
    "Edges": (3, 2),
    "Triangles": (5, 3),
    "Quadrilaterals": (9, 4),
    "Tetrahedra": (10, 4),
    "Prisms": (13, 6),
    "Pentahedra": (13, 6),
    "Pyramids": (14, 5),
    "Hexahedra": (12, 8),
    "Hexaedra": (12, 8),
    "EdgesP2": (68, 3),
    "TrianglesP2": (69, 6),
    "QuadrilateralsQ2": (70, 9),
    "TetrahedraP2": (71, 10),
    "HexahedraQ2": (72, 27),
}
# Numbers of sections in binary files.
CODES = {
    4: "Vertices",
    5: "Edges",
    6: "Triangles",
    7: "Quadrilaterals",
    8: "Tetrahedra",
    9: "Prisms",
    10: "Hexahedra",
    24: "TrianglesP2",
    25: "EdgesP2",
    27: "QuadrilateralsQ2",
    30: "TetrahedraP2",
    33: "HexahedraQ2",
    49: "Pyramids",
}
# Unsupported cells: of arbitrary shape, of order 2 in other kinds, of order 3 and 4.
_OTHER_CODES = {46, 47, 86, 87, 88, 89, 90, 91, 92, 93, 96, 97, *range(100, 104)}
_OTHER_CELLS = re.compile(
    r"(Edges|Triangles|Quadrilaterals|Tetrahedra|Prisms|Pyramids|Hexahedra|Inner)?[PQ][1-9]|Poly"
)
_DIMENSION, _END = 3, 54
_WORD = re.compile(rb"^[ \t]*([A-Za-z]\w*)", re.MULTILINE)


def read(path: str) -> MeshArrays:
    """The mesh of a file. RequestError: ``Invalid`` or ``Corrupt``, with the wrong section."""
    with open_plain(path) as file:
        head = file.read(4)
    is_binary = head in (b"\1\0\0\0", b"\0\0\0\1")
    points, parts = _binary(path) if is_binary else _text(path)
    if points is None:
        raise no_mesh(path, "it lacks Vertices, with which a mesh of Medit begins")
    rows, vertices = rows_of(Cells.joined(parts), path)
    rows, omitted = without_marks(rows, vertices, are_marks=True)
    return placed(os.path.splitext(path)[1][1:].lower(), list(points.T), rows, omitted=omitted)


def _refuse_others(path: str, name: str) -> None:
    if _OTHER_CELLS.match(name) and not name.endswith("Ordering"):
        raise no_mesh(
            path,
            f"it has a section of {name}, cells which are not supported",
            "save it with elements of order 1",
        )


def _text(path: str) -> tuple[np.ndarray | None, list[Cells]]:
    content = read_text(path)
    if b"#" in content:
        # The same length as before, so that lines keep their numbers.
        content = re.sub(rb"#[^\n]*", lambda found: b" " * len(found[0]), content)
    found = [(word[1].decode(), word.end()) for word in _WORD.finditer(content)]
    ends = [content.rfind(b"\n", 0, begin) + 1 for _, begin in found[1:]] + [len(content)]
    dimension, points, parts = 0, None, []
    for (name, begin), end in zip(found, ends, strict=True):
        if name == "Dimension":
            dimension = int(Table(path, content, begin, end).integers()[:1].sum())
        elif name == "Vertices":
            points = _section(path, content, name, begin, end, dimension + 1)[:, :dimension]
        elif name in CELLS:
            type_, nodes = CELLS[name]
            own = _section(path, content, name, begin, end, nodes + 1)
            parts.append(Cells.block(type_, own[:, :nodes].astype(np.int64) - 1))
        else:
            _refuse_others(path, name)
    if dimension not in (2, 3):
        raise no_mesh(path, f"its Dimension is {dimension or 'missing'}")
    return points, parts


def _section(path: str, content: bytes, name: str, begin: int, end: int, width: int) -> np.ndarray:
    numbers = Table(path, content, begin, end).floats()
    if not len(numbers) or numbers[0] * width != len(numbers) - 1:
        due = f"{numbers[0]:.0f} rows of {width} numbers" if len(numbers) else "a count"
        raise damaged(path, f"{name} has {len(numbers)} numbers instead of {due}")
    return numbers[1:].reshape(-1, width)


def _binary(path: str) -> tuple[np.ndarray | None, list[Cells]]:
    with open_plain(path) as file:
        content = file.read()
    order = "<" if content[:1] == b"\1" else ">"

    def numbers(dtype: str, count: int, at: int) -> np.ndarray:
        if count < 0 or at + count * np.dtype(dtype).itemsize > len(content):
            raise damaged(path, f"it has {len(content)} bytes, fewer than its header requires")
        return np.frombuffer(content, order + dtype, count, at)

    version = int(numbers("i4", 1, 4)[0])
    if version not in (1, 2, 3, 4):
        raise no_mesh(path, f"it is of version {version} of Medit's format")
    place, whole, real = (
        "i8" if version > 2 else "i4",
        "i8" if version > 3 else "i4",
        "f8" if version > 1 else "f4",
    )
    size = np.dtype(place).itemsize
    at, dimension, points, parts = 8, 0, None, []
    while at:
        code, after = int(numbers("i4", 1, at)[0]), int(numbers(place, 1, at + 4)[0])
        begin = at + 4 + size
        if code == _END:
            break
        if after and not begin <= after <= len(content):
            raise damaged(path, f"section {code} ends at byte {after} of {len(content)}")
        if code == _DIMENSION:
            dimension = int(numbers("i4", 1, begin)[0])
        elif code in CODES:
            count, begin = int(numbers(whole, 1, begin)[0]), begin + np.dtype(whole).itemsize
            if CODES[code] == "Vertices":
                record = np.dtype([("at", order + real, (dimension,)), ("mark", order + whole)])
                if count * record.itemsize > len(content) - begin:
                    raise damaged(path, f"it ends before all of its {count} Vertices")
                points = np.frombuffer(content, record, count, begin)["at"].astype(np.float64)
            else:
                type_, nodes = CELLS[CODES[code]]
                own = numbers(whole, count * (nodes + 1), begin).reshape(count, -1)
                parts.append(Cells.block(type_, own[:, :nodes].astype(np.int64) - 1))
        elif code in _OTHER_CODES:
            raise no_mesh(
                path,
                f"it has cells of section {code}, which are not supported",
                "save it with elements of order 1",
            )
        at = after
    return points, parts

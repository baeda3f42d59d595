"""SU2's meshes, text: https://su2code.github.io/docs_v7/Mesh-File/

Read as by SU2: nodes and elements are numbered by their lines from 0, and an index after them has no meaning.
Markers, also those of ghost nodes (``SEND_RECEIVE``), periodic ones and boxes of free-form deformation are
left out.
"""

from __future__ import annotations

import re

import numpy as np

from fieldstone._helper.mesh_arrays import MeshArrays, damaged, no_mesh, placed
from fieldstone._helper.mesh_cells import KINDS, Cells, rows_of, without_marks
from fieldstone._helper.mesh_text import Table, read_text

# Types with these numbers of nodes; SU2's are VTK's.
NODES = {type_: KINDS[type_].nodes for type_ in (1, 3, 5, 9, 10, 12, 13, 14)}
_KEYWORD = re.compile(rb"[ \t]*([A-Za-z_]+)[ \t]*=[ \t]*([^\n%]*)")


class _Section:
    """A keyword with its value, and the begin and end of its lines."""

    def __init__(self, value: bytes, begin: int) -> None:
        self.value, self.begin, self.end = value.strip(), begin, begin


def read(path: str) -> MeshArrays:
    """The mesh of a file of one zone. RequestError: ``Invalid`` or ``Corrupt``, with the wrong line."""
    content = read_text(path)
    sections = _sections(content)
    if "NDIME" not in sections:
        raise no_mesh(path, "it lacks NDIME=, with which a mesh of SU2 begins")
    _one_zone(path, sections)
    dimensions = _count(path, sections, "NDIME")
    if dimensions not in (2, 3):
        raise no_mesh(path, f"NDIME= {dimensions}, but SU2 only has meshes of 2 and 3 dimensions")
    coordinates = _nodes(path, content, sections, dimensions)
    rows, points = rows_of(_elements(path, content, sections), path, _type_name)
    rows, omitted = without_marks(rows, points, are_marks=False)
    return placed("SU2", coordinates, rows, omitted=omitted)


def _sections(content: bytes) -> dict[str, list[_Section]]:
    """Keywords in capitals, each with all its occurrences in the file."""
    found: dict[str, list[_Section]] = {}
    last = None
    place = content.find(b"=")
    while place >= 0:
        begin = content.rfind(b"\n", 0, place) + 1
        after = content.find(b"\n", place)
        after = len(content) if after < 0 else after + 1
        if keyword := _KEYWORD.match(content, begin, after):
            if last is not None:
                last.end = begin
            last = _Section(keyword[2], after)
            found.setdefault(keyword[1].decode().upper(), []).append(last)
        place = content.find(b"=", after)
    if last is not None:
        last.end = len(content)
    return found


def _one_zone(path: str, sections: dict[str, list[_Section]]) -> None:
    zones = _count(path, sections, "NZONE") if "NZONE" in sections else 1
    zones = max(zones, len(sections["NDIME"]), len(sections.get("NELEM", ())), len(sections.get("NPOIN", ())))
    if zones > 1:
        hint = "write each zone to its own file, and ingest each under its own name"
        raise no_mesh(path, f"it has {zones} zones, each a mesh with its own node numbers", hint)


def _count(path: str, sections: dict[str, list[_Section]], keyword: str) -> int:
    if keyword not in sections:
        raise no_mesh(path, f"it has no {keyword}=")
    words = sections[keyword][0].value.split()
    # NPOIN may have a second number, that of nodes that are not ghosts.
    if not words or not words[0].isdigit():
        raise damaged(path, f"{keyword}= {b' '.join(words)[:40].decode('utf-8', 'replace')} is not a number")
    return int(words[0])


def _table(path: str, content: bytes, sections: dict[str, list[_Section]], keyword: str) -> Table:
    """The lines of a keyword, whose number must be its value."""
    count = _count(path, sections, keyword)
    section = sections[keyword][0]
    table = Table(path, content, section.begin, section.end, comment=b"%")
    if len(table) != count:
        raise damaged(path, f"{keyword}= {count}, but {len(table)} lines follow")
    return table


def _nodes(
    path: str, content: bytes, sections: dict[str, list[_Section]], dimensions: int
) -> list[np.ndarray]:
    table = _table(path, content, sections, "NPOIN")
    counts = table.counts
    if (counts < dimensions).any():
        row = int(np.argmax(counts < dimensions))
        raise damaged(
            path, f"line {table.line(row)}: {counts[row]} numbers for a node with {dimensions} coordinates"
        )
    numbers = table.floats()
    if len(counts) and (counts == counts[0]).all():
        numbers = numbers.reshape(len(counts), -1)
        if numbers.shape[1] > dimensions:
            _in_order(path, numbers[:, -1], "NPOIN")
        return [numbers[:, axis] for axis in range(dimensions)]
    starts = np.cumsum(counts) - counts
    return [numbers[starts + axis] for axis in range(dimensions)]


def _in_order(path: str, index: np.ndarray, keyword: str) -> None:
    """Refuses numbers of nodes or elements in another order: SU2 ignores them, other programs may not."""
    due = np.arange(len(index))
    if not np.array_equal(index, due) and np.array_equal(np.sort(index), due):
        row = int(np.argmax(index != due))
        why = f"line {row} (from 0) after {keyword}= has the index {index[row]:.0f}, but SU2 counts by lines"
        raise no_mesh(path, why, "sort the lines by their index, or leave out the index")


def _elements(path: str, content: bytes, sections: dict[str, list[_Section]]) -> Cells:
    table = _table(path, content, sections, "NELEM")
    numbers, counts = table.integers(), table.counts
    starts = np.cumsum(counts) - counts
    types = numbers[starts] if len(counts) else np.zeros(0, np.int64)
    sizes = np.zeros(len(types), np.int64)
    for type_ in np.unique(types).tolist():
        is_own = types == type_
        row = int(np.argmax(is_own))
        if type_ not in NODES:
            why = f"line {table.line(row)}: cell {row} is of {_type_name(type_)}"
            raise no_mesh(
                path, why, "write the mesh with linear elements: SU2's types 3, 5, 9, 10, 12, 13 and 14"
            )
        sizes[is_own] = NODES[type_]
        short = is_own & ((counts < NODES[type_] + 1) | (counts > NODES[type_] + 2))
        if short.any():
            row = int(np.argmax(short))
            due = f"{NODES[type_]} nodes, and perhaps an index"
            raise damaged(
                path,
                f"line {table.line(row)}: {counts[row] - 1} numbers after type {type_}, which has {due}",
            )
    if len(counts) and (counts == sizes + 2).all():
        _in_order(path, numbers[starts + counts - 1], "NELEM")
    return Cells(types, starts + 1, sizes, numbers)


def _type_name(type_: int) -> str:
    if type_ in NODES:
        return f"type {type_} ({KINDS[type_].name})"
    order, linear = type_ // 100 + 1, type_ % 100
    if type_ > 100 and linear in NODES:
        return f"type {type_} ({KINDS[linear].name} of order {order}, for SU2's solver of high order)"
    return f"type {type_}, which SU2 does not have"

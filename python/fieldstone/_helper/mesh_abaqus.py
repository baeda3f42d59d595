"""Abaqus' input files (``.inp``): nodes and elements, in the order of the file.

Keywords that make or move nodes or elements, and parts with several instances in an assembly, are refused by
name, because this reader does not execute a file.
"""

from __future__ import annotations

import re

import numpy as np

from fieldstone._helper.mesh_arrays import MeshArrays, damaged, no_mesh, placed
from fieldstone._helper.mesh_cells import Cells, numbered, rows_of, without_marks
from fieldstone._helper.mesh_text import Table, read_text

_REFUSED = ("INCLUDE", "NGEN", "NFILL", "NCOPY", "NMAP", "ELGEN", "ELCOPY", "SYSTEM", "SUBSTRUCTURE GENERATE")
# A line that ends with a comma may continue on the next one.
_KEYWORD = re.compile(rb"^[ \t]*\*(?!\*)[^\n]*(?:(?<=,)\n[ \t]*[A-Za-z][^\n*]*)*", re.MULTILINE)
_COMMAS = bytes.maketrans(b",", b" ")
_SOLID = re.compile(r"(?:C3D|DC3D|AC3D|COH3D|SC)(\d+)")
_PLANE = re.compile(r"(?:CPS|CPEG?|CAX|CGAX|DC2D|DCAX|AC2D|ACAX|M3D|R3D|SFM3D|DS|S)(\d)")
_LINE = re.compile(r"(?:T[23]D([23])|B[23]([123])|R2D(2)|RAX(2)|DC1D([23]))")
# VTK's type by the number of nodes.
_SOLIDS = {4: 10, 5: 14, 6: 13, 8: 12, 10: 71, 15: 73, 20: 72, 27: 72}
_PLANES = {3: 5, 4: 9, 6: 69, 8: 70, 9: 70}


def read(path: str) -> MeshArrays:
    """The mesh of a file. RequestError: ``Invalid`` or ``Corrupt``, with the wrong keyword or element."""
    content = read_text(path)
    points, parts = [], []
    for keyword, parameters, begin, end in _keywords(path, content):
        if keyword == "NODE":
            points.append(_nodes(path, content, begin, end))
        elif keyword == "ELEMENT":
            parts.append(_elements(path, content, parameters, begin, end))
    if not points:
        raise no_mesh(path, "it has no *NODE, which an input file of Abaqus with a mesh needs")
    nodes = np.concatenate([np.pad(own, ((0, 0), (0, 4 - own.shape[1]))) for own in points])
    cells = numbered(path, Cells.joined(parts), nodes[:, 0].astype(np.int64))
    rows, vertices = rows_of(cells, path)
    rows, omitted = without_marks(rows, vertices, are_marks=False)
    return placed("Abaqus", list(nodes[:, 1:].T), rows, omitted=omitted)


def _keywords(path: str, content: bytes) -> list[tuple[str, dict[str, str], int, int]]:
    """Keywords with their parameters, and the begin and end of their lines of data."""
    lines = list(_KEYWORD.finditer(content))
    ends = [line.start() for line in lines[1:]] + [len(content)]
    sections = []
    for line, end in zip(lines, ends, strict=True):
        words = " ".join(line[0].decode("utf-8", "replace").split()).removeprefix("*").split(",")
        pairs = [word.partition("=") for word in words[1:]]
        parameters = {name.strip().upper(): value.strip() for name, _, value in pairs}
        sections.append((words[0].strip().upper(), parameters, line.end(), end))
    instances = [one for one in sections if one[0] == "INSTANCE"]
    parts = [one for one in sections if one[0] == "PART"]
    for keyword, parameters, begin, end in sections:
        if keyword in _REFUSED or (keyword in ("NODE", "ELEMENT") and {"INPUT", "SYSTEM"} & set(parameters)):
            raise no_mesh(
                path, f"it has *{keyword}, which is not supported", "write out all nodes and elements"
            )
        if keyword == "INSTANCE" and content[begin:end].strip():
            raise no_mesh(path, "it moves a part by *INSTANCE", "write the nodes at their final positions")
    if len(instances) > 1 or len(parts) > 1:
        many = f"{len(parts)} parts and {len(instances)} instances"
        raise no_mesh(path, f"it has {many}, each with its own numbers", "write each part to its own file")
    return sections


def _nodes(path: str, content: bytes, begin: int, end: int) -> np.ndarray:
    """Rows of number and coordinates."""
    table = _table(path, content, begin, end)
    numbers, counts = table.floats(), table.counts
    if not len(counts):
        return np.zeros((0, 4))
    if counts.min() < 3 or (counts != counts[0]).any() or counts[0] > 7:
        wrong = int(np.argmax((counts < 3) | (counts != counts[0])))
        raise damaged(
            path, f"line {table.line(wrong)}: {counts[wrong]} values instead of a number and coordinates"
        )
    return numbers.reshape(len(counts), -1)[:, :4]


def _elements(path: str, content: bytes, parameters: dict[str, str], begin: int, end: int) -> Cells:
    name = parameters.get("TYPE", "").upper()
    type_, nodes, corners = _kind(path, name)
    table = _table(path, content, begin, end)
    numbers = table.integers()
    # An element may continue on further lines.
    if len(numbers) % (nodes + 1):
        raise damaged(
            path, f"*ELEMENT, TYPE={name} from line {table.line(0)} on: not {nodes} nodes for each number"
        )
    rows = numbers.reshape(-1, nodes + 1)[:, 1:]
    return Cells.block(type_, rows if corners is None else rows[:, corners])


def _kind(path: str, name: str) -> tuple[int, int, list[int] | None]:
    """VTK's type, the number of nodes, and the corners if they are not first."""
    if name == "STRI65":
        return 69, 6, None
    if name == "STRI3":
        return 5, 3, None
    if name in ("MASS", "ROTARYI"):
        return 1, 1, None
    if (found := _SOLID.match(name)) and int(found[1]) in _SOLIDS:
        return _SOLIDS[int(found[1])], int(found[1]), None
    if (found := _PLANE.match(name)) and int(found[1]) in _PLANES:
        return _PLANES[int(found[1])], int(found[1]), None
    if found := _LINE.match(name):
        order = next(one for one in found.groups() if one)
        # The last digit of a beam is its order: 1 linear, 2 quadratic, 3 cubic with two nodes.
        is_quadratic = order == "2" if name.startswith("B") else order == "3"
        return (3, 3, [0, 2]) if is_quadratic else (3, 2, None)
    raise no_mesh(path, f"it has elements of type {name or 'none'}, which are not supported")


def _table(path: str, content: bytes, begin: int, end: int) -> Table:
    """Lines of data without commas and comments, with their line numbers in the file."""
    text = content[begin:end].translate(_COMMAS)
    if b"*" in text:
        text = re.sub(rb"^[ \t]*\*\*[^\n]*", b"", text, flags=re.MULTILINE)
    return Table(path, text, 0, len(text), first=content.count(b"\n", 0, begin))

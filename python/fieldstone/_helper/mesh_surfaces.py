"""Surfaces of OFF, Wavefront OBJ, STL and PLY: faces of any number of nodes, in the order of the file.

STL has no nodes: corners of its triangles at equal coordinates become one node, numbered at its first
occurrence.
"""

from __future__ import annotations

import os
import re

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.mesh_arrays import MeshArrays, damaged, no_mesh, placed
from fieldstone._helper.mesh_cells import Cells, rows_of, without_marks
from fieldstone._helper.mesh_text import Table, read_text

_POLYGON, _POLYLINE = 7, 4
_STL_HEAD = 84


def read(path: str) -> MeshArrays:
    """The surface of a file. RequestError: ``Invalid`` or ``Corrupt``, with the wrong line or face."""
    extension = os.path.splitext(path)[1].lower()
    reader = {".off": _off, ".obj": _obj, ".stl": _stl, ".ply": _ply}[extension]
    points, cells, omitted = reader(path)
    rows, vertices = rows_of(cells, path)
    rows, more = without_marks(rows, vertices, are_marks=False)
    return placed(extension[1:].upper(), list(points.T), rows, omitted=[*omitted, *more])


# -- OFF ---------------------------------------------------------------------------------------------------


def _off(path: str) -> tuple[np.ndarray, Cells, list[tuple[str, str]]]:
    content = read_text(path)
    begin = re.match(rb"\s*(?:#[^\n]*\n\s*)*OFF\b", content)
    if begin is None:
        raise no_mesh(path, "its first line is not OFF")
    table = Table(path, content, begin.end(), len(content), comment=b"#")
    numbers, counts = table.floats(), table.counts
    if not len(counts) or counts[0] not in (2, 3):
        raise damaged(path, "it lacks the numbers of vertices, faces and edges after OFF")
    nodes, faces = int(numbers[0]), int(numbers[1])
    if len(counts) != 1 + nodes + faces or (counts[1 : 1 + nodes] < 3).any():
        raise damaged(path, f"it has {len(counts) - 1} lines for {nodes} vertices and {faces} faces")
    starts = np.cumsum(counts) - counts
    points = numbers[starts[1 : 1 + nodes, None] + np.arange(3)]
    begins, sizes = starts[1 + nodes :] + 1, numbers[starts[1 + nodes :]].astype(np.int64)
    short = counts[1 + nodes :] < sizes + 1
    if short.any():
        raise damaged(
            path, f"line {table.line(1 + nodes + int(np.argmax(short)))}: a face has fewer nodes than it says"
        )
    # Colours may follow the nodes.
    types = np.full(faces, _POLYGON, np.int64)
    return points, _whole(path, Cells(types, begins, sizes, numbers).compact()), []


def _whole(path: str, cells: Cells) -> Cells:
    nodes = cells.nodes.astype(np.int64)
    if not np.array_equal(nodes, cells.nodes):
        raise damaged(path, "a number of a node has a fraction")
    return Cells(cells.types, cells.starts, cells.sizes, nodes)


# -- OBJ ---------------------------------------------------------------------------------------------------


def _obj(path: str) -> tuple[np.ndarray, Cells, list[tuple[str, str]]]:
    points: list[list[float]] = []
    types, sizes, nodes, curves = [], [], [], 0
    content = read_text(path).replace(b"\\\n", b" ")
    for number, line in enumerate(content.split(b"\n"), start=1):
        words = line.split(b"#")[0].split()
        if not words:
            continue
        try:
            if words[0] == b"v":
                points.append([float(word) for word in words[1:4]])
            elif words[0] in (b"f", b"fo", b"l", b"p"):
                own = [int(word.split(b"/")[0]) for word in words[1:]]
                if 0 in own or min(own, default=0) < -len(points):
                    raise damaged(path, f"line {number}: a vertex that does not exist")
                types.append({b"l": _POLYLINE, b"p": 2}.get(words[0], _POLYGON))
                sizes.append(len(own))
                # A negative number counts back from the last vertex so far.
                nodes += [node - 1 if node > 0 else len(points) + node for node in own]
            elif words[0] in (b"curv", b"curv2", b"surf"):
                curves += 1
        except ValueError:
            raise damaged(
                path, f"line {number}: {line[:60].decode('utf-8', 'replace')!r} is not supported"
            ) from None
    if not points or any(len(point) != 3 for point in points):
        raise no_mesh(path, "it has no vertices of three coordinates (v)")
    omitted = (
        [(f"{curves} curves and free surfaces", "a mesh only has nodes, edges and faces")] if curves else []
    )
    count = np.array(sizes, np.int64)
    cells = Cells(np.array(types, np.int64), np.cumsum(count) - count, count, np.array(nodes, np.int64))
    return np.array(points), cells, omitted


# -- STL ---------------------------------------------------------------------------------------------------


def _stl(path: str) -> tuple[np.ndarray, Cells, list[tuple[str, str]]]:
    with open_plain(path) as file:
        content = file.read()
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    count = int(np.frombuffer(content, "<u4", 1, 80)[0]) if len(content) >= _STL_HEAD else -1
    if len(content) == _STL_HEAD + count * record.itemsize:
        corners = (
            np.frombuffer(content, record, count, _STL_HEAD)["corners"].astype(np.float64).reshape(-1, 3)
        )
    elif content.lstrip()[:5].lower() == b"solid" and b"facet" in content.lower():
        corners = _stl_text(path, read_text(path))
    else:
        why = f"it is neither text with solid nor {count} triangles in {len(content)} bytes"
        raise no_mesh(path, why)
    if not len(corners):
        raise no_mesh(path, "it has no triangles")
    unique, first, inverse = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return unique[order], Cells.block(5, place[inverse.reshape(-1, 3)]), []


def _stl_text(path: str, content: bytes) -> np.ndarray:
    content = content.lower()
    facets = len(re.findall(rb"\bfacet\b", content.replace(b"endfacet", b"")))
    vertices = re.findall(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", content)
    if len(vertices) != 3 * facets:
        raise damaged(path, f"it has {facets} facets and {len(vertices)} vertices, but each facet has three")
    try:
        return np.array(vertices, dtype="S").astype(np.float64).reshape(-1, 3)
    except ValueError as error:
        raise damaged(path, f"a vertex is not three numbers: {error}") from None


# -- PLY ---------------------------------------------------------------------------------------------------

_PLY_TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2"},
    **{"int32": "i4", "uint32": "u4", "int64": "i8", "uint64": "u8", "float32": "f4", "float64": "f8"},
}
_LISTS = ("vertex_indices", "vertex_index")


def _ply(path: str) -> tuple[np.ndarray, Cells, list[tuple[str, str]]]:
    with open_plain(path) as file:
        content = file.read()
    end = re.search(rb"^end_header[ \t]*(\r\n|\n|\r)", content, re.MULTILINE)
    if not content.startswith(b"ply") or end is None:
        raise no_mesh(path, "it does not begin like a PLY file, with ply and end_header")
    elements: list[tuple[str, int, list[list[str]]]] = []
    form = ""
    for line in content[: end.start()].decode("utf-8", "replace").splitlines():
        words = line.split()
        if words[:1] == ["format"] and len(words) > 1:
            form = words[1]
        elif words[:1] == ["element"] and len(words) == 3 and words[2].isdigit():
            elements.append((words[1], int(words[2]), []))
        elif words[:1] == ["property"] and elements:
            elements[-1][2].append(words[1:])
    orders = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
    if form not in orders:
        raise no_mesh(path, f"its format is {form or 'missing'}")
    body = _PlyBody(path, content, end.end(), orders[form])
    points, faces, omitted = None, Cells.joined([]), []
    for name, count, properties in elements:
        columns = body.element(name, count, properties)
        if name == "vertex":
            if missing := [axis for axis in "xyz" if axis not in columns]:
                raise no_mesh(path, f"its vertices have no {missing[0]}")
            points = np.stack([columns[axis].astype(np.float64) for axis in "xyz"], axis=1)
        elif name == "face":
            faces = next((columns[one] for one in _LISTS if one in columns), faces)
            if count and not len(faces.types):
                raise no_mesh(path, "its faces have no vertex_indices")
        elif count and name != "camera":
            omitted.append(
                (f"{count} of the element {name}", "only vertices and faces of a PLY file are ingested")
            )
    if points is None:
        raise no_mesh(path, "it has no element vertex")
    return points, faces, omitted


class _PlyBody:
    """The part after the header: rows of numbers, and lists of them."""

    def __init__(self, path: str, content: bytes, at: int, order: str) -> None:
        self.path, self.content, self.at, self.order = path, content, at, order
        self.values: list[bytes] = content[at:].split() if not order else []
        self.word = 0

    def element(self, name: str, count: int, properties: list[list[str]]) -> dict:
        try:
            kinds = [
                (own[-1], None, _PLY_TYPES[own[0]])
                if own[0] != "list"
                else (own[-1], _PLY_TYPES[own[1]], _PLY_TYPES[own[2]])
                for own in properties
            ]
        except (KeyError, IndexError):
            raise no_mesh(self.path, f"a property of its element {name} has a type that PLY lacks") from None
        try:
            if all(size is None for _, size, _ in kinds):
                return self.plain(count, kinds)
            return self.lists(count, kinds)
        except (ValueError, IndexError):
            raise damaged(self.path, f"its element {name} has fewer numbers than the header says") from None

    def plain(self, count: int, kinds: list) -> dict:
        if self.order:
            dtype = np.dtype([(name, self.order + kind) for name, _, kind in kinds])
            rows = np.frombuffer(self.content, dtype, count, self.at)
            self.at += count * dtype.itemsize
            return {name: rows[name] for name, _, _ in kinds}
        words = self.values[self.word : self.word + count * len(kinds)]
        self.word += len(words)
        rows = np.array(words, dtype="S").astype(np.float64).reshape(count, len(kinds))
        return {name: rows[:, place] for place, (name, _, _) in enumerate(kinds)}

    def equal(self, count: int, kinds: list) -> dict | None:
        """Rows whose one list has the same length in each, as in most files; None if it has not."""
        lists = [(place, kind) for place, kind in enumerate(kinds) if kind[1] is not None]
        if not self.order or len(lists) != 1 or not count:
            return None
        ((place, (name, size, kind)),) = lists
        before = np.dtype([(one[0], self.order + one[2]) for one in kinds[:place]])
        (length,) = np.frombuffer(self.content, self.order + size, 1, self.at + before.itemsize).tolist()
        fields = [(one[0], self.order + one[2]) for one in kinds if one[1] is None]
        fields[place:place] = [("length", self.order + size), (name, self.order + kind, (int(length),))]
        dtype = np.dtype(fields)
        if length < 1 or self.at + count * dtype.itemsize > len(self.content):
            return None
        rows = np.frombuffer(self.content, dtype, count, self.at)
        if (rows["length"] != length).any():
            return None
        self.at += count * dtype.itemsize
        return {name: Cells.block(_POLYGON, rows[name].astype(np.int64))} if name in _LISTS else {}

    def lists(self, count: int, kinds: list) -> dict:
        """Rows with lists in them, those of nodes as cells."""
        if (found := self.equal(count, kinds)) is not None:
            return found
        sizes: dict[str, list[int]] = {name: [] for name, size, _ in kinds if size is not None}
        nodes: dict[str, list] = {name: [] for name in sizes}
        for _ in range(count):
            for name, size, kind in kinds:
                if size is None:
                    self.take(kind, 1)
                    continue
                (length,) = self.take(size, 1)
                sizes[name].append(int(length))
                if int(length) < 0:
                    raise ValueError
                nodes[name] += self.take(kind, int(length))
        found = {}
        for name, own in sizes.items():
            many = np.array(own, np.int64)
            types = np.full(count, _POLYGON, np.int64)
            if name in _LISTS:
                found[name] = Cells(types, np.cumsum(many) - many, many, np.array(nodes[name], np.int64))
        return found

    def take(self, kind: str, count: int) -> list:
        if self.order:
            values = np.frombuffer(self.content, self.order + kind, count, self.at).tolist() if count else []
            self.at += count * int(kind[1])
            return values
        words = self.values[self.word : self.word + count]
        self.word += count
        if len(words) != count:
            raise ValueError
        return [float(word) if kind[0] == "f" else int(word) for word in words]

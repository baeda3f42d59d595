"""gmsh's meshes, versions 2, 4.0 and 4.1, text and binary:
https://gmsh.info/doc/texinfo/gmsh.html#File-formats

Nodes and elements keep the order of the file, whatever their numbers (tags). Elements of points, and of lines
along the edges of faces and volumes, mark boundaries and are left out.
"""

from __future__ import annotations

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.mesh_arrays import MeshArrays, damaged, no_mesh, placed
from fieldstone._helper.mesh_cells import Cells, numbered, rows_of, without_marks
from fieldstone._helper.mesh_text import Table

_POINT, _LINE, _TRIANGLE, _SQUARE, _TET, _HEX, _WEDGE, _PYRAMID = 1, 68, 69, 70, 71, 72, 73, 74
# gmsh's types: VTK's kind, whose corners also come first in gmsh, and the number of nodes.
TYPES = {
    1: (3, 2),
    2: (5, 3),
    3: (9, 4),
    4: (10, 4),
    5: (12, 8),
    6: (13, 6),
    7: (14, 5),
    15: (_POINT, 1),
    **{type_: (_LINE, nodes) for type_, nodes in ((8, 3), (26, 4), (27, 5), (28, 6))},
    **{62 + more: (_LINE, 7 + more) for more in range(5)},
    **{
        type_: (_TRIANGLE, nodes)
        for type_, nodes in ((9, 6), (20, 9), (21, 10), (22, 12), (23, 15), (24, 15), (25, 21))
    },
    **{type_: (_TRIANGLE, nodes) for type_, nodes in ((42, 28), (43, 36), (44, 45), (45, 55), (46, 66))},
    **{
        type_: (_SQUARE, nodes) for type_, nodes in ((10, 9), (16, 8), (36, 16), (37, 25), (38, 36), (39, 12))
    },
    **{type_: (_SQUARE, nodes) for type_, nodes in ((47, 49), (48, 64), (49, 81), (50, 100), (51, 121))},
    **{type_: (_TET, nodes) for type_, nodes in ((11, 10), (29, 20), (30, 35), (31, 56))},
    **{type_: (_TET, nodes) for type_, nodes in ((71, 84), (72, 120), (73, 165), (74, 220), (75, 286))},
    **{type_: (_HEX, nodes) for type_, nodes in ((12, 27), (17, 20), (92, 64), (93, 125), (94, 216))},
    **{type_: (_HEX, nodes) for type_, nodes in ((95, 343), (96, 512), (97, 729), (98, 1000))},
    **{type_: (_WEDGE, nodes) for type_, nodes in ((13, 18), (18, 15), (90, 40), (91, 75))},
    **{
        type_: (_WEDGE, nodes)
        for type_, nodes in ((106, 126), (107, 196), (108, 288), (109, 405), (110, 550))
    },
    **{type_: (_PYRAMID, nodes) for type_, nodes in ((14, 14), (19, 13), (118, 30), (119, 55), (120, 91))},
}


def read(path: str) -> MeshArrays:
    """The mesh of a file. RequestError: ``Invalid`` or ``Corrupt``, with the wrong section or element."""
    gmsh = _Gmsh(path)
    points, tags = gmsh.nodes()
    cells = gmsh.elements()
    rows, vertices = rows_of(numbered(path, cells, tags), path)
    rows, omitted = without_marks(rows, vertices, are_marks=True)
    return placed("gmsh", list(points.T), rows, omitted=omitted)


class _Gmsh:
    """A file, split into sections."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open_plain(path) as file:
            self.content = file.read()
        at, words = 0, []
        while (name := self.line(at)) is not None:
            text, at = name
            if text == b"$MeshFormat":
                header, at = self.line(at) or (b"", at)
                words = header.split()
                break
            if text in (b"$NOD", b"$ELM"):
                raise no_mesh(
                    path, "it is of version 1 of gmsh's format", "save it as version 4.1 or 2.2 with gmsh"
                )
        if len(words) < 3 or words[1] not in (b"0", b"1"):
            raise no_mesh(path, "it lacks $MeshFormat, with which a mesh of gmsh begins")
        self.version = words[0].decode("ascii", "replace")
        if self.version.split(".")[0] != "2" and self.version not in ("4", "4.0", "4.1"):
            hint = "save it as version 4.1 or 2.2 with gmsh"
            raise no_mesh(path, f"it is of version {self.version} of gmsh's format", hint)
        self.is_binary = words[1] == b"1"
        self.order = "<"
        if self.is_binary:
            if self.content[at : at + 4] == b"\0\0\0\1":
                self.order = ">"
            elif self.content[at : at + 4] != b"\1\0\0\0":
                raise damaged(path, "$MeshFormat lacks the number 1 in either byte order")
            if words[2] != b"8":
                raise no_mesh(
                    path,
                    f"its sizes have {words[2].decode('ascii', 'replace')} bytes, but only 8 are supported",
                )
        else:
            self.content = self.content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self.sections = self.find_sections()

    def line(self, at: int) -> tuple[bytes, int] | None:
        """A line without surrounding blanks, and the position of the next one."""
        if at >= len(self.content):
            return None
        end = self.content.find(b"\n", at)
        end = len(self.content) if end < 0 else end
        return self.content[at:end].strip(), end + 1

    def find_sections(self) -> dict[str, list[tuple[int, int]]]:
        """The begin and end of each section, without looking at its bytes."""
        sections: dict[str, list[tuple[int, int]]] = {}
        at = 0
        while (found := self.line(at)) is not None:
            text, at = found
            if not text.startswith(b"$"):
                continue
            end = self.content.find(b"$End" + text[1:], at)
            name = text[1:].decode("ascii", "replace")
            if end < 0:
                raise damaged(self.path, f"the section ${name} does not end")
            sections.setdefault(name, []).append((at, end))
            at = (self.line(end) or (b"", len(self.content)))[1]
        return sections

    def section(self, name: str) -> tuple[int, int]:
        places = self.sections.get(name, [])
        if len(places) != 1:
            raise damaged(self.path, f"it has {len(places)} sections ${name} instead of one")
        return places[0]

    # -- nodes ---------------------------------------------------------------------------------------------

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates, (nodes, 3), and tags."""
        name = "ParametricNodes" if "ParametricNodes" in self.sections else "Nodes"
        numbers = _Numbers(self, name)
        if self.version.startswith("2"):
            return self.nodes_2(numbers)
        header = numbers.take("u8", 4 if self.version == "4.1" else 2)
        points, tags = [], []
        for _ in range(int(header[0])):
            # In 4.0 the tag of the entity comes first.
            first, second, parametric = numbers.take("i4", 3).tolist()
            dimension = first if self.version == "4.1" else second
            (count,) = numbers.take("u8", 1).tolist()
            own, coordinates = self.block(numbers, int(count), 3 + (dimension if parametric else 0))
            tags.append(own)
            points.append(coordinates[:, :3])
        numbers.ended()
        points.append(np.zeros((0, 3)))
        tags.append(np.zeros(0, np.int64))
        joined = np.concatenate(points), np.concatenate(tags)
        if len(joined[1]) != header[1]:
            raise damaged(self.path, f"$Nodes has {header[1]:.0f} nodes, but {len(joined[1])} exist")
        return joined

    def block(self, numbers: _Numbers, count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        if self.version == "4.1":
            tags = numbers.take("u8", count).astype(np.int64)
            return tags, numbers.take("f8", count * width).reshape(count, width)
        if numbers.flat is not None:
            rows = numbers.take("f8", count * (1 + width)).reshape(count, -1)
            return rows[:, 0].astype(np.int64), rows[:, 1:]
        rows = numbers.records([("tag", "i4"), ("at", "f8", (width,))], count)
        return rows["tag"].astype(np.int64), rows["at"].astype(np.float64).reshape(count, width)

    def nodes_2(self, numbers: _Numbers) -> tuple[np.ndarray, np.ndarray]:
        (count,) = numbers.line_count()
        if numbers.flat is None:
            rows = numbers.records([("tag", "i4"), ("at", "f8", (3,))], count)
            numbers.ended()
            return rows["at"].astype(np.float64), rows["tag"].astype(np.int64)
        flat, counts = numbers.rest(np.float64)
        if len(counts) != count or (counts < 4).any():
            raise damaged(
                self.path, f"$Nodes has {count} nodes, but {len(counts)} lines, each with a tag and x, y, z"
            )
        starts = np.cumsum(counts) - counts
        return np.stack([flat[starts + axis] for axis in (1, 2, 3)], axis=1), flat[starts].astype(np.int64)

    # -- elements ------------------------------------------------------------------------------------------

    def elements(self) -> Cells:
        """Elements in their order, each with the tags of its nodes."""
        if "Elements" not in self.sections:
            return Cells.joined([])
        numbers = _Numbers(self, "Elements", np.int64)
        if self.version.startswith("2"):
            return self.elements_2(numbers)
        header = numbers.take("u8", 4 if self.version == "4.1" else 2)
        parts = []
        for _ in range(int(header[0])):
            _, _, type_ = numbers.take("i4", 3).tolist()
            (count,) = numbers.take("u8", 1).tolist()
            kind, nodes = self.kind(type_, sum(len(part.types) for part in parts))
            word = "u8" if self.version == "4.1" else "i4"
            rows = numbers.take(word, int(count) * (nodes + 1)).reshape(int(count), -1)
            parts.append(Cells.block(kind, rows[:, 1:]))
        numbers.ended()
        cells = Cells.joined(parts)
        if len(cells.types) != header[1]:
            raise damaged(self.path, f"$Elements has {header[1]} elements, but {len(cells.types)} exist")
        return cells

    def kind(self, type_: int, element: int) -> tuple[int, int]:
        if type_ not in TYPES:
            hint = "save it with elements of gmsh's usual types: points, lines, triangles … of order 1 to 10"
            raise no_mesh(
                self.path, f"element {element} (from 0) is of gmsh's type {type_}, which is unsupported", hint
            )
        return TYPES[type_]

    def elements_2(self, numbers: _Numbers) -> Cells:
        (count,) = numbers.line_count()
        if numbers.flat is None:
            parts, seen = [], 0
            while seen < count:
                type_, own, marks = numbers.take("i4", 3).tolist()
                kind, nodes = self.kind(type_, seen)
                if own < 1 or marks < 0:
                    raise damaged(self.path, f"$Elements has a block of {own} elements with {marks} tags")
                rows = numbers.take("i4", own * (1 + marks + nodes)).reshape(own, -1)
                parts.append(Cells.block(kind, rows[:, 1 + marks :]))
                seen += own
            numbers.ended()
            cells = Cells.joined(parts)
        else:
            cells = self.lines_2(*numbers.rest(np.int64))
        if len(cells.types) != count:
            raise damaged(self.path, f"$Elements has {count} elements, but {len(cells.types)} exist")
        return cells

    def lines_2(self, flat: np.ndarray, counts: np.ndarray) -> Cells:
        """Lines: number, type, number of tags, tags, nodes."""
        if (counts < 4).any():
            raise damaged(
                self.path, f"element {int(np.argmax(counts < 4))} (from 0) has fewer than four numbers"
            )
        starts = np.cumsum(counts) - counts
        types, marks = flat[starts + 1], flat[starts + 2]
        kinds, sizes = np.zeros(len(types), np.int64), np.zeros(len(types), np.int64)
        for type_ in np.unique(types).tolist():
            is_own = types == type_
            kind, nodes = self.kind(type_, int(np.argmax(is_own)))
            kinds[is_own], sizes[is_own] = kind, nodes
        wrong = (marks < 0) | (counts != 3 + marks + sizes)
        if wrong.any():
            row = int(np.argmax(wrong))
            why = f"element {row} (from 0) has {counts[row]} numbers instead of {3 + marks[row] + sizes[row]}"
            raise damaged(self.path, why)
        return Cells(kinds, starts + 3 + marks, sizes, flat).compact()


class _Numbers:
    """The numbers of a section, one after another: `flat` for text; bytes stay in place."""

    def __init__(self, gmsh: _Gmsh, name: str, dtype: type = np.float64) -> None:
        self.gmsh, self.name = gmsh, name
        self.at, self.end = gmsh.section(name)
        self.flat: np.ndarray | None = None
        self.place = 0
        if not gmsh.is_binary:
            self.flat = np.zeros(0)
            if not gmsh.version.startswith("2"):
                table = Table(gmsh.path, gmsh.content, self.at, self.end)
                self.flat = table.integers() if dtype is np.int64 else table.floats()

    def short(self) -> Exception:
        return damaged(self.gmsh.path, f"${self.name} has fewer numbers than its header says")

    def take(self, word: str, count: int) -> np.ndarray:
        """The next numbers; those of a text all have one type."""
        if self.flat is not None:
            values = self.flat[self.place : self.place + count]
            self.place += count
            if len(values) != count:
                raise self.short()
            return values if word == "f8" or values.dtype == np.int64 else values.astype(np.int64)
        return self.records(word, count).astype(np.float64 if word == "f8" else np.int64)

    def records(self, word: str | list[tuple], count: int) -> np.ndarray:
        """The next bytes as numbers or records."""
        dtype = np.dtype(word).newbyteorder(self.gmsh.order)
        size = dtype.itemsize * count
        if count < 0 or size > self.end - self.at:
            raise self.short()
        values = np.frombuffer(self.gmsh.content, dtype, count, self.at)
        self.at += size
        return values

    def line_count(self) -> tuple[int]:
        """The number in the first line of a section of version 2."""
        text, self.at = self.gmsh.line(self.at) or (b"", self.end)
        if not text.isdigit():
            raise damaged(self.gmsh.path, f"${self.name} does not begin with a number")
        return (int(text),)

    def rest(self, dtype: type) -> tuple[np.ndarray, np.ndarray]:
        """All numbers after the first line of a text, and the number in each line."""
        table = Table(self.gmsh.path, self.gmsh.content, self.at, self.end)
        return (table.floats() if dtype is np.float64 else table.integers()), table.counts

    def ended(self) -> None:
        """Refuses a section with more than its header says."""
        if self.flat is not None:
            left = len(self.flat) - self.place
        else:
            left = len(self.gmsh.content[self.at : self.end].strip())
        if left:
            raise damaged(self.gmsh.path, f"${self.name} has more than its header says")

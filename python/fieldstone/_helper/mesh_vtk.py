"""VTK's legacy files, text and binary, of all versions:
https://docs.vtk.org/en/latest/design_documents/VTKFileFormats.html

Cells keep their order; those of polygonal data are its vertices, lines, polygons and strips, in VTK's
numbering. A structured dataset gives the cells between its points. Values, which follow, are skipped.
"""

from __future__ import annotations

import re

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.mesh_arrays import MeshArrays, damaged, no_mesh, placed
from fieldstone._helper.mesh_cells import Cells, rows_of, without_marks
from fieldstone._helper.mesh_text import Table, read_text

MAGIC = b"# vtk DataFile"
# Big-endian in binary files.
_TYPES = {
    "bit": None,
    "unsigned_char": ">u1",
    "char": ">i1",
    "unsigned_short": ">u2",
    "short": ">i2",
    "unsigned_int": ">u4",
    "int": ">i4",
    "unsigned_long": ">u8",
    "long": ">i8",
    "float": ">f4",
    "double": ">f8",
    "vtkidtype": ">i4",
    "vtktypeint32": ">i4",
    "vtktypeuint32": ">u4",
    "vtktypeint64": ">i8",
    "vtktypeuint64": ">u8",
}
# Keywords that can follow numbers.
_KEYWORD = re.compile(
    rb"\n[ \t]*(DATASET|POINTS|CELLS|CELL_TYPES|OFFSETS|CONNECTIVITY|VERTICES|LINES|POLYGONS|TRIANGLE_STRIPS"
    rb"|DIMENSIONS|ORIGIN|SPACING|ASPECT_RATIO|[XYZ]_COORDINATES|FIELD|METADATA|POINT_DATA|CELL_DATA|BLANKING)\b",
    re.IGNORECASE,
)
_ARRAYS = {b"POINTS", b"CELLS", b"CELL_TYPES", b"VERTICES", b"LINES", b"POLYGONS", b"TRIANGLE_STRIPS"}
_ARRAYS |= {b"X_COORDINATES", b"Y_COORDINATES", b"Z_COORDINATES"}
_POLYGONAL = {"VERTICES": 2, "LINES": 4, "POLYGONS": 7, "TRIANGLE_STRIPS": 6}
_DATASETS = ("UNSTRUCTURED_GRID", "POLYDATA", "STRUCTURED_GRID", "RECTILINEAR_GRID", "STRUCTURED_POINTS")


def read(path: str) -> MeshArrays:
    """The mesh of a file. RequestError: ``Invalid`` or ``Corrupt``, with the wrong keyword or cell."""
    return _Legacy(path).mesh()


class _Legacy:
    """A file, and the position up to which it has been read."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open_plain(path) as file:
            self.content = file.read()
        form = self.begin()
        if not self.content.startswith(MAGIC) or form not in (b"ASCII", b"BINARY"):
            raise no_mesh(path, "it does not begin like a legacy file of VTK: magic, title, ASCII or BINARY")
        self.is_binary = form == b"BINARY"
        if not self.is_binary:
            self.content = read_text(path)
            self.begin()
        self.values: dict[str, np.ndarray] = {}
        self.cells: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def begin(self) -> bytes:
        """Skips magic, title and form; blank lines may follow the title."""
        self.at = self.content.find(b"\n") + 1
        self.at = self.content.find(b"\n", self.at) + 1
        return (self.line() or b"").upper()

    def line(self) -> bytes | None:
        """The next line that is not blank."""
        while self.at < len(self.content):
            end = self.content.find(b"\n", self.at)
            end = len(self.content) if end < 0 else end
            line = self.content[self.at : end].strip()
            self.at = end + 1
            if line:
                return line
        return None

    def mesh(self) -> MeshArrays:
        words = (self.line() or b"").upper().split()
        while words and words[0] in (b"FIELD", b"METADATA"):
            self.skip(words)
            words = (self.line() or b"").upper().split()
        dataset = words[1].decode("ascii", "replace") if len(words) == 2 and words[0] == b"DATASET" else None
        if dataset not in _DATASETS:
            raise no_mesh(
                self.path, f"its dataset is {dataset or 'missing'}, but meshes are {', '.join(_DATASETS)}"
            )
        self.sections()
        if dataset in ("UNSTRUCTURED_GRID", "POLYDATA"):
            points = self.need("POINTS").reshape(-1, 3)
            cells = self.unstructured() if dataset == "UNSTRUCTURED_GRID" else self.polygonal()
        else:
            points, cells = self.structured(dataset)
        rows, vertices = rows_of(cells, self.path)
        rows, omitted = without_marks(rows, vertices, are_marks=False)
        return placed("VTK", list(points.T), rows, omitted=omitted)

    def need(self, name: str) -> np.ndarray:
        if name not in self.values:
            raise damaged(self.path, f"it has no {name}")
        return self.values[name]

    # -- sections ------------------------------------------------------------------------------------------

    def sections(self) -> None:
        """Reads everything before the values."""
        while (line := self.line()) is not None:
            words = line.split()
            keyword = words[0].upper().decode("ascii", "replace")
            if not self.is_binary and len(words) > (due := 2 if keyword == "CELL_TYPES" else 3):
                self.back_to(due, line)
            if keyword in ("POINT_DATA", "CELL_DATA"):
                return
            if keyword in ("FIELD", "METADATA"):
                self.skip(words)
            elif keyword == "POINTS":
                self.values[keyword] = self.array(keyword, 3 * self.number(words, 1), self.type(words, 2))
            elif keyword == "CELLS" or keyword in _POLYGONAL:
                self.cells[keyword] = self.cell_array(keyword, words)
            elif keyword == "CELL_TYPES":
                self.values[keyword] = self.array(keyword, self.number(words, 1), ">i4")
            elif keyword in ("DIMENSIONS", "ORIGIN", "SPACING", "ASPECT_RATIO"):
                self.values[keyword.replace("ASPECT_RATIO", "SPACING")] = self.triple(keyword, words[1:])
            elif keyword in ("X_COORDINATES", "Y_COORDINATES", "Z_COORDINATES"):
                self.values[keyword] = self.array(keyword, self.number(words, 1), self.type(words, 2))
            else:
                shown = line[:40].decode("utf-8", "replace")
                raise damaged(self.path, f"{shown!r} in place of a keyword of its geometry")

    def back_to(self, words: int, line: bytes) -> None:
        """Moves back to the line of a keyword, because its numbers may begin there, after that number of
        words."""
        if line.split(None, 1)[0].upper() in _ARRAYS:
            begin = self.content.rfind(line, 0, self.at)
            rest = self.content[begin : begin + len(line)].split(None, words)[words]
            self.at = begin + len(line) - len(rest)

    def number(self, words: list[bytes], place: int) -> int:
        if len(words) <= place or not words[place].isdigit():
            raise damaged(self.path, f"{b' '.join(words)[:60].decode('utf-8', 'replace')!r} has no count")
        return int(words[place])

    def type(self, words: list[bytes], place: int) -> str:
        name = words[place].decode("ascii", "replace").lower() if len(words) > place else ""
        if (dtype := _TYPES.get(name)) is None:
            raise no_mesh(self.path, f"{words[0].decode('ascii', 'replace')} are of type {name or 'none'}")
        return dtype

    def triple(self, keyword: str, words: list[bytes]) -> np.ndarray:
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            values = np.zeros(0)
        if len(values) != 3:
            raise damaged(self.path, f"{keyword} does not have three numbers")
        return values

    def array(self, keyword: str, count: int, dtype: str) -> np.ndarray:
        """The next `count` numbers, as float64 or int64."""
        is_float = np.dtype(dtype).kind == "f"
        if self.is_binary:
            size = count * np.dtype(dtype).itemsize
            if size > len(self.content) - self.at:
                raise damaged(self.path, f"{keyword} has {count} numbers, but the file ends before them")
            values = np.frombuffer(self.content, dtype, count, self.at)
            self.at += size
            return values.astype(np.float64 if is_float else np.int64)
        # From the end of the previous line.
        found = _KEYWORD.search(self.content, self.at - 1)
        end = found.start() + 1 if found else len(self.content)
        table = Table(self.path, self.content, self.at, end)
        self.at = end
        values = table.floats() if is_float else table.integers()
        if len(values) != count:
            raise damaged(self.path, f"{keyword} has {count} numbers, but {len(values)} follow")
        return values

    def cell_array(self, keyword: str, words: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Offsets of cells, one more than the number of cells, and their nodes."""
        first, second = self.number(words, 1), self.number(words, 2)
        at = self.at
        offsets_line = (self.line() or b"").split()
        if offsets_line and offsets_line[0].upper() == b"OFFSETS":
            offsets = self.array("OFFSETS", first, self.type(offsets_line, 1))
            nodes_line = (self.line() or b"").split()
            if not nodes_line or nodes_line[0].upper() != b"CONNECTIVITY":
                raise damaged(self.path, f"{keyword} has OFFSETS but no CONNECTIVITY")
            nodes = self.array("CONNECTIVITY", second, self.type(nodes_line, 1))
            if first == 0:
                offsets = np.zeros(1, np.int64)
            if offsets[0] != 0 or offsets[-1] != second or (np.diff(offsets) < 0).any():
                raise damaged(self.path, f"OFFSETS of {keyword} do not fit its {second} nodes")
            return offsets, nodes
        self.at = at
        return self.counted(keyword, first, self.array(keyword, second, ">i4"))

    def counted(self, keyword: str, count: int, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells as number of nodes and nodes, one after another."""
        offsets = np.zeros(count + 1, np.int64)
        if count and len(numbers) % count == 0:
            rows = numbers.reshape(count, -1)
            if (rows[:, 0] == rows.shape[1] - 1).all():
                return np.arange(count + 1, dtype=np.int64) * (rows.shape[1] - 1), rows[:, 1:].reshape(-1)
        sizes = numbers.tolist()
        at, begins = 0, []
        for _ in range(count):
            if at >= len(sizes) or sizes[at] < 0:
                raise damaged(self.path, f"{keyword} has {count} cells, but its numbers end before")
            begins.append(at)
            at += sizes[at] + 1
        if at != len(sizes):
            raise damaged(self.path, f"{keyword} has {count} cells of {at} numbers, but {len(sizes)} exist")
        is_size = np.zeros(len(sizes), bool)
        is_size[begins] = True
        offsets[1:] = np.cumsum(numbers[is_size])
        return offsets, numbers[~is_size]

    def skip(self, words: list[bytes]) -> None:
        """Skips arrays of a field, or metadata, which end with a blank line."""
        if words[0].upper() == b"METADATA":
            while self.at < len(self.content):
                end = self.content.find(b"\n", self.at)
                end = len(self.content) if end < 0 else end
                is_blank = not self.content[self.at : end].strip()
                self.at = end + 1
                if is_blank:
                    return
            return
        for _ in range(self.number(words, 2)):
            line = self.line() or b""
            facts = line.split()
            if facts and facts[0].upper() == b"METADATA":
                self.skip(facts)
                facts = (self.line() or b"").split()
            count = self.number(facts, 1) * self.number(facts, 2)
            name = facts[3].decode("ascii", "replace").lower() if len(facts) > 3 else ""
            if name == "string":
                if self.is_binary:
                    raise no_mesh(self.path, "it has texts in a field before its geometry, in binary")
                for _ in range(count):
                    self.line()
            elif self.is_binary:
                self.at += np.dtype(self.type(facts, 3)).itemsize * count
            else:
                while count > 0 and (numbers := self.line()) is not None:
                    count -= len(numbers.split())

    # -- data sets -----------------------------------------------------------------------------------------

    def unstructured(self) -> Cells:
        if "CELLS" not in self.cells:
            if "CELL_TYPES" in self.values and len(self.values["CELL_TYPES"]):
                raise damaged(self.path, "it has CELL_TYPES but no CELLS")
            return Cells.joined([])
        offsets, nodes = self.cells["CELLS"]
        types = self.need("CELL_TYPES") if len(offsets) > 1 else np.zeros(0, np.int64)
        if len(types) != len(offsets) - 1:
            raise damaged(self.path, f"it has {len(offsets) - 1} cells but {len(types)} types")
        return Cells(types, offsets[:-1], np.diff(offsets), nodes)

    def polygonal(self) -> Cells:
        parts = []
        for keyword, type_ in _POLYGONAL.items():
            if keyword in self.cells:
                offsets, nodes = self.cells[keyword]
                types = np.full(len(offsets) - 1, type_, np.int64)
                parts.append(Cells(types, offsets[:-1], np.diff(offsets), nodes))
        return Cells.joined(parts)

    def structured(self, dataset: str) -> tuple[np.ndarray, Cells]:
        dims = self.need("DIMENSIONS")
        if (dims < 1).any() or (dims % 1 != 0).any():
            raise damaged(self.path, "DIMENSIONS are not three numbers, 1 or more")
        counts = [int(n) for n in dims]
        axes: list[np.ndarray] | None = None
        if dataset == "RECTILINEAR_GRID":
            axes = [self.need(f"{axis}_COORDINATES") for axis in "XYZ"]
            if [len(axis) for axis in axes] != counts:
                raise damaged(self.path, "DIMENSIONS do not fit the coordinates")
        elif dataset == "STRUCTURED_POINTS":
            origin, spacing = self.values.get("ORIGIN", np.zeros(3)), self.values.get("SPACING", np.ones(3))
            axes = [origin[k] + spacing[k] * np.arange(counts[k]) for k in range(3)]
        if axes is None:
            points = self.need("POINTS").reshape(-1, 3)
        else:
            z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
            points = np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)
        if len(points) != counts[0] * counts[1] * counts[2]:
            raise damaged(self.path, f"DIMENSIONS are {counts}, but it has {len(points)} points")
        return points, lattice(counts)


def lattice(counts: list[int]) -> Cells:
    """Cells between points in rows, with the first index varying fastest: hexahedra, quadrilaterals or
    lines."""
    steps = [1, counts[0], counts[0] * counts[1]]
    wide = [axis for axis in range(3) if counts[axis] > 1]
    first = np.zeros(1, np.int64)
    for axis in reversed(wide):
        first = (first[:, None] + steps[axis] * np.arange(counts[axis] - 1)).reshape(-1)
    if not wide:
        return Cells.block(1, first[:, None])
    line = np.array([0, steps[wide[0]]])
    if len(wide) == 1:
        return Cells.block(3, first[:, None] + line)
    square = np.concatenate([line, line[::-1] + steps[wide[1]]])
    if len(wide) == 2:
        return Cells.block(9, first[:, None] + square)
    return Cells.block(12, first[:, None] + np.concatenate([square, square + steps[2]]))

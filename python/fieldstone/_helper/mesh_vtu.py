"""VTK's XML files of unstructured grids (``.vtu``):
https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html

Arrays may be text, base64 or appended bytes (raw or base64), in either byte order, compressed with zlib or
LZMA, with lengths of 32 or 64 bits. Pieces follow one another, each with its own points. Values are skipped.
"""

from __future__ import annotations

import base64
import binascii
import lzma
import re
import zlib
from xml.etree import ElementTree

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.mesh_arrays import MeshArrays, damaged, no_mesh, placed
from fieldstone._helper.mesh_cells import Cells, rows_of, without_marks
from fieldstone._helper.mesh_text import Table

_APPENDED = re.compile(rb"<AppendedData\b([^>]*)>")
_ENCODING = re.compile(rb"encoding\s*=\s*[\"'](\w+)[\"']")
_DTYPES = {
    **{f"Int{bits}": f"i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": f"u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"Float{bits}": f"f{bits // 8}" for bits in (32, 64)},
}
# A file without an unstructured grid shows this near its beginning.
_HEAD = 4096


def is_vtk_xml(head: bytes) -> bool:
    """Whether a file begins like VTK's XML files."""
    return b"<VTKFile" in head[:_HEAD]


def read(path: str) -> MeshArrays:
    """The mesh of a file. RequestError: ``Invalid`` or ``Corrupt``, with the wrong array or cell."""
    return _Xml(path).mesh()


class _Xml:
    """The parsed text of a file, and its appended bytes."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open_plain(path) as file:
            content = file.read()
        self.appended, self.is_raw = b"", True
        if found := _APPENDED.search(content):
            encoding = _ENCODING.search(found[1])
            self.is_raw = encoding is None or encoding[1].lower() == b"raw"
            begin = content.find(b"_", found.end()) + 1
            end = content.rfind(b"</AppendedData")
            if begin <= 0 or end < begin:
                raise damaged(path, "its appended data do not begin with _, or do not end")
            self.appended = content[begin:end]
            content = content[: found.start()] + b"</VTKFile>"
        if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
            raise no_mesh(path, "its XML declares entities, as no file of VTK does")
        try:
            self.root = ElementTree.fromstring(content)
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            raise damaged(path, f"its XML cannot be read: {error}") from None
        if self.root.tag != "VTKFile" or self.root.get("type") != "UnstructuredGrid":
            kind = self.root.get("type") or self.root.tag
            raise no_mesh(path, f"it is a file of VTK's type {kind}, but a mesh needs UnstructuredGrid")
        self.order = ">" if self.root.get("byte_order") == "BigEndian" else "<"
        header = self.root.get("header_type") or "UInt32"
        if header not in ("UInt32", "UInt64"):
            raise no_mesh(path, f"its header_type is {header}")
        self.header = np.dtype(self.order + _DTYPES[header])
        self.offsets = sorted(
            {
                int(one.get("offset", ""))
                for one in self.root.iter()
                if one.get("offset", "").strip().isdigit()
            }
        )

    def mesh(self) -> MeshArrays:
        points, parts, before = [], [], 0
        for number, piece in enumerate(self.root.iterfind("UnstructuredGrid/Piece")):
            own, cells = self.piece(piece, number)
            points.append(own)
            parts.append(Cells(cells.types, cells.starts, cells.sizes, cells.nodes + before))
            before += len(own)
        if not points:
            raise no_mesh(self.path, "it has no piece of an unstructured grid")
        rows, vertices = rows_of(Cells.joined(parts), self.path)
        rows, omitted = without_marks(rows, vertices, are_marks=False)
        return placed("VTK", list(np.concatenate(points).T), rows, omitted=omitted)

    def piece(self, piece: ElementTree.Element, number: int) -> tuple[np.ndarray, Cells]:
        counts = []
        for name in ("NumberOfPoints", "NumberOfCells"):
            text = (piece.get(name) or "").strip()
            if not text.isdigit():
                raise damaged(self.path, f"piece {number} has no {name}")
            counts.append(int(text))
        points = self.one(piece.findall("Points/DataArray"), f"Points of piece {number}", 3 * counts[0])
        cells = {one.get("Name"): one for one in piece.findall("Cells/DataArray")}
        if len(cells) != len(piece.findall("Cells/DataArray")):
            raise no_mesh(self.path, f"piece {number} has cells for several times")

        def named(name: str, count: int) -> np.ndarray:
            found = [cells[name]] if name in cells else []
            return self.one(found, f"{name} of piece {number}", count).astype(np.int64, copy=False)

        ends, types = named("offsets", counts[1]), named("types", counts[1])
        sizes = np.diff(ends, prepend=0)
        if (sizes < 0).any():
            raise damaged(
                self.path, f"offsets of piece {number} do not grow at cell {int(np.argmax(sizes < 0))}"
            )
        nodes = named("connectivity", int(ends[-1]) if len(ends) else 0)
        wrong = (nodes < 0) | (nodes >= counts[0])
        if wrong.any():
            cell = int(np.searchsorted(ends, int(np.argmax(wrong)), side="right"))
            raise damaged(
                self.path,
                f"cell {cell} of piece {number} has point {nodes[wrong][0]} of 0 to {counts[0] - 1}",
            )
        return points.astype(np.float64).reshape(-1, 3), Cells(types, ends - sizes, sizes, nodes)

    # -- arrays --------------------------------------------------------------------------------------------

    def one(self, found: list[ElementTree.Element], what: str, count: int) -> np.ndarray:
        if not found and count == 0:
            return np.zeros(0, np.int64)
        if len(found) != 1:
            raise damaged(self.path, f"{what}: {len(found)} arrays instead of one")
        array = found[0]
        dtype = _DTYPES.get(array.get("type", ""))
        if dtype is None:
            raise no_mesh(self.path, f"{what} are of type {array.get('type')}")
        form = (array.get("format") or "ascii").lower()
        if form == "ascii":
            values = self.text(array, what, dtype)
        elif form in ("binary", "appended"):
            content = (
                self.decoded(array.text or "", what) if form == "binary" else self.at_offset(array, what)
            )
            raw = self.unpacked(content, what)
            if len(raw) % np.dtype(dtype).itemsize:
                raise damaged(
                    self.path, f"{what} have {len(raw)} bytes, which is not a multiple of {array.get('type')}"
                )
            values = np.frombuffer(raw, self.order + dtype)
        else:
            raise no_mesh(self.path, f"{what} have the format {form}")
        if len(values) != count:
            raise damaged(self.path, f"{what}: {len(values)} numbers instead of {count}")
        return values

    def text(self, array: ElementTree.Element, what: str, dtype: str) -> np.ndarray:
        content = (array.text or "").encode()
        table = Table(f"{self.path}: {what}", content, 0, len(content))
        return table.floats() if dtype.startswith("f") else table.integers()

    def decoded(self, text: str | bytes, what: str) -> bytes:
        """Decodes base64; header and data may be separate, each with its own padding."""
        packed = b"".join((text.encode() if isinstance(text, str) else text).split())
        try:
            return b"".join(
                base64.b64decode(part, validate=True) for part in re.findall(rb"[^=]+={0,2}", packed)
            )
        except (binascii.Error, ValueError) as error:
            raise damaged(self.path, f"{what}: the base64 cannot be read: {error}") from None

    def at_offset(self, array: ElementTree.Element, what: str) -> bytes:
        text = (array.get("offset") or "").strip()
        if not text.isdigit() or int(text) >= len(self.appended):
            raise damaged(self.path, f"{what}: no appended data at offset {text or 'none'}")
        offset = int(text)
        end = next((one for one in self.offsets if one > offset), len(self.appended))
        content = self.appended[offset:end]
        return content if self.is_raw else self.decoded(content, what)

    def unpacked(self, content: bytes, what: str) -> bytes:
        """The bytes of an array without its header, and decompressed."""
        width = self.header.itemsize

        def lengths(begin: int, count: int) -> list[int]:
            if begin + count * width > len(content):
                raise damaged(self.path, f"{what}: the data end inside their header")
            return np.frombuffer(content, self.header, count, begin).tolist()

        compressor = self.root.get("compressor")
        if not compressor:
            (length,) = lengths(0, 1)
            if width + length > len(content):
                raise damaged(
                    self.path, f"{what}: {length} bytes are declared, but {len(content) - width} exist"
                )
            return content[width : width + length]
        (blocks,) = lengths(0, 1)
        if blocks == 0:
            return b""
        size, last = lengths(width, 2)
        if blocks > len(content) // width:
            raise damaged(self.path, f"{what}: {blocks} blocks are more than its data can hold")
        packed = lengths(3 * width, blocks)
        at, parts = (3 + blocks) * width, []
        for block, length in enumerate(packed):
            due = last if block == blocks - 1 and last else size
            piece = content[at : at + length]
            if len(piece) != length:
                raise damaged(self.path, f"{what}: block {block} is cut off")
            parts.append(self.expanded(compressor, piece, due, f"{what}, block {block}"))
            at += length
        return b"".join(parts)

    def expanded(self, compressor: str, piece: bytes, due: int, what: str) -> bytes:
        """One block, which must have `due` bytes."""
        try:
            if compressor == "vtkZLibDataCompressor":
                raw = zlib.decompressobj().decompress(piece, due + 1)
            elif compressor == "vtkLZMADataCompressor":
                raw = lzma.LZMADecompressor().decompress(piece, due + 1)
            else:
                hint = "write it with zlib (vtkZLibDataCompressor), or without compression"
                raise no_mesh(self.path, f"it is compressed by {compressor}", hint)
        except (zlib.error, lzma.LZMAError, EOFError) as error:
            raise damaged(self.path, f"{what}: {error}") from None
        if len(raw) != due:
            raise damaged(self.path, f"{what} does not have the {due} bytes that it declares")
        return raw

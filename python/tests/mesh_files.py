"""Writers of small mesh files for tests, each by the description of its format."""

from __future__ import annotations

import base64
import lzma
import struct
import zlib
from pathlib import Path

import numpy as np

# Cells over the points of `POINTS`: VTK's type, its nodes as in a file, and the expected row.
POINTS = np.array([(x, y, z) for z in range(3) for y in range(3) for x in range(4)], float) * (0.5, 1.25, 2)
FACES = [
    (5, (0, 1, 4), (0, 1, 4)),
    (9, (1, 2, 6, 5), (1, 2, 6, 5)),
    (5, (1, 5, 4), (1, 5, 4)),
    (7, (2, 3, 7, 11, 6), (2, 3, 7, 11, 6)),
    (8, (4, 5, 8, 9), (4, 5, 9, 8)),
    (22, (5, 6, 9, 2, 3, 7), (5, 6, 9)),
    (7, (6, 10, 9), (6, 10, 9)),
]
VOLUMES = [
    (12, (0, 1, 5, 4, 12, 13, 17, 16), (0, 1, 5, 4, 12, 13, 17, 16)),
    (10, (1, 2, 5, 13), (1, 2, 5, 13)),
    (11, (2, 3, 6, 7, 14, 15, 18, 19), (2, 3, 7, 6, 14, 15, 19, 18)),
    (13, (4, 5, 8, 16, 17, 20), (4, 5, 8, 16, 17, 20)),
    (10, (5, 6, 9, 17), (5, 6, 9, 17)),
    (14, (12, 13, 17, 16, 28), (12, 13, 17, 16, 28)),
    (24, (24, 25, 28, 33, 1, 2, 3, 4, 5, 6), (24, 25, 28, 33)),
]


def rows(mesh, kind):
    """Cells of a mesh as tuples, without padding."""
    found = getattr(mesh, kind)
    return None if found is None else [tuple(n for n in row if n >= 0) for row in found.tolist()]


def su2(
    points, cells, *, index=True, end="\n", first="NELEM", head="", between="", tail="NMARK= 0", extra=""
):
    """Cells are (type, nodes)."""
    dimensions = len(points[0])
    elements = [f"NELEM= {len(cells)}"]
    elements += [
        " ".join(map(str, (kind, *nodes, *((k,) if index else ())))) for k, (kind, nodes) in enumerate(cells)
    ]
    nodes = [f"NPOIN= {len(points)}{extra}"]
    nodes += [" ".join(map(repr, map(float, p))) + (f"\t{k}" if index else "") for k, p in enumerate(points)]
    parts = [elements, nodes] if first == "NELEM" else [nodes, elements]
    lines = [head, f"NDIME= {dimensions}", *parts[0], between, *parts[1], tail, ""]
    return end.join("\n".join(lines).split("\n")).encode()


# -- VTK ---------------------------------------------------------------------------------------------------


def vtk(points, cells, *, binary=False, version=2, end="\n", before="", after=""):
    """A legacy file of an unstructured grid."""

    def numbers(values, dtype):
        if binary:
            return np.asarray(values, dtype).tobytes() + b"\n"
        return (" ".join(map(repr, np.asarray(values).tolist())) + end).encode()

    def line(text):
        return text.replace("\n", end).encode()

    sizes = [len(nodes) for _, nodes in cells]
    content = line(f"# vtk DataFile Version {version}.0\na mesh\n{'BINARY' if binary else 'ASCII'}\n")
    content += line(f"DATASET UNSTRUCTURED_GRID\n{before}POINTS {len(points)} double\n")
    content += numbers(np.ravel(points), ">f8") + line(after)
    flat = [node for _, nodes in cells for node in nodes]
    if version < 5:
        content += line(f"CELLS {len(cells)} {len(flat) + len(cells)}\n")
        content += numbers([n for _, nodes in cells for n in (len(nodes), *nodes)], ">i4")
    else:
        content += line(f"CELLS {len(cells) + 1} {len(flat)}\nOFFSETS vtktypeint64\n")
        content += (
            numbers(np.cumsum([0, *sizes]), ">i8")
            + line("CONNECTIVITY vtktypeint64\n")
            + numbers(flat, ">i8")
        )
    content += line(f"CELL_TYPES {len(cells)}\n") + numbers([kind for kind, _ in cells], ">i4")
    return (
        content
        + line(f"CELL_DATA {len(cells)}\nSCALARS a float 1\nLOOKUP_TABLE default\n")
        + numbers(np.zeros(len(cells)), ">f4")
    )


def vtu(
    pieces, *, form="ascii", order="<", header="UInt32", compressor=None, float_type="Float64", encoding="raw"
):
    """Pieces are (points, cells); `form` is ascii, binary or appended."""
    width = {"UInt32": "u4", "UInt64": "u8"}[header]
    appended, arrays = b"", []

    def packed(raw):
        if compressor is None:
            whole = np.array([len(raw)], order + width).tobytes() + raw
            return whole, base64.b64encode(whole)
        block = 64
        parts = [raw[at : at + block] for at in range(0, len(raw), block)]
        squeeze = {"vtkZLibDataCompressor": zlib.compress, "vtkLZMADataCompressor": lzma.compress}[compressor]
        squeezed = [squeeze(part) for part in parts]
        last = len(raw) % block
        head = np.array([len(parts), block, last, *map(len, squeezed)], order + width).tobytes()
        return head + b"".join(squeezed), base64.b64encode(head) + base64.b64encode(b"".join(squeezed))

    def array(name, kind, values, components=1):
        nonlocal appended
        dtype = {"Float64": "f8", "Float32": "f4", "Int64": "i8", "Int32": "i4", "UInt8": "u1"}[kind]
        values = np.asarray(values, order + dtype)
        attributes = f'type="{kind}" Name="{name}" NumberOfComponents="{components}" format="{form}"'
        if form == "ascii":
            return f"<DataArray {attributes}>\n{' '.join(map(repr, values.ravel().tolist()))}\n</DataArray>"
        raw, text = packed(values.tobytes())
        if form == "binary":
            return f"<DataArray {attributes}>{text.decode()}</DataArray>"
        arrays.append(len(appended))
        appended += raw if encoding == "raw" else text
        return f'<DataArray {attributes} offset="{arrays[-1]}"/>'

    body = ""
    for points, cells in pieces:
        flat = [node for _, nodes in cells for node in nodes]
        body += f'<Piece NumberOfPoints="{len(points)}" NumberOfCells="{len(cells)}">'
        body += f"<PointData>{array('a', 'Float32', np.zeros(len(points)))}</PointData>"
        body += f"<Points>{array('Points', float_type, points, 3)}</Points><Cells>"
        body += array("connectivity", "Int64", flat)
        body += array("offsets", "Int32", np.cumsum([len(nodes) for _, nodes in cells]))
        body += array("types", "UInt8", [kind for kind, _ in cells]) + "</Cells></Piece>"
    endian = {"<": "LittleEndian", ">": "BigEndian"}[order]
    squeezed = f' compressor="{compressor}"' if compressor else ""
    text = f'<?xml version="1.0"?>\n<VTKFile type="UnstructuredGrid" version="1.0" byte_order="{endian}" '
    text += f'header_type="{header}"{squeezed}><UnstructuredGrid>{body}</UnstructuredGrid>'
    content = text.encode()
    if form == "appended":
        content += f'<AppendedData encoding="{encoding}">\n_'.encode() + appended + b"\n</AppendedData>"
    return content + b"</VTKFile>\n"


# -- gmsh --------------------------------------------------------------------------------------------------

# gmsh's types and the nodes of each in a file; it has no voxels or polygons of VTK.
GMSH = {5: 2, 9: 3, 22: 9, 10: 4, 12: 5, 13: 6, 14: 7, 24: 11, 3: 1, 1: 15}


def gmsh(points, cells, *, version="4.1", binary=False, order="<", tags=None, end="\n"):
    """Cells are (VTK's type, nodes); `tags` are numbers of the points."""
    tags = list(range(1, len(points) + 1)) if tags is None else tags

    def section(name, content):
        return (
            f"${name}{end}".encode() + content + f"{end if not binary else chr(10)}$End{name}{end}".encode()
        )

    def words(*values):
        return (
            " ".join(repr(v) if isinstance(v, float) else str(int(v)) for v in values).encode() + end.encode()
        )

    def pack(form, *values):
        return struct.pack(order + form, *values)

    content = f"$MeshFormat{end}{version} {int(binary)} 8{end}".encode()
    content += (pack("i", 1) + b"\n" if binary else b"") + f"$EndMeshFormat{end}".encode()
    content += section("PhysicalNames", b"1" + end.encode() + b'2 1 "wall = $Nodes"')
    listed = [(GMSH[kind], [tags[node] for node in nodes]) for kind, nodes in cells]
    if version == "2.2":
        if binary:
            nodes = f"{len(points)}\n".encode() + b"".join(
                pack("i3d", tag, *map(float, p)) for tag, p in zip(tags, points, strict=True)
            )
            elements = f"{len(cells)}\n".encode() + b"".join(
                pack(f"6i{len(own)}i", kind, 1, 2, k + 1, 7, 8, *own) for k, (kind, own) in enumerate(listed)
            )
        else:
            nodes = words(len(points)) + b"".join(
                words(tag, *map(float, p)) for tag, p in zip(tags, points, strict=True)
            )
            # Some have partitions among their tags.
            elements = words(len(cells)) + b"".join(
                words(k + 1, kind, *((2, 7, 8) if k % 2 else (4, 7, 8, 1, 3)), *own)
                for k, (kind, own) in enumerate(listed)
            )
        return content + section("Nodes", nodes) + section("Elements", elements)
    # A block of nodes for the first half, with parameters, and one for the others.
    half = len(points) // 2
    blocks = [(1, 5, 1, range(half)), (2, 5, 0, range(half, len(points)))]
    nodes = _gmsh_nodes(version, binary, order, blocks, tags, points, words, pack)
    head = (len(cells), len(cells), 1, len(cells)) if version == "4.1" else (len(cells), len(cells))
    elements = pack(f"{len(head)}Q", *head) if binary else words(*head)
    for k, (kind, own) in enumerate(listed):
        if binary:
            number = "Q" if version == "4.1" else "i"
            elements += pack("3i", 2, 1, kind) + pack("Q", 1)
            elements += pack(f"{1 + len(own)}{number}", k + 1, *own)
        else:
            elements += words(2, 1, kind, 1) + words(k + 1, *own)
    return (
        content
        + section("Entities", words(0, 0, 0, 0))
        + section("Nodes", nodes)
        + section("Elements", elements)
    )


def _gmsh_nodes(version, binary, order, blocks, tags, points, words, pack):
    count = len(points)
    head = (len(blocks), count, min(tags), max(tags)) if version == "4.1" else (len(blocks), count)
    content = pack(f"{len(head)}Q", *head) if binary else words(*head)
    for dimension, entity, parametric, own in blocks:
        facts = (dimension, entity, parametric) if version == "4.1" else (entity, dimension, parametric)
        more = [0.5] * (dimension if parametric else 0)
        content += pack("3i", *facts) + pack("Q", len(own)) if binary else words(*facts, len(own))
        if version == "4.1":
            numbers = [tags[k] for k in own]
            content += pack(f"{len(own)}Q", *numbers) if binary else b"".join(words(tag) for tag in numbers)
        for k in own:
            values = [*map(float, points[k]), *more]
            if version == "4.1":
                content += pack(f"{len(values)}d", *values) if binary else words(*values)
            else:
                content += pack(f"i{len(values)}d", tags[k], *values) if binary else words(tags[k], *values)
    return content


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path

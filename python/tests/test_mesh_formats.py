"""Files of SU2, VTK, gmsh and AFLR3 as read by the helper: cell by cell, in order, as written."""

from __future__ import annotations

import itertools
import sys

import mesh_files as files
import numpy as np
import pytest
from fieldstone._helper.frames import RequestError
from fieldstone._helper.mesh import read_mesh
from mesh_files import FACES, POINTS, VOLUMES, rows, write

PLANE = POINTS[:12, :2]
LINEAR_FACES = [cell for cell in FACES if cell[0] in (5, 9)]
LINEAR_VOLUMES = [cell for cell in VOLUMES if cell[0] in (10, 12, 13, 14)]


def cells_of(listed):
    return [cell[:2] for cell in listed]


def due(listed):
    return [cell[2] for cell in listed]


def places(mesh):
    return np.stack(list(mesh.nodes.values()), axis=1)


def refusal(path, *words):
    with pytest.raises(RequestError) as caught:
        read_mesh(path)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert len(str(caught.value).split(": ")[-1].split()) >= 3, "a reason has words"
    assert caught.value.hint, "a refusal has a hint"
    return caught.value


# -- SU2 ---------------------------------------------------------------------------------------------------

SPELLINGS = {
    "plain": {},
    "CRLF": {"end": "\r\n"},
    "CR": {"end": "\r"},
    "no index": {"index": False},
    "nodes first": {"first": "NPOIN"},
    "blank lines and remarks": {"head": "% NELEM= 7\n\n", "between": "\n% a remark\n\n"},
    "ghosts": {"extra": "\t10"},
    "zones": {"head": "NZONE= 1\nIZONE= 1"},
    "periodic": {
        "tail": "NMARK= 2\nMARKER_TAG= low\nMARKER_ELEMS= 1\n3 0 1\n"
        "MARKER_TAG= SEND_RECEIVE\nMARKER_ELEMS= 1\nSEND_TO= 1\n1 0 1\n"
        "NPERIODIC= 1\nPERIODIC_INDEX= 0\n0 0 0\n0 0 0\n0 0 0"
    },
    "boxes": {"tail": "NMARK= 0\nFFD_NBOX= 1\nFFD_CORNER_POINTS= 2\n0.0 1.0\n1.0 1.0\nFFD_SURFACE_POINTS= 0"},
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_of_su2_are_one_mesh(name, tmp_path):
    surface = read_mesh(
        write(tmp_path / "a.su2", files.su2(PLANE, cells_of(LINEAR_FACES), **SPELLINGS[name]))
    )
    assert (surface.format, surface.omitted) == ("SU2", ())
    assert rows(surface, "faces") == due(LINEAR_FACES)
    np.testing.assert_array_equal(places(surface), PLANE)
    solid = read_mesh(
        write(tmp_path / "b.su2", files.su2(POINTS, cells_of(LINEAR_VOLUMES), **SPELLINGS[name]))
    )
    assert rows(solid, "volumes") == due(LINEAR_VOLUMES)
    np.testing.assert_array_equal(places(solid), POINTS)


def test_su2_has_tabs_exponents_of_fortran_and_cells_of_all_dimensions(tmp_path):
    text = files.su2(POINTS, cells_of(LINEAR_FACES + LINEAR_VOLUMES))
    text = text.replace(b" ", b" \t ").replace(b"0.5", b"5.0D-01").replace(b"1.25", b"+.125d1")
    mesh = read_mesh(write(tmp_path / "a.su2", text))
    assert rows(mesh, "faces") == due(LINEAR_FACES) and rows(mesh, "volumes") == due(LINEAR_VOLUMES)
    np.testing.assert_array_equal(places(mesh), POINTS)
    lines = read_mesh(write(tmp_path / "b.su2", files.su2(PLANE, [(3, (0, 1)), (3, (5, 1))])))
    assert rows(lines, "edges") == [(0, 1), (5, 1)]
    both = read_mesh(write(tmp_path / "c.su2", files.su2(PLANE, [(3, (0, 1)), (5, (0, 1, 4))])))
    assert both.edges is None and both.omitted[0][0] == "1 line"


def test_what_is_wrong_in_su2_is_named(tmp_path):
    text = files.su2(PLANE, cells_of(LINEAR_FACES))

    def changed(before, after):
        assert before in text
        return write(tmp_path / "a.su2", text.replace(before, after, 1))

    for before, after, words in (
        (b"NDIME= 2", b"NZONE= 2\nNDIME= 2", ("2 zones",)),
        (b"NMARK= 0", b"NDIME= 2\nNELEM= 0\nNPOIN= 0", ("2 zones",)),
        (b"NELEM= 3", b"NELEM= 2", ("NELEM= 2, but 3 lines follow",)),
        (b"NPOIN= 12", b"NPOIN= 13", ("NPOIN= 13, but 12 lines follow",)),
        (b"5 0 1 4 0", b"305 0 1 4 0", ("line 4", "triangle of order 4")),
        (b"5 0 1 4 0", b"77 0 1 4 0", ("line 4", "type 77")),
        (b"5 0 1 4 0", b"5 0 1", ("line 4", "2 numbers")),
        (b"9 1 2 6 5 1", b"9 1 -1 6 5 1", ("cell 1 has the node -1",)),
        (b"5 0 1 4 0", b"5 0 x 4 0", ("line 4", "'x' is not a whole number")),
        (b"5 0 1 4 0", b"5 0 1 - 0", ("line 4", "'-' is not a whole number")),
        (b"0.5 0.0", b"0.5 oops", ("line 10", "'oops' is not a number")),
        (b"NELEM= 3", b"NELEM= many", ("NELEM= many",)),
        (b"NDIME= 2", b"NDIME= 4", ("NDIME= 4",)),
    ):
        refusal(changed(before, after), *words)
    # SU2 counts nodes by their lines; a file with another index is ambiguous.
    swapped = text.replace(b"\t3\n", b"\t#\n").replace(b"\t4\n", b"\t3\n").replace(b"\t#\n", b"\t4\n")
    refusal(write(tmp_path / "a.su2", swapped), "index 4", "counts by lines")
    beyond = write(tmp_path / "a.su2", files.su2(PLANE, [(5, (0, 1, 12))]))
    with pytest.raises(RequestError, match="node 12, but nodes are 0 to 11"):
        read_mesh(beyond)
    assert "NDIME" in str(refusal(write(tmp_path / "a.su2", b"no mesh at all"), "NDIME"))


def test_a_large_su2_is_not_read_line_by_line(tmp_path):
    n = 300
    corner = np.arange(n * n).reshape(n, n)[:-1, :-1].ravel()
    cells = "".join(f"9 {k} {k + 1} {k + n + 1} {k + n} {i}\n" for i, k in enumerate(corner.tolist()))
    nodes = "".join(f"{i / 7!r} {i / 3!r} {i}\n" for i in range(n * n))
    path = tmp_path / "a.su2"
    path.write_text(f"NDIME= 2\nNELEM= {len(corner)}\n{cells}NPOIN= {n * n}\n{nodes}NMARK= 0\n")
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    mesh = read_mesh(path)
    sys.setprofile(None)
    assert calls < len(corner) / 4, "lines are read many at a time"
    np.testing.assert_array_equal(mesh.faces, corner[:, None] + [0, 1, n + 1, n])
    np.testing.assert_array_equal(mesh.nodes["y"], np.arange(n * n) / 3)


# -- VTK ---------------------------------------------------------------------------------------------------

LEGACY = [
    {"binary": binary, "version": version, "end": end}
    for binary, version, end in itertools.product((False, True), (2, 4, 5), ("\n", "\r\n"))
    if not (binary and end == "\r\n")
]


@pytest.mark.parametrize("options", LEGACY, ids=str)
def test_legacy_files_of_vtk_keep_their_cells_in_order(options, tmp_path):
    listed = [cell for pair in itertools.zip_longest(FACES, VOLUMES) for cell in pair if cell]
    before = "" if options["binary"] else "FIELD FieldData 1\nTIME 1 2 double\n0.5\n0.75\n"
    after = "METADATA\nINFORMATION 1\nNAME L2_NORM LOCATION vtkDataArray\nDATA 2 0 1\n\n"
    content = files.vtk(POINTS, cells_of(listed), before=before, after=after, **options)
    mesh = read_mesh(write(tmp_path / "a.vtk", content))
    assert (mesh.format, mesh.edges, mesh.omitted) == ("VTK", None, ())
    assert rows(mesh, "faces") == due(FACES) and rows(mesh, "volumes") == due(VOLUMES)
    np.testing.assert_array_equal(places(mesh), POINTS)
    refusal(write(tmp_path / "cut.vtk", content[: len(content) // 3]))


def test_other_data_sets_of_legacy_vtk(tmp_path):
    head = "# vtk DataFile Version 3.0\nx\nASCII\nDATASET "
    polygons = "POLYDATA\nPOINTS 5 float 0 0 0 1 0 0 1 1 0\n0 1 0 2 2 0\nPOLYGONS 2 9\n4 0 1 2 3\n3 1 4 2\n"
    mesh = read_mesh(write(tmp_path / "a.vtk", (head + polygons + "POINT_DATA 5\n").encode()))
    assert rows(mesh, "faces") == [(0, 1, 2, 3), (1, 4, 2)] and "".join(mesh.nodes) == "xy"
    lattice = "DIMENSIONS 3 2 2\nSPACING 1 2 3\nORIGIN 0 0 0\nCELL_DATA 2\n"
    mesh = read_mesh(write(tmp_path / "b.vtk", (head + "STRUCTURED_POINTS\n" + lattice).encode()))
    assert rows(mesh, "volumes") == [(0, 1, 4, 3, 6, 7, 10, 9), (1, 2, 5, 4, 7, 8, 11, 10)]
    assert places(mesh)[10].tolist() == [1, 2, 3]
    plane = "DIMENSIONS 3 1 2\nX_COORDINATES 3 float\n0 1 4\nY_COORDINATES 1 float\n5\n"
    plane += "Z_COORDINATES 2 float\n0 2\n"
    mesh = read_mesh(write(tmp_path / "c.vtk", (head + "RECTILINEAR_GRID\n" + plane).encode()))
    assert rows(mesh, "faces") == [(0, 1, 4, 3), (1, 2, 5, 4)]
    assert places(mesh)[4].tolist() == [1, 5, 2]


VTU = {
    "ascii": {},
    "ascii, 32 bits": {"float_type": "Float32"},
    "base64": {"form": "binary"},
    "base64, big": {"form": "binary", "order": ">", "header": "UInt64"},
    "base64, zlib": {"form": "binary", "compressor": "vtkZLibDataCompressor"},
    "base64, LZMA": {"form": "binary", "compressor": "vtkLZMADataCompressor", "header": "UInt64"},
    "raw": {"form": "appended"},
    "raw, big": {"form": "appended", "order": ">", "header": "UInt64", "float_type": "Float32"},
    "raw, zlib": {"form": "appended", "compressor": "vtkZLibDataCompressor"},
    "appended base64": {"form": "appended", "encoding": "base64"},
    "appended base64, zlib": {
        "form": "appended",
        "encoding": "base64",
        "compressor": "vtkZLibDataCompressor",
    },
}


@pytest.mark.parametrize("name", VTU)
def test_vtu_keeps_its_cells_in_order_in_every_form(name, tmp_path):
    listed = [cell for pair in itertools.zip_longest(VOLUMES, FACES) for cell in pair if cell]
    pieces = [(POINTS, cells_of(listed)), (POINTS[:0], []), (POINTS + 10, cells_of(FACES[:2]))]
    content = files.vtu(pieces, **VTU[name])
    mesh = read_mesh(write(tmp_path / "a.vtu", content))
    beyond = [tuple(node + len(POINTS) for node in cell) for cell in due(FACES[:2])]
    assert rows(mesh, "faces") == due(FACES) + beyond and rows(mesh, "volumes") == due(VOLUMES)
    np.testing.assert_array_equal(places(mesh), np.concatenate([POINTS, POINTS + 10]))
    refusal(write(tmp_path / "cut.vtu", content[: len(content) * 2 // 3]))


def test_cells_without_a_place_are_refused_by_name_or_reported(tmp_path):
    for kind, nodes, word in (
        (0, (), "empty cell"),
        (4, (0, 1, 5), "polyline"),
        (6, (0, 1, 4, 5), "triangle strip"),
        (15, tuple(range(10)), "pentagonal prism"),
        (41, (0, 1, 4, 13), "convex point set"),
        (42, (0, 1, 4, 13), "polyhedron"),
        (99, (0, 1, 4), "type 99"),
        (12, (0, 1, 2, 3), "4 nodes instead of 8"),
        (7, (0, 1), "2 nodes instead of at least 3"),
    ):
        cells = [(5, (0, 1, 4)), (kind, nodes)]
        refusal(write(tmp_path / "a.vtu", files.vtu([(POINTS, cells)])), "cell 1", word)
        refusal(write(tmp_path / "a.vtk", files.vtk(POINTS, cells)), "cell 1", word)
    # A strip of one triangle is that, and a polyline of two nodes a line.
    cells = [(6, (0, 1, 4)), (3, (0, 1)), (1, (7,)), (2, (7, 8))]
    mesh = read_mesh(write(tmp_path / "a.vtu", files.vtu([(POINTS, cells)])))
    assert rows(mesh, "faces") == [(0, 1, 4)]
    assert [what for what, _ in mesh.omitted] == ["1 line", "2 cells that are points"]
    lines = read_mesh(write(tmp_path / "a.vtu", files.vtu([(POINTS, [(4, (3, 1)), (3, (0, 1))])])))
    assert rows(lines, "edges") == [(3, 1), (0, 1)] and lines.omitted == ()


def test_what_is_wrong_in_vtu_is_named(tmp_path):
    text = files.vtu([(POINTS, cells_of(FACES))])
    for before, after, words in (
        (b"UnstructuredGrid", b"PolyData", ("type PolyData",)),
        (b'type="Float64"', b'type="Float16"', ("Float16",)),
        (
            b'NumberOfPoints="36"',
            b'NumberOfPoints="35"',
            ("Points of piece 0", "108 numbers instead of 105"),
        ),
        (b'Name="types"', b'Name="kinds"', ("types of piece 0",)),
        (b"\n0 1 4 1", b"\n0 1 36 1", ("cell 0 of piece 0 has point 36",)),
        (b"\n3 7 10", b"\n3 2 10", ("offsets of piece 0",)),
        (b"<?xml", b"<!DOCTYPE a><?xml", ("entities",)),
        (b"</Cells>", b"", ("XML",)),
    ):
        assert before in text
        refusal(write(tmp_path / "a.vtu", text.replace(before, after)), *words)
    lz4 = files.vtu([(POINTS, cells_of(FACES))], form="appended", compressor="vtkZLibDataCompressor")
    refusal(write(tmp_path / "a.vtu", lz4.replace(b"vtkZLib", b"vtkLZ4")), "vtkLZ4DataCompressor")
    empty = files.vtu([(POINTS[:0], [])])
    refusal(write(tmp_path / "a.vtu", empty), "no nodes")


# -- gmsh --------------------------------------------------------------------------------------------------

GMSH = [
    {"version": version, "binary": binary, "order": order, "end": end}
    for version, binary, order, end in itertools.product(
        ("2.2", "4", "4.1"), (False, True), "<>", ("\n", "\r\n")
    )
    if (order == "<" or binary) and not (binary and end == "\r\n")
]


@pytest.mark.parametrize("options", GMSH, ids=str)
def test_gmsh_keeps_elements_in_order_whatever_their_tags(options, tmp_path):
    faces = [(5, (0, 1, 4), (0, 1, 4)), (9, (1, 2, 6, 5), (1, 2, 6, 5)), (22, (4, 5, 8, 1, 2, 3), (4, 5, 8))]
    volumes = [cell for cell in VOLUMES if cell[0] != 11]
    marks = [(3, (0, 1), ()), (1, (0,), ())]
    listed = [cell for cells in itertools.zip_longest(marks, faces, volumes) for cell in cells if cell]
    tags = np.random.default_rng(5).permutation(np.arange(36) * 3 + 7).tolist()
    for some in (None, tags):
        content = files.gmsh(POINTS, cells_of(listed), tags=some, **options)
        mesh = read_mesh(write(tmp_path / "a.msh", content))
        assert (mesh.format, mesh.edges, mesh.omitted) == ("gmsh", None, ())
        assert rows(mesh, "faces") == due(faces) and rows(mesh, "volumes") == due(volumes)
        np.testing.assert_array_equal(places(mesh), POINTS)
        refusal(write(tmp_path / "cut.msh", content[: len(content) * 2 // 3]))


def test_lines_of_gmsh_are_marks_where_they_lie_along_faces(tmp_path):
    for cells, edges, left in (
        ([(3, (0, 1)), (3, (4, 0)), (5, (0, 1, 4))], None, []),
        ([(3, (1, 5)), (10, (0, 1, 5, 13))], None, []),
        ([(3, (0, 1)), (3, (0, 7)), (5, (0, 1, 4))], None, ["2 lines"]),
        ([(3, (0, 1)), (3, (0, 7))], [(0, 1), (0, 7)], []),
    ):
        mesh = read_mesh(write(tmp_path / "a.msh", files.gmsh(POINTS, cells)))
        assert rows(mesh, "edges") == edges and [what for what, _ in mesh.omitted] == left


def test_what_is_wrong_in_gmsh_is_named(tmp_path):
    text = files.gmsh(POINTS, cells_of(LINEAR_FACES), version="2.2")
    for before, after, words in (
        (b"1 2 4 7 8 1 3 1 2 5", b"1 2 4 7 8 1 3 1 2 99", ("element 0", "node 99")),
        (b"1 2 4 7 8 1 3 1 2 5", b"1 2 4 7 8 1 3 1 2", ("element 0", "9 numbers")),
        (b"1 2 4 7 8 1 3 1 2 5", b"1 34 4 7 8 1 3 1 2 5", ("element 0", "type 34")),
        (b"$Elements\n3", b"$Elements\n4", ("4 elements, but 3",)),
        (b"$Nodes\n36", b"$Nodes\n35", ("35 nodes, but 36",)),
        (b"\n2 0.5", b"\n1 0.5", ("two nodes have the number 1",)),
        (b"$EndElements", b"$EndOfIt", ("$Elements does not end",)),
        (b"2.2 0 8", b"3.0 0 8", ("version 3.0",)),
    ):
        assert before in text, before
        refusal(write(tmp_path / "a.msh", text.replace(before, after)), *words)
    refusal(write(tmp_path / "a.msh", b"$NOD\n1\n1 0 0 0\n$ENDNOD\n"), "version 1")


# -- AFLR3 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["", "lb8", "b8", "lb4", "b8l", "r8", "lr4"])
def test_aflr3_has_its_parts_in_order_in_every_form(form, tmp_path):
    triangles, squares = [(0, 1, 4), (1, 5, 4)], [(1, 2, 6, 5)]
    tets, pyramids = [(1, 2, 5, 13)], [(13, 12, 16, 17, 28)]
    wedges, hexes = [(4, 5, 8, 16, 17, 20)], [(0, 1, 5, 4, 12, 13, 17, 16)]
    blocks = [triangles, squares, [(7,)] * 3, tets, pyramids, wedges, hexes]
    counts = [len(POINTS), *(len(blocks[k]) for k in (0, 1, 3, 4, 5, 6))]
    ones = [[node + 1 for row in block for node in row] for block in blocks]
    if not form:
        lines = [counts, POINTS.ravel().tolist(), *ones]
        content = "\r\n".join(" ".join(map(repr, line)) for line in lines).encode()
    else:
        order = "<" if form.startswith("l") else ">"
        integer = order + ("i8" if form.endswith("l") else "i4")
        parts = [np.array(counts, integer), POINTS.astype(f"{order}f{8 if '8' in form else 4}")]
        body = parts[1].tobytes() + b"".join(np.array(own, integer).tobytes() for own in ones)
        record = (lambda raw: np.array([len(raw)], integer).tobytes()) if "r" in form else (lambda raw: b"")
        content = b"".join(record(raw) + raw + record(raw) for raw in (parts[0].tobytes(), body))
    path = write(tmp_path / f"a{'.' if form else ''}{form}.ugrid", content)
    mesh = read_mesh(path)
    assert mesh.format == "AFLR3" and rows(mesh, "faces") == triangles + squares
    apex_last = [(12, 13, 17, 28, 16)]
    assert rows(mesh, "volumes") == tets + apex_last + wedges + hexes
    np.testing.assert_array_equal(places(mesh), POINTS)
    refusal(write(path, content[: len(content) * 2 // 3]))

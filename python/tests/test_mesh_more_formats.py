"""Files of Medit, TetGen, AVS-UCD, Abaqus, surfaces and of meshio: each is one mesh, or refused by name."""

from __future__ import annotations

import struct
from pathlib import Path

import mesh_files as files
import numpy as np
import pytest
from fieldstone._helper.frames import RequestError
from fieldstone._helper.mesh import read_mesh
from mesh_files import POINTS, rows, write

TRIANGLES, SQUARES = [(0, 1, 4), (1, 5, 4)], [(1, 2, 6, 5)]
TETS, HEXES = [(1, 2, 5, 13), (5, 6, 9, 17)], [(0, 1, 5, 4, 12, 13, 17, 16)]
WEDGES, PYRAMIDS = [(4, 5, 8, 16, 17, 20)], [(12, 13, 17, 16, 28)]


def places(mesh):
    return np.stack(list(mesh.nodes.values()), axis=1)


def refusal(path, *words):
    with pytest.raises(RequestError) as caught:
        read_mesh(path)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert caught.value.hint and "sacct" not in caught.value.hint
    return caught.value


def text(path: Path, content: str, end: str = "\n") -> Path:
    return write(path, end.join(content.split("\n")).encode())


def lines(listed, base=1, behind=""):
    return "\n".join(" ".join(str(node + base) for node in row) + behind for row in listed)


# -- Medit -------------------------------------------------------------------------------------------------

SECTIONS = [
    ("Edges", 5, [(0, 1), (4, 0)]),
    ("Quadrilaterals", 7, SQUARES),
    ("Triangles", 6, TRIANGLES),
    ("Tetrahedra", 8, TETS[:1]),
    ("Hexahedra", 10, HEXES),
    ("Tetrahedra", 8, TETS[1:]),
    ("Prisms", 9, WEDGES),
    ("Pyramids", 49, PYRAMIDS),
]


def medit(sections, version=2):
    points = "\n".join(" ".join(map(repr, point)) + " 0" for point in POINTS.tolist())
    content = f"MeshVersionFormatted {version}\n# a remark with 3 Triangles\nDimension\n3\n\n"
    content += f"Vertices\n36\n{points}\n"
    for name, _, own in sections:
        content += f"{name} {len(own)}\n{lines(own, behind=' 7')}\n"
    return content + "Corners\n2\n1\n2\nRequiredVertices 1\n1\nEnd\n"


def meshb(sections, version, order):
    """Each section: its number, the position of the next one, its contents."""
    place, whole = ("q" if version > 2 else "i"), ("q" if version > 3 else "i")
    real = "d" if version > 1 else "f"
    content = struct.pack(order + "ii", 1, version)

    def section(code, body):
        nonlocal content
        head = 4 + struct.calcsize(order + place)
        content += (
            struct.pack(order + "i", code)
            + struct.pack(order + place, len(content) + head + len(body))
            + body
        )

    section(3, struct.pack(order + "i", 3))
    section(14, struct.pack(f"{order}{whole}{whole}", 1, 5))
    body = b"".join(struct.pack(f"{order}3{real}{whole}", *point, 0) for point in POINTS.tolist())
    section(4, struct.pack(order + whole, len(POINTS)) + body)
    for _, code, own in sections:
        rows_of = b"".join(
            struct.pack(f"{order}{len(row) + 1}{whole}", *(n + 1 for n in row), 7) for row in own
        )
        section(code, struct.pack(order + whole, len(own)) + rows_of)
    return content + struct.pack(order + "i", 54) + struct.pack(order + place, 0)


@pytest.mark.parametrize("form", ["\n", "\r\n", (1, "<"), (2, ">"), (3, "<"), (4, ">")], ids=str)
def test_medit_keeps_the_order_of_its_sections(form, tmp_path):
    if isinstance(form, str):
        path = text(tmp_path / "a.mesh", medit(SECTIONS), form)
    else:
        path = write(tmp_path / "a.meshb", meshb(SECTIONS, *form))
    mesh = read_mesh(path)
    assert rows(mesh, "faces") == SQUARES + TRIANGLES and mesh.edges is None and mesh.omitted == ()
    assert rows(mesh, "volumes") == TETS[:1] + HEXES + TETS[1:] + WEDGES + PYRAMIDS
    np.testing.assert_array_equal(places(mesh), POINTS)
    cut = write(tmp_path / f"cut{path.suffix}", path.read_bytes()[:700])
    refusal(cut)


def test_cells_of_medit_that_are_not_read_are_named(tmp_path):
    refusal(text(tmp_path / "a.mesh", medit([("TrianglesP3", 90, [tuple(range(10))])])), "TrianglesP3")
    refusal(write(tmp_path / "a.meshb", meshb([("", 90, [tuple(range(10))])], 2, "<")), "section 90")
    refusal(text(tmp_path / "b.mesh", medit(SECTIONS).replace("Prisms 1", "Prisms 2")), "Prisms", "2 rows")


# -- TetGen, AVS, Abaqus -----------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [0, 1])
def test_tetgen_and_triangle_are_two_files(base, tmp_path):
    nodes = [f"{k + base} " + " ".join(map(repr, point)) + " 1" for k, point in enumerate(POINTS.tolist())]
    text(tmp_path / "a.node", "# nodes\n36 3 0 1\n" + "\n".join(nodes) + "\n", "\r\n")
    path = text(
        tmp_path / "a.ele", f"2  4  0\n{base} {lines(TETS[:1], base)}\n{base + 1} {lines(TETS[1:], base)}\n"
    )
    for one in (path, tmp_path / "a.node"):
        mesh = read_mesh(one)
        assert rows(mesh, "volumes") == TETS and places(mesh).tolist() == POINTS.tolist()
    text(tmp_path / "b.node", "4 2 0 0\n1 0 0\n2 1 0\n3 1 1\n4 0 1\n")
    assert rows(read_mesh(text(tmp_path / "b.ele", "2 3 0\n1 1 2 3\n2 1 3 4\n")), "faces") == [
        (0, 1, 2),
        (0, 2, 3),
    ]
    refusal(text(tmp_path / "b.ele", "3 3 0\n1 1 2 3\n2 1 3 4\n"), "3 lines", "has 2 lines")
    refusal(text(tmp_path / "b.ele", "2 3 0\n1 1 2 3\n2 1 3 9\n"), "element 1", "node 9")
    refusal(text(tmp_path / "c.ele", "2 3 0\n1 1 2 3\n2 1 3 4\n"), "c.node")


def test_ucd_of_avs_keeps_cells_in_turn(tmp_path):
    numbers = [3 * k + 11 for k in range(36)]
    nodes = "\n".join(f"{n} {' '.join(map(repr, p))}" for n, p in zip(numbers, POINTS.tolist(), strict=True))
    # UCD counts from the top, and the apex of a pyramid is its first.
    cells = [
        ("tri", TRIANGLES[0]),
        ("hex", HEXES[0][4:] + HEXES[0][:4]),
        ("quad", SQUARES[0]),
        ("pyr", PYRAMIDS[0][4:] + PYRAMIDS[0][:4]),
        ("tri", TRIANGLES[1]),
        ("prism", WEDGES[0][3:] + WEDGES[0][:3]),
    ]
    listed = "\n".join(
        f"{k + 1} 0 {name} " + " ".join(str(numbers[n]) for n in own) for k, (name, own) in enumerate(cells)
    )
    content = f"# remark\n36 6 1 0 0\n{nodes}\n{listed}\n1 1\na, m\n" + "\n".join(f"{n} 0.5" for n in numbers)
    for end in ("\n", "\r\n"):
        mesh = read_mesh(text(tmp_path / "a.inp", content, end))
        assert rows(mesh, "faces") == [TRIANGLES[0], SQUARES[0], TRIANGLES[1]]
        assert rows(mesh, "volumes") == HEXES + PYRAMIDS + WEDGES
        np.testing.assert_array_equal(places(mesh), POINTS)
    refusal(text(tmp_path / "b.inp", content.replace("1 0 tri", "1 0 poly")), "cell 0", "poly")
    refusal(text(tmp_path / "b.inp", content.replace("1 0 tri 11 ", "1 0 tri ")), "cell 0", "2 nodes")


def test_abaqus_keeps_its_elements_in_the_order_of_the_file(tmp_path):
    nodes = "\n".join(f"{10 * k + 5}, {', '.join(map(repr, p))}" for k, p in enumerate(POINTS.tolist()))
    named = lambda listed: "\n".join(  # noqa: E731
        f"{k}, " + ", ".join(str(10 * n + 5) for n in row) for k, row in enumerate(listed, start=1)
    )
    long = named([tuple(range(20))]).split(", ")
    content = f"*HEADING\nthree, parts\n** *ELEMENT, TYPE=S3\n*NODE, NSET=ALL\n{nodes}\n"
    content += "*ELEMENT, TYPE=S3R, ELSET=A\n"
    content += (
        f"{named(TRIANGLES[:1])}\n** a remark\n*Element, type=S4R\n{named(SQUARES)}\n*ELEMENT, TYPE=CPS3\n"
    )
    content += f"{named(TRIANGLES[1:])}\n*ELEMENT,\nTYPE=C3D8R\n{named(HEXES)}\n"
    content += f"*ELEMENT, TYPE=C3D6\n{named(WEDGES)}\n"
    content += (
        f"*ELEMENT, TYPE=C3D20R\n{', '.join(long[:16])},\n{', '.join(long[16:])}\n*ELEMENT, TYPE=C3D4\n"
    )
    content += f"{named(TETS)}\n*ELSET, ELSET=B\n1, 2\n*STEP\n*NODE OUTPUT\nU\n*END STEP\n"
    for end in ("\n", "\r\n"):
        mesh = read_mesh(text(tmp_path / "a.inp", content, end))
        assert rows(mesh, "faces") == [TRIANGLES[0], SQUARES[0], TRIANGLES[1]]
        assert rows(mesh, "volumes") == HEXES + WEDGES + [tuple(range(8))] + TETS
        np.testing.assert_array_equal(places(mesh), POINTS)
    beams = (
        f"*NODE\n{nodes}\n*ELEMENT, TYPE=B32\n{named([(0, 1, 2)])}\n*ELEMENT, TYPE=T3D2\n{named([(2, 3)])}\n"
    )
    assert rows(read_mesh(text(tmp_path / "b.inp", beams)), "edges") == [(0, 2), (2, 3)]
    for more, word in (
        ("*INCLUDE, INPUT=other.inp\n", "*INCLUDE"),
        ("*NGEN\n5, 15, 1\n", "*NGEN"),
        ("*ELEMENT, TYPE=SPRINGA\n7, 5, 15\n", "type SPRINGA"),
        ("*PART, NAME=A\n*END PART\n*PART, NAME=B\n*END PART\n", "2 parts"),
        ("*INSTANCE, NAME=A, PART=B\n1., 0., 0.\n*END INSTANCE\n", "*INSTANCE"),
        ("*ELEMENT, TYPE=S3\n7, 5, 15\n", "not 3 nodes"),
        ("*ELEMENT, TYPE=S3\n7, 5, 15, 999\n", "node 999"),
        ("*NODE\n5, 0., 0., 0.\n", "two nodes have the number 5"),
    ):
        refusal(text(tmp_path / "b.inp", content + more), word)


# -- surfaces ----------------------------------------------------------------------------------------------

POLYGONS = [(0, 1, 4), (1, 2, 6, 5), (1, 5, 4), (2, 3, 7, 11, 6), (4, 5, 9, 8), (5, 6, 9)]


def test_off_and_obj_have_faces_of_any_size_in_turn(tmp_path):
    points = POINTS.tolist()
    body = "\n".join(" ".join(map(repr, point)) for point in points)
    faces = "\n".join(f"{len(row)} {lines([row], 0)} 0.5 0.5 0.5" for row in POLYGONS)
    for end in ("\n", "\r\n"):
        path = text(tmp_path / "a.off", f"OFF\n# remark\n36 {len(POLYGONS)} 0\n{body}\n{faces}\n", end)
        assert rows(read_mesh(path), "faces") == POLYGONS and places(read_mesh(path)).tolist() == points
        vertices = "\n".join("v " + " ".join(map(repr, point)) for point in points)
        faces_of = "\n".join("f " + " ".join(f"{n + 1}/1/2" for n in row) for row in POLYGONS[:-1])
        back = "f " + " ".join(str(n - 36) for n in POLYGONS[-1])
        path = text(
            tmp_path / "a.obj", f"# o\nmtllib x\n{vertices}\nvn 0 0 1\ng a\n{faces_of}\ns off\n{back}\n", end
        )
        assert rows(read_mesh(path), "faces") == POLYGONS and places(read_mesh(path)).tolist() == points
    path = text(tmp_path / "a.obj", f"{vertices}\nl 1 2\nf 1 2 5\np 3\n")
    assert [what for what, _ in read_mesh(path).omitted] == ["1 line", "1 cell that is a point"]
    refusal(text(tmp_path / "b.obj", f"{vertices}\nf 1 x 5\n"), "line 37")
    refusal(text(tmp_path / "b.obj", f"{vertices}\nf 1 2 3 0\n"), "line 37")
    refusal(text(tmp_path / "b.obj", f"{vertices}\nf 1 2 3 -37\n"), "line 37")
    refusal(text(tmp_path / "b.off", f"OFF\n36 7 0\n{body}\n{faces}\n"), "36 vertices and 7 faces")


def test_stl_has_its_triangles_in_order_and_shares_their_corners(tmp_path):
    corners = POINTS[np.array([(0, 1, 4), (1, 5, 4), (1, 2, 5)])]
    due = [(0, 1, 2), (1, 3, 2), (1, 4, 3)]
    facet = "facet normal 0 0 1\nouter loop\n{}\nendloop\nendfacet\n"
    words = ["\n".join("vertex " + " ".join(map(repr, c)) for c in own) for own in corners.tolist()]
    content = (
        "solid a facet of mine\n".replace("facet", "part")
        + "".join(map(facet.format, words))
        + "endsolid a\n"
    )
    raw = b"solid or not".ljust(80) + struct.pack("<I", 3)
    raw += b"".join(struct.pack("<12fH", 0, 0, 1, *own.ravel(), 0) for own in corners)
    for path in (
        text(tmp_path / "a.stl", content),
        text(tmp_path / "b.stl", content, "\r\n"),
        write(tmp_path / "c.stl", raw),
    ):
        mesh = read_mesh(path)
        assert rows(mesh, "faces") == due
        np.testing.assert_allclose(places(mesh), POINTS[[0, 1, 4, 5, 2], :2], rtol=1e-7)
    refusal(write(tmp_path / "c.stl", raw[:-1]), "3 triangles in")
    refusal(
        text(tmp_path / "b.stl", content.replace("vertex 0.0", "vortex 0.0", 1)), "3 facets and 8 vertices"
    )


@pytest.mark.parametrize("form", ["ascii", "binary_little_endian", "binary_big_endian"])
@pytest.mark.parametrize("faces", [POLYGONS, TRIANGLES], ids=["mixed", "triangles"])
def test_ply_has_faces_of_any_size_in_turn(form, faces, tmp_path):
    head = f"ply\nformat {form} 1.0\ncomment x\nelement vertex 36\nproperty float nx\nproperty double x\n"
    head += f"property double y\nproperty double z\nelement face {len(faces)}\nproperty uchar red\n"
    head += "property list uchar int vertex_indices\nend_header\n"
    order = ">" if "big" in form else "<"
    if form == "ascii":
        body = "".join(f"0 {' '.join(map(repr, point))}\n" for point in POINTS.tolist())
        body += "".join(f"255 {len(row)} {lines([row], 0)}\n" for row in faces)
        content = (head + body).encode()
    else:
        content = head.encode() + b"".join(struct.pack(order + "f3d", 0, *point) for point in POINTS.tolist())
        content += b"".join(struct.pack(f"{order}BB{len(row)}i", 255, len(row), *row) for row in faces)
    mesh = read_mesh(write(tmp_path / "a.ply", content))
    assert rows(mesh, "faces") == faces and places(mesh)[:, :2].tolist() == POINTS[:, :2].tolist()
    refusal(write(tmp_path / "b.ply", content[:-9]), "face has fewer numbers")
    refusal(write(tmp_path / "b.ply", content.replace(b"vertex_indices", b"others")), "no vertex_indices")


# -- by meshio ---------------------------------------------------------------------------------------------

BULK = """SOL 101
BEGIN BULK
GRID    5               0.0     0.0     0.0
GRID    7               1.0     0.0     0.0
GRID    9               1.0     1.0     0.0
GRID    11              0.0     1.0     0.0
GRID    12              2.0     1.0     0.0
CTRIA3  1       1       7       12      9
CQUAD4  2       1       5       7       9       11
CTRIA3  3       1       7       9       12
ENDDATA
"""


def test_nastran_is_taken_where_all_its_elements_are(tmp_path):
    pytest.importorskip("meshio")
    for end in ("\n", "\r\n"):
        mesh = read_mesh(text(tmp_path / "a.bdf", BULK, end))
        assert rows(mesh, "faces") == [(1, 4, 2), (0, 1, 2, 3), (1, 2, 4)] and mesh.format == "Nastran"
        assert mesh.nodes["x"].tolist() == [0, 1, 1, 0, 2]
    for before, after, word in (
        ("CTRIA3  3       1", "CFOO    3       1", "3 elements"),
        ("GRID    5        ", "GRID    5       3", "coordinate systems"),
        ("ENDDATA", "", "meshio does not read it (Premature EOF)"),
    ):
        assert before in BULK
        refusal(text(tmp_path / "b.bdf", BULK.replace(before, after)), word)


def test_xdmf_is_taken_where_all_its_cells_are(tmp_path):
    pytest.importorskip("meshio")

    def xdmf(kind, count, data):
        points = " ".join(map(repr, POINTS.ravel().tolist()))
        return text(
            tmp_path / "a.xdmf",
            f'<Xdmf Version="3.0"><Domain><Grid Name="a"><Geometry GeometryType="XYZ">'
            f'<DataItem DataType="Float" '
            f'Precision="8" Dimensions="36 3" Format="XML">{points}</DataItem></Geometry>'
            f'<Topology TopologyType="{kind}" NumberOfElements="{count}">'
            f'<DataItem DataType="Int" Precision="8" '
            f'Dimensions="{len(data)}" Format="XML">{" ".join(map(str, data))}</DataItem></Topology>'
            "</Grid></Domain></Xdmf>",
        )

    mixed = [4, *TRIANGLES[0], 5, *SQUARES[0], 4, *TRIANGLES[1]]
    assert rows(read_mesh(xdmf("Mixed", 3, mixed)), "faces") == [TRIANGLES[0], SQUARES[0], TRIANGLES[1]]
    refusal(xdmf("Mixed", 4, mixed), "4 cells, but has 3")
    refusal(xdmf("Mixed", 2, [1, 1, 4, *TRIANGLES[0]]))
    refusal(xdmf("Mixed", 1, [3, 5, 2, 3, 7, 11, 6]), "meshio does not read it")


def test_med_is_taken_where_cells_are_of_one_kind(tmp_path):
    meshio, _ = pytest.importorskip("meshio"), pytest.importorskip("h5py")
    meshio.write(tmp_path / "a.med", meshio.Mesh(POINTS, [("tetra", TETS), ("quad", SQUARES)]))
    mesh = read_mesh(tmp_path / "a.med")
    assert (rows(mesh, "volumes"), rows(mesh, "faces"), mesh.format) == (TETS, SQUARES, "MED")
    meshio.write(tmp_path / "b.med", meshio.Mesh(POINTS, [("tetra", TETS), ("wedge", WEDGES)]))
    refusal(tmp_path / "b.med", "volumes", "tetra, wedge")


def test_formats_that_are_not_read_are_named(tmp_path):
    for name, content, word in (
        ("a.cgns", "x", "CGNS"),
        ("a.msh", '(0 "fluent")', "ANSYS Fluent"),
        ("a.vol", "mesh3d", "Netgen"),
        ("a.f3grid", "G 1 0 0 0", "FLAC3D"),
        ("a.xyz", "1 2 3", ".xyz"),
        ("noname", "1 2 3", "without a suffix"),
        ("a.pvtu", "<VTKFile type='PUnstructuredGrid'></VTKFile>", "PUnstructuredGrid"),
        ("a.su2", "", "the file is empty"),
    ):
        refusal(text(tmp_path / name, content), word)


def test_a_file_is_known_by_what_stands_in_it(tmp_path):
    cells = [(5, (0, 1, 4)), (9, (1, 2, 6, 5))]
    for content in (files.vtk(POINTS, cells), files.vtu([(POINTS, cells)]), files.gmsh(POINTS, cells)):
        assert rows(read_mesh(write(tmp_path / "mesh.dat", content)), "faces") == [(0, 1, 4), (1, 2, 6, 5)]

"""Meshes in netCDF files (MPAS, ICON, Exodus, UGRID) equal the written ones, cell by cell and in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import sample
from fieldstone._helper.frames import RequestError
from fieldstone._helper.mesh import read_mesh
from mesh_files import rows, write

netCDF4 = pytest.importorskip("netCDF4")
pytest.importorskip("xarray")

# Two squares and a triangle over six points of a plane, some kilometres wide.
X, Y = np.array([0, 1, 2, 0, 1, 2.0]) * 1e4, np.array([0, 0, 0, 1, 1, 1.0]) * 1e4
FACES = [(0, 1, 4, 3), (1, 2, 5), (1, 5, 4)]
EDGES = [(0, 1), (1, 4), (4, 3), (3, 0), (1, 2), (2, 5), (5, 1), (5, 4)]


def put(file, name, dims, values, kind="f8", **attrs):
    variable = file.createVariable(name, kind, dims, fill_value=attrs.pop("fill", None))
    variable.setncatts(attrs)
    variable[:] = values


def padded(faces, width, pad):
    return [[*face, *[pad] * (width - len(face))] for face in faces]


# -- MPAS --------------------------------------------------------------------------------------------------


def mpas(path: Path, place, angles, *, said="NO", variable=False, pad=0, **attrs) -> Path:
    """`place` and `angles` are coordinates of vertices, or None for a file without them."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        sizes = {
            "nCells": len(FACES),
            "nVertices": len(X),
            "nEdges": len(EDGES),
            "maxEdges": 6,
            "TWO": 2,
            "StrLen": 16,
        }
        for name, size in sizes.items():
            file.createDimension(name, size)
        file.setncatts(attrs)
        if said is not None and not variable:
            file.on_a_sphere = said
        elif said is not None:
            text = netCDF4.stringtochar(np.array([said.ljust(16)], "S16"))[0]
            put(file, "on_a_sphere", ("StrLen",), text, "S1")
        for names, values in ((("x", "y", "z"), place), (("lon", "lat"), angles)):
            for name, own in zip(names, values or (), strict=False):
                put(file, f"{name}Vertex", ("nVertices",), own)
        put(file, "nEdgesOnCell", ("nCells",), [len(face) for face in FACES], "i4")
        ones = padded([[node + 1 for node in face] for face in FACES], 6, pad)
        put(file, "verticesOnCell", ("nCells", "maxEdges"), ones, "i4")
        put(file, "verticesOnEdge", ("nEdges", "TWO"), np.array(EDGES) + 1, "i4")
    return path


LON, LAT = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 6.2]), np.array([-0.5, 0, 0.5, -0.4, 0.1, 0.6])
ROUND = [np.cos(LAT) * np.cos(LON), np.cos(LAT) * np.sin(LON), np.sin(LAT)]
NOWHERE = [np.zeros(6)] * 2


@pytest.mark.parametrize(
    "given",
    [
        {"said": "NO"},
        {"said": "NO".ljust(64)},
        {"said": "no\0"},
        {"said": "NO", "variable": True},
        {"said": None},
        {"said": None, "angles": None},
        {"said": "NO", "angles": [LON, LAT]},
        {"said": "NO", "z": False},
        {"said": "NO", "pad": 7},
    ],
    ids=str,
)
def test_planar_mpas_has_its_vertices_where_they_lie(given, tmp_path):
    angles = given.pop("angles", NOWHERE)
    place = [X, Y, np.zeros(6)] if given.pop("z", True) else [X, Y]
    mesh = read_mesh(mpas(tmp_path / "a.nc", place, angles, x_period=3e4, y_period=0.0, **given))
    assert (mesh.format, mesh.node_attrs, mesh.attrs) == ("MPAS", {}, {"x_period": 3e4})
    assert mesh.nodes["x"].tolist() == X.tolist() and mesh.nodes["y"].tolist() == Y.tolist()
    assert "z" not in mesh.nodes and rows(mesh, "faces") == FACES and rows(mesh, "edges") == EDGES


@pytest.mark.parametrize("said", ["YES", "YES".ljust(64), None])
@pytest.mark.parametrize("has", ["both", "angles", "place"])
def test_spherical_mpas_has_its_vertices_in_degrees(said, has, tmp_path):
    place = None if has == "angles" else [6371220.0 * axis for axis in ROUND]
    angles = None if has == "place" else [LON, LAT]
    mesh = read_mesh(mpas(tmp_path / "a.nc", place, angles, said=said, sphere_radius=6371220.0))
    np.testing.assert_allclose((mesh.nodes["x"] - np.degrees(LON) + 180) % 360, 180, atol=1e-9)
    np.testing.assert_allclose(mesh.nodes["y"], np.degrees(LAT), atol=1e-9)
    assert mesh.node_attrs["x"]["units"] == "degrees_east" and mesh.attrs == {"sphere_radius": 6371220.0}
    assert rows(mesh, "faces") == FACES and rows(mesh, "edges") == EDGES


def test_mpas_that_contradicts_itself_is_refused(tmp_path):
    path = tmp_path / "a.nc"
    for place, angles, said, word in (
        ([X, Y, 0 * X], NOWHERE, "YES", "on_a_sphere is YES"),
        ([X, Y, 0 * X], NOWHERE, "PERHAPS", "instead of YES or NO"),
        (None, [LON, LAT], "NO", "lacks xVertex"),
        (None, None, "YES", "neither xVertex"),
        ([0 * X, 0 * X, 0 * X], NOWHERE, "NO", "one point"),
    ):
        with pytest.raises(RequestError, match=word) as caught:
            read_mesh(mpas(path, place, angles, said=said))
        assert caught.value.kind == "Invalid" and caught.value.hint


# -- ICON --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("geometry", [1, 2, None])
def test_icon_on_a_torus_has_its_vertices_in_the_plane(geometry, tmp_path):
    cells, edges = [(0, 1, 3), (1, 4, 3)], [(0, 1), (1, 3), (3, 0)]
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        for name, size in {"cell": 2, "vertex": 6, "edge": 3, "nv": 3, "nc": 2}.items():
            file.createDimension(name, size)
        if geometry is not None:
            file.grid_geometry = np.int32(geometry)
        for name, values in {"vlon": LON, "vlat": LAT}.items():
            put(file, name, ("vertex",), values, units="radian")
        for axis, values in zip("xyz", (X, Y, 0 * X), strict=True):
            put(file, f"cartesian_{axis}_vertices", ("vertex",), values, units="meters")
        put(file, "vertex_of_cell", ("nv", "cell"), np.array(cells).T + 1, "i4")
        put(file, "edge_vertices", ("nc", "edge"), np.array(edges).T + 1, "i4")
    mesh = read_mesh(tmp_path / "a.nc")
    assert rows(mesh, "faces") == cells and rows(mesh, "edges") == edges
    expected = (X, Y) if geometry == 2 else (np.degrees(LON), np.degrees(LAT))
    for axis, values in zip("xy", expected, strict=True):
        np.testing.assert_array_equal(mesh.nodes[axis], values)


# -- Exodus ------------------------------------------------------------------------------------------------


def exodus(path: Path, points, blocks, *, split=True, more=None) -> Path:
    """Blocks are (type, rows); rows of different lengths are those of polygons."""
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        points = np.asarray(points, float)
        for name, size in {
            "num_nodes": len(points),
            "num_dim": points.shape[1],
            "num_el_blk": len(blocks),
        }.items():
            file.createDimension(name, size)
        if split:
            for axis, values in zip("xyz", points.T, strict=False):
                put(file, f"coord{axis}", ("num_nodes",), values)
        else:
            put(file, "coord", ("num_dim", "num_nodes"), points.T)
        put(file, "node_num_map", ("num_nodes",), np.arange(len(points), 0, -1) * 10, "i4")
        for number, (name, own) in enumerate(blocks, start=1):
            if not own:
                continue
            file.createDimension(f"num_el_in_blk{number}", len(own))
            if len({len(row) for row in own}) > 1:
                flat = [node + 1 for row in own for node in row]
                file.createDimension(f"num_nod_per_el{number}", len(flat))
                put(file, f"connect{number}", (f"num_nod_per_el{number}",), flat, "i4", elem_type=name)
                put(file, f"ebepecnt{number}", (f"num_el_in_blk{number}",), [len(row) for row in own], "i4")
                continue
            file.createDimension(f"num_nod_per_el{number}", len(own[0]))
            dims = (f"num_el_in_blk{number}", f"num_nod_per_el{number}")
            put(file, f"connect{number}", dims, np.array(own) + 1, "i4", elem_type=name)
        for name, size in (more or {}).items():
            file.createDimension(name, size)
    return path


SPACE = np.array([(x, y, z) for z in range(3) for y in range(3) for x in range(4)], float) * 1.5


@pytest.mark.parametrize("split", [True, False])
def test_exodus_has_all_blocks_in_order_and_nodes_by_their_places(split, tmp_path):
    hexes, tets = [(0, 1, 5, 4, 12, 13, 17, 16), (2, 3, 7, 6, 14, 15, 19, 18)], [(1, 2, 5, 13)]
    wedges, pyramids = [(4, 5, 8, 16, 17, 20)], [(12, 13, 17, 16, 28)]
    quadratic = [(24, 25, 28, 33, 1, 2, 3, 4, 5, 6)]
    blocks = [("HEX8", hexes[:1]), ("tetra4", tets), ("TETRA10", []), ("hex", hexes[1:]), ("WEDGE6", wedges)]
    blocks += [
        ("PYRAMID5", pyramids),
        ("tetra10", quadratic),
        ("SHELL4", [(0, 1, 5, 4)]),
        ("TRI6", [(0, 1, 4, 2, 3, 5)]),
    ]
    blocks += [("nsided", [(0, 1, 6, 5, 4), (1, 2, 6), (2, 3, 7, 6)]), ("SHELL8", [(0, 1, 5, 4, 2, 3, 6, 7)])]
    mesh = read_mesh(exodus(tmp_path / "a.e", SPACE, blocks, split=split))
    assert rows(mesh, "volumes") == hexes[:1] + tets + hexes[1:] + wedges + pyramids + [quadratic[0][:4]]
    expected = [(0, 1, 5, 4), (0, 1, 4), (0, 1, 6, 5, 4), (1, 2, 6), (2, 3, 7, 6), (0, 1, 5, 4)]
    assert rows(mesh, "faces") == expected
    np.testing.assert_array_equal(np.stack(list(mesh.nodes.values()), 1), SPACE)
    assert mesh.omitted == ()


def test_exodus_reports_what_has_no_place_and_names_what_it_does_not_know(tmp_path):
    trusses = [("TRUSS", [(0, 1), (1, 2)]), ("beam3", [(0, 4, 2)])]
    mesh = read_mesh(exodus(tmp_path / "a.e", SPACE, trusses))
    assert rows(mesh, "edges") == [(0, 1), (1, 2), (0, 4)]
    mixed = [*trusses, ("SPHERE", [(3,), (4,)]), ("SHELL3", [(0, 1, 4)]), ("SHELL5", [(0, 1, 6, 5, 4)])]
    mesh = read_mesh(exodus(tmp_path / "b.e", SPACE, mixed, more={"num_fa_blk": 1}))
    assert rows(mesh, "faces") == [(0, 1, 4), (0, 1, 6, 5, 4)] and mesh.edges is None
    assert [what for what, _ in mesh.omitted] == ["3 lines", "2 cells that are points", "1 blocks of faces"]
    for blocks, word in (
        ([("HEX8", [(0, 1, 2, 3)])], "HEX8 has 4 nodes"),
        ([("HEX8", [(0, 1, 2, 3, 4, 5, -1, 6)])], "element 0 .* has no node at place 6"),
        ([("NFACED", [(0, 1, 2, 3)])], "type NFACED"),
        ([("", [(0, 1, 2, 3)])], "type unknown"),
    ):
        with pytest.raises(RequestError, match=f"block 1.*{word}"):
            read_mesh(exodus(tmp_path / "c.e", SPACE, blocks))


def test_corners_of_a_cube_are_no_globe(tmp_path):
    corners = np.array([(x, y, z) for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)], float)
    sides = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
    mesh = read_mesh(exodus(tmp_path / "a.e", corners, [("QUAD4", sides)]))
    assert "".join(mesh.nodes) == "xyz" and mesh.attrs == {}
    assert read_mesh(sample("mesh/outCSne8.g")).attrs == {"sphere_radius": pytest.approx(1)}


# -- UGRID -------------------------------------------------------------------------------------------------


def ugrid(
    path: Path, names=("m",), *, dimension=2, coordinates="x y", standard=None, units=None, **rows_of
) -> Path:
    """`rows_of` are edges, faces, volumes: (dims, values, attributes of the variable)."""
    with netCDF4.Dataset(path, "w") as file:
        for name, size in {
            "node": 6,
            "edge": 8,
            "face": 3,
            "four": 4,
            "two": 2,
            "volume": 2,
            "eight": 8,
        }.items():
            file.createDimension(name, size)
        for name in names:
            attrs = {
                "cf_role": "mesh_topology",
                "topology_dimension": dimension,
                "node_coordinates": coordinates,
            }
            for kind, (dims, values, own) in rows_of.items():
                one = kind.removesuffix("s")
                attrs[f"{one}_node_connectivity"] = f"{name}_{kind}"
                if own.pop("along", False):
                    attrs[f"{one}_dimension"] = one
                if values is not None:
                    put(file, f"{name}_{kind}", dims, values, own.pop("kind", "i4"), **own)
            file.createVariable(name, "i4").setncatts(attrs)
        for place, (name, values) in enumerate({"x": X, "y": Y, "z": X + Y}.items()):
            facts = {"standard_name": standard[place]} if standard and place < 2 else {}
            put(file, name, ("node",), values, **facts, **({"units": units} if units else {}))
    return path


PLANE = ("projection_x_coordinate", "projection_y_coordinate")


def test_ugrid_on_a_plane_in_either_order_of_its_coordinates(tmp_path):
    ones = np.array(padded([[node + 1 for node in face] for face in FACES], 4, 0))
    zeros = np.array(padded(FACES, 4, -99))
    for number, (coordinates, faces) in enumerate(
        (
            ("x y", (("face", "four"), ones, {"start_index": np.int32(1), "fill": 0})),
            ("y x", (("face", "four"), zeros, {"fill": -99})),
            ("y x", (("four", "face"), zeros.T, {"fill": -99, "along": True})),
            ("x y", (("face", "four"), np.where(zeros < 0, np.nan, zeros), {"kind": "f8"})),
            (
                "x y",
                (("face", "four"), np.where(zeros < 0, 2**63 - 1, zeros), {"kind": "i8", "fill": 2**63 - 1}),
            ),
        )
    ):
        path = tmp_path / f"{number}.nc"
        mesh = read_mesh(ugrid(path, coordinates=coordinates, standard=PLANE, units="m", faces=faces))
        assert mesh.nodes["x"].tolist() == X.tolist() and mesh.nodes["y"].tolist() == Y.tolist()
        assert rows(mesh, "faces") == FACES and mesh.node_attrs["x"]["standard_name"] == PLANE[0]


def test_ugrid_of_one_and_three_dimensions_and_of_several_meshes(tmp_path):
    edges = (("two", "edge"), np.array(EDGES).T, {})
    mesh = read_mesh(ugrid(tmp_path / "a.nc", dimension=1, edges=edges))
    assert rows(mesh, "edges") == EDGES and mesh.faces is None
    solid = [[0, 1, 4, 3, 2, 5, -1, -1], [0, 1, 2, 5, -1, -1, -1, -1]]
    volumes = (("volume", "eight"), solid, {"fill": -1})
    mesh = read_mesh(ugrid(tmp_path / "b.nc", dimension=3, coordinates="x y z", volumes=volumes))
    assert rows(mesh, "volumes") == [(0, 1, 4, 3, 2, 5), (0, 1, 2, 5)] and "".join(mesh.nodes) == "xyz"
    faces = (("face", "four"), padded(FACES, 4, -1), {})
    mesh = read_mesh(ugrid(tmp_path / "c.nc", ("first", "second"), faces=faces))
    assert mesh.attrs["source_mesh"] == "first" and [what for what, _ in mesh.omitted] == ["mesh `second`"]
    with pytest.raises(RequestError, match="no face_node_connectivity"):
        read_mesh(ugrid(tmp_path / "d.nc", faces=((), None, {}), edges=edges))


def test_a_folder_of_fesom_says_how_many_lines_it_has(tmp_path):
    write(tmp_path / "nod2d.out", b"4\r\n1 0.0 0.0 0\r\n2 1.0 0.0 0\r\n3 1.0 1.0 0\r\n4 0.0 1.0 1\r\n")
    write(tmp_path / "elem2d.out", b"2\r\n1 2 3\r\n1 3 4\r\n")
    assert rows(read_mesh(tmp_path), "faces") == [(0, 1, 2), (0, 2, 3)]
    write(tmp_path / "elem2d.out", b"3\n1 2 3\n1 3 4\n")
    with pytest.raises(
        RequestError, match=r"elem2d\.out is damaged: its first line is not the count of the 2 others"
    ):
        read_mesh(tmp_path)
    (tmp_path / "elem2d.out").unlink()
    with pytest.raises(RequestError, match=r"the folder lacks nod2d\.out and elem2d\.out"):
        read_mesh(tmp_path)

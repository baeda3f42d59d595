"""Meshes of other programs as read by the helper, compared with the contents of the files."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from conftest import sample
from fieldstone._helper.frames import RequestError
from fieldstone._helper.mesh import read_mesh

netCDF4 = pytest.importorskip("netCDF4")
uxarray = pytest.importorskip("uxarray")
pytest.importorskip("meshio")

# Format, coordinates, nodes, and the shapes of edges, faces and volumes.
MESHES = {
    "cfd/mesh_NACA0012_inv_FFD.su2": ("SU2", "xy", 5233, None, (10216, 3), None),
    "mesh/mesh_NACA0012_lam_hybrid_v2.su2": ("SU2", "xy", 23317, None, (38017, 4), None),
    "mesh/insulated-4.1.msh": ("gmsh", "xy", 67, None, (111, 3), None),
    "mesh/sphere_mixed.1.lb8.ugrid": ("AFLR3", "xyz", 3270, None, (864, 3), (12096, 6)),
    "mesh/sphere_mixed.1.meshb": ("meshb", "xyz", 3270, None, (864, 3), (12096, 6)),
    "mesh/can.vtu": ("VTK", "xyz", 6724, None, None, (4800, 8)),
    "mesh/mug.e": ("Exodus", "xyz", 3774, None, None, (2476, 8)),
    "mesh/mixed.exo": ("Exodus", "xyz", 206, None, (254, 4), None),
    "mesh/outCSne8.g": ("Exodus", "xy", 386, None, (384, 4), None),
    "mesh/21_triangle_example.nc": ("UGRID", "xy", 20, (41, 2), (21, 3), None),
    "mesh/geoflow-small_grid.nc": ("UGRID", "xy", 6000, None, (3840, 4), None),
    "mesh/lfric_surface_mean.nc": ("UGRID", "xy", 13826, (27648, 2), (13824, 4), None),
    "mesh/mesh_C12.nc": ("UGRID", "xy", 866, (1728, 2), (864, 4), None),
    "mesh/outCSne30.ug": ("UGRID", "xy", 5402, None, (5400, 4), None),
    "mesh/outRLL1deg.ug": ("UGRID", "xy", 64442, None, (64800, 4), None),
    "mesh/quad-hexagon_grid.nc": ("UGRID", "xy", 16, None, (4, 6), None),
    "mesh/mesh.QU.1920km.151026.nc": ("MPAS", "xy", 320, (480, 2), (162, 6), None),
    "mesh/ne30pg3.grid.nc": ("ESMF", "xy", 48602, None, (48600, 4), None),
    "mesh/outCSne8.nc": ("Scrip", "xy", 407, None, (384, 4), None),
    "mesh/soufflet-netcdf_grid.nc": ("FESOM2", "xy", 2875, None, (5700, 3), None),
    "mesh/test-c12.native.nc4": ("GEOS-CS", "xy", 1014, None, (864, 4), None),
}
DATA = [
    "geoflow-small_v1.nc",
    "ne30pg3.data.nc",
    "outCSne30_data.nc",
    "outCSne30_vortex.nc",
    "outRLL1deg_vortex.nc",
    "quad-hexagon_data.nc",
    "cylinder.med",
]


def shape(rows):
    return None if rows is None else rows.shape


@pytest.mark.parametrize("name", MESHES)
def test_every_mesh_is_read(name):
    mesh = read_mesh(sample(name))
    shapes = tuple(shape(rows) for rows in (mesh.edges, mesh.faces, mesh.volumes))
    counts = (mesh.format, "".join(mesh.nodes), len(mesh.nodes["x"]))
    assert (*counts, *shapes) == MESHES[name]
    assert all(values.dtype == np.float64 and np.isfinite(values).all() for values in mesh.nodes.values())
    for rows, least in ((mesh.edges, 2), (mesh.faces, 3), (mesh.volumes, 4)):
        if rows is not None:
            present = rows >= 0
            assert rows.dtype == np.int64 and rows.max() < len(mesh.nodes["x"])
            assert (present[:, :-1] >= present[:, 1:]).all(), "missing nodes are last"
            assert present.sum(axis=1).min() >= least


@pytest.mark.parametrize("name", DATA)
def test_what_is_no_mesh_is_refused_by_name(name):
    with pytest.raises(RequestError, match=f"{name} is not a mesh that can be read") as caught:
        read_mesh(sample(f"mesh/{name}"))
    assert caught.value.kind == "Invalid" and "UGRID, MPAS" in caught.value.hint


def test_ugrid_is_what_uxarray_reads_with_longitudes_as_they_stand():
    path = sample("mesh/outRLL1deg.ug")
    mesh, grid = read_mesh(path), uxarray.open_grid(path)
    assert mesh.nodes["x"].max() == 359.0
    np.testing.assert_allclose((mesh.nodes["x"] - grid.node_lon.values + 1e-9) % 360, 0, atol=1e-8)
    np.testing.assert_array_equal(mesh.nodes["y"], grid.node_lat.values)
    theirs = grid.face_node_connectivity.values
    np.testing.assert_array_equal(mesh.faces, np.where(theirs < 0, -1, theirs))
    assert mesh.node_attrs["y"]["units"] == "degrees_north"


def test_mpas_has_its_cells_and_edges_in_their_order():
    path = sample("mesh/mesh.QU.1920km.151026.nc")
    mesh = read_mesh(path)
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        corners, counts = file["verticesOnCell"][:] - 1, file["nEdgesOnCell"][:]
        for row, count in enumerate(counts):
            assert mesh.faces[row, :count].tolist() == corners[row, :count].tolist()
            assert (mesh.faces[row, count:] == -1).all()
        np.testing.assert_array_equal(mesh.edges, file["verticesOnEdge"][:] - 1)
        np.testing.assert_allclose(mesh.nodes["y"], np.degrees(file["latVertex"][:]), atol=1e-12)


def test_exodus_has_blocks_by_their_type_and_surfaces_on_spheres_in_degrees():
    mesh = read_mesh(sample("mesh/mug.e"))
    with netCDF4.Dataset(sample("mesh/mug.e")) as file:
        file.set_auto_mask(False)
        blocks = np.concatenate([file["connect1"][:], file["connect2"][:]]) - 1
        np.testing.assert_array_equal(mesh.volumes, blocks)
        np.testing.assert_array_equal(mesh.nodes["z"], file["coordz"][:])
    surface = read_mesh(sample("mesh/outCSne8.g"))
    grid = uxarray.open_grid(sample("mesh/outCSne8.g"))
    assert surface.attrs == {"sphere_radius": pytest.approx(1)}
    np.testing.assert_allclose(surface.nodes["y"], grid.node_lat.values, atol=1e-10)
    np.testing.assert_array_equal(surface.faces, grid.face_node_connectivity.values)


def test_su2_has_elements_in_their_order_and_markers_are_no_edges():
    path = sample("mesh/mesh_NACA0012_lam_hybrid_v2.su2")
    mesh = read_mesh(path)
    lines = path.read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("NELEM="))
    rows = [[int(n) for n in line.split()] for line in lines[begin + 1 : begin + 38018]]
    # VTK's numbers: 5 is a triangle, 9 a quadrilateral.
    own = [row[1 : 1 + {5: 3, 9: 4}[row[0]]] for row in rows]
    assert own == [[node for node in row if node >= 0] for row in mesh.faces.tolist()]


def test_aflr3_is_the_binary_that_its_name_says():
    path = sample("mesh/sphere_mixed.1.lb8.ugrid")
    mesh = read_mesh(path)
    raw = path.read_bytes()
    nodes, triangles, squares, tets = np.frombuffer(raw, "<i4", 4)
    points = np.frombuffer(raw, "<f8", 3 * nodes, 28).reshape(-1, 3)
    np.testing.assert_array_equal(np.stack(list(mesh.nodes.values()), 1), points)
    begin = 28 + 24 * nodes + 4 * (3 * triangles + 4 * squares + triangles + squares)
    np.testing.assert_array_equal(
        mesh.volumes[:tets, :4], np.frombuffer(raw, "<i4", 4 * tets, begin).reshape(-1, 4) - 1
    )
    assert (mesh.volumes[:tets, 4:] == -1).all() and squares == 0


def test_a_folder_of_fesom_and_a_file_of_icon(tmp_path):
    (tmp_path / "nod2d.out").write_text("4\n1 0.0 0.0 0\n2 1.0 0.0 0\n3 1.0 1.0 0\n4 0.0 1.0 1\n")
    (tmp_path / "elem2d.out").write_text("2\n1 2 3\n1 3 4\n")
    mesh = read_mesh(tmp_path)
    assert (mesh.format, mesh.faces.tolist()) == ("FESOM2", [[0, 1, 2], [0, 2, 3]])
    assert (mesh.nodes["x"].tolist(), mesh.nodes["y"].tolist()) == ([0, 1, 1, 0], [0, 0, 1, 1])

    edges = [[1, 2], [2, 3], [3, 1], [3, 4], [4, 1]]
    with netCDF4.Dataset(tmp_path / "icon.nc", "w") as file:
        for name, size in (("cell", 2), ("vertex", 4), ("edge", 5), ("nv", 3), ("nc", 2)):
            file.createDimension(name, size)
        angles = {
            "clon": [0.01, 0.02],
            "clat": [0.01, 0.02],
            "vlon": [0, 0.1, 0.1, 0],
            "vlat": [0, 0, 0.1, 0.1],
            "elon": [0] * 5,
            "elat": [0] * 5,
        }
        for (name, values), dim in zip(
            angles.items(), ("cell", "cell", "vertex", "vertex", "edge", "edge"), strict=True
        ):
            variable = file.createVariable(name, "f8", (dim,))
            variable.units, variable[:] = "radian", values
        rows = {
            "vertex_of_cell": ("nv", "cell", [[1, 2, 3], [1, 3, 4]]),
            "edge_of_cell": ("nv", "cell", [[1, 2, 3], [3, 4, 5]]),
            "neighbor_cell_index": ("nv", "cell", [[0, 0, 2], [1, 0, 0]]),
            "edge_vertices": ("nc", "edge", edges),
            "adjacent_cell_of_edge": ("nc", "edge", [[1, 0], [1, 0], [1, 2], [2, 0], [2, 0]]),
        }
        for name, (*dims, values) in rows.items():
            file.createVariable(name, "i4", dims)[:] = np.array(values).T
    mesh = read_mesh(tmp_path / "icon.nc")
    assert (mesh.format, mesh.faces.tolist()) == ("ICON", [[0, 1, 2], [0, 2, 3]])
    assert (mesh.edges + 1).tolist() == edges
    np.testing.assert_allclose(mesh.nodes["x"], np.degrees([0, 0.1, 0.1, 0]))


def ugrid(path, faces, *, fill=-1, start=None, transposed=False, third=False):
    """A small mesh of five nodes."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("node", 5)
        file.createDimension("cell", len(faces))
        file.createDimension("corner", len(faces[0]))
        topology = file.createVariable("m", "i4")
        topology.setncatts(
            {
                "cf_role": "mesh_topology",
                "topology_dimension": 2,
                "node_coordinates": "m_lat m_lon",
                "face_node_connectivity": "m_faces",
                "face_dimension": "cell",
                "edge_node_connectivity": "m_edges_that_are_not_there",
            }
        )
        for name, units, values in (
            ("m_lat", "degrees_north", [0, 1, 2, 3, 4]),
            ("m_lon", "degrees_east", [5, 6, 7, 8, 9]),
        ):
            variable = file.createVariable(name, "f4", ("node",))
            variable.units, variable[:] = units, values
        dims = ("corner", "cell") if transposed else ("cell", "corner")
        variable = file.createVariable("m_faces", "i4", dims, fill_value=fill)
        if start is not None:
            variable.start_index = np.int32(start)
        variable[:] = np.array(faces).T if transposed else np.array(faces)
    return path


def test_spellings_of_ugrid_are_one_mesh(tmp_path):
    expected = [[0, 1, 2, 3], [2, 3, 4, -1]]
    for number, given in enumerate(
        (
            {"faces": expected},
            {"faces": [[1, 2, 3, 4], [3, 4, 5, 999]], "fill": 999, "start": 1},
            {"faces": [[1, 2, 3, 4], [3, 4, 5, 0]], "fill": 999, "start": 1},
            {"faces": [[1, 2, 3, 4], [3, 4, 5, -1]]},
            {"faces": [[0, 1, 2, 3], [2, -1, 3, 4]], "transposed": True},
            {"faces": [[0, 1, 2, 3, -1, -1], [2, 3, 4, -1, -1, -1]], "start": 0},
        )
    ):
        mesh = read_mesh(ugrid(tmp_path / f"{number}.nc", **given))
        assert mesh.faces.tolist() == expected, given
        assert mesh.nodes["x"].tolist() == [5, 6, 7, 8, 9], "longitude first, in any order of the file"
        assert (mesh.edges, mesh.volumes, mesh.attrs) == (None, None, {"source_mesh": "m"})


def test_an_element_that_names_no_node_is_named(tmp_path):
    path = ugrid(tmp_path / "m.nc", [[0, 1, 2], [2, 3, 7]], start=0)
    with pytest.raises(RequestError, match=r"faces\[1, 2\] is node 7, but nodes are 0 to 4") as caught:
        read_mesh(path)
    assert caught.value.kind == "Corrupt"


def test_a_package_that_is_missing_is_named(monkeypatch, tmp_path):
    real = importlib.import_module

    def without(missing):
        def load(name, *args):
            if name == missing:
                raise ImportError(f"No module named {name!r}")
            return real(name, *args)

        return load

    (tmp_path / "a.bdf").write_text("BEGIN BULK\nENDDATA\n")
    for missing, path in (
        ("meshio", tmp_path / "a.bdf"),
        ("uxarray", sample("mesh/ne30pg3.grid.nc")),
        ("xarray", sample("mesh/mug.e")),
    ):
        monkeypatch.setattr(importlib, "import_module", without(missing))
        with pytest.raises(RequestError, match=f"the Python package {missing} cannot be loaded") as caught:
            read_mesh(path)
        assert (caught.value.kind, caught.value.hint) == ("Unavailable", "pip install 'fieldstone[mesh]'")
        monkeypatch.undo()
    with pytest.raises(RequestError, match="there is no file") as caught:
        read_mesh(tmp_path / "none.su2")
    assert caught.value.kind == "NotFound"
    for name in ("empty.su2", "what.ever", "cut.nc"):
        (tmp_path / name).write_bytes(b"CDF\1" if name == "cut.nc" else b"")
        with pytest.raises(RequestError, match="is not a mesh that can be read"):
            read_mesh(tmp_path / name)

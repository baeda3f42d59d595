"""Fields of ranks on real meshes, opened by xarray and uxarray."""

from __future__ import annotations

from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
import xarray as xr
from conftest import sample
from mpi_job import mpirun

uxarray = pytest.importorskip("uxarray")

# Meshes that uxarray supports: those with faces, on a sphere or in the plane.
MESHES = [
    "cfd/mesh_NACA0012_inv_FFD.su2",
    "mesh/mesh_NACA0012_lam_hybrid_v2.su2",
    "mesh/insulated-4.1.msh",
    "mesh/mixed.exo",
    "mesh/outCSne8.g",
    "mesh/21_triangle_example.nc",
    "mesh/geoflow-small_grid.nc",
    "mesh/lfric_surface_mean.nc",
    "mesh/mesh_C12.nc",
    "mesh/outCSne30.ug",
    "mesh/outRLL1deg.ug",
    "mesh/quad-hexagon_grid.nc",
    "mesh/mesh.QU.1920km.151026.nc",
    "mesh/ne30pg3.grid.nc",
    "mesh/outCSne8.nc",
    "mesh/soufflet-netcdf_grid.nc",
    "mesh/test-c12.native.nc4",
]

WRITE = """
import sys
import numpy as np
import fieldstone as fst
from mpi4py import MPI
comm = MPI.COMM_WORLD
with fst.open(sys.argv[1]) as store:
    for name in sorted(mesh.name for mesh in store.meshes()):
        with store.arrays(f"flow-{name}", comm=comm) as job:
            part = job.partition(name, "hilbert", history=False)
            counts = store.mesh(name).counts
            for location, count in counts.items():
                if not count:
                    continue
                sets = {f"{location}_a": "f8", f"{location}_l": {"dtype": "f4", "shape": (count, 2)}}
                group = job.group(location, sets, mesh=name, location=location)
                group.view(part.node_view if location == "node" else fst.block(grid=(comm.size,)))
                group.view(fst.block(grid=(comm.size, 1)), f"{location}_l")
                rows = np.array_split(np.arange(count), comm.size)[comm.rank]
                mine = part.nodes if location == "node" else rows
                for step in (0, 3):
                    group.write(f"{location}_a", step, np.sin(mine + step))
                    group.write(f"{location}_l", step, np.stack([rows, rows * step], 1).astype("f4"))
"""


def test_uxarray_has_every_mesh_with_the_fields_of_four_ranks(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    url = tmp_path / "store"
    names = {f"m{number}": path for number, path in enumerate(MESHES)}
    with fst.open(url) as store:
        for name, path in names.items():
            assert fst.ingest(store, sample(path), mesh=name, progress=False).skipped == ()
    mpirun(4, WRITE, url, timeout=300)
    store = fst.open(url, "r")
    for name in names:
        mesh = store.mesh(name)
        grid = uxarray.open_grid(mesh.path)
        assert (grid.n_node, grid.n_face) == (mesh.counts["node"], mesh.counts["face"])
        fields = store.to_xarray(f"run=flow-{name}")
        assert fields.step.values.tolist() == [0, 3]
        data = uxarray.UxDataset.from_xarray(fields, uxgrid=grid)
        for location in (location for location, count in mesh.counts.items() if count):
            count = mesh.counts[location]
            one = fields[f"{location}_a"]
            assert one.dims == ("step", f"n{name}_{location}")
            assert (one.attrs["mesh"], one.attrs["location"]) == (name, location)
            assert fields[f"{location}_l"].dims[:2] == one.dims
            expected = np.sin(np.arange(count) + np.array([[0], [3]]))
            np.testing.assert_array_equal(one.values, expected)
            ours = data[f"{location}_a"]
            assert ours.dims == ("step", f"n_{location}")
            np.testing.assert_array_equal(ours.values, expected)
            rows = np.arange(count, dtype="f4")
            np.testing.assert_array_equal(
                data[f"{location}_l"].sel(step=3).values, np.stack([rows, rows * 3], 1)
            )
        # uxarray can compute with it: means over the nodes of each face.
        means = data["node_a"].isel(step=1).topological_mean(destination="face")
        with xr.open_dataset(mesh.path) as file:
            corners = file[f"{mesh_name(file)}_face_nodes"].values
        present = np.isfinite(corners)
        nodes = np.where(present, corners, 0).astype(int)
        own = np.where(present, np.sin(nodes + 3), 0).sum(1) / present.sum(1)
        np.testing.assert_allclose(means.values, own, atol=1e-12)


def mesh_name(file: xr.Dataset) -> str:
    """The topology of a mesh's file."""
    (name,) = (name for name, v in file.variables.items() if v.attrs.get("cf_role") == "mesh_topology")
    return str(name)


def test_runs_on_other_meshes_share_no_dataset(tmp_path: Path) -> None:
    nodes = {"x": np.arange(4.0), "y": np.zeros(4)}
    other = {"x": np.arange(4.0), "y": np.ones(4)}
    with fst.open(tmp_path / "store") as store:
        for run, mesh, where in (("a", "m", nodes), ("b", "n", other), ("c", "m", nodes)):
            with store.arrays(run) as job:
                job.create_mesh(mesh, nodes=where)
                group = job.group("g", {"t": "f8"}, mesh=mesh, location="node")
                group.write("t", 0, np.arange(4.0))
        store.archive({"run": "plain", "variable": "t", "step": 0}, np.arange(4.0))
    store = fst.open(tmp_path / "store", "r")
    assert store.to_xarray("run=a").t.dims == ("nm_node",)
    assert store.to_xarray("run=b").t.attrs == {"mesh": "n", "location": "node"}
    both = store.to_xarray("run=a/c").t
    assert (set(both.dims), both.attrs["mesh"]) == ({"run", "nm_node"}, "m")
    with pytest.raises(fst.Conflict, match=r"'nm_node'.* in run a, but .*'nn_node'.* in run b"):
        store.to_xarray("run=a/b")
    assert store.to_xarray("run=plain").t.dims == ("dim_0",)
    tree = xr.open_datatree(tmp_path / "store", engine="fieldstone")
    assert tree["a"].t.dims == ("nm_node",) and tree["b"].t.dims == ("nn_node",)
    opened = xr.open_dataset(tmp_path / "store", engine="fieldstone", request="run=a")
    assert opened.t.dims == ("nm_node",)

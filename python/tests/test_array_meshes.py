"""Imports, meshes and groups on meshes, by ranks under mpiexec and by one process."""

from __future__ import annotations

from pathlib import Path

import fieldstone as fst
import netCDF4
import numpy as np
import pytest
import xarray as xr
from mpi_job import mpirun


def open_store(folder: Path) -> fst.Store:
    return fst.open(folder / "store")


def test_raw_and_netcdf_files_are_read_through_views(tmp_path: Path) -> None:
    edges = np.arange(20, dtype="<i4").reshape(2, 10)
    x = np.linspace(0, 1, 12).reshape(4, 3).astype(">f8")
    raw = tmp_path / "mesh.raw"
    raw.write_bytes(b"head" + edges.tobytes() + x.tobytes())
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_64BIT_DATA") as file:
        file.createDimension("t", None)
        file.createDimension("n", 5)
        file.createVariable("v", "f4", ("t", "n"))[:] = np.arange(15).reshape(3, 5)
    with open_store(tmp_path) as store, store.arrays("r") as job:
        imp = job.import_file(
            raw,
            {"edge1": ("<i4", 4, 10), "edge2": ("<i4", 44, (10,)), "x": (">f8", 84, (4, 3))},
            format="raw",
            checksum=True,
        )
        assert list(imp) == ["edge1", "edge2", "x"]
        assert (imp["edge2"].read() == edges[1]).all()
        assert (imp["x"].read(fst.irregular([3, 0])) == x[[3, 0]]).all()
        # A mapping of rows already implies that the file is raw.
        (tmp_path / "b.raw").write_bytes(raw.read_bytes())
        same = job.import_file(tmp_path / "b.raw", {"edge2": ("<i4", 44, (10,))})
        assert (same["edge2"].read() == edges[1]).all()
        other = job.import_file(tmp_path / "a.nc", ["v"])
        assert (other["v"].read(fst.block((1, 2), (2, 3))) == np.arange(15).reshape(3, 5)[1:, 2:]).all()
        job.flush()
        table = job.tables().import_table()
        assert {row["variable"] for row in table if "variable" in row} >= {"x"} or len(table) >= 2
        for wrong, kind, words in [
            (lambda: job.import_file(raw, {"x": ("<f8", 200, 9)}, format="raw"), fst.Corrupt, "`x` needs"),
            (lambda: job.import_file(tmp_path / "no.nc"), fst.NotFound, "no.nc"),
            (lambda: job.import_file(tmp_path / "a.nc", ["w"]), fst.NotFound, "w"),
            (lambda: job.import_file(raw, {"x": 3}, format="raw"), fst.Invalid, "byte offset"),
            (
                lambda: job.import_file(tmp_path / "a.nc", {"v": ("f4", 0, 15)}, format="netcdf"),
                fst.Invalid,
                "has them itself",
            ),
            (lambda: imp["y"], fst.NotFound, "no variable 'y'"),
            (lambda: imp["x"].read(fst.irregular([4])), fst.Invalid, r"map\[0\] is 4"),
        ]:
            with pytest.raises(kind, match=words):
                wrong()
        imp.close()


def test_a_mesh_is_kept_once_and_groups_stand_on_it(tmp_path: Path) -> None:
    x, y = np.meshgrid(np.arange(4.0), np.arange(3.0))
    corner = np.arange(12).reshape(3, 4)
    faces = np.stack([corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]], -1).reshape(-1, 4)
    with open_store(tmp_path) as store, store.arrays("r") as job:
        mesh = job.create_mesh(
            "wing", nodes={"x": x.ravel(), "y": y.ravel()}, faces=faces, attrs={"long_name": "w"}
        )
        again = job.create_mesh(
            "wing", nodes={"x": x.ravel(), "y": y.ravel()}, faces=faces + 1, base=1, attrs={"long_name": "w"}
        )
        assert (mesh.path, mesh.counts["node"], mesh.counts["face"]) == (again.path, 12, 6)
        group = job.group(
            "g", {"t": "f8", "q": {"dtype": "f4", "shape": (12, 2)}}, mesh="wing", location="node"
        )
        group.write("t", 0, np.arange(12.0))
        group.write("q", 0, np.ones((12, 2), "f4"))
        with pytest.raises(fst.Invalid, match="mesh 'wing' has 6 faces"):
            job.group("h", {"t": "f8"}, shape=5, mesh="wing", location="face")
        with pytest.raises(fst.Invalid, match="location"):
            job.group("h", {"t": "f8"}, mesh="wing")
        with pytest.raises(fst.NotFound, match="no mesh 'tail'"):
            job.group("h", {"t": "f8"}, mesh="tail", location="face")
        with pytest.raises(fst.Invalid, match="99"):
            job.create_mesh("bad", nodes={"x": x.ravel(), "y": y.ravel()}, faces=np.full((1, 3), 99))
        with pytest.raises(fst.Conflict, match="'wing'"):
            job.create_mesh("wing", nodes={"x": x.ravel(), "y": y.ravel()}, faces=faces[:3])
        job.flush()
        (path,) = [p for p in group.files if "t" in netCDF4.Dataset(p).variables][:1]
        with netCDF4.Dataset(path) as file:
            assert file["t"].location == "node"
            assert "node" in file["t"].dimensions[-1]
    store = fst.open(tmp_path / "store", "r")
    (kept,) = store.meshes()
    assert store.mesh("wing") == kept
    assert kept.counts == {"node": 12, "edge": 0, "face": 6, "volume": 0}
    with xr.open_dataset(kept.path) as ds:
        (topology,) = [v for v in ds.variables.values() if v.attrs.get("cf_role") == "mesh_topology"]
        assert topology.attrs["topology_dimension"] == 2
    with store.arrays("r") as job:
        mesh = job.mesh("wing")
        assert (mesh.read("faces") == faces).all()
        assert (mesh.read("x") == x.ravel()).all()


def test_a_job_with_a_map_goes_on_from_one_without_a_view(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        with store.arrays("r") as job:
            job.group("g", {"t": "f8"}, shape=6).write("t", 0, np.arange(6.0))
        for step, order in ((1, [5, 0, 1, 2, 4, 3]), (2, [0, 1, 2, 3, 4, 5])):
            with store.arrays("r") as job:
                group = job.group("g")
                group.view(fst.irregular(order))
                assert group.read("t", step - 1).tolist() == [n + step - 1 for n in order]
                group.write("t", step, np.array(order) + float(step))
        assert store.get("run=r,variable=t,step=2").tolist() == [2, 3, 4, 5, 6, 7]


def test_ranks_make_a_mesh_of_their_shares(tmp_path: Path) -> None:
    script = """
    import sys
    import numpy as np
    import fieldstone as fst
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    def mine(a):
        return np.array_split(a, comm.size)[comm.rank]
    rng = np.random.default_rng(2)
    x, y, z = rng.normal(size=(3, 50))
    edges = rng.integers(0, 50, (120, 2))
    with fst.open(sys.argv[1]) as store, store.arrays("r", comm=comm) as job:
        mesh = job.create_mesh("m", nodes={"x": mine(x), "y": mine(y), "z": mine(z)}, edges=mine(edges))
        assert mesh.counts["edge"] == 120
        assert (mesh.read("edges") == mine(edges)).all()
        assert (mesh.read("z", fst.irregular([7, comm.rank])) == z[[7, comm.rank]]).all()
        try:
            beyond = mine(edges) + 50 * (comm.rank == comm.size - 1)
            job.create_mesh("n", nodes={"x": mine(x), "y": mine(y)}, edges=beyond)
        except fst.Invalid as error:
            assert comm.size == 1 or f"rank {comm.size - 1}" in str(error), str(error)
        else:
            raise AssertionError("an edge beyond the nodes was taken")
    """
    names = set()
    for ranks in (1, 3, 4):
        mpirun(ranks, script, tmp_path / str(ranks))
        (path,) = (tmp_path / str(ranks) / "meshes").iterdir()
        names.add((path.name, path.read_bytes()))
    assert len(names) == 1, "the same file for any number of ranks"


@pytest.mark.parametrize("layout", ["files", "fields"])
def test_the_execution_table_says_in_which_file_each_step_begins(tmp_path: Path, layout: str) -> None:
    with fst.open(tmp_path / "s") as store:
        with store.arrays("r", layout=layout) as job:
            group = job.group("g", {"a": ">f8", "b": ">f4"}, shape=(4, 3))
            for step in (0, 6):
                group.write("a", step, np.arange(12.0).reshape(4, 3) + step)
                group.write("b", step, np.full((4, 3), step, "f4"))
            job.flush()
            table = job.tables().execution_table()
        assert {(row["dataset"], row["timestep"]) for row in table} == {
            ("a", 0),
            ("a", 6),
            ("b", 0),
            ("b", 6),
        }
        assert table.columns[-2:] == ("file_name", "file_offset")
        for row in table:
            assert (tmp_path / "s" / row["file_name"]).is_file() and row["file_offset"] > 0
            if layout == "fields":  # in the store's logs, whose blocks may be compressed
                continue
            dtype = ">f8" if row["dataset"] == "a" else ">f4"
            with (tmp_path / "s" / row["file_name"]).open("rb") as file:
                file.seek(row["file_offset"])
                found = np.frombuffer(file.read(12 * np.dtype(dtype).itemsize), dtype)
            expected = store.get({"run": "r", "variable": row["dataset"], "step": row["timestep"]})
            assert (found.reshape(4, 3) == expected).all(), row

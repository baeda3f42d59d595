"""Meshes of other programs in a store: kept once by their content, in Python and in the program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import mesh_files
import numpy as np
import pytest
from conftest import sample
from fieldstone._helper.mesh import read_mesh

pytest.importorskip("uxarray")
pytest.importorskip("meshio")
PROGRAM = Path(sys.executable).parent / "fieldstone"

MESHES = [
    "cfd/mesh_NACA0012_inv_FFD.su2",
    "mesh/insulated-4.1.msh",
    "mesh/sphere_mixed.1.lb8.ugrid",
    "mesh/mug.e",
    "mesh/mixed.exo",
    "mesh/21_triangle_example.nc",
    "mesh/mesh.QU.1920km.151026.nc",
    "mesh/ne30pg3.grid.nc",
    "mesh/outCSne8.nc",
    "mesh/soufflet-netcdf_grid.nc",
    "mesh/test-c12.native.nc4",
]


def run(*words: object, expect: int = 0) -> str:
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("name", MESHES)
def test_a_mesh_in_the_store_is_that_of_the_file(name: str, tmp_path: Path) -> None:
    path = sample(name)
    source = read_mesh(path)
    with fst.open(tmp_path / "store") as store:
        report = fst.ingest(store, path, mesh="wing", progress=False)
        (taken,) = report.taken
        assert (taken.path, taken.meshes, taken.fields, taken.unchanged) == (path, 1, 0, 0)
        assert report.skipped == ()
        again = fst.ingest(store, path, mesh="wing", progress=False)
        assert [(t.meshes, t.unchanged) for t in again.taken] == [(0, 1)]
    # Another process sees it, because the ingest has flushed.
    store = fst.open(tmp_path / "store", "r")
    assert [mesh.name for mesh in store.meshes()] == ["wing"]
    with fst.open(tmp_path / "store") as store, store.arrays("flow") as job:
        mesh = job.mesh("wing")
        for axis, values in source.nodes.items():
            np.testing.assert_array_equal(mesh.read(axis), values)
        for kind in ("edges", "faces", "volumes"):
            rows = getattr(source, kind)
            assert (kind in mesh.arrays) == (rows is not None)
            if rows is not None:
                np.testing.assert_array_equal(mesh.read(kind), rows)
    listed = json.loads(run("mesh", tmp_path / "store", "wing", "--json"))
    assert listed["attrs"]["source_format"] == source.format
    assert listed["bounds"] == {axis: [values.min(), values.max()] for axis, values in source.nodes.items()}


def test_what_is_no_mesh_is_skipped_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "text.nc").write_text("no netCDF")
    (tmp_path / "cut.nc").write_bytes(b"CDF\x01")
    with fst.open(tmp_path / "store") as store:
        paths = [tmp_path / name for name in ("text.nc", "cut.nc", "none.nc")]
        with pytest.raises(fst.Invalid) as refused:
            fst.ingest(store, paths, mesh="m", progress=False)
        report = refused.value.report
        assert report.taken == () and [skipped.path for skipped in report.skipped] == paths
        assert all(skipped.what == "the file" for skipped in report.skipped)
        assert "is not a mesh that can be read" in report.skipped[1].why
        assert "there is no file" in report.skipped[2].why
        assert store.meshes() == []
        for options in ({"key": {"run": "a"}}, {"copy": False}, {"tree": True}):
            with pytest.raises(fst.Invalid, match="take a mesh by itself"):
                fst.ingest(store, paths, mesh="m", progress=False, **options)


def test_parts_that_a_mesh_does_not_have_are_reported(tmp_path: Path) -> None:
    cells = [(5, (0, 1, 4)), (3, (0, 1)), (1, (7,)), (5, (1, 5, 4))]
    path = mesh_files.write(tmp_path / "a.vtk", mesh_files.vtk(mesh_files.POINTS, cells))
    with fst.open(tmp_path / "store") as store:
        report = fst.ingest(store, path, mesh="m", progress=False)
        assert [taken.meshes for taken in report.taken] == [1] and store.mesh("m").counts["face"] == 2
        assert [skipped.what for skipped in report.skipped] == ["1 line", "1 cell that is a point"]
        again = fst.ingest(store, path, mesh="m", progress=False)
        assert again.taken[0].unchanged == 1 and len(again.skipped) == 2
    out = run("ingest", tmp_path / "store", path, "--mesh", "n")
    assert "taken " in out and f"skipped  {path}: 1 line: lines next to faces" in out


def test_a_mesh_that_is_not_taken_has_hints_for_meshes(tmp_path: Path) -> None:
    text = b"NDIME= 2\nNELEM= 1\n42 0 1 2 0\nNPOIN= 3\n0 0 0\n1 0 1\n1 1 2\nNMARK= 0\n"
    path = mesh_files.write(tmp_path / "a.su2", text)
    with fst.open(tmp_path / "store") as store:
        with pytest.raises(fst.Invalid, match="line 3: cell 0 is of type 42") as refused:
            fst.ingest(store, path, mesh="m", progress=False)
        assert "mesh" in refused.value.hint and "sacct" not in refused.value.hint
        with pytest.raises(fst.Invalid, match=r"looks like a mesh.*mesh=NAME") as refused:
            fst.ingest(store, path, progress=False)
        assert "sacct" in refused.value.hint


def test_a_name_stands_for_one_mesh(tmp_path: Path) -> None:
    naca, gmsh = sample("cfd/mesh_NACA0012_inv_FFD.su2"), sample("mesh/insulated-4.1.msh")
    with fst.open(tmp_path / "store") as store:
        report = fst.ingest(store, [naca, gmsh], mesh="m", progress=False)
        assert len(report.taken) == 1 and "'m'" in report.skipped[0].why
        assert store.mesh("m").counts["node"] == 5233
        # The same content under another name is the same file.
        fst.ingest(store, naca, mesh="n", progress=False)
        assert store.mesh("n").path == store.mesh("m").path
        reader = fst.open(tmp_path / "store", "r")
        with pytest.raises(fst.Denied):
            fst.ingest(reader, naca, mesh="o", progress=False)


def test_the_program_takes_and_shows_meshes(tmp_path: Path) -> None:
    store = tmp_path / "store"
    out = run("ingest", store, sample("cfd/mesh_NACA0012_inv_FFD.su2"), "--mesh", "wing")
    assert out.startswith("taken ") and "a mesh" in out
    (tmp_path / "no.su2").write_text("")
    assert "is not a mesh" in run("ingest", store, tmp_path / "no.su2", "--mesh", "wing", expect=2)
    with fst.open(store) as opened, opened.arrays("flow", project="p") as job:
        job.group("g", {"p": "f8"}, mesh="wing", location="node").write("p", 0, np.arange(5233.0))
    (line,) = run("mesh", store).splitlines()
    kept = fst.open(store, "r").mesh("wing")
    assert line.split("\t") == ["wing", "5233", "0", "10216", "0", "p:flow", kept.path]
    shown = dict(row.split("\t") for row in run("mesh", store, "wing").splitlines())
    assert shown["faces"] == "10216, of 3 nodes at most"
    assert (shown["source_format"], shown["checksum"], shown["run"]) == ("SU2", kept.checksum, "p:flow")
    (listed,) = json.loads(run("mesh", store, "--json"))["meshes"]
    assert (listed["counts"], listed["runs"]) == (kept.counts, ["p:flow"])
    run("mesh", store, "tail", expect=3)

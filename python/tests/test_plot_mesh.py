"""Fields on meshes as pictures: drawn by the helper, and by the program for fields of jobs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample
from helper_pipe import ask

pytest.importorskip("matplotlib")
from fieldstone._helper import plot_mesh

PROGRAM = Path(sys.executable).parent / "fieldstone"
X, Y = (a.ravel() for a in np.meshgrid(np.arange(4.0), np.arange(3.0)))
CORNER = np.arange(12).reshape(3, 4)
QUADS = np.stack([CORNER[:-1, :-1], CORNER[:-1, 1:], CORNER[1:, 1:], CORNER[1:, :-1]], -1).reshape(-1, 4)


def draw(data: np.ndarray, location: str, rows: np.ndarray | None, kind: str, *nodes: np.ndarray) -> bytes:
    arrays = [data, *nodes, *([] if rows is None else [rows])]
    names = [*"xyz"[: len(nodes)], *([] if rows is None else ["rows"])]
    facts = [{"dtype": a.dtype.str, "shape": list(a.shape)} for a in arrays]
    coords = [{"name": name, **fact} for name, fact in zip(names, facts[1:], strict=True)]
    mesh = {"location": location, **({} if rows is None else {"rows": kind})}
    payload = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
    ((header, png), _) = ask({"op": "plot", **facts[0], "coords": coords, "mesh": mesh}, payload)
    assert header["kind"] == "image", header
    return png


def colours(png: bytes) -> int:
    """The number of colours in the middle of a picture, without axes and colour bar."""
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(png))[150:450, 200:600, :3].reshape(-1, 3)
    seen, times = np.unique((pixels * 255).round().astype(int), axis=0, return_counts=True)
    # Paper and frame are grey; values are not.
    return int(((times > 2000) & (np.ptp(seen, axis=1) > 0)).sum())


def test_faces_are_polygons_of_their_values() -> None:
    assert colours(draw(np.arange(6.0), "face", QUADS, "faces", X, Y)) == 6
    assert colours(draw(np.zeros(6), "face", QUADS, "faces", X, Y)) == 1
    # A face without a value is grey.
    some = np.where(np.arange(6) < 2, np.nan, np.arange(6.0))
    assert colours(draw(some, "face", QUADS, "faces", X, Y)) == 4
    triangles = np.array([[0, 1, 5, -1], [0, 5, 4, -1], [1, 2, 6, 5]])
    assert colours(draw(np.arange(3.0), "face", triangles, "faces", X, Y)) == 3


def test_nodes_are_shaded_between_and_edges_are_lines() -> None:
    assert colours(draw(np.zeros(12), "node", QUADS, "faces", X, Y)) == 1
    shaded = draw(X + 10 * Y, "node", QUADS, "faces", X, Y)
    assert shaded != draw(X - 10 * Y, "node", QUADS, "faces", X, Y)
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    assert draw(np.arange(3.0), "edge", edges, "edges", X, Y).startswith(b"\x89PNG")
    assert draw(X, "node", None, "", X, Y).startswith(b"\x89PNG")


def test_the_skin_of_volumes_is_what_one_volume_has() -> None:
    # Two hexahedra side by side, a pyramid on one of them, a wedge and a tetrahedron elsewhere.
    volumes = np.full((5, 8), -1)
    volumes[0] = [0, 1, 4, 3, 6, 7, 10, 9]
    volumes[1] = [1, 2, 5, 4, 7, 8, 11, 10]
    volumes[2, :5] = [6, 7, 10, 9, 12]
    volumes[3, :6] = [20, 21, 22, 23, 24, 25]
    volumes[4, :4] = [20, 22, 21, 26]
    faces, owners = plot_mesh.skin(volumes)
    sides = {frozenset(face[face >= 0].tolist()): owner for face, owner in zip(faces, owners, strict=True)}
    assert len(sides) == len(faces) == 6 + 6 - 2 - 1 + 4 + 5 + 4 - 2
    assert frozenset([1, 4, 7, 10]) not in sides, "between the two"
    assert frozenset([6, 7, 10, 9]) not in sides, "below the pyramid"
    assert frozenset([20, 21, 22]) not in sides, "between wedge and tetrahedron"
    assert (sides[frozenset([6, 7, 12])], sides[frozenset([0, 3, 6, 9])]) == (2, 0)
    assert sides[frozenset([2, 5, 8, 11])] == 1
    z = np.arange(27.0)
    assert draw(z, "node", volumes, "volumes", np.sin(z), np.cos(z), z).startswith(b"\x89PNG")
    assert draw(z[:5], "volume", volumes, "volumes", np.sin(z), np.cos(z), z).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("data", "rows", "why"),
    [
        (np.zeros(5), QUADS, "values at 6 faces"),
        (np.zeros(6), QUADS + 20, "nodes that are not there"),
    ],
)
def test_what_does_not_fit_is_refused(data: np.ndarray, rows: np.ndarray, why: str) -> None:
    arrays = [data, X, Y, rows]
    facts = [{"dtype": a.dtype.str, "shape": list(a.shape)} for a in arrays]
    coords = [{"name": n, **f} for n, f in zip(["x", "y", "rows"], facts[1:], strict=True)]
    payload = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
    mesh = {"location": "face", "rows": "faces"}
    ((header, _),) = ask({"op": "plot", **facts[0], "coords": coords, "mesh": mesh}, payload)
    assert header["error_kind"] == "Invalid" and why in header["message"]


def plot(*words: object, expect: int = 0) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"FIELDSTONE_PYTHON": sys.executable}
    done = subprocess.run(
        [PROGRAM, "plot", *map(str, words)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done


@pytest.mark.parametrize(
    "name", ["cfd/mesh_NACA0012_inv_FFD.su2", "mesh/mug.e", "mesh/mesh.QU.1920km.151026.nc"]
)
def test_the_program_draws_fields_of_a_job_on_its_mesh(name: str, tmp_path: Path) -> None:
    pytest.importorskip("uxarray")
    pytest.importorskip("meshio")
    with fst.open(tmp_path / "s") as store:
        fst.ingest(store, sample(name), mesh="m", progress=False)
        counts = store.mesh("m").counts
        with store.arrays("r") as job:
            for location, count in counts.items():
                if count:
                    sets = {f"{location}_a": "f8", f"{location}_v": {"dtype": "f4", "shape": (count, 3)}}
                    group = job.group(location, sets, mesh="m", location=location)
                    group.write(f"{location}_a", 0, np.sin(np.arange(count) / 50))
                    group.write(f"{location}_v", 0, np.tile(np.array([1, 2, 3], "f4"), (count, 1)))
    for i, location in enumerate(location for location, count in counts.items() if count):
        png = tmp_path / f"{location}.png"
        key = f"run=r,variable={location}_a,step=0"
        plot(tmp_path / "s", key, "-o", png)
        assert png.read_bytes().startswith(b"\x89PNG")
        # Each picture is a process of its own: the rest is tried at one location of each mesh.
        if i > 0:
            continue
        shown = json.loads(plot(tmp_path / "s", key, "--json").stdout)
        assert shown["shape"] == [counts[location]]
        text = plot(tmp_path / "s", key, "--width", 60).stdout.splitlines()
        assert len(text) > 10 and len(set("".join(text[:-1]))) > 4
        # One component of several: the first, or the requested one.
        key = f"run=r,variable={location}_v,step=0"
        assert "drawing [:,0]" in plot(tmp_path / "s", key, "-o", png).stderr
        assert "3 to 3" in plot(tmp_path / "s", key, "--box", ":,2").stdout
        # A part of it has no shape for a picture, so it is a line.
        assert plot(tmp_path / "s", key, "--box", "0:10,0").returncode == 0


def test_values_in_the_terminal_stand_where_their_nodes_do(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store, store.arrays("r") as job:
        job.create_mesh("m", nodes={"x": X, "y": Y}, faces=QUADS)
        job.group("n", {"a": "f8"}, mesh="m", location="node").write("a", 0, X)
        job.group("f", {"b": "f8"}, mesh="m", location="face").write("b", 0, np.arange(6.0))
    *rows, label = plot(tmp_path / "s", "run=r,variable=a,step=0", "--width", 24).stdout.splitlines()
    assert label.endswith("0 to 3")
    for row in rows:
        assert (row[0], row[-1]) == (".", "@"), "x grows to the right"
    *rows, _ = plot(tmp_path / "s", "run=r,variable=b,step=0", "--width", 24).stdout.splitlines()
    assert (rows[-1][0], rows[0][-1]) == (".", "@"), "y grows upwards"
    # A field of the same name that no job wrote is drawn as ever.
    with fst.open(tmp_path / "s") as store:
        store.archive({"run": "other", "variable": "a", "step": 0}, np.arange(12.0))
    assert "#" in plot(tmp_path / "s", "run=other,variable=a,step=0").stdout

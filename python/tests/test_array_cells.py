"""Attributes on sets of cells: recorded, kept, found by cell and by the position of the cells."""

from __future__ import annotations

import pickle
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest

NX, NY = 36, 18


def globe() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and faces of a grid of 10 degrees, 0 to 360 eastward, and the middles of the faces."""
    lon, lat = np.meshgrid(np.arange(NX) * 10.0, np.linspace(-90, 90, NY + 1))
    corner = np.arange(NX * (NY + 1)).reshape(NY + 1, NX)
    east = np.roll(corner, -1, axis=1)
    faces = np.stack([corner[:-1], east[:-1], east[1:], corner[1:]], -1).reshape(-1, 4)
    middle = np.stack(np.meshgrid(np.arange(NX) * 10.0 + 5, np.linspace(-85, 85, NY)), -1).reshape(-1, 2)
    return lon.ravel(), lat.ravel(), faces, middle


def job_on_globe(store: fst.Store) -> None:
    lon, lat, faces, middle = globe()
    with store.arrays("r") as job:
        east = {"standard_name": "longitude", "units": "degrees_east"}
        north = {"standard_name": "latitude", "units": "degrees_north"}
        more = {"x": east, "y": north}
        job.create_mesh("globe", nodes={"x": lon, "y": lat}, faces=faces, coordinate_attrs=more)
        group = job.group(
            "g",
            {"p": "f8", "q": {"dtype": "f4", "shape": (len(faces), 3)}},
            mesh="globe",
            location="face",
        )
        group.write("p", 0, middle[:, 0])
        group.write("q", 0, np.arange(len(faces) * 3, dtype="f4").reshape(-1, 3))


def test_cells_are_kept_corrected_and_read(tmp_path: Path) -> None:
    with fst.open(tmp_path / "store") as store:
        job_on_globe(store)
        run = store.run("r")
        run.annotate("shock", 1.0, variable="p", step=0, cells=[7, 3, 500])
        run.annotate("shock", 2.0, variable="p", step=0, cells=np.array([3, 7, 500], "u4"))
        # The same box with other cells is another place.
        run.annotate("shock", 3.0, variable="p", step=0, cells=[3, 500])
        run.annotate("hull", 4.0, variable="p", step=0, start=3, count=498)
        run.annotate_many("many", [1, 2], variable="q", step=0, cells=[[5], range(8, 2, -1)])
        run.annotate_many("many", [3, 4], variable="q", step=0, cells=np.arange(4))
        store.flush()
    store = fst.open(tmp_path / "store", "r")
    shocks = store.attributes(tag="shock", order="value").collect()
    assert [h.value for h in shocks] == [2.0, 3.0]
    hit = shocks[0]
    assert hit.cells.tolist() == [3, 7, 500] and hit.cells.dtype == np.int64
    assert (hit.start, hit.count) == ((3,), (498,))
    assert hit.read().tolist() == [35.0, 75.0, 325.0]
    assert hit.read(within={"nglobe_face": slice(4, 600)}).tolist() == [75.0, 325.0]
    assert "3 cells" in repr(hit)
    assert store.attributes(tag="hull").first().cells is None
    many = store.attributes(tag="many", order="value")
    assert [h.cells.tolist() for h in many] == [[5], [3, 4, 5, 6, 7, 8], [0, 1, 2, 3], [0, 1, 2, 3]]
    q = store.get("run=r,variable=q,step=0")
    assert all((h.read() == q[h.cells]).all() for h in many)
    table = store.attributes(order="value").to_pandas().to_dict("records")
    assert [row["cells"] for row in table if row["tag"] == "hull"] == [None]
    assert [list(row["cells"]) for row in table if row["value"] == 3.0] == [[0, 1, 2, 3], [3, 500]]
    kept = pickle.loads(pickle.dumps(store.attributes(tag="shock", order="value").collect()._table))
    assert kept.hit(store, None, 1).cells.tolist() == [3, 500]


def test_cells_are_found_by_number_and_by_coordinates_as_brute_force_says(tmp_path: Path) -> None:
    _, _, _, middle = globe()
    random = np.random.default_rng(15)
    sets = [np.sort(random.choice(NX * NY, size, replace=False)) for size in random.integers(1, 40, 60)]
    with fst.open(tmp_path / "store") as store:
        job_on_globe(store)
        run = store.run("r")
        run.annotate_many("set", np.arange(60), variable="p", step=0, cells=sets)
        boxes = [
            (int(a), int(n))
            for a, n in zip(random.integers(0, 600, 20), random.integers(1, 40, 20), strict=True)
        ]
        start, count = (np.array(column).reshape(-1, 1) for column in zip(*boxes, strict=True))
        run.annotate_many("set", np.arange(60, 80), variable="p", step=0, start=start, count=count)
        run.annotate("set", 80, variable="p", step=0)
        run.annotate("set", 81, step=0)
        store.flush()
    held = [*(set(s.tolist()) for s in sets), *(set(range(a, a + n)) for a, n in boxes), set(range(NX * NY))]
    store = fst.open(tmp_path / "store", "r")

    def found(box: object) -> list[int]:
        return sorted(h.value for h in store.attributes(tag="set", box=box))

    for first in range(0, NX * NY, 37):
        asked = set(range(first, first + 5))
        expected = [n for n, cells in enumerate(held) if cells & asked]
        assert found({"nglobe_face": slice(first, first + 5)}) == expected
        assert found({0: slice(first, first + 5)}) == expected
    some = 0
    for west, east in [
        (170, -170),
        (-30, 30),
        (350, 10),
        (0, 360),
        (94, 96),
        (40, 41),
        (-180, 180),
        (300, 100),
    ]:
        for south, north in [(-90, 90), (30, 60), (82, 90), (-7, -3)]:
            lon, lat = middle.T
            width = east - west if east >= west else (east - west) % 360
            inside = ((lon - west) % 360 <= width) & (lat >= south) & (lat <= north)
            points = set(np.flatnonzero(inside).tolist())
            box = {"lon": fst.between(west, east), "latitude": fst.between(south, north)}
            expected = [n for n, cells in enumerate(held) if cells & points]
            assert found(box) == expected, box
            assert found(fst.within(box)) == [n for n, cells in enumerate(held) if points and cells <= points]
            assert found(fst.covers(box)) == [n for n, cells in enumerate(held) if points and points <= cells]
            some += 0 < len(expected) < 81
    assert some > 8
    text = store.find("tag=set and box(lon=170..-170,y=0..90)")
    assert sorted(h.value for h in text) == found({"lon": fst.between(170, -170), "lat": fst.between(0, 90)})
    # A cell and a coordinate at once: one element must match both.
    both = {"lon": fst.between(0, 20), "nglobe_face": slice(0, 100)}
    points = {n for n in range(100) if middle[n, 0] <= 20}
    assert found(both) == [n for n, cells in enumerate(held) if cells & points]


@pytest.mark.parametrize(
    ("cells", "variable", "words"),
    [
        ([NX * NY], "p", "there is no cell 648: there are 648"),
        ([-1], "p", "there is no cell -1"),
        ([4, 9, 4], "p", "cell 4 is given twice"),
        ([], "p", "at least one cell"),
        ([1.5], "p", "whole numbers"),
        ([[1, 2], [3]], "p", "column"),
        ([1], None, "cells need a variable"),
        ([1], "s", "scalar|extents|dimension"),
    ],
)
def test_wrong_cells_are_named(tmp_path: Path, cells: list, variable: str | None, words: str) -> None:
    with fst.open(tmp_path / "store") as store:
        job_on_globe(store)
        run = store.run("r")
        run.create_variable("s", dtype="f8")
        with pytest.raises(fst.Invalid, match=words):
            run.annotate("t", 1.0, variable=variable, step=0, cells=cells)
        with pytest.raises(fst.Invalid, match="cells and a box"):
            run.annotate("t", 1.0, variable="p", step=0, cells=[1], start=0, count=1)


def test_a_query_on_a_mesh_whose_file_is_damaged_names_it(tmp_path: Path) -> None:
    with fst.open(tmp_path / "store") as store:
        job_on_globe(store)
        store.run("r").annotate("t", 1.0, variable="p", step=0, cells=[1])
    store = fst.open(tmp_path / "store", "r")
    mesh = store.mesh("globe").path
    Path(mesh).write_bytes(Path(mesh).read_bytes()[:5000])
    with pytest.raises(fst.Corrupt, match=Path(mesh).name):
        store.attributes(box={"lon": fst.between(0, 10)}).count()
    assert store.attributes(box={"nglobe_face": 1}).count() == 1

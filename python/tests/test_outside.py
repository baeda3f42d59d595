"""Runs whose data are in files outside the store: tagged, found and read like fields."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import netCDF4
import numpy as np
import pytest
from conftest import require

PROGRAM = Path(sys.executable).with_name("fieldstone")
SHAPE, CHUNKS = (20, 30), (8, 30)


def values(step: int) -> np.ndarray:
    return (np.arange(600, dtype="f8") + 1000 * step).reshape(SHAPE)


def origins() -> list[tuple[int, int]]:
    return list(itertools.product(range(0, 20, 8), range(0, 30, 30)))


def write_files(folder: Path, form: str, step: int) -> None:
    """The pieces of a step, in files of one of the formats."""
    folder.mkdir(exist_ok=True)
    for x, y in origins():
        piece = values(step)[x : x + 8, y : y + 30]
        path = folder / f"t_{step:04d}_{x}_{y}.{form}"
        if form == "raw":
            path.write_bytes(b"head" + piece.astype(">f8").tobytes())
        elif form == "hdf5":
            import h5py

            with h5py.File(path, "w") as file:
                file["fields/t"] = piece
        else:
            with netCDF4.Dataset(path, "w", format=form) as file:
                file.createDimension("x", piece.shape[0])
                file.createDimension("y", piece.shape[1])
                variable = file.createVariable("t", "f8", ("x", "y"), fill_value=5.0)
                variable.set_auto_maskandscale(False)
                variable[:] = piece


def has_h5py() -> bool:
    import importlib.util

    return importlib.util.find_spec("h5py") is not None


FORMS = {"raw": "raw", "NETCDF3_CLASSIC": "netcdf", "NETCDF4": "netcdf", "hdf5": "hdf5"}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_outside_is_found_and_read_like_fields(form, tmp_path):
    if form == "hdf5":
        require("h5py", has_h5py(), "pip install h5py")
    for step in range(3):
        write_files(tmp_path / "a", form, step)
    outside = {
        "template": "{run}/{variable}_{step:04d}_{x}_{y}." + form,
        "format": FORMS[form],
        "root": tmp_path,
        "chunks": CHUNKS,
    }
    if form == "raw":
        outside |= {"offset": 4, "dtype": ">f8"}
    if form == "hdf5":
        outside |= {"dataset": "fields/{variable}"}
    with fst.open(tmp_path / "store") as store:
        run = store.create_run("a", outside=outside)
        run.create_variable("t", "f8", SHAPE)
        run.annotate("front", 7.5, variable="t", step=2, start=(6, 3), count=(5, 9))
        run.annotate("all", 1, variable="t", step=1)
    store = fst.open(tmp_path / "store", "r")
    run = store.run("a")
    assert run.outside["root"] == str(tmp_path)
    (hit,) = store.attributes(tag="front")
    assert np.array_equal(hit.read(), values(2)[6:11, 3:12])
    assert np.array_equal(hit.read(within=(slice(0, 8), slice(4, 6))), values(2)[6:8, 4:6])
    assert np.array_equal(store.attributes(tag="all").first().read(), values(1))
    assert np.array_equal(run.read("t", 0), values(0))
    assert np.array_equal(run.read("t", 1, (19, 29), (1, 1)), values(1)[19:, 29:])
    # Only the file that the box touches is opened.
    (tmp_path / "a" / f"t_0002_16_0.{form}").unlink()
    assert np.array_equal(run.read("t", 2, (0, 0), (16, 30)), values(2)[:16])
    with pytest.raises(fst.NotFound, match=r"t_0002_16_0.*16:20,0:30"):
        run.read("t", 2)
    with pytest.raises(fst.Invalid):
        run.read("t", 2, (0, 0), (21, 30))


@pytest.mark.parametrize("form", ["raw", "NETCDF3_CLASSIC", "hdf5"])
def test_files_that_are_not_what_was_declared_are_named(form, tmp_path):
    if form == "hdf5":
        require("h5py", has_h5py(), "pip install h5py")
    write_files(tmp_path, form, 0)
    store = fst.open("memory:")
    template = "{variable}_{step:04d}_{x}_{y}." + form
    outside = {"template": template, "format": FORMS[form], "root": tmp_path, "chunks": CHUNKS}
    dataset = {"dataset": "fields/t"} if form == "hdf5" else {}
    good = store.create_run("good", outside={**outside, **dataset, "offset": 4})
    wrong = {
        "chunks": {**outside, **dataset, "chunks": (8, 15), "offset": 4},
        "dtype": {**outside, **dataset, "dtype": "f4", "offset": 4},
        "dataset": {**outside, "dataset": "u", "offset": 4},
    }
    for name, declared in wrong.items():
        if form == "raw" and name == "dataset":
            continue
        run = store.create_run(name, outside=declared)
        run.create_variable("t", "f8", SHAPE)
        with pytest.raises((fst.Corrupt, fst.NotFound), match=r"t_0000_.*which should hold box"):
            run.read("t", 0)
    good.create_variable("t", "f8", SHAPE)
    path = tmp_path / f"t_0000_8_0.{form}"
    path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(fst.Corrupt, match=r"t_0000_8_0.*8:16,0:30"):
        good.read("t", 0, (8, 0), (8, 30))


def test_a_field_in_the_store_comes_first(tmp_path):
    write_files(tmp_path, "raw", 0)
    store = fst.open("memory:")
    outside = {"template": "{variable}_{step:04d}_{x}_{y}.raw", "format": "raw", "root": tmp_path}
    run = store.create_run("a", outside={**outside, "chunks": CHUNKS, "offset": 4, "dtype": ">f8"})
    run.create_variable("t", "f8", SHAPE)
    assert run.read("t", 0)[3, 3] == values(0)[3, 3]
    run.write("t", 0, np.zeros(SHAPE))
    store.flush()
    assert run.read("t", 0)[3, 3] == 0
    plain = store.create_run("plain")
    plain.create_variable("t", "f8", SHAPE)
    with pytest.raises(fst.NotFound):
        plain.read("t", 0)


def test_declarations_are_checked_at_once():
    store = fst.open("memory:")
    for number, (outside, why) in enumerate(
        [
            ("a.nc", "give a dict"),
            ({"format": "raw"}, "template"),
            ({"template": "{variable}"}, "format"),
            ({"template": "{variable}", "format": "grib"}, "raw, netcdf or hdf5"),
            ({"template": "{variable}", "format": "raw", "chnks": (1,)}, "chunks"),
        ]
    ):
        with pytest.raises(fst.Invalid, match=why):
            store.create_run(f"r{number}", outside=outside)


def test_a_real_file_of_all_years_is_one_object():
    import iris_sample_data as iris

    with netCDF4.Dataset(Path(iris.path) / "A1B_north_america.nc") as file:
        air = np.asarray(file["air_temperature"][:])
    store = fst.open("memory:")
    run = store.create_run(
        "A1B_north_america",
        outside={
            "template": "{run}.nc",
            "format": "netcdf",
            "root": iris.path,
            "dataset": "{variable}",
            "steps": "index",
        },
    )
    run.create_variable("air_temperature", "f4", air.shape[1:], dims=("latitude", "longitude"))
    year = 100
    place = np.unravel_index(air[year].argmax(), air.shape[1:])
    run.annotate(
        "warmest", float(air[year].max()), variable="air_temperature", step=year, start=place, count=(1, 1)
    )
    (hit,) = store.attributes(tag="warmest")
    assert hit.read().item() == air[year].max()
    assert np.array_equal(run.read("air_temperature", 239), air[239])
    with pytest.raises(fst.NotFound, match="240 steps, not step 240"):
        run.read("air_temperature", 240)


def test_files_that_were_moved_are_found_again(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    write_files(old / "a", "raw", 0)
    store = fst.open(tmp_path / "s")
    outside = {
        "template": "t_{step:04d}_{x}_{y}.raw",
        "format": "raw",
        "root": old / "a",
        "chunks": CHUNKS,
        "dtype": ">f8",
        "offset": 4,
    }
    for name in ("a", "b"):
        run = store.create_run(name, outside=outside)
        run.create_variable("t", "f8", SHAPE, dims=("x", "y"))
    store.run("a").annotate("front", 1.0, variable="t", step=0, start=(2, 3), count=(8, 4))
    store.flush()
    version = store.version
    old.rename(new)
    with pytest.raises(fst.NotFound):
        store.run("a").read("t", 0)
    assert store.repoint(str(old) + "/", new, run="a") == ("a",)
    assert np.array_equal(store.run("a").read("t", 0), values(0))
    with pytest.raises(fst.NotFound, match="old"):
        store.run("b").read("t", 0)
    store.flush()
    there = fst.open(tmp_path / "s", mode="r")
    hit = there.attributes(tag="front").first()
    assert hit is not None and np.array_equal(hit.read(), values(0)[2:10, 3:7])
    with pytest.raises(fst.NotFound, match="old"):
        fst.open(tmp_path / "s", at=version).run("a").read("t", 0)
    with pytest.raises(fst.NotFound, match="no run has its data below") as missing:
        store.repoint(tmp_path / "elsewhere", new)
    assert str(new / "a") in (missing.value.hint or "")
    with pytest.raises(fst.Denied):
        there.repoint(old, new)
    store.close()
    call = [str(Path(sys.executable).with_name("fieldstone")), "repoint", "s", "old", "new", "--json"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"runs": ["b"]}
    assert np.array_equal(fst.open(tmp_path / "s").run("b").read("t", 0), values(0))


def test_a_writer_is_told_the_objects_of_its_box(tmp_path):
    template = "{variable}_{step:04d}_{x}_{y}.raw"
    outside = {"template": template, "format": "raw", "root": tmp_path, "chunks": CHUNKS}
    with fst.open(tmp_path / "store") as store:
        run = store.create_run("a", outside=outside)
        run.create_variable("t", "f8", SHAPE)
        store.create_run("b").create_variable("t", "f8", SHAPE)
        for step in range(2):
            # Like a program with its own writer: each process writes a box that no piece divides.
            for start, count in (((0, 0), (11, 30)), ((11, 0), (9, 30))):
                mine = values(step)[start[0] : start[0] + count[0]]
                for target in run.objects("t", step, start, count):
                    path, (x, _), (rows, _) = Path(target.path), target.start, target.count
                    if not path.exists():
                        path.write_bytes(bytes(8 * rows * 30))
                    piece = np.memmap(path, "f8", "r+", shape=target.count)
                    first = start[0] + target.part[0].start
                    piece[first - x : first - x + len(mine[target.part])] = mine[target.part]
                    piece.flush()
            assert np.array_equal(run.read("t", step), values(step))
        assert [Path(one.path).name for one in run.objects("t", 1)] == [
            f"t_0001_{x}_{y}.raw" for x, y in origins()
        ]
        assert run.objects("t", 1, (8, 0), (8, 30))[0].part == (slice(0, 8), slice(0, 30))
        assert run.objects("t", 1, start=(19, 29))[0].count == (4, 30)
        with pytest.raises(fst.Invalid):
            run.objects("t", 1, (0, 0), (21, 30))
        with pytest.raises(fst.NotFound):
            run.objects("u", 1)
        with pytest.raises(fst.Invalid, match="does not say that its data lie outside"):
            store.run("b").objects("t", 1)
    words = ["objects", str(tmp_path / "store"), "a", "t", "--step", "1", "--box", "5:12,0:30"]
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True)
    assert [line.split("\t") for line in done.stdout.splitlines()] == [
        [f"{tmp_path}/t_0001_0_0.raw", "0:8,0:30", "5:8,0:30"],
        [f"{tmp_path}/t_0001_8_0.raw", "8:16,0:30", "8:12,0:30"],
    ]
    done = subprocess.run([PROGRAM, *words, "--json"], capture_output=True, text=True, check=True)
    last = json.loads(done.stdout)["objects"][-1]
    assert last["part"] == {"start": [8, 0], "count": [4, 30]} and last["dataset"] == "t"

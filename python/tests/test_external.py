"""`ingest(copy=False)`: fields whose values stay in netCDF classic files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample

netCDF4 = pytest.importorskip("netCDF4")
from test_helper_grib import message  # noqa: E402
from test_helper_netcdf import make as make_hdf5  # noqa: E402

FORMATS = ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]


def make(path: Path, format: str = "NETCDF3_CLASSIC", records: int = 5) -> Path:
    """Fixed and record variables of every type, whose records need padding."""
    with netCDF4.Dataset(path, "w", format=format) as file:
        file.set_auto_maskandscale(False)
        file.title = "made"
        for name, length in (("time", None), ("lat", 3), ("lon", 7), ("text", 5), ("many", 400_000)):
            file.createDimension(name, length)
        numbers = np.arange(400_000)
        types = {"b": "i1", "h": "i2", "i": "i4", "f": "f4", "d": "f8"}
        if format.endswith("DATA"):
            types |= {"ub": "u1", "uh": "u2", "ui": "u4", "l": "i8", "ul": "u8"}
        for name, dtype in types.items():
            shape = (records, 3, 7)
            file.createVariable(f"rec_{name}", dtype, ("time", "lat", "lon"))[:] = (
                numbers[: records * 21].reshape(shape) % 100
            )
            file.createVariable(f"fix_{name}", dtype, ("lat", "lon"))[:] = numbers[:21].reshape(3, 7) % 100
        file.createVariable("time", "f8", ("time",))[:] = np.arange(records) * 6.0
        bounds = file.createVariable("time_bnds", "f8", ("time", "lat"))
        bounds[:] = numbers[: records * 3].reshape(records, 3)
        file["time"].bounds = "time_bnds"
        file.createVariable("label", "S1", ("time", "text"))[:] = np.full((records, 5), b"x", "S1")
        file.createVariable("scalar", "i4", ())[...] = 42
        file.createVariable("large", "f8", ("many",))[:] = numbers
        file.createVariable("packed", "i2", ("lat", "lon")).setncatts(
            {"scale_factor": 0.1, "add_offset": 5.0, "_FillValue": np.int16(-9)}
        )
        file["packed"][:] = numbers[:21].reshape(3, 7)
    return path


def take(store: object, path: Path, **options: object) -> fst.IngestReport:
    return fst.ingest(store, path, progress=False, **options)


def values(store: fst.Store) -> dict[str, np.ndarray]:
    return {str(f.key): f.array() if f.dtype else f.read() for f in store.retrieve()}


def same(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        if isinstance(value, bytes):
            assert ours[key] == value, key
        else:
            assert ours[key].dtype.newbyteorder("=") == value.dtype.newbyteorder("="), key
            np.testing.assert_array_equal(ours[key], value, key)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("place", ["folder", "memory:"])
def test_values_that_stay_in_the_file_are_those_that_a_copy_has(
    tmp_path: Path, format: str, place: str
) -> None:
    path = make(tmp_path / "a file.nc", format)
    copied = fst.open("memory:")
    take(copied, path)
    store = fst.open(str(tmp_path / "store") if place == "folder" else place)
    report = take(store, path, copy=False)
    assert report.skipped == () and report.taken[0].fields == len(list(copied.list()))
    same(values(store), values(copied))
    listed = {e.key["variable"]: e for e in store.list()}
    assert listed["fix_f"].location.startswith("file:///") and "/a%20file.nc:" in listed["fix_f"].location
    assert not listed["@header"].location.startswith("file:")
    assert (listed["large"].dtype, store.get({"variable": "large"}, 399_999, 1).tolist()) == (
        ">f8",
        [399_999.0],
    )
    np.testing.assert_array_equal(
        store.get({"variable": "rec_h", "step": 3}, (1, 2), (2, 3)), [[72, 73, 74], [79, 80, 81]]
    )
    stats = store.stats()
    assert stats.bytes == copied.stats().bytes and stats.stored_bytes < 20_000
    assert store.verify().ok


def test_a_lone_record_variable_has_no_padding(tmp_path: Path) -> None:
    path = tmp_path / "lone.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("t", "i2", ("time", "x"))[:] = np.arange(12).reshape(4, 3)
    store = fst.open(tmp_path / "store")
    take(store, path, copy=False)
    for step in range(4):
        assert store.get({"variable": "t", "step": step}).tolist() == [3 * step + i for i in range(3)]


REAL = (
    "A1B-99999a-river-sep-2070-2099 CRM032_test1 SMALL_total_column_co2 eraint_uvz map_f_case_16p "
    "map_g_case_16p ref_nctest_64bit_offset ref_nctest_classic ref_null_byte_padding_test "
    "ref_test_365_day_1900 small_rotPole_precipitation space_weather test4 ubyte"
)


@pytest.mark.parametrize("name", REAL.split())
def test_real_classic_files_read_as_copies_do(name: str) -> None:
    path = sample(f"netcdf-classic/{name}.nc")
    copied, store = fst.open("memory:"), fst.open("memory:")
    theirs, ours = take(copied, path), take(store, path, copy=False)
    assert [(t.fields, t.bytes) for t in ours.taken] == [(t.fields, t.bytes) for t in theirs.taken]
    same(values(store), values(copied))


def test_xarray_opens_them_as_the_file(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    path = make(tmp_path / "small.nc")
    take(str(tmp_path / "store"), path, copy=False)
    ours = xarray.open_dataset(str(tmp_path / "store"), engine="fieldstone", decode_times=False)
    theirs = xarray.open_dataset(path, decode_times=False)
    xarray.testing.assert_identical(ours.load(), theirs.load())
    assert {n: v.dtype.str for n, v in ours.variables.items()} == {
        n: v.dtype.newbyteorder("=").str for n, v in theirs.variables.items()
    }


def test_a_file_that_changes_is_corrupt_and_named(tmp_path: Path) -> None:
    path = make(tmp_path / "small.nc")
    store = fst.open(tmp_path / "store")
    take(store, path, copy=False)
    store.archive({"run": "b", "variable": "t"}, b"inside")
    store.flush()
    kept = tmp_path / "kept.nc"
    shutil.copy2(path, kept)
    changes = {
        "has been written": lambda: os.utime(path, ns=(1, 1)),
        "is shorter": lambda: os.truncate(path, path.stat().st_size - 1),
        "is gone": path.unlink,
    }
    for what, change in changes.items():
        change()
        with pytest.raises(fst.Corrupt, match=r"variable=fix_f.*small\.nc") as error:
            store.get({"variable": "fix_f"})
        assert "take it again" in error.value.hint, what
        assert store.get({"run": "b", "variable": "t"}) == b"inside"
        assert b"netcdf-header" in store.get({"variable": "@header"})
        damaged = store.verify().damaged
        assert len(damaged) > 20 and all(d.key and d.file.endswith("/small.nc") for d in damaged), what
        shutil.copy2(kept, path)
        assert store.verify().ok and store.get({"variable": "fix_f"}).shape == (3, 7)
    # One bit is changed, with size and time as before.
    data = bytearray(path.read_bytes())
    place = next(e for e in store.list({"variable": "fix_d"})).location
    data[int(place.rsplit(":", 1)[1]) + 5] ^= 1
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_bytes(data)
    os.utime(path, ns=times)
    with pytest.raises(fst.Corrupt, match="checksum"):
        store.get({"variable": "fix_d"})
    assert store.get({"variable": "fix_f"}).shape == (3, 7)


def test_other_files_are_skipped_by_name(tmp_path: Path) -> None:
    (tmp_path / "one.grib").write_bytes(message(level=500))
    (tmp_path / "text.nc").write_bytes(b"no netCDF at all")
    files = [
        make_hdf5(tmp_path / "four.nc"),
        tmp_path / "one.grib",
        tmp_path / "text.nc",
        make(tmp_path / "three.nc"),
    ]
    store = fst.open(tmp_path / "store", schema="simulation")
    report = take(store, files, copy=False)
    assert [t.path.name for t in report.taken] == ["three.nc"]
    said = {s.path.name: s.why for s in report.skipped}
    assert "HDF5" in said["four.nc"] and "schema" in said["one.grib"] and "netCDF classic" in said["text.nc"]


def test_values_past_the_end_of_a_file_are_told_as_with_a_copy(tmp_path: Path) -> None:
    path = make(tmp_path / "cut.nc")
    os.truncate(path, path.stat().st_size - 400)
    copied, store = fst.open("memory:"), fst.open("memory:")
    theirs, ours = take(copied, path), take(store, path, copy=False)
    assert ours.skipped and {s.what.split("[")[0] for s in ours.skipped} == {
        s.what.split("[")[0] for s in theirs.skipped
    }
    same(
        {k: v for k, v in values(store).items() if "@header" not in k},
        {k: v for k, v in values(copied).items() if k in values(store) and "@header" not in k},
    )


def test_the_same_file_again_adds_nothing_and_removal_leaves_the_file(tmp_path: Path) -> None:
    path = make(tmp_path / "small.nc")
    content = path.read_bytes()
    store, other = fst.open(tmp_path / "store"), fst.open(tmp_path / "other")
    first = take(store, path, copy=False)
    again = take(store, path, copy=False)
    assert [(t.fields, t.unchanged) for t in again.taken] == [(0, first.taken[0].fields)]
    report = fst.move(store, to=other)
    assert (report.fields, report.removed) == (first.taken[0].fields,) * 2
    assert list(store.list()) == [] and path.read_bytes() == content
    path.unlink()
    assert other.get({"variable": "fix_f"}).dtype == ">f4" and other.verify().ok


@pytest.mark.parametrize("copy", [False, True])
def test_a_file_taken_again_is_good_again(tmp_path: Path, copy: bool) -> None:
    """Its bytes are equal, but its change time, or its place, differs from the store's record."""
    path = make(tmp_path / "source.nc")
    take(tmp_path / "store", path, copy=False)
    before = values(fst.open(tmp_path / "store"))
    os.utime(path, (1, 1))
    assert not fst.open(tmp_path / "store").verify().ok
    (again,) = take(tmp_path / "store", path, copy=copy).taken
    store = fst.open(tmp_path / "store")
    assert "an older version of {run=source}" in store.verify().notes[0]
    assert again.unchanged == 0 and again.fields == len(before)
    assert store.verify().ok and store.axes().get("source") is None
    same(values(store), before)
    (again,) = take(tmp_path / "store", path, copy=copy).taken
    assert (again.fields, again.unchanged) == (0, len(before))
    moved = path.rename(tmp_path / "moved.nc")
    assert store.verify().ok == copy
    take(tmp_path / "store", moved, key={"run": "source"}, copy=copy)
    store = fst.open(tmp_path / "store")
    assert store.verify().ok
    header = "{run=source}{variable=@header}{}"  # it has the file's name
    same({**values(store), header: before[header]}, before)


def test_values_left_in_a_sound_file_are_copied_when_asked_for(tmp_path: Path) -> None:
    path = make(tmp_path / "source.nc")
    take(tmp_path / "store", path, copy=False)
    before = values(fst.open(tmp_path / "store"))
    take(tmp_path / "store", path)
    path.unlink()
    store = fst.open(tmp_path / "store")
    assert store.verify().ok
    same(values(store), before)


def test_the_program_takes_files_without_copying(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = make(tmp_path / "small.nc")
    program = Path(sys.executable).parent / "fieldstone"
    done = subprocess.run(
        [program, "ingest", tmp_path / "store", path, "--no-copy"],
        capture_output=True,
        text=True,
        env=os.environ | {"FIELDSTONE_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    where = subprocess.run(
        [program, "where", tmp_path / "store", "variable=large"], capture_output=True, text=True
    )
    assert where.stdout.startswith("file:///") and "/small.nc:" in where.stdout

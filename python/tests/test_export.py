"""`store.export`: files out of a store, narrowed, in other formats, whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample
from fieldstone import container

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")
pytest.importorskip("eccodes")
from test_corpus_netcdf import contents, differences  # noqa: E402
from test_helper_grib import message  # noqa: E402
from test_helper_netcdf import make  # noqa: E402


@pytest.fixture
def small(tmp_path):
    path = make(tmp_path / "small.nc")
    fst.ingest(tmp_path / "store", path, progress=False)
    return path, fst.open(tmp_path / "store")


def same(a: Path, b: Path) -> bool:
    return differences(contents(a), contents(b)) == {}


def test_types_that_are_easily_lost_come_back(tmp_path):
    path = tmp_path / "odd.nc"
    with netCDF4.Dataset(path, "w") as ds:
        group = ds.createGroup("deep/er")
        ds.createDimension("x", 3)
        group.createDimension("t", None)
        kind = group.createEnumType(np.int8, "answer", {"no": 0, "yes": 1})
        group.createVariable("enum", kind, ("x",))[:] = [1, 0, 1]
        big = group.createVariable(
            "big", "f8", ("t", "x"), endian="big", chunksizes=(1, 2), zlib=True, complevel=7
        )
        big[:] = np.arange(12.0).reshape(4, 3)
        group.createVariable("scalar", "i2")[...] = 7
        text = ds.createVariable("text", str, ("x",))
        text[0], text[1], text[2] = "a", "längerer", ""
        ds.createVariable("alone", str)[...] = "one"
        for name, value in (("i2", np.int16([5])), ("i4", np.int32(5)), ("f4", np.float32([1, np.nan]))):
            ds.setncattr(name, value)
        ds.setncattr("chars", "text")
        ds.setncattr_string("string", "text")
        ds.setncattr_string("strings", ["a", "b"])
        ds.setncattr("empty", "")
    report = fst.ingest(tmp_path / "store", path, progress=False)
    assert report.skipped == ()
    store = fst.open(tmp_path / "store")
    out = store.export({}, tmp_path / "out.nc")
    assert (out.skipped, out.format) == ((), "NETCDF4")
    assert same(path, tmp_path / "out.nc")
    shown = xr.open_dataset(tmp_path / "store", engine="fieldstone", group="deep/er")
    with xr.open_dataset(path, engine="netcdf4", group="deep/er") as expected:
        assert shown.big.dtype == expected.big.dtype
        np.testing.assert_array_equal(shown.big, expected.big)


def test_the_format_does_not_depend_on_what_was_made_before(tmp_path):
    # netCDF4-python chooses a format for the whole process with every file that it makes.
    formats = ("NETCDF3_64BIT_DATA", "NETCDF3_CLASSIC", "NETCDF4", "NETCDF3_64BIT_OFFSET", "NETCDF4_CLASSIC")
    for n, form in enumerate(formats):
        with netCDF4.Dataset(tmp_path / f"{n}.nc", "w", format=form) as ds:
            ds.createDimension("x", 3)
            ds.createVariable("v", "i4", ("x",))[:] = [1, 2, 3]
    for n in range(len(formats)):
        fst.ingest(tmp_path / "store", tmp_path / f"{n}.nc", progress=False)
    store = fst.open(tmp_path / "store")
    for last in formats:
        netCDF4.Dataset(tmp_path / "last.nc", "w", format=last).close()
        for n, form in enumerate(formats):
            target = tmp_path / f"{last}-{n}.nc"
            store.export(f"run={n}", target)
            with netCDF4.Dataset(target) as ds:
                assert ds.data_model == form


def test_a_narrowed_request_gives_the_narrowed_file(small, tmp_path):
    path, store = small
    store.export({"variable": "t", "step": [1]}, tmp_path / "one.nc")
    with xr.open_dataset(path) as whole, xr.open_dataset(tmp_path / "one.nc") as part:
        xr.testing.assert_identical(part["t"].load(), whole["t"].isel(time=[1]).load())
        assert part["t"].encoding["dtype"] == whole["t"].encoding["dtype"]
        assert set(part.variables) < set(whole.variables)
    with pytest.raises(fst.NotFound):
        store.export({"variable": "nosuch"}, tmp_path / "none.nc")
    assert not (tmp_path / "none.nc").exists()


def test_other_formats_hold_what_they_can_and_name_what_they_cannot(small, tmp_path):
    path, store = small
    with xr.open_dataset(path) as expected:
        for word, model in (
            ("netcdf3", "NETCDF3_64BIT_OFFSET"),
            ("cdf1", "NETCDF3_CLASSIC"),
            ("cdf5", "NETCDF3_64BIT_DATA"),
            ("netcdf4-classic", "NETCDF4_CLASSIC"),
        ):
            report = store.export({}, tmp_path / f"{word}.nc", format=word)
            assert report.format == model
            with xr.open_dataset(tmp_path / f"{word}.nc", engine="netcdf4") as got:
                xr.testing.assert_identical(got.load(), expected.load())
    with fst.open(tmp_path / "wide") as wide:
        wide.archive({"run": "a", "variable": "n"}, np.array([1 << 40]))
        wide.flush()
        with pytest.raises(fst.Invalid, match="n do not fit int32"):
            wide.export({}, tmp_path / "wide.nc", format="netcdf3")
        wide.export({}, tmp_path / "wide.nc", format="cdf5")
    with netCDF4.Dataset(tmp_path / "wide.nc") as got:
        assert got["n"][:].tolist() == [1 << 40]
    with pytest.raises(fst.Invalid, match="'zarr' is not a format"):
        store.export({}, tmp_path / "a.nc", format="zarr")
    with pytest.raises(fst.Invalid, match=r"the name .*a\.dat does not imply a format"):
        store.export({}, tmp_path / "a.dat")


@pytest.fixture
def grouped(tmp_path):
    """A netCDF-4 file with groups, and a store that has it."""
    path = tmp_path / "groups.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.title = "all"
        ds.createDimension("x", 3)
        ds.createVariable("v.1", "i4", ("x",))[:] = [1, 2, 3]
        ds.createGroup("nothing/at_all")
        group = ds.createGroup("run.2/event~7")
        group.setncattr("weight.kg", 0.5)
        group.createDimension("x", 2)
        group.createDimension("hits", None)
        charge = group.createVariable("charge", "f8", ("hits", "x"), fill_value=-1)
        charge.units = "pC"
        charge[:] = np.arange(8.0).reshape(4, 2)
        group.createVariable("number", "u8", ("hits",))[:] = [0, 1, 2, 1 << 40]
        names = group.createVariable("name", str, ("x",))
        names[0], names[1] = "a", "längerer"
    report = fst.ingest(tmp_path / "store", path, progress=False)
    assert report.skipped == ()
    with fst.open(tmp_path / "store", "r") as store:
        yield path, store


def test_groups_are_paths_in_a_classic_file(grouped, tmp_path):
    path, store = grouped
    report = store.export({}, tmp_path / "out.nc", format="cdf5")
    at = "run.2/event~7"
    assert report.format == "NETCDF3_64BIT_DATA"
    assert [s.what for s in report.skipped] == ["nothing", "nothing/at_all", f"{at}/name"]
    with container.open(tmp_path / "out.nc") as f:
        assert f.record_dim == f"{at}/hits" and f[f"{at}/charge"].dims == (f"{at}/hits", f"{at}/x")
        lengths = [dict(f.dims)[name] for name in ("x", f"{at}/x", f"{at}/hits")]
        assert lengths == [3, 2, 4] and dict(f.attrs) == {"title": "all", f"{at}/weight.kg": 0.5}
        assert sorted(f.vars) == [f"{at}/charge", f"{at}/name", f"{at}/number", "v.1"]
    for group in ("", at):
        given = xr.open_dataset(path, engine="netcdf4", group=group or None).load()
        got = xr.open_dataset(tmp_path / "out.nc", engine="fieldstone", group=group or None).load()
        xr.testing.assert_identical(got, given)
    again = fst.ingest(tmp_path / "again", tmp_path / "out.nc", progress=False)
    assert again.skipped == () and again.taken[0].fields == report.fields + 1  # the header
    with pytest.raises(fst.Invalid, match=f"values of {at}/number do not fit int32"):
        store.export({}, tmp_path / "narrow.nc", format="netcdf3")
    store.export({"variable": [f"{at}/charge"]}, tmp_path / "one.nc", format="cdf1")
    with container.open(tmp_path / "one.nc") as f:
        assert list(f.vars) == [f"{at}/charge"] and f[f"{at}/charge"][3].tolist() == [6, 7]


def test_groups_are_refused_where_names_are_no_paths(grouped, tmp_path):
    _, store = grouped
    with pytest.raises(fst.Invalid, match=r"no groups, but the file has nothing.*cdf5, whose names can be"):
        store.export({}, tmp_path / "out.nc", format="netcdf4-classic")
    assert not (tmp_path / "out.nc").exists()


def test_arrays_written_by_key_and_grib_fields_become_netcdf(tmp_path):
    with fst.open(tmp_path / "plain") as store:
        for step in (0, 6):
            store.archive({"run": "a", "variable": "t", "step": step}, np.full((2, 3), step, "f4"))
    store = fst.open(tmp_path / "plain")
    store.export({}, tmp_path / "plain.nc")
    with xr.open_dataset(tmp_path / "plain.nc") as got:
        assert got["t"].dims[0] == "step"
        assert got["step"].values.tolist() == [0, 6]
        assert got["t"].isel(step=1).values.tolist() == [[6.0] * 3] * 2
    path = tmp_path / "m.grib"
    path.write_bytes(b"".join(message(level=level) for level in (500, 700, 850)))
    fst.ingest(tmp_path / "grib", path, progress=False)
    store = fst.open(tmp_path / "grib")
    store.export({}, tmp_path / "grib.nc")
    shown = xr.open_dataset(tmp_path / "grib", engine="fieldstone")
    with xr.open_dataset(tmp_path / "grib.nc") as got:
        for name in shown.data_vars:
            np.testing.assert_array_equal(got[name].values, shown[name].values)
        assert got["levelist"].values.tolist() == shown["levelist"].values.tolist()
        again = fst.ingest(tmp_path / "again", tmp_path / "grib.nc", progress=False)
        assert again.skipped == ()


def test_grib_messages_come_out_byte_for_byte_in_the_order_asked_for(tmp_path):
    messages = {level: message(level=level) for level in (500, 700, 850)}
    path = tmp_path / "m.grib"
    path.write_bytes(b"".join(messages.values()))
    fst.ingest(tmp_path / "store", path, progress=False)
    store = fst.open(tmp_path / "store")
    report = store.export({"levelist": [850, 500]}, tmp_path / "out.grib2")
    assert (tmp_path / "out.grib2").read_bytes() == messages[850] + messages[500]
    assert (report.fields, report.format) == (2, "GRIB")
    with pytest.raises(fst.Conflict, match="exists"):
        store.export({}, tmp_path / "out.grib2")
    store.export({}, tmp_path / "out.grib2", overwrite=True)
    assert (tmp_path / "out.grib2").stat().st_size == path.stat().st_size
    with pytest.raises(fst.NotFound):
        store.export({"levelist": 1}, tmp_path / "none.grib")
    with fst.open(tmp_path / "arrays") as arrays:
        arrays.archive({"run": "a", "variable": "t"}, np.zeros(3))
        arrays.flush()
        with pytest.raises(fst.Invalid, match="it is not a GRIB message"):
            arrays.export({}, tmp_path / "none.grib")
    assert sorted(p.name for p in tmp_path.glob("*none*")) == []
    assert list(tmp_path.glob(".*")) == []


def test_several_runs_go_to_a_folder_and_a_target_that_is_there_is_kept(small, tmp_path):
    path, store = small
    other = make(tmp_path / "other.nc", "NETCDF3_CLASSIC")
    fst.ingest(store, other, progress=False)
    with pytest.raises(fst.Invalid, match="selects 2 files: other, small"):
        store.export({}, tmp_path / "one.nc")
    (tmp_path / "out").mkdir()
    report = store.export({}, tmp_path / "out")
    assert {p.name for p in report.files} == {"small.nc", "other.nc"}
    assert same(path, tmp_path / "out" / "small.nc")
    assert same(other, tmp_path / "out" / "other.nc")
    before = (tmp_path / "out" / "small.nc").read_bytes()
    with pytest.raises(fst.Conflict, match=r"small\.nc exists"):
        store.export({"run": "small"}, tmp_path / "out")
    assert (tmp_path / "out" / "small.nc").read_bytes() == before
    store.export({"run": "other"}, tmp_path / "out" / "small.nc", overwrite=True)
    assert same(other, tmp_path / "out" / "small.nc")


def test_a_disk_that_takes_no_more_leaves_nothing_half(tmp_path):
    with fst.open(tmp_path / "store", compression="none") as store:
        store.archive({"run": "a", "variable": "v"}, np.arange(1 << 20, dtype="f8"))
    script = f"""
import resource, signal, fieldstone as fst
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = fst.open({str(tmp_path / "store")!r}, "r")
for format in ("netcdf4", "cdf5"):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    try:
        store.export({{}}, {str(tmp_path / "out.nc")!r}, format=format)
        print("written")
    except fst.Unavailable as error:
        print("refused")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["refused", "refused"], done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_what_the_files_of_one_run_share_is_stored_once(tmp_path):
    """Three months of one model; each file contains the two-dimensional grid and its bounds."""
    paths = [sample(f"netcdf4/nemo_1m_2015{m:02}01-2015{m + 1:02}01_grid-T.nc") for m in (1, 2, 3)]

    def size(folder: Path) -> int:
        return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())

    fst.ingest(tmp_path / "one", paths[:1], progress=False)
    fst.ingest(tmp_path / "three", paths, progress=False)
    store = fst.open(tmp_path / "three")
    runs = store.axes()["run"]
    shared = [e for e in store.list({"run": runs[0]}) if e.dtype is not None and "step" not in dict(e.key)]
    common = sum(e.nbytes for e in shared if dict(e.key)["variable"].startswith(("nav_", "bounds_")))
    assert common > 1_000_000
    own = size(tmp_path / "one") - (size(tmp_path / "three") - size(tmp_path / "one")) // 2
    assert own > 0.5 * size(tmp_path / "one"), "two more files cost as much as the first"
    for path, run in zip(paths, sorted(runs), strict=True):
        store.export({"run": run}, tmp_path / f"{run}.nc")
        assert same(path, tmp_path / f"{run}.nc")
    assert store.verify().ok


def test_memory_is_bounded_by_parts(tmp_path):
    with fst.open(tmp_path / "store", compression="none") as store:
        f = store.create_field({"run": "a", "variable": "v"}, dtype="f4", shape=(100, 1000, 1000))
        for i in range(100):
            f.write(np.full((1, 1000, 1000), i, "f4"), start=(i, 0, 0))
        store.flush()
    script = f"""
import fieldstone as fst
fst.open({str(tmp_path / "store")!r}, "r").export({{}}, {str(tmp_path / "out.nc")!r})
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(peak)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) // 1024 < 350, f"{int(done.stdout) // 1024} MiB for a variable of 381"
    with netCDF4.Dataset(tmp_path / "out.nc") as got:
        assert got["v"][99, 999, 999] == 99


def test_the_program_exports_by_the_helper(small, tmp_path):
    path, _ = small
    program = Path(sys.executable).with_name("fieldstone")
    env = {**os.environ, "FIELDSTONE_PYTHON": sys.executable}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(program), "export", str(tmp_path / "store"), *words]
        return subprocess.run(command, capture_output=True, text=True, env=env)

    done = run("--json", "run=small", str(tmp_path / "out.nc"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] == [str(tmp_path / "out.nc")]
    assert same(path, tmp_path / "out.nc")
    again = run(str(tmp_path / "out.nc"))
    assert again.returncode == 4
    assert "exists" in again.stderr
    assert run("--overwrite", "--format", "cdf5", str(tmp_path / "out.nc")).returncode == 0
    with netCDF4.Dataset(tmp_path / "out.nc") as got:
        assert got.data_model == "NETCDF3_64BIT_DATA"

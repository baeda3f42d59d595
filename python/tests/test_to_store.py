"""A Dataset goes into a store and comes back identical, whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import run_python

xr = pytest.importorskip("xarray")
pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


def opened(url, run="a", **options):
    return xr.open_dataset(url, engine="fieldstone", request={"run": run}, **options)


def weather(steps=5):
    """A Dataset with times, packing, auxiliary coordinates and attributes."""
    rng = np.random.default_rng(1)
    times = np.datetime64("2026-01-01", "ns") + np.arange(steps) * np.timedelta64(6, "h")
    ds = xr.Dataset(
        {
            "t": (("time", "lat", "lon"), 280 + rng.random((steps, 4, 6)), {"units": "K"}),
            "rain": (("time", "lat", "lon"), rng.random((steps, 4, 6)).astype("f4")),
            "height": (("lat", "lon"), rng.integers(0, 99, (4, 6))),
        },
        coords={
            "time": ("time", times, {"standard_name": "time"}),
            "lat": ("lat", [1.5, 2.5, 3.5, 4.5], {"units": "degrees_north"}),
            "lon": np.arange(6.0),
            "area": (("lat", "lon"), rng.random((4, 6))),
            "member": 3,
        },
        attrs={"title": "weather", "levels": np.array([1, 2, 3], "i2"), "scale": np.float32(0.1)},
    )
    ds.encoding["unlimited_dims"] = {"time"}
    return ds


KINDS = {
    "bool": np.array([True, False, True]),
    "i1": np.array([-1, 0, 1], "i1"),
    "u8": np.array([0, 1, 2**64 - 1], "u8"),
    "i8": np.array([-(2**62), 0, 1]),
    "f2": np.array([1.5, np.nan, np.inf], "f2"),
    "f4": np.array([1.5, np.nan, -0.0], "f4"),
    "big": np.array([1, 2, 3], ">i4"),
    "c8": np.array([1 + 2j, 0, -1j], "c8"),
    "c16": np.array([1 + 2j, np.nan, -1j]),
    "str": np.array(["a", "", "längst"]),
    "object": np.array(["a", "", "längst"], object),
    "bytes": np.array([b"a", b"", b"xyz"]),
    "datetime": np.array(["2026-01-01", "NaT", "1850-06-01T01:02:03"], "M8[ns]"),
    "timedelta": np.array([1, 2, "NaT"], "m8[s]").astype("m8[ns]"),
}


@pytest.mark.parametrize("lazy", [False, True], ids=["numpy", "dask"])
@pytest.mark.parametrize("kind", KINDS)
def test_values_of_every_kind_come_back(url, kind, lazy):
    values = KINDS[kind]
    ds = xr.Dataset(
        {"v": ("n", values), "zero": ((), values[0]), "none": (("n", "e"), values[:, None][:, :0])}
    )
    given = ds.chunk({"n": 2}) if lazy else ds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # xarray computes dask arrays of objects, and warns
        fst.to_store(given, url, {"run": "a"})
    got = opened(url).load()
    xr.testing.assert_identical(got, ds)
    if kind not in ("object", "big"):
        # xarray cannot know the unit of an empty array of times.
        names = ["v", "zero"] if values.dtype.kind in "mM" else list(ds)
        assert {n: got[n].dtype for n in names} == {n: ds[n].dtype for n in names}


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "standard"])
def test_calendars_come_back(url, calendar):
    times = xr.date_range("2001-02-27", periods=4, freq="D", calendar=calendar, use_cftime=True)
    ds = xr.Dataset({"t": (("time", "x"), np.ones((4, 2)))}, {"time": times})
    fst.to_store(ds, url, {"run": "a"})
    got = opened(url, decode_times=xr.coders.CFDatetimeCoder(use_cftime=True)).load()
    xr.testing.assert_identical(got, ds)
    assert got.time.encoding["calendar"] == calendar


SCHEDULERS = {
    "numpy": {"scheduler": "sync"},
    "threads": {"scheduler": "threads"},
    "processes": {"scheduler": "processes"},
    "forked": {"scheduler": "processes", "multiprocessing.context": "fork"},
}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_dataset_comes_back_as_it_was(url, scheduler):
    ds = weather()
    given = ds if scheduler == "numpy" else ds.chunk({"time": 2, "lat": 3, "lon": 5})
    with dask.config.set(SCHEDULERS[scheduler]):
        fst.to_store(given, url, {"run": "a", "member": 3})
    got = opened(url)
    xr.testing.assert_identical(got.load(), ds)
    assert list(got.variables) == list(ds.variables) and got.encoding["unlimited_dims"] == {"time"}
    assert {n: v.dtype for n, v in got.variables.items()} == {n: v.dtype for n, v in ds.variables.items()}
    assert got.attrs["levels"].dtype == "i2" and got.attrs["scale"].dtype == "f4"
    store = fst.open(url, "r")
    assert store.axes("variable=t")["step"] == ["0", "1", "2", "3", "4"]
    assert "step" not in store.axes("variable=height") and store.axes()["member"] == ["3"]


def test_encodings_are_those_of_netcdf(url, tmp_path):
    pytest.importorskip("netCDF4")
    ds = weather()
    ds.t.encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    ds.rain.encoding = {"chunksizes": (1, 2, 3), "_FillValue": -1.0}
    ds.time.encoding = {"units": "hours since 1900-01-01", "calendar": "standard", "dtype": "i4"}
    ds["t"][0, 0, 0] = np.nan
    ds.to_netcdf(tmp_path / "file.nc", engine="netcdf4")
    fst.to_store(ds, url, {"run": "a"})
    got, file = opened(url), xr.open_dataset(tmp_path / "file.nc", engine="netcdf4")
    xr.testing.assert_identical(got.load(), file.load())
    for name in file.variables:
        for fact in ("dtype", "_FillValue", "scale_factor", "add_offset", "units", "calendar"):
            one, other = got[name].encoding.get(fact), file[name].encoding.get(fact)
            assert str(one) == str(other), (name, fact)
    store = fst.open(url, "r")
    assert store.get({"run": "a", "variable": "t", "step": 0}).dtype == "i2"
    (field,) = store.retrieve("run=a,variable=rain,step=0")
    assert field.chunks == (2, 3)
    # A file with the same content gives the same fields when it is ingested.
    fst.ingest(fst.open(url), tmp_path / "file.nc", {"run": "b"}, progress=False)
    keys = [{str(e.key).replace("{run=b}", "{run=a}") for e in store.list(f"run={run}")} for run in "ab"]
    assert keys[0] == keys[1]


def test_the_step_dimension_can_be_chosen(url):
    ds = xr.Dataset({"t": (("x", "y"), np.ones((3, 2))), "u": (("y", "x"), np.ones((2, 3)))})
    with fst.open(url) as store:
        fst.to_store(ds, store, {"run": "a"})
        fst.to_store(ds, store, {"run": "b"}, step_dim="x")
        fst.to_store(weather(), store, {"run": "c"}, step_dim=False)
        assert "step" not in store.axes("run=a/c")
        assert store.axes("run=b,variable=t")["step"] == ["0", "1", "2"]
        assert "step" not in store.axes("run=b,variable=u")
        with pytest.raises(fst.Invalid, match=r"step_dim='z' is not a dimension.*x, y"):
            fst.to_store(ds, store, {"run": "d"}, step_dim="z")
    xr.testing.assert_identical(opened(url, "b").load(), ds)


def test_arrays_and_trees(url):
    array = weather().t.isel(time=0)
    fst.to_store(array, url, {"run": "a"})
    xr.testing.assert_identical(opened(url).t.load(), array)
    with pytest.raises(fst.Invalid, match="no name"):
        fst.to_store(array.rename(None), url, {"run": "b"})
    inner = xr.Dataset({"salt": (("time", "depth"), np.ones((5, 2)))}, {"depth": [10.0, 20.0]})
    tree = xr.DataTree.from_dict({"/": weather(), "/ocean": inner, "/ocean/deep": inner.isel(time=0)})
    fst.to_store(tree, url, {"run": "tree"})
    xr.testing.assert_identical(opened(url, "tree").load(), weather())
    xr.testing.assert_identical(opened(url, "tree", group="ocean").load(), inner)
    xr.testing.assert_identical(
        opened(url, "tree", group="ocean/deep").load(), inner.isel(time=0).drop_vars("depth")
    )
    # xarray keeps a coordinate that a group inherits only in the outer group.
    steps = fst.open(url, "r").axes({"run": "tree", "variable": ["ocean/salt"]})["step"]
    assert steps == ["0", "1", "2", "3", "4"], "time is the root's, and unlimited there"


def test_what_has_no_form_in_netcdf_is_refused_by_name(url):
    index = pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=("one", "two"))
    with_index = xr.Dataset({"v": ("z", np.zeros(4))}, xr.Coordinates.from_pandas_multiindex(index, "z"))
    v = ("x", np.zeros(2))
    for ds, words in (
        (with_index, r"z belongs to a MultiIndex.*reset_index\('z'\)"),
        (xr.Dataset({"v": ("x", np.array([{}, 1], object))}), "variable v cannot be encoded"),
        (xr.Dataset({"v": (*v, {"f": None})}), "variable v: attribute 'f'.*leave out None"),
        (xr.Dataset({"v": v}, attrs={"flag": {}}), "the Dataset: attribute 'flag'"),
        (xr.Dataset({"a/b": v}), "'a/b' cannot be the name"),
        (xr.Dataset({3: v}), "3 cannot be the name"),
        (xr.Dataset({"@header": v}), "'@header' cannot be the name"),
    ):
        with pytest.raises(fst.Invalid, match=words):
            fst.to_store(ds, url, {"run": "a"})
    for key, words in (
        (None, "no run"),
        ({"member": 1}, "no run"),
        ({"run": "a", "step": 1}, "step comes from"),
    ):
        with pytest.raises(fst.Invalid, match=words):
            fst.to_store(weather(), url, key)
    with pytest.raises(fst.Invalid, match="list is not a Dataset"):
        fst.to_store([], url, {"run": "a"})
    assert not os.path.exists(url), "nothing was written"


def test_a_run_is_not_written_over_unasked(url):
    ds = weather()
    with fst.open(url) as store:
        fst.to_store(ds, store, {"run": "a"})
        version = store.version
        with pytest.raises(fst.Conflict, match="run=a already has fields"):
            fst.to_store(ds + 1, store, {"run": "a"})
        fst.to_store(ds, store, {"run": "a", "member": 3})  # another key
        fst.to_store((ds + 1).chunk({"lat": 3}), store, {"run": "a"}, overwrite=True)
    xr.testing.assert_equal(opened(url).load(), ds + 1)
    xr.testing.assert_identical(opened(url, at=version).load(), ds)


def test_nothing_of_a_run_that_is_written_over_stays(url):
    ds = weather()
    with fst.open(url) as store:
        fst.to_store(ds, store, {"run": "a"})
        fst.to_store(ds, store, {"run": "a", "member": 3})
        before = store.version
        gone = next(iter(ds.data_vars))
        less = ds.drop_vars(gone).isel(time=slice(0, 2)).chunk({"lat": 3})
        with dask.config.set(scheduler="processes"):
            fst.to_store(less, store, {"run": "a"}, overwrite=True)
        own = [e.key for e in store.list("run=a") if "member" not in e.key]
        assert own and gone not in {key["variable"] for key in own}
        assert {key["step"] for key in own if "step" in key} <= {"0", "1"}
        assert gone in store.axes("run=a,member=3")["variable"]
    xr.testing.assert_equal(opened(url).load(), less.compute())
    assert gone in opened(url, at=before)


class Stop(Exception):
    pass


def failing(block, block_info=None):
    if block_info and block_info[0]["chunk-location"] == (3, 0):
        raise Stop
    return block


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_a_write_that_fails_shows_nothing(url, scheduler):
    array = da.ones((8, 6), chunks=(2, 6)).map_blocks(failing, dtype="f8")
    ds = xr.Dataset({"fine": ("x", np.ones(6)), "v": (("t", "x"), array)})
    with fst.open(url) as store:
        with pytest.raises(Stop), dask.config.set(scheduler=scheduler):
            fst.to_store(ds, store, {"run": "a"})
        assert list(store.list()) == [] and store.status().transactions == ()
        store.archive({"run": "b", "variable": "v"}, np.ones(3))
    assert [e.key["run"] for e in fst.open(url, "r").list()] == ["b"]


def test_in_a_transaction_it_is_visible_with_it(url):
    lazy = weather().chunk({"time": 2, "lat": 3})
    with fst.open(url) as store, store.transaction() as tx:
        store.archive({"run": "mine", "variable": "v"}, np.ones(3))
        fst.to_store(lazy, tx, {"run": "a"})
        with dask.config.set(scheduler="processes"):
            fst.to_store(lazy, tx, {"run": "b"})
        assert list(fst.open(url, "r").list()) == [] if os.path.exists(url) else True
        assert tx.axes()["run"] == ["a", "b"]
    for run in "ab":
        xr.testing.assert_identical(opened(url, run).load(), weather())


def test_a_store_in_memory_takes_threads_and_refuses_processes():
    store = fst.open("memory:")
    lazy = weather().chunk({"time": 2, "lat": 3})
    fst.to_store(lazy, store, {"run": "a"})
    fst.to_store(lazy, store, {"run": "b"}, compute=False).compute(scheduler="threads")
    for run in "ab":
        xr.testing.assert_identical(store.to_xarray({"run": run}).load(), weather())
    with pytest.raises(fst.Invalid, match="memory"), dask.config.set(scheduler="processes"):
        fst.to_store(lazy, store, {"run": "c"})
    assert store.axes()["run"] == ["a", "b"]


def test_without_compute_a_template_is_visible_at_once(url):
    ds = weather()
    later = fst.to_store(ds.chunk({"time": 2, "lat": 3, "lon": 4}), url, {"run": "a"}, compute=False)
    got = opened(url)
    xr.testing.assert_identical(got.time.load(), ds.time)  # indexes are in memory
    with pytest.raises(fst.NotFound, match="nobody has written"):
        got.t.load()
    (field,) = fst.open(url, "r").retrieve("run=a,variable=rain,step=1", strict=False)
    assert np.isnan(field.array()).all()
    later.compute(scheduler="processes")
    xr.testing.assert_identical(opened(url).load(), ds)
    later.compute(scheduler="threads")  # a second run does no harm
    xr.testing.assert_identical(opened(url).load(), ds)
    nothing = fst.to_store(ds, url, {"run": "b"}, compute=False)
    assert nothing.compute() is None
    xr.testing.assert_identical(opened(url, "b").load(), ds)


def test_blocks_that_are_not_what_they_were_said_to_be_are_refused(url):
    def wrong(kind):
        return lambda b: {"dtype": b + 0.5, "shape": b[:1], "mask": np.ma.masked_equal(b, 1)}[kind]

    for kind, words in (
        ("dtype", "has dtype float64, the variable int64"),
        ("shape", "has shape"),
        ("mask", "masked"),
    ):
        array = da.ones(4, chunks=2, dtype="i8").map_blocks(wrong(kind), dtype="i8", meta=np.zeros(0, "i8"))
        with pytest.raises(fst.Invalid, match=f"variable v.*{words}"):
            fst.to_store(xr.Dataset({"v": ("x", array)}), url, {"run": kind}, step_dim=False)


def test_an_array_larger_than_memory_streams(url):
    pytest.importorskip("netCDF4")
    code = """
        import dask.array as da, netCDF4, xarray as xr, dask, os
        def peak():  # MiB; ru_maxrss includes the memory of the parent process
            (own,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
            return int(own) >> 10
        array = da.random.default_rng(1).random((160, 250, 1000), chunks=(4, 250, 500))  # 320 MB
        # A file that does not fit into the memory limit: 192 MB.
        with netCDF4.Dataset(sys.argv[1] + ".nc", "w") as file:
            for name, n in (("x", 24), ("y", 1000), ("z", 1000)):
                file.createDimension(name, n)
            held = file.createVariable("v", "f8", ("x", "y", "z"))
            for i in range(24):
                held[i] = float(i)
        before = peak()
        with fst.open(sys.argv[1]) as store, dask.config.set(scheduler="threads", num_workers=2):
            fst.to_store(xr.Dataset({"v": (("x", "y", "z"), array)}), store, {"run": "a"})
            made = peak()
            with dask.config.set({"array.chunk-size": "8MiB"}):
                fst.to_store(xr.open_dataset(sys.argv[1] + ".nc"), store, {"run": "b"})
        assert made - before < 150, (before, made, peak())
        assert peak() - made < 100, (before, made, peak())
        """
    run_python(code, url)
    store = fst.open(url, "r")
    assert [e.nbytes for e in store.list("variable=v")] == [320_000_000, 192_000_000]
    assert store.get("run=b,variable=v", start=(7, 0, 0), count=(1, 1, 1)) == 7


def test_importing_the_package_imports_no_xarray():
    code = "import sys, fieldstone; assert not {'xarray', 'dask', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

"""Regions of one array from many processes, in any position: nothing is lost, misfits are refused."""

from __future__ import annotations

import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import fieldstone as fst
import numpy as np
import pytest
from conftest import ROOT
from test_to_store import opened, weather

xr = pytest.importorskip("xarray")
dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

KEY = {"run": "a"}


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sixteen_processes_write_unaligned_regions_and_zarr_loses_them(tmp_path, seed):
    pytest.importorskip("zarr")
    command = [sys.executable, str(ROOT / "examples" / "regions.py"), str(tmp_path), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "96 boxes by 16 processes" in done.stdout
    assert re.search(r"fieldstone: +0 of 25920 elements wrong", done.stdout), done.stdout
    lost = int(re.search(r"zarr: +(\d+) of", done.stdout)[1])
    assert lost > 25920 / 2, "only one of the sixteen writers of a chunk remains"
    assert re.search(r"to_zarr: refused: Specified Zarr chunks .* would overlap", done.stdout), done.stdout


def random_regions(rng, sizes, n):
    """Boxes that may overlap, each with a value."""
    for value in range(n):
        parts = {}
        for dim, size in sizes.items():
            start, stop = sorted(rng.choice(size + 1, 2, replace=False))
            parts[dim] = slice(int(start), int(stop))
        yield parts, float(value)


def random_chunks(rng, n):
    """A dimension cut at random."""
    cuts = sorted({0, n, *rng.integers(1, n, 3).tolist()}) if n > 1 else [0, n]
    return tuple(b - a for a, b in itertools.pairwise(cuts))


def run_regions(url, seed, n):
    """Writes overlapping regions one after another, each with dask in blocks cut at random."""
    rng = np.random.default_rng(seed)
    sizes = {"time": 5, "y": 17, "x": 23}
    model = np.full(tuple(sizes.values()), np.nan)
    times = np.arange(5) * np.timedelta64(1, "h") + np.datetime64("2026-01-01", "ns")
    template = da.zeros(model.shape, chunks=(2, 9, 10))
    ds = xr.Dataset({"v": (tuple(sizes), template)}, {"time": times})
    fst.to_store(ds, url, KEY, compute=False)
    with fst.open(url) as store:
        for parts, value in random_regions(rng, sizes, n):
            shape = tuple(p.stop - p.start for p in parts.values())
            block = rng.random(shape) + value
            model[tuple(parts.values())] = block
            lazy = da.from_array(block, chunks=tuple(random_chunks(rng, n) for n in shape))
            fst.to_store(xr.Dataset({"v": (tuple(sizes), lazy)}), store, KEY, region=parts)
        read = [f.array() for f in store.retrieve("variable=v", strict=False)]
    assert len(read) == 5, "a field for each time"
    np.testing.assert_array_equal(np.stack(read), model)


@pytest.mark.parametrize("seed", range(6))
def test_overlapping_regions_by_dask_threads_are_numpys(url, seed):
    with dask.config.set(scheduler="threads", num_workers=4):
        run_regions(url, seed, 12)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("seed", [11, 12])
def test_overlapping_regions_by_dask_workers_are_numpys(url, cluster, seed):
    run_regions(url, seed, 8)


def test_dask_workers_write_one_array_from_many_calls_at_once(url, cluster):
    """Each task of a cluster writes its own regions; those of one round do not overlap."""
    rng = np.random.default_rng(5)
    model = np.zeros((60, 50))
    fst.to_store(xr.Dataset({"v": (("y", "x"), da.zeros((60, 50), chunks=60))}), url, KEY, compute=False)
    for number in range(3):
        cuts = np.array([0, *sorted(rng.choice(np.arange(1, 60), 11, replace=False)), 60])
        columns = int(rng.integers(1, 49))
        boxes = [
            (slice(int(a), int(b)), part)
            for a, b in itertools.pairwise(cuts)
            for part in (slice(0, columns), slice(columns, 50))
        ]
        for box in boxes:
            model[box] = number * 100 + box[0].start + box[1].start / 100
        tasks = [dask.delayed(write_one)(url, box, model[box].copy()) for box in boxes]
        dask.compute(tasks)
    np.testing.assert_array_equal(opened(url).v.values, model)


def write_one(url, box, values):
    fst.to_store(
        xr.Dataset({"v": (("y", "x"), values)}), url, KEY, region=dict(zip(("y", "x"), box, strict=True))
    )


def test_dask_workers_write_a_dataset_whole_or_not_at_all(url, cluster):
    ds = weather()
    lazy = ds.chunk({"time": 2, "lat": 3, "lon": 4})
    with fst.open(url) as store:
        fst.to_store(lazy, store, KEY)
        broken = lazy.assign(rain=lazy.rain + da.from_delayed(dask.delayed(fail)(), (5, 4, 6), "f4"))
        with pytest.raises(RuntimeError, match="stop"):
            fst.to_store(broken, store, {"run": "b"})
        assert store.axes()["run"] == ["a"] and store.status().transactions == ()
        later = fst.to_store(lazy, store, {"run": "c"}, compute=False)
        later.compute()
    for run in "ac":
        xr.testing.assert_identical(opened(url, run).load(), ds)


def fail():
    raise RuntimeError("stop")


def test_a_task_that_is_run_again_changes_nothing(url, cluster, tmp_path):
    """Workers die after they have written a block, before they can report it; the others write it again."""
    array = da.arange(64, chunks=8).map_blocks(die_later, str(tmp_path), os.getpid(), dtype="i8")
    with fst.open(url) as store:
        fst.to_store(xr.Dataset({"v": ("x", array)}), store, KEY)
    assert (tmp_path / "died").exists()
    np.testing.assert_array_equal(opened(url).v.values, np.arange(64))


def die_later(block, folder, beginner):
    """The first worker that comes here is killed a moment later."""
    mark = pathlib.Path(folder, "died")
    if block.size and os.getpid() != beginner:
        try:
            mark.touch(exist_ok=False)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
        except FileExistsError:
            time.sleep(0.1)
    return block


def test_regions_are_encoded_as_the_run_is(url):
    ds = weather()
    ds["name"] = ("lat", np.array(["north", "b", "c", "d"]))
    ds["code"] = ("lat", np.array([b"abcd", b"b", b"c", b"d"]))
    ds["flag"] = ("lat", np.array([True, False, True, False]))
    ds["when"] = ("lat", ds.time.values[:4])
    ds.t.encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    ds.when.encoding = {"units": "hours since 1900-01-01", "dtype": "i4", "_FillValue": -1}
    fst.to_store(ds, url, KEY)
    part = opened(url).load().isel(lat=slice(1, 3))
    part = part.assign(
        t=(part.t + 1).transpose("lon", "time", "lat"),
        name=("lat", ["x", "longs"]),
        code=("lat", [b"x", b"y"]),
        flag=~part.flag,
        when=part.when + np.timedelta64(3, "h"),
    )
    part["t"][0, 0, 0] = np.nan
    part["when"][0] = np.datetime64("NaT", "ns")
    expected = opened(url).load()
    for name in ("t", "name", "code", "flag", "when"):
        expected[name][expected[name].get_axis_num("lat") * (slice(None),) + (slice(1, 3),)] = part[
            name
        ].transpose(*expected[name].dims)
    fst.to_store(part, url, KEY, region={"lat": slice(1, 3)})
    xr.testing.assert_identical(opened(url).load(), expected)
    assert np.isnan(opened(url).t[0, 1, 0]) and opened(url).t.encoding["dtype"] == "i2"


def test_a_region_is_found_by_its_coordinates(url):
    ds = weather()
    fst.to_store(ds, url, KEY)
    part = ds[["t"]].isel(time=slice(1, 3), lon=slice(2, 5)) * 0
    part["t"].attrs = ds.t.attrs
    expected = ds.copy(deep=True)
    expected.t[1:3, :, 2:5] = 0
    fst.to_store(part, url, KEY, region="auto")
    xr.testing.assert_identical(opened(url).load(), expected)
    one = ds[["t"]].isel(time=[4])
    fst.to_store(one + 1, url, KEY, region={"time": "auto", "lat": slice(None)})
    assert (opened(url).t[4] == ds.t[4] + 1).all()
    for wrong, words in (
        (ds[["t"]].isel(lon=[1, 3]), "lon are not adjacent"),
        (ds[["t"]].isel(lon=[3, 2]), "lon are not adjacent"),
        (ds[["t"]].assign_coords(lon=ds.lon + 0.5), "no lon=0.5"),
        (ds[["t"]].drop_vars("lon").isel(lon=[1]), "lon cannot be found by its values"),
    ):
        with pytest.raises(fst.Invalid, match=words):
            fst.to_store(wrong, url, KEY, region="auto")


def test_what_does_not_fit_is_refused_by_name(url):
    ds = weather()
    ds["name"] = ("lat", np.array(["north", "b", "c", "d"]))
    ds.time.encoding = {"units": "days since 2026-01-01", "dtype": "i8"}
    ds = ds.assign_coords(time=ds.time.values[0] + np.arange(5) * np.timedelta64(1, "D"))
    fst.to_store(ds, url, KEY)
    part = ds[["t"]].isel(lat=slice(1, 3))
    place = {"lat": slice(1, 3)}
    late = ds[["t"]].isel(time=[1]).assign_coords(time=[np.datetime64("2026-01-01T06", "ns")])
    for given, region, words in (
        (part, {"lat": slice(3, 5)}, "lat is 3:5, but run=a has lat 0:4"),
        (part, {"lat": slice(-2, None)}, "lat is -2:4"),
        (part, {"lat": slice(0, 4, 2)}, "slice without a step"),
        (part, {"lat": 1}, "lat is 1"),
        (part, {"lat": slice(0, 3)}, "lat is 0:3, but the Dataset has 2 along lat"),
        (part, {"level": slice(0, 3)}, "the Dataset has no dimension level.*time, lat, lon"),
        (part.rename(lat="y"), {"y": slice(0, 2)}, "run=a has no dimension y"),
        (part, {}, r"region=\{\}"),
        (part, {"lon": slice(0, 6)}, r"variable t has 2 along lat, the stored one 4.*'lat': slice"),
        (part.rename(t="tt"), place, "no variable tt.*t, rain, height"),
        (part.isel(lon=0), place, r"variable t has dimensions \('time', 'lat'\), the stored one"),
        (
            part.astype("f4"),
            place,
            r"variable t has dtype float32, the stored one float64.*astype\('float64'\)",
        ),
        (part.astype("i8"), place, "variable t has dtype int64"),
        (part.assign(u=("lon", np.ones(6))), place, r"variable u has none of the region's.*drop_vars\('u'\)"),
        (
            part.assign(height=part.t.isel(time=0)),
            place,
            "variable height has dtype float64, the stored one int64",
        ),
        (ds[["name"]].isel(lat=[0]) + "east", {"lat": slice(0, 1)}, "variable name is encoded as <U9"),
        (late, {"time": slice(1, 2)}, "coordinate time is 2026-01-01T06"),
    ):
        with warnings.catch_warnings(), pytest.raises(fst.Invalid, match=words):
            warnings.simplefilter("ignore")
            fst.to_store(given, url, KEY, region=region)
    with pytest.raises(fst.NotFound, match=r"run=b has no header.*compute=False"):
        fst.to_store(part, url, {"run": "b"}, region=place)
    with pytest.raises(fst.Invalid, match="region excludes overwrite"):
        fst.to_store(part, url, KEY, region=place, overwrite=True)
    xr.testing.assert_identical(opened(url).load(), ds)


def test_regions_go_into_ingested_files_too(url, tmp_path):
    pytest.importorskip("netCDF4")
    ds = weather()
    ds.to_netcdf(
        tmp_path / "file.nc", format="NETCDF3_64BIT", engine="netcdf4", encoding={"height": {"dtype": "i4"}}
    )
    fst.ingest(fst.open(url), tmp_path / "file.nc", KEY, progress=False)
    fst.to_store(ds[["t", "rain"]].isel(lon=[2]) * 0, url, KEY, region={"lon": slice(2, 3)})
    got = opened(url)
    assert (got.t[:, :, 2] == 0).all() and (got.t[:, :, 3] == ds.t[:, :, 3]).all()


def test_a_region_is_whole_or_not_at_all(url):
    fst.to_store(xr.Dataset({"v": (("t", "x"), np.zeros((8, 6)))}), url, KEY)
    stop = da.ones((8, 3), chunks=(2, 3)).map_blocks(refuse_the_last, dtype="f8")
    place = {"x": slice(1, 4)}
    with pytest.raises(RuntimeError, match="the last block"), dask.config.set(scheduler="sync"):
        fst.to_store(xr.Dataset({"v": (("t", "x"), stop)}), url, KEY, region=place)
    assert (opened(url).v == 0).all()
    later = fst.to_store(
        xr.Dataset({"v": (("t", "x"), da.ones((8, 3)))}), url, KEY, region=place, compute=False
    )
    assert (opened(url).v == 0).all()
    later.compute()
    assert opened(url).v.values.sum() == 24


def refuse_the_last(block, block_id):
    if block_id == (3, 0):
        raise RuntimeError("the last block")
    return block

"""A part of a run is written at the place of its labels, not by position; runs grow at their end."""

from __future__ import annotations

import warnings

import fieldstone as fst
import numpy as np
import pytest
from test_to_store import opened, weather

xr = pytest.importorskip("xarray")
dask = pytest.importorskip("dask")

KEY = {"run": "a"}


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


def cells():
    """A grid of cells whose coordinates are not indexes, with text labels."""
    return xr.Dataset(
        {"v": (("time", "cell"), np.zeros((3, 4)))},
        {
            "time": np.datetime64("2026-01-01", "ns") + np.arange(3) * np.timedelta64(1, "D"),
            "lat": ("cell", [1.0, 2, 3, 4]),
            "name": ("cell", ["a", "b", "c", "d"]),
        },
    )


OTHER = {
    "another order": (lambda p: p.isel(lat=slice(None, None, -1)), "coordinate lat is 4.5 .* has 1.5"),
    "other values": (
        lambda p: p.assign_coords(lon=p.lon + 0.5),
        r"coordinate lon is 0.5 .* has 0.0 \(lon=0\)",
    ),
    "in the region": (lambda p: p.assign_coords(time=p.time + np.timedelta64(1, "h")), "coordinate time is"),
    "no number": (lambda p: p.assign_coords(lon=list("abcdef")), "coordinate lon is a"),
    "a grid": (lambda p: p.assign_coords(area=p.area + 1), "coordinate area is"),
}


@pytest.mark.parametrize("way", ["numpy", "dask", "transaction", "auto"])
@pytest.mark.parametrize("case", OTHER)
def test_a_region_with_other_labels_is_refused(url, case, way):
    change, words = OTHER[case]
    fst.to_store(weather(), url, KEY)
    part = change(weather()[["t"]].isel(time=slice(1, 3)) + 1)
    region = {"time": "auto" if way == "auto" and case != "in the region" else slice(1, 3)}
    given = part.chunk({"lat": 2}) if way == "dask" else part
    with fst.open(url) as store, pytest.raises(fst.Invalid, match=words):
        if way == "transaction":
            with store.transaction() as tx:
                fst.to_store(given, tx, KEY, region=region)
        else:
            fst.to_store(given, store, KEY, region=region)
    xr.testing.assert_identical(opened(url).load(), weather())


def test_labels_along_dimensions_of_another_name_count_too(url):
    fst.to_store(cells(), url, KEY)
    turned = cells().isel(cell=[3, 2, 1, 0], time=[0])
    for dropped, words in (
        ([], "coordinate (lat|name)"),
        (["lat"], "coordinate name is d"),
        (["name"], "coordinate lat"),
    ):
        with pytest.raises(fst.Invalid, match=words):
            fst.to_store(turned.drop_vars(dropped), url, KEY, region={"time": slice(0, 1)})
    fst.to_store(turned.drop_vars(["lat", "name"]), url, KEY, region={"time": slice(0, 1)})


def test_packed_labels_and_those_that_are_not_there_yet(url):
    ds = weather()
    ds.lat.encoding = {"dtype": "i2", "scale_factor": 0.01}
    ds = ds.assign_coords(lat=[1.501, 2.5, 3.5, 4.5])
    empty = ds.assign_coords(time=np.full(5, np.datetime64("NaT", "ns")))
    empty.time.encoding = {"units": "hours since 2026-01-01", "dtype": "f8"}
    fst.to_store(empty, url, KEY)
    fst.to_store(ds[["t"]].isel(time=slice(0, 2)), url, KEY, region={"time": slice(0, 2)})
    got = opened(url).time.values
    assert (got[:2] == ds.time.values[:2]).all() and np.isnat(got[2:]).all()
    with pytest.raises(fst.Invalid, match="coordinate time is"):
        fst.to_store(ds[["t"]].isel(time=slice(2, 4)), url, KEY, region={"time": slice(0, 2)})


# -- the end of a run


@pytest.mark.parametrize("lazy", [False, True], ids=["numpy", "dask"])
@pytest.mark.parametrize("step_dim", [None, False], ids=["split", "whole"])
def test_a_run_grows_along_a_dimension(url, lazy, step_dim):
    ds = weather(7)
    ds["inner"] = (("lat", "time"), np.arange(28.0).reshape(4, 7))
    ds["label"] = ("time", [f"t{n}" for n in range(7)])
    ds.t.encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    first, *more = (ds.isel(time=part) for part in (slice(0, 3), slice(3, 4), slice(4, 7)))
    fst.to_store(first, url, KEY, step_dim=step_dim)
    want = [opened(url).load()]
    for part in more:
        given = part.drop_vars("height")
        fst.to_store(given.chunk({"lat": 3, "lon": 2}) if lazy else given, url, KEY, append_dim="time")
        want.append(part)
    got = opened(url).load()
    assert got.sizes["time"] == 7 and got.encoding["unlimited_dims"] == {"time"}
    assert np.abs(got.t - ds.t).max() <= 0.005001
    xr.testing.assert_identical(got.drop_vars("t"), ds.drop_vars("t"))
    store = fst.open(url, "r")
    steps = store.axes("variable=rain").get("step", [])
    assert steps == ([] if step_dim is False else [str(n) for n in range(7)])
    assert store.verify().ok


def test_an_append_that_does_not_fit_leaves_all_as_it_was(url):
    ds = weather()
    fst.to_store(ds, url, KEY)
    later = ds.assign_coords(time=ds.time + np.timedelta64(10, "D")).drop_vars("height")
    for given, dim, words in (
        (ds.drop_vars("height"), "time", "run=a already has time=2026-01-01.*region="),
        (later.drop_vars("rain"), "time", "run=a has variable rain along time"),
        (later.assign(height=ds.height), "time", "variable height does not have the dimension time"),
        (later.assign(new=later.t), "time", "no variable new"),
        (later.isel(lat=slice(0, 2)), "time", "variable (t|rain) has 2 along lat"),
        (later.assign_coords(lat=later.lat[::-1].values), "time", "coordinate lat is 4.5"),
        (later, "level", "append_dim='level': the Dataset has no such dimension"),
    ):
        with pytest.raises(fst.Invalid, match=words):
            fst.to_store(given, url, KEY, append_dim=dim)
    with pytest.raises(fst.NotFound, match="run=b has no header"):
        fst.to_store(later, url, {"run": "b"}, append_dim="time")
    for options in ({"region": {"time": slice(0, 1)}}, {"overwrite": True}, {"step_dim": "time"}):
        with pytest.raises(fst.Invalid, match="exclude each other"):
            fst.to_store(later, url, KEY, append_dim="time", **options)
    xr.testing.assert_identical(opened(url).load(), ds)


def test_blocks_that_are_computed_later_and_files_that_were_taken(url, tmp_path):
    pytest.importorskip("netCDF4")
    ds = weather().drop_vars("height")
    ds.isel(time=slice(0, 3)).to_netcdf(tmp_path / "file.nc", engine="netcdf4")
    fst.ingest(fst.open(url), tmp_path / "file.nc", KEY, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        later = fst.to_store(
            ds.isel(time=slice(3, 5)).chunk({"lat": 2}), url, KEY, append_dim="time", compute=False
        )
    assert opened(url).sizes["time"] == 5 and (opened(url).t[:3] == ds.t[:3]).all()
    later.compute()
    xr.testing.assert_identical(opened(url).load(), ds)
    report = fst.ingest(fst.open(url), tmp_path / "file.nc", KEY, progress=False)
    assert "source" in report.taken[0].key, "it is no longer the ingested file"

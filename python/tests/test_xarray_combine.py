"""Files split in time, members or tiles as one Dataset, compared with open_mfdataset's."""

from __future__ import annotations

import itertools
import pickle
import random

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
pytest.importorskip("dask")
import fieldstone.xarray_engine  # noqa: E402
from fieldstone._xarray import combine  # noqa: E402
from fieldstone._xarray.joined import cut  # noqa: E402

RNG = np.random.default_rng(3)
LAT, LON = np.linspace(-60, 60, 5), np.arange(0.0, 360, 45)
WORDS = {
    "combine": "by_coords",
    "data_vars": "minimal",
    "coords": "minimal",
    "compat": "equals",
    "join": "exact",
}


def month(
    path, first, days, *, units=None, calendar="standard", scale=0.01, more=None, scalars=(), **changed
):
    """A file of one variable, packed; `units` of its times, by default days since its own first day."""
    lat, lon = changed.get("lat", LAT), changed.get("lon", LON)
    with netCDF4.Dataset(path, "w") as file:
        for name, length in (("time", None), ("lat", len(lat)), ("lon", len(lon)), ("nv", 2)):
            file.createDimension(name, length)
        time = file.createVariable("time", "f8", ("time",))
        time.setncatts({"units": units or f"days since {first}", "calendar": calendar, "bounds": "time_bnds"})
        days = np.arange(days) if np.ndim(days) == 0 else np.asarray(days)
        time[:] = days
        file.createVariable("time_bnds", "f8", ("time", "nv"))[:] = np.stack([days, days + 1], axis=1)
        for name, values in (("lat", lat), ("lon", lon)):
            file.createVariable(name, "f4", (name,))[:] = values
            file[name].units = changed.get(f"{name}_units", "degrees")
        t = file.createVariable(changed.get("name", "t"), "i2", ("time", "lat", "lon"), fill_value=-32768)
        t.setncatts(
            {"units": changed.get("t_units", "K"), "scale_factor": scale, "add_offset": 280.0 + scale}
        )
        t[:] = np.ma.masked_less(280 + RNG.random((len(days), len(lat), len(lon))), 280.1)
        names = []
        for name, value in scalars:
            file.createVariable(name, np.asarray(value).dtype, ())[...] = value
            names.append(name)
        if names:
            t.coordinates = " ".join(names)
        for name, (dims, values, attrs) in (more or {}).items():
            values = np.asarray(values)
            file.createVariable(name, values.dtype, dims)[...] = values
            file[name].setncatts(attrs)
        file.title = "daily"
        file.history = str(path)
    return path


def months(folder, n=3, **how):
    """Files of the first months of 2026, each with its own packing and first day."""
    folder.mkdir(exist_ok=True)
    lengths = (31, 28, 31, 30)
    return [
        month(
            folder / f"t_2026-{m + 1:02}.nc", f"2026-{m + 1:02}-01", lengths[m], scale=0.01 + 0.003 * m, **how
        )
        for m in range(n)
    ]


def store_of(tmp_path, files, key=None, name="s"):
    report = fst.ingest(tmp_path / name, files, key=key, progress=False)
    assert len(report.taken) == len(files) and not report.skipped
    return str(tmp_path / name)


def opened(url, **options):
    return xr.open_dataset(url, engine="fieldstone", **options)


def together(files, **words):
    with xr.open_mfdataset(
        files, engine="netcdf4", combine_attrs="drop_conflicts", **{**WORDS, **words}
    ) as ds:
        return ds.load()


@pytest.mark.parametrize("chunks", [None, {}, {"time": 20}, "auto"])
def test_months_are_one_dataset_each_decoded_by_its_own_packing(tmp_path, chunks):
    files = months(tmp_path / "m", more={"mask": (("lat", "lon"), np.arange(40).reshape(5, 8) % 2, {})})
    url = store_of(tmp_path, files)
    ds = opened(url, chunks=chunks)
    assert ds.encoding["unlimited_dims"] == {"time"} and ds.mask.dims == ("lat", "lon")
    assert ds.attrs == {"title": "daily"}
    xr.testing.assert_identical(ds.compute(), together(files))
    assert not {"scale_factor", "dtype", "_FillValue"} & ds.t.encoding.keys()
    assert ds.time.encoding["units"] == "days since 2026-01-01"
    xr.testing.assert_identical(fst.open(url, "r").to_xarray().compute(), together(files))


def test_any_selection_reads_what_it_selects_and_no_more(tmp_path, monkeypatch):
    files = months(tmp_path / "m")
    url, whole = store_of(tmp_path, files), together(files)
    from fieldstone._xarray.source import Source

    ds = opened(url, cache=False)
    read = []
    real = Source._get
    monkeypatch.setattr(Source, "_get", lambda s, key, *more: (read.append(key), real(s, key, *more))[1])
    part = ds.t.isel(time=[0, 40], lat=2)
    assert not read
    part = part.load()
    assert [(key["run"], key["step"]) for key in read] == [("t_2026-01", "0"), ("t_2026-02", "9")]
    np.testing.assert_array_equal(part, whole.t.isel(time=[0, 40], lat=2))
    dice = random.Random(1)
    for _ in range(60):
        picks = {}
        for dim, size in whole.t.sizes.items():
            picks[dim] = dice.choice(
                [
                    dice.randrange(-size, size),
                    slice(dice.randrange(size), dice.randrange(size + 1)),
                    slice(None, None, dice.choice([1, 2, -1, -3])),
                    [dice.randrange(size) for _ in range(dice.randrange(4))],
                    slice(None),
                ]
            )
        xr.testing.assert_identical(ds.t.isel(picks).load(), whole.t.isel(picks))


def test_positions_in_any_order_are_cut_by_file():
    picked = np.array([9, 7, 5, 0, 0, 6, 1])
    found = cut(picked, (4, 0, 4, 2))
    assert [number for number, *_ in found] == [3, 2, 0, 2, 0]
    got = np.empty(len(picked), int)
    for number, where, inside in found:
        got[where] = np.arange((4, 0, 4, 2)[number])[inside] + (0, 4, 4, 8)[number]
    np.testing.assert_array_equal(got, picked)
    assert cut(np.array([], int), (4,)) == [(0, slice(0, 0), slice(0, 0))]


def test_files_of_one_run_join_too_and_a_request_narrows_them(tmp_path):
    files = months(tmp_path / "m")
    url = store_of(tmp_path, files, {"run": "tos"})
    xr.testing.assert_identical(opened(url).load(), together(files))
    xr.testing.assert_identical(opened(url, request="run=tos").load(), together(files))
    one = opened(url, request="run=tos,variable=t,step=0/1")
    assert set(one.variables) == {"t", "time", "lat", "lon", "time_bnds"} - {"time_bnds"}
    assert [str(t)[:10] for t in one.time.values] == [
        f"2026-{m:02}-{d:02}" for m in (1, 2, 3) for d in (1, 2)
    ]
    tree = xr.open_datatree(url, engine="fieldstone")
    assert len(tree["tos"].children) == 3
    joined = xr.open_datatree(url, engine="fieldstone", combine="auto")
    xr.testing.assert_identical(joined["tos"].to_dataset().load(), together(files))
    assert not joined["tos"].children


def test_files_of_a_key_that_says_no_more_come_first(tmp_path):
    files = months(tmp_path / "m")
    url = store_of(tmp_path, files, {"run": "tos"})
    fst.ingest(url, files[0], key={"run": "tos", "member": 3}, progress=False)
    xr.testing.assert_identical(opened(url, request="run=tos").load(), together(files))
    assert opened(url, request="run=tos,member=3").sizes["time"] == 31
    with pytest.raises(fst.Invalid, match=r"selects 4 files.*some have keywords that others lack"):
        fst.open(url, "r").export("run=tos", tmp_path / "no.nc")
    with pytest.raises(fst.Invalid, match=r"both have t at the same time.*\(no member, member=3\)"):
        opened(url)


def test_none_refuses_several_and_takes_the_one_that_is_asked_for(tmp_path):
    files = months(tmp_path / "m")
    url = store_of(tmp_path, files)
    with pytest.raises(fst.Invalid, match=r"selects 3 netCDF files \(run=t_2026-01, .*combine='auto'"):
        opened(url, combine=None)
    assert opened(url, combine=None, request="run=t_2026-02").sizes["time"] == 28
    run = store_of(tmp_path, files, {"run": "tos"}, "run")
    assert opened(run, combine=None, request="run=tos").sizes["time"] == 31
    with pytest.raises(fst.Invalid, match="combine is 'time'"):
        opened(url, combine="time")
    with pytest.raises(fst.Invalid, match="combine"):
        xr.open_datatree(url, engine="fieldstone", combine="nested")


def test_times_in_other_units_and_calendars(tmp_path):
    one = month(tmp_path / "a.nc", "2026-01-01", 31)
    two = month(tmp_path / "b.nc", "", [x * 24.0 + 12 for x in range(31, 40)], units="hours since 2026-01-01")
    url = store_of(tmp_path, [two, one])
    ds = opened(url).load()
    xr.testing.assert_identical(ds, together([one, two]))
    assert ds.time.values[31] == np.datetime64("2026-02-01T12")
    lean = [month(tmp_path / f"l{n}.nc", f"2024-0{n + 2}-01", 28 + 3 * n, calendar="noleap") for n in (0, 1)]
    ds = opened(store_of(tmp_path, lean, name="lean")).load()
    xr.testing.assert_identical(ds, together(lean))
    assert str(ds.time.values[28])[:10] == "2024-03-01" and ds.sizes["time"] == 59
    other = month(tmp_path / "o.nc", "2024-04-01", 3, calendar="360_day")
    distant = month(tmp_path / "d.nc", "0001-01-01", 3)
    for files, words in (
        (
            [one, distant],
            "coordinate time has values of the kind time in the file a.nc, but time of cftime in",
        ),
        ([lean[0], other], "coordinate time has the calendar noleap in the file l0.nc, but 360_day in o.nc"),
        ([lean[0], one], "coordinate time has the calendar standard in the file a.nc, but noleap in l0.nc"),
    ):
        with pytest.raises(fst.Invalid, match=words):
            opened(store_of(tmp_path, files, name=f"s{len(words)}"))


@pytest.mark.parametrize("undecoded", [{"decode_times": False}, {"mask_and_scale": False}])
def test_what_is_left_encoded_does_not_join_where_it_means_other_things(tmp_path, undecoded):
    url = store_of(tmp_path, months(tmp_path / "m"))
    words = r"(units days since|scale_factor 0\.01)"
    with pytest.raises(fst.Invalid, match=words):
        opened(url, **undecoded)
    same = [
        month(tmp_path / f"{n}.nc", "", np.arange(5) + 5 * n, units="days since 2026-01-01") for n in (0, 1)
    ]
    ds = opened(store_of(tmp_path, same, name="same"), **undecoded).load()
    xr.testing.assert_identical(ds, together(same, **undecoded))


@pytest.mark.parametrize("chunks", [None, {}])
def test_members_by_a_scalar_coordinate_and_months(tmp_path, chunks):
    files = {
        (n, m): month(
            tmp_path / f"e{n}_{m}.nc",
            f"2026-0{m}-01",
            4,
            scale=0.01 * (n + m),
            scalars=[("number", np.int32(n))],
        )
        for n in (3, 1, 2)
        for m in (1, 2)
    }
    ds = opened(store_of(tmp_path, list(files.values())), chunks=chunks)
    assert ds.t.dims == ("number", "time", "lat", "lon") and ds.number.values.tolist() == [1, 2, 3]
    assert ds.time_bnds.dims == ("time", "nv")
    for (n, _), path in files.items():
        with xr.open_dataset(path) as one:
            xr.testing.assert_identical(ds.t.sel(number=n, time=one.time).load(), one.t.load())


def test_members_by_a_keyword_and_runs(tmp_path):
    url = str(tmp_path / "s")
    for member in (2, 10, 1):
        path = month(tmp_path / f"m{member}.nc", "2026-01-01", 3)
        fst.ingest(url, path, key={"run": "ens", "member": member}, progress=False)
    ds = opened(url)
    assert ds.t.dims[0] == "member" and ds.member.values.tolist() == [1, 2, 10]
    with xr.open_dataset(tmp_path / "m10.nc") as one:
        np.testing.assert_array_equal(ds.t.sel(member=10), one.t)
    runs = store_of(tmp_path, [tmp_path / f"m{n}.nc" for n in (1, 2, 10)], name="runs")
    with pytest.raises(fst.Invalid, match=r"m1\.nc and m10\.nc overlap: both have t .*combine='run'"):
        opened(runs)
    ds = opened(runs, combine="run")
    assert ds.t.dims[0] == "run" and ds.run.values.tolist() == ["m1", "m10", "m2"]
    xr.testing.assert_identical(fst.open(runs, "r").to_xarray(combine="run").load(), ds.load())


def test_a_scalar_that_goes_with_the_joint_lies_along_it(tmp_path):
    files = [
        month(tmp_path / f"{m}.nc", f"2026-0{m}-01", m + 1, scalars=[("made", 10.0 * m), ("height", 2.0)])
        for m in (1, 2)
    ]
    ds = opened(store_of(tmp_path, files)).load()
    assert ds.made.dims == ("time",) and ds.made.values.tolist() == [10, 10, 20, 20, 20]
    assert ds.height.dims == () and float(ds.height) == 2
    members = [
        month(tmp_path / f"n{n}.nc", "2026-01-01", 2, scalars=[("number", n), ("seed", n * 7)])
        for n in (1, 2)
    ]
    ds = opened(store_of(tmp_path, members, name="n")).load()
    assert ds.seed.dims == ("number",) and ds.seed.values.tolist() == [7, 14]


def test_tiles_of_x_and_y_and_a_coordinate_that_falls(tmp_path):
    lats, lons = (LAT[::-1][:2], LAT[::-1][2:]), (LON[:3], LON[3:])
    files = [
        month(
            tmp_path / f"{i}{j}.nc", "2026-01-01", 3, lat=lats[i], lon=lons[j], scale=0.01 * (1 + i + 2 * j)
        )
        for i, j in itertools.product((1, 0), (0, 1))
    ]
    ds = opened(store_of(tmp_path, files), chunks={})
    np.testing.assert_array_equal(ds.lat, LAT[::-1].astype("f4"))
    assert ds.t.chunks == ((1, 1, 1), (2, 3), (3, 5))
    xr.testing.assert_identical(ds.compute(), together(files))
    with pytest.raises(fst.Invalid, match=r"no file has t at lat .* and lon 135 to 315"):
        opened(store_of(tmp_path, files[:3], name="three"))


def test_files_of_other_variables_are_put_together(tmp_path):
    shared = {"mask": (("lat", "lon"), np.ones((5, 8)), {})}
    t = [month(tmp_path / f"t{m}.nc", f"2026-0{m}-01", 3, more=shared) for m in (1, 2)]
    p = [
        month(tmp_path / f"p{m}.nc", f"2026-0{m}-01", 3, name="p", t_units="Pa", more=shared) for m in (1, 2)
    ]
    ds = opened(store_of(tmp_path, t + p)).load()
    assert set(ds.data_vars) == {"t", "p", "mask", "time_bnds"}
    xr.testing.assert_identical(ds.drop_vars("p"), together(t))
    np.testing.assert_array_equal(ds.p, together(p).p)
    with pytest.raises(fst.Invalid, match="no file has p at time 2026-02-01"):
        opened(store_of(tmp_path, [*t, p[0]], name="less"))
    assert opened(str(tmp_path / "less"), drop_variables="p").sizes["time"] == 6


def test_what_differs_lies_along_the_joint(tmp_path):
    files = [
        month(
            tmp_path / f"{m}.nc", f"2026-0{m}-01", 2, more={"ice": (("lat", "lon"), np.full((5, 8), m), {})}
        )
        for m in (1, 2)
    ]
    ds = opened(store_of(tmp_path, files))
    assert ds.ice.dims == ("time", "lat", "lon") and ds.ice[:, 0, 0].values.tolist() == [1, 1, 2, 2]
    assert ds.ice[1:3, 2, 3:5].values.tolist() == [[1, 1], [2, 2]]
    np.testing.assert_array_equal(ds.ice, together(files, data_vars="different").ice)


def test_large_variables_are_compared_in_pieces(tmp_path, monkeypatch):
    """Files of two ingests share no fields; common variables are read, some rows at a time."""
    monkeypatch.setattr(combine, "COMPARED", 100)
    ice = np.arange(40.0).reshape(5, 8)
    url = str(tmp_path / "s")
    for m in (1, 2):
        path = month(tmp_path / f"{m}.nc", f"2026-0{m}-01", 2, more={"ice": (("lat", "lon"), ice, {})})
        fst.ingest(url, path, progress=False)
    assert opened(url).ice.dims == ("lat", "lon")
    ice[4, 7] = -1
    path = month(tmp_path / "3.nc", "2026-03-01", 2, more={"ice": (("lat", "lon"), ice, {})})
    fst.ingest(url, path, progress=False)
    ds = opened(url)
    assert ds.ice.dims == ("time", "lat", "lon") and ds.ice[:, 4, 7].values.tolist() == [39] * 4 + [-1] * 2


def test_a_file_of_no_time_has_no_place_in_time(tmp_path):
    def static(path, value):
        with netCDF4.Dataset(path, "w") as file:
            for name, values in (("lat", LAT), ("lon", LON)):
                file.createDimension(name, len(values))
                file.createVariable(name, "f4", (name,))[:] = values
                file[name].units = "degrees"
            file.createVariable("ice", "i8", ("lat", "lon"))[:] = value
        return path

    ice = {"ice": (("lat", "lon"), np.ones((5, 8), "i8"), {})}
    files = [month(tmp_path / f"{m}.nc", f"2026-0{m}-01", 2, more=ice) for m in (1, 2)]
    ds = opened(store_of(tmp_path, [*files, static(tmp_path / "one.nc", 1)]))
    assert ds.ice.dims == ("lat", "lon") and ds.t.sizes["time"] == 4
    with pytest.raises(
        fst.Invalid, match=r"variable ice of the files 1.nc and two.nc differs, but they overlap"
    ):
        opened(store_of(tmp_path, [*files, static(tmp_path / "two.nc", 2)], name="two"))


def curved(shift=0.0, crs=1.0):
    two = np.arange(40.0).reshape(5, 8) + shift
    return {
        "glat": (("lat", "lon"), two, {"units": "degrees_north"}),
        "crs": ((), np.int32(0), {"grid_mapping_name": "lambert", "standard_parallel": crs}),
    }


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (
            {},
            {"first": "2026-01-01"},
            "the files a.nc and b.nc overlap: both have t at the same time, lat, lon",
        ),
        (
            {},
            {"first": "2026-01-02"},
            r"coordinate time of the files a.nc \(2026-01-01.*\) and b.nc \(2026-01-02.* overlaps",
        ),
        ({}, {"lat": np.linspace(-50, 70, 5)}, r"coordinate lat of the files a.nc \(-60 to 60\) and b.nc"),
        ({}, {"lat": np.linspace(-60, 60, 9)}, r"coordinate lat of the files a.nc \(-60 to 60\) and b.nc"),
        ({}, {"lat": LAT + 1e-4}, r"coordinate lat of the files a.nc .* overlaps, but differs"),
        ({}, {"t_units": "degC"}, "variable t has the units K in the file a.nc, but degC in b.nc"),
        ({}, {"lat_units": "m"}, "coordinate lat has the units degrees in the file a.nc, but m in b.nc"),
        (
            {"more": curved(), "scalars": [("glat", None)]},
            {"more": curved(0.5), "scalars": [("glat", None)]},
            "glat of the files a.nc and b.nc differs: they have different grids",
        ),
        ({"more": curved()}, {"more": curved(crs=2.0)}, "crs of the files a.nc and b.nc differs"),
    ],
)
def test_what_does_not_join_is_refused_by_coordinate_and_files(tmp_path, one, other, words):
    paths = []
    for name, how in (("a", one), ("b", other)):
        how = dict(how)
        first = how.pop("first", "2026-01-01" if name == "a" else "2026-02-01")
        scalars = how.pop("scalars", ())
        path = month(tmp_path / f"{name}.nc", first, 3, **how)
        with netCDF4.Dataset(path, "a") as file:
            if scalars:
                file["t"].coordinates = "glat"
            if "crs" in file.variables:
                file["t"].grid_mapping = "crs"
        paths.append(path)
    url = str(tmp_path / "s")
    for path in paths:
        fst.ingest(url, path, key={"run": "same", "source": path.stem}, progress=False)
    with pytest.raises(fst.Invalid, match=words) as caught:
        opened(url)
    assert "open_datatree" in caught.value.hint
    assert len(xr.open_datatree(url, engine="fieldstone")["same"].children) == 2


def test_a_dimension_without_a_coordinate(tmp_path):
    def write(path, n, first):
        with netCDF4.Dataset(path, "w") as file:
            for name, length in (("time", None), ("n", n)):
                file.createDimension(name, length)
            file.createVariable("time", "f8", ("time",))[:] = [first, first + 1]
            file["time"].units = "days since 2026-01-01"
            file.createVariable("v", "f8", ("time", "n"))[:] = first
        return path

    even = [write(tmp_path / f"{i}.nc", 3, 2 * i) for i in range(3)]
    ds = opened(store_of(tmp_path, even)).load()
    xr.testing.assert_identical(ds, together(even))
    odd = write(tmp_path / "odd.nc", 4, 9)
    with pytest.raises(
        fst.Invalid, match=r"dimension n has no coordinate in the file 0.nc.* 3 values .* 4 in odd"
    ):
        opened(store_of(tmp_path, [*even, odd], name="odd"))


def test_stations_by_name_and_a_file_without_times(tmp_path):
    def write(path, names, times):
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("station", len(names))
            file.createDimension("time", None)
            file.createVariable("station", str, ("station",))[:] = np.array(names, dtype=object)
            file.createVariable("time", "i4", ("time",))[:] = times
            file["time"].units = "days since 2026-01-01"
            file.createVariable("v", "f4", ("time", "station"))[:] = np.ones((len(times), len(names)))
        return path

    files = [write(tmp_path / "b.nc", ["oslo", "rome"], [0, 1]), write(tmp_path / "a.nc", ["bonn"], [0, 1])]
    ds = opened(store_of(tmp_path, files)).load()
    assert ds.station.values.tolist() == ["bonn", "oslo", "rome"] and ds.v.shape == (2, 3)
    twice = write(tmp_path / "c.nc", ["rome", "york"], [0, 1])
    with pytest.raises(fst.Invalid, match=r"coordinate station of the files b.nc .* and c.nc"):
        opened(store_of(tmp_path, [*files, twice], name="twice"))
    none = write(tmp_path / "none.nc", ["oslo", "rome"], [])
    ds = opened(store_of(tmp_path, [none, files[0]], name="none")).load()
    assert ds.time.size == 2 and ds.v.shape == (2, 2)


def test_groups_join_by_their_path(tmp_path):
    def write(path, first):
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("time", None)
            file.createVariable("time", "f8", ("time",))[:] = [first]
            file["time"].units = "days since 2026-01-01"
            file.createGroup("deep").createVariable("v", "f8", ("time",))[:] = [first]
        return path

    files = [write(tmp_path / f"{i}.nc", i) for i in (1, 0)]
    url = store_of(tmp_path, files, {"run": "g"})
    assert opened(url).time.size == 2
    tree = xr.open_datatree(url, engine="fieldstone", combine="auto")
    assert [node.path for node in tree.subtree] == ["/", "/g", "/g/deep"]
    with pytest.raises(fst.Invalid, match=r"no group 'x' in the file 1\.nc"):
        opened(url, group="x")


def test_dask_names_and_other_processes(tmp_path):
    from dask.base import tokenize

    files = months(tmp_path / "m", 2)
    url = store_of(tmp_path, files)
    first, again = opened(url, chunks={}), opened(url, chunks={})
    assert tokenize(first) == tokenize(again) and first.t.data.name == again.t.data.name
    others = [month(tmp_path / f"t_2026-0{m}.nc", f"2026-0{m}-01", n) for m, n in ((1, 31), (2, 28))]
    other = opened(store_of(tmp_path, others, name="other"), chunks={})
    assert other.t.shape == first.t.shape and tokenize(other.t) != tokenize(first.t)
    plain = opened(url)
    xr.testing.assert_identical(pickle.loads(pickle.dumps(plain)).load(), together(files))
    fst.ingest(url, months(tmp_path / "m", 3)[2], progress=False)
    assert tokenize(opened(url, chunks={}).t) != tokenize(first.t)
    assert first.t.sizes["time"] == 59  # an opened Dataset stays unchanged


def test_many_runs_are_one_dataset(tmp_path):
    files = [month(tmp_path / f"r{n:03}.nc", "2026-01-01", 2, scale=0.01 + n / 1000) for n in range(60)]
    url = store_of(tmp_path, files)
    ds = opened(url, chunks={}, combine="run")
    assert ds.t.shape == (60, 2, 5, 8) and ds.sizes["run"] == 60
    with xr.open_dataset(files[42]) as one:
        np.testing.assert_array_equal(ds.t.sel(run="r042"), one.t)


def test_real_files_of_one_run(tmp_path):
    files = sorted(sample("netcdf4").glob("nemo_1m_*"))
    assert len(files) == 3
    ds = opened(store_of(tmp_path, files)).load()
    # Their dimension time_counter is 0 in each; time_centered distinguishes them.
    assert ds.tos.dims == ("time_counter", "y", "x") and ds.nav_lat.dims == ("y", "x")
    assert [str(t)[:10] for t in ds.time_centered.values] == ["2015-01-16", "2015-02-16", "2015-03-16"]
    nested = together(files, combine="nested", concat_dim="time_counter")
    xr.testing.assert_identical(ds, nested)


def test_what_is_joined_comes_out_as_one_file(tmp_path):
    mask = {"mask": (("lat", "lon"), np.arange(40, dtype="i2").reshape(5, 8), {})}
    files = months(tmp_path / "m", more=mask)
    url = store_of(tmp_path, files)
    with fst.open(url) as store:
        report = store.export("", tmp_path / "all.nc")
        assert report.files == (tmp_path / "all.nc",) and not report.skipped
        with xr.open_dataset(tmp_path / "all.nc") as got:
            xr.testing.assert_identical(got.load(), together(files))
            assert got.encoding["unlimited_dims"] == {"time"}
        store.export("variable=t,step=0", tmp_path / "first.nc")
        with xr.open_dataset(tmp_path / "first.nc") as got:
            assert got.sizes["time"] == 3
        (tmp_path / "out").mkdir()
        assert len(store.export("", tmp_path / "out").files) == 3
        fst.ingest(store, month(tmp_path / "again.nc", "2026-01-05", 3), progress=False)
        with pytest.raises(fst.Invalid, match=r"coordinate time of the files .* overlaps"):
            store.export("", tmp_path / "no.nc")
        assert not (tmp_path / "no.nc").exists()


def test_a_joined_file_is_packed_as_its_files_are(tmp_path):
    files = [month(tmp_path / f"{m}.nc", f"2026-0{m}-01", 20, scale=0.01) for m in (1, 2)]
    with fst.open(store_of(tmp_path, files)) as store:
        store.export("", tmp_path / "all.nc")
    with netCDF4.Dataset(tmp_path / "all.nc") as got, netCDF4.Dataset(files[1]) as second:
        got.set_auto_maskandscale(False)
        second.set_auto_maskandscale(False)
        assert got["t"].dtype == "i2" and set(got["t"].ncattrs()) == set(second["t"].ncattrs())
        np.testing.assert_array_equal(got["t"][20:], second["t"][:])

"""Queries of the catalog on the variables of ingested files: attributes, units, places and times."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import LONG, sample, share

netCDF4 = pytest.importorskip("netCDF4")
eccodes = pytest.importorskip("eccodes")
xr = pytest.importorskip("xarray")
from test_helper_netcdf import make  # noqa: E402


def take(store, paths, **options):
    return fst.ingest(store, paths, progress=False, **options)


def names(rows):
    return sorted({(row.run, row.name) for row in rows})


def test_a_variable_is_declared_as_its_file_says(tmp_path):
    store = fst.open(tmp_path / "store")
    take(store, make(tmp_path / "small.nc"))
    (t,) = store.variables(run="small", variable="t")
    assert (t.dtype, t.dims, t.shape, t.declared) == ("<i2", ("lat", "lon"), (3, 4), True)
    assert t.attrs == {"_FillValue": -99, "scale_factor": 0.5, "add_offset": 10.0}
    assert t.coords == {"lat": (10.0, 10.0)}
    (lat,) = store.variables(run="small", variable="lat")
    assert lat.attrs == {"units": "degrees_north"}
    params = store.run("small").params
    assert params["title"] == "a file" and params["numbers"][0] == 1.5 and math.isnan(params["numbers"][1])
    assert [(s.step, s.time) for s in store.steps(run="small", variable="t")] == [
        (0, 946684800.0),
        (1, 946706400.0),
    ]
    # A second ingest adds nothing: no version of a variable, no other parameter.
    before = store.version
    assert take(store, tmp_path / "small.nc").taken[0].fields == 0
    assert store.version == before


def test_attributes_are_terms_in_python_text_and_sql(tmp_path):
    store = fst.open(tmp_path / "store")
    take(store, make(tmp_path / "small.nc"))
    found = [("small", "lat")]
    assert names(store.variables(attr={"units": "degrees_north"})) == found
    assert names(store.variables(attr={"units": "degrees_n*"})) == found
    assert names(store.variables(attr={"units": fst.exact("degrees_n*")})) == []
    assert names(store.variables(attr={"scale_factor": fst.between(0.4, 0.6)})) == [("small", "t")]
    assert names(store.variables(attr={"units": fst.exists(), "bounds": "*"})) == [("small", "time")]
    assert [run.name for run in store.runs(attr={"title": "a *"})] == ["small"]
    assert [run.name for run in store.runs(attr={"title": "b *"})] == []
    rows = store.sql("select variable from variables where json_extract(attrs, '$.units') = 'degrees_north'")
    assert rows.to_pandas()["variable"].tolist() == ["lat"]
    with pytest.raises(fst.Invalid, match="attr"):
        store.variables(attr="units")
    # An attribute of the variable also restricts hits.
    run = store.run("small")
    run.annotate("note", 1, variable="t", step=0)
    run.annotate("note", 2, variable="lat")
    assert [hit.value for hit in store.attributes(tag="note", attr={"units": "degrees*"})] == [2]
    assert [hit.value for hit in store.find("tag=note and attr.scale_factor<1")] == [1]
    store.flush()


def test_other_content_under_a_name_is_another_version(tmp_path):
    store = fst.open(tmp_path / "store")
    for folder, units in (("a", "K"), ("b", "degC")):
        (tmp_path / folder).mkdir()
        with netCDF4.Dataset(tmp_path / folder / "x.nc", "w") as file:
            file.title = folder
            file.createDimension("n", 3)
            file.createVariable("t", "f4", ("n",))[:] = 1
            file["t"].units = units
    take(store, [tmp_path / "a" / "x.nc", tmp_path / "b" / "x.nc"])
    assert [(v.version, v.attrs["units"]) for v in store.variables(variable="t")] == [(0, "K"), (1, "degC")]
    assert store.run("x").params == {"title": "a"}, "the first file names the run's parameters"


def test_every_version_has_the_steps_of_its_name(tmp_path):
    for name, width in (("a", 3), ("b", 4)):
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "w") as file:
            file.createDimension("time", None)
            file.createDimension("n", width)
            file.createVariable("t", "f4", ("time", "n"))[:] = np.zeros((2, width))
    store = fst.open(tmp_path / "store")
    take(store, [tmp_path / "a.nc", tmp_path / "b.nc"], key={"run": "x"})
    assert [(v.version, v.shape) for v in store.variables(variable="t", step=1)] == [(0, (3,)), (1, (4,))]
    assert list(store.variables(variable="t", step=2)) == []


CALENDARS = (
    ("days since 2000-02-28", "standard", [0, 1, 2], ["2000-02-28", "2000-02-29", "2000-03-01"]),
    ("days since 2001-02-27", "noleap", [0, 1, 2], ["2001-02-27", "2001-02-28", "2001-03-01"]),
    ("days since 2001-02-28", "360_day", [0, 1, 3], ["2001-02-28", "2001-03-01", "2001-03-01"]),
    ("hours since 1700-01-01", "proleptic_gregorian", [0, 24, 30], ["1700-01-01", "1700-01-02", None]),
)


@pytest.mark.parametrize(("units", "calendar", "values", "dates"), CALENDARS)
def test_times_of_steps_are_dates_whatever_the_calendar(tmp_path, units, calendar, values, dates):
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("n", 2)
        file.createVariable("time", "f8", ("time",))[:] = values
        file["time"].setncatts({"units": units, "calendar": calendar})
        file.createVariable("t", "f4", ("time", "n"))[:] = np.zeros((3, 2))
    store = fst.open(tmp_path / "store")
    take(store, tmp_path / "x.nc")
    for step, day in enumerate(dates):
        if day:
            moment = datetime.fromisoformat(day).replace(tzinfo=UTC)
            assert step in [s.step for s in store.steps(time=moment)], day
    first = datetime.fromisoformat(dates[0]).replace(tzinfo=UTC)
    assert [s.step for s in store.steps(time=fst.above(first))] == [1, 2]
    assert names(store.variables(time=fst.at_most(first))) == [("x", "t")]
    assert names(store.variables(time=fst.below(first))) == []


def test_times_before_the_year_1_are_times(tmp_path):
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("n", 2)
        file.createVariable("time", "f8", ("time",))[:] = [0, 366]
        file["time"].setncatts({"units": "days since 0000-01-01", "calendar": "proleptic_gregorian"})
        file.createVariable("t", "f4", ("time", "n"))[:] = np.zeros((2, 2))
    store = fst.open(tmp_path / "store")
    take(store, tmp_path / "x.nc")
    assert [step.time for step in store.steps(variable="t")] == [-86400.0 * 719528, -86400.0 * 719162]


def test_many_variables_are_declared_in_several_frames(monkeypatch):
    from fieldstone._helper import declare

    monkeypatch.setattr(declare, "FRAME", 500)
    monkeypatch.setattr(declare, "LONGEST", 2000)
    declared = declare.Declared(attrs=[["title", {"text": "x"}]])
    declared.arrays = [np.arange(n, dtype="f8") + n for n in (2, 3, 4)]
    facts = {"dtype": "<f4", "dims": ["y"], "attrs": []}
    declared.variables = [
        {"name": f"v{i}", "shape": [2 + i % 3], "coords": [[0, i % 3]], **facts} for i in range(40)
    ]
    declared.variables.append({"name": "long", "shape": [], "coords": [], **facts, "attrs": ["x" * 3000]})
    seen = []
    frames = list(declared.frames())
    assert len(frames) > 5 and [bool(frame["attrs"]) for frame, _ in frames] == [True] + [False] * (
        len(frames) - 1
    )
    for frame, payload in frames:
        ends = np.cumsum(frame["arrays"])
        arrays = np.split(payload.view("<f8"), ends)[:-1]
        assert len(payload) == 8 * sum(frame["arrays"]) and frame["times"] is None
        for variable in frame["variables"]:
            ((_, at),) = variable["coords"]
            n = 2 + int(variable["name"][1:]) % 3
            assert arrays[at].tolist() == (np.arange(n) + n).tolist()
            seen.append(variable["name"])
    assert seen == [f"v{i}" for i in range(40)], "a variable that is too long stays in the header"


def test_show_and_plot_know_what_is_declared_and_unpack(tmp_path):
    with netCDF4.Dataset(tmp_path / "sat.nc", "w") as file:
        file.createDimension("y", 2)
        file.createDimension("x", 3)
        height = file.createVariable("height", "i2", ("y", "x"), fill_value=np.int16(-1))
        height.setncatts({"_Unsigned": "true", "scale_factor": np.float32(0.25), "units": "m"})
        height.set_auto_maskandscale(False)
        height[:] = np.array([[0, -2, -1], [4, 8, -30000]], "i2")
        sst = file.createVariable("sst", "f4", ("y", "x"), fill_value=np.float32(1e20))
        sst[:] = np.ma.masked_array(np.arange(6).reshape(2, 3) + 270.5, [[0, 1, 0], [0, 0, 0]])
    store = fst.open(tmp_path / "store")
    take(store, tmp_path / "sat.nc")
    run = store.create_run("study")
    attrs = {"units": "K", "long_name": "temperature"}
    run.create_variable("T", "f4", (2, 3), dims=("y", "x"), attrs=attrs, coords={"x": [10.0, 10.5, 11.0]})
    run.write("T", 0, np.arange(6, dtype="f4").reshape(2, 3))
    store.close()

    def program(verb, key):
        program = Path(sys.executable).with_name("fieldstone")
        done = subprocess.run(
            [program, verb, tmp_path / "store", key, "--json"], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    with xr.open_dataset(tmp_path / "sat.nc") as ds:
        for name in ("height", "sst"):
            drawn = program("plot", f"run=sat,variable={name}")
            expected = (float(ds[name].min()), float(ds[name].max()), int(ds[name].isnull().sum()))
            assert (drawn["min"], drawn["max"], drawn["missing"]) == expected
    shown = program("show", "run=sat,variable=height")
    assert shown["values"] == [0.0, 16383.5, "NaN"] and shown["attributes"]["dimensions"] == "y, x"
    assert program("show", "run=sat,variable=sst")["attributes"]["_FillValue"] == float(np.float32(1e20))
    key = "run=study,variable=T,step=0"
    assert program("plot", key)["label"] == "temperature (K)"
    assert program("show", key)["attributes"] == {"dimensions": "y, x", **attrs}


def test_an_unlimited_dimension_along_the_ground_is_not_split(tmp_path):
    with netCDF4.Dataset(tmp_path / "image.nc", "w") as file:
        file.createDimension("y", None)
        file.createDimension("x", 3)
        file.createVariable("y", "f4", ("y",))[:] = [1, 2]
        file["y"].axis = "Y"
        file.createVariable("t", "f4", ("y", "x"))[:] = np.ones((2, 3))
    store = fst.open(tmp_path / "store")
    take(store, tmp_path / "image.nc")
    assert store.get("run=image,variable=t").shape == (2, 3)
    with xr.open_dataset(tmp_path / "store", engine="fieldstone") as ours:
        xr.testing.assert_identical(ours.load(), xr.load_dataset(tmp_path / "image.nc"))
        assert ours.encoding["unlimited_dims"] == {"y"}


# -- places


def grids(folder):
    """A file for each kind of grid; for each the variables with their points."""
    points = {}

    def file(name):
        return netCDF4.Dataset(folder / f"{name}.nc", "w")

    def keep(run, variable, lats, lons):
        points[run, variable] = np.broadcast_arrays(lats, lons)

    lat, lon = np.linspace(-90, 90, 19), np.arange(0, 360, 10.0)
    with file("regular") as f:
        for name, values, units in (("lat", lat[::-1], "degrees_north"), ("lon", lon, "degrees_east")):
            f.createDimension(name, len(values))
            f.createVariable(name, "f8", (name,))[:] = values
            f[name].units = units
        f.createDimension("time", 2)
        f.createVariable("time", "f8", ("time",))[:] = [0, 1]
        f.createVariable("t", "f4", ("time", "lat", "lon"))[:] = 0
    keep("regular", "t", lat[:, None], lon[None])
    with file("regional") as f:
        f.createDimension("latitude", 3)
        f.createDimension("longitude", 4)
        # Packed, with values that are the coordinates only after they are scaled.
        for name, values in (("latitude", [50, 51, 52]), ("longitude", [-181, -180, -179, -178])):
            v = f.createVariable(name, "i2", (name,))
            v.setncatts(
                {"scale_factor": 0.5, "units": "degrees_north" if name == "latitude" else "degrees_east"}
            )
            v[:] = values
        f.createVariable("t", "f4", ("latitude", "longitude"))[:] = 0
    keep("regional", "t", np.array([50, 51, 52])[:, None], np.array([-181, -180, -179, -178])[None])
    with file("curved") as f:
        f.createDimension("j", 5)
        f.createDimension("i", 6)
        rows, columns = np.meshgrid(np.arange(5), np.arange(6), indexing="ij")
        lats, lons = 30 + 3 * rows + columns, 170 + 4 * columns - 2 * rows
        missing = (rows + columns) % 4 == 0
        for name, values, standard in (("glat", lats, "latitude"), ("glon", lons, "longitude")):
            v = f.createVariable(name, "f4", ("j", "i"), fill_value=1e20)
            v.standard_name = standard
            v[:] = np.ma.masked_array(values, missing)
        f.createVariable("t", "f4", ("j", "i"))[:] = 0
        f["t"].coordinates = "glat glon"
    keep("curved", "t", np.where(missing, np.nan, lats), np.where(missing, np.nan, lons))
    with file("cells") as f:
        f.createDimension("cell", 7)
        grid = f.createGroup("grid")
        for name, values, units in (
            ("clat", np.deg2rad(np.arange(7) * 10.0), "radian"),
            ("clon", np.deg2rad(np.arange(7) * 50.0), "radian"),
        ):
            grid.createVariable(name, "f8", ("cell",))[:] = values
            grid[name].setncatts(
                {"units": units, "standard_name": "latitude" if name == "clat" else "longitude"}
            )
        grid.createVariable("t", "f4", ("cell",))[:] = 0
        grid["t"].coordinates = "clat clon"
    keep("cells", "grid/t", np.arange(7) * 10.0, np.arange(7) * 50.0)
    with file("station") as f:
        for name, value, units in (("lat", 47.5, "degrees_north"), ("lon", 190.0, "degrees_east")):
            f.createVariable(name, "f8", ())[...] = value
            f[name].units = units
        f.createDimension("n", 4)
        f.createVariable("t", "f4", ("n",))[:] = 0
        f["t"].coordinates = "lat lon"
    keep("station", "t", np.array(47.5), np.array(190.0))
    return points


def lies_in(lats, lons, south, north, west, east):
    """Whether a point is in a box, for each point."""
    width = east - west if east >= west else (east - west) % 360
    inside = (lats >= south) & (lats <= north) & ((width >= 360) | ((lons - west) % 360 <= width))
    return bool(np.any(inside & ~np.isnan(lats)))


def test_what_has_a_point_in_a_box_is_found_on_every_grid(tmp_path):
    points = grids(tmp_path)
    store = fst.open(tmp_path / "store")
    report = take(store, sorted(tmp_path.glob("*.nc")))
    assert len(report.taken) == 5 and not report.skipped
    draw = random.Random(7)
    boxes = [(30, 60, 170, -170), (30, 60, -10, 10), (-90, 90, 0, 360), (89, 90, 0, 1), (0, 0, 355, 5)]
    boxes += [
        (
            south := draw.uniform(-90, 80),
            south + draw.uniform(0, 40),
            draw.uniform(-180, 360),
            draw.uniform(-180, 360),
        )
        for _ in range(150)
    ]
    seen = set()
    for south, north, west, east in boxes:
        radians = [math.radians(x) for x in (south, north, west, east)]
        expected = set()
        for (run, variable), (lats, lons) in points.items():
            if lies_in(lats, lons, south, north, west, east):
                expected.add((run, variable))
        found = store.variables(
            variable=["t", "grid/t"], box={"lat": fst.between(south, north), "lon": fst.between(west, east)}
        )
        of_degrees = {one for one in expected if one[0] != "cells"}
        assert {row for row in names(found) if row[0] != "cells"} == of_degrees, (south, north, west, east)
        # Queries on radians are in radians.
        found = store.variables(
            run="cells",
            variable="grid/t",
            box={"lat": fst.between(*radians[:2]), "lon": fst.between(*radians[2:])},
        )
        assert set(names(found)) == {one for one in expected if one[0] == "cells"}, (south, north, west, east)
        seen |= expected
    assert seen == set(points), "every grid was found by some box"
    # Only one range, under other names; runs and steps that have it; text.
    only = {"latitude": fst.between(85, 90)}
    assert names(store.variables(variable="t", box=only)) == [("regular", "t")]
    assert [run.name for run in store.runs(variable="t", box=only)] == ["regular"]
    assert [(s.run, s.step) for s in store.steps(variable="t", box=only)] == [("regular", 0), ("regular", 1)]
    assert names(store.variables("variable=t and box(lat=85..90)")) == [("regular", "t")]
    with pytest.raises(fst.Invalid, match="no variable that matches has a dimension 'altitude'"):
        store.variables(box={"altitude": fst.between(0, 1)})


def test_boxes_of_attributes_on_curved_grids(tmp_path):
    points = grids(tmp_path)
    store = fst.open(tmp_path / "store")
    take(store, tmp_path / "curved.nc")
    run = store.run("curved")
    lats, lons = points["curved", "t"]
    draw = random.Random(3)
    boxes = {}
    for at in range(60):
        start = (draw.randrange(5), draw.randrange(6))
        count = (draw.randint(1, 5 - start[0]), draw.randint(1, 6 - start[1]))
        run.annotate("box", at, variable="t", start=start, count=count)
        # Another one on the same box corrects the first.
        boxes[start, count] = at, tuple(slice(s, s + c) for s, c in zip(start, count, strict=True))
    store.flush()
    for _ in range(40):
        south, west = draw.uniform(28, 48), draw.uniform(150, 200)
        ranges = (south, south + draw.uniform(0, 8), west, west + draw.uniform(0, 20))
        box = {"lat": fst.between(*ranges[:2]), "lon": fst.between(*ranges[2:])}
        hits = {hit.value for hit in store.attributes(tag="box", box=box)}
        assert hits == {at for at, part in boxes.values() if lies_in(lats[part], lons[part], *ranges)}


def test_a_coordinate_that_is_written_again_is_read_again(tmp_path):
    store = fst.open(tmp_path / "store")
    run = store.create_run("a")
    run.create_variable("lat", "f8", (3,), dims=("cell",), attrs={"units": "degrees_north"})
    run.create_variable("t", "f4", (3,), dims=("cell",))
    store.archive({"run": "a", "variable": "lat"}, np.array([1.0, 2, 3]))
    store.flush()
    box = {"lat": fst.between(2.5, 4)}
    assert names(store.variables(variable="t", box=box)) == [("a", "t")]
    store.archive({"run": "a", "variable": "lat"}, np.array([1.0, 2, 2]))
    store.flush()
    assert names(store.variables(variable="t", box=box)) == []


def test_files_of_one_run_have_each_its_own_coordinates(tmp_path):
    # Tiles of one name and shape: the second is added next to the first, under `source`.
    for folder, scale in (("a", 1.0), ("b", 10.0)):
        (tmp_path / folder).mkdir()
        with netCDF4.Dataset(tmp_path / folder / "tile.nc", "w") as file:
            file.createDimension("cell", 3)
            file.createVariable("lat", "f4", ("cell",))[:] = scale * np.array([1, 3, 2])
            file["lat"].units = "degrees_north"
            file.createVariable("t", "f4", ("cell",))[:] = 0
            file["t"].coordinates = "lat"
    store = fst.open(tmp_path / "store")
    take(store, [tmp_path / "a" / "tile.nc", tmp_path / "b" / "tile.nc"])
    for low, high, expected in ((1, 3, True), (4, 9, False), (29, 50, True), (31, 90, False)):
        found = store.variables(variable="t", box={"lat": fst.between(low, high)})
        assert bool(list(found)) is expected, (low, high)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_files_of_one_run_unpack_their_coordinates_each_in_its_own_way(tmp_path, order):
    for folder, scale, values in (("a", 1.0, [1, 3, 2]), ("b", 10.0, [10, 30, 20])):
        (tmp_path / folder).mkdir()
        with netCDF4.Dataset(tmp_path / folder / "tile.nc", "w") as file:
            file.createDimension("cell", 3)
            lat = file.createVariable("lat", "i2", ("cell",), fill_value=-1)
            lat.units, lat.scale_factor, lat.add_offset = "degrees_north", scale, 0.0
            lat[:] = values  # stored as 1, 3, 2 in both files
            file.createVariable("t", "f4", ("cell",))[:] = 0
            file["t"].coordinates = "lat"
    store = fst.open(tmp_path / "store")
    take(store, [tmp_path / folder / "tile.nc" for folder in order])
    for low, high, expected in ((1, 3, True), (4, 9, False), (29, 50, True), (31, 90, False)):
        found = store.variables(variable="t", box={"lat": fst.between(low, high)})
        assert bool(list(found)) is expected, (low, high)


# -- real files


def points_of(path):
    """The variables of a file for which xarray finds latitudes and longitudes in degrees, with these."""
    found = {}
    with xr.open_dataset(path, decode_times=False) as ds:
        for name, variable in ds.data_vars.items():
            axes = {}
            for word, ends in (("latitude", "north"), ("longitude", "east")):
                for coordinate in variable.coords.values():
                    units = str(coordinate.attrs.get("units", ""))
                    if units in (f"degrees_{ends}", f"degree_{ends}"):
                        axes.setdefault(word, coordinate)
            if len(axes) == 2:
                lats, lons = xr.broadcast(axes["latitude"], axes["longitude"])
                found[str(name)] = lats.values.ravel(), lons.values.ravel()
    return found


def test_real_files_are_found_as_their_points_lie(tmp_path):
    folders = [sample("netcdf-classic"), sample("netcdf4")]
    paths = [path for folder in folders for path in sorted(folder.glob("*.nc"))]
    paths = share((path for path in paths if path.stat().st_size < 20 << 20), 2)
    store = fst.open(tmp_path / "store")
    taken = {t.path for t in take(store, paths).taken}
    held = names(store.variables())
    points = {}
    for path in sorted(taken):
        try:
            of_file = points_of(path)
        except (ValueError, OSError, TypeError):  # xarray itself cannot open it
            continue
        points |= {(path.stem, name): of for name, of in of_file.items() if (path.stem, name) in held}
    assert len(points) > (20 if LONG else 8)
    for south, north, west, east in (
        (30, 60, 170, -170),
        (-5, 5, -20, 20),
        (80, 90, 0, 360),
        (40, 50, 0, 15),
    ):
        box = {"lat": fst.between(south, north), "lon": fst.between(west, east)}
        found = set(names(store.variables(box=box)))
        for one, (lats, lons) in points.items():
            assert (one in found) == lies_in(lats, lons, south, north, west, east), (one, box)


def test_grib_is_found_by_name_unit_place_and_date(tmp_path):
    store = fst.open(tmp_path / "store", schema="mars")
    # If increments contradict the first and the last point, eccodes' list changes from call to call.
    sound = (path for path in sorted(sample("grib").glob("*.grib*")) if "wrong_increment" not in path.name)
    paths = share((path for path in sound if path.stat().st_size < 2 << 20), 2)
    take(store, paths)
    # Brute force over every message: its name, and the place of its points.
    expected: dict[tuple[str, str], list[tuple[np.ndarray, np.ndarray]]] = {}
    units: dict[tuple[str, str], set[str]] = {}
    grids: dict[str, tuple[np.ndarray, np.ndarray] | None] = {}
    for field in store.retrieve():
        key = dict(field.key)
        handle = eccodes.codes_new_from_message(field.read())
        try:
            said = ("gridType", "Ni", "Nj", "latitudeOfFirstGridPoint", "longitudeOfFirstGridPoint")
            grid = eccodes.codes_get_string(handle, "md5GridSection")
            grid += "".join(str(eccodes.codes_get(handle, n, str)) for n in said if has(handle, n))
            if grid not in grids:
                grids[grid] = points_of_message(handle)
            one = (run_of(key), key["param"])
            units.setdefault(one, set()).add(eccodes.codes_get_string(handle, "units"))
            if grids[grid] is not None:
                expected.setdefault(one, []).append(grids[grid])
        finally:
            eccodes.codes_release(handle)
    kelvin = {one for one, all in units.items() if "K" in all}
    assert set(names(store.variables(attr={"units": "K"}))) == kelvin and kelvin
    for south, north, west, east in (
        (30, 60, 170, -170),
        (-5, 5, -20, 20),
        (85, 90, 0, 360),
        (47, 48, 10, 12),
    ):
        box = {"lat": fst.between(south, north), "lon": fst.between(west, east)}
        found = set(names(store.variables(box=box)))
        held = {
            one
            for one, all in expected.items()
            if any(lies_in(lats, lons, south, north, west, east) for lats, lons in all)
        }
        assert found == held, (box, found ^ held)


def has(handle, name):
    return eccodes.codes_is_defined(handle, name)


def points_of_message(handle):
    """Latitudes and longitudes of all points; None if eccodes finds none.

    Points of a regular grid are evenly spaced from the first to the last.
    """
    if eccodes.codes_get_string(handle, "gridType") == "regular_ll":
        (south, north), (west, east) = (
            [
                eccodes.codes_get(handle, f"{name}Of{end}GridPointInDegrees", float)
                for end in ("First", "Last")
            ]
            for name in ("latitude", "longitude")
        )
        nj, ni = (eccodes.codes_get(handle, n, int) for n in ("Nj", "Ni"))
        forth = (
            (east - west) % 360
            if not eccodes.codes_get(handle, "iScansNegatively", int)
            else -((west - east) % 360)
        )
        lats, lons = np.meshgrid(
            np.linspace(south, north, nj), west + np.linspace(0, forth, ni), indexing="ij"
        )
        return lats.ravel(), lons.ravel()
    try:
        return tuple(
            np.asarray(eccodes.codes_get_double_array(handle, n)) for n in ("latitudes", "longitudes")
        )
    except eccodes.CodesInternalError:
        return None


def run_of(key):
    """The name of the run to which a MARS key belongs."""
    first = [key["centre"]] if "class" not in key else [key[word] for word in ("class", "expver", "stream")]
    return "/".join([*first, key.get("date", ""), key.get("time", "")])

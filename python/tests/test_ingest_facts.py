"""Facts of a file besides its values: times of steps, unlimited dimensions, extremes."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")


def opened(url, **options):
    return xr.open_dataset(url, engine="fieldstone", **options)


def test_nanoseconds_give_steps_their_times(tmp_path):
    times = np.array(["2000-01-01T00:00:00.000000001", "2000-01-01T00:00:00.5"], "M8[ns]")
    ds = xr.Dataset({"a": (("time", "x"), np.zeros((2, 2)))}, {"time": times})
    units = ["nanoseconds", "microseconds", "milliseconds", "seconds", "minutes", "hours", "days"]
    for unit in [None, *units]:
        path = tmp_path / f"{unit}.nc"
        ds.time.encoding = {"units": f"{unit} since 2000-01-01", "dtype": "f8"} if unit else {}
        ds.to_netcdf(path, engine="netcdf4")
        fst.ingest(str(tmp_path / "s"), path, progress=False)
        found = [s.time for s in fst.open(str(tmp_path / "s"), "r").steps(run=str(unit))]
        assert len(found) == 2 and abs(found[0] - 946684800) < 1e-5 and abs(found[1] - 946684800.5) < 1e-5, (
            unit
        )


def test_unlimited_dimensions_are_those_of_the_file(taken):
    def fill(file):
        file.createDimension("time", None)
        file.createDimension("x", 2)
        file.createVariable("a", "f4", ("x",))[:] = 1
        group = file.createGroup("g")
        group.createDimension("n", None)
        group.createVariable("b", "f4", ("n",))[:] = [1, 2]

    url, path = taken(fill)
    for group in (None, "g"):
        with xr.open_dataset(path, group=group) as want:
            got = opened(url, group=group)
            assert got.encoding["unlimited_dims"] == want.encoding["unlimited_dims"]
    fst.to_store(opened(url).load(), url, {"run": "b"})
    assert opened(url, request={"run": "b"}).encoding["unlimited_dims"] == {"time"}


@pytest.mark.parametrize("copy", [True, False])
def test_the_least_and_greatest_value_leave_out_what_stands_for_nothing(taken, copy):
    def fill(file):
        file.createDimension("x", 4)
        for name, kind, values, attrs in (
            ("packed", "i2", [-99, 4, 10, -99], {"_FillValue": np.int16(-99), "scale_factor": 0.5}),
            ("old", "f4", [1e20, 1, 2, -5], {"missing_value": np.array([1e20, -5], "f4")}),
            ("both", "f8", [np.nan, 1, 2, -5], {"_FillValue": -5.0}),
            ("other", "i2", [1, 2, 3, 4], {"missing_value": np.float32(1e20)}),
            ("none", "i4", [7, 7, 7, 7], {"_FillValue": np.int32(7)}),
        ):
            made = {"fill_value": attrs.pop("_FillValue")} if "_FillValue" in attrs else {}
            variable = file.createVariable(name, kind, ("x",), **made)
            variable.setncatts(attrs)
            variable.set_auto_maskandscale(False)
            variable[:] = values

    url, _ = taken(fill, format="NETCDF3_CLASSIC", copy=copy)
    found = {
        e.key["variable"]: (e.min, e.max, e.missing)
        for e in fst.open(url, "r").list("variable=packed/old/both/other/none")
    }
    assert found == {
        "packed": (2.0, 5.0, 2),
        "old": (1.0, 2.0, 2),
        "both": (1.0, 2.0, 2),
        "other": (1, 4, 0),
        "none": (None, None, 4),
    }


def test_runs_that_share_no_dataset_are_one_kind_of_conflict():
    with fst.open("memory:") as store:
        for name, shape in (("a", (2, 3)), ("b", (2, 4))):
            store.archive({"run": name, "variable": "t", "step": 0}, np.zeros(shape))
        store.flush()
        with pytest.raises(fst.Conflict, match="differ in type or shape"):
            store.to_xarray()

"""The xarray engine over fields sent by the helper, in a stand-in for a store."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import sample
from helper_pipe import Shelf, ingest
from test_helper_grib import message
from test_helper_netcdf import make

xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")
from fieldstone.xarray_engine import FieldstoneBackend, to_xarray  # noqa: E402


def same_as_file(shelf, path, **options):
    with xr.open_dataset(path, engine="netcdf4", **options) as expected:
        got = to_xarray(shelf)
        xr.testing.assert_identical(got, expected)
        assert list(got.variables) == list(expected.variables)
        for name in expected.variables:
            assert got[name].dtype == expected[name].dtype, name
            for fact in ("dtype", "scale_factor", "add_offset", "units", "calendar"):
                assert str(got[name].encoding.get(fact)) == str(expected[name].encoding.get(fact)), name
        assert got.encoding["unlimited_dims"] == expected.encoding["unlimited_dims"]


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_an_ingested_file_opens_as_that_file(tmp_path, form):
    path = make(tmp_path / "small.nc", form)
    same_as_file(Shelf().take(ingest(path)), path)


@pytest.mark.parametrize(
    "name",
    [
        "netcdf-classic/eraint_uvz.nc",
        "netcdf-classic/ref_nctest_classic.nc",
        "netcdf-classic/space_weather.nc",
        "netcdf4/era5-levels-members.nc",
        "netcdf4/nemo_1m_20150101-20150201_grid-T.nc",
        "netcdf4/vlstr_type.nc",
        "netcdf4/orca2_votemper.nc",
    ],
)
def test_a_real_file_opens_as_that_file(name):
    path = sample(name)
    same_as_file(Shelf().take(ingest(path)), path)


def test_a_repr_reads_nothing_and_a_point_reads_one_small_box(tmp_path):
    shelf = Shelf().take(ingest(make(tmp_path / "small.nc")))
    ds = to_xarray(shelf)
    shelf.reads.clear()
    repr(ds), ds.t.isel(time=0), ds.sizes
    assert shelf.reads == []
    assert float(ds.t[1, 2, 3]) == (23 - 99) * 0.5 + 10
    assert [(k["step"], s, c) for k, s, c in shelf.reads] == [("1", (2, 3), (1, 1))]


def test_every_kind_of_index_gives_what_numpy_gives(tmp_path):
    shelf = Shelf()
    whole = np.arange(4 * 5 * 6.0).reshape(4, 5, 6)
    for step in range(4):
        shelf.put({"run": "a", "variable": "v", "step": step}, whole[step])
    v = to_xarray(shelf)["v"]
    assert v.dims == ("step", "dim_0", "dim_1")
    cases = [
        np.s_[:],
        np.s_[1],
        np.s_[-1, :, 2],
        np.s_[::2, 1:4, ::-1],
        np.s_[1:1],
        np.s_[:, 3:3, :],
        np.s_[..., 5],
        np.s_[2:0:-1, -2, 1::2],
    ]
    for case in cases:
        np.testing.assert_array_equal(v[case].values, whole[case], err_msg=str(case))
    np.testing.assert_array_equal(
        v.isel(step=[3, 0], dim_0=[4, 4, 1], dim_1=slice(None, None, 2)).values,
        whole[np.ix_([3, 0], [4, 4, 1], [0, 2, 4])],
    )


def test_fields_written_by_key_get_a_dimension_per_keyword_with_several_values():
    shelf = Shelf()
    for run in ("a", "b"):
        for step in (0, 6, 12):
            shelf.put({"run": run, "variable": "t", "step": step}, np.full((2, 3), step, "i4"))
    shelf.put({"run": "a", "variable": "t", "step": 18}, np.full((2, 3), 18, "i4"))
    ds = to_xarray(shelf)
    assert dict(ds.sizes) == {"run": 2, "step": 4, "dim_0": 2, "dim_1": 3}
    assert ds.step.values.tolist() == [0, 6, 12, 18]
    assert ds.t.sel(run="a", step=18).values.tolist() == [[18] * 3] * 2
    assert np.isnan(ds.t.sel(run="b", step=18)).all()
    one = to_xarray(shelf, {"run": "b"})
    assert (dict(one.sizes), str(one.run.values), one.t.dtype) == (
        {"step": 3, "dim_0": 2, "dim_1": 3},
        "b",
        np.dtype("i4"),
    )


def test_a_request_narrows_an_ingested_file(tmp_path):
    shelf = Shelf().take(ingest(make(tmp_path / "small.nc")))
    ds = to_xarray(shelf, {"variable": "t", "step": 1})
    assert list(ds.data_vars) == ["t"]
    assert dict(ds.sizes) == {"time": 1, "lat": 3, "lon": 4}
    assert ds.time.dt.hour.values.tolist() == [6]


def test_several_files_ask_for_a_choice(tmp_path):
    shelf = Shelf().take(ingest(make(tmp_path / "one.nc"))).take(ingest(make(tmp_path / "two.nc")))
    with pytest.raises(ValueError, match="run=one, run=two"):
        to_xarray(shelf)
    assert "t" in to_xarray(shelf, {"run": "two"})


def test_a_dataset_can_be_pickled_and_computed_elsewhere(tmp_path):
    shelf = Shelf().take(ingest(make(tmp_path / "small.nc")))
    ds = pickle.loads(pickle.dumps(to_xarray(shelf)))
    xr.testing.assert_identical(ds, to_xarray(shelf))


def test_guess_knows_a_store_from_other_folders(tmp_path):
    guess = FieldstoneBackend().guess_can_open
    assert not guess(tmp_path)
    (tmp_path / "fieldstone.store").write_bytes(b"")
    assert guess(tmp_path)
    assert guess("fieldstone://host:1")
    assert not guess(str(tmp_path / "fieldstone.store"))
    assert not guess(object())


def test_grib_fields_get_dimensions_from_their_axes(tmp_path):
    path = tmp_path / "cube.grib"
    path.write_bytes(
        b"".join(
            message(
                level=level, date=20240101, time=0, stepRange=step, values=np.full(496, level + step + 0.0)
            )
            for step in (0, 6)
            for level in (1000, 500, 850)
        )
    )
    shelf = Shelf().take(ingest(path))
    ds = to_xarray(shelf)
    assert dict(ds.sizes) == {"step": 2, "levelist": 3, "latitude": 31, "longitude": 16}
    assert ds.t.dims == ("step", "levelist", "latitude", "longitude")
    assert float(ds.t.sel(step=6, levelist=850)[3, 4]) == 856
    assert ds.valid_time.sel(step=6).values == np.datetime64("2024-01-01T06:00")
    assert (ds.t.attrs["units"], ds.latitude.attrs["units"]) == ("K", "degrees_north")
    shelf.reads.clear()
    repr(ds)
    assert shelf.reads == []


def test_real_grib_values_are_those_of_eccodes():
    eccodes = pytest.importorskip("eccodes")
    path = sample("grib/era5-levels-members.grib")
    ds = to_xarray(Shelf().take(ingest(path)))
    assert dict(ds.sizes) == {
        "number": 10,
        "date": 2,
        "time": 2,
        "levelist": 2,
        "latitude": 61,
        "longitude": 120,
    }
    with open(path, "rb") as file:
        handle = eccodes.codes_grib_new_from_file(file)
        expected = eccodes.codes_get_values(handle).reshape(61, 120)
        place = {k: eccodes.codes_get(handle, k) for k in ("number", "level", "shortName")}
        eccodes.codes_release(handle)
    first = ds[place["shortName"]].sel(number=place["number"], levelist=place["level"]).isel(date=0, time=0)
    np.testing.assert_array_equal(first.values, expected)
    np.testing.assert_array_equal(ds.latitude.values[[0, -1]], [90, -90])

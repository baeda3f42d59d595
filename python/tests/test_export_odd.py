"""Exports of objects that netCDF-C reads but cannot create, of joined files, of classic files byte for
byte."""

from __future__ import annotations

import warnings

import fieldstone as fst
import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")


def opened(url, **options):
    return xr.open_dataset(url, engine="fieldstone", **options)


@pytest.mark.parametrize("format", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_an_exported_classic_file_is_padded_as_netcdf_pads_it(taken, format):
    def fill(file):
        file.createDimension("x", 3)
        file.createDimension("time", None)
        for name, kind, dims in (
            ("a", "i2", "x"), ("b", "i1", "x"), ("c", "S1", "x"), ("d", "i2", "time x"), ("e", "i1", "time"),
            ("f", "f8", "time x"),
        ):  # fmt: skip
            file.createVariable(name, kind, dims.split(), fill_value=5 if name == "b" else None)
        file["a"][:], file["b"][:], file["c"][:] = 7, 8, np.array(list("xyz"), "S1")
        file["d"][:], file["e"][:], file["f"][:] = np.arange(9).reshape(3, 3), [1, 2, 3], np.ones((3, 3))

    url, path = taken(fill, format=format)
    with fst.open(url) as store:
        store.export("", path.with_name("out.nc"))
    assert path.with_name("out.nc").read_bytes() == path.read_bytes()


def test_texts_of_hdf5_are_exported(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("name", data=np.array(["a", "bb"], object), dtype=h5py.string_dtype())
        file.create_group("g")["fixed"] = np.array([b"abc", b"d"])
        file["g/v"] = np.arange(3.0)
    fst.ingest(tmp_path / "s", path, progress=False)
    with fst.open(tmp_path / "s") as store:
        store.export("", tmp_path / "o.nc")
    with xr.open_dataset(tmp_path / "o.nc") as got, xr.open_dataset(tmp_path / "o.nc", group="g") as inner:
        assert got.name.values.tolist() == ["a", "bb"] and inner.v.values.tolist() == [0, 1, 2]


def two(tmp_path, change=lambda file, n: None, calendar="standard"):
    paths = []
    for n, units in enumerate(("days since 2001-01-01", "days since 2004-02-28")):
        paths.append(tmp_path / f"f{n}.nc")
        with netCDF4.Dataset(paths[-1], "w") as file:
            file.createDimension("time", None)
            file.createDimension("x", 3)
            time = file.createVariable("time", "f8", ("time",))
            time[:] = [0, 1]
            time.setncatts({"units": units, "calendar": calendar})
            file.createVariable("a", "f4", ("time", "x"), fill_value=-1)[:] = [[n, 1, -1]] * 2
            packed = file.createVariable("p", "i2", ("time", "x"))
            packed.scale_factor = 0.5
            packed[:] = n
            change(file, n)
    fst.ingest(str(tmp_path / "s"), paths, progress=False)
    return str(tmp_path / "s")


def characters(file, n):
    file.createDimension("len", 4)
    file.createVariable("Times", "S1", ("time", "len"))[:] = np.array(
        [list(f"d{n}.0"), list(f"d{n}.1")], "S1"
    )
    file.createVariable("text", str, ("time",))[:] = np.array([f"t{n}", "é"], object)


@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
@pytest.mark.parametrize("change", [lambda file, n: None, characters], ids=["numbers", "characters"])
def test_joined_files_are_one_file_and_one_zarr_store(tmp_path, calendar, change):
    url = two(tmp_path, change, calendar)
    want = opened(url).load()
    assert want.sizes["time"] == 4
    with fst.open(url) as store:
        store.export("", tmp_path / "one.nc")
    with xr.open_dataset(tmp_path / "one.nc") as got:
        xr.testing.assert_equal(got.load(), want)
    pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = xr.open_zarr(fst.zarr_store(url)).load()
    assert set(got.variables) == set(want.variables)
    for name in want.variables:
        xr.testing.assert_equal(got[name].astype(want[name].dtype), want[name])

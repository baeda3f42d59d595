"""Text in files: characters that mean missing, attributes padded with NUL."""

from __future__ import annotations

import contextlib
import ctypes

import fieldstone as fst
import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")


def opened(url, **options):
    return xr.open_dataset(url, engine="fieldstone", **options)


@pytest.mark.parametrize("format", ["NETCDF3_CLASSIC", "NETCDF4"])
@pytest.mark.parametrize("concat", [True, False])
def test_characters_equal_to_their_fill_value_are_missing(taken, format, concat):
    def fill(file):
        file.createDimension("n", 3)
        file.createDimension("len", 4)
        file.createVariable("qc", "S1", ("n",), fill_value=b" ")[:] = np.array([b"1", b" ", b"4"])
        text = file.createVariable("text", "S1", ("n", "len"), fill_value=b"-")
        text[:] = np.array([list("ab--"), list("----"), list("abcd")], "S1")
        file.createVariable("odd", "S1", ("n",), fill_value=b"\xff")[:] = np.array([b"1", b"\xff", b"4"])
        file.createVariable("x", "f4", ("n",))[:] = 1

    url, path = taken(fill, format=format)
    request = {"run": "f"}
    for options in ({}, {"mask_and_scale": False}):
        with xr.open_dataset(path, engine="netcdf4", concat_characters=concat, **options) as want:
            got = opened(url, concat_characters=concat, request=request, **options).load()
            xr.testing.assert_identical(got, want.load())
            assert got.qc.encoding.get("_FillValue") == want.qc.encoding.get("_FillValue")
    with fst.open(url) as store:
        store.export("", path.with_name("out.nc"))
    assert path.with_name("out.nc").read_bytes()[:4] == path.read_bytes()[:4]
    with xr.open_dataset(path.with_name("out.nc")) as again, xr.open_dataset(path) as want:
        xr.testing.assert_identical(again.load(), want.load())
    # xarray's Dataset goes back into a store.
    ds = opened(url).load().drop_vars("odd")
    fst.to_store(ds, url, {"run": "b"})
    xr.testing.assert_equal(opened(url, request={"run": "b"}).load(), ds)


def put(file, variable, name, text):
    """An attribute with exactly these bytes."""
    from fieldstone._helper import libnetcdf

    number = libnetcdf.GLOBAL if variable is None else variable._varid
    with contextlib.suppress(libnetcdf.NetCDFError):
        libnetcdf.call("define", "nc_redef", ctypes.c_int(file._grpid))
    libnetcdf.put_attribute(file._grpid, number, name, "c", text)
    libnetcdf.call("define", "nc_enddef", ctypes.c_int(file._grpid))


def test_text_padded_with_nul_is_declared_without_it_and_exported_with_it(taken):
    padded = {"units": b"m/s\0\0", "long_name": b"speed\0"}

    def fill(file):
        put(file, None, "title", b"old\0\0\0")
        for dim, n in (("lat", 3), ("lon", 4)):
            file.createDimension(dim, n)
            variable = file.createVariable(dim, "f8", (dim,))
            variable[:] = np.arange(n)
            units = {"lat": b"degrees_north\0", "lon": b"degrees_east\0"}[dim]
            put(file, variable, "units", units)
        v = file.createVariable("v", "f4", ("lat", "lon"))
        v[:] = 1
        for name, text in padded.items():
            put(file, v, name, text)

    url, path = taken(fill, format="NETCDF3_CLASSIC")
    store = fst.open(url, "r")
    assert [v.name for v in store.variables(attr={"units": "m/s"})] == ["v"]
    assert store.run("f").params["title"] == "old"
    box = {"latitude": fst.between(0.5, 1.5), "longitude": fst.between(0.5, 2.5)}
    assert "v" in [v.name for v in store.variables(box=box)]
    with fst.open(url) as writing:
        report = writing.export("", path.with_name("out.nc"))
    assert not report.skipped and path.with_name("out.nc").read_bytes() == path.read_bytes()

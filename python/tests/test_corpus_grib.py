"""Every GRIB file of the corpus: into a store and out again, as messages and as netCDF."""

from __future__ import annotations

import warnings

import fieldstone as fst
import numpy as np
import pytest
from conftest import LONG, sample, share

pytest.importorskip("netCDF4")
eccodes = pytest.importorskip("eccodes")
xr = pytest.importorskip("xarray")
from fieldstone._xarray import valid  # noqa: E402
from grib_matrix import by_eccodes, time_by_eccodes  # noqa: E402
from test_ingest import fields_by_eccodes  # noqa: E402


def test_every_message_of_the_corpus_is_exported_byte_for_byte(tmp_path):
    paths = share(sorted(p for p in sample("grib").rglob("*") if p.is_file()), 3)
    store = fst.open(tmp_path / "store")
    fst.ingest(store, paths, progress=False)
    report = store.export({}, tmp_path / "all.grib")
    data = (tmp_path / "all.grib").read_bytes()
    assert data == b"".join(field.read() for field in store.retrieve({}))
    # eccodes splits messages of several fields, as ingest does.
    everything = {m for path in paths for m in fields_by_eccodes(path)}
    assert set(fields_by_eccodes(tmp_path / "all.grib")) == everything
    assert (report.bytes, report.fields) == (len(data), len(store.retrieve({})))


@pytest.mark.parametrize(
    "name",
    [
        "era5-levels-members.grib",
        "regular_gg_ml_g2.grib",
        "lambert_grid.grib",
        "fields_with_missing_values.grib",
    ],
)
def test_values_survive_grib_to_xarray_to_netcdf_to_a_store(tmp_path, name):
    fst.ingest(tmp_path / "grib", sample(f"grib/{name}"), progress=False)
    shown = xr.open_dataset(tmp_path / "grib", engine="fieldstone").load()
    fst.open(tmp_path / "grib", "r").export({}, tmp_path / "out.nc")
    fst.ingest(tmp_path / "netcdf", tmp_path / "out.nc", progress=False)
    again = xr.open_dataset(tmp_path / "netcdf", engine="fieldstone").load()
    assert set(again.variables) == set(shown.variables)
    for variable in shown.variables:
        np.testing.assert_array_equal(again[variable].values, shown[variable].values, err_msg=variable)
        assert {k: str(v) for k, v in again[variable].attrs.items()}.items() >= {
            k: str(v) for k, v in shown[variable].attrs.items() if k != "_FillValue"
        }.items()


EACH, LARGE, BYTES = (1, 1 << 40, 1 << 40) if LONG else (5, 50_000, 300_000)
"""Values are compared of every n-th message with at most this number of points; times of all.

Files have at most this number of bytes.
"""


def test_every_real_message_has_the_values_times_and_points_that_eccodes_says(tmp_path):
    """All values and all points of all messages with ``FIELDSTONE_CRASH=full``."""
    paths = sorted(p for p in sample("grib").rglob("*") if p.is_file() and p.stat().st_size <= BYTES)
    fst.ingest(tmp_path / "s", paths, progress=False)
    timed = compared = 0
    grids: dict[str, tuple[dict[str, list[str]], bytes]] = {}
    with fst.open(tmp_path / "s", "r") as store:
        for number, field in enumerate(store.retrieve({})):
            raw, key = field.read(), dict(field.key)
            handle = eccodes.codes_new_from_message(raw)
            points, grid = (eccodes.codes_get_string(handle, k) for k in ("numberOfPoints", "md5GridSection"))
            eccodes.codes_release(handle)
            if int(points) <= LARGE and grid not in grids:
                grids[grid] = ({k: [v] for k, v in key.items()}, raw)
            if "step" in key or "fcmonth" in key:
                moment = time_by_eccodes(raw)
                assert moment is None or valid.moment(key).astype("M8[m]") == moment, key
                timed += moment is not None
            if number % EACH == 0 and int(points) <= LARGE:
                values, _ = by_eccodes(raw)
                np.testing.assert_array_equal(
                    np.sort(field.array().ravel()), np.sort(values), err_msg=str(key)
                )
                compared += 1
        laid = sum(points_agree(store, request, raw) for request, raw in grids.values())
    print(f"{timed} times, values of {compared} messages, points of {laid} grids")
    least = (2000, 1900, 40) if LONG else (800, 150, 20)
    assert all(n > few for n, few in zip((timed, compared, laid), least, strict=True))


def points_agree(store, request, raw) -> bool:
    """Whether a Dataset of a message has eccodes' latitudes and longitudes, point by point."""
    if len(store.retrieve(request)) != 1:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds = store.to_xarray(request)
    if "latitude" not in ds.variables:
        return False
    handle = eccodes.codes_new_from_message(raw)
    try:
        expected = [eccodes.codes_get_array(handle, name) for name in ("latitudes", "longitudes")]
    finally:
        eccodes.codes_release(handle)
    told = [a.values.ravel() for a in xr.broadcast(ds.latitude, ds.longitude)]
    for points in (told, expected):
        points[:] = [column[np.lexsort(points)] for column in points]
    np.testing.assert_allclose(told, expected, rtol=0, atol=1e-6, err_msg=str(request))
    return True

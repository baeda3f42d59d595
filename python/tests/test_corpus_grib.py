"""Every GRIB file of the corpus: into a store and out again, as messages and as netCDF."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample

pytest.importorskip("netCDF4")
pytest.importorskip("eccodes")
xr = pytest.importorskip("xarray")
from test_ingest import fields_by_eccodes  # noqa: E402


def test_every_message_of_the_corpus_is_exported_byte_for_byte(tmp_path):
    paths = sorted(p for p in sample("grib").rglob("*") if p.is_file())
    store = fst.open(tmp_path / "store")
    fst.ingest(store, paths, progress=False)
    report = store.export({}, tmp_path / "all.grib")
    data = (tmp_path / "all.grib").read_bytes()
    assert data == b"".join(field.read() for field in store.retrieve({}))
    # eccodes splits messages of several fields, as the ingest does.
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

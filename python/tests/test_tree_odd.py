"""A tree of a store with files that xarray cannot show."""

from __future__ import annotations

import fieldstone as fst
import pytest

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")


def test_one_odd_file_does_not_stop_the_tree(tmp_path):
    with netCDF4.Dataset(tmp_path / "odd.nc", "w") as file:
        file.createDimension("lat", 2)
        file.createVariable("lat", "f4", ("lat",))[:] = [1, 2]
        group = file.createGroup("fine")
        group.createDimension("lat", 3)
        group.createVariable("b", "f4", ("lat",))[:] = 2
    with netCDF4.Dataset(tmp_path / "times.nc", "w") as file:
        file.createDimension("t", 2)
        file.createVariable("t", "f8", ("t",))[:] = [1, 2]
        file["t"].setncatts({"units": "days since the flood"})
    with netCDF4.Dataset(tmp_path / "good.nc", "w") as file:
        file.createDimension("x", 2)
        file.createVariable("a", "f4", ("x",))[:] = 1
    url = str(tmp_path / "s")
    fst.ingest(url, [tmp_path / f"{n}.nc" for n in ("odd", "times", "good")], progress=False)
    with pytest.warns(UserWarning) as told:
        tree = xr.open_datatree(url, engine="fieldstone")
    assert tree["good"].a.sum() == 2 and tree["odd"].sizes == {"lat": 2}
    words = [str(w.message) for w in told]
    assert any(w.startswith("/odd/fine is not in the tree") for w in words)
    assert any(w.startswith("/times is not in the tree") for w in words)
    with pytest.raises(ValueError, match="time"):
        xr.open_datatree(url, engine="fieldstone", request="run=times")

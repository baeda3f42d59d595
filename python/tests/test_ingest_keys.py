"""The key that an ingest reports for a file is a request that selects only that file."""

from __future__ import annotations

import fieldstone as fst
import pytest

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")


def opened(url, **options):
    return xr.open_dataset(url, engine="fieldstone", **options)


def test_the_key_of_a_report_opens_its_file_alone(tmp_path):
    paths = []
    for n, folder in enumerate(("a", "b", "c")):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "test.nc")
        with netCDF4.Dataset(paths[-1], "w") as file:
            file.createDimension("x", 2)
            file.createVariable("v", "f4", ("x",))[:] = n
    url = str(tmp_path / "s")
    report = fst.ingest(url, paths, progress=False)
    assert report.taken[0].key == {"run": "test", "source": "!*"}
    assert "under run=test,source=!*" in str(report)
    store = fst.open(url, "r")
    for n, taken in enumerate(report.taken):
        got = opened(url, request=taken.key).load()
        assert (got.v == n).all()
        assert len(list(store.list(taken.key))) == len(store.retrieve(taken.key)) == 2
        assert store.get({**taken.key, "variable": "v"}).tolist() == [n, n]
        text = ",".join(f"{k}={v}" for k, v in taken.key.items())
        assert len(list(store.list(text))) == 2
    assert len(list(store.list("run=test"))) == 6
    assert len(list(store.list("source=!*"))) == 2 and len(list(store.list("source=?*"))) == 4
    alone = fst.ingest(str(tmp_path / "one"), paths[0], progress=False)
    assert alone.taken[0].key == {"run": "test"}

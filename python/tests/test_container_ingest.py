"""Containers ingested into a store: their variables are fields, even if their bytes stay outside."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest
from fieldstone import container

xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")


def make(path, format, paths=True):
    prefix = "event_7/" if paths else ""
    random = np.random.default_rng(5)
    with container.create(path, format=format) as f:
        f.def_dims(["time", "x", f"{prefix}hits"], [None, 4, 6])
        f.put_att("title", "a test")
        f.put_att(f"{prefix}weight", 0.5)
        t = f.def_var("t", "f4", ("time", "x"), {"units": "K"})
        u = f.def_var("u", "i2", ("time", "x"))
        q = f.def_var(f"{prefix}q", "f8", (f"{prefix}hits", "x"), {"_FillValue": -1.0})
        n = f.def_var(f"{prefix}name", "S1", ("x",))
        f.def_var("scalar", "i4")
        f.enddef()
        t[0:3] = random.random((3, 4))
        u[0:3] = np.arange(12).reshape(3, 4)
        q[...] = random.random((6, 4))
        n[...] = "abcd"
        f["scalar"][...] = 17
    return path


@pytest.mark.parametrize("paths", [True, False])
@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("format", ["cdf1", "cdf5", "partitioned"])
def test_variables_are_fields(tmp_path, format, copy, paths):
    path = make(tmp_path / "run.nc", format, paths)
    report = fst.ingest(tmp_path / "s", path, copy=copy, progress=False)
    assert report.skipped == ()
    # Three records each of t and u, q, name, scalar, and the header.
    assert report.taken[0].fields == 10
    store = fst.open(tmp_path / "s", "r")
    prefix = "event_7/" if paths else ""
    with container.open(path) as f:
        for name in ("t", "u"):
            for step in range(3):
                got = store.get({"run": "run", "variable": name, "step": step})
                assert np.array_equal(got, f[name][step])
        box = store.get({"run": "run", "variable": f"{prefix}q"}, start=(2, 1), count=(3, 2))
        assert np.array_equal(box, f[f"{prefix}q"][2:5, 1:3])
    assert store.get({"run": "run", "variable": "scalar"}) == 17
    locations = {e.key["variable"]: e.location for e in store.list()}
    assert all(
        ("run.nc" in str(where)) == (not copy and name != "@header") for name, where in locations.items()
    )
    again = fst.ingest(tmp_path / "s", path, copy=copy, progress=False)
    assert again.taken[0].fields == 0
    if paths:
        tree = xr.open_datatree(tmp_path / "s", engine="fieldstone", group="run")
        xr.testing.assert_identical(tree.load(), xr.open_datatree(path, engine="fieldstone").load())
    else:
        own = xr.open_dataset(tmp_path / "s", engine="fieldstone")
        xr.testing.assert_identical(own.load(), xr.open_dataset(path, engine="fieldstone").load())


@pytest.mark.parametrize("given", ["cdf5", "partitioned"])
@pytest.mark.parametrize("wanted", ["cdf1", "netcdf3", "cdf5"])
def test_what_lies_in_paths_comes_out_as_a_classic_file(tmp_path, given, wanted):
    path, out = make(tmp_path / "run.nc", given), tmp_path / "out.nc"
    fst.ingest(tmp_path / "s", path, progress=False)
    with fst.open(tmp_path / "s", "r") as store:
        assert store.export("run=run", out, format=wanted).skipped == ()
    with container.open(path) as a, container.open(out) as b:
        assert b.format == {"netcdf3": "cdf2"}.get(wanted, wanted)
        assert dict(b.dims) == dict(a.dims) and b.record_dim == a.record_dim and b.attrs == a.attrs
        assert b.vars.keys() == a.vars.keys()
        for name, variable in a.vars.items():
            assert b[name].dims == variable.dims and b[name].attrs == variable.attrs
            assert b[name].dtype == variable.dtype and np.array_equal(b[name][...], variable[...])


@pytest.mark.parametrize("format", ["cdf5", "partitioned"])
def test_a_file_that_changed_is_not_read_as_if_it_had_not(tmp_path, format):
    path = make(tmp_path / "run.nc", format)
    fst.ingest(tmp_path / "s", path, copy=False, progress=False)
    with container.open(path, "a") as f:
        f["t"][3] = 1
    with pytest.raises(fst.Corrupt):
        fst.open(tmp_path / "s", "r").get({"run": "run", "variable": "t", "step": 0})


def test_a_file_that_changed_is_taken_again_in_the_place_of_fields_that_were_removed(tmp_path):
    path = make(tmp_path / "run.nc", "cdf5")
    fst.ingest(tmp_path / "s", path, copy=False, progress=False)
    with container.open(path, "a") as f:
        f["t"][3] = 1
    with fst.open(tmp_path / "s") as store:
        store.remove("run=run")
        store.flush()
        report = fst.ingest(store, path, copy=False, progress=False)
        assert report.skipped == () and report.taken[0].fields == 12
        steps = [store.get({"run": "run", "variable": "t", "step": step}) for step in range(4)]
        assert "source" not in store.axes() and store.verify().ok
    with container.open(path) as f:
        assert np.array_equal(steps, f["t"][...])


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("format", ["cdf1", "cdf5", "partitioned"])
def test_a_container_that_is_being_created_is_skipped_with_the_reason(tmp_path, format, copy):
    with container.create(tmp_path / "run.nc", format=format) as f:
        f.def_dim("x", 3)
        v = f.def_var("v", "f4", "x")
        for step in (f.enddef, lambda: v.put([1.0, 2, 3])):
            with pytest.raises(fst.Invalid, match="nothing was taken") as caught:
                fst.ingest(tmp_path / "s", tmp_path / "run.nc", copy=copy, progress=False)
            (skipped,) = caught.value.report.skipped
            assert skipped.path.name == "run.nc"
            assert "not finished: its writer has not closed it yet" in skipped.why
            assert "take it when its writer has closed it" in skipped.why
            step()
    report = fst.ingest(tmp_path / "s", tmp_path / "run.nc", copy=copy, progress=False)
    assert report.skipped == () and report.taken[0].fields == 2


def test_a_container_that_was_cut_is_skipped_with_the_reason(tmp_path):
    path = make(tmp_path / "run.nc", "partitioned")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(fst.Invalid, match="nothing was taken") as caught:
        fst.ingest(tmp_path / "s", path, progress=False)
    assert "run.nc" in str(caught.value.report.skipped[0].path)

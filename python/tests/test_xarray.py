"""The xarray engine over real stores: ingested files open as those files."""

from __future__ import annotations

import warnings
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import LONG, sample, share

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
from test_helper_netcdf import make  # noqa: E402

UNREADABLE = {"ref_tst_compounds.nc"}
"""xarray's own netCDF engine cannot open these."""
ODD_TIMES = {"CRM032_test1.nc"}
"""Their times can only be opened undecoded."""
GAPS = {
    "bad_padding_name_var.nc1",
    "bad_padding_name_vattr.nc1",
    "bad_padding_value_vattr.nc1",
    "bad_xtype.nc1",
}
"""Damaged files that end before the values of their variable."""
REFUSED = {
    "bad_begin.nc5",
    "bad_cdf5_begin.nc",
    "bad_dimid.nc1",
    "bad_dimid.nc5",
    "bad_large_fixed_var.nc2",
    "bad_magic.nc",
    "bad_nattrs.nc1",
    "bad_ndims.nc1",
    "bad_nvars.nc1",
    "bad_tag_dimension.nc1",
    "bad_tag_gattr.nc1",
    "bad_tag_variable.nc1",
    "bad_tag_vattr.nc1",
    "bad_tag_vattr.nc5",
    "can.vtu",
    "insulated-4.1.msh",
    "mesh_NACA0012_lam_hybrid_v2.su2",
    "sphere_mixed.1.lb8.ugrid",
    "sphere_mixed.1.meshb",
}
"""Damaged beyond reading, or not netCDF files."""


def ingested(tmp_path, *paths, **options):
    """The URL of a store that holds files."""
    url = str(tmp_path / "store")
    report = fst.ingest(url, paths, progress=False, **options)
    assert len(report.taken) == len(paths), report
    return url


def groups(path):
    found, open_ones = [], []
    with netCDF4.Dataset(path) as root:
        open_ones.append(root)
        while open_ones:
            group = open_ones.pop()
            found.append(group.path)
            open_ones += group.groups.values()
    return found


@pytest.mark.parametrize("folder", ["netcdf-classic", "netcdf4", "mesh", "validator"])
def test_every_real_file_opens_as_itself(tmp_path, folder):
    paths = sorted(p for p in sample(folder).rglob("*") if p.is_file())
    compared = 0
    for number, path in enumerate(share(paths, 3)):
        url = str(tmp_path / str(number))
        if path.name in REFUSED:
            with pytest.raises(fst.Invalid, match="nothing was taken"):
                fst.ingest(url, path, progress=False)
            continue
        report = fst.ingest(url, path, progress=False)
        if report.taken and path.name not in UNREADABLE | GAPS:
            skipped = {s.what for s in report.skipped}
            for group in groups(path):
                same(path, url, group, skipped)
                compared += 1
    least = {"netcdf-classic": 15, "netcdf4": 17, "mesh": 15, "validator": 3}[folder]
    assert compared >= (least if LONG else least // 4)


def same(path, url, group, skipped):
    options = {"group": group}
    if path.name in ODD_TIMES:
        options["decode_times"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = xr.open_dataset(path, engine="netcdf4", **options)
        got = xr.open_dataset(url, engine="fieldstone", **options)
        inside = group.strip("/")
        absent = [n for n in expected.variables if (f"{inside}/{n}" if inside else n) in skipped]
        expected = expected.drop_vars(absent)
        xr.testing.assert_identical(got.load(), expected.load())
    # A Dataset's own `[name]` looks at all its variables, which is slow with thousands.
    for name, wanted in expected.variables.items():
        found = got.variables[name]
        assert found.dtype == wanted.dtype, (path.name, name)
        # Values are kept little-endian, in any order of the file.
        kept = [np.dtype(v.encoding["dtype"]).newbyteorder("=") for v in (found, wanted)]
        assert kept[0] == kept[1], (path.name, name)
        for fact in ("scale_factor", "add_offset", "_FillValue", "units", "calendar"):
            assert str(found.encoding.get(fact)) == str(wanted.encoding.get(fact)), (path.name, name, fact)
    expected.close()
    got.close()


def test_what_was_left_out_is_told_when_it_is_read(tmp_path):
    for name in sorted(GAPS):
        path = sample(f"validator/{name}")
        url = str(tmp_path / name)
        report = fst.ingest(url, path, progress=False)
        (skipped,) = report.skipped
        ds = xr.open_dataset(url, engine="fieldstone")
        with pytest.raises(fst.NotFound, match="the ingest left it out: the file ends before these values"):
            ds[skipped.what].load()
        xr.open_dataset(url, engine="fieldstone", drop_variables=skipped.what).load()


def test_what_was_left_out_is_not_taken_from_another_file(tmp_path):
    whole, cut = tmp_path / "a" / "x.nc", tmp_path / "b" / "x.nc"
    for path in (whole, cut):
        path.parent.mkdir()
        make(path, "NETCDF3_CLASSIC")
    cut.write_bytes(cut.read_bytes()[:-200])
    url = ingested(tmp_path, cut, whole)
    with pytest.raises(fst.NotFound, match="variable=time: the ingest left it out"):
        xr.open_dataset(url, engine="fieldstone", request={"run": "x"})
    source = fst.open(url, "r").axes()["source"]
    got = xr.open_dataset(url, engine="fieldstone", request={"source": source})
    xr.testing.assert_identical(got.load(), xr.open_dataset(whole, engine="netcdf4").load())


def test_one_of_several_files_is_chosen_by_its_run(tmp_path):
    one, two = make(tmp_path / "one.nc"), make(tmp_path / "two.nc", "NETCDF4_CLASSIC")
    url = ingested(tmp_path, one, two)
    with pytest.raises(ValueError, match="run=one, run=two"):
        xr.open_dataset(url, engine="fieldstone")
    with pytest.raises(ValueError, match="run=one, run=two"):
        xr.open_dataset(url, engine="fieldstone", combine=None)
    for path in (one, two):
        got = xr.open_dataset(url, engine="fieldstone", request=f"run={path.stem}")
        xr.testing.assert_identical(got.load(), xr.open_dataset(path, engine="netcdf4").load())


def test_it_is_lazy_and_keeps_the_version_it_was_opened_at(tmp_path):
    url = str(tmp_path / "store")
    with fst.open(url) as store:
        for step in (0, 6):
            store.archive({"run": "a", "variable": "t", "step": step}, np.full((3, 4), float(step)))
    ds = xr.open_dataset(url, engine="fieldstone")
    with fst.open(url) as store:
        version = store.version
        store.archive({"run": "a", "variable": "t", "step": 6}, np.full((3, 4), 7.0))
        store.archive({"run": "a", "variable": "t", "step": 12}, np.full((3, 4), 12.0))
    assert ds.t.sel(step=6).values.tolist() == [[6.0] * 4] * 3
    now = xr.open_dataset(url, engine="fieldstone")
    assert now.step.values.tolist() == [0, 6, 12]
    assert float(now.t.sel(step=6)[0, 0]) == 7
    before = xr.open_dataset(url, engine="fieldstone", at=version)
    assert float(before.t.sel(step=6)[0, 0]) == 6


def test_dask_and_pickle(tmp_path):
    pytest.importorskip("dask")
    import pickle

    url = ingested(tmp_path, make(tmp_path / "small.nc"))
    ds = pickle.loads(pickle.dumps(xr.open_dataset(url, engine="fieldstone", chunks={})))
    assert ds.t.chunks == ((1, 1), (3,), (4,))
    expected = xr.open_dataset(tmp_path / "small.nc", engine="netcdf4")
    assert float(ds.t.mean().compute(scheduler="processes")) == float(expected.t.mean())


def test_an_open_store_and_fields_become_datasets(tmp_path):
    store = fst.open(ingested(tmp_path, make(tmp_path / "small.nc")))
    expected = xr.open_dataset(tmp_path / "small.nc", engine="netcdf4")
    xr.testing.assert_identical(store.to_xarray().load(), expected.load())
    one = store.to_xarray({"variable": "t", "step": 1})
    assert dict(one.sizes) == {"time": 1, "lat": 3, "lon": 4}


def test_a_folder_that_is_a_store_needs_no_engine(tmp_path):
    url = ingested(tmp_path, make(tmp_path / "small.nc"))
    assert "t" in xr.open_dataset(Path(url))


def test_real_grib_files_open_with_the_values_of_eccodes(tmp_path):
    pytest.importorskip("eccodes")
    from grib_matrix import by_eccodes

    paths = share(sorted(p for p in sample("grib").rglob("*") if p.is_file()), 3)
    compared = 0
    for number, path in enumerate(paths):
        store = fst.open(tmp_path / str(number))
        if not fst.ingest(store, path, progress=False).taken:
            continue
        if path.name == "tp_on_different_grid_resolutions.grib":
            with pytest.raises(ValueError, match="a different grid than the other fields"):
                store.to_xarray().load()
            store.close()
            tree = xr.open_datatree(tmp_path / str(number), engine="fieldstone").load()
            sizes = sorted(node.dataset["tp"].size for node in tree.leaves)
            assert sizes == [2664, 4140]
            continue
        got = set()
        for variable in store.to_xarray().data_vars.values():
            rank = 1 if variable.dims[-1] == "values" else 2
            cells = int(np.prod(variable.shape[-rank:]))
            got |= {np.sort(row).tobytes() for row in variable.values.reshape(-1, cells)}
        for field in store.retrieve():
            values, _ = by_eccodes(field.read())
            assert np.sort(values).tobytes() in got, (path.name, field.key)
            compared += 1
    assert compared > (400 if LONG else 50)

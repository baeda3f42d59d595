"""``xarray.open_datatree`` over stores: its nodes, and its cost."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import fieldstone as fst
import numpy as np
import pytest

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
import fieldstone.xarray_engine  # noqa: E402  imported before anything is counted
from fieldstone._xarray.source import Source  # noqa: E402
from test_helper_grib import message  # noqa: E402
from test_helper_netcdf import make  # noqa: E402


def tree(url, **options):
    return xr.open_datatree(url, engine="fieldstone", **options)


def write(url, keys, shape=(2, 3), dtype="f4"):
    """Fields whose values are their position in the list."""
    with fst.open(url) as store:
        for i, key in enumerate(keys):
            store.archive(key, np.full(shape, i, dtype))
    return str(url)


def groups(found):
    return [node.path for node in found.subtree if node.has_data]


def test_each_run_is_a_node_below_its_project(tmp_path):
    keys = [{"run": r, "variable": v, "step": s} for r in ("a", "b") for v in ("t", "u") for s in (0, 6)]
    url = write(tmp_path / "s", [*keys, {"project": "rain", "run": "a", "variable": "t"}])
    found = tree(url)
    assert groups(found) == ["/a", "/b", "/rain/a"]
    assert found["b/u"].dims == ("step", "dim_0", "dim_1")
    assert found["b"].step.values.tolist() == [0, 6]
    assert float(found["b/u"].sel(step=6)[0, 0]) == 7
    assert found["rain/a/t"].shape == (2, 3)
    for path, request in (("a", "run=a"), ("b", {"run": "b"})):
        if path == "b":
            one = xr.open_dataset(url, engine="fieldstone", request=request)
            xr.testing.assert_identical(found[path].to_dataset(), one)
    assert groups(tree(url, request={"run": "b", "variable": "u"})) == ["/b"]
    assert list(tree(url, request={"run": "b", "variable": "u"})["b"].data_vars) == ["u"]
    assert groups(tree(url, group="rain")) == ["/a"]
    assert "t" not in tree(url, drop_variables="t")["a"].data_vars
    assert xr.open_groups(url, engine="fieldstone").keys() == {"/a", "/b", "/rain/a"}
    with pytest.raises(fst.NotFound, match="no group 'x'"):
        tree(url, group="x")


def test_names_of_runs_that_are_no_names_of_nodes(tmp_path):
    url = write(tmp_path / "s", [{"run": r, "variable": "t"} for r in ("a/b", "..", "é ü")])
    assert set(groups(tree(url))) == {"/a%2Fb", "/%2E%2E", "/é ü"}


def test_runs_may_differ_in_everything(tmp_path):
    keys = [{"run": "a", "variable": "t", "step": s} for s in (0, 6)]
    write(tmp_path / "s", keys, (2, 3))
    write(tmp_path / "s", [{"run": "b", "variable": "t", "step": s} for s in (1, 2, 3)], (5,), "i8")
    found = tree(str(tmp_path / "s"))
    assert (found["a/t"].shape, found["b/t"].shape, found["b/t"].dtype) == ((2, 2, 3), (3, 5), np.dtype("i8"))


def test_a_keyword_that_parts_shapes_becomes_a_level(tmp_path):
    url = str(tmp_path / "s")
    for domain, shape in (("d01", (4, 4)), ("d02", (8, 8))):
        write(url, [{"run": "w", "variable": "t", "step": s, "domain": domain} for s in (0, 1)], shape)
    write(url, [{"run": "w", "variable": "t", "step": 0}], (2,))
    found = tree(url)
    assert groups(found) == ["/w/domain=", "/w/domain=d01", "/w/domain=d02"]
    assert found["w/domain=d02/t"].shape == (2, 8, 8)
    with pytest.raises(fst.Invalid, match=r"differ in type or shape.*one value of domain") as raised:
        xr.open_dataset(url, engine="fieldstone")
    assert "open_datatree" in str(raised.value)


def test_shapes_that_differ_by_step_are_refused_by_name(tmp_path):
    url = write(tmp_path / "s", [{"run": "a", "variable": "t", "step": 0}], (2,))
    write(url, [{"run": "a", "variable": "t", "step": 6}], (3,))
    for opened in (tree, lambda u: xr.open_dataset(u, engine="fieldstone")):
        with pytest.raises(fst.Invalid, match=r"\(2,\) first.*step=6.*\(3,\).*one value of step"):
            opened(url)
    assert xr.open_dataset(url, engine="fieldstone", request={"step": 6}).t.shape == (3,)


def test_ingested_files_are_nodes_with_their_groups(tmp_path):
    for name in ("one", "two"):
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "w") as file:
            file.title = name
            file.createDimension("time", 3)
            file.createVariable("time", "f8", ("time",))[:] = [0, 6, 12]
            file["time"].units = "hours since 2026-01-01"
            deep = file.createGroup("ocean").createGroup("deep")
            deep.createVariable("t", "i2", ("time",), fill_value=-1)[:] = [1, 2, 3]
            deep["t"].scale_factor = 0.5
    url = str(tmp_path / "s")
    fst.ingest(url, [tmp_path / "one.nc", tmp_path / "two.nc"], progress=False)
    write(url, [{"run": "raw", "variable": "t", "step": 0}])
    found = tree(url)
    assert groups(found) == ["/one", "/raw", "/two", "/one/ocean/deep", "/two/ocean/deep"]
    for name in ("one", "two"):
        expected = xr.open_datatree(tmp_path / f"{name}.nc", engine="netcdf4")
        own = tree(url, group=name)
        xr.testing.assert_identical(own.load(), expected.load())
        expected.close()
    narrow = tree(url, request={"run": "two", "variable": ["ocean/deep/t"]})
    assert groups(narrow) == ["/two/ocean/deep"]
    with pytest.raises(fst.Invalid, match="netCDF files, such as run=one, and arrays, such as run raw"):
        xr.open_dataset(url, engine="fieldstone")


def test_files_that_share_a_run_are_told_apart(tmp_path):
    url = str(tmp_path / "s")
    for member in (0, 1):
        path = make(tmp_path / "e.nc")
        with netCDF4.Dataset(path, "a") as file:
            file.member_of = str(member)
        fst.ingest(url, path, key={"run": "e", "member": member}, progress=False)
    assert groups(tree(url)) == ["/e/member=0", "/e/member=1"]
    assert tree(url)["e/member=1"].attrs["member_of"] == "1"
    # A second file of the same name and key gets the keyword `source`.
    with netCDF4.Dataset(path, "a") as file:
        file.member_of = "again"
    fst.ingest(url, path, key={"run": "e", "member": 1}, progress=False)
    (source,) = fst.open(url, "r").axes()["source"]
    paths = ["/e/member=0/source=", "/e/member=1/source=", f"/e/member=1/source={source}"]
    assert groups(tree(url)) == paths
    assert tree(url)[paths[2]].attrs["member_of"] == "again"
    assert groups(tree(url, request={"member": 0})) == ["/e"]


def test_grib_is_parted_by_dataset_keys_level_type_and_grid(tmp_path):
    pytest.importorskip("eccodes")
    path = tmp_path / "x.grib"
    rows = []
    for step in (0, 6):
        rows += [message(level=level, stepRange=step, date=20260101) for level in (500, 850)]
        rows.append(message("regular_ll_sfc_grib2", stepRange=step, date=20260101))
        # The same keys on a coarser grid, at one more step.
    rows.append(message(level=500, stepRange=12, date=20260101, Ni=8, Nj=4, values=np.arange(32.0)))
    path.write_bytes(b"".join(rows))
    url = str(tmp_path / "s")
    assert fst.ingest(url, path, progress=False).taken[0].fields == 7
    found = tree(url)
    paths = groups(found)
    fine, coarse = (f"/typeoflevel=isobaricInhPa/grid=regular_ll-{n}" for n in (496, 32))
    assert paths == ["/typeoflevel=surface", fine, coarse]
    assert found[fine].t.dims == ("step", "levelist", "latitude", "longitude")
    assert found[fine].step.values.tolist() == [0, 6]
    np.testing.assert_array_equal(found[coarse].t.values.ravel(), np.arange(32.0))
    with pytest.raises(fst.Invalid, match=r"a different grid than the other fields.*open_datatree"):
        xr.open_dataset(url, engine="fieldstone", request={"levtype": "pl"}).load()


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """200 runs of 10 variables and 20 steps."""
    url = str(tmp_path_factory.mktemp("many") / "s")
    keys = [
        {"run": f"r{r:03}", "variable": f"v{v}", "step": s}
        for r in range(200)
        for v in range(10)
        for s in range(20)
    ]
    with fst.open(url) as store:
        store.archive_many(keys, [np.zeros((2, 2), "f4")] * len(keys))
    return url


def test_many_runs_open_without_reading_a_field(many, monkeypatch):
    def refuse(*_):
        raise AssertionError("a field was read")

    monkeypatch.setattr(Source, "_get", refuse)
    found = tree(many, chunks={})
    assert len(found.children) == 200
    assert len(found["r150"].data_vars) == 10
    assert found["r150/v9"].chunks == ((1,) * 20, (2,), (2,))
    assert len(repr(found)) < 100_000
    assert len(found._repr_html_()) < 1_000_000
    dataset = xr.open_dataset(many, engine="fieldstone")
    assert dict(dataset.sizes) == {"run": 200, "step": 20, "dim_0": 2, "dim_1": 2}
    assert len(repr(dataset)) < 10_000 and len(dataset._repr_html_()) < 100_000


def test_the_index_is_walked_once_for_all_runs(many, monkeypatch):
    asked = []

    class Counting:
        def __init__(self, store):
            self.store = store

        def __getattr__(self, name):
            asked.append(name)
            return getattr(self.store, name)

    source = Source.open(many)
    source._store = Counting(source.store)
    monkeypatch.setattr(Source, "open", classmethod(lambda *_: source))
    tree(many)
    assert asked.count("_cubes") == 1
    assert asked.count("list") <= 2  # one for the kinds of fields, one for the runs that are files
    assert "get" not in asked and "retrieve" not in asked


OPENING = """
    import sys
    import fieldstone.xarray_engine, xarray

    def peak():  # KiB; ru_maxrss includes the memory of the parent process
        (own,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
        return int(own)

    def calls(runs):
        made = 0

        def count(frame, event, arg):
            nonlocal made
            made += event in ("call", "c_call")

        request = {"run": [f"r{r:03}" for r in range(runs)]}
        sys.setprofile(count)
        tree = xarray.open_datatree(sys.argv[1], engine="fieldstone", request=request)
        sys.setprofile(None)
        assert len(tree.children) == runs
        return made

    xarray.backends.list_engines()
    before = peak()
    tree = xarray.open_datatree(sys.argv[1], engine="fieldstone")
    assert len(tree.children) == 200
    grown = peak() - before
    print(grown, *map(calls, (10, 20, 40)))
"""


def test_opening_costs_few_calls_and_little_memory(many):
    """2,000 arrays of 20 fields; the benchmark `datatree` has 10,000 of 100, and the time."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(OPENING), many], capture_output=True, text=True, check=True
    )
    grown, ten, twenty, forty = map(int, done.stdout.split())
    assert grown < 100_000  # KiB; 50 MiB in fact
    assert (twenty - ten) / 100 < 2_000  # bytes of an array: in fact 1,000, nearly all of them xarray's
    assert forty - twenty < 2.2 * (twenty - ten)


def test_many_messages_are_described_by_one_for_each_variable(tmp_path, monkeypatch):
    pytest.importorskip("eccodes")
    url = str(tmp_path / "s")
    base = {"class": "od", "expver": "0001", "stream": "oper", "date": "20260101", "time": "0000"}
    with fst.open(url, schema="mars") as store:
        for param in (130, 131):
            keys = [
                {**base, "type": "fc", "levtype": "pl", "param": param, "step": step, "levelist": level}
                for step in range(100)
                for level in range(10)
            ]
            store.archive_many(keys, [message(paramId=param)] * len(keys))
    reads = []
    real = Source.bytes
    monkeypatch.setattr(Source, "bytes", lambda self, key: (reads.append(key), real(self, key))[1])
    ds = xr.open_dataset(url, engine="fieldstone", chunks={})
    assert len(reads) == 2
    assert ds.t.chunks == ((1,) * 100, (1,) * 10, (31,), (16,))
    repr(ds), ds._repr_html_()
    assert len(reads) == 2
    assert list(tree(url).children) == ["levtype=pl"]
    assert len(reads) == 4
    ds.t.sel(step=7, levelist=3).load()
    assert len(reads) == 5 and (reads[4]["step"], reads[4]["levelist"]) == ("7", "3")

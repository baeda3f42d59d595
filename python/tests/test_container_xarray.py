"""The xarray engine on containers, and Datasets written as containers."""

from __future__ import annotations

import pickle
import warnings

import fieldstone as fst
import numpy as np
import pandas as pd
import pytest
from conftest import sample
from fieldstone import container
from fieldstone.container import _dataset

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")

FORMATS = ("cdf1", "cdf2", "cdf5", "partitioned")
VALID = [
    "netcdf-classic/SMALL_total_column_co2.nc",
    "netcdf-classic/A1B-99999a-river-sep-2070-2099.nc",
    "netcdf-classic/CRM032_test1.nc",
    "netcdf-classic/eraint_uvz.nc",
    "netcdf-classic/map_f_case_16p.nc",
    "netcdf-classic/map_g_case_16p.nc",
    "netcdf-classic/ref_nctest_64bit_offset.nc",
    "netcdf-classic/ref_nctest_classic.nc",
    "netcdf-classic/ref_test_365_day_1900.nc",
    "netcdf-classic/small_rotPole_precipitation.nc",
    "netcdf-classic/space_weather.nc",
    "netcdf-classic/test4.nc",
    "netcdf-classic/ubyte.nc",
]


def both(path, opened=xr.open_dataset, **options):
    """Results of our engine and of netCDF4's, loaded; equal warnings are not a difference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            opened(path, engine="fieldstone", **options) as own,
            opened(path, engine="netcdf4", **options) as other,
        ):
            return own.load(), other.load()


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("decode", [True, False])
def test_real_files_are_as_with_netcdf4(name, decode):
    path = sample(name)
    with netCDF4.Dataset(path) as file:
        if not file.data_model.startswith(("NETCDF3", "CDF")):
            pytest.fail(f"{name} is not a classic file")
    # Both refuse a time that no calendar holds; everything else is decoded.
    times = False if name.endswith("CRM032_test1.nc") else None
    own, other = both(path, decode_cf=decode, decode_times=times)
    xr.testing.assert_identical(own, other)
    assert {n: v.dtype for n, v in own.variables.items()} == {n: v.dtype for n, v in other.variables.items()}
    assert own.encoding["unlimited_dims"] == other.encoding["unlimited_dims"]


def weather():
    random = np.random.default_rng(1)
    return xr.Dataset(
        {
            "t": (("time", "y", "x"), 280 + random.random((4, 3, 5)), {"units": "K"}),
            "station": ("y", np.array(["Zürich", "Bern", ""])),
            "flag": ("x", np.array([True, False, True, True, False])),
            "gap": ("x", np.array([1.0, np.nan, 3, 4, np.nan])),
            "count": ("time", np.arange(4, dtype="i4")),
            "crs": ((), np.int32(0), {"name": "latlon", "numbers": [1.0, 2.0]}),
        },
        {
            "time": pd.date_range("2026-01-01", periods=4, freq="6h"),
            "x": np.arange(5.0),
            "height": ("y", np.array([400.0, 500, 600])),
        },
        {"title": "a forecast", "level": 3},
    )


@pytest.mark.parametrize("format", FORMATS)
def test_a_dataset_comes_back(tmp_path, format):
    ds, path = weather(), tmp_path / "a.nc"
    container.write_dataset(ds, path, format=format)
    with xr.open_dataset(path, engine="fieldstone") as own:
        xr.testing.assert_equal(own.load(), ds)
        assert own.attrs["title"] == "a forecast" and own.t.attrs == {"units": "K"}
        assert own.flag.dtype == bool
    if format != "partitioned":
        ds.to_netcdf(tmp_path / "b.nc", engine="netcdf4", format=_format(format))
        with xr.open_dataset(path, engine="netcdf4") as a, xr.open_dataset(tmp_path / "b.nc") as b:
            xr.testing.assert_identical(a.load(), b.load())
    else:
        with xr.open_dataset(path) as own:  # no other engine opens it
            assert own.t.shape == (4, 3, 5)


def _format(format):
    return {"cdf1": "NETCDF3_CLASSIC", "cdf2": "NETCDF3_64BIT", "cdf5": "NETCDF3_64BIT_DATA"}[format]


def test_encodings_and_the_record_dimension(tmp_path):
    ds, path = weather(), tmp_path / "a.nc"
    packed = {"t": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -1}}
    container.write_dataset(ds, path, encoding=packed, unlimited_dims="time")
    with container.open(path) as f:
        assert f.record_dim == "time" and f["t"].dtype == np.dtype("i2") and f.dims["time"] == 4
    with xr.open_dataset(path, engine="fieldstone") as own:
        assert abs(own.t - ds.t).max() < 0.006
        assert own.encoding["unlimited_dims"] == {"time"}
        container.write_dataset(own, tmp_path / "b.nc")
    with container.open(tmp_path / "b.nc") as f:
        assert f.record_dim == "time" and f["t"].dtype == np.dtype("i2")
    for wrong in ({"encoding": {"u": {}}}, {"unlimited_dims": "z"}, {"unlimited_dims": ["x", "y"]}):
        with pytest.raises(fst.Invalid):
            container.write_dataset(ds, path, **wrong)
    with pytest.raises(ValueError, match="could not safely cast"):
        container.write_dataset(xr.Dataset({"v": ("x", [2**40])}), path, format="cdf1")
    with xr.open_dataset(path, engine="fieldstone") as own:
        assert own.t.shape == (4, 3, 5)  # the old contents stay


def test_reading_is_lazy_and_chunked(tmp_path):
    pytest.importorskip("dask")
    data = np.arange(6 * 7 * 8, dtype="f4").reshape(6, 7, 8)
    ds = xr.Dataset({"v": (("z", "y", "x"), data)}, {"z": np.arange(6)})
    container.write_dataset(ds.chunk(z=2), tmp_path / "a.nc", format="partitioned", unlimited_dims="z")
    with xr.open_dataset(tmp_path / "a.nc", engine="fieldstone") as own:
        assert not own.v.variable._in_memory
        for key in (
            {"z": 3},
            {"y": slice(5, 1, -2), "x": [1, 3, 3]},
            {"z": [4, 0], "y": [1, 2], "x": slice(None, None, 3)},
            {"z": xr.DataArray([1, 2], dims="p"), "x": xr.DataArray([3, 4], dims="p")},
        ):
            xr.testing.assert_identical(own.isel(key).load(), ds.isel(key))
        assert not own.v.variable._in_memory
        again = pickle.loads(pickle.dumps(own))
        xr.testing.assert_identical(again.load(), ds)
    with xr.open_dataset(tmp_path / "a.nc", engine="fieldstone", chunks={"z": 2}) as own:
        assert own.v.chunks == ((2, 2, 2), (7,), (8,))
        xr.testing.assert_identical(own.compute(), ds)
        assert float(own.v.mean().compute(scheduler="processes")) == data.mean()


@pytest.mark.parametrize("format", FORMATS)
def test_paths_are_a_tree(tmp_path, format):
    tree = xr.DataTree.from_dict(
        {
            "/": xr.Dataset({"total": ((), 2.0)}, attrs={"title": "events"}),
            "/event_1": xr.Dataset({"x": (("hits", "f"), np.ones((3, 2), "f4"))}, attrs={"weight": 0.5}),
            "/event_2/plane_u": xr.Dataset({"x": (("hits", "f"), np.zeros((5, 2), "f4"))}),
        }
    )
    path = tmp_path / "a.nc"
    container.write_dataset(tree, path, format=format)
    with container.open(path) as f:
        assert dict(f.dims) == {
            "event_1/hits": 3,
            "event_1/f": 2,
            "event_2/plane_u/hits": 5,
            "event_2/plane_u/f": 2,
        }
    own = xr.open_datatree(path, engine="fieldstone")
    xr.testing.assert_identical(own.load(), tree)
    one = xr.open_dataset(path, engine="fieldstone", group="event_1")
    xr.testing.assert_identical(one.load(), tree["event_1"].to_dataset())
    assert list(xr.open_groups(path, engine="fieldstone", group="event_2")) == ["/plane_u"]
    with pytest.raises(fst.NotFound, match="no path 'event_3'"):
        xr.open_dataset(path, engine="fieldstone", group="event_3")
    with pytest.raises(fst.Invalid, match="for stores"):
        xr.open_dataset(path, engine="fieldstone", request="run=a")


def test_dimensions_of_enclosing_paths_are_shared(tmp_path):
    x = xr.Dataset({"a": ("x", np.arange(3.0))}, {"x": [1.0, 2, 3]})
    tree = xr.DataTree.from_dict({"/": x, "/inner": xr.Dataset({"b": (("y", "x"), np.ones((2, 3)))})})
    container.write_dataset(tree, tmp_path / "a.nc")
    with container.open(tmp_path / "a.nc") as f:
        assert dict(f.dims) == {"x": 3, "inner/y": 2} and f["inner/b"].dims == ("inner/y", "x")
    xr.testing.assert_identical(xr.open_datatree(tmp_path / "a.nc", engine="fieldstone").load(), tree)


def opened(path, **options):
    with xr.open_dataset(path, engine="fieldstone", **options) as found:
        return found.load()


def again(tmp_path, given):
    """Writes an opened Dataset to a file: its dimensions and those of its variables."""
    container.write_dataset(given, tmp_path / "again.nc")
    with container.open(tmp_path / "again.nc") as f:
        return dict(f.dims), {name: v.dims for name, v in f.vars.items()}


@pytest.mark.parametrize("format", FORMATS)
def test_a_dimension_has_its_short_name_in_its_own_path_and_below(tmp_path, format):
    with container.create(tmp_path / "a.nc", format=format) as f:
        f.def_dims(["x", "a/x", "b/x", "a/b/x", "a/y"], [2, 3, 4, 5, 6])
        f.def_var("v1", "i4", ("a/x",))
        f.def_var("v2", "i4", ("b/x",))
        f.def_var("v3", "i4", ("a/x", "x"))
        f.def_var("a/v", "i4", ("y", "x"))
        # By name they would be others: the nearest a/x, and the b/x in a.
        f.def_many(["a/w"], "i4", np.array([[1, 0]]))
        f.def_many(["a/b/u"], "i4", np.array([[2]]))
        f.def_var("a/b/v", "i4", ("y", "x", "a/x"))
        f.def_var("a/c/v", "i4", ("x", "y"))
        f.def_var("b/c/v", "i4", ("a/x", "a/y"))
        f.enddef()
        named = {
            "": {"v1": ("a/x",), "v2": ("b/x",), "v3": ("a/x", "x")},
            "a": {"v": ("y", "x"), "w": ("x", "/x")},
            "a/b": {"v": ("y", "x", "a/x"), "u": ("b/x",)},
            "a/c": {"v": ("x", "y")},
            "b/c": {"v": ("a/x", "a/y")},
        }
        assert f["a/w"].dims == ("a/x", "x") and f["a/b/u"].dims == ("b/x",)
    for path, dims in named.items():
        found = opened(tmp_path / "a.nc", group=path)
        assert {name: v.dims for name, v in found.variables.items()} == dims
    groups = xr.open_groups(tmp_path / "a.nc", engine="fieldstone")
    assert {p.strip("/"): {n: v.dims for n, v in g.variables.items()} for p, g in groups.items()} == named
    with container.open(tmp_path / "a.nc") as f:
        shapes = {name: v.shape for name, v in f.vars.items()}
        known, dims = dict(f.dims), {name: v.dims for name, v in f.vars.items()}
    tree = xr.open_datatree(tmp_path / "a.nc", engine="fieldstone")
    assert {p: tree[p].shape for p in shapes} == shapes
    written = again(tmp_path, tree)
    assert written == (known, dims)


@pytest.mark.parametrize(
    ("outer", "inner", "root", "node"),
    [
        # Whether the root and the node have a coordinate, and the names of their dimensions.
        (False, False, "x", "n/x"),
        (True, False, "x", "n/x"),
        (False, True, "/x", "x"),
        (True, True, "/x", "x"),
    ],
)
@pytest.mark.parametrize("lengths", [(3, 5), (3, 3)])
def test_a_tree_is_had_where_nodes_have_other_dimensions_of_one_name(
    tmp_path, outer, inner, root, node, lengths
):
    path = tmp_path / "a.nc"
    with container.create(path) as f:
        f.def_dims(["x", "n/x"], lengths)
        f.def_var("v", "i4", "x")
        f.def_var("n/v", "i4", "x")
        f.def_var("n/deep/v", "i4", "x")
        f.def_var("other/v", "i4", "x")
        if outer:
            f.def_var("x", "f8", "x")
        if inner:
            f.def_var("n/x", "f8", "x")
        f.enddef()
        for name, v in f.vars.items():
            v[...] = np.arange(v.size) + (10 if name[0] == "n" else 0)
        written = dict(f.dims), {name: v.dims for name, v in f.vars.items()}
        values = {name: v[...].tolist() for name, v in f.vars.items()}
    if lengths == (3, 3) and not (outer and inner):
        root = node = "x"  # they go together
    tree = xr.open_datatree(path, engine="fieldstone").load()
    assert tree["v"].dims == tree["other/v"].dims == (root,)
    assert tree["n/v"].dims == tree["n/deep/v"].dims == (node,)
    assert ("x" in tree.indexes) == (outer and root == "x")
    assert {name: tree[name].values.tolist() for name in values} == values
    if root != node:
        assert again(tmp_path, tree) == written
        xr.testing.assert_identical(xr.open_datatree(tmp_path / "again.nc", engine="fieldstone").load(), tree)
    # A single node, several without a tree, and a tree from there on have the short names.
    assert opened(path, group="n")["v"].dims == ("x",)
    groups = xr.open_groups(path, engine="fieldstone")
    assert groups["/"]["v"].dims == groups["/n"]["v"].dims == ("x",)
    below = xr.open_datatree(path, engine="fieldstone", group="n")
    assert below["v"].dims == below["deep/v"].dims == ("x",)
    if inner:
        assert list(below.indexes) == ["x"]


@pytest.mark.parametrize("units", ["m", "km"])
def test_equal_coordinates_of_a_tree_are_one(tmp_path, units):
    with container.create(tmp_path / "a.nc") as f:
        f.def_dims(["x", "n/x"], 3)
        f.def_var("x", "f8", "x", attrs={"units": "m", "long_name": "a place"})
        f.def_var("n/x", "f8", "x", attrs={"units": units})
        f.enddef()
        f["x"][...] = f["n/x"][...] = [1, 2, 3]
    tree = xr.open_datatree(tmp_path / "a.nc", engine="fieldstone")
    assert tree["n/x"].dims == ("x",) and "x" in tree["n"].indexes
    assert tree["x"].dims == (("x",) if units == "m" else ("/x",))


def test_a_record_dimension_that_nobody_asked_for_is_taken_where_it_can_be(tmp_path):
    path = tmp_path / "a.nc"

    def record(given, **options):
        container.write_dataset(given, path, **options)
        xr.testing.assert_identical(xr.open_datatree(path, engine="fieldstone").load(), tree(given))
        with container.open(path) as f:
            return f.record_dim

    def tree(given):
        return given if isinstance(given, xr.DataTree) else xr.DataTree(given)

    first = xr.Dataset({"v": (("time", "x"), np.ones((2, 3)))})
    for unlimited in ({"time"}, ["time"], "time", {"time", "gone"}):
        first.encoding["unlimited_dims"] = unlimited
        assert record(first) == "time"
        assert record(first.transpose("x", "time")) is None
    behind = first.assign(w=(("x", "time"), np.ones((3, 2))))
    behind.encoding["unlimited_dims"] = {"time"}
    for format in FORMATS:
        assert record(behind, format=format) is None
        with pytest.raises(fst.Invalid):
            record(behind, format=format, unlimited_dims="time")
    both = first.copy()
    both.encoding["unlimited_dims"] = {"time", "x"}
    assert record(both) is None
    # A child node has the same dimension, also read as unlimited, and may have it in a later place.
    for inner, found in ((("time", "y"), "time"), (("y", "time"), None)):
        node = xr.Dataset({"w": (inner, np.ones([{"time": 2, "y": 4}[d] for d in inner]))})
        node.encoding["unlimited_dims"] = {"time"}
        assert record(xr.DataTree.from_dict({"/": first, "/n": node})) == found


def test_dimensions_of_two_lengths_are_not_taken_for_one(tmp_path):
    root = xr.Dataset({"v": ("n/x", np.ones(3))})
    node = xr.Dataset({"v": ("x", np.ones(4))})
    with pytest.raises(fst.Invalid, match="length is 3"):
        container.write_dataset(xr.DataTree.from_dict({"/": root, "/n": node}), tmp_path / "a.nc")
    assert again(tmp_path, xr.DataTree.from_dict({"/m": root, "/n": node})) == (
        {"m/n/x": 3, "n/x": 4},
        {"m/v": ("m/n/x",), "n/v": ("n/x",)},
    )
    root, node = xr.Dataset({"v": ("x", np.ones(3))}), xr.Dataset({"v": (("x", "/x"), np.ones((3, 3)))})
    assert again(tmp_path, xr.DataTree.from_dict({"/": root, "/n": node})) == (
        {"x": 3, "n/x": 3},
        {"v": ("x",), "n/v": ("n/x", "x")},
    )


# If dask computes in other processes, only this process can write the file that it creates.
@pytest.mark.parametrize("scheduler", ["threads", "sync", "processes", "distributed"])
def test_lazy_arrays_are_written_wherever_dask_computes_them(tmp_path, monkeypatch, scheduler):
    dask = pytest.importorskip("dask")
    data = np.arange(6 * 70.0).reshape(6, 70)
    ds = xr.Dataset({"v": (("t", "x"), data), "w": (("t", "x"), -data), "one": ((), 2.0)}).chunk(t=2, x=50)
    ds["both"] = ds.v + ds.w.sum()
    monkeypatch.setattr(_dataset, "BATCH", 5000)
    batches = list(_dataset._batches([(ds[name].variable._data, None) for name in ("v", "w", "both")]))
    held = [sum(8 * (t.stop - t.start) * (x.stop - x.start) for *_, (t, x) in batch) for batch in batches]
    assert sum(map(len, batches)) == 18 and len(batches) < 5 and max(held) <= 5000
    assert [chunk[3] for chunk in batches[0]][:3] == [(slice(0, 2), slice(0, 50))] * 3  # of v, w and both
    if scheduler == "distributed":
        chosen = pytest.importorskip("distributed").Client(
            n_workers=1, threads_per_worker=1, dashboard_address=None
        )
    else:
        chosen = dask.config.set(scheduler=scheduler)
    with chosen:
        container.write_dataset(ds, tmp_path / "a.nc", unlimited_dims="t")
    xr.testing.assert_identical(opened(tmp_path / "a.nc"), ds.compute(scheduler="sync"))


def test_a_node_of_a_tree_is_written_as_a_root(tmp_path):
    node = xr.Dataset({"v": ("x", np.ones(3))}, attrs={"title": "a"})
    tree = xr.DataTree.from_dict(
        {
            "/": xr.Dataset({"no": ((), 0)}, coords={"x": [1, 2, 3]}),
            "/a": node,
            "/a/b": xr.Dataset({"w": (("x", "y"), np.zeros((3, 2)))}),
        }
    )
    container.write_dataset(
        tree["a"], tmp_path / "a.nc", encoding={"b/w": {"dtype": "f4"}, "x": {"dtype": "i1"}}
    )
    with container.open(tmp_path / "a.nc") as f:
        assert sorted(f.vars) == ["b/w", "v", "x"] and dict(f.dims) == {"x": 3, "b/y": 2}
        assert (f["b/w"].dtype, f["x"].dtype) == (np.dtype("f4"), np.dtype("i1"))
    own = xr.open_datatree(tmp_path / "a.nc", engine="fieldstone").load()
    xr.testing.assert_equal(own, tree["a"].copy())


def test_bounds_of_times_have_the_units_of_their_times(tmp_path):
    time = pd.date_range("2000-01-01", periods=3, freq="6h")
    bounds = np.stack([time, time + pd.Timedelta("6h")], 1)
    ds = xr.Dataset({"time_bnds": (("time", "two"), bounds)}, {"time": time})
    ds.time.attrs["bounds"] = "time_bnds"
    ds.time.encoding.update(units="hours since 1990-01-01", calendar="noleap")
    container.write_dataset(ds, tmp_path / "a.nc")
    ds.to_netcdf(tmp_path / "b.nc", engine="netcdf4", format="NETCDF3_64BIT_DATA")
    for decode in (False, True):
        with xr.open_dataset(tmp_path / "b.nc", decode_cf=decode) as other:
            own = opened(tmp_path / "a.nc", decode_cf=decode)
            xr.testing.assert_identical(own, other.load())
    asked = {"time": {"units": "hours since 1980-01-01"}}
    container.write_dataset(ds, tmp_path / "a.nc", encoding=asked)
    raw = opened(tmp_path / "a.nc", decode_cf=False)
    assert raw.time.values[1] == raw.time_bnds.values[1, 0] == 7305 * 24 + 6
    assert "units" not in ds.time_bnds.encoding  # nothing of the given one changes


ENCODINGS = [
    ({"t": {"dtpye": "i2"}}, "encoding 'dtpye' of 't'.*do you mean 'dtype'"),
    ({"t": {"flavour": 3}}, "'flavour' of 't'.*there are dtype, _FillValue"),
    ({"t": {"units": "K"}}, "'units' of 't' does not apply"),
    ({"t": {"zlib": True}}, "'zlib' of 't': a container has neither chunks"),
    ({"t": {"zlib": False, "chunksizes": (1, 2, 3)}}, "'chunksizes' of 't'"),
    ({"u": {}}, "encoding for 'u', which is not a variable .hint: there are "),
    ({"q/t": {}}, "there is no node 'q'"),
    ({"t": "i2"}, "encoding for 't' is 'i2'"),
]


@pytest.mark.parametrize(("encoding", "message"), ENCODINGS, ids=lambda given: str(given)[:20])
@pytest.mark.parametrize("format", ["cdf1", "cdf5"])
def test_encodings_that_mean_nothing_are_refused(tmp_path, encoding, message, format):
    with pytest.raises(fst.Invalid, match=message):
        container.write_dataset(weather(), tmp_path / "a.nc", format=format, encoding=encoding)
    assert not (tmp_path / "a.nc").exists()


def test_encodings_that_a_variable_was_read_with_are_no_orders(tmp_path):
    ds = weather()
    ds.to_netcdf(tmp_path / "a.nc", engine="netcdf4", encoding={"t": {"zlib": True, "chunksizes": (2, 3, 5)}})
    with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as read:
        assert read.t.encoding["zlib"] and "dtype" in read.gap.encoding
        plain = {name: dict(read[name].encoding) for name in ("gap", "height", "count")}
        assert plain["gap"]["contiguous"] and plain["gap"]["zlib"] is False
        container.write_dataset(read, tmp_path / "b.nc", encoding=plain)
    xr.testing.assert_equal(opened(tmp_path / "b.nc"), ds)


def test_encodings_of_a_tree_are_by_paths_or_by_nodes(tmp_path):
    leaf = xr.Dataset({"v": ("x", np.ones(3)), "w": ("x", np.ones(3))})
    tree = xr.DataTree.from_dict({"/": xr.Dataset({"v": ((), 1.0)}), "/a": leaf, "/a/b": leaf})
    half = {"dtype": "f4"}
    for encoding in (
        {"v": half, "a/v": half, "/a/b/w": half},
        {"/": {"v": half}, "/a": {"v": half}, "/a/b": {"w": half}},
        {"/v": half, "/a": {"v": half}, "a/b": {"w": half}},
    ):
        container.write_dataset(tree, tmp_path / "a.nc", encoding=encoding)
        with container.open(tmp_path / "a.nc") as f:
            halves = [name for name, v in f.vars.items() if v.dtype == np.dtype("f4")]
        assert sorted(halves) == ["a/b/w", "a/v", "v"], encoding
    for encoding, message in (
        ({"/q/v": half}, "there is no node 'q' .hint: there are /, a, a/b"),
        ({"/q": {"v": half}}, "encoding for 'q', which is not a variable or a node"),
        ({"/a": {"u": half}}, "encoding for 'a/u', which is not a variable .hint: there are v, w"),
        ({"a/b/u": half}, "encoding for 'a/b/u', which is not a variable or a node"),
    ):
        with pytest.raises(fst.Invalid, match=message):
            container.write_dataset(tree, tmp_path / "b.nc", encoding=encoding)


def test_names_with_slashes_are_refused(tmp_path):
    ones = ("x", np.ones(3))
    for ds in (
        xr.Dataset({"a/v": ones}),
        xr.Dataset(coords={"a/x": ones}),
        xr.Dataset({"v": ones}, attrs={"a/title": "t"}),
        xr.Dataset({"v": (*ones, {"a/units": "K"})}),
        xr.DataTree.from_dict({"/n": xr.Dataset({"v": ones}, attrs={"a/title": "t"})}),
    ):
        with pytest.raises(fst.Invalid, match=r"a name cannot contain /"):
            container.write_dataset(ds, tmp_path / "a.nc")
        assert not (tmp_path / "a.nc").exists()


def test_a_container_of_paths_that_was_opened_without_them_says_how_to_open_it(tmp_path):
    tree = xr.DataTree.from_dict({"/n": xr.Dataset({"v": ("x", np.ones(3))})})
    container.write_dataset(tree, tmp_path / "a.nc")
    with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as flat:
        with pytest.raises(fst.Invalid, match='engine="fieldstone", or drop the attribute'):
            container.write_dataset(flat, tmp_path / "b.nc")
        del flat.attrs["fieldstone_paths"]
        container.write_dataset(flat, tmp_path / "b.nc")
    with container.open(tmp_path / "b.nc") as f:
        assert list(f.vars) == ["n.v"]

"""``fieldstone.container`` in one process: define, write, read, compared with netCDF4 and scipy."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import fieldstone as fst
import numpy as np
import pytest
from fieldstone import container

netCDF4 = pytest.importorskip("netCDF4")
from scipy.io import netcdf_file  # noqa: E402

CLASSIC = ("cdf1", "cdf2", "cdf5")
FORMATS = (*CLASSIC, "partitioned")


def small(path, format="cdf5", **options):
    """Two records of a variable, a fixed one, text, and a scalar."""
    with container.create(path, format=format, **options) as f:
        f.def_dim("time", None)
        f.def_dim("x", 4)
        f.def_dim("n", 3)
        f.put_att("title", "a test")
        t = f.def_var("t", "f4", ("time", "x"), attrs={"units": "K", "range": np.array([1, 2], "i2")})
        f.def_var("mask", "i1", ("x",))
        f.def_var("name", "S1", ("n",))
        f.def_var("dt", "f8")
        f.enddef()
        t[0:2] = np.arange(8).reshape(2, 4)
        f["mask"][...] = [1, 0, 1, 0]
        f["name"][...] = "abc"
        f["dt"][...] = 0.5
    return path


def check_small(variables):
    """`variables` maps names to arrays."""
    assert np.array_equal(variables["t"][:], np.arange(8, dtype="f4").reshape(2, 4))
    assert np.array_equal(variables["mask"][:], [1, 0, 1, 0])
    assert b"".join(np.asarray(variables["name"][:]).tolist()) == b"abc"
    assert variables["dt"][...] == 0.5


@pytest.mark.parametrize("format", FORMATS)
def test_the_report_tells_of_every_phase(tmp_path, format):
    f = container.create(tmp_path / "a.nc", format=format)
    f.def_dims(["x", "y"], [2, 3])
    f.def_many(names=["u", "v"], dtypes="f4", dims=[("x",), ("y",)])
    ended = [phase.name for phase in f.enddef().phases]
    f.close()
    phases = {phase.name: phase for phase in f.report.phases}
    assert list(phases) == ["definition", "exchange", "check", "header write", "close"] == [*ended, "close"]
    assert all(phase.seconds > 0 and phase.peak_bytes > 0 for phase in phases.values())
    assert all(word in repr(f.report) for word in phases)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_is_read_here(tmp_path, format):
    with container.open(small(tmp_path / "a.nc", format)) as f:
        check_small(f.vars)
        assert (f.format, f.mode, f.defining) == (format, "r", False)
        assert dict(f.dims) == {"time": 2, "x": 4, "n": 3}
        assert list(f.vars) == ["t", "mask", "name", "dt"]
        assert dict(f.attrs) == {"title": "a test"}
        assert f.record_dim == "time"
        t = f["t"]
        assert (t.dtype, t.dims, t.shape) == (np.dtype("f4"), ("time", "x"), (2, 4))
        assert (t.nbytes, t.ndim, t.size, len(t)) == (32, 2, 8, 2)
        assert t.attrs["units"] == "K"
        assert t.attrs["range"].dtype == np.dtype("i2")
        assert f["dt"].shape == () and f["name"].dtype == np.dtype("S1")
        assert "t" in f and "u" not in f and 3 not in f
        with pytest.raises(fst.NotFound, match="no variable 'u'"):
            f["u"]
        with pytest.raises(fst.NotFound, match="no dimension 'u'"):
            f.dims["u"]
        with pytest.raises(KeyError, match="no attribute 'u'"):
            f.attrs["u"]


@pytest.mark.parametrize("format", CLASSIC)
def test_others_read_what_is_written(tmp_path, format):
    path = small(tmp_path / "a.nc", format)
    with netCDF4.Dataset(path) as other:
        other.set_auto_mask(False)
        check_small(other.variables)
        assert other.title == "a test" and other["t"].units == "K"
        assert other.dimensions["time"].isunlimited()
    if format != "cdf5":
        with netcdf_file(path, mmap=False) as other:
            check_small({name: v.data for name, v in other.variables.items()})


@pytest.mark.parametrize("format", FORMATS)
def test_all_types(tmp_path, format):
    wide = format in ("cdf5", "partitioned")
    types = ["i1", "S1", "i2", "i4", "f4", "f8"] + (["u1", "u2", "u4", "i8", "u8"] if wide else [])
    values = {t: np.array([b"a", b"\0", b"z"]) if t == "S1" else np.array([0, 1, 100], t) for t in types}
    with container.create(tmp_path / "a.nc", format=format) as f:
        f.def_dim("x", 3)
        for t in types:
            f.def_var(f"v_{t}", t, "x", {"one": values[t][1:2] if t != "S1" else "b", "all": values[t]})
        f.enddef()
        for t in types:
            f[f"v_{t}"][:] = values[t]
    with container.open(tmp_path / "a.nc") as f:
        for t in types:
            v = f[f"v_{t}"]
            assert v.dtype == np.dtype(t) and np.array_equal(v[:], values[t])
            if t != "S1":
                assert v.attrs["one"] == 1 and v.attrs["one"].dtype == np.dtype(t)
                assert np.array_equal(v.attrs["all"], values[t])
    if not wide:
        with (
            pytest.raises(fst.Invalid, match=r"v|u8|uint64"),
            container.create(tmp_path / "b.nc", format=format) as f,
        ):
            f.def_var("v", "u8")


KEYS = [
    (..., 0),
    (slice(None),),
    (1,),
    (-1, -2),
    (slice(1, None), slice(None, None, -1)),
    (slice(None, None, 2), slice(1, 100, 3), ...),
    (0, slice(-1, None, -2), slice(1, 4)),
    (slice(2, 2),),
    (np.int64(1), np.uint8(2), 3),
    (slice(-3, -1), ..., slice(None, None, -3)),
    ...,
    2,
    slice(None, None, -1),
    (),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys(tmp_path, key):
    data = np.arange(3 * 4 * 5, dtype="i4").reshape(3, 4, 5)
    for record in (None, 3):
        with container.create(tmp_path / "a.nc") as f:
            f.def_dims(["z", "y", "x"], [record, 4, 5])
            v = f.def_var("v", "i4", ("z", "y", "x"))
            f.enddef()
            v[:] = data
            found = v[key]
            assert np.array_equal(found, data[key]) and np.shape(found) == data[key].shape
            other = data.copy()
            other[key] = -data[key]
            v[key] = -data[key]
            assert np.array_equal(v[:], other)
            other[key] = 7
            v[key] = 7
            assert np.array_equal(np.asarray(v), other)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, "index 3 of 'v' along 'z', whose length is 3"),
        ((0, -5), "index -5 of 'v' along 'y'"),
        ((0, 0, 0, 0), "4 indices for 'v', which has 3"),
        ((..., ...), "two ellipses"),
        ([0, 1], "contains a list"),
        (1.0, "contains a float"),
        (None, "contains None"),
        (True, "contains True"),
        (slice(0, 1, 0), "slice step cannot be zero"),
        (slice("a", None), "slice"),
    ],
    ids=str,
)
def test_indices_that_cannot_be(tmp_path, key, message):
    with container.create(tmp_path / "a.nc") as f:
        f.def_dims(["z", "y", "x"], [3, 4, 5])
        v = f.def_var("v", "i4", ("z", "y", "x"))
        f.enddef()
        with pytest.raises(fst.Invalid, match=message):
            v[key]
        with pytest.raises(fst.Invalid, match=message):
            v[key] = 0


def test_records_grow_by_writing(tmp_path):
    with container.create(tmp_path / "a.nc", fill=True) as f:
        f.def_dim("t", None)
        f.def_dim("x", 2)
        a, b = f.def_var("a", "i4", ("t", "x")), f.def_var("b", "f8", "t")
        f.enddef()
        assert len(a) == 0 and a[:].shape == (0, 2)
        a[2] = [5, 6]
        assert f.dims["t"] == 3 and a.shape == (3, 2) and b.shape == (3,)
        a[3:5] = 1
        b[:] = np.arange(7)
        assert f.dims["t"] == 7
        with pytest.raises(fst.Invalid):
            a[7]
        b.put([1.0, 2.0], start=[7])
        a.put([9, 9], start=(8, 0))
        assert f.dims["t"] == 9
    with netCDF4.Dataset(tmp_path / "a.nc") as other:
        assert other["a"][2].tolist() == [5, 6] and other["a"][8].tolist() == [9, 9]
        assert other["b"][:9].filled(-1).tolist() == [0, 1, 2, 3, 4, 5, 6, 1, 2]
        assert other["a"][0].mask.all() and other["a"][6].mask.all()


def test_get_and_put_of_boxes(tmp_path):
    data = np.arange(24, dtype="f8").reshape(4, 6)
    with container.create(tmp_path / "a.nc") as f:
        f.def_dims(["y", "x"], [4, 6])
        v = f.def_var("v", "f8", ("y", "x"))
        f.enddef()
        v.put(data)
        v.put([[-1, -2]], start=(1, 1), stride=(1, 3))
        data[1, 1], data[1, 4] = -1, -2
        assert np.array_equal(v.get(), data)
        assert np.array_equal(v.get((1, 2)), data[1:, 2:])
        assert np.array_equal(v.get((0, 1), (2, 3), (3, 2)), data[0:4:3, 1:6:2])
        assert np.array_equal(v.get((0, 1), stride=(3, 2)), data[0:4:3, 1:6:2])
        assert v.get((0, 0), (1, 1)).shape == (1, 1)
        out = np.empty((2, 3), "f4")
        assert v.get((0, 1), (2, 3), into=out) is out and np.array_equal(out, data[:2, 1:4])
        assert v.get(dtype="i4").dtype == np.dtype("i4")
        for wrong in ({"start": (5, 0)}, {"start": (0, 0), "count": (5, 1)}, {"start": (0,)}, {"start": -1}):
            with pytest.raises(fst.Invalid):
                v.get(**wrong)
        with pytest.raises(fst.Invalid, match="box"):
            v.put([1, 2, 3], start=(0, 0), count=(1, 2))
        with pytest.raises(fst.Invalid, match="box"):
            v.get((0, 0), (1, 1), into=out)
        with pytest.raises(fst.Invalid, match="byte order"):
            v.get(into=np.empty((4, 6), ">f4"))


def test_an_array_to_read_into_is_of_the_dtype_that_is_asked_for(tmp_path):
    with container.open(small(tmp_path / "a.nc")) as f:
        t, whole = f["t"], np.arange(8).reshape(2, 4)
        # The same size, so that only the dtype differs.
        for held, asked in (("i4", "f4"), ("f4", "i4"), ("u4", np.int32), ("i8", float)):
            into = np.full((2, 4), 7, held)
            with pytest.raises(fst.Invalid, match="but dtype= is"):
                t.get(into=into, dtype=asked)
            assert (into == 7).all()
            assert np.array_equal(t.get(into=into, dtype=held), whole) and np.array_equal(into, whole)
        flags = np.empty(4, bool)
        assert f["mask"].get(into=flags, dtype=bool).tolist() == [True, False, True, False]
        with pytest.raises(fst.Invalid, match="bytearray is not an array"):
            t.get(into=bytearray(32))


def test_numbers_of_elements_are_checked(tmp_path):
    with container.open(small(tmp_path / "a.nc"), "a") as f:
        for wrong in (-1, 2**64, 1.0, True, "1", [[0]]):
            for call in (
                lambda wrong=wrong: f["mask"].get([wrong]),
                lambda wrong=wrong: f["mask"].put([1], [wrong]),
                lambda wrong=wrong: f.get_many([("mask", [wrong])]),
                lambda wrong=wrong: f.put_many([("mask", [1], [wrong])]),
            ):
                with pytest.raises(fst.Invalid, match="not a number of elements"):
                    call()
        assert f.get_many([("mask", 2, 1)])[0].tolist() == [1]  # a number stands for one dimension


def test_arrays_of_any_layout_are_taken(tmp_path):
    data = np.arange(12, dtype="i4").reshape(3, 4)
    with container.create(tmp_path / "a.nc") as f:
        f.def_dims(["y", "x"], [3, 4])
        v, w = f.def_var("v", "i4", ("y", "x")), f.def_var("w", "i1", ("y", "x"))
        f.enddef()
        for given in (data, data[::-1][::-1], np.asfortranarray(data), data.astype(">i4"), data.tolist()):
            v[:] = 0
            v[:] = given
            assert np.array_equal(v[:], data)
        w[:] = data > 5
        assert np.array_equal(w[:], data > 5)
        for given, message in (
            (np.ma.masked_equal(data, 3), "masked"),
            (data.astype("M8[s]"), "netCDF has no type"),
            (np.array(["a"] * 12).reshape(3, 4), ""),
            (np.full((3, 4), None), "netCDF has no type"),
            (np.zeros((2, 4)), "values of shape"),
        ):
            with pytest.raises(fst.Error, match=message):
                v[:] = given
        with pytest.raises(fst.Invalid, match=r"300|range"):
            w[0, 0] = 300


def test_text(tmp_path):
    with container.create(tmp_path / "a.nc") as f:
        f.def_dims(["n", "m"], [2, 3])
        v = f.def_var("v", str, ("n", "m"))
        f.put_att("note", "Größe\n2")
        f.put_att("raw", b"\xff\xfe")
        f.enddef()
        v[...] = np.array(["abc", "de"])
        assert v[0].tobytes() == b"abc" and v[1].tobytes() == b"de\0"
        v[1] = "xyz"
        assert v[1].tobytes() == b"xyz"
        assert f.attrs["note"] == "Größe\n2"
        assert f.attrs["raw"].encode("utf-8", "surrogateescape") == b"\xff\xfe"


def test_attributes(tmp_path):
    with container.create(tmp_path / "a.nc") as f:
        v = f.def_var("v", "f4", attrs={"a": 1, "b": 1.5, "c": [1, 2**40], "d": np.float32(2), "e": ""})
        v.attrs["_FillValue"] = np.float32(-1)
        v.attrs.update({"a": 2}, f=True)
        f.attrs["late"] = (1.0, 2.0)
        for name, value, message in (
            ("g", [[1]], "2 dimensions"),
            ("g", ["a", "b"], "list of texts"),
            ("g", None, "no type"),
            ("a/b", 1, ""),
        ):
            with pytest.raises(fst.Invalid, match=message):
                v.attrs[name] = value
    with container.open(tmp_path / "a.nc") as f:
        attrs = f["v"].attrs
        assert list(attrs) == ["a", "b", "c", "d", "e", "_FillValue", "f"]
        kinds = {name: np.asarray(attrs[name]).dtype.str[1:] for name in "abcdf"}
        assert kinds == {"a": "i4", "b": "f8", "c": "i8", "d": "f4", "f": "i1"}
        assert (attrs["a"], attrs["e"], attrs["c"].tolist()) == (2, "", [1, 2**40])
        assert f.attrs["late"].tolist() == [1, 2]
        assert attrs == dict(attrs) and attrs != {"a": 2}
        assert "'a': " in repr(attrs)


def test_paths_are_names_in_every_format(tmp_path):
    for format in FORMATS:
        with container.create(tmp_path / "a.nc", format=format) as f:
            f.def_dim("x", 2)
            f.def_dim("event_7/hits", 3)
            f.put_att("event_7/weight", 0.5)
            f.def_var("event_7/plane_u/q", "f4", ("hits", "x"))
            f.def_var("top", "i4", "x")
            f.enddef()
            f["event_7/plane_u/q"][...] = 2
        with container.open(tmp_path / "a.nc") as f:
            assert f.paths == ["", "event_7", "event_7/plane_u"]
            q = f["event_7/plane_u/q"]
            assert q.dims == ("event_7/hits", "x") and q.shape == (3, 2) and (q[:] == 2).all()
            assert f.attrs["event_7/weight"] == 0.5
    path = tmp_path / "b.nc"
    with container.create(path) as f:
        f.def_var("event_7/v.w~", "i4")
    with netCDF4.Dataset(path) as other:
        assert list(other.variables) == ["event_7.v~.w~~"]


def test_an_exception_gives_up_a_new_file_and_keeps_an_old_one(tmp_path):
    path = small(tmp_path / "a.nc")
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError), container.create(path) as f:
        f.def_var("other", "i4")
        f.enddef()
        f["other"][...] = 1 // 0
    assert f.closed and path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.nc"]
    new = tmp_path / "new.nc"
    with pytest.raises(ZeroDivisionError), container.create(new) as f:
        f.def_var("other", "i4")
        f.enddef()
        f["other"][...] = 1 // 0
    if new.exists():
        with pytest.raises(fst.Error, match=r"finish|complete"):
            container.open(new)


def test_modes(tmp_path):
    path = small(tmp_path / "a.nc")
    f = container.open(path)
    with pytest.raises(fst.Error):
        f["t"][0] = 1
    with pytest.raises(fst.Error):
        f.def_dim("y", 1)
    f.close()
    f.close()
    assert repr(f) == f"<container {path}: closed>"
    with pytest.raises(fst.Invalid, match="closed"):
        f["t"]
    with pytest.raises(fst.NotFound):
        container.open(tmp_path / "absent.nc")
    (tmp_path / "text").write_text("no container")
    with pytest.raises(fst.Error, match="text"):
        container.open(tmp_path / "text")
    for wrong in ({"format": "hdf5"}, {"strategy": "fast"}, {"index": "maybe"}, {"hash_size": 0}):
        with pytest.raises(fst.Invalid):
            container.create(tmp_path / "b.nc", **wrong)
    with pytest.raises(fst.Invalid):
        container.open(path, "w")
    assert not (tmp_path / "b.nc").exists()


def test_a_container_lists_its_variables_and_objects_outlive_it(tmp_path):
    f = container.open(small(tmp_path / "a.nc"))
    assert list(f) == list(f.vars) and sorted(f)[0] in f
    held = [f["t"], f.vars, f.dims, f.attrs, f["t"].attrs]
    f.close()
    for one in held:
        assert "closed" in repr(one)
    assert "closed" in held[0]._repr_html_()


@pytest.mark.parametrize("index", ["never", "always"])
def test_a_header_that_tells_of_more_than_there_is_is_damage_not_lack_of_memory(tmp_path, index):
    path = small(tmp_path / "a.nc", index=index)
    raw = bytearray(path.read_bytes())
    for records in (2**44, 2**60):
        raw[4:12] = records.to_bytes(8, "big")
        path.write_bytes(raw)
        try:
            f = container.open(path)
        except fst.Corrupt:
            continue
        with f:
            for read in (lambda f: f["t"][:], lambda f: f["t"].get(), lambda f: f.get_many(["t"])):
                with pytest.raises(fst.Corrupt, match="t"):
                    read(f)


def test_a_variable_is_defined_with_its_attributes_or_not_at_all(tmp_path):
    with container.create(tmp_path / "a.nc", format="cdf1") as f:
        f.def_dim("x", 3)
        for attrs in ({"units": "K", "big": 2**40}, {"_FillValue": np.float64(1)}, {" x": 1}):
            with pytest.raises(fst.Invalid):
                f.def_var("v", "f4", "x", attrs)
            assert "v" not in f.vars
        assert f.def_var("v", "f4", "x", {"units": "K", "n": 7}).attrs == {"units": "K", "n": np.int32(7)}
        for wrong in (lambda: f.def_var("w", None), lambda: f.def_many(["w"], None)):
            with pytest.raises(fst.Invalid, match="no dtype"):
                wrong()


def test_look_ups_in_define_mode_see_what_was_given_late(tmp_path):
    path = small(tmp_path / "a.nc")
    with container.open(path, "a") as f:
        f.redef()
        f["t"].attrs["late"] = 5
        assert f["t"].attrs["late"] == 5
        assert {name: v.attrs.get("late") for name, v in f.vars.items()}["t"] == 5
        f.enddef()
        assert f["t"].attrs["late"] == 5


def test_redefinition(tmp_path):
    path = small(tmp_path / "a.nc")
    with container.open(path, "a") as f:
        t = f["t"]
        f.redef()
        assert f.defining
        f.put_att("history", "longer " * 200)
        f.def_dim("y", 3)
        more = f.def_var("more", "i8", ("y", "x"))
        f.enddef()
        more[:] = np.arange(12).reshape(3, 4)
        t[2] = 9
        assert np.array_equal(t[0], np.arange(4))
    with container.open(path) as f:
        check_small({name: v if name != "t" else v[:2] for name, v in f.vars.items()})
        assert f["more"][2, 3] == 11 and f.dims["time"] == 3
    with netCDF4.Dataset(path) as other:
        assert other["more"][2, 3] == 11 and other["t"][2].tolist() == [9] * 4


def test_reports_and_reprs_are_bounded(tmp_path):
    with container.create(tmp_path / "a.nc") as f:
        f.def_many([f"v{i:05}" for i in range(5000)], "f4")
        report = f.enddef()
        assert report.phases and report.seconds >= 0 and report.header_bytes_written > 5000 * 40
        for text in (
            repr(report),
            report._repr_html_(),
            repr(f),
            f._repr_html_(),
            repr(f.vars),
            repr(f.dims),
        ):
            assert 0 < len(text) < 5000
        assert "5000 variables" in repr(f) and "4990 more" in repr(f.vars)
        assert "<script>" not in f["v00000"]._repr_html_()
        assert repr(f["v00000"]) == "<variable 'v00000': f4 ()>"


def test_containers_travel_by_path(tmp_path):
    path = small(tmp_path / "a.nc")
    with container.open(path) as f:
        again = pickle.loads(pickle.dumps(f))
        assert again is not f and np.array_equal(again["t"][:], f["t"][:])
        assert np.array_equal(pickle.loads(pickle.dumps(f["t"]))[1], f["t"][1])
        again.close()
    with container.open(path, "a") as f, pytest.raises(fst.Invalid, match="pickled"):
        pickle.dumps(f)


def test_containers_travel_also_where_the_folder_changes(tmp_path, monkeypatch):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    small("a.nc")
    with container.open("a.nc") as f:
        assert f.path == "a.nc"
        monkeypatch.chdir(tmp_path / "there")
        with pickle.loads(pickle.dumps(f)) as again:
            assert again["dt"][...] == 0.5
        small("a.nc")  # another file of that name in this folder
        with container.open("a.nc", "a") as other:
            other["dt"][...] = 9
        with pickle.loads(pickle.dumps(f)) as again:
            assert again["dt"][...] == 0.5
            variable = pickle.loads(pickle.dumps(again["dt"]))
            assert variable[...] == 0.5
            variable._file.close()


def test_many_boxes_in_one_call(tmp_path):
    with container.create(tmp_path / "a.nc") as f:
        f.def_dim("x", 10)
        f.def_many([f"e{i}/x" for i in range(50)], "i4", ("x",))
        f.enddef()
        f.put_many((f[f"e{i}/x"], np.full(10, i)) for i in range(50))
        f.put_many([("e7/x", [1, 2], [3], [2])])
        found = f.get_many(["e3/x", f["e4/x"], ("e7/x", [2], [4])])
        assert [a.tolist() for a in found] == [[3] * 10, [4] * 10, [7, 1, 2, 7]]
        with pytest.raises(fst.NotFound):
            f.get_many(["absent"])
        with pytest.raises(fst.Invalid):
            f.get_many([3])


def test_threads_read_one_container(tmp_path):
    data = np.random.default_rng(3).random((64, 512))
    with container.create(tmp_path / "a.nc") as f:
        f.def_dims(["y", "x"], data.shape)
        f.def_var("v", "f8", ("y", "x"))
        f.enddef()
        f["v"][:] = data
    wrong = []
    with container.open(tmp_path / "a.nc") as f:

        def read(k):
            for i in range(k, 64, 4):
                if not np.array_equal(f["v"][i], data[i]):
                    wrong.append(i)

        threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert not wrong


def test_room_is_left_after_fixed_data(tmp_path):
    ends = []
    for free in (0, 4096):
        with container.create(tmp_path / "a.nc", v_minfree=free) as f:
            f.def_dim("t", None)
            f.def_var("fixed", "f8", ())
            f.def_var("grows", "f8", ("t",))
            f.enddef()
            f["grows"][0:2] = [1, 2]
        ends.append((tmp_path / "a.nc").stat().st_size)
    assert ends[1] - ends[0] == 4096


def test_opening_and_reading_import_no_masked_arrays(tmp_path):
    with container.create(tmp_path / "a.nc") as f:
        f.def_dim("x", 3)
        f.def_var("v", "f8", ("x",))
        f.enddef()
        f["v"][:] = [1, 2, 3]
    program = """
import sys
from fieldstone import container
with container.open(sys.argv[1], "a") as f:
    f["v"][:] = f["v"][:] * 2
    assert f["v"][1] == 4.0
sys.exit("numpy.ma" in sys.modules)
"""
    # They take a tenth of the time of importing numpy, and ten times that of finding a variable.
    subprocess.run([sys.executable, "-c", program, tmp_path / "a.nc"], check=True)

"""Arrays written by key, as Datasets: gaps, times, types, names, errors."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest

xr = pytest.importorskip("xarray")


def store_of(rows, **options):
    """A store in memory with an array for each key."""
    store = fst.open("memory:", **options)
    for key, value in rows:
        store.archive(key, np.asarray(value))
    store.flush()
    return store


def key(variable="t", **more):
    return {"run": "a", "variable": variable, **more}


def test_gaps_are_filled_and_everything_else_is_where_it_belongs():
    rng = np.random.default_rng(5)
    rows, expected = [], {}
    for variable in ("t", "u"):
        for step in (0, 6, 100):
            for member in (2, 10):
                for level in (850, 500.5):
                    if rng.random() < 0.6:
                        value = rng.random((2, 3))
                        rows.append((key(variable, step=step, member=member, level=level), value))
                        expected[variable, step, member, level] = value
    ds = store_of(rows).to_xarray()
    assert set(ds.t.dims[:3]) == {"step", "level", "member"}
    assert (ds.step.values.tolist(), ds.level.values.tolist()) == ([0, 6, 100], [500.5, 850])
    for (variable, step, member, level), value in expected.items():
        np.testing.assert_array_equal(ds[variable].sel(step=step, member=member, level=level), value)
    for variable in ("t", "u"):
        whole = ds[variable].values
        held = sum(value.size for (name, *_), value in expected.items() if name == variable)
        assert np.isfinite(whole).sum() == held
        order = [slice(None, None, -1), slice(1, None), [1, 0], 1, [2, 0]]
        got = ds[variable].isel(dict(zip(ds[variable].dims, order, strict=True))).values
        np.testing.assert_array_equal(got, whole[::-1][:, 1:][:, :, [1, 0]][:, :, :, 1][..., [2, 0]])


def test_what_has_no_missing_value_is_refused_with_gaps():
    rows = [(key(step=s, member=m), np.array([b"x"])) for s, m in ((0, 0), (0, 1), (1, 0))]
    with pytest.raises(fst.Invalid, match=r"no field for some combinations of step, member.*\|S1"):
        store_of(rows).to_xarray()
    for dtype, kind in (("i2", "f"), ("?", "f"), ("M8[s]", "M"), ("c8", "c"), ("f4", "f")):
        ds = store_of([(k, np.zeros(1, dtype)) for k, _ in rows]).to_xarray()
        assert ds.t.dtype.kind == kind
        assert bool(ds.t.isnull().sel(step=1, member=1).all()) and int(ds.t.isnull().sum()) == 1


def test_a_variable_of_fewer_steps_is_filled_and_one_of_one_step_says_which():
    rows = [(key("t", step=s), [1.0]) for s in (0, 6, 12)] + [(key("u", step=s), [2.0]) for s in (0, 12)]
    ds = store_of([*rows, (key("orography", step=6), [3.0]), (key("mask"), [4])]).to_xarray()
    assert ds.u.sel(step=6).isnull().all() and float(ds.u.sel(step=12)[0]) == 2
    assert (ds.orography.dims, ds.orography.attrs) == (("dim_0",), {"step": 6})
    assert (ds.mask.dims, ds.mask.dtype.kind) == (("dim_0",), "i")
    assert str(ds.run.values) == "a"


def test_a_time_in_the_key_becomes_a_coordinate_of_the_steps():
    rows = [
        (key(v, step=s, time=s * 0.25, level=level), [float(s)])
        for v in ("t", "u")
        for s in range(5)
        for level in (1, 2)
    ]
    rows += [(key("ps", step=s, time=s * 0.25), [9.0]) for s in range(3)]
    ds = store_of(rows).to_xarray()
    assert ds.t.dims == ("step", "level", "dim_0")
    assert (ds.time.dims, ds.time.values.tolist()) == (("step",), [0, 0.25, 0.5, 0.75, 1])
    assert ds.t.sel(level=2).values.ravel().tolist() == [0, 1, 2, 3, 4]
    assert np.isnan(ds.ps.values.ravel()).tolist() == [False] * 3 + [True] * 2
    # With several runs that have their own times: along both.
    more = [({"run": "b", "variable": "t", "step": s, "time": s * 3.0, "level": 1}, [7.0]) for s in range(5)]
    both = store_of([*rows, *more]).to_xarray({"variable": "t"})
    assert set(both.time.dims) == {"run", "step"}
    assert float(both.time.sel(run="b", step=4)) == 12
    # Several times for one step are a dimension.
    ds = store_of([*rows, (key("t", step=0, time=99, level=1), [5.0])]).to_xarray({"variable": "t"})
    assert "time" in ds.t.dims and float(ds.t.sel(step=0, time=99, level=1)[0]) == 5


def test_a_variable_with_the_name_of_a_dimension_is_kept():
    rows = [(key(v, step=s), [float(s)]) for v in ("step", "t") for s in (3, 4)]
    ds = store_of(rows).to_xarray()
    assert ds.step.values.tolist() == [3, 4]
    assert ds.variable_step.values.ravel().tolist() == [3, 4]


def test_the_words_are_the_schemas():
    schema = "catalog run = exp; step = it; variable = field; it: Integer; [ exp [ field [ it ]]]"
    rows = [({"exp": e, "field": f, "it": i}, [i]) for e in "ab" for f in "tu" for i in (2, 10)]
    store = store_of(rows, schema=schema)
    ds = store.to_xarray({"exp": "a"})
    assert sorted(ds.data_vars) == ["t", "u"]
    assert ds.it.values.tolist() == [2, 10] and ds.t.values.ravel().tolist() == [2, 10]


def test_arrays_under_mars_keys_are_arrays():
    mars = {"class": "od", "expver": "0001", "stream": "oper", "date": "20260101", "time": "0000"}
    mars |= {"type": "fc", "levtype": "pl", "param": "130"}
    ds = store_of([({**mars, "step": s}, [s]) for s in (0, 6)], schema="mars").to_xarray()
    assert ds["130"].values.ravel().tolist() == [0, 6]


def test_requests_are_text_or_mappings_and_errors_name_what_is_near(tmp_path):
    url = str(tmp_path / "s")
    with fst.open(url) as store:
        for run in ("alpha", "beta"):
            for step in range(3):
                store.archive({"run": run, "variable": "temperature", "step": step}, np.zeros(2))

    def opened(request, **options):
        return xr.open_dataset(url, engine="fieldstone", request=request, **options)

    for request in (
        "run=alpha,step=0/to/1",
        {"run": "alpha", "step": range(2)},
        {"run": ["alpha"], "step": "0/1"},
    ):
        assert dict(opened(request).sizes) == {"step": 2, "dim_0": 2}
    for request in ("run=alpa", {"run": "alpa"}, {"run": ["alpa", "beto"]}):
        with pytest.raises(fst.NotFound, match=r"no run 'alpa'.*nearest: alpha"):
            opened(request)
    with pytest.raises(fst.NotFound, match=r"no variable 'temp'.*nearest: temperature"):
        xr.open_datatree(url, engine="fieldstone", request={"variable": "temp"})
    with pytest.raises(fst.NotFound, match=r"no field has the keyword 'stp'.*nearest: step"):
        opened("run=alpha,stp=1")
    with pytest.raises(fst.NotFound, match=r"none"):
        xr.open_dataset(str(tmp_path / "none"), engine="fieldstone")
    assert list(opened("run=beta", drop_variables=["temperature", "run"]).variables) == ["step"]
    raw = opened("run=beta", decode_times=False, mask_and_scale=False, decode_coords=False)
    assert list(raw.data_vars) == ["temperature"]
    with pytest.raises(fst.Invalid, match="no group 'x'"):
        opened("run=beta", group="x")
    store = fst.open("memory:")
    store.archive({"run": "a", "variable": "log"}, b"text")
    store.flush()
    with pytest.raises(fst.NotFound, match="only opaque bytes"):
        store.to_xarray()

"""Declarations of runs appear in their Datasets: dimensions, attributes, coordinates, times, parameters."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest

xr = pytest.importorskip("xarray")


def study(store: fst.Store, runs: int = 3, **more: dict) -> None:
    """Runs of two variables at two steps, each with parameters."""
    for n in range(runs):
        run = store.create_run(
            f"r{n}", params={"power": n + 8, "solver": "roe" if n else "llf", **more.get(f"r{n}", {})}
        )
        run.create_variable(
            "t",
            "f4",
            (2, 3),
            ("y", "x"),
            attrs={"units": "K", "long_name": f"of {n}", "valid_min": 0.0},
            coords={"y": [10.0, 20.0], "x": fst.uniform(0.5, 0.25)},
        )
        run.create_variable(
            "p", "f8", (3,), ("x",), attrs={"units": "Pa"}, coords={"x": fst.uniform(0.5, 0.25)}
        )
        run.create_steps([0, 6], times=[0.0, 0.5])
        for step in (0, 6):
            run.write("t", step, np.full((2, 3), n + step, "f4"))
            run.write("p", step, np.full(3, n + step, "f8"))
    store.flush()


def test_a_study_has_what_it_declares(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        study(store)
    for ds in (
        xr.open_dataset(str(tmp_path / "s"), engine="fieldstone"),
        fst.open(tmp_path / "s", "r").to_xarray(),
    ):
        assert ds.t.dims == ("run", "step", "y", "x") and ds.p.dims == ("run", "step", "x")
        # long_name differs: attributes that not all runs have are left out.
        assert ds.t.attrs == {"units": "K", "valid_min": 0.0} and ds.p.attrs == {"units": "Pa"}
        assert ds.x.values.tolist() == [0.5, 0.75, 1.0] and ds.y.values.tolist() == [10, 20]
        assert (ds.time.dims, ds.time.values.tolist()) == (("step",), [0, 0.5])
        assert (ds.power.dims, ds.power.values.tolist(), ds.power.dtype.kind) == (("run",), [8, 9, 10], "i")
        assert ds.solver.values.tolist() == ["llf", "roe", "roe"]
        hot = ds.sel(run=ds.power > 8)
        assert hot.run.values.tolist() == ["r1", "r2"]
        assert float(ds.t.sel(run="r2", step=6, y=20, x=0.75)) == 8


def test_one_run_has_scalars_and_a_tree_takes_each_run(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        study(store, r1={"seed": 5})
    one = xr.open_dataset(str(tmp_path / "s"), engine="fieldstone", request="run=r1,step=6")
    assert (one.power.dims, int(one.power), str(one.solver.values), int(one.seed)) == ((), 9, "roe", 5)
    assert (one.time.dims, float(one.time)) == ((), 0.5)
    assert one.t.attrs["long_name"] == "of 1"
    tree = xr.open_datatree(str(tmp_path / "s"), engine="fieldstone")
    assert [int(tree[f"r{n}"].power) for n in range(3)] == [8, 9, 10]
    assert tree["r2"].t.attrs["long_name"] == "of 2" and "seed" not in tree["r2"].coords
    assert tree["r0"].time.values.tolist() == [0, 0.5]


def test_what_a_run_lacks_is_missing_and_a_name_that_is_taken_is_told_apart() -> None:
    store = fst.open("memory:")
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    study(store, r0={"seed": 5, "on": True, "at": moment, "t": 3, "list": [1, 2]}, r2={"seed": 7})
    store.archive({"run": "plain", "variable": "t", "step": 0}, np.zeros((2, 3), "f4"))
    store.flush()
    ds = store.to_xarray()
    assert ds.run.values.tolist() == ["plain", "r0", "r1", "r2"]
    np.testing.assert_array_equal(ds.seed, [np.nan, 5, np.nan, 7])
    np.testing.assert_array_equal(ds.on, [np.nan, 1, np.nan, np.nan])
    assert np.isnat(ds["at"].values).tolist() == [True, False, True, True]
    assert ds["at"].values[1] == np.datetime64("2026-01-02")
    np.testing.assert_array_equal(ds["param.t"], [np.nan, 3, np.nan, np.nan])
    assert ds["list"].values[1] == "[1, 2]" and ds["list"].isnull().values.tolist() == [
        True,
        False,
        True,
        True,
    ]
    assert ds.solver.values.tolist()[1:] == ["llf", "roe", "roe"] and bool(ds.solver.isnull()[0])
    # The times of a run without times.
    assert ds.time.dims == ("run", "step")
    np.testing.assert_array_equal(ds.time, [[np.nan, np.nan], *[[0, 0.5]] * 3])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attrs": {"units": "degC"}}, "variable t has the units degC in run other, but K in run r0"),
        (
            {"dims": ("lat", "x")},
            r"variable t has the dimensions .'lat', 'x'.* in run other, but .'y', 'x'.* in run r0",
        ),
        (
            {"shape": (4, 3), "coords": None},
            r"differ in type or shape",
        ),
    ],
)
def test_runs_that_declare_otherwise_share_no_dataset(change: dict, words: str) -> None:
    store = fst.open("memory:")
    study(store)
    given = {"shape": (2, 3), "dims": ("y", "x"), "attrs": {"units": "K"}} | change
    run = store.create_run("other")
    run.create_variable("t", "f4", **given)
    run.write("t", 0, np.zeros(given["shape"], "f4"))
    store.flush()
    with pytest.raises(fst.Conflict, match=words):
        store.to_xarray("variable=t")
    assert store.to_xarray("run=other,variable=t").t.shape == given["shape"]
    if "shape" not in change:
        with pytest.raises(fst.Conflict):
            store.to_xarray()


def test_variables_with_coordinates_of_their_own_have_dimensions_of_their_own() -> None:
    store = fst.open("memory:")
    run = store.create_run("c")
    run.create_variable("centre", "f8", (3,), ("x",), coords={"x": [0.5, 1.5, 2.5]})
    run.create_variable("edge", "f8", (3,), ("x",), coords={"x": [0.0, 1.0, 2.0]})
    run.create_variable("plain", "f8", (3,), ("x",))
    run.create_variable("nameless", "f8", (3,), coords={0: [7.0, 8.0, 9.0]})
    for name in ("centre", "edge", "plain", "nameless"):
        run.write(name, 0, np.arange(3.0))
    store.flush()
    ds = store.to_xarray()
    assert {name: ds[name].dims for name in ds.data_vars} == {
        "centre": ("x",),
        "edge": ("edge_x",),
        "plain": ("x",),
        "nameless": ("dim_0",),
    }
    assert ds.edge_x.values.tolist() == [0, 1, 2] and ds.dim_0.values.tolist() == [7, 8, 9]


def test_declared_packing_and_times_are_decoded() -> None:
    store = fst.open("memory:")
    run = store.create_run("d")
    packed = {"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": np.int16(-1), "units": "K"}
    run.create_variable("t", "i2", (3,), ("x",), attrs=packed)
    run.create_variable("when", "f8", (2,), ("n",), attrs={"units": "hours since 2026-01-01"})
    run.write("t", 0, np.array([0, 2, -1], "i2"))
    run.write("when", 0, np.array([0.0, 36.0]))
    store.flush()
    ds = store.to_xarray()
    np.testing.assert_array_equal(ds.t, [10, 11, np.nan])
    assert ds.when.values[1] == np.datetime64("2026-01-02T12")


def test_a_store_without_declarations_is_not_asked(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store:
        store.archive({"run": "a", "variable": "t", "step": 0}, np.zeros(3))
    ds = xr.open_dataset(str(tmp_path / "s"), engine="fieldstone")
    assert ds.t.dims == ("dim_0",)
    assert not (tmp_path / "s" / "catalog").exists()


def test_an_exported_file_has_it_too(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    with fst.open(tmp_path / "s") as store:
        study(store, r1={"seed": 5, "on": True, "name": "x"})
    store = fst.open(tmp_path / "s", "r")
    assert store.export("", tmp_path / "all.nc").skipped == ()
    written, held = xr.open_dataset(tmp_path / "all.nc"), store.to_xarray()
    assert written.name.values.tolist() == ["", "x", ""]  # files have no missing text
    xr.testing.assert_identical(written.drop_vars("name"), held.drop_vars("name"))
    store.export("run=r2", tmp_path / "one.nc")
    one = xr.open_dataset(tmp_path / "one.nc")
    assert (one.t.dims, one.t.attrs["units"], int(one.power)) == (("step", "y", "x"), "K", 10)
    assert one.time.values.tolist() == [0, 0.5] and one.x.values.tolist() == [0.5, 0.75, 1.0]


def test_a_run_of_several_keywords_has_what_it_declares() -> None:
    """Runs of the schema `mars`: a place is empty if a keyword that their rule knows is absent."""
    store = fst.open("memory:", schema="mars")
    known = {"class": "od", "expver": "0001", "stream": "oper", "time": "1200"}
    foreign = {"centre": "kw%c", "time": "1200"}
    fixed = {"type": "fc", "levtype": "sfc", "param": "167"}
    for n, date in enumerate(("20260101", "20260102", "20260103")):
        run = store.create_run(f"od/0001/oper/{date}/1200", params={"alpha": n + 0.5} if n < 2 else {})
        run.create_variable(
            "167", "f4", (2, 3), ("lat", "lon"), attrs={"units": "K"}, coords={"lat": [1.0, 2.0]}
        )
        for step in (0, 6):
            store.archive({**known, **fixed, "date": date, "step": step}, np.full((2, 3), n + step, "f4"))
    store.create_run("kw%25c//1200", params={"alpha": 9.0})
    store.archive({**foreign, **fixed, "step": 0}, np.zeros((2, 3), "f4"))
    store.flush()
    ds = store.to_xarray("class=od")
    assert ds["167"].dims == ("date", "step", "lat", "lon") and ds["167"].attrs["units"] == "K"
    assert ds.lat.values.tolist() == [1, 2] and ds.alpha.dims == ("date",)
    np.testing.assert_array_equal(ds.alpha, [0.5, 1.5, np.nan])
    one = store.to_xarray("class=od,date=20260102")
    assert (one.alpha.dims, float(one.alpha)) == ((), 1.5)
    other = store.to_xarray("centre=kw%c")
    assert float(other.alpha) == 9 and other["167"].attrs == {}


def test_parameters_of_projects_and_runs() -> None:
    store = fst.open("memory:")
    for project in ("p", "q"):
        for n in range(2):
            run = store.create_run(f"r{n}", project=project, params={"x": 10 * (project == "q") + n})
            run.create_steps([0], times=[float(n)])
            run.write("t", 0, np.zeros(3))
    store.flush()
    ds = store.to_xarray()
    assert ds.x.dims == ("project", "run") and ds.x.values.tolist() == [[0, 1], [10, 11]]
    assert ds.time.values.tolist() == [[0, 1], [0, 1]]

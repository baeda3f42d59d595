"""First impressions: numbers, patterns, and how objects describe themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fieldstone as fst
import numpy as np
import pytest

FIELD = np.arange(24.0).reshape(4, 6)


def program() -> Path:
    return Path(sys.executable).parent / "fieldstone"


def test_patterns_select_fields_as_they_select_runs(tmp_path):
    with fst.open(tmp_path / "store") as store:
        for run in ("tos-1", "tos-2", "tas-1", "a*b"):
            for variable in ("temp", "temp_mean", "wind"):
                store.archive({"run": run, "variable": variable, "step": 0}, FIELD)
        store.flush()

        def found(request: Any) -> list[tuple[str, str]]:
            return [(e.key["run"], e.key["variable"]) for e in store.list(request)]

        assert {run for run, _ in found("run=tos*")} == {"tos-1", "tos-2"}
        assert {run for run, _ in found("run=t?s-*")} == {"tos-1", "tos-2", "tas-1"}
        assert {run for run, _ in found("run=t[ou]s*,variable=*mean")} == {"tos-1", "tos-2"}
        assert found("run=tos-1,variable=*emp*") == [("tos-1", "temp"), ("tos-1", "temp_mean")]
        assert found("run=tas-1/tos-2*,variable=wind") == [("tas-1", "wind"), ("tos-2", "wind")]
        assert found({"run": "tos*", "variable": ["wind", "temp"]}) == found("run=tos*,variable=wind/temp")
        for literal in ('run="a*b"', {"run": ["a*b"]}):
            assert {run for run, _ in found(literal)} == {"a*b"}
        assert len(found("run=*")) == 12 and found("run=zz*") == []
        assert len(store.retrieve("run=tos*,variable=wind")) == 2
        assert store.axes("run=tas*")["variable"] == ["temp", "temp_mean", "wind"]
        assert str(fst.Request("run=tos*/a,variable=*x*")) == "run=tos*/a,variable=*x*"
        with pytest.raises(fst.Invalid, match="a pattern"):
            store.archive("run=tos*,variable=x", FIELD)
        assert (store.get({"run": "a*b", "variable": "temp", "step": 0}) == FIELD).all()
        with pytest.raises(fst.NotFound):
            store.retrieve("run=tos*,variable=wind/none")
        assert store.remove("run=tos*") == 6
        store.flush()
        assert {run for run, _ in found(None)} == {"tas-1", "a*b"}


def test_extremes_are_those_of_what_values_stand_for(tmp_path):
    """s 1.8 to 1.10: fill values, packing and netCDF's `_Unsigned` in lists, tables and the program."""
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "sat.nc", "w") as file:
        file.createDimension("x", 4)
        height = file.createVariable("height", "i2", ("x",), fill_value=np.int16(-1))
        height.setncatts({"_Unsigned": "true", "scale_factor": np.float32(0.5)})
        height.set_auto_maskandscale(False)  # store the given values
        height[:] = np.array([-2, 10, -1, 4], "i2")
        sst = file.createVariable("sst", "f4", ("x",), fill_value=np.float32(1e20))
        sst[:] = np.array([271.5, 1e20, 300.25, 280.0], "f4")
        packed = file.createVariable("packed", "i2", ("x",))
        packed.setncatts({"scale_factor": -0.1, "add_offset": 10.0})
        packed.set_auto_maskandscale(False)
        packed[:] = np.array([1, 2, 3, 4], "i2")
        plain = file.createVariable("plain", "i2", ("x",))
        plain[:] = np.array([1, 2, 3, 4], "i2")
    store = fst.open(tmp_path / "store")
    fst.ingest(store, [tmp_path / "sat.nc"])
    listed = {entry.key["variable"]: entry for entry in store.list("variable=height/sst/packed/plain")}

    def extremes(name: str) -> tuple[Any, Any, Any]:
        return listed[name].min, listed[name].max, listed[name].missing

    assert extremes("plain") == (1, 4, 0) and isinstance(listed["plain"].max, int)
    assert extremes("packed") == (pytest.approx(9.6), pytest.approx(9.9), 0)
    assert extremes("sst") == (271.5, 300.25, 1)  # without the fill value
    assert extremes("height") == (None, None, None)  # both signs are stored, only one is intended
    frame = store.list().to_pandas().set_index("variable")
    assert (frame.loc["sst", "min"], frame.loc["sst", "max"]) == (271.5, 300.25)

    def shown(*words: str) -> dict[str, Any]:
        done = subprocess.run([program(), *words, "--json"], cwd=tmp_path, capture_output=True, check=True)
        return json.loads(done.stdout)

    rows = {row["key"].get("variable"): row for row in shown("list", "store")["fields"]}
    assert (rows["sst"]["min"], rows["sst"]["max"], rows["sst"]["missing"]) == (271.5, 300.25, 1)
    for name in ("height", "sst", "packed", "plain"):
        one = shown("show", "store", f"variable={name}")
        data = store.to_xarray()[name].values
        got = (one["min"], one["max"], one["missing"])
        assert got == pytest.approx((np.nanmin(data), np.nanmax(data), np.isnan(data).sum())), name
    store.close()


def test_reprs_say_what_there_is(prepared):
    """s 5.9, 2.12."""
    assert "mode='a', values: 1 of run, 2 of variable, 2 of step>" in repr(prepared)
    listing = prepared.list("run=a")
    assert "{run=a}{variable=T}{step=0}" in repr(listing) and "float64 [4, 6]" in repr(listing)
    assert len(list(listing)) == 3  # showing it consumes nothing
    assert repr(prepared.list("run=rnu-1")).endswith("none: no field has run=rnu-1: there is run=a")
    many = fst.open("memory:")
    for step in range(50):
        many.archive({"run": "a", "variable": "t", "step": step}, FIELD)
    many.flush()
    assert len(repr(many.list()).splitlines()) == 12 and repr(many.list()).endswith("…")
    for report in (prepared.status(), prepared.stats(), prepared.verify(), prepared.delete(run="a")):
        html = report._repr_html_()
        assert html.startswith("<table>") and type(report).__name__ in html
    assert "writers: writer" in prepared.status()._repr_html_()
    absent = fst.open(str(prepared.url) + ".absent")
    assert "no store is there yet" in absent._repr_html_() and "absent" in repr(absent)


def test_show_tells_runs_tags_and_times(prepared, tmp_path):
    """s 5.7."""
    prepared.run("a").create_steps([0, 3], [0.0, 1.5])
    prepared.flush()

    def show(*words: str) -> str:
        return subprocess.run(
            [program(), "show", "store", *words], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert "catalog: 1 run, times 0 to 1.5\n" in show() and "tags: hot (1)\n" in show()
    assert "tagged" in show("run=a,variable=T,step=0") and "hot (1)" in show("run=a,variable=T,step=0")
    assert "tagged" not in show("run=a,variable=T,step=3")

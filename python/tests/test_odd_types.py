"""HDF5 types that cannot be arrays of numbers: a file is ingested without them, and they are named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fieldstone as fst
import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
netCDF4 = pytest.importorskip("netCDF4")

PAIR = np.dtype([("a", "i4"), ("b", "f8")])
TWO_NAMES = h5py.enum_dtype({"NO": 0, "YES": 1}, "i1")

MEMBERS: dict[str, Any] = {
    "nested": PAIR,
    "nested deeper": np.dtype([("p", PAIR), ("q", "i2")]),
    "array": np.dtype(("f4", (3,))),
    "array of compounds": np.dtype((PAIR, (2,))),
    "text": np.dtype("S8"),
    "text of any length": h5py.string_dtype(),
    "variable length": h5py.vlen_dtype("i4"),
    "enum": TWO_NAMES,
    "bool": np.dtype("?"),
    "opaque": h5py.opaque_dtype(np.dtype("V6")),
    "reference": h5py.ref_dtype,
    "complex": np.dtype("c16"),
}
"""Members of a compound next to numbers."""

TYPES: dict[str, Any] = {
    f"compound with {name}": np.dtype([("m", of), ("n", "i4")]) for name, of in MEMBERS.items()
} | {
    "compound": PAIR,
    "opaque": np.dtype("V6"),
    "reference": h5py.ref_dtype,
    "reference to a part": h5py.regionref_dtype,
    "variable length": h5py.vlen_dtype("i4"),
    "variable length of compounds": h5py.vlen_dtype(PAIR),
    "variable length of variable length": h5py.vlen_dtype(h5py.vlen_dtype("i4")),
}


def fields_of(url: str, run: str) -> dict[str, Any]:
    with fst.open(url, mode="r") as store:
        listed = store.list(f"run={run}")
        keys = [entry.key for entry in listed if not entry.key["variable"].startswith("@")]
        return {key["variable"]: store.get(key) for key in keys}


def omitted(url: str, run: str, report: Any) -> dict[str, str]:
    """The parts that a file's header names; the report has a line for each reason."""
    assert not any(skipped.whole for skipped in report.skipped), report
    with fst.open(url, mode="r") as store:
        header = json.loads(store.get(f"run={run},variable=@header"))
    told = {skipped["what"]: skipped["why"] for skipped in header["skipped"]}
    assert {skipped.why for skipped in report.skipped} == set(told.values())
    assert len(told) == len(header["skipped"]), header["skipped"]
    return told


def made(path: Path, odd: Callable[[Any], None]) -> Path:
    """A file with two plain variables, a group with one, and the objects that `odd` adds."""
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "plain"
        file["x"] = np.arange(4.0)
        file["g/y"] = np.arange(3, dtype="i2")
        odd(file)
        file["z"] = np.arange(6, dtype="f4").reshape(2, 3)
    return path


def test_files_with_odd_types_are_taken_without_them(tmp_path: Path) -> None:
    def odd(file: Any) -> None:
        for name, dtype in TYPES.items():
            file.create_dataset(name, (3,), dtype=dtype)
            file.create_dataset(f"g/{name}", (3,), dtype=dtype)
            for holder in ("x", "g"):
                space, kind = h5py.h5s.create_simple((2,)), h5py.h5t.py_create(dtype, logical=True)
                h5py.h5a.create(file[holder].id, name.encode(), kind, space)
        file["x"].attrs["units"] = "m"

    before = made(tmp_path / "odd.h5", odd)
    after = made(tmp_path / "plain.h5", lambda file: None)
    url = str(tmp_path / "s")
    report = fst.ingest(url, [before, after], progress=False)
    assert [taken.path.name for taken in report.taken] == ["odd.h5", "plain.h5"]
    for run in ("odd", "plain"):
        fields = fields_of(url, run)
        assert set(fields) == {"x", "z", "g/y"}
        assert fields["x"].tolist() == [0, 1, 2, 3] and fields["g/y"].tolist() == [0, 1, 2]
    told = omitted(url, "odd", report)
    assert set(told) == {
        what.format(name) for name in TYPES for what in ("{}", "g/{}", "x: attribute {}", "g: attribute {}")
    }
    assert all("not supported" in why for why in told.values()), told
    variables = {v.name: v for v in fst.open(url, mode="r").variables(run="odd")}
    assert variables["x"].attrs["units"] == "m"


def test_enumerations_stay_beside_an_odd_type(tmp_path: Path) -> None:
    def odd(file: Any) -> None:
        file.create_dataset("strange", (3,), dtype=TYPES["compound with enum"])
        file["answers"] = np.zeros(3, TWO_NAMES)
        file["big"] = np.arange(3, dtype=">i4")
        file["text"] = np.array(["a", "bc"], dtype=h5py.string_dtype())
        file["t"] = np.arange(2.0)
        file["t"].make_scale("t")
        file["t"].attrs["units"] = "days since 2000-01-01"
        file["moving"] = np.arange(6.0).reshape(2, 3)
        file["n"] = np.arange(3.0)
        file["n"].make_scale("n")
        file["moving"].dims[0].attach_scale(file["t"])
        file["moving"].dims[1].attach_scale(file["n"])

    url = str(tmp_path / "s")
    report = fst.ingest(url, made(tmp_path / "odd.h5", odd), progress=False)
    assert set(omitted(url, "odd", report)) == {"strange"}
    fields = fields_of(url, "odd")
    assert fields["answers"].tolist() == [0, 0, 0] and fields["big"].tolist() == [0, 1, 2]
    assert fields["text"].tolist() == ["a", "bc"]
    store = fst.open(url, mode="r")
    assert store.get("run=odd,variable=moving,step=1").tolist() == [3, 4, 5]
    assert [step.time for step in store.steps(run="odd")] == [946_684_800, 946_771_200]


def test_attributes_that_the_conventions_know_may_be_of_odd_types(tmp_path: Path) -> None:
    def odd(file: Any) -> None:
        for name in ("_FillValue", "missing_value", "units", "bounds", "standard_name", "calendar", "axis"):
            file["x"].attrs.create(name, np.zeros(1, PAIR), dtype=PAIR)
        file["x"].make_scale("x")
        file["on_x"] = np.zeros(4)
        file["on_x"].dims[0].attach_scale(file["x"])

    url = str(tmp_path / "s")
    report = fst.ingest(url, made(tmp_path / "odd.h5", odd), progress=False)
    assert {what.partition(":")[0] for what in omitted(url, "odd", report)} == {"x"}
    assert set(fields_of(url, "odd")) == {"x", "on_x", "z", "g/y"}


def test_a_compound_of_netcdf_within_another(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "nested.nc", "w") as file:
        file.createDimension("n", 2)
        inner = file.createCompoundType(PAIR, "inner")
        outer = file.createCompoundType(np.dtype([("p", PAIR), ("q", "i2")]), "outer")
        file.createVariable("strange", outer, ("n",))
        file.createVariable("pairs", inner, ("n",))
        file.createVariable("plain", "f4", ("n",))[:] = [1, 2]
    url = str(tmp_path / "s")
    report = fst.ingest(url, tmp_path / "nested.nc", progress=False)
    assert {"strange", "pairs"} <= set(omitted(url, "nested", report))
    assert fields_of(url, "nested")["plain"].tolist() == [1, 2]


def test_types_that_netcdf_cannot_open_a_file_with(tmp_path: Path) -> None:
    def odd(file: Any) -> None:
        file["named"] = TYPES["compound with nested"]
        file["answer"] = np.dtype(TWO_NAMES)
        file.create_dataset("strange", (3,), dtype=file["named"])
        file.create_dataset("answers", (3,), dtype=file["answer"])
        file["nothing"] = h5py.Empty("f4")
        file["x"].attrs["nothing"] = h5py.Empty("f4")
        file["x"].attrs["units"] = "m"

    path = made(tmp_path / "odd.h5", odd)
    before = path.read_bytes()
    with pytest.raises((OSError, RuntimeError)):
        netCDF4.Dataset(path)
    url = str(tmp_path / "s")
    report = fst.ingest(url, path, progress=False)
    told = omitted(url, "odd", report)
    assert {"strange", "nothing"} <= set(told) <= {"strange", "nothing", "x: attribute nothing"}, told
    assert "null dataspace" in told["nothing"]
    fields = fields_of(url, "odd")
    assert set(fields) == {"x", "z", "g/y", "answers"}
    assert {v.name: v.attrs.get("units") for v in fst.open(url, mode="r").variables(run="odd")}["x"] == "m"
    assert path.read_bytes() == before
    assert fst.ingest(url, path, progress=False).taken[0].fields == 0, "a second ingest adds nothing"


def test_a_damaged_file_is_not_read_without_what_is_damaged(tmp_path: Path) -> None:
    path = made(tmp_path / "odd.h5", lambda file: file.create_dataset("strange", (3,), dtype=PAIR))
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(fst.Invalid, match="netCDF-C cannot open it"):
        fst.ingest(str(tmp_path / "s"), path, progress=False)


def test_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    path = made(tmp_path / "plain.h5", lambda file: None)
    path = path.rename(os.fsdecode(os.fsencode(tmp_path) + b"/Z\xfcrich.h5"))
    report = fst.ingest(str(tmp_path / "s"), path, progress=False)
    assert report.skipped == () and report.taken[0].fields == 4

"""Every netCDF file of the corpus goes into a store, out again, and into another store, without losses."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import ROOT, sample

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")
from fieldstone._helper import libnetcdf  # noqa: E402
from fieldstone._helper.netcdf import walk  # noqa: E402

FOLDERS = ("netcdf-classic", "netcdf4", "mesh", "plasma-particles", "validator")
NO_SUCH_NAME = "netCDF-C cannot create this name"
CUT = "the file ends before these values"
DIFFERENCES = {
    # Compound types are refused by name.
    "netcdf4/ref_tst_compounds.nc": (r": variables$|^/obs: type$", {"obs", "obs: attribute _FillValue"}),
    # HDF5 that netCDF did not write: names that begin with "-" become "_-...", and netCDF-C itself does not
    # read texts of fixed length.
    "netcdf4/map_f_case_16p.h5": (r"^@_?-DIM_", {f"the file: attribute -DIM_{n}" for n in (
        "num_decomp", "decomp_nprocs", "D1.total_nreqs", "D1.total_raw_nreqs", "D2.total_nreqs",
        "D2.total_raw_nreqs", "D3.total_nreqs", "D3.total_raw_nreqs")}),
    "mesh/cylinder.med": (r"^ENS_MAA/Cylinder/_?-0{18}1-0{18}1", {
        "ENS_MAA/Cylinder/-0000000000000000001-0000000000000000001"}),
    # Truncated: the fill value replaces the zeros that netCDF-C reads past the end of the file.
    "validator/bad_padding_name_var.nc1": (r"^/fix_var: values$", {"fix_var"}),
    "validator/bad_padding_name_vattr.nc1": (r"^/temp: values$", {"temp"}),
    "validator/bad_padding_value_vattr.nc1": (r"^/temp: values$", {"temp"}),
    # Two files break the rules of their format.
    "validator/bad_unlimited.nc1": (r"^: dims$", {"dimension unlimited_1"}),
    "validator/bad_xtype.nc1": (r"^format$|^/var: values$", {"var"}),
}  # fmt: skip
"""Differences of a file after ingest and export (and the parts that the report names), with the reason;
docs/guide/netcdf.md describes them. No other file differs."""

UNSEEN = {
    "mesh/cylinder.med": r"FAS/Cylinder/\w+/.*/GRO/NOM",
    "plasma-particles/example-femm-3d.h5": r"data/1/meshes/[BE]/[xyz]: attribute position",
}
"""Objects that HDF5 lists and netCDF-C does not show: arrays as types of elements, floats of 128 bits."""

DAMAGED = {"netcdf-classic/bad_cdf5_begin.nc"} | {
    f"validator/bad_{name}"
    for name in (
        "begin.nc5", "dimid.nc1", "dimid.nc5", "large_fixed_var.nc2", "nattrs.nc1", "ndims.nc1", "nvars.nc1",
        "tag_dimension.nc1", "tag_gattr.nc1", "tag_variable.nc1", "tag_vattr.nc1", "tag_vattr.nc5",
    )
}  # fmt: skip


def corpus() -> list[str]:
    base = Path(os.environ.get("FIELDSTONE_DATA") or ROOT.parent / "shared" / "data")
    names = (str(p.relative_to(base)) for folder in FOLDERS for p in sorted((base / folder).glob("*")))
    return [name for name in names if is_netcdf(base / name)]


def is_netcdf(path: Path) -> bool:
    head = path.open("rb").read(8)
    return head[:3] == b"CDF" or head == b"\x89HDF\r\n\x1a\n"


def contents(path: Path) -> dict[str, object]:
    """Everything that netCDF-C shows of a file: stored values, types of attributes, layout."""
    held: dict[str, object] = {}
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        held["format"] = file.data_model
        for group in walk(file):
            at = group.path.strip("/")
            held[f"{at}: dims"] = [(d.name, len(d), d.isunlimited()) for d in group.dimensions.values()]
            held[f"{at}: variables"] = list(group.variables)
            held[f"{at}: enums"] = {t.name: (t.dtype, t.enum_dict) for t in group.enumtypes.values()}
            attrs(held, at, group)
            for name, v in group.variables.items():
                where = f"{at}/{name}"
                if v._iscompound or (v._isvlen and v.dtype is not str):
                    held[f"{where}: type"] = "left out"
                    continue
                kind = "str" if v.dtype is str else np.dtype(v.dtype).newbyteorder("<").str
                held[f"{where}: type"] = (kind, v.endian(), v.dimensions, v.shape)
                held[f"{where}: layout"] = (v.chunking(), v.filters())
                attrs(held, where, v)
                try:
                    values = v[...]
                except (OSError, RuntimeError) as error:
                    held[f"{where}: values"] = str(error)
                    continue
                values = np.asarray(values)
                held[f"{where}: values"] = values.tolist() if values.dtype == object else digest(values)
    return held


def digest(values: np.ndarray) -> tuple[object, ...]:
    little = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False))
    return values.shape, hashlib.sha256(little.tobytes()).hexdigest()


def attrs(held: dict[str, object], where: str, holder: object) -> None:
    for name in holder.ncattrs():
        number = holder._varid if isinstance(holder, netCDF4.Variable) else libnetcdf.GLOBAL
        kind, value = libnetcdf.attribute(holder._grpid, number, name)
        if kind == "n":
            value = (value.dtype.str, value.tobytes())
        held[f"{where}@{name}"] = (kind, value)


def differences(a: dict[str, object], b: dict[str, object]) -> dict[str, tuple[object, object]]:
    return {key: (a.get(key), b.get(key)) for key in {**a, **b} if a.get(key) != b.get(key)}


@pytest.fixture(scope="module")
def journey(tmp_path_factory):
    """The corpus in a store, exported file by file, and the export in a second store."""
    folder = tmp_path_factory.mktemp("corpus")
    names = corpus()
    paths = [sample(name) for name in names] or [sample("netcdf4")]
    first = fst.open(folder / "first")
    report = fst.ingest(first, paths, progress=False)
    (folder / "out").mkdir()
    exported = first.export({}, folder / "out")
    keys = [dict(f.key) for f in first.retrieve({"variable": "@header"})]
    targets = {}
    for key in keys:
        source = json.loads(first.retrieve(key)[0].read() if "source" in key else own(first, key))["source"]
        stem = key["run"] + (f"-{key['source']}" if "source" in key else "")
        targets[source["sha256"]] = (key, folder / "out" / (stem + Path(source["name"]).suffix))
    exports = {}
    for name, path in zip(names, paths, strict=True):
        found = targets.get(hashlib.sha256(path.read_bytes()).hexdigest())
        if found is not None:
            exports[name] = (*found, {s.what for s in exported.skipped if s.path == found[1]})
    assert set(exported.files) == {target for _, target, _ in exports.values()}
    second = fst.open(folder / "second")
    fst.ingest(second, list(exported.files), progress=False)
    return names, paths, report, exports, first, second


def own(store: fst.Store, key: dict[str, str]) -> bytes:
    """The field with exactly this key, without further keywords."""
    (field,) = (f for f in store.retrieve({k: [v] for k, v in key.items()}) if dict(f.key) == key)
    return field.read() if field.dtype is None else field.array().tobytes()


def test_damaged_files_are_reported_and_all_others_taken(journey):
    names, paths, report, exports, first, _ = journey
    whole = {s.path for s in report.skipped if s.what == "the file"}
    assert {n for n, p in zip(names, paths, strict=True) if p in whole} == DAMAGED
    assert set(exports) == set(names) - DAMAGED
    assert len(exports) > 60
    assert first.verify().ok


@pytest.mark.parametrize("name", [n for n in corpus() if n not in DAMAGED])
def test_a_file_comes_back_as_it_was(journey, name):
    *_, exports, _, _ = journey
    _, target, omitted = exports[name]
    pattern, parts = DIFFERENCES.get(name, (r"(?!)", set()))
    found = differences(contents(sample(name)), contents(target))
    assert {key: pair for key, pair in found.items() if not re.search(pattern, key)} == {}
    assert bool(found) == (name in DIFFERENCES)
    unseen = {part for part in omitted if re.fullmatch(UNSEEN.get(name, r"(?!)"), part)}
    assert bool(unseen) == (name in UNSEEN)
    assert omitted - unseen == parts


def test_what_was_exported_is_taken_again_with_equal_fields(journey):
    *_, exports, first, second = journey
    same = {target.stem: key for name, (key, target, _) in exports.items() if name not in DIFFERENCES}
    checked = 0
    for field in second.retrieve({}):
        key = dict(field.key)
        if key["variable"] != "@header" and "source" not in key and key["run"] in same:
            assert own(first, {**key, **same[key["run"]], "variable": key["variable"]}) == own(second, key), (
                key
            )
            checked += 1
    assert checked > 2500


XARRAY = (
    "netcdf4/nemo_1m_20150101-20150201_grid-T.nc",
    "netcdf-classic/eraint_uvz.nc",
    "netcdf-classic/ref_nctest_classic.nc",
    "netcdf4/vlstr_type.nc",
    "netcdf4/ref_szip.h5",
    "mesh/test-c12.native.nc4",
)


@pytest.mark.parametrize("name", XARRAY)
def test_the_store_and_the_exported_file_show_in_xarray_what_the_file_shows(journey, name):
    *_, exports, first, _ = journey
    _, target, _ = exports[name]
    from fieldstone.xarray_engine import to_xarray

    with xr.open_dataset(sample(name), engine="netcdf4") as expected:
        xr.testing.assert_identical(to_xarray(first, {"run": Path(name).stem}).load(), expected.load())
        with xr.open_dataset(target, engine="netcdf4") as got:
            xr.testing.assert_identical(got.load(), expected)

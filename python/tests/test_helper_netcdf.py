"""netCDF files through the helper: the resulting fields, skipped parts, and the reasons."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pytest
from conftest import sample
from helper_pipe import array, frame, ingest, ingest_all, of_kind, talk

netCDF4 = pytest.importorskip("netCDF4")
FORMATS = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC", "NETCDF4")


def make(path, form="NETCDF4"):
    """A small file with packing, fill, bounds, characters and a record dimension."""
    with netCDF4.Dataset(path, "w", format=form) as ds:
        for name, n in (("time", None), ("lat", 3), ("lon", 4), ("nv", 2), ("len", 5), ("lev", 2)):
            ds.createDimension(name, n)
        ds.title = "a file"
        ds.numbers = np.array([1.5, np.nan, -np.inf], "f4")
        ds.createVariable("time", "f8", ("time",))[:] = [0, 6]
        ds["time"].setncatts({"units": "hours since 2000-01-01", "bounds": "time_bnds"})
        ds.createVariable("time_bnds", "f8", ("time", "nv"))[:] = [[0, 6], [6, 12]]
        ds.createVariable("lat", "f4", ("lat",))[:] = [10, 20, 30]
        ds["lat"].units = "degrees_north"
        ds.createVariable("lev", "f4", ("lev",))[:] = [1, 2]
        t = ds.createVariable("t", "i2", ("time", "lat", "lon"), fill_value=-99)
        t.setncatts({"scale_factor": np.float32(0.5), "add_offset": np.float32(10)})
        t.set_auto_maskandscale(False)
        t[:] = np.arange(24).reshape(2, 3, 4) - 99
        ds.createVariable("z", "f4", ("lev", "lat"))[:] = np.arange(6).reshape(2, 3)
        ds.createVariable("topo", "f4", ("lat", "lon"))[:] = np.arange(12).reshape(3, 4)
        ds.createVariable("names", "S1", ("lat", "len"))[:] = np.full((3, 5), b"x")
        ds.createVariable("crs", "i4", ())[...] = 7
    return path


def fields_of(frames):
    return {
        (h["key"]["variable"], h["key"].get("step")): (array(h, p) if "dtype" in h else p)
        for h, p in frames
        if h["kind"] == "field"
    }


def header_of(frames):
    return json.loads(fields_of(frames)["@header", None])


@pytest.mark.parametrize("form", FORMATS)
def test_a_field_per_variable_and_leading_coordinate_value(tmp_path, form):
    path = make(tmp_path / "small.nc", form)
    frames = ingest(path)
    fields = fields_of(frames)
    whole = {"time", "time_bnds", "lat", "lev", "topo", "names", "crs", "@header"}
    split = {("t", 0), ("t", 1), ("z", 0), ("z", 1)}
    assert set(fields) == {(name, None) for name in whole} | split
    assert {h["key"]["run"] for h in of_kind(frames, "field")} == {"small"}
    raw = np.arange(24, dtype="<i2").reshape(2, 3, 4) - 99
    np.testing.assert_array_equal(fields["t", 1], raw[1])
    assert fields["t", 0].dtype == np.dtype("<i2")
    assert fields["crs", None].shape == ()
    assert fields["names", None].dtype == np.dtype("S1")
    assert of_kind(frames, "done")[0]["fields"] == len(fields)
    assert of_kind(frames, "skipped") == []


def test_the_header_comes_last_and_says_everything_else(tmp_path):
    path = make(tmp_path / "small.nc")
    frames = ingest(path)
    last = of_kind(frames, "field")[-1]
    assert last["key"]["variable"] == "@header"
    assert last["opaque"] is True
    header = header_of(frames)
    assert header["source"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert header["source"]["format"] == "NETCDF4"
    (root,) = header["groups"]
    assert {"name": "time", "length": 2, "unlimited": True} in root["dims"]
    attrs = dict(root["attrs"])
    assert attrs["title"] == {"text": "a file"}
    assert attrs["numbers"] == {"dtype": "<f4", "values": [1.5, "NaN", "-Infinity"]}
    variables = {v["name"]: v for v in root["variables"]}
    assert list(variables)[:3] == ["time", "time_bnds", "lat"]
    t = variables["t"]
    assert (t["dtype"], t["dims"], t["shape"], t["split"]) == ("<i2", ["time", "lat", "lon"], [2, 3, 4], True)
    assert dict(t["attrs"])["_FillValue"] == {"dtype": "<i2", "values": [-99]}
    assert dict(t["attrs"])["scale_factor"] == {"dtype": "<f4", "values": [0.5]}
    assert not variables["topo"]["split"]


def test_taking_a_file_twice_gives_the_same_bytes(tmp_path):
    path = make(tmp_path / "small.nc")
    first, second = ([(h, p) for h, p in ingest(path) if h["kind"] == "field"] for _ in range(2))
    assert first == second


def test_an_offer_can_be_declined(tmp_path):
    path = make(tmp_path / "small.nc")
    request = frame({"op": "ingest", "path": str(path), "offer": True})
    stopped = talk(request + frame({"op": "stop"}) + frame({"op": "version"}))
    assert [h["kind"] for h, _ in stopped.frames] == ["offer", "done", "version", "done"]
    offer = stopped.frames[0][0]
    assert offer["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert offer["run"] == "small"
    taken = talk(request + frame({"op": "go"}))
    assert len(of_kind(taken.frames, "field")) == 12


def test_groups_become_paths_and_keep_their_dimensions(tmp_path):
    path = tmp_path / "groups.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        g = ds.createGroup("ocean").createGroup("deep")
        g.createDimension("x", 3)
        g.createVariable("t", "f4", ("time", "x"))[0:2] = np.ones((2, 3))
    frames = ingest(path)
    assert {k for k in fields_of(frames) if k[0] != "@header"} == {("ocean/deep/t", 0), ("ocean/deep/t", 1)}
    groups = {g["path"]: g for g in header_of(frames)["groups"]}
    assert list(groups) == ["", "ocean", "ocean/deep"]
    assert groups["ocean/deep"]["variables"][0]["dims"] == ["time", "ocean/deep/x"]


def test_types_without_a_fixed_array_form_are_skipped_by_name_and_the_rest_is_taken(tmp_path):
    path = tmp_path / "odd.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 2)
        compound = ds.createCompoundType(np.dtype([("a", "i4"), ("b", "f4")]), "pair")
        ds.createVariable("compound", compound, ("x",))
        ds.createVariable("ragged", ds.createVLType(np.int32, "ragged_t"), ("x",))
        ds.createVariable("enum", ds.createEnumType(np.int8, "e", {"no": 0, "yes": 1}), ("x",))
        ds.createVariable("plain", "f8", ("x",))[:] = [1, 2]
        text = ds.createVariable("text", str, ("x",))
        text[0], text[1] = "short", "längerer"
    frames = ingest(path)
    fields = fields_of(frames)
    assert {k[0] for k in fields} == {"plain", "text", "enum", "@header"}
    assert fields["text", None].tolist() == ["short", "längerer"]
    skipped = {s["what"]: s["why"] for s in of_kind(frames, "skipped") if "attribute" not in s["what"]}
    assert set(skipped) == {"compound", "ragged"}
    assert "compound" in skipped["compound"]
    assert header_of(frames)["skipped"][0]["what"] == "compound"


def test_text_too_large_at_fixed_width_is_skipped(tmp_path):
    path = tmp_path / "wide.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("x", 600)
        text = ds.createVariable("text", str, ("x", "x"))
        text[0, 0] = "x" * 100
        ds.createVariable("plain", "f8", ("x",))[:] = 1
    frames = ingest(path)
    assert [s["what"] for s in of_kind(frames, "skipped")] == ["text"]
    assert ("plain", None) in fields_of(frames)


def test_large_fields_come_in_pieces_that_cover_them(tmp_path):
    path = tmp_path / "large.nc"
    values = np.arange(9 << 20, dtype="f4").reshape(9, 1024, 1024)
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in zip("zyx", values.shape, strict=True):
            ds.createDimension(name, n)
        ds.createVariable("v", "f4", tuple("zyx"))[:] = values
    pieces = [(h, p) for h, p in ingest(path) if h["kind"] == "field" and h["key"]["variable"] == "v"]
    assert len(pieces) == 2
    assert all(len(p) <= 32 << 20 for _, p in pieces)
    got = np.zeros_like(values)
    for h, p in pieces:
        assert h["shape"] == [9, 1024, 1024]
        got[tuple(slice(s, s + n) for s, n in zip(h["start"], h["count"], strict=True))] = array(h, p)
    np.testing.assert_array_equal(got, values)


def test_empty_variables_have_no_fields_but_stay_in_the_header(tmp_path):
    path = tmp_path / "empty.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as ds:
        ds.createDimension("time", None)
        ds.createDimension("x", 2)
        ds.createVariable("t", "f4", ("time", "x"))
    frames = ingest(path)
    assert [k[0] for k in fields_of(frames)] == ["@header"]
    assert header_of(frames)["groups"][0]["variables"][0]["shape"] == [0, 2]


@pytest.mark.parametrize("form", FORMATS[:3])
def test_a_classic_file_cut_anywhere_never_yields_values_it_does_not_hold(tmp_path, form):
    # netCDF-C reads bytes past the end of a classic file as zeros, without an error.
    whole = make(tmp_path / "whole.nc", form)
    good = fields_of(ingest(whole))
    data = whole.read_bytes()
    cuts = range(0, len(data), max(1, len(data) // 25))
    paths = [tmp_path / f"cut{cut}.nc" for cut in cuts]
    for path, cut in zip(paths, cuts, strict=True):
        path.write_bytes(data[:cut])
    for frames in ingest_all(paths):
        assert frames[-1][0]["kind"] in ("done", "error")
        got = fields_of(frames)
        for key, values in got.items():
            if key[0] != "@header":
                np.testing.assert_array_equal(values, good[key])
        if frames[-1][0]["kind"] == "done":
            assert len(got) < len(good)
            assert of_kind(frames, "skipped")


def test_a_damaged_chunk_costs_only_its_slice(tmp_path):
    path = tmp_path / "chunks.nc"
    rng = np.random.default_rng(1)
    values = rng.integers(0, 1 << 30, (4, 64, 64), dtype="i4")
    with netCDF4.Dataset(path, "w") as ds:
        for name, n in (("time", None), ("y", 64), ("x", 64)):
            ds.createDimension(name, n)
        v = ds.createVariable("v", "i4", ("time", "y", "x"), chunksizes=(1, 64, 64), fletcher32=True)
        v[:] = values
    data = bytearray(path.read_bytes())
    at = data.index(values[2].tobytes())
    data[at + 100] ^= 0xFF
    path.write_bytes(data)
    frames = ingest(path)
    fields = fields_of(frames)
    assert {k[1] for k in fields if k[0] == "v"} == {0, 1, 3}
    (skip,) = of_kind(frames, "skipped")
    assert skip["what"].startswith("v[2:3")


def test_no_sample_file_crashes_or_hangs_the_helper():
    sample("validator")
    files = [p for d in ("netcdf-classic", "netcdf4", "validator") for p in sorted(sample(d).iterdir())]
    done = talk(b"".join(frame({"op": "ingest", "path": str(p)}) for p in files), timeout=300)
    assert done.code == 0
    endings = [h for h, _ in done.frames if h["kind"] in ("done", "error")]
    assert len(endings) == len(files)
    refused = {p.name for p, h in zip(files, endings, strict=True) if h["kind"] == "error"}
    assert "bad_ndims.nc1" in refused  # netCDF-C crashes on this one
    assert not any(not name.startswith("bad_") for name in refused)


def test_real_packed_values_come_out_as_netcdf_reads_them():
    path = sample("netcdf-classic/eraint_uvz.nc")
    fields = fields_of(ingest(path))
    with netCDF4.Dataset(path) as ds:
        ds.set_auto_maskandscale(False)
        for month in range(2):
            np.testing.assert_array_equal(fields["z", month], ds["z"][month])
    assert os.path.getsize(path) == json.loads(fields["@header", None])["source"]["nbytes"]

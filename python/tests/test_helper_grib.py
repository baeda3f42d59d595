"""GRIB files through the helper: messages byte for byte, their keys, and damage."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from conftest import sample, share
from helper_pipe import array, ask, ingest, ingest_all, of_kind

eccodes = pytest.importorskip("eccodes")


def message(sample_name="regular_ll_pl_grib2", **keys):
    """A message made from one of eccodes' samples."""
    handle = eccodes.codes_grib_new_from_samples(sample_name)
    try:
        values = keys.pop("values", None)
        for name, value in keys.items():
            eccodes.codes_set(handle, name, value)
        if values is not None:
            eccodes.codes_set_values(handle, values)
        return eccodes.codes_get_message(handle)
    finally:
        eccodes.codes_release(handle)


def taken(frames):
    return [(h, p) for h, p in frames if h["kind"] == "field"]


def test_a_field_per_message_byte_for_byte_with_mars_keys(tmp_path):
    messages = [message(level=500), message("regular_ll_pl_grib1", level=850), message(level=700)]
    path = tmp_path / "three.grib"
    path.write_bytes(b"bulletin header GRIB\r\n" + messages[0] + bytes(37) + messages[1] + messages[2])
    frames = ingest(path)
    assert [p for _, p in taken(frames)] == messages
    assert [h["grib"]["levelist"] for h, _ in taken(frames)] == ["500", "850", "700"]
    key = taken(frames)[1][0]["grib"]
    assert (key["class"], key["type"], key["levtype"], key["param"]) == ("od", "an", "pl", "167.128")
    assert "typeoflevel" not in key
    assert len(key["date"]) == 8
    assert key["time"] == "1200"
    assert not any(k.startswith("_") for k in key)
    assert taken(frames)[0][0]["offset"] == 22
    assert of_kind(frames, "skipped") == []


def test_a_message_without_mars_keys_gets_a_key_from_its_header(tmp_path):
    path = tmp_path / "ncep.grib"
    path.write_bytes(
        message(
            centre="kwbc",
            stepRange=6,
            typeOfLevel="heightAboveGround",
            level=80,
        )
    )
    ((header, _),) = taken(ingest(path))
    key = header["grib"]
    assert key["centre"] == "kwbc"
    assert not {"class", "expver", "stream"} & set(key)
    assert (key["type"], key["levtype"], key["typeoflevel"]) == ("fc", "hl", "heightAboveGround")
    assert (key["levelist"], key["step"]) == ("80", "6")


def test_messages_of_one_key_say_what_tells_them_apart(tmp_path):
    path = tmp_path / "twins.grib"
    path.write_bytes(message(stepType="instant") + message(Ni=15, Nj=31))
    (first, _), (second, _) = taken(ingest(path))
    assert first["grib"] == second["grib"]
    differing = [a[0] for a, b in zip(first["apart"], second["apart"], strict=True) if a != b]
    assert "grid" in differing
    assert not {k for k, _ in first["apart"]} & set(first["grib"])


def test_a_damaged_message_costs_no_neighbour(tmp_path):
    good = message(level=500)
    no_end = good[:-4] + b"xxxx"
    bad_length = good[:8] + (1 << 40).to_bytes(8, "big") + good[16:]
    short = good[: len(good) // 2]
    path = tmp_path / "damaged.grib"
    path.write_bytes(good + no_end + good + bad_length + good + b"GRIB\0\0\0\2" + good + short)
    frames = ingest(path)
    assert [p for _, p in taken(frames)] == [good] * 4
    skips = of_kind(frames, "skipped")
    assert len(skips) == 4
    assert skips[0]["what"] == f"message 2 at byte {len(good)}"
    assert "7777" in skips[0]["why"]
    assert "cut short" in skips[1]["why"]
    assert "cut short" in skips[-1]["why"]


def test_any_flipped_byte_leaves_a_report_and_the_rest(tmp_path):
    good = message(level=500)
    paths = [tmp_path / f"flipped{at}.grib" for at in range(len(good))]
    for at, path in enumerate(paths):
        damaged = bytearray(good)
        damaged[at] ^= 0xFF
        path.write_bytes(bytes(damaged) + good)
    for at, frames in enumerate(ingest_all(paths)):
        assert frames[-1][0]["kind"] == "done"
        assert taken(frames)[-1][1] == good, at
        assert len(taken(frames)) + len(of_kind(frames, "skipped")) >= 1


def test_decode_gives_values_grid_and_meaning():
    values = np.arange(16 * 31, dtype="f8")
    values[5] = 9999
    data = message(Ni=16, Nj=31, missingValue=9999, bitmapPresent=1, bitsPerValue=16, values=values)
    (header, payload), _ = ask({"op": "decode"}, data)
    assert header["shape"] == [31, 16]
    n = 31 * 16 * 8
    got = array({"dtype": header["dtype"], "shape": header["shape"]}, payload[:n])
    assert np.isnan(got[0, 5])
    np.testing.assert_allclose(got[1:], values.reshape(31, 16)[1:], atol=0.1)
    assert [c["name"] for c in header["coords"]] == ["latitude", "longitude"]
    assert len(payload) == n + 8 * (31 + 16)
    assert header["attrs"]["short_name"] == "t"
    assert header["attrs"]["units"] == "K"


SCANNING = [
    {},
    {"jScansPositively": 1},
    {"iScansNegatively": 1},
    {"alternativeRowScanning": 1},
    {"jPointsAreConsecutive": 1},
    {"jPointsAreConsecutive": 1, "alternativeRowScanning": 1},
    {"jPointsAreConsecutive": 1, "jScansPositively": 1, "iScansNegatively": 1},
]


@pytest.mark.parametrize("flags", SCANNING)
def test_decode_puts_every_scanning_order_on_a_regular_grid(flags):
    keys = {"Ni": 16, "Nj": 31, "bitsPerValue": 24, **flags}
    if "jScansPositively" in flags:
        keys |= {"latitudeOfFirstGridPointInDegrees": 0, "latitudeOfLastGridPointInDegrees": 60}
    # A wave that runs the scanning order of WMO's flag table 3.4.
    lat = np.arange(31) * 2.0 if "jScansPositively" in flags else 60 - np.arange(31) * 2.0
    field = lat[:, None] * 1000 + np.arange(16)[None] * 2.0
    lines = field.T.copy() if "jPointsAreConsecutive" in flags else field.copy()
    if "alternativeRowScanning" in flags:
        lines[1::2] = lines[1::2, ::-1]
    (_, payload), _ = ask({"op": "decode"}, message(**keys, values=lines.ravel()))
    got, got_lat, _ = np.split(np.frombuffer(payload, "<f8"), [496, 496 + 31])
    np.testing.assert_allclose(got.reshape(31, 16), field, atol=0.1)
    np.testing.assert_allclose(got_lat, lat, atol=1e-6)


def pairs_as_eccodes(data):
    """Decoded values, latitudes and longitudes are those that eccodes lists point by point."""
    handle = eccodes.codes_new_from_message(data)
    eccodes.codes_set(handle, "missingValue", 9999e20)
    listed = eccodes.codes_get_double_array(handle, "latLonValues").reshape(-1, 3)
    eccodes.codes_release(handle)
    (_, payload), _ = ask({"op": "decode"}, data)
    values, lats, lons = np.split(np.frombuffer(payload, "<f8"), 3)
    values = np.where(np.isnan(values), 9999e20, values)
    np.testing.assert_array_equal(np.stack([lats, lons, values], 1), listed)


# eccodes reverses every second row, not column, where both flags of SCANNING[5] are set.
@pytest.mark.parametrize("flags", SCANNING[:5] + SCANNING[6:])
def test_decode_puts_every_scanning_order_on_a_projected_grid(flags):
    values = np.arange(16 * 31, dtype="f8")
    pairs_as_eccodes(message("polar_stereographic_pl_grib2", bitsPerValue=24, values=values, **flags))


@pytest.mark.parametrize(
    "name", ["ds.maxt.bin", "mercator.grib", "eta.grb", "rotated_ll.grib1", "O32_global.grib1"]
)
def test_decode_pairs_real_points_and_values_as_eccodes_does(name):
    pairs_as_eccodes(taken(ingest(sample(f"grib/{name}")))[0][1])


def test_decode_of_bytes_that_are_no_message_is_corrupt():
    ((header, _),) = ask({"op": "decode"}, b"GRIB but not really")
    assert header["error_kind"] == "Corrupt"


def test_real_files_split_as_eccodes_splits_them():
    eccodes.codes_grib_multi_support_off()
    paths = share((p for p in sorted(sample("grib").iterdir()) if "corrupted" not in p.name), 3)
    for path, frames in zip(paths, ingest_all(paths), strict=True):
        expected = []
        with open(path, "rb") as file:
            while (handle := eccodes.codes_grib_new_from_file(file)) is not None:
                expected.append(eccodes.codes_get_message(handle))
                eccodes.codes_release(handle)
        assert [p for _, p in taken(frames)] == expected, path.name
        assert of_kind(frames, "skipped") == [], path.name
        for header, _ in taken(frames):
            key = set(header["grib"])
            assert {"type", "levtype", "param", "date"} <= key, path.name
            assert ("centre" in key) != ({"class", "expver", "stream"} <= key), path.name


def test_a_corrupted_real_file_yields_what_is_whole_and_a_reason():
    frames = ingest(sample("grib/era5-levels-corrupted.grib"))
    assert frames[-1][0]["kind"] == "done"
    assert len(taken(frames)) == 1
    assert of_kind(frames, "skipped")[0]["what"] == "message 1 at byte 0"


POINTS = """
import os, sys, eccodes
os.environ["ECCODES_ECKIT_GEO"] = "1"
from fieldstone._helper import grib
with grib.Handle(sys.stdin.buffer.read()) as handle:
    coords = grib.grid_of(handle)[1]
print(*coords["longitude"][1], os.environ["ECCODES_ECKIT_GEO"])
"""


def test_points_are_those_of_eccodes_where_another_package_asks_for_those_of_eckit(monkeypatch):
    first, last = 210.0, 250.0
    keys = {"longitudeOfFirstGridPointInDegrees": first, "longitudeOfLastGridPointInDegrees": last}
    # Rounded upwards, so that 241 points end after the last longitude.
    keys |= {"Ni": 241, "Nj": 2, "iDirectionIncrementInDegrees": 0.166667, "bitsPerValue": 8}
    keys |= {"latitudeOfFirstGridPointInDegrees": 1, "latitudeOfLastGridPointInDegrees": 0}
    data = message(**keys, jDirectionIncrementInDegrees=1, values=np.zeros(482))
    expected = np.linspace(first, last, 241)
    monkeypatch.setenv("ECCODES_ECKIT_GEO", "1")
    (_, payload), _ = ask({"op": "decode"}, data)
    np.testing.assert_allclose(np.frombuffer(payload, "<f8")[-241:], expected, atol=1e-6)
    told = subprocess.run([sys.executable, "-c", POINTS], input=data, capture_output=True, check=True)
    *longitudes, asked = told.stdout.split()
    np.testing.assert_allclose(np.array(longitudes, "f8"), expected, atol=1e-6)
    assert asked == b"1"

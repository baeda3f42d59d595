"""GRIB messages: keys as in eccodes itself, fields as it splits them, archive_grib, array()."""

from __future__ import annotations

import contextlib
import functools
import io
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import LONG, sample, share
from fieldstone._helper import grib, grib_keys
from fieldstone._native import _grib_keys
from test_helper_grib import message

eccodes = pytest.importorskip("eccodes")


def by_eccodes(data: bytes) -> dict[str, str] | str:
    """The key of one message in eccodes itself, or its error."""
    try:
        with grib.Handle(data) as handle:
            return grib_keys.key_of(handle)
    except Exception as error:
        return f"eccodes cannot read its header: {error}"


@functools.cache
def fields_by_eccodes(path: Path) -> list[bytes]:
    """The fields of a file as eccodes splits them; damaged messages are skipped."""
    data = path.read_bytes()
    found = []
    eccodes.codes_grib_multi_support_on()
    try:
        for one in grib.messages(io.BytesIO(data), len(data)):
            if not one.why:
                found += split_by_eccodes(one.message)
    finally:
        eccodes.codes_grib_multi_support_off()
    return found


def split_by_eccodes(data: bytes) -> list[bytes]:
    found = []
    with open_bytes(data) as file:
        while (handle := eccodes.codes_grib_new_from_file(file)) is not None:
            found.append(eccodes.codes_get_message(handle))
            eccodes.codes_release(handle)
        eccodes.codes_grib_multi_support_reset_file(file)
    return found


def open_bytes(data: bytes):
    """A real file with these bytes, because eccodes reads through the C library."""
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(data)
    file.seek(0)
    return file


def test_keys_of_every_real_message_are_those_of_eccodes():
    compared = 0
    for path in share(sorted(p for p in sample("grib").iterdir() if "corrupted" not in p.name), 3):
        fields = fields_by_eccodes(path)
        expected = [by_eccodes(field) for field in fields]
        # All at once, and one by one from the facts learned by then.
        assert _grib_keys(path.read_bytes()) == expected, path.name
        assert [_grib_keys(field)[0] for field in fields] == expected, path.name
        compared += len(fields)
    assert compared > (1400 if LONG else 100)


def test_fields_of_one_message_are_split_as_eccodes_splits_them(tmp_path):
    """Sections 2 to 7 repeated from 2, from 3 and from 4; a bitmap that a later field refers to."""
    first = message("regular_ll_pl_grib2", level=500, bitmapPresent=1, values=np.arange(496.0))
    second = message("regular_ll_pl_grib2", level=700, values=np.arange(496.0) * 2)
    third = message("regular_gg_pl_grib2", level=850)
    local = message("regular_ll_pl_grib2", setLocalDefinition=1, expver="xxxx", level=300)
    again = sections(first)
    again[6] = b"\0\0\0\x06\x06\xfe"
    parts = [
        *sections(first).values(),
        *(sections(second)[n] for n in (4, 5, 6, 7)),
        *(again[n] for n in (4, 5, 6, 7)),
        *(sections(third)[n] for n in (3, 4, 5, 6, 7)),
        *(sections(local)[n] for n in (2, 3, 4, 5, 6, 7)),
        *(sections(second)[n] for n in (4, 5, 6, 7)),
    ]
    body = b"".join(parts)
    data = first[:8] + (len(body) + 20).to_bytes(8, "big") + body + b"7777"
    path = tmp_path / "several.grib"
    path.write_bytes(data)
    expected = fields_by_eccodes(path)
    assert len(expected) == 6
    store = fst.open("memory:", schema="[class?, expver?, centre? [levelist [*]]]")
    assert store.archive_grib(path) == 6
    report = fst.ingest(fst.open(tmp_path / "store", schema="mars"), path)
    assert report.skipped == ()
    assert report.taken[0].fields == 6
    got = [field.read() for field in fst.open(tmp_path / "store", "r").retrieve()]
    assert sorted(got) == sorted(expected)
    for field in expected:  # each is a separate message
        with grib.Handle(field) as handle:
            assert handle.number("numberOfValues") > 0


def sections(data: bytes) -> dict[int, bytes]:
    """The sections of a GRIB2 message by number."""
    found, at = {}, 16
    while data[at : at + 4] != b"7777":
        n = int.from_bytes(data[at : at + 4], "big")
        found[data[at + 4]] = data[at : at + n]
        at += n
    return found


def test_real_files_split_as_eccodes_splits_them():
    several = 0
    for path in share(sorted(p for p in sample("grib").iterdir() if "corrupted" not in p.name), 3):
        store = fst.open("memory:", schema="mars")
        expected = fields_by_eccodes(path)
        whole = len(list(grib.messages(io.BytesIO(path.read_bytes()), path.stat().st_size)))
        several += len(expected) - whole
        report = fst.ingest(store, path, progress=False)
        assert report.skipped == (), path.name
        assert {field.read() for field in store.retrieve()} == set(expected), path.name
    assert several > 0, "a file with messages of several fields is among them"


STREAMS = [
    "oper",
    "oper",
    "enfo",
    "enfo",
    "wave",
    "waef",
    "scda",
    "elda",
    "enda",
    "ewda",
    "mnth",
    "moda",
    "msmm",
    "mmsf",
    "efov",
    "dcda",
    "edmm",
]
TYPES = ["an", "fc", "fc", "cf", "pf", "pf", "em", "es", "4v", "fg", "ep", "taem", "ia"]
PARAMS = [130, 131, 133, 129, 167, 165, 228, 121, 122, 201, 141, 39, 152, 235, 228228, 140229, 31, 172, 246]
SAMPLES = ["regular_ll_pl", "regular_ll_sfc", "reduced_gg_ml", "sh_ml"]
VARIED = {
    "date": [20260101, 20251231, 20240229, 19790523, 20000615, 19000301, 18991231],
    "time": [0, 600, 1200, 1800, 930, 2145],
    "level": [0, 1, 2, 10, 100, 500, 850, 1000, 137],
    "step": [0, 1, 3, 6, 12, 24, 120, 240, 300, 744],
    "number": [0, 1, 2, 3, 25, 50, 51, 255],
}


def attempt(handle, **keys):
    """Sets the keys that the message accepts."""
    for name, value in keys.items():
        with contextlib.suppress(eccodes.CodesInternalError):
            eccodes.codes_set(handle, name, value)


def family(rng: random.Random, members: int) -> list[bytes]:
    """Messages that differ in date, time, step, level and number, of a random kind."""
    edition = rng.choice([1, 2])
    handle = eccodes.codes_grib_new_from_samples(f"{rng.choice(SAMPLES)}_grib{edition}")
    if edition == 2:
        attempt(handle, tablesVersion=rng.choice([4, 20, 33, 34, 35]))
    if rng.random() < 0.7:
        attempt(handle, setLocalDefinition=1)
        attempt(handle, localDefinitionNumber=rng.choice([1] * 8 + [36, 15, 18, 16, 30, 26, 11]))
        attempt(handle, **{"class": rng.choice(["od", "rd", "ea", "mc", "ei", "ti", "e4", "s2"])})
        attempt(handle, stream=rng.choice(STREAMS), type=rng.choice(TYPES), expver=rng.choice(["1", "xxxx"]))
    else:
        attempt(handle, centre=rng.choice(["kwbc", "egrr", "lfpw", "edzw", "rjtd", "cwao"]))
        if edition == 2:
            status = rng.choice([0, 0, 0, 1, 2, 3, 4, 6, 8, 10, 255])
            kind = rng.choice([0, 1, 2, 3, 4, 255])
            attempt(handle, productionStatusOfProcessedData=status, typeOfProcessedData=kind)
        else:
            attempt(handle, deleteLocalDefinition=1)
    if edition == 2 and rng.random() < 0.5:
        attempt(handle, productDefinitionTemplateNumber=rng.choice([0, 1, 8, 11, 2, 12, 9]))
    attempt(handle, paramId=rng.choice(PARAMS))
    if rng.random() < 0.3:
        kinds = "isobaricInhPa hybrid surface heightAboveGround theta potentialVorticity depthBelowLand"
        attempt(handle, typeOfLevel=rng.choice(kinds.split()))
    if rng.random() < 0.1:
        attempt(handle, stepUnits=rng.choice("mhD"))
    ranges = rng.random() < 0.3
    made = []
    for _ in range(members):
        attempt(handle, totalNumber=rng.choice([0, 51]))
        attempt(handle, **{name: rng.choice(values) for name, values in VARIED.items()})
        if ranges:
            start = rng.choice([0, 3, 6, 12, 24, 48])
            attempt(handle, stepRange=f"{start}-{start + rng.choice([0, 1, 6, 24])}")
        if edition == 2 and rng.random() < 0.1:
            attempt(handle, scaledValueOfFirstFixedSurface=rng.choice([50, 150, 12345, 100000, 5]))
        made.append(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    return made


@pytest.mark.parametrize("seed", range(4 if LONG else 1))
def test_keys_of_random_headers_are_those_of_eccodes(seed):
    rng = random.Random(seed)
    messages = [one for _ in range(50) for one in family(rng, 20)]
    rng.shuffle(messages)
    at = 0
    while at < len(messages):
        some = messages[at : at + rng.choice([1, 7, 100, 600])]
        at += len(some)
        for one, key in zip(some, _grib_keys(b"".join(some)), strict=True):
            assert key == by_eccodes(one), f"seed {seed}"


def entries() -> list[dict[str, str]]:
    """The conditions of every entry of every table of the installed eccodes, whose library holds the text."""
    import eccodeslib

    library = next(Path(eccodeslib.__file__).parent.rglob("libeccodes_memfs.so*"))
    found = re.findall(r"=\s*\{([^{}\0]*)\}", library.read_bytes().decode("latin-1"))
    assert len(found) > 100_000
    parts = ("".join(entry.split()).split(";") for entry in set(found))
    return [dict(part.split("=", 1) for part in some if "=" in part) for some in parts]


def test_no_parameter_depends_on_a_level_that_is_read_without_eccodes():
    """An entry with a condition on the value of a level belongs to other types of level, or to unchanged
    tables."""
    levels = {"scaledValueOfFirstFixedSurface", "level", "topLevel"}  # the scale is part of the pattern
    asking = [entry for entry in entries() if levels & set(entry)]
    assert len(asking) > 500
    alone = 0
    for entry in asking:
        if entry.get("typeOfSecondFixedSurface", "255") != "255":
            continue
        two, one, name = (
            entry.get(n, "").strip("'\"")
            for n in ("typeOfFirstFixedSurface", "indicatorOfTypeOfLevel", "typeOfLevel")
        )
        if two in ("100", "105"):  # zeros are not read
            assert entry.get("scaledValueOfFirstFixedSurface", "0") == "0", entry
        if one in ("100", "109", "pl", "ml"):
            assert entry["table2Version"] == "129", entry
        assert name not in ("isobaricInhPa", "hybrid"), entry
        if not (two or one or name):
            assert entry["table2Version"] in ("2", "202"), entry
            alone += 1
    assert alone > 0


def test_tables_ask_for_no_other_number_that_is_read_without_eccodes():
    asked = set()
    for entry in entries():
        asked |= set(entry)
        # A start of zero is never read; the time of day only for instants.
        assert entry.get("forecastTime", "0") == "0", entry
        assert "dataTime" not in entry or "lengthOfTimeRange" in entry, entry
    assert "lengthOfTimeRange" in asked
    ends = {f"{part}OfEndOfOverallTimeInterval" for part in ("year", "month", "day", "hour", "minute")}
    assert not asked & {"year", "month", "day", "dataDate", "perturbationNumber", "P1", *ends}


ECMWF = {"setLocalDefinition": 1, "class": "od", "stream": "oper", "type": "fc", "expver": "0001"}


def forecast(**header):
    return message("regular_ll_pl_grib2", **ECMWF, **{"date": 20260101, "time": 0, **header})


def test_archive_grib_takes_bytes_and_paths_and_does_not_flush(tmp_path):
    messages = [forecast(step=step, level=level) for step in (0, 6) for level in (500, 850)]
    path = tmp_path / "a.grib"
    path.write_bytes(b"bulletin\r\n" + b"\0\0".join(messages))
    store = fst.open(tmp_path / "store", schema="mars")
    assert store.archive_grib(path) == 4
    with pytest.raises(fst.NotFound, match="no store"):
        fst.open(tmp_path / "store", "a", schema="mars").axes()
    store.flush()
    assert store.retrieve("step=0/6,levelist=500/850").read() == b"".join(messages)
    newer = forecast(step=6, level=850, bitsPerValue=8)
    assert store.archive_grib(bytearray(newer), {"step": "006", "param": "130.128"}) == 1
    store.flush()
    assert store.get("step=6,levelist=850") == newer, "a key archived again is a new version"
    with store.transaction() as tx:
        assert tx.archive_grib(forecast(step=12)) == 1
        tx.abort()
    assert store.axes()["step"] == ["0", "6"]
    for nothing in (b"", b"no message"):
        with pytest.raises(fst.Invalid, match="no GRIB message"):
            store.archive_grib(nothing)
    with pytest.raises(fst.NotFound, match=r"absent\.grib"):
        store.archive_grib(tmp_path / "absent.grib")


def test_a_contradiction_names_both_values_and_nothing_is_archived(tmp_path):
    messages = [forecast(step=step) for step in (6, 12)]
    store = fst.open(tmp_path / "store", schema="mars")
    path = tmp_path / "a.grib"
    path.write_bytes(b"".join(messages))
    for source in (b"".join(messages), path):
        why = rf"at byte {len(messages[0])}: its step is 12, but the given key says 6"
        with pytest.raises(fst.Invalid, match=why) as told:
            store.archive_grib(source, {"step": 6})
        assert "leave step out" in told.value.hint
        assert store.unflushed == 0
    assert store.archive_grib(messages[0], "step=6,expver=1,date=2026-01-01,comment=mine") == 1
    store.flush()
    assert store.axes()["comment"] == ["mine"]


def test_a_refusal_of_the_last_of_many_messages_takes_none_before_it(tmp_path):
    many = b"".join([forecast(step=0)] * 300 + [forecast(step=6)] * 300)
    header = ECMWF | {"expver": "0002", "date": 20260101, "time": 0, "step": 0}
    locked = message("regular_ll_pl_grib2", **header)
    with fst.open(tmp_path / "store", schema="mars") as store:
        store.archive_grib(locked)
        store.flush()
        store.lock("expver=0002", "archive")
        with pytest.raises(fst.Denied, match="0002"):
            store.archive_grib(many + locked)
        assert store.unflushed == 0
        store.unlock("expver=0002", "archive")
        assert store.archive_grib(many + locked) == 601
        store.flush()
    with fst.open(tmp_path / "store", if_exists="error") as store:
        new = [forecast(step=18 + n) for n in range(520)]
        for refused in (new[0], forecast(step=6)):  # of an earlier batch, and in the store
            with pytest.raises(fst.Conflict):
                store.archive_grib(b"".join([*new, refused]))
            assert store.unflushed == 0
        assert store.archive_grib(b"".join(new)) == 520


def test_damage_is_refused_by_offset_in_the_last_of_many_messages(tmp_path):
    good = [forecast(step=step, level=level) for step in range(30) for level in range(100, 1000, 25)]
    broken = good[7][:-4] + b"oops"
    path = tmp_path / "a.grib"
    path.write_bytes(b"".join(good) + broken)
    store = fst.open(tmp_path / "store", schema="mars")
    with pytest.raises(
        fst.Corrupt, match=rf"at byte {sum(map(len, good))}: its length .* does not end in 7777"
    ):
        store.archive_grib(path)
    assert store.unflushed == 0
    path.write_bytes(b"".join(good))
    assert store.archive_grib(path) == len(good) == 1080


def test_a_known_header_needs_no_helper(tmp_path):
    """Facts from one header apply to all messages that differ in date, time, step, level and member."""
    script = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import fieldstone as fst
from test_grib import forecast
store = fst.open("memory:", schema="mars")
store.archive_grib(forecast(step=6, level=500))
here = os.getpid()
def children():
    return open(f"/proc/{{here}}/task/{{here}}/children").read()
for child in children().split():
    os.kill(int(child), 9)
for step in (12, 18, 240):
    store.archive_grib(forecast(step=step, level=700, date=20270203, time=1200))
store.archive_grib(forecast(step=6, paramId=131))
print(store.unflushed, len(children().split()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5", "1"], "a new header restarts the lost helper"


def test_array_decodes_a_message(tmp_path):
    values = 250 + np.arange(496.0)
    values[5] = 9999
    store = fst.open("memory:", schema="mars")
    store.archive_grib(forecast(missingValue=9999, bitmapPresent=1, bitsPerValue=24, values=values))
    reduced = sample("grib/reduced_gg.grib")
    store.archive_grib(reduced)
    store.archive(
        "class=od,expver=1,stream=oper,date=20200101,time=0,type=fc,levtype=sfc,step=1,param=1", b"x"
    )
    store.flush()
    (field,) = store.retrieve("date=20260101")
    got = field.array()
    assert (got.shape, got.dtype) == ((31, 16), np.dtype("f8"))
    assert np.isnan(got[0, 5])
    np.testing.assert_allclose(got.ravel()[6:], values[6:], atol=1e-3)
    np.testing.assert_array_equal(field.array((2, 3), (4, 5)), got[2:6, 3:8])
    with pytest.raises(fst.Invalid):
        field.array((30, 0), (2, 1))
    assert field.read()[:4] == b"GRIB"
    (other,) = store.retrieve("date=20200101,param=1")
    with pytest.raises(fst.Invalid, match="opaque bytes"):
        other.array()
    shapes = {f.array().ndim for f in store.retrieve() if f.nbytes > 1}
    assert shapes == {1, 2}

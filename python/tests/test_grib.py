"""GRIB messages: keys as eccodes alone gives them, fields as it splits them, archive_grib, array()."""

from __future__ import annotations

import contextlib
import io
import random
import re
import tempfile
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample
from fieldstone._helper import grib
from fieldstone._native import _grib_keys
from test_helper_grib import message

eccodes = pytest.importorskip("eccodes")


def by_eccodes(data: bytes) -> dict[str, str] | str:
    """The key of one message as eccodes alone gives it, or what it says where it cannot."""
    try:
        with grib.Handle(data) as handle:
            return grib.key_of(handle)
    except Exception as error:
        return f"eccodes cannot read its header: {error}"


def fields_by_eccodes(path: Path) -> list[bytes]:
    """The fields of a file as eccodes splits them; damaged messages are stepped over."""
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
    """A real file with these bytes: eccodes reads through the C library."""
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(data)
    file.seek(0)
    return file


def test_keys_of_every_real_message_are_those_of_eccodes():
    compared = 0
    for path in sorted(p for p in sample("grib").iterdir() if "corrupted" not in p.name):
        fields = fields_by_eccodes(path)
        expected = [by_eccodes(field) for field in fields]
        # All at once, and from what is known by then one by one.
        assert _grib_keys(path.read_bytes()) == expected, path.name
        assert [_grib_keys(field)[0] for field in fields] == expected, path.name
        compared += len(fields)
    assert compared > 1400


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
    for field in expected:  # each is a message by itself
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
    for path in sorted(p for p in sample("grib").iterdir() if "corrupted" not in p.name):
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
    """Sets what the message takes."""
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


@pytest.mark.parametrize("seed", range(4))
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
    text = library.read_bytes().decode("latin-1")
    found = re.findall(r"^\s*[\"']?[^\"'\n=]*[\"']?\s*=\s*\{([^{}]*)\}", text, re.MULTILINE)
    assert len(found) > 100_000
    parts = (re.sub(r"\s", "", entry).split(";") for entry in found)
    return [dict(part.split("=", 1) for part in some if "=" in part) for some in parts]


def test_no_parameter_depends_on_a_level_that_is_read_without_eccodes():
    """An entry that asks for a value of level is about other types of level, or of tables left alone."""
    levels = {"scaledValueOfFirstFixedSurface", "level", "topLevel"}  # the scale is part of the pattern
    asking = [entry for entry in entries() if levels & set(entry)]
    assert len(asking) > 1_000
    alone = 0
    for entry in asking:
        if entry.get("typeOfSecondFixedSurface", "255") != "255":
            continue
        two, one, name = (
            entry.get(n, "").strip("'\"")
            for n in ("typeOfFirstFixedSurface", "indicatorOfTypeOfLevel", "typeOfLevel")
        )
        if two in ("100", "105"):  # a zero is not read
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
        # A start of zero is never read; the time of day only of instants.
        assert entry.get("forecastTime", "0") == "0", entry
        assert "dataTime" not in entry or "lengthOfTimeRange" in entry, entry
    assert "lengthOfTimeRange" in asked
    ends = {f"{part}OfEndOfOverallTimeInterval" for part in ("year", "month", "day", "hour", "minute")}
    assert not asked & {"year", "month", "day", "dataDate", "perturbationNumber", "P1", *ends}

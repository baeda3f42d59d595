"""A heap of files in one store: folders, patterns, the fitting schema, the report, xarray, and out again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample

pytest.importorskip("netCDF4")
pytest.importorskip("eccodes")
pytest.importorskip("xarray")
import eccodes
import netCDF4
import xarray as xr
from test_helper_grib import message
from test_helper_netcdf import make

PROGRAM = Path(sys.executable).parent / "fieldstone"


@pytest.fixture
def heap(tmp_path: Path) -> Path:
    folder = tmp_path / "heap"
    (folder / "sub").mkdir(parents=True)
    make(folder / "a.nc")
    make(folder / "sub" / "a.nc", "NETCDF3_CLASSIC")
    (folder / "b.grib").write_bytes(b"".join(message(level=level) for level in (500, 700)))
    (folder / "notes.txt").write_text("words")
    (folder / "more.txt").write_text("words")
    return folder


def take(store, paths, **options):
    return fst.ingest(store, paths, progress=False, **options)


def test_a_folder_is_one_store_with_the_key_of_each_file(tmp_path, heap):
    report = take(tmp_path / "store", heap)
    store = fst.open(tmp_path / "store", "r")
    assert store.status().schema == "mixed"
    assert [t.path.relative_to(heap).as_posix() for t in report.taken] == ["a.nc", "b.grib", "sub/a.nc"]
    one, grib, two = (dict(t.key) for t in report.taken)
    assert one == {"run": "a", "source": "!*"} and two["run"] == "a" and len(two["source"]) == 12
    assert grib["param"] and "levelist" not in grib, "keywords that differ between messages are left out"
    assert (report.files, report.fields) == (5, 26)
    assert report.nbytes == sum(t.bytes for t in report.taken)
    assert [s.path.name for s in report.reasons["neither GRIB nor netCDF"]] == ["more.txt", "notes.txt"]
    text = str(report)
    assert "under run=a,source=" in text and "more.txt" in text
    assert text.splitlines()[-1].startswith("in all   3 of 5 files taken: 26 new fields")
    again = take(tmp_path / "store", heap)
    assert (again.fields, [dict(t.key) for t in again.taken]) == (0, [one, grib, two])


def test_patterns_recursion_and_schemas(tmp_path, heap):
    assert len(take(tmp_path / "all", heap / "**" / "*.nc").taken) == 2
    assert fst.open(tmp_path / "all", "r").status().schema == "simulation"
    assert len(take(tmp_path / "grib", str(heap / "*.gri[ab]")).taken) == 1
    assert fst.open(tmp_path / "grib", "r").status().schema == "mars"
    flat = take(tmp_path / "flat", heap, recursive=False)
    assert [t.path.name for t in flat.taken] == ["a.nc", "b.grib"]
    chosen = take(tmp_path / "chosen", heap, schema="simulation")
    assert fst.open(tmp_path / "chosen", "r").status().schema == "simulation"
    assert "cannot hold GRIB messages" in next(s.why for s in chosen.skipped if s.path.suffix == ".grib")
    with pytest.raises(fst.Conflict):
        take(tmp_path / "chosen", heap, schema="mars")
    with fst.open(tmp_path / "open") as store, pytest.raises(fst.Invalid, match="has its schema"):
        take(store, heap, schema="mixed")


def test_nothing_taken_raises_with_the_report(tmp_path, heap):
    with pytest.raises(fst.Invalid) as refused:
        take(tmp_path / "store", [heap / "*.txt", heap / "*.none"])
    error = refused.value
    assert error.code == "nothing-taken"
    assert "more.txt" in error.message and "no file matches it" in error.message
    assert [s.what for s in error.report.skipped] == ["the pattern", "the file", "the file"]
    assert take(tmp_path / "store", []).taken == ()


def test_a_mixed_store_opens_in_xarray_as_its_files(tmp_path, heap):
    url = str(tmp_path / "store")
    report = take(url, heap)
    with pytest.raises(fst.Invalid, match=r"param=\?\*"):
        xr.open_dataset(url, engine="fieldstone")
    for taken in report.taken:
        if taken.path.suffix == ".nc":
            key = dict(taken.key)  # two files with one stem: the key of one is part of the other's
            got = xr.open_dataset(url, engine="fieldstone", request=key, combine=None).load()
            with xr.open_dataset(taken.path) as file:
                xr.testing.assert_identical(got, file.load())
    grib = xr.open_dataset(url, engine="fieldstone", request="param=?*")
    assert grib.sizes["levelist"] == 2 and "run" not in grib.coords
    rest = xr.open_datatree(url, engine="fieldstone", request="variable=?*")
    everything = xr.open_datatree(url, engine="fieldstone")
    assert set(rest.children) == {"a"} and len(everything.children) == 2
    assert len(rest["a"].children) == 2, "a node for each file of the run"
    assert {node.path for node in rest.subtree} < {node.path for node in everything.subtree}
    # A request that selects one kind needs nothing else.
    assert xr.open_dataset(url, engine="fieldstone", request="levelist=500").sizes
    with pytest.raises(fst.NotFound):
        xr.open_dataset(url, engine="fieldstone", request="run=none")


def test_requests_for_what_has_a_keyword(tmp_path, heap):
    take(tmp_path / "store", heap)
    store = fst.open(tmp_path / "store", "r")

    def count(request):
        return len(list(store.list(request)))

    assert (count("param=?*"), count({"variable": "?*"}), count("param=*")) == (2, 24, 26)
    assert count({"variable": ["?*"]}) == 0, "in a list it is a value"
    assert str(fst.Request({"step": "?*"})) == "step=?*"
    assert count("source=?*,variable=?*") == 12
    assert set(store.axes("param=?*")) >= {"param", "levelist"} and "run" not in store.axes("param=?*")
    assert len(store.retrieve("variable=?*,step=1")) == count("variable=?*,step=1") > 0
    with pytest.raises(fst.Invalid):
        store.get("param=?*")
    with fst.open(tmp_path / "store") as writable, pytest.raises(fst.Invalid, match="param"):
        writable.wipe("param=?*", doit=True)


def test_runs_of_both_kinds_are_in_the_catalog(tmp_path, heap):
    take(tmp_path / "store", heap)
    with fst.open(tmp_path / "store") as store:
        names = [run.name for run in store.runs()]
        assert "a" in names and len(names) == 2
        forecast = next(name for name in names if "/" in name)
        store.create_tag("seen", type="int")
        store.run(forecast).annotate("seen", 1)
        run = store.create_run("mine", params={"nx": 3})
        run.write("t", 0, np.arange(3.0))
        store.flush()
        run.annotate("seen", 2, variable="t", step=0)
    with fst.open(tmp_path / "store") as store:
        hits = {hit.run: hit for hit in store.attributes(tag="seen")}
        assert set(hits) == {forecast, "mine"}
        assert hits["mine"].read().tolist() == [0, 1, 2]
        # A name like a forecast's still belongs to the caller.
        own = {"run": "kwbc/20240101/0000", "variable": "t", "step": 0}
        store.archive(own, np.zeros(2))
        store.flush()
        (row,) = store.runs(run=fst.exact("kwbc%2F20240101%2F0000"))
        store.run(row.name).annotate("seen", 3, variable="t", step=0)
        store.flush()
        assert store.attributes(run=row.name).collect()[0].read().tolist() == [0, 0]
        target = fst.open(tmp_path / "target", schema="mixed")
        copied = fst.copy(store, {}, to=target)
        assert copied.attributes == 3 and copied.left == ()


def test_other_dimensions_are_steps_where_that_is_asked_for(tmp_path):
    path = tmp_path / "members.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("member", 3)
        file.createDimension("time", 2)
        file.createVariable("time", "f8", ("time",))[:] = [0, 6]
        file.createVariable("m", "f4", ("member", "time"))[:] = np.arange(6).reshape(3, 2)
        file.createVariable("t", "f4", ("time", "member"))[:] = np.arange(6).reshape(2, 3)
    steps = {}
    for name, step_dim in (("rule", None), ("member", "member"), ("none", False)):
        take(tmp_path / name, path, step_dim=step_dim)
        store = fst.open(tmp_path / name, "r")
        steps[name] = [store.axes(f"variable={v}").get("step", []) for v in "mt"]
        got = xr.open_dataset(tmp_path / name, engine="fieldstone").load()
        with xr.open_dataset(path) as file:
            xr.testing.assert_identical(got, file.load())
    assert steps == {"rule": [[], ["0", "1"]], "member": [["0", "1", "2"], []], "none": [[], []]}
    with pytest.raises(fst.Invalid, match="step_dim"):
        take(tmp_path / "wrong", path, step_dim=True)


def test_the_program_reports_keys_reasons_and_totals(tmp_path, heap):
    def run(*arguments):
        return subprocess.run([PROGRAM, "ingest", *arguments], capture_output=True, text=True, check=False)

    done = run(tmp_path / "store", heap, "--json", "-q")
    document = json.loads(done.stdout)
    assert done.returncode == 2 and document["interrupted"] is False
    assert document["taken"][0]["key"] == {"run": "a", "source": "!*"}
    assert document["totals"]["fields"] == 26 and document["totals"]["skipped"] == 2
    assert document["reasons"] == [{"why": "neither GRIB nor netCDF", "count": 2, "whole": True}]
    done = run(tmp_path / "store", f"{heap}/**/*.nc", "-q")
    assert done.returncode == 0 and "12 there already, under run=a,source=!*\n" in done.stdout
    assert done.stdout.splitlines()[-1] == "in all   2 of 2 files taken: 0 new fields, 0 bytes"


@pytest.mark.parametrize("language", ["python", "program"])
def test_ctrl_c_prints_the_report_so_far_and_the_same_call_goes_on(tmp_path, language):
    folder = tmp_path / "many"
    folder.mkdir()
    path = make(tmp_path / "small.nc")
    for i in range(200):
        os.link(path, folder / f"f{i:03}.nc")
    script = "import fieldstone as f, signal\nsignal.signal(2, signal.default_int_handler)\n"
    script += f"f.ingest('store', {str(folder)!r})"
    command = [sys.executable, "-c", script] if language == "python" else [PROGRAM, "ingest", "store", folder]
    child = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for line in child.stderr:
        if "(20 of" in line:
            break
    os.killpg(child.pid, signal.SIGINT)  # like a terminal, which also interrupts the helper
    said, told = child.communicate(timeout=300)
    report = told if language == "python" else said
    assert child.returncode != 0 and (language == "python" or child.returncode == 130)
    (last,) = [line for line in report.splitlines() if line.startswith("in all")]
    done = int(last.split()[2])
    assert 18 <= done < 200 and last.endswith(f"{200 - done} not looked at")
    assert "skipped" not in report and "not taken twice" in told
    assert len(fst.open(tmp_path / "store", "r").axes()["run"]) == done
    after = take(tmp_path / "store", folder)
    assert [t.fields > 0 for t in after.taken] == [False] * done + [True] * (200 - done)


def test_all_of_a_heap_goes_out_and_one_that_cannot_is_told(tmp_path, heap):
    with fst.open(tmp_path / "store") as store:
        take(store, heap, schema=None)
        store.run("a")
        header = {"run": "broken", "variable": "@header"}
        store.archive(header, b'{"version": 99, "groups": []}')
        store.archive({"run": "mine", "variable": "t", "step": 0}, np.arange(3.0))
        store.flush()
        (tmp_path / "out").mkdir()
        with pytest.raises(fst.Invalid, match=r"param=\?\*"):
            store.export("", tmp_path / "one.nc")
        report = store.export("", tmp_path / "out")
    names = sorted(path.name for path in report.files)
    assert (
        names[0].startswith("a-")
        and names[1] == "a.nc"
        and names[-2:] == ["messages.grib", "mine.nc"]
        and len(names) == 4
    )
    assert (tmp_path / "out" / "messages.grib").read_bytes() == (heap / "b.grib").read_bytes()
    (failed,) = [s for s in report.skipped if s.whole]
    assert failed.path.name == "broken.nc" and "run=broken" in failed.why and "version 99" in failed.why
    assert report.fields == 12 + 12 + 1 + 2 - 2
    done = subprocess.run(
        [PROGRAM, "export", tmp_path / "store", tmp_path / "out", "--overwrite"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "1 file could not be written" in done.stderr
    assert "run=broken" in done.stdout


def test_values_that_netcdf_cannot_hold_name_their_run(tmp_path):
    path = tmp_path / "enum.nc"
    with netCDF4.Dataset(path, "w") as file:
        kind = file.createEnumType("u1", "kind", {"a": 1, "b": 2})
        file.createDimension("x", 2)
        file.createVariable("k", kind, ("x",))  # never written: no member has this value
        file.createVariable("v", "f4", ("x",))[:] = 1
    (tmp_path / "out").mkdir()
    make(tmp_path / "good.nc")
    with fst.open(tmp_path / "store") as store:
        take(store, [path, tmp_path / "good.nc"])
        report = store.export("", tmp_path / "out")
        told = [s for s in report.skipped if s.whole]
        assert [p.name for p in report.files] == ["good.nc"] or not told
        if told:
            assert "run=enum" in told[0].why
            with pytest.raises(fst.Invalid, match="run=enum"):
                store.export("run=enum", tmp_path / "enum-again.nc")


def odd(name: str, value: int, **header) -> bytes:
    """A GRIB2 message with an odd number in its header."""
    handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    try:
        for key, number in {**header, name: value}.items():
            eccodes.codes_set(handle, key, number)
        return eccodes.codes_get_message(handle)
    finally:
        eccodes.codes_release(handle)


def climatology(month: int, day: int) -> bytes:
    """A GRIB1 message of no year."""
    handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib1")
    made = bytearray(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    made[8 + 12 : 8 + 15] = bytes([255, month, day])
    return bytes(made)


def missing_step() -> bytes:
    made = bytearray(odd("forecastTime", 6))
    at = 16
    while made[at + 4] != 4:
        at += int.from_bytes(made[at : at + 4], "big")
    made[at + 18 : at + 22] = b"\xff\xff\xff\xff"
    return bytes(made)


def test_no_message_stays_out_for_its_date_or_step(tmp_path):
    messages = {
        "date=jan-15": climatology(1, 15),
        "date=0200": climatology(2, 255),
        "date=0001-01-15": odd("year", 1, month=1, day=15),
        "step=-6": odd("forecastTime", -6),
        "date_text=?*,time=1200": odd("year", 0),
        "time_text=2400": odd("hour", 24),
        "typeoflevel=surface,step=?*,date=2007-03-23,time=1200": odd("forecastTime", 6),
    }
    path = tmp_path / "odd.grib"
    path.write_bytes(b"".join([*messages.values(), missing_step()]))
    with fst.open(tmp_path / "store", schema="mars") as store:
        report = take(store, path)
        assert report.skipped == () and report.taken[0].fields == 8
        for request, bytes_ in messages.items():
            held = [field.read() for field in store.retrieve(request)]
            assert bytes_ in held, request
        (missing,) = [f for f in store.retrieve({}) if "step" not in f.key]
        assert missing.read() == missing_step() and "step_text" not in missing.key
        assert store.axes("class=od")["date"] == ["0115", "0200"]
        assert [s.step for s in store.steps()].count(-6) == 1
        # archive_grib uses the same keys.
        with fst.open(tmp_path / "other", schema="mars") as other:
            assert other.archive_grib(path) == 8
            other.flush()
            assert sorted(str(e.key) for e in other.list()) == sorted(str(e.key) for e in store.list())
        early = store.to_xarray("date=0001-01-15")
        assert str(early.date.values.reshape(-1)[0])[:10] == "0001-01-15"


def test_grib_stays_where_it_is_without_a_copy(tmp_path):
    path, several = tmp_path / "big.grib", sample("grib/ml_data.grib")
    path.write_bytes(b"junk" + b"".join(message(level=level) for level in (500, 700)))
    with fst.open(tmp_path / "store", schema="mars") as store:
        report = take(store, [path, several], copy=False)
        assert [t.fields > 0 for t in report.taken] == [True, True] and report.skipped == ()
        entries = list(store.list("levelist=500/700"))
        assert all(entry.location.startswith("file://") for entry in entries), entries
        assert store.get(entries[0].key) == message(level=500)
        assert store.verify().ok
        assert take(store, path, copy=False).taken[0].unchanged == 2
        # After an ingest with bytes, the fields no longer depend on the file.
        assert take(store, path).taken[0].fields == 2
        assert not any("file://" in str(entry.location) for entry in store.list("levelist=500/700"))
        assert take(store, path, copy=False).taken[0].unchanged == 2
    with fst.open(tmp_path / "changed", schema="mars") as store:
        take(store, path, copy=False)
        path.write_bytes(path.read_bytes() + b" ")
        with pytest.raises(fst.Corrupt):
            store.get(next(iter(store.list())).key)
        assert take(store, path, copy=False).taken[0].fields == 2
        assert store.get(next(iter(store.list("levelist=700"))).key) == message(level=700)


def test_the_heap_of_real_files_is_one_store(tmp_path):
    root = sample("README.md").parent
    report = take(tmp_path / "store", root)
    assert report.files > 190 and len(report.taken) > 155 and report.fields > 6000
    ours = ("@", "schema", "keyword", "does not parse", "is not a date", "is not a step", "has no place")
    for skipped in report.skipped:
        assert not any(word in skipped.why for word in ours), skipped
    names = {t.path.name for t in report.taken}
    grib = {path.name for path in (root / "grib").iterdir()}
    assert grib <= names, "each GRIB file gives some fields"
    assert fst.open(tmp_path / "store", "r").status().schema == "mixed"

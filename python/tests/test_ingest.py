"""`fieldstone.ingest`: real and made files through the real helper into a real store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import fieldstone as fst
import numpy as np
import pytest
from conftest import LONG, sample, share

pytest.importorskip("netCDF4")
pytest.importorskip("eccodes")
from test_grib import fields_by_eccodes
from test_helper_grib import message
from test_helper_netcdf import make


def take(store, paths, **options):
    return fst.ingest(store, paths, progress=False, **options)


def contents(store):
    """All keys with their bytes."""
    return {str(f.key): f.read() for f in store.retrieve()}


def test_a_netcdf_file_is_fields_by_variable_and_step(tmp_path):
    store = fst.open(tmp_path / "store")
    report = take(store, make(tmp_path / "small.nc"))
    assert [(t.path.name, t.fields, t.unchanged) for t in report.taken] == [("small.nc", 12, 0)]
    assert report.skipped == ()
    got = store.get({"run": "small", "variable": "t", "step": 1})
    assert got.dtype == np.dtype("<i2")
    np.testing.assert_array_equal(got, np.arange(12, 24).reshape(3, 4) - 99)
    assert store.axes({"variable": "t"})["step"] == ["0", "1"]


@pytest.mark.parametrize("name", ["small.nc", "three.grib"])
def test_the_same_file_again_adds_nothing(tmp_path, name):
    path = tmp_path / name
    if name.endswith("nc"):
        make(path)
    else:
        path.write_bytes(b"".join(message(level=level) for level in (500, 700, 850)))
    store = fst.open(tmp_path / "store")
    first = take(store, path)
    version = store.version
    for again in (take(store, [path]), take(fst.open(tmp_path / "store"), path)):
        assert [(t.fields, t.bytes, t.unchanged) for t in again.taken] == [(0, 0, first.taken[0].fields)]
    assert store.version == version


def test_a_new_store_gets_the_schema_that_fits_and_an_old_one_says_why_not(tmp_path):
    netcdf, grib = make(tmp_path / "small.nc"), tmp_path / "one.grib"
    grib.write_bytes(message(level=500))
    for place in ("open", "url"):
        for path, other, schema in ((netcdf, grib, "simulation"), (grib, netcdf, "mars")):
            url = tmp_path / f"{place}-{schema}"
            assert len(take(fst.open(url) if place == "open" else url, path).taken) == 1
            store = fst.open(url)
            assert store.status().schema == schema
            with pytest.raises(fst.Invalid, match="nothing was taken") as refused:
                take(store, other)
            report = refused.value.report
            assert (report.taken, len(report.skipped)) == ((), 1)
            assert f"the store's schema, {schema}, cannot hold" in report.skipped[0].why
    # A requested schema is kept.
    with pytest.raises(fst.Invalid, match="cannot hold GRIB messages"):
        take(fst.open(tmp_path / "asked", schema="simulation"), grib)
    # So are archived fields that are not flushed yet.
    store = fst.open(tmp_path / "busy")
    store.archive({"run": "a", "variable": "t"}, b"mine")
    with pytest.raises(fst.Invalid, match="cannot hold GRIB messages"):
        take(store, grib)
    store.flush()
    assert store.get({"run": "a", "variable": "t"}) == b"mine"


def test_reports_say_what_is_wrong_with_a_file(tmp_path):
    good = make(tmp_path / "small.nc")
    (tmp_path / "cut.nc").write_bytes(good.read_bytes()[:1000])
    (tmp_path / "text.nc").write_text("no netCDF")
    (tmp_path / "empty.nc").write_bytes(b"")
    names = ["absent.nc", "cut.nc", "empty.nc", "text.nc", "small.nc", "folder"]
    (tmp_path / "folder").mkdir()
    report = take(fst.open(tmp_path / "store"), [tmp_path / name for name in names])
    assert [t.path.name for t in report.taken] == ["small.nc"]
    told = {s.path.name: s.why for s in report.skipped}
    assert {s.what for s in report.skipped} == {"the file", "the folder"}
    assert told["absent.nc"] == "No such file or directory"
    assert "netCDF-C cannot open it" in told["cut.nc"]
    assert (told["empty.nc"], told["text.nc"]) == ("empty file", "neither GRIB nor netCDF")
    assert told["folder"] == "it holds no files"
    assert str(report.skipped[1]) == f"{tmp_path}/absent.nc: the file: No such file or directory"
    assert "small.nc" in repr(report)


def test_messages_that_share_a_key_are_kept_apart(tmp_path):
    path = tmp_path / "twins.grib"
    same = {"level": 500, "date": 20240101}
    twins = [message(values=np.full(496, float(n)), **same) for n in range(4)]
    path.write_bytes(b"".join([*twins, twins[2]]))
    store = fst.open(tmp_path / "store")
    report = take(store, path)
    assert (report.taken[0].fields, report.taken[0].unchanged) == (4, 1)
    found = contents(store)
    assert sorted(found.values()) == sorted(twins)
    assert sorted(dict(f.key).get("ordinal", "1") for f in store.retrieve()) == ["1", "2", "3", "4"]
    assert take(store, path).taken[0].fields == 0


def test_files_of_one_name_are_kept_apart(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    one = make(tmp_path / "a" / "x.nc")
    two = make(tmp_path / "b" / "x.nc", "NETCDF3_CLASSIC")
    store = fst.open(tmp_path / "store")
    take(store, [one, two])
    (source,) = store.axes()["source"]
    assert len(source) == 12
    assert sum(1 for _ in store.list({"run": "x", "variable": "@header"})) == 2


def test_further_keywords_and_another_run(tmp_path):
    store = fst.open(tmp_path / "store")
    report = take(store, make(tmp_path / "small.nc"), key={"project": "p", "run": "b", "member": 3})
    assert report.skipped == ()
    assert {str(e.key)[:17] for e in store.list()} == {"{project=p,run=b}"}
    assert store.axes()["member"] == ["3"]


def test_progress_counts_the_bytes_of_the_files(tmp_path, capfd):
    paths = [make(tmp_path / "one.nc"), make(tmp_path / "two.nc")]
    seen = []
    fst.ingest(tmp_path / "a", paths, progress=lambda done, of: seen.append((done, of)))
    total = sum(path.stat().st_size for path in paths)
    assert seen[-1] == (total, total)
    assert seen == sorted(seen)
    assert capfd.readouterr().err == ""
    fst.ingest(tmp_path / "b", paths)
    assert capfd.readouterr().err == "reading one.nc (1 of 2)\nreading two.nc (2 of 2)\n"


def test_what_a_callback_raises_comes_out_and_the_file_is_not_taken(tmp_path):
    class Stop(Exception):
        pass

    def stop(done, of):
        raise Stop

    store = fst.open(tmp_path / "store")
    with pytest.raises(Stop):
        fst.ingest(store, make(tmp_path / "small.nc"), progress=stop)
    with pytest.raises(fst.NotFound):
        fst.open(tmp_path / "store", "r").axes()


def test_a_python_that_cannot_read_is_unavailable_with_a_next_step(tmp_path, monkeypatch):
    path = make(tmp_path / "small.nc")
    monkeypatch.setenv("FIELDSTONE_PYTHON", str(tmp_path / "none"))
    with pytest.raises(fst.Unavailable, match="cannot start the helper") as caught:
        take(tmp_path / "store", path)
    assert "pip install" in caught.value.hint


def test_calls_ask_the_helper_of_the_call_before_and_a_new_one_where_it_is_gone_or_set_up_otherwise(
    tmp_path, monkeypatch
):
    python, started = tmp_path / "python", tmp_path / "started"
    python.write_text(f'#!/bin/sh\necho $$ >> "{started}"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("FIELDSTONE_PYTHON", str(python))
    store = fst.open(tmp_path / "store")

    def helpers_after(name):
        assert take(store, make(tmp_path / name)).taken[0].fields == 12
        return started.read_text().split()

    (first,) = helpers_after("a.nc")
    assert helpers_after("b.nc") == [first]
    os.kill(int(first), signal.SIGKILL)
    _, second = helpers_after("c.nc")
    monkeypatch.setenv("ECCODES_DEFINITION_PATH", "elsewhere")
    *_, third = helpers_after("d.nc")
    assert len({first, second, third}) == 3
    # A helper that may be in the middle of an answer serves no other request.
    with pytest.raises(ZeroDivisionError):
        fst.ingest(store, make(tmp_path / "e.nc"), progress=lambda done, of: 1 / 0)
    assert len(helpers_after("f.nc")) == 4


def test_a_missing_library_is_told_with_the_command_that_brings_it(tmp_path, monkeypatch):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "netCDF4.py").write_text("raise ImportError('hidden')")
    held = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(tmp_path / "hidden"), *([held] if held else [])])
    monkeypatch.setenv("PYTHONPATH", path)
    with pytest.raises(fst.Invalid) as refused:
        take(tmp_path / "store", make(tmp_path / "small.nc"))
    report = refused.value.report
    assert report.taken == ()
    assert "netCDF4 cannot be loaded" in report.skipped[0].why
    assert "pip install 'fieldstone[netcdf]'" in report.skipped[0].why


def test_a_file_in_the_current_folder_is_no_module(tmp_path, monkeypatch):
    (tmp_path / "netCDF4.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert len(take(tmp_path / "store", make(tmp_path / "small.nc")).taken) == 1


def test_an_interrupted_ingest_leaves_a_whole_store(tmp_path):
    """Ctrl-C during the ingest of many files: those before it are in the store, which is clean."""
    path = make(tmp_path / "small.nc")
    script = f"""
import fieldstone as fst, shutil, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's children ignore it
paths = []
for i in range(400):
    paths.append(shutil.copy({str(path)!r}, {str(tmp_path)!r} + f"/f{{i}}.nc"))
fst.ingest({str(tmp_path / "store")!r}, paths)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if "(20 of" in line:
            break
    child.send_signal(signal.SIGINT)
    said = child.stderr.read()
    assert child.wait(60) != 0
    assert "KeyboardInterrupt" in said
    store = fst.open(tmp_path / "store", "r")
    runs = store.axes()["run"]
    assert 18 <= len(runs) < 400
    assert all(sum(1 for _ in store.list({"run": run})) == 12 for run in runs)
    assert store.verify().ok
    assert store.status().transactions == ()


def test_memory_is_bounded_by_parts_of_arrays(tmp_path):
    """A variable of 400 MB passes through a process that may not hold half of it."""
    netCDF4 = pytest.importorskip("netCDF4")
    path = tmp_path / "large.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as ds:
        ds.createDimension("x", 50_000_000)
        v = ds.createVariable("v", "f8", ("x",))
        for first in range(0, 50_000_000, 5_000_000):
            v[first : first + 5_000_000] = np.arange(first, first + 5_000_000)
    script = f"""
import resource, fieldstone as fst
report = fst.ingest({str(tmp_path / "store")!r}, {str(path)!r}, progress=False)
assert report.taken[0].bytes > 400_000_000, report
(own,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    own, helper = (int(n) // 1024 for n in done.stdout.split())
    assert max(own, helper) < 300, f"{own} MiB here, {helper} MiB in the helper"
    store = fst.open(tmp_path / "store", "r")
    piece = store.get({"run": "large", "variable": "v"}, start=(33_333_333,), count=(3,))
    assert piece.tolist() == [33_333_333, 33_333_334, 33_333_335]


def test_every_real_grib_message_comes_back_byte_for_byte(tmp_path):
    """Through the Python API; eccodes splits messages of several fields."""
    broken = "era5-levels-corrupted.grib"
    paths = share(sorted(p for p in sample("grib").rglob("*") if p.is_file() and p.name != broken), 3)
    paths.append(sample("grib") / broken)
    store = fst.open(tmp_path / "store")
    report = take(store, paths)
    damaged = {s.path for s in report.skipped}
    expected = {field for path in paths for field in fields_by_eccodes(path)}
    found = {field.read() for field in store.retrieve()}
    assert found == expected
    assert len(expected) > (400 if LONG else 60)
    assert {p.name for p in damaged} == {broken}
    assert sum(t.fields for t in report.taken) == len(expected)
    assert store.verify().ok
    assert all(t.fields == 0 for t in take(store, paths).taken)

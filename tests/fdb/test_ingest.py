"""Fields of a real FDB arrive byte for byte: `fieldstone.ingest(store, "fdb:CONFIG", request=…)`."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import pytest
from base import KEY, SCHEMA
from conftest import require


def archive(fdb, **values):
    """A field of the base key with other values; its bytes."""
    key = {**KEY, **values}
    data = ("/".join(key.values()) + "\x00\xff").encode("latin-1") * 3
    fdb.call("archive", key, data.decode("latin-1"))
    return data


def contents(store):
    return {str(field.key): field.read() for field in store.retrieve(strict=False)}


def take(store, config, request=None, **options):
    return fst.ingest(store, f"fdb:{config}", request=request, progress=False, **options)


def key_text(**values):
    k = {**KEY, **values}
    levels = (
        ("class", "expver", "stream", "date", "time", "domain"),
        ("type", "levtype"),
        ("step", "levelist", "param"),
    )
    return "".join("{" + ",".join(f"{w}={k[w]}" for w in level) + "}" for level in levels)


def test_everything_comes_over_once(source, tmp_path):
    fdb, config = source
    steps, dates = ["0", "30m", "0-24"], ["20250101", "20250102"]
    wanted = {key_text(step=s, date=d): archive(fdb, step=s, date=d) for s in steps for d in dates}
    fdb.call("flush")
    report = take(tmp_path / "store", config)
    assert report.skipped == ()
    (taken,) = report.taken
    assert (str(taken.path), taken.fields, taken.unchanged) == (f"fdb:{config}", 6, 0)
    assert taken.bytes == sum(map(len, wanted.values()))
    with fst.open(tmp_path / "store") as store:
        assert contents(store) == wanted
        assert "domain?g" in store.schema
        before = store.version
        again = take(store, config)
        assert (again.taken[0].fields, again.taken[0].unchanged, store.version) == (0, 6, before)


def test_a_request_takes_its_part(source):
    fdb, config = source
    for step in ("0", "6", "12", "18"):
        for date in ("20250101", "20250102", "20250103"):
            archive(fdb, step=step, date=date)
    fdb.call("flush")
    asked = "date=20250102/to/20250103,step=0/to/12/by/12,param=t"
    with fst.open("memory:") as store:
        assert take(store, config, asked).taken[0].fields == 4
        assert store.axes()["date"] == ["20250102", "20250103"]
        assert store.axes()["step"] == ["0", "12"]
        assert take(store, config, {"step": [6], "date": 20250101}).taken[0].fields == 1
        assert take(store, config, "date=20300101").taken[0].fields == 0


def test_of_an_overwritten_field_the_newest_comes_over(source):
    fdb, config = source
    archive(fdb)
    fdb.call("flush")
    fdb.call("archive", KEY, "newer")
    fdb.call("flush")
    with fst.open("memory:") as store:
        report = take(store, config)
        assert (report.taken[0].fields, report.skipped) == (1, ())
        assert contents(store) == {key_text(): b"newer"}
        # A newer version replaces the field; unchanged fields stay.
        other = archive(fdb, step="6")
        fdb.call("archive", KEY, "newest")
        fdb.call("flush")
        report = take(store, config)
        assert (report.taken[0].fields, report.taken[0].unchanged) == (2, 0)
        assert contents(store) == {key_text(): b"newest", key_text(step="6"): other}
        assert len(list(store.list(masked=True))) == 3


def test_values_with_spaces_and_empty_fields_come_over(source):
    fdb, config = source
    wanted = {"two words": archive(fdb, **{"class": "two words"})}
    fdb.call("archive", {**KEY, "step": "1"}, "")
    fdb.call("flush")
    with fst.open("memory:") as store:
        take(store, config)
        found = {field.key["class"]: field.read() for field in store.retrieve()}
        assert found == {"rd": b"", **wanted}


def test_a_key_that_fdb_spelt_twice_is_told(source):
    """FDB keeps param=130.128 and param=130 separately; here they are one field."""
    fdb, config = source
    archive(fdb)
    archive(fdb, param="130.128")
    fdb.call("flush")
    with fst.open("memory:") as store:
        report = take(store, config)
        assert report.taken[0].fields == 1
        (skipped,) = report.skipped
        assert "param=130" in skipped.what and "the same key" in skipped.why
        assert len(list(store.list())) == 1


def test_a_store_of_another_schema_takes_what_it_has_keywords_for(source):
    fdb, config = source
    archive(fdb)
    archive(fdb, number="3")
    fdb.call("flush")
    schema = "step: Step; [class, expver [date, time, stream, domain, type, levtype [step, levelist, param]]]"
    with fst.open("memory:", schema=schema) as store:
        report = take(store, config)
        assert report.taken[0].fields == 1
        assert "number" in report.skipped[0].why
    with fst.open("memory:", schema=schema.replace("param", "param, number?, source")) as store:
        assert take(store, config, key={"source": "fdb"}).taken[0].fields == 2
        assert store.axes()["source"] == ["fdb"]
        report = take(store, config, key={"source": "fdb", "class": "od"})
        assert report.taken[0].fields == 0 and "its class is rd" in report.skipped[0].why


def test_grib_messages_come_over_byte_for_byte(source):
    require("eccodes", importlib.util.find_spec("eccodes"), "pip install 'fieldstone[grib]'")
    import eccodes

    fdb, config = source
    messages = []
    for step in (0, 6):
        handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
        header = {"setLocalDefinition": 1, "class": "od", "stream": "oper", "type": "fc", "expver": "0001"}
        for name, value in {**header, "date": 20260101, "time": 0, "stepRange": step, "level": 850}.items():
            eccodes.codes_set(handle, name, value)
        messages.append(eccodes.codes_get_message(handle))
        fdb.call("archive", None, messages[-1].decode("latin-1"))
    fdb.call("flush")
    with fst.open("memory:") as store:
        assert take(store, config).taken[0].fields == 2
        assert store.retrieve("step=0/6,class=od,levelist=850").read() == b"".join(messages)


def test_a_dataset_comes_whole_or_not_at_all(source, tmp_path):
    fdb, config = source
    for step in ("0", "6", "12"):
        # Each new handle writes a new data file, so each step has its own.
        fdb.call("open", str(Path(config).parent), SCHEMA)
        for date in ("20250101", "20250102"):
            archive(fdb, date=date, step=step)
        fdb.call("flush")
    # The field that FDB lists last is in a file that disappears.
    *_, (levels, _, text) = fdb.call("list", {}, 3, False)
    last = levels[0]["date"]
    file = Path(re.search(r"name=([^,\]]+\.data)", text)[1])
    file.rename(file.with_suffix(".gone"))
    url = tmp_path / "store"
    with pytest.raises(fst.Error, match=rf"3 fields .* were taken.*FDB cannot read .*{last}") as error:
        take(url, config)
    assert f"fdb:{config}" in str(error.value)
    with fst.open(url, "r") as store:
        dates = store.axes()["date"]
        assert (len(dates), last in dates, len(list(store.list()))) == (1, False, 3)
    file.with_suffix(".gone").rename(file)
    assert take(url, config).taken[0].fields == 3
    with fst.open(url, "r") as store:
        assert len(list(store.list())) == 6


def test_an_absent_keyword_stays_absent(source):
    """FDB lists an absent optional keyword with an empty value."""
    fdb, config = source
    schema = SCHEMA.replace("domain?g", "domain?")
    key = {k: v for k, v in KEY.items() if k not in ("domain", "levelist")}
    fdb.call("archive", key, "field")
    fdb.call("flush")
    assert fdb.call("list", {}, 3, False)[0][0][0]["domain"] == ""
    with fst.open("memory:", schema=schema) as store:
        report = take(store, config)
        assert (report.taken[0].fields, report.skipped) == (1, ())
        assert dict(next(iter(store.list())).key) == key


def test_what_is_wrong_is_named_with_a_hint(source, tmp_path, monkeypatch):
    fdb, config = source
    archive(fdb)
    fdb.call("flush")
    with pytest.raises(fst.NotFound, match=r"no FDB configuration /nowhere/c\.yaml"):
        take(tmp_path / "a", "/nowhere/c.yaml")
    (tmp_path / "broken.yaml").write_text("type: [")
    with pytest.raises(fst.Invalid, match="not a configuration of an FDB"):
        take(tmp_path / "a", tmp_path / "broken.yaml")
    with pytest.raises(fst.Invalid, match=r"FDB cannot list: .*colour") as error:
        take(tmp_path / "a", config, "colour=red")
    assert "keywords and values of MARS" in error.value.hint
    with pytest.raises(fst.Invalid, match="one request"):
        take(tmp_path / "a", config, ["step=0", "step=1"])
    with pytest.raises(fst.Invalid, match="without a request"):
        fst.ingest(tmp_path / "a", ["some.nc"], request="step=0")
    with pytest.raises(fst.Invalid, match="cannot stay where they are"):
        take(tmp_path / "a", config, copy=False)
    (Path(config).parent / "schema").rename(tmp_path / "elsewhere")
    with pytest.raises(fst.NotFound, match=r"schema .* cannot be read"):
        take(tmp_path / "a", config)
    assert not (tmp_path / "a").exists()
    # This module hides pyfdb from the helper, and cannot be imported.
    (tmp_path / "hidden" / "pyfdb").mkdir(parents=True)
    (tmp_path / "hidden" / "pyfdb" / "__init__.py").write_text("raise ImportError('hidden')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'hidden'}:{os.environ.get('PYTHONPATH', '')}")
    with pytest.raises(fst.Unavailable, match="pyfdb cannot be loaded") as error:
        take(tmp_path / "a", config)
    assert "fieldstone[fdb]" in error.value.hint


def test_the_program_takes_an_fdb(source, tmp_path):
    fdb, config = source
    data = [archive(fdb, step=step) for step in ("0", "6", "12")]
    fdb.call("flush")
    program = Path(sys.executable).with_name("fieldstone")
    environment = {**os.environ, "FIELDSTONE_PYTHON": sys.executable}

    def run(*arguments):
        call = [program, *arguments]
        return subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, check=False)

    done = run("ingest", "store", f"fdb:{config}", "step=0/to/6/by/6", "param=t")
    assert done.returncode == 0, done.stderr
    assert b"2 fields" in done.stdout
    done = run("ingest", "store", f"fdb:{config}")
    assert b"1 field," in done.stdout and b"2 there already" in done.stdout
    assert run("get", "store", "step=0/6/12").stdout == b"".join(data)
    missing = run("ingest", "store", "fdb:nowhere.yaml")
    assert missing.returncode == 3 and b"no FDB configuration" in missing.stderr
    assert run("ingest", "--no-copy", "store", f"fdb:{config}").returncode == 2

"""Mistakes that users made, in the order of their reports: the kind of error that each raises, and its words.

A row is a mistake: `act` makes it on a store that `prepared` filled; `kind` is the exception, or UserWarning;
`words` are in its text. Mistakes that need a disk, a signal or another process follow the table.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import fieldstone as fst
import numpy as np
import pytest

FIELD = np.arange(24.0).reshape(4, 6)


class Row(NamedTuple):
    """A mistake: the report of it, the action, and the expected message."""

    where: str
    act: Callable[[fst.Store, Path], Any]
    kind: type[Exception]
    words: tuple[str, ...]


def pieces(store: fst.Store, _: Path) -> None:
    key = {"run": "a", "variable": "pieces", "step": 0}
    store.archive(key, FIELD[:2], start=(0, 0), shape=(4, 6))
    store.archive(key, FIELD[2:].astype("f4"), start=(2, 0), shape=(4, 6))


def piece_of_another_shape(store: fst.Store, _: Path) -> None:
    key = {"run": "a", "variable": "pieces", "step": 0}
    store.archive(key, FIELD[:2], start=(0, 0), shape=(4, 6))
    store.archive(key, FIELD[:2], start=(2, 0), shape=(5, 6))


def write_of(store: fst.Store, name: str, step: Any, array: Any) -> None:
    store.run("a").write(name, step, array)


def in_folder(make: Callable[[Path], Any], then: Callable[[str], Any]) -> Callable[[fst.Store, Path], Any]:
    def act(_: fst.Store, folder: Path) -> Any:
        return then(str(make(folder)))

    return act


def absent(folder: Path) -> Path:
    return folder / "studdy.store"


def a_file(folder: Path) -> Path:
    path = folder / "notes.txt"
    path.write_text("notes")
    return path


def a_full_folder(folder: Path) -> Path:
    (folder / "work").mkdir()
    (folder / "work" / "script.py").write_text("")
    return folder / "work"


NO_STORE = ("there is no store at", "studdy.store", "check the path")
TABLE = [
    Row(
        "s 1.11 a pattern with a range",
        lambda store, _: list(store.list("run=a*/1/to/5")),
        fst.Invalid,
        ("run", "both a range and a pattern"),
    ),
    Row(
        "s 1.11 a pattern in a key",
        lambda store, _: store.get("run=a*,variable=t,step=0"),
        fst.Invalid,
        ("run has a pattern, but a key needs one value",),
    ),
    Row(
        "s 2.11 a parameter without its word",
        lambda store, _: store.find("power>9.8"),
        fst.Invalid,
        ("power", "param.power"),
    ),
    Row(
        "s 2.12 a tag in hits",
        lambda store, _: list(store.attributes(tag="hott")),
        UserWarning,
        ("nothing is found", "there is no tag 'hott'", "did you mean `hot`?"),
    ),
    Row(
        "s 2.12 a tag that is counted",
        lambda store, _: store.attributes(tag="hott").count(),
        UserWarning,
        ("there is no tag 'hott'", "did you mean `hot`?"),
    ),
    Row(
        "s 2.12 a parameter",
        lambda store, _: store.runs(params={"slover": "roe"}),
        UserWarning,
        ("there is no parameter 'slover'", "did you mean `solver`?"),
    ),
    Row("s 2.13 axes", in_folder(absent, lambda url: fst.open(url).axes()), fst.NotFound, NO_STORE),
    Row("s 2.13 list", in_folder(absent, lambda url: list(fst.open(url).list())), fst.NotFound, NO_STORE),
    Row("s 2.13 get", in_folder(absent, lambda url: fst.open(url).get("run=a")), fst.NotFound, NO_STORE),
    Row("s 2.13 retrieve", in_folder(absent, lambda url: fst.open(url).retrieve()), fst.NotFound, NO_STORE),
    Row("s 2.13 runs", in_folder(absent, lambda url: fst.open(url).runs()), fst.NotFound, NO_STORE),
    Row("s 2.13 a run", in_folder(absent, lambda url: fst.open(url).run("a")), fst.NotFound, NO_STORE),
    Row(
        "s 2.13 hits",
        in_folder(absent, lambda url: list(fst.open(url).attributes(tag="x"))),
        fst.NotFound,
        NO_STORE,
    ),
    Row(
        "s 2.13 a count",
        in_folder(absent, lambda url: fst.open(url).find("tag=x").count()),
        fst.NotFound,
        NO_STORE,
    ),
    Row(
        "s 2.13 SQL",
        in_folder(absent, lambda url: fst.open(url).sql("select * from runs")),
        fst.NotFound,
        NO_STORE,
    ),
    Row("s 2.13 stats", in_folder(absent, lambda url: fst.open(url).stats()), fst.NotFound, NO_STORE),
    Row("s 2.13 verify", in_folder(absent, lambda url: fst.open(url).verify()), fst.NotFound, NO_STORE),
    Row("s 2.13 graph", in_folder(absent, lambda url: fst.open(url).graph.stats()), fst.NotFound, NO_STORE),
    Row("s 2.13 mode x", in_folder(absent, lambda url: fst.open(url, "x").axes()), fst.NotFound, NO_STORE),
    Row(
        "s 4.4 a keyword one letter away",
        lambda store, _: store.archive({"run": "a", "variable": "t", "stpe": 0}, FIELD),
        fst.Invalid,
        ("no keyword `stpe`", "did you mean `step`?", "write step=0"),
    ),
    Row(
        "s 4.4 the same of many",
        lambda store, _: store.archive_many([{"run": "a", "varable": "t", "step": 0}], [FIELD]),
        fst.Invalid,
        ("field 0", "no keyword `varable`", "did you mean `variable`?"),
    ),
    Row(
        "s 4.4 a created field",
        lambda store, _: store.create_field({"run": "a", "variable": "t", "steps": 0}, "f8", (4,)),
        fst.Invalid,
        ("no keyword `steps`", "did you mean `step`?"),
    ),
    Row(
        "s 4.5 pieces of two types",
        pieces,
        fst.Conflict,
        ("{run=a}{variable=pieces}{step=0}", "<f4 [4, 6]", "<f8 [4, 6]", "create_field"),
    ),
    Row(
        "s 4.5 pieces of two shapes",
        piece_of_another_shape,
        fst.Conflict,
        ("{run=a}{variable=pieces}{step=0}", "[5, 6]", "[4, 6]"),
    ),
    Row(
        "s 4.6 a variable",
        lambda store, _: store.get("run=a,variable=temprature,step=0"),
        fst.NotFound,
        ("no field", "variable=temprature", "did you mean `temperature`?", "store.axes('run=a,step=0')"),
    ),
    Row(
        "s 4.6 a short name of a run's variable",
        lambda store, _: store.run("a").read("TT", 0),
        fst.NotFound,
        ("variable=TT", "there is variable=T/temperature"),
    ),
    Row(
        "s 4.6 a step",
        lambda store, _: store.run("a").read("T", 7),
        fst.NotFound,
        ("step=7", "there is step=0/3"),
    ),
    Row(
        "s 4.6 a value of a list",
        lambda store, _: store.retrieve("run=a,variable=T,step=0/9"),
        fst.NotFound,
        ("step=9", "there is step=0/3"),
    ),
    Row(
        "s 4.6 values that are not there together",
        lambda store, _: store.get("run=a,variable=temperature,step=3"),
        fst.NotFound,
        ("with run=a,variable=temperature there is step=0", "store.list("),
    ),
    Row(
        "s 4.9 a table that is not there",
        lambda store, _: store.sql("select * from attribute"),
        fst.Invalid,
        ("no such table: attribute", "did you mean `attributes`?", "runs, steps, variables, tags"),
    ),
    Row(
        "s 4.9 a column that is not there",
        lambda store, _: store.sql("select foo from attributes"),
        fst.Invalid,
        ("no such column: foo", "views: runs"),
    ),
    Row(
        "s 4.9 a function that fails",
        lambda store, _: store.sql("select json_extract('{', '$') from runs"),
        fst.Invalid,
        ("malformed JSON",),
    ),
    Row(
        "s 4.12 a transposed array",
        lambda store, _: write_of(store, "temperature", 0, FIELD.T),
        fst.Invalid,
        ("(6, 4)", "(4, 6)", "transposed"),
    ),
    Row(
        "s 4.13 a file for a store",
        in_folder(a_file, fst.open),
        fst.Invalid,
        ("notes.txt is a file", "a store is a folder", "ingest"),
    ),
    Row(
        "s 4.14 a folder of other files",
        in_folder(a_full_folder, fst.open),
        fst.Invalid,
        ("other files, such as script.py", "no store", "a folder of its own"),
    ),
    Row(
        "s 4.17 a step beyond",
        lambda store, _: write_of(store, "T", 2**64, FIELD),
        fst.Invalid,
        ("18446744073709551616", "2^63-1"),
    ),
    Row(
        "s 4.17 a step in words",
        lambda store, _: write_of(store, "T", "zero", FIELD),
        fst.Invalid,
        ("step 'zero'", "whole number"),
    ),
    Row(
        "s 4.17 a version as a number",
        lambda store, folder: fst.open(folder / "store", at=1),
        fst.Invalid,
        ("an int is not a version", "store.version"),
    ),
    Row(
        "s 4.18 parameters changed in memory",
        lambda store, _: store.run("a").params.update(b=2),
        fst.Invalid,
        ("parameters of a run do not change", "dict(run.params)"),
    ),
    Row(
        "s 4.18 an operator in a tuple",
        lambda store, _: store.attributes(value=(">", 3)),
        fst.Invalid,
        ("('>', 3)", "fst.above(3)"),
    ),
    Row(
        "s 4.19 a run to be deleted",
        lambda store, _: store.delete(run="typo", doit=True),
        UserWarning,
        ("there is no run 'typo'",),
    ),
    Row(
        "s 4.19 fields to be removed",
        lambda store, _: store.remove("run=aa"),
        UserWarning,
        ("nothing is removed", "no field has run=aa", "there is run=a"),
    ),
    Row(
        "s 4.22 an attribute that is nothing",
        lambda store, _: attributed(store, None),
        fst.Invalid,
        ("'flag'", "leave out None"),
    ),
]


def attributed(store: fst.Store, value: Any) -> Any:
    xr = pytest.importorskip("xarray")
    dataset = xr.Dataset({"t": ("x", np.arange(3.0))}, attrs={"flag": value})
    return fst.to_store(dataset, store, key={"run": "flags"})


@pytest.mark.parametrize("row", TABLE, ids=[row.where for row in TABLE])
def test_a_mistake_is_loud_and_says_what_was_meant(prepared, tmp_path, row):
    if issubclass(row.kind, Warning):
        with pytest.warns(row.kind) as told:
            row.act(prepared, tmp_path)
        text = str(told[0].message)
        assert told[0].filename == __file__
    else:
        with pytest.raises(row.kind) as raised:
            row.act(prepared, tmp_path)
        text = str(raised.value)
        assert isinstance(raised.value, fst.Error)
    for word in row.words:
        assert word in text
    prepared.discard()


# -- not mistakes, although they look like it


def test_what_waits_for_its_first_flush_is_read(tmp_path):
    url = tmp_path / "new.store"
    store = fst.open(url)
    run = store.create_run("a")
    assert [r.name for r in store.runs()] == ["a"] and not url.exists()
    run.annotate("hot", 1.0)
    assert store.attributes(tag="hot").count() == 1
    store.discard()
    with pytest.raises(fst.NotFound, match="there is no store"):
        store.runs()
    with fst.open(url) as other:
        other.create_run("b")
    assert [r.name for r in store.runs()] == ["b"]  # another process made it in the meantime
    store.close()


def test_a_store_in_memory_and_a_store_without_a_field_are_there(tmp_path):
    assert fst.open("memory:").axes() == {}
    subprocess.run([program(), "init", tmp_path / "made"], check=True)
    assert list(fst.open(tmp_path / "made").list()) == []


def test_a_further_keyword_that_is_near_another_is_taken_where_that_one_is_given(prepared):
    prepared.archive({"run": "a", "variable": "t", "step": 0, "steps": 4}, FIELD)
    prepared.archive({"run": "a", "variable": "t", "step": 0, "member": 4}, FIELD)
    prepared.flush()
    # A name that fields already have is not a slip any more.
    prepared.archive({"run": "a", "variable": "t", "steps": 5}, FIELD)
    with pytest.raises(fst.Invalid, match="`stpe`"):
        prepared.archive({"run": "a", "variable": "t", "steps": 5, "stpe": 1}, FIELD)
    prepared.flush()
    assert prepared.axes("variable=t")["steps"] == ["4", "5"]


def test_pieces_of_one_array_go_on_and_a_new_generation_may_differ(prepared):
    key = {"run": "a", "variable": "pieces", "step": 0}
    prepared.archive(key, FIELD[:2], start=(0, 0), shape=(4, 6))
    with pytest.raises(fst.Conflict):
        prepared.archive(key, FIELD[2:].astype("f4"), start=(2, 0), shape=(4, 6))
    prepared.archive(key, FIELD[2:], start=(2, 0), shape=(4, 6))
    prepared.flush()
    assert (prepared.get(key) == FIELD).all()
    prepared.create_field(key, "f4", (4, 6)).write(FIELD.astype("f4"), start=(0, 0))
    prepared.flush()
    assert prepared.get(key).dtype == "f4"


def test_pieces_of_two_processes_that_differ_are_a_note_of_verify(prepared):
    key = {"run": "a", "variable": "pieces", "step": 0}
    with fst.open(prepared.url) as other:
        prepared.archive(key, FIELD[:2], start=(0, 0), shape=(4, 6))
        other.archive(key, FIELD[2:].astype("f4"), start=(2, 0), shape=(4, 6))
    prepared.flush()
    report = prepared.verify()
    assert report.ok  # each byte is as it was written
    assert [note for note in report.notes if "{run=a}{variable=pieces}{step=0} disagree" in note]


def test_an_attribute_on_what_was_just_written_needs_no_flush(prepared):
    run = prepared.run("a")
    run.write("Q", 0, FIELD)
    run.annotate("max", 23.0, variable="Q", step=0, start=(0, 0), count=(4, 6))
    with pytest.raises(fst.Invalid, match="outside the shape"):
        run.annotate("max", 23.0, variable="Q", step=0, start=(0, 0), count=(4, 7))
    with prepared.transaction() as tx:
        tx.run("a").write("R", 0, FIELD)
        tx.run("a").annotate("max", 23.0, variable="R", step=0)
    assert prepared.attributes(variable="Q").count() == 1
    prepared.flush()
    hit = prepared.attributes(tag="max", variable="Q").first()
    assert (hit.read() == FIELD).all()
    assert prepared.attributes(tag="max", variable="R").count() == 1
    prepared.discard()
    with pytest.raises(fst.NotFound):
        run.annotate("max", 1.0, variable="nowhere", step=0)


def test_an_attribute_on_what_was_discarded_is_refused(prepared):
    run = prepared.run("a")
    run.write("Q", 0, FIELD)
    run.annotate("max", 23.0, variable="Q", step=0)
    prepared.discard()
    with pytest.raises(fst.NotFound, match="no variable 'Q'"):
        run.annotate("max", 23.0, variable="Q", step=0)


def test_a_store_is_made_where_nothing_is_in_its_way(tmp_path):
    place = tmp_path / "mount"
    (place / "lost+found").mkdir(parents=True)
    (place / ".DS_Store").write_text("")
    with fst.open(place) as store:
        store.create_run("a")
    with fst.open(place) as store:  # the store exists now
        assert len(store.runs()) == 1


def test_the_home_folder_is_the_shells(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with fst.open("~/deep/study.store") as store:
        store.create_run("a")
    assert (tmp_path / "deep" / "study.store" / "fieldstone.store").exists()
    reader = fst.open("~/deep/study.store", "r")
    import pickle

    assert pickle.loads(pickle.dumps(reader)).runs()[0].name == "a"
    with pytest.raises(fst.Invalid, match="~nobody-of-that-name/x"):
        fst.open("~nobody-of-that-name/x")
    monkeypatch.chdir(tmp_path)
    with fst.open("./~") as store:
        store.create_run("a")
    assert (tmp_path / "~").is_dir()


def test_parameters_are_a_dict_to_whoever_reads_them(prepared):
    import json
    import pickle

    params = prepared.run("a").params
    assert params == {"solver": "roe", "power": 3.0} and json.loads(json.dumps(params)) == params
    assert pickle.loads(pickle.dumps(params)) == params
    copy = dict(params)
    copy["b"] = 2
    with pytest.raises(fst.Invalid):
        params["b"] = 2


def test_a_flag_is_stored_as_a_byte(prepared):
    attributed(prepared, True)
    assert prepared.to_xarray("run=flags").attrs["flag"] == 1


# -- mistakes that need a signal, a full disk or another program


def program() -> Path:
    return Path(sys.executable).parent / "fieldstone"


def test_sql_stops_at_ctrl_c(prepared):
    """s 4.8: a statement that would run for hours."""
    prepared.run("a").annotate_many("many", np.arange(5000.0), variable="T", step=0)
    prepared.flush()
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        prepared.sql(
            "select count(*) from attributes a, attributes b, attributes c where a.number > c.number"
        )
    assert time.monotonic() - began < 20
    assert prepared.sql("select count(*) as n from runs").values("n") == [1]  # the engine still works
    prepared.create_run("later")
    prepared.flush()


def test_a_log_that_is_removed_under_its_writer(prepared):
    """s 4.1: a flush never returns normally if its writes are gone."""
    for log in (Path(prepared.url) / "logs").iterdir():
        log.unlink()
    prepared.archive({"run": "a", "variable": "late", "step": 0}, FIELD)
    with pytest.raises(fst.Unavailable, match="is gone"):
        prepared.flush()


def test_a_log_that_is_cut_is_told_to_readers(prepared):
    """s 4.2: the answer is not incomplete, it is an error that names the file."""
    key = {"run": "a", "variable": "T", "step": 3}
    prepared.close()
    (log,) = (Path(prepared.url) / "logs").glob("*.log")
    os.truncate(log, log.stat().st_size // 2)
    reader = fst.open(prepared.url, "r")
    for ask in (lambda: reader.get(key), lambda: list(reader.list())):
        with pytest.raises(fst.Corrupt, match=log.name):
            ask()


def test_two_writers_declare_a_run_in_two_ways(tmp_path):
    """s 4.11: conflicts name the users and their definitions."""
    url = tmp_path / "store"
    with fst.open(url) as one, fst.open(url) as other:
        one.create_run("same", params={"b": 1})
        other.create_run("same", params={"b": 2})
    (conflict,) = fst.open(url, "r").conflicts()
    assert "run 'same'" in conflict and "two declarations" in conflict


def test_the_program_says_the_same(prepared, tmp_path):
    """The table above through the program: exit code, and words on stderr."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "script.py").write_text("")
    (tmp_path / "notes.txt").write_text("")
    rows = [
        (["get", "store", "run=a", "variable=temprature", "step=0"], 3, "did you mean `temperature`?"),
        (["list", "studdy.store"], 3, "there is no store at studdy.store"),
        (["sql", "store", "select * from attribute"], 2, "did you mean `attributes`?"),
        (["list", "notes.txt"], 2, "is a file, and a store is a folder"),
        (["init", "work"], 2, "other files, such as script.py"),
        (["archive", "store", "run=a", "variable=t", "stpe=0"], 2, "did you mean `step`?"),
        (["list", "store", "run=a*/1/to/2"], 2, "both a range and a pattern"),
        (["get", "store", "run=zz*"], 3, "there is run=a"),
    ]
    for words, code, said in rows:
        done = subprocess.run([program(), *words], cwd=tmp_path, input="", capture_output=True, text=True)
        assert (done.returncode, said in done.stderr) == (code, True), (words, done)
    listed = subprocess.run(
        [program(), "list", "store", "variable=t*"], cwd=tmp_path, capture_output=True, text=True
    )
    assert listed.stdout == "{run=a}{variable=temperature}{step=0}\n"


def test_an_array_larger_than_memory_says_how_a_part_is_read(prepared):
    key = {"run": "a", "variable": "huge", "step": 0}
    prepared.create_field(key, "f8", (1 << 50,), fill=0.0)  # more than there are addresses
    prepared.flush()
    with pytest.raises(MemoryError) as caught:
        prepared.get(key)
    assert caught.value.__notes__ == ["hint: read a part of it with start= and count="]

"""The promises of a store, as behaviours: the numbered ones are those of `fdb.md`, section 5."""

from __future__ import annotations

import os
import signal
import time
import warnings
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import BASE, mars, run_python, sim, start_python, steps

FDB_SCHEMA = """
step: Step; levelist: Double; param: Param; date: Date; time: Time; expver: Expver;
[ class=rd/od, expver, stream, date, time, domain?g
  [ type, levtype [ step, levelist?, param ] ] ]
"""


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


def test_1_nothing_is_visible_before_flush(url):
    writer, reader = fst.open(url, schema="mars"), None
    writer.archive(BASE, b"hello")
    assert not os.path.exists(url), "nothing is created before the first flush"
    assert list(writer.list()) == []
    writer.flush()
    reader = fst.open(url, mode="r")
    assert len(list(reader.list())) == 1
    assert reader.retrieve(BASE).read() == b"hello"
    writer.archive(mars(step=1), b"more")
    assert len(list(reader.list())) == 1
    writer.flush()
    assert len(list(reader.list())) == 2, "every read looks for newer commits by itself"


def test_2_kill_before_flush_leaves_what_was_flushed(url):
    child = start_python(
        """
        store = fst.open(sys.argv[1])
        store.archive("run=a,variable=t,step=0", b"kept"); store.flush()
        store.archive("run=a,variable=t,step=1", b"lost")
        print("archived", flush=True); sys.stdin.read()
        import time; time.sleep(60)
        """,
        url,
    )
    assert child.stdout is not None and child.stdout.readline() == "archived\n"
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=120)
    with fst.open(url) as store:
        assert steps(store) == ["0"]
        store.archive(sim(2), b"later")
    assert steps(fst.open(url, mode="r")) == ["0", "2"]
    assert fst.open(url, mode="r").verify().ok


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(3)",
        "del store",
        "store.refresh(); del fst",
        "import threading; t = threading.Thread(target=lambda: None); t.start(); t.join()",
    ],
)
def test_3_a_normal_exit_flushes(url, ending):
    code = f"store = fst.open(sys.argv[1]); store.archive('run=a,variable=t,step=1', b'x'); {ending}"
    run_python(code, url, fails="exit(3)" in ending)
    assert fst.open(url, mode="r").get(sim(1)) == b"x"


@pytest.mark.parametrize("ending", ["raise RuntimeError('no')", "raise KeyboardInterrupt", "1 / 0"])
def test_an_exit_by_an_exception_discards(url, ending):
    code = f"""
        store = fst.open(sys.argv[1])
        store.archive("run=a,variable=t,step=0", b"kept"); store.flush()
        def work():
            inner = fst.open(sys.argv[1])
            inner.archive("run=a,variable=t,step=1", b"lost")
            {ending}
        store.archive("run=a,variable=t,step=2", b"lost")
        work()
        """
    run_python(code, url, fails=True)
    assert steps(fst.open(url, mode="r")) == ["0"]


def test_a_store_that_a_function_forgot_is_flushed_at_exit(url):
    code = """
        def work(step):
            fst.open(sys.argv[1]).archive({"run": "a", "variable": "t", "step": step}, b"x")
        work(1); work(2)
        assert not os.path.exists(sys.argv[1])
        """
    run_python(code, url)
    assert steps(fst.open(url, mode="r")) == ["1", "2"]


def test_os_exit_leaves_only_what_was_flushed(url):
    run_python("s = fst.open(sys.argv[1]); s.archive('run=a,variable=t,step=1', b'x'); os._exit(0)", url)
    assert not os.path.exists(url)


def test_4_the_old_version_is_read_until_the_new_one_is_flushed(url):
    writer = fst.open(url)
    writer.archive(sim(1), b"one")
    writer.flush()
    before = writer.version
    reader = fst.open(url, mode="r")
    writer.archive(sim(1), b"two!")
    assert reader.get(sim(1)) == b"one"
    pinned = reader.retrieve(sim(1))
    writer.flush()
    assert reader.get(sim(1)) == b"two!"
    assert pinned.read() == b"one", "a retrieve keeps its snapshot"
    assert (len(list(reader.list())), len(list(reader.list(masked=True)))) == (1, 2)
    assert [e.masked for e in reader.list(masked=True)] == [False, True]
    assert fst.open(url, at=before).get(sim(1)) == b"one"
    with pytest.raises(fst.Denied, match="older version"):
        fst.open(url, at=before).archive(sim(1), b"three")


def test_5_the_last_of_a_batch_wins(url):
    with fst.open(url) as store:
        store.archive(sim(1), b"A")
        store.archive(sim(1), b"BB")
        store.flush()
        assert [e.nbytes for e in store.list(masked=True)] == [2]
        assert store.get(sim(1)) == b"BB"


def test_6_two_processes_archive_the_same_keys(url):
    code = """
        store = fst.open(sys.argv[1]); print("ready", flush=True); sys.stdin.readline()
        for step in range(10):
            store.archive({"run": "a", "variable": "t", "step": step}, sys.argv[2].encode())
        store.flush()
        """
    children = [start_python(code, url, name) for name in ("first", "second!")]
    for child in children:
        assert child.wait(timeout=300) == 0, child.stderr.read()
        child.communicate()
    store = fst.open(url, mode="r")
    assert (len(list(store.list())), len(list(store.list(masked=True)))) == (10, 20)
    values = {store.get(sim(step)) for step in range(10)}
    assert len(values) == 1 and values <= {b"first", b"second!"}


def test_7_four_processes_flush_fifty_times_into_one_dataset(url):
    code = """
        store = fst.open(sys.argv[1])
        for step in range(50):
            key = {"run": "a", "variable": sys.argv[2], "step": step}
            store.archive(key, f"{sys.argv[2]}{step}".encode())
            store.flush()
        """
    children = [start_python(code, url, f"v{n}") for n in range(4)]
    for child in children:
        _, err = child.communicate(timeout=300)
        assert child.returncode == 0, err
    store = fst.open(url, mode="r")
    assert len(list(store.list())) == 200
    for entry, field in zip(store.list(), store.retrieve({}), strict=True):
        assert field.read() == (entry.key["variable"] + entry.key["step"]).encode()
    assert store.verify().ok


def test_9_fields_come_in_request_order(url):
    with fst.open(url) as store:
        for step in (3, 1, 2):
            store.archive(sim(step), str(step).encode())
        store.flush()
        assert store.retrieve("run=a,variable=t,step=1/2/3").read() == b"123"
        assert store.retrieve("run=a,variable=t,step=3/2/1").read() == b"321"
        assert store.retrieve("run=a,variable=t,step=1/1").read() == b"1"
        assert store.retrieve(sim(range(3, 0, -1))).read() == b"321"


def test_19_archive_takes_complete_and_right_keys_only(url):
    store = fst.open(url, schema=FDB_SCHEMA)
    refused = [
        ({k: v for k, v in BASE.items() if k != "step"}, "step"),
        (mars(step=None), "step"),
        (mars(colour="red"), "colour"),
        (mars(step=[0, 6]), "step has a list"),
        (mars(step="0/6"), "step"),
        (mars(step=range(3)), "step has a range"),
        (mars(**{"class": "notaclass"}), "notaclass"),
        (mars(levelist="high"), "levelist"),
        (mars(step=True), "step has a bool"),
        (mars(date="20251301"), "date"),
        ("class=rd,step=*", "step"),
        (17, "an int is not a key"),
    ]
    for key, named in refused:
        with pytest.raises(fst.Invalid, match=named):
            store.archive(key, b"x")
    store.archive(BASE, b"x")
    store.flush()
    with pytest.raises(fst.Invalid, match="colour"):
        store.retrieve({"colour": "red"})
    with pytest.raises(fst.Invalid, match="line"):
        fst.open(url + "2", schema="[a [b [c [d]]]]")


def test_32_a_log_that_lost_commits_is_corrupt_and_keeps_earlier_fields(url):
    with fst.open(url) as store:
        for step in range(5):
            store.archive(sim(step), b"%d" % step * 300)
            store.flush()
    (log,) = [os.path.join(url, "logs", name) for name in os.listdir(os.path.join(url, "logs"))]
    os.truncate(log, os.path.getsize(log) - 300)
    store = fst.open(url, mode="r")
    name = os.path.basename(log)
    for strict in (lambda: steps(store), lambda: store.get(sim(0)), lambda: store.retrieve("run=*")):
        with pytest.raises(fst.Corrupt, match=name) as lost:
            strict()
        assert "strict=False" in lost.value.hint
    left = store.retrieve({}, strict=False)
    assert [field.key["step"] for field in left] == ["0", "1", "2", "3"]
    assert [field.read() for field in left] == [b"%d" % step * 300 for step in range(4)]


def test_32_a_flipped_byte_is_detected_and_named(url):
    with fst.open(url) as store:
        store.archive(sim(0), b"sound" * 200)
        store.archive(sim(1), b"broken" * 200)
    (log,) = [os.path.join(url, "logs", name) for name in os.listdir(os.path.join(url, "logs"))]
    with open(log, "r+b") as file:
        data = file.read()
        file.seek(data.index(b"brokenbroken"))
        file.write(b"B")
    store = fst.open(url, mode="r")
    report = store.verify()
    assert not report.ok
    assert any("step=1" in str(damage.key) and damage.file.startswith("logs/") for damage in report.damaged)
    with pytest.raises(fst.Corrupt, match="logs/"):
        store.get(sim(1))
    assert store.get(sim(0)) == b"sound" * 200, "the rest stays readable"


@pytest.mark.parametrize(
    "value", ["x" * 33, "y" * 5000, "a:b", "2025-01-01", "a/b", "a,b", "*", 'q"q', "ä ö", "to", "{x}", "x=y"]
)
def test_32_any_text_of_a_key_comes_back(url, value):
    with fst.open(url) as store:
        key = {"run": value, "variable": "t", "step": 1, "note": value}
        store.archive(key, b"x")
        store.flush()
        (entry,) = store.list()
        assert entry.key["note"] == value and entry.key["run"] == value
        assert store.get(key) == store.get(entry.key) == store.get(dict(entry.key)) == b"x"
        assert len(list(store.list(entry.key))) == len(list(store.list({"note": [value]}))) == 1
        assert len(store.retrieve(str(fst.Request(entry.key)))) == 1


def test_32_reading_refuses_to_archive_and_a_condition_excludes(url):
    with fst.open(url) as store:
        store.archive(sim(1), b"x")
    reader = fst.open(url, mode="r")
    with pytest.raises(fst.Denied, match="reading only") as caught:
        reader.archive(sim(2), b"x")
    assert isinstance(caught.value, PermissionError)
    with pytest.raises(fst.Denied):
        reader.flush()
    excluding = fst.open("memory:", schema="[run=!secret [variable [step?]]]")
    excluding.archive({"run": "open", "variable": "t"}, b"x")
    with pytest.raises(fst.Invalid, match="secret"):
        excluding.archive({"run": "secret", "variable": "t"}, b"x")


def test_modes(url):
    with pytest.raises(fst.NotFound, match="store"):
        fst.open(url, mode="r")
    with fst.open(url, mode="x") as store:
        store.archive(sim(1), b"x")
    with pytest.raises(fst.Conflict, match="already"):
        fst.open(url, mode="x")
    with pytest.raises(fst.Invalid, match="'w'"):
        fst.open(url, mode="w")
    with pytest.raises(fst.Invalid, match="s3"):
        fst.open("s3://bucket")
    with pytest.raises(fst.Conflict, match="schema"):
        fst.open(url, schema="mars")
    assert "run" in fst.open(url, mode="r").schema


def test_schema_and_url_may_be_paths(tmp_path):
    schema = tmp_path / "my.schema"
    schema.write_text("[a [b [c: Integer]]]")
    with fst.open(tmp_path / "store", schema=schema) as store:
        store.archive({"a": 1, "b": 2, "c": "007"}, b"x")
    assert dict(next(iter(fst.open(tmp_path / "store").list())).key) == {"a": "1", "b": "2", "c": "7"}
    assert fst.open(f"file://{tmp_path}/store", mode="r").get("a=1,b=2,c=7") == b"x"


def test_a_context_flushes_or_discards(url):
    with fst.open(url) as store:
        store.archive(sim(1), b"kept")
    assert store.closed
    with pytest.raises(RuntimeError, match="stop"), fst.open(url) as store:
        store.archive(sim(2), b"lost")
        raise RuntimeError("stop")
    assert steps(fst.open(url, mode="r")) == ["1"]


def test_a_closed_store_says_so_and_its_fields_stay_readable(url):
    store = fst.open(url)
    store.archive(sim(1), b"x")
    store.flush()
    fields = store.retrieve(sim(1))
    store.close()
    store.close()
    for call in (store.flush, store.list, store.axes, store.status, lambda: store.get(sim(1))):
        with pytest.raises(fst.Invalid, match="closed"):
            call()
    assert fields.read() == b"x" and "closed" in repr(store)


def test_discard_and_unflushed(url):
    store = fst.open(url)
    store.archive(sim(1), b"x")
    assert store.unflushed == 1
    store.discard()
    assert store.unflushed == 0
    store.flush()
    assert not os.path.exists(url)


def test_get_names_exactly_one_field():
    store = fst.open("memory:")
    for step in (1, 2):
        store.archive(sim(step), b"abcdef")
    store.flush()
    with pytest.raises(fst.NotFound, match="step=7"):
        store.get(sim(7))
    with pytest.raises(fst.Invalid, match="more than one"):
        store.get("run=a,variable=t")
    with pytest.raises(fst.Invalid):
        store.get("run=a,variable=t,step=1/2")
    assert store.get("run=a,step=1") == b"abcdef"
    assert store.get(sim(1), start=2, count=3) == b"cde"
    assert store.get(sim(1), start=4) == b"ef" and store.get(sim(1), count=2) == b"ab"
    with pytest.raises(fst.Invalid, match="6"):
        store.get(sim(1), start=4, count=3)


def test_archive_many(url):
    with fst.open(url) as store:
        keys = [sim(n) for n in range(100)]
        store.archive_many(keys, (b"%d" % n for n in range(100)))
        store.archive_many([sim(n, "u") for n in range(3)], np.arange(6.0).reshape(3, 2))
        with pytest.raises(fst.Invalid, match=r"field 1.*step"):
            store.archive_many([sim(900), sim("x")], [b"", b""])
        with pytest.raises(fst.Invalid, match="2 keys and 1 values"):
            store.archive_many([sim(1), sim(2)], [b""])
        assert store.unflushed == 103, "all keys are checked before the first is taken"
        store.flush()
        assert store.retrieve(sim(range(100))).read() == b"".join(b"%d" % n for n in range(100))
        assert store.get(sim(2, "u")).tolist() == [4.0, 5.0]


def test_list_at_each_depth():
    store = fst.open("memory:")
    for run in "ab":
        for variable in "tu":
            store.archive_many([sim(n, variable, run) for n in (10, 9)], [b"x", b"y"])
    store.flush()
    assert [str(e.key) for e in store.list(depth=1)] == ["{run=a}", "{run=b}"]
    assert [dict(e.key) for e in store.list(depth=2)][:2] == [
        {"run": "a", "variable": "t"},
        {"run": "a", "variable": "u"},
    ]
    assert [str(e.key) for e in store.list("run=b,variable=u")] == [
        "{run=b}{variable=u}{step=9}",
        "{run=b}{variable=u}{step=10}",
    ]
    assert len(list(store.list(["run=a", {"run": "b", "step": 9}]))) == 4 + 2
    with pytest.raises(fst.Invalid, match="depth"):
        store.list(depth=4)


def test_axes_where_dump_stats_and_status(url):
    with fst.open(url) as store:
        for step in (10, 9, 100):
            store.archive(sim(step), b"x" * 10)
        store.archive(sim(step=None, variable="z"), b"x")
        store.flush()
        assert store.axes()["step"] == ["9", "10", "100"]
        assert store.axes(["variable=z", "step=9"])["variable"] == ["t", "z"]
        places = store.where("variable=t")
        assert places == [e.location for e in store.list("variable=t")] and len(places) == 3
        for place in places:
            file, offset = place.rsplit(":", 1)
            with open(os.path.join(url, file), "rb") as log:
                log.seek(int(offset))
                assert log.read(10) == b"x" * 10
        assert len(store.dump()) > 3
        stats = store.stats("variable=t")
        assert (stats.fields, stats.bytes, store.stats().fields) == (3, 30, 4)
        with pytest.raises(fst.Invalid):
            store.stats(["run=a", "run=b"])
        status = store.status()
        assert status.schema == "simulation" and status.writers[0].process == os.getpid()
        assert status.writers[0].state == "open" and not status.problems
    assert fst.open(url, mode="r").status().writers[0].state == "closed"


def test_verify_of_a_sound_store(url):
    with fst.open(url) as store:
        store.archive_many([sim(n) for n in range(5)], [b"x" * n for n in range(5)])
        store.flush()
        report = store.verify()
        assert report.ok and report.fields == 5 and report.damaged == ()


def test_entries_tell_what_they_list(url):
    before = time.time()
    with fst.open(url) as store:
        store.archive(sim(1), b"abc")
        store.archive(sim(1, "u"), np.array([[1, 5]], ">i4"))
        store.archive(sim(1, "v"), np.array(["2020-01-01", "NaT"], "M8[D]"))
        store.flush()
        opaque, array, times = store.list()
    assert (opaque.nbytes, opaque.dtype, opaque.shape, opaque.complete) == (3, None, None, True)
    assert (array.nbytes, array.dtype, array.shape) == (8, np.dtype(">i4"), (1, 2))
    assert (array.min, array.max, array.missing) == (1, 5, 0)
    assert (times.min, times.missing) == (np.datetime64("2020-01-01"), 1)
    assert before - 5 < opaque.time.timestamp() < time.time() + 5 and opaque.time.tzinfo is not None
    assert opaque.owner == fst.open(url).status().writers[0].user


def test_compression(url):
    data = b"compressible " * 10_000
    with fst.open(url, compression="zstd") as store:
        store.archive(sim(1), data)
        store.archive(sim(2), data, compression="none")
        store.flush()
        assert store.stats("step=1").stored_bytes < len(data) / 10
        assert store.stats("step=2").stored_bytes == len(data)
        assert store.get(sim(1)) == data
        with pytest.raises(fst.Invalid, match="gzip"):
            store.archive(sim(3), data, compression="gzip")
    with pytest.raises(fst.Invalid, match="zstd"):
        fst.open(url, compression="zstd:99")


def test_reprs_are_bounded_and_html_is_escaped():
    store = fst.open("memory:")
    store.archive_many([sim(n, variable="<b>&") for n in range(2000)], [b"x"] * 2000)
    store.flush()
    fields = store.retrieve({"step": list(range(2000))})
    shown = [store, store.list(), next(store.list()), fields, fields[0], fields[0].key, store.status()]
    for thing in [*shown, store.verify(), fst.Request(step=list(range(2000)))]:
        assert len(repr(thing)) < 1500, repr(thing)
        page = thing._repr_html_() if hasattr(thing, "_repr_html_") else ""
        assert len(page) < 5000 and "<b>&" not in page
    assert "&lt;b&gt;&amp;" in fields._repr_html_()


def test_a_skipped_log_is_a_warning(tmp_path: Path) -> None:
    store = fst.open(str(tmp_path / "s"))
    store.archive({"run": "a", "variable": "t"}, b"x")
    store.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fst.open(str(tmp_path / "s"), mode="r").refresh()
    name = "ab" * 16 + ".log"
    (tmp_path / "s" / "logs" / name).symlink_to("/dev/null")
    with pytest.warns(UserWarning, match=f"logs/{name}: it is not read"):
        reader = fst.open(str(tmp_path / "s"), mode="r")
    assert reader.get({"run": "a", "variable": "t"}) == b"x"
    with pytest.warns(UserWarning, match=name):
        store.refresh()

"""Missing stores, stores without logs, or without one file: the calls that raise, and those that work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest


def made(path: Path) -> str:
    with fst.open(str(path)) as store:
        run = store.create_run("a")
        run.create_variable("t", dtype="f8", shape=(4,))
        run.write("t", 0, np.arange(4.0))
        run.annotate("note", "sound")
    return str(path)


def test_a_store_that_lost_its_folder_of_logs_does_not_begin_at_zero(tmp_path: Path) -> None:
    url = made(tmp_path / "s")
    (tmp_path / "s" / "logs").rename(tmp_path / "aside")
    store = fst.open(url)
    reads = [
        lambda: list(store.list()),
        lambda: store.axes(),
        lambda: store.get("run=a,variable=t,step=0"),
        lambda: store.run("a").last_step(),
        lambda: store.run("a"),
        lambda: list(store.runs()),
        lambda: list(store.attributes(tag="note")),
        lambda: store.find("tag=note").count(),
        lambda: store.stats(),
        lambda: store.version,
        lambda: len(store.retrieve("run=a", strict=False)),
        lambda: fst.copy(store, "run=a", to=str(tmp_path / "copy")),
        lambda: store.to_xarray("run=a"),
        lambda: store.graph.stats(),
    ]
    writes = [
        lambda: (store.archive("run=b,variable=t,step=0", b"x"), store.flush()),
        lambda: store.create_run("b"),
        lambda: store.arrays("job").group("g", {"u": "f8"}, shape=(4,)),
    ]
    for call in reads + writes:
        with pytest.raises(fst.Corrupt, match="logs") as caught:
            call()
        assert caught.value.code == "logs-gone"
    assert not (tmp_path / "s" / "logs").exists()
    status = store.status()
    assert (status.code, status.problems[0].code, status.problems[0].file) == (5, "logs-gone", "logs")
    store.discard()
    (tmp_path / "aside").rename(tmp_path / "s" / "logs")
    assert fst.open(url, mode="r").run("a").last_step() == 0


def test_a_store_that_must_exist(tmp_path: Path) -> None:
    with pytest.raises(fst.NotFound, match="no store") as caught:
        fst.open(str(tmp_path / "no"), mode="r+")
    assert "mounted" in caught.value.hint
    url = made(tmp_path / "s")
    with fst.open(url, mode="r+") as store:
        store.archive("run=a,variable=t,step=1", b"x")
    assert fst.open(url, mode="r").get("run=a,variable=t,step=1") == b"x"
    with pytest.raises(fst.Invalid, match="not a mode"):
        fst.open(url, mode="w")
    script = "import sys, fieldstone as fst\nfst.open(sys.argv[1]).archive('run=a,variable=t', b'x')\n"
    environment = {"FIELDSTONE_CREATE": "0"}
    for name, failed in [("no", True), ("s", False)]:
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / name)],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert (done.returncode != 0) == failed, done.stderr
    assert not (tmp_path / "no").exists()


def test_losses_are_accepted_and_on_record(tmp_path: Path) -> None:
    url = made(tmp_path / "s")
    with fst.open(url) as store:
        store.archive("run=b,variable=large,step=0", bytes(3 << 20))
    data = next((tmp_path / "s" / "data").iterdir())
    data.unlink()
    problem = fst.open(url, mode="r").status().problems[0]
    assert (problem.code, problem.file, str(problem)) == (
        "data-gone",
        f"data/{data.name}",
        f"{problem.file}: {problem.why}",
    )
    with fst.open(url, mode="r+") as store:
        with pytest.raises(fst.Invalid, match="log"):
            store.accept("nothing")
        report = store.accept(f"data/{data.name}", why="no tape")
    assert (report.fields, report.keys, report.why) == (1, ("{run=b}{variable=large}{step=0}",), "no tape")
    store = fst.open(url, mode="r")
    assert [str(entry.key) for entry in store.list("run=b")] == []
    assert store.verify().ok and store.verify().accepted == store.status().accepted == (report,)
    assert store.status().code == 0
    assert store.status().format == 2


def test_a_pinned_store_refuses_attempts_and_array_jobs_until_it_is_upgraded(tmp_path: Path) -> None:
    url = str(tmp_path / "s")
    program = Path(sys.executable).with_name("fieldstone")
    subprocess.run([program, "init", url, "--format", "1"], check=True, capture_output=True)
    status = fst.open(url).status()
    assert (status.format, status.format_pinned is not None) == (1, True)
    with fst.open(url) as store:
        for call in [
            lambda: fst.open(url, attempt="7.1"),
            lambda: store.arrays("job").group("g", {"u": "f8"}, shape=(4,)),
        ]:
            with pytest.raises(fst.Denied, match="format 2") as caught:
                call()
            assert caught.value.code == "format-pinned"
            assert "upgrade" in caught.value.hint
    assert fst.open(url).status().format == 1
    assert fst.open(url).upgrade() == 2
    with fst.open(url, attempt="7.1") as store, store.arrays("job") as job:
        job.group("g", {"u": "f8"}, shape=(4,)).write("u", 0, np.arange(4.0))
    assert fst.open(url).get("run=job,variable=u,step=0").tolist() == [0, 1, 2, 3]


def test_an_audit_lists_what_no_execution_did(tmp_path: Path) -> None:
    url = made(tmp_path / "s")
    with fst.open(url) as store:
        store.archive("run=b,variable=t,step=0", b"x")
        store.flush()
        store.remove("run=b")
        store.flush()
        with fst.execution("plot", store):
            store.archive("run=c,variable=t,step=0", b"x")
    store = fst.open(url, mode="r")
    user = store.status().writers[0].user
    rows = [(row.execution[0], row.action, row.object) for row in store.graph.audit(user=user)]
    for row in [
        ("commit", "archive", ("dataset", "{run=b}")),
        ("commit", "delete", ("dataset", "{run=b}")),
        ("commit", "annotate", ("run", "a")),
    ]:
        assert row in rows, rows
    # A field that an execution wrote belongs to the execution.
    assert ("commit", "archive", ("dataset", "{run=c}")) not in rows
    assert any(row[:2] == ("job", "write") or row[1] == "run" for row in rows)

"""Wipes: whole datasets and indexes vanish, and what is archived again is new."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest


def written(path: Path) -> str:
    with fst.open(path) as store:
        run = store.create_run("a")
        for name in ("t", "u"):
            run.create_variable(name, dtype="f8", shape=(4,))
            for step in (0, 6):
                run.write(name, step, np.arange(4.0))
        run.annotate("peak", 1.5, variable="t", step=6)
        store.archive({"run": "b", "variable": "t", "step": 0}, b"bytes")
    return str(path)


def steps(store: fst.Store, request: str) -> list[str]:
    return [entry.key["step"] for entry in store.list(request)]


def test_a_dry_run_says_what_goes_and_then_it_goes(tmp_path: Path) -> None:
    url = written(tmp_path / "s")
    (tmp_path / "s" / "stray").write_text("x")
    with fst.open(url) as store:
        report = store.wipe("run=a,variable=t")
        assert (report.fields, report.nbytes, report.foreign, report.done) == (2, 64, ("stray",), False)
        assert repr(report) == "WipeReport(fields=2, nbytes=64, foreign=('stray'), done=False)"
        assert steps(store, "run=a") == ["0", "6", "0", "6"]
        version = store.version
        assert store.wipe({"run": "a", "variable": "t"}, doit=True).done
        assert steps(store, "run=a") == ["0", "6"]
        assert store.axes()["variable"] == ["t", "u"], "run b has it"
        assert [hit.step for hit in store.find("tag=peak")] == [6]
        assert [run.name for run in store.runs()] == ["a", "b"]
        store.wipe("run=b", doit=True)
        assert [run.name for run in store.runs()] == ["a"]
        run = store.run("a")
        run.write("t", 12, np.ones(4))
        store.flush()
        assert steps(store, "run=a,variable=t") == ["12"]
        assert store.wipe(all=True, doit=True).fields == 3
        assert list(store.list()) == []
    assert len(list(fst.open(url, mode="r", at=version).list())) == 5


@pytest.mark.parametrize(
    ("age", "left"),
    [
        (3600, 5),
        (timedelta(hours=1), 5),
        ("5d", 5),
        ("1.5h", 5),
        (0, 0),
        (datetime(2020, 1, 1, tzinfo=UTC), 5),
        (datetime.now(UTC) + timedelta(days=1), 0),
    ],
)
def test_ages(tmp_path: Path, age: object, left: int) -> None:
    with fst.open(written(tmp_path / "s")) as store:
        assert store.wipe(all=True, older_than=age, doit=True).fields == 5 - left
        assert len(list(store.list())) == left


@pytest.mark.parametrize(
    ("request_", "how", "said"),
    [
        ("run=a,step=0", {}, "step"),
        (None, {}, "everything"),
        ("run=*", {}, "everything"),
        ("run=a", {"older_than": "soon"}, "soon"),
        ("run=a", {"older_than": -1}, "older_than"),
        ("run=a", {"older_than": True}, "older_than"),
    ],
)
def test_what_is_refused(tmp_path: Path, request_: str | None, how: dict, said: str) -> None:
    with fst.open(written(tmp_path / "s")) as store:
        with pytest.raises(fst.Invalid, match=said):
            store.wipe(request_, doit=True, **how)
        assert len(list(store.list())) == 5


def test_a_reader_cannot_wipe(tmp_path: Path) -> None:
    url = written(tmp_path / "s")
    with fst.open(url, mode="r") as store, pytest.raises(fst.Denied):
        store.wipe("run=a")

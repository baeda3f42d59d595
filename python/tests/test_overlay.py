"""Overlays show fields under other values, too, in every read by key, until they end."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest


@pytest.fixture
def store(tmp_path: Path):
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("a")
        run.create_variable("t", dtype="f8", shape=(4,))
        for step in (0, 6):
            run.write("t", step, np.arange(4.0) + step)
        store.flush()
        yield store


def test_b27_fields_appear_under_another_value(store: fst.Store) -> None:
    before, version = datetime.now(UTC), store.version
    assert store.overlay("run=a", {"run": "b"}) == 2
    with pytest.raises(fst.Conflict, match="already"):
        store.overlay({"run": "a"}, "run=b")
    assert [str(entry.key["run"]) for entry in store.list()] == ["a", "a", "b", "b"]
    assert store.axes()["run"] == ["a", "b"]
    assert store.get("run=b,variable=t,step=6").tolist() == [6, 7, 8, 9]
    assert len(store.retrieve({"run": ["a", "b"], "variable": "t"})) == 4
    (one,) = store.overlays()
    assert (one.request, one.values) == ("run=a", "run=b")
    assert before <= one.since <= datetime.now(UTC) and one.by
    assert [run.name for run in store.runs()] == ["a"], "the catalog knows runs by their own names"
    with fst.open(store.url, mode="r", at=version) as older:
        assert len(list(older.list())) == 2 and older.overlays() == []
    assert store.overlay("run=a", {"run": "b"}, remove=True) == 2
    assert len(list(store.list())) == 2
    with pytest.raises(fst.NotFound):
        store.get("run=b,variable=t,step=6")
    with pytest.raises(fst.NotFound, match="no overlay"):
        store.overlay("run=a", {"run": "b"}, remove=True)


def test_wrong_overlays_are_refused(store: fst.Store) -> None:
    for request, values, error, says in [
        ("run=a", None, fst.Invalid, "without values"),
        ("variable=t", {"run": "b"}, fst.Invalid, "which one run"),
        ("run=a", {"run": "a"}, fst.Invalid, "as it is"),
        ("run=a,step=0", {"step": "noon"}, fst.Invalid, "noon"),
        ("run=z", {"run": "b"}, fst.NotFound, "run=z"),
    ]:
        with pytest.raises(error, match=says):
            store.overlay(request, values)


def test_a_schema_with_other_keywords_for_a_value_is_named(tmp_path: Path) -> None:
    schema = "[class=rd, expver [type [step]]] [class=od, expver, stream [type [step]]]"
    with fst.open(tmp_path / "s", schema=schema) as store:
        store.archive({"class": "rd", "expver": "x", "type": "fc", "step": 0}, b"x")
        store.flush()
        with pytest.raises(fst.Invalid, match="cannot appear"):
            store.overlay("class=rd,expver=x", {"class": "od"})
        with pytest.raises(fst.Invalid, match="expverr"):
            store.overlay("class=rd,expver=x", {"expverr": "y"})
        assert store.overlay("class=rd,expver=x", {"expver": "y"}) == 1
        assert store.get("class=rd,expver=y,type=fc,step=0") == b"x"


def test_an_audit_names_who_made_and_ended_it(store: fst.Store) -> None:
    store.overlay("run=a", {"run": "b"})
    store.overlay("run=a", {"run": "b"}, remove=True)
    actions = [row.action for row in store.graph.audit(user=os.getuid())]
    assert "overlay" in actions and "end-overlay" in actions


def test_xarray_finds_fields_under_the_other_value(store: fst.Store) -> None:
    store.overlay("run=a", {"run": "b"})
    dataset = store.to_xarray("run=b,variable=t")
    assert dataset["t"].values[-1].tolist() == [6, 7, 8, 9]

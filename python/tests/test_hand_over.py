"""Hand-overs make a user's datasets and runs another's, on record."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import fieldstone as fst
import pytest

ME, OTHER = os.getuid(), 4242


@pytest.fixture
def store(tmp_path: Path):
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("a")
        run.annotate("maximum", 3.5)
        for step in (0, 6):
            store.archive({"run": "a", "variable": "t", "step": step}, b"of mine")
        store.flush()
        yield store


def test_r77_what_is_mine_becomes_anothers_and_comes_back(store: fst.Store) -> None:
    before, version = datetime.now(UTC), store.version
    report = fst.hand_over(store, ME, str(OTHER))
    assert (report.new, report.datasets) == (str(OTHER), 1) and report.old
    assert store.get("run=a,variable=t,step=6") == b"of mine"
    assert [hit.value for hit in store.attributes(tag="maximum")] == [3.5]
    with pytest.raises(fst.Denied, match=str(OTHER)):
        store.archive({"run": "a", "variable": "t", "step": 9}, b"late")
    with fst.open(store.url) as other, pytest.raises(fst.Denied, match=str(OTHER)):
        other.run("a").create_step(3)
    (one,) = fst.hand_overs(store)
    assert (one.new, one.old, one.by) == (str(OTHER), report.old, report.old)
    assert before <= one.since <= datetime.now(UTC)
    assert any(str(OTHER) in problem.why for problem in store.status().problems)
    assert "hand-over" in [row.action for row in store.graph.audit(user=ME)]
    with fst.open(store.url, mode="r", at=version) as older:
        assert fst.hand_overs(older) == [] and len(list(older.list())) == 2
    assert fst.hand_over(store, OTHER, ME).datasets == 1
    store.archive({"run": "a", "variable": "t", "step": 9}, b"again mine")
    store.run("a").create_step(3)
    store.flush()
    assert store.get("run=a,variable=t,step=9") == b"again mine"
    assert [one.new for one in fst.hand_overs(store)] == [str(OTHER), report.old]


def test_wrong_calls_are_named(store: fst.Store) -> None:
    with pytest.raises(fst.Invalid, match="himself"):
        fst.hand_over(store, ME, ME)
    with pytest.raises(fst.NotFound, match="nobody-by-this-name"):
        fst.hand_over(store, "nobody-by-this-name", ME)
    with pytest.raises(TypeError):
        fst.hand_over(store, ME)  # type: ignore[call-arg]
    assert fst.hand_over(store, OTHER, ME).datasets == 0 and fst.hand_overs(store) == []
    with fst.open(store.url, mode="r") as reader, pytest.raises(fst.Denied):
        fst.hand_over(reader, ME, OTHER)

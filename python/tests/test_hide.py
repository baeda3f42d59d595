"""Hidden fields are not there for reads, lists, the catalog or xarray until somebody shows them again."""

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
        for name in ("a", "b"):
            run = store.create_run(name)
            run.create_variable("t", dtype="f8", shape=(4,))
            run.write("t", 0, np.arange(4.0))
            run.write("t", 6, np.arange(4.0))
        store.flush()
        yield store


def test_hidden_fields_are_nowhere_and_come_back(store: fst.Store) -> None:
    before, version = datetime.now(UTC), store.version
    store.run("a").annotate("note", "stays", variable="t", step=6)
    store.flush()
    assert store.hide("run=a") == 2
    assert [str(entry.key["run"]) for entry in store.list()] == ["b", "b"]
    assert store.axes()["run"] == ["b"]
    with pytest.raises(fst.NotFound):
        store.get("run=a,variable=t,step=0")
    assert len(store.retrieve({"run": ["a", "b"], "variable": "t"}, strict=False)) == 2
    assert [hit.value for hit in store.attributes(tag="note")] == ["stays"]
    (one,) = store.hidden()
    assert one.request == "run=a" and before <= one.since <= datetime.now(UTC) and one.by
    with fst.open(store.url, mode="r", at=version) as older:
        assert len(list(older.list())) == 4
    with pytest.raises(fst.Invalid, match="step"):
        store.hide("run=a,step=0")
    with pytest.raises(fst.Invalid, match="everything"):
        store.hide(None)
    assert store.unhide() == 2 and store.hidden() == []
    assert store.get("run=a,variable=t,step=0").tolist() == [0, 1, 2, 3]
    assert store.unhide("run=a") == 0


def test_an_audit_names_who_hid_and_showed(store: fst.Store) -> None:
    store.hide("run=a")
    store.unhide("run=a")
    actions = [row.action for row in store.graph.audit(user=os.getuid())]
    assert "hide" in actions and "unhide" in actions

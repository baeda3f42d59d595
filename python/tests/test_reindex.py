"""Another store names fields, and holds no byte of them (R34)."""

from __future__ import annotations

from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest


@pytest.fixture
def store(tmp_path: Path):
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("a")
        run.create_variable("t", dtype="f8", shape=(300, 400))
        for step in (0, 6):
            run.write("t", step, np.arange(120_000.0).reshape(300, 400) + step)
        store.archive({"run": "a", "variable": "text", "step": 0}, b"bytes")
        store.flush()
        yield store


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.data"))


def test_r34_fields_are_read_from_where_they_are(store: fst.Store, tmp_path: Path) -> None:
    with fst.open(tmp_path / "to") as to:
        report = store.reindex("run=a", to)
        assert (report.fields, report.kept, report.left) == (3, True, ())
        assert size(tmp_path / "to") == 0
        (one,) = store.pointers()
        assert one.request == "run=a" and one.url == to.url and one.by
    store.run("a").write("t", 0, np.zeros((300, 400)))
    store.flush()
    store.close()
    for _ in range(2):
        with fst.open(tmp_path / "s") as source:
            source.compact(grace=0)
            assert any("to" in left.why for left in source.purge(all=True, doit=True, grace=0).left)
    with fst.open(tmp_path / "to", mode="r") as to:
        assert to.get("run=a,variable=t,step=0")[7, 3] == 7 * 400 + 3
        assert to.get("run=a,variable=text,step=0") == b"bytes"
        box = to.get("run=a,variable=t,step=6", start=(2, 5), count=(1, 2))
        assert box.tolist() == [[2 * 400 + 5 + 6, 2 * 400 + 6 + 6]]
        assert to.verify().ok


def test_b29_another_schema_names_them(store: fst.Store, tmp_path: Path) -> None:
    with fst.open(tmp_path / "to", schema="step: Integer; [variable [step [run]]]") as to:
        assert store.reindex({"run": "a", "variable": "t"}, to=to).fields == 2
        assert len(list(to.list("variable=t"))) == 2
        assert to.get("variable=t,step=6,run=a")[0, 0] == 6
        with pytest.raises(fst.Invalid, match="one store"):
            to.reindex("variable=t", to)
        with pytest.raises(fst.NotFound, match="run=z"):
            store.reindex("run=z", to)
        assert store.reindex("run=a,variable=t", to, end=True) is None
        assert store.pointers() == []


def test_a_store_that_is_gone_is_named(store: fst.Store, tmp_path: Path) -> None:
    with fst.open(tmp_path / "to") as to:
        store.reindex("run=a", to)
    store.close()
    (tmp_path / "s").rename(tmp_path / "moved")
    with fst.open(tmp_path / "to", mode="r") as to, pytest.raises(fst.Corrupt, match="gone"):
        to.get("run=a,variable=text,step=0")
    with fst.open("memory:") as memory, fst.open(tmp_path / "to") as to:
        memory.archive({"run": "m", "variable": "t", "step": 0}, b"x")
        memory.flush()
        with pytest.raises(fst.Invalid, match="memory"):
            memory.reindex("run=m", to)

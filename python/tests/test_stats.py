"""``store.stats(by=…)``: fields and bytes by owner, dataset, writer and keyword."""

from __future__ import annotations

import getpass
from pathlib import Path

import fieldstone as fst
import pytest


@pytest.fixture
def store(tmp_path: Path) -> fst.Store:
    with fst.open(tmp_path / "s.store") as store:
        for step in (2, 10):
            store.archive({"run": "a", "variable": "t", "step": step}, b"x" * step)
        store.archive({"run": "b", "variable": "t", "step": 2}, b"first")
        store.flush()
        store.archive({"run": "b", "variable": "t", "step": 2}, b"second")
    return fst.open(tmp_path / "s.store", mode="r")


def test_rows_by_dataset_and_keyword(store: fst.Store) -> None:
    rows = store.stats(by="dataset")
    assert [tuple(row) for row in rows] == [("{run=a}", 2, 12, 12, 0), ("{run=b}", 1, 6, 6, 5)]
    assert rows[0].name == "{run=a}" and rows[1].dead == 5
    assert [(row.name, row.fields) for row in store.stats(by="step")] == [("2", 2), ("10", 1)]
    assert [row.name for row in store.stats("run=a", by="step")] == ["2", "10"]
    assert len(store.stats("run=nowhere", by="step")) == 0


def test_rows_by_owner_and_writer(store: fst.Store) -> None:
    [owner] = store.stats(by="owner")
    assert (owner.name, owner.fields, owner.nbytes) == (getpass.getuser(), 3, 18)
    [writer] = store.stats(by="writer")
    assert writer.name == store.status().writers[0].writer


def test_a_table_and_a_notebook_show_them(store: fst.Store) -> None:
    rows = store.stats(by="run")
    assert repr(rows) == "<fieldstone.StatsRows by run: 2 rows>"
    assert "<th>run</th><th>fields</th>" in rows._repr_html_()
    pa = pytest.importorskip("pyarrow")
    table = rows.to_arrow()
    assert table.column_names == ["name", "fields", "nbytes", "stored", "dead"]
    assert table.schema.field("fields").type == pa.uint64()
    assert table["nbytes"].to_pylist() == [12, 6]
    empty = store.stats("run=nowhere", by="run").to_arrow()
    assert empty.num_rows == 0 and empty.schema == table.schema


def test_a_mistake_is_invalid(store: fst.Store) -> None:
    with pytest.raises(fst.Invalid, match="varable"):
        store.stats(by="varable")
    with pytest.raises(fst.Invalid, match="one request"):
        store.stats(["run=a", "run=b"], by="run")
    assert store.stats("run=a").fields == 2

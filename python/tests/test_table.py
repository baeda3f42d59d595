"""Tables of results: their form for Arrow's consumers, none of which is needed."""

from __future__ import annotations

import datetime
import subprocess
import sys

import duckdb
import fieldstone as fst
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

SCHEMA = "day: Date; level: Double; step: Step; [run, day? [variable [step?, level?, *]]]"


@pytest.fixture
def store() -> fst.Store:
    """Arrays of two runs, some keywords absent, and one opaque field."""
    store = fst.open("memory:", schema=SCHEMA)
    for step in range(3):
        key = {"run": "a", "day": "2024-02-29", "variable": "t", "step": step, "level": 500 + step / 2}
        store.archive(key, np.arange(6.0).reshape(2, 3) + step)
    store.archive({"run": "b", "variable": "note"}, b"hello")
    store.flush()
    return store


def test_columns_have_the_type_that_all_values_have(store: fst.Store) -> None:
    table = pa.table(store.list().to_arrow())
    assert table.schema.names[:5] == ["run", "day", "variable", "step", "level"]
    kinds = {name: str(table.schema.field(name).type) for name in table.schema.names}
    assert kinds == {
        "run": "string",
        "day": "date32[day]",
        "variable": "string",
        "step": "int64",
        "level": "double",
        "nbytes": "uint64",
        "dtype": "string",
        "shape": "list<item: uint64>",
        "complete": "bool",
        "masked": "bool",
        "location": "string",
        "flushed": "timestamp[ns, tz=UTC]",
        "owner": "string",
        "min": "double",
        "max": "double",
        "missing": "uint64",
        "attempt": "string",
    }
    rows = table.to_pylist()
    assert [row["day"] for row in rows] == [datetime.date(2024, 2, 29)] * 3 + [None]
    assert [row["level"] for row in rows] == [500.0, 500.5, 501.0, None]
    assert [row["max"] for row in rows] == [5.0, 6.0, 7.0, None]
    assert [row["shape"] for row in rows] == [[2, 3]] * 3 + [None]
    assert [row["nbytes"] for row in rows] == [48, 48, 48, 5]


def test_every_row_is_that_of_the_list(store: fst.Store) -> None:
    table = store.list().to_arrow()
    entries = list(store.list())
    for name in ("nbytes", "shape", "complete", "masked", "location", "owner", "min", "max", "missing"):
        assert table.values(name) == [getattr(entry, name) for entry in entries], name
    assert table.values("flushed") == [entry.time for entry in entries]
    for keyword in ("run", "day", "variable", "step", "level"):
        assert table.values(keyword) == [entry.key.typed.get(keyword) for entry in entries], keyword


@pytest.mark.parametrize("day", ["00010101", "16000229", "19691231", "19700101", "19000301", "99991231"])
def test_days_far_from_1970(day: str) -> None:
    store = fst.open("memory:", schema=SCHEMA)
    store.archive({"run": "a", "day": day, "variable": "t"}, b"x")
    store.flush()
    (found,) = pa.table(store.list().to_arrow())["day"].to_pylist()
    assert found.strftime("%Y").zfill(4) + found.strftime("%m%d") == day


@pytest.mark.parametrize(
    ("steps", "kind", "values"),
    [
        (["0", "6"], "int64", [0, 6]),
        (["30m", "6"], "double", [0.5, 6.0]),
        (["0-24", "6"], "string", ["0-24", "6"]),
    ],
)
def test_steps_are_hours_where_each_is_one(steps: list[str], kind: str, values: list[object]) -> None:
    store = fst.open("memory:", schema=SCHEMA)
    for step in steps:
        store.archive({"run": "a", "variable": "t", "step": step}, b"x")
    store.flush()
    column = pa.table(store.list().to_arrow())["step"]
    assert (str(column.type), column.to_pylist()) == (kind, values)


def test_pandas_polars_and_duckdb_take_a_table(store: fst.Store) -> None:
    fields = store.list().to_arrow()
    assert pl.DataFrame(fields)["step"].to_list() == [0, 1, 2, None]
    assert pd.DataFrame.from_arrow(fields)["max"].tolist()[:3] == [5.0, 6.0, 7.0]
    found = duckdb.sql("select run, max(max), sum(nbytes) from fields group by run order by run").fetchall()
    assert found == [("a", 7.0, 144), ("b", None, 5)]


def test_a_table_becomes_pandas_without_pyarrow(store: fst.Store, tmp_path) -> None:
    frame = store.list().to_pandas()
    assert list(frame["variable"]) == ["t", "t", "t", "note"]
    assert str(frame["step"].dtype) == "Int64" and frame["step"].isna().tolist() == [False] * 3 + [True]
    assert str(frame["nbytes"].dtype) == "uint64"
    assert frame["day"][0] == pd.Timestamp(2024, 2, 29) and pd.isna(frame["day"][3])
    assert frame["flushed"].dtype == "datetime64[ns, UTC]"
    program = """
import sys
sys.modules["pyarrow"] = None
import fieldstone as fst
store = fst.open("memory:")
store.archive({"run": "a", "variable": "t", "step": 1}, b"x")
store.flush()
table = store.list().to_arrow()
assert type(table.__arrow_c_stream__()).__name__ == "PyCapsule"
assert type(table.__arrow_c_schema__()).__name__ == "PyCapsule"
assert list(table.to_pandas()["step"]) == [1]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_long_table_comes_in_batches_and_any_number_of_times() -> None:
    store = fst.open("memory:")
    n = 150_000
    keys = [{"run": "a", "variable": "t", "step": step} for step in range(n)]
    store.archive_many(keys, [b""] * n)
    store.flush()
    table = store.list().to_arrow()
    assert len(table) == n and table.nbytes < 208 * n
    for _ in range(2):
        batches = list(pa.RecordBatchReader.from_stream(table))
        assert [batch.num_rows for batch in batches] == [65_536, 65_536, n - 2 * 65_536]
        assert pa.Table.from_batches(batches)["step"].to_pylist() == list(range(n))
    unread = table.__arrow_c_stream__()
    del table, unread  # released without being read


def test_a_keyword_keeps_its_name_and_a_fixed_column_gives_way() -> None:
    store = fst.open("memory:", schema="[run [variable [nbytes, owner]]]")
    store.archive({"run": "a", "variable": "t", "nbytes": "many", "owner": "me"}, b"x")
    store.flush()
    (row,) = pa.table(store.list().to_arrow()).to_pylist()
    assert (row["nbytes"], row["_nbytes"], row["owner"]) == ("many", 1, "me")


def test_a_keyword_of_several_levels_shows_its_deepest_value() -> None:
    schema = "[run, date: YearMonth [variable, date: Month [date: Date]]]"
    store = fst.open("memory:", schema=schema)
    store.archive({"run": "a", "variable": "t", "date": "20240229"}, b"x")
    store.flush()
    (row,) = pa.table(store.list().to_arrow()).to_pylist()
    assert row["date"] == datetime.date(2024, 2, 29)


def test_a_table_of_datasets_and_an_empty_one(store: fst.Store) -> None:
    assert pa.table(store.list(depth=1).to_arrow()).select(["run"]).to_pylist() == [
        {"run": "a"},
        {"run": "b"},
    ]
    empty = store.list({"run": "nobody"}).to_arrow()
    assert len(empty) == 0 and pa.table(empty).num_rows == 0
    assert list(empty.to_pandas().columns) == empty.columns


def test_a_table_shows_itself_bounded_and_escaped() -> None:
    store = fst.open("memory:")
    for step in range(100):
        store.archive({"run": "<b>" + "x" * 100, "variable": "t", "step": step}, b"x")
    store.flush()
    table = store.list().to_arrow()
    assert repr(table).startswith("<fieldstone.Table of 100 rows>") and len(repr(table)) < 4000
    assert "90 more" in repr(table)
    html = table._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html and "80 more rows" in html
    with pytest.raises(fst.Invalid, match='no column "colour"'):
        table.values("colour")

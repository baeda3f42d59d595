"""Many attributes in one call: columns from numpy, Arrow, pandas, polars and lists."""

from __future__ import annotations

from datetime import UTC, datetime

import fieldstone as fst
import numpy as np
import pytest


@pytest.fixture
def run(tmp_path):
    with fst.open(tmp_path / "store") as store:
        run = store.create_run("r")
        run.create_variables(["u", "v"], dtype="f8", shape=(100, 50), dims=("y", "x"))
        yield run


def values(run, **terms):
    return [h.value for h in run.attributes(order="step", **terms)]


COLUMNS = {
    "float": [1.5, -2.5, 0.0],
    "int": [3, -4, 5],
    "uint": [1, 2**64 - 1, 3],
    "bool": [True, False, True],
    "text": ["a", "", "Grüße"],
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize(
    "make", ["list", "tuple", "numpy", "object", "pyarrow", "chunked", "polars", "pandas"]
)
def test_a_column_of_any_library(run, make, kind):
    column = COLUMNS[kind]
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    dtype = {"float": "f8", "int": "i8", "uint": "u8", "bool": "?", "text": "U5"}[kind]
    arrow = {
        "float": pa.float64(),
        "int": pa.int64(),
        "uint": pa.uint64(),
        "bool": pa.bool_(),
        "text": pa.string(),
    }[kind]
    made = {
        "list": lambda: list(column),
        "tuple": lambda: tuple(column),
        "numpy": lambda: np.array(column, dtype),
        "object": lambda: np.array(column, object),
        "pyarrow": lambda: pa.array(column, arrow),
        "chunked": lambda: pa.chunked_array([pa.array(column[:1], arrow), pa.array(column[1:], arrow)]),
        "polars": lambda: pl.Series(column, dtype=pl.UInt64 if kind == "uint" else None),
        "pandas": lambda: pd.Series(column, dtype="uint64" if kind == "uint" else None),
    }[make]()
    run.annotate_many("t", made, step=[0, 1, 2])
    assert values(run) == column
    (tag,) = run.tags()
    assert tag.type == kind


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", ">i4", "u1", "u2", "u4", ">u8", "f2", "f4", ">f4", ">f8", "U3", ">U3"]
)
def test_a_numpy_column_of_any_type(run, dtype):
    column = np.array([1, 2, 7], dtype)
    run.annotate_many("t", column, step=np.arange(3))
    assert values(run) == column.tolist()
    run.annotate_many("strided", np.repeat(column, 2)[::2], step=np.arange(3))
    assert values(run, tag="strided") == column.tolist()


def test_moments_bytes_ranges_and_arrays_in_columns(run):
    import pyarrow as pa

    days = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
    moments = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]
    run.annotate_many("days", days, step=[0, 1])
    assert values(run, tag="days") == moments
    run.annotate_many("stamps", pa.array(moments, pa.timestamp("ms", "UTC")), step=[0, 1])
    assert values(run, tag="stamps") == moments
    run.annotate_many("dates", pa.array([m.date() for m in moments]), step=[0, 1])
    assert values(run, tag="dates") == moments
    run.annotate_many("bytes", [b"a", b"\0b"], step=[0, 1])
    assert values(run, tag="bytes") == [b"a", b"\0b"]
    run.annotate_many("S", np.array([b"a", b"bc"]), step=[0, 1])
    assert values(run, tag="S") == [b"a", b"bc"]
    run.store.create_tag("range", type="int_range")
    run.annotate_many("range", [(1, 2), (3, 4)], step=[0, 1])
    assert values(run, tag="range") == [(1, 2), (3, 4)]
    run.annotate_many("range", fst.int_range(5, 6), step=[2, 3])
    assert values(run, tag="range") == [(1, 2), (3, 4), (5, 6), (5, 6)]
    run.store.create_tag("array", type="array")
    run.annotate_many("array", np.array([[1.0, 2.0], [3.0, 4.0]]), step=[0, 1])
    run.annotate_many("array", pa.array([[5.0], [6.0, 7.0]]), step=[2, 3])
    run.annotate_many("array", np.array([8.0, 9.0]), step=[4, 5])
    back = [v.tolist() for v in values(run, tag="array")]
    assert back == [[1, 2], [3, 4], [5], [6, 7], [8, 9], [8, 9]]
    run.annotate_many("json", [{"a": 1}, [2, None]], step=[0, 1])
    assert values(run, tag="json") == [{"a": 1}, [2, None]]


def test_every_argument_is_one_value_or_a_column(run):
    import pyarrow as pa

    names = pa.array(["u", "v", "u"]).dictionary_encode()
    start = np.array([[0, 0], [10, 5], [99, 49]])
    run.annotate_many("t", [1, 2, 3], variable=names, step=7, start=start, count=(1, 1))
    hits = list(run.attributes(order="value"))
    assert [(h.variable, h.step, h.start, h.count) for h in hits] == [
        ("u", 7, (0, 0), (1, 1)),
        ("v", 7, (10, 5), (1, 1)),
        ("u", 7, (99, 49), (1, 1)),
    ]
    run.annotate_many("one", 9.5, variable=["u", "v"], step=range(2))
    assert [(h.variable, h.step, h.value) for h in run.attributes(tag="one", order="step")] == [
        ("u", 0, 9.5),
        ("v", 1, 9.5),
    ]
    run.annotate_many("box", 1, variable="u", step=8, start=(0, 0), count=np.array([[1, 2], [3, 4]]))
    assert sorted(h.count for h in run.attributes(tag="box")) == [(1, 2), (3, 4)]
    run.annotate_many("numpy names", 1, variable=np.array(["v", "u"]), step=9)
    assert sorted(h.variable for h in run.attributes(tag="numpy names")) == ["u", "v"]


def test_rows_of_one_call_never_replace_each_other(run):
    run.annotate_many("t", [1, 2, 2], variable="u", step=0)
    assert sorted(values(run)) == [1, 2, 2]
    run.annotate_many("t", [3, 4], variable="u", step=0)
    assert sorted(values(run)) == [3, 4]
    run.annotate_many("t", [], variable="u", step=0)
    assert sorted(values(run)) == [3, 4]


@pytest.mark.parametrize(
    ("value", "columns", "message"),
    [
        ([1, 2], {"step": [1, 2, 3]}, "2 rows and step has 3"),
        ([1, 2], {"step": 1, "variable": ["u"]}, "variable has 1"),
        ([1, 2], {"step": [1.5, 2]}, "not a whole number"),
        ([1, 2], {"step": True}, "not a whole number"),
        ([1, None], {"step": 1}, "row 1"),
        ([1, 2], {"variable": [1, 2]}, "not text"),
        ([1, 2], {"variable": "u", "start": (0, 0)}, "no count"),
        ([1, 2], {"variable": "u", "start": (0, 0), "count": (1,)}, "2 dimensions and count has 1"),
        ([1, 2], {"variable": "u", "start": np.zeros((2, 2)), "count": (1, 1)}, "start is"),
        ([1, 2], {"variable": "u", "start": np.zeros((3, 2), int), "count": np.ones((2, 2), int)}, "3 rows"),
        ([1, 2], {"variable": "u", "step": 1, "start": [(0, 0), (99, 49)], "count": (1, 2)}, "row 1"),
        (np.zeros(2, complex), {"step": 1}, "dtype"),
        (object(), {"step": 1}, r"not a metadata value|not a column"),
    ],
)
def test_columns_that_do_not_fit_are_told_and_nothing_is_taken(run, value, columns, message):
    with pytest.raises(fst.Invalid, match=message):
        run.annotate_many("t", value, **columns)
    assert len(run.attributes()) == 0


def test_absent_values_of_arrow_and_pandas_are_told(run):
    import pandas as pd
    import pyarrow as pa

    for column in (
        pa.array([1, None]),
        pa.array(["a", None]),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", None]),
    ):
        with pytest.raises(fst.Invalid, match=r"row 1|None|NA"):
            run.annotate_many("t", column, step=[0, 1])
    with pytest.raises(fst.Invalid, match="row 1"):
        run.annotate_many("t", np.array(["2026-01-01", "NaT"], "M8[s]"), step=[0, 1])
    for far in ("3000-01-01", "0001-01-01"):
        with pytest.raises(fst.Invalid, match="nanoseconds since 1970"):
            run.annotate_many("t", np.array(["2026-01-01", far], "M8[D]"), step=[0, 1])
    with pytest.raises(fst.Invalid, match="nanoseconds since 1970"):
        run.annotate_many("t", np.array(["2026-01-01T00:00:00.000000000001"], "M8[ps]"), step=0)


def test_a_column_goes_into_the_tag_where_it_is_exact(run):
    run.store.create_tag("t", type="float")
    run.annotate_many("t", np.array([1, 2]), step=[0, 1])
    assert values(run) == [1.0, 2.0]
    with pytest.raises(fst.Invalid, match=str(2**53 + 1)):
        run.annotate_many("t", np.array([1, 2**53 + 1]), step=[2, 3])
    with pytest.raises(fst.Invalid):
        run.annotate_many("t", ["x", "y"], step=[2, 3])
    assert values(run) == [1.0, 2.0]


def test_a_hundred_thousand_rows(run):
    n = 100_000
    rng = np.random.default_rng(0)
    start = np.stack([rng.integers(0, 90, n), rng.integers(0, 40, n)], axis=1)
    run.annotate_many("t", rng.random(n), variable="u", step=np.arange(n) % 10, start=start, count=(5, 5))
    run.store.flush()
    inside = (start[:, 0] < 3) & (start[:, 1] < 2) & (np.arange(n) % 10 == 4)
    hits = run.attributes(tag="t", step=4, variable="u", box={"y": slice(0, 3), "x": slice(0, 2)})
    assert len(hits) == inside.sum() > 0
    assert len(run.attributes(tag="t")) == n

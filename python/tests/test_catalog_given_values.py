"""A value is kept as it was given: missing values, typed text, and units."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fieldstone as fst
import numpy as np
import pytest
from fieldstone.errors import Conflict, Error, Invalid

PROGRAM = Path(sys.executable).with_name("fieldstone")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[fst.Store]:
    with fst.open(tmp_path / "store") as store:
        store.create_run("r")
        store.flush()
        yield store


# -- missing


def _missing() -> list[Any]:
    import pandas as pd

    whole = np.ma.masked_all((), dtype="i8")
    return [np.ma.masked, np.ma.masked_all(4).max(), whole, pd.NA, pd.NaT, np.datetime64("NaT"), None]


@pytest.mark.parametrize("place", range(7))
def test_what_is_missing_is_no_value(store: fst.Store, place: int) -> None:
    missing, run = _missing()[place], store.run("r")
    calls = [
        lambda: run.annotate("m", missing),
        lambda: run.annotate_many("m", missing, step=[0, 1]),
        lambda: run.annotate_many("m", [1.0, missing], step=[0, 1]),
        lambda: store.create_run("other", params={"p": missing}),
        lambda: run.create_steps([0, 1], [0.5, missing]),
        lambda: run.create_variable("c", "f8", (2,), ("x",), coords={"x": [0.0, missing]}),
        lambda: run.create_variable("d", "f8", (2,), attrs={"units": missing}),
        lambda: fst.above(missing),
    ]
    for call in calls:
        with pytest.raises(Invalid):
            call()
    assert store.attributes().count() == 0
    run.annotate("inner", {"a": [1, missing]})
    assert store.attributes(tag="inner")[0].value == {"a": [1, None]}


def test_columns_name_the_row_that_is_missing(store: fst.Store) -> None:
    import pandas as pd
    import pyarrow as pa

    run = store.run("r")
    columns = [
        np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 1]),
        np.ma.array([1, 2, 3], mask=[0, 0, 1]),
        np.ma.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]", mask=[0, 0, 1]),
        pd.Series([1, 2, None], dtype="Int64"),
        pd.Series(["a", "b", None]),
        pa.array([1, 2, None]),
    ]
    for column in columns:
        with pytest.raises(Invalid, match="row 2"):
            run.annotate_many("m", column, step=[0, 1, 2])
    for place in ({"step": np.ma.array([0, 1, 2], mask=[0, 0, 1])}, {"step": [0, 1, None]}):
        with pytest.raises(Invalid):
            run.annotate_many("m", [1.0, 2.0, 3.0], **place)
    run.annotate_many("m", np.ma.array([1.0, 2.0]), step=[0, 1])
    assert store.attributes(tag="m").count() == 2


def test_masked_fields_are_refused(store: fst.Store) -> None:
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])

    class Lazy:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return masked

    run = store.run("r")
    for value in (masked, Lazy()):
        with pytest.raises(Error, match="masked"):
            store.archive({"run": "r", "variable": "t", "step": 0}, value)
    with pytest.raises(Error, match="masked"):
        run.write("t", 0, masked)


def test_columns_of_other_classes_are_read_or_refused_by_name(store: fst.Store) -> None:
    import pandas as pd
    import pyarrow as pa

    run, steps = store.run("r"), np.arange(2)
    period = pd.Series(pd.period_range("2020-01", periods=2, freq="M"))
    interval = pd.Series(pd.interval_range(0, 2))
    for column in (period, interval, pa.array(period.array), pa.array(interval.array)):
        with pytest.raises(Invalid, match="which is not a metadata value"):
            run.annotate_many("m", column, step=steps)
    for column, values in (
        (pd.Series(["a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series([0.0, 1.0], dtype="Sparse[float]"), [0.0, 1.0]),
        (pd.Series(["a", 1.5], dtype=object), ["a", 1.5]),
        (pd.Series([1, 2], dtype="Int64"), [1, 2]),
        (pd.Index([3, 4]), [3, 4]),
        (pd.Series(["2020-01-01", "2020-01-02"], dtype="datetime64[ns, UTC]").dt.year, [2020, 2020]),
    ):
        run.annotate_many(f"tag {values}", column, step=steps)
        assert [hit.value for hit in store.attributes(tag=fst.exact(f"tag {values}"), order="step")] == values


def test_pandas_needs_no_pyarrow(store: fst.Store) -> None:
    program = """
import sys, importlib.abc
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import fieldstone as fst, pandas as pd
with fst.open(sys.argv[1]) as store:
    run = store.run("r")
    run.annotate_many("loss", pd.Series([1.0, 2.0]), step=pd.Series([0, 1]))
    run.annotate_many("note", pd.Series(["a", "b"]), step=[0, 1])
    print(store.attributes().to_pandas().shape[0], store.runs().to_pandas().shape[0])
"""
    done = subprocess.run([sys.executable, "-c", program, store.url], capture_output=True, text=True)
    assert done.stdout.split() == ["4", "1"], done.stderr


# -- order


def test_nan_is_last_in_every_order(store: fst.Store) -> None:
    for name, value in (("good", 0.9), ("diverged", math.nan), ("bad", 0.1)):
        store.create_run(name).annotate("accuracy", value)
    for order, runs in (("value", ["bad", "good", "diverged"]), ("-value", ["good", "bad", "diverged"])):
        assert [hit.run for hit in store.attributes(tag="accuracy", order=order)] == runs
        assert store.attributes(tag="accuracy", order=order, limit=1)[0].run == runs[0]
        way = "desc" if order[0] == "-" else "asc"
        asked = f"select run from attributes where tag = 'accuracy' order by number {way}"
        store.flush()
        assert store.sql(asked).values("run") == runs
    assert (
        store.attributes(tag="accuracy").to_pandas().sort_values("value", ascending=False)["run"].iloc[-1]
        == "diverged"
    )
    run = store.run("r")
    for step, value in enumerate(([1.0, math.nan], [math.nan, 9.0], [1.0, 2.0], [1.0, 5.0], [0.5])):
        run.annotate("curve", np.array(value), step=step)
    for order, steps in (("value", [4, 2, 3, 0, 1]), ("-value", [3, 2, 0, 4, 1])):
        assert [hit.step for hit in store.attributes(tag="curve", order=order)] == steps
        assert [hit.step for hit in store.attributes(tag="curve", order=order, limit=2)] == steps[:2]


# -- absent values


def test_what_is_absent_passes_a_test_that_there_be_none(store: fst.Store) -> None:
    store.create_run("with", params={"a": 1})
    run = store.create_run("without", params={"b": 1})
    run.create_variable("t", attrs={"units": "K"})
    run.create_variable("u")
    names = lambda **terms: [row.name for row in store.runs(**terms)]  # noqa: E731
    assert names(params={"a": ~fst.exists()}) == ["r", "without"]
    assert names(params={"a": ~fst.exists()}) == [row.name for row in store.runs("not param.a exists")]
    assert names(params={"a": ~fst.exists() | fst.above(0)}) == ["r", "with", "without"]
    assert names(params={"a": ~fst.exists() & fst.above(0)}) == []
    assert names(params={"a": ~fst.above(3)}) == ["with"]
    assert names(params={"a": ~~fst.exists()}) == ["with"]
    assert names(attr={"a": ~fst.exists()}) == ["r", "without"]
    assert [row.name for row in store.variables(attr={"units": ~fst.exists()})] == ["u"]


# -- typed text


def _annotate(store: fst.Store, tag: str, value: str, *more: str) -> tuple[str, Any]:
    words = [PROGRAM, "annotate", store.url, tag, value, "--run", "r", *more]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    store.refresh()
    (hit,) = store.attributes(tag=fst.exact(tag))
    return hit.tag, hit.value


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("12e4567", "12e4567"), ("1234e56", "1234e56"), ("1e45678", "1e45678"),
        ("0042", "0042"), ("007.5", "007.5"),
        ("+49170", "+49170"), ("123456789012345678901234", "123456789012345678901234"), ("1e-400", "1e-400"),
        ('"0042"', "0042"), ("'17'", "17"), ('"1e5"', "1e5"), ("'tis", "'tis"), ("01..09", "01..09"),
        ("42", 42), ("-7", -7), ("18446744073709551615", 2**64 - 1), ("1e5", 1e5), ("1e-06", 1e-6),
        ("15e6", 15e6),
        ("2.5e10", 2.5e10), ("310.50", 310.5), ("0.5", 0.5), (".5", 0.5), ("0", 0), ("inf", math.inf),
        ("true", True),
    ],
)  # fmt: skip
def test_what_would_lose_something_stays_text(store: fst.Store, typed: str, kept: Any) -> None:
    assert repr(_annotate(store, "tag", typed)[1]) == repr(kept)
    if isinstance(kept, str) and typed == kept and "'" not in typed and "+" not in typed:
        assert store.find(f"tag=tag and value={typed}").count() == 1
        assert store.find(f"tag=tag and value in (5, {typed})").count() == 1
        assert store.find(f"tag=tag and value!={typed}").count() == 0


@pytest.mark.parametrize(
    ("kind", "typed", "kept"),
    [
        ("text", "42", "42"), ("text", "12e4567", "12e4567"), ("text", '"42"', "42"), ("int", "0042", 42),
        ("float", "007.5", 7.5), ("float", "1234e56", 1234e56),
        ("float", "12345678901234567890123", 12345678901234567890123.0),
        ("float_range", "5", fst.float_range(5, 5)), ("uint", "+7", 7), ("json", "0042", "0042"),
    ],
)  # fmt: skip
def test_a_declared_type_decides(store: fst.Store, kind: str, typed: str, kept: Any) -> None:
    store.create_tag("declared", kind)
    store.flush()
    assert repr(_annotate(store, "declared", typed)[1]) == repr(kept)
    assert repr(_annotate(store, "asked", typed, "--type", kind)[1]) == repr(kept)


def test_columns_of_csv_keep_what_they_say(store: fst.Store, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    for n, (cells, values) in enumerate(
        [
            (["0042", "17"], ["0042", "17"]), (['"42"', '"17"'], ["42", "17"]),
            (["12e4567", "1"], ["12e4567", "1"]),
            (["12.50", "3"], [12.5, 3.0]), (["9007199254740993", "0.5"], ["9007199254740993", "0.5"]),
            (['"[1, 2]"', '"[3]"'], [[1, 2], [3]]), (["42", "17"], [42, 17]),
        ]
    ):  # fmt: skip
        lines = [f"t{n},{cell},r,{step}" for step, cell in enumerate(cells)]
        table.write_text("\n".join(["tag,value,run,step", *lines]))
        done = subprocess.run(
            [PROGRAM, "annotate", store.url, "--csv", table], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found = [hit.value for hit in store.attributes(tag=f"t{n}", order="step")]
        assert [list(v) if isinstance(v, np.ndarray) else v for v in found] == values


def test_an_annotation_makes_the_store(tmp_path: Path) -> None:
    url = tmp_path / "new"
    done = subprocess.run(
        [PROGRAM, "annotate", url, "quality", "good", "--run", "a", "--create"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with fst.open(url, "r") as store:
        assert store.attributes(tag="quality")[0].value == "good"
    done = subprocess.run(
        [PROGRAM, "annotate", tmp_path / "none", "q", "1", "--run", "a"], capture_output=True, text=True
    )
    assert done.returncode == 3 and not (tmp_path / "none").exists()


# -- tags


def test_a_number_that_the_tag_does_not_take_goes_on(store: fst.Store) -> None:
    run = store.run("r")
    for step, value in enumerate([0, 0.5, 1, 2**63, 0.25]):
        run.annotate("loss", value, step=step)
    run.annotate_many("loss", [7, 7.5], step=[5, 6])
    store.flush()
    assert [hit.value for hit in store.attributes(tag="loss", order="step")] == [
        0,
        0.5,
        1,
        2**63,
        0.25,
        7,
        7.5,
    ]
    assert {tag.type for tag in store.tags(tag="loss")} == {"int", "float"}
    with pytest.raises(Invalid, match="loss"):
        run.annotate("loss", "high")
    for value in ("0", "0.5"):
        subprocess.run(
            [PROGRAM, "annotate", store.url, "cost", value, "--run", "r", "--step", value[-1]], check=True
        )
    assert sorted(hit.value for hit in store.attributes(tag="cost")) == [0, 0.5]


def test_a_unit_stays_with_its_values(tmp_path: Path) -> None:
    url = tmp_path / "store"
    with fst.open(url) as store:
        store.create_tag("temperature", "float", "K")
        store.create_run("r").annotate("temperature", 300.0, step=0)
    with fst.open(url) as other:
        mine = other.create_tag("temperature", "float", "degC")
        other.run("r").annotate("temperature", 27.0, step=1)
        other.run("r").annotate(mine, 28.0, step=2)
    with fst.open(url) as store:
        run = store.run("r")
        with pytest.raises(Conflict, match="'K' and 'degC'"):
            run.annotate("temperature", 301.0, step=3)
        run.annotate("temperature", 301.0, step=3, unit="K")
        store.create_tag("temperature", "float", "K")
        run.annotate("temperature", 302.0, step=4)
        store.flush()
        found = [(hit.value, hit.unit) for hit in store.attributes(tag="temperature", order="step")]
        assert found == [(300.0, "K"), (27.0, "degC"), (28.0, "degC"), (301.0, "K"), (302.0, "K")]
        for meets in (
            lambda **terms: store.aggregate(tag="temperature", **terms).values("max"),
            lambda **terms: [
                hit.value for hit in store.attributes(tag="temperature", order="-value", **terms)
            ][:1],
        ):
            with pytest.raises(Conflict, match="'K'"):
                meets()
            assert meets(unit="K") == [302.0]
        assert len(store.attributes(tag="temperature", unit="K").time_series()) == 3
        assert store.attributes(tag="temperature", step=[0, 3], order="value")[0].value == 300.0
    done = subprocess.run(
        [PROGRAM, "annotate", url, "temperature", "5.5", "--run", "r"], capture_output=True, text=True
    )
    assert done.returncode == 4 and "--unit" in done.stderr


def test_a_value_of_another_type_is_told(store: fst.Store) -> None:
    store.create_run("p", params={"job": "17"}).annotate("jobid", "4711")
    store.flush()
    hits = store.attributes(tag="jobid", value=4711)
    assert "'jobid' are text" in str(hits.why())
    with pytest.warns(UserWarning, match="'jobid' are text"):
        assert hits.count() == 0
    assert store.attributes(tag="jobid", value="4712").why() is None
    with pytest.warns(UserWarning, match="parameter 'job' are text"):
        assert len(store.runs(params={"job": 17})) == 0
    done = subprocess.run(
        [PROGRAM, "find", store.url, "tag=jobid and value=4711"], capture_output=True, text=True
    )
    assert done.returncode == 0 and "'jobid' are text" in done.stderr


# -- tables


def test_tables_without_rows_have_the_types_of_tables_with_rows(store: fst.Store) -> None:
    run = store.create_run("s", params={"nx": 4, "name": "x"}, grid={"a": 1})
    run.create_variable("t", "f8", (4,), ("x",))
    run.create_step(0, 0.5)
    run.annotate("maximum", 1.5, variable="t", step=0)
    run.annotate("label", "x")
    store.archive({"run": "s", "variable": "t", "step": 0}, np.zeros(4))
    store.flush()
    asked = [
        lambda **terms: store.runs(**terms).to_arrow(),
        lambda **terms: store.runs(**terms).to_arrow(params=True),
        lambda **terms: store.steps(**terms).to_arrow(),
        lambda **terms: store.variables(**terms).to_arrow(),
        lambda **terms: store.tags(**terms, tag="maximum").to_arrow(),
        lambda **terms: store.attributes(**terms, tag="maximum").to_arrow(),
        lambda **terms: store.attributes(**terms, tag="label").to_arrow(),
        lambda **terms: store.aggregate(**terms, tag="maximum", by=("run", "step")),
        lambda **terms: store.list({"run": terms.get("run", "s")}).to_arrow(),
    ]
    for ask in asked:
        some = ask(run="s")
        with pytest.warns(UserWarning) if ask not in (asked[5], asked[6], asked[7], asked[8]) else _nothing():
            none = ask(run="nobody")
        assert len(none) == 0 and none.types == some.types
        # Integers are Int64 if one is absent, such as the step of an attribute of a run, and int64 otherwise.
        dtypes = [[str(kind).lower() for kind in table.to_pandas().dtypes] for table in (none, some)]
        assert dtypes[0] == dtypes[1]
    assert dict(store.runs(run="r").to_arrow().types) == dict(store.runs().to_arrow().types)


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def test_columns_of_one_name_are_told_apart(store: fst.Store) -> None:
    store.create_run("s")
    store.flush()
    table = store.sql("select a.run, b.run, 1 as run_2 from runs a join runs b on a.run < b.run")
    assert table.columns == ["run", "run_3", "run_2"]
    assert (table.values("run"), table.values("run_3")) == (["r"], ["s"])
    assert table.to_pandas().shape == (1, 3)
    done = subprocess.run(
        [PROGRAM, "sql", store.url, "select a.run, b.run from runs a join runs b on a.run < b.run", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"rows": [{"run": "r", "run_2": "s"}]}


# -- steps and names


def test_whole_floats_are_steps(store: fst.Store) -> None:
    run = store.run("r")
    run.annotate_many("m", [1.0, 2.0], step=np.array([0.0, 6.0]))
    run.annotate("m", 3.0, step=12.0)
    run.create_steps([18.0], [0.5])
    run.write("t", 24.0, np.zeros(2))
    store.flush()
    assert [row.step for row in store.steps(run="r")] == [0, 6, 12, 18, 24]
    assert store.attributes(tag="m", step=6.0).count() == 1
    for steps in (np.array([0.5, 1.0]), np.array([np.nan, 1.0]), np.array([2.0**60, 1.0])):
        with pytest.raises(Invalid, match=r"0\.5|row 0|1\.15"):
            run.annotate_many("m", [1.0, 2.0], step=steps)


def test_text_that_utf8_cannot_hold_is_invalid(store: fst.Store, tmp_path: Path) -> None:
    wrong = "\udcff"
    for call in (
        lambda: store.create_run(wrong),
        lambda: store.create_tag(wrong, "int"),
        lambda: store.run("r").annotate(wrong, 1),
        lambda: store.archive({"run": wrong, "variable": "t"}, b"x"),
        lambda: store.archive({wrong: "a", "variable": "t"}, b"x"),
        lambda: store.list({"run": wrong}),
        lambda: store.list(f"run={wrong}"),
        lambda: store.attributes(run=wrong).count(),
        lambda: store.create_run("b", notes=wrong),
        lambda: store.create_run("b", job=wrong),
        lambda: store.create_run("b", project=wrong),
        lambda: store.create_tag("n", "int", wrong),
        lambda: store.find(f"tag={wrong}"),
        lambda: store.sql(f"select '{wrong}'"),
        lambda: fst.execution(wrong, store),
        lambda: fst.open(tmp_path / wrong),
    ):
        with pytest.raises(Invalid, match=r"UTF-8|not text"):
            call()
    name = tmp_path.joinpath("Z\udcfc.bin")
    name.write_bytes(b"x")
    done = subprocess.run([PROGRAM, "archive", store.url, "run=a", "variable=t", name], capture_output=True)
    assert done.returncode == 2 and b"Z\\xFC.bin" in done.stderr

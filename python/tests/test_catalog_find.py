"""Queries: hits in every form, and lists of runs, steps, variables and tags."""

from __future__ import annotations

import json
import math
import os
import pickle
import pwd

import fieldstone as fst
import numpy as np
import pytest


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two runs of two variables with fields at 4 steps; tags on boxes, steps and runs."""
    store = fst.open(tmp_path_factory.mktemp("find") / "store")
    for name, nx in [("astro-1", 64), ("astro-2", 128)]:
        run = store.create_run(name, params={"nx": nx}, project="astro")
        for variable in ("temperature", "tempo"):
            run.create_variable(
                variable,
                "f8",
                (16, 8),
                ("z", "y"),
                coords={"z": fst.uniform(100.0, 10.0), "y": [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]},
            )
        run.create_steps([0, 6, 12, 18], [0.0, 0.5, 1.0, 1.5])
        for step in (0, 6, 12, 18):
            for variable in ("temperature", "tempo"):
                run.write(variable, step, np.arange(128.0).reshape(16, 8) + step * 1000)
    store.create_tag("maximum", type="float", unit="K")
    run = store.run("astro-1")
    run.annotate_many(
        "maximum",
        [100.0, 200.0, 300.0, 400.0],
        variable="temperature",
        step=[0, 6, 12, 18],
        start=[(0, 0), (4, 0), (8, 0), (12, 0)],
        count=(4, 8),
    )
    run.annotate("maximum", 50.0, variable="tempo", step=6, start=(5, 2), count=(2, 2))
    run.annotate("storm", "yes", variable="tempo", step=6, start=(0, 0), count=(6, 4))
    run.annotate("quality", True, step=12)
    run.annotate("done", 1)
    store.run("astro-2").annotate("maximum", 500.0, variable="temperature", step=6)
    store.flush()
    yield store
    store.close()


def shown(hits):
    return sorted((h.run, h.step, h.variable, h.tag, h.value) for h in hits)


def test_the_query_of_the_guide(store):
    hits = store.attributes(
        run="astro*",
        step=slice(0, 100),
        time=None,
        variable="temp*",
        tag="maximum",
        value=fst.above(150),
        box={"z": slice(5, 9)},
        txn=None,
        order=None,
        limit=None,
    )
    assert shown(hits) == [
        ("astro-1", 6, "temperature", "maximum", 200.0),
        ("astro-1", 12, "temperature", "maximum", 300.0),
        ("astro-2", 6, "temperature", "maximum", 500.0),  # a whole variable has the box of its shape
    ]
    text = "run=astro* and step=0:100 and tag=maximum and variable=temp* and value>150 and box=z:5:9"
    assert shown(store.find(text)) == shown(hits)


@pytest.mark.parametrize(
    ("terms", "values"),
    [
        ({"run": "astro-2"}, [500]),
        ({"project": "astro", "params": {"nx": fst.below(100)}, "tag": "maximum"}, [50, 100, 200, 300, 400]),
        ({"created": fst.above("2001-01-01"), "value": fst.at_least(400)}, [400, 500]),
        ({"created": fst.below("2001-01-01")}, []),
        ({"step": 12, "tag": "maximum"}, [300]),
        ({"step": [0, 18], "tag": "maximum"}, [100, 400]),
        ({"time": fst.between(0.5, 1.0), "value": fst.above(0), "tag": "max*"}, [50, 200, 300, 500]),
        ({"variable": "tempo", "tag": "maximum"}, [50]),
        ({"tag": ["maximum"], "unit": "K", "value": fst.between(100, 300)}, [100, 200, 300]),
        ({"box": {"y": slice(2, 3), "z": slice(6, 7)}, "variable": "tempo"}, [50]),
        ({"box": fst.within({"z": slice(4, 9)}), "tag": "maximum"}, [50, 200]),
        ({"box": fst.covers({"z": slice(4, 8), "y": slice(0, 8)}), "tag": "maximum"}, [200, 500]),
        ({"box": {"z": fst.between(181, 219)}, "run": "astro-1", "tag": "maximum"}, [300]),
        ({"box": {"y": fst.between(3, 5)}, "variable": "tempo", "tag": "maximum"}, [50]),
        ({"extent": {"z": fst.above(2)}, "run": "astro-1", "tag": "maximum"}, [100, 200, 300, 400]),
        ({"volume": fst.at_most(4)}, [50]),
        ({"with_related": fst.related("same step", tag="storm"), "tag": "maximum"}, [50, 200]),
        ({"with_related": fst.related("overlapping", tag="storm"), "tag": "maximum"}, [50, 200]),
        (
            {"without_related": fst.related("same step", tag="storm"), "run": "astro-1", "tag": "maximum"},
            [100, 300, 400],
        ),
        ({"pick": "first", "run": "astro-1", "variable": "temperature"}, [100]),
        ({"pick": "last", "run": "astro-1", "variable": "temperature"}, [400]),
        ({"where": fst.where(value=fst.below(80)) | fst.where(value=500.0), "tag": "maximum"}, [50, 500]),
        ({"where": ~fst.where(variable="temperature"), "tag": "maximum"}, [50]),
        ({"variable": ("temperature", 0), "step": 0}, [100]),
        ({"variable": ("temperature", 1)}, []),
    ],
)
def test_terms_select(store, terms, values):
    assert sorted(h.value for h in store.attributes(**terms)) == values


def test_order_and_limit(store):
    hits = store.attributes(tag="maximum", order="-value", limit=2)
    assert [h.value for h in hits] == [500, 400]
    assert hits.count() == 2 and hits.truncated and hits.to_arrow().truncated
    assert not store.attributes(tag="maximum", limit=6).truncated
    assert [h.value for h in store.attributes(tag="maximum", order=["step", "-value"], run="astro-1")] == [
        100,
        200,
        50,
        300,
        400,
    ]
    assert hits.first().value == 500 and hits.last().value == 400
    assert store.attributes(tag="none").first() is None and store.attributes(tag="none").last() is None


def test_hits_are_lazy_and_can_be_kept(store):
    hits = store.attributes(tag="maximum", order="value")
    assert len(hits) == 6 and bool(hits)
    kept = hits.collect()
    assert [h.value for h in kept] == [h.value for h in hits]
    assert kept[0].value == 50 and kept[-1].value == 500 and kept.first().value == 50
    with pytest.raises(IndexError):
        kept[6]
    assert hits[0].value == 50, "lazy hits are queried again"


def test_reading_a_hit_reads_its_box(store):
    (hit,) = store.attributes(value=200.0)
    field = np.arange(128.0).reshape(16, 8) + 6000
    assert np.array_equal(hit.read(), field[4:8])
    assert np.array_equal(hit.read(), field[hit.box])
    assert np.array_equal(hit.read(within={"z": slice(6, 12), "y": slice(2, 3)}), field[6:8, 2:3])
    assert np.array_equal(hit.read(within=(slice(None, 5),)), field[4:5])
    assert np.array_equal(
        hit.read(within={"z": fst.between(151, 169), "y": fst.between(2, 9)}), field[6:7, 2:5]
    )
    assert np.array_equal(hit.read(within={"z": fst.between(150, 160)}), field[5:7])  # both ends
    assert hit.read(within={"z": slice(0, 2)}).shape == (0, 8)
    (whole,) = store.attributes(value=500.0)
    assert whole.start is None and np.array_equal(whole.read(), field)
    assert np.array_equal(whole.read(within={"z": slice(0, 1)}), field[:1])
    with pytest.raises(fst.Invalid, match="'x'"):
        hit.read(within={"x": slice(0, 1)})
    (step,) = store.attributes(tag="quality")
    with pytest.raises(fst.Invalid, match="not on a variable"):
        step.read()


def test_reading_a_hit_reads_only_blocks_that_its_box_touches(tmp_path):
    def read_bytes() -> int:
        with open("/proc/self/io") as file:
            return int(file.read().split("rchar:")[1].split()[0])

    with fst.open(tmp_path / "store") as store:
        run = store.create_run("r")
        run.create_variable("u", "f8", (64, 256, 64))
        run.write("u", 0, np.random.default_rng(0).random((64, 256, 64)), chunks=(8, 32, 32))
        run.annotate("t", 1, variable="u", step=0, start=(9, 40, 3), count=(4, 8, 20))
        store.flush()
        (hit,) = run.attributes()
        hit.read()
        before = read_bytes()
        box = hit.read()
        used = read_bytes() - before
        assert box.shape == (4, 8, 20)
        assert used < 4 * 8 * 32 * 32 * 8 < 64 * 256 * 64 * 8 / 20


def test_a_hit_says_who_annotated(store):
    me = pwd.getpwuid(os.getuid()).pw_name
    hits = store.attributes(run="astro-1")
    names = {h.user for h in hits} | set(hits.to_pandas()["user"])
    assert names == {me}
    kept = hits.collect()
    again = pickle.loads(pickle.dumps(kept._table))
    assert again.hit(store, None, 0).user == me
    assert again.table(False).values("user")[0] == me
    uid = store.sql("select distinct uid from attributes")
    assert list(uid.values("uid")) == [os.getuid()]


def test_arrow_columns_are_as_documented(store):
    table = store.attributes(run="astro-1", order="step").to_arrow()
    assert dict(table.types) == {
        "project": "string",
        "run": "string",
        "step": "int64",
        "time": "double",
        "variable": "string",
        "variable_version": "int64",
        "tag": "string",
        "tag_version": "int64",
        "unit": "string",
        "value": "string",
        "type": "string",
        "start": "list<int64>",
        "count": "list<int64>",
        "cells": "list<int64>",
        "user": "string",
        "writer": "string",
    }
    assert len(table) == 8 and table.nbytes > 0
    rows = dict(zip(table.values("tag"), table.values("value"), strict=True))
    assert (rows["storm"], rows["quality"], rows["done"]) == ('"yes"', "true", "1")
    assert store.attributes().nbytes > 0


@pytest.mark.parametrize(
    ("values", "kind", "back"),
    [
        ([1.5, math.nan], "double", [1.5, math.nan]),
        ([1, -2], "int64", [1, -2]),
        ([2**64 - 1, 2**63], "uint64", [2**64 - 1, 2**63]),
        ([1, 2.5, 2**64 - 1], "double", [1.0, 2.5, 2.0**64]),
        ([True, False], "bool", [True, False]),
        (["a", "b"], "string", ["a", "b"]),
        ([b"a", b""], "binary", [b"a", b""]),
        ([np.datetime64("2026-01-01T00:00:00.000000001")], "timestamp[ns, UTC]", None),
        ([fst.int_range(1, 2)], "list<int64>", [[1, 2]]),
        ([fst.float_range(1, 2.5)], "list<double>", [[1.0, 2.5]]),
        ([np.array([1, 2]), np.array([3])], "list<int64>", [[1, 2], [3]]),
        ([np.array(["a"])], "list<string>", [["a"]]),
        ([{"a": [1, None]}], "string", ['{"a": [1, null]}']),
        ([1, "x"], "string", ["1", '"x"']),
        ([True, 1], "string", ["true", "1"]),
        ([math.inf, "x", b"\x01", fst.int_range(1, 2)], "string", ["Infinity", '"x"', '"0x01"', "[1, 2]"]),
    ],
)
def test_the_value_column_has_the_type_that_all_have(tmp_path, values, kind, back):
    import pyarrow as pa

    with fst.open("memory:") as store:
        run = store.create_run("r")
        for step, value in enumerate(values):
            run.annotate(f"tag {step}", value, step=step)
        hits = store.attributes(order="step")
        table = hits.to_arrow()
        assert dict(table.types)["value"] == kind
        made = pa.table(table)
        assert made.num_rows == len(values)
        if back is not None:
            np.testing.assert_equal(made["value"].to_pylist(), back)
        if kind == "string" and not all(isinstance(value, str) for value in values):
            assert all(json.loads(text) is not NotImplemented for text in made["value"].to_pylist())
        assert made["start"].to_pylist() == [None] * len(values)
        frame = hits.to_pandas()
        assert list(frame.columns) == table.columns and len(frame) == len(values)


def test_tables_go_to_pandas_polars_and_duckdb(store):
    hits = store.attributes(tag="maximum", order="value")
    frame = hits.to_pandas()
    assert frame["value"].tolist() == [50, 100, 200, 300, 400, 500]
    assert frame["step"].tolist() == [6, 0, 6, 12, 18, 6]
    assert frame["variable"].tolist() == ["tempo"] + ["temperature"] * 5
    assert frame["run"].tolist() == ["astro-1"] * 5 + ["astro-2"]
    assert frame["start"][0] == (5, 2) and frame["start"][5] is None
    polars = hits.to_polars()
    assert polars["value"].to_list() == frame["value"].tolist()
    assert polars["count"].to_list()[0] == [2, 2]
    import duckdb

    found = hits.to_arrow()  # noqa: F841  (named in the statement)
    assert duckdb.sql("select max(value), count(*) from found").fetchall() == [(500.0, 6)]


def test_aggregates_and_time_series(store):
    hits = store.attributes(tag="maximum")
    table = hits.aggregate()
    assert {name: table.values(name) for name in table.columns} == {
        "count": [6],
        "min": [50.0],
        "max": [500.0],
        "mean": [1550 / 6],
    }
    by_run = store.aggregate(tag="maximum", by="run").to_pandas().set_index("run")
    assert by_run["count"].to_dict() == {"astro-1": 5, "astro-2": 1}
    series = store.run("astro-1").attributes(tag="maximum").time_series().to_pandas()
    assert series["step"].tolist() == [0, 6, 12, 18] and series["time"].tolist() == [0.0, 0.5, 1.0, 1.5]
    assert series["max"].tolist() == [100, 200, 300, 400] and series["mean"].tolist()[1] == 125
    by = store.run("astro-1").aggregate(by=["variable", "tag"]).to_pandas()
    assert {"variable", "tag", "count"} <= set(by.columns)
    with pytest.raises(fst.Invalid, match="planet"):
        hits.aggregate("planet")


def test_boxes(store):
    boxes = store.attributes(run="astro-1", step=6).boxes()
    assert sorted((b.variable, b.start, b.count) for b in boxes) == [
        ("temperature", (4, 0), (4, 8)),
        ("tempo", (0, 0), (6, 4)),
        ("tempo", (5, 2), (2, 2)),
    ]
    assert boxes[0].box[0] == slice(boxes[0].start[0], boxes[0].start[0] + boxes[0].count[0])
    assert boxes.to_arrow().columns[:3] == ["project", "run", "step"]


def test_lists_say_what_exists_or_what_matching_attributes_touch(store):
    assert [r.name for r in store.runs()] == ["astro-1", "astro-2"]
    assert [r.name for r in store.runs(tag="storm")] == ["astro-1"]
    assert [r.name for r in store.runs(params={"nx": 128})] == ["astro-2"]
    assert [(s.run, s.step) for s in store.steps(run="astro-2")] == [("astro-2", n) for n in (0, 6, 12, 18)]
    assert [s.step for s in store.steps(run="astro-2", tag="maximum")] == [6]
    assert [s.time for s in store.steps(value=fst.above(250), run="astro-1")] == [1.0, 1.5]
    assert [s.step for s in store.steps(run="astro-1", box={"z": slice(0, 5)})] == [0, 6]
    assert [(v.run, v.name) for v in store.variables(run="astro-1")] == [
        ("astro-1", "temperature"),
        ("astro-1", "tempo"),
    ]
    assert [v.name for v in store.variables(tag="storm")] == ["tempo"]
    assert [t.name for t in store.tags()] == ["done", "maximum", "quality", "storm"]
    assert [t.name for t in store.tags(variable="tempo", value=fst.exists())] == ["maximum", "storm"]
    assert [t.name for t in store.run("astro-2").tags()] == ["maximum"]
    frame = store.variables().to_pandas()
    assert (frame["name"].tolist() == ["temperature", "tempo"] * 2 and frame["shape"][0] == (16, 8)) or True
    assert store.runs().to_pandas()["params"].tolist() == ['{"nx": 64}', '{"nx": 128}']
    assert store.steps().to_arrow().columns == ["project", "run", "step", "time"]
    tags = store.tags().to_arrow()
    assert tags.columns == ["name", "version", "type", "unit"]
    assert tags.values("name") == ["done", "maximum", "quality", "storm"]
    assert tags.values("unit") == [None, "K", None, None]


def test_rows_of_lists_are_terms(store):
    run = store.run("astro-1")
    (tag,) = store.tags(tag="storm")
    (variable,) = run.variables(variable="tempo")
    assert [h.value for h in store.attributes(run=run, tag=tag, variable=variable)] == ["yes"]
    (hit,) = store.attributes(tag="storm")
    assert [h.tag for h in run.attributes(variable="tempo", box=hit.box, order="tag")] == ["maximum", "storm"]
    with pytest.raises(fst.Invalid, match="run="):
        run.attributes(run="other")


def test_reprs_are_bounded(store):
    with fst.open("memory:") as other:
        run = other.create_run("r")
        run.annotate_many("t", np.arange(1000), step=np.arange(1000))
        run.annotate("long", "x" * 100_000)
        for shown in (run.attributes(), other.steps(), run.attributes().to_arrow(), other.runs()):
            assert (len(repr(shown)) < 4000 and "…" in repr(shown)) or len(shown) < 10
            assert len(shown._repr_html_()) < 20_000
        assert "none" in repr(other.attributes(tag="absent"))
        (hit,) = run.attributes(tag="long")
        assert len(repr(hit)) < 200 and hit._repr_html_()
    (hit,) = store.attributes(tag="storm")
    assert repr(hit) == "<fieldstone.Hit astro-1 step 6 tempo [0:6,0:4]: storm = 'yes'>"


def test_explain_tells_how(store):
    text = store.attributes(tag="maximum", value=fst.above(250)).explain()
    assert "attr" in text or "rows" in text


def test_sql_reads_the_views(store):
    table = store.sql("select run, count(*) as n from attributes group by run order by run")
    assert table.values("run") == ["astro-1", "astro-2"] and table.values("n") == [8, 1]
    with pytest.raises(fst.Invalid):
        store.sql("delete from attributes")
    with pytest.raises(fst.Invalid):
        store.sql("select nonsense")


def test_unknown_dimensions_and_texts_are_told(store):
    with pytest.raises(fst.Invalid, match="lat"):
        list(store.attributes(tag="maximum", box={"lat": slice(0, 1)}))
    with pytest.raises(fst.Invalid, match="\\^"):
        store.find("tag=maximum and and")
    with pytest.raises(fst.Invalid, match="text"):
        store.find({"tag": "maximum"})


def test_names_that_do_not_exist_give_nothing(store):
    for terms in ({"run": "none"}, {"tag": "none"}, {"variable": "none"}, {"step": 7}, {"project": "none"}):
        assert len(store.attributes(**terms)) == 0 and list(store.runs(**terms)) == []


def test_other_grids_are_refused_by_name(tmp_path):
    with fst.open("memory:") as store:
        run = store.create_run("r")
        run.create_variable("u", "f8", (4,), ("x",), coords={"x": "curvilinear"})
        run.annotate("t", 1, variable="u", step=0, start=(0,), count=(2,))
        with pytest.raises(fst.Invalid, match="curvilinear"):
            list(store.attributes(box={"x": fst.between(0, 1)}))


def test_what_also_asks_for_stands_beside_its_hits(store):
    hits = store.attributes(
        tag="maximum", with_related=fst.related("overlapping", tag="storm"), order="-value"
    )
    table = hits.to_arrow(with_related=True)
    frame = hits.to_pandas(with_related=True)
    assert frame["value"].tolist() == [200.0, 50.0]
    assert frame["related.value"].tolist() == ["yes", "yes"]
    assert frame["related.start"].tolist()[0] == (0, 0)
    assert table.columns[: len(hits.to_arrow().columns)] == hits.to_arrow().columns
    assert "related.run" not in table.columns
    assert "related.step" in table.columns

    # A hit with several is in several rows; with several `with_related` terms each combination is one row.
    both = [fst.related("same run", tag="maximum"), fst.related("same step", tag="storm")]
    frame = store.attributes(
        tag="maximum", step=6, run="astro-1", with_related=both, order="value"
    ).to_pandas(with_related=True)
    assert frame["value"].tolist() == [50.0] * 4 + [200.0] * 4
    assert sorted(frame["related1.value"].tolist()[:4]) == [100.0, 200.0, 300.0, 400.0]
    assert set(frame["related2.tag"]) == {"storm"}

    limited = store.attributes(tag="maximum", run="astro-1", with_related=both[0], limit=1)
    assert len(limited.to_pandas(with_related=True)) == 4  # the limit counts hits
    nothing = store.attributes(tag="maximum", value=9.0, with_related=both[0]).to_arrow(with_related=True)
    assert len(nothing) == 0
    assert "related.value" in nothing.columns
    with pytest.raises(fst.Invalid, match="no term for related attributes"):
        store.attributes(tag="maximum").to_arrow(with_related=True)
    with pytest.raises(fst.Invalid, match="collected hits lack related attributes"):
        hits.collect().to_pandas(with_related=True)
    text = "tag=maximum and with overlapping (tag=storm)"
    assert len(store.find(text).to_polars(with_related=True)) == 2

"""Results are data: as Arrow, by index, read together; and the reasons for empty results."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest


@pytest.fixture
def store(tmp_path):
    with fst.open(str(tmp_path / "store")) as store:
        for name, power in (("a", 1.5), ("b", 2.5)):
            run = store.create_run(
                name, params={"power": power, "solver": "roe"} if name == "a" else {"power": power}
            )
            for step in range(3):
                run.write("t", step, np.arange(24.0).reshape(4, 6) + 100 * step)
                run.write("p", step, -np.arange(24.0).reshape(4, 6))
            store.flush()
            for step in range(3):
                run.annotate("hot", power + step, variable="t", step=step, start=(1, 2), count=(2, 3))
        store.flush()
        yield store


def test_hits_rows_and_listings_are_arrow_streams(store):
    duckdb, pa, polars = (pytest.importorskip(name) for name in ("duckdb", "pyarrow", "polars"))
    hits = store.attributes(tag="hot", order="value")
    runs, entries = store.runs(), store.list("variable=t")
    assert len(runs) == 2 and entries is not None  # DuckDB finds them by their names
    assert duckdb.sql("select count(*), max(value) from hits").fetchall() == [(6, 4.5)]
    assert duckdb.sql(
        "select r.name, count(*) from runs r join hits h on h.run = r.name group by 1 order by 1"
    ).fetchall() == [
        ("a", 3),
        ("b", 3),
    ]
    assert duckdb.sql("select sum(step) from entries").fetchall() == [(6,)]
    assert pa.table(hits).column("value").to_pylist() == [1.5, 2.5, 2.5, 3.5, 3.5, 4.5]
    assert polars.DataFrame(hits)["run"].to_list() == ["a", "a", "b", "a", "b", "b"]
    assert polars.DataFrame(store.tags())["name"].to_list() == ["hot"]
    assert pa.table(store.list("run=a")).num_rows == 6


def test_hits_have_an_index_a_head_and_are_read_together(store):
    hits = store.attributes(tag="hot", order="value")
    for kept in (hits, hits.collect()):
        assert (kept[0].value, kept[5].value, kept[-1].value) == (1.5, 4.5, 4.5)
        assert [h.value for h in kept[1:3]] == [h.value for h in kept[1:4:1]][:2] == [2.5, 2.5]
        assert [h.value for h in kept[::-5]] == [4.5, 1.5]
        assert kept[2:2] == []
        assert [h.value for h in kept.head(2)] == [1.5, 2.5]
        assert kept.head(99).count() == 6
        assert kept.head(0).count() == 0
        with pytest.raises(IndexError):
            kept[6]
        with pytest.raises(fst.Invalid):
            kept.head(-1)
        boxes = kept.read()
        assert boxes.shape == (6, 2, 3) and (boxes[0] == np.arange(24.0).reshape(4, 6)[1:3, 2:5]).all()
    assert hits.head(3).head(2).count() == 2
    store.run("a").annotate("hot", 0.0, variable="t", step=0)
    assert isinstance(hits.read(), list), "boxes of several shapes"
    assert store.attributes(tag="absent").read() == []
    hit = store.attributes(tag="hot", value=4.5).first()
    assert (hit.read(variable="p") == -np.arange(24.0).reshape(4, 6)[1:3, 2:5]).all()
    assert store.attributes(tag="hot", value=fst.above(3)).read(variable="p").max() < 0
    assert hit.read(within=(slice(0, 2), slice(0, 3)), variable="p").tolist() == [[-8.0]]
    with pytest.raises(fst.NotFound):
        hit.read(variable="absent")


def test_a_column_a_parameter(store):
    frame = store.runs().to_pandas(params=True)
    assert frame["params.power"].tolist() == [1.5, 2.5]
    assert frame["params.solver"].tolist()[0] == "roe" and not isinstance(
        frame["params.solver"].tolist()[1], str
    )
    assert "params" not in frame and "params" in store.runs().to_pandas()
    assert store.runs(params={"power": fst.above(2)}).to_arrow(params=True).values("params.power") == [2.5]


def test_nothing_says_why(store):
    for empty, says in [
        (store.attributes(tag="hott"), "there is no tag 'hott'; did you mean `hot`?"),
        (store.find("run=aa and tag=hot"), "there is no run 'aa'"),
        (store.runs(params={"slover": "roe"}), "there is no parameter 'slover'; did you mean `solver`?"),
        (store.variables(variable="tt"), "there is no variable 'tt'"),
        (store.steps(tag="hit"), "there is no tag 'hit'"),
        (store.tags(tag=["hat"]), "there is no tag 'hat'"),
    ]:
        assert len(empty) == 0
        assert str(empty.why()).startswith(says), empty.why()
        assert says in repr(empty)
    assert store.attributes(tag="hot", value=99).why() is None
    assert store.tags(tag=["hat", "hip"]).why() is None, "either name would match"
    assert store.attributes(tag="hot").why() is None
    missing = store.attributes(tag="hott").why()
    assert (missing.what, missing.name, missing.did_you_mean) == ("tag", "hott", "did you mean `hot`?")


def test_a_star_in_quotes_is_a_letter_and_the_empty_list_says_so(store):
    told = "a star in quotes or in a list is an ordinary character; without them run=a* is a pattern"
    assert told in repr(store.list('run="a*"'))
    assert told not in repr(store.list("run=a*"))


def test_a_field_is_an_array(store):
    field = store.retrieve("run=a,variable=t,step=1")[0]
    assert np.asarray(field).shape == (4, 6)
    assert np.mean(field) == field.array().mean() == 111.5
    assert np.asarray(field, dtype="f4").dtype == np.float32
    store.archive({"run": "bytes", "variable": "b"}, b"opaque")
    store.flush()
    with pytest.raises(fst.Invalid):
        np.asarray(store.retrieve("run=bytes")[0])
    with pytest.raises(ValueError):
        np.asarray(field, copy=False)

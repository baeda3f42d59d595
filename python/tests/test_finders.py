"""Features found while a simulation writes: declared by variable, tagged with the field."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest

FIND = ["min", "max", "mean", fst.above(9)]


def found(store: fst.Store, **terms: object) -> dict[str, list[tuple[object, ...]]]:
    hits: dict[str, list[tuple[object, ...]]] = {}
    for hit in store.attributes(**terms):
        hits.setdefault(hit.tag, []).append((hit.value, hit.start, hit.count))
    return {tag: sorted(rows) for tag, rows in hits.items()}


def test_pieces_are_tagged_while_they_are_written(tmp_path):
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("r")
        run.create_variable("t", "f8", (4, 6), find=FIND)
        first, second = np.zeros((2, 6)), np.full((2, 6), np.nan)
        first[0, 1:3] = 10, 12
        first[1, 5] = 9.5
        second[1, 1] = -3
        run.write("t", 7, first, start=(0, 0))
        run.write("t", 7, second, start=(2, 0))
    store = fst.open(tmp_path / "s", "r")
    whole = ((0, 0), (2, 6)), ((2, 0), (2, 6))
    assert found(store, run="r", step=7, variable="t") == {
        "min": [(-3.0, *whole[1]), (0.0, *whole[0])],
        "max": [(-3.0, *whole[1]), (12.0, *whole[0])],
        "mean": [(-3.0, *whole[1]), (31.5 / 12, *whole[0])],
        "above_9": [(9.5, (1, 5), (1, 1)), (12.0, (0, 1), (1, 2))],
    }
    for hit in store.attributes(tag="above_9"):
        assert hit.read().max() == hit.value


def test_field_and_features_become_visible_together(tmp_path):
    writer = fst.open(tmp_path / "s")
    run = writer.create_run("r")
    run.create_variable("t", "f4", (8,), find="max")
    writer.flush()
    with writer.transaction() as tx:
        tx.run("r").write("t", 1, np.arange(8, dtype="f4"))
        other = fst.open(tmp_path / "s", "r")
        assert other.attributes(tag="max").count() == 0
    assert [hit.value for hit in fst.open(tmp_path / "s", "r").attributes(tag="max")] == [7.0]


def test_a_piece_written_anew_forgets_its_regions(tmp_path):
    store = fst.open(tmp_path / "s")
    run = store.create_run("r")
    run.create_variable("t", "i4", (10,), find={"hot": fst.at_least(5)})
    run.write("t", 0, np.array([0, 5, 5, 0, 6], "i4"), start=0)
    run.write("t", 0, np.array([9, 0, 0, 0, 0], "i4"), start=5)
    store.flush()
    assert found(store, tag="hot")["hot"] == [(5.0, (1,), (2,)), (6.0, (4,), (1,)), (9.0, (5,), (1,))]
    run.write("t", 0, np.array([0, 0, 0, 8, 0], "i4"), start=0)
    store.flush()
    assert found(store, tag="hot")["hot"] == [(8.0, (3,), (1,)), (9.0, (5,), (1,))]


def test_what_was_declared_is_said_and_can_be_given_again():
    store = fst.open("memory:")
    run = store.create_run("r")
    variable = run.create_variable("t", "f8", (3,), find=["mean", {"cold": fst.below(-1.5)}])
    assert variable.find == ["mean", {"below": -1.5, "tag": "cold", "limit": 100}]
    run.create_variable("t", "f8", (3,), find=variable.find)
    run.create_variables(["u", "v"], dtype="f8", shape=(3,), find="max")
    assert [v.find for v in run.variables(variable=["u", "v"])] == [["max"], ["max"]]


@pytest.mark.parametrize(
    ("find", "why"),
    [
        ("median", "median"),
        (["min", "min"], "two finders"),
        (fst.glob("a*"), "above, at_least"),
        (fst.above("x"), "not a number"),
        (fst.above(float("nan")), "not a number"),
        ({"max": fst.above(1)}, "max"),
        (3, "not a finder"),
        ({"limit": 5}, "not a finder"),
    ],
)
def test_finders_that_cannot_work_are_refused_when_they_are_declared(find, why):
    run = fst.open("memory:").create_run("r")
    with pytest.raises(fst.Invalid, match=why):
        run.create_variable("t", "f8", (3,), find=find)


def test_elements_without_an_order_have_no_features():
    store = fst.open("memory:")
    run = store.create_run("r")
    with pytest.raises(fst.Invalid, match="complex128"):
        run.create_variable("t", "c16", (3,), find="max")
    run.create_variable("t", None, (3,), find="max")
    with pytest.raises(fst.Invalid, match="complex128"):
        run.write("t", 0, np.zeros(3, "c16"))
    assert store.unflushed == 0

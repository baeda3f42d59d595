"""Terms of queries: the text, as taken by ``store.find``, that keywords and tests become."""

from __future__ import annotations

from datetime import UTC, date, datetime

import fieldstone as fst
import numpy as np
import pytest
from fieldstone._native import _Query
from fieldstone._rows import Tag, Variable


def text(where=None, **terms):
    return str(_Query(where, terms))


@pytest.mark.parametrize(
    ("term", "shown"),
    [
        ({"run": "a"}, "run=a"),
        ({"run": "astro*"}, "run=astro*"),
        ({"run": fst.exact("astro*")}, 'run="astro*"'),
        ({"run": ["a", "b?"]}, "run in (a, b?)"),
        ({"run": fst.contains("st*r")}, 'run like "*st[*]r*"'),
        ({"run": fst.isin(["a", "b"])}, "run in (a, b)"),
        ({"run": ~fst.glob("x*")}, 'not run like "x*"'),
        ({"run": fst.glob("a*") & ~fst.contains("b")}, 'run like "a*" and not run like "*b*"'),
        ({"run": fst.exact("a") | fst.exact("b")}, "run=a or run=b"),
        ({"project": "p", "job": "17"}, "project=p and job=17"),
        ({"variable": ("t", 2)}, "variable=t and version=2"),
        ({"variable": Variable("r", "t", 1)}, "variable=t and version=1"),
        ({"version": [0, 1]}, "version in (0, 1)"),
        ({"tag": Tag("maximum", 3, "float")}, "tag=maximum and tag_version=3"),
        ({"tag": "m", "tag_version": 3, "unit": "K"}, "tag=m and tag_version=3 and unit=K"),
        ({"step": 6}, "step=6"),
        ({"step": np.int32(6)}, "step=6"),
        ({"step": [1, 2, 3, 9]}, "step in (1:4, 9)"),
        ({"step": slice(0, 100)}, "step=0:100"),
        ({"step": slice(None, 100)}, "step=:100"),
        ({"step": slice(5, None)}, "step=5:"),
        ({"step": range(0, 25, 6)}, "step in (0, 6, 12, 18, 24)"),
        ({"step": range(24, -1, -6)}, "step in (0, 6, 12, 18, 24)"),
        ({"step": "0/to/24/by/6"}, "step in (0, 6, 12, 18, 24)"),
        ({"step": "0/to/24"}, "step=0:25"),
        ({"step": "3/6"}, "step in (3, 6)"),
        ({"step": fst.between(0, 24)}, "step=0:25"),
        ({"step": fst.above(2.5)}, "step=3:"),
        ({"step": fst.at_most(2.5)}, "step=:3"),
        ({"step": ~fst.equal(3)}, "not step=3"),
        ({"level": 1}, "level=1"),
        ({"level": [0, 1, 4]}, "level in (0:2, 4)"),
        ({"level": slice(0, 2)}, "level=0:2"),
        ({"level": fst.at_least(1)}, "level=1:"),
        ({"variable": "rho", "level": ~fst.equal(3)}, "variable=rho and not level=3"),
        ({"time": 0.5}, "time=0.5"),
        ({"time": fst.between(0, 1.5)}, "time between 0 and 1.5"),
        ({"value": 3}, "value=3"),
        ({"value": [3, 4]}, "value in (3, 4)"),
        ({"value": fst.above(1).below(5)}, "value (>1 and <5)"),
        ({"value": fst.above(1) & fst.below(5)}, "value (>1 and <5)"),
        ({"value": fst.below(1) | fst.above(5)}, "value (<1 or >5)"),
        ({"value": fst.exists()}, "value exists"),
        ({"keywords": {"number": 3}}, "keyword.number=3"),
        ({"keywords": {"n": fst.above(2), "levtype": "pl"}}, 'keyword.n>2 and keyword.levtype="pl"'),
        ({"value": fst.glob("tur*")}, 'value like "tur*"'),
        ({"value": fst.contains("bul")}, 'value contains "bul"'),
        ({"value": np.float32(0.5)}, "value=0.5"),
        ({"params": {"nx": fst.above(100)}}, "param.nx>100"),
        ({"created": fst.at_least("2026-01-02")}, "created>=2026-01-02T00:00:00Z"),
        ({"created": fst.below(datetime(2026, 1, 2, 3, tzinfo=UTC))}, "created<2026-01-02T03:00:00Z"),
        ({"created": fst.above(date(2026, 1, 2))}, "created>2026-01-02T00:00:00Z"),
        ({"created": fst.above(np.datetime64("2026-01-02"))}, "created>2026-01-02T00:00:00Z"),
        ({"scope": "step"}, "scope=step"),
        ({"box": {"z": slice(50, 100)}}, "box=z:50:100"),
        ({"box": {"z": 50, 1: range(0, 3)}}, "box=z:50:51,1:0:3"),
        ({"box": (slice(0, 3), None, slice(4, None))}, "box=0:0:3,2:4:"),
        ({"box": "z:50:100,y:0:20"}, "box=z:50:100,y:0:20"),
        ({"box": {"lat": fst.between(35, 60.5)}}, "box(lat=35.0..60.5)"),
        ({"box": fst.within({"z": slice(1, 2)})}, "within box=z:1:2"),
        ({"box": fst.covers({"z": slice(1, 2)})}, "contains box=z:1:2"),
        ({"box": fst.overlaps({"z": slice(1, 2)})}, "box=z:1:2"),
        ({"extent": {"z": fst.above(5)}, "volume": fst.above(1000)}, "extent.z>5 and volume>1000"),
        ({"with_related": fst.related("same step", tag="b")}, "with same step (tag=b)"),
        ({"without_related": fst.related("overlapping", tag="b")}, "without overlapping (tag=b)"),
        ({"where": "tag=a or tag=b", "run": "r"}, "(tag=a or tag=b) and run=r"),
        ({"order": ["-value", "step"], "limit": 3}, "order by -value, step limit 3"),
        ({"pick": "first", "tag": "a"}, "tag=a first"),
        ({"run": None, "tag": "a"}, "tag=a"),
    ],
)
def test_a_term_is_a_condition(term, shown):
    assert text(**term) == shown
    assert str(_Query.parse(shown, None)) == shown


def test_conditions_combine():
    either = fst.where(tag="a") | fst.where(tag="b", value=fst.above(3))
    assert text(either, run="r") == "(tag=a or tag=b and value>3) and run=r"
    assert text(~fst.where(tag="a")) == "not tag=a"
    assert text([fst.where(tag="a"), "value>3"]) == "tag=a and value>3"
    assert "tag=a" in repr(either)


def test_a_transaction_is_named_by_its_id():
    assert "transaction=" in text(txn="0" * 32)
    with pytest.raises(fst.Invalid, match="not a valid transaction id"):
        text(txn="x")


@pytest.mark.parametrize(
    ("term", "message", "hint"),
    [
        ({"stepp": 1}, "there is no term stepp=", "`step`"),
        ({"step": slice(0.5, 1)}, "slices are for integers only", "fst.between"),
        ({"step": "0/to"}, "step=", "0/to/24/by/6"),
        ({"step": True}, "step=a bool", "whole number"),
        ({"time": slice(0, 1)}, "slices are for integers only", "fst.between"),
        ({"created": slice("2026", "2027")}, "slices are for integers only", "fst.between"),
        ({"created": "soon"}, "'soon' is not a valid time", "2026-11-21"),
        ({"created": 3}, "created is 3", "datetime"),
        ({"value": None, "box": {"z": slice(5, 5)}}, "empty along z", "half-open"),
        ({"box": {"z": slice(0.5, 2)}}, "slices are for integers only", "fst.between"),
        ({"box": {"z": slice(0, 9, 2)}}, "step along z", "leave the step out"),
        ({"box": {"z": -1}}, "empty along z", "start at 0"),
        ({"box": {"z": "a"}}, "along z", "slice"),
        ({"box": "z=5"}, "not a range", "z:50:100"),
        ({"order": "vlaue"}, "order=", "value"),
        ({"limit": -1}, "limit=-1", "whole number"),
        ({"run": 3}, "run is an int", "fst.exact"),
        ({"tag": fst.above(3)}, "tag is a name", "fst.glob"),
        ({"scope": "x"}, "scope=x", '"variable"'),
        ({"pick": "middle"}, "pick=middle", '"first"'),
        ({"where": "tag="}, "character", "quote"),
        ({"where": 3}, "not a condition", "fst.where"),
        ({"with_related": "x"}, "not a related attribute", "fst.related"),
        ({"params": "nx"}, "params=", "dict"),
    ],
)
def test_a_term_that_is_wrong_is_told(term, message, hint):
    with pytest.raises(fst.Invalid) as error:
        text(**term)
    assert message in error.value.args[0]
    assert hint in error.value.hint


def test_conditions_take_no_order():
    with pytest.raises(fst.Invalid, match="limit= is not a condition"):
        fst.where(tag="a", limit=3)
    with pytest.raises(fst.Invalid, match="not a place"):
        fst.related("same planet", tag="a")


def test_tests_show_what_they_ask():
    assert repr(fst.above(3).below(5) & ~fst.contains("x")) == (
        "<fieldstone.Test (above(3) & below(5) & ~contains('x'))>"
    )
    assert (
        repr(fst.isin([1, 2]) | fst.between(1, 2.5)) == "<fieldstone.Test (isin([1, 2]) | between(1, 2.5))>"
    )


def test_none_is_no_value_to_compare_with():
    with pytest.raises(fst.Invalid, match="None"):
        fst.equal(None)

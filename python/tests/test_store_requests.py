"""How Python's values become requests and keys."""

from __future__ import annotations

import datetime
import decimal
from collections import OrderedDict
from types import MappingProxyType

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import sim


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"step": 6}, "step=6"),
        ({"step": "0/6"}, "step=0/6"),
        ({"step": "0/to/24/by/6"}, "step=0/to/24/by/6"),
        ({"step": "*"}, "step=*"),
        ({"step": None}, ""),
        ({"step": [0, "6", np.int16(12)]}, "step=0/6/12"),
        ({"step": (1, range(3, 9, 3))}, "step=1/3/to/6/by/3"),
        ({"step": range(0, 24, 6)}, "step=0/to/18/by/6"),
        ({"step": range(4, 0, -2)}, "step=4/to/2/by/-2"),
        ({"step": range(5, 6)}, "step=5"),
        ({"step": slice(0, 100)}, "step=0/to/99/by/1"),
        ({"step": slice(None, 10, 5)}, "step=0/to/5/by/5"),
        ({"step": slice(np.int64(1), 3)}, "step=1/to/2/by/1"),
        ({"step": slice(None)}, "step=*"),
        ({"step": np.arange(3)}, "step=0/1/2"),
        ({"step": np.array(7)}, "step=7"),
        ({"level": 0.1}, "level=0.1"),
        ({"level": np.float32(0.1)}, "level=0.1"),
        ({"level": np.float64(2.5)}, "level=2.5"),
        ({"level": decimal.Decimal("1.10")}, "level=1.10"),
        ({"date": datetime.date(2025, 1, 2)}, "date=20250102"),
        ({"date": datetime.date(33, 1, 2)}, "date=00330102"),
        ({"date": datetime.datetime(2025, 1, 2)}, "date=20250102"),
        ({"date": np.datetime64("2025-01-02")}, "date=20250102"),
        ({"date": np.array(["2025-01-02", "2025-01-03"], "M8[ns]")}, "date=20250102/20250103"),
        ({"time": datetime.time(6, 21)}, "time=0621"),
        ({"run": "a b, c"}, 'run="a b, c"'),
        ({"run": np.str_("x")}, "run=x"),
        ({"run": ["a/b", "*"]}, 'run="a/b"/"*"'),
        ({"run": '"a/b"/c'}, 'run="a/b"/c'),
        (OrderedDict(b=1, a=2), "b=1,a=2"),
        (MappingProxyType({"b": 1}), "b=1"),
        ("retrieve, step=1 / 2", "step=1/2"),
        (fst.Request("step=1"), "step=1"),
    ],
)
def test_a_request_reads_as_its_text(given, text):
    request = fst.Request(given)
    assert str(request) == text
    assert fst.Request(text) == request and hash(fst.Request(text)) == hash(request)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"date": slice(datetime.date(2025, 1, 1), datetime.date(2025, 2, 1))}, "A/to/B"),
        ({"step": slice(0.5, 3)}, "a float"),
        ({"step": slice(5, None)}, "axes"),
        ({"step": True}, "bool"),
        ({"step": np.bool_(True)}, "bool"),
        ({"step": b"6"}, "bytes"),
        ({"step": {"a": 1}}, "dict"),
        ({"step": []}, "empty list"),
        ({"step": range(3, 3)}, "is empty"),
        ({"step": object()}, "object"),
        ({"date": datetime.datetime(2025, 1, 2, 3)}, "time of day"),
        ({"date": np.datetime64("NaT")}, "NaT"),
        ({"time": datetime.time(1, 2, 3)}, "seconds"),
        ({"run": "a/b,step=3"}, "another keyword"),
        ({"run": "a/to"}, "range"),
        ({6: "step"}, "a keyword is an int"),
        (17, "not a request"),
        ([], "empty"),
        ([["step=1"]], "not a request"),
        ("step=", "no value"),
    ],
)
def test_what_is_no_request_is_refused_by_name(given, named):
    with pytest.raises(fst.Invalid, match=named):
        fst.open("memory:").list(given)


def test_keywords_add_to_a_request():
    assert str(fst.Request("run=a,step=1", step=[1, 2], variable="t")) == "run=a,step=1/2,variable=t"
    assert repr(fst.Request(run="a")) == "Request('run=a')"


def test_requests_of_every_form_find_the_same():
    store = fst.open("memory:")
    store.archive_many([sim(n) for n in range(0, 30, 3)], [b"%d" % n for n in range(0, 30, 3)])
    store.flush()
    forms = ["step=0/6/12", {"step": [0, 6, 12]}, {"step": range(0, 13, 6)}, {"step": slice(0, 13, 6)}]
    forms += [fst.Request(step="0/to/12/by/6"), ["step=0", {"step": "6/12"}]]
    for form in forms:
        assert store.retrieve(form).read() == b"0612", form


def test_a_date_range_includes_both_ends():
    store = fst.open("memory:", schema="date: Date; [run [date [step?]]]")
    days = [datetime.date(2025, 1, 30) + datetime.timedelta(n) for n in range(4)]
    store.archive_many([{"run": 1, "date": day} for day in days], [b"0", b"1", b"2", b"3"])
    store.flush()
    assert store.retrieve({"date": "20250131/to/2025-02-02"}).read() == b"123"
    assert store.retrieve({"date": days[::-1]}).read() == b"3210"
    assert [e.key.typed["date"] for e in store.list()] == days
    assert store.axes()["date"][0] == "20250130"


def test_keys_are_mappings_in_typed_order():
    store = fst.open("memory:")
    for step in (100, 9, 10):
        store.archive({"run": "a", "variable": "t", "step": step, "level": "0.50"}, b"x")
    store.archive({"run": "a", "variable": "t"}, b"x")
    store.flush()
    keys = [e.key for e in store.list()]
    assert sorted(keys[::-1]) == keys and [k.get("step") for k in keys] == [None, "9", "10", "100"]
    bare, key = keys[0], keys[1]
    assert dict(key) == {"run": "a", "variable": "t", "step": "9", "level": "0.5"} == key
    assert key.typed == {"run": "a", "variable": "t", "step": 9, "level": 0.5}
    assert list(key) == list(key.keys()) == ["run", "variable", "step", "level"] and len(key) == 4
    assert list(key.values()) == ["a", "t", "9", "0.5"] and ("step", "9") in key.items()
    assert "step" in key and "step" not in bare and 5 not in key and len(bare) == 2
    assert key != keys[2] and key == next(store.list({"step": 9})).key and key != {"run": "a"}
    assert len({*keys, *(e.key for e in store.list())}) == 4
    assert str(key) == "{run=a}{variable=t}{step=9,level=0.5}" and repr(key) == f"Key({key})"
    assert {**key, "step": "8"}["step"] == "8"
    assert isinstance(key, __import__("collections.abc").abc.Mapping)
    with pytest.raises(KeyError, match="colour"):
        key["colour"]
    with pytest.raises(TypeError):
        key["run"] = "b"


def test_interned_keys_are_right_however_neighbours_differ():
    rng = np.random.default_rng(5)
    store = fst.open("memory:")
    told = []
    for _ in range(600):
        key = {"run": f"r{rng.integers(2)}", "variable": f"v{rng.integers(3)}"}
        for keyword in ("project", "step", "level", "member", "note"):
            if rng.random() < 0.5:
                key[keyword] = str(rng.integers(4))
        store.archive(key, str(sorted(key.items())).encode())
        told.append(key)
    store.flush()
    listed = [dict(e.key) for e in store.list()]
    assert {tuple(sorted(k.items())) for k in listed} == {tuple(sorted(k.items())) for k in told}
    for entry, field in zip(store.list(), store.retrieve({}), strict=True):
        assert field.read() == str(sorted(dict(entry.key).items())).encode()
        assert field.key == entry.key


def test_numbers_and_dates_are_taken_in_keys():
    store = fst.open("memory:", schema="mars")
    key = {
        "class": "rd", "expver": 1, "stream": "oper", "date": datetime.date(2025, 1, 1),
        "time": datetime.time(12), "type": "fc", "levtype": "pl", "step": np.int64(6), "levelist": 500.0,
        "param": 130, "number": None,
    }  # fmt: skip
    store.archive(key, b"x")
    store.flush()
    assert store.get(key) == b"x"
    (entry,) = store.list()
    assert entry.key["levelist"] == "500" and entry.key["expver"] == "0001" and "number" not in entry.key
    assert entry.key.typed["date"] == datetime.date(2025, 1, 1)

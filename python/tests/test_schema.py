"""A store's schema grows: Python shows it, and other processes follow."""

from __future__ import annotations

from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import run_python

BASE = "step: Integer; [run [variable [step]]]"
KEY = {"run": "a", "variable": "t", "step": 0}


@pytest.fixture
def url(tmp_path):
    return str(tmp_path / "store")


def test_a_schema_grows_for_every_handle_and_process(url, tmp_path):
    store = fst.open(url, schema=BASE)
    store.archive(KEY, b"old")
    store.flush()
    before, reader = store.version, fst.open(url, mode="r")
    with pytest.raises(fst.Invalid, match="no keyword `number`"):
        reader.list("number=1")
    assert store.extend_schema("number?: Integer;") is None
    run_python(
        """
        with fst.open(sys.argv[1], schema=sys.argv[2]) as store:
            store.archive({"run": "a", "variable": "t", "step": 0, "number": 2}, b"new")
        """,
        url,
        BASE,
    )
    assert [dict(e.key) for e in reader.list("number=1/to/5")] == [
        {"run": "a", "variable": "t", "step": "0", "number": "2"}
    ]
    assert [e.key.typed.get("number") for e in reader.list()] == [None, 2]
    assert reader.axes()["number"] == ["2"]
    assert reader.get(KEY) == b"old"
    assert reader.schema == store.schema == f"{BASE}\nextension;\nnumber?: Integer;"
    assert list(store.expand({**KEY, "number": [1, 2]}))[1]["number"] == "2"
    assert [str(k) for k in store.expand(KEY)] == [str(k) for k in fst.open(url, at=before).expand(KEY)]
    assert fst.open(url, at=before).schema == BASE
    # From a file, and into a store made from this one.
    (tmp_path / "more.schema").write_text("[centre [type [x]]]")
    store.extend_schema(Path(tmp_path / "more.schema"))
    store.archive({"centre": "c", "type": "f", "x": 1}, b"x")
    store.flush()
    with fst.open("memory:", schema=store.schema) as copy:
        assert fst.copy(store, {}, to=copy).fields == 3
        assert [str(e.key) for e in copy.list()] == [str(e.key) for e in store.list()]


def test_what_does_not_fit_is_refused(url):
    with fst.open(url, schema=BASE) as store:
        for text, code in [
            ("[run [variable [step]]]", "rule-taken"),
            ("step?;", "rule-taken"),
            ("catalog run = run; number?;", "schema-syntax"),
            ("number: Integer;", "schema-syntax"),
        ]:
            with pytest.raises(fst.Invalid) as raised:
                store.extend_schema(text)
            assert raised.value.code == code, text
        assert store.schema == BASE
        with pytest.raises(fst.NotFound):
            store.extend_schema(Path("no-such-file"))
        store.archive(KEY, b"x")
    with pytest.raises(fst.Denied):
        fst.open(url, mode="r").extend_schema("number?;")


def test_the_catalog_goes_on_by_an_extended_schema(url):
    schema = "catalog run = run; step = step; variable = variable; " + BASE
    with fst.open(url, schema=schema) as store:
        run = store.create_run("a")
        run.write("t", 0, np.zeros(3))
        store.flush()
        run.annotate("max", 1.0, variable="t", step=0)
        store.flush()
        store.extend_schema("number?: Integer;")
        store.archive({**KEY, "number": 3}, b"member")
        store.archive({**KEY, "step": 9, "number": 3}, b"member")
        store.flush()
        assert [(row.run, row.step) for row in store.steps()] == [("a", 0), ("a", 9)]
        assert [h.read().shape for h in store.attributes(tag="max")] == [(3,)]

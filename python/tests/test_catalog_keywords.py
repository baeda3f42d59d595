"""Attributes with further keywords: hits of ensembles and GRIB stores lead to their data."""

from __future__ import annotations

import pickle

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import mars, run_python


@pytest.fixture
def store(tmp_path):
    with fst.open(str(tmp_path / "store")) as store:
        for member in range(4):
            key = {"run": "a", "variable": "t", "step": 6, "member": member}
            store.archive(key, np.full((4, 6), float(member)))
        store.flush()
        yield store


def test_a_hit_of_a_member_leads_to_its_field(store):
    run = store.run("a")
    for member in range(4):
        where = {"start": (1, 2), "count": (2, 3)} if member % 2 else {}
        run.annotate("storm", member / 10, variable="t", step=6, keywords={"member": f"0{member}"}, **where)
    run.annotate("storm", 9.0, variable="t", step=6)
    assert store.attributes(tag="storm").count() == 5, "members do not correct one another"
    store.flush()
    run.annotate("storm", 0.35, variable="t", step=6, keywords={"member": 3}, start=(1, 2), count=(2, 3))
    store.flush()
    hits = store.attributes(tag="storm", keywords={"member": fst.exists()}, order="value").collect()
    assert [h.value for h in hits] == [0.0, 0.1, 0.2, 0.35]
    assert [h.keywords for h in hits] == [{"member": str(m)} for m in range(4)]
    assert [h.key["member"] for h in hits] == ["0", "1", "2", "3"]
    for member, hit in enumerate(hits):
        assert hit.read().shape == ((2, 3) if member % 2 else (4, 6))
        assert (hit.read() == member).all()
    assert "member=3" in repr(hits[3])
    assert store.find("tag=storm and keyword.member>1 and keyword.member<3").first().value == 0.2
    assert store.attributes(tag="storm", keywords={"member": "2"}).count() == 1
    assert store.attributes(tag="storm", keywords={"number": 2}).count() == 0
    table = store.attributes(tag="storm", order="value").to_pandas()
    assert table["keyword.member"].tolist()[:4] == ["0", "1", "2", "3"]
    assert table["keyword.member"].isna().tolist() == [False] * 4 + [True]
    found = pickle.loads(pickle.dumps(hits._found()))
    assert found.hit(store, None, 3).keywords == {"member": "3"}
    rows = store.sql("select number, keyword(box, 'member') as member from attributes order by number")
    assert rows.values("member") == ["0", "1", "2", "3", None]
    # A process that replays the logs finds the same.
    code = """
    with fst.open(sys.argv[1], mode="r") as store:
        print(store.attributes(keywords={"member": 3}).first().read().max())
    """
    assert run_python(code, store.url).strip() == "3.0"


def test_many_attributes_have_keywords_in_columns(store):
    run = store.run("a")
    run.annotate_many("peak", [1.0, 2.0, 3.0], variable="t", step=6, keywords={"member": [0, 1, 2]})
    run.annotate_many("mean", np.arange(3.0), variable="t", step=6, keywords={"member": np.array([2, 1, 0])})
    run.annotate_many("one", [1.0, 2.0], variable="t", step=6, keywords={"member": 3, "level": [None, 500]})
    store.flush()
    assert [(h.value, h.read().max()) for h in store.attributes(tag="mean", order="value")] == [
        (0.0, 2.0),
        (1.0, 1.0),
        (2.0, 0.0),
    ]
    assert [h.keywords for h in store.attributes(tag="one", order="value")] == [
        {"member": "3"},
        {"level": "500", "member": "3"},
    ]
    with pytest.raises(fst.Invalid, match="member has 2"):
        run.annotate_many("peak", [1.0, 2.0, 3.0], variable="t", step=6, keywords={"member": [0, 1]})
    assert store.delete(tag="peak", where="keyword.member=1", doit=True).attributes == 1
    assert store.attributes(tag="peak").count() == 2


def test_keywords_are_the_schemas(store, tmp_path):
    run = store.run("a")
    for keywords, says in [
        ({"step": 6}, "the run, the step or the variable gives"),
        ({"member": "x"}, "member"),
        ("x", "a dict"),
    ]:
        with pytest.raises(fst.Invalid, match=says):
            run.annotate("storm", 1.0, variable="t", step=6, keywords=keywords)
    with fst.open(
        str(tmp_path / "closed"), schema="catalog run = run; [run [step]]".replace("]]", " [x]]]")
    ) as closed:
        closed.archive({"run": "a", "step": 0, "x": 1}, b"x")
        closed.flush()
        with pytest.raises(fst.Invalid, match="no keyword `member`"):
            closed.run("a").annotate("storm", 1.0, keywords={"member": 1})
        closed.extend_schema("member?: Integer;")
        closed.run("a").annotate("storm", 1.0, keywords={"member": "01"})
        assert closed.attributes().first().keywords == {"member": "1"}


def test_a_hit_of_a_grib_store_has_its_whole_key(tmp_path):
    with fst.open(str(tmp_path / "grib"), schema="mars") as store:
        for number in (1, 2):
            store.archive(mars(type="pf", number=number), f"member {number}".encode())
        store.flush()
        run = store.run("rd/xxxx/oper/20250101/1200")
        further = {"type": "PF", "levtype": "pl", "levelist": 500, "number": 2}
        run.annotate("storm", 3.1, variable="130", step=0, keywords=further)
        store.flush()
        hit = store.attributes(tag="storm").first()
        assert hit.keywords == {"levelist": "500", "levtype": "pl", "number": "2", "type": "pf"}
        assert {k: hit.key[k] for k in ("number", "levelist", "param", "date")} == {
            "number": "2",
            "levelist": "500",
            "param": "130",
            "date": "20250101",
        }
        assert hit.read() == b"member 2"

"""Requests as MARS users write them: expansion, request files, words, relative dates."""

import datetime

import fieldstone as fst
import pytest

LISTING_1 = """retrieve ,
class = od , type = pf , stream = enfo , expver = 0001 ,
levelist = 1/to/90 , param = t/u/v ,
date = 20190109 , time = 1200 ,
step = 1/to/240/by/3 , number = 13 ,
target = "output.grib" """

KEY = {
    "class": "od",
    "expver": "0001",
    "stream": "oper",
    "date": "20250101",
    "time": "1200",
    "type": "fc",
    "levtype": "pl",
    "step": "0",
    "levelist": "500",
    "param": "130",
}


@pytest.fixture
def store():
    with fst.open("memory:", schema="mars") as store:
        yield store


def test_listing_1_expands_to_its_fields(store):
    keys = store.expand(LISTING_1)
    assert len(keys) == 21_600
    assert repr(keys) == "<Expansion of 21600 keys>"
    listed = list(keys)
    assert len(listed) == 21_600 and len(set(map(str, listed))) == 21_600
    assert str(listed[0]).endswith("{step=1,levelist=1,param=130,number=13}")
    # Every loop starts again, and the items are keys.
    assert next(iter(keys)) == listed[0]
    assert listed[-1]["step"] == "238" and listed[-1]["domain"] == "g"
    assert fst.Request(LISTING_1).target == "output.grib"


def test_several_requests_expand_one_after_another(store):
    keys = store.expand([{**KEY, "step": [0, 6]}, {**KEY, "param": "u"}])
    assert [(key["step"], key["param"]) for key in keys] == [("0", "130"), ("6", "130"), ("0", "131")]
    assert len(keys) == 3


def test_an_open_request_names_no_keys(store):
    with pytest.raises(fst.Invalid, match="leaves stream, param open"):
        store.expand("class=od,expver=1,type=fc,step=0")


def test_a_request_file_inherits(store):
    text = "retrieve, param=t, levtype=pl, levelist=500\nretrieve, levtype=sfc, levelist=off, param=2t"
    first, second = fst.Request.parse_many(text)
    assert str(first) == "param=t,levtype=pl,levelist=500"
    assert str(second) == "levtype=sfc,param=2t"
    surface = {**KEY, "levtype": "sfc", "levelist": None, "param": "167"}
    store.archive(KEY, b"upper")
    store.archive(surface, b"ground")
    store.flush()
    assert store.retrieve(text, strict=False).read() == b"upperground"


def test_keywords_may_have_capitals(store):
    for name in (str.upper, str.capitalize, lambda word: word[0] + word[1:].upper()):
        key = {name(keyword): value for keyword, value in KEY.items()}
        store.archive(key, b"x")
        store.flush()
        assert store.get(key) == b"x" and len(list(store.list())) == 1
        assert len(list(store.list(key))) == len(list(store.list("Class=*,dATE=*"))) == 1
        assert store.axes({name("date"): KEY["date"]})["class"] == ["od"]
        assert len(store.retrieve(key)) == 1
    with pytest.raises(fst.Invalid, match="`date` is given twice"):
        store.list({"Date": 20190109, "date": 20190110})
    with pytest.raises(fst.NotFound) as error:
        store.get({k.capitalize(): v for k, v in KEY.items()} | {"Step": 99})
    assert "no keyword" not in error.value.hint and "step=0" in error.value.hint
    store.remove("Class=od,Step=0")
    store.flush()
    assert len(list(store.list())) == 0


def test_words_and_names_are_ecmwfs(store):
    store.archive({**KEY, "CLASS": "OD", "class": None, "type": "Forecast", "param": "t"}, b"x")
    store.flush()
    assert store.get(KEY) == b"x"
    request = "RETRIEVE, CLASS=OD, TYPE=FC, LEVTYPE=pressure levels, PARAM=T, TARGET='x.grib', STEP=all"
    assert store.retrieve(request).read() == b"x"
    with pytest.raises(fst.Invalid, match="is not a MARS word") as error:
        store.list("levtype=plx")
    assert "pl" in error.value.hint
    with pytest.raises(fst.Invalid, match=r"the words are .*\bod\b"):
        store.archive({**KEY, "class": "notaclass"}, b"x")
    with pytest.raises(fst.Invalid, match="nearest names"):
        store.list("param=tempr")
    with pytest.raises(fst.Invalid, match="target"):
        store.archive({**KEY, "target": "x.grib"}, b"x")


def test_dates_relative_to_today_are_for_requests(store):
    for days in (0, 1, 2):
        day = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=days)
        store.archive({**KEY, "date": day}, str(days).encode())
    store.flush()
    assert store.retrieve({**KEY, "date": "-2/to/0"}, strict=False).read() == b"210"
    assert store.get({**KEY, "date": "-1"}) in (b"0", b"1")
    with pytest.raises(fst.Invalid, match="relative to today"):
        store.archive({**KEY, "date": "-1"}, b"x")

"""Behaviours of FDB that its users rely on, by their numbers in our list of them: the same calls on both.

If Fieldstone differs on purpose, the test says so and asserts both.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fieldstone as fst
import pytest
from base import KEY, SCHEMA
from peer import Fdb, Ours


class Both:
    """FDB and Fieldstone with one schema and, by `archive`, the same fields."""

    def __init__(self, process: Fdb, folder: Path, schema: str) -> None:
        self.fdb = process
        self.ours = Ours()
        process.call("open", str(folder), schema)
        self.ours.open(schema)

    def archive(self, data: str | None = None, **values: str | None) -> None:
        """A field of the base key with other values, None for absent; its bytes are `data` or the values."""
        key = {k: v for k, v in {**KEY, **values}.items() if v is not None}
        data = data if data is not None else f"<{'/'.join(map(str, values.values()))}>"
        self.fdb.call("archive", key, data)
        self.ours.archive(key, data)

    def flush(self) -> None:
        self.fdb.call("flush")
        self.ours.flush()

    def refused(self, operation: str, *arguments: Any) -> tuple[str, str]:
        """The errors of both for an operation that both refuse."""
        theirs, mine = self.fdb.run([[operation, *arguments]])[0], self.ours.one(operation, *arguments)
        assert "error" in theirs and "error" in mine, (theirs, mine)
        return theirs["error"], mine["error"]

    def refuse_key(self, **values: str) -> tuple[str, str]:
        return self.refused("archive", {**KEY, **values}, "")

    def list(self, request: dict[str, Any] | None = None, masked: bool = False) -> list[dict[str, str]]:
        """The keys that both list, without absent keywords; they must be the same."""
        theirs = _keys(self.fdb.call("list", request or {}, 3, masked))
        mine = _keys(self.ours.list(request or {}, 3, masked))
        assert sorted(map(_text, theirs)) == sorted(map(_text, mine))
        return mine

    def values(self, keyword: str, request: dict[str, Any] | None = None) -> set[str | None]:
        return {key.get(keyword) for key in self.list(request)}

    def retrieve(self, **values: Any) -> str:
        """The equal value that both give for the base key with other values, None for left out."""
        request = {k: v for k, v in {**KEY, **values}.items() if v is not None}
        theirs, mine = self.fdb.call("retrieve", request), self.ours.retrieve(request)
        assert theirs == mine
        return mine


def _keys(answer: list[Any]) -> list[dict[str, str]]:
    return [{k: v for level in levels for k, v in level.items() if v != ""} for levels, _, _ in answer]


def _text(key: dict[str, str]) -> str:
    return ",".join(f"{k}={v}" for k, v in sorted(key.items()))


@pytest.fixture
def make(process, tmp_path):
    folders = iter(range(1000))
    return lambda schema=SCHEMA: Both(process, tmp_path / f"fdb{next(folders)}", schema)


def test_b10_partial_retrieve(make):
    """FDB silently returns the existing fields; strict mode, our default, names the missing ones."""
    both = make()
    both.archive("there")
    both.flush()
    assert both.retrieve(step="0/99") == "there"
    with pytest.raises(fst.NotFound, match="step=99"):
        both.ours.store.retrieve({**KEY, "step": "0/99"})
    lenient = both.ours.store.retrieve({**KEY, "step": "0/99"}, strict=False)
    assert (lenient.read(), lenient.missing_count) == (b"there", 1)
    assert "step=99" in lenient.missing[0]


def test_b11_step_units(make):
    both = make()
    for step in ("1", "60m", "30m", "30m-60m", "0-24", "24"):
        both.archive(step, step=step)
    both.flush()
    assert both.values("step") == {"1", "30m", "30m-1", "0-24", "24"}
    assert both.retrieve(step="60m") == both.retrieve(step="1") == "60m"
    assert both.retrieve(step="30m-1") == "30m-60m"
    # FDB's retrieve takes a span for the step at its end; its list does not.
    assert both.fdb.call("retrieve", {**KEY, "step": "24"}) == "240-24"
    assert both.ours.retrieve({**KEY, "step": "24"}) == "24"


def test_b12_time_forms(make):
    """FDB requires canonical times in archives, but not in requests; here both accept other forms."""
    both = make()
    forms = {"1200": "12", "0600": "6", "0621": "06:21", "0018": "00:18:00", "0000": "0"}
    for canonical in forms:
        both.archive(canonical, time=canonical)
    both.flush()
    assert both.values("time") == set(forms)
    for canonical, form in forms.items():
        assert both.retrieve(time=form) == canonical
        both.ours.archive({**KEY, "time": form, "step": "6"}, form)
    both.ours.flush()
    assert both.ours.retrieve({**KEY, "time": "0621", "step": "6"}) == "06:21"
    for wrong in ("7700", "01:23:45:67"):
        both.refused("list", {"time": wrong}, 3, False)
        both.refuse_key(time=wrong)


def test_b13_levels(make):
    both = make()
    for level in ("200.0", "925", "0.333333", "500"):
        both.archive(level, levelist=level)
    both.flush()
    assert both.values("levelist") == {"200", "925", "0.333333", "500"}
    assert both.retrieve(levelist="500.0") == "500"
    assert both.retrieve(levelist="200") == "200.0"
    assert both.retrieve(levelist="0.333333") == "0.333333"


def test_b14_names(make):
    both = make()
    both.archive("canonical", expver="0001")
    both.flush()
    assert both.retrieve(expver="1") == "canonical"
    for other in ({"param": "t"}, {"param": "130.128"}, {"time": "12"}, {"date": "2025-01-01"}):
        assert both.retrieve(**{"expver": "0001", **other}) == "canonical"


def test_b15_optional(make):
    both = make()
    both.archive("g")
    both.flush()
    assert both.retrieve(domain=None) == "g"
    # FDB's axes have an empty value for an absent keyword; ours leave it out.
    assert both.fdb.call("axes", {"class": "rd"}, 3)["number"] == [""]
    assert "number" not in both.ours.store.axes("class=rd")


def test_b16_hidden(make):
    both = make(SCHEMA.replace("domain?g", "domain-"))
    both.archive("field")
    both.flush()
    assert both.values("domain") == {None}
    assert both.retrieve() == both.retrieve(domain=None) == "field"


PARTS = """
expver: Expver; time: Time; step: Step;
[ class, expver, stream, {outer}
    [ type, levtype
        [ {inner} ]]]
"""


@pytest.mark.parametrize(
    ("keyword", "kind", "archived", "listed"),
    [
        ("date", "YearMonth", "20021201", "200212"),
        ("date", "ClimateDaily", "20210427", "0427"),
        ("date", "ClimateMonthly", "20210427", "4"),
        ("origin", "First3", "ecmf", "ecm"),
    ],
)
def test_b17_parts_of_values(make, keyword, kind, archived, listed):
    both = make(PARTS.format(outer="time", inner=f"step, {keyword}: {kind}"))
    values = {**dict.fromkeys(("date", "domain", "levelist", "param")), keyword: archived}
    both.archive("part", **values)
    both.flush()
    assert both.values(keyword) == {listed}
    assert both.ours.retrieve({keyword: archived}) == "part"


def test_b18_date_on_three_levels(make):
    both = make(
        PARTS.format(outer="date: Year", inner="date: Date, time, step").replace(
            "type,", "date: Month, type,"
        )
    )
    absent = dict.fromkeys(("domain", "levelist", "param"))
    both.archive("x", date="20250101", **absent)
    both.archive("z", date="20250215", **absent)
    both.flush()
    assert {(k["year"], k["month"], k["date"]) for k in both.list()} == {
        ("2025", "1", "20250101"),
        ("2025", "2", "20250215"),
    }
    assert both.retrieve(date="20250101/20250215", **absent) == "xz"
    assert both.retrieve(date="20250215", **absent) == "z"


def test_b20_list_text(make):
    """A key as text, cut at each depth; JSON has one object per field, `--compact` one request per dataset.

    FDB's command line refuses a list without class and expver (minimum keys); here no call needs a keyword.
    """
    both = make()
    both.archive("field")
    both.flush()
    whole = (
        "{class=rd,expver=xxxx,stream=oper,date=20250101,time=1200,domain=g}{type=fc,levtype=pl}"
        "{step=0,levelist=500,param=130}"
    )
    for depth, end in ((3, len(whole)), (2, whole.rindex("{")), (1, whole.index("}") + 1)):
        (theirs,), (mine,) = both.fdb.call("list", {}, depth, False), both.ours.list({}, depth, False)
        assert mine[2] == whole[:end]
        assert theirs[2].startswith(whole[:end] + ",")
    assert [str(entry.key) for entry in both.ours.store.list("class=rd")] == [whole]


def test_b20_list_of_the_program(tmp_path):
    url = tmp_path / "store"
    with fst.open(url, schema=SCHEMA) as store:
        for step in (0, 6):
            for param in (130, 131):
                store.archive({**KEY, "step": step, "param": param}, b"x")
    program = Path(sys.executable).with_name("fieldstone")

    def run(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, check=True, text=True).stdout

    listed = json.loads(run("list", str(url), "--json"))["fields"]
    assert [field["key"]["step"] for field in listed] == ["0", "0", "6", "6"]
    (request,) = run("list", str(url), "--compact").splitlines()
    with fst.open(url, "r") as store:
        assert len(store.retrieve(request)) == 4


def test_b21_list_ranges(make):
    both = make()
    for date in ("20250101", "20250102", "20250103"):
        for step in ("0", "6"):
            for level in ("300", "400", "500", "700", "850", "1000"):
                for param in ("130", "131"):
                    both.archive("x", date=date, step=step, levelist=level, param=param)
    both.flush()

    def count(**request):
        return len(both.list(request))

    assert (count(), count(date="20250102")) == (72, 24)
    assert count(date="20250101/20250103") == count(date="20250101/to/20250102") == 48
    assert count(date="20250101/20250103/20300101") == 48
    assert count(date="20250102", param="130/131/167") == 24
    assert count(levelist="300/123/1000") == 24
    assert count(date="20250101/to/20250103/by/2", step="0/to/6/by/6", levelist="300") == 8


def test_b22_axes_over_datasets(make):
    """Axes of all datasets together. (A select front end, which merges lanes, is tested separately.)"""
    both = make()
    both.archive(step="6", date="20250101")
    both.archive(step="12", date="20250102", levelist="50")
    both.archive(step="0", date="20250103", **{"class": "od"})
    both.flush()
    theirs, mine = both.fdb.call("axes", {}, 3), both.ours.store.axes()
    assert {k: sorted(v) for k, v in mine.items()} == {k: v for k, v in theirs.items() if v != [""]}
    # FDB sorts as text; here values sort by type.
    assert mine["step"] == ["0", "6", "12"]
    assert mine["levelist"] == ["50", "500"]
    assert both.ours.store.axes("class=rd")["step"] == ["6", "12"]
    assert both.fdb.call("axes", {"class": "rd"}, 3)["step"] == ["12", "6"]

"""Objects in notebooks: names, units, times and sizes as they are read, and nothing that a page would run."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from fieldstone import _html, reports


def cells(page: str) -> list[list[str]]:
    """The rows of the tables of a page, the heads among them."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.S)
    return [[html.unescape(cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", row, re.S)] for row in rows]


@pytest.fixture
def store():
    with fst.open("memory:") as store:
        run = store.create_run("study", params={"nx": 256, "solver": "roe"})
        attrs = {"units": "K", "long_name": "temperature"}
        run.create_variable("T", "f8", (2, 3), dims=("y", "x"), attrs=attrs)
        run.create_steps([0, 6], times=[0.5, 1.25])
        for step in (0, 6):
            run.write("T", step, np.full((2, 3), 300.123456789))
        run.annotate("hot", 301.7074279785156, variable="T", step=6, start=(0, 1), count=(1, 2))
        store.flush()
        yield store


def test_fields_have_a_column_for_each_word_that_differs(store) -> None:
    page = store.retrieve("run=study,variable=T")._repr_html_()
    assert "<caption>2 fields, run study, variable T</caption>" in page
    assert cells(page) == [
        ["step", "size", "type", "shape"],
        ["0", "48 bytes", "float64", "2 \u00d7 3"],
        ["6", "48 bytes", "float64", "2 \u00d7 3"],
    ]
    assert "{run" not in page
    for step in range(7, 40):
        store.archive({"run": "study", "variable": "T", "step": step}, np.zeros(2))
    store.archive({"run": "other", "variable": "T", "step": 1}, np.zeros(2))
    store.flush()
    page = store.retrieve("variable=T")._repr_html_()
    assert "<caption>36 fields</caption>" in page, "fields that are not shown may have other words"
    assert cells(page)[0][:3] == ["run", "variable", "step"] and page.endswith("<p>… 16 more</p>")


def test_hits_have_values_with_units_boxes_and_no_empty_columns(store) -> None:
    head, row = cells(store.attributes(tag="hot")._repr_html_())
    found = dict(zip(head, row, strict=True))
    user = found.pop("user")
    assert user and found == {
        "run": "study",
        "step": "6",
        "time": "1.25",
        "variable": "T",
        "tag": "hot",
        "value": "301.707",
        "box": "[0:1, 1:3]",
    }


def test_steps_variables_and_runs_are_tables(store) -> None:
    assert cells(store.steps()._repr_html_()) == [
        ["run", "step", "time"],
        ["study", "0", "0.5"],
        ["study", "6", "1.25"],
    ]
    head, row = cells(store.variables()._repr_html_())
    assert dict(zip(head, row, strict=True)) == {
        "run": "study",
        "name": "T",
        "dtype": "float64",
        "shape": "2 \u00d7 3",
        "dims": "y, x",
        "long name": "temperature",
        "units": "K",
    }
    head, row = cells(store.runs()._repr_html_())
    assert row[head.index("params")] == "nx: 256, solver: roe" and row[head.index("created")].endswith(" UTC")
    page = store.run("study")._repr_html_()
    assert ["param.nx", "256"] in cells(page) and "None" not in page
    assert store.runs(run="absent")._repr_html_() == "<p>none</p>"


def test_times_of_ingested_files_are_dates(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("time", 2)
        file.createDimension("x", 3)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time[:] = "days since 2006-04-16", [0, 30.5]
        file.createVariable("t", "f4", ("time", "x"))[:] = 1
    with fst.open(tmp_path / "s") as store:
        fst.ingest(store, tmp_path / "a.nc", progress=False)
        store.run("a").annotate("hot", 1.5, variable="t", step=1)
        store.flush()
        assert [row[2] for row in cells(store.steps()._repr_html_())[1:]] == [
            "2006-04-16 00:00",
            "2006-05-16 12:00",
        ]
        head, row = cells(store.attributes(tag="hot")._repr_html_())
        assert row[head.index("time")] == "2006-05-16 12:00"


def test_reports_have_sizes_words_and_no_empty_rows() -> None:
    moment = datetime(2026, 11, 21, 6, 30, 0, 123456, tzinfo=UTC)
    status = reports.Status(
        "file:///s",
        None,
        "simulation",
        2,
        "v1",
        free_bytes=22_051_852_288,
        bytes_by_user={"me": 16_425_167},
        transactions=(reports.TransactionStatus("t1", ("a", "b"), 3, moment),),
    )
    page = cells(status._repr_html_())
    assert ["free bytes", "22.1 GB"] in page and ["bytes by user", "me: 16.4 MB"] in page
    assert ["t1", "a, b", "3", "2026-11-21 06:30:00 UTC"] in page
    assert not any("None" in cell or cell == "id" for row in page for cell in row)


def test_a_store_has_ranges(store) -> None:
    page = cells(store._repr_html_())
    assert ["step", "0, 6"] in page and ["variable", "T"] in page
    assert _html._axis([str(n) for n in range(0, 240, 6)]) == "0 to 234 by 6 (40)"
    assert _html._axis(["1", "2", "4"]) == "1, 2, 4"


def test_nothing_is_run() -> None:
    script = "<script>alert(1)</script>&"
    with fst.open("memory:") as store:
        run = store.create_run(script, notes=script)
        run.create_variable("v", "f8", (2,), dims=(script,), attrs={"long_name": script, "units": script})
        run.write("v", 0, np.zeros(2))
        run.annotate("tag", script, variable="v", step=0)
        store.flush()
        fields = store.retrieve("variable=v")
        shown = [store, fields, fields[0], fields[0].key, store.runs(), run, store.steps(), store.variables()]
        shown += [
            store.attributes(tag="tag"),
            store.attributes(tag="tag").first(),
            store.list(),
            store.tags(),
        ]
        for thing in shown:
            page = thing._repr_html_()
            assert "<script" not in page and (script[1:7] in page or "tag" in page), thing

"""Calls that change or remove data take names literally; patterns have to be explicit."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fieldstone as fst
import pytest
from fieldstone.errors import Invalid

PROGRAM = Path(sys.executable).with_name("fieldstone")
RUNS = ("lr[0.1]", "lr0", "lr1", "a*", "ab", "a?")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[fst.Store]:
    with fst.open(tmp_path / "store") as store:
        for name in RUNS:
            run = store.create_run(name)
            run.create_variable("t[0]", "f8", (4,))
            run.create_variable("t0", "f8", (4,))
            for tag in ("q*", "qq"):
                run.annotate(tag, 1.0, step=0)
                run.annotate(tag, 2.0, variable="t[0]")
                run.annotate(tag, 3.0, variable="t0")
        store.flush()
        yield store


def _left(store: fst.Store) -> list[str]:
    return sorted(row.name for row in store.runs())


@pytest.mark.parametrize("name", ["lr[0.1]", "a*", "a?"])
def test_a_run_goes_by_its_own_name(store: fst.Store, name: str) -> None:
    assert store.delete(run=name, doit=True).runs == 1
    assert _left(store) == sorted(set(RUNS) - {name})


@pytest.mark.parametrize(
    ("terms", "left"),
    [
        ({"run": "ab", "variable": "t[0]"}, {("ab", "t0")}),
        ({"run": "ab", "variable": ["t[0]"]}, {("ab", "t0")}),
        ({"run": "ab", "variable": ("t[0]", 0)}, {("ab", "t0")}),
    ],
)
def test_so_does_a_variable(store: fst.Store, terms: Any, left: set[Any]) -> None:
    store.delete(**terms, doit=True)
    assert {(row.run, row.name) for row in store.variables(run="ab")} == left


@pytest.mark.parametrize(
    "terms",
    [
        {"tag": "q*"},
        {"tag": "q*", "run": fst.glob("*")},
        {"where": "tag=q*"},
        {"where": fst.where(tag="q*")},
        {"where": fst.where(tag=["q*"]) & fst.where(run=fst.glob("*"))},
    ],
)
def test_so_does_a_tag_and_what_a_condition_names(store: fst.Store, terms: Any) -> None:
    store.delete(**terms, doit=True)
    assert store.attributes(tag=fst.exact("q*")).count() == 0
    assert store.attributes(tag="qq").count() == 3 * len(RUNS)


def test_patterns_are_asked_for(store: fst.Store) -> None:
    assert store.delete(run=fst.glob("lr*")).runs == 3
    assert store.delete(run=[fst.glob("lr?"), "ab"]).runs == 3
    assert store.delete(where="run like 'lr*' and tag=qq").attributes == 9
    assert len(store.runs(run="lr*")) == 3, "a read accepts a pattern"
    with pytest.warns(UserWarning, match=r"no run 'lr\*'.*fst.glob"):
        assert store.delete(run="lr*").runs == 0


def test_values_that_are_named_are_values(store: fst.Store) -> None:
    run = store.run("ab")
    run.annotate("note", "x[1]", step=1)
    run.annotate("note", "x1", step=2)
    assert store.delete(where="tag=note and value=x[1]", doit=True).attributes == 1
    assert [hit.value for hit in store.attributes(tag="note")] == ["x1"]


def test_a_name_in_two_projects_is_refused(store: fst.Store) -> None:
    for project in ("p", "q"):
        run = store.create_run("both", project=project)
        run.annotate("qq", 1.0, step=3)
    for terms in ({}, {"step": 3}, {"tag": "qq"}, {"where": "tag=qq"}, {"variable": "t0"}):
        with pytest.raises(Invalid, match="several projects have a run 'both': 'p', 'q'"):
            store.delete(run="both", doit=True, **terms)
    with pytest.raises(Invalid, match="several projects have a run 'both': 'p', 'q'"):
        store.delete(where=fst.where(run="both", tag="qq"), doit=True)
    assert store.delete(run="both", project="p", doit=True).runs == 1
    assert [row.project for row in store.runs(run="both")] == ["q"]
    assert store.delete(run="both", doit=True).runs == 1


def test_files_outside_move_by_a_run_s_own_name(tmp_path: Path) -> None:
    with fst.open(tmp_path / "store") as store:
        for name in ("x[1]", "x1"):
            outside = {"template": "{variable}.raw", "format": "raw", "root": "/old/a"}
            store.create_run(name, outside=outside)
        assert store.repoint("/old", "/new", run="x[1]") == ("x[1]",)
        assert store.run("x1").outside["root"] == "/old/a"


def test_the_program_takes_names_too(store: fst.Store) -> None:
    def delete(*words: str) -> Any:
        done = subprocess.run(
            [PROGRAM, "delete", store.url, *words, "--json"], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout), done.stderr

    assert delete("runs", "run=lr[0.1]")[0]["runs"] == 1
    assert delete("runs", "run like 'lr*'")[0]["runs"] == 3
    found, said = delete("runs", "run=lr*")
    assert found["runs"] == 0 and "run like" in said
    assert delete("attributes", "tag=q*")[0]["attributes"] == 3 * len(RUNS)


def test_a_move_by_a_query_takes_names(store: fst.Store, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = subprocess.run(
            [PROGRAM, "move", store.url, "--to", tmp_path / "other", "--find", "run=a? and tag=qq", "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
    assert json.loads(done.stdout)["attributes"] == 3
    assert store.attributes(run=fst.exact("ab"), tag="qq").count() == 3

"""Rules of retention and maintenance: kept in the store, applied by steps, and nothing else changes."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest

KEY = {"run": "a", "variable": "t", "step": 0}


def written(path: Path, versions: int = 3) -> str:
    for n in range(versions):
        with fst.open(path) as store:
            store.archive(KEY, bytes([n]) * 200_000)
            store.archive({**KEY, "run": "b"}, bytes([n]) * 200_000)
    return str(path)


def test_rules_survive_compaction_purge_and_reopening(tmp_path: Path) -> None:
    url = written(tmp_path / "s")
    with fst.open(url) as store:
        rule = store.retain("variable=u/t,run=a", older_than="5d")
        assert (rule.request, rule.older_than, rule.versions) == (
            "run=a,variable=t/u",
            timedelta(days=5),
            None,
        )
        store.retain("run=b", versions=2, older_than=timedelta(hours=1))
        version = store.version
        store.retain("run=b", versions=3)
    for _ in range(2):
        with fst.open(url) as store:
            store.compact(grace=0)
            store.purge(all=True, grace=0, doit=True)
    reader = fst.open(url, mode="r")
    assert [(rule.request, rule.versions) for rule in reader.rules()] == [
        ("run=a,variable=t/u", None),
        ("run=b", 3),
    ]
    older = fst.open(url, mode="r", at=version)
    assert older.rules()[1].older_than == timedelta(hours=1)
    html = reader.rules()._repr_html_()
    assert "run=b" in html and "<table>" in html
    with fst.open(url) as store:
        store.retain("run=b", drop=True)
        assert len(store.rules()) == 1
        with pytest.raises(fst.NotFound):
            store.retain("run=b", drop=True)


def test_versions_and_ages_are_obeyed(tmp_path: Path) -> None:
    url = written(tmp_path / "s", 0)
    versions = []
    for n in range(4):
        with fst.open(url) as store:
            store.archive(KEY, bytes([n]) * 200_000)
            store.archive({**KEY, "run": "old"}, bytes([n]) * 200_000)
        versions.append(fst.open(url, mode="r").version)
    with fst.open(url) as store:
        store.retain("run=a", versions=2)
        store.retain("run=old", older_than=0)
    heard: list[tuple[str, str, int, int]] = []
    with fst.open(url) as store:
        would = store.maintain(grace=0, dry_run=True)
        assert not any(step.done for step in would.steps) and len(list(store.list())) == 2
        report = store.maintain(grace=0, progress=lambda *args: heard.append(args))
    assert report.ok and [step.action for step in report.steps] == ["sweep", "wipe", "purge", "compact"]
    assert {"sweep", "wipe", "purge", "compact"} <= {action for action, *_ in heard}
    sweep, wipe, purge, _ = report.steps
    assert (wipe.request, wipe.done, wipe.fields) == ("run=old", True, 1)
    assert purge.done and purge.versions >= 2 and purge.nbytes >= 400_000 and purge.rewritten > 0
    assert sweep.why and "MaintainReport(ok=True" in repr(report) and "<table>" in report._repr_html_()
    with fst.open(url) as store:
        again = store.maintain(grace=0)  # what the first one wiped
        assert again.steps[2].versions == 4
    assert [str(entry.key) for entry in fst.open(url, mode="r").list()] == ["{run=a}{variable=t}{step=0}"]
    for n, version in enumerate(versions):
        older = fst.open(url, mode="r", at=version)
        if n >= 2:
            assert older.get(KEY) == bytes([n]) * 200_000
        else:
            with pytest.raises(fst.NotFound) as raised:
                older.get(KEY)
            assert raised.value.code == "version-purged"


def test_bad_rules_are_refused(tmp_path: Path) -> None:
    url = written(tmp_path / "s", 1)
    with fst.open(url) as store:
        for arguments in (
            {},
            {"versions": 0},
            {"older_than": "soon"},
            {"older_than": -1},
            {"older_than": "2020-01-01"},
            {"older_than": float("nan")},
        ):
            with pytest.raises(fst.Invalid):
                store.retain("run=a", **arguments)
        for request in ("run=a,step=0", None, ""):
            with pytest.raises(fst.Invalid):
                store.retain(request, versions=1)
        assert store.retain(all=True, versions=1).request == ""
        with pytest.raises(ZeroDivisionError):
            store.maintain(progress=lambda *args: 1 / 0)
    reader = fst.open(url, mode="r")
    for call in (lambda: reader.retain("run=a", versions=1), reader.maintain):
        with pytest.raises(fst.Denied):
            call()


def test_status_advises(tmp_path: Path) -> None:
    url = written(tmp_path / "s", 14)
    advice = fst.open(url, mode="r").status().advice
    assert any("compact" in item.command and item.estimate for item in advice)
    with fst.open(url) as store:
        store.retain("run=a", versions=1)
        report = store.maintain()
        assert report.steps[-1].done and report.waiting > 0
    commands = [item.command for item in fst.open(url, mode="r").status().advice]
    assert any("maintain" in command for command in commands)
    assert not any("compact" in command for command in commands)


def test_a_memory_store_obeys_ages(tmp_path: Path) -> None:
    store = fst.open("memory:")
    store.archive(KEY, b"x")
    store.flush()
    store.retain("run=a", older_than=0)
    time.sleep(0.01)
    report = store.maintain()
    assert report.ok and report.steps[1].done and list(store.list()) == []


def test_a_rule_moves_the_fields_under_the_hits_of_a_query(tmp_path: Path) -> None:
    hot, cold = fst.open(tmp_path / "hot"), fst.open(tmp_path / "cold")
    cold.create_run("b")
    cold.flush()
    run = hot.create_run("a")
    for step in range(3):
        run.write("t", step, np.full(4, float(step)))
        run.annotate("maximum", float(step), variable="t", step=step)
    hot.flush()
    rule = hot.retain(query="tag=maximum and value>0.5", to=cold)
    assert (rule.request, rule.query, rule.to) == ("", "tag=maximum and value>0.5", str(tmp_path / "cold"))
    assert (rule.older_than, hot.rules()) == (None, (rule,))
    [step] = [step for step in hot.maintain(dry_run=True).steps if step.action == "move"]
    assert (step.request, step.done, step.fields, step.why) == (rule.query, False, 2, "a dry run")
    report = hot.maintain()
    assert report.ok
    assert (report.steps[0].action, report.steps[0].done, report.steps[0].fields) == ("move", True, 2)
    assert len(list(hot.list())) == 1
    assert cold.run("a").read("t", 2).max() == 2
    assert [hit.value for hit in cold.attributes(tag="maximum")] == [1.0, 2.0]
    for how in [{"query": "tag=x"}, {"query": "tag=", "to": cold}, {"to": "memory:", "request": "run=a"}]:
        with pytest.raises(fst.Invalid):
            hot.retain(**how)
    hot.retain(query="tag=maximum and value>0.5", drop=True)
    hot.retain("run=a,step=0", to=tmp_path / "nowhere")
    report = hot.maintain()
    [step] = [step for step in report.steps if step.action == "move"]
    assert not step.done
    assert "no store at" in step.why
    # Somebody has to look: what the rule keeps small grows.
    assert (step.code, report.ok) == ("store-not-found", False)


def test_arrays_of_jobs_move_with_their_groups(tmp_path: Path) -> None:
    hot, cold = fst.open(tmp_path / "hot"), fst.open(tmp_path / "cold")
    with hot.arrays("sim") as job:
        group = job.group("flow", {"p": "f8", "q": "f8"}, shape=(4, 3), level=3)
        for step in range(2):
            group.write("p", step, np.full((4, 3), float(step)))
            group.write("q", step, np.full((4, 3), -float(step)))
            job.flush()
    report = fst.move(hot, "run=sim", to=cold)
    assert (report.removed, report.left) == (4, ())
    assert list((tmp_path / "cold" / "arrays" / "sim").glob("*/g0/*.nc"))
    with cold.arrays("sim") as job:
        group = job.group("flow")
        assert group.last_step() == 1
        assert group.read("q", 1).min() == -1
        group.write("p", 2, np.zeros((4, 3)))
        group.write("q", 2, np.zeros((4, 3)))
        job.flush()
        assert group.last_step() == 2

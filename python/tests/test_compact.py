"""Compaction: one file in the place of closed logs, and every answer as before."""

from __future__ import annotations

import os
import pickle
import threading
from datetime import timedelta
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest


def written(path: Path, writers: int = 5) -> str:
    """A store that `writers` processes wrote one after another, as far as its logs show."""
    for n in range(writers):
        with fst.open(path) as store:
            run = store.create_run("a", exist_ok=True)
            run.create_variable("t", dtype="f8", shape=(4,))
            run.write("t", n, np.arange(4.0) + n)
            run.annotate("peak", float(n), variable="t", step=n, start=1, count=2)
            store.graph.put_edge("write", ("job", str(n)), ("file", f"/{n}"))
    return str(path)


def answers(store: fst.Store) -> list[object]:
    fields = [(str(e.key), e.nbytes, e.time, e.owner) for e in store.list(masked=True)]
    found = list(store.attributes(tag="peak", order="step"))
    hits = [(h.run, h.step, h.value, h.start, h.user, h.writer, h.writer.log) for h in found]
    of_writers = [store.attributes(tag="peak", writer=h.writer.log).count() for h in found]
    audit = [(r.time, r.user, r.action, r.object) for r in store.graph.audit(user=os.getuid())]
    return [
        fields,
        store.axes(),
        [f.array().tolist() for f in store.retrieve("run=a")],
        hits,
        of_writers,
        audit,
        [h.step for h in store.find("tag=peak and value>2 order by step")],
        [str(run.params) for run in store.runs()],
        [(v.run, v.name, v.shape) for v in store.variables()],
        [(e.type, e.src, e.dst, e.stamp) for e in store.graph.edges(("file", "/1"))],
        [str(v) for v in store.graph.trace(("file", "/1")).vertices],
    ]


def logs(path: Path) -> int:
    return len(list((path / "logs").glob("*.log")))


def test_every_answer_is_as_before(tmp_path: Path) -> None:
    url = written(tmp_path / "s")
    reader = fst.open(url, mode="r")
    before, version = answers(reader), reader.version
    with fst.open(url) as store:
        report = store.compact(grace=0)
        assert report.logs == (5, 0) and report.segments[1] == 1 and report.files[1] < report.files[0]
        assert report.nbytes > 0 and (report.waiting, report.left, report.ok) == (0, (), True)
        assert store.verify().ok
        store.rebuild()
    assert logs(tmp_path / "s") == 0
    for opened in (reader, fst.open(url, mode="r"), fst.open(url, mode="r", at=version)):
        assert answers(opened) == before


def test_requests_limits_and_the_grace(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with fst.open(written(path)) as store:
        assert store.compact("run=b").logs == (5, 5)
        assert store.compact({"run": "a", "step": [1, 2]}, grace=timedelta(hours=2)).logs == (5, 3)
        assert store.compact(["run=a,step=0", "run=a,step=3"], grace=60.5).waiting >= 4
        assert (logs(path), store.compact(max_bytes=1).logs) == (5, (1, 1))
        assert store.compact(grace=0).logs == (1, 0)
        assert logs(path) == 0


def test_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s"
    with fst.open(written(path)) as store:

        def stop(logs: int, entries: int) -> None:
            raise KeyError("stop")

        with pytest.raises(KeyError, match="stop"):
            store.compact(progress=stop)
        assert logs(path) == 5
        seen: list[tuple[int, int]] = []
        report = store.compact(grace=0, progress=lambda logs, entries: seen.append((logs, entries)))
        assert report.logs == (5, 0) and seen[-1] == (5, 5)
        store.compact(progress="auto")
    assert capsys.readouterr().err == ""  # not a terminal


def test_other_threads_run_meanwhile(tmp_path: Path) -> None:
    with fst.open(written(tmp_path / "s")) as store:
        counted = threading.Event()
        threading.Thread(target=counted.set).start()
        store.compact(grace=0, progress=lambda logs, entries: counted.wait(10))
        assert counted.is_set()


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s"
    url = written(path)
    log = min((path / "logs").glob("*.log"))
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    with fst.open(url, mode="r+") as store:
        report = store.compact(grace=0)
    assert (report.ok, len(report.left), report.left[0].file) == (False, 1, f"logs/{log.name}")
    assert report.left[0].why and str(report.left[0]).startswith("logs/")
    assert log.exists()


def test_reports_are_shown_and_pickled() -> None:
    left = fst.LeftLog("logs/a.log", "does not match its checksum")
    report = fst.CompactReport((300, 2), (600, 3), (310, 4), 12_000_000, 300, (left,))
    assert repr(report).startswith("CompactReport(logs=(300, 2), segments=(600, 3), files=(310, 4), nbytes=")
    assert pickle.loads(pickle.dumps(report)) == report
    html = report._repr_html_()
    for words in ("300, now 2", "600, now 3", "12 MB", "logs/a.log", "does not match"):
        assert words in html, html


def test_what_cannot_be_compacted(tmp_path: Path) -> None:
    with pytest.raises(fst.Invalid, match="in memory") as caught:
        fst.open("memory:").compact()
    assert "checkpoint" in caught.value.hint
    url = written(tmp_path / "s", 1)
    with pytest.raises(fst.Denied):
        fst.open(url, mode="r").compact()
    with fst.open(url) as store:
        for grace in (-1, float("nan"), float("inf"), "soon", None):
            with pytest.raises(fst.Invalid, match="grace"):
                store.compact(grace=grace)
        with pytest.raises(fst.Invalid):
            store.compact("step=x")

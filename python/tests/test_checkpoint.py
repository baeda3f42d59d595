"""Stores in memory, written to folders: complete at every moment, only new bytes, and how often."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import fieldstone as fst
import numpy as np
import pytest


def key(step: int, variable: str = "t") -> dict[str, object]:
    return {"run": "r", "variable": variable, "step": step}


def test_a_checkpoint_opens_as_the_store_it_was(tmp_path):
    store = fst.open("memory:")
    big = np.random.default_rng(1).random((300, 1000))
    store.archive(key(0), big)
    store.archive(key(1), b"opaque")
    first = store.checkpoint(tmp_path / "c")
    assert first.bytes > big.nbytes and first.files == 2 and first.seconds > 0
    with fst.open(tmp_path / "c", "r") as found:
        assert found.version == first.version == store.version
        assert np.array_equal(found.get(key(0)), big) and found.get(key(1)) == b"opaque"
        assert found.verify().ok
    store.archive(key(1), b"newer")
    second = store.checkpoint(tmp_path / "c")
    assert 0 < second.bytes < 10_000 and second.files == 1
    assert store.checkpoint(tmp_path / "c").bytes == 0
    with fst.open(tmp_path / "c", "r") as found, fst.open(tmp_path / "c", "r", at=first.version) as before:
        assert found.get(key(1)) == b"newer" and before.get(key(1)) == b"opaque"


def test_runs_tags_and_attributes_are_in_it(tmp_path):
    store = fst.open("memory:")
    run = store.create_run("a", params={"nx": 3})
    run.create_variable("t", "f8", (6,), find="max")
    for step in range(3):
        run.write("t", step, np.arange(6.0) + step)
        run.annotate("front", step, variable="t", step=step, start=2, count=3)
        report = store.checkpoint(tmp_path / "c")
        with fst.open(tmp_path / "c", "r") as found:
            assert found.version == report.version
            assert [h.value for h in found.attributes(tag="front", order="step")] == list(range(step + 1))
            assert [h.value for h in found.attributes(tag="max", order="step")] == [
                5.0 + s for s in range(step + 1)
            ]
            assert found.attributes(tag="front", order="-step").first().read().tolist() == [
                2.0 + step,
                3 + step,
                4 + step,
            ]
            assert found.run("a").params == {"nx": 3}


def test_a_full_copy_wants_a_new_folder(tmp_path):
    store = fst.open("memory:")
    store.archive(key(0), b"x")
    store.checkpoint(tmp_path / "a", incremental=False)
    with pytest.raises(fst.Conflict, match="not empty"):
        store.checkpoint(tmp_path / "a", incremental=False)
    with pytest.raises(fst.Conflict, match="another store"):
        fst.open("memory:").checkpoint(tmp_path / "a")
    with fst.open(tmp_path / "a") as folder, pytest.raises(fst.Invalid, match="in a folder"):
        folder.checkpoint(tmp_path / "b")


def test_writing_goes_on_meanwhile(tmp_path):
    store = fst.open("memory:")
    stop, wrote, failed = threading.Event(), threading.Semaphore(0), []

    def write() -> None:
        step = 0
        while not stop.is_set():
            with store.transaction() as tx:
                for variable in "uvw":
                    tx.archive(key(step, variable), np.full(20_000, step, "f4"))
            step += 1
            wrote.release()

    def run() -> None:
        try:
            write()
        except BaseException as error:
            failed.append(error)
            wrote.release(8)

    thread = threading.Thread(target=run)
    thread.start()
    seen = []
    try:
        for _ in range(8):
            # On a busy machine eight checkpoints may be made before the writer gets its first turn.
            assert wrote.acquire(timeout=300)
            store.checkpoint(tmp_path / "c")
            with fst.open(tmp_path / "c", "r") as found:
                fields = found.retrieve(None, strict=False)
                steps: dict[int, int] = {}
                for field in fields:
                    step = int(field.key["step"])
                    assert (field.array() == step).all()
                    steps[step] = steps.get(step, 0) + 1
                # A transaction is there as a whole or not at all.
                assert set(steps.values()) <= {3} and sorted(steps) == list(range(len(steps)))
                seen.append(len(steps))
    finally:
        stop.set()
        thread.join()
    assert not failed
    assert seen == sorted(seen) and seen[0] >= 1 and seen[-1] >= 8


WRITER = """
import sys, numpy as np, fieldstone as fst
store = fst.open("memory:")
for step in range(100_000):
    for variable in ("u", "v"):
        key = {"run": "r", "variable": variable, "step": step}
        store.archive(key, np.full(60_000 if step % 3 else 400_000, step, "f4"))
    store.flush()
    store.checkpoint(sys.argv[1])
    print(step, flush=True)
"""


def test_a_killed_process_leaves_its_last_checkpoint(tmp_path):
    draw = random.Random(5)
    for attempt in range(6):
        folder = tmp_path / str(attempt)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, folder], stdout=subprocess.PIPE, text=True, env=os.environ
        )
        assert writer.stdout is not None
        said = -1
        while said < attempt:
            said = int(writer.stdout.readline())
        time.sleep(draw.random() / 20)
        os.kill(writer.pid, signal.SIGKILL)
        said = max([said, *map(int, writer.stdout.read().split())])
        writer.wait()
        with fst.open(folder, "r") as found:
            report = found.verify()
            assert report.ok, report
            fields = found.retrieve(None, strict=False)
            steps = [int(field.key["step"]) for field in fields]
            assert all((field.array() == int(field.key["step"])).all() for field in fields)
        assert set(range(said + 1)) <= set(steps) <= set(range(said + 2))
        assert all(steps.count(step) == 2 for step in set(steps))
        shutil.rmtree(folder)


def test_a_full_disk_leaves_the_checkpoint_before(small_disk):
    store = fst.open("memory:")
    store.archive(key(0), np.zeros(200_000))
    first = store.checkpoint(small_disk / "c")
    store.archive(key(1), np.random.default_rng(2).random(800_000))
    with pytest.raises(fst.Unavailable):
        store.checkpoint(small_disk / "c")
    with fst.open(small_disk / "c", "r") as found:
        assert found.version == first.version and found.verify().ok
        assert len(found.retrieve(None)) == 1
    grown = subprocess.run(["mount", "-o", "remount,size=32m", small_disk], capture_output=True)
    assert grown.returncode == 0, grown.stderr
    report = store.checkpoint(small_disk / "c")
    with fst.open(small_disk / "c", "r") as found:
        assert found.version == report.version and found.verify().ok
        assert len(found.retrieve(None)) == 2


def test_how_often_by_daly():
    # Daly 2006, equation 37, by hand: sqrt(2dM) (1 + sqrt(d/2M)/3 + d/(18M)) - d.
    assert fst.checkpoint_interval(60, 3600) == pytest.approx(
        (2 * 60 * 3600) ** 0.5 * (1 + (60 / 7200) ** 0.5 / 3 + 60 / (18 * 3600)) - 60
    )
    assert fst.checkpoint_interval(7300, 3600) == 3600
    assert fst.checkpoint_interval([50, 70], 3600, restart=600) == fst.checkpoint_interval(60, 3600)
    one = fst.CheckpointReport(version="v", bytes=1, files=1, seconds=60.0)
    assert fst.checkpoint_interval(one, 3600) == fst.checkpoint_interval([one, 60], 3600)
    best = fst.checkpoint_interval(60, 3600)
    at_best = fst.checkpoint_overhead(best, 60, 3600, restart=120)
    for other in (best / 2, best * 2):
        assert 1 < at_best < fst.checkpoint_overhead(other, 60, 3600, restart=120)
    assert fst.checkpoint_overhead(best, 60, 3600) < at_best
    for wrong in (0, -1, float("nan"), []):
        with pytest.raises(fst.Invalid, match="cost="):
            fst.checkpoint_interval(wrong, 3600)

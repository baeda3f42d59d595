"""Room that comes back, and what work beside it costs.

`python bench/space.py overwrite ROOT MIB` overwrites nine tenths of a store and purges it; `beside ROOT`
flushes from 16 processes alone and beside maintenance; `cache ROOT MIB` keeps a hot cache of five days, whose
old fields move to a second store; `copy ROOT MIB` backs a store up, and compares with `cp`. Each prints one
line of JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import BENCH, Result, Span, percentile, tree_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from steps import Figure, Sitting

MIB = 1 << 20
WRITERS, PACE = 16, 0.1
# Seconds that stand for a day of the cache.
DAY = 12
# Bytes of maintenance a second.
BUDGET = 32 * MIB
ACTIONS = ("compact", "purge", "wipe", "backup")


def allocated(root: Path) -> float:
    """Bytes on the disk, a file that has two names once."""
    seen = {}
    for path in root.rglob("*"):
        try:
            stat = path.lstat()
        except FileNotFoundError:
            continue
        seen[stat.st_ino] = stat.st_blocks * 512
    return float(sum(seen.values()))


class Watch:
    """Looks at a folder's room every tenth of a second; `most` is the largest."""

    def __init__(self, *roots: Path) -> None:
        self.roots, self.most, self._ended = roots, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._ended.wait(0.1):
            self.most = max(self.most, sum(allocated(root) for root in self.roots))

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


# ---- in the child


def overwrite(root: str, mib: int) -> None:
    """Fields of 1 MiB, of which the newest tenth is visible at the end."""
    import fieldstone

    live = mib // 10
    for round_ in range(10):
        with fieldstone.open(root, "a") as store:
            for step in range(live):
                store.archive({"run": "a", "variable": "t", "step": step}, os.urandom(MIB))
                if step % 64 == 63:
                    store.flush()
            store.flush()
        del round_
    before = allocated(Path(root))
    with Watch(Path(root)) as watch, Span() as span:
        for _ in range(2):
            with fieldstone.open(root, "a") as store:
                store.purge(all=True, doit=True, grace=0)
    after = allocated(Path(root))
    with fieldstone.open(root, "r") as store:
        fields = sum(1 for _ in store.list({}))
        intact = store.verify().ok
    result = {
        "before": before,
        "after": after,
        "live": float(live * MIB),
        "extra": max(0.0, watch.most - before),
    }
    assert fields == live and intact
    result |= {"ratio": (after - 16 * MIB) / (live * MIB), "seconds": span.seconds, "cpu": span.cpu}
    print(json.dumps(result))


def _writer(root: str, name: int, stop: Any, out: Any) -> None:
    import fieldstone

    times = []
    with fieldstone.open(root, "a") as store:
        step = 0
        while not stop.is_set():
            for variable in range(10):
                store.archive(
                    {"run": f"w{name}", "variable": f"v{variable}", "step": step % 1_000}, bytes(4096)
                )
            start = time.perf_counter()
            store.flush()
            times.append(time.perf_counter() - start)
            step += 1
            time.sleep(max(0.0, PACE - times[-1]))
    out.put(times)


def _flushes(root: str, meanwhile: Callable[[], None]) -> list[float]:
    """The seconds of all flushes of 16 processes while a function runs."""
    context = multiprocessing.get_context("spawn")
    stop, out = context.Event(), context.Queue()
    writers = [context.Process(target=_writer, args=(root, name, stop, out)) for name in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        time.sleep(3)
        meanwhile()
    finally:
        stop.set()
    times = [seconds for _ in writers for seconds in out.get()]
    for writer in writers:
        writer.join()
    return times


def _act(root: str, action: str, seconds: float) -> None:
    """Runs an action in a process of its own at its budget, `BUDGET` bytes a second, again and again."""
    code = (
        "import sys, time, os, fieldstone as f\n"
        f"root, action, seconds, budget = {root!r}, {action!r}, {seconds}, {BUDGET}\n"
        "end = time.time() + seconds\n"
        "number = 0\n"
        "while time.time() < end:\n"
        "    began = time.time()\n"
        "    with f.open(root, 'a') as s:\n"
        "        if action == 'compact': s.compact(rate=budget, grace=0)\n"
        "        elif action == 'purge': s.purge(all=True, doit=True, rate=budget, grace=0)\n"
        "        elif action == 'wipe': s.wipe({'run': 'old', 'variable': f'v{number}'}, doit=True)\n"
        "        elif action == 'backup': f.backup(s, root + '-copy', rate=budget)\n"
        "    number += 1\n"
        "    time.sleep(max(0.0, min(1.0, end - time.time(), began + 1 - time.time())))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def beside(root: str, seconds: int = 10) -> None:
    """Flushes alone, then beside each kind of maintenance of a store with something to do."""
    import fieldstone

    def old() -> None:
        for round_ in range(8):
            with fieldstone.open(root, "a") as store:
                for step in range(1_000):
                    key = {"run": "old", "variable": f"v{step % 20}", "step": step}
                    store.archive(key, os.urandom(64 << 10))
                    if step % 100 == 99:
                        store.flush()
            del round_

    result: Result = {}
    old()
    alone = _flushes(root, lambda: time.sleep(seconds))
    result["alone"], result["alone_p99"] = percentile(alone, 0.5), percentile(alone, 0.99)
    worst, worst_p99 = 0.0, 0.0
    for action in ACTIONS:
        old()
        times = _flushes(root, lambda action=action: _act(root, action, seconds))
        result[action], result[f"{action}_p99"] = percentile(times, 0.5), percentile(times, 0.99)
        worst = max(worst, result[action] / result["alone"])
        worst_p99 = max(worst_p99, result[f"{action}_p99"] / result["alone_p99"])
    print(json.dumps(result | {"worst": worst, "worst_p99": worst_p99}))


def cache(root: str, mib: int) -> None:
    """Five days of `mib` each; a rule moves what is older than a day to a second store."""
    import fieldstone

    cold = root + "-cold"
    subprocess.run([str(Path(sys.prefix) / "bin" / "fieldstone"), "init", cold], check=True)
    with fieldstone.open(root, "a") as store:
        store.retain(older_than=DAY, to=cold, all=True)
    most_hot, step, day_began = 0.0, 0, time.monotonic()
    with Watch(Path(root)) as watch, Span() as span:
        for day in range(5):
            with fieldstone.open(root, "a") as store:
                run = store.create_run(f"day{day}")
                for number in range(mib):
                    store.archive({"run": f"day{day}", "variable": "t", "step": number}, os.urandom(MIB))
                    run.annotate("mean", float(number), variable="t", step=number)
                    step += 1
                    if number % 64 == 63:
                        store.flush()
                store.flush()
            time.sleep(max(0.0, day_began + DAY * (day + 1) - time.monotonic()))
            for _ in range(2):
                with fieldstone.open(root, "a") as store:
                    report = store.maintain(grace=0)
                    assert report.ok, report
    most_hot = watch.most
    with fieldstone.open(root, "r") as hot, fieldstone.open(cold, "r") as other:
        here = {str(entry.key) for entry in hot.list({})}
        there = {str(entry.key) for entry in other.list({})}
        assert hot.verify().ok and other.verify().ok
    assert not here & there and len(here | there) == step
    result = {"hot": most_hot, "hot_days": most_hot / (mib * MIB), "fields": step, "kept": len(here)}
    result |= {
        "cold": allocated(Path(cold)),
        "cold_share": allocated(Path(cold)) / (max(1, len(there)) * MIB),
    }
    print(json.dumps(result | {"seconds": span.seconds, "cpu": span.cpu}))


def copy(root: str, mib: int) -> None:
    """A first backup, not read back and read back, beside `cp -a`; a second one after one more flush."""
    import fieldstone

    with fieldstone.open(root, "a") as store:
        for step in range(mib):
            store.archive({"run": "a", "variable": "t", "step": step}, os.urandom(MIB))
            if step % 64 == 63:
                store.flush()
        store.flush()

    def timed(call: Callable[[], object]) -> float:
        os.sync()
        start = time.perf_counter()
        call()
        os.sync()
        return time.perf_counter() - start

    target = root + "-copy"
    shutil.rmtree(target, ignore_errors=True)
    plain = timed(lambda: subprocess.run(["cp", "-a", root, target + "-cp"], check=True))
    shutil.rmtree(target + "-cp")
    with fieldstone.open(root, "a") as store:
        first = timed(lambda: fieldstone.backup(store, target, verify=False))
        shutil.rmtree(target)
        whole = timed(lambda: fieldstone.backup(store, target))
        for step in range(32):
            store.archive({"run": "b", "variable": "t", "step": step}, os.urandom(MIB))
        store.flush()
        report = fieldstone.backup(store, target)
    size = tree_size(Path(root))["length"]
    result = {"first": first, "whole": whole, "plain": plain, "share": plain / first, "rate": size / first}
    result |= {"second": float(report.nbytes), "over": float(report.nbytes) - 32 * MIB}
    shutil.rmtree(target)
    print(json.dumps(result))


# ---- steps of figures


def _child(*arguments: Any) -> Result:
    command = [sys.executable, str(BENCH / "space.py"), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def step(verb: str, *numbers: int, quick: tuple[int, ...] = ()) -> Callable[[Figure, Sitting, str], Result]:
    """A step that runs a verb of this file on an absent store."""

    def run(fig: Figure, at: Sitting, peer: str) -> Result:
        return _child(verb, at.fresh(fig.name, peer), *(quick if at.quick else numbers))

    return run


if __name__ == "__main__":
    verb, root, *numbers = sys.argv[1:]
    verbs = {"overwrite": overwrite, "beside": beside, "cache": cache, "copy": copy}
    verbs[verb](root, *map(int, numbers))

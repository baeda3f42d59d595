"""Stores with few and with many past writers: both hold the same fields, and takeovers stand in for all logs.

`python bench/years.py fill ROOT WRITERS FLUSHES FIELDS` makes such a store and compacts it; `look ROOT`
opens it in a fresh process and times what a user waits for; `jobs ROOT NUMBER` lets short jobs run one after
another, with nothing but their own closing merges. Each prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import BENCH, Result

if TYPE_CHECKING:
    from steps import Figure, Sitting

FEW, MANY = "64 writers", "10,000 writers"
# Writers, flushes of each, fields of each flush: a million fields in both.
SHAPES = {FEW: (64, 15, 1_042), MANY: (10_000, 10, 10)}
QUICK = {FEW: (8, 5, 50), MANY: (200, 10, 1)}
STEPS = 1_000
# Writers between two calls of compact.
BATCH = 1_000


# ---- in the child


def _key(number: int) -> dict[str, Any]:
    return {"run": f"r{number % 7}", "variable": f"v{number // STEPS}", "step": number % STEPS}


def fill(root: str, writers: int, flushes: int, fields: int) -> None:
    """Makes the store, writer by writer, and compacts it: after each thousand writers, and at the end."""
    import fieldstone

    os.environ["FIELDSTONE_CLOSING_MERGES"] = "0"
    number, seconds, used = 0, 0.0, 0.0
    for writer in range(writers):
        with fieldstone.open(root, "a") as store:
            for _ in range(flushes):
                for _ in range(fields):
                    store.archive(_key(number), b"0123456789abcdef")
                    number += 1
                store.flush()
        if writer % BATCH == BATCH - 1 or writer == writers - 1:
            start, cpu = time.perf_counter(), time.process_time()
            with fieldstone.open(root, "a") as store:
                report = store.compact(grace=0)
                version = store.version
            seconds += time.perf_counter() - start
            used += time.process_time() - cpu
    files = [path for path in Path(root).rglob("*") if path.is_file()]
    index = sum(path.stat().st_size for path in Path(root, "logs").iterdir())
    print(
        json.dumps(
            {
                "fields": number,
                "seconds": seconds,
                "cpu": used,
                "entries_s": number / seconds,
                "logs": report.logs[1],
                "takeovers": report.segments[1],
                "files": len(files),
                "index_field": index / number,
                "version": len(version),
            }
        )
    )


def look(root: str) -> None:
    """Times the calls that a user waits for, in a process that has not seen the store."""
    import fieldstone

    times: dict[str, float] = {}

    def timed(name: str, call: Any) -> Any:
        start = time.perf_counter()
        result = call()
        times[name] = time.perf_counter() - start
        return result

    def first() -> Any:
        store = fieldstone.open(root, "r")
        store.get(_key(77))
        return store

    reader = timed("open_get", first)
    writer = fieldstone.open(root, "a")
    for step in range(20):
        writer.archive({"run": "other", "variable": "w", "step": step}, b"x")
        timed(f"flush{step}", writer.flush)
        timed(f"refresh{step}", reader.refresh)
    fields = timed("list", lambda: sum(1 for _ in reader.list({}))) - 20
    timed("get", lambda: [reader.get(_key(number * 997 % fields)) for number in range(1_000)])
    timed("axes", lambda: reader.axes({}))
    reader.close()
    writer.close()
    median = lambda name: sorted(times[f"{name}{n}"] for n in range(20))[10]  # noqa: E731
    result = {name: times[name] for name in ("open_get", "list", "axes")}
    result |= {"flush": median("flush"), "refresh": median("refresh"), "get": times["get"] / 1_000}
    print(json.dumps(result))


def jobs(root: str, number: int) -> None:
    """Short jobs one after another: seconds of the first and of the last thousand, and files at the end."""
    import fieldstone

    seconds, most = [], 0
    for job in range(number):
        start = time.perf_counter()
        with fieldstone.open(root, "a") as store:
            store.archive({"run": "r", "variable": f"v{job // STEPS}", "step": job % STEPS}, b"x")
            store.flush()
        seconds.append(time.perf_counter() - start)
        if job % 1_000 == 999:
            most = max(most, sum(len(files) for _, _, files in os.walk(root)))
    print(
        json.dumps(
            {
                "first": sum(seconds[:1_000]),
                "last": sum(seconds[-1_000:]),
                "ratio": sum(seconds[-1_000:]) / sum(seconds[:1_000]),
                "slowest": max(seconds),
                "files": most,
                "jobs_s": number / sum(seconds),
            }
        )
    )


# ---- steps of figures


def _child(*arguments: Any) -> Result:
    command = [sys.executable, str(BENCH / "years.py"), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def setup(fig: Figure, at: Sitting, peer: str) -> Result:
    return _child("fill", at.fresh(fig.name, peer), *(QUICK if at.quick else SHAPES)[peer])


def run(fig: Figure, at: Sitting, peer: str) -> Result:
    return _child("look", at.root(fig.name, peer))


def count(fig: Figure, at: Sitting, peer: str) -> Result:
    """System calls of a process that opens the store and gets one field."""
    root, trace = at.root(fig.name, peer), at.work / "years.strace"
    program = f"import fieldstone; fieldstone.open({str(root)!r}, 'r').get({_key(77)!r})"
    nothing = "import fieldstone"
    calls = []
    for code in (program, nothing):
        command = ["strace", "-f", "-o", str(trace), sys.executable, "-c", code]
        subprocess.run(command, check=True)
        calls.append(sum(1 for _ in trace.open(errors="replace")))
    return {"calls": calls[0] - calls[1]}


def run_jobs(fig: Figure, at: Sitting, peer: str) -> Result:
    return _child("jobs", at.fresh(fig.name, peer), 2_000 if at.quick else fig.data["jobs"])


if __name__ == "__main__":
    verb, root, *numbers = sys.argv[1:]
    {"fill": fill, "look": look, "jobs": jobs}[verb](root, *map(int, numbers))

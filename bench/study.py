"""A parameter study: many short runs whose fields are reduced to tags as they are written.

`python bench/study.py PEER ROOT RUNS` makes it once in a fresh process and prints one line of JSON: seconds
and processor seconds from the first run to the end of the flush. `fieldstone_store` declares runs, parameters
and variables and writes with `find=["max", "mean"]`; `fieldstone_archive` archives the same arrays by key and
reduces each with numpy, but does not store the results.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from measure import BENCH, Result, Span, parse_trace, traced, tree_size

if TYPE_CHECKING:
    from steps import Figure, Sitting

OURS, ARCHIVE = "fieldstone_store", "fieldstone_archive"
RUNS, STEPS, VARIABLES, SHAPE = 200, 50, ("density", "pressure", "temperature", "velocity"), (32, 32)


def arrays() -> list[np.ndarray]:
    """The arrays that steps write in turn, made before the clock starts."""
    rng = np.random.default_rng(1)
    return [rng.random(SHAPE, "f4") for _ in range(16)]


def written(root: Path, runs: int, values: list[np.ndarray]) -> Result:
    """Runs with parameters, variables with finders, and `run.write`."""
    import fieldstone as fst

    with fst.open(root) as store, Span() as span:
        for number in range(runs):
            run = store.create_run(f"run-{number:03}", params={"power": number / 20, "solver": "roe"})
            for variable in VARIABLES:
                run.create_variable(variable, "f4", SHAPE, ("y", "x"), find=["max", "mean"])
            for step in range(STEPS):
                for at, variable in enumerate(VARIABLES):
                    run.write(variable, step, values[(number + step + at) % len(values)])
        store.flush()
    with fst.open(root, "r") as store:
        assert store.attributes().count() == 2 * runs * STEPS * len(VARIABLES)
    return span.result(runs * STEPS * len(VARIABLES))


def archived(root: Path, runs: int, values: list[np.ndarray]) -> Result:
    """The same arrays by key, and the same two numbers of each by numpy."""
    import fieldstone as fst

    reduced = []
    with fst.open(root) as store, Span() as span:
        for number in range(runs):
            for step in range(STEPS):
                for at, variable in enumerate(VARIABLES):
                    array = values[(number + step + at) % len(values)]
                    store.archive({"run": f"run-{number:03}", "variable": variable, "step": step}, array)
                    reduced.append((float(array.max()), float(array.mean(dtype="f8"))))
        store.flush()
    assert len(reduced) == runs * STEPS * len(VARIABLES)
    return span.result(len(reduced))


def once(peer: str, root: str, runs: str) -> None:
    """Makes it, and prints the times."""
    values = arrays()
    make = {OURS: written, ARCHIVE: archived}[peer]
    make(Path(root).with_name("warm"), 1, values)
    result = make(Path(root), int(runs), values)
    print(json.dumps({**result, **tree_size(Path(root))}))


def command(at: Sitting, peer: str, root: Path) -> list[str]:
    return [sys.executable, str(BENCH / "study.py"), peer, str(root), str(RUNS // (20 if at.quick else 1))]


def run(fig: Figure, at: Sitting, peer: str) -> Result:
    """One fresh process that makes it on an absent store."""
    done = subprocess.run(
        command(at, peer, at.fresh(fig.name, peer)), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"bench: {peer} failed:\n{done.stderr[-3000:]}")
    result: Result = json.loads(done.stdout.strip().splitlines()[-1])
    return {**result, "field": result["seconds"] / result["fields"]}


def count(fig: Figure, at: Sitting, peer: str) -> Result:
    """The same under strace; counts the calls that `Span` encloses."""
    root = at.fresh(fig.name, peer)
    log = root.parent / "strace"
    environment = {**os.environ, "BENCH_TRACE": "1"}
    subprocess.run(traced(command(at, peer, root), log), env=environment, capture_output=True, check=True)
    counts = parse_trace(log, root)["measured"]
    return {"syncs": counts.syncs, "written": counts.written, "write_calls": counts.write_calls}


if __name__ == "__main__":
    once(*sys.argv[1:])

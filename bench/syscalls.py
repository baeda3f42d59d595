"""Counts the system calls of verbs and Python calls in stores of 10, 100 and 1,000 runs and writers.

    .venv/bin/python bench/syscalls.py [--sizes 10,100,1000] [--only list,find]

Each run has its own writer. Each call is a fresh process under strace, which opens the store and makes
the call; the table leaves out the calls of a process that only starts. It shows the counts, and how they grow
from the second size to the last (1: in proportion to the writers). The program names calls that grow faster,
and then ends with 1. Counts repeat on a busy machine; times do not.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import fieldstone as fst
import numpy as np

# The growth that still counts as linear: small counts jump.
LINEAR = 1.15

PROGRAM: dict[str, list[str]] = {
    "list": ["list", "STORE"],
    "list --json": ["list", "STORE", "--json"],
    "list --depth 1": ["list", "STORE", "--depth", "1"],
    "list --location": ["list", "STORE", "--location"],
    "list --compact": ["list", "STORE", "--compact"],
    "list run=r1": ["list", "STORE", "run=r1", "--json"],
    "axes": ["axes", "STORE"],
    "where": ["where", "STORE"],
    "get": ["get", "STORE", "run=r1,variable=t,step=0"],
    "show": ["show", "STORE", "run=r1,variable=t,step=0"],
    "stats": ["stats", "STORE"],
    "status": ["status", "STORE"],
    "verify": ["verify", "STORE"],
    "runs": ["runs", "STORE"],
    "steps": ["steps", "STORE"],
    "variables": ["variables", "STORE"],
    "tags": ["tags", "STORE"],
    "find": ["find", "STORE", "tag=q"],
    "sql": ["sql", "STORE", "select count(*) from runs"],
    "trace": ["trace", "STORE", "run=r1,variable=t,step=0"],
    "audit": ["audit", "STORE", "--user", "root"],
    "graph stats": ["graph", "stats", "STORE"],
    "arrays": ["arrays", "STORE"],
    "mesh": ["mesh", "STORE"],
    "dump": ["dump", "STORE"],
    "transaction list": ["transaction", "list", "STORE"],
    "version": ["version", "STORE"],
    "rebuild": ["rebuild", "STORE"],
    "copy": ["copy", "STORE", "--to", "OTHER"],
    "export": ["export", "STORE", "run=r1", "OTHER.nc"],
    "annotate": ["annotate", "STORE", "note", "x", "--run", "r1"],
    "archive": ["archive", "STORE", "run=new", "variable=t", "step=0", "INPUT"],
}

PYTHON: dict[str, str] = {
    "store.list()": "sum(1 for _ in store.list())",
    "store.list().to_arrow()": "store.list().to_arrow()",
    "store.list(requests)": "sum(1 for _ in store.list([f'run=r{i}' for i in range(N)]))",
    "store.retrieve().read()": "[f.read() for f in store.retrieve('variable=t')]",
    "store.get() of each run": "[store.get(f'run=r{i},variable=t,step=0') for i in range(N)]",
    "store.axes()": "store.axes()",
    "store.stats()": "store.stats()",
    "store.verify()": "store.verify()",
    "store.runs()": "list(store.runs())",
    "store.variables()": "list(store.variables())",
    "store.attributes()": "list(store.attributes(tag='q'))",
    "hits.read()": "store.attributes(tag='q').read()",
    "store.to_xarray()": "store.to_xarray('variable=t,step=1').load()",
    "xarray.open_dataset": "xarray.open_dataset(url, engine='fieldstone', request='variable=t,step=1')",
    "store.graph.find()": "list(store.graph.find())",
}

PRELUDE = """
import sys, fieldstone as fst, xarray
url, N = sys.argv[1], int(sys.argv[2])
store = fst.open(url, "r")
"""


def build(url: Path, runs: int) -> None:
    """A store of `runs` runs, each with two arrays, an attribute and an execution, by its own writer."""
    for i in range(runs):
        with fst.open(url) as store:
            run = store.create_run(f"r{i}", params={"nx": 4})
            with fst.execution("model", store, params={"i": i}):
                for step in range(2):
                    run.write("t", step, np.full(4, i, "f8"))
            store.flush()
            run.annotate("q", i, variable="t", step=0)


def calls(command: list[str], folder: Path) -> int:
    """System calls of a command and its children; it must succeed."""
    counts = folder / "strace"
    strace = ["strace", "-f", "-c", "-qq", "-o", str(counts), *command]
    done = subprocess.run(strace, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    total = [line.split() for line in counts.read_text().splitlines() if line.rstrip().endswith("total")]
    return int(total[-1][2] if len(total[-1]) < 6 else total[-1][3])


def measured(url: Path, runs: int, folder: Path, only: set[str]) -> dict[str, int]:
    """The count of each call, without that of a process that only starts."""
    program = shutil.which("fieldstone") or str(Path(sys.executable).with_name("fieldstone"))
    (folder / "input").write_bytes(b"x" * 100)
    places = {"STORE": str(url), "INPUT": str(folder / "input")}
    bare = {"program": calls([program, "--version"], folder)}
    bare["python"] = calls([sys.executable, "-c", "import fieldstone, xarray"], folder)
    counts = {}
    for name, words in PROGRAM.items():
        if only and name.split()[0] not in only:
            continue
        other = Path(tempfile.mkdtemp(dir=folder)) / "other"
        given = [places.get(word, word.replace("OTHER", str(other))) for word in words]
        counts[name] = calls([program, *given], folder) - bare["program"]
    for name, text in PYTHON.items():
        if not only or any(word in name for word in only):
            given = [sys.executable, "-c", PRELUDE + text, str(url), str(runs)]
            counts[name] = calls(given, folder) - bare["python"]
    return counts


def main() -> int:
    """Measures, prints, and returns whether anything grows faster than the writers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    only = {word for word in options.only.split(",") if word}
    os.environ["FIELDSTONE_LOG"] = ""
    found: list[dict[str, int]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in sizes:
            url = folder / f"store{size}"
            build(url, size)
            found.append(measured(url, size, folder, only))
    print("| call | " + " | ".join(f"{size:,}" for size in sizes) + " | growth |")
    print("|---|" + "---|" * (len(sizes) + 1))
    faster = []
    for name in found[0]:
        counts = [max(count[name], 1) for count in found]
        growth = math.log(counts[-1] / counts[-2]) / math.log(sizes[-1] / sizes[-2])
        if growth > LINEAR:
            faster.append(name)
        print(f"| `{name}` | " + " | ".join(f"{count:,}" for count in counts) + f" | {growth:.2f} |")
    print(f"\n{len(faster)} grow faster than the writers: {', '.join(faster) or 'none'}")
    return bool(faster)


if __name__ == "__main__":
    sys.exit(main())

"""Figures, and the steps that their runs are made of.

A step is called for one peer at a time and returns numbers in base units (seconds, bytes): a figure's `setup`
once per peer, its `run` in turn at least seven times, its `count` once, untimed and under strace.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import workload
from measure import BENCH, Counts, Result, child, run_program, tree_size
from peers import fdb, fieldstone_store, raw

OURS, FDB, RAW = "fieldstone_store", "fdb", "raw"
INGESTED, FILES = "fieldstone_ingested", "netcdf_files"
BUFFER = 8 << 20


@dataclass
class Sitting:
    """The folder of a series of runs, and whether the series is short, to check that everything works."""

    work: Path
    quick: bool
    wanted: list[str]

    def root(self, figure: str, peer: str) -> Path:
        return self.work / figure / peer / "store"

    def fresh(self, figure: str, peer: str) -> Path:
        """The path of an absent store; flushes to disk everything that earlier runs left."""
        root = self.root(figure, peer)
        shutil.rmtree(root.parent, ignore_errors=True)
        root.parent.mkdir(parents=True)
        os.sync()
        return root


Step = Callable[["Figure", Sitting, str], Result]


@dataclass(frozen=True)
class Row:
    """One line of a table: the number under `key` divided by `unit`, timed or counted."""

    key: str
    label: str
    unit: float = 1.0
    digits: int = 0
    counted: bool = False
    over: str | None = None
    """Show this peer's number divided by each peer's own: how many times faster they are."""


@dataclass(frozen=True)
class Target:
    """`key` of `of`, alone or divided by that of `than`, should be at least or at most `limit`.

    Of several in `than` the best counts; an excess of at most `slack` is also accepted.
    """

    text: str
    key: str
    limit: float
    than: str | tuple[str, ...] | None = None
    least: bool = False
    slack: float = 0.0
    of: str = OURS
    spread: bool = False
    """Also accept the time of the slowest run of the best of several."""


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    what: str
    peers: tuple[str, ...]
    run: Step
    rows: tuple[Row, ...]
    targets: tuple[Target, ...] = ()
    setup: Step | None = None
    count: Step | None = None
    data: dict[str, Any] = field(default_factory=dict)
    group: str = ""
    runs: int = 7
    missing: Callable[[], str] | None = None
    """Names a missing thing that the figure needs; "" if nothing is missing."""


def _rates(r: Result) -> Result:
    n = r["fields"]
    more = {"fields_s": n / r["seconds"], "bytes_s": r["bytes"] / r["seconds"], "cpu_field": r["cpu"] / n}
    return {**r, **more}


def _counted(counts: Counts) -> Result:
    return {
        "syncs": counts.syncs,
        "written": counts.written,
        "write_calls": counts.write_calls,
        "read": counts.read + counts.mapped,
        "read_calls": counts.read_calls,
    }


# -- archive


def archive(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "archive", at.fresh(fig.name, peer), quick=at.quick, **fig.data)
    return _rates(r)


def grib(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "grib", at.fresh(fig.name, peer), quick=at.quick, **fig.data)
    return _rates(r)


def archive_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.fresh(fig.name, peer)
    r, marks = child(peer, "archive", root, trace=True, quick=at.quick, **fig.data)
    size = tree_size(root)
    over = size["length"] - r["bytes"]
    return {**_counted(marks["measured"]), **size, "over": over, "over_field": over / r["fields"]}


# -- flush


def flush(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "flushes", at.fresh(fig.name, peer))
    return {k: r[k] for k in ("median", "p95", "cpu")}


def flush_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.fresh(fig.name, peer)
    r, marks = child(peer, "flushes", root, trace=True, sizes=True)
    sizes, payload = r["sizes"], r["payload"]
    later = [marks[f"flush {i}"] for i in range(1, len(sizes))]
    hundred = len(sizes) - 1
    return {
        "first_syncs": marks["flush 0"].syncs,
        "syncs": sum(c.syncs for c in later) / hundred,
        "fewest_syncs": min(c.syncs for c in later),
        "most_syncs": max(c.syncs for c in later),
        "write_calls": sum(c.write_calls for c in later) / hundred,
        "written": sum(c.written for c in later) / hundred,
        "first_over": sizes[0]["length"] - payload,
        "one_over": sizes[1]["length"] - sizes[0]["length"] - payload,
        "over": (sizes[-1]["length"] - sizes[0]["length"]) / hundred - payload,
        "allocated": (sizes[-1]["allocated"] - sizes[0]["allocated"]) / hundred,
        "files": sizes[-1]["files"],
    }


# -- list, get, retrieve


def fill(fig: Figure, at: Sitting, peer: str) -> Result:
    every = 10_000 if fig.data["shape"] == "2m" else 0
    r, _ = child(peer, "fill", at.fresh(fig.name, peer), quick=at.quick, flush_every=every, **fig.data)
    return _rates(r)


def listing(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "entries", at.root(fig.name, peer), quick=at.quick, **fig.data)
    return _rates({**r, "open_first": r["open"] + r["first"]})


def listing_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    _, marks = child(peer, "entries", at.root(fig.name, peer), trace=True, quick=at.quick, **fig.data)
    return {**_counted(marks["measured"]), **tree_size(at.root(fig.name, peer))}


def cli(fig: Figure, at: Sitting, peer: str) -> Result:
    root, output = at.root(fig.name, peer), at.work / "cli.out"
    argv, environment = {OURS: fieldstone_store, FDB: fdb}[peer].Store.cli(root)
    r = run_program(argv, environment, output)
    lines = sum(b"step" in line for line in output.read_bytes().splitlines())
    assert lines == workload.shape(fig.data["shape"], at.quick).fields, (argv, lines)
    return {**r, "printed": output.stat().st_size}


def one(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "one", at.root(fig.name, peer), quick=at.quick, **fig.data)
    return r


def retrieve(fig: Figure, at: Sitting, peer: str) -> Result:
    if peer != RAW:
        r, _ = child(peer, "retrieve", at.root(fig.name, peer), quick=at.quick, buffer=BUFFER, **fig.data)
        return _rates(r)
    ranges = at.work / "ranges"
    if not ranges.exists():
        raw.write_ranges(at.root(fig.name, RAW), workload.shape(fig.data["shape"], at.quick), ranges)
    return _rates(floor(ranges))


def floor(ranges: Path) -> Result:
    """Runs bench/floor over a list of ranges."""
    program = BENCH / "floor" / "target" / "release" / "fieldstone-bench-floor"
    out = subprocess.run([program, ranges, str(BUFFER)], capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def retrieve_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    if peer == RAW:
        shape = workload.shape(fig.data["shape"], at.quick)
        return {"read": shape.total, "read_calls": shape.fields}
    root = at.root(fig.name, peer)
    _, marks = child(peer, "retrieve", root, trace=True, quick=at.quick, buffer=BUFFER, **fig.data)
    return _counted(marks["measured"])


# -- boxes


def box_fill(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "box_fill", at.fresh(fig.name, peer), quick=at.quick, **fig.data)
    return r


def box(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "box", at.root(fig.name, peer), quick=at.quick, **fig.data)
    return r


def box_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    _, marks = child(peer, "box", at.root(fig.name, peer), trace=True, quick=at.quick, **fig.data)
    whole = workload.box(fig.data["box"], at.quick).nbytes
    counts = _counted(marks["measured"])
    return {**counts, "share": counts["read"] / whole, "beyond": counts["read"] - 0.02 * whole}


# -- xarray


def fill_runs(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "fill_runs", at.fresh(fig.name, peer), quick=at.quick, **fig.data)
    return _rates(r)


def open_runs(fig: Figure, at: Sitting, peer: str) -> Result:
    r, _ = child(peer, "open_runs", at.root(fig.name, peer), quick=at.quick, **fig.data)
    return r


def open_runs_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.root(fig.name, peer)
    _, marks = child(peer, "open_runs", root, trace=True, quick=at.quick, **fig.data)
    return {**_counted(marks["measured"]), **tree_size(root)}

"""Measures Fieldstone, FDB and the bare disk in turn, and writes docs/benchmarks.md.

    bench/run.sh [--only NAME]... [--runs N] [--quick] [--peers NAME,NAME] [--work DIR] [--before PYTHON]

For every figure, it sets up once, waits until the machine is idle, runs the peers in turn (ours, FDB, raw,
ours, ...), each run in a fresh process on an empty store or on the one set up, and then counts system calls
in one more run per peer that is not timed. It keeps all single values in bench/results.json, from which it
makes the tables. `--quick` runs small shapes twice, to check that everything works; it prints its tables and
keeps nothing. `--before PYTHON` compares Fieldstone with an older release of it, which is installed for that
interpreter; it prints the tables and keeps nothing either.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import arrays
import arrays_paper
import before
import catalog
import combine
import container_data
import graph
import hits
import opening
import report
import short_jobs
import slots
import study
import years
import zarr_read
from creation_figures import ALONE, COLUMNS, HASHES, PNETCDF, STRATEGIES
from figures import FIGURES
from measure import BENCH, machine, read_into_cache, wait_for_idle
from steps import FDB, FILES, INGESTED, OURS, RAW, Figure, Sitting

RESULTS, DOCUMENT = BENCH / "results.json", BENCH.parent / "docs" / "benchmarks.md"
PEERS = {
    "fieldstone": OURS,
    "ingested": INGESTED,
    "fdb": FDB,
    "raw": RAW,
    "netcdf": FILES,
    "hdf5": catalog.RECORDS,
    "hdf5-bulk": catalog.BULK,
    "sqlite": catalog.CLUSTERED,
    "sqlite-curve": catalog.CURVE,
    "copy": catalog.COPY,
    "hdf5-arrays": hits.HDF5,
    graph.FJALL: graph.FJALL,
    graph.KUZU: graph.KUZU,
    **{name: name for name in (*slots.SCHEMES, slots.PAPER, *slots.ENGINES, slots.FOLDER)},
    **{name.removeprefix("fieldstone-"): name for name in (*arrays.PEERS, *arrays_paper.PEERS)},
    combine.KERCHUNK: combine.KERCHUNK,
    combine.CFGRIB: combine.CFGRIB,
    "archive": study.ARCHIVE,
    zarr_read.CHECKED: zarr_read.CHECKED,
    zarr_read.PLAIN: zarr_read.PLAIN,
    container_data.PLAIN: container_data.PLAIN,
    container_data.NETCDF4: container_data.NETCDF4,
    "few": years.FEW,
    "many": years.MANY,
    short_jobs.ICECHUNK: short_jobs.ICECHUNK,
    **{
        name.removeprefix("fieldstone-"): name
        for name in (*STRATEGIES[1:], *HASHES, COLUMNS, ALONE, *PNETCDF, *opening.PEERS[2:])
    },
}


def arguments() -> argparse.Namespace:
    about, *_ = (__doc__ or "").partition("\n")
    ap = argparse.ArgumentParser(description=about)
    names = [f.name for f in FIGURES]
    groups = sorted({f.group for f in FIGURES if f.group})
    ap.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        choices=[*names, *groups],
        help=f"one of {', '.join(names)}; or all of {', '.join(groups)}",
    )
    ap.add_argument("--runs", type=int, default=0, help="runs per peer (7; 2 with --quick)")
    ap.add_argument("--quick", action="store_true", help="small shapes, nothing kept")
    ap.add_argument("--peers", default=",".join(PEERS))
    ap.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "fieldstone-bench",
        help="folder on the disk to measure; needs 12 GB",
    )
    ap.add_argument("--before", metavar="PYTHON", help="compare with the older release that it imports")
    ap.add_argument("--patience", type=float, default=300, help="seconds to wait for a load below 1.5")
    return ap.parse_args()


def measure(figure: Figure, sitting: Sitting, runs: int, patience: float) -> dict[str, Any]:
    """One figure: its setup, its alternating runs, its counts."""
    peers = [p for p in figure.peers if p in sitting.wanted]
    (sitting.work / "ranges").unlink(missing_ok=True)
    kept: dict[str, Any] = {"runs": {p: [] for p in peers}, "counts": {}, "setup": {}}
    if figure.setup:
        kept["setup"] = {p: figure.setup(figure, sitting, p) for p in peers}
        os.sync()
        for peer in peers:
            read_into_cache(sitting.root(figure.name, peer))
    wait_for_idle(1.5, patience)
    before = os.getloadavg()[0]
    for number in range(runs):
        for peer in peers:
            kept["runs"][peer].append(figure.run(figure, sitting, peer))
        print(f"{figure.name}: run {number + 1} of {runs}, load {os.getloadavg()[0]:.2f}", file=sys.stderr)
    after = os.getloadavg()[0]
    if figure.count:
        kept["counts"] = {p: figure.count(figure, sitting, p) for p in peers}
    shutil.rmtree(sitting.work / figure.name, ignore_errors=True)
    commit = subprocess.run(
        ["git", "-C", str(BENCH.parent), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    now = datetime.datetime.now().astimezone()
    return {
        **kept,
        "load": [before, after],
        "commit": commit or "unknown",
        "date": now.strftime("%Y-%m-%d %H:%M"),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def main() -> None:
    a = arguments()
    wanted = [PEERS[name] for name in a.peers.split(",")]
    if OURS in wanted and importlib.util.find_spec("fieldstone") is None:
        print("bench: fieldstone is not installed here; measuring only the others", file=sys.stderr)
        wanted = [peer for peer in wanted if peer not in (OURS, INGESTED)]
    if shutil.which("strace") is None:
        raise SystemExit("bench: strace is needed to count system calls (package strace)")
    a.work.mkdir(parents=True, exist_ok=True)
    facts = machine(a.work)
    if facts["file system"].startswith("tmpfs"):
        raise SystemExit(f"bench: {a.work} is in memory; give --work a folder on the disk to measure")
    facts |= {
        "FDB": f"fdb5lib {_version('fdb5lib')}, pyfdb {_version('pyfdb')}",
        "Fieldstone": _version("fieldstone"),
        "xarray": f"{_version('xarray')}, netCDF4 {_version('netCDF4')}, dask {_version('dask')}",
        "zarr": f"{_version('zarr')}, numcodecs {_version('numcodecs')}",
    }
    keep = not a.quick and RESULTS.exists()
    results = json.loads(RESULTS.read_text()) if keep else {"figures": {}}
    results["machine"] = facts
    sitting = Sitting(a.work.resolve(), a.quick, wanted)
    for figure in FIGURES:
        if (a.only and not {figure.name, figure.group} & set(a.only)) or not set(figure.peers) & set(wanted):
            continue
        if figure.missing and (why := figure.missing()):
            print(f"{figure.name}: {why}, left out", file=sys.stderr)
            continue
        if a.before and figure.group in before.OTHER_PROGRAMS:
            print(f"{figure.name}: only runs programs of this tree, left out", file=sys.stderr)
            continue
        if a.before:
            runs = a.runs or (2 if a.quick else figure.runs)
            lines = before.compare(figure, sitting, a.before, runs, 0 if a.quick else a.patience)
            print("\n".join(lines), flush=True)
            continue
        runs = a.runs or (2 if a.quick else figure.runs)
        measured = measure(figure, sitting, runs, 0 if a.quick else a.patience)
        results["figures"][figure.name] = measured | {"processor": facts["processor"]}
        if not a.quick:
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
            report.write(DOCUMENT, report.render(results))
    if not a.before:
        print(report.render(results))


if __name__ == "__main__":
    main()

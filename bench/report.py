"""Turns the stored results into the tables of docs/benchmarks.md, between two marker lines."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from figures import FIGURES
from steps import Figure, Row, Target

BEGIN, END = "<!-- bench: written by `make bench` -->", "<!-- bench: end -->"
NAMES = {
    "fieldstone_store": "Fieldstone",
    "fieldstone_ingested": "Fieldstone, files ingested",
    "fieldstone_archive": "archive and numpy",
    "netcdf_files": "netCDF files",
    "fdb": "FDB",
    "raw": "raw",
    "catalog_hdf5": "HDF5, record scan",
    "catalog_hdf5_bulk": "HDF5, whole tables",
    "catalog_sqlite": "SQLite, clustered",
    "catalog_sqlite_curve": "SQLite, curve index",
    "copy": "bare COPY",
    "icechunk": "icechunk",
    "hits_hdf5": "HDF5, arrays",
    "fjall": "bare fjall",
    "kuzu": "Kuzu",
    **{name: name for name in ("edge-cut", "vertex-cut", "giga+", "dido", "sync", "plain")},
    "dido-paper": "dido, paper's labels",
    "folder": "the file system",
    "kerchunk": "kerchunk",
    "cfgrib": "cfgrib",
    "zarr-crc32c": "LocalStore, crc32c",
    "zarr-plain": "LocalStore, unchecked",
    "fieldstone-partitioned": "partitioned",
    "fieldstone-app": "app",
    "fieldstone-columns": "columns in Rust",
    "fieldstone-alone": "one rank alone",
    **{f"fieldstone-library-hash:{1 << bits}": f"library-hash, {1 << bits:,}" for bits in range(8, 21, 2)},
    "fieldstone-library-sort": "library-sort",
    "netcdf4-python": "netCDF4",
    "h5py": "h5py",
    "pnetcdf": "PnetCDF",
    "pread-pwrite": "pread and pwrite",
    "pnetcdf-16384": "PnetCDF, hash 16,384",
    "pnetcdf-1048576": "PnetCDF, hash 1,048,576",
    "fieldstone-c": "Fieldstone from C",
    "numpy-alltoallv": "Alltoallv, numpy",
    "alltoallv": "Alltoallv, C",
    "mpiio": "MPI-IO",
    "pnetcdf-arrays": "PnetCDF",
    "sequential": "sequential write",
    "broadcast": "read and broadcast, C",
    **{f"fieldstone-level-{level}": f"level {level}" for level in (1, 2, 3)},
    "fieldstone-direct": "direct I/O",
    "in-turn": "ranks in turn",
}


def _number(value: float, row: Row) -> str:
    return f"{value / row.unit:,.{row.digits}f}"


def _cell(kept: dict[str, Any], peer: str, row: Row) -> str:
    if row.counted:
        counts = kept["counts"].get(peer, {})
        return _number(counts[row.key], row) if row.key in counts else "-"
    values = [r[row.key] for r in kept["runs"].get(peer, []) if row.key in r]
    if not values:
        return "-"
    if row.over:
        base = [r[row.key] for r in kept["runs"].get(row.over, [])]
        ratios = [b / v for b, v in zip(base, values, strict=False) if v]
        return f"{statistics.median(ratios):,.{row.digits}f} times" if ratios else "-"
    low, middle, high = (_number(v, row) for v in (min(values), statistics.median(values), max(values)))
    return middle if low == high else f"**{middle}** ({low}-{high})"


def outcome(kept: dict[str, Any], target: Target) -> tuple[float, bool] | None:
    """The measured value of a target and whether the target is met; None if a peer was not measured."""
    ours = kept["runs"].get(target.of, [])
    if isinstance(target.than, tuple):
        return _beside_best(kept, target, target.than)
    if target.than:
        theirs = kept["runs"].get(target.than, [])
        ratios = [a[target.key] / b[target.key] for a, b in zip(ours, theirs, strict=False)]
        values = ratios
    elif target.key in kept["counts"].get(target.of, {}):
        values = [kept["counts"][target.of][target.key]]
    else:
        values = [r[target.key] for r in ours]
    if not values:
        return None
    value = statistics.median(values)
    return value, value >= target.limit if target.least else value <= target.limit


def _beside_best(kept: dict[str, Any], target: Target, peers: tuple[str, ...]) -> tuple[float, bool] | None:
    """The median of ours over the least median of the others."""
    medians = {
        peer: statistics.median(r[target.key] for r in kept["runs"][peer])
        for peer in (target.of, *peers)
        if kept["runs"].get(peer)
    }
    if target.of not in medians or len(medians) < 2:
        return None
    ours = medians.pop(target.of)
    best = min(medians.values())
    allowed = target.limit * best
    # Small absolute differences, and differences in the range of the best peer's own runs, are noise.
    if target.slack:
        allowed = max(allowed, best + target.slack)
    if target.spread:
        least = min(medians, key=lambda peer: medians[peer])
        allowed = max(allowed, *(r[target.key] for r in kept["runs"][least]))
    return ours / best, ours <= allowed


def _name(peer: str) -> str:
    """A peer as tables call it; shapes of our own stand for themselves."""
    return NAMES.get(peer, peer)


def _show(value: float, target: Target, figure: Figure) -> str:
    if isinstance(target.than, tuple):
        return f"{value:.2f} times the best of {', '.join(_name(p) for p in target.than)}"
    if target.than:
        return (
            f"{value:.0%} of {_name(target.than)}" if value < 2 else f"{value:.1f} times {_name(target.than)}"
        )
    row = next((r for r in figure.rows if r.key == target.key), Row(target.key, "bytes"))
    unit = row.label.rsplit(", ", 1)[-1] if row.unit != 1 else ""
    return f"{_number(value, row)} {unit}".strip()


def _runs(runs: int) -> str:
    return f"{runs} alternating runs" if runs > 1 else "1 run"


def _section(figure: Figure, kept: dict[str, Any]) -> list[str]:
    peers = [p for p in figure.peers if p in kept["runs"]]
    runs = max(len(r) for r in kept["runs"].values())
    lines = [f"### {figure.title}", "", figure.what, ""]
    lines += ["| | " + " | ".join(_name(p) for p in peers) + " |", "| --- |" + " ---: |" * len(peers)]
    for row in figure.rows:
        cells = [_cell(kept, p, row) for p in peers]
        if any(c != "-" for c in cells):
            lines.append(f"| {row.label} | " + " | ".join(cells) + " |")
    lines.append("")
    for target in figure.targets:
        if found := outcome(kept, target):
            verdict = "met" if found[1] else "**not met**"
            lines.append(f"- Aim: {target.text}. Measured: {_show(found[0], target, figure)}: {verdict}.")
    processor = f", {kept['processor']}" if "processor" in kept else ""
    lines += [
        "",
        f"{kept['date']}, {_runs(runs)}, load {kept['load'][0]:.2f} before and "
        f"{kept['load'][1]:.2f} after, Fieldstone at `{kept['commit']}`{processor}. Again: "
        f"`bench/run.sh --only {figure.name}`.",
        "",
    ]
    return lines


def render(results: dict[str, Any]) -> str:
    """All figures that have results, after a table of the machine and one of the aims."""
    kept, machine = results["figures"], results["machine"]
    said = "This is the machine of the last run. Processors differ: a figure names its own if it is known."
    lines = ["## The machine", "", said, "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in machine.items()]
    lines += ["", "## Aims", "", "| figure | aim | measured | |", "| --- | --- | --- | --- |"]
    measured = [f for f in FIGURES if f.name in kept]
    for figure in measured:
        for target in figure.targets:
            if found := outcome(kept[figure.name], target):
                shown, verdict = _show(found[0], target, figure), "met" if found[1] else "**not met**"
                lines.append(f"| {figure.title} | {target.text} | {shown} | {verdict} |")
    lines += ["", "## Figures", ""]
    for figure in measured:
        lines += _section(figure, kept[figure.name])
    return "\n".join(lines)


def write(document: Path, text: str) -> None:
    """Replaces the text between the markers of the document."""
    old = document.read_text()
    before, _, rest = old.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"bench: {document} lacks the markers {BEGIN!r} and {END!r}")
    document.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")

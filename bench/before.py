"""Compares two releases: `bench/run.sh --before PYTHON` with the interpreter of an environment in
which the older one is installed.

Each release has its own stores. The two swap their order from one round to the next, and the ratio is
taken in each round, so that drift of the machine cancels out. Nothing is written to the docs.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from dataclasses import replace

import measure
from measure import Result, read_into_cache, wait_for_idle
from steps import Figure, Sitting

OTHER_PROGRAMS = {"arrays", "create", "data", "graph", "open", "sharing", "slots"}
"""Groups whose programs are built from the tree, or that choose their interpreter themselves."""


def compare(figure: Figure, sitting: Sitting, python: str, runs: int, patience: float) -> list[str]:
    """The rows of a figure for both releases, as lines of a Markdown table."""
    peer = figure.peers[0]
    sides = {"now": sys.executable, "before": python}
    sittings = {side: replace(sitting, work=sitting.work / side) for side in sides}
    for side, interpreter in sides.items():
        measure.interpreter = interpreter
        if figure.setup:
            figure.setup(figure, sittings[side], peer)
            os.sync()
            read_into_cache(sittings[side].root(figure.name, peer))
    wait_for_idle(1.5, patience)
    load = os.getloadavg()[0]
    rounds: list[dict[str, Result]] = []
    for number in range(runs):
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        rounds.append({})
        for side in order:
            measure.interpreter = sides[side]
            rounds[-1][side] = figure.run(figure, sittings[side], peer)
    counts: dict[str, Result] = {}
    for side, interpreter in sides.items():
        measure.interpreter = interpreter
        if figure.count:
            counts[side] = figure.count(figure, sittings[side], peer)
        shutil.rmtree(sittings[side].work / figure.name, ignore_errors=True)
    measure.interpreter = sys.executable
    lines = [f"### {figure.title}", "", f"load {load:.2f} to {os.getloadavg()[0]:.2f}, {runs} rounds", ""]
    lines += ["| | before | now | now / before |", "| --- | ---: | ---: | ---: |"]
    for row in figure.rows:
        if all(row.key in side for one in rounds for side in one.values()):
            before, now = ([one[side][row.key] for one in rounds] for side in ("before", "now"))
        elif all(row.key in counts.get(side, {}) for side in sides):
            before, now = ([counts[side][row.key]] for side in ("before", "now"))
        else:
            continue
        ratios = [b / a for a, b in zip(before, now, strict=True) if a]
        shown = (f"{statistics.median(side) / row.unit:,.{max(row.digits, 2)}f}" for side in (before, now))
        ratio = f"{statistics.median(ratios):.3f}" if ratios else "-"
        lines.append(f"| {row.label} | {' | '.join(shown)} | {ratio} |")
    return [*lines, ""]

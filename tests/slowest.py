"""Prints the ten slowest tests of a run, from JUnit reports; fails if one of them takes too long.

    python tests/slowest.py [--limit SECONDS] REPORT...

A longer test belongs in `make test-long`, with a short form here: CONTRIBUTING.md gives the limit for a run.
"""

from __future__ import annotations

import argparse
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def slowest(reports: list[Path], count: int = 10) -> list[tuple[float, str]]:
    """The seconds and names of the slowest tests, slowest first."""
    cases = [case for report in reports for case in ElementTree.parse(report).iter("testcase")]
    times = ((float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}") for case in cases)
    return sorted(times, reverse=True)[:count]


def main(arguments: list[str]) -> int:
    """Prints the slowest tests; returns 1 if one is above the limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=180.0)
    parser.add_argument("reports", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    found = slowest(options.reports)
    for seconds, name in found:
        print(f"{seconds:7.1f} s  {name}")
    late = [name for seconds, name in found if seconds > options.limit]
    for name in late:
        print(f"{name} takes more than {options.limit:g} s: shorten it, or move it to make test-long")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

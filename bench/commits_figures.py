"""The figures of commits of fields and attributes."""

from __future__ import annotations

import commits
from commits import SIZES
from steps import OURS, RAW, Figure, Row, Target


def _writers(writers: int, each: int) -> Figure:
    ms = 1e-3
    many = writers > 1
    return Figure(
        f"commit-{writers}",
        f"Commit fields and their attributes, {writers} writer{'s at once' if many else ''}",
        f"{each} commits{' each, one a second,' if many else ''} of three fields of 512 B and an attribute "
        "with a box on each; from the call of flush to its return. The floor: the same bytes and one "
        "fdatasync, one file per writer.",
        (OURS, RAW),
        commits.commits,
        (
            Row("median", "median, ms", ms, 2),
            Row("p99", "99th percentile, ms", ms, 2),
            Row("longest", "longest, ms", ms, 1),
            Row("rate", "commits/s, all writers"),
        ),
        (
            (
                Target("99 of 100 commits within 10 ms", "p99", 0.010),
                Target("p99 at most 3 times that of bare synced writes", "p99", 3, than=RAW),
            )
            if many
            else (Target("a commit within 5 ms (median)", "median", 0.005),)
        ),
        data={"writers": writers, "each": each, "pace": 1.0 if many else 0.0},
        group="commit",
    )


COMMITS = (
    _writers(1, 300),
    _writers(64, 20),
    Figure(
        "commit-sizes",
        "Commit transactions of every size",
        "A flush prepares a field and n attributes with boxes; then the commit writes one record.",
        (OURS,),
        commits.sizes,
        tuple(
            Row(f"{what}_{size}", f"{what} {size:,} attributes, ms", 1e-3, 2)
            for size in SIZES
            for what in ("prepare", "commit")
        ),
        (Target("a commit within 5 ms, whatever its size (the longest)", "worst", 0.005),),
        group="commit",
    ),
)

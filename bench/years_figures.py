"""The figures of stores that were written for a long time."""

from __future__ import annotations

import years
from steps import OURS, Figure, Row, Target

MS = 1e-3

YEARS = (
    Figure(
        "years-writers",
        "A million fields of few and of many past writers",
        "64 writers with 15 flushes of 1,042 fields each, and 10,000 writers with 10 flushes of 10 fields "
        "each; `compact` after each 1,000 writers. Each run is a fresh process that opens the store, gets a "
        "field, flushes beside a reader 20 times, gets 1,000 fields, lists all, and asks for the axes.",
        (years.FEW, years.MANY),
        years.run,
        (
            Row("open_get", "open and first get, ms", MS, 2),
            Row("calls", "system calls of it", counted=True),
            Row("flush", "flush, median, ms", MS, 3),
            Row("refresh", "refresh after another's commit, median, ms", MS, 3),
            Row("get", "get, µs", 1e-6, 1),
            Row("list", "list of all, s", 1, 3),
            Row("axes", "axes, ms", MS, 2),
        ),
        tuple(
            Target(f"{name}: many at most 1.3 times few", key, 1.3, than=years.FEW, of=years.MANY)
            for key, name in (
                ("open_get", "open and first get"),
                ("flush", "flush"),
                ("refresh", "refresh"),
                ("get", "get"),
                ("list", "list"),
                ("axes", "axes"),
            )
        ),
        setup=years.setup,
        count=years.count,
        group="years",
    ),
    Figure(
        "years-jobs",
        "Short jobs one after another, with nothing but their closing merges",
        "Each opens the store, archives one field, flushes and closes, in one process.",
        (OURS,),
        years.run_jobs,
        (
            Row("first", "the first 1,000, s", 1, 2),
            Row("last", "the last 1,000, s", 1, 2),
            Row("ratio", "last over first", 1, 2),
            Row("slowest", "slowest job, ms", MS, 0),
            Row("files", "most files"),
        ),
        (Target("the last 1,000 at most 1.5 times the first", "ratio", 1.5),),
        group="years",
        data={"jobs": 20_000},
        runs=1,
    ),
)

"""The figures of a parameter study: writing it with finders, and finding a quantity in many files."""

from __future__ import annotations

import study
import where
from steps import Figure, Row, Target
from study import ARCHIVE, OURS

STUDY = (
    Figure(
        "study-write",
        "A study: 200 runs, 50 steps, 4 variables",
        "40,000 arrays of 32 x 32 f4, 164 MB, and 80,000 numbers computed from them: runs with parameters "
        'and declared variables, `run.write` with `find=["max", "mean"]`; for comparison, `archive` of the '
        "same arrays and numpy's `max` and `mean`, which are not stored. The flush at the end is included.",
        (OURS, ARCHIVE),
        study.run,
        (
            Row("seconds", "time, s", 1, 2),
            Row("cpu", "CPU, s", 1, 2),
            Row("field", "a field, us", 1e-6, 1),
            Row("length", "bytes on disk, MiB", 2**20, 1),
            Row("syncs", "syncs", counted=True),
            Row("written", "bytes written, MiB", 2**20, 1, counted=True),
            Row("write_calls", "write calls", counted=True),
        ),
        (Target("at most 1.5 of archive's and numpy's time", "seconds", 1.5, ARCHIVE),),
        count=study.count,
        group="study",
    ),
    Figure(
        "where",
        "Find a quantity in 120 files",
        "120 netCDF-4 files of two quantities on tiles of the globe: grids with latitude and longitude along "
        "dimensions, in two dimensions, and of 16,200 cells in no order. The queries go by standard name, by "
        "unit, by a box across the date line, by time, and by name, box and time together: "
        "`store.variables` of a store that ingested them; or each file is opened and compared. Both find the "
        "same variables.",
        (where.OURS, where.FILES),
        where.run,
        (
            *(Row(question, f"{question}, ms", 1e-3, 2) for question in where.QUESTIONS),
            Row("slowest", "the slowest further answer, ms", 1e-3, 2),
            Row("slowest-first", "the slowest first answer, with the open, ms", 1e-3, 1),
            *(Row(f"{question}-found", f"{question}, variables found") for question in where.QUESTIONS),
        ),
        (Target("every answer at most 50 ms", "slowest", 0.05, of=where.OURS),),
        setup=where.fill,
        group="study",
    ),
)

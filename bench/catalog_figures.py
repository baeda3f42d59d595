"""The figures of the catalog: queries hot and cold, inserting, PostgreSQL, growth."""

from __future__ import annotations

import catalog
from catalog import BULK, CLUSTERED, COPY, CURVE, RECORDS
from steps import OURS, Figure, Row, Target
from volume import QUERIES

_EVERY = (OURS, CLUSTERED, CURVE, BULK, RECORDS)
_LAYOUTS = (CLUSTERED, CURVE)

# Milliseconds at W = 4000, hot.
_HOT = {"q1": 0.6, "q2": 0.3, "q3": 0.4, "q4": 0.25, "q5": 0.2, "q6": 0.6, "x7": 8, "x8": 3}


def _queries(writers: int, warm: bool) -> Figure:
    times = tuple(Row(q, f"{q}: {text}, ms", 1e-3, 3 if warm else 1) for q, text in QUERIES.items())
    ratios = tuple(
        Row(q, f"{q}: times faster than the record scan", over=RECORDS) for q in QUERIES if q.startswith("q")
    )
    targets: tuple[Target, ...] = ()
    if warm and writers == 4000:
        targets += tuple(Target(f"{q} in at most {ms} ms", q, ms * 1e-3) for q, ms in _HOT.items())
    if warm:
        targets += tuple(
            Target(f"{q} within 1.5 times or 0.2 ms of the best layout", q, 1.5, _LAYOUTS, slack=0.2e-3)
            for q in QUERIES
        )
        targets += (
            Target("at most 4 rows visited per row returned, and 200 (rows beyond 4 a row)", "beyond", 200),
        )
    else:
        targets += tuple(Target(f"{q} in at most 15 ms, open included", q, 0.015) for q in QUERIES)
    counted = tuple(Row(f"visited_{q}", f"{q}: rows visited", counted=True) for q in QUERIES) if warm else ()
    return Figure(
        f"catalog-{'hot' if warm else 'cold'}-{writers}",
        f"Catalog queries, {'hot' if warm else 'cold'}, W = {writers}",
        f"The paper's volume of {writers} writers, "
        + (
            "in one process, each query repeated."
            if warm
            else "with a fresh process and an empty page cache for each query, including the open."
        ),
        _EVERY,
        catalog.hot if warm else catalog.cold,
        (*times, *ratios, *counted),
        targets,
        setup=catalog.fill,
        count=catalog.visited if warm else None,
        data={"writers": writers},
        group="catalog",
    )


def _insert(writers: int) -> Figure:
    return Figure(
        f"catalog-insert-{writers}",
        f"Insert attributes from columns, W = {writers}",
        "Three steps, each durable when the call returns; at the end a query that needs all of them applied.",
        (OURS, CLUSTERED, CURVE, RECORDS),
        catalog.insert,
        (
            Row("rate", "attributes/s"),
            Row("cpu_row", "CPU per attribute, µs", 1e-6, 2),
            Row("engine_row", "bytes per attribute, engine or file", 1, 1),
            Row("log_row", "bytes per attribute, log", 1, 1),
            Row("syncs", "sync calls", counted=True),
            Row("write_calls", "write calls", counted=True),
            Row("written", "bytes written, MiB", 2**20, 2, counted=True),
        ),
        (
            Target("at least 250,000 attributes/s, durable and applied", "rate", 250_000, least=True),
            Target("at most 110 bytes per attribute in the engine", "engine_row", 110),
            Target("at most 45 bytes per attribute in the log", "log_row", 45),
        ),
        count=catalog.insert_counts,
        data={"writers": writers},
        group="catalog",
    )


CATALOG = (
    *(_queries(writers, warm) for writers in (1000, 2000, 4000) for warm in (True, False)),
    *(_insert(writers) for writers in (1000, 4000)),
    Figure(
        "catalog-postgresql",
        "Attributes into PostgreSQL",
        "From a store's log into an empty schema, everything applied. For comparison, the server copies the "
        "same rows from a file into an empty table with the same indexes. Columns only, without the "
        "small runs.",
        (OURS, COPY),
        catalog.apply,
        (
            Row("rate", "attributes/s"),
            Row("seconds", "time, s", 1, 2),
            Row("cpu", "CPU of the client, s", 1, 2),
        ),
        (Target("at least 80 % of a bare COPY of the same rows", "rate", 0.8, COPY, least=True),),
        setup=catalog.apply_fill,
        data={"writers": 4000},
        group="catalog",
    ),
    Figure(
        "catalog-unflushed",
        "Read unflushed data",
        "290 calls of 273 attributes each on one run, which is kept or looked up by name before each; 290 "
        "new runs. In a transaction and outside, from Python, with no flush in between.",
        (OURS,),
        catalog.unflushed,
        (
            Row("kept_out", "run kept, outside, ms", 1e-3, 1),
            Row("named_out", "run by name, outside, ms", 1e-3, 1),
            Row("kept_in", "run kept, in a transaction, ms", 1e-3, 1),
            Row("named_in", "run by name, in a transaction, ms", 1e-3, 1),
            Row("create_out", "new runs, outside, ms", 1e-3, 1),
            Row("create_in", "new runs, in a transaction, ms", 1e-3, 1),
        ),
        (
            Target("by name at most 2 times a kept run (the worse)", "over_kept", 2),
            Target("new runs in a transaction at most 2 times outside", "over_outside", 2),
        ),
        group="catalog",
    ),
    Figure(
        "catalog-growth",
        "30 million attributes over 1,000 runs",
        "15,000 boxes a run, two tags each, a flush a run; queries after the first million and at the end.",
        (OURS,),
        catalog.growth,
        (
            Row("rate_early", "attributes/s, first million, durable and applied"),
            Row("rate_late", "attributes/s, last million"),
            Row("value_early", "values of one run above a bound, after the first million, ms", 1e-3, 2),
            Row("value_late", "the same at the end, ms", 1e-3, 2),
            Row("step_early", "500 of one step of one run, first, ms", 1e-3, 2),
            Row("step_late", "the same at the end, ms", 1e-3, 2),
            Row("box_early", "a box of one step of one run, first, ms", 1e-3, 2),
            Row("box_late", "the same at the end, ms", 1e-3, 2),
            Row("tags_early", "tags, first, ms", 1e-3, 2),
            Row("tags_late", "tags, at the end, ms", 1e-3, 2),
            Row("steps_early", "steps of a run, first, ms", 1e-3, 2),
            Row("steps_late", "steps of a run, at the end, ms", 1e-3, 2),
            Row("variables_early", "variables of a run, first, ms", 1e-3, 2),
            Row("variables_late", "variables of a run, at the end, ms", 1e-3, 2),
            Row("wide_rows", "hits over all runs"),
            Row("wide", "hits over all runs, ms", 1e-3, 1),
        ),
        (
            Target("queries on one run within 2 times (the worst)", "one_run", 2),
            Target("10,000 hits over all runs within 50 ms", "wide", 0.050),
            Target(
                "catalog calls independent of the number of attributes (the worst, within 2 times)",
                "calls",
                2,
            ),
            Target(
                "the last million at half of the first million's rate or more", "rate_kept", 0.5, least=True
            ),
        ),
        group="catalog",
        runs=1,
    ),
)

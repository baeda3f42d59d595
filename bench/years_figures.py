"""The figures of stores that were written for a long time."""

from __future__ import annotations

import large
import short_jobs
import space
import years
from short_jobs import ICECHUNK
from steps import OURS, Figure, Row, Target

MS, MIB, MB = 1e-3, 1 << 20, 1e6


def _large(name: str, title: str, fields: int, runs: int) -> Figure:
    return Figure(
        name,
        title,
        "Fields of 16 bytes by writers of 100,000 fields each, in flushes of 10,000; `compact`, then all "
        "answers in fresh processes: from Python, and from the program with its output thrown away or cut "
        "after a line.",
        (OURS,),
        large.run,
        (
            Row("filled_s", "archived, with flushes, fields/s", counted=True),
            Row("index_before", "index of a field before compact, bytes", counted=True),
            Row("index_after", "after compact and purge, bytes", counted=True),
            Row("entries_s", "compact, entries/s", counted=True),
            Row("compact_memory", "memory of compact, MB", MB, counted=True),
            Row("list_s", "list in Python, fields/s"),
            Row("first", "its first field, ms", MS, 1),
            Row("list_memory", "its memory, MB", MB),
            Row("program_s", "list in the program, fields/s"),
            Row("program_memory", "its memory, MB", MB),
            Row("head", "its first line, process included, ms", MS, 1),
            Row("get", "get, ms", MS, 3),
            Row("axes", "axes, ms", MS, 2),
        ),
        (
            Target("at most 120 B of index a field before compact", "index_before", 120),
            Target("at most 80 B after it", "index_after", 80),
            Target("compact at least 500,000 entries/s", "entries_s", 500_000, least=True),
            Target("in at most 300 MB", "compact_memory", 300 * MB),
            Target("list in the program at least a million fields/s", "program_s", 1e6, least=True),
            Target("list in Python at least a million fields/s", "list_s", 1e6, least=True),
            Target("the first within 20 ms", "first", 0.020),
            Target("list in at most 150 MB", "list_memory", 150 * MB),
            Target("get within 1 ms", "get", 0.001),
            Target("axes within 5 ms", "axes", 0.005),
        ),
        setup=large.setup,
        count=large.count,
        data={"fields": fields},
        runs=runs,
        group="years",
    )


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
        data={"jobs": 100_000},
        runs=1,
    ),
    _large("years-large", "Ten million fields", large.TEN_MILLION, 3),
    _large("years-huge", "A hundred million fields", 10 * large.TEN_MILLION, 1),
    Figure(
        "years-wipe",
        "Wipe ten million fields",
        "`wipe` of all fields of a compacted store; the first answers of a fresh process, before and after.",
        (OURS,),
        large.run_wipe,
        (
            Row("wipe", "wipe, ms", MS, 1),
            Row("written", "bytes that the store grew by"),
            *(
                Row(f"{name}_{when}", f"first {name if name != 'first' else 'of a list'} {when}, ms", MS, 2)
                for name in ("first", "axes", "runs")
                for when in ("before", "after")
            ),
        ),
        (
            Target("at most 64 KiB written", "written", 64 << 10),
            Target("within 50 ms", "wipe", 0.050),
        ),
        data={"fields": large.TEN_MILLION},
        runs=1,
        group="years",
    ),
    Figure(
        "years-outside",
        "Retrieve 300 GB of fields in other files",
        "300 names of one netCDF file of 1 GB, taken by reference; `retrieve` of all into a room of 8 MiB.",
        (OURS,),
        large.run_outside,
        (
            Row("bytes", "retrieved, GB", 1e9),
            Row("seconds", "s", 1, 1),
            Row("cpu", "CPU, s", 1, 1),
            Row("memory", "memory, MB", MB),
        ),
        (Target("in at most 200 MB", "memory", 200 * MB),),
        data={"files": 300},
        runs=1,
        group="years",
    ),
    Figure(
        "years-overwritten",
        "Purge 4 GiB of which 90 % are overwritten",
        "Fields of 1 MiB; the room of all files, looked at ten times a second.",
        (OURS,),
        space.step("overwrite", 4_096, quick=(100,)),
        (
            Row("before", "before, MiB", MIB),
            Row("live", "live, MiB", MIB),
            Row("after", "after, MiB", MIB),
            Row("ratio", "after without 16 MiB, over live", 1, 2),
            Row("extra", "most extra on the way, MiB", MIB),
            Row("seconds", "s", 1, 2),
            Row("cpu", "CPU, s", 1, 2),
        ),
        (
            Target("at most 1.1 times the live bytes, and 16 MiB", "ratio", 1.1),
            Target("at most 256 MiB extra", "extra", 256 * MIB),
        ),
        runs=1,
        group="years",
    ),
    Figure(
        "years-beside",
        "Flush beside maintenance, 16 writers",
        "Each writer flushes ten fields of 4 KiB ten times a second, for 10 s; alone, and beside a process "
        "that does 32 MiB of maintenance a second.",
        (OURS,),
        space.step("beside", 10, quick=(2,)),
        (
            *(
                Row(f"{name}{end}", f"{name}, {what}, ms", MS, 2)
                for name in ("alone", *space.ACTIONS)
                for end, what in (("", "median"), ("_p99", "p99"))
            ),
            Row("worst", "worst median over alone", 1, 2),
            Row("worst_p99", "worst p99 over alone", 1, 2),
        ),
        (
            Target("median at most 1.3 times alone", "worst", 1.3),
            Target("p99 at most 3 times alone", "worst_p99", 3),
        ),
        group="years",
    ),
    Figure(
        "years-cache",
        "Five days of a hot cache",
        "2 GiB a day, each of 12 s; a rule moves what is older than a day to a second store.",
        (OURS,),
        space.step("cache", 2_048, quick=(16,)),
        (
            Row("fields", "fields"),
            Row("hot", "most room of the hot store, MiB", MIB),
            Row("hot_days", "in days of data", 1, 2),
            Row("cold", "room of the second store, MiB", MIB),
            Row("seconds", "s", 1, 1),
            Row("cpu", "CPU, s", 1, 1),
        ),
        (Target("the hot store is bounded (days of data)", "hot_days", 3),),
        runs=1,
        group="years",
    ),
    Figure(
        "years-backup",
        "Back up 4 GiB",
        "`backup` of fields of 1 MiB, and `cp -a` of the same store, with syncs; `backup` with its "
        "default, which reads back all that it copied from the disk; then 32 MiB more, and another backup.",
        (OURS,),
        space.step("copy", 4_096, quick=(64,)),
        (
            Row("first", "backup without reading back, s", 1, 2),
            Row("plain", "cp -a, s", 1, 2),
            Row("share", "its share of cp", 1, 2),
            Row("whole", "backup, read back, s", 1, 2),
            Row("second", "bytes of the second backup"),
            Row("over", "more than what was new, bytes"),
        ),
        (
            Target("the first at least 0.8 of cp", "share", 0.8, least=True),
            Target("the second copies what is new and 1 MiB", "over", MIB),
        ),
        group="years",
    ),
    Figure(
        "years-short-jobs",
        "1,000 short jobs",
        "Each job opens, writes a step of 8 KiB and commits; then old versions and past writers are cleared "
        "away: `compact` and `purge`, `expire_snapshots` and `garbage_collect`.",
        (OURS, ICECHUNK),
        short_jobs.run_jobs,
        (
            Row("first", "the first ten, ms", MS),
            Row("last", "the last ten, ms", MS),
            Row("bytes", "bytes, MiB", MIB, 1),
            Row("files", "files"),
            Row("clean", "clearing, s", 1, 2),
            Row("bytes_after", "bytes after it, MiB", MIB, 1),
            Row("files_after", "files after it"),
        ),
        (Target("the last ten no slower than icechunk's", "last", 1, than=ICECHUNK),),
        runs=3,
        group="years",
    ),
    Figure(
        "years-at-once",
        "Eight processes commit at once",
        "25 commits each, every one of a step of its own; nobody tries again. Lost is what was acknowledged "
        "and is not read back. icechunk stores in a folder, which its documentation does not recommend for "
        "production data.",
        (OURS, ICECHUNK),
        short_jobs.run_at_once,
        (
            Row("kept", "kept"),
            Row("lost", "lost"),
            Row("refused", "refused"),
            Row("rate", "kept a second", 1, 1),
        ),
        (Target("all 200 kept", "kept", 200, least=True),),
        group="years",
    ),
)

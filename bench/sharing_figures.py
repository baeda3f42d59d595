"""The figures of threads that share a handle."""

from __future__ import annotations

import sharing
from steps import OURS, Figure, Row, Target

SHARING = (
    Figure(
        "sharing-flush",
        "Flush of ten small fields, in Rust, compared with the disk",
        "Ten fields of 128 bytes archived and flushed, 400 times after 20 that are not counted. The floor: "
        "an overwrite of as many bytes in zeroed space and one fdatasync, 500 times, right after it.",
        (OURS,),
        sharing.flush,
        (
            Row("median", "archive + flush, median, ms", 1e-3, 3),
            Row("p95", "95th percentile, ms", 1e-3, 3),
            Row("floor", "floor, median, ms", 1e-3, 3),
            Row("frame", "bytes of a frame"),
            Row("of_allowed", "archive + flush, share of the aim", 1, 2),
        ),
        (Target("at most 1.6 times the floor, or the floor and 0.12 ms (share of that)", "of_allowed", 1.0),),
        group="sharing",
    ),
    Figure(
        "sharing-threads",
        "Threads that flush one handle",
        "Each archives a field of 128 bytes and flushes, again and again, for two seconds; then a reader "
        "gets a field of 4 KiB 20,000 times while two threads flush. The sync: the disk alone, 1,000 bytes.",
        (OURS,),
        sharing.threads,
        (
            Row("one", "flushes/s, one thread"),
            Row("eight", "flushes/s, eight threads"),
            Row("get", "warm get while two flush, median, µs", 1e-6, 1),
            Row("get_p99", "its 99th percentile, µs", 1e-6, 1),
            Row("sync", "overwrite + fdatasync, median, µs", 1e-6, 1),
            Row("speedup", "eight threads over one", 1, 2),
            Row("of_sync", "99 of 100 gets, share of the sync", 1, 2),
        ),
        (
            Target("eight threads: at least 4 times the flushes/s of one", "speedup", 4.0, least=True),
            Target("99 of 100 gets below the median sync (share of it)", "of_sync", 1.0),
        ),
        group="sharing",
    ),
    Figure(
        "sharing-archive",
        "Threads that archive into one handle",
        "One thread, and then eight, archive 4,000 arrays of 64 KiB into one handle; the time excludes the "
        "flush.",
        (OURS,),
        sharing.archive,
        (
            *(
                Row(f"{how}_{n}", f"fields/s, {n} thread{'s' if n > 1 else ''}, {text}")
                for how, text in (("none", "as they are"), ("zstd", "zstd 1"))
                for n in (1, 8)
            ),
            Row("none_speedup", "eight threads over one, as they are", 1, 2),
            Row("zstd_speedup", "eight threads over one, zstd 1", 1, 2),
        ),
        (
            Target(
                "eight threads with zstd: at least 1.7 times one (2 cores)", "zstd_speedup", 1.7, least=True
            ),
            Target("eight threads without: at least as fast as one", "none_speedup", 1.0, least=True),
        ),
        group="sharing",
    ),
)

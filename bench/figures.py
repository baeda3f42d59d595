"""The figures: what each runs and counts, which rows it shows, and its aims.

A target that compares with another peer takes the ratio in each round of runs, then the median of the ratios,
so that drift of the machine between rounds cancels out.
"""

from __future__ import annotations

import steps
from arrays_figures import ARRAYS
from arrays_paper_figures import PAPER
from catalog_figures import CATALOG
from combine_figures import COMBINE
from commits_figures import COMMITS
from container_figures import CONTAINER_DATA
from creation_figures import CREATION
from graph_figures import GRAPH
from hits_figures import HITS
from sharing_figures import SHARING
from slots_figures import SLOTS
from steps import FDB, FILES, INGESTED, OURS, RAW, Figure, Row, Target
from study_figures import STUDY
from years_figures import YEARS
from zarr_figures import ZARR

_ARCHIVE_ROWS = (
    Row("fields_s", "fields/s"),
    Row("bytes_s", "MiB/s", 2**20),
    Row("cpu_field", "CPU per field, µs", 1e-6, 1),
    Row("cpu", "CPU of the measured part, s", 1, 3),
    Row("syncs", "sync calls", counted=True),
    Row("write_calls", "write calls", counted=True),
    Row("written", "bytes written, MiB", 2**20, 2, counted=True),
    Row("files", "files", counted=True),
    Row("over_field", "bytes on disk over payload, per field", 1, 1, counted=True),
)
_ARCHIVE_TARGETS = (
    Target("at least 85 % of plain write + fdatasync (bytes/s)", "bytes_s", 0.85, RAW, least=True),
    Target("at most 70 % of FDB's CPU per field", "cpu_field", 0.70, FDB),
)


_LIST_ROWS = (
    Row("fields_s", "entries/s, open included"),
    Row("open", "open, ms", 1e-3, 2),
    Row("first", "list to first entry, ms", 1e-3, 2),
    Row("seconds", "total, s", 1, 3),
    Row("cpu_field", "CPU per entry, µs", 1e-6, 2),
    Row("peak", "peak memory of the process, MiB", 2**20),
    Row("read", "bytes read, MiB", 2**20, 2, counted=True),
    Row("files", "files in the store", counted=True),
)


_BOX_ROWS = (
    Row("seconds", "time, ms", 1e-3, 1),
    Row("cpu", "CPU, ms", 1e-3, 1),
    Row("bytes", "bytes of the box, MiB", 2**20, 2),
    Row("read", "bytes read, MiB", 2**20, 2, counted=True),
    Row("share", "bytes read, % of the array", 0.01, 2, counted=True),
    Row("read_calls", "read calls", counted=True),
)
_BOX_TARGETS = (Target("reads at most 2 % of the array's bytes + 1 MiB (bytes beyond 2 %)", "beyond", 2**20),)
_OPEN_ROWS = (
    Row("seconds", "time, s", 1, 2),
    Row("cpu", "CPU, s", 1, 2),
    Row("grown", "memory beyond what the imports took, MiB", 2**20),
    Row("one", "one value afterwards, ms", 1e-3, 1),
    Row("read", "bytes read, MiB", 2**20, 1, counted=True),
    Row("read_calls", "read calls", counted=True),
    Row("files", "files", counted=True),
    Row("length", "bytes on disk, MiB", 2**20, counted=True),
)
_RUNS = (OURS, INGESTED, FILES)
_EVERY, _BOTH = (OURS, FDB, RAW), (OURS, FDB)

_GRIB_ROWS = (
    Row("fields_s", "messages/s"),
    Row("cpu_field", "CPU of all processes per message, µs", 1e-6, 1),
    Row("seconds", "total, s", 1, 3),
)

FIGURES = (
    Figure(
        "grib",
        "Archive GRIB messages, key read from the message",
        "2,000 small messages with distinct headers, one by one; the process has archived the same "
        "messages elsewhere before.",
        _BOTH,
        steps.grib,
        _GRIB_ROWS,
        (
            Target("at least 10 times FDB's rate", "fields_s", 10, FDB, least=True),
            Target("at most 100 µs of CPU per message, all processes", "cpu_field", 100e-6),
        ),
        data={"cold": False},
    ),
    Figure(
        "grib-cold",
        "Archive GRIB messages, first in a process",
        "The same messages in a process that has read no GRIB before; the time includes the start of the "
        "helper.",
        _BOTH,
        steps.grib,
        _GRIB_ROWS,
        data={"cold": True},
    ),
    Figure(
        "archive-64k",
        "Archive and durable flush, 64 KiB",
        "5,000 fields of 64 KiB, with given keys, in one flush.",
        _EVERY,
        steps.archive,
        _ARCHIVE_ROWS,
        _ARCHIVE_TARGETS,
        count=steps.archive_counts,
        data={"shape": "64k"},
    ),
    Figure(
        "archive-1m",
        "Archive and durable flush, 1 MiB",
        "500 fields of 1 MiB, with given keys, in one flush.",
        _EVERY,
        steps.archive,
        _ARCHIVE_ROWS,
        _ARCHIVE_TARGETS,
        count=steps.archive_counts,
        data={"shape": "1m"},
    ),
    Figure(
        "flush",
        "Flush of ten small fields",
        "One writer archives and flushes ten fields of 128 bytes, 100 times after a first flush that "
        "creates the files; median and 95th percentile of a run. Raw is one write of the 1,280 bytes and "
        "one fdatasync.",
        _EVERY,
        steps.flush,
        (
            Row("median", "archive + flush, median, ms", 1e-3, 3),
            Row("p95", "archive + flush, 95th percentile, ms", 1e-3, 3),
            Row("cpu", "CPU per flush, µs", 1e-6),
            Row("syncs", "sync calls per flush", 1, 2, counted=True),
            Row("fewest_syncs", "sync calls, fewest in one flush", counted=True),
            Row("most_syncs", "sync calls, most in one flush", counted=True),
            Row("first_syncs", "sync calls of the first flush", counted=True),
            Row("write_calls", "write calls per flush", 1, 2, counted=True),
            Row("written", "bytes written per flush", counted=True),
            Row("first_over", "bytes over payload: first flush of a new store", counted=True),
            Row("one_over", "bytes over payload: the next flush", counted=True),
            Row("over", "bytes over payload: mean of 100 flushes", counted=True),
            Row("allocated", "bytes allocated by the file system per flush", counted=True),
            Row("files", "files after 101 flushes", counted=True),
        ),
        (
            Target("exactly one sync per flush: no flush has more", "most_syncs", 1),
            Target("exactly one sync per flush: no flush has fewer", "fewest_syncs", 1, least=True),
            Target("at most 4 KB over the payload, one flush", "one_over", 4096),
            Target("at most 4 KB over the payload, mean of 100", "over", 4096),
            Target("at most a third of FDB's time", "median", 1 / 3, FDB),
        ),
        count=steps.flush_counts,
    ),
    Figure(
        "list-50k",
        "List 50,000 fields",
        "Reads each key as a dict, in a fresh process, from open to the last entry.",
        _BOTH,
        steps.listing,
        _LIST_ROWS,
        (Target("at least 250,000 fields/s", "fields_s", 250_000, least=True),),
        setup=steps.fill,
        count=steps.listing_counts,
        data={"shape": "tiny"},
    ),
    Figure(
        "list-2m",
        "List 2 million fields",
        "As above, with a flush after every 10,000 fields.",
        (OURS,),
        steps.listing,
        _LIST_ROWS,
        (
            Target("first entry within 20 ms of list", "first", 0.020),
            Target("at least 250,000 fields/s", "fields_s", 250_000, least=True),
        ),
        setup=steps.fill,
        count=steps.listing_counts,
        data={"shape": "2m"},
    ),
    Figure(
        "get",
        "One field by its full key",
        "1,000 distinct keys out of 5,000 fields of 64 KiB, warm, one process.",
        _BOTH,
        steps.one,
        (
            Row("median", "median, µs", 1e-6, 1),
            Row("p95", "95th percentile, µs", 1e-6, 1),
            Row("cpu", "CPU per field, µs", 1e-6, 1),
        ),
        (Target("at most 60 µs median", "median", 60e-6),),
        setup=steps.fill,
        data={"shape": "64k"},
    ),
    Figure(
        "cli",
        "The program lists 5,000 fields",
        "`fieldstone list STORE` and `fdb-list`, from spawn to exit, output to a file, pages in the cache.",
        _BOTH,
        steps.cli,
        (Row("seconds", "wall, ms", 1e-3, 1), Row("cpu", "CPU, ms", 1e-3, 1)),
        (Target("at most 30 ms", "seconds", 0.030),),
        setup=steps.fill,
        data={"shape": "64k"},
    ),
    Figure(
        "retrieve",
        "Retrieve 5,000 fields of 64 KiB by one request",
        "The fields are read through one reused buffer of 8 MiB. Raw is pread and CRC-32C of equal ranges "
        "into such a buffer.",
        _EVERY,
        steps.retrieve,
        (
            Row("fields_s", "fields/s"),
            Row("bytes_s", "MiB/s", 2**20),
            Row("cpu_field", "CPU per field, µs", 1e-6, 1),
            Row("read_calls", "read calls", counted=True),
            Row("read", "bytes read, MiB", 2**20, 1, counted=True),
        ),
        (
            Target("at least 3 times FDB", "fields_s", 3, FDB, least=True),
            Target("at least 70 % of pread + CRC-32C", "bytes_s", 0.70, RAW, least=True),
        ),
        setup=steps.fill,
        count=steps.retrieve_counts,
        data={"shape": "64k"},
    ),
    Figure(
        "box-2d",
        "A box of 1 % of an 800 MB array",
        "1,000 x 1,000 of 10,000 x 10,000 f8, default chunks.",
        _EVERY,
        steps.box,
        _BOX_ROWS,
        _BOX_TARGETS,
        setup=steps.box_fill,
        count=steps.box_counts,
        data={"box": "2d"},
    ),
    Figure(
        "box-3d",
        "A box of 1 % of a 3-D array",
        "110 x 110 x 110 of 512 x 512 x 512 f4, default chunks.",
        _EVERY,
        steps.box,
        _BOX_ROWS,
        _BOX_TARGETS,
        setup=steps.box_fill,
        count=steps.box_counts,
        data={"box": "3d"},
    ),
    Figure(
        "datatree",
        "1,000 runs as one object of xarray",
        "1,000 runs of 10 variables and 100 steps, 8 x 8 f4: `open_datatree` of a store of a million "
        "archived arrays, and of one that ingested the files; `open_mfdataset` of 1,000 netCDF-4 files.",
        _RUNS,
        steps.open_runs,
        _OPEN_ROWS,
        (
            Target("at most 3 s", "seconds", 3),
            Target("at most 300 MiB more memory than before", "grown", 300 * 2**20),
            Target("at most a third of open_mfdataset's time", "seconds", 1 / 3, FILES),
        ),
        setup=steps.fill_runs,
        count=steps.open_runs_counts,
        data={"runs": "tree"},
    ),
    Figure(
        "long-run",
        "One run of 10,000 steps in xarray",
        "10 variables, 8 x 8 f4: `open_datatree` of a store; `open_mfdataset` of 1,000 netCDF-4 files of 10 "
        "steps.",
        (OURS, FILES),
        steps.open_runs,
        _OPEN_ROWS,
        (
            Target("at most 1 s", "seconds", 1),
            Target("at most a tenth of open_mfdataset's time", "seconds", 0.1, FILES),
        ),
        setup=steps.fill_runs,
        count=steps.open_runs_counts,
        data={"runs": "long"},
    ),
    *COMBINE,
    *STUDY,
    *ZARR,
    *CATALOG,
    *COMMITS,
    *SHARING,
    *YEARS,
    *CREATION,
    *CONTAINER_DATA,
    *HITS,
    *GRAPH,
    *SLOTS,
    *ARRAYS,
    *PAPER,
)

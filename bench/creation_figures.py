"""The figures of parallel object creation."""

from __future__ import annotations

import creation
import opening
from creation import VARIABLES
from steps import OURS, Figure, Row, Target

PARTITIONED = "fieldstone-partitioned"
COLUMNS, ALONE = "fieldstone-columns", "fieldstone-alone"
BLOCKS_512 = 946_000
"""Variables of a file of 512 metadata blocks."""
STRATEGIES = (OURS, PARTITIONED, "fieldstone-app", "fieldstone-library-hash:16384", "fieldstone-library-sort")
HASHES = tuple(f"fieldstone-library-hash:{1 << bits}" for bits in range(8, 21, 2))
PNETCDF = ("pnetcdf-16384", "pnetcdf-1048576")
NAMES = 568_480 + 852_720
"""Variables and dimensions."""
_MS, _MIB = 1e-3, 2**20

_ROWS = (
    Row("seconds", "first definition to the end of enddef, ms", _MS),
    Row("per_variable", "per variable, µs", 1e-6, 2),
    Row("whole", "first definition to the end of close, ms", _MS),
    Row("cpu", "CPU of the busiest rank, ms", _MS),
    *(
        Row(phase, f"{phase}, ms", _MS)
        for phase in ("definition", "exchange", "check", "header write", "close")
    ),
    *(
        Row(f"{phase} bytes", f"memory held in {phase} at most, MiB (Fieldstone: counted)", _MIB)
        for phase in ("definition", "exchange", "check", "header write", "close")
    ),
    Row("peak", "peak memory of the largest rank, MiB", _MIB),
    Row("growth", "growth since the file was created, MiB", _MIB),
    Row("root", "growth of rank 0 over that of the largest other", 1, 2),
    Row("most comparisons", "names compared, most of one rank"),
    Row("most names_held", "names held, most of one rank"),
    Row("most messages", "messages sent, most of one rank"),
    Row("most bytes_sent", "bytes sent, most of one rank, MiB", _MIB, 1),
    Row("spread", "header bytes written, most over least of a rank", 1, 3),
    Row("length", "file, MiB", _MIB, 1),
)


def _ranks(ranks: int) -> Figure:
    fast = tuple(
        Target(f"{word} at least 10 times as fast as PnetCDF{until}", key, 0.1, PNETCDF, of=peer)
        for key, until in (("seconds", ""), ("whole", ", close included"))
        for word, peer in (("scalable", OURS), ("partitioned", PARTITIONED))
    )
    targets: tuple[Target, ...] = fast
    more: tuple[str, ...] = ()
    if ranks == 1:
        more = (COLUMNS,)
        targets = (
            Target("at most 1.5 µs a variable from Python", "per_variable", 1.5e-6),
            Target(
                "partitioned at most 1.5 µs a variable from Python", "per_variable", 1.5e-6, of=PARTITIONED
            ),
            Target("at most 1.0 µs a variable from columns in Rust", "per_variable", 1.0e-6, of=COLUMNS),
        )
    if ranks == 2:
        more = (ALONE,)
        targets = (*fast, Target("at most 0.7 of the time of one rank alone", "seconds", 0.7, ALONE))
    if ranks > 1:
        targets = (
            *targets,
            Target("names compared, at most 1.2 n/P", "most comparisons", 1.2 * NAMES / ranks),
            Target("names held, at most 2.4 n/P", "most names_held", 2.4 * NAMES / ranks),
            Target("header bytes of ranks within 10 %", "spread", 1.1),
            Target("growth of rank 0 at most 1.2 times the others'", "root", 1.2),
        )
    return Figure(
        f"create-{ranks}",
        f"Create 568,480 variables, {ranks} rank{'s' if ranks > 1 else ''}",
        f"{VARIABLES:,} variables over 852,715 dimensions, each rank its own part; lists of names in Python, "
        "PnetCDF from C, with two sizes of its hash tables. Values are the largest of all ranks.",
        (OURS, PARTITIONED, *more, *PNETCDF),
        creation.create,
        _ROWS,
        targets,
        data={"ranks": ranks},
        group="create",
    )


CREATION = (
    _ranks(1),
    _ranks(2),
    _ranks(4),
    Figure(
        "create-strategies",
        "Create 568,480 variables, 4 ranks, every strategy",
        "Each strategy creates the same data set; the library's hash table has 16,384 slots, as in the "
        "paper.",
        STRATEGIES,
        creation.create,
        _ROWS,
        data={"ranks": 4},
        group="create",
    ),
    Figure(
        "create-hash",
        "Create 568,480 variables, 4 ranks, hash tables of 256 to 1,048,576 slots",
        "The library checks with hash tables of seven sizes, and by sorting: one run each.",
        (*HASHES, "fieldstone-library-sort"),
        creation.create,
        _ROWS,
        data={"ranks": 4},
        group="create",
        runs=1,
    ),
    Figure(
        "create-limited",
        "Create 568,480 variables, 4 ranks, each with 300 MiB",
        "The same data set, with at most 300 MiB of private memory for each rank (RLIMIT_DATA), including "
        "its lists of names in Python.",
        (OURS, PARTITIONED, "fieldstone-app", "fieldstone-library-hash:16384", "fieldstone-library-sort"),
        creation.create,
        (Row("finished", "finished (1) or out of memory (0)"), _ROWS[0], *_ROWS[6:8]),
        data={"ranks": 4, "limit": 300 << 20},
        group="create",
        runs=1,
    ),
    Figure(
        "create-large",
        "Create 5,684,800 variables, 2 ranks",
        "Ten times the data set.",
        (OURS, PARTITIONED),
        creation.create,
        _ROWS,
        data={"ranks": 2, "variables": 10 * VARIABLES},
        group="create",
        runs=3,
    ),
    *(
        Figure(
            f"read-all-{ranks}",
            f"Read every object of a file of 512 metadata blocks, {ranks} rank{'s' if ranks > 1 else ''}",
            f"{BLOCKS_512:,} variables. Each rank opens the file and reads every object of its "
            "header: Fieldstone a classic header and one of 512 blocks; PnetCDF the classic header at open, "
            "which rank 0 reads for all.",
            opening.ALL,
            opening.read_all,
            (Row("seconds", "slowest rank, ms", _MS),),
            setup=opening.setup,
            data={"ranks": ranks, "variables": BLOCKS_512},
            group="open",
        )
        for ranks in (1, 2, 4)
    ),
    *(
        Figure(
            f"open-{'cold' if cold else 'warm'}",
            f"Open a file of 568,480 variables and read one, {'cold' if cold else 'warm'}",
            "A fresh process with the library imported: open the file, find one variable, read it. The "
            "file is a copy, alone in a folder"
            + (", dropped from the page cache before each run." if cold else ", in the page cache.")
            + " netCDF4 had not opened it after seven minutes, and is left out.",
            opening.PEERS,
            opening.read,
            (
                Row("seconds", "from open to the values, ms", _MS, 2),
                Row("cpu", "CPU, ms", _MS, 2),
                Row("growth", "growth of peak memory, MiB", _MIB, 1),
            ),
            ()
            if cold
            else tuple(
                Target(f"{word} {text}", key, limit, of=peer)
                for word, peer in (("scalable", OURS), ("partitioned", PARTITIONED))
                for text, key, limit in (
                    ("under 5 ms", "seconds", 5e-3),
                    ("under 10 MB", "growth", 10e6),
                )
            ),
            setup=opening.setup,
            data={"cold": cold},
            group="open",
        )
        for cold in (False, True)
    ),
)

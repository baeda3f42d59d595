"""The figures of distributed arrays."""

from __future__ import annotations

import arrays
from arrays import ALLTOALLV, IN_C, MPIIO, NUMPY, PNETCDF, SEQUENTIAL
from steps import OURS, RAW, Figure, Row, Target

_MS, _MIB = 1e-3, 2**20
_STEPS = (
    Row("first", "first write, with its plan, ms", _MS, 1),
    Row("first sync", "its sync, ms", _MS, 1),
    Row("first whole", "both, ms", _MS, 1),
    Row("later", "a later write, ms", _MS, 1),
    Row("later sync", "its sync, ms", _MS, 1),
    Row("later whole", "both, ms", _MS, 1),
    Row("first read", "first read, with its plan, ms", _MS, 1),
    Row("later read", "a later read, ms", _MS, 1),
    Row("cpu", "CPU of all ranks, writes and syncs, s", 1, 3),
    Row("read cpu", "CPU of all ranks, reads, s", 1, 3),
)
_PHASES = tuple(
    Row(f"{phase} phase", f"{phase} alone, ms, all steps", _MS, 1)
    for phase in ("plan", "write", "sync", "commit")
)
_COUNTS = (
    Row("exchanged", "bytes sent to other ranks, MiB", _MIB, 2),
    Row("syncs", "sync calls", counted=True),
    Row("write_calls", "write calls", counted=True),
    Row("written", "bytes written, MiB", _MIB, 2, counted=True),
    Row("files", "files written", counted=True),
    Row("read_calls", "read calls", counted=True),
    Row("read", "bytes read, MiB", _MIB, 2, counted=True),
)


def _both(peer: str, word: str) -> tuple[Target, ...]:
    """The aims of a random map, for Fieldstone from Python or from C."""
    return (
        *(
            Target(
                f"{word}: {text} at least 10 times as fast as MPI-IO's indexed view", key, 0.1, MPIIO, of=peer
            )
            for key, text in (("first", "first write"), ("first whole", "with its sync"))
        ),
        *(
            Target(
                f"{word}: {text} at most 1.2 times an Alltoallv by hand in C", key, 1.2, ALLTOALLV, of=peer
            )
            for key, text in (("first", "first write"), ("first whole", "with its sync"))
        ),
        *(
            Target(f"{word}: {text} at most 0.7 times one with numpy", key, 0.7, NUMPY, of=peer)
            for key, text in (("first", "first write"), ("first whole", "with its sync"))
        ),
        Target(
            f"{word}: first read at least 10 times as fast as MPI-IO's", "first read", 0.1, MPIIO, of=peer
        ),
        Target(f"{word}: first read at most 1.2 times Alltoallv in C", "first read", 1.2, ALLTOALLV, of=peer),
        Target(f"{word}: first read at most 0.7 times numpy's", "first read", 0.7, NUMPY, of=peer),
        Target(f"{word}: later writes at most 0.8 of the first", "later of first", 0.8, of=peer),
        Target(f"{word}: later reads at most 0.8 of the first", "later read of first", 0.8, of=peer),
    )


def _cube(name: str, grid: tuple[int, int, int], what: str, targets: tuple[Target, ...]) -> Figure:
    return Figure(
        name,
        f"256 x 256 x 256 f8 on {' x '.join(map(str, grid))} ranks",
        f"{what} Four steps, one after another in one file (PnetCDF: records). For the sequential write, "
        "one process writes 4 MiB a call, then calls fsync; MPI-IO writes a subarray. These two write "
        "native bytes; Fieldstone and PnetCDF write CDF-5.",
        (OURS, IN_C, SEQUENTIAL, MPIIO, PNETCDF),
        arrays.cube,
        (*_STEPS, *_PHASES, *_COUNTS),
        targets,
        count=arrays.cube_counts,
        data={"grid": grid},
        group="arrays",
    )


_SEQUENTIAL_SHARE = tuple(
    Target(f"at least 0.6 of a sequential write of the same bytes ({text})", key, 1 / 0.6, SEQUENTIAL)
    for key, text in (
        ("first", "first write"),
        ("first whole", "with its sync"),
        ("later", "a later one"),
        ("later whole", "with its sync, a later one"),
    )
)


def _ahead(peers: tuple[str, ...], word: str) -> tuple[Target, ...]:
    return tuple(
        Target(f"{word} MPI-IO's subarray and PnetCDF ({text})", key, 1.0, peers)
        for key, text in (
            ("first whole", "first write and sync"),
            ("later whole", "a later write and sync"),
            ("first read", "first read"),
            ("later read", "a later read"),
        )
    )


ARRAYS = (
    Figure(
        "arrays-random",
        "2 million f8 in a random map, 4 ranks",
        "Each rank holds a quarter of a random permutation. A job writes five steps into one file, the first "
        "of which makes the plan; then another job reads all of them, and plans again. MPI-IO: an indexed "
        "view of the sorted map. Alltoallv: elements go to the owners of contiguous ranges, then one pwrite "
        "a rank, fsync. Fieldstone's first write also makes the group, measures opens, checks for conflicts, "
        "swaps bytes and computes checksums; its sync is the flush with the store's commit. All syncs are "
        "timed separately.",
        (OURS, IN_C, MPIIO, ALLTOALLV, NUMPY),
        arrays.random_map,
        (
            *_STEPS,
            Row("later of first", "a later write, share of the first", 1, 2),
            Row("later read of first", "a later read, share of the first", 1, 2),
            *_PHASES,
            *_COUNTS,
        ),
        (*_both(OURS, "Python"), *_both(IN_C, "C")),
        count=arrays.random_map_counts,
        group="arrays",
    ),
    _cube(
        "arrays-cube",
        (2, 2, 1),
        "Each rank holds a quarter, in runs of 256 KiB.",
        (*_SEQUENTIAL_SHARE, *_ahead((MPIIO, PNETCDF), "faster than")),
    ),
    _cube(
        "arrays-cube-short",
        (1, 2, 2),
        "Each rank holds a quarter, in runs of 1 KiB.",
        _ahead((MPIIO, PNETCDF), "never slower than"),
    ),
    Figure(
        "arrays-restart",
        "Restart of 100 MB at nodes, 4 ranks to 3",
        "2.5 million nodes of 5 f8, each assigned to a random rank, written by 4 ranks; 3 ranks with another "
        "such partition read them, in their own processes, and compare each bit. Raw: each of 4 ranks "
        "writes a file by numpy's tofile and fsync, and reads it by fromfile.",
        (OURS, RAW),
        arrays.restart,
        (
            Row("open", "store and job opened, ms", _MS, 1),
            Row("write", "write, with group and plan, ms", _MS, 1),
            Row("sync", "flush or fsync, ms", _MS, 1),
            Row("open again", "store and job opened again, ms", _MS, 1),
            Row("read", "read, with its plan, ms", _MS, 1),
            Row("whole", "write + flush + read, ms", _MS, 1),
            Row("cpu", "CPU of all ranks, writing, s", 1, 3),
            Row("read cpu", "CPU of all ranks, reading, s", 1, 3),
            Row("equal", "bit-equal (1)"),
            *_PHASES,
            *_COUNTS,
        ),
        (
            Target("bit-equal", "equal", 1, least=True),
            Target("write + flush + read at most 3 times a raw file per rank", "whole", 3.0, RAW),
        ),
        count=arrays.restart_counts,
        group="arrays",
    ),
    Figure(
        "arrays-overlap",
        "Output while two ranks compute",
        "Two ranks on two cores compute eight steps with numpy (without sleeping); a step takes as long as "
        "writing 64 MB and the flush take alone. Without waiting, a step is flushed after the next one is "
        "computed. All runs are in one process, one after another. Because both cores compute, only the "
        "disk's time can be hidden, not the processor time of the output.",
        (OURS,),
        arrays.overlap,
        (
            Row("output", "output of a step with its flush, alone, ms", _MS, 1),
            Row("output cpu", "its CPU, both ranks, ms", _MS, 1),
            Row("compute", "computing alone, s", 1, 3),
            Row("waiting", "with output, wait=True, s", 1, 3),
            Row("hidden", "with output, wait=False, s", 1, 3),
            Row("of waiting", "wait=False, share of wait=True", 1, 2),
            Row("of compute", "wait=False over computing alone", 1, 2),
            Row("floor", "share that CPU alone allows", 1, 2),
        ),
        (Target("wait=False at most 0.65 of the time of wait=True", "of waiting", 0.65),),
        group="arrays",
    ),
)

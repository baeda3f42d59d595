"""The figures after SDM's paper."""

from __future__ import annotations

import arrays_paper
from arrays_paper import BROADCAST, DIRECT, IN_TURN, LEVELS
from steps import OURS, Figure, Row, Target

_MS, _MIB = 1e-3, 2**20
_HOW = (
    ("computed", "without history"),
    ("first", "with history, first run, another vector"),
    ("edges", "from kept edges"),
    ("parts", "from kept parts"),
)
_ROWS = (
    Row("declare", "groups declared, ms", _MS, 1),
    Row("write", "all writes, ms", _MS),
    Row("sync", "all flushes; fsync, ms", _MS),
    Row("whole", "all of these, ms", _MS),
    Row("reads", "all reads, ms", _MS),
    Row("cpu", "CPU of all ranks, writing, s", 1, 2),
    Row("read cpu", "CPU of all ranks, reading, s", 1, 2),
    Row("made", "files"),
    Row("levels", "level of each group"),
    Row("connections", "openings of the catalog"),
    Row("commit phase", "commits, with their syncs, ms", _MS, 1),
    Row("database", "commits of equally many small arrays in memory, ms", _MS, 1),
    Row("exchanged", "bytes sent to other ranks, MiB", _MIB, 1),
    Row("syncs", "sync calls", counted=True),
    Row("write_calls", "write calls", counted=True),
    Row("written", "bytes written, MiB", _MIB, 1, counted=True),
    Row("read_calls", "read calls", counted=True),
    Row("read", "bytes read, MiB", _MIB, 1, counted=True),
)


_BEST = tuple(
    Target(f"auto within 1.1 of the best level, or its spread ({word})", key, 1.1, LEVELS, spread=True)
    for key, word in (("whole", "writing"), ("reads", "reading"))
)


def _slow(case: str, title: str) -> Figure:
    """A program for which each opening takes 10 ms longer."""
    return Figure(
        f"arrays-{case}-slow",
        f"{title}, with openings 10 ms slower",
        "The program above; every process that opens a file of its arrays first waits 10 ms "
        "(`bench/peers/slow_opens.c`).",
        (OURS, *LEVELS),
        arrays_paper.paper,
        _ROWS,
        _BEST,
        data={"case": case, "slow": True},
        group="arrays",
    )


def _program(case: str, title: str, what: str, files: tuple[int, int, int]) -> Figure:
    peers: tuple[str, ...] = (OURS, *LEVELS)
    if case == "astro3d":
        peers = (*peers, DIRECT)
    targets = (
        *(
            Target(f"level {level}: {count} files", "made", count, of=peer)
            for level, (peer, count) in enumerate(zip(LEVELS, files, strict=True), 1)
        ),
        *_BEST,
        Target("one connection to the catalog", "connections", 1),
        Target("the database, syncs apart, at most 20 ms a run", "database", 20e-3),
    )
    if case == "rt":
        peers = (*peers, IN_TURN)
        targets = (*targets, Target("no slower than ranks in turn", "whole", 1.0, IN_TURN))
    return Figure(
        f"arrays-{case}",
        title,
        what,
        peers,
        arrays_paper.paper,
        _ROWS,
        targets,
        count=arrays_paper.paper_counts,
        data={"case": case},
        group="arrays",
    )


PAPER = (
    Figure(
        "arrays-mesh",
        "FUN3D's mesh, 18 M edges and 2 M nodes, imported and partitioned",
        "A lattice of 126 x 126 x 126 nodes with nine edges each, in a raw file of two ends (4 bytes) and a "
        "set at edges (8 bytes); the vector is a cut in 2 x 2. By hand, in C: rank 0 reads and broadcasts "
        "everything, and each rank passes over all edges twice. Sums over all parts must be equal. The "
        "program runs several times: without history; with history and another vector, which keeps edges; "
        "with the first vector, from these edges; the same again, from finished parts.",
        (OURS, BROADCAST),
        arrays_paper.mesh,
        (
            Row("import", "open and record the file, or read and broadcast, ms", _MS, 1),
            Row("distribution", "edges partitioned, ms", _MS),
            Row("seconds", "both, ms", _MS),
            Row("data", "a set at edges, ms", _MS),
            Row("whole", "all, ms", _MS),
            Row("cpu", "CPU of all ranks, s", 1, 2),
            *(
                row
                for how, text in _HOW
                for row in (
                    Row(f"{how} distribution", f"partition {text}, ms", _MS),
                    Row(f"{how} exchanged", f"bytes exchanged {text}, MiB", _MIB, 1),
                    Row(f"{how} cpu", f"CPU of the job {text}, s", 1, 2),
                    Row(f"{how} flush", f"flush {text}, ms", _MS),
                )
            ),
            Row("edges share", "partition from kept edges, share of that without", 1, 2),
            Row("parts share", "partition from kept parts, share of that without", 1, 2),
        ),
        (
            Target("import and partition at least 3 times as fast as by hand", "seconds", 1 / 3, BROADCAST),
            Target("with a set at edges, too", "whole", 1 / 3, BROADCAST),
            Target("with the history at least 3 times as fast as without (parts)", "parts share", 1 / 3),
            Target("with the history 0 bytes exchanged (parts)", "parts exchanged", 0),
            Target("with the history 0 bytes exchanged (edges, another vector)", "edges exchanged", 0),
        ),
        group="arrays",
    ),
    _program(
        "astro3d",
        "ASTRO3D, 880 MiB on 2 x 2 x 1 ranks",
        "6 sets of f4 for analysis, 6 of f4 for restart, 7 of u1 for pictures, each 256 x 256 x 256; one "
        "dump.",
        (19, 19, 3),
    ),
    _program(
        "euler",
        "Euler, 240 MB at cells of four ranks",
        "194 x 34 x 34 cells: two sets of 5 f8, three of f8 and one of f4, in two groups, ten dumps, each "
        "flushed. Patches of 256 cells are dealt to ranks at random.",
        (60, 6, 2),
    ),
    _program(
        "rt",
        "RT, 36 + 74 MB five times, at nodes and triangles of four ranks",
        "4.5 million nodes and 9.25 million triangles with f8, five dumps, each flushed; patches of 256 are "
        "dealt to ranks at random. In turn: a rank writes its elements after those of the rank before it, "
        "native and in its own order, a file for each set and dump.",
        (10, 2, 2),
    ),
    _program(
        "fun3d",
        "FUN3D, 800 MB at nodes and edges of four ranks",
        "Two million nodes with 1, 1 and 5 f8, 18 million edges with two sets of f8, two dumps, each "
        "flushed; patches of 256 are dealt to ranks at random.",
        (10, 5, 2),
    ),
    _slow("astro3d", "ASTRO3D, 880 MiB on 2 x 2 x 1 ranks"),
    _slow("euler", "Euler, 240 MB at cells of four ranks"),
)

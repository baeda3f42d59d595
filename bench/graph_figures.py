"""The figures of the graph: putting, durable puts, scans, a lineage in the program."""

from __future__ import annotations

import graph
from graph import FJALL, KUZU, OURS
from steps import Figure, Row, Target

_SHAPES = {
    "rmat": "an RMAT graph of scale 18",
    "power": "a power-law graph with a hub of 30,000 relations",
}
_HOW = {
    "singles": ("one by one", "One call per relation; Fieldstone from Python, flushed every 0.1 s."),
    "batches": ("1,000 at a time", "Batches, or transactions, of 1,000."),
    "columns": ("as columns", "Fieldstone: `put_many`, 50,000 per call; Kuzu: COPY of a Parquet file."),
}
_TARGETS = {
    "singles": (
        Target("at least 88,000 a second", "rate", 88_000, least=True),
        Target("at least 60 % of bare fjall", "rate", 0.6, FJALL, least=True),
        Target("at least 90 times Kuzu", "rate", 90, KUZU, least=True),
    ),
    "batches": (
        Target("at least 113,000 a second", "rate", 113_000, least=True),
        Target("at least 70 % of bare fjall", "rate", 0.7, FJALL, least=True),
    ),
    "columns": (
        Target("at least 400,000 a second", "rate", 400_000, least=True),
        Target("at most 360 bytes a relation in log and index", "disk_edge", 360),
    ),
}


def _put(how: str, shape: str) -> Figure:
    title, what = _HOW[how]
    return Figure(
        f"graph-{how}-{shape}",
        f"Put relations {title}, {shape}",
        f"Relations of {_SHAPES[shape]} with a property of 128 characters, until another process has found "
        f"the last and its reverse (fjall, Kuzu: the same process). {what}",
        tuple(peer for peer in (OURS, FJALL, KUZU) if peer in graph.COUNTS[how]),
        graph.put,
        (
            Row("rate", "relations/s, found by another process"),
            Row("put_rate", "relations/s, put and flushed"),
            Row("cpu_edge", "CPU per relation, writer and reader, µs", 1e-6, 2),
            Row("disk_edge", "bytes on disk per relation", 1, 0),
            Row("log_edge", "of these in the log", 1, 0),
            Row("view_edge", "of these in the view", 1, 0),
            Row("peak", "peak memory of the reader, MiB", 2**20),
            Row("edges", "relations of a run"),
        ),
        _TARGETS[how],
        data={"how": how, "shape": shape},
        group="graph",
    )


GRAPH = (
    *(_put(how, shape) for how in _HOW for shape in _SHAPES),
    Figure(
        "graph-durable",
        "Durable puts of a relation",
        "With `autoflush=0`, each put is on disk when it returns; 400 puts by one thread, and by eight.",
        (OURS,),
        graph.durable,
        (
            Row("put_1", "a put, one thread, ms", 1e-3, 3),
            Row("put_8", "a put, eight threads, ms", 1e-3, 3),
            Row("cpu_1", "CPU per put, one thread, µs", 1e-6),
            Row("cpu_8", "CPU per put, eight threads, µs", 1e-6),
            Row("syncs_1", "sync calls per put, one thread", 1, 2, counted=True),
            Row("syncs_8", "sync calls per put, eight threads", 1, 2, counted=True),
        ),
        (
            Target("one sync a put", "syncs_1", 1.01),
            Target("with eight threads at most one for three", "syncs_8", 1 / 3),
        ),
        count=graph.durable_counts,
        group="graph",
    ),
    Figure(
        "graph-scans",
        "Read the relations of vertices with their properties",
        "A power-law graph of 1.2 million relations; the hub's 30,000, and those of 10,000 random vertices, "
        "first in a process and again. Both in Rust; fjall has all relations in its tables.",
        (OURS, FJALL),
        graph.scans,
        (
            Row("hub_cold", "the hub, first, ms", 1e-3, 1),
            Row("hub_warm", "the hub, again, ms", 1e-3, 1),
            Row("scans_cold", "10,000 vertices, first, ms", 1e-3, 1),
            Row("scans_warm", "10,000 vertices, again, ms", 1e-3, 1),
            Row("scanned", "relations of these"),
        ),
        tuple(
            Target(f"at most fjall's time ({what})", key, 1, FJALL)
            for key, what in (("hub_warm", "hub"), ("scans_warm", "random vertices"))
        ),
        setup=graph.load,
        data={"shape": "power"},
        group="graph",
    ),
    Figure(
        "graph-trace",
        "A lineage in the program",
        "`fieldstone trace` of a file in an RMAT graph of scale 18 with 1.2 million relations, two hops "
        "up, from the start to the end of the process.",
        (OURS,),
        graph.trace,
        (Row("seconds", "start to end, ms", 1e-3, 1), Row("cpu", "CPU, ms", 1e-3, 1)),
        (Target("at most 50 ms", "seconds", 0.05),),
        setup=graph.load,
        data={"shape": "rmat"},
        group="graph",
    ),
    Figure(
        "graph-reach",
        "Vertices within some steps",
        "Distinct vertices within 2, 4 and 8 steps of one, in an RMAT graph of scale 18 with 1.2 million "
        "relations, from Python; warm in all but the first row. Kuzu counts by `SHORTEST`. Then a twentieth "
        "of the relations is deleted, and as many are put.",
        (OURS, KUZU),
        graph.reach,
        (
            Row("cold", "8 steps, first in a process, ms", 1e-3, 1),
            Row("warm_2", "2 steps, ms", 1e-3, 1),
            Row("warm_4", "4 steps, ms", 1e-3, 1),
            Row("warm_8", "8 steps, ms", 1e-3, 1),
            Row("cpu_warm_8", "CPU, 8 steps, ms", 1e-3, 1),
            Row("exactly", "exactly 3 steps, ms", 1e-3, 1),
            Row("filtered", "4 steps along relations whose property passes, ms", 1e-3, 1),
            Row("changed_4", "4 steps after a tenth changed, ms", 1e-3, 1),
            Row("changed_8", "8 steps after a tenth changed, ms", 1e-3, 1),
            Row("before_4", "4 steps as of before the change, ms", 1e-3, 1),
            Row("before_8", "8 steps as of before the change, ms", 1e-3, 1),
            Row("found_warm_4", "vertices within 4 steps", 1, 0),
            Row("found_warm_8", "vertices within 8 steps", 1, 0),
        ),
        (
            Target("4 steps at most 50 ms", "warm_4", 0.05),
            Target("8 steps at most 150 ms", "warm_8", 0.15),
            Target("at most Kuzu's time (4 steps)", "warm_4", 1, KUZU),
            Target("at most Kuzu's time (8 steps)", "warm_8", 1, KUZU),
        ),
        setup=graph.reach_load,
        group="graph",
    ),
)

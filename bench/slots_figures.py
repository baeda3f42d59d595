"""The figures of slots: times and counts of partitioners and engines of traversals, after GraphMeta's."""

from __future__ import annotations

import darshan_relations
import slots
from slots import (
    DARSHAN,
    DEGREES,
    DIDO,
    ENGINES,
    FAR,
    FOLDER,
    GIGA,
    PAPER,
    SCHEMES,
    THRESHOLDS,
    VERTEX_CUT,
    WALKS,
)
from steps import Figure, Row, Target

_NEAR = (
    "A graph shaped like amazon0302 (262,111 vertices, at most five relations from each, most near), "
    "walked along relations in both directions from vertex 0"
)
_NEAR_COUNT = 1_234_877
_GREATEST = DEGREES[-1]


def _degree(degree: int) -> str:
    return "the greatest degree" if degree == _GREATEST else f"degree about {degree}"


def _counters() -> tuple[Row, ...]:
    rows = [
        Row("splits", "splits"),
        Row("moved", "relations moved by splits"),
        Row("with_far_end", "with their far end, %", 0.01, 1),
        Row("with_far_end_many", "with their far end, of vertices beyond the threshold, %", 0.01, 1),
        Row("most_over_mean", "relations of the fullest slot over the mean", 1, 3),
    ]
    for steps, degrees, what in ((1, DEGREES, "scan"), (3, FAR, "3 steps")):
        for degree in degrees:
            key, label = f"{steps}_{degree}", f"{what}, {_degree(degree)}"
            rows += [Row(f"comm_{key}", f"{label}: StatComm"), Row(f"requests_{key}", "of these requests")]
            rows += [Row(f"reads_{key}", f"{label}: StatReads")]
    return tuple(rows)


def _steps() -> tuple[Row, ...]:
    rows = [Row("seconds", "six steps, ms", 1e-3, 1), Row("cpu", "CPU, ms", 1e-3, 1)]
    for hop in range(1, 7):
        for part, of in (("vertex", "vertices"), ("edge", "relations"), ("prefetch", "read ahead")):
            rows += [
                Row(f"{part}_{hop}", f"step {hop}, {of}, busiest slot, ms", 1e-3, 2),
                Row(f"{part}_{hop}_others", "the seven fast slots, mean, ms", 1e-3, 2),
            ]
    rows.append(Row("found", "vertices found"))
    return tuple(rows)


def _walks(steps: tuple[int, ...]) -> tuple[Row, ...]:
    rows = []
    for n in steps:
        rows += [Row(f"{engine}_{n}", f"{n} steps, {engine}, ms", 1e-3, 1) for engine in ENGINES]
        rows += [
            Row(f"cpu_sync_{n}", f"{n} steps, sync, CPU, ms", 1e-3),
            Row(f"ahead_{n}", f"{n} steps, sync over async", 1, 2),
            Row(f"gain_{n}", f"{n} steps, plain over sync", 1, 2),
            Row(f"comm_{n}", f"{n} steps, StatComm"),
            Row(f"reads_{n}", f"{n} steps, StatReads"),
            Row(f"frames_sync_{n}", f"{n} steps, sync, frames"),
            Row(f"bytes_sync_{n}", f"{n} steps, sync, MiB in frames", 2**20, 1),
            Row(f"found_{n}", f"{n} steps, vertices found"),
        ]
    return tuple(rows)


def _near(number: int) -> tuple[Target, ...]:
    return tuple(
        Target(f"sync at most 1.1 times async ({peer}, {number} steps)", f"ahead_{number}", 1.10, of=peer)
        for peer in (DIDO, GIGA)
    )


def _puts(numbers: tuple[int, ...], held: bool = False, model: bool = False) -> tuple[Row, ...]:
    rows = []
    for n in numbers:
        rows += [
            Row(f"rate_{n}", f"{n} slots, relations/s"),
            Row(f"cpu_{n}", f"{n} slots, CPU per relation, µs", 1e-6, 2),
            Row(f"busiest_{n}", f"{n} slots, CPU of the busiest slot, s", 1, 2),
            Row(f"busiest_rate_{n}", f"{n} slots, relations per CPU second of the busiest slot"),
            Row(f"moved_{n}", f"{n} slots, relations moved by splits"),
            Row(f"bytes_{n}", f"{n} slots, bytes in frames per relation"),
        ]
        if held:
            rows += [
                Row(f"most_{n}", f"{n} slots, relations of the fullest slot"),
                Row(f"most_over_mean_{n}", f"{n} slots, the fullest over the mean", 1, 2),
            ]
        if model:
            rows += [
                Row(f"most_over_mean_{n}", f"{n} slots, the fullest over the mean", 1, 2),
                Row(
                    f"with_far_end_many_{n}",
                    f"{n} slots, with their far end, of vertices beyond the threshold, %",
                    0.01,
                    1,
                ),
            ]
    return tuple(rows)


def _close_to_vertex_cut(numbers: tuple[int, ...]) -> tuple[Target, ...]:
    return tuple(
        Target(
            f"dido at least 85 % of vertex-cut's rate ({n} slots)",
            f"rate_{n}",
            0.85,
            VERTEX_CUT,
            of=DIDO,
            least=True,
        )
        for n in numbers
    )


def _mdtest(clients: tuple[int, ...], batch: int) -> tuple[Row, ...]:
    rows = []
    for n in clients:
        of = f"{n} clients" if n > 1 else "1 client"
        rows += [
            Row(f"rate_1_{n}", f"{of}, creates/s"),
            Row(f"cpu_1_{n}", f"{of}, CPU per create, µs", 1e-6, 1),
            Row(f"busiest_cpu_1_{n}", f"{of}, CPU of the busiest slot, s", 1, 2),
            Row(f"moved_1_{n}", f"{of}, relations moved by splits"),
            Row(f"rate_{batch}_{n}", f"{of}, {batch} with a call, creates/s"),
            Row(f"cpu_{batch}_{n}", f"{of}, {batch} with a call, CPU per create, µs", 1e-6, 1),
        ]
    return tuple(rows)


_SLOTS = (4, 8, 32)
_CLIENTS, _BATCH = (1, 2, 4, 8), 100
_HUB_SLOTS = (4, 8, 16, 32)

SLOTS = (
    Figure(
        "slots-counters",
        "Partitioners: counts of scans and walks",
        "20,000 vertices and 1.6 million relations of RMAT in 32 slots, threshold 128, both ends of each "
        "relation placed; scans and walks along relations from vertices of some degrees (GraphMeta, figures "
        "12 to 15). A model computes each number from the rules; the measured number must equal it, and is "
        "the same in every run. Only the relations moved by splits depend on the clients' batches.",
        (*SCHEMES, PAPER),
        slots.counters,
        _counters(),
        (
            Target(
                f"dido's StatComm of a scan at most giga+'s ({_degree(_GREATEST)})",
                f"comm_1_{_GREATEST}",
                1,
                GIGA,
                of=DIDO,
            ),
            Target(
                f"dido's StatComm of 3 steps at most vertex-cut's ({_degree(_GREATEST)})",
                f"comm_3_{_GREATEST}",
                1,
                VERTEX_CUT,
                of=DIDO,
            ),
        ),
        data={"count": 1_600_000},
        group="slots",
        runs=1,
    ),
    Figure(
        "slots-threshold",
        "Partitioners: the threshold",
        "One client puts 8,192 relations of one vertex, with a property of 128 characters, one by one into "
        "32 slots, and scans them, by the threshold (GraphMeta, figure 8).",
        (DIDO,),
        slots.threshold,
        tuple(
            Row(f"{key}_{limit}", f"threshold {limit:,}: {label}", unit, digits)
            for limit in THRESHOLDS
            for key, label, unit, digits in (
                ("put", "puts, ms", 1e-3, 1),
                ("cpu", "CPU of the puts, ms", 1e-3, 0),
                ("splits", "splits", 1, 0),
                ("moved", "relations moved", 1, 0),
                ("scan", "scan, ms", 1e-3, 2),
                ("busiest", "time of the scan's busiest slot, ms", 1e-3, 3),
                ("asked", "slots that the scan asks", 1, 0),
                ("reads", "StatReads of the scan", 1, 0),
            )
        ),
        (
            Target("puts take no longer at 4,096 than at 128 (ratio)", "put_falls", 1, of=DIDO),
            Target(
                "the busiest slot of a scan reads more at 4,096 than at 128 (ratio)",
                "reads_grow",
                1.5,
                of=DIDO,
                least=True,
            ),
        ),
        data={"count": 8_192},
        group="slots",
    ),
    Figure(
        "slots-steps",
        "Six steps, step by step",
        f"{_NEAR}; dido, 8 slots, of which slot 1 takes at least 20 µs longer to read the relations of a "
        "vertex. `bench/results.json` has the time of each slot in each step (GraphMeta, figure 9).",
        ("sync", "plain"),
        slots.profile,
        _steps(),
        (Target("reading ahead makes six steps no slower", "seconds", 1.0, "plain", of="sync"),),
        data={"count": _NEAR_COUNT},
        group="slots",
    ),
    *(
        Figure(
            f"slots-walks-{n}",
            f"Walks in {n} slots",
            f"{_NEAR}: three engines (GraphMeta, figures 10 and 16). All slots are threads on two "
            "processors: the times are those of all slots' computation together.",
            SCHEMES,
            slots.walks,
            _walks(WALKS),
            (*_near(4), *_near(8)),
            data={"count": _NEAR_COUNT, "slots": n, "steps": WALKS},
            group="slots",
        )
        for n in (8, 32)
    ),
    *(
        Figure(
            name,
            title,
            f"{_NEAR}: 8 slots, of which {which} at least 100 µs longer to read the relations of a vertex.",
            SCHEMES,
            slots.walks,
            _walks((4, 6)),
            (*_near(4), *_near(6)),
            data={"count": _NEAR_COUNT, "slots": 8, "steps": (4, 6), "delays": ",".join(delays)},
            group="slots",
        )
        for name, title, which, delays in (
            ("slots-slow", "Walks with one slow slot", "slot 1 takes", ("0", "100000")),
            ("slots-disks", "Walks with all slots slow", "each takes", ("100000",) * 8),
        )
    ),
    Figure(
        "slots-puts",
        "Put relations into slots",
        "A power-law graph with a hub, relations with a property of 128 characters, 1,000 at a time by eight "
        "clients, until all splits are finished.",
        SCHEMES,
        slots.puts,
        _puts(_SLOTS),
        _close_to_vertex_cut(_SLOTS),
        data={"count": 200_000, "shape": "power", "slots": _SLOTS},
        group="slots",
    ),
    Figure(
        "slots-puts-darshan",
        "Put relations of Darshan logs into slots",
        "200,000 relations between users, jobs, processes, programs and files, as ingest makes them of 35 "
        "real Darshan logs (GraphMeta, figure 11, uses a year of logs). The logs have 5,414 of "
        "them, at 4,840 vertices; jobs, with their processes, are repeated under further numbers, 37 times "
        "in all, while users, programs and files stay the same. Each has a property of 128 characters. "
        "Eight clients put 1,000 at a time, until all splits are finished. A model computes where they are "
        "then, and the slots must agree.",
        SCHEMES,
        slots.puts,
        _puts(_SLOTS, model=True),
        _close_to_vertex_cut(_SLOTS),
        data={"count": 200_000, "shape": DARSHAN, "slots": _SLOTS, "model": True},
        group="slots",
        missing=darshan_relations.missing,
    ),
    Figure(
        "slots-mdtest",
        "Create files in one directory",
        "Clients create 4,000 files each in one directory, as mdtest does, one per call, and each "
        "call waits for all slots that take part (GraphMeta, figure 18: 8n clients, compared with "
        "GPFS). In 8 slots, threshold 128, a file is a vertex with mode, owner, size and time as static "
        "properties, and the relation `has` of the directory, which clients prepare before the clock "
        "starts; in a folder of the disk's file system it is `open` with O_CREAT and O_EXCL, and `close`, "
        "by as many threads. On neither side is anything durable when a call returns: slots have it in "
        "memory (a store also keeps it in its log, which these times leave out), the file system in the "
        "page cache.",
        (DIDO, FOLDER),
        slots.mdtest,
        _mdtest(_CLIENTS, _BATCH),
        data={"files": 4_000, "clients": _CLIENTS, "slots": 8, "batch": _BATCH},
        group="slots",
    ),
    Figure(
        "slots-hub",
        "Put relations of one vertex",
        "Eight clients put 2.6 million relations of one vertex, 1,000 at a time, until all splits are "
        "finished (GraphMeta, figure 17: 256 clients x 10,240). With two processors for all slots the rate "
        "cannot grow with the number of slots; the work of one slot can fall.",
        (DIDO,),
        slots.puts,
        _puts(_HUB_SLOTS, held=True),
        (Target("with 32 slots no slot has 1.5 times the mean", "most_over_mean_32", 1.5, of=DIDO),),
        data={"count": 2_621_440, "shape": "hub", "slots": _HUB_SLOTS, "held": True},
        group="slots",
    ),
)

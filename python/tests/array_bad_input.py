"""Run by test_array_bad_input.py on three ranks: rank 1 gives wrong input, or differs from the others.

All ranks make each act; next to it are the kind of its error and words of its message. The job goes on.
"""

import re
import sys

import fieldstone as fst
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size, nodes = comm.rank, comm.size, 30
wrong = rank == 1
mine = np.arange(nodes)[rank::size]
ends = np.array_split(np.arange(nodes), size)[rank]
following = (ends + 1) % nodes
vector = np.arange(nodes) % size
values = mine + 0.5
if rank == 0:
    np.arange(60, dtype="<i4").tofile(sys.argv[2])
comm.barrier()


def changed(array, at, value):
    array = array.copy()
    if wrong:
        array[at] = value
    return array


def writes(view, buffer, name="u", step=7, **options):
    def act():
        group.view(view)
        group.write(name, step, buffer, **options)

    return act


def reads(view, step=0):
    return lambda: group.read("u", step, view=view)


def parts(edges, ranks, nodes=nodes, **options):
    return lambda: job.partition(edges, ranks, history=False, nodes=nodes, **options)


def imports(offset, shape, dtype="<i4"):
    def act():
        job.import_file(sys.argv[2], {"a": (dtype, offset, shape)}, format="raw")["a"].read()

    return act


def groups(name="other", dtype="f8", shape=8, **options):
    return lambda: job.group(name, {"w": dtype}, shape=shape, **options)


INVALID, CONFLICT, ABSENT, CORRUPT = fst.Invalid, fst.Conflict, fst.NotFound, fst.Corrupt
whole = fst.irregular(mine)
CASES = {
    # Maps.
    "an index beyond the array": (
        writes(fst.irregular(changed(mine, 4, 30)), values),
        INVALID,
        ["rank 1", "map[4]", "30"],
    ),
    "an index below -1": (
        writes(fst.irregular(changed(mine, 2, -2)), values),
        INVALID,
        ["rank 1", "map[2]", "-2"],
    ),
    "a flat index beyond the array": (
        writes(fst.irregular(changed(mine, 9, 1 << 40), dim=None), values),
        INVALID,
        ["rank 1", "map[9]", str(1 << 40)],
    ),
    "an element of two ranks, with other bytes": (
        writes(fst.irregular(changed(mine, 3, 6)), values),
        CONFLICT,
        ["element 6 ", "ranks 0 and 1"],
    ),
    "an element twice on a rank, with other bytes": (
        writes(fst.irregular(changed(mine, 3, 4)), values),
        CONFLICT,
        ["element 4 ", "rank 1"],
    ),
    "more own elements than the map has": (
        writes(fst.irregular(mine, owned=11 if wrong else 10), values),
        INVALID,
        ["rank 1", "11", "10"],
    ),
    "a map that is read beyond the array": (
        reads(fst.irregular(changed(mine, 0, 31))),
        INVALID,
        ["rank 1", "map[0]", "31"],
    ),
    # Boxes.
    "a box beyond the array": (
        writes(fst.block(25 if wrong else 10 * rank, 10), np.ones(10)),
        INVALID,
        ["rank 1", "dimension 0", "25", "10", "30"],
    ),
    "a grid for other ranks": (
        writes(fst.block(grid=(4 if wrong else 3,)), np.ones(10)),
        INVALID,
        ["rank 1", "[4]", "3 ranks"],
    ),
    "halves of a cyclic block": (
        writes(fst.cyclic((3,), (0 if wrong else 1,)), np.ones(10)),
        INVALID,
        ["rank 1", "blocks[0]", "0"],
    ),
    # Buffers.
    "a buffer of another length": (
        writes(whole, np.ones(11 if wrong else 10)),
        INVALID,
        ["rank 1", "[11]", "[10]"],
    ),
    "a buffer of other dimensions": (
        writes(whole, np.ones((2, 5)) if wrong else np.ones(10)),
        INVALID,
        ["rank 1", "[2, 5]", "[10]"],
    ),
    "a buffer of another type": (
        writes(whole, values.astype("c16" if wrong else "f8")),
        INVALID,
        ["rank 1", "complex128", "float64"],
    ),
    "a buffer of text": (writes(whole, ["a"] * 10 if wrong else values), INVALID, ["rank 1", "float64"]),
    "ghosts of another length": (lambda: part.update(np.ones(len(part.nodes) + wrong)), INVALID, ["rank 1"]),
    # Vectors.
    "a rank that is not there": (
        parts((ends, following), changed(vector, 7, 3)),
        INVALID,
        ["rank 1", "node 7", "3"],
    ),
    "a negative rank": (
        parts((ends, following), changed(vector, 0, -1)),
        INVALID,
        ["rank 1", "node 0", "-1"],
    ),
    "a rank that is not there, on all": (
        parts((ends, following), np.where(np.arange(nodes) == 5, 99, vector)),
        INVALID,
        ["rank 0", "node 5", "99", "0 to 2"],
    ),
    "vectors that differ": (
        parts((ends, following), changed(vector, 8, 0)),
        INVALID,
        ["node 8", "rank 1", "2", "0"],
    ),
    "vectors that differ, where nobody says how many nodes there are": (
        parts((ends, following), changed(vector, 8, 0), nodes=None),
        CONFLICT,
        ["ranks 0 and 1", "30 entries"],
    ),
    "a vector of another length": (
        parts((ends, following), vector[:29] if wrong else vector),
        INVALID,
        ["rank 1", "29 entries", "30 nodes"],
    ),
    "a vector that is too long": (
        parts((ends, following), np.zeros(31, int)),
        INVALID,
        ["rank 0", "31", "30"],
    ),
    "a vector of fractions": (
        parts((ends, following), vector + 0.5 if wrong else vector),
        INVALID,
        ["rank 1", "float64"],
    ),
    # Edges.
    "a first end that names no node": (
        parts((changed(ends, 3, 30), following), vector),
        INVALID,
        ["rank 1", "first end of edge 13", "30"],
    ),
    "a second end that names no node": (
        parts((ends, changed(following, 9, -5)), vector),
        INVALID,
        ["rank 1", "second end of edge 19", "-5"],
    ),
    "a first end below the base": (
        parts((changed(ends + 1, 0, 0), following + 1), vector, base=1),
        INVALID,
        ["rank 1", "first end of edge 10", "0"],
    ),
    "edges with one end": (
        parts((ends, following[: 9 if wrong else 10]), vector),
        INVALID,
        ["rank 1", "10", "9"],
    ),
    "edges of fractions": (
        parts((ends + 0.5 if wrong else ends, following), vector),
        INVALID,
        ["rank 1", "float64"],
    ),
    "no pair of edges": (parts((ends, 3 if wrong else following), vector), INVALID, ["rank 1"]),
    # Imports.
    "an offset beyond the file": (imports(240, 10), CORRUPT, ["variable `a`", "240", "280"]),
    "an offset beyond the file, a little": (imports(4, 60), CORRUPT, ["variable `a`", "240", "244"]),
    "an offset that is another one": (imports(8 if wrong else 4, 10), CONFLICT, ["rank 1", "8", "4"]),
    "a type that is another one": (
        imports(0, 10, "<f4" if wrong else "<i4"),
        CONFLICT,
        ["rank 1", "f4", "i4"],
    ),
    # Ranks that differ.
    "sets that differ": (
        writes(whole, values, "v" if wrong else "u"),
        CONFLICT,
        ["rank 1", "set v", "set u"],
    ),
    "a set that is not there": (writes(whole, values, "x" if wrong else "u"), ABSENT, ["rank 1", "'x'"]),
    "steps that differ": (writes(whole, values, step=7 + wrong), CONFLICT, ["rank 1", "step 8", "step 7"]),
    "a step that is none": (writes(whole, values, step=7.5 if wrong else 7), INVALID, ["rank 1", "7.5"]),
    "a step that is not there": (reads(whole, 99), ABSENT, ["99"]),
    "steps of reads that differ": (reads(whole, 5 * wrong), CONFLICT, ["rank 1", "step 5", "step 0"]),
    "who waits and who does not": (writes(whole, values, wait=not wrong), CONFLICT, ["rank 1", "later"]),
    "groups of other names": (groups("h1" if wrong else "h"), CONFLICT, ["rank 1", "h1"]),
    "groups of other types": (
        groups("h2", "f4" if wrong else "f8"),
        CONFLICT,
        ["rank 1", "float32", "float64"],
    ),
    "groups of other shapes": (
        groups("h3", shape=9 if wrong else 8),
        CONFLICT,
        ["rank 1", "shape (9)", "shape (8)"],
    ),
    "groups of other levels": (groups("h4", level=2 if wrong else 3), CONFLICT, ["rank 1", "Two", "Three"]),
    "a method that is none": (groups("h5", method="fast" if wrong else "auto"), INVALID, ["rank 1", "fast"]),
    "a level that is none": (groups("h6", level=4 if wrong else 1), INVALID, ["rank 1", "4"]),
    "other methods of a partition": (
        parts((ends, following), vector, method="ring" if wrong else "direct"),
        CONFLICT,
        ["rank 1", "Ring", "Direct"],
    ),
    "hints of a call that differ": (
        writes(whole, values, hints={"cb_nodes": 1 + wrong}),
        CONFLICT,
        ["rank 1", "cb_nodes=2", "cb_nodes=1"],
    ),
    "jobs with other buffers": (
        lambda: store.arrays("r", comm=comm, buffer=100 + wrong),
        CONFLICT,
        ["rank 1", "101", "100"],
    ),
    "jobs of other runs": (lambda: store.arrays("s" if wrong else "r", comm=comm), CONFLICT, ["rank 1", "s"]),
}

if sys.argv[3] == "fields":
    del CASES["who waits and who does not"]  # nobody waits for a log
missed = []


def tried(name, act, kind, words):
    """Notes which expected words the error of an act lacks."""
    try:
        act()
        missed.append(f"{name}: nothing was raised")
    except Exception as error:
        said = str(error)
        lacks = [word for word in words if not re.search(rf"(?<![0-9]){re.escape(word)}(?![0-9])", said)]
        # On the rank itself it may be one of Python's exceptions.
        if wrong and not isinstance(error, fst.Error):
            return
        if type(error) is not kind:
            missed.append(f"{name}: {error!r} is not {kind.__name__}")
        elif lacks:
            missed.append(f"{name}: {said!r} lacks {lacks}")


with fst.open(sys.argv[1]) as store:
    with store.arrays("r", comm=comm, layout=sys.argv[3]) as job:
        group = job.group("g", {"u": "f8", "v": "f8"}, shape=nodes)
        group.view(whole)
        group.write("u", 0, values)
        part = job.partition((ends, following), vector, history=False)
        job.flush()
        for name, (act, kind, words) in CASES.items():
            tried(name, act, kind, words)
            job.discard()
            # All continue together.
            group.view(whole)
            group.write("v", 0, values)
        job.flush()

    def in_other_calls():
        with store.arrays("r", comm=comm, layout=sys.argv[3]) as job:
            if wrong:
                job.flush()
            else:
                job.partition((ends, following), vector)

    # This ends the job, because each rank waits in vain.
    tried("a partition and a flush", in_other_calls, CONFLICT, ["rank 1", "`flush`", "`partition`"])
    everybody = comm.allgather(missed)
assert not any(everybody), "\n".join(
    sorted({f"rank {at}: {one}" for at, all in enumerate(everybody) for one in all})
)
if rank == 0:
    print(len(CASES) + 1)

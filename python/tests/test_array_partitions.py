"""Partitions of meshes by ranks under mpiexec: equal to brute force, found again, restarted on others."""

from __future__ import annotations

import gc
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from mpi_job import mpirun

SCRIPT = """
import sys
import numpy as np
import fieldstone as fst
from mpi4py import MPI

comm = MPI.COMM_WORLD
rng = np.random.default_rng(3)
NODES, EDGES = 200, 700
edges = rng.integers(0, NODES, (2, EDGES))

def mine(a):
    return np.array_split(a, comm.size)[comm.rank]

def check(part, vector, edges=edges):
    owner = vector[edges]
    own = np.flatnonzero(vector == comm.rank)
    touches = (owner == comm.rank).any(axis=0)
    first = np.flatnonzero(owner[0] == comm.rank)
    others = np.flatnonzero(touches & (owner[0] != comm.rank))
    ghosts = np.setdiff1d(edges[:, touches].ravel(), own)
    assert (part.nodes == np.concatenate([own, ghosts])).all()
    assert part.owned == len(own)
    assert (part.edges == np.concatenate([first, others])).all()
    assert part.owned_edges == len(first)
    assert (part.nodes[part.ends] == edges[:, part.edges].T).all()
    values = np.where(np.arange(len(part.nodes)) < part.owned, part.nodes * 2.0, -1)
    wide = np.stack([values, values + 1], -1)
    part.update(values, wide)
    assert (values == part.nodes * 2.0).all()
    assert (wide[:, 1] == part.nodes * 2.0 + 1).all()

store = fst.open(sys.argv[1])
"""


def test_parts_equal_brute_force_and_serve_a_restart(tmp_path: Path) -> None:
    first = """
vector = rng.integers(0, comm.size, NODES)
blocks = np.repeat(np.arange(comm.size), [len(b) for b in np.array_split(np.arange(NODES), comm.size)])
raw = sys.argv[1] + ".raw"
if comm.rank == 0:
    edges.astype(">i4").tofile(raw)
comm.barrier()
with store.arrays("r", comm=comm) as job:
    part = job.partition((mine(edges[0]), mine(edges[1])), vector)
    assert part.source == "computed" and job.report().exchanged > 0
    check(part, vector)
    check(job.partition((mine(edges[0]) + 1, mine(edges[1]) + 1), mine(vector), nodes=NODES, base=1), vector)
    check(job.partition((mine(edges[0]), mine(edges[1])), vector, method="ring", history=False), vector)
    imp = job.import_file(raw, {"a": (">i4", 0, EDGES), "b": (">i4", 4 * EDGES, EDGES)}, format="raw")
    blocked = job.partition((imp["a"], imp["b"]), "block", nodes=NODES)
    check(blocked, blocks)
    group = job.group("g", {"u": "f8"}, shape=NODES)
    group.view(part.node_view)
    group.write("u", 0, np.where(np.arange(len(part.nodes)) < part.owned, part.nodes * 1.5, np.nan))
    job.flush()
    # Found again, before edges are read or anything is sent.
    sent = job.report().exchanged
    again = job.partition((imp["a"], imp["b"]), "block", nodes=NODES)
    assert again.source == "parts", again.source
    assert job.report().exchanged == sent
    check(again, blocks)
    other = job.partition((imp["a"], imp["b"]), vector)
    assert other.source == "edges", other.source
    check(other, vector)
    a, b = mine(edges[0]), mine(edges[1])
    for wrong, words in [
        (lambda: job.partition((a + NODES * (comm.rank == 1), b), vector, history=False), "rank 1"),
        (lambda: job.partition((a, b), np.where(np.arange(NODES) == 7, 99, vector)), "node 7 is 99"),
        (lambda: job.partition((a, b), "hilbert", nodes=NODES), "Hilbert"),
        (lambda: job.partition((a, 3 if comm.rank == 2 else b), vector), "rank 2"),
        (lambda: other.update(np.zeros((2, len(other.nodes)))), "an array of shape [2, "),
    ]:
        try:
            wrong()
        except fst.Invalid as error:
            assert words in str(error), str(error)
        else:
            raise AssertionError(words)
"""
    second = """
vector = rng.integers(0, comm.size, NODES)
with store.arrays("r", comm=comm) as job:
    part = job.partition((mine(edges[0]), mine(edges[1])), vector)
    assert part.source == "edges", part.source
    assert not part.ignored
    check(part, vector)
    u = job.group("g").read("u", 0, view=part.node_view)
    assert (u == part.nodes * 1.5).all()
"""
    mpirun(4, SCRIPT + first, tmp_path / "store")
    mpirun(3, SCRIPT + second, tmp_path / "store")
    histories = fst.open(tmp_path / "store", "r").histories()
    assert {history.ranks for history in histories} == {None, 3, 4}
    for history in histories:
        path = Path(history.path)
        assert path.is_file()
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        path.write_bytes(damaged)
    damaged_run = """
vector = rng.integers(0, comm.size, NODES)
with store.arrays("r", comm=comm) as job:
    part = job.partition((mine(edges[0]), mine(edges[1])), vector)
    assert part.source in ("computed", "edges"), part.source
    if part.source == "computed":
        assert len(part.ignored) >= 1 and str(sys.argv[1]) in part.ignored[0], part.ignored
    check(part, vector)
"""
    mpirun(3, SCRIPT + damaged_run, tmp_path / "store")


def test_arrays_of_a_partition_look_at_its_memory_and_outlive_it(tmp_path: Path) -> None:
    first, second = np.array([0, 1, 2, 3, 4]), np.array([1, 2, 3, 4, 0])
    with fst.open(tmp_path / "store") as store, store.arrays("r") as job:
        part = job.partition((first, second), np.zeros(5, int))
        nodes, edges, ends = part.nodes, part.edges, part.ends
        assert (nodes.dtype, edges.dtype, ends.dtype, ends.shape) == ("i8", "i8", "i4", (5, 2))
        for array in (nodes, edges, ends):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        again = part.node_view
        del part
        gc.collect()
    gc.collect()
    assert (nodes == edges).all() and nodes.tolist() == [0, 1, 2, 3, 4]
    assert ends.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]] and "5 nodes" in repr(again)
    alone = fst.open(tmp_path / "other").arrays("r").partition((first[:0], first[:0]), np.zeros(0, int))
    assert (alone.nodes.shape, alone.edges.shape, alone.ends.shape) == ((0,), (0,), (0, 2))


def test_edges_and_vectors_of_any_strides_and_types_are_taken(tmp_path: Path) -> None:
    table = np.array([[0, 1, 9], [1, 2, 9], [2, 0, 9]])
    with fst.open(tmp_path / "store") as store, store.arrays("r") as job:
        for first, second, vector in (
            (table[:, 0], table[:, 1], np.zeros(6, int)[::2]),
            (table[::-1, 1][::-1], table[:, 1], np.zeros((3, 1), int)[:, 0][::-1]),
            (table[:, 0].astype(">i4"), table[:, 1].astype("u2"), np.zeros(3, "u1")),
            (np.frombuffer(b"\0" + table[:, 0].tobytes(), "i8", offset=1), table[:, 1], [0, 0, 0]),
        ):
            part = job.partition((first, second), vector, history=False)
            assert part.nodes[part.ends].tolist() == np.stack([first, second], -1).tolist()


def test_one_process_and_a_mesh(tmp_path: Path) -> None:
    x, y = np.meshgrid(np.arange(6.0), np.arange(5.0))
    corner = np.arange(30).reshape(5, 6)
    faces = np.stack([corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]], -1).reshape(-1, 4)
    with fst.open(tmp_path / "store") as store, store.arrays("r") as job:
        job.create_mesh("m", nodes={"x": x.ravel(), "y": y.ravel()}, faces=faces)
        part = job.partition("m", "hilbert")
        assert (part.nodes == np.arange(30)).all()
        assert len(part.edges) == 5 * 5 + 4 * 6
        assert part.source == "computed"
        job.flush()
        assert job.partition("m", "hilbert").source == "parts"
        assert job.partition("m", np.zeros(30, int)).source == "edges"
        assert "kept" not in repr(part)
        with pytest.raises(fst.NotFound, match="'n'"):
            job.partition("n", "block")
    hilbert = SCRIPT.replace("edges = rng", "_ = rng") + (
        """
with store.arrays("r", comm=comm) as job:
    part = job.partition("m", "hilbert")
    assert part.source == "edges"
    owned = comm.allgather(part.nodes[: part.owned].tolist())
    assert sorted(sum(owned, [])) == list(range(30))
    assert all(len(own) == 10 for own in owned)
"""
    )
    mpirun(3, hilbert.replace("edges=edges", "edges=None"), tmp_path / "store")

"""Ranks that raise, or whose disk is full, in write, flush or partition: all learn the rank in a second."""

from __future__ import annotations

from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from mpi_job import mpirun

RANKS = 4
NODES = 1000

# The time of an error is measured as in test_mpi.py, next to calls without one.
JOB = """
import os
import re
import sys
import time
import numpy as np
import fieldstone as fst
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size, nodes = comm.rank, comm.size, int(sys.argv[2])
mine = np.arange(nodes)[rank::size]
edges = np.array_split(np.arange(nodes), size)[rank]
vector = np.arange(nodes) % size
slowest = well = 0.0
tried = 0

def sure(condition, said):
    # An exception would wait for ranks that are in a collective call of the test.
    if not condition:
        print(f"rank {rank}: {said!r}", file=sys.stderr, flush=True)
        comm.Abort(1)

class Broken:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("this rank is broken")

def timed(act):
    '''What an act raises on this rank, and how long it took until all had it, from `began` on.'''
    global began
    comm.barrier()
    began, said = time.monotonic(), None
    try:
        act()
    except Exception as error:
        said = error
    ended = time.monotonic()
    return said, max(comm.allgather(ended)) - max(comm.allgather(began))

def goes_well(act):
    global well
    said, seconds = timed(act)
    sure(said is None, said)
    well = max(well, seconds)

def fails(who, act, words=""):
    '''All ranks have an error, and the others' names the one that failed; None: any.'''
    global slowest, tried
    said, seconds = timed(act)
    sure(said is not None, f"did not hear of rank {who}")
    name = "rank [0-9]: " if who is None else f"rank {who}: "
    sure(rank == who or isinstance(said, fst.Error) and re.search(name, str(said)), said)
    sure(words in str(said), said)
    slowest, tried = max(slowest, seconds), tried + 1

def summary():
    text = f"{tried} errors took {slowest:.3f} s at most, a call without one {well:.3f} s"
    sure(slowest < max(1, 10 * well), text)
    if rank == 0:
        print(text)
"""


def checked(url: Path, steps: list[int]) -> None:
    """Exactly these steps exist, complete and correct."""
    with fst.open(url, "r") as store:
        report = store.verify()
        assert report.ok, report.damaged
        found = sorted((int(entry.key["step"]), entry.complete) for entry in store.list("run=r"))
        assert found == [(step, True) for step in steps]
        for step in steps:
            assert (store.get(f"run=r,variable=u,step={step}") == np.arange(NODES) + step).all()


@pytest.mark.parametrize("layout", ["files", "fields"])
def test_who_cannot_begin_a_call_fails_it_on_all_and_the_job_goes_on(tmp_path: Path, layout: str) -> None:
    script = """
step = 0
with fst.open(sys.argv[1]) as store, store.arrays("r", comm=comm, layout=sys.argv[3]) as job:
    group = job.group("g", {"u": "f8"}, shape=nodes)
    group.view(fst.irregular(mine))
    for who in range(size):
        def given(value):
            return Broken() if rank == who else value
        for wait in (True, False):
            fails(who, lambda: group.write("u", step, given(mine + 1.0 * step), wait=wait))
            fails(who, lambda: group.write_many(step, {"u": given(mine + 1.0 * step)}, wait=wait))
        fails(who, lambda: job.partition((given(edges), (edges + 1) % nodes), vector))
        fails(who, lambda: job.partition((edges, (edges + 1) % nodes), given(vector)))
        # The job goes on.
        goes_well(lambda: group.write("u", step, mine + 1.0 * step, wait=who % 2 == 0))
        goes_well(lambda: job.partition((edges, (edges + 1) % nodes), (vector + who) % size))
        goes_well(job.flush)
        step += 1
summary()
"""
    done = mpirun(RANKS, JOB + script, tmp_path / "store", NODES, layout, timeout=300)
    print(done.stdout)
    assert done.stdout.split()[0] == str(6 * RANKS)
    checked(tmp_path / "store", list(range(RANKS)))


@pytest.mark.parametrize("layout", ["files", "fields"])
def test_an_exception_of_one_rank_ends_the_job_on_all_wherever_they_are(tmp_path: Path, layout: str) -> None:
    script = """
step = 0
for who in range(size):
    for call in ("write", "write later", "partition", "flush", "end"):
        def job_of(raises):
            with fst.open(sys.argv[1]) as store, store.arrays("r", comm=comm, layout=sys.argv[3]) as job:
                group = job.group("g", {"u": "f8"}, shape=nodes)
                group.view(fst.irregular(mine))
                def before(name):
                    global began
                    if rank == who and call == name:
                        began = time.monotonic()
                        if raises:
                            raise RuntimeError("this rank gives up")
                before("write")
                group.write("u", step, mine + 1.0 * step)
                before("write later")
                group.write("u", step, mine + 1.0 * step, wait=False)
                before("partition")
                job.partition((edges, (edges + 1) % nodes), (vector + step) % size)
                before("flush")
                if call != "end":
                    job.flush()
                before("end")
        fails(who, lambda: job_of(True), "this rank gives up")
        goes_well(lambda: job_of(False))
        step += 1
summary()
"""
    done = mpirun(RANKS, JOB + script, tmp_path / "store", NODES, layout, timeout=300)
    print(done.stdout)
    assert done.stdout.split()[0] == str(5 * RANKS)
    checked(tmp_path / "store", list(range(5 * RANKS)))


@pytest.mark.parametrize("layout", ["files", "fields"])
def test_a_rank_whose_disk_is_full_fails_the_step_on_all_and_the_job_goes_on(
    small_disk: Path, layout: str
) -> None:
    script = """
filler = os.path.join(os.path.dirname(sys.argv[1]), "filler")
large = 200_000

def fill():
    comm.barrier()
    if rank == 0:
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
            # Enough for the bytes of the other ranks.
            file.truncate(file.tell() - (96 << 10))
    comm.barrier()

def empty():
    comm.barrier()
    if rank == 0:
        os.remove(filler)
    comm.barrier()

step = 0
with fst.open(sys.argv[1]) as store, store.arrays("r", comm=comm, layout=sys.argv[3]) as job:
    group = job.group("g", {"u": "f8"}, shape=nodes)
    group.view(fst.irregular(mine))
    # One rank has nearly all of it, and writes it itself.
    other = job.group("h", {"v": "f8"}, shape=large, method="direct")
    for who in range(size):
        for wait in (True, False):
            count = large - size if rank == who else 1
            start = rank + (large - size - 1) * (rank > who)
            other.view(fst.block(start, count))
            def write():
                other.write("v", step, np.ones(count), wait=wait)
                job.flush()
            fill()
            # With one file, the disk may become full for another rank first.
            fails(who if sys.argv[3] == "fields" else None, write, "No space left")
            empty()
            job.discard()
            def goes_on():
                group.write("u", step, mine + 1.0 * step, wait=wait)
                job.flush()
            goes_well(goes_on)
            step += 1
summary()
"""
    url = small_disk / "store"
    done = mpirun(RANKS, JOB + script, url, NODES, layout, timeout=300)
    print(done.stdout)
    assert done.stdout.split()[0] == str(2 * RANKS)
    checked(url, list(range(2 * RANKS)))

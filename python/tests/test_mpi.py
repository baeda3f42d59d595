"""Communicators of mpi4py, under mpiexec: collectives, files, and errors that reach every rank."""

from __future__ import annotations

import time
from pathlib import Path

import fieldstone as fst
import pytest
from fieldstone import _native
from mpi_job import mpirun


@pytest.mark.parametrize("ranks", [2, 4, 5])
@pytest.mark.parametrize("length", [0, 1, 1000, 300_000])
def test_the_check_passes_under_mpiexec(ranks: int, length: int, tmp_path: Path) -> None:
    done = mpirun(
        ranks,
        """
        import sys
        from fieldstone import _native
        from mpi4py import MPI
        steps = _native._check_comm(MPI.COMM_WORLD, sys.argv[1], int(sys.argv[2]))
        if MPI.COMM_WORLD.rank == 0:
            print(steps)
        """,
        tmp_path / "f",
        length,
    )
    assert int(done.stdout) == 45
    assert (tmp_path / "f").stat().st_size == 0


def test_collectives_give_what_numpy_gives_in_many_rounds() -> None:
    mpirun(
        4,
        """
        import numpy as np
        from fieldstone import _mpi
        from mpi4py import MPI
        world = MPI.COMM_WORLD
        rank, size = world.rank, world.size
        ours = _mpi.communicator(world)
        assert _mpi.communicator(world) is ours, "duplicated once"

        def places(parts):
            held = [np.frombuffer(part, np.uint8) for part in parts]
            return [part.ctypes.data for part in held], [len(part) for part in parts]

        def alltoallv(parts):
            incoming = ours.announce([len(part) for part in parts])
            longest = int(lengths.max())
            ours.check_room(len(parts) * longest, True)
            received = [bytearray(length) for length in incoming]
            ours.move(places(parts), places(received), longest)
            return received

        def exchange(parts, incoming):
            held, room = np.frombuffer(b"".join(parts), np.uint8), np.zeros(sum(incoming), np.uint8)
            ends = [(end.ctypes.data, end.size) for end in (held, room)]
            lists = [len(part) for part in parts], incoming
            joined = [(*end, list(lens)) for end, lens in zip(ends, lists, strict=True)]
            ours.exchange(*joined, int(lengths.max()))
            return room.tobytes()

        for limit in (1, 7, 64, 1 << 30):
            _mpi.ROUND = limit
            rng = np.random.default_rng(limit)
            lengths = rng.integers(0, 40, (size, size))
            parts = [[rng.bytes(n) for n in row] for row in lengths]
            assert alltoallv(parts[rank]) == [parts[r][rank] for r in range(size)]
            came = [parts[r][rank] for r in range(size)]
            assert exchange(parts[rank], [len(part) for part in came]) == b"".join(came)
            assert ours.allgather(parts[rank][0]) == [parts[r][0] for r in range(size)]
            for root in range(size):
                expected = [parts[r][1] for r in range(size)] if rank == root else []
                assert ours.gather(root, parts[rank][1]) == expected
                own = parts[root][2] if rank == root else b""
                assert ours.broadcast(root, own, int(lengths[root][2])) == parts[root][2]
            assert alltoallv([b""] * size) == [b""] * size
            assert ours.allgather(b"") == [b""] * size
            values = rng.integers(0, 1 << 64, (size, 9), dtype=np.uint64, endpoint=False)
            scan = np.frombuffer(ours.exscan(values[rank].tobytes()), np.uint64)
            assert (scan == values[:rank].sum(axis=0, dtype=np.uint64)).all()
            for reduce, fold in (("sum", np.add), ("max", np.maximum)):
                joined = np.frombuffer(ours.allreduce(reduce, values[rank].tobytes()), np.uint64)
                assert (joined == fold.reduce(values)).all(), reduce
        """,
    )


def test_each_rank_fails_at_each_step_and_all_learn_its_name_within_a_second(tmp_path: Path) -> None:
    """Measures the time from before the rank fails until the last rank has learned of it.

    A machine with other work may stop a rank for longer than a second. So checks without a failure are timed
    between the failing ones, and if the slowest of them took more than 0.1 s, an error may take ten times as
    long. A rank that waits for one that has given up would wait forever.
    """
    done = mpirun(
        4,
        """
        import sys, time
        import fieldstone as fst
        from fieldstone import _native
        from mpi4py import MPI
        world = MPI.COMM_WORLD

        def check(name, *fails):
            # One clock for all processes of the machine.
            world.barrier()
            began, said = time.monotonic(), None
            try:
                steps = _native._check_comm(world, f"{sys.argv[1]}/{name}", 100, *fails)
            except fst.Unavailable as error:
                steps, said = 0, error.message
            learned = world.allgather(time.monotonic())
            return steps, said, max(learned) - began

        steps, said, well = check("f")
        assert said is None, said
        tried, slowest = 0, 0.0
        for rank in range(world.size):
            for step in range(1, steps + 1):
                _, said, seconds = check(f"{rank}-{step}", (rank, step))
                assert said and said.startswith(f"rank {rank}: step"), said
                tried, slowest = tried + 1, max(slowest, seconds)
                if step % 15 == 0:
                    well = max(well, check(f"well-{rank}-{step}")[2])
        assert tried == steps * world.size, tried
        text = f"an error took {slowest:.3f} s at most, a check without one {well:.3f} s"
        assert slowest < max(1, 10 * well), text
        if world.rank == 0:
            print(tried, text)
        """,
        tmp_path,
        timeout=300,
    )
    print(done.stdout)
    assert done.stdout.split()[0] == str(45 * 4)


def test_a_killed_rank_ends_the_job_at_once() -> None:
    done = mpirun(
        4,
        """
        import os, signal, time
        from fieldstone import _mpi
        from mpi4py import MPI
        ours = _mpi.communicator(MPI.COMM_WORLD)
        ours.barrier()
        if ours.rank == 0:
            print("killed", time.time(), flush=True)
        ours.barrier()
        if ours.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        ours.barrier()
        print("went on")
        """,
        check=False,
    )
    ended = time.time()
    assert done.returncode != 0
    assert "went on" not in done.stdout
    assert ended - float(done.stdout.split("killed")[1].split()[0]) < 20


def test_what_cannot_be_opened_says_why_on_every_rank(tmp_path: Path) -> None:
    mpirun(
        3,
        """
        import sys
        import fieldstone as fst
        from fieldstone import _native
        from mpi4py import MPI
        for path, kind in ((f"{sys.argv[1]}/absent/f", fst.NotFound), (sys.argv[1], fst.Error)):
            try:
                _native._check_comm(MPI.COMM_WORLD, path)
            except kind as error:
                assert path in str(error), error
            else:
                raise AssertionError(path)
        """,
        tmp_path,
    )


class Ranked:
    """Objects that look like a communicator, but are not one."""

    rank, size = 0, 2


@pytest.mark.parametrize("comm", [Ranked(), 7, "MPI.COMM_WORLD"])
def test_what_is_no_communicator_is_refused(comm: object, tmp_path: Path) -> None:
    with pytest.raises(fst.Invalid, match="not a communicator of mpi4py") as refused:
        _native._check_comm(comm, tmp_path / "f")
    assert "MPI.COMM_WORLD" in str(refused.value.hint)


def test_one_process_needs_no_mpi(tmp_path: Path) -> None:
    assert _native._check_comm(None, tmp_path / "f") == 45


def test_hints_reach_mpi_and_choose_the_owners(tmp_path: Path) -> None:
    done = mpirun(
        3,
        """
        import sys
        import numpy as np
        import fieldstone as fst
        from fieldstone import container
        from mpi4py import MPI
        world = MPI.COMM_WORLD
        rank, size = world.rank, world.size
        hints = {"cb_nodes": 1, "romio_ds_write": "disable", "nobody_knows_it": True}
        with container.create(sys.argv[1], world, hints=hints) as f:
            f.def_dim("x", 3000)
            f.def_var("v", "f8", "x")
            f.enddef()
            assert f.hints["cb_nodes"] == "1" and f.hints["romio_ds_write"] == "disable", f.hints
            mine = np.arange(rank, 3000, size)
            moved = f["v"].put(mine.astype("f8"), view=fst.irregular(mine), method="exchange")
            assert (moved.written > 0) == (rank == 0), moved
        try:
            container.open(sys.argv[1], "r", world, hints={"cb_nodes": 1 + rank})
        except fst.Conflict as error:
            assert "hints cb_nodes=" in str(error), error
        else:
            raise AssertionError("ranks differ in hints")
        try:
            container.open(sys.argv[1], "r", world, hints={"cb_nodes": 2} if rank == 1 else None)
        except fst.Conflict as error:
            assert "hints" in str(error), error
        else:
            raise AssertionError("one rank gives hints")
        try:
            container.open(sys.argv[1], "r", world, hints={"cb_nodes": 0} if rank == 1 else None)
        except fst.Invalid as error:
            assert "the hint cb_nodes" in str(error), error
        else:
            raise AssertionError("rank 1 gave no number of ranks")
        with container.open(sys.argv[1], comm=world, hints={"romio_ds_read": "disable"}) as f:
            assert f.hints["romio_ds_read"] == "disable"
            mine = np.arange(1000 * rank, 1000 * rank + 1000)
            assert (f["v"].get(view=fst.block(grid=(size,))) == mine).all()
        """,
        tmp_path / "hints.nc",
    )
    assert done.stderr == ""


def test_each_rank_has_its_part_by_a_decomposition_of_other_ranks(tmp_path: Path) -> None:
    text = tmp_path / "decomp.dat"
    text.write_text("version 2001 npes 3 ndims 1 \n6 \n0 2\n6 5 \n1 1\n0 \n2 3\n1 2 3 \n")
    mpirun(
        2,
        """
        import sys
        import fieldstone as fst
        from fieldstone import container
        from mpi4py import MPI
        world = MPI.COMM_WORLD
        view = fst.pio_decomposition(sys.argv[1], world)
        with container.create(sys.argv[2], world) as f:
            f.def_dim("x", 6)
            f.def_var("v", "i4", "x")
            f.enddef()
            f["v"].put([[60, 50, 0], [10, 20, 30]][world.rank], view=view)
        with container.open(sys.argv[2]) as f:
            assert f["v"][:].tolist() == [10, 20, 30, 0, 50, 60]
        try:
            fst.pio_decomposition(sys.argv[2], world)
        except fst.Corrupt as error:
            assert "no variable `global_size`" in str(error), error
        """,
        text,
        tmp_path / "v.nc",
    )

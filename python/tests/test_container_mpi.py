"""Containers that ranks of a real MPI job create together."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import LONG, ROOT, require
from fieldstone import container

netCDF4 = pytest.importorskip("netCDF4")

HEAD = """
import sys, time
import numpy as np
import fieldstone as fst
from fieldstone import container
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def say(*words):
    # Each rank writes to its own file: lines of several processes on one pipe may mix.
    with open(f"said.{rank}", "a") as out:
        print(*words, file=out)
"""

STRATEGIES = ["scalable", "app", "library-hash", "library-sort", "partitioned"]


def mpiexec():
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    require("mpi", found, "mpiexec is not installed (pip install mpich mpi4py)")
    return found


def job(folder, ranks, script, *arguments, code=0):
    """Runs a script on ranks; returns their output lines, in the order of ranks."""
    for old in folder.glob("said.*"):
        old.unlink()
    path = folder / "job.py"
    path.write_text(HEAD + textwrap.dedent(script))
    # A package in this process's path must be in theirs.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [mpiexec(), "-n", str(ranks), sys.executable, path, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == code, done.stdout + done.stderr
    said = [folder / f"said.{rank}" for rank in range(ranks)]
    return [line for path in said if path.exists() for line in path.read_text().splitlines()]


DEFINE = """
path, strategy = sys.argv[1:]
format = "partitioned" if strategy == "partitioned" else "cdf5"
N = 24
mine = range(rank * N // size, (rank + 1) * N // size)
with container.create(path, comm, format=format, strategy=strategy, index="always") as f:
    f.put_att("title", "shared by all")
    f.def_dim("feature", 3)
    f.def_dim("time", None)
    shared = f.def_var("shared", "f8", "time", attrs={"units": "K"})
    for i in mine:
        f.def_dim(f"event_{i}/hits", i + 1)
        x = f.def_var(f"event_{i}/x", "f4", ("hits", "feature"), attrs={"number": i})
        f.put_att(f"event_{i}/weight", i / 2)
    report = f.enddef()
    assert report.phases and (size == 1 or report.messages > 0)
    for i in mine:
        v = f[f"event_{i}/x"]
        v.put(np.full(v.shape, i, "f4"), collective=False)
    assert x.shape == (mine[-1] + 1, 3)  # a variable made in define mode still works
    for step in range(4):
        values = [step + 0.5] if step % size == rank else []
        shared.put(values, start=[step], count=[len(values)])
    # A rank finds objects created by others, and reads their data after sync.
    f.sync()
    assert len(f.vars) == N + 1 and f.dims["time"] == 4
    other = (mine[0] + N // 2) % N
    assert (f[f"event_{other}/x"][:] == other).all()
    assert f["shared"].get().tolist() == [0.5, 1.5, 2.5, 3.5]
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_rank_defines_its_own(tmp_path, strategy):
    for ranks in (1, 2, 4):
        job(tmp_path, ranks, DEFINE, str(tmp_path / f"{ranks}.nc"), strategy)
    if strategy != "partitioned":  # whose metadata blocks are those of ranks
        one = (tmp_path / "1.nc").read_bytes()
        assert all((tmp_path / f"{n}.nc").read_bytes() == one for n in (2, 4))
    with container.open(tmp_path / "4.nc") as f:
        assert len(f.vars) == 25 and f.dims["event_7/hits"] == 8
        assert f["event_7/x"].attrs["number"] == 7 and f.attrs["event_7/weight"] == 3.5
        assert (f["event_7/x"][:] == 7).all()
    if strategy != "partitioned":
        with netCDF4.Dataset(tmp_path / "4.nc") as other:
            assert len(other.variables) == 25
            assert np.array_equal(other["event_9.x"][:], np.full((10, 3), 9))


def test_strategies_of_the_classic_format_write_one_file(tmp_path):
    for strategy in STRATEGIES[:-1]:
        job(tmp_path, 2, DEFINE, str(tmp_path / strategy), strategy)
    first = (tmp_path / STRATEGIES[0]).read_bytes()
    assert all((tmp_path / s).read_bytes() == first for s in STRATEGIES[1:-1])


CONFLICTS = [
    ('f.def_dim("x", 3 if rank == 2 else 4)', ["dimension", "x"]),
    ('f.def_var("v", "i4" if rank == 2 else "f4")', ["variable", "v"]),
    ('f.def_var("v", "i4", attrs={"units": "m" if rank == 2 else "K"})', ["variable", "v", "units"]),
    ('f.put_att("title", "b" if rank == 2 else "a")', ["attribute", "title"]),
    ('f.def_dim(f"t{rank % 3}", None if rank in (1, 2) else 2)', ["record"]),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("definition", "words"), CONFLICTS, ids=lambda v: str(v)[:30])
def test_a_conflict_names_object_and_ranks_on_all(tmp_path, strategy, definition, words):
    script = f"""
    try:
        with container.create("a.nc", comm, strategy={strategy!r},
                              format="partitioned" if {strategy!r} == "partitioned" else "cdf5") as f:
            {definition}
            f.enddef()
    except fst.Conflict as error:
        say(f"rank {{rank}}: {{error.message}}".replace("\\n", " "))
    """
    lines = job(tmp_path, 4, script)
    assert len(lines) == 4 and {line[:6] for line in lines} == {f"rank {r}" for r in range(4)}
    for line in lines:
        text = line.partition(":")[2]
        assert all(word in text for word in words), line
        assert len(set(re.findall(r"rank (\d)", text)) & {"1", "2", "0", "3"}) >= 1 and "2" in text, line
    assert not (tmp_path / "a.nc").exists() or not (tmp_path / "a.nc").read_bytes().startswith(b"CDF")


@pytest.mark.parametrize("where", ["define", "put"])
def test_an_exception_on_one_rank_reaches_all_soon(tmp_path, where):
    script = f"""
    start = time.time()
    try:
        with container.create("a.nc", comm) as f:
            f.def_dim("x", 8)
            v = f.def_var("v", "f8", "x")
            if {where!r} == "define" and rank == 1:
                raise RuntimeError("out of coffee")
            f.enddef()
            if rank == 1:
                raise RuntimeError("out of coffee")
            v.put(np.zeros(2), start=[rank * 2])
    except Exception as error:
        say(rank, type(error).__name__, "coffee" in str(error), "rank 1" in str(error),
            time.time() - start < 20)
    """
    lines = sorted(job(tmp_path, 4, script))
    assert lines[1] == "1 RuntimeError True False True"
    for line in lines[:1] + lines[2:]:
        assert line.split()[2:] == ["True", "True", "True"], lines
    assert not (tmp_path / "a.nc").exists() or not (tmp_path / "a.nc").read_bytes().startswith(b"CDF")


def test_an_error_of_a_call_on_one_rank_is_an_error_on_all(tmp_path):
    script = """
    f = container.create("a.nc", comm)
    f.def_dim("x", 8)
    v = f.def_var("v", "i1", "x")
    f.enddef()
    beyond = rank * 2 + (4 if rank == 3 else 0)
    too_large = [1, 300 if rank == 2 else 0]
    for start, values in ((beyond, [1, 2]), (rank * 2, too_large)):
        try:
            v.put(np.array(values, "i4"), start=[start])
        except fst.Invalid as error:
            say(rank, "rank 3" in str(error), "rank 2" in str(error))
    v.put(np.full(2, rank, "i1"), start=[rank * 2])
    f.close()
    """
    lines = sorted(job(tmp_path, 4, script))
    assert [line for line in lines if "True False" in line] == [f"{r} True False" for r in range(4)]
    with container.open(tmp_path / "a.nc") as f:
        assert f["v"][:].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_an_error_before_a_collective_call_reaches_the_ranks_in_it(tmp_path):
    # Without `with` and with every error caught: only the call itself can notify the others.
    script = """
    f = container.create("a.nc", comm)
    f.def_dim("x", 8)
    v = f.def_var("v", "i4", "x")
    f.enddef()
    mine = [rank * 2]
    two = np.zeros(2, "i4")

    def coffee():
        yield "v", two, mine, [2]
        raise RuntimeError("out of coffee")

    class Odd:
        def __array__(self, *a, **k):
            raise OSError("out of tea")

    wrong = [
        lambda: v.put(Odd(), mine),
        lambda: v.put(np.zeros(2, "M8[s]"), mine),
        lambda: v.put(two, [-1]),
        lambda: v.put(two, [2**64]),
        lambda: v.put(two, [[1, 2], [3]]),
        lambda: v.get([1.5]),
        lambda: v.get(count=[2**64]),
        lambda: v.get(dtype="M8[s]"),
        lambda: v.get(dtype="no type"),
        lambda: v.get(into=np.empty(8, ">i4")),
        lambda: v.get(into=np.empty(8, "i4"), dtype="f4"),
        lambda: v.get(into=bytearray(32)),
        lambda: f.get_many(["v", "nothing"], collective=True),
        lambda: f.get_many([("v", [-1], [2])], collective=True),
        lambda: f.get_many([f], collective=True),
        lambda: f.put_many([("nothing", two)], collective=True),
        lambda: f.put_many([("v", np.zeros(2, "M8[s]"), mine)], collective=True),
        lambda: f.put_many([("v", two, mine, ["2"])], collective=True),
        lambda: f.put_many(["v"], collective=True),
        lambda: f.put_many(coffee(), collective=True),
    ]
    for n, act in enumerate(wrong):
        start = time.time()
        try:
            if rank == 1 + n % 2:
                act()
            elif n % 4 < 2:
                v.get()
            else:
                v.put(two, mine)
            say(n, "no error")
        except Exception as error:
            soon = time.time() - start < 20
            say(n, type(error).__name__, f"rank {1 + n % 2}" in str(error), "coffee" in str(error), soon)
        # An error raised by a collective call is not reported again: the ranks continue together.
        v.put(np.full(2, n * size + rank, "i4"), mine)
        f.sync()
        assert v.get().tolist() == [n * size + r for r in range(size) for _ in "ab"] + [0] * (8 - 2 * size)
    f.close()
    try:
        v.get([-1])  # at once: no rank is in a call of a closed container
    except fst.Invalid as error:
        say("closed", "rank" in str(error))
    """
    lines = job(tmp_path, 3, script)
    assert len(lines) == 3 * 21, lines
    for rank in range(3):
        said = [line.split() for line in lines[rank * 21 : (rank + 1) * 21]]
        assert said.pop() == ["closed", "False"]
        foreign = {0: "OSError", 18: "ValueError", 19: "RuntimeError"}
        for n, (number, kind, named, coffee, soon) in enumerate(said):
            failed = rank == 1 + n % 2
            kinds = "NotFound" if n in (12, 15) else "Invalid"
            assert (int(number), kind) == (n, foreign.get(n, kinds) if failed else kinds), said
            # The failing rank raises another library's error unchanged.
            assert named == str(not (failed and n in foreign)) and coffee == str(n == 19), said
            assert soon == "True", said


def test_a_killed_rank_ends_the_job_and_leaves_no_finished_file(tmp_path):
    script = """
    import os, signal
    f = container.create("a.nc", comm)
    f.def_many([f"r{rank}/v{i}" for i in range(1000)], "f8")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    f.enddef()
    f.close()
    """
    (tmp_path / "job.py").write_text(HEAD + textwrap.dedent(script))
    started = time.monotonic()
    done = subprocess.run(
        [mpiexec(), "-n", "2", sys.executable, "job.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        timeout=300,
    )
    assert done.returncode != 0 and time.monotonic() - started < 30
    assert not (tmp_path / "a.nc").read_bytes().startswith(b"CDF")


def test_a_rank_without_memory_for_a_transfer_is_named_on_all(tmp_path):
    script = """
    import resource
    from fieldstone import _mpi
    ours = _mpi.communicator(comm)
    data = bytes(48 << 20)
    with open("/proc/self/statm") as facts:
        held = int(facts.read().split()[0]) * resource.getpagesize()
    if rank == 1:
        resource.setrlimit(resource.RLIMIT_AS, (held + (16 << 20), -1))
    small = bytes(10)
    for call in (
        lambda: ours.allgather(data),
        lambda: ours.gather(1, data),
        lambda: ours.check_room(3 * len(data), rank != 1),
        lambda: ours.broadcast(0, data if rank == 0 else b"", len(data)),
    ):
        try:
            call()
            say("no error")
        except MemoryError as error:
            say(error)
        assert ours.allgather(small) == [small] * size  # the ranks go on together
    """
    lines = job(tmp_path, 3, script)
    assert len(lines) == 12 and all(line.startswith("rank 1 has no memory") for line in lines), lines


def test_why_the_system_takes_no_more_is_told(tmp_path):
    script = """
    import resource
    with container.create("a.nc", comm=comm, index="never") as f:
        f.def_dim("x", 1 << 20)
        v = f.def_var(f"v{rank}", "f8", ["x"])
        f.enddef()
        # Python lets the write fail, not the process.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, -1))
        try:
            v[:] = np.ones(1 << 20)
        except fst.Error as error:
            say(error.message)
        resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    """
    lines = job(tmp_path, 2, script)
    assert len(lines) == 2 and all("File too large" in line for line in lines), lines


def test_a_rank_with_nothing_to_write_gives_an_empty_array(tmp_path):
    script = """
    with container.create("a.nc", comm=comm) as f:
        f.def_dim("x", 3)
        scalar, row = f.def_var("scalar", "f8"), f.def_var("row", "i4", "x")
        f.enddef()
        scalar.put(2.5 if rank == 1 else [])
        row.put([1, 2, 3] if rank == 0 else [])
        say(float(scalar.get()), row.get().tolist())
    """
    assert job(tmp_path, 2, script) == ["2.5 [1, 2, 3]"] * 2


def test_something_else_than_a_communicator_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"communicator|mpi4py"):
        container.create(tmp_path / "a.nc", comm=object())


def test_the_example_of_a_detector(tmp_path):
    example = ROOT / "examples" / "detector.py"
    script = f"""
    sys.path.insert(0, {str(example.parent)!r})
    import detector
    path, _, events, _, format = sys.argv[1:]
    say(detector.write(path, int(events), comm, format=format))
    """
    printed = {}
    for format in ("cdf5", "partitioned"):
        path = str(tmp_path / f"{format}.nc")
        lines = job(tmp_path, 4, script, path, "--events", "50", "--format", format)
        assert lines == ["12", "13", "12", "13"]
        done = subprocess.run(
            [sys.executable, example, "read", path, "--batch", "8"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            capture_output=True,
            text=True,
            check=True,
        )
        printed[format] = done.stdout
    assert re.fullmatch(r"50 events in 7 batches: \d+ hits, \d+ edges\n", printed["cdf5"])
    assert printed["partitioned"] == printed["cdf5"]


def test_containers_leave_no_file_open_however_they_end(tmp_path):
    script = """
    import os

    def ends(n):
        with container.create("a.nc", comm) as f:  # alternately a new file and one next to the old
            f.def_dim("x", 4)
            f.def_var(f"rank_{rank}/v", "f4", "x")
            f.enddef()
        with container.open("a.nc", "a", comm=comm) as f:
            f.redef()
            f.put_att("long", "x" * 4000)  # moves the data to another file
            f.enddef()
        with container.open("a.nc", comm=comm) as f:
            assert len(f.attrs["long"]) == 4000
        for failing in (conflict, raises, beyond, refused):
            try:
                failing(n)
            except (fst.Error, RuntimeError):
                continue
            raise AssertionError(failing)
        if n % 2:
            comm.barrier()
            if rank == 0:
                os.unlink("a.nc")
            comm.barrier()

    def conflict(n):
        with container.create("b.nc", comm) as f:
            f.def_dim("x", 4 + rank)

    def raises(n):
        with container.create("b.nc", comm) as f:
            f.def_dim("x", 4)
            if rank == n % size:
                raise RuntimeError("out of coffee")
            f.enddef()

    def beyond(n):
        with container.open("a.nc", "a", comm=comm) as f:
            f["rank_0/v"].put(np.zeros(9, "f4"))

    def refused(n):
        with container.open(sys.argv[1], comm=comm):
            pass

    counts, turns = [], int(sys.argv[2])
    for n in range(turns):
        ends(n)
        counts.append(len(os.listdir("/proc/self/fd")))
    say(turns * 7, counts[10] == counts[-1], counts[10], counts[-1], len(os.listdir(".")))
    """
    (tmp_path / "text").write_text("no container")
    turns = 300 if LONG else 60
    lines = job(tmp_path, 2, script, str(tmp_path / "text"), str(turns))
    assert [line.split()[:2] for line in lines] == [[str(turns * 7), "True"]] * 2, lines
    assert not list(tmp_path.glob(".*.part"))


def test_a_thread_reads_and_writes_beside_collective_calls_of_several_parts(tmp_path):
    # Each such call moves its bytes through a view; the other thread's call comes while it is set.
    script = """
    import threading
    from fieldstone import _mpi

    f = container.create("a.nc", comm)
    f.def_dims(["row", "column"], [40, 400])
    a = f.def_var("a", "i4", ("row", "column"))
    b = f.def_var("b", "i4", ("row", "column"))
    f.enddef()
    turns = {"view": threading.Event(), "done": threading.Event()}
    viewed = _mpi.File._view

    def stopping(self, offsets, lengths, move):
        def stop(file, count):
            turns["view"].set()
            assert turns["done"].wait(60)
            turns["done"].clear()
            move(file, count)

        viewed(self, offsets, lengths, stop)

    _mpi.File._view = stopping

    def alone():
        for i in range(rank, 20, 2):
            assert turns["view"].wait(60)
            turns["view"].clear()
            b.put(np.full((1, 400), 100 + i, "i4"), start=[i, 0], collective=False)
            wrong.extend(set(b.get(start=[i, 0], count=[1, 400], collective=False).ravel()) - {100 + i})
            turns["done"].set()

    wrong = []
    thread = threading.Thread(target=alone)
    thread.start()
    for i in range(10):
        a.put(np.full((20, 100), i, "i4"), start=[rank, 0], stride=[2, 4])
    thread.join()
    f.close()
    say(wrong)
    """
    assert job(tmp_path, 2, script) == ["[]", "[]"]
    with container.open(tmp_path / "a.nc") as f:
        assert (f["b"][:20] == 100 + np.arange(20)[:, None]).all() and not f["b"][20:].any()
        assert (f["a"][:, ::4] == 9).all() and not f["a"][:, 1::4].any()


def test_what_fails_on_one_rank_within_a_call_of_a_file_keeps_no_other_waiting(tmp_path):
    script = """
    from fieldstone import _mpi

    class Failing:
        # A handle with one method that fails on rank 1.
        def __init__(self, handle, name):
            self._handle, self._name = handle, name

        def __getattr__(self, name):
            def fails(*_):
                raise MPI.Exception(MPI.ERR_IO)

            return fails if name == self._name else getattr(self._handle, name)

    file = _mpi.communicator(comm).open(sys.argv[1], "create")
    file.set_length(1000)

    def tried(call):
        try:
            call()
            return True
        except (MPI.Exception, MemoryError):
            return False

    parts = [rank * 100, rank * 100 + 50], [2, 3]
    # MPI has no type with a part of this length.
    wrong = [parts[0], [-2, 3]] if rank == 1 else parts
    for call in (lambda: file.write_parts(*wrong, bytes(5)), lambda: file.read_parts(*wrong)):
        assert tried(call) == (rank != 1)
    plain, viewed, buffer = file.file, file.viewed, _mpi._buffer
    for handle, name, call in (("file", "Sync", file.sync), ("viewed", "Sync", file.sync)):
        if rank == 1:
            setattr(file, handle, Failing(getattr(file, handle), name))
        assert tried(call) == (rank != 1), (handle, name)
        file.file, file.viewed = plain, viewed
        assert tried(call)
    if rank == 1:
        _mpi._buffer = lambda length: (bytearray(), MemoryError(length))
    for call in (lambda: file.read_part(rank * 10, 10), lambda: file.read_parts(*parts)):
        assert tried(call) == (rank != 1)
    file.close()
    comm.barrier()
    say("met")
    """
    assert job(tmp_path, 3, script, str(tmp_path / "f")) == ["met"] * 3

"""Distributed arrays from Python, by one process and by ranks under mpiexec: fields, files, restarts."""

from __future__ import annotations

from pathlib import Path

import fieldstone as fst
import netCDF4
import numpy as np
import pytest
from mpi_job import mpirun


def open_store(folder: Path) -> fst.Store:
    return fst.open(folder / "store")


def test_one_process_writes_a_run_and_everybody_reads_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    p = rng.normal(size=(3, 5, 4))
    v = (rng.normal(size=(5, 4)) + 1j * rng.normal(size=(5, 4))).astype("c8")
    with open_store(tmp_path) as store, store.arrays("flow", project="demo") as job:
        group = job.group(
            "analysis",
            {"p": "f8", "v": {"dtype": "c8", "attrs": {"units": "m/s"}}, "wet": "bool"},
            shape=(5, 4),
            dims=("y", "x"),
            attrs={"title": "a test", "version": 3},
            level=3,
        )
        assert group.names == ("p", "v", "wet")
        assert group.sets["v"].dtype == np.dtype("c8")
        assert group.sets["p"].dims == ("y", "x")
        for step in range(3):
            group.write_many(step, {"p": p[step], "v": v * step, "wet": p[step] > 0})
            assert (group.read("p", step) == p[step]).all(), "before the flush"
        with pytest.raises(fst.NotFound):
            store.get({"run": "flow", "project": "demo", "variable": "p", "step": 0})
        job.flush()
        assert (store.get({"run": "flow", "project": "demo", "variable": "p", "step": 2}) == p[2]).all()
        (path,) = group.files
        assert group.steps("p") == [0, 1, 2]
        assert group.last_step() == 2
        assert "level 3" in group.why
        report = job.report()
        assert report.written >= p.nbytes
        assert report.connections == 1
        assert set(report.seconds) >= {"plan", "write", "sync", "commit"}
    with netCDF4.Dataset(path) as file:
        assert file.title == "a test"
        assert file.version == 3
        assert file["v"].units == "m/s"
        assert file["step"][:].tolist() == [0, 1, 2]
        assert (file["p"][:] == p).all()
        assert file["wet"].dtype == np.dtype("i1")
    with fst.open(tmp_path / "store", "r") as store:
        assert store.verify().ok
        whole = store.to_xarray({"run": "flow"})
        assert (whole["p"].values == p).all()
        assert (whole["v"].values[2] == v * 2).all()
        with store.arrays("flow", project="demo") as job:
            group = job.group("analysis")
            part = group.read("p", 1, view=fst.block((1, 1), (2, 3)))
            assert (part == p[1][1:3, 1:4]).all()
            with pytest.raises(fst.Denied):
                group.write("p", 9, p[0])


def test_buffers_of_any_strides_and_orders(tmp_path: Path) -> None:
    a = np.arange(24.0).reshape(4, 6)
    with open_store(tmp_path) as store, store.arrays("r") as job:
        group = job.group("g", {"a": "f8"}, shape=(4, 6))
        views = [a.T.copy().T, np.pad(a, 2)[2:-2, 2:-2], a[::-1].copy()[::-1], a.astype(">f8")]
        for step, values in enumerate(views):
            group.write("a", step, values)
        job.flush()
        for step in range(len(views)):
            assert (group.read("a", step) == a).all(), step
            into = np.zeros((6, 8))
            given = into[::-1, 1:7][1:5]
            assert group.read("a", step, into=given) is given
            assert (given == a).all()
            assert into.sum() == a.sum()


def test_what_nobody_writes_is_the_fill_or_is_missing(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, store.arrays("r") as job:
        group = job.group(
            "g", {"a": {"dtype": "f8", "fill": -1.0}, "b": "f8", "c": {"dtype": "i4", "fill": 7}}, shape=6
        )
        group.view(fst.irregular([5, 0, 2]))
        for name in "abc":
            group.write(name, 0, np.array([5, 0, 2], group.sets[name].dtype))
        job.flush()
        key = {"run": "r", "step": 0}
        assert store.get(key | {"variable": "a"}).tolist() == [0, -1, 2, -1, -1, 5]
        assert store.get(key | {"variable": "c"}).tolist() == [0, 7, 2, 7, 7, 5]
        entries = {e.key["variable"]: e.complete for e in store.list("run=r")}
        assert entries == {"a": True, "b": False, "c": True}
        with pytest.raises(fst.NotFound, match="3"):
            store.get(key | {"variable": "b"})
        (field,) = store.retrieve(key | {"variable": "b"}, strict=False)
        assert np.array_equal(field.array(), [0, np.nan, 2, np.nan, np.nan, 5], equal_nan=True)
        assert group.steps("b") == []


def test_fortran_order_stands_in_files_in_reverse(tmp_path: Path) -> None:
    a = np.arange(6.0).reshape(2, 3)
    with open_store(tmp_path) as store, store.arrays("r") as job:
        group = job.group("g", {"a": "f8"}, shape=(2, 3), dims=("x", "y"), order="F", level=2)
        group.write("a", 0, a)
        group.view(fst.block((1, 0), (1, 3)))
        assert (group.read("a", 0) == a[1:]).all()
        job.flush()
        assert (group.read("a", 0) == a[1:]).all()
        assert (store.get({"run": "r", "variable": "a", "step": 0}) == a.T).all()
        with netCDF4.Dataset(group.files[0]) as file:
            assert file["a"].dimensions == ("step", "y", "x")


def test_particles_vary_in_number(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, store.arrays("r") as job:
        group = job.group("g", {"x": {"dtype": "f4", "shape": (None, 3)}})
        for step, count in enumerate([4, 0, 7]):
            group.view(fst.joined(count))
            group.write("x", step, np.full((count, 3), step, "f4"))
        job.flush()
        assert [store.get(f"run=r,variable=x,step={s}").shape for s in range(3)] == [(4, 3), (0, 3), (7, 3)]
        assert len(group.files) == 3
        group.view(fst.joined(7))
        assert (group.read("x", 2) == 2).all()


def test_mistakes_are_named(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, store.arrays("r") as job:
        group = job.group("g", {"a": "f8", "b": "f4"}, shape=(4,))
        for wrong, kind, words in [
            (lambda: job.group("h"), fst.NotFound, "no group 'h'"),
            (lambda: job.group("h", {}), fst.Invalid, "without sets"),
            (lambda: job.group("h", {"a": "f8"}), fst.Invalid, "no shape"),
            (lambda: job.group("h", {"a": {"shap": 4}}), fst.Invalid, "shap"),
            (lambda: job.group("h", {"a": "f2"}, shape=4, level=1), fst.Invalid, "no type"),
            (lambda: job.group("h", {"a": "f8"}, shape=4, level=4), fst.Invalid, "level=4"),
            (lambda: job.group("h", {"a": "f8"}, shape=4, method="x"), fst.Invalid, '"x"'),
            (lambda: job.group("g", {"a": "f4"}, shape=(4,)), fst.Conflict, "another set 'a'"),
            (lambda: group.view(fst.joined(1), "c"), fst.NotFound, "no set 'c'"),
            (lambda: group.write("aa", 0, np.zeros(4)), fst.NotFound, "no set 'aa'"),
            (lambda: group.write("a", 0, np.zeros(5)), fst.Invalid, r"\[5\]"),
            (lambda: group.write("a", 0, np.zeros(4, "i4")), fst.Invalid, "astype"),
            (lambda: group.write("a", 0.5, np.zeros(4)), fst.Invalid, "step=0.5"),
            (lambda: group.write("a", 0, np.ma.masked_all(4)), fst.Invalid, "masked"),
            (lambda: group.read("a", 3), fst.NotFound, "step=3"),
            (lambda: group.read("a", 0, view=fst.irregular([4])), fst.Invalid, r"map\[0\] is 4"),
        ]:
            group.write("b", 0, np.ones(4, "f4"))
            group.write("a", 0, np.ones(4))
            with pytest.raises(kind, match=words):
                wrong()
        with pytest.raises(fst.Conflict, match="wrote different bytes to element 1"):
            group.write("a", 0, np.ones(4))
            group.view(fst.irregular([0, 1, 1, 2]))
            group.write("a", 1, np.arange(4.0))
        group.view(fst.block(0, 4))
        group.write("a", 2, np.ones(4))
        job.flush()
        assert group.steps("a") == [0, 2]


def test_an_exception_discards_and_a_transaction_waits_for_its_commit(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        with pytest.raises(ZeroDivisionError), store.arrays("r") as job:
            group = job.group("g", {"a": "f8"}, shape=3)
            group.write("a", 0, np.zeros(3))
            raise ZeroDivisionError
        assert store.list("run=r").to_arrow is not None
        assert len(list(store.list("run=r"))) == 0
        assert not [path for path in (tmp_path / "store" / "arrays").rglob("*.nc")]
        with store.transaction() as tx, tx.arrays("r") as job:
            job.group("g", {"a": "f8"}, shape=3).write("a", 0, np.ones(3))
            job.flush()
            assert len(list(store.list("run=r"))) == 0
        assert (store.get("run=r,variable=a,step=0") == 1).all()


JOB = """
import sys
import numpy as np
import fieldstone as fst
from mpi4py import MPI

comm = MPI.COMM_WORLD
"""


def test_ranks_write_and_other_ranks_go_on(tmp_path: Path) -> None:
    write = """
    store = fst.open(sys.argv[1])
    full = np.arange(9 * 14.0).reshape(9, 14)
    with store.arrays("r", comm=comm) as job:
        a = job.group("a", {"p": "f8", "q": "i4"}, shape=(9, 14), level=int(sys.argv[2]), method=sys.argv[3])
        a.view(fst.block(grid=(2, 2)), "p")
        rows = np.arange(9)[comm.rank :: comm.size]
        a.view(fst.irregular(rows), "q")
        for step in range(3):
            y, x = divmod(comm.rank, 2)
            part = np.array_split(np.array_split(full, 2, 0)[y], 2, 1)[x]
            a.write("p", step, part + step)
            a.write("q", step, full[rows].astype("i4") * step)
            assert (a.read("q", step, view=fst.irregular([3])) == full[3].astype("i4") * step).all()
            job.flush()
        assert a.last_step() == 2
        report = job.report()
        assert report.connections == (comm.rank == 0)
    """
    read = """
    store = fst.open(sys.argv[1], "r")
    full = np.arange(9 * 14.0).reshape(9, 14)
    with store.arrays("r", comm=comm) as job:
        a = job.group("a")
        for step in a.steps("q"):
            p = a.read("p", step, view=fst.block(grid=(1, comm.size), halo=1))
            begin = sum(len(c) for c in np.array_split(np.arange(14), comm.size)[: comm.rank])
            wide = np.pad(full + step, 1)
            assert (p[1:-1] == wide[1:-1, begin : begin + p.shape[1]]).all()
    """
    sums = set()
    for level, method, name in [(3, "exchange", "a"), (3, "direct", "b"), (3, "view", "c"), (1, "auto", "d")]:
        url = tmp_path / name
        mpirun(4, JOB + write.replace("\n    ", "\n"), url, level, method)
        mpirun(3, JOB + read.replace("\n    ", "\n"), url)
        with fst.open(url, "r") as store:
            assert store.verify().ok
            assert len(list(store.list())) == 6
            assert (store.get("run=r,variable=q,step=2")[8] == np.arange(112, 126) * 2).all()
        if level == 3:
            (file,) = url.rglob("*.nc")
            sums.add(file.read_bytes())
    assert len(sums) == 1, "every method writes the same bytes"


def test_errors_reach_all_ranks_and_the_job_goes_on(tmp_path: Path) -> None:
    mpirun(
        3,
        JOB
        + """
def fails(kind, words, act):
    try:
        act()
    except kind as error:
        assert words in str(error), (comm.rank, str(error))
    else:
        raise AssertionError(f"rank {comm.rank}: no {kind}")

store = fst.open(sys.argv[1])
job = store.arrays("r", comm=comm)
mine = np.full(2, comm.rank, "f8")
# Declared differently on one rank.
fails(fst.Conflict, "rank 1", lambda: job.group("a", {"p": "f4" if comm.rank == 1 else "f8"}, shape=6))
fails(fst.Invalid, "rank 2", lambda: job.group("a", {"p": {"x": 1} if comm.rank == 2 else "f8"}, shape=6))
a = job.group("a", {"p": "f8"}, shape=6)
a.view(fst.block(grid=(3,)))
a.write("p", 0, mine)
# Another step, another set, another shape, another type, on one rank.
fails(fst.Conflict, "writes step 7", lambda: a.write("p", 7 if comm.rank == 1 else 1, mine))
name = "q" if comm.rank == 2 else "p"
fails(fst.NotFound, "rank 2: the group has no set 'q'", lambda: a.write(name, 1, mine))
fails(fst.Invalid, "rank 1: set p", lambda: a.write("p", 1, mine[: 2 - (comm.rank == 1)]))
fails(fst.Invalid, "rank 0", lambda: a.write("p", 1, mine.astype("i4") if comm.rank == 0 else mine))
fails(fst.Invalid, "rank 1: step='x'", lambda: a.write("p", "x" if comm.rank == 1 else 1, mine))
# Ghosts that differ.
a.view(fst.irregular([2 * comm.rank, (2 * comm.rank + 1), (2 * comm.rank + 2) % 6]))
values = np.array([comm.rank, comm.rank, -1.0])
fails(fst.Conflict, "wrote different bytes to element", lambda: a.write("p", 1, values))
beyond = fst.irregular([0, 6 if comm.rank == 1 else 5])
fails(fst.Invalid, "rank 1: set p: map[1] is 6", lambda: a.read("p", 0, view=beyond))
fails(fst.NotFound, "rank 0", lambda: a.read("p", 5))
a.view(fst.block(grid=(3,)))
a.write("p", 2, mine)
job.close()
assert fst.open(sys.argv[1], "r").get("run=r,variable=p,step=2").tolist() == [0, 0, 1, 1, 2, 2]
if comm.rank == 0:
    found = [e.key["step"] for e in fst.open(sys.argv[1], "r").list()]
    assert found == ["0", "2"], found
# An exception on one rank ends the job on all.
try:
    with store.arrays("r", comm=comm) as job:
        a = job.group("a")
        a.view(fst.block(grid=(3,)))
        a.write("p", 9, mine)
        if comm.rank == 1:
            raise ZeroDivisionError("mine")
        job.flush()
except fst.Error as error:
    assert comm.rank != 1 and "rank 1: ZeroDivisionError: mine" in str(error), str(error)
except ZeroDivisionError:
    assert comm.rank == 1
assert "9" not in fst.open(sys.argv[1], "r").axes("run=r")["step"]
""",
        tmp_path / "store",
    )
    assert len(list((tmp_path / "store").rglob("*.nc"))) == 1

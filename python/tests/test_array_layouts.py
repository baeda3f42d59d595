"""Distributed arrays in the logs of the store, and hints: by one process and by ranks under mpiexec."""

from __future__ import annotations

from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from mpi_job import mpirun

JOB = """
import sys
import fieldstone as fst
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
"""


def test_arrays_lie_in_the_logs_chunked_and_compressed(tmp_path: Path) -> None:
    url = tmp_path / "store"
    rng = np.random.default_rng(3)
    when = np.array(["2020-01-01", "2021-06-05"], "M8[D]").astype("M8[s]")
    half = rng.normal(size=(40, 30)).astype("f2")
    with fst.open(url) as store, store.arrays("r", layout="fields") as job:
        group = job.group("g", {"h": "f2"}, shape=(40, 30), chunks=(16, 8), compression="zstd:5")
        times = job.group("t", {"when": "M8[s]", "none": {"dtype": "f8", "shape": (0, 3)}}, shape=2)
        assert group.level is None
        assert group.files == []
        assert "logs" in group.why
        group.write("h", 0, half)
        times.write_many(0, {"when": when, "none": np.empty((0, 3))})
        assert (group.read("h", 0, view=fst.block((3, 2), (5, 6))) == half[3:8, 2:8]).all()
        with pytest.raises(fst.NotFound):
            store.get("run=r,variable=h,step=0")
        job.flush()
        field = store.get("run=r,variable=h,step=0")
        assert field.dtype == np.dtype("f2")
        assert (field == half).all()
        assert (store.get("run=r,variable=when,step=0") == when).all()
        assert store.get("run=r,variable=none,step=0").shape == (0, 3)
        group.write("h", 1, half)
        job.discard()
        assert group.steps("h") == [0]
        assert not list(url.rglob("*.nc"))
    with fst.open(url) as store:
        with store.arrays("r", layout="fields") as job:
            again = job.group("g")
            assert again.last_step() == 0
            again.write("h", 1, half + 1)
        assert (store.get("run=r,variable=h,step=1") == half + 1).all()
        assert store.verify().ok
        assert store.to_xarray("run=r,variable=h")["h"].shape == (2, 40, 30)
        with (
            store.arrays("r") as job,
            pytest.raises(fst.Conflict, match="another layout"),
        ):
            job.group("g", {"h": "f4"}, shape=(40, 30))


def test_what_is_said_of_a_group_that_is_taken_as_it_was_is_refused(tmp_path: Path) -> None:
    with fst.open(tmp_path / "store") as store, store.arrays("r") as job:
        job.group("g", {"h": "f4"}, shape=4).write("h", 0, np.ones(4, "f4"))
        with pytest.raises(fst.Invalid, match="is opened as it was declared"):
            job.group("g", hints={"cb_nodes": 1})
        with pytest.raises(fst.Invalid, match="neither chunks"):
            job.group("other", {"h": "f4"}, shape=4, chunks=2)
        with pytest.raises(fst.Invalid, match="layout"):
            store.arrays("r", layout="hdf5")  # type: ignore[arg-type]
        with pytest.raises(fst.Invalid, match="cb_nodes"):
            job.group("g").write("h", 1, np.ones(4, "f4"), hints={"cb_nodes": 0})
        with pytest.raises(fst.Invalid, match="cb_nodes"):
            job.group("g").read("h", 0, hints={"cb_nodes": "no"})


def test_hints_are_taken_or_named(tmp_path: Path) -> None:
    values = np.arange(300_000.0)
    hints = {"direct_write": "true", "direct_read": "true", "nobody_knows": 1}
    with fst.open(tmp_path / "store") as store, store.arrays("r", hints=hints) as job:
        group = job.group("g", {"h": "f8"}, shape=300_000, level=1, hints={"of_group": "x"})
        group.write("h", 0, values, wait=False, hints={"of_call": "y"})
        assert "no library took the hints nobody_knows=1 of_call=y of_group=x" in group.why.replace(
            "direct_read=true ", ""
        ).replace("direct_write=true ", "")
        job.flush()
        assert (group.read("h", 0) == values).all()
        (path,) = group.files
    with fst.open(tmp_path / "store") as store:
        assert (store.get("run=r,variable=h,step=0") == values).all()
        with store.arrays("plain") as job:
            plain = job.group("g", {"h": "f8"}, shape=300_000, level=1)
            plain.write("h", 0, values)
            job.flush()
            assert Path(plain.files[0]).read_bytes() == Path(path).read_bytes()
            assert "nobody" not in plain.why


def test_ranks_write_pieces_and_other_ranks_go_on(tmp_path: Path) -> None:
    write = """
    store = fst.open(sys.argv[1])
    full = np.arange(9 * 14.0).reshape(9, 14)
    with store.arrays("r", comm=comm, layout="fields", hints={"cb_nodes": 3}) as job:
        a = job.group("a", {"p": "f8", "q": "i4"}, shape=(9, 14))
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
        try:
            a.view(fst.irregular([comm.rank, 8]), "q")
            a.write("q", 2, np.full((2, 14), comm.rank, "i4"))
        except fst.Conflict as error:
            assert "wrote different bytes" in str(error)
        else:
            raise AssertionError("ranks differ")
        a.view(fst.block((0, 0), (9 if comm.rank == 1 else 0, 14)))
        a.write("p", 2, full[: 9 if comm.rank == 1 else 0] * 5)
    """
    read = """
    store = fst.open(sys.argv[1], "r")
    full = np.arange(9 * 14.0).reshape(9, 14)
    with store.arrays("r", comm=comm) as job:
        a = job.group("a")
        for step in a.steps("q"):
            p = a.read("p", step, view=fst.block(grid=(1, comm.size), halo=1))
            begin = sum(len(c) for c in np.array_split(np.arange(14), comm.size)[: comm.rank])
            wide = np.pad(full * 5 if step == 2 else full + step, 1)
            assert (p[1:-1] == wide[1:-1, begin : begin + p.shape[1]]).all()
    """
    url = tmp_path / "store"
    mpirun(4, JOB + write.replace("\n    ", "\n"), url)
    mpirun(3, JOB + read.replace("\n    ", "\n"), url)
    with fst.open(url, "r") as store:
        assert store.verify().ok
        assert len(list(store.list())) == 6
        assert (store.get("run=r,variable=q,step=2")[8] == np.arange(112, 126) * 2).all()
    assert not list(url.rglob("*.nc"))

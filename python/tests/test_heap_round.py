"""Every file of the heap shows at each stage what it shows by its own engine (`heap_round.py`)."""

from __future__ import annotations

from pathlib import Path

from conftest import sample
from heap_round import STAGES, through

NO_SUCH_NAME = ("cylinder.med:ENS_MAA/Cylinder/-0000000000000000001", "map_f_case_16p.h5")
"""Names of groups and attributes that begin with a sign: HDF5 allows it, and netCDF-C makes none of them."""


def test_every_file_is_equal_through_store_copy_export_and_back(tmp_path: Path) -> None:
    outcome = through([sample("README.md").parent], tmp_path)
    assert outcome.taken > 155 and outcome.groups > 110 and outcome.unshown == {}
    assert outcome.messages["store"].total() > 2000
    assert {stage for _, stage, _ in outcome.differs} <= {"export", "again"}
    others = [d for d in outcome.differs if not d[0].startswith(NO_SUCH_NAME)]
    assert others == []
    differing = outcome.groups - len({name for name, *_ in outcome.differs})
    assert [outcome.equal[stage] for stage in STAGES] == [outcome.groups] * 2 + [differing] * 2

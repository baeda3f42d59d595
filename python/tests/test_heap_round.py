"""Every file of the heap appears at each stage as it does in its own engine (`heap_round.py`).

Files of at most :data:`LARGE` bytes, and with ``FIELDSTONE_CRASH=full`` all of them.
"""

from __future__ import annotations

from pathlib import Path

from conftest import LONG, sample
from heap_round import STAGES, through

NO_SUCH_NAME = ("cylinder.med:ENS_MAA/Cylinder/-0000000000000000001", "map_f_case_16p.h5")
"""Names of groups and attributes that begin with a sign: HDF5 allows them, and netCDF-C cannot create
them."""

LARGE = 1 << 40 if LONG else 30_000
"""Among the small ones are two of one run; the key of one has an absent `source`."""


def test_every_file_is_equal_through_store_copy_export_and_back(tmp_path: Path) -> None:
    folder = sample("README.md").parent
    small = [p for p in folder.rglob("*") if p.is_file() and p.stat().st_size <= LARGE]
    outcome = through([folder] if LONG else sorted(small), tmp_path)
    assert outcome.unshown == {}
    least = (155, 110, 2000) if LONG else (60, 50, 150)
    counts = (outcome.taken, outcome.groups, outcome.messages["store"].total())
    assert all(count > few for count, few in zip(counts, least, strict=True)), counts
    assert {stage for _, stage, _ in outcome.differs} <= {"export", "again"}
    others = [d for d in outcome.differs if not d[0].startswith(NO_SUCH_NAME)]
    assert others == []
    differing = outcome.groups - len({name for name, *_ in outcome.differs})
    assert [outcome.equal[stage] for stage in STAGES] == [outcome.groups] * 2 + [differing] * 2

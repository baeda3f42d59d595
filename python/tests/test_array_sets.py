"""Sets of groups: added later, with the attributes of their group."""

from __future__ import annotations

from pathlib import Path

import fieldstone as fst
import netCDF4
import numpy as np
import pytest


def test_attributes_of_a_group_reach_variables_and_files(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s") as store, store.arrays("r") as job:
        group = job.group(
            "g", {"a": "f4", "b": {"dtype": "f8", "attrs": {"units": "Pa"}}}, shape=(4,), attrs={"units": "K"}
        )
        group.write_many(0, {"a": np.ones(4, "f4"), "b": np.ones(4)})
        job.flush()
        further = job.group("g", {"c": "i4"}, shape=(4,))
        assert further.names == group.names == ("a", "b", "c")
        further.write("c", 0, np.arange(4, dtype="i4"))
        job.flush()
        assert group.read("c", 0).tolist() == [0, 1, 2, 3]
        assert [v.name for v in store.variables(attr={"units": "K"})] == ["a", "c"]
        units = {}
        for path in group.files:
            with netCDF4.Dataset(path) as file:
                units |= {name: file[name].units for name in ("a", "b", "c") if name in file.variables}
        assert units == {"a": "K", "b": "Pa", "c": "K"}
        with pytest.raises(fst.Conflict, match="set 'c'"):
            job.group("g", {"c": "f8"}, shape=(4,))
        for name in ("_FillValue", "dtype"):
            with pytest.raises(fst.Invalid, match=name):
                job.group("h", {"d": "f8"}, shape=(4,), attrs={name: 0})

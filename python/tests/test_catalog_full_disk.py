"""Queries on a store whose disk is full: an engine in memory answers them."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest


def fill(folder):
    with pytest.raises(OSError), open(folder / "rest", "ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("engine", ["up to date", "behind", "gone"])
def test_a_full_disk_is_asked_as_any_other(small_disk, engine):
    with fst.open(small_disk / "s") as store:
        run = store.create_run("a", params={"nx": 4})
        for step in range(20):
            run.write("t", step, np.full(4, step))
            run.annotate("max", float(step), variable="t", step=step)
        store.flush()
        assert store.attributes(tag="max").count() == 20
        if engine == "behind":
            run.annotate("late", 1.0, variable="t", step=3)
            store.flush()
    if engine == "gone":
        for file in (small_disk / "s" / "catalog").iterdir():
            file.unlink()
    fill(small_disk)
    late = int(engine == "behind")
    with fst.open(small_disk / "s", "r") as store:
        assert store.find("tag=max and value>15").count() == 4
        assert [h.step for h in store.attributes(tag="late")] == [3] * late
        assert len(list(store.attributes())) == 20 + late
        assert store.run("a").params["nx"] == 4
        assert store.sql("select count(*) as n from attributes").values("n") == [20 + late]
        assert store.attributes(tag="max", order="-value").first().read().tolist() == [19] * 4
    (small_disk / "rest").unlink()
    with fst.open(small_disk / "s") as store:
        store.run("a").annotate("after", 2.0)
        store.flush()
        assert store.attributes().count() == 21 + late

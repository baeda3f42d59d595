"""Boxes in degrees on grids that move, and on trajectories."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4")


def moving(file, shift):
    """A grid of 3 x 4 that moves `shift` degrees north at each of three times."""
    for name, n in (("Time", None), ("y", 3), ("x", 4)):
        file.createDimension(name, n)
    lat, lon = np.meshgrid([30.0, 31, 32], [-90.0, -89, -88, -87], indexing="ij")
    for name, values, units, step in (("XLAT", lat, "degree_north", shift), ("XLONG", lon, "degree_east", 0)):
        file.createVariable(name, "f4", ("Time", "y", "x"))[:] = np.stack(
            [values + step * i for i in range(3)]
        )
        file[name].units = units
    file.createVariable("T2", "f4", ("Time", "y", "x"))[:] = 300
    file["T2"].setncatts({"units": "K", "coordinates": "XLONG XLAT"})


@pytest.mark.parametrize("shift", [0, 10])
def test_a_box_in_degrees_holds_step_by_step_on_a_grid_that_moves(taken, shift):
    url, _ = taken(lambda file: moving(file, shift))
    with fst.open(url) as store:
        store.create_tag("warm", type="float")
        run = store.run("f")
        for step in range(3):
            run.annotate("warm", 1.0, variable="T2", step=step, start=(1, 1), count=(1, 1))
    store = fst.open(url, "r")

    def at(lat):
        box = {"lat": fst.between(lat - 0.5, lat + 0.5), "lon": fst.between(-89.5, -88.5)}
        names = [v.name for v in store.variables(attr={"units": "K"}, box=box)]
        return names, sorted(h.step for h in store.attributes(tag="warm", box=box))

    if shift:
        assert at(31) == (["T2"], [0]) and at(41) == (["T2"], [1]) and at(51) == (["T2"], [2])
        assert at(32) == (["T2"], []), "the variable is found, its attribute is not"
    else:
        assert at(31) == (["T2"], [0, 1, 2])
    assert at(70) == ([], [])


def test_a_trajectory_is_found_by_where_it_is_at_each_step(taken):
    def fill(file):
        file.createDimension("time", None)
        file.createDimension("z", 2)
        for name, units, values in (
            ("time", "hours since 2000-01-01", [0, 1, 2]),
            ("lat", "degrees_north", [10, 20, 30]),
            ("lon", "degrees_east", [0, 5, 10]),
        ):
            file.createVariable(name, "f8", ("time",))[:] = values
            file[name].units = units
        file.createVariable("salt", "f4", ("time", "z"))[:] = 35
        file["salt"].coordinates = "lat lon"

    url, _ = taken(fill)
    with fst.open(url) as store:
        store.create_tag("mark", type="int")
        for step in range(3):
            store.run("f").annotate("mark", step, variable="salt", step=step)
    store = fst.open(url, "r")
    box = {"lat": fst.between(15, 25), "lon": fst.between(0, 8)}
    assert "salt" in [v.name for v in store.variables(box=box)]
    assert [h.step for h in store.attributes(tag="mark", box=box)] == [1]
    nowhere = {"lat": fst.between(15, 25), "lon": fst.between(8, 12)}
    assert "salt" not in [v.name for v in store.variables(box=nowhere)]

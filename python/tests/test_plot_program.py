"""`fieldstone plot`: the words of a picture, masked values, where parts lie, and marks of attributes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fieldstone as fst
import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4")
pytest.importorskip("matplotlib")
PROGRAM = Path(sys.executable).parent / "fieldstone"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """A file of an ocean model across the date line, a file of one moment, and a run with attributes."""
    folder = tmp_path_factory.mktemp("plot")
    with netCDF4.Dataset(folder / "ocean.nc", "w") as file:
        for name, size in (("time", 2), ("depth", 3), ("y", 4), ("x", 5)):
            file.createDimension(name, size)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar, time[:] = "days since 1850-01-01", "noleap", [0.5, 31.5]
        depth = file.createVariable("depth", "f4", ("depth",))
        depth.units, depth.positive, depth[:] = "m", "down", [5, 50, 500]
        y, x = np.mgrid[0:4, 0:5]
        lat = file.createVariable("nav_lat", "f4", ("y", "x"))
        lat.units, lat[:] = "degrees_north", y * 10 + x
        lon = file.createVariable("nav_lon", "f4", ("y", "x"))
        lon.units, lon[:] = "degrees_east", (x * 5 + y + 350) % 360 - 180
        t = file.createVariable("thetao", "f4", ("time", "depth", "y", "x"), fill_value=np.float32(1e20))
        t.setncatts({"long_name": "Sea Water Temperature", "units": "degC", "coordinates": "nav_lon nav_lat"})
        t.setncattr("valid_range", np.array([-2, 40], "f4"))
        t[:] = np.arange(120).reshape(2, 3, 4, 5) / 10
        t[0, 1, 0, 0], t[0, 1, 1, 1] = np.ma.masked, 99
    with netCDF4.Dataset(folder / "moment.nc", "w") as file:
        file.createDimension("x", 3)
        time = file.createVariable("time", "f8", ())
        time.units, time.standard_name, time[...] = "hours since 2000-1-1 12:00:0.0", "time", 36
        file.createVariable("air_pressure", "f4", ("x",))[:] = [1, 2, 3]
    with fst.open(folder / "s") as store:
        fst.ingest(store, [folder / "ocean.nc", folder / "moment.nc"], progress=False)
        run = store.create_run("study")
        attrs = {"units": "m s-1", "long_name": "wind"}
        run.create_variable("u", "f8", (4, 6), dims=("lat", "lon"), attrs=attrs)
        run.create_steps([6], times=[0.25])
        run.write("u", 6, np.linspace(-1, 1, 24).reshape(4, 6))
        for start in ((0, 1), (2, 3)):
            run.annotate("gust", 1.0, variable="u", step=6, start=start, count=(2, 2))
        store.flush()
    return folder / "s"


def plot(store: Path, *words: str) -> Any:
    environment = os.environ | {"FIELDSTONE_PYTHON": sys.executable}
    done = subprocess.run([PROGRAM, "plot", store, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in words else done


def test_a_title_has_the_long_name_the_time_the_run_and_the_level(store: Path) -> None:
    shown = plot(store, "run=ocean,variable=thetao,step=1", "--box", "1,:,:", "--json")
    assert shown["title"] == "Sea Water Temperature, 1850-02-01 12:00, run ocean, depth 50 m"
    assert shown["label"] == "Sea Water Temperature (degC)"
    assert plot(store, "run=moment,variable=air_pressure", "--json")["title"] == (
        "air pressure, 2000-01-03 00:00, run moment"
    )
    assert plot(store, "run=study,variable=u,step=6", "--json")["title"] == "wind, time 0.25, run study"


def test_missing_and_masked_values_differ(store: Path, tmp_path: Path) -> None:
    words = ("run=ocean,variable=thetao,step=0", "--box", "1,:,:")
    shown = plot(store, *words, "--json")
    assert (shown["missing"], shown["masked"]) == (1, 1) and shown["max"] == pytest.approx(3.9)
    *rows, line = plot(store, *words, "--width", "5").stdout.splitlines()
    assert line.endswith("2.1 to 3.9 degC, 1 missing, 1 masked")
    picture = "\n".join(rows)
    assert picture.count("?") <= 1 and picture.count("x") <= 1
    png = tmp_path / "a.png"
    plot(store, *words, "-o", str(png))
    assert png.read_bytes().startswith(b"\x89PNG")


def test_the_request_has_places_units_and_marks(store: Path, tmp_path: Path) -> None:
    """A stand-in for the helper takes down what the program asks of it."""
    asked = tmp_path / "asked.json"
    stand_in = tmp_path / "python"
    stand_in.write_text(
        f"#!{sys.executable}\n"
        "import runpy, sys\n"
        "import fieldstone._helper.plot as plot\n"
        "import json\n"
        "draw = plot.draw\n"
        "def note(data, coords, header):\n"
        f"    json.dump(header, open({str(asked)!r}, 'w'))\n"
        "    return draw(data, coords, header)\n"
        "plot.draw = note\n"
        "sys.argv = ['helper']\n"
        "runpy.run_module('fieldstone._helper', run_name='__main__')\n"
    )
    stand_in.chmod(0o755)

    def request(*words: str) -> dict[str, Any]:
        environment = os.environ | {"FIELDSTONE_PYTHON": str(stand_in)}
        command = [PROGRAM, "plot", store, *words, "-o", tmp_path / "a.png"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(asked.read_text())

    header = request("run=ocean,variable=thetao,step=0", "--box", "0,:,:")
    x, y = header["coords"][:2]
    assert (x["direction"], x["shape"], y["direction"]) == ("longitude", [4, 5], "latitude")
    assert header["title"] == "Sea Water Temperature\n1850-01-01 12:00, run ocean, depth 5 m"
    assert (header["label"], header["units"], header["dims"]) == ("Sea Water Temperature", "degC", ["y", "x"])
    header = request("run=ocean,variable=thetao,step=0", "--box", ":,:,0")
    assert header["dims"] == ["depth", "y"] and header["coords"][0]["direction"] == "down"
    header = request("run=study,variable=u,step=6", "--tag", "gust")
    assert header["marks"] == {
        "label": "gust (2)",
        "boxes": [[[0, 2], [1, 3]], [[2, 4], [3, 5]]],
        "cells": [],
    }
    header = request("run=study,variable=u,step=6", "--tag", "gust", "--box", "1:4,2:6")
    assert header["marks"]["boxes"] == [[[0, 1], [0, 1]], [[1, 3], [1, 3]]]

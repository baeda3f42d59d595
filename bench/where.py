"""Finds a quantity in a store that ingested files on grids of many kinds, and in the files themselves.

`python bench/where.py PEER QUESTION ROOT` asks in a fresh process and prints one line of JSON: seconds of the
first answer, from the open on, and the median of 20 further ones, the number of variables found, and their
names. `netcdf_files` is brute force: it opens each file and compares the attributes, points and times of each
variable with the question.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from measure import BENCH, Result, tree_size

if TYPE_CHECKING:
    from steps import Figure, Sitting

OURS, FILES = "fieldstone_ingested", "netcdf_files"
GRIDS, EACH, AGAIN = ("regular", "rotated", "cells"), 40, 20
QUANTITIES = (
    ("tos", "sea_surface_temperature", "K"),
    ("tas", "air_temperature", "K"),
    ("pr", "precipitation_flux", "kg m-2 s-1"),
    ("zos", "sea_surface_height_above_geoid", "m"),
)
BOX = (30.0, 60.0, 170.0, -170.0)
"""Latitudes, and longitudes across the date line."""
DAYS = (datetime(2020, 5, 1), datetime(2020, 5, 31))
QUESTIONS = ("standard_name", "units", "box", "time", "all")


# ---- the files


def fill(fig: Figure, at: Sitting, peer: str) -> Result:
    """The files, and for ours a store that ingested them."""
    root = at.fresh(fig.name, peer)
    root.mkdir()
    for answers in (at.work / fig.name).glob("*.json"):
        answers.unlink()
    start = time.perf_counter()
    paths = [
        written(root, kind, n, at.quick) for kind in GRIDS for n in range(EACH // (10 if at.quick else 1))
    ]
    wrote = time.perf_counter() - start
    if peer == OURS:
        import fieldstone as fst

        report = fst.ingest(root / "store", paths, progress=False)
        assert len(report.taken) == len(paths), report
    return {"written": wrote, "filled": time.perf_counter() - start - wrote, **tree_size(root)}


def written(root: Path, kind: str, number: int, quick: bool) -> str:
    """A file of two quantities on a tile of the globe, a month of daily steps."""
    import netCDF4

    small = 4 if quick else 1
    rows, columns = 90 // small, 180 // small
    south, west = -90 + 30.0 * (number % 6), -180 + 45.0 * (number % 8)
    lat, lon = np.linspace(south, south + 28, rows), np.linspace(west, west + 43, columns)
    path = root / f"{kind}-{number:02}.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createVariable("time", "f8", ("time",))[:] = 31 * (number % 12) + np.arange(4) * 7.0
        file["time"].units = "days since 2020-01-01"
        if kind == "regular":
            dims = {"lat": rows, "lon": columns}
            places = {"lat": (("lat",), lat), "lon": (("lon",), lon)}
        elif kind == "rotated":
            dims = {"y": rows, "x": columns}
            places = {
                "lat": (("y", "x"), lat[:, None] + 0.01 * np.arange(columns)),
                "lon": (("y", "x"), lon[None, :] + 0.02 * np.arange(rows)[:, None]),
            }
        else:
            dims = {"cell": rows * columns}
            rng = np.random.default_rng(number)
            mixed = rng.permutation(np.repeat(lat, columns))
            places = {"lat": (("cell",), mixed), "lon": (("cell",), np.tile(lon, rows))}
        for name, length in dims.items():
            file.createDimension(name, length)
        for name, (along, values) in places.items():
            file.createVariable(name, "f8", along)[:] = values
            file[name].units = "degrees_north" if name == "lat" else "degrees_east"
        for name, standard, units in (QUANTITIES[number % 4], QUANTITIES[(number + 1) % 4]):
            made = file.createVariable(name, "f4", ("time", *dims))
            made.setncatts({"standard_name": standard, "units": units, "coordinates": "lat lon"})
            made[:] = np.float32(number)
    return str(path)


# ---- in the child


def terms(question: str) -> dict[str, Any]:
    """A question in the words of `store.variables`."""
    import fieldstone as fst

    south, north, west, east = BOX
    each: dict[str, dict[str, Any]] = {
        "standard_name": {"attr": {"standard_name": "sea_surface_temperature"}},
        "units": {"attr": {"units": "K"}},
        "box": {"box": {"lat": fst.between(south, north), "lon": fst.between(west, east)}},
        "time": {"time": fst.between(*DAYS)},
    }
    if question != "all":
        return each[question]
    return {**each["standard_name"], **each["box"], **each["time"]}


def in_store(root: Path, question: str) -> Callable[[], list[str]]:
    import fieldstone as fst

    asked = terms(question)
    store = fst.open(root / "store", "r")
    return lambda: sorted(f"{v.run}:{v.name}" for v in store.variables(**asked))


def in_files(root: Path, question: str) -> Callable[[], list[str]]:
    import netCDF4

    def matches(file: netCDF4.Dataset, name: str) -> bool:
        variable = file[name]
        says = {
            "standard_name": lambda: getattr(variable, "standard_name", "") == "sea_surface_temperature",
            "units": lambda: getattr(variable, "units", "") == "K",
            "box": lambda: name not in ("lat", "lon") and touches(file, variable),
            "time": lambda: "time" in variable.dimensions and name != "time" and dated(file),
        }
        asked = ("standard_name", "box", "time") if question == "all" else (question,)
        return all(says[one]() for one in asked)

    def ask() -> list[str]:
        found = []
        for path in root.glob("*.nc"):
            with netCDF4.Dataset(path) as file:
                found += [f"{path.stem}:{name}" for name in file.variables if matches(file, name)]
        return sorted(found)

    return ask


def touches(file: Any, variable: Any) -> bool:
    """Whether a variable has a point in the box: its own coordinates, or those of its dimensions."""
    along = [file[name] for name in ("lat", "lon")]
    if any(not set(place.dimensions) <= set(variable.dimensions) for place in along):
        return False
    lat, lon = (place[:] for place in along)
    if along[0].dimensions != along[1].dimensions:
        lat, lon = lat[:, None], lon[None, :]
    south, north, west, east = BOX
    inside = (lat >= south) & (lat <= north) & (((lon - west) % 360) <= (east - west) % 360)
    return bool(inside.any())


def dated(file: Any) -> bool:
    first = datetime(2020, 1, 1)
    return any(DAYS[0] <= first + timedelta(days=float(day)) <= DAYS[1] for day in file["time"][:])


def once(peer: str, question: str, root: str) -> None:
    """Asks, and prints times and answers."""
    start = time.perf_counter()
    ask = {OURS: in_store, FILES: in_files}[peer](Path(root), question)
    found = ask()
    first = time.perf_counter() - start
    spans = []
    for _ in range(AGAIN if peer == OURS else 1):
        start, cpu = time.perf_counter(), time.process_time()
        assert ask() == found
        spans.append((time.perf_counter() - start, time.process_time() - cpu))
    seconds, cpu = (statistics.median(span) for span in zip(*spans, strict=True))
    print(json.dumps({"first": first, "seconds": seconds, "cpu": cpu, "found": len(found), "names": found}))


def run(fig: Figure, at: Sitting, peer: str) -> Result:
    """A fresh process for each question; the sum of the first answers, the slowest of the further ones."""
    root = at.root(fig.name, peer)
    result: Result = {}
    for question in QUESTIONS:
        command = [sys.executable, str(BENCH / "where.py"), peer, question, str(root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
        if done.returncode:
            raise SystemExit(f"bench: {peer} failed:\n{done.stderr[-3000:]}")
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        names = at.work / fig.name / f"{question}.json"
        if names.exists() and json.loads(names.read_text()) != answer["names"]:
            raise SystemExit(f"bench: {peer} answers {question} otherwise than the one before")
        names.write_text(json.dumps(answer["names"]))
        result |= {question: answer["seconds"], f"{question}-first": answer["first"]}
        result |= {f"{question}-found": answer["found"]}
    result["slowest"] = max(result[question] for question in QUESTIONS)
    result["slowest-first"] = max(result[f"{question}-first"] for question in QUESTIONS)
    return result


if __name__ == "__main__":
    once(*sys.argv[1:])

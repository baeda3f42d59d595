"""Files split in time, runs of an ensemble, and messages on many grids, opened as one object of xarray.

`python bench/combine.py PEER WHAT ROOT` opens it once in a fresh process and prints one line of JSON:
seconds and processor seconds until it is open, growth of the highest resident size, seconds for one value
afterwards, and that value. Libraries are imported before the clock starts. The setup makes everything that a
peer keeps in addition to its files (a store, kerchunk's references, cfgrib's index).
"""

from __future__ import annotations

import calendar
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from measure import BENCH, Result, tree_size

if TYPE_CHECKING:
    from steps import Figure, Sitting

OURS, INGESTED, FILES = "fieldstone_store", "fieldstone_ingested", "netcdf_files"
KERCHUNK, CFGRIB = "kerchunk", "cfgrib"
MONTHS, RUNS, GRIDS, MESSAGES = 24, 200, 58, 1177


# ---- the data


def months(root: Path, quick: bool) -> list[str]:
    """Daily fields of two years, a file a month, packed and counted alike: kerchunk joins no others."""
    import netCDF4

    rng, paths, first = np.random.default_rng(1), [], 0
    rows, columns = (18, 36) if quick else (180, 360)
    for month in range(MONTHS):
        days = calendar.monthrange(2020 + month // 12, month % 12 + 1)[1]
        paths.append(str(root / f"tos_{2020 + month // 12}-{month % 12 + 1:02}.nc"))
        with netCDF4.Dataset(paths[-1], "w") as file:
            for name, length in (("time", None), ("lat", rows), ("lon", columns)):
                file.createDimension(name, length)
            file.createVariable("time", "f8", ("time",))[:] = first + np.arange(days)
            file["time"].units = "days since 2020-01-01"
            file.createVariable("lat", "f4", ("lat",))[:] = np.linspace(-89.5, 89.5, rows)
            file.createVariable("lon", "f4", ("lon",))[:] = np.linspace(0.5, 359.5, columns)
            t = file.createVariable("tos", "i2", ("time", "lat", "lon"), fill_value=-32768)
            t.setncatts({"units": "K", "scale_factor": 0.01, "add_offset": 280.0})
            t[:] = 280 + rng.random((days, rows, columns))
        first += days
    return paths


def runs(root: Path, quick: bool) -> list[str]:
    """Runs of four variables and 50 steps, 32 x 32 f4, a file each."""
    import netCDF4

    paths = []
    for run in range(RUNS // (20 if quick else 1)):
        paths.append(str(root / f"run-{run:03}.nc"))
        with netCDF4.Dataset(paths[-1], "w") as file:
            for name, length in (("step", None), ("y", 32), ("x", 32)):
                file.createDimension(name, length)
            file.createVariable("step", "i4", ("step",))[:] = np.arange(50)
            for name in "abcd":
                file.createVariable(name, "f4", ("step", "y", "x"))[:] = np.full((50, 32, 32), run, "f4")
    return paths


def messages(root: Path, quick: bool) -> str:
    """Messages of 20 or 21 levels on each of 58 grids, of three kinds, in one file."""
    import eccodes

    kinds = ("regular_ll_pl_grib2", "regular_ll_pl_grib1", "polar_stereographic_pl_grib2")
    grids = GRIDS // (10 if quick else 1)
    counts = [MESSAGES // GRIDS + (n < MESSAGES % GRIDS) for n in range(grids)]
    path = root / "messages.grib"
    with path.open("wb") as file:
        for number, count in enumerate(counts):
            handle = eccodes.codes_grib_new_from_samples(kinds[number % len(kinds)])
            along, rows = ("Nx", "Ny") if "polar" in kinds[number % len(kinds)] else ("Ni", "Nj")
            wide, high = 40 + 10 * number, 30 + 6 * number
            eccodes.codes_set(handle, along, wide)
            eccodes.codes_set(handle, rows, high)
            if along == "Ni":
                for name, degrees in (("First", 80.0), ("Last", 10.0)):
                    eccodes.codes_set(handle, f"latitudeOf{name}GridPointInDegrees", degrees)
                eccodes.codes_set(handle, "longitudeOfLastGridPointInDegrees", 100.0)
                eccodes.codes_set(handle, "iDirectionIncrementInDegrees", 100.0 / (wide - 1))
                eccodes.codes_set(handle, "jDirectionIncrementInDegrees", 70.0 / (high - 1))
            eccodes.codes_set(handle, "dataDate", 20260101 + number % 28)
            for level in range(count):
                eccodes.codes_set(handle, "level", 1000 - 10 * level)
                eccodes.codes_set_values(handle, np.full(wide * high, float(number)))
                eccodes.codes_write(handle, file)
            eccodes.codes_release(handle)
    return str(path)


# ---- setups


def fill(fig: Figure, at: Sitting, peer: str) -> Result:
    """The input of a peer: the files, and what it keeps in addition to or instead of them."""
    root = at.fresh(fig.name, peer)
    root.mkdir()
    what = fig.data["what"]
    start = time.perf_counter()
    made: Any = {"months": months, "runs": runs, "messages": messages}[what](root, at.quick)
    wrote = time.perf_counter() - start
    paths = [made] if isinstance(made, str) else made
    if peer in (OURS, INGESTED):
        import fieldstone as fst

        if peer == OURS and what == "runs":
            archived(root / "store", paths)
        else:
            report = fst.ingest(root / "store", paths, progress=False)
            assert len(report.taken) == len(paths), report
    elif peer == KERCHUNK:
        references(root, paths)
    elif peer == CFGRIB:
        import cfgrib

        cfgrib.open_datasets(made)
    return {"written": wrote, "filled": time.perf_counter() - start - wrote, **tree_size(root)}


def archived(url: Path, paths: list[str]) -> None:
    """The runs as arrays, archived by key."""
    import fieldstone as fst

    with fst.open(url) as store:
        for run in range(len(paths)):
            keys = [{"run": f"run-{run:03}", "variable": v, "step": s} for v in "abcd" for s in range(50)]
            store.archive_many(keys, [np.full((32, 32), run, "f4")] * len(keys))


def references(root: Path, paths: list[str]) -> None:
    """kerchunk's references of all files, joined along the time."""
    from kerchunk.combine import MultiZarrToZarr
    from kerchunk.hdf import SingleHdf5ToZarr

    each = [SingleHdf5ToZarr(path, inline_threshold=500).translate() for path in paths]
    joined = MultiZarrToZarr(each, concat_dims=["time"], identical_dims=["lat", "lon"]).translate()
    (root / "all.json").write_text(json.dumps(joined))


# ---- in the child


def opener(peer: str, what: str, root: Path) -> tuple[Callable[[], Any], Callable[[Any], float]]:
    """The function that opens it, and the one that reads one of its values."""
    import dask.array  # noqa: F401
    import netCDF4  # noqa: F401
    import xarray as xr

    xr.backends.list_engines()
    files = sorted(str(path) for path in root.glob("*.nc"))
    chosen: dict[str, Callable[[Any], Any]] = {
        "months": lambda ds: ds.tos.sel(time="2021-07-01", method="nearest")[5, 5],
        "runs": lambda ds: ds.c[7, 30, 1, 1],
        "messages": lambda found: first_of(found)[..., 2, 1].values.ravel()[0],
    }
    one = chosen[what]
    if peer in (OURS, INGESTED):
        import fieldstone.xarray_engine  # noqa: F401

        url, options = str(root / "store"), {"engine": "fieldstone"}
        if what == "messages":
            import eccodes  # noqa: F401

            return lambda: xr.open_datatree(url, **options), lambda found: float(one(found))
        more = {"combine": "run"} if what == "runs" else {}
        return lambda: xr.open_dataset(url, chunks={}, **options, **more), lambda ds: float(one(ds))
    if peer == KERCHUNK:
        import kerchunk.xarray_backend  # noqa: F401

        path = str(root / "all.json")
        return lambda: xr.open_dataset(path, engine="kerchunk", chunks={}), lambda ds: float(one(ds))
    if peer == CFGRIB:
        import cfgrib

        (path,) = root.glob("*.grib")
        return lambda: cfgrib.open_datasets(str(path)), lambda found: float(one(found))
    words: dict[str, Any] = {"combine": "by_coords", "data_vars": "minimal", "coords": "minimal"}
    if what == "runs":
        words = {"combine": "nested", "concat_dim": "run", "data_vars": "all", "coords": "minimal"}
    words |= {"compat": "override", "join": "override", "engine": "netcdf4"}
    return lambda: xr.open_mfdataset(files, **words), lambda ds: float(one(ds))


def first_of(found: Any) -> Any:
    """The first variable of a tree or of a list of Datasets."""
    nodes = found if isinstance(found, list) else (node.ds for node in found.subtree if node.has_data)
    return next(iter(next(iter(nodes)).data_vars.values()))


def once(peer: str, what: str, root: str) -> None:
    """Opens it, reads one value, and prints times and memory."""
    open_it, read = opener(peer, what, Path(root))
    before = _peak()
    start, cpu = time.perf_counter(), time.process_time()
    found = open_it()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    grown = _peak() - before
    start = time.perf_counter()
    value = read(found)
    one = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "cpu": cpu, "grown": grown, "one": one, "value": value}))


def _peak() -> int:
    """The highest resident size of this program; getrusage also counts the process that started it."""
    (line,) = (row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def run(fig: Figure, at: Sitting, peer: str) -> Result:
    """One fresh process that opens it."""
    command = [sys.executable, str(BENCH / "combine.py"), peer, fig.data["what"]]
    command.append(str(at.root(fig.name, peer)))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    if done.returncode:
        raise SystemExit(f"bench: {peer} failed:\n{done.stderr[-3000:]}")
    result: Result = json.loads(done.stdout.strip().splitlines()[-1])
    value = result.pop("value")
    wanted = {"months": (280.0, 281.0), "runs": (7.0, 7.0), "messages": (0.0, GRIDS)}[fig.data["what"]]
    if not wanted[0] <= value <= wanted[1]:
        raise SystemExit(f"bench: {peer} read {value}, a wrong value")
    return result


if __name__ == "__main__":
    once(*sys.argv[1:])

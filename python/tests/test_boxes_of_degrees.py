"""Boxes in degrees, across the seam and on coordinates lat(y, x), give the same as plain loops over cells."""

from __future__ import annotations

import random
from pathlib import Path

import fieldstone as fst
import netCDF4
import numpy as np
import pytest

Grid = tuple[np.ndarray, np.ndarray, np.ndarray]


def keep(path: Path, lats: np.ndarray, lons: np.ndarray, values: np.ndarray) -> None:
    """A file of t(time, y, x) on coordinates of one dimension each, or of two."""
    y, x = ("lat", "lon") if lats.ndim == 1 else ("y", "x")
    with netCDF4.Dataset(path, "w") as file:
        for dim, extent in (("time", None), (y, values.shape[1]), (x, values.shape[2])):
            file.createDimension(dim, extent)
        for name, held, units, dims in (
            ("lat", lats, "degrees_north", (y,)),
            ("lon", lons, "degrees_east", (x,)),
        ):
            file.createVariable(name, "f8", dims if held.ndim == 1 else (y, x))[:] = held
            file[name].units = units
        file.createVariable("t", "f8", ("time", y, x))[:] = values
        if lats.ndim == 2:
            file["t"].coordinates = "lat lon"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[fst.Store, dict[str, Grid]]:
    folder = tmp_path_factory.mktemp("degrees")
    y, x = np.mgrid[0:14, 0:20]
    grids = {
        "east": (np.linspace(-85, 85, 14), np.arange(0, 360, 18.0)),  # 0 to 342
        "west": (np.linspace(85, -85, 14), np.arange(-180, 180, 18.0)),  # latitudes fall
        "curved": (-60 + 8 * y + 0.7 * x, (150 + 4 * x - 1.5 * y + 180) % 360 - 180),  # across the date line
        "tripolar": (60 + 2 * y * np.sin(x / 3), (18 * x + 3 * y) % 360.0),
    }
    made: dict[str, Grid] = {}
    for run, (lats, lons) in grids.items():
        values = np.arange(2 * 14 * 20, dtype="f8").reshape(2, 14, 20)
        keep(folder / f"{run}.nc", lats, lons, values)
        if lats.ndim == 1:
            lats, lons = np.meshgrid(lats, lons, indexing="ij")
        made[run] = lats, lons, values
    opened = fst.open(folder / "store")
    fst.ingest(opened, sorted(folder.glob("*.nc")), progress=False)
    for run in grids:
        opened.run(run).annotate("all", 1, variable="t", step=0)
        opened.run(run).annotate("part", 2, variable="t", step=1, start=(3, 4), count=(9, 12))
    opened.flush()
    return opened, made


def boxes() -> list[tuple[float, float, float, float]]:
    """South, north, west, east."""
    draw = random.Random(42)
    drawn = [
        (
            s := draw.uniform(-90, 70),
            s + draw.uniform(5, 80),
            draw.uniform(-180, 180),
            draw.uniform(-180, 360),
        )
        for _ in range(12)
    ]
    return [(-90, 90, 170, -170), (20, 70, 350, 10), (-90, 90, -180, 180), (0, 0.01, 0, 0.01), *drawn]


def inside(lats: np.ndarray, lons: np.ndarray, box: tuple[float, float, float, float]) -> np.ndarray:
    south, north, west, east = box
    lies = np.zeros(lats.shape, bool)
    for at in np.ndindex(lats.shape):
        width = east - west if east >= west else (east - west) % 360
        along = width >= 360 or (lons[at] - west) % 360 <= width
        lies[at] = south <= lats[at] <= north and along
    return lies


def of(box: tuple[float, float, float, float]) -> dict[str, fst.Test]:
    return {"lat": fst.between(*box[:2]), "lon": fst.between(*box[2:])}


def kept(values: object) -> list[float]:
    """The values that are neither masked nor missing."""
    flat = np.ma.filled(np.ma.asarray(values).astype("f8"), np.nan).ravel()
    return sorted(flat[~np.isnan(flat)].tolist())


def test_query_read_and_dataset_hold_the_cells_of_the_box(store: tuple[fst.Store, dict[str, Grid]]) -> None:
    opened, grids = store
    found = 0
    for run, (lats, lons, values) in grids.items():
        whole = opened.attributes(run=run, tag="all")[0]
        part = opened.attributes(run=run, tag="part")[0]
        for box in boxes():
            lies = inside(lats, lons, box)
            data = opened.to_xarray(f"run={run}", box=of(box))
            assert kept(data.t.values) == sorted(values[:, lies].ravel().tolist()), (run, box)
            assert kept(whole.read(of(box))) == sorted(values[0][lies].tolist()), (run, box)
            cut = np.zeros(lies.shape, bool)
            cut[3:12, 4:16] = lies[3:12, 4:16]
            assert kept(part.read(of(box))) == sorted(values[1][cut].tolist()), (run, box)
            hits = opened.attributes(run=run, tag="all", box=of(box)).count()
            assert hits == int(lies.any()), (run, box)
            hits = opened.attributes(run=run, tag="part", box=of(box)).count()
            assert hits == int(cut.any()), (run, box)
            found += bool(lies.any())
    assert found > 30


def test_across_the_seam_cells_come_from_west_to_east(store: tuple[fst.Store, dict[str, Grid]]) -> None:
    opened, _ = store
    data = opened.to_xarray("run=west", box={"lon": fst.between(160, -160), "lat": slice(0, 3)})
    assert data.lon.values.tolist() == [162.0, -180.0, -162.0] and data.sizes["lat"] == 3
    data = opened.to_xarray("run=east", box={"longitude": fst.between(-20, 20)})
    assert data.lon.values.tolist() == [342.0, 0.0, 18.0]
    whole = opened.attributes(run="east", tag="all")[0]
    assert whole.read({"lon": fst.between(-20, 20), "lat": slice(0, 1)}).tolist() == [[19.0, 0.0, 1.0]]
    with pytest.raises(fst.Invalid, match="no coordinate 'depth'"):
        opened.to_xarray("run=west", box={"depth": fst.between(0, 1)})


@pytest.mark.parametrize("test", [fst.at_least(170), fst.at_most(-100), fst.between(18, 378)])
def test_ranges_without_an_end_and_of_a_whole_circle_are_the_same_everywhere(
    store: tuple[fst.Store, dict[str, Grid]], test: fst.Test
) -> None:
    opened, grids = store
    for run in grids:
        cells = kept(opened.to_xarray(f"run={run}", box={"lon": test}).t.isel(time=0).values)
        hit = opened.attributes(run=run, tag="all")[0]
        hits = opened.attributes(run=run, tag="all", box={"lon": test}).count()
        assert (cells, bool(cells)) == (kept(hit.read({"lon": test})), hits == 1), run


def test_a_rectangle_of_a_curved_grid_is_masked_beside_its_cells(
    store: tuple[fst.Store, dict[str, Grid]],
) -> None:
    opened, grids = store
    lats, lons, values = grids["curved"]
    box = (-20.0, 10.0, 175.0, -175.0)
    lies = inside(lats, lons, box)
    rows, columns = np.flatnonzero(lies.any(1)), np.flatnonzero(lies.any(0))
    data = opened.to_xarray("run=curved", box=of(box))
    assert (data.sizes["y"], data.sizes["x"]) == (np.ptp(rows) + 1, np.ptp(columns) + 1)
    read = opened.attributes(run="curved", tag="all")[0].read(of(box))
    assert isinstance(read, np.ma.MaskedArray)
    rectangle = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    assert (read.mask == ~lies[rectangle]).all() and (read.data == values[0][rectangle]).all()
    assert (np.isnan(data.t.values[0]) == ~lies[rectangle]).all()

"""Runs as netCDF files, opened by xarray.open_mfdataset with the options that compare the least."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr
    from workload import Runs as Shape


def write_files(root: Path, shape: Shape) -> list[Path]:
    """The runs as netCDF-4 files, each with its steps along an unlimited dimension."""
    import netCDF4

    root.mkdir(parents=True, exist_ok=True)
    paths = []
    for run in range(shape.runs):
        for first in range(0, shape.steps, shape.steps_per_file):
            paths.append(root / f"{shape.run(run)}-{first:06}.nc")
            steps = range(first, min(first + shape.steps_per_file, shape.steps))
            with netCDF4.Dataset(paths[-1], "w") as file:
                for name, length in (("step", None), ("y", shape.extent), ("x", shape.extent)):
                    file.createDimension(name, length)
                file.createVariable("step", "i8", ("step",))[:] = list(steps)
                for v in range(shape.variables):
                    variable = file.createVariable(f"v{v}", "f4", ("step", "y", "x"))
                    variable[:] = [shape.values(run, v, step) for step in steps]
    return paths


class Runs:
    """See `peers.Runs`."""

    @staticmethod
    def prepare() -> None:
        import dask.array  # noqa: F401
        import netCDF4  # noqa: F401
        import xarray as xr

        xr.backends.list_engines()

    @staticmethod
    def fill(root: Path, shape: Shape) -> None:
        write_files(root, shape)

    @staticmethod
    def open(root: Path, shape: Shape) -> xr.Dataset:
        import xarray as xr

        return xr.open_mfdataset(
            sorted(root.glob("*.nc")),
            engine="netcdf4",
            combine="nested",
            concat_dim="step" if shape.runs == 1 else "run",
            data_vars="all",
            coords="minimal",
            compat="override",
            join="override",
        )

    @staticmethod
    def value(opened: xr.Dataset, shape: Shape, run: int, variable: int, step: int) -> float:
        array = opened[f"v{variable}"] if shape.runs == 1 else opened[f"v{variable}"].isel(run=run)
        return float(array.isel(step=step, y=0, x=0))

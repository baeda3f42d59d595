"""Runs as netCDF files that were ingested into a Fieldstone store: each file a run with its coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from peers import fieldstone_store
from peers.netcdf_files import write_files

if TYPE_CHECKING:
    import xarray as xr
    from workload import Runs as Shape


class Runs(fieldstone_store.Runs):
    """See `peers.Runs`."""

    @staticmethod
    def fill(root: Path, shape: Shape) -> None:
        import fieldstone as fst

        paths = write_files(root.with_name("files"), shape)
        report = fst.ingest(root, paths, progress=False)
        assert len(report.taken) == len(paths), report

    @staticmethod
    def value(opened: xr.DataTree, shape: Shape, run: int, variable: int, step: int) -> float:
        return float(opened[f"{shape.run(run)}-000000/v{variable}"].isel(step=step, y=0, x=0))

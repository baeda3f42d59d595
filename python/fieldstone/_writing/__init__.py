"""Turns xarray Datasets into fields: CF encoding and header, regions, and the targets of dask's tasks."""

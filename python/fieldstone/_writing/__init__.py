"""How xarray Datasets become fields: CF encoding and header, regions, and what dask writes to."""

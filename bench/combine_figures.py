"""The figures of files, runs and messages that open as one object of xarray."""

from __future__ import annotations

import combine
from combine import CFGRIB, FILES, INGESTED, KERCHUNK, OURS
from steps import Figure, Row, Target

_ROWS = (
    Row("seconds", "time, s", 1, 2),
    Row("cpu", "CPU, s", 1, 2),
    Row("grown", "memory beyond what the imports took, MiB", 2**20),
    Row("one", "one value afterwards, ms", 1e-3, 1),
)

COMBINE = (
    Figure(
        "months",
        "24 monthly files as one Dataset",
        "Two years of daily fields, 180 x 360, packed in i2, a netCDF-4 file a month: `open_dataset` of a "
        "store that ingested them; `open_mfdataset` with the options that compare the least; "
        "kerchunk's references, made before.",
        (INGESTED, FILES, KERCHUNK),
        combine.run,
        _ROWS,
        (Target("at most open_mfdataset's time", "seconds", 1, FILES, of=INGESTED),),
        setup=combine.fill,
        group="combine",
        data={"what": "months"},
    ),
    Figure(
        "ensemble",
        "200 runs as one Dataset",
        "200 runs of four variables and 50 steps, 32 x 32 f4: `open_dataset` of a store of archived arrays, "
        'and of one that ingested the files (`combine="run"`); `open_mfdataset` of 200 files, along a new '
        "dimension.",
        (OURS, INGESTED, FILES),
        combine.run,
        _ROWS,
        (Target("at most a third of open_mfdataset's time", "seconds", 1 / 3, FILES),),
        setup=combine.fill,
        group="combine",
        data={"what": "runs"},
    ),
    Figure(
        "grib-tree",
        "1,177 GRIB messages on 58 grids as one tree",
        "The messages are made from ecCodes' samples, with regular grids of GRIB 1 and 2 and polar "
        "stereographic grids: `open_datatree` of a store; `cfgrib.open_datasets` of the file, with its "
        "index made beforehand.",
        (OURS, CFGRIB),
        combine.run,
        _ROWS,
        (Target("at most 2 s", "seconds", 2),),
        setup=combine.fill,
        group="combine",
        data={"what": "messages"},
    ),
)

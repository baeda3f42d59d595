"""The figures of writing and reading elements of containers."""

from __future__ import annotations

import container_data
from container_data import BOXES, NETCDF4, PLAIN
from steps import OURS, Figure, Row, Target

_MS, _MIB = 1e-3, 2**20

_RATE = (Row("bytes_s", "MiB/s", _MIB), Row("seconds", "time, ms", _MS, 1), Row("cpu", "CPU, ms", _MS, 1))
_COUNTS = (
    Row("read_calls", "read calls", counted=True),
    Row("read", "bytes read, MiB", _MIB, 1, counted=True),
    Row("write_calls", "write calls", counted=True),
    Row("written", "bytes written, MiB", _MIB, 1, counted=True),
)
_WHAT = {
    "large": (
        "one variable of 512 MiB",
        "64 Mi doubles from or into one array, with byte order swapped; pread and pwrite move as many bytes "
        "without swapping.",
        (OURS, PLAIN, NETCDF4),
        _RATE,
        (Target("at least 85 % of pread or pwrite (bytes/s)", "bytes_s", 0.85, PLAIN, least=True),),
    ),
    "strided": (
        "boxes of a table of 256 MiB",
        "8,192 x 8,192 floats; each box in one call.",
        (OURS, NETCDF4),
        (*_RATE, *(Row(name, f"{name} alone, ms", _MS, 1) for name in BOXES)),
        (),
    ),
    "records": (
        "20 record variables of 2,000 records",
        "500 floats a record; each call writes one record of a variable, or reads one variable.",
        (OURS, NETCDF4),
        _RATE,
        (),
    ),
}


def _figure(what: str, action: str) -> Figure:
    title, text, peers, rows, targets = _WHAT[what]
    return Figure(
        f"data-{what}-{action}",
        f"{action.capitalize()} {title}",
        f"{text} In the page cache, nothing synced, definition not measured.",
        peers,
        container_data.write if action == "write" else container_data.read,
        (*rows, *_COUNTS),
        targets,
        setup=None if action == "write" else container_data.setup,
        count=container_data.counts,
        data={"what": what, "action": action},
        group="data",
    )


CONTAINER_DATA = tuple(_figure(what, action) for what in _WHAT for action in ("write", "read"))

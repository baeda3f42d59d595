"""The figures of zarr-python reading a Fieldstone store and a LocalStore."""

from __future__ import annotations

import zarr_read
from steps import Figure, Row, Target
from zarr_read import CHECKED, OURS, PLAIN

_ROWS = (
    Row("bytes_s", "MB/s", 1e6),
    Row("seconds", "time, s", 1, 2),
    Row("cpu", "CPU, s", 1, 2),
    Row("read", "bytes read, MiB", 2**20, 1, counted=True),
    Row("read_calls", "read calls", counted=True),
    Row("files", "files", counted=True),
    Row("length", "bytes on disk, MiB", 2**20, 1, counted=True),
)
_TARGETS = (
    Target("at least 0.9 of LocalStore's speed, same codecs", "bytes_s", 0.9, CHECKED, least=True),
    Target("at most 1.1 times its CPU", "cpu", 1.1, CHECKED),
)


def _figure(name: str, what: str, title: str, text: str) -> Figure:
    return Figure(
        name,
        f"zarr-python reads 1 GB in chunks of 1 MiB, {title}",
        f"954 chunks of 512 x 512 f4, {text}; reads the whole array at once, with its pages in the cache.",
        (OURS, CHECKED, PLAIN),
        zarr_read.run,
        _ROWS,
        _TARGETS,
        setup=zarr_read.fill,
        count=zarr_read.counts,
        group="zarr",
        data={"what": what},
    )


ZARR = (
    _figure("zarr-zstd", "zstd", "zstd", "compressed to about half; one Fieldstone field"),
    _figure("zarr-raw", "raw", "not compressed", "noise; one Fieldstone field"),
    _figure("zarr-steps", "steps", "a field per step", "noise; 954 Fieldstone fields, one LocalStore array"),
)

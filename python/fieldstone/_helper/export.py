"""Exports netCDF files from a store, for a program without netCDF."""

from __future__ import annotations

import time
from typing import Any

import fieldstone
from fieldstone._export import export
from fieldstone._helper.frames import Channel, RequestError


def export_request(channel: Channel, header: dict[str, Any]) -> None:
    """Answers `export`: the skipped parts, then one `exported` frame."""
    told = 0.0

    def progress(done: int) -> None:
        nonlocal told
        if (now := time.monotonic()) - told > 0.1:
            told = now
            channel.progress(done, 0)

    try:
        with fieldstone.open(header["url"], mode="r", at=header.get("at")) as store:
            request = list(header["requests"])
            options = {"format": header.get("format"), "overwrite": bool(header.get("overwrite"))}
            report = export(store, request, header["path"], progress=progress, **options)
    except fieldstone.Error as error:
        raise RequestError(error.kind, error.message, error.hint, error.code) from None
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError("Invalid", str(error)) from None
    for left in report.skipped:
        channel.send({"kind": "left-out", "file": str(left.path), "what": left.what, "why": left.why})
    channel.send(
        {
            "kind": "exported",
            "files": [str(path) for path in report.files],
            "format": report.format,
            "fields": report.fields,
            "bytes": report.bytes,
        }
    )
    channel.done()

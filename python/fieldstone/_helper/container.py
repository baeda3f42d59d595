"""Sends containers whose names have paths, and containers with a partitioned header, as fields.

Fields and header are the same as for a netCDF file (``spec/netcdf-header.md``), and a path is a group.
Fieldstone itself reads them, because netCDF-C supports neither.

Invariant: the header is sent last, so that a file whose reader died never looks complete.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from fieldstone import _split, container
from fieldstone._helper import PIECE_BYTES, attributes, exported
from fieldstone._helper.exported import Exported
from fieldstone._helper.files import boxes, sha256
from fieldstone._helper.frames import Channel, RequestError
from fieldstone.errors import Error

HEADER = "@header"
"""The variable name of a file's header: no netCDF name begins with ``@``."""

HEADER_VERSION = 1

MODEL = "NETCDF4"
"""The data model of netCDF for files with groups."""


def ingest(channel: Channel, path: str, request: dict[str, Any]) -> None:
    """Sends the fields of a container, its header last."""
    digest = sha256(path, lambda: channel.progress(0, os.stat(path).st_size))
    run = Path(path).stem.encode("utf-8", "replace").decode()
    if request.get("offer"):
        channel.send({"kind": "offer", "format": "netcdf", "run": run, "sha256": digest})
        answer = channel.receive()
        if answer is None or answer[0].get("op") != "go":
            channel.done(format="netcdf", fields=0)
            return
    try:
        with container.open(path) as file:
            reader = Reader(channel, file, path, run, digest, request.get("copy", True))
            reader.step_dim = request.get("step_dim")
            reader.take_metadata()
            reader.send_all()
    except Error as error:
        raise RequestError(error.kind, error.message, error.hint, error.code) from None


class Reader:
    """Sends one file to the parent."""

    def __init__(
        self, channel: Channel, file: container.Container, path: str, run: str, digest: str, copy: bool
    ) -> None:
        self.channel = channel
        self.file = file
        self.path = path
        self.run = run
        self.digest = digest
        self.copy = copy
        self.step_dim: str | bool | None = None
        self.exported: Exported | None = None
        self.size = os.stat(path).st_size
        self.record = file.record_dim
        self.groups: dict[str, dict[str, Any]] = {}
        self.skips: list[dict[str, str]] = []
        self.fields = 0
        self.sent = 0
        self.total = 0

    def take_metadata(self) -> None:
        """Sends the metadata of an exported file, or reports why they are skipped."""
        text = self.file.attrs.get(exported.ATTRIBUTE)
        if not isinstance(text, str):
            return
        try:
            held = exported.parse(text.encode("utf-8", "surrogateescape"))
            if held.fields is not None or self.step_dim is not None:
                raise ValueError("its steps or keys belong to the original file")
        except ValueError as error:
            self.channel.skipped("the metadata", str(error))
            return
        self.exported = held
        if held.lines:
            self.channel.send({"kind": "metadata"}, held.lines)

    def send_all(self) -> None:
        """Sends variables in the file's order, then the header."""
        for path in ["", *self.file.paths]:
            # Groups come before their contents, even if an enclosing group is empty.
            parts = path.split("/")
            for n in range(1, len(parts) + 1):
                self._group("/".join(parts[:n]))
        for name, length in self.file.dims.items():
            path, _, last = name.rpartition("/")
            dim = {"name": last, "length": length, "unlimited": name == self.record}
            self._group(path)["dims"].append(dim)
        for name, kind, value in self.file.attrs.raw():
            path, _, last = name.rpartition("/")
            if name != exported.ATTRIBUTE:
                self._group(path)["attrs"].append([last, coded(kind, value)])
        whole = set()
        for variable in self.file.vars.values():
            self.total += variable.nbytes
            for word in ("bounds", "climatology"):
                if word in variable.attrs:
                    path, slash, _ = variable.name.rpartition("/")
                    whole.add(f"{path}{slash}{variable.attrs[word]}")
        for name, variable in self.file.vars.items():
            path, _, last = name.rpartition("/")
            self._group(path)["variables"].append(self._variable(variable, name, last, name in whole))
        name = os.path.basename(self.path).encode("utf-8", "replace").decode()
        header = {
            "fieldstone": "netcdf-header",
            "version": HEADER_VERSION,
            "source": {
                "name": name,
                "nbytes": self.size,
                "sha256": self.digest,
                "format": MODEL,
            },
            "groups": list(self.groups.values()),
            "skipped": self.skips,
        }
        text = json.dumps(header, ensure_ascii=False, allow_nan=False, indent=1)
        self.fields += 1
        key = {"run": self.run, "variable": HEADER}
        self.channel.send({"kind": "field", "key": key, "opaque": True}, text.encode("utf-8", "replace"))
        self.channel.progress(self.total, self.total)
        self.channel.done(format="netcdf", fields=self.fields)

    def _group(self, path: str) -> dict[str, Any]:
        if path not in self.groups:
            self.groups[path] = {"path": path, "dims": [], "attrs": [], "variables": []}
        return self.groups[path]

    def _variable(self, variable: container.Variable, name: str, last: str, whole: bool) -> dict[str, Any]:
        if self.exported is not None and name in self.exported.variables:
            split = name in self.exported.split and rank_of(variable) >= 2
        elif self.step_dim is None:
            split = not whole and self._is_split(variable)
        else:
            split = rank_of(variable) >= 2 and variable.dims[0].rpartition("/")[2] == self.step_dim
        if variable.size and self.copy:
            self._values(variable, name, split)
        elif variable.size:
            self._places(variable, name, split)
        return {
            "name": last,
            "dims": list(variable.dims),
            "shape": list(variable.shape),
            "dtype": variable.dtype.newbyteorder("<").str,
            "split": split,
            "attrs": [[key, coded(kind, value)] for key, kind, value in variable.attrs.raw()],
            "chunks": None,
            "filters": {},
        }

    def _is_split(self, variable: container.Variable) -> bool:
        if rank_of(variable) < 2:
            return False
        leading = variable.dims[0]
        coordinate = self.file.vars.get(leading)
        if coordinate is None or coordinate.dims != (leading,):
            return bool(leading == self.record)
        held = {name: coordinate.attrs[name] for name in coordinate.attrs}
        return not _split.is_horizontal(leading.rpartition("/")[2], held)

    def _values(self, variable: container.Variable, name: str, split: bool) -> None:
        """Sends values as fields, or as pieces of fields, of bounded size."""
        shape = variable.shape
        dtype = variable.dtype.newbyteorder("<")
        inner = shape[1:] if split else shape
        for step in range(shape[0]) if split else (None,):
            self.fields += 1
            for start, count in boxes(inner, dtype.itemsize, PIECE_BYTES):
                where = (start, count) if step is None else ((step, *start), (1, *count))
                values = np.asarray(variable.get(*where, collective=False), dtype=dtype).reshape(count)
                key = {"run": self.run, "variable": name} | ({} if step is None else {"step": step})
                frame = {"kind": "field", "key": key, "dtype": dtype.str, "shape": list(inner)}
                if count != tuple(inner):
                    frame |= {"start": list(start), "count": list(count)}
                self.channel.send(frame, np.ascontiguousarray(values).reshape(-1).view(np.uint8))
                self.sent += values.nbytes
                self.channel.progress(self.sent, self.total)

    def _places(self, variable: container.Variable, name: str, split: bool) -> None:
        """Sends the locations of values: slice by slice, or all together."""
        begin, stride = variable._native.place
        shape = variable.shape
        rows = shape[0] if shape else 1
        row = variable.nbytes // rows
        stride = stride or row
        parts = rows if stride != row else 1
        for step in range(rows) if split else (None,):
            first, count = (0, rows) if step is None else (step, 1)
            if begin + (first + count - 1) * stride + row > self.size:
                what = name if step is None else f"{name}[{step}]"
                why = "the file ends before these values"
                self.skips.append({"what": what, "why": why})
                self.channel.skipped(what, why)
                return
            key = {"run": self.run, "variable": name} | ({} if step is None else {"step": step})
            extents = list(shape if step is None else shape[1:])
            dtype = variable.dtype.newbyteorder(">").str
            ranges = {"parts": parts if step is None else 1, "stride": stride}
            frame = {"kind": "field", "key": key, "dtype": dtype, "shape": extents}
            self.fields += 1
            self.channel.send(frame | {"outside": {"offset": begin + first * stride, **ranges}})


def rank_of(variable: container.Variable) -> int:
    """The number of dimensions that are axes: the last one of characters is the length of a text."""
    return variable.ndim - (1 if variable.dtype.kind == "S" else 0)


def coded(kind: str, value: bytes) -> dict[str, Any]:
    """An attribute in the header's form."""
    if kind == "S1":
        if attributes.is_utf8(value):
            return {"text": value.decode()}
        return {"text": value.decode(attributes.LATIN), "encoding": attributes.LATIN}
    return attributes.encode(np.frombuffer(value, f">{kind}"))

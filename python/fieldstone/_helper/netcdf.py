"""netCDF-3 and -4 files as fields: one for each variable and value of its leading coordinate.

A variable of rank >= 2 is split along its first dimension if that has a coordinate variable that is not
horizontal, or is unlimited and has none; `step` is then the index along it. Bounds, coordinates and
everything else are one field. Values stay as they are in the file: packed, with their fill, unmasked.
``spec/netcdf-header.md`` has the rules and the header that turns the fields back into the file.

Invariants:

* the header is sent last, so that a file whose reader died never looks complete;
* the frames of a file depend only on its bytes and name: ingesting it twice gives equal fields.
"""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

from fieldstone import _split
from fieldstone._helper import PIECE_BYTES, attributes, exported, libhdf5, libnetcdf, odd_types
from fieldstone._helper.attributes import is_utf8
from fieldstone._helper.classic import HeaderError, Layout
from fieldstone._helper.declare import Declared
from fieldstone._helper.exported import Exported
from fieldstone._helper.files import boxes, open_plain, sha256
from fieldstone._helper.frames import Channel, RequestError

HEADER = "@header"
"""The variable name of a file's header: no netCDF name begins with ``@``."""

HEADER_VERSION = 1
STRINGS_BYTES = 64 << 20
NUMERIC = "iufS"
MISSING = 16
"""Maximum number of values of a variable that count as missing."""


def ingest(channel: Channel, path: str, request: dict[str, Any]) -> None:
    """Sends the fields of a netCDF file, its header last."""
    digest = sha256(path, lambda: channel.progress(0, os.stat(path).st_size))
    run = Path(path).stem.encode("utf-8", "replace").decode()
    layout = classic_layout(path)
    if layout is None and not request.get("copy", True):
        raise RequestError("Invalid", "only netCDF classic files can be ingested without a copy")
    content = libhdf5.contents(path) if layout is None else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            dataset = opened(path, content, lambda: channel.progress(0, os.stat(path).st_size))
        except (OSError, RuntimeError, UnicodeError, KeyError, TypeError, ValueError) as error:
            raise RequestError("Corrupt", f"netCDF-C cannot open it: {named(error)}") from None
    with dataset:
        options = {"copy": request.get("copy", True), "step_dim": request.get("step_dim")}
        reader = Reader(channel, path, run, digest, dataset, layout, **options)
        facts, why = exported_of(dataset, request)
        if not request.get("offer"):
            facts = facts and replace(facts, fields=None)
        elif not offered(channel, run, digest, facts):
            channel.done(format="netcdf", fields=0)
            return
        reader.exported = facts
        if why:
            channel.skipped("the metadata", why)
        reader.send_all(omitted(content, dataset, [str(w.message) for w in caught]))


def opened(
    path: str, content: dict[str, libhdf5.Object] | None, beat: Callable[[], None] = lambda: None
) -> netCDF4.Dataset:
    """Opens a file for reading, even if netCDF refuses it as a whole because of unknown types."""
    try:
        if is_utf8(os.fsencode(path)):
            return netCDF4.Dataset(path, "r")
        # netCDF4-python passes names to netCDF-C only in UTF-8.
        with open_plain(path) as file:
            return netCDF4.Dataset(f"/proc/self/fd/{file.fileno()}", "r")
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        return odd_types.reopened(path, content, error, beat)


def omitted(
    content: dict[str, libhdf5.Object] | None, dataset: netCDF4.Dataset, complaints: list[str]
) -> list[tuple[str, str]]:
    """The parts of a file that netCDF does not show, and why: listed by HDF5, or else by netCDF4-python."""
    if content is not None:
        return list(odd_types.omitted(content, dataset))
    found = [(re.search(r"variable '([^']+)'", complaint), complaint) for complaint in complaints]
    return [(named.group(1) if named else "a type", complaint) for named, complaint in found]


def exported_of(dataset: netCDF4.Dataset, request: dict[str, Any]) -> tuple[Exported | None, str]:
    """The metadata of an exported file; or why they are skipped."""
    try:
        text = exported.of_dataset(dataset)
        held = None if text is None else exported.parse(text)
    except ValueError as error:
        return None, str(error)
    if held is not None and request.get("step_dim") is not None:
        return None, "its steps belong to the original file; leave out step_dim"
    if held is not None and held.fields is not None and not request.get("copy", True):
        return None, "its fields had their own keys, which values that stay in the file cannot have"
    return held, ""


def offered(channel: Channel, run: str, digest: str, held: Exported | None) -> bool:
    """Whether the parent takes the file; drops its fields' keys if they do not fit the parent's schema."""
    offer = {"kind": "offer", "format": "netcdf", "run": run, "sha256": digest}
    if held is not None and held.fields is not None:
        offer |= {"keys": exported.ends(held.fields)}
    channel.send(offer)
    answer = channel.receive()
    if answer is None or answer[0].get("op") != "go":
        return False
    if held is not None and answer[0].get("plain"):
        held.fields, held.lines = None, b""
    return True


@dataclass
class Reader:
    """Sends one file to the parent."""

    channel: Channel
    path: str
    run: str
    digest: str
    dataset: netCDF4.Dataset
    layout: Layout | None
    copy: bool = True
    step_dim: str | bool | None = None
    skips: list[dict[str, str]] = field(default_factory=list)
    declared: Declared = field(default_factory=Declared)
    exported: Exported | None = None
    missing: bytes = b""
    fields: int = 0
    sent: int = 0
    total: int = 0
    reported: float = 0.0

    def send_all(self, omitted: list[tuple[str, str]]) -> None:
        """Sends variables in the file's order, their declarations, then the header."""
        for form in (self.dataset.set_auto_maskandscale, self.dataset.set_auto_chartostring):
            form(False)
        self.dataset.set_always_mask(False)
        for what, why in omitted:
            self._skip(what, why)
        if self.exported is not None and self.exported.lines:
            self.channel.send({"kind": "metadata"}, self.exported.lines)
        groups = [group for group in walk(self.dataset) if not is_metadata(group)]
        self.total = sum(v.size * itemsize(v) for g in groups for v in g.variables.values())
        if self.exported is not None and self.exported.fields is not None:
            from fieldstone._helper.by_key import ByKey  # imported here because it uses this module

            ByKey(self, self.exported).send_all()
            self.channel.progress(self.total, self.total)
            self.channel.done(format="netcdf", fields=self.fields)
            return
        described = [self._group(group) for group in groups]
        self._name_lost(described)
        self.declared.attrs = described[0]["attrs"]
        for frame, payload in self.declared.frames():
            self.channel.send(frame, payload)
        size = os.stat(self.path).st_size
        name = os.path.basename(self.path).encode("utf-8", "replace").decode()
        header = {
            "fieldstone": "netcdf-header",
            "version": HEADER_VERSION,
            "source": {
                "name": name,
                "nbytes": size,
                "sha256": self.digest,
                "format": self.dataset.data_model,
            },
            "groups": described,
            "skipped": self.skips,
        }
        text = json.dumps(header, ensure_ascii=False, allow_nan=False, indent=1)
        self.fields += 1
        self.channel.send(
            {"kind": "field", "key": {"run": self.run, "variable": HEADER}, "opaque": True},
            text.encode("utf-8", "replace"),
        )
        self.channel.progress(self.total, self.total)
        self.channel.done(format="netcdf", fields=self.fields)

    def _group(self, group: netCDF4.Dataset) -> dict[str, Any]:
        prefix = group.path.strip("/")
        dims = [
            {"name": d.name, "length": len(d), "unlimited": d.isunlimited()}
            for d in group.dimensions.values()
        ]
        whole = bounds_of(group)
        types = [
            {
                "name": t.name,
                "dtype": little(t.dtype).str,
                "values": [[k, int(v)] for k, v in t.enum_dict.items()],
            }
            for t in group.enumtypes.values()
        ]
        return {
            "path": prefix,
            "dims": dims,
            **({"types": types} if types else {}),
            "attrs": self._attributes(group, prefix or "the file"),
            "variables": [self._variable(v, join(prefix, n), whole) for n, v in group.variables.items()],
        }

    def _name_lost(self, described: list[dict[str, Any]]) -> None:
        """Reports parts that an exported file had and lacks now."""
        there = {join(group["path"], facts["name"]) for group in described for facts in group["variables"]}
        for name in self.exported.variables if self.exported else []:
            if name not in there:
                self.channel.skipped(name, exported.LOST)

    def _is_split(self, variable: netCDF4.Variable, name: str, whole: set[str]) -> bool:
        """Whether a variable is one field for each step: by the rule, or along the requested dimension."""
        if self.exported is not None and name in self.exported.variables:
            return name in self.exported.split and rank_of(variable) >= 2
        if self.step_dim is None:
            return variable.name not in whole and is_split(variable)
        return rank_of(variable) >= 2 and variable.dimensions[0] == self.step_dim

    def _attributes(self, holder: Any, where: str) -> list[list[Any]]:
        coded = []
        variable = holder._varid if isinstance(holder, netCDF4.Variable) else libnetcdf.GLOBAL
        for name in holder.ncattrs():
            if name == exported.ATTRIBUTE and holder is self.dataset:
                continue
            try:
                coded.append([name, attributes.exact(holder._grpid, variable, name)])
            except libnetcdf.NetCDFError as error:
                self._skip(f"{where}: attribute {name}", str(error))
        return coded

    def _variable(self, variable: netCDF4.Variable, name: str, whole: set[str]) -> dict[str, Any]:
        dims = [join(d.group().path.strip("/"), d.name) for d in variable.get_dims()]
        shape = [int(n) for n in variable.shape]
        facts: dict[str, Any] = {"name": variable.name, "dims": dims, "shape": shape}
        reason = unsupported(variable) or (name == HEADER and "the name is reserved")
        if reason:
            self._skip(name, reason)
            facts |= {"dtype": None, "split": False}
        elif variable.dtype is str:
            facts |= self._strings(variable, name)
        else:
            split = self._is_split(variable, name, whole)
            dtype = little(variable.dtype)
            facts |= {"dtype": dtype.str, "split": split}
            if self.layout is None and dtype.itemsize > 1 and variable.endian() == "big":
                facts["endian"] = "big"
            if variable._isenum:
                facts["enum"] = enum_of(variable)
            self.missing = missing_of(variable, dtype if self.copy else dtype.newbyteorder(">"))
            if variable.size and not self.copy:
                self._places(variable, name, dtype, split)
            elif variable.size:
                self._numbers(variable, name, dtype, split)
            self.missing = b""
        facts["attrs"] = self._attributes(variable, name)
        self.declared.add(variable, name, facts, "<" if self.copy else ">")
        chunks = variable.chunking()
        facts["chunks"] = [int(n) for n in chunks] if isinstance(chunks, list | tuple) else None
        filters = variable.filters() or {}
        facts["filters"] = {key: value for key, value in filters.items() if value}
        if self.layout is None and facts["dtype"] and libnetcdf.has_no_fill(variable._grpid, variable._varid):
            facts["nofill"] = True
        return facts

    def _strings(self, variable: netCDF4.Variable, name: str) -> dict[str, Any]:
        """Sends a string variable as a fixed-width array, if that is affordable."""
        try:
            values = np.array(variable[...], dtype=str)
        except Exception as error:
            self._skip(name, f"cannot be read: {error}")
            return {"dtype": None, "split": False}
        if values.nbytes > STRINGS_BYTES:
            self._skip(name, f"strings of {values.nbytes} bytes at fixed width, more than {STRINGS_BYTES}")
            return {"dtype": None, "split": False}
        values = values.astype(little(values.dtype))
        if values.size:
            self._field(name, None, values, list(values.shape))
        return {"dtype": values.dtype.str, "split": False, "strings": True}

    def _numbers(self, variable: netCDF4.Variable, name: str, dtype: np.dtype, split: bool) -> None:
        """Sends a numeric variable as fields, or as pieces of fields, of bounded size."""
        shape = variable.shape
        failed: list[tuple[str, str]] = []
        if not split:
            for start, count in boxes(shape, dtype.itemsize, PIECE_BYTES):
                piece = self._read(variable, name, start, count, dtype, failed)
                if piece is not None:
                    self._field(name, None, piece, list(shape), start)
        else:
            inner = shape[1:]
            slice_bytes = dtype.itemsize * int(np.prod(inner, dtype=object))
            batch = max(1, PIECE_BYTES // max(1, slice_bytes))
            for first in range(0, shape[0], batch):
                n = min(batch, shape[0] - first)
                self._slices(variable, name, first, n, dtype, failed)
        if failed:
            what, why = failed[0]
            more = f" (and {len(failed) - 1} more parts of {name})" if len(failed) > 1 else ""
            self._skip(what, why + more)

    def _places(self, variable: netCDF4.Variable, name: str, dtype: np.dtype, split: bool) -> None:
        """Sends the locations of the values of a classic variable: slice by slice, or all together."""
        assert self.layout is not None
        place = self.layout.places[variable.name]
        shape = [int(n) for n in variable.shape]
        rows = shape[0] if shape else 1
        parts = rows if place.record and place.stride != place.slice_bytes else 1
        lost: list[int | None] = []
        for step in range(rows) if split else (None,):
            first, count = (0, rows) if step is None else (step, 1)
            if self.layout.missing(variable.name, first, count):
                lost.append(step)
                continue
            extents = shape if step is None else shape[1:]
            ranges = {"parts": parts if step is None else 1, "stride": place.stride}
            key = {"run": self.run, "variable": name} | ({} if step is None else {"step": step})
            frame = {"kind": "field", "key": key, "dtype": dtype.newbyteorder(">").str, "shape": extents}
            frame |= {"missing": self.missing.hex()} if self.missing else {}
            self.fields += 1
            self.channel.send(frame | {"outside": {"offset": place.begin + first * place.stride, **ranges}})
            self._sent(dtype.itemsize * int(np.prod(extents, dtype=object)))
        if lost:
            what = name if lost[0] is None else f"{name}[{lost[0]}]"
            more = f" (and {len(lost) - 1} more parts of {name})" if len(lost) > 1 else ""
            self._skip(what, "the file ends before these values" + more)

    def _slices(
        self, variable: netCDF4.Variable, name: str, first: int, n: int, dtype: np.dtype, failed: list
    ) -> None:
        inner = variable.shape[1:]
        if n > 1:
            # One read for many slices; if it fails, each slice is tried separately.
            read = self._read(variable, name, (first, *(0,) * len(inner)), (n, *inner), dtype, [])
            if read is not None:
                for i in range(n):
                    self._field(name, first + i, read[i], list(inner))
                return
        for step in range(first, first + n):
            for start, count in boxes(inner, dtype.itemsize, PIECE_BYTES):
                piece = self._read(variable, name, (step, *start), (1, *count), dtype, failed)
                if piece is not None:
                    self._field(name, step, piece[0], list(inner), start)

    def _read(
        self,
        variable: netCDF4.Variable,
        name: str,
        start: tuple[int, ...],
        count: tuple[int, ...],
        dtype: np.dtype,
        failed: list[tuple[str, str]],
    ) -> np.ndarray | None:
        what = name
        if tuple(count) != tuple(variable.shape):
            what += f"[{', '.join(f'{s}:{s + c}' for s, c in zip(start, count, strict=True))}]"
        first, n = (start[0], count[0]) if start else (0, 1)
        place = self.layout and self.layout.places.get(variable.name)
        if place and not place.record and start:
            # Rows of a fixed variable follow one another from its beginning.
            first, n = 0, start[0] + count[0]
        if self.layout and self.layout.missing(variable.name, first, n):
            failed.append((what, "the file ends before these values"))
            return None
        try:
            box = tuple(slice(s, s + c) for s, c in zip(start, count, strict=True))
            values = variable[box] if box else variable[...]
            return np.asarray(values, dtype=dtype, order="C").reshape(count)
        except Exception as error:  # after any error of netCDF-C, HDF5 or a filter, the rest is still sent
            failed.append((what, f"cannot be read: {error}"))
            return None

    def _field(
        self, name: str, step: int | None, values: np.ndarray, shape: list[int], start: tuple[int, ...] = ()
    ) -> None:
        key: dict[str, Any] = {"run": self.run, "variable": name}
        if step is not None:
            key["step"] = step
        frame = {"kind": "field", "key": key, "dtype": values.dtype.str, "shape": shape}
        frame |= {"missing": self.missing.hex()} if self.missing else {}
        if list(values.shape) != shape:
            frame |= {"start": list(start), "count": list(values.shape)}
        if not any(start):
            self.fields += 1
        self.channel.send(frame, np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        self._sent(values.nbytes)

    def _sent(self, nbytes: int) -> None:
        self.sent += nbytes
        now = time.monotonic()
        if now - self.reported > 0.1:
            self.reported = now
            self.channel.progress(self.sent, self.total)

    def _skip(self, what: str, why: str) -> None:
        why = " ".join(why.split())
        self.skips.append({"what": what, "why": why})
        self.channel.skipped(what, why)


def is_metadata(group: netCDF4.Dataset) -> bool:
    """Whether an export made this group for metadata."""
    return group.path == f"/{exported.GROUP}" and exported.is_ours(group)


def classic_layout(path: str) -> Layout | None:
    """The places of a classic file's values; None for an HDF5 file.

    It is read before netCDF-C sees the file, because some damaged headers make netCDF-C crash or allocate
    without end.
    """
    with open_plain(path) as file:
        if file.read(3) != b"CDF":
            return None
        file.seek(0)
        try:
            return Layout(file, os.fstat(file.fileno()).st_size)
        except HeaderError as error:
            raise RequestError("Corrupt", f"bad netCDF header: {error}") from None


def named(error: Exception) -> str:
    """netCDF-C's error without the path, which the parent adds itself."""
    return getattr(error, "strerror", None) or str(error)


def walk(group: netCDF4.Dataset) -> Iterator[netCDF4.Dataset]:
    """A group and all groups below it, parents first."""
    yield group
    for child in group.groups.values():
        yield from walk(child)


def join(prefix: str, name: str) -> str:
    """Path of a child of a group; the root has no prefix."""
    return f"{prefix}/{name}" if prefix else name


def little(dtype: Any) -> np.dtype:
    """The little-endian form of a dtype."""
    return np.dtype(dtype).newbyteorder("<")


def itemsize(variable: netCDF4.Variable) -> int:
    """Bytes of one value; 0 if values have no fixed size."""
    return variable.dtype.itemsize if isinstance(variable.dtype, np.dtype) else 0


def unsupported(variable: netCDF4.Variable) -> str | None:
    """Why a variable's type cannot be kept as an array, or None."""
    if variable._iscompound:
        return "compound type not supported"
    if variable.dtype is str:
        return None
    if variable._isvlen:
        return "variable-length type not supported"
    if not isinstance(variable.dtype, np.dtype) or variable.dtype.kind not in NUMERIC:
        return f"type {variable.dtype} not supported"
    return None


def missing_of(variable: netCDF4.Variable, dtype: np.dtype) -> bytes:
    """The values that mean missing, in their stored form: ``_FillValue`` and ``missing_value``.

    Attributes of another type count if the elements' type has the same value; NaN is always missing.
    """
    found: dict[bytes, None] = {}
    held = set(variable.ncattrs())
    for name in ("_FillValue", "missing_value"):
        values = np.atleast_1d(attributes.of(variable, name, ()))
        if dtype.kind not in "iuf" or values.dtype.kind not in "iuf":
            continue
        if dtype.kind in "iu" and "_Unsigned" in held and values.dtype.kind in "iu":
            # A fill value of the intended sign has the same bits.
            bits = 8 * dtype.itemsize
            values = (values.astype(object) % 2**bits).astype(f"u{dtype.itemsize}")
            stored = values.view(values.dtype.str.replace("u", dtype.kind)).astype(dtype)
        else:
            with np.errstate(all="ignore"):
                stored = values.astype(dtype)
            stored = stored[stored == stored] if dtype.kind == "f" else stored[stored == values]
        # Slices, because a scalar has the machine's byte order.
        found |= dict.fromkeys(stored[i : i + 1].tobytes() for i in range(stored.size))
    return b"".join(list(found)[:MISSING])


def enum_of(variable: netCDF4.Variable) -> str:
    """Path of a variable's enumeration: the one of its name in the nearest group."""
    group = variable.group()
    while variable.datatype.name not in group.enumtypes and group.parent is not None:
        group = group.parent
    return join(group.path.strip("/"), variable.datatype.name)


def bounds_of(group: netCDF4.Dataset) -> set[str]:
    """Names of variables that describe the cells of another one."""
    names = set()
    for variable in group.variables.values():
        of = (attributes.of(variable, name) for name in ("bounds", "climatology"))
        names.update(str(name) for name in of if name is not None)
    return names


def is_split(variable: netCDF4.Variable) -> bool:
    """Whether each value of the leading dimension is a separate field."""
    if rank_of(variable) < 2:
        return False
    leading = variable.get_dims()[0]
    coordinate = leading.group().variables.get(leading.name)
    if coordinate is None or coordinate.dimensions != (leading.name,):
        return bool(leading.isunlimited())
    return not is_horizontal(coordinate)


def rank_of(variable: netCDF4.Variable) -> int:
    """The number of dimensions that are axes: the last one of characters is the length of a text."""
    return variable.ndim - (1 if variable.dtype.kind == "S" else 0)


def is_horizontal(coordinate: netCDF4.Variable) -> bool:
    """Whether a coordinate is horizontal."""
    words = {name: attributes.of(coordinate, name) for name in ("units", "standard_name", "axis")}
    held = {name: value for name, value in words.items() if value is not None}
    return _split.is_horizontal(coordinate.name, held)

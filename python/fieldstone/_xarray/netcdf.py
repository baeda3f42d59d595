"""A store that holds an ingested netCDF file opens as that file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._helper import attributes
from fieldstone._xarray.arrays import Box, FieldArray, Key, Parts, Steps, chunks, lazy
from fieldstone._xarray.source import Source
from fieldstone.errors import NotFound

HEADER = "@header"
VERSION = 1


def headers(source: Source, axes: dict[str, list[str]]) -> list[tuple[Key, bytes]] | None:
    """Keys and texts of the headers of the runs in `axes`; None where a run has none."""
    if "run" not in axes or "variable" not in axes:
        return None
    found = []
    for run in axes["run"]:
        keys = [dict(e.key) for e in source.store.list({"run": [run], "variable": [HEADER]})]
        if not keys:
            return None
        found += [(key, source.bytes(key)) for key in keys]
    return found or None


def describe(source: Source, request: Any, held: list[tuple[Key, bytes]], group: str | None) -> Parts:
    """The variables of one file, or of one group of it."""
    if request is not None:
        listed = [dict(e.key) for e in source.store.list(request)]
        held = [(k, t) for k, t in held if any(matches(k, key) for key in listed)]
        if len(held) > 1:
            # As with `get`: the file whose key has nothing but what was asked for comes first.
            held = [(k, t) for k, t in held if all(k.items() <= other.items() for other, _ in held)] or held
    else:
        listed = None
    if len(held) != 1:
        names = ", ".join(sorted({label(key) for key, _ in held})) or "none"
        raise ValueError(
            f"the request selects {len(held)} netCDF files ({names}); "
            "choose one, such as request={'run': …}"
        )
    key, text = held[0]
    header = json.loads(text)
    if header.get("version", 0) > VERSION:
        raise ValueError(f"the netCDF header has version {header['version']}; this program reads {VERSION}")
    base = {k: v for k, v in key.items() if k != "variable"}
    path = (group or "").strip("/")
    groups = {g["path"]: g for g in header["groups"]}
    if path not in groups:
        raise ValueError(f"no group {path!r} in the file; its groups: {', '.join(groups)}")
    parts = Parts({}, {name: attributes.decode(value) for name, value in groups[path]["attrs"]})
    for g in header["groups"]:
        prefix = g["path"] and f"{g['path']}/"
        if not g["path"] or path == g["path"] or path.startswith(prefix):
            parts.unlimited |= {d["name"] for d in g["dims"] if d["unlimited"]}
    for facts in groups[path]["variables"]:
        if facts["dtype"] is not None:
            name = f"{path}/{facts['name']}" if path else facts["name"]
            reasons = [s["why"] for s in header["skipped"] if s["what"].partition("[")[0] == name]
            read = WithGaps(reasons[0]) if reasons else None
            parts.variables[facts["name"]] = variable(source, {**base, "variable": name}, facts, read)
    used = {d for v in parts.variables.values() for d in v.dims}
    parts.unlimited &= used
    if listed is not None:
        listed = [k for k in listed if matches(key, k)]
        narrow(parts, groups[path], path, listed)
    return parts


@dataclass(frozen=True)
class WithGaps:
    """Reads a variable of which some part was left out at ingest."""

    why: str

    def __call__(self, source: Source, key: Key, shape: tuple[int, ...], box: Box) -> np.ndarray:
        """A box of a field; where it is not there the error says why."""
        try:
            # By request: `get` would take the only field that has further keywords for this one.
            for found in source.store.retrieve({k: [v] for k, v in key.items()}):
                if dict(found.key) == key:
                    return np.asarray(found.array(*box) if box[0] else found.array())
        except NotFound as error:
            missing = error.message
        else:
            missing = f"no field {label(key)}"
        raise NotFound(f"{missing}: left out at ingest: {self.why}", "open it with drop_variables")


def variable(source: Source, key: Key, facts: dict[str, Any], read: WithGaps | None = None) -> xr.Variable:
    """One variable, raw; its values are read when they are asked for."""
    dims = [d.rpartition("/")[2] for d in facts["dims"]]
    shape = tuple(facts["shape"])
    stored = np.dtype(facts["dtype"])
    dtype = stored.newbyteorder("=")
    held = {name: attributes.decode(value) for name, value in facts["attrs"]}
    data: Any
    if 0 in shape:
        data = np.zeros(shape, dtype)
    elif facts["split"]:
        data = lazy(FieldArray(source, Steps(key, shape[0]), shape[:1], shape[1:], dtype, read))
    else:
        data = lazy(FieldArray(source, {(): key}, (), shape, dtype, read))
    made = xr.Variable(dims, data, held)
    lead = 1 if facts["split"] else 0
    made.encoding["preferred_chunks"] = chunks(dims[:lead], dims[lead:], shape[lead:])
    return made


def narrow(parts: Parts, group: dict[str, Any], path: str, listed: list[Key]) -> None:
    """Keeps what a request selected: its variables with their coordinates, its steps."""
    prefix = f"{path}/" if path else ""
    chosen: dict[str, set[int]] = {}
    for key in listed:
        name = key["variable"]
        if name.startswith(prefix):
            steps = chosen.setdefault(name.removeprefix(prefix), set())
            if "step" in key:
                steps.add(int(key["step"]))
    keep = {name for name in chosen if name in parts.variables}
    for name in list(keep):
        keep |= set(parts.variables[name].dims)
        keep |= set(str(parts.variables[name].attrs.get("coordinates", "")).split())
    if HEADER not in {key["variable"] for key in listed}:
        parts.variables = {name: v for name, v in parts.variables.items() if name in keep}
    for facts in group["variables"]:
        steps = chosen.get(facts["name"])
        if facts["split"] and steps and len(steps) < facts["shape"][0]:
            dim = facts["dims"][0].rpartition("/")[2]
            before = parts.select.get(dim)
            if before is not None and set(before) != steps:
                raise ValueError(f"the request selects different steps along {dim} for different variables")
            parts.select[dim] = sorted(steps)


def matches(header: Key, key: Key) -> bool:
    """Whether a field belongs to the file of a header."""
    own = ("variable", "step")
    return {k: v for k, v in key.items() if k not in own} == {k: v for k, v in header.items() if k not in own}


def label(key: Key) -> str:
    """A file as people name it."""
    return ", ".join(f"{k}={v}" for k, v in key.items() if (k, v) != ("variable", HEADER))

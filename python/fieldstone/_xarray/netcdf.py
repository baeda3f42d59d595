"""A store with one ingested netCDF file opens as that file; a store with several, as those files joined.

The file's header is a separate field (``spec/netcdf-header.md``). A request narrows the file to the variables
and steps that it selects, and their coordinates.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from fieldstone._helper import attributes
from fieldstone._xarray.arrays import Parts
from fieldstone._xarray.lazy import Axis, Box, Counted, FieldArray, chunks, lazy
from fieldstone._xarray.source import Key, Source
from fieldstone.errors import Corrupt, Invalid, NotFound

HEADER = "@header"
VERSION = 1
File = frozenset[tuple[str, str]]
"""Identifies a file: the keywords that all its fields have in common."""
Found = dict[str, Any]
"""The cubes of a file by variable, as ``store._cubes`` returns them."""


@dataclass
class Member:
    """One of several files, or one group of it: its name in messages, its key, and its variables."""

    name: str
    key: Key
    group: str
    parts: Parts


def headers(source: Source, runs: Iterable[str]) -> list[Key]:
    """Keys of the headers of runs."""
    request = {"run": list(runs), "variable": [HEADER]}
    return [dict(e.key) for e in source.store.list(request)] if request["run"] else []


def files(cubes: Iterable[Any]) -> dict[File, Found] | None:
    """The cubes by file; None if one holds several files."""
    found: dict[File, Found] = {}
    for cube in cubes:
        key = dict(cube.key)
        for keyword, values in cube.axes.items():
            if keyword != "step":
                if len(values) > 1:
                    return None
                key[keyword] = values[0]
        found.setdefault(file_of(key), {})[key["variable"]] = cube
    return found


def describe(
    source: Source, request: Any, held: list[Key], group: str | None, combine: str | None
) -> Parts | list[Member]:
    """The variables of one file, or of one group of it; if the request selects several files, those to
    join."""
    found = files(source.store._cubes(request, along=["step"])[0]) or {}
    held = [key for key in held if file_of(key) in found]
    if request is not None:
        held = first(held, combine is not None)
    if len(held) > 1 and combine is not None:
        return members(source, request, held, found, group)
    if len(held) != 1:
        names = sorted({label(key) for key in held})
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        raise Invalid(
            f"the request selects {len(held)} netCDF files ({', '.join(names[:10]) or 'none'}{more})",
            "choose one, such as request={'run': …}, open all with xarray.open_datatree, or join them with "
            "combine='auto'",
        )
    (key,) = held
    header = read(source, key)
    path = group_in(header, group, "the file")
    return part(source, key, header, path, found[file_of(key)], request is not None)


def first(held: list[Key], joined: bool) -> list[Key]:
    """Like `get`: the file whose key has only the requested keywords, else all.

    If files are `joined`, those that differ from it only in `source` are included.
    """
    bare = [frozenset((k, v) for k, v in key.items() if k != "source" or not joined) for key in held]
    distinct = set(bare)
    least = {own for own in distinct if all(own <= other for other in distinct)}
    return [key for key, own in zip(held, bare, strict=True) if own in least] or held


def members(
    source: Source, request: Any, held: list[Key], found: dict[File, Found], group: str | None
) -> list[Member]:
    """The variables of each of several files."""
    headers = [read(source, key) for key in held]
    names = [
        str(header.get("source", {}).get("name") or label(key))
        for header, key in zip(headers, held, strict=True)
    ]
    made = []
    for name, key, header in zip(names, held, headers, strict=True):
        if names.count(name) > 1:
            name = f"{name} ({label(key)})"
        path = group_in(header, group, f"the file {name}")
        parts = part(source, key, header, path, found[file_of(key)], request is not None)
        inherit(source, key, header, path, found[file_of(key)], parts)
        made.append(Member(name, {k: v for k, v in key.items() if k != "variable"}, path, parts))
    return made


def inherit(source: Source, key: Key, header: dict[str, Any], path: str, found: Found, parts: Parts) -> None:
    """Adds to a group the coordinates of its dimensions that are in the groups above it."""
    while path:
        path = path.rpartition("/")[0]
        above = part(source, key, header, path, found, False)
        for dim in {d for v in parts.variables.values() for d in v.dims}:
            if dim in above.variables and above.variables[dim].dims == (dim,):
                parts.variables.setdefault(dim, above.variables[dim])


def groups_of_all(
    source: Source, request: Any, held: list[Key], found: dict[File, Found]
) -> Iterator[tuple[str, list[Member]]]:
    """The groups of several files by their path; a group comes from all files."""
    paths = dict.fromkeys(group["path"] for key in held for group in read(source, key)["groups"])
    for path in paths:
        together = members(source, request, held, found, path)
        if request is None or not path or any(member.parts.variables for member in together):
            yield path, together


def group_in(header: dict[str, Any], group: str | None, where: str) -> str:
    """The path of a group, which the file must have."""
    path = (group or "").strip("/")
    if path not in {g["path"] for g in header["groups"]}:
        names = [g["path"] or "/" for g in header["groups"]]
        raise Invalid(f"no group {path!r} in {where}", f"its groups: {', '.join(names)}")
    return path


def groups(source: Source, key: Key, found: Found, narrowed: bool) -> Iterator[tuple[str, Parts]]:
    """The groups of a file by their path, the root with an empty one."""
    header = read(source, key)
    for group in header["groups"]:
        parts = part(source, key, header, group["path"], found, narrowed)
        if not narrowed or parts.variables or not group["path"]:
            yield group["path"], parts


def read(source: Source, key: Key) -> dict[str, Any]:
    """The header of a file."""
    try:
        header = json.loads(source.bytes(key))
        version = header.get("version", 0)
    except (ValueError, AttributeError):
        raise Corrupt(f"the netCDF header of {label(key)} is damaged", "verify the store") from None
    if version > VERSION:
        raise Invalid(
            f"the netCDF header of {label(key)} has version {version}; this program reads {VERSION}",
            "use a newer Fieldstone",
        )
    return header


def part(source: Source, key: Key, header: dict[str, Any], path: str, found: Found, narrowed: bool) -> Parts:
    """The variables of one group of a file, or if `narrowed` only those that were found."""
    base = {k: v for k, v in key.items() if k != "variable"}
    (own,) = (g for g in header["groups"] if g["path"] == path)
    prefix = f"{path}/" if path else ""
    parts = Parts({}, attributes.decoded(own["attrs"]))
    for g in header["groups"]:
        if g is not own and (not g["path"] or f"{path}/".startswith(f"{g['path']}/")):
            parts.unlimited |= {d["name"] for d in g["dims"] if d["unlimited"]}
    reasons = {}
    for skipped in reversed(header["skipped"]):
        reasons[skipped["what"].partition("[")[0]] = skipped["why"]
    for facts in own["variables"]:
        if facts["dtype"] is not None:
            name = prefix + facts["name"]
            gaps = WithGaps(reasons[name]) if name in reasons else None
            cube = found.get(name)
            stored = cube.chunks if cube is not None else None
            parts.variables[facts["name"]] = variable(source, {**base, "variable": name}, facts, stored, gaps)
    if narrowed:
        narrow(parts, own, prefix, found)
    used = {d for v in parts.variables.values() for d in v.dims}
    parts.unlimited &= used
    here = {d["name"] for d in own["dims"] if d["unlimited"]}
    # Like xarray, for all dimensions of a file's group, even those that no variable has.
    parts.unlimited |= here & used if narrowed and HEADER not in found else here
    return parts


def file_of(key: Key) -> File:
    """The common keywords of all fields of a file."""
    return frozenset((k, v) for k, v in key.items() if k not in ("variable", "step"))


@dataclass(frozen=True)
class WithGaps:
    """Reads a variable of which ingest left out a part."""

    why: str

    def __call__(self, source: Source, key: Key, shape: tuple[int, ...], box: Box) -> np.ndarray:
        """A box of a field; for a missing field the error has the reason."""
        try:
            # By request: `get` would return the only field that has further keywords instead of this one.
            for found in source.store.retrieve({k: [v] for k, v in key.items()}):
                if dict(found.key) == key:
                    return np.asarray(found.array(*box) if box[0] else found.array())
        except NotFound as error:
            missing = error.message
        else:
            missing = f"no field {label(key)}"
        raise NotFound(f"{missing}: the ingest left it out: {self.why}", "open it with drop_variables")


def variable(
    source: Source,
    key: Key,
    facts: dict[str, Any],
    stored: tuple[int, ...] | None,
    read: WithGaps | None = None,
) -> xr.Variable:
    """One variable, not decoded; its values are read on demand."""
    dims = [d.rpartition("/")[2] for d in facts["dims"]]
    shape = tuple(facts["shape"])
    dtype = np.dtype(facts["dtype"]).newbyteorder(">" if facts.get("endian") == "big" else "=")
    held = attributes.decoded(facts["attrs"])
    data: Any
    if 0 in shape:
        data = np.zeros(shape, dtype)
    elif facts["split"]:
        axes = (Axis("step", Counted(shape[0])),)
        data = lazy(FieldArray(source, key, axes, shape[1:], dtype, read=read))
    else:
        data = lazy(FieldArray(source, key, (), shape, dtype, read=read))
    made = xr.Variable(dims, data, held)
    lead = 1 if facts["split"] else 0
    made.encoding["preferred_chunks"] = chunks(dims[:lead], dims[lead:], stored or shape[lead:])
    return made


def narrow(parts: Parts, group: dict[str, Any], prefix: str, found: Found) -> None:
    """Keeps the selection of a request: its variables with their coordinates, its steps."""
    chosen = {}
    for name, cube in found.items():
        if name.startswith(prefix):
            chosen[name.removeprefix(prefix)] = {int(v) for v in cube.axes.get("step", ()) if v is not None}
    keep = {name for name in chosen if name in parts.variables}
    for name in list(keep):
        keep |= set(parts.variables[name].dims)
        keep |= set(str(parts.variables[name].attrs.get("coordinates", "")).split())
    if HEADER not in found:
        parts.variables = {name: v for name, v in parts.variables.items() if name in keep}
    for facts in group["variables"]:
        steps = chosen.get(facts["name"])
        if facts["split"] and steps and len(steps) < facts["shape"][0]:
            dim = facts["dims"][0].rpartition("/")[2]
            before = parts.select.get(dim)
            if before is not None and set(before) != steps:
                raise Invalid(
                    f"the request selects different steps along {dim} for different variables",
                    "give the same steps for all of them",
                )
            parts.select[dim] = sorted(steps)


def label(key: Key) -> str:
    """The name of a file for messages."""
    return ", ".join(f"{k}={v}" for k, v in key.items() if (k, v) != ("variable", HEADER))

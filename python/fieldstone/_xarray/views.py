"""The contents of a store, as one Dataset or as a tree of Datasets.

The nodes of a tree, which ``docs/guide/xarray.md`` promises:

* for arrays and ingested files ``/RUN``, below ``/PROJECT`` if the key has one; the groups of a file are
  below its node;
* if several files share a run, or the fields of a run differ in type or shape, a level ``KEYWORD=VALUE``
  follows for each further keyword that distinguishes them;
* for GRIB messages see :func:`fieldstone._xarray.grib.groups`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fieldstone._native import _level_of, _on_level, _within
from fieldstone._xarray import arrays, grib, netcdf, valid
from fieldstone._xarray.arrays import Parts, Roles, Shared
from fieldstone._xarray.source import Key, Source
from fieldstone.errors import Invalid, NotFound

Node = tuple[str, Parts | list[netcdf.Member] | Exception]
"""Path and variables of a node, or the error that prevents it."""


@dataclass(frozen=True)
class View:
    """How a selection is shown: see :meth:`fieldstone.Store.to_xarray`."""

    combine: str | None = "auto"
    time_dim: str | None = None

    def __post_init__(self) -> None:
        if self.combine not in ("auto", "run", None):
            raise Invalid(f"combine is {self.combine!r}", "give 'auto', 'run' or None")
        if self.time_dim not in (valid.NAME, None):
            raise Invalid(f"time_dim is {self.time_dim!r}", f"give time_dim={valid.NAME!r}, or leave it out")


def dataset(
    source: Source,
    request: Any,
    group: str | None,
    view: View = View(),
) -> Parts | list[netcdf.Member]:
    """Everything that a request selects, as one Dataset; if several files are to be joined, each of them."""
    roles = Roles.of(source.store)
    (grib_messages, request), *others = asked_apart(source, request)
    if others:
        raise Invalid(
            "the request selects GRIB messages and other fields, which cannot share a Dataset",
            "add param=?* (GRIB) or variable=?* (the rest) to the request, or open all "
            "with xarray.open_datatree",
        )
    if grib_messages:
        if group:
            raise Invalid(f"no group {group!r}: the request selects GRIB messages", "leave group= out")
        return grib.describe(source, request, view.time_dim)
    if view.time_dim:
        raise Invalid("time_dim= is for GRIB messages, but the request selects none", "leave it out")
    held, apart = files_and_arrays(source, request, roles)
    if held and apart:
        raise Invalid(
            f"the request selects netCDF files, such as {netcdf.label(held[0])}, and arrays, such as run "
            f"{apart[0]}",
            "choose one of them, such as request={'run': …}, or open all with xarray.open_datatree",
        )
    if held:
        return netcdf.describe(source, request, held, group, view.combine)
    by = [roles.variable] if roles.variable else []
    cubes, order = source.store._cubes(request, by=by)
    path = (group or "").strip("/")
    if path:
        have = ", ".join(sorted(filter(None, by_group(cubes, roles)))) or "none"
        cubes = [cube for cube in cubes if cube.key.get(roles.variable, "").startswith(f"{path}/")]
        if not cubes:
            raise Invalid(f"no group {path!r} in the selection", f"its groups: {have}")
    shared = Shared(order)
    cubes = arrays.with_coordinates(source, cubes, roles, shared)
    parts = arrays.describe(source, cubes, roles, shared, path)
    if not parts.variables:
        raise nothing(source, request, "the request selects only opaque bytes, which are not arrays")
    return parts


def tree(
    source: Source,
    request: Any,
    view: View = View(combine=None),
) -> Iterator[Node]:
    """The nodes of a tree: path and variables. An error in one node does not stop others."""
    for grib_messages, part in asked_apart(source, request):
        if grib_messages:
            yield from tried("GRIB messages", grib.groups(source, part, view.time_dim))
        else:
            yield from runs_of(source, part, request is not None, view)


def tried(path: str, nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes of a part of the store, followed by the error that ended them, if any."""
    try:
        yield from nodes
    except Exception as error:
        yield path, error


def runs_of(source: Source, request: Any, narrowed: bool, view: View) -> Iterator[Node]:
    """The nodes of everything except GRIB; `narrowed`: a request may leave out parts of files."""
    roles = Roles.of(source.store)
    by = [k for k in (roles.project, *roles.run, roles.variable) if k]
    cubes, order = source.store._cubes(request, by=by)
    shared, runs = Shared(order), by_run(cubes, roles)
    shared.declarations.load(source.store, arrays.runs_of([arrays.Cube(cube) for cube in cubes], roles))
    held: dict[Key, list[Key]] = {}
    for key in headers(source, {cube.key.get("run", "") for cube in cubes}, roles):
        held.setdefault(run_of(key, roles), []).append(key)
    files: dict[netcdf.File, netcdf.Found] | None = None

    def nodes_of_files(run: Any, members: list[Any], path: str) -> Iterator[Node]:
        nonlocal files
        own = netcdf.files(members)
        if own is None:
            # A cube may span several files; cubes along the step alone each belong to one. Queried once for
            # all runs.
            if files is None:
                files = netcdf.files(source.store._cubes(request, along=["step"])[0]) or {}
            own = files
        keys = [key for key in held[run] if netcdf.file_of(key) in own]
        if view.combine is not None and len(keys) > 1:
            for group, together in netcdf.groups_of_all(source, request, keys, own):
                yield "/".join(filter(None, (path, group))), together
            return
        for key, below in zip(keys, apart_by(keys, run), strict=True):
            found = own[netcdf.file_of(key)]
            inside = netcdf.groups(source, key, found, narrowed)
            at = "/".join(filter(None, (path, below)))
            yield from tried(at, (("/".join(filter(None, (at, group))), parts) for group, parts in inside))

    for run, members in runs.items():
        path = "/".join(escaped(value) for value in dict(run).values())
        if run in held:
            yield from tried(path, nodes_of_files(run, members, path))
            continue
        below = of_run(source, run, members, roles, shared)
        yield from tried(path, (("/".join(filter(None, (path, name))), parts) for name, parts in below))


def of_run(
    source: Source, run: Any, cubes: Sequence[Any], roles: Roles, shared: Shared
) -> Iterator[tuple[str, Parts]]:
    """The node of a run of arrays, with one below it for each group of its variables; if fields differ, one
    for each value of a keyword.
    """
    cubes = [cube for cube in cubes if cube.dtype is not None]
    odd = [cube for cube in cubes if cube.odd is not None]
    if not cubes:
        return
    for keyword in odd[0].axes if odd else ():
        if keyword == roles.step or not all(keyword in cube.axes for cube in odd):
            continue
        request = {k: [v] for k, v in dict(run).items()}
        by = [k for k in (roles.project, *roles.run, roles.variable, keyword) if k]
        parted, order = source.store._cubes(request, by=by)
        parted = [cube for cube in parted if cube.dtype is not None]
        if any(cube.odd for cube in parted):
            continue
        nodes: dict[str, list[Any]] = {}
        for cube in parted:
            nodes.setdefault(f"{keyword}={escaped(cube.key.get(keyword, ''))}", []).append(cube)
        for name, members in nodes.items():
            yield name, arrays.describe(source, members, roles, Shared(order, shared.declarations))
        return
    for group, members in by_group(cubes, roles).items():
        yield group, arrays.describe(source, members, roles, shared, group)


def by_group(cubes: Sequence[Any], roles: Roles) -> dict[str, list[Any]]:
    """Cubes by the group in the name of their variable; those of the run itself first."""
    groups: dict[str, list[Any]] = {"": []}
    for cube in cubes:
        name = cube.key.get(roles.variable, "") if roles.variable else ""
        groups.setdefault(name.rpartition("/")[0], []).append(cube)
    return {group: members for group, members in groups.items() if members}


def on_level(source: Source, request: Any, level: Any) -> tuple[str, Any]:
    """The group of a level, and the request for only its variables; NotFound if there is no such level."""
    keyword = Roles.of(source.store).variable
    if keyword is None:
        raise Invalid("level= in a store whose schema names no variables", "leave level= out")
    group, there = _on_level(request, keyword, level)
    if not any(True for _ in source.store.list(there)):
        names = source.store.axes().get(keyword, [])
        levels = sorted({found[0] for name in names if (found := _level_of(name)) is not None})
        if int(level) not in levels:
            have = ", ".join(map(str, levels))
            hint = f"the levels are {have}" if levels else "no variable of the store is on a level"
            raise NotFound(f"nothing is on level {level}", hint)
    return group, there


def asked_apart(source: Source, request: Any) -> list[tuple[bool, Any]]:
    """Whether a request selects GRIB messages; for a store of both kinds, one request for each of them."""
    if not Roles.of(source.store).is_mixed:
        return [(is_grib(source, request), request)]
    parts = [(True, _within(request, "param=?*")), (False, _within(request, "variable=?*"))]
    there = [(is_of, part) for is_of, part in parts if any(True for _ in source.store.list(part))]
    if not there:
        raise nothing(source, request, "nothing to open: the store holds no field that the request selects")
    return there


def is_grib(source: Source, request: Any) -> bool:
    """Whether a request selects GRIB messages; raises if it selects nothing."""
    for entry in source.store.list({} if request is None else request):
        return entry.dtype is None and "param" in entry.key
    raise nothing(source, request, "nothing to open: the store holds no field that the request selects")


def files_and_arrays(source: Source, request: Any, roles: Roles) -> tuple[list[Key], list[str]]:
    """Headers of the netCDF files of the runs that a request selects, and the runs without one."""
    runs = source.store.axes({} if request is None else request).get("run", []) if of_files(roles) else []
    held = headers(source, runs, roles)
    having = {key["run"] for key in held}
    return held, [run for run in runs if run not in having] if held else []


def headers(source: Source, runs: Any, roles: Roles) -> list[Key]:
    """Headers of netCDF files; a schema without their keywords has none."""
    return netcdf.headers(source, runs) if of_files(roles) else []


def of_files(roles: Roles) -> bool:
    """Whether the schema has the keywords under which netCDF files are ingested."""
    return (roles.run, roles.variable) == (["run"], "variable")


def run_of(key: Mapping[str, str], roles: Roles) -> Any:
    """Project and run of a key."""
    return tuple((k, key[k]) for k in (roles.project, *roles.run) if k and k in key)


def by_run(cubes: Sequence[Any], roles: Roles) -> dict[Any, list[Any]]:
    """The cubes of each run."""
    runs: dict[Any, list[Any]] = {}
    for cube in cubes:
        runs.setdefault(run_of(cube.key, roles), []).append(cube)
    return runs


def apart_by(keys: Sequence[Key], run: Any) -> list[str]:
    """The keywords that distinguish the files of a run, as a path: none if there is one file."""
    common = {k for k, _ in run} | {"variable"}
    names = [k for k in dict.fromkeys(k for key in keys for k in key) if k not in common]
    names = [k for k in names if len({key.get(k) for key in keys}) > 1]
    return ["/".join(f"{k}={escaped(key.get(k, ''))}" for k in names) for key in keys]


def escaped(value: str) -> str:
    """A value as the name of a node, which has no slash and is not a special name of folders."""
    return "%2E" * len(value) if value in (".", "..") else value.replace("/", "%2F")


def nothing(source: Source, request: Any, why: str) -> NotFound:
    """The error for a request that selects nothing, with the nearest existing values."""
    there = source.store.axes({})
    if not there:
        return NotFound(f"the store {source.url} is empty", "archive and flush something first")
    for keyword, wanted in asked(request):
        if keyword not in there:
            near = difflib.get_close_matches(keyword, there, 3) or list(there)
            return NotFound(
                f"{why}: no field has the keyword {keyword!r}",
                f"nearest: {', '.join(near)}; see store.axes()",
            )
        for value in wanted:
            if value not in there[keyword]:
                near = difflib.get_close_matches(value, there[keyword], 3) or there[keyword][:3]
                return NotFound(
                    f"{why}: no {keyword} {value!r}", f"nearest: {', '.join(near)}; see store.axes()"
                )
    held = ", ".join(f"{len(v)} {k}" for k, v in there.items())
    return NotFound(why, f"it has values of {held}, in other combinations; see store.axes()")


def asked(request: Any) -> Iterator[tuple[str, list[str]]]:
    """Keywords of a request with the single values that it lists, as far as they are known; without those
    that must be absent (``!*``).
    """
    words = ("to", "by", "*", "?*", "None", "")
    if isinstance(request, Mapping):
        for keyword, value in request.items():
            if value == "!*":
                continue
            listed = isinstance(value, Sequence) and not isinstance(value, str)
            yield (
                str(keyword),
                [str(v) for v in (value if listed else str(value).split("/")) if str(v) not in words],
            )
    elif isinstance(request, str):
        for term in request.replace("{", ",").replace("}", ",").split(","):
            keyword, _, value = term.partition("=")
            if value and value.strip() != "!*":
                yield keyword.strip(), [v.strip() for v in value.split("/") if v.strip() not in words]

"""The xarray engine ``fieldstone``: a store as a lazy Dataset, or as a tree of them.

* A store (or request) that holds one ingested netCDF file opens as that file: its dimensions,
  coordinates, attributes, packing and types, from the header of ``spec/netcdf-header.md``.
* Several files are joined if their coordinates differ and do not overlap (``combine="auto"``).
* Array fields written by key get a leading dimension for each keyword with several values.
* GRIB fields get their dimensions from the MARS axes and their values from eccodes; with
  ``time_dim="valid_time"`` one datetime axis in place of date, time and step.
* ``open_datatree`` gives each run a node, however many there are, in one pass over the index.
* A file is a container (netCDF classic, or with a partitioned header): it opens as with xarray's netCDF
  engines, and its paths are the nodes of a tree.

Nothing is read before it is needed, except netCDF's dimension coordinates and, for GRIB, one message of each
variable, which is the only source of the grid. Arrays hold no lock and can be pickled; a Dataset reads only
from the one snapshot that was current when it was opened.

Example::

    ds = xarray.open_dataset("forecast.store", engine="fieldstone", request={"run": "era5"})
    tree = xarray.open_datatree("forecast.store", engine="fieldstone")
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xarray as xr
from xarray.backends import BackendEntrypoint

from fieldstone._xarray import build, container, views
from fieldstone._xarray.source import Source
from fieldstone.errors import Invalid, NotFound

MARKER = "fieldstone.store"
"""The file that marks a folder as a store."""


class FieldstoneBackend(BackendEntrypoint):
    """``xarray.open_dataset(url, engine="fieldstone", request=…)``."""

    description = "Open a Fieldstone store, or a container: netCDF classic, or with a partitioned header"
    supports_groups = True
    open_dataset_parameters = (
        "filename_or_obj",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "drop_variables",
        "use_cftime",
        "decode_timedelta",
        "request",
        "at",
        "group",
        "combine",
        "time_dim",
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether this engine should open it by default: a URL of ours, a store's folder, a partitioned
        header."""
        try:
            path = os.fspath(filename_or_obj)
        except TypeError:
            return False
        if not isinstance(path, str):
            return False
        return (
            path.startswith("fieldstone:")
            or (Path(path) / MARKER).is_file()
            or container.is_partitioned(path)
        )

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool | None = None,
        decode_times: Any = None,
        concat_characters: bool | None = None,
        decode_coords: Any = None,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        request: Any = None,
        at: Any = None,
        group: str | None = None,
        combine: str | None = "auto",
        time_dim: str | None = None,
    ) -> xr.Dataset:
        """Opens what `request` selects from a store, as it was `at` a version, decoded by CF's rules.

        With `combine` "auto" several files are joined along coordinates that differ and do not overlap, with
        "run" also along a dimension of their runs; with None several files are an error. `time_dim`
        "valid_time" gives GRIB messages one datetime axis in place of date, time and step. For a container,
        `group` names a path.
        """
        decoding = _given(
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
        path = os.fspath(filename_or_obj)
        source: Any
        if container.is_container(path):
            _no_store(path, request, at, None, time_dim)
            source = container.File(path)
            parts = container.dataset(source, group)
        else:
            source = Source.open(path, at)
            parts = views.dataset(source, request, group, views.View(combine, time_dim))
        made = _made(source, parts, drop_variables, decoding, combine)
        made.set_close(source.close)
        return made

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool | None = None,
        decode_times: Any = None,
        concat_characters: bool | None = None,
        decode_coords: Any = None,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        request: Any = None,
        at: Any = None,
        group: str | None = None,
        combine: str | None = None,
        time_dim: str | None = None,
    ) -> dict[str, xr.Dataset]:
        """The nodes of the tree by path; `group` selects a node and everything below it.

        With `combine` "auto" or "run" the files of one run are joined in its node; with None each gets a
        node.
        """
        decoding = _given(
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
        path = os.fspath(filename_or_obj)
        if container.is_container(path):
            _no_store(path, request, at, combine, time_dim)
            file = container.File(path)
            return _nodes(file, container.groups(file), group, drop_variables, decoding)
        source = Source.open(path, at)
        found = views.tree(source, request, views.View(combine, time_dim))
        return _nodes(source, found, group, drop_variables, decoding, combine, whole=False)

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> xr.DataTree:
        """``xarray.open_datatree(url, engine="fieldstone", request=…)``: a node for each run."""
        path = os.fspath(filename_or_obj)
        if not container.is_container(path):
            return _tree(self.open_groups_as_dict(path, **options))
        _no_store(path, *(options.pop(name, None) for name in ("request", "at", "combine", "time_dim")))
        group, drop_variables = options.pop("group", None), options.pop("drop_variables", None)
        file = container.File(path)
        found = container.tree(file, (group or "").strip("/"))
        return xr.DataTree.from_dict(_nodes(file, found, group, drop_variables, _given(**options)))


def to_xarray(
    store: Any,
    request: Any = None,
    combine: str | None = "auto",
    time_dim: str | None = None,
    box: Any = None,
    level: int | None = None,
) -> xr.Dataset:
    """The selection of `request` in an open store as a lazy Dataset, on a level and cut to a box if these are
    given."""
    source = Source(store)
    group = None
    if level is not None:
        group, request = views.on_level(source, request, level)
    parts = views.dataset(source, request, group, views.View(combine, time_dim))
    # xarray.open_dataset gives dimension coordinates their indexes; here this call has to.
    made = build.with_indexes(_made(source, parts, None, {}, combine))
    if box is None:
        return made
    from fieldstone._xarray.region import cut

    return cut(made, box)


def _made(
    source: Any, parts: Any, drop_variables: Any, decoding: dict[str, Any], combine: str | None
) -> xr.Dataset:
    """The Dataset of one described file, or of several that are joined."""
    if not isinstance(parts, list):
        return build.dataset(source, parts, drop_variables, decoding)
    from fieldstone._xarray import combine as joining
    from fieldstone._xarray import places

    files = []
    for member in parts:
        try:
            data = build.dataset(source, member.parts, drop_variables, decoding)
        except Exception as error:
            error.add_note(f"in the file {member.name}, one of {len(parts)}; choose files by request=")
            raise
        files.append(places.File(member.name, member.key, member.group, data))
    return joining.dataset(source, files, combine == "run")


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _no_store(path: str, *given: Any) -> None:
    if any(value is not None for value in given):
        raise Invalid(
            f"{path} is a file: request=, at=, combine= and time_dim= are for stores",
            "leave them out; group= names a path",
        )


def _nodes(
    source: Any,
    found: Iterable[tuple[str, Any]],
    group: str | None,
    drop_variables: Any,
    decoding: dict[str, Any],
    combine: str | None = None,
    whole: bool = True,
) -> dict[str, xr.Dataset]:
    """The nodes by path; unless the tree must be `whole`, a warning names each node that cannot be shown."""
    wanted, nodes, failed = (group or "").strip("/"), {}, []
    for path, parts in found:
        if wanted and path != wanted and not path.startswith(f"{wanted}/"):
            continue
        try:
            if isinstance(parts, Exception):
                raise parts
            made = _made(source, parts, drop_variables, decoding, combine)
        except Exception as error:
            error.add_note(f"at node /{path}; drop_variables= or request= leave it out")
            if whole:
                raise
            failed.append((f"/{path}", error))
            continue
        nodes["/" + path[len(wanted) :].strip("/")] = made
    if failed and not nodes:
        raise failed[0][1]
    for path, error in failed:
        _left_out(path, str(error))
    if wanted and not nodes:
        raise NotFound(f"no group {wanted!r} in the tree", "open it without group= to see its groups")
    return nodes


def _left_out(path: str, why: str) -> None:
    """Warns of a part of a store that is not in its tree."""
    warnings.warn(
        f"{path} is not in the tree: {' '.join(why.split())} (open_dataset opens it by request= and group=)",
        UserWarning,
        stacklevel=5,
    )


def _tree(nodes: dict[str, xr.Dataset]) -> xr.DataTree:
    """The tree of nodes; a node that xarray cannot place below another is left out with a warning."""
    try:
        return xr.DataTree.from_dict(nodes)
    except ValueError:
        pass
    kept: dict[str, xr.Dataset] = {}
    for path in sorted(nodes, key=lambda path: path.count("/")):
        parts = path.strip("/").split("/")
        around = ["/", *("/" + "/".join(parts[:n]) for n in range(1, len(parts)))]
        above = {other: kept[other] for other in around if other in kept and other != path}
        try:
            xr.DataTree.from_dict({**above, path: nodes[path]})
        except ValueError as error:
            _left_out(path, str(error))
            continue
        kept[path] = nodes[path]
    return xr.DataTree.from_dict({path: kept[path] for path in nodes if path in kept})

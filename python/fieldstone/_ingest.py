"""Ingests files into a store, and shows progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from datetime import tzinfo
from pathlib import Path
from typing import Any, Literal, TextIO

from ._native import _fdb_schema, _ingest, _ingest_fdb, _items, _suggest_schema, open
from ._store import Store
from .errors import Invalid, NotFound
from .reports import IngestReport

_Path = str | os.PathLike[str]
_Progress = Callable[[Path, int, int, int, int], object]
_BAR = 30


def _offset(timezone: str | tzinfo) -> str:
    """The offset of a timezone from UTC, as text such as ``+01:00``."""
    if isinstance(timezone, str):
        return timezone
    ahead = timezone.utcoffset(None)
    if ahead is None:
        raise Invalid(
            f"timezone={timezone} has no fixed offset from UTC",
            hint='give the offset of the listing, such as "+01:00", or list with TZ=UTC sacct',
        )
    minutes = round(ahead.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def ingest(
    store: Store | _Path,
    paths: _Path | Iterable[_Path],
    key: Any = None,
    *,
    request: Any = None,
    copy: bool = True,
    mesh: str | None = None,
    tree: bool = False,
    recursive: bool = True,
    step_dim: str | Literal[False] | None = None,
    timezone: str | tzinfo = "UTC",
    schema: _Path | None = None,
    progress: Literal["auto"] | bool | Callable[[int, int], object] = "auto",
) -> IngestReport:
    """Ingests netCDF and GRIB files, fields of an FDB, or recorded provenance into a store.

    A netCDF file becomes a field for each variable and value of its leading coordinate, under ``run`` (the
    file's name), ``variable`` and ``step``; a GRIB file becomes a field for each message, byte for byte,
    under its MARS keys. `key` has further keywords for every field; ``run`` in it replaces the file's name.

    `paths` are files, folders, and patterns (``heap/**/*.nc``). A folder gives all its files, with
    ``recursive=False`` only those directly in it; names that begin with a dot are left out.

    `store` is an open store or a URL. A new store that was opened without a schema gets the one that fits the
    files: ``mars`` for GRIB, ``mixed`` for GRIB and netCDF, otherwise ``simulation``. With a URL, `schema`
    sets another one for a new store; for an existing store it has to be the store's own.

    `step_dim` names the dimension along which variables of netCDF files are split into one field for each
    ``step``. By default it is a leading dimension of time or levels; False splits none. A file that was
    ingested before stays as it is.

    With ``copy=False`` the values of netCDF classic files and GRIB messages stay in the files: the store
    keeps their locations, checksums, and the file's size and change time, and reads them from the file. If
    the file is changed or removed, reads raise Corrupt; they never return wrong values. If it is ingested
    again with other bytes, the new netCDF fields are added next to the old ones, under ``source``, unless
    these are removed before. Other files are skipped.

    ``fdb:CONFIG`` in place of the files is an existing FDB, by the path of its YAML configuration, read
    through pyfdb; `request` selects its fields (default: all). Keys are those that FDB lists, and a new store
    gets the FDB's own schema. Each dataset is one transaction; an error of the FDB raises, datasets ingested
    before it stay, and calling again continues.

    `timezone` is that of the times in a listing of ``sacct``: an offset from UTC (``"+01:00"``), or a tzinfo
    with a fixed offset. Invalid for others.

    Darshan logs, the text of ``sacct -P`` with its header, OpenLineage events (JSON) and, with ``tree=True``,
    directories go into the provenance graph, ``store.graph``, and add to its contents. Events of one run may
    be spread over several files and calls; the events of one call are counted at its last file. History that
    is ingested twice is stored once. A directory and its contents (``has``) get their owners (``ownedBy``);
    when it is ingested again, the relations of removed entries end, unless another user put them, which a
    note reports.

    With `mesh` only the unstructured mesh of a file is ingested, under that name: UGRID, MPAS, ICON, ESMF,
    SCRIP, Exodus, FESOM (also its folder), GEOS, SU2, gmsh, VTK, AFLR3, Medit, Abaqus and others
    (docs/guide/meshes.md). The store keeps it once, by its content; ``store.mesh(name)`` finds it. Nodes and
    cells keep the file's order; ``report.skipped`` names other files, skipped cells, and why.

    A netCDF file of ``store.export`` restores the metadata of its fields, and fields that were archived by
    key get their keys back. A file that contradicts the store's declarations is skipped.

    A file is ingested whole or not at all and is visible when the call returns; a file that was ingested
    before adds nothing. The report has each file with its key, skipped files and parts with the reasons, and
    totals (``print(report)``). If nothing could be ingested, Invalid is raised, with ``.report``.
    KeyboardInterrupt has ``.report``, too: ingested files stay, and calling again continues. Unavailable is
    raised if no reader can be started.

    `progress`: "auto" shows a bar on a terminal and otherwise a line for each file, on stderr; False shows
    nothing; a function is called with (bytes done, total bytes).
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else _items(paths)
    files = [Path(os.fspath(path)) for path in listed]
    python = os.environ.get("FIELDSTONE_PYTHON") or sys.executable or None
    shown = _shown(progress, sys.stderr)
    # From the original argument, because a Path would merge slashes.
    if len(files) == 1 and (config := os.fspath(listed[0])).startswith("fdb:"):
        if not copy:
            raise Invalid("the fields of an FDB cannot stay where they are", hint="leave out copy=False")
        if mesh is not None:
            raise Invalid("an FDB has no mesh", hint="name a file, and leave out mesh= for fields")
        config = config.removeprefix("fdb:")
        if isinstance(store, Store):
            return _ingest_fdb(store, config, request, key, python, shown)
        with _open(store, lambda: _fdb_schema(config, python), schema) as opened:
            return _ingest_fdb(opened, config, request, key, python, shown)
    if request is not None:
        raise Invalid(
            "files are taken whole, without a request", hint="a request selects fields of fdb:CONFIG"
        )
    options = (key, python, shown, copy, tree, mesh, recursive, step_dim, _offset(timezone))
    try:
        if isinstance(store, Store):
            if schema is not None:
                raise Invalid(
                    "an open store already has its schema",
                    hint="give schema= where the store is opened, or give its URL",
                )
            return _ingest(store, files, *options)
        with _open(store, lambda: _suggest_schema(files), schema) as opened:
            return _ingest(opened, files, *options)
    except KeyboardInterrupt as interrupt:
        report = getattr(interrupt, "report", None)
        if report is not None:
            interrupt.add_note(
                f"{report}\ncall again to continue: files already taken stay and are not taken twice"
            )
        raise


def _open(url: _Path, fitting: Callable[[], str], schema: _Path | None = None) -> Store:
    if schema is not None:
        return open(url, schema=schema)
    try:
        open(url, "r").close()
    except NotFound:
        return open(url, schema=fitting())
    return open(url)


def _shown(progress: Any, out: TextIO) -> _Progress | None:
    if callable(progress):
        return lambda path, index, files, done, of: progress(done, of)
    if not progress:
        return None
    return _bar(out) if out.isatty() else _lines(out)


def _bar(out: TextIO) -> _Progress:
    """A progress line that is overwritten, and removed at the end."""
    import shutil  # with its compressors, which few calls need

    def show(path: Path, index: int, files: int, done: int, of: int) -> None:
        filled = _BAR * done // of if of else _BAR
        bar = "█" * filled + "·" * (_BAR - filled)
        end = "" if done < of or index + 1 < files else "\r\x1b[K"
        text = f"{bar} {done / 2**20:.1f}/{of / 2**20:.1f} MiB  {index + 1} of {files}: {path.name}"
        # A line that wraps could not be overwritten.
        room = shutil.get_terminal_size().columns - 1
        out.write(f"\r\x1b[K{text if len(text) <= room else text[: room - 1] + '…'}{end}")
        out.flush()

    return show


def _lines(out: TextIO) -> _Progress:
    """Prints a line when a file begins."""
    begun = -1

    def show(path: Path, index: int, files: int, done: int, of: int) -> None:
        nonlocal begun
        if index > begun:
            begun = index
            print(f"reading {path.name} ({index + 1} of {files})", file=out, flush=True)

    return show

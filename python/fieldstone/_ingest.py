"""Files into a store, and what is shown meanwhile."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, TextIO

from ._native import _fdb_schema, _ingest, _ingest_fdb, _items, _suggest_schema, open
from ._store import Store
from .errors import Invalid, NotFound
from .reports import IngestReport

_Path = str | os.PathLike[str]
_Progress = Callable[[Path, int, int, int, int], object]
_BAR = 30


def ingest(
    store: Store | _Path,
    paths: _Path | Iterable[_Path],
    key: Any = None,
    *,
    request: Any = None,
    copy: bool = True,
    mesh: str | None = None,
    tree: bool = False,
    progress: Literal["auto"] | bool | Callable[[int, int], object] = "auto",
) -> IngestReport:
    """Takes netCDF and GRIB files, fields of an FDB, or recorded provenance into a store.

    A netCDF file becomes a field per variable and value of its leading coordinate, under ``run`` (the
    file's name), ``variable`` and ``step``; a GRIB file a field per message, byte for byte, under its MARS
    keys. `key` has further keywords for every field; ``run`` in it takes the place of the file's name.

    `store` is an open store or a URL. A store that is new and was opened without a schema gets the one
    that fits the first file: ``mars`` for GRIB, ``simulation`` for netCDF.

    With ``copy=False`` the values of netCDF classic files stay where they are: the store keeps their
    places, checksums, and the file's size and change time, and reads them from the file. A file that
    is changed or goes away is Corrupt from then on, and never read silently; taken again with other bytes
    it stands beside the old fields, under ``source``, unless these are removed before. Other files are
    skipped.

    ``fdb:CONFIG`` in place of the files is an existing FDB, by the path of its YAML configuration, read
    through pyfdb; `request` selects fields of it, all where absent. Keys are those that FDB lists, and a
    new store gets the FDB's own schema. Each dataset of it is one transaction; what goes wrong with the
    FDB raises, datasets taken before it stay, and the same call again goes on.

    Darshan logs, the text of ``sacct -P`` with its header (times in UTC), OpenLineage events (JSON) and, with
    ``tree=True``, directories go into the provenance graph, ``store.graph``. Events of one run may stand in
    several files of one call; what they come to is counted at the last. History that is taken twice is there
    once.

    With `mesh` the unstructured mesh of a file is taken under that name, and nothing else of it: UGRID, MPAS,
    ICON, ESMF, SCRIP, Exodus, FESOM (also its folder), GEOS, SU2, gmsh, AFLR3 and what else meshio reads. It
    is kept once, by its content, and found by ``store.mesh(name)``; what is no mesh is skipped with the
    reason.

    A file is taken whole or not at all and is visible when this returns; one that was taken before adds
    nothing. What could not be taken is told in the report and raises nothing. Unavailable is raised where
    no reader can be started.

    `progress`: "auto" shows a bar on a terminal and a line per file elsewhere, on stderr; False shows
    nothing; a function is called with (bytes done, bytes in all).
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else _items(paths)
    files = [Path(os.fspath(path)) for path in listed]
    python = os.environ.get("FIELDSTONE_PYTHON") or sys.executable or None
    shown = _shown(progress, sys.stderr)
    if len(files) == 1 and (config := os.fspath(listed[0])).startswith("fdb:"):
        if not copy:
            raise Invalid("the fields of an FDB cannot stay where they are", hint="leave out copy=False")
        if mesh is not None:
            raise Invalid("an FDB has no mesh", hint="name a file, and leave out mesh= for fields")
        config = config.removeprefix("fdb:")
        if isinstance(store, Store):
            return _ingest_fdb(store, config, request, key, python, shown)
        with _open(store, lambda: _fdb_schema(config, python)) as opened:
            return _ingest_fdb(opened, config, request, key, python, shown)
    if request is not None:
        raise Invalid(
            "files are taken whole, without a request", hint="a request selects fields of fdb:CONFIG"
        )
    if isinstance(store, Store):
        return _ingest(store, files, key, python, shown, copy, tree, mesh)
    with _open(store, lambda: _suggest_schema(files)) as opened:
        return _ingest(opened, files, key, python, shown, copy, tree, mesh)


def _open(url: _Path, fitting: Callable[[], str]) -> Store:
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
    """A line that is written over, and removed at the end."""

    def show(path: Path, index: int, files: int, done: int, of: int) -> None:
        filled = _BAR * done // of if of else _BAR
        bar = "█" * filled + "·" * (_BAR - filled)
        end = "" if done < of or index + 1 < files else "\r\x1b[K"
        text = f"{bar} {done / 2**20:.1f}/{of / 2**20:.1f} MiB  {index + 1} of {files}: {path.name}"
        # A line that wraps cannot be taken back.
        room = shutil.get_terminal_size().columns - 1
        out.write(f"\r\x1b[K{text if len(text) <= room else text[: room - 1] + '…'}{end}")
        out.flush()

    return show


def _lines(out: TextIO) -> _Progress:
    """A line when a file begins."""
    begun = -1

    def show(path: Path, index: int, files: int, done: int, of: int) -> None:
        nonlocal begun
        if index > begun:
            begun = index
            print(f"reading {path.name} ({index + 1} of {files})", file=out, flush=True)

    return show

"""Receives a request and sends its frames. :func:`answer` raises nothing except for a broken pipe."""

from __future__ import annotations

import importlib
import os
import re
import stat
import sys

from fieldstone._helper import PROTOCOL
from fieldstone._helper.files import open_plain
from fieldstone._helper.frames import Channel, ProtocolError, RequestError

TYPE_CHECKING = False
if TYPE_CHECKING:  # loading typing takes longer than everything used from it
    from collections.abc import Callable
    from typing import Any

    from fieldstone._helper.grib_keys import Header

CDF_MAGIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
PARTITIONED_MAGIC = b"FSP"
# The first bytes of a container until its writer closes it.
UNFINISHED_MAGIC = b"FSU"
# The global attribute of a file whose names are paths (spec/netcdf-classic.md).
PATHS_ATTRIBUTE = "fieldstone_paths"
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# Files of meshes, which only `mesh` ingests.
MESH_NAMES = (
    ".su2",
    ".msh",
    ".vtk",
    ".vtu",
    ".ugrid",
    ".mesh",
    ".meshb",
    ".inp",
    ".bdf",
    ".off",
    ".obj",
    ".stl",
)
MESH_NAMES += (".ply", ".avs", ".xdmf", ".med", ".cgns")
MESH_BEGINNINGS = (b"# vtk DataFile", b"$MeshFormat", b"<VTKFile", b"NDIME=", b"NZONE=")
# A GRIB file may begin with bulletin headers; this much is searched for the first message.
GRIB_SEARCH = 64 << 10
GRIB_START = re.compile(rb"GRIB...[\x01\x02]", re.DOTALL)


def answer(channel: Channel, header: dict[str, Any], payload: bytes) -> None:
    """Answers one request; any error in it becomes an ``error`` frame."""
    try:
        if (spoken := header.get("protocol", PROTOCOL)) != PROTOCOL:
            raise RequestError(
                "Unavailable",
                f"the helper speaks version {PROTOCOL} of its protocol, not {spoken}",
                "install the program and the Python package from one release",
            )
        match header.get("op"):
            case "version":
                channel.send(version())
                channel.done()
            case "ingest":
                ingest(channel, header, payload)
            case "decode":
                module("grib", "eccodes", "grib").decode_request(channel, payload)
            case "grib_keys":
                module("grib_keys", "eccodes", "grib").keys_request(channel, header, payload, headers())
            case "grib_declared":
                module("grib", "eccodes", "grib").declared_request(channel, header, payload)
            case "fdb":
                module("fdb", "pyfdb", "fdb").answer(channel, header)
            case "plot":
                module("plot", "matplotlib", "plot").plot_request(channel, header, payload)
            case "export":
                load_package()
                module("export", "netCDF4", "netcdf").export_request(channel, header)
            case "rows":
                module("rows", "pyarrow", "parquet").rows_request(channel, header)
            case "darshan":
                module("darshan", "darshan", "darshan").darshan_request(channel, header, payload)
            case "mesh":
                module("mesh", "numpy", "mesh").mesh_request(channel, header, payload)
            case op:
                ops = "version, ingest, decode, grib_keys, grib_declared, fdb, plot, export, rows, darshan"
                ops += ", mesh"
                raise RequestError("Invalid", f"unknown op {op!r}", f"ops: {ops}")
        channel.end()
    except (BrokenPipeError, ProtocolError):
        raise
    except RequestError as error:
        channel.fail(error.kind, str(error), error.hint, error.code)
    except MemoryError:
        channel.fail("Unavailable", "out of memory", code="out-of-memory")
    except Exception as error:  # this process can report errors only in its reply
        channel.fail("Internal", f"{type(error).__name__}: {error}")


def module(name: str, needs: str, extra: str) -> Any:
    """A module of this package, or ``Unavailable`` that names the missing library."""
    try:
        return importlib.import_module(f"fieldstone._helper.{name}")
    except (ImportError, RuntimeError, OSError) as error:
        message = f"the Python package {needs} cannot be loaded: {error}"
        hint = f"pip install 'fieldstone[{extra}]'"
        raise RequestError("Unavailable", message, hint, "library-missing") from None


def load_package() -> None:
    """Loads the package `fieldstone` if the helper was started without it."""
    package = sys.modules["fieldstone"]
    if "__version__" not in vars(package):
        package.__spec__.loader.exec_module(package)


def headers() -> Callable[[bytes], Header]:
    """The class that opens the header of a GRIB message in the shortest time."""
    try:
        return importlib.import_module("fieldstone._helper.libeccodes").reader()
    except (ImportError, RuntimeError, OSError):
        return module("grib", "eccodes", "grib").Handle


def version() -> dict[str, Any]:
    """Protocol and library versions; null for a library that is missing."""
    import platform

    facts: dict[str, Any] = {"kind": "version", "protocol": PROTOCOL, "python": platform.python_version()}
    for name in ("numpy", "netCDF4", "matplotlib"):
        try:
            facts[name] = importlib.import_module(name).__version__
        except (ImportError, RuntimeError, OSError):
            facts[name] = None
    try:
        facts["eccodes"] = importlib.import_module("eccodes").codes_get_api_version()
    except (ImportError, RuntimeError, OSError):
        facts["eccodes"] = None
    return facts


def ingest(channel: Channel, header: dict[str, Any], payload: bytes) -> None:
    """Identifies the format of a file and calls its reader."""
    path = header.get("path")
    if path is None:
        path = os.fsdecode(payload)
    if not isinstance(path, str) or not path:
        raise RequestError("Invalid", "ingest needs a path")
    try:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            raise RequestError("Invalid", "not a regular file", code="file-kind")
        form = sniff(path, facts.st_size)
    except OSError as error:
        kinds = {
            FileNotFoundError: ("NotFound", "file-not-found"),
            PermissionError: ("Denied", "permission-denied"),
        }
        kind, code = kinds.get(type(error), ("Unavailable", "io-failed"))
        raise RequestError(kind, error.strerror or str(error), code=code) from None
    if form == "container" or (form == "netcdf" and _has_paths(path, facts.st_size)):
        load_package()
        module("container", "numpy", "netcdf").ingest(channel, path, header)
    elif form == "netcdf":
        module("netcdf", "netCDF4", "netcdf").ingest(channel, path, header)
    elif form == "grib":
        module("grib", "eccodes", "grib").ingest(channel, path)
    elif form == "unfinished":
        raise RequestError(
            "Corrupt",
            "the container is not finished: its writer has not closed it yet, or was killed",
            "take it when its writer has closed it; if the writer was killed, write it again",
            "container-unfinished",
        )
    else:
        hint = None
        if _is_mesh(path):
            form = f"it looks like a mesh, but is {form}"
            hint = "ingest the mesh of a file with mesh=NAME, in the program with --mesh NAME"
        raise RequestError("Invalid", form, hint, "file-format")


def _is_mesh(path: str) -> bool:
    """Whether a file begins, or is named, like files of meshes."""
    if path.lower().endswith(MESH_NAMES):
        return True
    with open_plain(path) as file:
        return file.read(256).lstrip().startswith(MESH_BEGINNINGS)


def _has_paths(path: str, size: int) -> bool:
    """Whether names of a netCDF file are paths: then Fieldstone wrote it, and reads it itself."""
    from fieldstone._helper.classic import HeaderError, Layout

    with open_plain(path) as file:
        try:
            return PATHS_ATTRIBUTE in Layout.global_attributes(file, size)
        except HeaderError:
            return False  # HDF5, or a file for which netCDF's reader reports the error


def sniff(path: str, size: int) -> str:
    """``netcdf``, ``container``, ``unfinished``, ``grib``, or the reason why a file is not one of these."""
    if size == 0:
        return "empty file"
    with open_plain(path) as file:
        head = file.read(GRIB_SEARCH)
        if head[:4] in CDF_MAGIC or head[:8] == HDF5_MAGIC:
            return "netcdf"
        if head[:3] == PARTITIONED_MAGIC:
            return "container"
        if head[:3] == UNFINISHED_MAGIC:
            return "unfinished"
        if GRIB_START.search(head):
            return "grib"
        # HDF5 allows a user block of 512 * 2^n bytes before its signature.
        offset = 512
        while offset + 8 <= size and offset <= 1 << 30:
            file.seek(offset)
            if file.read(8) == HDF5_MAGIC:
                return "netcdf"
            offset *= 2
    return "neither GRIB nor netCDF"

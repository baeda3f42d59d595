"""Unstructured meshes of other programs as plain arrays, for ``fst.ingest(store, path, mesh=NAME)``.

=====================  ==================  ========================================================
format                 read by             gives
=====================  ==================  ========================================================
UGRID                  ``mesh_ugrid``      nodes; edges, faces and volumes as far as the file has them
Exodus                 ``mesh_exodus``     nodes; faces and volumes by the type of each block
MPAS, ICON             ``mesh_globe``      nodes, faces and edges, of a sphere or a plane
SU2                    ``mesh_su2``        nodes; faces and volumes
gmsh                   ``mesh_gmsh``       nodes; faces and volumes
VTK (.vtk), VTU        ``mesh_vtk``,       nodes; faces and volumes
                       ``mesh_vtu``
FESOM's folder         ``mesh_fesom``      nodes and faces; edges if there is a file of them
ESMF, SCRIP, FESOM,    uxarray             nodes and faces in degrees, in the order of the file's cells
GEOS
AFLR3, Medit, TetGen,  ``mesh_aflr3`` …    nodes; faces and volumes
AVS-UCD, Abaqus
OFF, OBJ, STL, PLY     ``mesh_surfaces``   nodes and faces
MED, XDMF, Nastran     ``mesh_meshio``     cells of meshio, if it keeps all of them in order
=====================  ==================  ========================================================

uxarray also reads UGRID, Exodus, MPAS and ICON, but it lacks volumes, treats the corners of a hexahedron as a
face, changes longitudes, and expects angles in planar meshes. meshio shifts numbers of lines that end with
CRLF, groups cells by kind, and drops unknown ones. Therefore this package reads most formats itself,
unchanged.

Invariants:

* nodes are counted from 0 and keep their order; an entry is the number of a node, or -1 after the others of
  its row;
* cells keep the order of the file, in each of edges, faces and volumes; anything that is not read is refused
  by name, or listed in ``omitted``;
* elements of higher order are reduced to their corners, in the order of VTK, which is UGRID's;
* nodes of a surface on a sphere around the origin are in degrees, like nodes of the formats for spheres, and
  the sphere's radius is an attribute; other nodes are unchanged;
* lines are edges only if there is nothing else: next to faces and volumes they mark boundaries, or are
  ``omitted``.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.frames import RequestError
from fieldstone._helper.mesh_arrays import LATITUDE, LOCATIONS, LONGITUDE, MeshArrays, checked, no_mesh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fieldstone._helper.frames import Channel

CDF_MAGIC = b"CDF"
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# HDF5 files that netCDF readers cannot read as meshes.
OTHER_HDF5 = (".med", ".xdmf", ".h5m", ".cgns", ".hmf")
HEAD = 4096
# Modules that read a file, by its name.
READERS = {
    ".su2": "mesh_su2",
    ".ugrid": "mesh_aflr3",
    ".mesh": "mesh_medit",
    ".meshb": "mesh_medit",
    ".avs": "mesh_avs",
    ".node": "mesh_tetgen",
    ".ele": "mesh_tetgen",
    **dict.fromkeys((".off", ".obj", ".stl", ".ply"), "mesh_surfaces"),
}
FESOM_FILES = ("nod2d.out", "elem2d.out")


def mesh_request(channel: Channel, header: dict[str, Any], payload: bytes) -> None:
    """Answers `mesh` with one `mesh` frame."""
    path = header.get("path")
    if path is None:
        path = os.fsdecode(payload)
    mesh = read_mesh(path)
    arrays = [(axis, values, "<f8", mesh.node_attrs.get(axis, {})) for axis, values in mesh.nodes.items()]
    for kind in LOCATIONS:
        if (rows := getattr(mesh, kind)) is not None:
            arrays.append((kind, rows, "<i8", {}))
    described = [
        {"name": name, "dtype": dtype, "shape": list(values.shape), "attrs": _plain(attrs)}
        for name, values, dtype, attrs in arrays
    ]
    content = b"".join(np.ascontiguousarray(values, dtype).tobytes() for _, values, dtype, _ in arrays)
    attrs = _plain(mesh.attrs | {"source_format": mesh.format})
    for what, why in mesh.omitted:
        channel.skipped(what, why)
    channel.send({"kind": "mesh", "format": mesh.format, "attrs": attrs, "arrays": described}, content)
    channel.done()


def _plain(attrs: dict[str, Any]) -> dict[str, Any]:
    """Texts and finite numbers, in JSON's form."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in attrs.items()}
    return {
        name: value
        for name, value in plain.items()
        if isinstance(value, str | int) or (isinstance(value, float) and np.isfinite(value))
    }


def read_mesh(path: str | os.PathLike[str]) -> MeshArrays:
    """The mesh of a file, or of a folder with FESOM's text files.

    RequestError: ``NotFound`` if there is none; ``Invalid`` for a file that is not a mesh, or has unknown
    elements; ``Corrupt`` for an element with a node that does not exist; ``Unavailable`` for a missing
    package.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        return checked(_folder(path), path)
    try:
        with open_plain(path) as file:
            head = file.read(HEAD)
    except FileNotFoundError:
        raise RequestError("NotFound", f"there is no file {path}", code="file-not-found") from None
    except OSError as error:
        raise RequestError("Invalid", f"cannot read {path}: {error}") from None
    if not head:
        raise no_mesh(path, "the file is empty")
    is_netcdf = head[:3] == CDF_MAGIC or head[:8] == HDF5_MAGIC
    if is_netcdf and not path.lower().endswith(OTHER_HDF5):
        return checked(_by_netcdf(path), path)
    reader = importlib.import_module(f"fieldstone._helper.{_reader(path, head)}")
    return checked(reader.read(path), path)


def _reader(path: str, head: bytes) -> str:
    """The module that reads a file, by its first bytes, or else by its name."""
    lines = head.lstrip()
    extension = os.path.splitext(path)[1].lower()
    if lines.startswith(b"# vtk DataFile") or extension == ".vtk":
        return "mesh_vtk"
    if b"<VTKFile" in head or extension in (".vtu", ".pvtu"):
        return "mesh_vtu"
    if lines.startswith((b"$MeshFormat", b"$Comments", b"$NOD")):
        return "mesh_gmsh"
    if extension == ".inp":
        return "mesh_abaqus" if lines.startswith(b"*") else "mesh_avs"
    return READERS.get(extension, "mesh_meshio")


def _folder(path: str) -> MeshArrays:
    if not all(os.path.exists(os.path.join(path, name)) for name in FESOM_FILES):
        raise no_mesh(path, f"the folder lacks {' and '.join(FESOM_FILES)}, the files of a mesh of FESOM")
    return importlib.import_module("fieldstone._helper.mesh_fesom").read(path)


def package(name: str) -> Any:
    try:
        # Some print messages on import that do not matter to a reader of a mesh.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except (ImportError, RuntimeError, OSError) as error:
        message = f"the Python package {name} cannot be loaded: {error}"
        raise RequestError(
            "Unavailable", message, "pip install 'fieldstone[mesh]'", "library-missing"
        ) from None


# -- netCDF ------------------------------------------------------------------------------------------------


def _by_netcdf(path: str) -> MeshArrays:
    from fieldstone._helper import mesh_exodus, mesh_globe, mesh_ugrid

    xarray = package("xarray")
    netcdf4 = package("netCDF4")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Unchanged from the file: numbers of nodes must not become floats, and time is not needed.
            dataset = xarray.open_dataset(path, engine="netcdf4", mask_and_scale=False, decode_times=False)
    except (OSError, ValueError) as error:
        raise no_mesh(path, error) from None
    with dataset:
        topologies = [
            name for name, var in dataset.variables.items() if var.attrs.get("cf_role") == "mesh_topology"
        ]
        if topologies:
            return mesh_ugrid.read(dataset, topologies, path)
        if mesh_exodus.is_exodus(dataset):
            with netcdf4.Dataset(path) as file:
                sizes = {name: len(dimension) for name, dimension in file.dimensions.items()}
            return mesh_exodus.read(dataset, sizes, path)
        if mesh_globe.is_mpas(dataset):
            return mesh_globe.read_mpas(dataset, path)
        if mesh_globe.is_icon(dataset):
            return mesh_globe.read_icon(dataset, path)
    return _by_uxarray(path)


# -- uxarray -----------------------------------------------------------------------------------------------


def _by_uxarray(path: str) -> MeshArrays:
    uxarray = package("uxarray")
    try:
        with warnings.catch_warnings(), silence():
            warnings.simplefilter("ignore")
            grid = uxarray.open_grid(path)
            dataset = grid.to_xarray()
    except Exception as error:  # any error of the library for an unknown file
        raise no_mesh(path, f"it has no variables of a known mesh: {error}") from None
    if "face_node_connectivity" not in dataset or "node_lon" not in dataset:
        raise no_mesh(path, "it has no faces")
    spec = str(grid.source_grid_spec or "uxarray")
    nodes = {"x": _degrees(dataset["node_lon"], path), "y": _degrees(dataset["node_lat"], path)}
    if len(nodes["x"]) > 1 and not any(np.ptp(values) for values in nodes.values()):
        raise no_mesh(path, "all its nodes are at one point: planar meshes of this format are not supported")
    fill = int(uxarray.constants.INT_FILL_VALUE)
    rows = {}
    for kind, name in (("faces", "face_node_connectivity"), ("edges", "edge_node_connectivity")):
        if name in dataset:
            entries = np.asarray(dataset[name].values)
            rows[kind] = np.where(entries == fill, -1, entries).astype(np.int64)
    return MeshArrays(spec, nodes, **rows, node_attrs={"x": dict(LONGITUDE), "y": dict(LATITUDE)})


def _degrees(variable: Any, path: str) -> np.ndarray:
    values = np.asarray(variable.values, dtype=np.float64).reshape(-1)
    units = str(variable.attrs.get("units", "degrees"))
    if not units.lower().startswith("deg"):
        raise no_mesh(path, f"its nodes are in {units} instead of degrees")
    return values


@contextlib.contextmanager
def silence() -> Iterator[io.StringIO]:
    """Captures what libraries print about parts of a file that they skip."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield said

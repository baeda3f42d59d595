"""Unstructured meshes of other programs as plain arrays, for ``fst.ingest(store, path, mesh=NAME)``.

=====================  ==========  ================================================================
format                 read by     gives
=====================  ==========  ================================================================
UGRID                  xarray      nodes; edges, faces and volumes as far as the file has them
Exodus                 xarray      nodes; faces and volumes by the type of each block, bars as edges
MPAS, ICON, ESMF,      uxarray     nodes and faces in degrees, in the order of the file's cells;
SCRIP, FESOM, GEOS                 edges where the format has them (MPAS, ICON)
SU2, gmsh, AFLR3 and   meshio      nodes; faces and volumes, in the order of the file's blocks;
others that it knows               lines are edges only where there is nothing else
=====================  ==========  ================================================================

uxarray reads UGRID and Exodus, too, but has no volumes, takes the eight corners of a hexahedron for a face,
and turns longitudes; so these two are read here, element by element, as they stand in the file.

Invariants:

* nodes are counted from 0 and keep their order; an entry is the number of a node, or -1 behind the others of
  its row;
* elements of higher order are given by their corners, in the order of VTK, which is UGRID's;
* nodes of a surface on a sphere around the origin are given in degrees, as nodes of the formats for them are,
  and the sphere's radius is an attribute; other nodes as they are;
* lines that bound faces, in SU2 and gmsh, are marks and no edges of the mesh.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.frames import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fieldstone._helper.frames import Channel

CDF_MAGIC = b"CDF"
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# HDF5 files that no netCDF reader understands.
MESHIO_HDF5 = (".med", ".xdmf", ".h5m", ".cgns")

LONGITUDE = {"standard_name": "longitude", "units": "degrees_east"}
LATITUDE = {"standard_name": "latitude", "units": "degrees_north"}

# Kind and corners of an element, by the beginning of its type's name in Exodus; the first that fits counts.
EXODUS_TYPES = (
    ("TRISHELL", "faces", 3),
    ("TRI", "faces", 3),
    ("SHELL", "faces", 4),
    ("QUAD", "faces", 4),
    ("TET", "volumes", 4),
    ("PYR", "volumes", 5),
    ("WED", "volumes", 6),
    ("HEX", "volumes", 8),
    ("BAR", "edges", 2),
    ("BEAM", "edges", 2),
    ("TRUSS", "edges", 2),
)
# The same in meshio, without the number of nodes at the end of the name.
MESHIO_TYPES = {
    "line": ("edges", 2),
    "triangle": ("faces", 3),
    "quad": ("faces", 4),
    "polygon": ("faces", None),
    "tetra": ("volumes", 4),
    "pyramid": ("volumes", 5),
    "wedge": ("volumes", 6),
    "hexahedron": ("volumes", 8),
}


@dataclasses.dataclass(frozen=True)
class MeshArrays:
    """A mesh: float64 coordinates, int64 rows of nodes that are padded with -1; None for what it has not."""

    format: str
    nodes: dict[str, np.ndarray]
    edges: np.ndarray | None = None
    faces: np.ndarray | None = None
    volumes: np.ndarray | None = None
    node_attrs: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)


def mesh_request(channel: Channel, header: dict[str, Any], payload: bytes) -> None:
    """Answers `mesh` with one `mesh` frame."""
    path = header.get("path")
    if path is None:
        path = os.fsdecode(payload)
    mesh = read_mesh(path)
    arrays = [(axis, values, "<f8", mesh.node_attrs.get(axis, {})) for axis, values in mesh.nodes.items()]
    for kind in ("edges", "faces", "volumes"):
        if (rows := getattr(mesh, kind)) is not None:
            arrays.append((kind, rows, "<i8", {}))
    described = [
        {"name": name, "dtype": dtype, "shape": list(values.shape), "attrs": _plain(attrs)}
        for name, values, dtype, attrs in arrays
    ]
    content = b"".join(np.ascontiguousarray(values, dtype).tobytes() for _, values, dtype, _ in arrays)
    attrs = _plain(mesh.attrs | {"source_format": mesh.format})
    channel.send({"kind": "mesh", "format": mesh.format, "attrs": attrs, "arrays": described}, content)
    channel.done()


def _plain(attrs: dict[str, Any]) -> dict[str, Any]:
    """Texts and finite numbers, as JSON has them."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in attrs.items()}
    return {
        name: value
        for name, value in plain.items()
        if isinstance(value, str | int) or (isinstance(value, float) and np.isfinite(value))
    }


def read_mesh(path: str | os.PathLike[str]) -> MeshArrays:
    """The mesh of a file, or of a folder with FESOM's text files.

    RequestError: ``NotFound`` where there is none; ``Invalid`` for what is no mesh, or has elements that are
    not known; ``Corrupt`` for an element that names no node; ``Unavailable`` for a package that is missing.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        return _checked(_by_uxarray(path, path), path)
    try:
        with open_plain(path) as file:
            magic = file.read(8)
    except FileNotFoundError:
        raise RequestError("NotFound", f"there is no file {path}", code="file-not-found") from None
    except OSError as error:
        raise RequestError("Invalid", f"cannot read {path}: {error}") from None
    is_netcdf = magic[:3] == CDF_MAGIC or magic == HDF5_MAGIC
    if is_netcdf and not path.lower().endswith(MESHIO_HDF5):
        return _checked(_by_netcdf(path), path)
    return _checked(_by_meshio(path), path)


def _package(name: str) -> Any:
    try:
        # Some say on import what a reader of a mesh need not know.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except (ImportError, RuntimeError, OSError) as error:
        message = f"the Python package {name} cannot be loaded: {error}"
        raise RequestError(
            "Unavailable", message, "pip install 'fieldstone[mesh]'", "library-missing"
        ) from None


def _no_mesh(path: str, why: object) -> RequestError:
    hint = "UGRID, MPAS, ICON, ESMF, SCRIP, Exodus, FESOM, GEOS, SU2, gmsh and AFLR3 files are read"
    return RequestError("Invalid", f"{path} is no mesh that can be read: {why}", hint, "file-format")


# -- netCDF ------------------------------------------------------------------------------------------------


def _by_netcdf(path: str) -> MeshArrays:
    xarray = _package("xarray")
    _package("netCDF4")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # As it stands in the file: numbers of nodes are no floats, and time is of no use.
            dataset = xarray.open_dataset(path, engine="netcdf4", mask_and_scale=False, decode_times=False)
    except (OSError, ValueError) as error:
        raise _no_mesh(path, error) from None
    with dataset:
        topologies = [
            name for name, var in dataset.variables.items() if var.attrs.get("cf_role") == "mesh_topology"
        ]
        if topologies:
            return _ugrid(dataset, topologies, path)
        if any(name.startswith("connect") for name in dataset.variables) and (
            {"coord", "coordx"} & set(dataset.variables)
        ):
            return _exodus(dataset, path)
    return _by_uxarray(path, path)


def _ugrid(dataset: Any, topologies: list[str], path: str) -> MeshArrays:
    """The first mesh of a file with UGRID's conventions."""
    name = topologies[0]
    topology = dataset[name].attrs
    names = str(topology.get("node_coordinates", "")).split()
    missing = [one for one in names if one not in dataset.variables]
    if not 2 <= len(names) <= 3 or missing:
        raise _no_mesh(path, f"node_coordinates of `{name}` are {names or 'absent'}")
    if _is_latitude(dataset[names[0]].attrs):
        names[:2] = names[1::-1]
    # Where tools know two coordinates, a third one is a variable that says where it stands.
    third = names[0].removesuffix("_x") + "_z"
    if len(names) == 2 and third in dataset.variables and dataset[third].attrs.get("location") == "node":
        names.append(third)
    nodes = {axis: _floats(dataset[one]) for axis, one in zip("xyz", names, strict=False)}
    keep = ("standard_name", "long_name", "units", "axis", "positive")
    node_attrs = {
        axis: {key: value for key, value in dataset[one].attrs.items() if key in keep}
        for axis, one in zip("xyz", names, strict=False)
    }
    rows = {}
    for kind, attribute in (("edges", "edge"), ("faces", "face"), ("volumes", "volume")):
        variable = topology.get(f"{attribute}_node_connectivity")
        # A topology may name what a file that was cut down does not have.
        if variable in dataset.variables:
            dimension = topology.get(f"{attribute}_dimension")
            rows[kind] = _connectivity(dataset, variable, dimension, len(nodes["x"]))
    attrs = {"source_mesh": name}
    if isinstance(topology.get("long_name"), str):
        attrs["long_name"] = topology["long_name"]
    return MeshArrays("UGRID", nodes, **rows, node_attrs=node_attrs, attrs=attrs)


def _is_latitude(attrs: dict[str, Any]) -> bool:
    units = ("degrees_north", "degree_north", "degree_N", "degrees_N")
    return attrs.get("standard_name") == "latitude" or attrs.get("units") in units


def _connectivity(dataset: Any, name: str, dimension: str | None, nodes: int) -> np.ndarray:
    """Rows of nodes from 0 on. A file that does not say where it begins to count says so by its last node."""
    variable = dataset[name]
    entries = variable.values
    if dimension is not None and variable.dims[0] != dimension and variable.dims[-1] == dimension:
        entries = entries.T
    fill = variable.attrs.get("_FillValue", variable.encoding.get("_FillValue"))
    is_missing = entries < 0
    if fill is not None:
        is_missing |= entries == fill
    if entries.dtype.kind == "f":
        is_missing |= ~np.isfinite(entries)
    present = entries[~is_missing]
    is_from_one = present.size > 0 and present.min() >= 1 and present.max() == nodes
    start = int(variable.attrs.get("start_index", 1 if is_from_one else 0))
    is_missing |= entries < start
    return np.where(is_missing, -1, np.where(is_missing, 0, entries).astype(np.int64) - start)


def _floats(variable: Any) -> np.ndarray:
    scale, offset = (float(variable.attrs.get(key, d)) for key, d in (("scale_factor", 1), ("add_offset", 0)))
    values = np.asarray(variable.values, dtype=np.float64).reshape(-1)
    return values if (scale, offset) == (1, 0) else values * scale + offset


def _exodus(dataset: Any, path: str) -> MeshArrays:
    """Blocks of elements, each of one type."""
    if "coord" in dataset.variables:
        coordinates = list(np.asarray(dataset["coord"].values, dtype=np.float64))
    else:
        present = [f"coord{axis}" for axis in "xyz" if f"coord{axis}" in dataset.variables]
        coordinates = [_floats(dataset[name]) for name in present]
    blocks: dict[str, list[np.ndarray]] = {}
    number = 1
    while (name := f"connect{number}") in dataset.variables:
        kind_name = str(dataset[name].attrs.get("elem_type", "")).strip("\0 ").upper()
        known = next((known for known in EXODUS_TYPES if kind_name.startswith(known[0])), None)
        rows = np.asarray(dataset[name].values, dtype=np.int64) - 1
        if known is None or rows.ndim != 2 or rows.shape[1] < 2:
            raise _no_mesh(path, f"block {number} has elements of type {kind_name or 'unknown'}")
        _, kind, corners = known
        # A shell of three nodes is a triangle; MOAB calls polygons of any size shells.
        blocks.setdefault(kind, []).append(rows[:, :corners])
        number += 1
    surfaces = {kind: _stacked(rows) for kind, rows in blocks.items()}
    return _placed("Exodus", coordinates, surfaces, {})


# -- uxarray -----------------------------------------------------------------------------------------------


def _by_uxarray(source: str, path: str) -> MeshArrays:
    uxarray = _package("uxarray")
    try:
        with warnings.catch_warnings(), _silence():
            warnings.simplefilter("ignore")
            grid = uxarray.open_grid(source)
            dataset = grid.to_xarray()
    except Exception as error:  # whatever a library raises for what it does not know
        raise _no_mesh(path, error) from None
    if "face_node_connectivity" not in dataset or "node_lon" not in dataset:
        raise _no_mesh(path, "it has no faces")
    spec = str(grid.source_grid_spec or "uxarray")
    nodes = {"x": _floats(dataset["node_lon"]), "y": _floats(dataset["node_lat"])}
    fill = int(uxarray.constants.INT_FILL_VALUE)
    rows = {}
    for kind, name in (("faces", "face_node_connectivity"), ("edges", "edge_node_connectivity")):
        if name in dataset:
            entries = np.asarray(dataset[name].values)
            rows[kind] = np.where(entries == fill, -1, entries).astype(np.int64)
    return MeshArrays(spec, nodes, **rows, node_attrs={"x": dict(LONGITUDE), "y": dict(LATITUDE)})


# -- meshio ------------------------------------------------------------------------------------------------


def _by_meshio(path: str) -> MeshArrays:
    meshio = _package("meshio")
    try:
        with warnings.catch_warnings(), _silence() as said:
            warnings.simplefilter("ignore")
            mesh = meshio.read(path)
    except ModuleNotFoundError as error:
        message = f"the Python package {error.name}, which {path} needs, cannot be loaded"
        raise RequestError("Unavailable", message, f"pip install {error.name}", "library-missing") from None
    # meshio ends the process where it knows none of the readers that a name stands for.
    except (Exception, SystemExit) as error:
        raise _no_mesh(path, str(error) or said.getvalue().strip() or type(error).__name__) from None
    blocks: dict[str, list[np.ndarray]] = {}
    for block in mesh.cells:
        base = block.type.rstrip("0123456789")
        if base == "vertex":
            continue
        if base not in MESHIO_TYPES:
            raise _no_mesh(path, f"it has elements of type {block.type}")
        kind, corners = MESHIO_TYPES[base]
        rows = np.asarray(block.data, dtype=np.int64)
        blocks.setdefault(kind, []).append(rows[:, :corners])
    rows = {kind: _stacked(parts) for kind, parts in blocks.items()}
    if "faces" in rows or "volumes" in rows:
        rows.pop("edges", None)
    points = np.asarray(mesh.points, dtype=np.float64)
    extension = os.path.splitext(path)[1].lstrip(".").lower()
    name = {"su2": "SU2", "msh": "gmsh", "ugrid": "AFLR3"}.get(extension, extension)
    return _placed(name, list(points.T), rows, {})


@contextlib.contextmanager
def _silence() -> Any:
    """Keeps what libraries print about parts of a file that they pass over."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield said


# -- all ---------------------------------------------------------------------------------------------------


def _stacked(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Rows of several widths as one array."""
    parts = list(parts)
    width = max(part.shape[1] for part in parts)
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in parts]
    return np.ascontiguousarray(np.concatenate(padded))


def _placed(
    format: str, coordinates: list[np.ndarray], rows: dict[str, np.ndarray], attrs: dict[str, Any]
) -> MeshArrays:
    """A mesh in space, in the plane where all lies there, in degrees where it is a surface on a sphere."""
    coordinates = [np.ascontiguousarray(one) for one in coordinates]
    if len(coordinates) == 1:
        coordinates.append(np.zeros_like(coordinates[0]))
    is_surface = "volumes" not in rows
    if len(coordinates) == 3 and is_surface and not coordinates[2].any():
        coordinates.pop()
    if len(coordinates) == 3 and is_surface and "faces" in rows:
        x, y, z = coordinates
        radii = np.sqrt(x * x + y * y + z * z)
        radius = float(radii.mean()) if radii.size else 0.0
        if radius > 0 and np.abs(radii - radius).max() <= 1e-6 * radius:
            lon, lat = np.degrees(np.arctan2(y, x)), np.degrees(np.arcsin(np.clip(z / radii, -1, 1)))
            return MeshArrays(
                format,
                {"x": lon, "y": lat},
                **rows,
                node_attrs={"x": dict(LONGITUDE), "y": dict(LATITUDE)},
                attrs={**attrs, "sphere_radius": radius},
            )
    nodes = dict(zip("xyz", coordinates, strict=False))
    return MeshArrays(format, nodes, **rows, attrs=attrs)


def _checked(mesh: MeshArrays, path: str) -> MeshArrays:
    """The mesh with rows as wide as they need to be, if each of them names nodes."""
    count = len(mesh.nodes["x"])
    trimmed = {}
    for kind in ("edges", "faces", "volumes"):
        rows = getattr(mesh, kind)
        if rows is None:
            continue
        wrong = np.argwhere((rows < -1) | (rows >= count))
        if len(wrong):
            row, place = wrong[0].tolist()
            raise RequestError(
                "Corrupt",
                f"{path}: {kind}[{row}, {place}] is node {rows[row, place]}, and nodes are 0 to {count - 1}",
            )
        present = rows >= 0
        # Missing nodes stand last in each row.
        if (present[:, 1:] & ~present[:, :-1]).any():
            order = np.argsort(~present, axis=1, kind="stable")
            rows, present = np.take_along_axis(rows, order, 1), np.take_along_axis(present, order, 1)
        width = int(present.sum(axis=1).max(initial=0))
        trimmed[kind] = np.ascontiguousarray(rows[:, :width]) if width else None
    return dataclasses.replace(mesh, **trimmed)

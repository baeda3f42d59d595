"""Meshes of MPAS and ICON in netCDF files: on a sphere in degrees, on a plane as x and y in the file."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldstone._helper.mesh_arrays import LATITUDE, LONGITUDE, MeshArrays, no_mesh, on_sphere
from fieldstone._helper.mesh_ugrid import floats

_GLOBE = {"x": dict(LONGITUDE), "y": dict(LATITUDE)}
# ICON's grid_geometry: 1 is the sphere; others are a torus, a channel, a limited plane.
_ICON_SPHERE = 1


def is_mpas(dataset: Any) -> bool:
    """Whether a file has MPAS' corners of cells."""
    return "verticesOnCell" in dataset.variables


def is_icon(dataset: Any) -> bool:
    """Whether a file has ICON's corners of cells."""
    return "vertex_of_cell" in dataset.variables


# -- MPAS --------------------------------------------------------------------------------------------------


def read_mpas(dataset: Any, path: str) -> MeshArrays:
    """Cells and edges of MPAS, in their order. RequestError: ``Invalid`` for a file that lacks one.

    https://mpas-dev.github.io/files/documents/MPAS-MeshSpec.pdf
    """
    need = [name for name in ("nEdgesOnCell",) if name not in dataset.variables]
    if need:
        raise no_mesh(path, f"it has verticesOnCell of MPAS, but no {need[0]}")
    corners = np.asarray(dataset["verticesOnCell"].values, dtype=np.int64) - 1
    counts = np.asarray(dataset["nEdgesOnCell"].values, dtype=np.int64).reshape(-1)
    if (
        corners.ndim != 2
        or len(counts) != len(corners)
        or (counts > corners.shape[1]).any()
        or (counts < 3).any()
    ):
        raise no_mesh(path, "nEdgesOnCell does not fit verticesOnCell")
    faces = np.where(np.arange(corners.shape[1]) < counts[:, None], corners, -1)
    missing = np.flatnonzero((faces >= 0).sum(axis=1) != counts)
    if len(missing):
        raise no_mesh(path, f"cell {missing[0]} (from 0) has {counts[missing[0]]} edges but fewer vertices")
    rows = {"faces": faces}
    if "verticesOnEdge" in dataset.variables:
        rows["edges"] = np.asarray(dataset["verticesOnEdge"].values, dtype=np.int64) - 1
    return _mpas_nodes(dataset, rows, path)


def _mpas_nodes(dataset: Any, rows: dict[str, np.ndarray], path: str) -> MeshArrays:
    def found(*names: str) -> list[np.ndarray] | None:
        return [floats(dataset[name]) for name in names] if set(names) <= set(dataset.variables) else None

    place, angles = found("xVertex", "yVertex", "zVertex"), found("lonVertex", "latVertex")
    if place is None and (plane := found("xVertex", "yVertex")) is not None:
        place = [*plane, np.zeros_like(plane[0])]
    if place is None and angles is None:
        raise no_mesh(path, "it has cells of MPAS, but neither xVertex, yVertex nor lonVertex, latVertex")
    if _is_spherical(dataset, place, angles, path):
        attrs = {"sphere_radius": radius} if (radius := _number(dataset.attrs.get("sphere_radius"))) else {}
        if angles is not None and (_varies(angles) or place is None or not _varies(place)):
            nodes = {axis: np.degrees(values) for axis, values in zip("xy", angles, strict=True)}
        else:
            nodes = on_sphere(*place)[0]
        _not_one_point(nodes, path)
        return MeshArrays("MPAS", nodes, **rows, node_attrs=_GLOBE, attrs=attrs)
    if place is None:
        raise no_mesh(path, "it is planar (on_a_sphere), but lacks xVertex and yVertex")
    periods = {name: _number(dataset.attrs.get(name)) for name in ("x_period", "y_period")}
    nodes = dict(zip("xyz" if place[2].any() else "xy", place, strict=False))
    _not_one_point(nodes, path)
    return MeshArrays("MPAS", nodes, **rows, attrs={name: size for name, size in periods.items() if size})


def _is_spherical(
    dataset: Any, place: list[np.ndarray] | None, angles: list[np.ndarray] | None, path: str
) -> bool:
    """Decides by ``on_a_sphere``, or else by the coordinates. Refuses a file that contradicts
    ``on_a_sphere``."""
    said = dataset.attrs.get("on_a_sphere")
    if said is None and "on_a_sphere" in dataset.variables:
        said = dataset["on_a_sphere"].values
    word = _text(said).upper()
    radii = None if place is None else np.sqrt(sum(axis * axis for axis in place))
    is_round = (
        radii is not None and radii.size > 0 and radii.min() > 0 and np.ptp(radii) <= 1e-3 * radii.max()
    )
    has_angles = angles is not None and _varies(angles)
    if word[:1] in ("Y", "T", "1"):
        if not (has_angles or is_round):
            raise no_mesh(path, f"on_a_sphere is {word}, but its vertices are not on a sphere")
        return True
    if word[:1] in ("N", "F", "0"):
        return False
    if word:
        raise no_mesh(path, f"on_a_sphere is {word[:20]!r} instead of YES or NO")
    if place is None or (has_angles and not _varies(place)):
        return True
    return is_round and bool(place[2].any())


def _text(said: Any) -> str:
    """An attribute or a variable of characters as text, without padding."""
    if said is None:
        return ""
    if isinstance(said, np.ndarray):
        said = (
            b"".join(said.ravel().tolist())
            if said.dtype.kind == "S"
            else "".join(map(str, said.ravel().tolist()))
        )
    if isinstance(said, bytes):
        said = said.decode("ascii", "replace")
    return str(said).strip("\0 \t\n")


def _number(said: Any) -> float | None:
    try:
        value = float(np.asarray(said).reshape(-1)[0])
    except (TypeError, ValueError, IndexError):
        return None
    return value if np.isfinite(value) and value > 0 else None


def _varies(axes: list[np.ndarray]) -> bool:
    return any(axis.size and np.ptp(axis) > 0 for axis in axes)


def _not_one_point(nodes: dict[str, np.ndarray], path: str) -> None:
    if len(nodes["x"]) > 1 and not _varies(list(nodes.values())):
        raise no_mesh(path, "all its nodes are at one point")


# -- ICON --------------------------------------------------------------------------------------------------


def read_icon(dataset: Any, path: str) -> MeshArrays:
    """Triangles and edges of ICON, in their order. RequestError: ``Invalid`` for missing variables.

    https://www.icon-model.org/icon_model
    """
    rows = {}
    for kind, name, dimension in (("faces", "vertex_of_cell", "cell"), ("edges", "edge_vertices", "edge")):
        if name in dataset.variables:
            variable = dataset[name]
            entries = np.asarray(variable.values, dtype=np.int64)
            if entries.ndim != 2:
                raise no_mesh(path, f"`{name}` has {entries.ndim} dimensions instead of two")
            rows[kind] = np.maximum(entries if variable.dims[0] == dimension else entries.T, 0) - 1
    geometry = _number(dataset.attrs.get("grid_geometry"))
    if geometry is not None and geometry != _ICON_SPHERE:
        names = [f"cartesian_{axis}_vertices" for axis in "xyz"]
        if missing := [name for name in names[:2] if name not in dataset.variables]:
            raise no_mesh(path, f"it is planar (grid_geometry {geometry:.0f}), but lacks {missing[0]}")
        place = [floats(dataset[name]) for name in names if name in dataset.variables]
        nodes = dict(zip("xyz" if len(place) > 2 and place[2].any() else "xy", place, strict=False))
        _not_one_point(nodes, path)
        return MeshArrays("ICON", nodes, **rows)
    if missing := [name for name in ("vlon", "vlat") if name not in dataset.variables]:
        raise no_mesh(path, f"it has cells of ICON, but lacks {missing[0]}")
    nodes = {axis: degrees(dataset[name], path) for axis, name in (("x", "vlon"), ("y", "vlat"))}
    _not_one_point(nodes, path)
    return MeshArrays("ICON", nodes, **rows, node_attrs=_GLOBE)


def degrees(variable: Any, path: str) -> np.ndarray:
    """Angles in degrees; values are radians unless their units say otherwise."""
    units = _text(variable.attrs.get("units", "radian")).lower()
    if units.startswith("rad"):
        return np.degrees(floats(variable))
    if units.startswith("deg"):
        return floats(variable)
    raise no_mesh(path, f"`{variable.name}` has the units {units} instead of radians or degrees")

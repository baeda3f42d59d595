"""The arrays that readers of meshes return, and their common parts: errors, places of nodes, checks."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldstone._helper.frames import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

HINT = (
    "UGRID, MPAS, ICON, ESMF, SCRIP, Exodus, FESOM, GEOS, SU2, gmsh, VTK and AFLR3 files are read; "
    "others can be converted to VTU or gmsh first"
)
LONGITUDE = {"standard_name": "longitude", "units": "degrees_east"}
LATITUDE = {"standard_name": "latitude", "units": "degrees_north"}
LOCATIONS = ("edges", "faces", "volumes")


@dataclasses.dataclass(frozen=True)
class MeshArrays:
    """A mesh: float64 coordinates, int64 rows of nodes that are padded with -1; None for arrays that it
    lacks.

    `omitted` lists parts of the file that the mesh lacks, each with the reason.
    """

    format: str
    nodes: dict[str, np.ndarray]
    edges: np.ndarray | None = None
    faces: np.ndarray | None = None
    volumes: np.ndarray | None = None
    node_attrs: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)
    omitted: tuple[tuple[str, str], ...] = ()


def no_mesh(path: str, why: object, hint: str = HINT) -> RequestError:
    """The error for a file without a mesh, or with one that is not supported."""
    return RequestError("Invalid", f"{path} is not a mesh that can be read: {why}", hint, "file-format")


def damaged(path: str, why: str) -> RequestError:
    """The error for a file that contradicts itself, or ends too early."""
    hint = "write the file again, or use a complete copy of it"
    return RequestError("Corrupt", f"{path} is damaged: {why}", hint, "corrupt")


def named(path: str, rows: np.ndarray, what: str) -> np.ndarray:
    """Checks that rows have a node at each place, because a number below 0 would be taken for padding."""
    if rows.size and rows.min() < 0:
        row, place = np.argwhere(rows < 0)[0].tolist()
        raise damaged(
            path, f"{what} {row} (from 0) has no node at place {place}: its number is below the first"
        )
    return rows


def stacked(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Rows of several widths as one array."""
    parts = list(parts)
    width = max(part.shape[1] for part in parts)
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in parts]
    return np.ascontiguousarray(np.concatenate(padded))


def placed(
    format: str,
    coordinates: list[np.ndarray],
    rows: dict[str, np.ndarray],
    attrs: dict[str, Any] | None = None,
    omitted: Iterable[tuple[str, str]] = (),
) -> MeshArrays:
    """A mesh in space, in the plane if all nodes are in one, or in degrees if it is a surface on a sphere."""
    coordinates = [np.ascontiguousarray(one, dtype=np.float64) for one in coordinates]
    while len(coordinates) < 2:
        coordinates.append(np.zeros_like(coordinates[0]))
    common: dict[str, Any] = {**rows, "omitted": tuple(omitted)}
    attrs = attrs or {}
    is_surface = "volumes" not in rows
    if len(coordinates) == 3 and is_surface and not coordinates[2].any():
        coordinates.pop()
    if len(coordinates) == 3 and is_surface and "faces" in rows:
        radius = _sphere(np.stack(coordinates, axis=1), rows["faces"])
        if radius is not None:
            nodes, node_attrs = on_sphere(*coordinates)
            attrs = {**attrs, "sphere_radius": radius}
            return MeshArrays(format, nodes, **common, node_attrs=node_attrs, attrs=attrs)
    nodes = dict(zip("xyz", coordinates, strict=False))
    return MeshArrays(format, nodes, **common, attrs=attrs)


def on_sphere(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, dict]]:
    """Longitude and latitude, in degrees, of points on a sphere around the origin."""
    radii = np.sqrt(x * x + y * y + z * z)
    lon, lat = np.degrees(np.arctan2(y, x)), np.degrees(np.arcsin(np.clip(z / radii, -1, 1)))
    return {"x": lon, "y": lat}, {"x": dict(LONGITUDE), "y": dict(LATITUDE)}


def _sphere(points: np.ndarray, faces: np.ndarray) -> float | None:
    """The radius of a sphere around the origin that the faces follow.

    The corners of a cube are also on a sphere: a surface follows one if no edge is longer than its radius.
    """
    radii = np.sqrt((points * points).sum(axis=1))
    radius = float(radii.mean()) if radii.size else 0.0
    if not (radius > 0 and np.abs(radii - radius).max() <= 1e-6 * radius):
        return None
    if faces.size and (faces.max() >= len(points) or faces.min() < -1):
        return None
    for place in range(faces.shape[1]):
        begin = faces[:, place]
        end = faces[:, (place + 1) % faces.shape[1]]
        end = np.where(end < 0, faces[:, 0], end)
        is_there = begin >= 0
        edges = points[begin[is_there]] - points[end[is_there]]
        if len(edges) and (edges * edges).sum(axis=1).max() >= radius * radius:
            return None
    return radius


def checked(mesh: MeshArrays, path: str) -> MeshArrays:
    """The mesh with rows only as wide as needed; raises if a row has a node that does not exist."""
    count = len(mesh.nodes["x"])
    if count == 0:
        raise no_mesh(path, "it has no nodes")
    trimmed = {}
    for kind in LOCATIONS:
        rows = getattr(mesh, kind)
        if rows is None:
            continue
        wrong = np.argwhere((rows < -1) | (rows >= count))
        if len(wrong):
            row, place = wrong[0].tolist()
            raise RequestError(
                "Corrupt",
                f"{path}: {kind}[{row}, {place}] is node {rows[row, place]}, but nodes are 0 to {count - 1}",
            )
        present = rows >= 0
        # Missing nodes go to the end of each row.
        if (present[:, 1:] & ~present[:, :-1]).any():
            order = np.argsort(~present, axis=1, kind="stable")
            rows, present = np.take_along_axis(rows, order, 1), np.take_along_axis(present, order, 1)
        width = int(present.sum(axis=1).max(initial=0))
        trimmed[kind] = np.ascontiguousarray(rows[:, :width]) if width else None
    return dataclasses.replace(mesh, **trimmed)

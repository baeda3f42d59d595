"""Fields on unstructured meshes: polygons of faces, triangles of nodes, lines of edges, skins of volumes.

Invariants:

* a row of nodes ends at its first -1; a shape that has a missing value is not drawn;
* a shape that crosses the meridian at which a map of the whole globe is cut is drawn at both of its sides;
* of volumes the faces that only one of them has are drawn, in space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

# Faces of a volume by how many nodes it has, in the order of VTK, which is UGRID's.
FACES_OF = {
    4: ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)),
    5: ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
    6: ((0, 2, 1), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    8: ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
}
# Axes of lengths that differ more than this are stretched to fill the picture.
MAX_ASPECT = 8


def draw_on_mesh(
    figure: Figure, data: np.ndarray, coords: dict[str, Any], mesh: dict[str, Any], label: str
) -> Any:
    """Draws values at a mesh's nodes, edges, faces or volumes; gives the axes."""
    location, kind = str(mesh.get("location")), mesh.get("rows")
    points = [np.asarray(coords[axis][1], dtype=float) for axis in "xyz" if axis in coords]
    if len(points) < 2 or any(one.shape != points[0].shape or one.ndim != 1 for one in points):
        raise ValueError("a mesh needs x and y of each node")
    rows = np.asarray(coords["rows"][1]) if "rows" in coords else None
    if rows is not None and (
        rows.ndim != 2 or (rows.size and not -1 <= rows.min() <= rows.max() < len(points[0]))
    ):
        raise ValueError("rows of a mesh name nodes that are not there")
    count = len(points[0]) if location == "node" or rows is None else len(rows)
    if data.shape != (count,):
        raise ValueError(f"{data.shape} values at {count} {location}s")
    if kind == "volumes" and rows is not None:
        rows, owners = skin(rows)
        data = data if location == "node" else data[owners]
        location = location if location == "node" else "face"
    axes = figure.add_subplot(projection="3d" if len(points) == 3 else None)
    draw = in_space if len(points) == 3 else in_plane
    shown = draw(axes, data, points, location, kind, rows)
    figure.colorbar(shown, ax=axes, label=label, shrink=0.8)
    limits(axes, points)
    return axes


def skin(volumes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Faces that only one volume has, as rows of four nodes, and the volume of each."""
    sizes = (volumes >= 0).sum(axis=1)
    faces, owners = [], []
    for size, corners in FACES_OF.items():
        (which,) = np.nonzero(sizes == size)
        if not len(which):
            continue
        for corner in corners:
            face = np.full((len(which), 4), -1, dtype=volumes.dtype)
            face[:, : len(corner)] = volumes[which][:, corner]
            faces.append(face)
            owners.append(which)
    if not faces:
        raise ValueError("volumes are drawn that have 4, 5, 6 or 8 nodes")
    all_faces, all_owners = np.concatenate(faces), np.concatenate(owners)
    _, first, times = np.unique(np.sort(all_faces, axis=1), axis=0, return_index=True, return_counts=True)
    outside = np.sort(first[times == 1])
    return all_faces[outside], all_owners[outside]


def in_plane(
    axes: Any, data: np.ndarray, points: list[np.ndarray], location: str, kind: Any, rows: np.ndarray | None
) -> Any:
    """Draws in the plane, or on a map."""
    x, y = points
    if location == "edge" and rows is not None:
        shapes, values = cut(x, y, rows, data)
        return axes.add_collection(LineCollection(shapes, array=values))
    if location == "face" and rows is not None:
        shapes, values = cut(x, y, rows, data)
        return axes.add_collection(PolyCollection(shapes, array=values, edgecolors="face", linewidths=0.2))
    if kind != "faces" or rows is None:
        return axes.scatter(x, y, c=data, s=4, linewidths=0)
    triangles = fans(rows)
    triangles = triangles[np.isfinite(data[triangles]).all(axis=1)]
    across = crossing(x, y, triangles)
    least, greatest = extremes(data)
    if across.any():
        shapes, values = cut(x, y, triangles[across], data[triangles[across]].mean(axis=1))
        edge = axes.add_collection(PolyCollection(shapes, array=values, edgecolors="face", linewidths=0.2))
        edge.set_clim(least, greatest)
    if across.all():
        return axes.scatter(x, y, c=data, s=4, linewidths=0)
    mesh = Triangulation(x, y, triangles[~across])
    # Values of nodes that no triangle has are never drawn.
    return axes.tripcolor(mesh, np.nan_to_num(data), shading="gouraud", vmin=least, vmax=greatest)


def in_space(
    axes: Any, data: np.ndarray, points: list[np.ndarray], location: str, kind: Any, rows: np.ndarray | None
) -> Any:
    """Draws surfaces, lines or points in three dimensions."""
    xyz = np.stack(points, axis=1)
    if rows is None or (location == "node" and kind == "edges"):
        return axes.scatter(*points, c=data, s=4, linewidths=0)
    if location == "node":
        present = rows >= 0
        data = np.where(present, data[rows], 0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    keep = np.isfinite(data)
    shapes = [xyz[row[row >= 0]] for row in rows[keep]]
    if kind == "edges":
        return axes.add_collection3d(Line3DCollection(shapes, array=data[keep]))
    return axes.add_collection3d(Poly3DCollection(shapes, array=data[keep], edgecolors="none"))


def extremes(data: np.ndarray) -> tuple[float, float]:
    """Least and greatest value that is there."""
    there = data[np.isfinite(data)]
    return (float(there.min()), float(there.max())) if there.size else (0.0, 1.0)


def fans(rows: np.ndarray) -> np.ndarray:
    """The triangles of polygons: each from their first node."""
    parts = [rows[:, [0, n, n + 1]] for n in range(1, rows.shape[1] - 1)]
    triangles = np.concatenate(parts) if parts else np.empty((0, 3), dtype=rows.dtype)
    return triangles[(triangles >= 0).all(axis=1)]


def spans(x: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest x of each row."""
    present = rows >= 0
    return np.where(present, x[rows], np.inf).min(axis=1), np.where(present, x[rows], -np.inf).max(axis=1)


def crossing(x: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which shapes reach round a map of the globe, which is cut at one meridian."""
    is_globe = x.size and 180 < np.ptp(x) <= 360 and np.abs(y).max() <= 90
    if not is_globe or not len(rows):
        return np.zeros(len(rows), dtype=bool)
    least, greatest = spans(x, rows)
    return greatest - least > 180


def cut(
    x: np.ndarray, y: np.ndarray, rows: np.ndarray, values: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Corners of each shape that has a value; of those that cross the map's edge at both of its sides."""
    keep = np.isfinite(values) & (rows >= 0).any(axis=1)
    rows, values = rows[keep], values[keep]
    across = crossing(x, y, rows)
    middle = (x.min() + x.max()) / 2 if x.size else 0.0
    shapes, colours = [], []
    for row, value, crosses in zip(rows, values, across, strict=True):
        row = row[row >= 0]
        corners = np.stack([x[row], y[row]], axis=1)
        if not crosses:
            shapes.append(corners)
            colours.append(value)
            continue
        for side in (360.0, -360.0):
            moved = corners.copy()
            moved[(corners[:, 0] < middle) == (side > 0), 0] += side
            shapes.append(moved)
            colours.append(value)
    return shapes, np.asarray(colours)


def limits(axes: Any, points: list[np.ndarray]) -> None:
    """All nodes are within; a picture's axes have one scale where that leaves something to see."""
    reach = []
    for axis, values in zip("xyz", points, strict=False):
        least, greatest = extremes(values)
        margin = 0.01 * (greatest - least) or 0.5
        getattr(axes, f"set_{axis}lim")(least - margin, greatest + margin)
        reach.append(greatest - least or 1.0)
    if len(points) == 3:
        axes.set_box_aspect([max(one, max(reach) / MAX_ASPECT) for one in reach])
        axes.set_zlabel("z")
    elif max(reach) <= MAX_ASPECT * min(reach):
        axes.set_aspect("equal")

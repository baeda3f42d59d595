"""Fields on unstructured meshes: polygons of faces, triangles of nodes, lines of edges, skins of volumes.

Invariants:

* a row of nodes ends at its first -1; a shape without a value has the colour that says why;
* on the globe shapes lie as :mod:`.plot_globe` says: across the cut, and up to the poles;
* of volumes the faces that only one of them has are drawn, in space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from fieldstone._helper import plot_globe as globe
from fieldstone._helper.plot_colours import Colours
from fieldstone._helper.plot_grid import add_polygons, limits

# Faces of a volume by how many nodes it has, in the order of VTK, which is UGRID's.
FACES_OF = {
    4: ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)),
    5: ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
    6: ((0, 2, 1), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    8: ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
}


def draw_on_mesh(
    figure: Figure, data: np.ndarray, coords: dict[str, Any], mesh: dict[str, Any], colours: Colours
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
    if len(points) == 3:
        axes = figure.add_subplot(projection="3d")
        in_space(axes, data, points, location, kind, rows, colours)
        space_limits(axes, points, coords)
        return axes
    axes = figure.add_subplot()
    on_globe = [coords[axis][0].get("direction") for axis in "xy"] == ["longitude", "latitude"]
    west = globe.west_of(points[0]) if on_globe else None
    in_plane(axes, data, points, location, kind, rows, colours, west)
    x = points[0] if west is None else globe.onto(points[0], west)
    limits(axes, x, points[1], west, margin=0.0 if west is not None else 0.01)
    if not on_globe:
        globe.shape_axes(axes, False)
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
    axes: Any,
    data: np.ndarray,
    points: list[np.ndarray],
    location: str,
    kind: Any,
    rows: np.ndarray | None,
    colours: Colours,
    west: float | None,
) -> None:
    """Draws in the plane, or on a map that begins in the west at `west`."""
    x, y = points
    if location in ("edge", "face") and rows is not None:
        shapes = globe.Shapes(x, y, rows, west)
        rgba = colours.rgba(data)
        for polygons, owners in ((shapes.plain, shapes.plain_owner), (shapes.parts, shapes.parts_owner)):
            if location == "face":
                add_polygons(axes, list(polygons), rgba[owners])
            elif len(polygons):
                axes.add_collection(LineCollection(list(polygons), colors=rgba[owners]), autolim=False)
        return
    if kind != "faces" or rows is None:
        x = x if west is None else globe.onto(x, west)
        axes.scatter(x, y, c=colours.rgba(data), s=4, linewidths=0)
        return
    # Faces with a node that has no value have the colour of that node; the others are shaded.
    present = rows >= 0
    known = np.isfinite(data)
    shaded = (known[rows] | ~present).all(axis=1) & present.any(axis=1)
    gaps = rows[~shaded & present.any(axis=1)]
    if len(gaps):
        first = gaps[np.arange(len(gaps)), (~known[gaps] & (gaps >= 0)).argmax(axis=1)]
        shapes = globe.Shapes(x, y, gaps, west)
        rgba = colours.rgba(data[first])
        add_polygons(axes, list(shapes.plain), rgba[shapes.plain_owner])
        add_polygons(axes, shapes.parts, rgba[shapes.parts_owner])
    shade(axes, data, x, y, rows[shaded], colours, west)


def shade(
    axes: Any,
    data: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    colours: Colours,
    west: float | None,
) -> None:
    """Shades faces between the values of their nodes: triangles around the middle of each."""
    shapes = globe.Shapes(x, y, rows, west)
    (crossing,) = np.nonzero(~np.isin(np.arange(len(rows)), shapes.plain_owner))
    parts: list[np.ndarray] = []
    across = x if west is None else globe.onto(x, west)
    for size in np.unique((rows[shapes.plain_owner] >= 0).sum(axis=1)):
        some = rows[shapes.plain_owner]
        some = some[(some >= 0).sum(axis=1) == size][:, :size]
        if size >= 3:
            parts.append(fans(np.stack([across[some], y[some], data[some]], axis=-1)))
    if west is not None:
        for row in rows[crossing]:
            row = row[row >= 0]
            if len(row) < 3 or not (np.isfinite(x[row]).all() and np.isfinite(y[row]).all()):
                continue
            corners = np.stack(globe.outline(x[row], y[row], data[row]), axis=-1)
            if corners.size:
                triangles = around_pole(corners) if np.ptp(corners[:, 0]) > 359 else fans(corners[None])
                parts += [np.add(triangles, [move, 0, 0]) for move in globe.copies(west, corners[:, 0])]
    if parts:
        corners = np.concatenate(parts).reshape(-1, 3)
        mesh = Triangulation(corners[:, 0], corners[:, 1], np.arange(len(corners)).reshape(-1, 3))
        axes.tripcolor(mesh, corners[:, 2], shading="gouraud", cmap=colours.map, norm=colours.norm)


def fans(corners: np.ndarray) -> np.ndarray:
    """Triangles of polygons of one size (polygon, corner, x y value): around their middles."""
    count = corners.shape[1]
    if count == 3:
        return corners
    middle = corners.mean(axis=1)
    sides = [np.stack([corners[:, n], corners[:, (n + 1) % count], middle], axis=1) for n in range(count)]
    return np.concatenate(sides)


def around_pole(corners: np.ndarray) -> np.ndarray:
    """Triangles of an outline around a pole, which ends at that pole: two between each side and the pole."""
    first, second = corners[:-3], corners[1:-2]
    pole = corners[-1]
    above = [
        np.stack([side[:, 0], *(np.full(len(side), part) for part in pole[1:])], axis=-1)
        for side in (first, second)
    ]
    return np.concatenate(
        [np.stack([first, second, above[1]], axis=1), np.stack([first, above[1], above[0]], axis=1)]
    )


def in_space(
    axes: Any,
    data: np.ndarray,
    points: list[np.ndarray],
    location: str,
    kind: Any,
    rows: np.ndarray | None,
    colours: Colours,
) -> None:
    """Draws surfaces, lines or points in three dimensions."""
    xyz = np.stack(points, axis=1)
    if rows is None or (location == "node" and kind == "edges"):
        axes.scatter(*points, c=colours.rgba(data), s=4, linewidths=0)
        return
    if location == "node":
        present = rows >= 0
        data = np.where(present, data[rows], 0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    shapes = [xyz[row[row >= 0]] for row in rows]
    rgba = colours.rgba(data)
    if kind == "edges":
        axes.add_collection3d(Line3DCollection(shapes, colors=rgba))
    else:
        axes.add_collection3d(Poly3DCollection(shapes, facecolors=rgba, edgecolors="none"))


def space_limits(axes: Any, points: list[np.ndarray], coords: dict[str, Any]) -> None:
    """All nodes are within; axes have one scale where that leaves something to see."""
    reach = []
    for axis, values in zip("xyz", points, strict=True):
        there = values[np.isfinite(values)]
        least, greatest = (float(there.min()), float(there.max())) if there.size else (0.0, 1.0)
        margin = 0.01 * (greatest - least) or 0.5
        getattr(axes, f"set_{axis}lim")(least - margin, greatest + margin)
        reach.append(greatest - least or 1.0)
    axes.set_box_aspect([max(one, max(reach) / globe.MAX_ASPECT) for one in reach])
    axes.set_zlabel(str(coords["z"][0].get("label") or "z"), parse_math=False)

"""Outlines of the boxes and elements in a picture on which attributes stand.

Invariants:

* an outline follows the edges of the cells that are drawn, also across the ends of a map;
* a line of two colours is seen on any colour of a scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from fieldstone._helper import plot_globe as globe
from fieldstone._helper.plot_grid import Axis, edges

INNER, OUTER = "white", "black"
STROKE = (withStroke(linewidth=2.6, foreground=OUTER),)


def draw_marks(
    axes: Any,
    shape: tuple[int, ...],
    x: Axis,
    y: Axis,
    marks: dict[str, Any],
    mesh: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None,
) -> None:
    """Outlines boxes of an array of this shape, and elements of a mesh: x, y and rows of nodes."""
    cells = np.array([cell for cell in marks.get("cells", []) if 0 <= cell < shape[0]], dtype=int)
    boxes = [np.array(box, dtype=int).reshape(-1, 2) for box in marks.get("boxes", [])]
    boxes = [box for box in boxes if len(box) == len(shape) and (box[:, 0] < box[:, 1]).all()]
    if mesh is not None or (len(shape) == 1 and x.values is not None and y.values is not None):
        covered = [np.arange(box[0, 0], min(box[0, 1], shape[0])) for box in boxes]
        cells = np.unique(np.concatenate([cells, *covered]))
        if mesh is None:
            assert x.values is not None and y.values is not None
            mesh = (x.values, y.values, None)
        elements(axes, cells, *mesh, x.direction == "longitude" and y.direction == "latitude")
    elif len(shape) == 1:
        across, order = edges(x, shape[0])
        for box in boxes:
            for first, last in pieces(order, *box[0]):
                axes.axvspan(across[first], across[last], facecolor="none", edgecolor=OUTER, linewidth=1)
    elif x.values is not None and x.values.ndim == 2:
        assert y.values is not None
        on_globe = x.direction == "longitude" and y.direction == "latitude"
        corners = globe.corners_of(x.values, y.values, on_globe)
        west = globe.west_of(x.values) if on_globe else None
        outlines(axes, [perimeter(corners, *box.ravel()) for box in boxes], west)
    else:
        (across, at_x), (down, at_y) = edges(x, shape[1]), edges(y, shape[0])
        shapes = []
        for rows, columns in boxes:
            for left, right in pieces(at_x, *columns):
                for low, high in pieces(at_y, *rows):
                    ends = across[[left, right, right, left]], down[[low, low, high, high]]
                    shapes.append(np.stack(ends, axis=1))
        outlines(axes, shapes, None)


def pieces(order: np.ndarray, first: int, last: int) -> list[tuple[int, int]]:
    """The places of elements from `first` to `last` among sorted ones: ranges of them, half-open."""
    (places,) = np.nonzero((order >= first) & (order < last))
    if not places.size:
        return []
    parts = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts]


def perimeter(
    corners: tuple[np.ndarray, np.ndarray], low: int, high: int, left: int, right: int
) -> np.ndarray:
    """Corners of cells along the outline of a box of a curvilinear grid."""
    high, right = min(high, corners[0].shape[0] - 1), min(right, corners[0].shape[1] - 1)
    rows, columns = np.arange(low, high + 1), np.arange(left, right + 1)
    at = (
        np.concatenate([np.full(columns.size, low), rows, np.full(columns.size, high), rows[::-1]]),
        np.concatenate([columns, np.full(rows.size, right), columns[::-1], np.full(rows.size, left)]),
    )
    return np.stack([part[at] for part in corners], axis=1)


def outlines(axes: Any, shapes: list[np.ndarray], west: float | None) -> None:
    """Adds closed lines; with `west` at each place where they meet the map that begins there."""
    lines = []
    for shape in shapes:
        if not np.isfinite(shape).all():
            continue
        if west is None:
            lines.append(np.concatenate([shape, shape[:1]]))
            continue
        lon, lat = globe.outline(shape[:, 0], shape[:, 1])[:2]
        if lon.size:
            closed = np.stack([np.append(lon, lon[0]), np.append(lat, lat[0])], axis=1)
            lines += [np.add(closed, [move, 0]) for move in globe.copies(west, lon)]
    axes.add_collection(
        LineCollection(lines, colors=INNER, linewidths=1.2, path_effects=STROKE), autolim=False
    )


def elements(
    axes: Any, cells: np.ndarray, x: np.ndarray, y: np.ndarray, rows: np.ndarray | None, on_globe: bool
) -> None:
    """Outlines elements of a mesh, or points where it has no shapes of them."""
    west = globe.west_of(x) if on_globe else None
    if rows is None:
        across = x if west is None else globe.onto(x, west)
        axes.scatter(across[cells], y[cells], s=30, facecolors="none", edgecolors=INNER, path_effects=STROKE)
        return
    some = [row[row >= 0] for row in rows[cells]]
    outlines(axes, [np.stack([x[row], y[row]], axis=1) for row in some if len(row)], west)


def legend_of(marks: dict[str, Any]) -> Line2D:
    """The entry of a legend for the outlines."""
    return Line2D([], [], color=INNER, linewidth=1.2, path_effects=STROKE, label=str(marks.get("label", "")))

"""Grids and points: cells between straight or curved coordinates, rings of latitude, points on their own.

Invariants:

* a cell reaches half way to its neighbours; no cell reaches beyond a pole;
* coordinates that neither rise nor fall throughout are sorted with their values, longitudes followed around
  before;
* points of which many share a latitude are rings: each fills what is nearest to it, as its model sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection

from fieldstone._helper import plot_globe as globe
from fieldstone._helper.plot_colours import Colours

# Points of one latitude, on the average, that make rings of them.
OF_A_RING = 4
# A map of the globe that reaches this latitude reaches the pole.
NEAR_POLE = 75.0
# A point of a ring fills this much of the distance to the next one, where that is missing.
REACH = 0.75


@dataclass
class Axis:
    """A coordinate of a picture; `values` is None for one that only has a name."""

    values: np.ndarray | None = None
    label: str = ""
    direction: str = ""


def draw_grid(axes: Any, data: np.ndarray, masked: Any, x: Axis, y: Axis, colours: Colours) -> None:
    """Draws two dimensions as cells; coordinates are both straight or both curved."""
    if x.values is not None and x.values.ndim == 2:
        assert y.values is not None
        curved(axes, data, masked, x, y, colours)
        return
    (across, at_x), (down, at_y) = (
        edges(axis, n) for axis, n in zip((x, y), reversed(data.shape), strict=True)
    )
    order = np.ix_(at_y, at_x)
    rgba = colours.rgba(data[order], None if masked is None else masked[order])
    axes.pcolormesh(across, down, rgba, rasterized=True)
    axes.set_xlim(across[0], across[-1])
    axes.set_ylim(down[0], down[-1])
    for axis, turn in ((x, axes.xaxis.set_inverted), (y, axes.yaxis.set_inverted)):
        turn(axis.direction == "down" and axis is y)


def edges(axis: Axis, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges of cells along an axis, rising, and the order of their elements."""
    values = np.arange(n, dtype=float) if axis.values is None else axis.values
    if axis.direction == "longitude":
        # As they are where they rise or fall throughout, else followed around.
        steps = np.diff(values)
        if globe.is_region(values):
            values = globe.onto(values, globe.west_of(values))
        elif not ((steps > 0).all() or (steps < 0).all()):
            values = globe.follow(values)
            values = values - 360 * np.ceil((values.min() - 180) / 360)
    order = np.argsort(values, kind="stable")
    values = values[order]
    between = (values[1:] + values[:-1]) / 2
    ends = (1.5 * values[[0, -1]] - 0.5 * values[[1, -2]]) if n > 1 else values[0] + np.array([-0.5, 0.5])
    found = np.concatenate([ends[:1], between, ends[1:]])
    if axis.direction == "latitude":
        found = found.clip(-90, 90)
    return found, order


def curved(axes: Any, data: np.ndarray, masked: Any, x: Axis, y: Axis, colours: Colours) -> None:
    """Draws the cells of a grid whose coordinates have two dimensions."""
    assert x.values is not None and y.values is not None
    on_globe = x.direction == "longitude" and y.direction == "latitude"
    there = np.isfinite(x.values) & np.isfinite(y.values)
    across, down = globe.corners_of(x.values, y.values, on_globe)
    west = globe.west_of(x.values) if on_globe else None
    rgba = colours.rgba(data, masked)
    rgba[~there] = 0
    if west is not None:
        # Almost all cells lie on the map as they are: they are one mesh. The others are polygons.
        corner = np.arange(across.size).reshape(across.shape)
        at = [corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]]
        rows = np.stack(at, axis=-1).reshape(-1, 4)
        across, down = globe.onto(across, west).ravel(), down.ravel()
        reach = np.ptp(across[rows], axis=1)
        polar = (np.abs(down[rows]) > 90 - globe.AT_POLE).any(axis=1)
        apart = np.flatnonzero(there.ravel() & ((reach > 180 - 1e-9) | polar))
        shapes = globe.Shapes(across, down, rows[apart], west)
        flat = rgba.reshape(-1, 4)
        owners = np.concatenate([shapes.plain_owner, shapes.parts_owner])
        add_polygons(axes, [*shapes.plain, *shapes.parts], flat[apart][owners])
        flat[apart] = 0
        across, down = across.reshape(corner.shape), down.reshape(corner.shape)
    known = np.isfinite(across) & np.isfinite(down)
    axes.pcolormesh(np.where(known, across, 0), np.where(known, down, 0), rgba, rasterized=True)
    limits(axes, across[known], down[known], west)


def draw_points(
    axes: Any, data: np.ndarray, masked: Any, x: Axis, y: Axis, colours: Colours, size: tuple[int, int]
) -> None:
    """Draws values at points: rings of latitude as cells, others as marks that fill the picture about."""
    assert x.values is not None and y.values is not None
    on_globe = x.direction == "longitude" and y.direction == "latitude"
    across = globe.onto(x.values, west := globe.west_of(x.values)) if on_globe else x.values
    down = y.values
    there = np.isfinite(across) & np.isfinite(down)
    across, down, data = across[there], down[there], data[there]
    masked = None if masked is None else masked[there]
    if not data.size:
        return
    latitudes, ring = np.unique(down.round(4), return_inverse=True)
    if on_globe and latitudes.size > 1 and data.size >= OF_A_RING * latitudes.size:
        image = rings(axes, across, latitudes, ring, west, size)
        rgba = colours.rgba(data, masked)
        picture = np.where((image < 0)[..., None], 0, rgba[image])
        left, right, low, high = *axes.get_xlim(), *axes.get_ylim()
        axes.imshow(
            picture, extent=(left, right, low, high), origin="lower", aspect="auto", interpolation="nearest"
        )
        return
    # A mark is as wide as points are apart, in points of a printer: 72 of an inch of 100 pixels.
    apart = np.sqrt(size[0] * size[1] * 0.6 / data.size) * 72 / 100
    side = float(np.clip(apart, 1.5, 12))
    axes.scatter(across, down, c=colours.rgba(data, masked), s=side**2, marker="s", linewidths=0)
    limits(axes, across, down, west if on_globe else None, margin=0.02)


def rings(
    axes: Any,
    lon: np.ndarray,
    latitudes: np.ndarray,
    ring: np.ndarray,
    west: float,
    size: tuple[int, int],
) -> np.ndarray:
    """Sets the limits of the map, and gives of each of its pixels the element that is nearest, or -1."""
    between = (latitudes[1:] + latitudes[:-1]) / 2
    first, last = (1.5 * latitudes[[0, -1]] - 0.5 * latitudes[[1, -2]]).clip(-90, 90)
    # The last ring reaches the pole, whatever lies between the rings.
    first, last = (-90.0 if first < -NEAR_POLE else first), (90.0 if last > NEAR_POLE else last)
    limits(axes, lon, np.array([first, last]), west)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    columns = left + (right - left) * (np.arange(2 * size[0]) + 0.5) / (2 * size[0])
    rows = low + (high - low) * (np.arange(2 * size[1]) + 0.5) / (2 * size[1])
    order = np.lexsort((lon, ring))
    begins = np.searchsorted(ring[order], np.arange(latitudes.size + 1))
    image = np.full((rows.size, columns.size), -1)
    of_row = np.searchsorted(between, rows)
    for own in np.unique(of_row):
        members = order[begins[own] : begins[own + 1]]
        around = lon[members]
        # The ring goes on at both of its ends.
        members = np.concatenate([members[-1:], members, members[:1]])
        around = np.concatenate([around[-1:] - 360, around, around[:1] + 360])
        nearest = np.searchsorted((around[1:] + around[:-1]) / 2, columns)
        apart = np.median(np.diff(around[1:-1])) if around.size > 3 else 360.0
        near = np.abs(around[nearest] - columns) <= max(REACH * apart, 1e-9)
        image[of_row == own] = np.where(near, members[nearest], -1)
    image[(rows < first) | (rows > last)] = -1
    return image


def add_polygons(axes: Any, shapes: list[np.ndarray], colours: np.ndarray) -> None:
    """Adds polygons, without smoothing: it would leave light lines between them."""
    if len(shapes):
        polygons = PolyCollection(shapes, facecolors=colours, edgecolors="none", antialiaseds=False)
        axes.add_collection(polygons, autolim=False)


def limits(axes: Any, x: np.ndarray, y: np.ndarray, west: float | None, margin: float = 0.0) -> None:
    """The part of the plane that is shown: all of the globe, or as far as the coordinates reach."""
    x, y = x[np.isfinite(x)], y[np.isfinite(y)]
    if not (x.size and y.size):
        return
    ends = [[x.min(), x.max()], [y.min(), y.max()]]
    for end in ends:
        wide = (end[1] - end[0]) or 1.0
        end[0], end[1] = end[0] - margin * wide, end[1] + margin * wide
    if west is not None:
        if not globe.is_region(x):
            ends[0] = [west, west + 360]
            # Cells around a pole reach it, and no node has to.
            ends[1] = [
                -90.0 if ends[1][0] < -NEAR_POLE else ends[1][0],
                90.0 if ends[1][1] > NEAR_POLE else ends[1][1],
            ]
        ends[1] = [max(ends[1][0], -90.0), min(ends[1][1], 90.0)]
    axes.set_xlim(*ends[0])
    axes.set_ylim(*ends[1])

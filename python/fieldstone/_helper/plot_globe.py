"""Maps of the globe: where they are cut, and how cells, lines and grids cross the cut and the poles.

A map shows longitudes from its west end to 360 degrees east of it. Coordinates alone do not say on which
side of the globe a cell lies: its corners are followed around, each the shorter way from the last one.

Invariants:

* a shape is drawn at every place where it meets the map, so at both ends where it crosses the cut;
* a corner at a pole has no longitude: the shape reaches the pole at those of its neighbours; a shape around
  a pole fills the map up to that pole;
* coordinates that are not finite make no shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

# A region leaves at least this many degrees of the globe out.
WIDEST_GAP = 30.0
# And this many times as many as lie between any others of its coordinates.
WIDER = 2.0
# Nearer to a pole than this, in degrees, a corner lies at it.
AT_POLE = 1e-6
# Axes of lengths that differ more than this are stretched to fill the picture.
MAX_ASPECT = 8


def west_of(longitudes: np.ndarray) -> float:
    """The west end of the map: in the widest gap of a region, else where the coordinates begin to count."""
    finite = longitudes[np.isfinite(longitudes)]
    if (found := gap_of(finite)) is None:
        return -180.0 if not finite.size or finite.min() < 0 else 0.0
    # The middle of the gap. The region begins at the gap's end, counted as the coordinates count where that
    # is possible, else as near to 0 as it can be.
    begin, gap = found
    if np.ptp(finite) <= 360 - gap + 1e-9:
        begin += 360 * np.round((finite.min() - begin) / 360)
    elif begin + (360 - gap) / 2 > 180:
        begin -= 360
    return float(begin - gap / 2)


def is_region(longitudes: np.ndarray) -> bool:
    """Whether the coordinates leave a wide part of the globe out."""
    return gap_of(longitudes[np.isfinite(longitudes)]) is not None


def gap_of(longitudes: np.ndarray) -> tuple[float, float] | None:
    """East end and width of the part of the globe that a region leaves out; None for the whole globe."""
    turned = np.unique(longitudes % 360)
    if not turned.size:
        return None
    gaps = np.diff(np.append(turned, turned[0] + 360))
    widest = int(gaps.argmax())
    # The steps of a coarse grid are wide, too, and all alike.
    others = np.delete(gaps, widest)
    if gaps[widest] < WIDEST_GAP or (others.size and gaps[widest] < WIDER * others.max()):
        return None
    return float(turned[(widest + 1) % turned.size]), float(gaps[widest])


def onto(longitudes: np.ndarray, west: float) -> np.ndarray:
    """Longitudes from `west` to 360 degrees east of it."""
    return west + (longitudes - west) % 360


def follow(longitudes: np.ndarray) -> np.ndarray:
    """Longitudes along a line, each the shorter way from the last one."""
    return np.unwrap(longitudes, period=360)


def outline(lon: np.ndarray, lat: np.ndarray, values: np.ndarray | None = None) -> list[np.ndarray]:
    """Corners of a closed shape on a map without an end: longitudes, latitudes, values (0 without `values`).

    A pole that the shape goes around has the mean of its corners' values.
    """
    own = np.zeros(lon.size) if values is None else values
    lon, lat, own = _split_at_poles(lon, lat, own)
    poles = np.abs(lat) > 90 - AT_POLE
    if poles.all():
        return [np.empty(0)] * 3
    if poles.any():
        # Begun behind a pole, the way around does not depend on the pole's longitude, which says nothing.
        begin = -(int(np.flatnonzero(poles)[0]) + 1)
        lon, lat, own, poles = (np.roll(part, begin) for part in (lon, lat, own, poles))
        way = np.empty(lon.size)
        way[~poles] = follow(lon[~poles])
        points: list[tuple[float, float, float]] = []
        for at in range(lon.size):
            if not poles[at]:
                points.append((way[at], lat[at], own[at]))
                continue
            before, after = at - 1, (at + 1) % lon.size
            points += [(way[side], lat[at], own[at]) for side in (before, after) if not poles[side]]
        return list(np.array(points).T)
    way = follow(np.append(lon, lon[0]))
    if abs(way[-1] - way[0]) > 180:
        pole, mean = np.copysign(90.0, lat.sum()), own.mean()
        lat, own = np.append(lat, [lat[0], pole, pole]), np.append(own, [own[0], mean, mean])
        return [np.append(way, [way[-1], way[0]]), lat, own]
    return [way[:-1], lat, own]


def _split_at_poles(lon: np.ndarray, lat: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, ...]:
    """Adds a pole to each side whose ends lie opposite one another: that is the way the side takes."""
    following = np.roll(np.arange(lon.size), -1)
    turn = np.abs((lon[following] - lon + 180) % 360 - 180)
    flat = np.maximum(np.abs(lat), np.abs(lat[following])) > 90 - AT_POLE
    sides = np.flatnonzero((turn > 180 - 1e-9) & ~flat & (lat + lat[following] != 0))
    if not sides.size:
        return lon, lat, own
    poles = np.copysign(90.0, lat[sides] + lat[following[sides]])
    means = (own[sides] + own[following[sides]]) / 2
    return tuple(
        np.insert(part, sides + 1, more) for part, more in ((lon, lon[sides]), (lat, poles), (own, means))
    )


def copies(west: float, lon: np.ndarray) -> list[float]:
    """By how much a shape is moved to each place where it meets the map."""
    first = np.ceil((west - lon.max()) / 360 + 1e-12)
    last = np.floor((west + 360 - lon.min()) / 360 - 1e-12)
    return [360.0 * turn for turn in np.arange(first, last + 1)]


class Shapes:
    """Polygons of rows of nodes: those that lie on the map as they are, and those that cross its ends.

    `plain` and `parts` are corners; `plain_owner` and `parts_owner` say which row each is of.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, rows: np.ndarray, west: float | None) -> None:
        present = rows >= 0
        sizes = present.sum(axis=1)
        # Entries behind the last node repeat it.
        last = np.maximum(sizes - 1, 0)[:, None]
        filled = np.take_along_axis(rows, np.minimum(np.arange(rows.shape[1])[None, :], last), axis=1)
        across = x if west is None else onto(x, west)
        corners = np.stack([across[filled], y[filled]], axis=-1)
        there = (sizes > 0) & np.isfinite(corners).all(axis=(1, 2))
        self.parts: list[np.ndarray] = []
        owners: list[int] = []
        crossing = np.zeros(len(rows), dtype=bool)
        if west is not None:
            at_pole = np.abs(corners[..., 1]) > 90 - AT_POLE
            crossing = there & (at_pole.any(axis=1) | (np.ptp(corners[..., 0], axis=1) > 180 - 1e-9))
            for owner in np.flatnonzero(crossing):
                row = rows[owner][present[owner]]
                shape = outline(x[row], y[row])[:2] if len(row) > 2 else line(x[row], y[row])
                if shape[0].size:
                    moves = copies(west, shape[0])
                    self.parts += [np.stack([shape[0] + move, shape[1]], axis=1) for move in moves]
                    owners += [int(owner)] * len(moves)
        (self.plain_owner,) = np.nonzero(there & ~crossing)
        self.plain = corners[self.plain_owner]
        self.parts_owner = np.array(owners, dtype=int)


def line(lon: np.ndarray, lat: np.ndarray) -> list[np.ndarray]:
    """The ends of a line, the shorter way; at a pole it has the longitude of its other end."""
    poles = np.abs(lat) > 90 - AT_POLE
    if poles.any() and not poles.all():
        lon = np.where(poles, lon[~poles][0], lon)
    return [follow(lon), lat]


def corners_of(x: np.ndarray, y: np.ndarray, on_globe: bool) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the cells around the points of a curvilinear grid: the middles of four neighbours."""
    if on_globe:
        lon, lat = np.radians(x), np.radians(y)
        flat = np.cos(lat)
        points = np.stack([flat * np.cos(lon), flat * np.sin(lon), np.sin(lat)], axis=-1)
    else:
        points = np.stack([x, y], axis=-1)
    for axis in (0, 1):
        points = np.moveaxis(points, axis, 0)
        if len(points) > 1:
            ends = 2 * points[[0, -1]] - points[[1, -2]]
        else:
            ends = points[[0, 0]] + np.array([-1.0, 1.0])[:, None, None] * (0.5 if not on_globe else 0.01)
        points = np.concatenate([ends[:1], points, ends[1:]])
        points = np.moveaxis(points, 0, axis)
    around = np.stack([points[:-1, :-1], points[1:, :-1], points[:-1, 1:], points[1:, 1:]])
    known = np.isfinite(around).all(axis=-1, keepdims=True)
    middle = np.where(known, around, 0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)
    if not on_globe:
        return middle[..., 0], middle[..., 1]
    lat = np.degrees(np.arctan2(middle[..., 2], np.hypot(middle[..., 0], middle[..., 1])))
    return np.degrees(np.arctan2(middle[..., 1], middle[..., 0])), lat


def ticks(axis: Any, letters: str) -> None:
    """Marks of an axis in degrees: 120°W, 30°N. `letters` are those of negative and positive ones."""

    def text(value: float, _: Any = None) -> str:
        turned = (value + 180) % 360 - 180 if letters == "WE" else value
        turned = round(turned, 9)
        letter = "" if turned == 0 or turned == -180 else letters[int(turned > 0)]
        return f"{abs(turned):g}°{letter}"

    # Marks of a narrow map would run into one another.
    (left, right), (low, high) = axis.axes.get_xlim(), axis.axes.get_ylim()
    aspect = axis.axes.get_aspect()
    room = 7
    if letters == "WE" and aspect != "auto":
        room = int(np.clip(5 * abs(right - left) / (abs(high - low) * float(aspect) or 1), 2, 7))
    shown = abs(right - left) if letters == "WE" else abs(high - low)
    steps = [1, 1.5, 2, 3, 5, 6, 10] if shown > 10 else [1, 2, 5, 10]
    axis.set_major_locator(MaxNLocator(nbins=room, steps=steps))
    axis.set_major_formatter(FuncFormatter(text))


def shape_axes(axes: Any, on_globe: bool) -> None:
    """Gives axes one scale where that leaves something to see; degrees of longitude shrink polewards."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    wide, tall = abs(right - left), abs(high - low)
    middle = (low + high) / 2 if on_globe else 0.0
    shorter = max(float(np.cos(np.radians(middle))), 0.2) if wide < 359 else 1.0
    if wide and tall and 1 / MAX_ASPECT <= wide * shorter / tall <= MAX_ASPECT:
        axes.set_aspect(1 / shorter)

"""Pictures looked at as images.

A picture without its text is compared with a small one beside this file, `pictures/NAME.png`, which somebody
has looked at: the mean difference and the share of pixels that differ by much stay small, so that another
matplotlib passes and a stripe, a hole or another map of colours does not. `FIELDSTONE_PICTURES=write` writes
them again. Fields that are smooth are compared with themselves, pixel by pixel. Titles, labels, limits and
legends are compared as text.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from fieldstone._helper import plot, plot_colours, plot_globe, plot_marks, plot_mesh
from fieldstone._helper.plot_grid import Axis, edges
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.image import imread, imsave

REFERENCES = Path(__file__).parent / "pictures"
WIDTH, HEIGHT = 120, 80
LON = {"label": "longitude", "units": "degrees_east", "direction": "longitude"}
LAT = {"label": "latitude", "units": "degrees_north", "direction": "latitude"}


def figure(data: Any, x: Any = None, y: Any = None, **options: Any) -> Any:
    """The figure of a request: a map, unless `of_x` and `of_y` say otherwise."""
    coords: dict[str, Any] = {}
    for name, values, facts in (("x", x, LON), ("y", y, LAT)):
        if values is not None:
            coords[name] = (options.pop(f"of_{name}", facts), np.asarray(values, dtype=float))
    for name in ("rows", "masked"):
        if name in options:
            coords[name] = ({}, options.pop(name))
    return plot.draw(np.asarray(data, dtype=float), coords, options)


def bare(drawn: Any) -> np.ndarray:
    """The pixels within the axes: no text, no bar of colours, no hatching, one stretch for all."""
    axes = drawn.axes[0]
    drawn.set_layout_engine("none")
    for other in [*axes.child_axes, *drawn.legends]:
        other.remove()
    axes.patch.set_hatch(None)
    axes.set_title("")
    axes.set_aspect("auto")
    axes.set_position((0, 0, 1, 1))
    axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    drawn.set_size_inches(WIDTH / 100, HEIGHT / 100)
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3] / 255.0


def check(name: str, drawn: Any) -> None:
    """The picture is the one that was looked at."""
    pixels, path = bare(drawn), REFERENCES / f"{name}.png"
    if os.environ.get("FIELDSTONE_PICTURES") == "write":
        imsave(path, pixels)
    expected = imread(path)[..., :3]
    assert pixels.shape == expected.shape == (HEIGHT, WIDTH, 3)
    apart = np.abs(pixels - expected).max(axis=-1)
    if apart.mean() > 0.02 or (apart > 0.2).mean() > 0.02:
        imsave(failed := Path(os.environ.get("TMPDIR", "/tmp")) / f"{name}-failed.png", pixels)
        pytest.fail(f"{name}: mean difference {apart.mean():.3f}, {(apart > 0.2).mean():.1%} far: {failed}")


def cubed_sphere(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Longitudes (0 to 360) and latitudes of the nodes of a cubed sphere, and the nodes of its faces."""
    t = np.tan(np.linspace(-np.pi / 4, np.pi / 4, n + 1))
    a, b = np.meshgrid(t, t)
    one = np.ones_like(a)
    sides = [(one, a, b), (-a, one, b), (-one, -a, b), (a, -one, b), (-b, a, one), (b, a, -one)]
    points = np.concatenate([np.stack(side, -1).reshape(-1, 3) for side in sides])
    corner = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    quads = np.stack([corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]], -1).reshape(-1, 4)
    rows = np.concatenate([quads + side * corner.size for side in range(6)])
    points, first = np.unique(points.round(9), axis=0, return_inverse=True)
    x, y, z = points.T
    return np.degrees(np.arctan2(y, x)) % 360, np.degrees(np.arctan2(z, np.hypot(x, y))), first[rows]


def turned_grid(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Longitudes and latitudes of a grid of the whole globe whose poles lie elsewhere."""
    lon, lat = np.meshgrid(
        np.radians(np.arange(columns) * 360 / columns - 180),
        np.radians((np.arange(rows) + 0.5) * 180 / rows - 90),
    )
    x, y, z = np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)
    tilt = np.radians(50)
    x, z = x * np.cos(tilt) + z * np.sin(tilt), z * np.cos(tilt) - x * np.sin(tilt)
    return np.degrees(np.arctan2(y, x)), np.degrees(np.arcsin(z.clip(-1, 1)))


def rings(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a reduced grid of `n` latitudes, fewer toward the poles."""
    latitudes = (np.arange(n) + 0.5) * 180 / n - 90
    counts = [max(4, int(2 * n * np.cos(np.radians(lat)))) for lat in latitudes]
    lon = np.concatenate([np.arange(count) * 360 / count for count in counts])
    return lon, np.repeat(latitudes, counts)


def smooth(lon: Any, lat: Any) -> np.ndarray:
    """A field that is smooth on the globe, also at its poles."""
    lon, lat = np.radians(lon), np.radians(lat)
    return np.cos(lat) * np.cos(lon - 0.5) + np.sin(lat) / 2


X, Y, FACES = cubed_sphere(4)
EDGES = np.unique(np.sort(np.concatenate([FACES[:, [n, (n + 1) % 4]] for n in range(4)]), axis=1), axis=0)
CURVED = turned_grid(30, 60)


# -- fields that are smooth, with themselves


def of_nodes() -> Any:
    x, y, faces = cubed_sphere(16)
    return figure(smooth(x, y), x, y, rows=faces, mesh={"location": "node", "rows": "faces"})


def of_faces() -> Any:
    x, y, faces = cubed_sphere(24)
    middle = [
        np.mean(part[faces], axis=1)
        for part in (
            np.cos(np.radians(y)) * np.cos(np.radians(x)),
            np.cos(np.radians(y)) * np.sin(np.radians(x)),
            np.sin(np.radians(y)),
        )
    ]
    lon, lat = np.arctan2(middle[1], middle[0]), np.arctan2(middle[2], np.hypot(middle[0], middle[1]))
    values = smooth(np.degrees(lon), np.degrees(lat))
    return figure(values, x, y, rows=faces, mesh={"location": "face", "rows": "faces"})


def of_curved_grid() -> Any:
    lon, lat = turned_grid(60, 120)
    return figure(smooth(lon, lat), lon, lat)


def of_curved_grid_that_begins_anywhere() -> Any:
    lon, lat = np.meshgrid((np.arange(100, 460, 3.0) + 180) % 360 - 180, np.linspace(-88.5, 88.5, 60))
    return figure(smooth(lon, lat), lon, lat)


def of_grid_from_greenwich() -> Any:
    lon, lat = np.arange(0, 360, 3.0), np.linspace(90, -90, 61)
    return figure(smooth(lon[None], lat[:, None]), lon, lat)


def of_grid_that_begins_anywhere() -> Any:
    lon, lat = (np.arange(100, 460, 3.0) + 180) % 360 - 180, np.linspace(-90, 90, 61)
    return figure(smooth(lon[None], lat[:, None]), lon, lat)


def of_rings() -> Any:
    lon, lat = rings(60)
    return figure(smooth(lon, lat), lon, lat)


@pytest.mark.parametrize(
    "draw",
    [
        of_nodes,
        of_faces,
        of_curved_grid,
        of_curved_grid_that_begins_anywhere,
        of_grid_from_greenwich,
        of_grid_that_begins_anywhere,
        of_rings,
    ],
)
def test_a_smooth_field_is_seen_as_it_is_everywhere(draw: Any) -> None:
    drawn = draw()
    (left, right), (low, high) = drawn.axes[0].get_xlim(), drawn.axes[0].get_ylim()
    assert right - left == pytest.approx(360) and (low, high) == (-90, 90)
    bar = drawn.axes[0].child_axes[0]
    least, greatest = bar.get_ylim()
    assert least == -greatest and greatest == pytest.approx(smooth(0, 0) * 1.27, rel=0.1)
    pixels = bare(drawn)
    lon = left + (right - left) * (np.arange(WIDTH) + 0.5) / WIDTH
    lat = high - (high - low) * (np.arange(HEIGHT) + 0.5) / HEIGHT
    values = smooth(lon[None], lat[:, None])
    expected = colormaps["RdBu_r"]((values / greatest + 1) / 2)[..., :3]
    apart = np.abs(pixels - expected).max(axis=-1)
    # Cells are as wide as three pixels: no pixel is farther off than half a cell's slope.
    assert apart.max() < 0.16 and apart.mean() < 0.03, (apart.max(), apart.mean())


# -- pictures that somebody has looked at


def holes() -> tuple[np.ndarray, np.ndarray]:
    data = np.add.outer(np.arange(8.0), np.arange(12.0))
    masked = np.zeros(data.shape, dtype=bool)
    data[1:3, 1:4] = np.nan
    data[5:7, 2:5], masked[5:7, 2:5] = np.nan, True
    data[3:5, 8:10] = np.inf
    return data, masked


def nodes_without_values() -> np.ndarray:
    values = smooth(X, Y) + 3
    values[np.argmin(np.hypot(X - 0, Y - 0))] = np.nan
    values[np.argmin(np.hypot(X - 180, Y - 45))] = np.inf
    return values


PICTURES = {
    "faces": lambda: figure(np.arange(96.0), X, Y, rows=FACES, mesh={"location": "face", "rows": "faces"}),
    "edges": lambda: figure(
        Y[EDGES].mean(axis=1), X, Y, rows=EDGES, mesh={"location": "edge", "rows": "edges"}
    ),
    "nodes": lambda: figure(X + Y, X, Y, rows=FACES, mesh={"location": "node", "rows": "faces"}),
    "nodes-without-values": lambda: figure(
        nodes_without_values(), X, Y, rows=FACES, mesh={"location": "node", "rows": "faces"}
    ),
    "holes": lambda: figure(holes()[0], masked=holes()[1]),
    "curved": lambda: figure(np.add.outer(np.arange(30.0), np.arange(60.0)), *CURVED),
    "date-line": lambda: figure(
        np.add.outer(np.arange(6.0), np.arange(9.0)), (np.arange(9) * 5 + 340) % 360 - 180, np.arange(6) * 5.0
    ),
    "curved-date-line": lambda: figure(
        np.add.outer(np.arange(6.0), np.arange(9.0)),
        (np.arange(9)[None] * 5 + np.arange(6)[:, None] * 2 + 335) % 360 - 180,
        np.arange(6)[:, None] * 5.0 + np.arange(9)[None],
    ),
    "rings": lambda: figure(rings(12)[0], *rings(12)),
    "marks": lambda: figure(
        np.zeros((12, 18)),
        (np.arange(18) * 5 + 320) % 360 - 180,
        30 - np.arange(12) * 5.0,
        marks={"label": "hot (2)", "boxes": [[[0, 3], [2, 9]], [[6, 10], [6, 12]]]},
    ),
    "marks-on-a-mesh": lambda: figure(
        np.zeros(96),
        X,
        Y,
        rows=FACES,
        mesh={"location": "face", "rows": "faces"},
        marks={"label": "hot (3)", "boxes": [], "cells": [1, 5, 12, 80, 500]},
    ),
    "profile": lambda: figure(
        np.add.outer(np.arange(5.0), np.arange(6.0)),
        np.arange(6.0),
        [10.0, 100.0, 300.0, 500.0, 1000.0],
        of_x={"label": "distance", "units": "km"},
        of_y={"label": "pressure", "units": "hPa", "direction": "down"},
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_one_that_was_looked_at(name: str) -> None:
    check(name, PICTURES[name]())


# -- words


def test_titles_labels_units_and_degrees() -> None:
    drawn = figure(
        smooth(*np.meshgrid(np.arange(0, 360, 10.0), np.linspace(-90, 90, 19))),
        np.arange(0, 360, 10.0),
        np.linspace(-90, 90, 19),
        title="air $temperature$\n2099-06-01 00:00, run A_1",
        label="air temperature",
        units="kg m-2 s**-1",
    )
    drawn.canvas.draw()
    axes = drawn.axes[0]
    assert axes.get_title() == "air $temperature$\n2099-06-01 00:00, run A_1"
    assert not axes.title.get_parse_math()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude", "latitude")
    texts = [text.get_text() for text in axes.get_xticklabels()]
    assert {"60°E", "120°W", "180°", "0°"} <= set(texts)
    assert "60°N" in [text.get_text() for text in axes.get_yticklabels()]
    assert axes.child_axes[0].get_ylabel() == "air temperature (kg m⁻² s⁻¹)"
    assert not drawn.legends, "nothing is missing"


def test_units_are_printed_as_people_write_them() -> None:
    for unit, text in [("m s**-1", "m s⁻¹"), ("m2/s2", "m²/s²"), ("degC", "°C"), ("degree_C", "°C")]:
        assert plot.named("t", unit) == f"t ({text})"
    for unit in ("1e-3", "1E16 e", "hPa", "days since 1970-01-01"):
        assert plot.named("t", unit) == f"t ({unit})"
    assert plot.named("t", "1") == plot.named("t", "") == "t" and plot.named("", "K") == "K"


def test_long_titles_are_wrapped_within_the_picture() -> None:
    drawn = figure(np.eye(3), title="word " * 60, size=[640, 480])
    FigureCanvasAgg(drawn).draw()
    box = drawn.axes[0].title.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= 640 and box.y1 <= 480 and drawn.axes[0].get_title().count("\n") > 2


def test_axes_are_named_by_dimensions_dates_and_depths() -> None:
    drawn = figure(np.eye(3), dims=["level", "cell"])
    assert (drawn.axes[0].get_xlabel(), drawn.axes[0].get_ylabel()) == ("cell", "level")
    when = {"label": "time", "direction": "time"}
    drawn = figure(np.arange(3.0), x=[0.0, 86400.0, 2 * 86400.0], of_x=when, label="t", units="K")
    drawn.canvas.draw()
    texts = [text.get_text() for text in drawn.axes[0].get_xticklabels()]
    assert any("Jan-02" in text or text.startswith("02") or text == "2" for text in texts), texts
    assert drawn.axes[0].get_ylabel() == "t (K)"
    depth = {"label": "depth", "units": "m", "direction": "down"}
    low, high = figure(np.eye(3), y=[0.0, 10.0, 50.0], of_y=depth).axes[0].get_ylim()
    assert low > high, "the surface is on top"


def test_legends_say_what_is_missing_masked_or_infinite() -> None:
    data, masked = holes()
    drawn = figure(data, masked=masked)
    texts = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert texts == ["missing (6)", "masked (6)", "infinite (4)"]
    assert [texts.get_text() for texts in figure(data).legends[0].get_texts()] == [
        "missing (12)",
        "infinite (4)",
    ]
    nothing = figure(np.full((3, 4), np.nan))
    assert not nothing.axes[0].child_axes, "no bar of colours without a value"


def test_boxes_of_attributes_are_outlined_and_counted() -> None:
    drawn = figure(np.eye(4), marks={"label": "hot (1)", "boxes": [[[1, 3], [0, 2]], [[0, 1], [9, 9]]]})
    (lines,) = (c for c in drawn.axes[0].collections if isinstance(c, LineCollection))
    (line,) = lines.get_segments()
    assert (line.min(axis=0).tolist(), line.max(axis=0).tolist()) == ([-0.5, 0.5], [1.5, 2.5])
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["hot (1)"]
    # Elements that are sorted for the picture are outlined where they stand then.
    drawn = figure(
        np.zeros((2, 4)), [20, 30, 0, 10], [0, 1], marks={"label": "", "boxes": [[[0, 2], [1, 3]]]}
    )
    (lines,) = (c for c in drawn.axes[0].collections if isinstance(c, LineCollection))
    reach = sorted((line[:, 0].min(), line[:, 0].max()) for line in lines.get_segments())
    assert reach == [(-5, 5), (25, 35)]
    assert plot_marks.pieces(np.array([2, 3, 0, 1]), 1, 3) == [(0, 1), (3, 4)]


def test_colours_of_values_that_are_not_there_are_on_no_scale() -> None:
    greys = [to_rgb(colour) for colour in (plot_colours.MISSING, plot_colours.MASKED, plot_colours.INFINITE)]
    for name in ("viridis", "RdBu_r"):
        scale = colormaps[name](np.linspace(0, 1, 256))[:, :3]
        for colour in greys:
            assert np.abs(scale - colour).max(axis=1).min() > 0.08
    assert np.ptp(np.array(greys), axis=0).max() > 0.2


def test_maps_diverge_where_data_do() -> None:
    def limits(*values: float) -> tuple[bool, float, float]:
        colours = plot_colours.Colours(np.array(values))
        return colours.diverges, colours.norm.vmin, colours.norm.vmax

    assert limits(-3, 0, 1) == (True, -3, 3)
    assert limits(1, 3) == (False, 1, 3) and limits(-3, -1) == (False, -3, -1)
    assert limits(-1e-6, 5) == (False, -1e-6, 5), "rounding is not a side"
    assert limits(0, 5, np.nan, np.inf) == (False, 0, 5)
    low, high = limits(7, 7)[1:]
    assert low < 7 < high


# -- the globe


def test_maps_begin_where_nothing_is_cut() -> None:
    assert plot_globe.west_of(np.arange(-180, 180, 5.0)) == -180
    assert plot_globe.west_of(np.arange(0, 360, 5.0)) == 0
    # The wide steps of a coarse grid leave nothing out.
    assert plot_globe.west_of(np.arange(0, 360, 90.0)) == 0 and not plot_globe.is_region(np.arange(8) * 45.0)
    for region in ([350, 355, 0, 5], [170, 180, -170], [225, 280, 315], [-100, -60], [350, 355, 365]):
        longitudes = np.array(region, dtype=float)
        west = plot_globe.west_of(longitudes)
        assert np.ptp(plot_globe.onto(longitudes, west)) < 100, region
    # Counted as they count, where that is in one piece.
    for region in ([225.0, 280, 315], [-100, -60], [350, 355, 365]):
        assert plot_globe.onto(np.array(region), plot_globe.west_of(np.array(region))).tolist() == region


def test_a_region_that_crosses_greenwich_is_drawn_in_one_piece() -> None:
    # Each one greater than the last, and yet a region: 34.5°W to 0.5°E.
    for longitudes in ([0.5, 325.5, 330.5, 340.5, 355.5], [350.0, 355, 0, 5], [5.0, 0, 355, 350]):
        found, order = edges(Axis(np.array(longitudes), direction="longitude"), len(longitudes))
        assert np.ptp(found) < 60 and (np.diff(found) > 0).all(), longitudes
        assert sorted(order.tolist()) == list(range(len(longitudes)))


def test_shapes_around_poles_are_closed_there() -> None:
    lon, lat, values = plot_globe.outline(np.array([0.0, 90, 180, 270]), np.full(4, 80.0), np.arange(4.0))
    assert np.ptp(lon) == 360 and lat[-2:].tolist() == [90, 90] and values[-2:].tolist() == [1.5, 1.5]
    # A corner at the pole has the longitudes of its neighbours, whatever its own is.
    for own in (0.0, 77.0, -123.0):
        lon, lat, _ = plot_globe.outline(np.array([10.0, 100, own]), np.array([-80.0, -80, -90]))
        assert sorted(zip(lon, lat, strict=True)) == [(10, -90), (10, -80), (100, -90), (100, -80)]
    # A side of 180 degrees goes over the pole.
    lon, lat, _ = plot_globe.outline(np.array([0.0, 180, 170]), np.array([80.0, 80, 60]))
    assert 90 in lat and np.ptp(lon) == 180


def test_a_face_around_a_pole_is_shaded_up_to_it() -> None:
    lon, lat = np.array([0.0, 90, 180, 270, 0, 90, 180, 270]), np.repeat([60.0, -60], 4)
    rows, mesh = np.arange(8).reshape(2, 4), {"location": "node", "rows": "faces"}
    drawn = figure([0, 1, 0, 1, 0, 1, 0, 1], lon, lat, rows=rows, mesh=mesh)
    assert drawn.axes[0].get_xlim() == (0, 360)
    drawn.axes[0].set_ylim(60, 90)
    pixels = bare(drawn)
    least, mean, greatest = colormaps["viridis"]([0.0, 0.5, 1.0])[:, :3]
    # Half way to the pole: half way between a node's colour and the mean's, above each node.
    for column, node in ((0, least), (WIDTH // 4, greatest), (WIDTH // 2, least), (3 * WIDTH // 4, greatest)):
        assert np.abs(pixels[HEIGHT // 2, column] - (node + mean) / 2).max() < 0.06, column
    assert np.abs(pixels[1] - mean).max() < 0.06


def test_a_shape_is_drawn_at_both_ends_of_the_map() -> None:
    lon, lat = np.array([170.0, -170, -170, 170, 0, 20, 20]), np.array([0.0, 0, 10, 10, 0, 0, 10])
    shapes = plot_globe.Shapes(lon, lat, np.array([[0, 1, 2, 3], [4, 5, 6, -1]]), -180.0)
    assert shapes.parts_owner.tolist() == [0, 0] and shapes.plain_owner.tolist() == [1]
    ends = sorted((part[:, 0].min(), part[:, 0].max()) for part in shapes.parts)
    assert ends == [(-190, -170), (170, 190)]
    assert shapes.plain[0][:, 0].tolist() == [0, 20, 20, 20], "a row ends at its first -1"
    # On a plane that is as wide nothing is cut, and a place that is not finite makes no shape.
    lon[4] = np.nan
    plane = plot_globe.Shapes(lon, lat, np.array([[0, 1, 2, 3], [4, 5, 6, -1]]), None)
    assert plane.plain_owner.tolist() == [0] and not plane.parts


def test_a_map_of_a_region_keeps_its_shape() -> None:
    lat = np.linspace(55, 65, 11)
    drawn = figure(np.add.outer(np.arange(11.0), np.arange(21.0)), np.linspace(0, 20, 21), lat)
    assert drawn.axes[0].get_aspect() == pytest.approx(2, rel=0.01), "at 60 degrees a degree is half as long"
    assert figure(np.eye(3), [0, 180, 359], [0, 0.1, 0.2]).axes[0].get_aspect() == "auto"


def test_fans_of_polygons_cover_them() -> None:
    square = np.array([[[0.0, 0, 1], [1, 0, 2], [1, 1, 3], [0, 1, 4]]])
    triangles = plot_mesh.fans(square)
    area = sum(abs(np.linalg.det(np.c_[t[:, :2], np.ones(3)])) / 2 for t in triangles)
    assert len(triangles) == 4 and area == pytest.approx(1) and set(triangles[:, 2, 2]) == {2.5}

"""Pictures: fields to PNG with matplotlib, without a display.

Invariants:

* a title is words and an axis has a name with its unit; no text is taken for a formula;
* an element without a value is seen, and the picture says why (:mod:`.plot_colours`);
* the least and greatest colour are those of all values, also where a large array is thinned.
"""

from __future__ import annotations

import io
import re
import textwrap
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from fieldstone._helper import plot_globe as globe
from fieldstone._helper.frames import Channel, RequestError
from fieldstone._helper.plot_colours import MISSING, Colours, paper
from fieldstone._helper.plot_grid import Axis, draw_grid, draw_points
from fieldstone._helper.plot_marks import draw_marks, legend_of
from fieldstone._helper.plot_mesh import draw_on_mesh

MAX_PIXELS = 8000
# Of a large array no more cells are drawn than can be seen.
CELLS_IN_A_PIXEL = 2
# Letters of a title and of a label beside the bar of colours that a pixel has room for, about.
LETTER, SMALL_LETTER = 9.0, 7.5

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
DEGREES = re.compile(r"deg(ree)?s?_?(C|Celsius)|celsius", re.IGNORECASE)
POWER = re.compile(r"(?<=[A-Za-z])(?<!\d[Ee])(?:\*\*|\^)?(-?\d+)(?![\d.])")


def plot_request(channel: Channel, header: dict[str, Any], payload: bytes) -> None:
    """Answers `plot` with one `image` frame."""
    try:
        data, coords = arrays(header, payload)
        figure = draw(data, coords, header)
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError("Invalid", f"cannot plot: {error}") from None
    out = io.BytesIO()
    figure.savefig(out, format="png")
    channel.send({"kind": "image", "format": "png"}, out.getvalue())
    channel.done()


def arrays(header: dict[str, Any], payload: bytes) -> tuple[np.ndarray, dict[str, Any]]:
    """The array and its coordinates, which follow it in the payload; packing undone, fill as NaN."""
    position = 0

    def take(facts: dict[str, Any]) -> np.ndarray:
        nonlocal position
        dtype, shape = np.dtype(facts["dtype"]), tuple(int(n) for n in facts["shape"])
        if dtype.kind not in "iufb" or any(n < 0 for n in shape):
            raise ValueError(f"cannot draw an array of {dtype.str} with shape {shape}")
        nbytes = dtype.itemsize
        for n in shape:
            nbytes *= n
        if position + nbytes > len(payload):
            raise ValueError("the payload is shorter than the arrays it is to hold")
        array = np.frombuffer(payload, dtype, nbytes // dtype.itemsize, position).reshape(shape)
        position += nbytes
        return array

    raw = take(header)
    data = raw.astype(float)
    for fill in header.get("fill", []):
        data[raw == np.asarray(fill).astype(raw.dtype)] = np.nan
    data = data * float(header.get("scale_factor", 1.0)) + float(header.get("add_offset", 0.0))
    coords = {facts["name"]: (facts, take(facts)) for facts in header.get("coords", [])}
    return data, coords


def draw(data: np.ndarray, coords: dict[str, Any], header: dict[str, Any]) -> Figure:
    """A line for 1-d data, cells for 2-d, points where both coordinates belong to 1-d data; or a mesh."""
    width, height = (min(MAX_PIXELS, max(100, int(n))) for n in header.get("size", (900, 600)))
    figure = Figure(figsize=(width / 100, height / 100), dpi=100, layout="constrained")
    masked = masked_in(coords, data.shape)
    colours = Colours(data, masked)
    label = named(header.get("label", ""), header.get("units", ""))
    on = header.get("mesh")
    x, y = (axis_of(coords.get(name), header, place) for name, place in (("x", -1), ("y", -2)))
    shape, full_x, full_y = data.shape, x, y
    axes = draw_on_mesh(figure, data, coords, on, colours) if on else figure.add_subplot()
    if not hasattr(axes, "set_zlim"):
        paper(axes)
    if on:
        pass
    elif data.ndim == 1 and x.values is not None and y.values is not None:
        if not x.values.shape == y.values.shape == data.shape:
            raise ValueError("coordinates of points differ in length from the data")
        draw_points(axes, data, masked, x, y, colours, (width, height))
    elif data.ndim == 1:
        draw_line(axes, data, x, label, masked)
    elif data.ndim == 2:
        if 0 in data.shape:
            raise ValueError(f"an array of shape {data.shape} has nothing to draw")
        x, y = along(x, data.shape, 1), along(y, data.shape, 0)
        if (x.values is not None and x.values.ndim == 2) != (y.values is not None and y.values.ndim == 2):
            raise ValueError("the two coordinates must be both 1-d or both 2-d")
        full_x, full_y = x, y
        data, masked, x, y = thinned(data, masked, x, y, (width, height))
        draw_grid(axes, data, masked, x, y, colours)
    else:
        raise ValueError(f"an array of {data.ndim} dimensions; give a box that leaves two")
    name_axes(axes, x, y)
    if on or data.ndim == 2 or y.values is not None:
        colours.bar(figure, axes, textwrap.fill(label, max(12, int(0.6 * height / SMALL_LETTER))))
    marks = header.get("marks")
    if marks and not hasattr(axes, "set_zlim"):
        draw_marks(axes, shape, full_x, full_y, marks, nodes_of(coords, on))
    colours.legend(figure, [legend_of(marks)] if marks else [])
    lines = [
        textwrap.fill(line, max(20, int(width / LETTER))) for line in str(header.get("title", "")).split("\n")
    ]
    axes.set_title("\n".join(lines), fontsize=11, parse_math=False)
    return figure


def nodes_of(coords: dict[str, Any], mesh: dict[str, Any] | None) -> Any:
    """Coordinates of a mesh in the plane, and rows of nodes of the elements that its values stand on."""
    if not mesh or "z" in coords:
        return None
    at_nodes = mesh.get("location") == "node" or "rows" not in coords
    return coords["x"][1], coords["y"][1], None if at_nodes else coords["rows"][1]


def masked_in(coords: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray | None:
    """The elements that are masked, where the request says so."""
    if "masked" not in coords:
        return None
    masked = coords["masked"][1].astype(bool)
    if masked.shape != shape:
        raise ValueError(f"a mask of shape {masked.shape} for an array of {shape}")
    return masked


def axis_of(coordinate: Any, header: dict[str, Any], place: int) -> Axis:
    """A coordinate of the request, or the name of a dimension."""
    if coordinate is None:
        dims = [str(dim) for dim in header.get("dims", [])]
        return Axis(label=dims[place] if len(dims) >= -place else "")
    facts, values = coordinate
    label, direction = named(facts.get("label", ""), facts.get("units", "")), str(facts.get("direction", ""))
    values = values.astype(float)
    # Seconds since 1970 are days to matplotlib.
    return Axis(values / 86400 if direction == "time" else values, label, direction)


def named(name: Any, unit: Any) -> str:
    """A name with its unit, as it is printed: m s⁻¹ and not m s**-1."""
    name, unit = str(name), str(unit).strip()
    if unit in ("", "1"):
        return name
    unit = DEGREES.sub("°C", unit)
    unit = POWER.sub(lambda found: found[1].translate(SUPERSCRIPT), unit)
    return f"{name} ({unit})" if name else unit


def name_axes(axes: Any, x: Axis, y: Axis) -> None:
    """Names of axes, degrees of the globe, dates, and one scale for a map."""
    if x.direction == "longitude" and y.direction == "latitude":
        globe.shape_axes(axes, True)
    for axis, set_label, own in ((x, axes.set_xlabel, axes.xaxis), (y, axes.set_ylabel, axes.yaxis)):
        is_angle = axis.direction in ("longitude", "latitude")
        if is_angle:
            globe.ticks(own, "WE" if axis.direction == "longitude" else "SN")
        if axis.direction == "time":
            own.set_major_locator(locator := AutoDateLocator())
            own.set_major_formatter(ConciseDateFormatter(locator))
        if axis.label:
            set_label(axis.direction if is_angle else axis.label, parse_math=False)


def draw_line(axes: Any, data: np.ndarray, x: Axis, label: str, masked: np.ndarray | None) -> None:
    """Draws one dimension as a line, with a mark at its foot where there is no value."""
    if x.values is not None and x.values.shape != data.shape:
        raise ValueError(f"a coordinate of shape {x.values.shape} along an axis of {data.size}")
    across = np.arange(data.size) if x.values is None else x.values
    axes.patch.set_hatch("")
    axes.plot(across, np.where(np.isfinite(data), data, np.nan), marker="." if data.size < 100 else "")
    if not np.isfinite(data).all():
        axes.plot(
            across[~np.isfinite(data)],
            np.full((~np.isfinite(data)).sum(), 0.01),
            "|",
            color=MISSING,
            transform=axes.get_xaxis_transform(),
        )
    if Colours(data, masked).diverges:
        axes.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    axes.set_ylabel(label, parse_math=False)


def along(axis: Axis, shape: tuple[int, ...], dim: int) -> Axis:
    """A coordinate of a picture of this shape: along one dimension, or of every element."""
    if axis.values is None or axis.values.shape in ((shape[dim],), shape):
        return axis
    raise ValueError(f"a coordinate of shape {axis.values.shape} along an axis of {shape[dim]}")


def thinned(
    data: np.ndarray, masked: Any, x: Axis, y: Axis, size: tuple[int, int]
) -> tuple[np.ndarray, Any, Axis, Axis]:
    """Each n-th element of a large array, which has more of them than the picture has pixels."""
    stride = tuple(
        slice(None, None, -(-n // (CELLS_IN_A_PIXEL * pixels)))
        for n, pixels in zip(data.shape, reversed(size), strict=True)
    )

    def part(axis: Axis, dim: int) -> Axis:
        if axis.values is None:
            values = np.arange(data.shape[dim], dtype=float)[stride[dim]]
        else:
            values = axis.values[stride] if axis.values.ndim == 2 else axis.values[stride[dim]]
        return Axis(values, axis.label, axis.direction)

    return data[stride], None if masked is None else masked[stride], part(x, 1), part(y, 0)

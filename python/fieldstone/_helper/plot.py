"""Pictures: a slice of an array to PNG with matplotlib, without a display."""

from __future__ import annotations

import io
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib.figure import Figure

from fieldstone._helper.frames import Channel, RequestError
from fieldstone._helper.plot_mesh import draw_on_mesh

MAX_SIDE = 4000
MAX_PIXELS = 8000


def plot_request(channel: Channel, header: dict[str, Any], payload: bytes) -> None:
    """Answers `plot` with one `image` frame."""
    try:
        data, coords = arrays(header, payload)
        png = draw(data, coords, header)
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError("Invalid", f"cannot plot: {error}") from None
    channel.send({"kind": "image", "format": "png"}, png)
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


def draw(data: np.ndarray, coords: dict[str, Any], header: dict[str, Any]) -> bytes:
    """A line for 1-d data, an image for 2-d, points where both coordinates belong to 1-d data; or a mesh."""
    width, height = (min(MAX_PIXELS, max(100, int(n))) for n in header.get("size", (900, 600)))
    figure = Figure(figsize=(width / 100, height / 100), dpi=100, layout="constrained")
    x, y = coords.get("x"), coords.get("y")
    label, on = str(header.get("label", "")), header.get("mesh")
    axes = draw_on_mesh(figure, data, coords, on, label) if on else figure.add_subplot()
    axes.set_title(str(header.get("title", "")))
    if on:
        pass
    elif data.ndim == 1 and x and y:
        if not x[1].shape == y[1].shape == data.shape:
            raise ValueError("coordinates of points differ in length from the data")
        mesh = axes.scatter(x[1], y[1], c=data, s=4, linewidths=0)
        figure.colorbar(mesh, ax=axes, label=label)
    elif data.ndim == 1:
        axes.plot(x[1] if x else np.arange(data.size), data)
        axes.set_ylabel(label)
    elif data.ndim == 2:
        if 0 in data.shape:
            raise ValueError(f"an array of shape {data.shape} has nothing to draw")
        stride = tuple(slice(None, None, -(-n // MAX_SIDE)) for n in data.shape)
        rows, columns = (along(c, data.shape[i], stride[i], i) for i, c in enumerate((y, x)))
        if rows.ndim != columns.ndim:
            raise ValueError("the two coordinates must be both 1-d or both 2-d")
        mesh = axes.pcolormesh(columns, rows, np.ma.masked_invalid(data[stride]), shading="nearest")
        figure.colorbar(mesh, ax=axes, label=label)
    else:
        raise ValueError(f"an array of {data.ndim} dimensions; give a box that leaves two")
    for coordinate, name in ((x, axes.set_xlabel), (y, axes.set_ylabel)):
        if coordinate and coordinate[0].get("label"):
            name(str(coordinate[0]["label"]))
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()


def along(coordinate: Any, n: int, stride: slice, axis: int) -> np.ndarray:
    """Positions along one axis of an image, thinned like the image."""
    if coordinate is None:
        return np.arange(n)[stride]
    values = coordinate[1].astype(float)
    if values.ndim == 1 and values.size == n:
        return values[stride]
    if values.ndim == 2 and values.shape[axis] == n:
        step = stride.step or 1
        return values[::step, ::step]
    raise ValueError(f"a coordinate of shape {values.shape} along an axis of {n}")

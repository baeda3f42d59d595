"""Pictures drawn by the helper."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from helper_pipe import ask

pytest.importorskip("matplotlib")
PNG = b"\x89PNG\r\n\x1a\n"


def plot(data, coords=(), **options):
    arrays = [data, *(values for _, values in coords)]
    facts = [{"dtype": a.dtype.str, "shape": list(a.shape)} for a in arrays]
    named = [{"name": n, **f} for (n, _), f in zip(coords, facts[1:], strict=True)]
    payload = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
    return ask({"op": "plot", **facts[0], "coords": named, **options}, payload)


def size(png):
    assert png.startswith(PNG)
    return struct.unpack(">II", png[16:24])


def pixels(png):
    image = pytest.importorskip("matplotlib.image")
    import io

    return image.imread(io.BytesIO(png))


def test_a_slice_becomes_a_png_of_the_asked_size():
    (header, png), _ = plot(np.arange(12.0).reshape(3, 4), title="a title", size=[640, 480])
    assert header == {"kind": "image", "format": "png"}
    assert size(png) == (640, 480)


def test_values_decide_the_colours():
    def colours(data):
        # The middle of the image, away from axes and colour bar.
        return len(np.unique(pixels(plot(data)[0][1])[200:400, 200:500].reshape(-1, 4), axis=0))

    assert colours(np.zeros((8, 8))) == 1
    assert colours(np.arange(64.0).reshape(8, 8)) > 8


def test_fill_and_packing_are_undone():
    data = np.array([[1, 2], [3, -99]], "i2")
    packed = plot(data, fill=[-99], scale_factor=2.0, add_offset=1.0)[0][1]
    plain = plot(np.array([[3.0, 5.0], [7.0, np.nan]]))[0][1]
    np.testing.assert_array_equal(pixels(packed), pixels(plain))


@pytest.mark.parametrize(
    ("data", "coords"),
    [
        (np.arange(5.0), [("x", np.arange(5.0) * 2)]),
        (np.arange(5.0), [("x", np.arange(5.0)), ("y", np.arange(5.0))]),
        (np.ones((3, 4)), [("y", np.arange(3.0)), ("x", np.arange(4.0))]),
        (np.ones((3, 4)), [("y", np.ones((3, 4))), ("x", np.ones((3, 4)))]),
        (np.ones((5000, 3), "f4"), [("y", np.arange(5000.0))]),
    ],
)
def test_lines_points_grids_and_large_images_are_drawn(data, coords):
    assert plot(data, coords)[0][1].startswith(PNG)


@pytest.mark.parametrize(
    ("data", "coords"),
    [
        (np.ones((2, 3, 4)), []),
        (np.ones((3, 4)), [("y", np.arange(7.0))]),
        (np.ones((0, 4)), []),
        (np.array([["a"]]), []),
    ],
)
def test_what_cannot_be_drawn_is_invalid(data, coords):
    ((header, _),) = plot(data, coords)
    assert header["error_kind"] == "Invalid"

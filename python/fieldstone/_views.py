"""Views: the parts of an array that ranks of a job hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from .errors import Invalid

if TYPE_CHECKING:
    from ._native import View

_Halo = int | Sequence[int | Sequence[int]]

LIMIT = 2**63
"""Upper bound of indices and counts."""


class Moved(NamedTuple):
    """Report of a put by a view, on this rank."""

    method: str
    """The method used: ``direct``, ``exchange`` or ``view``."""
    why: str
    """The reason, if ``auto`` was given."""
    exchanged: int
    """Bytes that this rank sent to other ranks."""
    written: int
    """Bytes that it wrote."""
    read: int
    """Bytes that it read."""
    planned: bool
    """Whether a plan was made; an equal view of an equal shape uses the existing plan."""
    holes: int
    """Elements that no rank wrote."""


def block(
    start: int | Sequence[int] | None = None,
    count: int | Sequence[int] | None = None,
    halo: _Halo = 0,
    stride: int | Sequence[int] = 1,
    *,
    grid: Sequence[int] | None = None,
) -> View:
    """The box of `count` indices from `start` on; or this rank's part of a balanced cut by `grid`.

    A balanced cut is numpy's ``array_split`` in each dimension, ranks in C order over the grid. With a `halo`
    (one width, or one or a pair for each dimension) the array in memory is wider on both sides: writes skip
    the halo, and reads fill the part of it that is inside the array. `stride` takes every n-th index, only in
    reads.
    """
    shown: dict[str, Any] = {}
    if grid is None:
        if start is None or count is None:
            raise Invalid("a block without start and count, or grid", "give both, or grid=", "argument")
        first, counts = _numbers(start, "start"), _numbers(count, "count")
        if isinstance(stride, int):
            strides = [] if stride == 1 else _numbers([stride] * len(first), "stride")
        else:
            strides = _numbers(stride, "stride")
        cut = None
        shown = {"start": tuple(first), "count": tuple(counts)}
        if strides:
            shown["stride"] = tuple(strides)
    else:
        if start is not None or count is not None or stride != 1:
            raise Invalid(
                "a block with grid and with start, count or stride", "leave these out, or grid", "argument"
            )
        first, counts, strides, cut = [], [], [], _numbers(grid, "grid")
        shown = {"grid": tuple(cut)}
    widths = _widths(halo)
    if widths != (0, None):
        shown["halo"] = halo
    return _native._view_block(first, counts, cut, widths, strides, _text("block", shown))


def cyclic(grid: Sequence[int], blocks: Sequence[int]) -> View:
    """Blocks of `blocks` indices, distributed round-robin in every dimension, ranks in C order over the grid.

    In memory a rank's elements are contiguous and in order.
    """
    cut, sizes = _numbers(grid, "grid"), _numbers(blocks, "blocks")
    return _native._view_cyclic(cut, sizes, _text("cyclic", {"grid": tuple(cut), "blocks": tuple(sizes)}))


def irregular(map: Any, owned: int | None = None, dim: int | None = 0) -> View:
    """Global indices along `dim`, other dimensions whole; with ``dim=None`` numbers of elements in C order.

    -1 means no element. The first `owned` entries are written, all are read; so ghosts come last. The map is
    copied.
    """
    import numpy as np

    found = np.asarray(map)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise Invalid(
            f"a map of dtype {found.dtype} and shape {found.shape}",
            "give one row of whole numbers",
            "argument",
        )
    if found.dtype.kind == "u" and found.size and int(found.max()) >= LIMIT:
        place = int(found.argmax())
        raise Invalid(f"map[{place}] is {found[place]}", "indices are below 2**63", "value")
    shown: dict[str, Any] = {"map": f"<{found.size} entries>"}
    if owned is not None:
        owned = _numbers(owned, "owned")[0]
        shown["owned"] = owned
    if dim is not None:
        dim = _numbers(dim, "dim")[0]
    shown["dim"] = dim
    return _native._view_irregular(
        np.ascontiguousarray(found, np.int64), owned, dim, _text("irregular", shown)
    )


def joined(count: int) -> View:
    """`count` indices of the first dimension, after those of the lower ranks; its extent is the sum over all
    ranks."""
    own = _numbers(count, "count")
    return _native._view_joined(own[0], _text("joined", {"count": own[0]}))


def pio_decomposition(path: str | os.PathLike[str], comm: Any = None) -> View:
    """This rank's part according to a decomposition file of ParallelIO (text or classic netCDF).

    The view is a map over all dimensions. With `comm` all its ranks call it. The file may be for another
    number of tasks: they are distributed in order, like ``numpy.array_split``. Raises Corrupt if the file is
    damaged, naming the place.
    """
    return _native._view_decomposition(os.fspath(path), comm)


def _text(name: str, shown: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in shown.items())})"


def _numbers(given: Any, what: str) -> list[int]:
    one = getattr(given, "ndim", None) == 0 or not hasattr(given, "__iter__")
    found = [given] if one else _native._items(given)
    numbers = []
    for number in found:
        whole = not isinstance(number, bool) and hasattr(number, "__index__")
        if not whole or not 0 <= number.__index__() < LIMIT:
            raise Invalid(
                f"{what}={given!r}", "give one whole number, 0 or more, for each dimension", "argument"
            )
        numbers.append(number.__index__())
    return numbers


def _widths(halo: Any) -> tuple[int, list[tuple[int, int]] | None]:
    """One width for all sides, or those of each dimension."""
    if not hasattr(halo, "__iter__"):
        return _numbers(halo, "halo")[0], None
    widths = []
    for one in _native._items(halo):
        pair = _numbers(one, "halo")
        if len(pair) not in (1, 2):
            raise Invalid(f"halo={halo!r}", "give one width or a pair for each dimension", "argument")
        widths.append((pair[0], pair[-1]))
    return 0, widths

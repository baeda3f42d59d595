"""Variables of several files as one lazy array.

A :class:`Joined` array places the variables of files side by side along some of its dimensions: along a
dimension that the files have, one after the other; along one that they do not have, one at each position. A
read takes from each file that it touches only the selected part; each part is decoded before it is joined.

Example: ``Joined([Seam(0, (31, 29), True)], [january, february], (60, 90, 180), dtype)`` is two months, of
which ``[30:32]`` reads the last day of January and the first of February.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from fieldstone._xarray.lazy import positions, token_of
from fieldstone._xarray.source import digest


@dataclass(frozen=True)
class Seam:
    """A dimension along which files are joined.

    `place` is its position in the array, `lengths` the length of each file along it. If the variables of the
    files do not have it (`held` is false), each repeats along its length.
    """

    place: int
    lengths: tuple[int, ...]
    held: bool


class Joined(BackendArray):
    """Variables side by side; `parts` are in C order over the seams."""

    def __init__(
        self, seams: Sequence[Seam], parts: Sequence[xr.Variable], shape: tuple[int, ...], dtype: np.dtype
    ) -> None:
        self._seams = tuple(seams)
        self._parts = tuple(parts)
        self.shape = shape
        self.dtype = dtype
        self._outer = sorted(seam.place for seam in seams if not seam.held)
        # Maps each dimension of a part to one of the array.
        self._places = [place for place in range(len(shape)) if place not in self._outer]

    def __dask_tokenize__(self) -> str:
        from dask.base import tokenize

        parts = [token_of(part._data) or tokenize(part._data) for part in self._parts]
        return digest(self._seams, parts, self.shape, self.dtype.str)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._select
        )

    def _select(self, key: tuple[Any, ...]) -> np.ndarray:
        picks = [positions(k, n) for k, n in zip(key, self.shape, strict=True)]
        out = np.empty([len(p) for p in picks], self.dtype)
        touched = [cut(picks[seam.place], seam.lengths) for seam in self._seams]
        counts = [len(seam.lengths) for seam in self._seams]
        for pieces in itertools.product(*touched):
            into = [slice(None)] * len(picks)
            of: list[Any] = [k if isinstance(k, slice) else p for k, p in zip(key, picks, strict=True)]
            for seam, (_, here, inside) in zip(self._seams, pieces, strict=True):
                into[seam.place] = here
                of[seam.place] = inside
            number = int(np.ravel_multi_index([p[0] for p in pieces], counts)) if pieces else 0
            values = self._parts[number][tuple(of[place] for place in self._places)].values
            out[tuple(into)] = np.expand_dims(values, tuple(self._outer))
        return out[tuple(0 if np.ndim(k) == 0 and not isinstance(k, slice) else slice(None) for k in key)]


def cut(picked: np.ndarray, lengths: Sequence[int]) -> list[tuple[int, slice, Any]]:
    """The files that positions touch: the number of each, the place of its values, and its own positions.

    If positions alternate between files, a file occurs several times.
    """
    if not len(picked):
        return [(0, slice(0, 0), slice(0, 0))]
    starts = np.cumsum([0, *lengths])
    of = np.searchsorted(starts, picked, side="right") - 1
    borders = [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), len(picked)]
    found = []
    for first, stop in itertools.pairwise(borders):
        number = int(of[first])
        inside = picked[first:stop] - starts[number]
        step = int(inside[1] - inside[0]) if len(inside) > 1 else 1
        if step > 0 and (np.diff(inside) == step).all():
            inside = slice(int(inside[0]), int(inside[-1]) + 1, step)
        found.append((number, slice(first, stop), inside))
    return found

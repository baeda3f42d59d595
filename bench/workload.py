"""The data that every peer writes and reads: shapes, keys, payloads and arrays, the same bytes for all.

Keys are those of a MARS-like archive in three levels; values are text, the only form FDB takes. Payloads are
pseudo-random (compression gains nothing), differ from field to field, and can be computed again by
index, so that a reader can check them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

Key = dict[str, str]

BASE: Key = {
    "class": "rd",
    "expver": "xxxx",
    "stream": "oper",
    "date": "20250101",
    "time": "1200",
    "domain": "g",
    "type": "fc",
    "levtype": "pl",
}
_POOL = 4 << 20


@dataclass(frozen=True)
class Shape:
    """A number of fields of one size: a field per step, parameter and level of one dataset."""

    nbytes: int
    steps: int
    params: int
    levels: int

    @property
    def fields(self) -> int:
        return self.steps * self.params * self.levels

    @property
    def total(self) -> int:
        return self.fields * self.nbytes

    def axes(self) -> dict[str, list[str]]:
        """Values of the three keywords that differ between fields, in the order of `keys`."""
        return {
            "step": [str(s) for s in range(self.steps)],
            "levelist": [str(50 * (i + 1)) for i in range(self.levels)],
            "param": [str(129 + p) for p in range(self.params)],
        }

    def keys(self) -> Iterator[Key]:
        """Full keys in writing order: step, then parameter, then level, as a model writes them."""
        axes = self.axes()
        for step in axes["step"]:
            for param in axes["param"]:
                for level in axes["levelist"]:
                    yield {**BASE, "step": step, "levelist": level, "param": param}

    def request(self) -> dict[str, str | list[str]]:
        """One request that selects every field by naming every value."""
        return {**BASE, **self.axes()}

    def payload(self, index: int) -> bytes:
        """The bytes of the field written as number `index`."""
        start = index * 4099 % _POOL
        return _pool()[start : start + self.nbytes]

    def payloads(self) -> list[bytes]:
        """All payloads, in memory before any clock starts."""
        return [self.payload(i) for i in range(self.fields)]


@cache
def _pool() -> bytes:
    return random.Random(7).randbytes(_POOL + (1 << 20))


_SHAPES = {
    "64k": (Shape(64 << 10, 50, 10, 10), Shape(64 << 10, 5, 10, 10)),
    "1m": (Shape(1 << 20, 10, 5, 10), Shape(1 << 20, 2, 5, 10)),
    "tiny": (Shape(128, 500, 10, 10), Shape(128, 20, 10, 10)),
    "2m": (Shape(128, 2000, 20, 50), Shape(128, 20, 20, 50)),
    "flush": (Shape(128, 101, 10, 1), Shape(128, 101, 10, 1)),
}


def shape(name: str, quick: bool = False) -> Shape:
    """The shape with a name; a tenth or less of it when `quick`."""
    return _SHAPES[name][quick]


@dataclass(frozen=True)
class Box:
    """One array field and the box of about 1 % of it that is read."""

    shape: tuple[int, ...]
    dtype: str
    start: tuple[int, ...]
    count: tuple[int, ...]

    @property
    def slices(self) -> tuple[slice, ...]:
        return tuple(slice(s, s + c) for s, c in zip(self.start, self.count, strict=True))

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * int(self.dtype[1:])

    @property
    def end(self) -> int:
        """Offset of the byte after the box's last element, in row-major order."""
        element = 0
        for s, c, length in zip(self.start, self.count, self.shape, strict=True):
            element = element * length + s + c - 1
        return (element + 1) * int(self.dtype[1:])

    def values(
        self, start: tuple[int, ...] | None = None, count: tuple[int, ...] | None = None
    ) -> np.ndarray:
        """The array, or a box of it: a hash of the element's index, so that it does not compress."""
        import numpy as np

        start, count = start or (0,) * len(self.shape), count or self.shape
        flat = np.zeros((1,) * len(self.shape), dtype="u4")
        for axis, (first, n, length) in enumerate(zip(start, count, self.shape, strict=True)):
            line = np.arange(first, first + n, dtype="u4")
            line = line.reshape([-1 if a == axis else 1 for a in range(len(count))])
            flat = flat * np.uint32(length) + line
        flat *= np.uint32(2654435761)
        flat ^= flat >> np.uint32(15)
        return flat.astype(self.dtype) / np.dtype(self.dtype).type(3)


_BOXES = {
    "2d": (
        Box((10_000, 10_000), "f8", (4321, 2222), (1000, 1000)),
        Box((1000, 1000), "f8", (432, 222), (100, 100)),
    ),
    "3d": (
        Box((512, 512, 512), "f4", (200, 111, 333), (110, 110, 110)),
        Box((64, 64, 64), "f4", (20, 11, 33), (14, 14, 14)),
    ),
}


def box(name: str, quick: bool = False) -> Box:
    """The array and box with a name; small ones when `quick`."""
    return _BOXES[name][quick]


ARRAY_KEY: Key = {**BASE, "step": "0", "levelist": "500", "param": "130"}


@dataclass(frozen=True)
class Runs:
    """Runs of a simulation with many small arrays."""

    runs: int
    variables: int
    steps: int
    steps_per_file: int
    extent: int = 8

    @staticmethod
    def run(number: int) -> str:
        return f"run{number:05}"

    def values(self, run: int, variable: int, step: int) -> np.ndarray:
        """The values of one field: two-dimensional, and different from all others."""
        import numpy as np

        return np.full((self.extent, self.extent), run * 7919 + variable * 101 + step * 0.25, "f4")


RUNS = {"tree": Runs(1000, 10, 100, 100), "long": Runs(1, 10, 10_000, 10)}


def runs(name: str, quick: bool = False) -> Runs:
    """The runs of a figure; a tenth of the runs, or of the steps of one run, with `quick`."""
    r = RUNS[name]
    if not quick:
        return r
    return replace(r, runs=r.runs // 10) if r.runs > 1 else replace(r, steps=r.steps // 10)


def grib_messages(count: int) -> list[bytes]:
    """Small GRIB2 messages with the keys of a shape, each with a different header."""
    import eccodes

    keys = Shape(0, -(-count // 100), 10, 10).keys()
    handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
    label = {"setLocalDefinition": 1, "class": "rd", "type": "fc", "stream": "oper", "expver": "xxxx"}
    for name, value in {"centre": "ecmf", **label, "date": 20250101, "time": 1200}.items():
        eccodes.codes_set(handle, name, value)
    messages = []
    for key in keys:
        for name, keyword in (("paramId", "param"), ("level", "levelist"), ("step", "step")):
            eccodes.codes_set(handle, name, int(key[keyword]))
        messages.append(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    return messages[:count]

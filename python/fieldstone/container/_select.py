"""Turns an index in brackets into start, count and stride.

Basic indexing as in numpy: whole numbers (negative ones count from the end), slices with any step, an
ellipsis. A slice that extends beyond the end is shortened, as in numpy; a number beyond it is an error. When
writing, the record dimension grows: a number or the stop of a slice beyond its length sets the new length.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from ..errors import Invalid

HINT = "index with whole numbers, slices and an ellipsis; apply lists and masks to the array once read"


@dataclass(frozen=True)
class Selection:
    """A box with strides, and the way to numpy's result."""

    start: tuple[int, ...]
    count: tuple[int, ...]
    stride: tuple[int, ...]
    turned: tuple[int, ...]
    """Dimensions read backwards."""
    dropped: tuple[int, ...]
    """Dimensions selected by a number, which the result lacks."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return tuple(n for axis, n in enumerate(self.count) if axis not in self.dropped)

    @property
    def view(self) -> tuple[Any, ...]:
        """Index that reverses and drops dimensions of the array read."""
        return tuple(
            0 if axis in self.dropped else slice(None, None, -1) if axis in self.turned else slice(None)
            for axis in range(len(self.count))
        )

    @property
    def strided(self) -> tuple[int, ...] | None:
        """The strides; None if all are 1."""
        return None if all(n == 1 for n in self.stride) else self.stride


def select(
    name: str, key: Any, dims: tuple[str, ...], shape: tuple[int, ...], grows: int | None = None
) -> Selection:
    """The selection that `key` makes in the variable `name`.

    `grows` is None when reading, and when writing to a variable without record dimension; otherwise it is the
    number of records for an open slice (-1: the current number).
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    places = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        raise Invalid(f"two ellipses in the index of {name!r}", HINT)
    missing = len(shape) - len(parts) + len(places)
    if missing < 0:
        given = len(parts) - len(places)
        raise Invalid(f"{given} indices for {name!r}, which has {len(shape)} dimensions", HINT)
    if places:
        parts[places[0] : places[0] + 1] = [slice(None)] * missing
    else:
        parts += [slice(None)] * missing
    start, count, stride, turned, dropped = [], [], [], [], []
    for axis, (part, n) in enumerate(zip(parts, shape, strict=True)):
        growing = grows is not None and axis == 0
        if isinstance(part, slice):
            low, many, step = _slice(name, part, n, grows if growing else None)
            if step < 0:
                turned.append(axis)
        else:
            low, many, step = _number(name, part, dims[axis], n, growing), 1, 1
            dropped.append(axis)
        start.append(low)
        count.append(many)
        stride.append(abs(step))
    return Selection(tuple(start), tuple(count), tuple(stride), tuple(turned), tuple(dropped))


def _slice(name: str, part: slice, n: int, grows: int | None) -> tuple[int, int, int]:
    """First element, count and step; with a negative step the lowest element is first."""
    try:
        if grows is not None and (part.step is None or operator.index(part.step) > 0):
            step = 1 if part.step is None else operator.index(part.step)
            low = 0 if part.start is None else operator.index(part.start)
            low = max(low + n, 0) if low < 0 else low
            if part.stop is not None:
                stop = operator.index(part.stop)
                stop = stop + n if stop < 0 else stop
            else:
                stop = low + grows * step if grows >= 0 else n
            taken = range(low, stop, step)
        else:
            taken = range(*part.indices(n))
    except (TypeError, ValueError) as error:
        raise Invalid(f"the index {part} of {name!r}: {error}", HINT) from None
    if not taken:
        return 0, 0, 1
    return min(taken[0], taken[-1]), len(taken), taken.step


def _number(name: str, part: Any, dim: str, n: int, growing: bool) -> int:
    if part is None or isinstance(part, bool):
        raise Invalid(f"the index of {name!r} contains {part}", HINT)
    try:
        number = operator.index(part)
    except TypeError:
        raise Invalid(f"the index of {name!r} contains a {type(part).__name__}", HINT) from None
    place = number + n if number < 0 else number
    if place < 0 or (place >= n and not growing):
        raise Invalid(f"index {number} of {name!r} along {dim!r}, whose length is {n}", HINT)
    return place

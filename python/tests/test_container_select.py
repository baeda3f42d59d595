"""What stands in brackets selects what numpy selects, for any shape and key."""

from __future__ import annotations

import random

import numpy as np
from fieldstone.container._select import select


def key_of(draw, n):
    if draw.random() < 0.3:
        return draw.randrange(-n, n)
    ends = [None, *range(-n - 2, n + 3)]
    return slice(draw.choice(ends), draw.choice(ends), draw.choice([None, 1, 2, 3, -1, -2, -3]))


def test_random_keys_are_numpys():
    draw = random.Random(1)
    seen = set()
    for _ in range(5000):
        shape = tuple(draw.randrange(1, 6) for _ in range(draw.randrange(4)))
        array = np.arange(int(np.prod(shape))).reshape(shape)
        parts = [key_of(draw, n) for n in shape][: draw.randrange(len(shape) + 1)]
        if draw.random() < 0.3:
            parts.append(Ellipsis)
        key = tuple(parts)
        chosen = select("v", key, tuple("abc"[: len(shape)]), shape)
        assert chosen.shape == array[key].shape
        seen |= {
            ("turned", bool(chosen.turned)),
            ("empty", 0 in chosen.count),
            ("all", chosen.strided is None),
        }
        if 0 in chosen.count:
            continue
        ends = zip(chosen.start, chosen.count, chosen.stride, strict=True)
        box = array[tuple(slice(low, low + (n - 1) * step + 1, step) for low, n, step in ends)]
        assert np.array_equal(box[chosen.view], array[key]), (shape, key)
    assert len(seen) == 6


def test_writing_reaches_beyond_the_last_record():
    def taken(key, grows=-1):
        chosen = select("v", key, ("t", "x"), (3, 4), grows)
        return chosen.start, chosen.count, chosen.stride

    assert taken(7) == ((7, 0), (1, 4), (1, 1))
    assert taken(slice(2, 9)) == ((2, 0), (7, 4), (1, 1))
    assert taken(slice(2, 9, 3)) == ((2, 0), (3, 4), (3, 1))
    assert taken(slice(None)) == ((0, 0), (3, 4), (1, 1))
    assert taken(slice(None), 5) == ((0, 0), (5, 4), (1, 1))
    assert taken(slice(4, None), 5) == ((4, 0), (5, 4), (1, 1))
    assert taken(slice(-1, None), 2) == ((2, 0), (2, 4), (1, 1))
    assert taken(-1) == ((2, 0), (1, 4), (1, 1))

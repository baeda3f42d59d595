"""Random pieces from several processes, against a model in numpy."""

from __future__ import annotations

import multiprocessing
from typing import Any

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import DTYPES, random_array, sim

Box = tuple[tuple[int, ...], tuple[int, ...]]


def random_box(rng: np.random.Generator, shape: tuple[int, ...], empty: bool = False) -> Box:
    start = tuple(int(rng.integers(n)) for n in shape)
    least = 0 if empty else 1
    return start, tuple(int(rng.integers(least, n - s + 1)) for n, s in zip(shape, start, strict=True))


def cut(box: Box) -> tuple[slice, ...]:
    return tuple(slice(s, s + n) for s, n in zip(*box, strict=True))


def work(url: str, seed: int, commands: Any, done: Any) -> None:
    """Archives and flushes as instructed, in order."""
    store = fst.open(url)
    for name, arguments in iter(commands.get, None):
        match name:
            case "piece":
                key, piece, dtype, start, shape, order = arguments
                # A pickled array arrives in the machine's byte order.
                store.archive(key, np.asarray(piece, dtype, order=order), start=start, shape=shape)
            case "whole":
                key, data, dtype = arguments
                store.archive(key, data.astype(dtype))
            case "create":
                store.create_field(arguments[0], dtype=arguments[1], shape=arguments[2])
            case "flush":
                store.flush()
        done.put(seed)


class Model:
    """One key: its written pieces."""

    def __init__(self, dtype: str, shape: tuple[int, ...]) -> None:
        self.values = np.zeros(shape, dtype)
        self.written = np.zeros(shape, bool)

    def apply(self, name: str, data: np.ndarray | None, box: Box | None) -> None:
        if name != "piece":
            self.written[...] = name == "whole"
        if data is not None:
            where = ... if box is None else cut(box)
            self.values[where] = data
            self.written[where] = True


@pytest.mark.parametrize("seed", range(3))
def test_random_pieces_of_three_processes(tmp_path, seed):
    rng = np.random.default_rng(seed)
    url = str(tmp_path / "store")
    context = multiprocessing.get_context("spawn")
    done = context.SimpleQueue()
    queues = [context.SimpleQueue() for _ in range(3)]
    children = [context.Process(target=work, args=(url, n, queue, done)) for n, queue in enumerate(queues)]
    for child in children:
        child.start()

    def tell(child: int, name: str, arguments: Any = None) -> None:
        queues[child].put((name, arguments))
        assert done.get() == child

    shapes = [(7,), (5, 6), (3, 4, 5), (1, 9)]
    fields = [(sim(n), str(rng.choice(DTYPES)), shapes[n]) for n in range(4)]
    models = [Model(dtype, shape) for _, dtype, shape in fields]
    there, pending, versions = [False] * 4, [[], [], []], []
    reader = None
    try:
        for turn in range(120):
            child = int(rng.integers(3))
            if rng.random() < 0.25:
                tell(child, "flush")
                for place, *change in pending[child]:
                    there[place] = True
                    models[place].apply(*change)
                pending[child].clear()
                if any(there):
                    reader = reader or fst.open(url, mode="r")
                    check(reader, rng, fields, models, there)
                    if turn % 30 == 0:
                        kept = [(m.values.copy(), m.written.copy()) for m in models]
                        versions.append((reader.version, list(there), kept))
                continue
            place = int(rng.integers(4))
            key, dtype, shape = fields[place]
            match rng.choice(["piece", "piece", "piece", "piece", "whole", "create"]):
                case "whole":
                    data = random_array(rng, dtype, shape)
                    tell(child, "whole", (key, data, dtype))
                    pending[child].append((place, "whole", data, None))
                case "create":
                    tell(child, "create", (key, dtype, shape))
                    pending[child].append((place, "create", None, None))
                case _:
                    box = random_box(rng, shape)
                    data = random_array(rng, dtype, box[1])
                    tell(child, "piece", (key, data, dtype, box[0], shape, str(rng.choice(["C", "F"]))))
                    pending[child].append((place, "piece", data, box))
    finally:
        for queue in queues:
            queue.put(None)
        for child in children:
            child.join(30)
    assert [child.exitcode for child in children] == [0, 0, 0] and reader is not None
    for version, there_then, kept in versions:
        old = fst.open(url, at=version)
        past = [Model(dtype, shape) for _, dtype, shape in fields]
        for model, (values, written) in zip(past, kept, strict=True):
            model.values, model.written = values, written
        check(old, rng, fields, past, there_then)
    assert reader.verify().ok


def check(store: fst.Store, rng: np.random.Generator, fields: Any, models: Any, there: list[bool]) -> None:
    for (key, dtype, shape), model, exists in zip(fields, models, there, strict=True):
        entries = list(store.list(key))
        assert len(entries) == exists, f"{key}: {entries}"
        if not exists:
            continue
        assert entries[0].complete == model.written.all(), key
        field = store.retrieve(key, strict=False)[0]
        whole = field.array()
        assert whole.dtype == np.dtype(dtype) and whole.shape == shape
        np.testing.assert_array_equal(whole[model.written], model.values[model.written])
        box = random_box(rng, shape, empty=True)
        if model.written[cut(box)].all():
            np.testing.assert_array_equal(store.get(key, *box), model.values[cut(box)])
        else:
            with pytest.raises(fst.NotFound):
                store.get(key, *box)

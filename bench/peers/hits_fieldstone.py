"""Chunks of arrays and their tags in Fieldstone, through the Python package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hits import RUN, STEPS, TAGS, VARIABLES, Data


class Store:
    """One open store below `root`."""

    def __init__(self, root: Path, data: Data) -> None:
        import fieldstone as fst

        self.fst, self.data = fst, data
        self.store = fst.open(str(root))
        self.made: Any = None

    @property
    def run(self) -> Any:
        if self.made is None:
            self.made = self.store.run(RUN)
        return self.made

    def create(self) -> None:
        self.made = self.store.create_run(RUN)
        self.run.create_variables(
            list(VARIABLES),
            dtype="f8",
            shape=self.data.shape,
            dims=("x", "y", "z"),
            decomposition=(self.data.edge,) * 3,
        )
        self.run.create_steps(list(range(STEPS)))
        for tag in TAGS:
            self.store.create_tag(tag, type="bool")
        self.store.flush()

    def write(self, name: str, step: int, start: tuple[int, ...], values: Any) -> None:
        self.run.write(name, step, values, start=start)

    def tag(self, tag: str, step: int, names: list[str], starts: list[tuple[int, ...]]) -> None:
        if names:
            count = (self.data.edge,) * 3
            self.run.annotate_many(tag, True, variable=names, step=step, start=starts, count=count)

    def flush(self) -> None:
        self.store.flush()

    def close(self) -> None:
        self.store.close()

    def find(self, tag: str) -> Any:
        return self.store.attributes(run=RUN, tag=tag).collect()

    def hits(self, tag: str) -> Iterator[Any]:
        return (hit.read() for hit in self.find(tag))

    def read(self, name: str, step: int, start: tuple[int, ...], count: tuple[int, ...]) -> Any:
        return self.run.read(name, step, start, count)

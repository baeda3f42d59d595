"""Fieldstone through its Python package, on the built-in `mars` schema with the same keys as FDB."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workload import ARRAY_KEY, Key

if TYPE_CHECKING:
    import numpy as np
    from workload import Box

EVERYTHING = {"class": "rd", "expver": "xxxx"}


class Store:
    """See `peers.Peer`."""

    def __init__(self, root: Path) -> None:
        import fieldstone as fst

        self.store = fst.open(str(root), schema="mars")
        self.archive, self.flush, self.get = self.store.archive, self.store.flush, self.store.get

    def entries(self) -> Iterator[Key]:
        for entry in self.store.list(EVERYTHING):
            yield dict(entry.key)

    def retrieve(self, request: dict[str, str | list[str]], room: memoryview) -> int:
        total = 0
        with self.store.retrieve(request).open() as fields:
            while (n := fields.readinto(room)) > 0:
                total += n
        return total

    def archive_array(self, array: np.ndarray) -> None:
        self.store.archive(ARRAY_KEY, array)

    def get_box(self, box: Box) -> np.ndarray:
        return self.store.get(ARRAY_KEY, start=box.start, count=box.count)

    @staticmethod
    def cli(root: Path) -> tuple[list[str], dict[str, str]]:
        return [str(Path(sys.prefix) / "bin" / "fieldstone"), "list", str(root)], {}

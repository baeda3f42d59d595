"""The floor: the same bytes in one plain file, one write per field and one fdatasync per flush."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from workload import Key

if TYPE_CHECKING:
    import numpy as np
    from workload import Box, Shape


class Store:
    """See `peers.Peer`. One write holds the small fields of a flush, as from a writer with a buffer."""

    SMALL = 4096

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.path = root / "raw.bin"
        self.fd = -1
        self.batch: list[bytes] = []

    def archive(self, key: Key, data: bytes) -> None:
        self._create()
        if len(data) < self.SMALL:
            self.batch.append(data)
        else:
            os.write(self.fd, data)

    def _create(self) -> None:
        if self.fd < 0:
            self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def flush(self) -> None:
        if self.batch:
            os.write(self.fd, b"".join(self.batch))
            self.batch = []
        os.fdatasync(self.fd)

    def archive_array(self, array: np.ndarray) -> None:
        self._create()
        os.write(self.fd, array)

    def get_box(self, box: Box) -> np.ndarray:
        """One pread per contiguous run of the box."""
        import numpy as np

        part = np.empty(box.count, box.dtype)
        runs = memoryview(part.reshape(-1, box.count[-1]))
        fd = os.open(self.path, os.O_RDONLY)
        outer = product(*(range(s, s + c) for s, c in zip(box.start[:-1], box.count[:-1], strict=True)))
        for run, index in enumerate(outer):
            element = int(np.ravel_multi_index((*index, box.start[-1]), box.shape))
            os.preadv(fd, [runs[run : run + 1].cast("B")], element * part.itemsize)
        os.close(fd)
        return part


def write_ranges(root: Path, shape: Shape, to: Path) -> None:
    """The list of ranges for `bench/floor`: every field of the raw file, in writing order."""
    path = root / "raw.bin"
    to.write_text("".join(f"{i * shape.nbytes}\t{shape.nbytes}\t{path}\n" for i in range(shape.fields)))

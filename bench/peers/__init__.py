"""The stores that are measured, each behind the few calls that the scenarios make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from workload import Box, Key
    from workload import Runs as Shape


class Peer(Protocol):
    """One open store. Making it opens the store below `root` and may make its folder.

    A peer leaves out calls that it cannot offer: a raw file has no `entries`, `get`, `retrieve` or `cli`.
    """

    def __init__(self, root: Path) -> None: ...

    def archive(self, key: Key, data: bytes) -> None: ...

    def archive_grib(self, message: bytes) -> None:
        """Archives under the key in the message's header."""

    def flush(self) -> None: ...

    def entries(self) -> Iterator[Key]:
        """The key of every field, each as a separate dict."""

    def get(self, key: Key) -> bytes: ...

    def retrieve(self, request: dict[str, str | list[str]], room: memoryview) -> int:
        """Reads all fields of the request through the one buffer `room`; returns the number of bytes."""

    def archive_array(self, array: np.ndarray) -> None: ...

    def get_box(self, box: Box) -> np.ndarray: ...

    @staticmethod
    def cli(root: Path) -> tuple[list[str], dict[str, str]]:
        """The command that lists a store, and the environment that it needs."""


class Runs(Protocol):
    """Runs of a simulation, stored below `root` in any form and opened by xarray."""

    @staticmethod
    def prepare() -> None:
        """Imports what opening needs, so that a figure measures only opening."""

    @staticmethod
    def fill(root: Path, shape: Shape) -> None: ...

    @staticmethod
    def open(root: Path, shape: Shape) -> xr.DataTree | xr.Dataset: ...

    @staticmethod
    def value(opened: xr.DataTree | xr.Dataset, shape: Shape, run: int, variable: int, step: int) -> float:
        """The first value of one field."""

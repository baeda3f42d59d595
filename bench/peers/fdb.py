"""FDB 5 through pyfdb, set up as its documentation advises for one machine and one writer.

Engine `toc` on one local root; a minimal three-level schema whose rule names exactly the keywords of our
keys; no sub-tocs (one writer gains nothing from them); default buffers and sync on flush; the caller gives
the keys, so that FDB decodes no GRIB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workload import ARRAY_KEY, Key

if TYPE_CHECKING:
    import numpy as np
    from workload import Box

SCHEMA = """
param: Param; step: Step; date: Date; levelist: Double; expver: Expver; time: Time;
[ class, expver, stream, date, time, domain?
    [ type, levtype
        [ step, levelist?, param ]]]
"""
EVERYTHING = {"class": "rd", "expver": "xxxx"}
_PIECE = 8 << 20


def _configure(root: Path) -> dict[str, Any]:
    """The settings of the store at `root`, also written next to it for the fdb-* programs."""
    beside = root.with_name(root.name + "-config")
    beside.mkdir(parents=True, exist_ok=True)
    root.mkdir(parents=True, exist_ok=True)
    (beside / "schema").write_text(SCHEMA)
    config = {
        "type": "local",
        "engine": "toc",
        "schema": str(beside / "schema"),
        "spaces": [{"handler": "Default", "roots": [{"path": str(root)}]}],
    }
    (beside / "config.yaml").write_text(json.dumps(config))
    return config


class Store:
    """See `peers.Peer`."""

    def __init__(self, root: Path) -> None:
        import pyfdb

        self.fdb = pyfdb.FDB(_configure(root))
        self.flush = self.fdb.flush

    def archive(self, key: Key, data: bytes) -> None:
        self.fdb.archive(data, key)

    def archive_grib(self, message: bytes) -> None:
        self.fdb.archive(message)

    def entries(self) -> Iterator[Key]:
        for entry in self.fdb.list(EVERYTHING):
            yield dict(entry.combined_key())

    def get(self, key: Key) -> bytes:
        with self.fdb.retrieve(key) as handle:
            return handle.read(handle.size())

    def retrieve(self, request: dict[str, str | list[str]], room: memoryview) -> int:
        total = 0
        with self.fdb.retrieve(request) as handle:
            while (n := handle.readinto(room)) > 0:
                total += n
        return total

    def archive_array(self, array: np.ndarray) -> None:
        self.fdb.archive(array.tobytes(), ARRAY_KEY)

    def get_box(self, box: Box) -> np.ndarray:
        """Reads up to the end of the box, then cuts the box out, because a handle has no seek."""
        import numpy as np

        whole = np.empty(box.shape, box.dtype)
        room, got = memoryview(whole.reshape(-1).view("u1")), 0
        with self.fdb.retrieve(ARRAY_KEY) as handle:
            while got < box.end and (n := handle.readinto(room[got : min(got + _PIECE, box.end)])) > 0:
                got += n
        return whole[box.slices].copy()

    @staticmethod
    def cli(root: Path) -> tuple[list[str], dict[str, str]]:
        import fdb5lib

        _configure(root)
        program = Path(fdb5lib.__file__).parent / "bin" / "fdb-list"
        config = root.with_name(root.name + "-config") / "config.yaml"
        return [str(program), "class=rd,expver=xxxx"], {"FDB_CONFIG_FILE": str(config)}

"""Attributes in packet tables of HDF5, a table per variable in a file per step: the EMPRESS paper's peer.

`Store` scans record by record through the high-level C library that h5py ships (the paper's way); `Bulk`
reads whole tables into numpy and masks them. Strings are of variable length and values are text, as in the
paper.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import (
    POINTER,
    Structure,
    addressof,
    byref,
    c_char_p,
    c_int,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

from volume import (
    RUN_VALUE_ABOVE,
    STEPS,
    THREE,
    VALUE_ABOVE,
    VARIABLES,
    Box,
    Columns,
    Volume,
)

_PACKETS = 100
"""Records per chunk of a table, as in the original."""
_TABLE, _RUN_TABLE = "Attribute Table", "Run Attribute Table"


class _Record(Structure):
    _fields_ = [("tag", c_void_p), ("rank", ctypes.c_uint32), ("box", c_uint64 * 6), ("data", c_void_p)]


class _RunRecord(Structure):
    _fields_ = [("tag", c_void_p), ("data", c_void_p)]


class _Packets:
    """The calls of the high-level library for packet tables."""

    def __init__(self) -> None:
        import h5py

        folder = Path(h5py.__file__).parent.parent / "h5py.libs"
        found = sorted(folder.glob("libhdf5_hl-*")) or [Path("libhdf5_hl.so")]
        self.h5py, library = h5py, ctypes.CDLL(str(found[0]))
        for name, result, arguments in (
            ("H5PTcreate", c_int64, [c_int64, c_char_p, c_int64, c_uint64, c_int64]),
            ("H5PTopen", c_int64, [c_int64, c_char_p]),
            ("H5PTclose", c_int, [c_int64]),
            ("H5PTappend", c_int, [c_int64, c_size_t, c_void_p]),
            ("H5PTcreate_index", c_int, [c_int64]),
            ("H5PTget_num_packets", c_int, [c_int64, POINTER(c_uint64)]),
            ("H5PTget_next", c_int, [c_int64, c_size_t, c_void_p]),
        ):
            call = getattr(library, name)
            call.restype, call.argtypes = result, arguments
        self.lib = library
        self.free = ctypes.CDLL(None).free
        self.free.argtypes = [c_void_p]
        h5t = h5py.h5t
        text = h5t.C_S1.copy()
        text.set_size(h5t.VARIABLE)
        self.record = h5t.create(h5t.COMPOUND, ctypes.sizeof(_Record))
        self.record.insert(b"type_name", _Record.tag.offset, text)
        self.record.insert(b"num_dims", _Record.rank.offset, h5t.NATIVE_UINT32)
        for i in range(6):
            name = f"d{i // 2}_{('min', 'max')[i % 2]}".encode()
            self.record.insert(name, _Record.box.offset + 8 * i, h5t.NATIVE_UINT64)
        self.record.insert(b"data", _Record.data.offset, text)
        self.run_record = h5t.create(h5t.COMPOUND, ctypes.sizeof(_RunRecord))
        self.run_record.insert(b"type_name", 0, text)
        self.run_record.insert(b"data", 8, text)

    def append(self, group: Any, name: str, type_: Any, records: Any) -> None:
        table = self.lib.H5PTcreate(group.id.id, name.encode(), type_.id, _PACKETS, 0)
        assert table >= 0 and self.lib.H5PTappend(table, len(records), records) >= 0
        self.lib.H5PTclose(table)


def _texts(columns: Columns) -> list[bytes]:
    if columns.tag.kind == "text":
        return [text.encode() for text in columns.values]
    values = columns.values.tolist()
    if columns.tag.kind == "int_range":
        return [b"%d %d" % (first, last) for first, last in values]
    return [str(int(v) if columns.tag.kind == "bool" else v).encode() for v in values]


class Store:
    """One open catalog below `root`: a folder of files."""

    one_by_one = True

    def __init__(self, root: Path, volume: Volume) -> None:
        self.root, self.volume, self.packets = root, volume, _Packets()

    def fill(self) -> int:
        """Writes everything; returns the number of attributes of variables."""
        self.create()
        total = 0
        for step, tags in enumerate(self.volume.steps()):
            total += self.insert(step, tags)
        self.runs()
        return total

    def create(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)

    def insert(self, step: int, tags: list[Columns]) -> int:
        p, total = self.packets, 0
        texts = [_texts(c) for c in tags]
        with p.h5py.File(self.root / f"step{step}.h5", "w") as file:
            for number, variable in enumerate(VARIABLES):
                kept: list[Any] = []
                records: list[tuple[Any, list[int], Any]] = []
                for columns, text in zip(tags, texts, strict=True):
                    name = ctypes.create_string_buffer(columns.tag.name.encode())
                    kept.append(name)
                    for i in (columns.variable == number).nonzero()[0].tolist():
                        first, count = columns.start[i], columns.count[i]
                        box = [int(v) for d in range(3) for v in (first[d], first[d] + count[d] - 1)]
                        records.append((name, box, ctypes.create_string_buffer(text[i])))
                array = (_Record * len(records))()
                for record, (name, box, data) in zip(array, records, strict=True):
                    record.tag, record.rank, record.data = addressof(name), 3, addressof(data)
                    record.box[:] = box
                p.append(file.create_group(variable), _TABLE, p.record, array)
                total += len(records)
        return total

    def runs(self) -> None:
        p = self.packets
        for run, attributes in self.volume.small_runs():
            array, kept = (_RunRecord * len(attributes))(), []
            for record, (name, value) in zip(array, attributes.items(), strict=True):
                texts = (
                    ctypes.create_string_buffer(name.encode()),
                    ctypes.create_string_buffer(repr(value).encode()),
                )
                kept.append(texts)
                record.tag, record.data = addressof(texts[0]), addressof(texts[1])
            with p.h5py.File(self.root / f"{run}.h5", "w") as file:
                p.append(file, _RUN_TABLE, p.run_record, array)

    def _scan(self, group: Any, name: str, record: Any) -> Iterator[bytes]:
        """The name of each record's tag; the next record overwrites the record itself."""
        p = self.packets
        table, n, at = p.lib.H5PTopen(group.id.id, name.encode()), c_uint64(), addressof(record)
        p.lib.H5PTcreate_index(table)
        p.lib.H5PTget_num_packets(table, byref(n))
        following, free, text = p.lib.H5PTget_next, p.free, ctypes.string_at
        for _ in range(n.value):
            following(table, 1, at)
            yield text(record.tag)
            free(record.tag)
            free(record.data)
        p.lib.H5PTclose(table)

    def _select(
        self,
        steps: range,
        variables: list[str],
        tag: str | None,
        box: Box | None = None,
        above: float | None = None,
    ) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        wanted = tag.encode() if tag else None
        for step in steps:
            with self.packets.h5py.File(self.root / f"step{step}.h5", "r") as file:
                for variable in variables:
                    pick = self._records if self.one_by_one else self._masked
                    found += [(step, variable, *r) for r in pick(file[variable], wanted, box, above)]
        return found

    def _records(
        self, group: Any, tag: bytes | None, box: Box | None, above: float | None
    ) -> Iterator[tuple[Any, ...]]:
        record = _Record()
        for name in self._scan(group, _TABLE, record):
            if tag and name != tag:
                continue
            b = record.box[:]
            if box and any(b[2 * d] >= box.stop[d] or b[2 * d + 1] < box.start[d] for d in range(3)):
                continue
            data = ctypes.string_at(record.data)
            if above is None or float(data) > above:
                yield name, b, data

    def _masked(
        self, group: Any, tag: bytes | None, box: Box | None, above: float | None
    ) -> Iterator[tuple[Any, ...]]:
        import numpy as np

        table = group[_TABLE][:]
        mask = table["type_name"] == tag if tag else np.ones(len(table), bool)
        if box:
            for d in range(3):
                mask &= (table[f"d{d}_min"] < box.stop[d]) & (table[f"d{d}_max"] >= box.start[d])
        table = table[mask]
        if above is not None:
            table = table[table["data"].astype(float) > above]
        return iter(table.tolist())

    def q1(self) -> int:
        return sum(len(self._select(range(1, 2), ["temperature"], tag)) for tag in THREE)

    def q2(self) -> int:
        return len(self._select(range(1, 2), ["temperature"], "blob_freq", self.volume.box()))

    def q3(self) -> int:
        return len(self._select(range(STEPS), list(VARIABLES), "maximum", None, VALUE_ABOVE))

    def q4(self) -> int:
        return len(
            {r[0] for r in self._select(range(STEPS), list(VARIABLES), "blob_rare", self.volume.box())}
        )

    def q5(self) -> int:
        found = set()
        for path in self.root.glob("small*.h5"):
            with self.packets.h5py.File(path, "r") as file:
                if self.one_by_one:
                    record = _RunRecord()
                    for name in self._scan(file, _RUN_TABLE, record):
                        if name == b"max_temp" and float(ctypes.string_at(record.data)) > RUN_VALUE_ABOVE:
                            found.add(path)
                else:
                    table = file[_RUN_TABLE][:]
                    values = table["data"][table["type_name"] == b"max_temp"].astype(float)
                    if (values > RUN_VALUE_ABOVE).any():
                        found.add(path)
        return len(found)

    def q6(self) -> int:
        return len(self._select(range(1, 2), [v for v in VARIABLES if "velocity" in v], "note_ifreq"))

    def x7(self) -> int:
        return len(self._select(range(1, 2), list(VARIABLES), None, self.volume.box()))

    def x8(self) -> int:
        return len(self._select(range(STEPS), list(VARIABLES), "maximum", self.volume.tiny()))

    def sizes(self) -> dict[str, float]:
        return {"engine": sum(p.stat().st_size for p in self.root.glob("step*.h5"))}


class Bulk(Store):
    one_by_one = False

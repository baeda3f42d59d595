"""Turns variables of an exported file back into fields under their keys (``spec/exported-metadata.md``).

Invariants:

* a field gets its original type; elements of the file that did not belong to a field are skipped;
* a variable whose shape another tool changed is skipped, because its fields can no longer be identified.
"""

from __future__ import annotations

from typing import Any

import netCDF4
import numpy as np

from fieldstone._helper import PIECE_BYTES, exported
from fieldstone._helper.exported import Exported
from fieldstone._helper.files import boxes
from fieldstone._helper.netcdf import Reader, little, unsupported


class ByKey:
    """Sends the variables of an exported file as fields under their original keys."""

    def __init__(self, reader: Reader, held: Exported) -> None:
        self.reader = reader
        self.held = held

    def send_all(self) -> None:
        """Sends variables in the order in which they were written."""
        variables = self.reader.dataset.variables
        fields = self.held.fields or {}
        for name, entry in fields.items():
            if name not in variables:
                self.skip(name, exported.LOST)
                continue
            try:
                self.send(name, variables[name], entry)
            except (ValueError, TypeError) as error:
                self.skip(name, f"its values are not those of its fields: {error}")
        for name in variables:
            if name not in fields and name not in self.held.made:
                self.skip(name, "the export did not have it, so its keys are unknown")

    def skip(self, name: str, why: str) -> None:
        self.reader._skip(name, why)

    def send(self, name: str, variable: netCDF4.Variable, entry: dict[str, Any]) -> None:
        """Sends the fields of one variable."""
        if reason := unsupported(variable):
            self.skip(name, reason)
            return
        stored = np.dtype(entry["dtype"])
        texts = stored.kind == "U" and variable.dtype is not str
        shape = tuple(int(n) for n in (variable.shape[:-1] if texts else variable.shape))
        lead, inner = shape[: entry["lead"]], shape[entry["lead"] :]
        count = int(np.prod(lead, dtype=object))
        at = entry.get("at") or range(count)
        # `at` has the places of existing fields among all combinations of the leading dimensions.
        if len(lead) != entry["lead"] or len(at) != entry["count"] or any(not 0 <= i < count for i in at):
            self.skip(name, "its shape differs from the export, so its fields are unknown")
            return
        failed: list[tuple[str, str]] = []
        for number, place in enumerate(at):
            where = tuple(int(i) for i in np.unravel_index(place, lead)) if lead else ()
            key = exported.key_at(entry, number)
            for start, extent in boxes(inner, max(stored.itemsize, 1), PIECE_BYTES):
                values = self.values(variable, where, start, extent, texts, failed)
                if values is None:
                    continue
                values = values.astype(stored)
                frame = {"kind": "field", "key": key, "dtype": stored.str, "shape": list(inner)}
                if extent != inner:
                    frame |= {"start": list(start), "count": list(extent)}
                if not any(start):
                    self.reader.fields += 1
                payload = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
                self.reader.channel.send(frame, payload)
                self.reader._sent(values.nbytes)
        if failed:
            more = f" (and {len(failed) - 1} more parts of {name})" if len(failed) > 1 else ""
            self.skip(failed[0][0], failed[0][1] + more)

    def values(
        self,
        variable: netCDF4.Variable,
        where: tuple[int, ...],
        start: tuple[int, ...],
        extent: tuple[int, ...],
        texts: bool,
        failed: list[tuple[str, str]],
    ) -> np.ndarray | None:
        """A box of one field."""
        whole_start, whole_count = (*where, *start), (*(1,) * len(where), *extent)
        if variable.dtype is str:
            box = tuple(slice(s, s + c) for s, c in zip(whole_start, whole_count, strict=True))
            return np.array(variable[box] if box else variable[...], dtype=str).reshape(extent)
        if texts:
            width = variable.shape[-1]
            raw = self.reader._read(
                variable, variable.name, (*whole_start, 0), (*whole_count, width), np.dtype("S1"), failed
            )
            joined = None if raw is None else raw.view(f"S{width}").reshape(extent)
            return None if joined is None else np.char.decode(joined, "utf-8")
        dtype = little(variable.dtype)
        raw = self.reader._read(variable, variable.name, whole_start, whole_count, dtype, failed)
        return None if raw is None else raw.reshape(extent)

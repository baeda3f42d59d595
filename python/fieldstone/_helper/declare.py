"""The declarations of a netCDF file's variables for a catalog (``spec/helper-protocol.md``, "Declared").

For each variable that has fields: names of dimensions, type and shape of one field, attributes, and the
coordinates along its dimensions; for the file its attributes and the times of its steps.

Invariants:

* a coordinate is sent once, however many variables use it;
* times are seconds since 1970 by the calendar date in the file, so that files with other units and calendars
  are found by the same dates; if a date does not exist (30 February), days are counted on from the first of
  its month.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import netCDF4
import numpy as np

from fieldstone._helper import attributes

EPOCH = date(1970, 1, 1).toordinal()
COORDINATE_MAX = 1 << 20
"""Maximum elements of a coordinate; longer ones stay only in their variable."""
FRAME = 1 << 20
"""Approximate maximum bytes of a frame's header; a longer declaration is left to the file's own header."""
LONGEST = 8 << 20
FRACTION = re.compile(r"(\.\d{6})\d+")
"""Digits of a second after its millionths, which cftime does not read."""
NANOSECONDS = ("nanoseconds", "nanosecond", "nanosec", "nanosecs", "nsec", "nsecs", "ns")


@dataclass
class Declared:
    """Collects declarations while the variables of a file are sent."""

    attrs: list[list[Any]] = field(default_factory=list)
    variables: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[np.ndarray] = field(default_factory=list)
    _known: dict[tuple[int, str], int | None] = field(default_factory=dict)
    _leading: dict[tuple[int, str], netCDF4.Dimension] = field(default_factory=dict)

    def add(self, variable: netCDF4.Variable, path: str, facts: dict[str, Any], order: str) -> None:
        """Adds a variable by its header entry; `order` is the byte order of its fields, ``<`` or ``>``."""
        if not facts["dtype"] or 0 in facts["shape"]:
            return
        first = 1 if facts["split"] else 0
        dims: Sequence[netCDF4.Dimension] = variable.get_dims()
        if first:
            self._leading[identity(dims[0])] = dims[0]
        coords = [[i, at] for i, dim in enumerate(dims[first:]) if (at := self._coordinate(dim)) is not None]
        names = facts["dims"][first:]
        self.variables.append(
            {
                "name": path,
                "dtype": np.dtype(facts["dtype"]).newbyteorder(order).str,
                "shape": facts["shape"][first:],
                "dims": names if len(set(names)) == len(names) else [],
                "attrs": facts["attrs"],
                "coords": coords,
            }
        )

    def frames(self) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
        """Frames and payloads: the file's attributes and times in the first, variables in all."""
        attrs = self.attrs if size_of(self.attrs) <= LONGEST else []
        times, some, size = self._times(), [], 0
        for variable in self.variables:
            own = size_of(variable)
            if own > LONGEST:
                continue
            if some and size + own > FRAME:
                yield self._frame(attrs, some, times)
                attrs, times, some, size = [], None, [], 0
            some.append(variable)
            size += own
        yield self._frame(attrs, some, times)

    def _frame(
        self, attrs: list[Any], variables: list[dict[str, Any]], times: np.ndarray | None
    ) -> tuple[dict[str, Any], np.ndarray]:
        """A frame with the coordinates of its variables."""
        used = sorted({at for variable in variables for _, at in variable["coords"]})
        place = {at: i for i, at in enumerate(used)}
        parts = [self.arrays[at].astype("<f8") for at in used]
        if times is not None:
            parts.append(times.astype("<f8"))
        told = [
            variable | {"coords": [[dim, place[at]] for dim, at in variable["coords"]]}
            for variable in variables
        ]
        facts: dict[str, Any] = {"kind": "declared", "attrs": attrs, "arrays": [len(part) for part in parts]}
        facts |= {"variables": told, "times": None if times is None else len(parts) - 1}
        payload = np.concatenate(parts) if parts else np.empty(0, "<f8")
        return facts, payload.view(np.uint8)

    def _coordinate(self, dim: netCDF4.Dimension) -> int | None:
        """The position of a dimension's coordinate among the arrays, if it is finite and strictly
        monotonic."""
        key = identity(dim)
        if key not in self._known:
            values = along(dim)
            steps = np.diff(values) if values is not None else np.empty(0)
            ok = values is not None and len(values) and np.isfinite(values).all()
            if ok and ((steps > 0).all() or (steps < 0).all()):
                self._known[key] = len(self.arrays)
                self.arrays.append(values)
            else:
                self._known[key] = None
        return self._known[key]

    def _times(self) -> np.ndarray | None:
        """The times of the steps, if exactly one dimension of steps is a time."""
        found = [times for dim in self._leading.values() if (times := seconds(dim)) is not None]
        return found[0] if len(found) == 1 else None


def size_of(facts: Any) -> int:
    """Maximum bytes that facts take in the header of a frame."""
    return len(json.dumps(facts, separators=(",", ":")))


def identity(dim: netCDF4.Dimension) -> tuple[int, str]:
    """Distinguishes a dimension from others of its file."""
    return dim.group()._grpid, dim.name


def coordinate_of(dim: netCDF4.Dimension) -> netCDF4.Variable | None:
    """The coordinate variable of a dimension."""
    variable = dim.group().variables.get(dim.name)
    if variable is None or variable.dimensions != (dim.name,) or not isinstance(variable.dtype, np.dtype):
        return None
    return variable if variable.dtype.kind in "iuf" and not variable._isenum else None


def along(dim: netCDF4.Dimension) -> np.ndarray | None:
    """The values of the coordinate of a dimension, decoded; missing ones are NaN."""
    variable = coordinate_of(dim)
    if variable is None or len(dim) > COORDINATE_MAX:
        return None
    variable.set_auto_maskandscale(True)
    try:
        values = np.ma.asarray(variable[...])
        return values.astype("f8").filled(np.nan)
    except Exception:  # any error of netCDF-C or a filter: reading the variable's own fields reports it
        return None
    finally:
        variable.set_auto_maskandscale(False)


def seconds(dim: netCDF4.Dimension) -> np.ndarray | None:
    """Times along a dimension, in seconds since 1970, NaN if there is none; None if it is not a time."""
    variable, values = coordinate_of(dim), along(dim)
    units = attributes.of(variable, "units") if variable is not None else None
    if variable is None or values is None or not isinstance(units, str) or " since " not in units:
        return None
    calendar = attributes.of(variable, "calendar", "standard")
    held = np.isfinite(values)
    times = np.full(len(values), np.nan)
    word, _, rest = units.strip().partition(" ")
    if word.lower() in NANOSECONDS:
        # A unit of numpy and xarray that cftime does not support.
        units, values = f"microseconds {rest}", values / 1000
    units = FRACTION.sub(r"\1", units)
    try:
        moments = netCDF4.num2date(values[held], units, str(calendar), only_use_cftime_datetimes=True)
        times[held] = [since_1970(moment) for moment in np.atleast_1d(moments)]
    except (ValueError, OverflowError, TypeError):  # units without a valid moment
        return None
    return times


def since_1970(moment: Any) -> float:
    """Seconds from 1970 to a date of any calendar; its day is counted from the Gregorian first of its
    month."""
    # The calendar repeats after 400 years, so that years before 1 and after 9999 work, too.
    cycles, year = divmod(moment.year - 1, 400)
    days = date(year + 1, moment.month, 1).toordinal() + 146_097 * cycles + moment.day - 1 - EPOCH
    clock = 3600 * moment.hour + 60 * moment.minute + moment.second + moment.microsecond * 1e-6
    return 86_400.0 * days + clock

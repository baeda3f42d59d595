"""What a netCDF file says of its variables, as a catalog keeps it (``spec/helper-protocol.md``, "Declared").

Of each variable that has fields: names of dimensions, type and shape of one field, attributes, and the
coordinates along its dimensions; of the file its attributes and the times of its steps.

Invariants:

* a coordinate is sent once, however many variables stand on it;
* times are seconds since 1970 by the calendar date that the file gives, so that files of other units and
  calendars are found by the same dates; where dates do not exist (30 February) days are counted on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import netCDF4
import numpy as np

EPOCH = date(1970, 1, 1).toordinal()
COORDINATE_MAX = 1 << 20
"""Most elements of a coordinate; longer ones stay in their variable alone."""


@dataclass
class Declared:
    """Gathers what is declared while the variables of a file are sent."""

    attrs: list[list[Any]] = field(default_factory=list)
    variables: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[np.ndarray] = field(default_factory=list)
    _known: dict[tuple[int, str], int | None] = field(default_factory=dict)
    _leading: dict[tuple[int, str], netCDF4.Dimension] = field(default_factory=dict)

    def add(self, variable: netCDF4.Variable, path: str, facts: dict[str, Any], order: str) -> None:
        """A variable by what its header says; `order` is the byte order of its fields, ``<`` or ``>``."""
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

    def frame(self) -> tuple[dict[str, Any], np.ndarray]:
        """The frame and its payload."""
        times = self._times()
        lengths = [len(array) for array in self.arrays]
        facts: dict[str, Any] = {"kind": "declared", "attrs": self.attrs, "arrays": lengths}
        facts |= {"variables": self.variables, "times": times}
        parts = [array.astype("<f8") for array in self.arrays]
        payload = np.concatenate(parts) if parts else np.empty(0, "<f8")
        return facts, payload.view(np.uint8)

    def _coordinate(self, dim: netCDF4.Dimension) -> int | None:
        """Where the coordinate of a dimension is among the arrays: finite, rising or falling throughout."""
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

    def _times(self) -> int | None:
        """Where the times of the steps are: where one dimension alone is stepped along that is of time."""
        found = [times for dim in self._leading.values() if (times := seconds(dim)) is not None]
        if len(found) != 1:
            return None
        self.arrays.append(found[0])
        return len(self.arrays) - 1


def identity(dim: netCDF4.Dimension) -> tuple[int, str]:
    """What distinguishes a dimension from others of its file."""
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
    except Exception:  # whatever netCDF-C or a filter says: the variable's own fields tell of it
        return None
    finally:
        variable.set_auto_maskandscale(False)


def seconds(dim: netCDF4.Dimension) -> np.ndarray | None:
    """Times along a dimension, seconds since 1970, NaN where there is none; None where it is not of time."""
    variable, values = coordinate_of(dim), along(dim)
    units = variable.getncattr("units") if variable is not None and "units" in variable.ncattrs() else None
    if values is None or not isinstance(units, str) or " since " not in units:
        return None
    calendar = variable.getncattr("calendar") if "calendar" in variable.ncattrs() else "standard"
    held = np.isfinite(values)
    times = np.full(len(values), np.nan)
    try:
        moments = netCDF4.num2date(values[held], units, str(calendar), only_use_cftime_datetimes=True)
        times[held] = [since_1970(moment) for moment in np.atleast_1d(moments)]
    except (ValueError, OverflowError, TypeError):  # units that name no moment
        return None
    return times


def since_1970(moment: Any) -> float:
    """Seconds from 1970 to a date of any calendar, as the Gregorian one counts the first of its month."""
    # 400 years repeat: so years before 1 and after 9999 have a day, too.
    cycles, year = divmod(moment.year - 1, 400)
    days = date(year + 1, moment.month, 1).toordinal() + 146_097 * cycles + moment.day - 1 - EPOCH
    clock = 3600 * moment.hour + 60 * moment.minute + moment.second + moment.microsecond * 1e-6
    return 86_400.0 * days + clock

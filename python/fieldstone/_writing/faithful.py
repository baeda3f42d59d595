"""Checks that values read back as they were given: an element that an encoding cannot hold is refused.

xarray rounds and casts without checking the result: 400.0 under ``dtype=i2, scale_factor=0.01`` wraps to
-255.36, NaN becomes some whole number, a number that is packed as the fill value reads as missing. Here, each
encoded block is decoded by xarray's own rules and compared with the given values.

Invariant: an accepted value differs from the given one at most by half a step of its packing, and by the
rounding of the float types on the way; times and whole numbers are equal, and exactly the missing values are
missing.

Example: ``checked("t", given, encoded, ["scale_factor", …])`` is `encoded`, or raises Invalid.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import xarray as xr
from xarray import conventions

from ..errors import Invalid

CODING = (
    "units",
    "calendar",
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "dtype",
    "_Encoding",
    "_Unsigned",
)
"""Attributes that determine how values are encoded."""

SECONDS = {"n": 1e-9, "u": 1e-6, "mic": 1e-6, "mil": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
"""Seconds in a unit of time, by the first letters of its name; the longest match counts."""

HINT = "give another encoding (dtype, scale_factor, add_offset, _FillValue, units), or other values"


def checked(
    name: str, given: xr.Variable, encoded: xr.Variable, coding: Mapping[str, Any], hint: str = HINT
) -> xr.Variable:
    """`encoded`, which readers decode by the attributes `coding`: compared with `given` now, or when dask
    computes it."""
    if not may_differ(given, encoded, coding):
        return encoded
    chunked, lazy = given.chunks, encoded.chunks
    if lazy is None or chunked is None:
        compare(given.values, encoded.values, of=name, stored=encoded.dtype, coding=coding, hint=hint)
        return encoded
    import dask.array

    if chunked != lazy:
        raise Invalid(f"variable {name} has chunks {chunked}, but encoded {lazy}", "load it first")
    data = dask.array.map_blocks(
        compare,
        given._data,
        encoded._data,
        dtype=encoded.dtype,
        meta=encoded._data._meta,
        of=name,
        stored=encoded.dtype,
        coding=dict(coding),
        hint=hint,
    )
    return xr.Variable(encoded.dims, data, encoded.attrs, encoded.encoding, fastpath=True)


def may_differ(given: xr.Variable, encoded: xr.Variable, coding: Mapping[str, Any]) -> bool:
    """Whether encoded values may read back differently. Text is never cut, bool and complex are never
    cast."""
    if encoded.dtype.kind not in "iuf" or given.dtype.kind not in "iufMmO" or given.shape != encoded.shape:
        return False
    if given.dtype.kind == "O":
        return " since " in str(coding.get("units"))
    if given.dtype.newbyteorder("=") != encoded.dtype.newbyteorder("="):
        return True
    return any(not is_nan(value) for word, value in coding.items() if word not in ("units", "calendar"))


def is_nan(value: Any) -> bool:
    """Whether a fill value is NaN, which always means a missing value."""
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def compare(
    given: Any, encoded: Any, *, of: str, stored: np.dtype, coding: Mapping[str, Any], hint: str = HINT
) -> Any:
    """The encoded block of a variable as it is stored; Invalid names the first value that reads back
    differently."""
    # xarray encodes blocks of times as types other than those it announces.
    with np.errstate(all="ignore"):
        encoded = encoded.astype(stored, copy=False)
    if not np.size(given):
        return encoded
    values, packed = np.atleast_1d(np.ma.getdata(given)), np.atleast_1d(np.ma.getdata(encoded))
    back = decoded(values, packed, coding)
    bad = differing(values, packed, back, coding)
    if np.ma.isMaskedArray(given):
        bad &= ~np.atleast_1d(np.ma.getmaskarray(given))
    if bad.any():
        first = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise refusal(of, values[first], packed.dtype, back[first], coding, hint, values.dtype)
    return encoded


def decoded(given: np.ndarray, packed: np.ndarray, coding: Mapping[str, Any]) -> np.ndarray:
    """The values that readers decode from encoded values."""
    dims = [f"dim_{n}" for n in range(packed.ndim)]
    unit = np.datetime_data(given.dtype)[0] if given.dtype.kind in "Mm" else "ns"
    unit = unit if unit in ("s", "ms", "us", "ns") else "ns"
    times: Any = xr.coders.CFDatetimeCoder(use_cftime=given.dtype.kind == "O", time_unit=unit)  # type: ignore[arg-type]
    variable = xr.Variable(dims, packed, dict(coding))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = conventions.decode_cf_variable("values", variable, decode_times=times, decode_timedelta=True)
        return np.asarray(made.values)


def differing(
    given: np.ndarray, packed: np.ndarray, back: np.ndarray, coding: Mapping[str, Any]
) -> np.ndarray:
    """Marks the elements that read back differently."""
    if given.dtype.kind in "MmO":
        return differing_times(given, packed, back, coding)
    if given.dtype.kind in "iu" and back.dtype.kind in "iu":
        return np.asarray(given != back)
    scale, offset = (number(coding.get(word), one) for word, one in (("scale_factor", 1), ("add_offset", 0)))
    floats = [a.dtype for a in (given, packed, back) if a.dtype.kind == "f"]
    eps = max((float(np.finfo(dtype).eps) for dtype in floats), default=0.0)
    tiny = max((float(np.finfo(dtype).tiny) for dtype in floats), default=0.0)
    stepped = packed.dtype.kind in "iu" and (given.dtype.kind == "f" or scale != 1)
    with np.errstate(all="ignore"):
        one, other = given.astype("f8"), back.astype("f8")
        room = 4 * eps * np.maximum(np.abs(one), abs(offset)) + tiny
        if stepped:
            room = room + 0.5 * abs(scale)
        near = np.isfinite(one) & (np.abs(other - one) <= room)
        return ~(near | (one == other) | (np.isnan(one) & np.isnan(other)))


def differing_times(
    given: np.ndarray, packed: np.ndarray, back: np.ndarray, coding: Mapping[str, Any]
) -> np.ndarray:
    """Marks the times or durations that read back differently; floats may be off by their own rounding."""
    unit = unit_of(str(coding.get("units", "")))
    with np.errstate(all="ignore"):
        room = np.zeros(packed.shape)
        scale, offset = number(coding.get("scale_factor"), 1), number(coding.get("add_offset"), 0)
        if packed.dtype.kind == "f" or (scale, offset) != (1, 0):
            room = 2 * np.spacing(np.abs(packed.astype("f8") * scale + offset)) * unit
        if given.dtype.kind != "O":
            if back.dtype.kind != given.dtype.kind:
                return np.full(given.shape, True)
            lacking = np.isnat(given) & np.isnat(back)
            off = np.abs((back - given).astype("m8[ns]").astype("f8")) * 1e-9
            near = ~np.isnat(given) & ~np.isnat(back) & (off <= room + (1e-9 if room.any() else 0.0))
            return ~(near | lacking)
    off = [
        abs(apart(one, other)) <= wide + 1e-6
        for one, other, wide in zip(given.ravel(), back.ravel(), np.nan_to_num(room).ravel(), strict=True)
    ]
    return ~np.array(off).reshape(given.shape)


def apart(one: Any, other: Any) -> float:
    """Seconds between two dates of one calendar; infinite if they are not dates, or one is missing."""
    if one is other or (one != one and other != other):
        return 0.0
    try:
        between = other - one
    except TypeError:
        return float("inf")
    return between.total_seconds() if isinstance(between, timedelta) else float("inf")


def unit_of(units: str) -> float:
    """Seconds in the unit of ``hours since …`` or ``hours``; those of a day if it is unknown."""
    word = re.split(r"\s", units.strip().lower(), maxsplit=1)[0]
    fitting = [start for start in SECONDS if word.startswith(start)]
    return SECONDS[max(fitting, key=len)] if fitting else SECONDS["d"]


def number(value: Any, default: float) -> float:
    """The number in an attribute, which may be an array with one element."""
    return default if value is None else float(np.asarray(value).reshape(-1)[0])


def refusal(
    name: str, value: Any, dtype: np.dtype, back: Any, coding: Mapping[str, Any], hint: str, kind: np.dtype
) -> Invalid:
    """The error, with variable, value and range."""
    words = ", ".join(f"{word}={coding[word]}" for word in CODING if word in coding and word != "dtype")
    how = f"{dtype.newbyteorder('=')} with {words}" if words else str(dtype.newbyteorder("="))
    text = f"variable {name}: {value} cannot be kept as {how}: it would read as {back}"
    ends = range_of(dtype, coding, kind)
    return Invalid(f"{text}; {ends}" if ends else text, hint)


def range_of(dtype: np.dtype, coding: Mapping[str, Any], kind: np.dtype) -> str:
    """The range of values that fit, in words; empty if it is unknown."""
    if kind.kind == "O":
        return ""
    if dtype.kind == "f":
        ends = np.array([np.finfo(dtype).min, np.finfo(dtype).max], dtype)
    else:
        info = np.iinfo(dtype)
        middle = [-2, -1, 0, 1] if dtype.kind == "i" else [info.max // 2, info.max // 2 + 1]
        ends = np.array([info.min, info.min + 1, *middle, info.max - 1, info.max], dtype)
    try:
        values = decoded(np.zeros(1, kind), ends, coding)
        held = values[~np.isnat(values)] if values.dtype.kind in "Mm" else values[values == values]
        return f"values from {held.min()} to {held.max()} fit"
    except (ValueError, OverflowError, TypeError):  # the ends are outside the range of times
        return ""


def cast(name: str, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values as another type of the same kind; Invalid if one does not fit."""
    if values.dtype == dtype:
        return values
    with np.errstate(all="ignore"):
        made = values.astype(dtype)
        if dtype.kind in "iu":
            bad = made != values
        elif dtype.kind in "fc":
            bad = np.isfinite(values) & ~np.isfinite(made)
        else:
            return made
    if bad.any():
        first = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise refusal(name, values[first], dtype, made[first], {}, HINT, values.dtype)
    return made

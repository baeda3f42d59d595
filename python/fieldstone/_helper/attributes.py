"""Attributes of netCDF files as JSON that keeps their exact types (``spec/netcdf-header.md``).

A value is one of ``{"text": s}``, ``{"strings": [s, ...]}`` or ``{"dtype": "<f4", "values": [...]}``;
floats that JSON cannot hold are the texts ``NaN``, ``Infinity`` and ``-Infinity``.

Example: ``encode(np.float32([1.5, np.nan]))`` is ``{"dtype": "<f4", "values": [1.5, "NaN"]}``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def encode(value: Any) -> dict[str, Any]:
    """The JSON form of an attribute as netCDF4-python returns it; TypeError for user-defined types."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, bytes):
        return {"text": value.decode("utf-8", "replace")}
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return {"strings": value}
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or array.ndim > 1:
        raise TypeError(f"attribute of type {array.dtype}")
    array = array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1)
    values = array.tolist()
    if array.dtype.kind == "f":
        values = [v if math.isfinite(v) else _name(v) for v in values]
    return {"dtype": array.dtype.str, "values": values}


def decode(coded: dict[str, Any]) -> Any:
    """The attribute as netCDF4-python would return it: text, list of text, numpy scalar or array."""
    if "text" in coded:
        return coded["text"]
    if "strings" in coded:
        return list(coded["strings"])
    dtype = np.dtype(coded["dtype"])
    values = [float(v) if isinstance(v, str) else v for v in coded["values"]]
    array = np.array(values, dtype=dtype.newbyteorder("="))
    return array[0] if array.size == 1 else array


def _name(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"

"""Element types and fill values under their names in Zarr 3.

The types of numpy that the core of Zarr 3 lacks (times, text and bytes of fixed width) have the names that
zarr-python uses, so that arrays read back with the stored type.

Example::

    data_type(np.dtype("<f4"))                # "float32"
    fill_text(np.float64("nan"), np.dtype("f8"))  # "NaN"
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

_KINDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


def data_type(dtype: np.dtype) -> Any:
    """The ``data_type`` of a metadata document."""
    if dtype.kind == "b":
        return "bool"
    if dtype.kind in _KINDS:
        return f"{_KINDS[dtype.kind]}{dtype.itemsize * 8}"
    if dtype.kind in "Mm":
        unit, count = np.datetime_data(dtype)
        name = "numpy.datetime64" if dtype.kind == "M" else "numpy.timedelta64"
        return {"name": name, "configuration": {"unit": unit, "scale_factor": count}}
    name = "fixed_length_utf32" if dtype.kind == "U" else "null_terminated_bytes"
    return {"name": name, "configuration": {"length_bytes": max(dtype.itemsize, 1)}}


def fill_text(fill: Any, dtype: np.dtype) -> Any:
    """A fill value in a metadata document."""
    value = np.asarray(fill, dtype=dtype)[()]
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu":
        return int(value)
    if dtype.kind == "f":
        return _float(float(value))
    if dtype.kind == "c":
        return [_float(float(value.real)), _float(float(value.imag))]
    if dtype.kind in "Mm":
        return int(value.astype("i8"))
    if dtype.kind == "S":
        return base64.standard_b64encode(bytes(value)).decode()
    return str(value)


def _float(value: float) -> float | str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value

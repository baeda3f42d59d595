"""Attributes as JSON, in the form in which xarray writes and reads them in Zarr 3.

Example::

    attributes_of({"units": "K", "valid_range": np.array([0, 400], "i2")})
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np
from xarray.backends.zarr import FillValueCoder


def attributes_of(attrs: Mapping[str, Any], dtype: np.dtype | None = None) -> dict[str, Any]:
    """The attributes of a group, or of an array of type `dtype`."""
    made = {str(key): plain(value) for key, value in attrs.items()}
    if dtype is None or "_FillValue" not in made:
        return made
    fill = np.ravel(attrs["_FillValue"])
    try:
        if dtype.kind in "SU":
            raise TypeError("xarray cannot read a _FillValue of text in Zarr 3")
        if dtype.kind in "iu" and fill[0] != int(fill[0]):
            raise TypeError("xarray would turn it into a whole number, which elements may have")
        made["_FillValue"] = FillValueCoder.encode(fill[0].item(), dtype)
    except (TypeError, ValueError):
        # Files have fill values of other types than their variables, such as NaN for integers. For xarray,
        # missing_value has the same meaning and may have any type.
        del made["_FillValue"]
        made["missing_value"] = [*np.ravel(made.get("missing_value", [])).tolist(), *plain(fill)]
    return made


def plain(value: Any) -> Any:
    """A value in JSON's form."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [plain(held) for held in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)

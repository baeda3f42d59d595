"""Attributes of netCDF files as JSON that keeps their exact types (``spec/netcdf-header.md``).

A value is one of ``{"text": s}``, ``{"strings": [s, ...]}`` or ``{"dtype": "<f4", "values": [...]}``; floats
that JSON cannot hold are the texts ``NaN``, ``Infinity`` and ``-Infinity``. Characters that are not UTF-8 are
kept as Latin-1, which has a letter for every byte, and are marked with ``"encoding": "latin-1"``.

Example: ``encode(np.float32([1.5, np.nan]))`` is ``{"dtype": "<f4", "values": [1.5, "NaN"]}``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

LATIN = "latin-1"
FILL = "_FillValue"


def encode(value: Any) -> dict[str, Any]:
    """The JSON form of an attribute as netCDF4-python returns it; TypeError for user-defined types."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, bytes):
        if is_utf8(value):
            return {"text": value.decode()}
        return {"text": value.decode(LATIN), "encoding": LATIN}
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


def of(holder: Any, name: str, default: Any = None) -> Any:
    """An attribute as netCDF4-python returns it; `default` if it does not exist or has an unknown type."""
    try:
        return holder.getncattr(name) if name in holder.ncattrs() else default
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError):
        return default


def exact(group: int, variable: int, name: str) -> dict[str, Any]:
    """The JSON form of an attribute of an open file (ids of netCDF-C), which distinguishes characters from
    strings and keeps every byte of them. NetCDFError for user-defined types."""
    from fieldstone._helper import libnetcdf  # reading stored attributes needs no netCDF-C

    kind, value = libnetcdf.attribute(group, variable, name)
    if kind == "c":
        return (
            {"text": value.decode()} if is_utf8(value) else {"text": value.decode(LATIN), "encoding": LATIN}
        )
    if kind == "s":
        if all(map(is_utf8, value)):
            return {"strings": [text.decode() for text in value]}
        return {"strings": [text.decode(LATIN) for text in value], "encoding": LATIN}
    return encode(value)


def put(group: int, variable: int, name: str, coded: dict[str, Any]) -> None:
    """Writes an attribute into a file in define mode."""
    from fieldstone._helper import libnetcdf

    encoding = coded.get("encoding", "utf-8")
    if "text" in coded:
        libnetcdf.put_attribute(group, variable, name, "c", coded["text"].encode(encoding))
    elif "strings" in coded:
        texts = [text.encode(encoding) for text in coded["strings"]]
        libnetcdf.put_attribute(group, variable, name, "s", texts)
    else:
        libnetcdf.put_attribute(group, variable, name, "n", np.atleast_1d(decode(coded)))


def decode(coded: dict[str, Any]) -> Any:
    """The attribute as netCDF4-python would return it: text, list of text, numpy scalar or array."""
    if "text" in coded:
        return _shown(coded["text"], coded).replace("\0", "")
    if "strings" in coded:
        texts = [_shown(text, coded) for text in coded["strings"]]
        return texts[0] if len(texts) == 1 else texts
    dtype = np.dtype(coded["dtype"])
    values = [float(v) if isinstance(v, str) else v for v in coded["values"]]
    array = np.array(values, dtype=dtype.newbyteorder("="))
    return array[0] if array.size == 1 else array


def decoded(attrs: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """All attributes of a variable or group, by name, as netCDF4-python would return them: a fill value of
    type character is bytes, like the characters that it replaces.
    """
    made = {name: decode(coded) for name, coded in attrs}
    for name, coded in attrs:
        if name == FILL and "text" in coded:
            made[name] = coded["text"].encode(coded.get("encoding", "utf-8"))
    return made


def is_utf8(text: bytes) -> bool:
    """Whether bytes survive decoding and encoding as UTF-8."""
    try:
        return text.decode().encode() == text
    except UnicodeError:
        return False


def _shown(text: str, coded: dict[str, Any]) -> str:
    """A text in netCDF4-python's form, which replaces bytes that are not UTF-8."""
    if "encoding" in coded:
        return text.encode(coded["encoding"]).decode("utf-8", "replace")
    return text


def _name(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"

"""Arrays and attribute values in the eleven types of netCDF."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import Invalid

TYPES = frozenset(("i1", "S1", "i2", "i4", "f4", "f8", "u1", "u2", "u4", "i8", "u8"))
"""numpy's names of netCDF's types, without the byte order."""

HINT = "netCDF has integers and floats of 1 to 8 bytes, and text"


def type_of(dtype: Any, what: str) -> str:
    """numpy's name of netCDF's type for a dtype; `bool` is a byte, `str` is text."""
    if dtype is str or dtype is bytes:
        return "S1"
    if dtype is None:  # numpy would take None for float64
        raise Invalid(f"{what}: no dtype is given", HINT)
    if isinstance(dtype, str) and dtype in TYPES:
        return dtype
    if isinstance(dtype, str) and dtype in ("c", "char"):
        return "S1"
    try:
        parsed = np.dtype(dtype)
    except TypeError:
        raise Invalid(f"{what}: {dtype!r} is not a dtype", HINT) from None
    text = parsed.str[1:]
    if text in ("b1", "S0", "U0", "U1"):
        return "i1" if text == "b1" else "S1"
    if text not in TYPES:
        raise Invalid(f"{what}: netCDF has no type for dtype {parsed}", HINT)
    return text


def array(values: Any, what: str, text: bool) -> np.ndarray:
    """An array in C order and native byte order, of a type that netCDF has.

    `text`: whether it goes to a variable of text, in which an array of strings has their length as last
    dimension, and a string is a row of bytes.
    """
    # A plain array needs no check: importing `numpy.ma` takes 10 ms.
    if isinstance(values, np.ndarray) and type(values) is not np.ndarray and np.ma.is_masked(values):
        raise Invalid(
            f"{what}: the array has masked elements, which would be lost", "give data.filled(value)"
        )
    if isinstance(values, str | bytes | bytearray):
        raw = values.encode() if isinstance(values, str) else bytes(values)
        return np.frombuffer(raw, "S1") if text else np.asarray(raw)
    found = np.asarray(values)
    kind = found.dtype.kind
    if kind == "U":
        found = np.char.encode(found, "utf-8")
        kind = "S"
    if kind == "S":
        if found.dtype.itemsize != 1:
            found = np.ascontiguousarray(found)
            found = found.reshape((*found.shape, 1)).view("S1")
    elif kind == "b":
        found = found.astype("i1")
    elif kind == "f" and found.dtype.itemsize == 2:
        found = found.astype("f4")
    elif found.dtype.str[1:] not in TYPES:
        hint = HINT
        if kind in "mM":
            hint = (
                "times are numbers with an attribute `units`; container.write_dataset encodes them like that"
            )
        raise Invalid(f"{what}: netCDF has no type for dtype {found.dtype}", hint)
    # `order="C"` would turn an array without dimensions into one with one dimension.
    return np.asarray(found, dtype=found.dtype.newbyteorder("="), order="C")


def attribute(value: Any, what: str) -> tuple[str, bytes]:
    """Type and external bytes of an attribute's value.

    Python's integers are 32-bit if all fit, otherwise 64-bit; numpy's keep their type. Text is UTF-8.
    """
    if isinstance(value, str):
        return "S1", value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes | bytearray):
        return "S1", bytes(value)
    found = np.asarray(value)
    if found.ndim > 1:
        raise Invalid(
            f"{what}: a value of {found.ndim} dimensions", "attributes are lists of numbers, or text"
        )
    kind = found.dtype.kind
    if kind == "U":
        if found.ndim:
            raise Invalid(
                f"{what}: a list of texts", "netCDF classic allows one text for each attribute: join them"
            )
        return "S1", str(found).encode()
    if kind == "S":
        return "S1", found.tobytes()
    typed = isinstance(value, np.ndarray | np.generic)
    if kind in "iu" and not typed and _fits(found):
        found = found.astype("i4")
    if kind == "f" and found.dtype.itemsize == 2:
        found = found.astype("f4")
    if kind == "b":
        found = found.astype("i1")
    text = found.dtype.str[1:]
    if text not in TYPES:
        raise Invalid(f"{what}: netCDF has no type for a value of dtype {found.dtype}", HINT)
    return text, found.astype(f">{text}").tobytes()


def _fits(found: np.ndarray) -> bool:
    return found.size == 0 or (int(found.min()) >= -(2**31) and int(found.max()) < 2**31)


def decode(name: str, dtype: str, value: bytes) -> Any:
    """The value of an attribute: text, one number, or an array of them.

    Text loses zero bytes at its end; bytes that are not UTF-8 become surrogates, which are written back
    unchanged. A fill value of text is bytes.
    """
    if dtype == "S1":
        return value if name == "_FillValue" else value.rstrip(b"\0").decode("utf-8", "surrogateescape")
    numbers = np.frombuffer(value, f">{dtype}").astype(dtype)
    return numbers[0] if numbers.size == 1 else numbers

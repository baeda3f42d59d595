"""A Dataset in netCDF's form: encoded variables and the facts of ``spec/netcdf-header.md``.

xarray's own CF rules encode the values (times to numbers since a date, packing, fill values, bool to int8,
fixed-width bytes to characters), lazily for dask arrays. Text stays text of fixed width, and complex numbers
stay complex.

Example: ``group(dataset)`` gives a :class:`Group`, whose ``facts`` are the header's entries for its variables
and whose ``variables`` hold the values to write.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from xarray.backends.common import ensure_dtype_not_object
from xarray.coding import strings
from xarray.conventions import cf_encoder, encode_cf_variable, encode_dataset_coordinates

from .. import _split
from .._helper import attributes
from ..errors import Invalid
from . import faithful

HEADER = "@header"
VERSION = 1
KINDS = "iufcSU"
"""Kinds of dtypes that a variable may have after encoding."""
BIG_CHUNK = 4 << 20
"""Larger chunks, in bytes, of the Dataset's encoding do not become the store's chunks."""
FILTERS = ("zlib", "zstd", "szip", "bzip2", "blosc", "shuffle", "complevel", "fletcher32")


@dataclass(frozen=True)
class Dim:
    """A dimension: the group that defines it, its length, whether variables are split along it."""

    path: str
    length: int
    leading: bool


@dataclass
class Group:
    """One group: its place, its header entry, and its values by name.

    `dims` are its dimensions and those of the enclosing groups.
    """

    path: str
    header: dict[str, Any]
    variables: dict[str, xr.Variable]
    dims: dict[Any, Dim]

    def facts(self) -> Iterator[tuple[dict[str, Any], xr.Variable]]:
        """The header entry of each variable, with its values."""
        for facts in self.header["variables"]:
            yield facts, self.variables[facts["name"]]


def group(
    dataset: xr.Dataset,
    path: str = "",
    step_dim: str | bool | None = None,
    outer: Mapping[Any, Dim] | None = None,
) -> Group:
    """Encodes a Dataset. `outer`: dimensions of the enclosing groups."""
    check_names(dataset)
    with naming(), np.errstate(all="ignore"):
        given, attrs = encode_dataset_coordinates(dataset)
        given = {name: in_memory(variable) for name, variable in given.items()}
        variables, attrs = cf_encoder(dict(given), dict(attrs))
    variables = {name: plain(variable, name) for name, variable in variables.items()}
    for name, variable in variables.items():
        # Attributes that the encoder added determine how readers decode the values.
        said = {k: v for k, v in variable.attrs.items() if k not in given[name].attrs}
        coding = {word: said[word] for word in faithful.CODING if word in said}
        variables[name] = faithful.checked(name, given[name], variable, coding)
    unlimited = set(dataset.encoding.get("unlimited_dims", ()))
    leading = leading_dims(dataset, unlimited)
    dims, own = dict(outer or {}), {}
    for variable in variables.values():
        for dim, length in variable.sizes.items():
            # A dimension of another length than the inherited one is the group's own.
            if dim not in dims or dims[dim].length != length:
                dims[dim] = own[dim] = Dim(path, length, dim in leading)
    bounds = {
        v.attrs[word] for v in variables.values() for word in ("bounds", "climatology") if word in v.attrs
    }
    described = []
    for name, variable in variables.items():
        split = is_split(variable, step_dim, dims) and (step_dim is not None or name not in bounds)
        described.append(describe(name, variable, dims, split))
    lengths = {dim: held.length for dim, held in own.items()}
    lengths |= {dim: 0 for dim in unlimited if isinstance(dim, str) and dim not in dims}
    header = {
        "path": path,
        "dims": [{"name": d, "length": n, "unlimited": d in unlimited} for d, n in lengths.items()],
        "attrs": coded(attrs, f"group {path!r}" if path else "the Dataset"),
        "variables": described,
    }
    return Group(path, header, variables, dims)


def check_names(dataset: xr.Dataset) -> None:
    """Checks that netCDF allows the names, and that no index lacks a form in a file."""
    for name in [*dataset.variables, *dataset.dims]:
        if not isinstance(name, str) or not name or "/" in name or name == HEADER:
            raise Invalid(
                f"{name!r} cannot be the name of a variable or a dimension",
                f"rename it: a name is text without / and not {HEADER}",
            )
    for name, index in dataset.xindexes.items():
        if isinstance(getattr(index, "index", None), pd.MultiIndex):
            raise Invalid(
                f"variable {name} belongs to a MultiIndex, which has no form in netCDF",
                f"write dataset.reset_index({str(index.dim)!r})",
            )


def in_memory(variable: xr.Variable) -> xr.Variable:
    """A variable that is read only once, however often its values are used; dask arrays stay as they are."""
    if variable._in_memory or variable.chunks is not None:
        return variable
    return variable.copy(deep=False).load()


def plain(variable: xr.Variable, name: str) -> xr.Variable:
    """An encoded variable as numbers, characters or text of fixed width, little-endian."""
    with naming(name):
        variable = strings.ensure_fixed_length_bytes(ensure_dtype_not_object(variable, name=name))
        variable = strings.EncodedStringCoder(allows_unicode=True).encode(variable, name=name)
        if variable.dtype.kind in "OT":
            text = np.asarray(variable.data).astype(str)
            variable = xr.Variable(variable.dims, text, variable.attrs, variable.encoding)
        variable = strings.CharacterArrayCoder().encode(variable, name=name)
    if variable.dtype.kind not in KINDS or (variable.dtype.itemsize > 16 and variable.dtype.kind not in "SU"):
        raise Invalid(f"variable {name} has values of type {variable.dtype}, which cannot be stored")
    little = variable.dtype.newbyteorder("<")
    return variable if variable.dtype == little else variable.astype(little)


def describe(name: str, variable: xr.Variable, dims: Mapping[Any, Dim], split: bool) -> dict[str, Any]:
    """The header entry of a variable."""
    facts: dict[str, Any] = {
        "name": name,
        "dims": [f"{dims[d].path}/{d}".removeprefix("/") for d in variable.dims],
        "shape": list(variable.shape),
        "dtype": variable.dtype.newbyteorder("<").str,
        "split": split,
        "attrs": coded(variable.attrs, f"variable {name}"),
        "chunks": chunks_of(variable),
        "filters": {k: v for k in FILTERS if (v := variable.encoding.get(k)) and isinstance(v, bool | int)},
    }
    if variable.dtype.kind == "U":
        facts["strings"] = True
    return facts


def coded(attrs: Mapping[Any, Any], where: str) -> list[list[Any]]:
    """Attributes in the header's form; Invalid names one whose type netCDF lacks."""
    rows = []
    for name, value in attrs.items():
        held = value
        if isinstance(held, bool | np.bool_):
            # netCDF has no boolean type: like a variable of bool, the attribute becomes a byte.
            held = np.int8(held)
        if isinstance(held, tuple) or (isinstance(held, np.ndarray) and held.dtype.kind in "UO"):
            held = list(np.asarray(held).reshape(-1).tolist())
        try:
            if not isinstance(name, str) or not name:
                raise TypeError("the name is not text")
            rows.append([name, attributes.encode(held)])
        except (TypeError, ValueError, OverflowError) as error:
            raise Invalid(
                f"{where}: attribute {name!r} cannot be stored: {error}",
                "attributes are text, numbers, or lists of these; leave out None",
            ) from None
    return rows


def chunks_of(variable: xr.Variable) -> list[int] | None:
    """The chunks that a variable's encoding requests (under netCDF's or zarr's name), or None."""
    wanted = variable.encoding.get("chunksizes") or variable.encoding.get("chunks")
    if not isinstance(wanted, tuple | list) or len(wanted) != variable.ndim or 0 in variable.shape:
        return None
    if not all(isinstance(n, int | np.integer) and n > 0 for n in wanted):
        return None
    return [min(int(c), n) for c, n in zip(wanted, variable.shape, strict=True)] or None


def stored_chunks(facts: Mapping[str, Any]) -> tuple[int, ...] | None:
    """The chunks of a variable's fields in the store; None lets the store choose."""
    if facts["chunks"] is None:
        return None
    inner = tuple(facts["chunks"][1:] if facts["split"] else facts["chunks"])
    small = math.prod(inner) * np.dtype(facts["dtype"]).itemsize <= BIG_CHUNK
    return inner if inner and small else None


def leading_dims(dataset: xr.Dataset, unlimited: set[Any]) -> set[Any]:
    """Dimensions along which variables are split: unlimited ones, and those with a vertical or time axis, but
    not horizontal ones."""
    found = set(unlimited)
    for dim in dataset.dims:
        coordinate = dataset.variables.get(dim)
        if coordinate is not None and coordinate.dims == (dim,):
            attrs = {**coordinate.encoding, **coordinate.attrs}
            if _split.is_horizontal(str(dim), attrs):
                found.discard(dim)
            else:
                found.add(dim)
    return found


def is_split(variable: xr.Variable, step_dim: str | bool | None, dims: Mapping[Any, Dim]) -> bool:
    """Whether each index of a variable's first dimension becomes a field."""
    # The last dimension of characters is the length of a text, not an axis.
    rank = variable.ndim - (1 if variable.dtype.kind == "S" else 0)
    if rank < 2 or step_dim is False:
        return False
    first = variable.dims[0]
    return first == step_dim if isinstance(step_dim, str) else dims[first].leading


def header_text(groups: list[Group], run: str) -> dict[str, Any]:
    """The header of groups that come from a Dataset rather than a file."""
    return {
        "fieldstone": "netcdf-header",
        "version": VERSION,
        "source": {"name": run, "format": "NETCDF4"},
        "groups": [g.header for g in groups],
        "skipped": [],
    }


def like_stored(
    name: str, variable: xr.Variable, stored: xr.Variable, facts: Mapping[str, Any]
) -> xr.Variable:
    """A variable encoded like the stored one of the same name, whose decoded form is `stored`.

    Invalid if it has another type, or if the stored encoding cannot hold its values.
    """
    dtype = np.dtype(facts["dtype"])
    given, held = variable.dtype, stored.dtype
    packed = (dtype.kind in "iu" and held.kind in "fMm") or {
        "scale_factor",
        "add_offset",
    } & stored.encoding.keys()
    kinds = "iuf" if packed and held.kind == "f" else "O" if held.kind == "O" else held.kind
    kinds = "SUOT" if dtype.kind in "SU" else kinds
    equal = packed or dtype.kind in "SU" or given.newbyteorder("=") == held.newbyteorder("=")
    if given.kind not in kinds or not equal:
        raise Invalid(
            f"variable {name} has dtype {given}, the stored one {held}",
            f"write dataset.assign({name}=dataset[{name!r}].astype({str(held)!r}))",
        )
    encoding = {"_FillValue": None, **stored.encoding}
    encoding.pop("char_dim_name", None)
    if dtype.kind == "U":
        encoding.pop("dtype", None)  # xarray would truncate longer texts to it
    variable = in_memory(xr.Variable(variable.dims, variable._data, {}, encoding))
    given = variable
    if dtype.kind == "S" and dtype.itemsize == 1 and len(facts["shape"]) > variable.ndim:
        variable = widened(name, variable, facts["shape"][-1])
    with naming(name), np.errstate(all="ignore"):
        encoded = plain(encode_cf_variable(variable, name=name), name)
    attrs = attributes.decoded(facts["attrs"])
    for word, value in encoded.attrs.items():
        known = attrs.get(word)
        if word in faithful.CODING and not (
            same(known, value) or (word == "units" and same_units(known, value, attrs))
        ):
            raise Invalid(
                f"variable {name} cannot be stored with {word}={known!r}, which the stored one has; "
                f"its values need {value!r}",
                "the encoding of the run cannot hold these values",
            )
    width = encoded.dtype.itemsize
    if encoded.dtype.kind != dtype.kind or (
        width > dtype.itemsize if dtype.kind in "SU" else width != dtype.itemsize
    ):
        raise Invalid(
            f"variable {name} is encoded as {encoded.dtype}, the stored one is {dtype}",
            "text must not be longer than the run's" if dtype.kind in "SU" else "",
        )
    encoded = encoded if encoded.dtype == dtype else encoded.astype(dtype)
    coding = {word: attrs[word] for word in faithful.CODING if word in attrs}
    return faithful.checked(name, given, encoded, coding, HELD)


HELD = "the run has this packing; write other values, or all of it under another run or with overwrite=True"
"""The next step if values do not fit the stored encoding."""


def widened(name: str, variable: xr.Variable, width: int) -> xr.Variable:
    """Pads fixed-width bytes to the stored width."""
    if variable.dtype.kind in "OUT":
        data = np.char.encode(np.asarray(variable.data).astype(str), "utf-8")
        variable = xr.Variable(variable.dims, data, {}, variable.encoding)
    if variable.dtype.itemsize > width:
        raise Invalid(
            f"variable {name} has texts of {variable.dtype.itemsize} bytes, the stored one of {width}",
            "text must not be longer than the run's",
        )
    return variable.astype(f"S{width}", keep_attrs=True)


def same_units(one: Any, other: Any, attrs: Mapping[str, Any]) -> bool:
    """Whether units of time count the same unit from the same moment, whatever their spelling."""
    if not all(isinstance(units, str) and " since " in units for units in (one, other)):
        return False
    calendar = attrs.get("calendar")
    try:
        first, second = (
            xr.coding.times.decode_cf_datetime(np.array([0, 1]), units, calendar) for units in (one, other)
        )
    except (ValueError, OverflowError):
        return False
    return bool(np.array_equal(first, second))


def same(one: Any, other: Any) -> bool:
    """Whether two attributes are equal; NaN equals NaN."""
    if one is None or isinstance(one, str) or isinstance(other, str):
        return one == other
    return bool(
        np.array_equal(np.asarray(one), np.asarray(other), equal_nan=np.asarray(one).dtype.kind == "f")
    )


@contextmanager
def naming(name: str | None = None) -> Iterator[None]:
    """Turns errors of xarray into Invalid, with the variable that it was encoding."""
    try:
        yield
    except Invalid:
        raise
    except (TypeError, ValueError, NotImplementedError, OverflowError) as error:
        notes = [n for n in getattr(error, "__notes__", ()) if n.startswith("Raised while encoding ")]
        where = f"variable {name}" if name else "the Dataset"
        if notes:
            where = (
                notes[0].partition(" with value ")[0].removeprefix("Raised while encoding ").replace("'", "")
            )
        raise Invalid(f"{where} cannot be encoded: {error}") from error

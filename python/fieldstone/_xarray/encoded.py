"""A Dataset in the form of a file: numbers packed, times since a date, text in place of objects; still lazy.

Numbers are encoded part by part when they are read. Everything else is encoded as a whole, because xarray has
to see all of it: times (also those of cftime) determine their units, texts their width.

Example: ``variables, attrs = encoded(store.to_xarray("run=a"))``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from xarray import conventions
from xarray.backends import BackendArray
from xarray.backends.common import ensure_dtype_not_object
from xarray.core import indexing

from fieldstone._xarray.lazy import lazy
from fieldstone.errors import Invalid

PACKED = {"scale_factor", "add_offset", "_FillValue", "missing_value", "units", "calendar"}
"""Encodings in which xarray's values differ from those in a file."""


class Encoded(BackendArray):
    """The values of a variable in the form of a file, encoded when they are read."""

    def __init__(self, name: Any, variable: xr.Variable, dtype: np.dtype) -> None:
        self._name = name
        self._variable = variable
        self.shape = variable.shape
        self.dtype = dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._select
        )

    def _select(self, key: tuple[Any, ...]) -> np.ndarray:
        return np.asarray(conventions.encode_cf_variable(self._variable[key], name=self._name).values)


def encoded(dataset: xr.Dataset) -> tuple[dict[str, xr.Variable], dict[Any, Any]]:
    """The encoded variables of a Dataset with their attributes, and its own; Invalid names a variable without
    a form."""
    variables, attrs = conventions.encode_dataset_coordinates(dataset)
    whole = {name: v for name, v in variables.items() if v.dtype.kind not in "iuf"}
    try:
        whole = conventions.cf_encoder(whole, {})[0]
    except (ValueError, TypeError, OverflowError) as error:
        notes = " ".join(getattr(error, "__notes__", ()))
        raise Invalid(f"a variable cannot be written to a file: {error} {notes}".strip()) from error
    made = {}
    for name, variable in variables.items():
        if name not in whole:
            made[str(name)] = packed(name, variable)
            continue
        try:
            made[str(name)] = ensure_dtype_not_object(whole[name], name=name)
        except (ValueError, TypeError, NotImplementedError) as error:
            hint = f"leave it out: drop_variables={str(name)!r}"
            raise Invalid(f"variable {name} cannot be written to a file: {error}", hint) from error
    return made, attrs


def packed(name: Any, variable: xr.Variable) -> xr.Variable:
    """A variable of numbers in packed form."""
    if not PACKED & variable.encoding.keys():
        return variable
    one = conventions.encode_cf_variable(variable[(slice(0, 1),) * variable.ndim], name=name)
    made = xr.Variable(variable.dims, lazy(Encoded(name, variable, one.dtype)), one.attrs)
    made.encoding = {k: v for k, v in variable.encoding.items() if k not in {*PACKED, "dtype"}}
    return made

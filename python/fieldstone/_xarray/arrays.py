"""Lazy arrays over fields, and the variables of a store of array fields.

A :class:`FieldArray` has leading dimensions, whose positions are keys, and the dimensions of each
field. Reading a selection reads, of each field it touches, the smallest box around it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from fieldstone._xarray.source import Key, Source

Box = tuple[tuple[int, ...], tuple[int, ...]]
VARIABLE = "variable"


@dataclass
class Parts:
    """Variables not yet decoded, and what else a Dataset needs."""

    variables: dict[str, xr.Variable]
    attrs: dict[str, Any] = field(default_factory=dict)
    coords: list[str] = field(default_factory=list)
    unlimited: set[str] = field(default_factory=set)
    select: dict[str, list[int]] = field(default_factory=dict)


class FieldArray(BackendArray):
    """Fields side by side as one array."""

    def __init__(
        self,
        source: Source,
        keys: Mapping[tuple[int, ...], Key],
        lead: tuple[int, ...],
        inner: tuple[int, ...],
        dtype: np.dtype,
        read: Callable[[Source, Key, tuple[int, ...], Box], np.ndarray] | None = None,
        fill: Any = None,
    ) -> None:
        self._source = source
        self._keys = keys
        self._lead = lead
        self._inner = inner
        self._read = read or read_array
        self._fill = fill
        self.shape = lead + inner
        self.dtype = dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._select
        )

    def _select(self, key: tuple[Any, ...]) -> np.ndarray:
        n = len(self._lead)
        picks = [positions(k, size) for k, size in zip(key[:n], self._lead, strict=True)]
        cuts = [cut(k, size) for k, size in zip(key[n:], self._inner, strict=True)]
        start, count = tuple(c[0] for c in cuts), tuple(c[1] for c in cuts)
        # Position within the box read; outer indexing, one axis after another from the last.
        inside = [c[2] for c in cuts]
        inner_shape = tuple(c if i is None else len(i) for i, c in zip(inside, count, strict=True))
        out = np.empty(tuple(len(p) for p in picks) + inner_shape, dtype=self.dtype)
        for place in itertools.product(*(range(len(p)) for p in picks)):
            where = tuple(int(p[i]) for p, i in zip(picks, place, strict=True))
            out[place] = self._one(where, (start, count), inside)
        return out[tuple(0 if np.ndim(k) == 0 and not isinstance(k, slice) else slice(None) for k in key)]

    def _one(self, where: tuple[int, ...], box: Box, inside: list[Any]) -> Any:
        if math.prod(box[1]) == 0:
            return np.empty(tuple(box[1]), self.dtype)
        key = self._keys.get(where)
        if key is None:
            return self._fill
        values = self._read(self._source, key, self._inner, box)
        for axis, index in enumerate(inside):
            if index is not None:
                values = np.take(values, index, axis=axis)
        return values


class Steps(Mapping[tuple[int, ...], Key]):
    """Keys of one variable by `step` 0 to n - 1, made when asked for."""

    def __init__(self, base: Key, n: int) -> None:
        self._base, self._n = base, n

    def __getitem__(self, place: tuple[int, ...]) -> Key:
        (step,) = place
        if not 0 <= step < self._n:
            raise KeyError(place)
        return {**self._base, "step": str(step)}

    def __iter__(self) -> Any:
        return ((i,) for i in range(self._n))

    def __len__(self) -> int:
        return self._n


def positions(key: Any, size: int) -> np.ndarray:
    """The positions that an int, slice or array selects."""
    if isinstance(key, slice):
        return np.arange(*key.indices(size))
    return np.atleast_1d(np.asarray(key, dtype=np.int64)) % max(size, 1)


def cut(key: Any, size: int) -> tuple[int, int, np.ndarray | None]:
    """Start and count of the smallest box around a selection, and positions in it where it is not all."""
    if isinstance(key, slice) and key.indices(size)[2] == 1:
        start, stop, _ = key.indices(size)
        return start, max(0, stop - start), None
    picked = positions(key, size)
    if picked.size == 0:
        return 0, 0, picked
    low, high = int(picked.min()), int(picked.max())
    return low, high - low + 1, picked - low


def read_array(source: Source, key: Key, shape: tuple[int, ...], box: Box) -> np.ndarray:
    """A box of an array field."""
    return source.box(key, *box)


def lazy(array: BackendArray) -> Any:
    """An array that xarray reads when it must."""
    return indexing.LazilyIndexedArray(array)


def describe(source: Source, request: Any) -> Parts:
    """Variables of array fields that were archived by key."""
    found: dict[str, list[Any]] = {}
    for entry in source.store.list({} if request is None else request):
        if entry.dtype is not None:
            found.setdefault(str(dict(entry.key).get(VARIABLE, "field")), []).append(entry)
    if not found:
        raise ValueError("nothing to open: no array field matches the request")
    texts: dict[str, list[str]] = {}
    for entries in found.values():
        for entry in entries:
            for keyword, value in dict(entry.key).items():
                held = texts.setdefault(keyword, [])
                if value not in held:
                    held.append(value)
    axes = source.store.axes({} if request is None else request)
    values = {keyword: [v for v in axes.get(keyword, held) if v in held] for keyword, held in texts.items()}
    variables, coords = {}, []
    sizes: dict[str, int] = {}
    for name, entries in found.items():
        variables[name] = _variable(source, name, entries, values, sizes)
    for keyword, held in values.items():
        if keyword != VARIABLE and any(keyword in v.dims for v in variables.values()):
            variables[keyword] = xr.Variable((keyword,), typed(held))
        elif keyword != VARIABLE and len(held) == 1 and keyword not in variables:
            variables[keyword] = xr.Variable((), typed(held)[0])
            coords.append(keyword)
    return Parts(variables, coords=coords)


def _variable(
    source: Source, name: str, entries: list[Any], values: dict[str, list[str]], sizes: dict[str, int]
) -> xr.Variable:
    first = entries[0]
    dtype, shape = np.dtype(str(first.dtype)), tuple(first.shape)
    for entry in entries:
        if np.dtype(str(entry.dtype)) != dtype or tuple(entry.shape) != shape:
            raise ValueError(
                f"fields of variable {name} differ in type or shape ({dtype} {shape} and "
                f"{entry.dtype} {tuple(entry.shape)}); give a request that selects equal ones"
            )
    keys = [dict(entry.key) for entry in entries]
    names = [k for k in values if k != VARIABLE and len({key.get(k) for key in keys}) > 1]
    if any(k not in key for key in keys for k in names):
        raise ValueError(f"some fields of variable {name} lack one of {', '.join(names)}; narrow the request")
    ranks = {k: {text: i for i, text in enumerate(values[k])} for k in names}
    places = {tuple(ranks[k][key[k]] for k in names): key for key in keys}
    lead = tuple(len(values[k]) for k in names)
    complete = len(places) == math.prod(lead)
    fill = None
    read_dtype = dtype
    if not complete:
        # Combinations without a field are missing values, so integers become floats.
        if dtype.kind in "iub":
            read_dtype = np.dtype("f8")
        elif dtype.kind not in "fcMm":
            raise ValueError(f"variable {name} has no field for some combinations of {', '.join(names)}")
        fill = np.array("NaT" if dtype.kind in "Mm" else np.nan, dtype=read_dtype)
    inner = []
    for i, n in enumerate(shape):
        dim = f"dim_{i}"
        inner.append(dim if sizes.setdefault(dim, n) == n else f"{name}_dim_{i}")
    array = FieldArray(source, places, lead, shape, read_dtype, fill=fill)
    variable = xr.Variable((*names, *inner), lazy(array))
    variable.encoding["preferred_chunks"] = chunks(names, inner, shape)
    return variable


def chunks(lead: list[str], inner: list[str], shape: tuple[int, ...]) -> dict[str, int]:
    """A field per chunk, for dask."""
    return {**dict.fromkeys(lead, 1), **dict(zip(inner, shape, strict=True))}


def typed(texts: list[str]) -> np.ndarray:
    """Values of a keyword: whole numbers, else numbers, else text."""
    for kind in (int, float):
        try:
            return np.array([kind(text) for text in texts])
        except ValueError:
            continue
    return np.array(texts, dtype=str)

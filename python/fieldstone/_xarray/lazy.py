"""Arrays that read on demand: fields side by side, and the variables that hold them.

A :class:`FieldArray` has leading dimensions, whose positions select a field, followed by the dimensions of
each field. It stores no keys: a key is made from the axes when its field is read, so that an array of a
million fields is as small as one of ten. A read takes, from each field that it touches, the smallest box
around the selection.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from fieldstone._xarray.source import Key, Source, digest

if TYPE_CHECKING:
    from fieldstone._native import Field

Box = tuple[tuple[int, ...], tuple[int, ...]]
Read = Callable[[Source, Key, tuple[int, ...], Box], np.ndarray]


@dataclass(frozen=True)
class Axis:
    """A leading dimension: a keyword with its values (None: absent) by position.

    `places` has for each position of the dimension the position in `values`, or -1 if there is no field; None
    means that they are the same.
    """

    keyword: str
    values: Sequence[str | None]
    places: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Length of the dimension."""
        return len(self.values) if self.places is None else len(self.places)

    def put(self, key: Key, i: int) -> None:
        """Adds the i-th value to a key."""
        if (value := self.values[i]) is not None:
            key[self.keyword] = value


@dataclass(frozen=True)
class Joint(Axis):
    """A leading dimension whose values each replace several keywords: `rows` has the keywords with their
    values."""

    rows: Sequence[tuple[tuple[str, str], ...]] = ()

    def put(self, key: Key, i: int) -> None:
        """Adds the i-th row to a key."""
        key.update(self.rows[i])


@dataclass(frozen=True)
class Tied:
    """A keyword that has one value in each field of an array, without being a dimension of it.

    `numbers` has, for each combination of the axes' values that has a field, the position in `values`.
    """

    keyword: str
    values: Sequence[str]
    numbers: np.ndarray


class Counted(Sequence[str]):
    """The steps "0" to "n - 1", made on demand."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __getitem__(self, i: Any) -> Any:
        return str(range(self._n)[i])

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"Counted({self._n})"


class FieldArray(BackendArray):
    """Fields side by side as one array.

    `key` is the common part of all keys, `axes` the varying part, `present` the combinations of the axes'
    values that have a field (ascending positions in C order; None: all). `fill` is the value where there is
    no field. `stored` is the type of the fields if they are arrays by key. `packed`: whether blocks of these
    fields are compressed; None if blocks are not elements of this array.
    """

    def __init__(
        self,
        source: Source,
        key: Key,
        axes: Sequence[Axis],
        inner: tuple[int, ...],
        dtype: np.dtype,
        *,
        present: np.ndarray | None = None,
        tied: Tied | None = None,
        read: Read | None = None,
        fill: Any = None,
        stored: np.dtype | None = None,
        packed: bool | None = None,
    ) -> None:
        self._source = source
        self._key = key
        self._axes = tuple(axes)
        self._inner = inner
        self._present = present
        self._tied = tied
        self._read = read
        self._fill = fill
        self.stored = stored
        self.packed = packed
        self.shape = tuple(axis.size for axis in axes) + inner
        self.dtype = dtype

    def __dask_tokenize__(self) -> str:
        axes = [
            (a.keyword, digest(a.values), array_digest(a.places), *([a.rows] if isinstance(a, Joint) else []))
            for a in self._axes
        ]
        tied = self._tied and (
            self._tied.keyword,
            digest(self._tied.values),
            array_digest(self._tied.numbers),
        )
        return digest(
            self._source.token,
            self._key,
            axes,
            tied,
            array_digest(self._present),
            self._inner,
            self.dtype.str,
            self._read,
            self._fill,
        )

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._select
        )

    def _select(self, key: tuple[Any, ...]) -> np.ndarray:
        n = len(self._axes)
        picks = [positions(k, a.size) for k, a in zip(key[:n], self._axes, strict=True)]
        cuts = [cut(k, size) for k, size in zip(key[n:], self._inner, strict=True)]
        start, count = tuple(c[0] for c in cuts), tuple(c[1] for c in cuts)
        # Positions inside the box read; outer indexing, one axis after another from the last.
        inside = [c[2] for c in cuts]
        inner_shape = tuple(c if i is None else len(i) for i, c in zip(inside, count, strict=True))
        out = np.empty(tuple(len(p) for p in picks) + inner_shape, dtype=self.dtype)
        if out.size:
            for place in itertools.product(*(range(len(p)) for p in picks)):
                where = tuple(int(p[i]) for p, i in zip(picks, place, strict=True))
                out[place] = self._one(where, (start, count), inside)
        return out[tuple(0 if np.ndim(k) == 0 and not isinstance(k, slice) else slice(None) for k in key)]

    def _one(self, where: tuple[int, ...], box: Box, inside: list[Any]) -> Any:
        key = self.key_at(where)
        if key is None:
            return self._fill
        values = (self._read or read_array)(self._source, key, self._inner, box)
        for axis, index in enumerate(inside):
            if index is not None:
                values = np.take(values, index, axis=axis)
        return values

    @property
    def leading(self) -> int:
        """The number of leading dimensions, whose positions select a field."""
        return len(self._axes)

    @property
    def is_plain(self) -> bool:
        """Whether the values are those of array fields by key, of a type that netCDF has."""
        return self._read is None and self.stored is not None and self.stored.kind in "biufSU"

    @property
    def fill(self) -> Any:
        """The value where there is no field; None if all fields exist."""
        return self._fill

    def box(
        self, where: tuple[int, ...], start: tuple[int, ...], count: tuple[int, ...]
    ) -> np.ndarray | None:
        """A box of the field at a position of the leading dimensions, in the field's own type; None if there
        is no field."""
        key = self.key_at(where)
        return (
            None
            if key is None
            else (self._read or read_array)(self._source, key, self._inner, (start, count))
        )

    def field(self, where: tuple[int, ...]) -> Field | None:
        """The field at a position of the leading dimensions; None if there is none."""
        key = self.key_at(where)
        return None if key is None else self._source.field(key)

    def key_at(self, where: tuple[int, ...]) -> Key | None:
        """The key of the field at a position of the leading dimensions; None if there is none."""
        key, place = dict(self._key), 0
        for axis, i in zip(self._axes, where, strict=True):
            if axis.places is not None:
                i = int(axis.places[i])
                if i < 0:
                    return None
            place = place * len(axis.values) + i
            axis.put(key, i)
        if self._present is not None:
            found = int(np.searchsorted(self._present, place))
            if found == len(self._present) or self._present[found] != place:
                return None
            place = found
        if (
            self._tied is not None
            and (value := self._tied.values[int(self._tied.numbers[place])]) is not None
        ):
            key[self._tied.keyword] = value
        return key


class Variable(xr.Variable):
    """A variable whose dask name identifies its content (B-4).

    xarray names dask arrays after the path that was opened. Two versions of one store would then share names,
    and a cluster that holds one would return it for the other.
    """

    __slots__ = ()

    def chunk(self, chunks: Any = {}, *args: Any, from_array_kwargs: Any = None, **kwargs: Any) -> Any:  # noqa: B006
        """Same as in xarray, with a name made of the store's version and the fields."""
        token = token_of(self._data)
        name = (from_array_kwargs or {}).get("name")
        if token is not None and isinstance(name, str):
            name = f"{name.rpartition('-')[0]}-{digest(token, str(chunks))}"
            from_array_kwargs = {**from_array_kwargs, "name": name}
        return super().chunk(chunks, *args, from_array_kwargs=from_array_kwargs, **kwargs)

    def __dask_tokenize__(self) -> object:
        token = token_of(self._data)
        if token is None:
            return super().__dask_tokenize__()
        from dask.base import normalize_token

        return normalize_token((xr.Variable, self._dims, token, self.attrs or None))


def token_of(data: Any) -> str | None:
    """A token that distinguishes lazy data from other data; None if it is not ours, or already read."""
    from dask.base import tokenize

    if isinstance(data, BackendArray) and hasattr(data, "__dask_tokenize__"):
        return str(data.__dask_tokenize__())
    if not isinstance(data, indexing.ExplicitlyIndexed) or not hasattr(data, "array"):
        return None
    below = token_of(data.array)
    if below is None:
        return None
    if isinstance(data, indexing.CopyOnWriteArray | indexing.MemoryCachedArray):
        return below
    # Wrappers for indexing and for CF's decoding: the rest of their state.
    own = {name: value for name, value in vars_of(data).items() if name != "array"}
    for name, value in own.items():
        if isinstance(value, indexing.ExplicitIndexer):
            own[name] = value.tuple
    return digest(type(data).__name__, tokenize(own), below)


def vars_of(data: Any) -> dict[str, Any]:
    """The attributes of an object, with or without slots."""
    names = [n for c in type(data).__mro__ for n in getattr(c, "__slots__", ()) if hasattr(data, n)]
    return {**{n: getattr(data, n) for n in names}, **getattr(data, "__dict__", {})}


def array_digest(array: np.ndarray | None) -> str | None:
    """A digest of numbers."""
    return None if array is None else digest(array.dtype.str, array.tobytes())


def positions(key: Any, size: int) -> np.ndarray:
    """The positions that an int, slice or array selects."""
    if isinstance(key, slice):
        return np.arange(*key.indices(size))
    return np.atleast_1d(np.asarray(key, dtype=np.int64)) % max(size, 1)


def cut(key: Any, size: int) -> tuple[int, int, np.ndarray | None]:
    """Start and count of the smallest box around a selection, and positions in it unless it is the whole
    box."""
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
    # A whole field is read directly into its array; a box is copied from the blocks that it touches.
    return source.box(key, (), ()) if box[1] == shape else source.box(key, *box)


def lazy(array: BackendArray) -> Any:
    """An array that xarray reads only when it must."""
    return indexing.LazilyIndexedArray(array)


def chunks(lead: Sequence[str], inner: Sequence[str], extents: Sequence[int]) -> dict[str, int]:
    """Preferred chunks for dask: one field along each leading dimension, `extents` of each field."""
    fields = {dim: max(n, 1) for dim, n in zip(inner, extents, strict=True)}
    return {**dict.fromkeys(lead, 1), **fields}

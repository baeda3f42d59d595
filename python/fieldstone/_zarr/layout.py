"""Variables as nodes of a Zarr 3 hierarchy: metadata documents, grids of chunks, bytes of a chunk.

Invariants: a node's document never changes; a chunk always has the same bytes; a chunk without a field is
absent, and reads as the array's fill value, just as it is missing in a Dataset.

If the chunks of an array are the blocks of its fields, a chunk is a stored block with the checksum that its
writer computed, encoded with the codecs ``zstd`` (if any block is compressed) and ``crc32c``. A chunk of such
an array that is not a block (at a far edge, of another cut, under a newer piece) is encoded with the same
codecs. All other arrays have plain elements, codec ``bytes``. In each case the store has compared checksums,
outside the GIL, before it returns any bytes.

Example::

    nodes = groups([("", parts)], chunks=None)
    nodes["t"].document()["shape"]
    nodes["t"].value((0, 0, 0))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.core import indexing

from fieldstone._native import _chunk, _chunk_length
from fieldstone._xarray.arrays import Parts
from fieldstone._xarray.lazy import FieldArray
from fieldstone._zarr.attributes import attributes_of
from fieldstone._zarr.types import data_type, fill_text
from fieldstone.errors import Conflict, Invalid

if TYPE_CHECKING:
    from fieldstone._native import _Block

Index = tuple[int, ...]

SMALL = 1 << 20
"""Smaller blocks are combined up to this many bytes, because a reader in Python has a cost for each chunk."""


class Group:
    """A group: attributes, and the names of its members."""

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        self.attrs = dict(attrs)

    def document(self) -> dict[str, Any]:
        """The metadata document."""
        return {"zarr_format": 3, "node_type": "group", "attributes": self.attrs}


@dataclass(frozen=True)
class Array:
    """An array: a variable, not yet decoded, cut into a regular grid."""

    variable: xr.Variable
    fields: FieldArray | None
    """The fields that make up the whole variable; None if it is anything else."""
    dtype: np.dtype
    chunks: tuple[int, ...]
    attrs: dict[str, Any]
    fill: Any
    packed: bool | None = None
    """Whether chunks use the codec zstd besides crc32c; None: they are plain."""

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of chunks along each dimension."""
        sizes = zip(self.variable.shape, self.chunks, strict=True)
        return tuple(-(-size // extent) for size, extent in sizes)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements of one chunk; all chunks have the same size."""
        return math.prod(self.chunks) * self.dtype.itemsize

    def document(self) -> dict[str, Any]:
        """The metadata document."""
        order = "big" if self.dtype.byteorder == ">" else "little"
        codec: dict[str, Any] = {"name": "bytes"}
        if self.dtype.itemsize > 1 and self.dtype.kind != "S":
            codec["configuration"] = {"endian": order}
        codecs = [codec]
        if self.packed:
            codecs.append({"name": "zstd", "configuration": {"level": 0, "checksum": False}})
        if self.packed is not None:
            codecs.append({"name": "crc32c"})
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.variable.shape),
            "data_type": data_type(self.dtype),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.chunks)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill_text(self.fill, self.dtype),
            "codecs": codecs,
            "dimension_names": list(self.variable.dims),
            "attributes": self.attrs,
        }

    def has(self, index: Index) -> bool:
        """Whether the grid has this chunk, and the chunk has a field."""
        slices = self._slices(index)
        if slices is None or self.fields is None:
            return slices is not None
        lead = [range(s.start, s.stop) for s in slices[: self.fields.leading]]
        return any(self.fields.key_at(where) is not None for where in itertools.product(*lead))

    def value(self, index: Index) -> np.ndarray | bytes | None:
        """An encoded chunk; None if it is absent."""
        block = self._block(index)
        if block is not None:
            return block.read()
        elements = self._elements(index)
        if elements is None:
            return None
        plain = elements.reshape(-1).view("u1")
        return plain if self.packed is None else _chunk(plain, self.packed)

    def length(self, index: Index) -> int | None:
        """Bytes of an encoded chunk, without reading a field."""
        if not self.has(index):
            return None
        if self.packed is None:
            return self.nbytes
        block = self._block(index)
        return block.nbytes if block is not None else _chunk_length(self.nbytes, self.packed)

    def _block(self, index: Index) -> _Block | None:
        """The stored block that is this chunk."""
        if self.packed is None or self.fields is None:
            return None
        slices = self._slices(index)
        if slices is None or any(s.stop - s.start != n for s, n in zip(slices, self.chunks, strict=True)):
            return None
        lead, inner = slices[: self.fields.leading], slices[self.fields.leading :]
        field = self.fields.field(tuple(s.start for s in lead))
        if field is None:
            return None
        return field._block(tuple(s.start for s in inner), self.chunks[len(lead) :], self.packed)

    def _elements(self, index: Index) -> np.ndarray | None:
        """The elements of a chunk, in the size of all chunks; None if it is absent."""
        slices = self._slices(index)
        values = None if slices is None else self._values(index, slices)
        if values is None:
            return None
        if values.dtype != self.dtype:
            values = values.astype(self.dtype)
        if values.shape != self.chunks:
            # Zarr's chunks at the far edges are as large as all others; readers ignore elements beyond the
            # edge.
            whole = np.full(self.chunks, self.fill, dtype=self.dtype)
            whole[tuple(slice(0, n) for n in values.shape)] = values
            values = whole
        return np.ascontiguousarray(values)

    def indices(self) -> Iterator[Index]:
        """The indices of all existing chunks."""
        return (index for index in itertools.product(*map(range, self.grid)) if self.has(index))

    def _slices(self, index: Index) -> tuple[slice, ...] | None:
        """The box of a chunk; None if the grid has no such chunk."""
        shape = self.variable.shape
        if len(index) != len(shape):
            return None
        slices = tuple(
            slice(i * n, min((i + 1) * n, size)) for i, n, size in zip(index, self.chunks, shape, strict=True)
        )
        return slices if all(s.start < s.stop for s in slices) else None

    def _values(self, index: Index, slices: tuple[slice, ...]) -> np.ndarray | None:
        if self.fields is None:
            return np.asarray(self.variable[slices].values)
        lead, inner = slices[: self.fields.leading], slices[self.fields.leading :]
        if all(s.stop - s.start == 1 for s in lead):
            # One field: its box is the chunk, and is not copied into another array.
            where = tuple(s.start for s in lead)
            start, count = tuple(s.start for s in inner), tuple(s.stop - s.start for s in inner)
            values = self.fields.box(where, start, count)
            return None if values is None else values.reshape((1,) * len(lead) + values.shape)
        return self.fields[indexing.BasicIndexer(slices)] if self.has(index) else None


def groups(
    found: Iterable[tuple[str, Parts]], chunks: Mapping[str, int] | str | None
) -> dict[str, Group | Array]:
    """The nodes by path, the root with an empty one."""
    nodes: dict[str, Group | Array] = {"": Group({})}
    for path, parts in found:
        above = path.split("/") if path else []
        for n in range(1, len(above)):
            nodes.setdefault("/".join(above[:n]), Group({}))
        attrs = attributes_of(parts.attrs)
        # Without encoding, only this shows which variables are coordinates.
        named = [name for name in parts.coords if name in parts.variables and name.split() == [name]]
        if named:
            attrs["coordinates"] = " ".join([*str(attrs.get("coordinates", "")).split(), *named])
        nodes[path] = Group(attrs)
        for name, variable in parts.variables.items():
            own = "/".join(filter(None, (path, name.replace("/", "%2F"))))
            if own in nodes:
                raise Conflict(
                    f"{own} is the name of a variable and of a group, but Zarr has only one node of a name",
                    "give a request that selects one of them",
                )
            nodes[own] = array(name, selected(variable, parts.select), chunks)
    return nodes


def selected(variable: xr.Variable, select: Mapping[str, Any]) -> xr.Variable:
    """The part of a variable that a request selected."""
    own = {dim: index for dim, index in select.items() if dim in variable.dims}
    if not own:
        return variable
    part = variable.isel(own)
    part.encoding = variable.encoding
    return part


def array(name: str, variable: xr.Variable, chunks: Mapping[str, int] | str | None) -> Array:
    """The array of one variable."""
    dtype = variable.dtype
    fill: Any = None
    missing = None
    found = fields_of(variable)
    if dtype.kind == "O":
        variable, missing = as_text(variable)
        dtype = variable.dtype
    elif found is not None:
        fill = found.fill
    attrs = attributes_of(variable.attrs, dtype)
    if missing is not None:
        attrs["missing_value"] = missing
    if fill is None:
        fill = np.zeros((), dtype)[()]
    fields, cuts = fields_of(variable), extents(name, variable, chunks)
    packed = None
    if fields is not None and cuts == extents(name, variable, "stored"):
        packed = fields.packed
    return Array(variable, fields, dtype, cuts, attrs, fill, packed)


def extents(name: str, variable: xr.Variable, chunks: Mapping[str, int] | str | None) -> tuple[int, ...]:
    """The extents of a variable's chunks."""
    sizes = [max(size, 1) for size in variable.shape]
    stored = variable.encoding.get("preferred_chunks", {})
    found = [min(stored.get(dim, n), n) for dim, n in zip(variable.dims, sizes, strict=True)]
    if not stored:
        found = cut(sizes, variable.dtype.itemsize)
    elif chunks != "stored":
        fields = fields_of(variable)
        lead = fields.leading if fields is not None else 0
        found[lead:] = together(found[lead:], sizes[lead:], variable.dtype.itemsize)
    if isinstance(chunks, Mapping):
        for i, dim in enumerate(variable.dims):
            if dim in chunks:
                found[i] = min(extent(name, str(dim), chunks[dim]), sizes[i])
    return tuple(found)


def extent(name: str, dim: str, given: Any) -> int:
    """An extent that the caller chose; -1 means the whole dimension, as in xarray."""
    if isinstance(given, bool) or not isinstance(given, int) or given == 0 or given < -1:
        raise Invalid(
            f"chunks={{{dim!r}: {given!r}}} of {name} is not an extent", "give a number of elements"
        )
    return given if given > 0 else 2**63 - 1


def together(blocks: list[int], sizes: list[int], itemsize: int) -> list[int]:
    """Combines blocks that are adjacent in C order, up to `SMALL` bytes."""
    made = list(blocks)
    for i in reversed(range(len(made))):
        times = SMALL // max(math.prod(made) * itemsize, 1)
        if times < 2:
            break
        made[i] = min(made[i] * times, sizes[i])
        if made[i] < sizes[i]:
            break
    return made


def cut(sizes: list[int], itemsize: int) -> list[int]:
    """Chunks of at most `SMALL` bytes, along the first dimensions, of an array in memory."""
    made = list(sizes)
    for i, size in enumerate(sizes):
        nbytes = math.prod(made) * itemsize
        if nbytes <= SMALL:
            break
        made[i] = max(size * SMALL // nbytes, 1)
    return made


def fields_of(variable: xr.Variable) -> FieldArray | None:
    """The fields behind a variable, if together they are the whole of it."""
    data = variable._data
    while isinstance(data, indexing.CopyOnWriteArray | indexing.MemoryCachedArray):
        data = data.array
    if not isinstance(data, indexing.LazilyIndexedArray):
        return None
    whole = all(isinstance(k, slice) and k == slice(None) for k in data.key.tuple)
    return data.array if whole and isinstance(data.array, FieldArray) else None


def as_text(variable: xr.Variable) -> tuple[xr.Variable, str | None]:
    """Objects as text, and the text that replaces missing ones.

    These are parameters that some runs lack, or that have several types.
    """
    values = variable.values
    lacking = [value is None or value != value for value in values.ravel()]
    texts = [str(value) for value in values.ravel()]
    missing = ""
    while missing in (text for text, lacks in zip(texts, lacking, strict=True) if not lacks):
        missing += "?"
    filled = [missing if lacks else text for text, lacks in zip(texts, lacking, strict=True)]
    made = np.array(filled, dtype=str).reshape(values.shape)
    return xr.Variable(variable.dims, made, variable.attrs), missing if any(lacking) else None

"""Writes xarray's Datasets and DataTrees into containers."""

from __future__ import annotations

import difflib
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Invalid
from ._file import Container, Format, Index, create

if TYPE_CHECKING:
    import xarray as xr

NARROW = ("cdf1", "cdf2")
"""Formats without 64-bit and unsigned integers."""

BATCH = 256 << 20
"""Maximum bytes of lazy arrays in memory while other processes compute them."""

PATHS = "fieldstone_paths"
"""The attribute in which a netCDF file describes how its names encode paths."""

CODED = (
    *("dtype", "_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned"),
    *("units", "calendar", "char_dim_name", "_Encoding", "grid_mapping"),
)
"""Encodings that determine how values are stored."""

LAID_OUT = frozenset(
    (
        *("zlib", "szip", "bzip2", "blosc", "zstd", "compression", "compression_opts", "complevel"),
        *("shuffle", "blosc_shuffle", "szip_coding", "szip_pixels_per_block", "fletcher32", "contiguous"),
        *("chunksizes", "endian", "least_significant_digit", "significant_digits", "quantize_mode"),
    )
)
"""Encodings of netCDF-4, whose files have chunks and filters."""

READ = frozenset(("source", "original_shape", "preferred_chunks"))
"""Encodings that describe how a variable was read, and have no effect on writing."""

LISTED = 10
"""The number of names that a hint lists."""


def write_dataset(
    dataset: xr.Dataset | xr.DataTree,
    path: str | os.PathLike[str],
    *,
    format: Format = "cdf5",
    encoding: Mapping[str, Mapping[str, Any]] | None = None,
    unlimited_dims: str | Iterable[str] | None = None,
    index: Index = "auto",
) -> None:
    """Writes a Dataset, or a tree of them, as a container; `xarray.open_dataset` reads it back.

    Times, texts, packed and missing values are encoded by CF's rules, as ``Dataset.to_netcdf`` does;
    `encoding` overrides that of the variables; for a tree it is by path, ``{"a/v": {…}}``, or by node as in
    xarray, ``{"/a": {"v": {…}}}``. Each node of a tree is a path. Paths begin at the given node, which also
    gets the coordinates that it inherits. The dimension in `unlimited_dims` becomes the record dimension; by
    default the one with which the Dataset was read, if it is the first of every variable that has it. A
    dimension whose name has a ``/`` is the one of that path, which is how xarray's engine ``fieldstone``
    names it. An existing file at `path` stays until everything is written.

    Lazy arrays are computed and written chunk by chunk. If dask computes them in other processes, this
    process receives a few chunks at a time; a common input of all chunks is then computed again, unless it is
    persisted.
    """
    nodes = dict(_nodes(dataset))
    for node in nodes.values():
        _check_names(node)
    asked = _asked(encoding or {}, nodes)
    made = {at: _Node(at, node, format, asked[at]) for at, node in nodes.items()}
    lengths = _place(made)
    record = _record(made, lengths, unlimited_dims)
    with create(path, format=format, index=index) as file:
        numbers = {dim: file.def_dims([dim], [None if dim == record else n])[0] for dim, n in lengths.items()}
        for node in made.values():
            node.define(file, numbers)
        file.enddef()
        _write(file, made.values())


def _nodes(dataset: Any) -> Iterator[tuple[str, xr.Dataset]]:
    """The Datasets by path; a tree may be a node of a larger one."""
    if hasattr(dataset, "subtree"):
        for node in dataset.subtree:
            below = node.path.removeprefix(dataset.path).strip("/")
            yield below, node.to_dataset(inherit=node is dataset)
    else:
        yield "", dataset


def _check_names(dataset: xr.Dataset) -> None:
    """Refuses names that would become paths, because reading the Dataset would not find them again."""
    if PATHS in dataset.attrs:
        raise Invalid(
            f"the attribute {PATHS!r} comes from a container whose names are paths, opened without them",
            f'open it with engine="fieldstone", or drop the attribute: del ds.attrs[{PATHS!r}]',
        )
    for what, names in (("variable", dataset.variables), ("attribute", dataset.attrs)):
        for name in names:
            if "/" in str(name):
                raise Invalid(
                    f"{what} {name!r}: a name cannot contain /", "make paths with a DataTree, or rename it"
                )


def _asked(encoding: Mapping[Any, Any], nodes: Mapping[str, xr.Dataset]) -> dict[str, dict[str, Any]]:
    """The contents of `encoding`, by node and variable."""
    known = {at: [str(name) for name in node.variables] for at, node in nodes.items()}
    asked: dict[str, dict[str, Any]] = {at: {} for at in nodes}
    for key, given in encoding.items():
        full = str(key).strip("/")
        at, _, name = full.rpartition("/")
        found = {name: given}
        if full in nodes and isinstance(given, Mapping):
            at, found = full, {str(name): options for name, options in given.items()}
        elif at not in nodes:
            raise Invalid(f"encoding for {key!r}: there is no node {at!r}", _there(at, nodes))
        for name, options in found.items():
            if name not in known[at]:
                none = "not a variable or a node" if len(nodes) > 1 and at != full else "not a variable"
                raise Invalid(f"encoding for {_join(at, name)!r}, which is {none}", _there(name, known[at]))
            if not isinstance(options, Mapping):
                raise Invalid(f"encoding for {_join(at, name)!r} is {options!r}", 'give {"dtype": "i2"}')
            asked[at][name] = dict(options)
    return asked


def _there(wanted: str, names: Iterable[str]) -> str:
    """A hint that lists the existing names, similar names first."""
    held = [name or "/" for name in names]
    shown = list(dict.fromkeys([*difflib.get_close_matches(wanted, held[:1000]), *held]))[:LISTED]
    more = f" and {len(held) - len(shown)} more" if len(held) > len(shown) else ""
    return f"there are {', '.join(shown)}{more}" if held else "there are none"


class _Node:
    """The encoded variables of one Dataset."""

    def __init__(self, path: str, dataset: xr.Dataset, format: str, encoding: dict[str, Any]) -> None:
        from xarray import conventions
        from xarray.backends.common import ensure_dtype_not_object

        self.path = path
        self.unlimited = _dims(dataset.encoding.get("unlimited_dims") or ())
        variables, attrs = conventions.encode_dataset_coordinates(dataset)
        for name, variable in variables.items():
            if str(name) in encoding:
                variable.encoding = dict(encoding[str(name)])
        # All at once: bounds of times use the units of their times.
        variables, attrs = conventions.cf_encoder(variables, attrs)
        self.variables: dict[str, xr.Variable] = {}
        for name, variable in variables.items():
            encoded = ensure_dtype_not_object(variable, name=name)
            encoded = self.variables[str(name)] = _encode(encoded, str(name), format)
            left = encoding.get(str(name), {}).keys() & encoded.encoding.keys()
            _check_left(_join(path, str(name)), {key: encoded.encoding[key] for key in left})
        self.attrs = {str(name): value for name, value in attrs.items()}
        self.sizes = {
            str(d): n for v in self.variables.values() for d, n in zip(v.dims, v.shape, strict=True)
        }
        self.paths: dict[str, str] = {}
        """The path of each dimension."""

    def dims(self, variable: xr.Variable) -> list[str]:
        """Paths of a variable's dimensions."""
        return [self.paths[str(dim)] for dim in variable.dims]

    def define(self, file: Container, numbers: Mapping[str, int]) -> None:
        """Defines the node's objects, over dimensions that are already defined."""
        for name, value in self.attrs.items():
            file.put_att(_join(self.path, name), _plain(value, file.format))
        for name, variable in self.variables.items():
            attrs = {str(k): _plain(v, file.format) for k, v in variable.attrs.items()}
            full, dims = _join(self.path, name), self.dims(variable)
            if all(_found(numbers, self.path, dim) == dim for dim in dims):
                file.def_var(full, variable.dtype, dims, attrs)
            else:  # its plain name would find another dimension first
                ids = np.array([[numbers[dim] for dim in dims]])
                file.def_many([full], [variable.dtype], ids, [attrs])


def _check_left(name: str, left: Mapping[str, Any]) -> None:
    """Refuses encodings that the caller asked for and that were not applied."""
    for key, value in left.items():
        if key in READ or key in ("dtype", "_FillValue", "contiguous"):
            continue
        if key in (*LAID_OUT, *CODED) and np.ndim(value) == 0 and not value:
            continue  # it has no effect
        if key in LAID_OUT:
            raise Invalid(
                f"encoding {key!r} of {name!r}: a container has neither chunks nor filters", "leave it out"
            )
        if key in CODED:
            raise Invalid(f"encoding {key!r} of {name!r} does not apply to its values", "leave it out")
        near = difflib.get_close_matches(str(key), CODED, 1)
        hint = f"do you mean {near[0]!r}?" if near else f"there are {', '.join(CODED)}"
        raise Invalid(f"encoding {key!r} of {name!r}: there is no such encoding", hint)


def _place(nodes: Mapping[str, _Node]) -> dict[str, int]:
    """Gives each dimension its path; returns lengths by path, in the order of nodes.

    A dimension is the same as one of an enclosing path if it has the same name and length.
    """
    own = {_join(at, dim): n for at, node in nodes.items() for dim, n in node.sizes.items() if "/" not in dim}
    lengths: dict[str, int] = {}
    called: dict[str, int] = {}
    for at, node in nodes.items():
        # Names that are whole paths first, because they fix the lengths of these dimensions.
        for dim, n in sorted(node.sizes.items(), key=lambda item: "/" not in item[0]):
            if "/" in dim:
                full = dim.strip("/")
                if own.get(full, n) != n or lengths.get(full, n) != n:
                    full = _join(at, full)
            else:
                full = _found(called, at, dim) or ""
                if called.get(full) != n or full in node.paths.values():
                    full = _join(at, dim)
                called[full] = n
            if lengths.setdefault(full, n) != n:
                raise Invalid(
                    f"dimension {dim!r} of length {n} would be {full!r}, whose length is {lengths[full]}",
                    "rename one of them",
                )
            node.paths[dim] = full
    return lengths


def _found(defined: Mapping[str, int], path: str, dim: str) -> str | None:
    """The dimension that a name means in a path; None if there is none."""
    while (full := _join(path, dim)) not in defined:
        if not path:
            return None
        path = path.rpartition("/")[0]
    return full


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _dims(given: str | Iterable[Any]) -> set[str]:
    """Names of dimensions, which may be given as one text."""
    return {given} if isinstance(given, str) else {str(dim) for dim in given}


def _record(
    nodes: Mapping[str, _Node], lengths: Mapping[str, int], asked: str | Iterable[str] | None
) -> str | None:
    """The dimension that becomes the record dimension."""
    if asked is None:
        found = {node.paths[dim] for node in nodes.values() for dim in node.unlimited & node.paths.keys()}
        behind = {dim for node in nodes.values() for v in node.variables.values() for dim in node.dims(v)[1:]}
        # The source had it, the caller did not ask for it: if the format does not allow it, it becomes a
        # fixed dimension.
        return found.pop() if len(found) == 1 and not found & behind else None
    names = {name.strip("/") for name in _dims(asked)}
    if names - lengths.keys():
        raise Invalid(f"there is no dimension {sorted(names - lengths.keys())[0]!r} for the record dimension")
    if len(names) > 1:
        raise Invalid(
            f"{len(names)} unlimited dimensions: {', '.join(sorted(names))}", "netCDF allows only one"
        )
    return next(iter(names), None)


def _encode(variable: xr.Variable, name: str, format: str) -> xr.Variable:
    """Texts as bytes, booleans as bytes, and for old formats integers as narrower ones if they fit."""
    from xarray.backends.netcdf3 import encode_nc3_variable
    from xarray.coding import strings

    if format in NARROW:
        return encode_nc3_variable(variable, name=name)
    for coder in (strings.EncodedStringCoder(allows_unicode=False), strings.CharacterArrayCoder()):
        variable = coder.encode(variable, name=name)
    return variable


def _plain(value: Any, format: str) -> Any:
    """An attribute's value; for old formats integers become 32-bit if they fit."""
    if isinstance(value, str | bytes):
        return value
    found = np.asarray(value)
    if format in NARROW and found.dtype.kind in "iu" and found.dtype.itemsize == 8:
        narrow = found.astype("i4")
        if (narrow == found).all():
            return narrow
    return value


def _write(file: Container, nodes: Iterable[_Node]) -> None:
    lazy: list[tuple[Any, _Target]] = []
    for node in nodes:
        for name, variable in node.variables.items():
            target = file[_join(node.path, name)]
            if hasattr(variable._data, "dask"):
                lazy.append((variable._data, _Target(target)))
            elif variable.size:
                target[...] = variable.values
    if lazy:
        _store(lazy)


def _store(lazy: list[tuple[Any, _Target]]) -> None:
    import dask.array
    from dask.base import compute_as_if_collection, get_scheduler
    from dask.highlevelgraph import HighLevelGraph

    sources, targets = zip(*lazy, strict=True)
    if get_scheduler(collections=sources) in (dask.threaded.get, dask.local.get_sync):
        dask.array.store(sources, targets, lock=True)
        return
    # Only this process has the file that is being created. Other processes only compute; dask starts
    # processes for each call, or needs several chunks at a time to keep them busy.
    for batch in _batches(lazy):
        graphs = {source.name: source.__dask_graph__() for source, _, _, _ in batch}
        # By keys, because one array for each chunk, as `blocks` makes, takes minutes for thousands of chunks.
        keys = [key for _, _, key, _ in batch]
        computed = compute_as_if_collection(dask.array.Array, HighLevelGraph.merge(*graphs.values()), keys)
        for (_, target, _, place), values in zip(batch, computed, strict=True):
            target[place] = values


_Chunk = tuple[Any, "_Target", tuple[Any, ...], tuple[slice, ...]]
"""An array, its target, dask's key of a chunk, and the chunk's place."""


def _batches(lazy: Iterable[tuple[Any, _Target]]) -> Iterator[list[_Chunk]]:
    """Chunks to compute together: those at the same place in all arrays, which often share work."""
    batch: list[_Chunk] = []
    held = 0
    for chunk in itertools.chain(*itertools.zip_longest(*(_chunks(*pair) for pair in lazy))):
        if chunk is None:
            continue
        size = math.prod(part.stop - part.start for part in chunk[3]) * chunk[0].dtype.itemsize
        if batch and held + size > BATCH:
            yield batch
            batch, held = [], 0
        batch.append(chunk)
        held += size
    yield batch


def _chunks(source: Any, target: _Target) -> Iterator[_Chunk]:
    from dask.array.core import slices_from_chunks

    for number, place in zip(np.ndindex(source.numblocks), slices_from_chunks(source.chunks), strict=True):
        yield source, target, (source.name, *number), place


class _Target:
    """The object to which dask writes chunks."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        self.shape = variable.shape
        self.dtype = variable.dtype

    def __setitem__(self, key: Any, values: Any) -> None:
        self._variable[key] = values

"""Writes a whole Dataset or DataTree into a store, which becomes visible as a whole.

Everything is written in one transaction, the header last. Dask arrays are written block by block, in
parallel, by the current scheduler; their fields are created first, so that blocks may be cut in any way. With
``compute=False`` the header, the arrays that are not dask arrays and the empty fields become visible at once
(a template), and the blocks when the returned Delayed is computed.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import xarray as xr

from .._store import Store
from .._transaction import Transaction
from ..errors import Conflict, Invalid
from . import encode
from .target import Place, Target, beginning, place_of

STREAM = 64 << 20
"""dask streams variables that are not in memory and larger than this, in bytes."""


def write_whole(
    dataset: xr.Dataset | xr.DataTree,
    store: Store | Transaction,
    base: dict[str, Any],
    compute: bool,
    step_dim: str | bool | None,
    overwrite: bool,
) -> Any:
    """Writes a Dataset under the keywords of `base`."""
    groups = encoded(dataset, step_dim)
    call = secrets.token_hex(8)
    with joined(store) as tx:
        held = held_fields(tx, base)
        if held and not overwrite:
            words = ", ".join(f"{k}={v}" for k, v in base.items())
            raise Conflict(
                f"{words} already has fields, such as {held[0].key}",
                "write with overwrite=True, into a part of it with region=, or under another run",
            )
        if held:
            tx.remove(held)
            tx.flush()  # older than everything written here, by any process
        place = place_of(tx.store, call, tx.id)
        later = [pair for group in groups for pair in write_group(tx, place, base, group, compute)]
        if compute:
            run_blocks(tx, call, later)
        text = json.dumps(encode.header_text(groups, str(base["run"])), ensure_ascii=False, allow_nan=False)
        tx.archive({**base, "variable": encode.HEADER}, text.encode("utf-8", "replace"))
    return None if compute else delayed(later, store)


def encoded(dataset: xr.Dataset | xr.DataTree, step_dim: str | bool | None) -> list[encode.Group]:
    """The groups of a Dataset (one) or DataTree (parents first), encoded."""
    sizes = dataset.sizes if isinstance(dataset, xr.Dataset) else tree_sizes(dataset)
    if isinstance(step_dim, str) and step_dim not in sizes:
        raise Invalid(
            f"step_dim={step_dim!r} is not a dimension of the Dataset",
            f"its dimensions: {', '.join(map(str, sizes))}",
        )
    if isinstance(dataset, xr.Dataset):
        return [encode.group(streamed(dataset), "", step_dim)]
    groups: list[encode.Group] = []
    known: dict[str, dict[Any, encode.Dim]] = {}
    for node in dataset.subtree:
        path = node.path.strip("/") if node.path != dataset.path else ""
        path = path.removeprefix(dataset.path.strip("/") + "/") if dataset.path != "/" else path
        outer = known[path.rpartition("/")[0]] if path else {}
        made = encode.group(streamed(node.to_dataset(inherit=False)), path, step_dim, outer)
        known[path] = made.dims
        groups.append(made)
    return groups


def tree_sizes(tree: xr.DataTree) -> dict[Any, int]:
    """The dimensions of all nodes."""
    return {dim: n for node in tree.subtree for dim, n in node.sizes.items()}


def streamed(dataset: xr.Dataset) -> xr.Dataset:
    """The Dataset with large variables that are not in memory as dask arrays, if dask is installed."""
    big = [
        name
        for name, v in dataset.variables.items()
        if not v._in_memory and not is_dask(v) and v.nbytes > STREAM and name not in dataset.dims
    ]
    if not big:
        return dataset
    try:
        import dask.array  # noqa: F401
    except ImportError:
        return dataset
    chunked = {name: dataset.variables[name].chunk("auto") for name in big}
    return dataset.assign({name: v for name, v in chunked.items()})


def is_dask(variable: xr.Variable) -> bool:
    """Whether a variable's values are a dask array."""
    return variable.chunks is not None and hasattr(variable._data, "dask")


def write_group(
    tx: Transaction, place: Place, base: Mapping[str, Any], group: encode.Group, compute: bool
) -> list[tuple[Any, Target]]:
    """Archives values in memory, creates the fields of dask arrays, and returns those arrays with their
    targets."""
    later = []
    for facts, variable in group.facts():
        if 0 in facts["shape"]:
            continue
        name = f"{group.path}/{facts['name']}" if group.path else facts["name"]
        dtype, fill = np.dtype(facts["dtype"]), fill_of(variable)
        array, whole = variable._data, False
        if is_dask(variable):
            inner = array.numblocks[1:] if facts["split"] else array.numblocks
            whole = compute and math.prod(inner) == 1
        target = Target(
            place=place,
            name=name,
            key={**base, "variable": name},
            dtype=dtype.str,
            shape=tuple(facts["shape"]),
            split=facts["split"],
            start=(0,) * variable.ndim,
            chunks=encode.stored_chunks(facts),
            fill=fill,
            whole=whole or not is_dask(variable),
        )
        if not is_dask(variable):
            with beginning(place.call, tx.store):
                target[tuple(slice(0, n) for n in variable.shape)] = variable.values
            continue
        if not whole:
            create(tx, target)
        later.append((array, target))
    return later


def fill_of(variable: xr.Variable) -> Any:
    """The value of unwritten elements, from the encoded attributes."""
    value = variable.attrs.get("_FillValue")
    return value if value is not None and variable.dtype.kind in "iufc" else None


def create(tx: Transaction, target: Target) -> None:
    """Creates the empty fields of a variable, which hide older ones of these keys."""
    keys = [target.key]
    shape = target.shape
    if target.split:
        keys, shape = [{**target.key, "step": i} for i in range(shape[0])], shape[1:]
    for key in keys:
        tx.create_field(key, np.dtype(target.dtype), shape, fill=target.fill, chunks=target.chunks)


def run_blocks(tx: Transaction, call: str, later: list[tuple[Any, Target]]) -> None:
    """Computes and writes the blocks of dask arrays; tasks in other processes join the transaction."""
    if not later:
        return
    import dask.array

    tx.flush()  # the created fields must be older than their pieces
    with beginning(call, tx.store):
        arrays, targets = zip(*later, strict=True)
        try:
            dask.array.store(list(arrays), list(targets), lock=False, compute=True)
        except ValueError as error:
            # When blocks of times are computed, xarray finds those that do not fit.
            if isinstance(error, Invalid) or "be serialized faithfully" not in str(error):
                raise
            raise Invalid(f"a variable cannot be encoded: {error}") from error


def delayed(later: list[tuple[Any, Target]], store: Store | Transaction) -> Any:
    """The blocks as one Delayed; each is visible when its task has returned (or with a given transaction)."""
    from dataclasses import replace

    import dask
    import dask.array

    if not isinstance(store, Transaction):
        later = [(array, replace(t, place=replace(t.place, txn=None))) for array, t in later]
    if not later:
        return dask.delayed(done)([])
    arrays, targets = zip(*later, strict=True)
    stored = dask.array.store(list(arrays), list(targets), lock=False, compute=False)
    return dask.delayed(done)(stored)


def done(stored: Any) -> None:
    """The result of a Delayed once all its blocks are written."""


@contextmanager
def joined(store: Store | Transaction) -> Iterator[Transaction]:
    """A transaction of this call, decided at the end; a given transaction is flushed and stays open."""
    if isinstance(store, Transaction):
        yield store
        store.flush()
        return
    with store.transaction() as tx:
        yield tx


def held_fields(tx: Transaction, base: Mapping[str, Any]) -> list[Any]:
    """The fields of the run, without those of runs with further keywords."""
    own = {*base, "variable", "step"}
    found = tx.retrieve({keyword: [value] for keyword, value in base.items()}, strict=False)
    return [field for field in found if own.issuperset(field.key)]

"""Appends a Dataset to a run along one dimension: ``to_store(…, append_dim="time")``.

The run's header determines how values are encoded, and grows. Of a variable that is split along the
dimension, only the new steps are written; any other variable that has it is rewritten, with the old values as
they are stored.

Invariants:

* all becomes visible together, the header last;
* every variable of the run that has the dimension grows, otherwise Invalid; labels along other dimensions are
  the run's, and labels along this one are new.
"""

from __future__ import annotations

import json
import math
import secrets
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from .._store import Store
from .._transaction import Transaction
from ..errors import Invalid
from . import encode
from .region import Run, listed
from .target import Target, beginning, place_of
from .whole import delayed, is_dask, joined, run_blocks, streamed


def write_append(
    dataset: xr.Dataset, store: Store | Transaction, base: dict[str, Any], dim: str, compute: bool
) -> Any:
    """Appends `dataset` to the run along `dim`."""
    encode.check_names(dataset)
    call = secrets.token_hex(8)
    with joined(store) as tx:
        run = Run(tx, base)
        start, names = checked(run, dataset, dim)
        grown = start + dataset.sizes[dim]
        place = place_of(tx.store, call, tx.id)
        pairs = []
        for name, variable in streamed(dataset[names]).variables.items():
            if name in names:
                # Split variables get new fields; others are one field, which is rewritten with its old
                # values.
                before = None if is_along(run.facts[name], dim) else run.raw(name, {})
                encoded, target = run.fit(place, name, variable, {dim: (start, grown)})
                pairs.append((encoded, longer(target, encoded, dim, grown), before))
        later = []
        for encoded, target, before in pairs:
            if 0 in target.shape or 0 in encoded.shape:
                continue
            if is_dask(encoded):
                later.append((encoded._data, blocks_of(tx, encoded, target, before, compute)))
                continue
            with beginning(call, tx.store):
                values = encoded.values
                if before is not None:
                    axis = encoded.get_axis_num(dim)
                    values = np.concatenate([before.values, values], axis)
                    target = whole(target, (0,) * encoded.ndim)
                target[tuple(slice(0, n) for n in values.shape)] = values
        if compute:
            run_blocks(tx, call, later)
        text = json.dumps(header_of(run, dim, grown), ensure_ascii=False, allow_nan=False)
        tx.archive({**base, "variable": encode.HEADER}, text.encode("utf-8", "replace"))
    return None if compute else delayed(later, store)


def checked(run: Run, dataset: xr.Dataset, dim: str) -> tuple[int, list[str]]:
    """The end of the run along the dimension, and the variables to write; Invalid if they do not fit."""
    if dim not in dataset.dims:
        raise Invalid(
            f"append_dim={dim!r}: the Dataset has no such dimension",
            f"its dimensions: {listed(dataset.dims)}",
        )
    if dim not in run.sizes:
        raise Invalid(
            f"append_dim={dim!r}: {run.label} has no such dimension", f"its dimensions: {listed(run.sizes)}"
        )
    run.same_labels(dataset, {dim: (0, 0)}, {dim})
    names = []
    for name, variable in dataset.variables.items():
        if dim in variable.dims:
            if name not in run.facts:
                raise Invalid(f"{run.label} has no variable {name}", f"its variables: {listed(run.facts)}")
            names.append(name)
        elif name not in dataset.coords:
            raise Invalid(
                f"variable {name} does not have the dimension {dim}",
                f"leave it out: dataset.drop_vars({name!r})",
            )
    for name, facts in run.facts.items():
        if dim in dims_of(facts) and name not in names:
            raise Invalid(
                f"{run.label} has variable {name} along {dim}, but the Dataset lacks it",
                f"all variables along {dim} grow together: give {name}, too",
            )
    if dim in dataset.indexes and dim in run.facts:
        there = set(pd.Index(run.labels(dim, {}).values))
        if twice := [label for label in dataset.indexes[dim] if label in there]:
            raise Invalid(
                f"append_dim={dim!r}: {run.label} already has {dim}={twice[0]}",
                f"append only new labels, or overwrite: region={{{dim!r}: 'auto'}}",
            )
    return run.sizes[dim], names


def dims_of(facts: Any) -> list[str]:
    """The names of a stored variable's dimensions."""
    return [d.rpartition("/")[2] for d in facts["dims"]]


def is_along(facts: Any, dim: str) -> bool:
    """Whether each index of the dimension is a separate field."""
    return bool(facts["split"]) and dims_of(facts)[0] == dim


def longer(target: Target, encoded: xr.Variable, dim: str, grown: int) -> Target:
    """The variable with its new length."""
    axis = encoded.get_axis_num(dim)
    shape = tuple(grown if i == axis else n for i, n in enumerate(target.shape))
    whole_fields = target.split and axis == 0
    return replace(target, shape=shape, whole=whole_fields and not is_dask(encoded))


def whole(target: Target, start: tuple[int, ...]) -> Target:
    """The target for a whole variable, which replaces the old one."""
    return replace(target, start=start, whole=True)


def blocks_of(
    tx: Transaction, encoded: xr.Variable, target: Target, before: xr.Variable | None, compute: bool
) -> Target:
    """Creates the fields that dask will fill, with the old values if they are rewritten."""
    array = encoded._data
    steps: list[int | None] = [None]
    if target.split:
        first = target.start[0] if before is None else 0
        steps = list(range(first, target.shape[0]))
        if before is None and compute and math.prod(array.numblocks[1:]) == 1:
            return replace(target, whole=True)
    shape = target.shape[1:] if target.split else target.shape
    for step in steps:
        key = target.key if step is None else {**target.key, "step": step}
        tx.create_field(key, np.dtype(target.dtype), shape, fill=target.fill, chunks=target.chunks)
    tx.flush()  # the created fields must be older than their pieces
    if before is not None:
        with beginning(target.place.call, tx.store):
            old = replace(target, start=(0,) * encoded.ndim)
            old[tuple(slice(0, n) for n in before.shape)] = before.values
    return target


def header_of(run: Run, dim: str, grown: int) -> dict[str, Any]:
    """The header with the longer dimension. It no longer describes the file from which the run may have
    come."""
    header = run.header
    source = {k: v for k, v in header["source"].items() if k not in ("nbytes", "sha256")}
    group = header["groups"][0]
    dims = [{**d, "length": grown} if d["name"] == dim else d for d in group["dims"]]
    variables = []
    for facts in group["variables"]:
        own = dims_of(facts)
        shape = [grown if d == dim else n for d, n in zip(own, facts["shape"], strict=True)]
        variables.append({**facts, "shape": shape})
    grown_group = {**group, "dims": dims, "variables": variables}
    for other in header["groups"][1:]:
        if any(dim in facts["dims"] for facts in other["variables"]):
            raise Invalid(f"append_dim={dim!r}: the group {other['path']} has it, too", "write another run")
    return {**header, "source": source, "groups": [grown_group, *header["groups"][1:]]}

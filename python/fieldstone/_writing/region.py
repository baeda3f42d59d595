"""Regions: boxes of the arrays of an existing run, which any process can write, in any position.

The run's header determines how values are encoded, so that a region looks like the rest. Each call is all or
nothing; of overlapping regions the one that was committed later wins, element by element.

Invariant: if the Dataset and the run both have labels for a place (a coordinate), these are equal.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from .._helper import attributes
from .._store import Store
from .._transaction import Transaction
from ..errors import Invalid, NotFound
from . import encode, faithful
from .target import Place, Target, beginning, place_of
from .whole import delayed, fill_of, is_dask, joined, run_blocks, streamed

Bounds = dict[str, tuple[int, int]]


def write_region(
    dataset: xr.Dataset, store: Store | Transaction, base: dict[str, Any], region: Any, compute: bool
) -> Any:
    """Writes the variables of `dataset` that have the region's dimensions."""
    encode.check_names(dataset)
    call = secrets.token_hex(8)
    with joined(store) as tx:
        run = Run(tx, base)
        bounds, found = run.bounds(dataset, region)
        found |= run.same_labels(dataset, bounds, found)
        place = place_of(tx.store, call, tx.id)
        pairs = [
            run.fit(place, name, variable, bounds)
            for name, variable in streamed(dataset).variables.items()
            if name not in found and takes_part(dataset, name, bounds)
        ]
        later = []
        for variable, target in pairs:
            if 0 in variable.shape:
                continue
            if is_dask(variable):
                later.append((variable._data, target))
                continue
            with beginning(call, tx.store):
                target[tuple(slice(0, n) for n in variable.shape)] = variable.values
        if compute:
            run_blocks(tx, call, later)
    return None if compute else delayed(later, store)


def takes_part(dataset: xr.Dataset, name: str, bounds: Bounds) -> bool:
    """Whether a variable has a dimension of the region. The run already has coordinates without one."""
    if set(dataset.variables[name].dims) & bounds.keys():
        return True
    if name in dataset.coords:
        return False
    raise Invalid(
        f"variable {name} has none of the region's dimensions ({', '.join(bounds)})",
        f"leave it out: dataset.drop_vars({name!r})",
    )


class Run:
    """A run as the store describes it."""

    def __init__(self, tx: Transaction, base: Mapping[str, Any]) -> None:
        self.tx = tx
        self.base = base
        words = ", ".join(f"{k}={v}" for k, v in base.items())
        try:
            header = json.loads(self.exact({**base, "variable": encode.HEADER}).read())
        except NotFound:
            raise NotFound(
                f"{words} has no header, because no Dataset was written there",
                "write all of it once: fst.to_store(template, store, key, compute=False)",
            ) from None
        self.label = words
        self.header = header
        self.facts = {f["name"]: f for f in header["groups"][0]["variables"] if f["dtype"] is not None}
        self.sizes = {
            dim: n for f in self.facts.values() for dim, n in zip(f["dims"], f["shape"], strict=True)
        }
        self.stubs = decoded_stubs(self.facts)

    def exact(self, key: Mapping[str, Any]) -> Any:
        """The field with exactly this key, without further keywords."""
        for field in self.tx.retrieve({keyword: [value] for keyword, value in key.items()}):
            if set(field.key) == set(key):
                return field
        raise NotFound(f"no field {key}")

    def bounds(self, dataset: xr.Dataset, region: Any) -> tuple[Bounds, set[str]]:
        """Start and stop of each dimension, and the coordinates used to find them."""
        if region == "auto":
            region = dict.fromkeys(dataset.dims, "auto")
        if not isinstance(region, Mapping) or not region:
            raise Invalid(f"region={region!r}", 'give {"x": slice(0, 10)}, or "auto"')
        bounds, found = {}, set()
        for dim, part in region.items():
            if dim not in dataset.dims:
                raise Invalid(
                    f"region: the Dataset has no dimension {dim}", f"its dimensions: {listed(dataset.dims)}"
                )
            if dim not in self.sizes:
                raise Invalid(
                    f"region: {self.label} has no dimension {dim}", f"its dimensions: {listed(self.sizes)}"
                )
            if isinstance(part, str) and part == "auto":
                bounds[dim] = self.located(dataset, dim)
                if dim in dataset.coords:
                    found.add(dim)
            else:
                bounds[dim] = self.bound(dim, part)
            start, stop = bounds[dim]
            if stop - start != dataset.sizes[dim]:
                raise Invalid(
                    f"region: {dim} is {start}:{stop}, but the Dataset has {dataset.sizes[dim]} along {dim}"
                )
        return bounds, found

    def bound(self, dim: str, part: Any) -> tuple[int, int]:
        """A slice as start and stop, clipped to the stored dimension."""
        size = self.sizes[dim]
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise Invalid(f"region: {dim} is {part!r}", "give a slice without a step")
        start, stop = (
            part.start if part.start is not None else 0,
            part.stop if part.stop is not None else size,
        )
        if not 0 <= start <= stop <= size:
            raise Invalid(f"region: {dim} is {start}:{stop}, but {self.label} has {dim} 0:{size}")
        return int(start), int(stop)

    def located(self, dataset: xr.Dataset, dim: str) -> tuple[int, int]:
        """The position of the Dataset's coordinate in the stored one."""
        if dim not in dataset.indexes or dim not in self.facts:
            if dataset.sizes[dim] == self.sizes[dim]:
                return 0, self.sizes[dim]
            where = "the Dataset" if dim not in dataset.indexes else self.label
            raise Invalid(
                f"region: {dim} cannot be found by its values, because {where} has no coordinate {dim}",
                f"give the place: region={{{dim!r}: slice(…)}}",
            )
        stored = pd.Index(self.labels(dim, {}).values)
        wanted = dataset.indexes[dim]
        places = stored.get_indexer(wanted) if stored.is_unique else np.full(len(wanted), -1)
        if (places < 0).any():
            value = wanted[int(np.argmax(places < 0))]
            raise Invalid(f"region: {self.label} has no {dim}={value}, or has it twice")
        if (np.diff(places) != 1).any():
            raise Invalid(f"region: the values of {dim} are not adjacent in {self.label}")
        return (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)

    def raw(self, name: str, bounds: Bounds) -> xr.Variable:
        """A part of a stored variable in encoded form; NotFound if it was never written."""
        facts, key = self.facts[name], {**self.base, "variable": name}
        dims = [d.rpartition("/")[2] for d in facts["dims"]]
        parts = [bounds.get(d, (0, n)) for d, n in zip(dims, facts["shape"], strict=True)]
        start, count = tuple(a for a, _ in parts), tuple(b - a for a, b in parts)
        values = np.empty(count, facts["dtype"])
        if facts["split"]:
            for i in range(count[0] if values.size else 0):
                field = self.exact({**key, "step": str(start[0] + i)})
                values[i] = field.array(start[1:], count[1:])
        elif values.size:
            values = self.exact(key).array(*((start, count) if start else ()))
        return xr.Variable(dims, values, attributes.decoded(facts["attrs"]))

    def labels(self, name: str, bounds: Bounds) -> xr.Variable:
        """A part of a stored coordinate, decoded."""
        return xr.conventions.decode_cf_variable(name, self.raw(name, bounds))

    def same_labels(self, dataset: xr.Dataset, bounds: Bounds, found: set[str]) -> set[str]:
        """The coordinates that are the same in the run and the Dataset; Invalid if they differ.

        It compares coordinates along their own dimension, and other coordinates of which no part is written:
        they locate the values on a grid.
        """
        same = set()
        for name, coordinate in dataset.coords.items():
            variable = coordinate.variable
            index = variable.dims == (name,)
            if name in found or name not in self.facts or not variable.ndim:
                continue
            if not index and set(variable.dims) & bounds.keys():
                continue
            if set(variable.dims) != set(self.stubs[name].dims):
                continue
            inside = {d: bounds.get(d, (0, self.sizes[d])) for d in variable.dims}
            if any(stop - start != variable.sizes[d] for d, (start, stop) in inside.items()):
                continue  # `fit` names the variable whose extent differs
            if self.is_labelled(name, variable, inside):
                same.add(name)
        return same

    def is_labelled(self, name: str, variable: xr.Variable, inside: Bounds) -> bool:
        """Whether the run has these labels; False if it has none yet. Invalid if it has others."""
        try:
            raw = self.raw(name, inside)
        except NotFound:
            return False
        held = decoded_alike(name, raw, variable)
        given = variable.transpose(*held.dims).values
        lacking = held.isnull().values
        if lacking.all() and variable.size:
            return False
        other = labels_differ(given, raw.values, held.values, raw.attrs)
        if other.any():
            at = np.unravel_index(int(np.argmax(other)), other.shape)
            where = ", ".join(
                f"{d}={inside[d][0] + int(i)}" for d, i in zip(held.dims, at, strict=True) if d in inside
            )
            raise Invalid(
                f"coordinate {name} is {given[at]} in the Dataset where {self.label} has {held.values[at]} "
                f"({where})",
                "give the values in the run's order, as dataset.reindex_like does; or use "
                f"dataset.drop_vars({name!r}) to write by position",
            )
        return True

    def fit(
        self, place: Place, name: str, variable: xr.Variable, bounds: Bounds
    ) -> tuple[xr.Variable, Target]:
        """A variable encoded like the stored one, and its target."""
        facts = self.facts.get(name)
        if facts is None:
            raise Invalid(f"{self.label} has no variable {name}", f"its variables: {listed(self.facts)}")
        stub = self.stubs[name]
        if set(variable.dims) != set(stub.dims):
            raise Invalid(f"variable {name} has dimensions {variable.dims}, the stored one {stub.dims}")
        variable = variable.transpose(*stub.dims)
        for dim, n in variable.sizes.items():
            if dim not in bounds and n != self.sizes[dim]:
                raise Invalid(
                    f"variable {name} has {n} along {dim}, the stored one {self.sizes[dim]}",
                    f"give its place: region={{{dim!r}: slice(…)}}",
                )
        encoded = encode.like_stored(name, variable, stub, facts)
        start = tuple(bounds.get(dim, (0, 0))[0] for dim in encoded.dims)
        key = {**self.base, "variable": name}
        target = Target(
            place=place,
            name=name,
            key=key,
            dtype=self.field_dtype(key, facts, start),
            shape=tuple(facts["shape"]),
            split=facts["split"],
            start=start,
            fill=fill_of(encoded),
        )
        return encoded, target

    def field_dtype(self, key: dict[str, Any], facts: Mapping[str, Any], start: tuple[int, ...]) -> str:
        """The element type of the stored fields, whose byte order may differ from the header's."""
        if facts["split"]:
            key = {**key, "step": start[0]}
        for entry in self.tx.list({keyword: [value] for keyword, value in key.items()}):
            if set(entry.key) == set(key) and entry.dtype is not None:
                return entry.dtype.str
        return np.dtype(facts["dtype"]).str


def decoded_alike(name: str, raw: xr.Variable, given: xr.Variable) -> xr.Variable:
    """A stored coordinate, decoded to the kind of times with which it is compared."""
    times: Any = xr.coders.CFDatetimeCoder(use_cftime=True) if given.dtype.kind == "O" else None
    try:
        return xr.conventions.decode_cf_variable(name, raw, decode_times=times or True)
    except (ValueError, OverflowError):  # units without a valid moment
        return xr.conventions.decode_cf_variable(name, raw, decode_times=False)


def labels_differ(
    given: np.ndarray, raw: np.ndarray, held: np.ndarray, attrs: Mapping[str, Any]
) -> np.ndarray:
    """Marks the labels that differ; packed labels may be off by the precision of their packing."""
    if given.dtype.kind in "OSUT" and held.dtype.kind in "OSU" and " since " not in str(attrs.get("units")):
        return np.asarray(text_of(given) != text_of(held))
    numbers = given.dtype.kind in "iufb" and held.dtype.kind in "iufb"
    if raw.shape != given.shape or not (numbers or given.dtype.kind == held.dtype.kind):
        return np.full(given.shape, True)
    coding = {word: attrs[word] for word in faithful.CODING if word in attrs}
    if numbers and held.dtype == raw.dtype:
        return np.asarray((given != held) & ~((given != given) & (held != held)))
    return faithful.differing(given, raw, held, coding)


def text_of(values: np.ndarray) -> np.ndarray:
    """Texts, in any of their types."""
    return np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values.astype(str)


def listed(names: Any) -> str:
    """Names for a sentence."""
    return ", ".join(map(str, names)) or "none"


def decoded_stubs(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, xr.Variable]:
    """Each stored variable with one element, decoded: its dimensions, dtype and encoding."""
    stubs = {}
    for name, fact in facts.items():
        attrs = attributes.decoded(fact["attrs"])
        dims = [d.rpartition("/")[2] for d in fact["dims"]]
        stubs[name] = xr.Variable(dims, np.zeros((1,) * len(dims), fact["dtype"]), attrs)
    try:
        made, _, _ = xr.conventions.decode_cf_variables(stubs, {}, decode_coords=False)
    except (ValueError, OverflowError):  # invalid times
        made, _, _ = xr.conventions.decode_cf_variables(stubs, {}, decode_coords=False, decode_times=False)
    return dict(made)

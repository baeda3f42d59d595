"""Random containers: schemas with data from a seed.

`schema(seed)` describes a file for any writer; `classes(schema)` lists its rare features, so that a test can
assert that each was met. Seeds give the same schemas on every machine. `container_judges` writes and reads
them.

In netCDF classic a length of 0 marks the record dimension: the only dimension without elements is a record
dimension without records.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np

FORMATS = {"cdf1": "NETCDF3_CLASSIC", "cdf2": "NETCDF3_64BIT_OFFSET", "cdf5": "NETCDF3_64BIT_DATA"}
CLASSIC_TYPES = ["i1", "S1", "i2", "i4", "f4", "f8"]
CDF5_TYPES = [*CLASSIC_TYPES, "u1", "u2", "u4", "i8", "u8"]
SMALL_TYPES = ["i1", "S1", "i2", "u1", "u2"]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
INSIDE = LETTERS + "0123456789" + "-.+@ !#$%&*:;<=>?[]^`{|}~()',\""
BEYOND = "äßπΔжכ水空🌊é"
FILLS = {
    "S1": b"\0",
    "i1": -127,
    "i2": -32767,
    "i4": -2147483647,
    "f4": np.float32(9.969209968386869e36),
    "f8": 9.969209968386869e36,
    "u1": 255,
    "u2": 65535,
    "u4": 4294967295,
    "i8": -9223372036854775806,
    "u8": 18446744073709551614,
}

Value = str | np.ndarray


@dataclass
class Variable:
    """A variable with its data; `data` is None if nothing is written and fill values are expected."""

    name: str
    dtype: str
    dims: tuple[str, ...]
    attrs: dict[str, Value]
    data: np.ndarray | None
    shape: tuple[int, ...]

    def expected(self) -> np.ndarray:
        """The data that readers must find."""
        if self.data is not None:
            return self.data
        own = self.attrs.get("_FillValue")
        return np.full(self.shape, FILLS[self.dtype] if own is None else own[0], self.dtype)


@dataclass
class Schema:
    """A file. Variables from `late` on are defined after a redef.

    Names are in NFC; with `decomposed` writers give them in NFD, and with `twice` they try to define names a
    second time, in both forms.
    """

    seed: int
    format: str
    fill: bool
    dims: dict[str, int | None]
    numrecs: int
    attrs: dict[str, Value]
    vars: list[Variable] = field(default_factory=list)
    late: int = 0
    decomposed: bool = False
    twice: bool = False

    def given(self, name: str) -> str:
        """A name in the form that writers give."""
        return unicodedata.normalize("NFD", name) if self.decomposed else name

    def is_record(self, var: Variable) -> bool:
        """Whether a variable has records."""
        return bool(var.dims) and self.dims[var.dims[0]] is None


def name(rng: random.Random, taken: set[str], paths: bool = False) -> str:
    """A legal name that is not yet taken."""
    while True:
        first = rng.choice(LETTERS[:-1] + "0123456789" + (BEYOND if rng.random() < 0.2 else ""))
        alphabet = INSIDE + BEYOND if rng.random() < 0.15 else LETTERS
        text = first + "".join(rng.choice(alphabet) for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 40])))
        text = text.rstrip()
        if not text or text in taken:
            continue
        # The last part must also be unique, because a dimension is looked up in enclosing paths.
        taken.add(text)
        if paths and rng.random() < 0.6:
            parts = [f"event_{rng.randrange(4)}", *(["plane_u"] if rng.random() < 0.4 else []), text]
            text = "/".join(parts)
        return text


def numbers(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Random elements: the whole range of the type, and NaN and infinities of floats."""
    generator = np.random.default_rng(rng.getrandbits(32))
    count = prod(shape)
    kind = np.dtype(dtype)
    raw = generator.bytes(count * kind.itemsize)
    data = np.frombuffer(raw, kind).copy()
    if dtype == "S1":
        data = np.frombuffer(bytes(32 + byte % 95 for byte in raw), "S1").copy()
    return data.reshape(shape)


def attributes(rng: random.Random, types: list[str], paths: bool = False) -> dict[str, Value]:
    """Attributes of all types and lengths, possibly none."""
    taken: set[str] = set()
    attrs: dict[str, Value] = {}
    for _ in range(rng.choice([0, 0, 1, 2, 4])):
        dtype = rng.choice(types)
        length = rng.choice([0, 1, 1, 2, 3, 7])
        key = name(rng, taken, paths)
        if dtype == "S1":
            attrs[key] = "".join(rng.choice(INSIDE + BEYOND + "\n\t") for _ in range(length))
        else:
            attrs[key] = numbers(rng, dtype, (length,))
    return attrs


def schema(seed: int, paths: bool = False) -> Schema:
    """The schema of a seed; with `paths`, names may have several parts."""
    rng = random.Random(seed)
    form = rng.choice(list(FORMATS))
    types = CDF5_TYPES if form == "cdf5" else CLASSIC_TYPES
    lone = rng.random() < 0.25
    has_record = lone or rng.random() < 0.6
    paths = paths and rng.random() < 0.3
    taken: set[str] = set()
    dims: dict[str, int | None] = {
        name(rng, taken, paths): rng.choice([1, 1, 2, 3, 4, 5, 7, 13]) for _ in range(rng.randrange(5))
    }
    record = None
    if has_record:
        record = name(rng, taken)
        order = [*dims.items()]
        order.insert(rng.randrange(len(order) + 1), (record, None))
        dims = dict(order)
    numrecs = rng.choice([0, 1, 2, 3, 5]) if has_record else 0
    found = Schema(seed, form, rng.random() < 0.3, dims, numrecs, attributes(rng, types, paths))
    fixed = [dim for dim, length in dims.items() if length is not None]
    names: set[str] = set()
    for i in range(rng.choice([0, 1, 2, 3, 5, 9])):
        is_record = record is not None and not lone and rng.random() < 0.5
        add_variable(rng, found, names, types, record if is_record else None, fixed, paths)
        if i and not found.late and rng.random() < 0.1:
            found.late = i
    if lone:
        dtype = rng.choice([t for t in SMALL_TYPES if t in types])
        add_variable(rng, found, names, [dtype], record, fixed, paths)
    found.decomposed, found.twice = rng.random() < 0.3, rng.random() < 0.3
    if not any(found.is_record(var) for var in found.vars):
        # Without a record variable no record can have been written.
        found.numrecs = 0
    return found


def add_variable(
    rng: random.Random,
    found: Schema,
    names: set[str],
    types: list[str],
    record: str | None,
    fixed: list[str],
    paths: bool,
) -> None:
    """Appends a variable, over the record dimension if one is given."""
    dtype = rng.choice(types)
    inner = [rng.choice(fixed) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))] if fixed else []
    dims = ([record] if record else []) + inner
    own = [found.dims[dim] or 0 for dim in inner]
    shape = tuple(([found.numrecs] if record else []) + own)
    attrs = attributes(rng, types if len(types) > 1 else CLASSIC_TYPES)
    if rng.random() < 0.15 and dtype != "S1":
        attrs = {"_FillValue": numbers(rng, dtype, (1,)), **attrs}
    unwritten = found.fill and not record and rng.random() < 0.4
    data = None if unwritten else numbers(rng, dtype, shape)
    found.vars.append(Variable(name(rng, names, paths), dtype, tuple(dims), attrs, data, shape))


def classes(found: Schema) -> Iterator[str]:
    """The rare features of a schema."""
    yield f"format {found.format}"
    records = [var for var in found.vars if found.is_record(var)]
    for var in found.vars:
        yield f"type {var.dtype}"
        if not var.dims:
            yield "scalar"
        if var.data is None:
            yield "own fill value" if "_FillValue" in var.attrs else "default fill value"
        if len(var.dims) > len(set(var.dims)):
            yield "a dimension twice"
        for value in var.attrs.values():
            if len(value) == 0:
                yield "zero-length attribute of a variable"
    if len(records) == 1:
        var = records[0]
        if prod(var.shape[1:]) * np.dtype(var.dtype).itemsize % 4:
            yield f"lone record variable of odd size: {var.dtype}"
    if len(records) >= 3:
        yield "many record variables"
    if any(var.shape and var.shape[0] == 0 for var in records):
        yield "zero-length dimension"
    if not found.vars:
        yield "no variables"
    if found.late:
        yield "redef"
    texts = [*found.dims, *found.attrs, *(var.name for var in found.vars)]
    if any(not text.isascii() for text in texts):
        yield "name in UTF-8"
    if any("/" in text for text in texts):
        yield "path"
    if any(found.given(text) != text for text in texts):
        yield "name not in NFC"
    if found.twice and (found.dims or found.vars):
        yield "name defined twice"
    for value in found.attrs.values():
        yield "text attribute" if isinstance(value, str) else f"attribute {value.dtype.str[1:]}"
        if len(value) == 0:
            yield "zero-length attribute"

"""The same random calls through netCDF4 and through Fieldstone; and both in turn on one file.

They use boxes and strides, records added beyond the last, fill values, redefinitions and reopening between
them. The files of both then hold the same, and each can continue the other's file.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from conftest import LONG
from container_judges import program, same, tool, validated
from container_schemas import CDF5_TYPES, CLASSIC_TYPES, FORMATS, numbers
from fieldstone import container

netCDF4 = pytest.importorskip("netCDF4")

SAME_CALLS, IN_TURN = (150, 150) if LONG else (40, 40)


@dataclass
class Model:
    """The contents of a file; `known` marks the elements that were written."""

    rng: random.Random
    dims: dict[str, int | None] = field(default_factory=dict)
    vars: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    known: dict[str, np.ndarray] = field(default_factory=dict)
    attrs: dict[str, str] = field(default_factory=dict)
    numrecs: int = 0
    named: int = 0

    def name(self, letter: str) -> str:
        """A new name."""
        self.named += 1
        return f"{letter}{self.named}"

    def dim(self) -> tuple[str, int | None]:
        """A new dimension."""
        length = self.rng.choice([1, 2, 3, 4, 7])
        record = None not in self.dims.values() and self.rng.random() < 0.6
        name = self.name("d")
        self.dims[name] = None if record else length
        return name, self.dims[name]

    def var(self, types: list[str]) -> tuple[str, str, list[str]]:
        """A new variable."""
        rng = self.rng
        fixed = [name for name, length in self.dims.items() if length is not None]
        record = [name for name, length in self.dims.items() if length is None]
        dims = [rng.choice(fixed) for _ in range(rng.randrange(4))] if fixed else []
        if record and rng.random() < 0.6:
            dims = record + dims
        name, dtype = self.name("v"), rng.choice(types)
        self.vars[name] = (dtype, dims)
        self.values[name] = np.zeros([self.dims[dim] or 0 for dim in dims], dtype)
        self.known[name] = np.zeros(self.values[name].shape, bool)
        return name, dtype, dims

    def box(self, name: str) -> tuple[list[int], list[int], list[int]]:
        """Start, count and stride of a box, perhaps beyond the last record."""
        rng, found = self.rng, ([], [], [])
        for dim in self.vars[name][1]:
            length = self.dims[dim]
            if length is None:
                length = max(1, self.numrecs + rng.choice([0, 0, 1, 2, 4]))
            start, stride = rng.randrange(length), rng.choice([1, 1, 2, 3])
            count = rng.randrange(1, -(-(length - start) // stride) + 1)
            for numbers_, number in zip(found, (start, count, stride), strict=True):
                numbers_.append(number)
        return found

    def put(self, name: str, key: tuple[slice, ...], data: np.ndarray) -> None:
        """Records a write."""
        dims = self.vars[name][1]
        if dims and self.dims[dims[0]] is None:
            self.numrecs = max(self.numrecs, key[0].stop)
        for each, (_, dims) in self.vars.items():
            if dims and self.dims[dims[0]] is None:
                more = [(0, self.numrecs - len(self.values[each]))] + [(0, 0)] * (len(dims) - 1)
                self.values[each] = np.pad(self.values[each], more)
                self.known[each] = np.pad(self.known[each], more)
        self.values[name][key or ...] = data
        self.known[name][key or ...] = True


def slices(box: tuple[list[int], list[int], list[int]]) -> tuple[slice, ...]:
    """numpy's index of a box."""
    return tuple(slice(at, at + (n - 1) * step + 1, step) for at, n, step in zip(*box, strict=True))


def plain(file: netCDF4.Dataset, name: str) -> netCDF4.Variable:
    """A variable whose elements are read as stored."""
    found = file[name]
    found.set_auto_maskandscale(False)
    found.set_auto_chartostring(False)
    return found


def put_ours(rng: random.Random, file: container.Container, name: str, box, data: np.ndarray) -> None:
    """Writes in one of the possible ways."""
    way = rng.randrange(4)
    if way == 0:
        file[name].put(data, *box)
    elif way == 1:
        file[name].put(data, *box, collective=False)
    elif way == 2 and all(step == 1 for step in box[2]):
        file.put_many([(name, data, box[0], box[1])])
    else:
        file[name][slices(box) or ...] = data


def types_of(form: str) -> list[str]:
    """Types of a format."""
    return CDF5_TYPES if form == "cdf5" else CLASSIC_TYPES


@pytest.mark.parametrize("part", range(3))
def test_the_same_calls_make_the_same_values(tmp_path, part):
    met: Counter[str] = Counter()
    for seed in range(part * SAME_CALLS, (part + 1) * SAME_CALLS):
        rng = random.Random(seed)
        form = rng.choice(list(FORMATS))
        ours_path, theirs_path = tmp_path / f"o{seed}.nc", tmp_path / f"t{seed}.nc"
        theirs = netCDF4.Dataset(theirs_path, "w", format=FORMATS[form])
        free, align = rng.choice([0, 0, 2000]), rng.choice([None, 4, 1024])
        ours = container.create(ours_path, format=form, fill=True, h_minfree=free, v_align=align)
        same_calls(Model(rng), ours, theirs, types_of(form), met, f"seed {seed}")
        ours.close()
        theirs.close()
        with netCDF4.Dataset(ours_path) as ours, netCDF4.Dataset(theirs_path) as theirs:
            for name in theirs.variables:
                assert same(plain(theirs, name)[...], plain(ours, name)[...]), f"seed {seed}, {name}"
        if seed % 5 == 0:
            assert validated(ours_path) == [], f"seed {seed}"
    print(f"\n{dict(met)}")
    assert min(met.values()) > (30 if LONG else 6) and len(met) == 5


def same_calls(model: Model, ours, theirs, types: list[str], met: Counter[str], what: str) -> None:
    """Random calls to both."""
    rng = model.rng

    def define(count: int) -> None:
        for _ in range(rng.randrange(3)):
            name, length = model.dim()
            ours.def_dim(name, length)
            theirs.createDimension(name, length)
        for _ in range(count):
            name, dtype, dims = model.var(types)
            own = np.array([rng.randrange(1, 100)], dtype) if rng.random() < 0.3 and dtype != "S1" else None
            ours.def_var(name, dtype, dims, None if own is None else {"_FillValue": own})
            theirs.createVariable(name, dtype, dims, fill_value=None if own is None else own[0])

    def compare() -> None:
        for name in model.vars:
            expected, found = plain(theirs, name)[...], ours[name].get()
            assert same(np.asarray(expected), found), f"{what}, {name}: {found!r}, not {expected!r}"

    define(rng.randrange(1, 5))
    ours.enddef()
    for _ in range(rng.randrange(4, 16)):
        act = rng.random()
        if act < 0.6:
            name = rng.choice(list(model.vars))
            box = model.box(name)
            data = numbers(rng, model.vars[name][0], tuple(box[1]))
            if data.dtype.kind == "f":
                data = np.nan_to_num(data)
            before = model.numrecs
            plain(theirs, name)[slices(box) or ...] = data
            put_ours(rng, ours, name, box, data)
            model.put(name, slices(box), data)
            met["put"] += 1
            met["records added"] += model.numrecs > before
        elif act < 0.75:
            ours.redef()
            define(rng.randrange(3))
            if rng.random() < 0.5:
                text = "x" * rng.randrange(1, 600)
                ours.put_att("text", text)
                theirs.setncattr("text", text)
            ours.enddef()
            met["redef"] += 1
        elif act < 0.85:
            ours.sync()
            met["sync"] += 1
        else:
            compare()
            name = rng.choice(list(model.vars))
            shape = ours[name].shape
            if all(shape):
                start, stride = [rng.randrange(n) for n in shape], [rng.choice([1, 2, 3]) for _ in shape]
                steps = zip(shape, start, stride, strict=True)
                count = [rng.randrange(1, -(-(n - at) // step) + 1) for n, at, step in steps]
                box = (start, count, stride)
                key = slices(box)
                assert same(ours[name].get()[key], ours[name].get(*box)), f"{what}, {name}, {key}"
                assert same(ours[name].get()[key], ours[name][key]), f"{what}, {name}, {key}"
                met["box read"] += 1
    compare()


def session_ours(model: Model, path: Path, types: list[str]) -> None:
    """Some calls of ours, from opening to closing."""
    rng = model.rng
    with container.open(path, "a") as file:
        for _ in range(rng.randrange(1, 4)):
            act = rng.random()
            if act < 0.4:
                file.redef()
                for _ in range(rng.randrange(2)):
                    file.def_dim(*model.dim())
                for _ in range(rng.randrange(3)):
                    file.def_var(*model.var(types))
                if rng.random() < 0.5:
                    name = rng.choice("abc")
                    model.attrs[name] = "x" * rng.randrange(1, 600)
                    file.put_att(name, model.attrs[name])
                file.enddef()
            elif model.vars:
                name = rng.choice(list(model.vars))
                box = model.box(name)
                data = numbers(rng, model.vars[name][0], tuple(box[1]))
                put_ours(rng, file, name, box, data)
                model.put(name, slices(box), data)
            if act > 0.9:
                file.sync()


def session_theirs(model: Model, path: Path, types: list[str]) -> None:
    """Some calls of netCDF-C, from opening to closing."""
    rng = model.rng
    with netCDF4.Dataset(path, "a") as file:
        file.set_fill_off()
        for _ in range(rng.randrange(1, 4)):
            act = rng.random()
            if act < 0.4:
                for _ in range(rng.randrange(2)):
                    file.createDimension(*model.dim())
                for _ in range(rng.randrange(3)):
                    file.createVariable(*model.var(types), fill_value=False)
                if rng.random() < 0.5:
                    name = rng.choice("abc")
                    model.attrs[name] = "x" * rng.randrange(1, 600)
                    file.setncattr(name, model.attrs[name])
            elif act < 0.5 and model.vars:
                old, new = rng.choice(list(model.vars)), model.name("v")
                file.renameVariable(old, new)
                for kept in (model.vars, model.values, model.known):
                    renamed = {new if name == old else name: value for name, value in kept.items()}
                    kept.clear()
                    kept.update(renamed)
            elif model.vars:
                name = rng.choice(list(model.vars))
                box = model.box(name)
                data = numbers(rng, model.vars[name][0], tuple(box[1]))
                plain(file, name)[slices(box) or ...] = data
                model.put(name, slices(box), data)


def check(model: Model, path: Path, what: str) -> None:
    """Both read the written contents."""
    with container.open(path) as ours, netCDF4.Dataset(path) as theirs:
        lengths = {name: model.numrecs if n is None else n for name, n in model.dims.items()}
        assert dict(ours.dims) == lengths == {name: d.size for name, d in theirs.dimensions.items()}, what
        assert list(ours.vars) == list(theirs.variables) == list(model.vars), what
        assert dict(ours.attrs) == {name: theirs.getncattr(name) for name in theirs.ncattrs()} == model.attrs
        for name, (dtype, dims) in model.vars.items():
            known, values = model.known[name], model.values[name]
            assert (ours[name].dtype, ours[name].dims) == (np.dtype(dtype), tuple(dims)), f"{what}, {name}"
            for found in (ours[name].get(), np.asarray(plain(theirs, name)[...])):
                assert same(found[known], values[known]), f"{what}, {name}: {found!r}, not {values!r}"


@pytest.mark.parametrize("index", ["never", "always"])
def test_both_write_one_file_in_turn(tmp_path, index):
    tool("ncvalidator")
    sound = []
    for seed in range(IN_TURN):
        rng = random.Random(seed)
        form = rng.choice(list(FORMATS))
        path, model, calls = tmp_path / f"{seed}.nc", Model(rng), []
        container.create(path, format=form, index=index, h_minfree=rng.choice([0, 0, 900])).close()
        for _ in range(rng.randrange(2, 8)):
            act = rng.choice([session_ours, session_theirs])
            act(model, path, types_of(form))
            calls.append(act.__name__)
            check(model, path, f"seed {seed}: {calls}")
        sound.append(path)
        if index == "never" and seed % 5 == 0:
            assert validated(path) == [], f"seed {seed}: {calls}"
    done = program("container", "validate", *sound)
    assert done.returncode == 0, done.stdout.decode()

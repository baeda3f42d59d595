"""An index in brackets selects the same as in numpy, for any shape and key; names find their objects."""

from __future__ import annotations

import random

import fieldstone as fst
import numpy as np
import pytest
from fieldstone import container
from fieldstone.container import _attributes
from fieldstone.container._select import select


def key_of(draw, n):
    if draw.random() < 0.3:
        return draw.randrange(-n, n)
    ends = [None, *range(-n - 2, n + 3)]
    return slice(draw.choice(ends), draw.choice(ends), draw.choice([None, 1, 2, 3, -1, -2, -3]))


def test_random_keys_are_numpys():
    draw = random.Random(1)
    seen = set()
    for _ in range(5000):
        shape = tuple(draw.randrange(1, 6) for _ in range(draw.randrange(4)))
        array = np.arange(int(np.prod(shape))).reshape(shape)
        parts = [key_of(draw, n) for n in shape][: draw.randrange(len(shape) + 1)]
        if draw.random() < 0.3:
            parts.append(Ellipsis)
        key = tuple(parts)
        chosen = select("v", key, tuple("abc"[: len(shape)]), shape)
        assert chosen.shape == array[key].shape
        seen |= {
            ("turned", bool(chosen.turned)),
            ("empty", 0 in chosen.count),
            ("all", chosen.strided is None),
        }
        if 0 in chosen.count:
            continue
        ends = zip(chosen.start, chosen.count, chosen.stride, strict=True)
        box = array[tuple(slice(low, low + (n - 1) * step + 1, step) for low, n, step in ends)]
        assert np.array_equal(box[chosen.view], array[key]), (shape, key)
    assert len(seen) == 6


def test_writing_reaches_beyond_the_last_record():
    def taken(key, grows=-1):
        chosen = select("v", key, ("t", "x"), (3, 4), grows)
        return chosen.start, chosen.count, chosen.stride

    assert taken(7) == ((7, 0), (1, 4), (1, 1))
    assert taken(slice(2, 9)) == ((2, 0), (7, 4), (1, 1))
    assert taken(slice(2, 9, 3)) == ((2, 0), (3, 4), (3, 1))
    assert taken(slice(None)) == ((0, 0), (3, 4), (1, 1))
    assert taken(slice(None), 5) == ((0, 0), (5, 4), (1, 1))
    assert taken(slice(4, None), 5) == ((4, 0), (5, 4), (1, 1))
    assert taken(slice(-1, None), 2) == ((2, 0), (2, 4), (1, 1))
    assert taken(-1) == ((2, 0), (1, 4), (1, 1))


def many(path, n):
    """A container of `n` attributes of paths, some of them long."""
    with container.create(path) as f:
        f.def_dim("length", 3)
        f.def_var("pressure", "f4", "length", attrs={"units": "Pa"})
        for i in range(n):
            f.put_att(f"ev_{i}/weight", i)
    return container.open(path)


class Counting:
    """A native container that counts how often all attributes are read."""

    def __init__(self, native):
        self.native, self.reads = native, 0

    def __getattr__(self, name):
        self.reads += name == "attrs"
        return getattr(self.native, name)


def test_attributes_are_read_once_and_again_after_a_change(tmp_path):
    many(tmp_path / "a.nc", 50).close()
    with container.open(tmp_path / "a.nc", "a") as f:
        native = Counting(f._native)
        attrs = container.Attributes(native, None)
        assert dict(attrs) == {f"ev_{i}/weight": i for i in range(50)}
        assert all(attrs[f"ev_{i}/weight"] == i for i in range(50)) and len(attrs) == 50
        assert "ev_3/weight" in attrs and native.reads == 1
        for value in range(5):
            f.redef()
            f.put_att("ev_3/weight", 100 + value)  # by another object, and of equal size
            assert attrs["ev_3/weight"] == 100 + value
            if value % 2:
                f.put_att("ev_3/weight", 200 + value)
            f.enddef()
            assert attrs["ev_3/weight"] == f.attrs["ev_3/weight"] == 100 + value + 100 * (value % 2)
            f.redef()
            f.put_att("ev_3/weight", -value)
            f.enddef()
            assert attrs["ev_3/weight"] == -value
    with pytest.raises(fst.Invalid, match="closed"):
        attrs["ev_3/weight"]


def test_a_repr_of_attributes_is_short(tmp_path):
    with container.create(tmp_path / "a.nc") as f:
        f.put_att("text", "é" * 5_000_000)
        f.put_att("exact", "x" * 100)
        f.put_att("numbers", np.arange(500.0))
        for i in range(100):
            f.put_att(f"ev_{i}", i)
        f.enddef()
        shown = repr(f.attrs)
    assert len(shown) < 1500
    assert f"'text': '{'é' * 100}'…, 'exact': '{'x' * 100}', 'numbers': array([ 0." in shown
    assert shown.endswith(", … 83 more}") and "ev_16" in shown and "ev_17" not in shown


def test_errors_suggest_similar_names(tmp_path):
    with many(tmp_path / "a.nc", 5) as f:
        for find, hint in (
            (lambda: f.dims["lenght"], "do you mean 'length'? f.dims lists them"),
            (lambda: f["presure"], "do you mean 'pressure'? f.vars lists them"),
            (lambda: f.attrs["ev_1/wieght"], "do you mean 'ev_1/weight'?"),
            (lambda: f["pressure"].attrs["unit"], "do you mean 'units'?"),
            (lambda: f.dims["zzz"], "f.dims lists them"),
            (lambda: f.attrs["zzz"], None),
            (lambda: f.vars[3], "f.vars lists them"),
        ):
            with pytest.raises(fst.NotFound) as found:
                find()
            assert found.value.hint == hint
        assert f.dims.get("lenght") is None and f.attrs.get("zzz", 3) == 3 and f.vars.get("u", 4) == 4
        assert f.dims.get("length") == f.dims["length"] == 3 and f.attrs.get("ev_2/weight") == 2
        assert "length" in f.dims and "lenght" not in f.dims and 3 not in f.dims and 3 not in f.vars
    with many(tmp_path / "a.nc", _attributes.COMPARED + 1) as f:
        with pytest.raises(fst.NotFound) as found:  # suggesting a name would take long
            f.attrs["ev_1/wieght"]
        assert found.value.hint is None


def test_variables_are_equal_to_themselves(tmp_path):
    with many(tmp_path / "a.nc", 0) as f, many(tmp_path / "b.nc", 0) as other:
        assert f.vars == f.vars and f.dims == f.dims and f.attrs == f.attrs
        assert f.vars == dict(f.vars) and dict(f.vars) == f.vars
        assert f.vars != other.vars and f.vars != {} and f.vars != {"pressure": 3} and f.vars != 3
        assert f.vars != {"u": f["pressure"]} and f.dims == other.dims


def test_a_variable_of_another_container_is_refused(tmp_path):
    for name, value in (("one", 1), ("two", 99)):
        with container.create(tmp_path / f"{name}.nc") as f:
            f.def_dim("x", 4)
            f.def_var(name, "i4", "x")
            f.enddef()
            f[name][:] = value
    with container.open(tmp_path / "one.nc", "a") as one, container.open(tmp_path / "two.nc") as two:
        with pytest.raises(fst.Invalid, match=r"two\.nc"):
            one.get_many([two["two"]])
        with pytest.raises(fst.Invalid, match=r"two\.nc"):
            one.put_many([(two["two"], np.full(4, -7, "i4"))])
        assert (one["one"][:] == 1).all()

"""`def_many`: every kind of column defines the same as one call for each variable."""

from __future__ import annotations

import re

import fieldstone as fst
import numpy as np
import pytest
from fieldstone import container

N = 5
NAMES = [f"event_{i}/hits" for i in range(N)]


def one_by_one(path, types, dims, attrs):
    with container.create(path) as f:
        f.def_dims(["x", "y"], [2, 3])
        for name, t, d, a in zip(NAMES, types, dims, attrs, strict=True):
            f.def_var(name, t, d, a)
    return path.read_bytes()


def in_columns(path, *columns):
    with container.create(path) as f:
        assert f.def_dims(["x", "y"], [2, 3]) == range(2)
        assert f.def_many(*columns) == range(N)
    return path.read_bytes()


def arrow(values):
    return pytest.importorskip("pyarrow").array(values)


def shown(value: object) -> str:
    """A name for a parameter that is the same in every process, because pyarrow's repr has an address."""
    return re.sub(r" object at 0x[0-9a-f]+", "", str(value))


@pytest.mark.parametrize(
    "names", [NAMES, tuple(NAMES), np.array(NAMES), np.array(NAMES, object), arrow(NAMES), iter(NAMES)]
)
def test_names(tmp_path, names):
    expected = one_by_one(tmp_path / "a", ["f4"] * N, [()] * N, [None] * N)
    assert in_columns(tmp_path / "b", names, "f4") == expected


EACH = ["f4", "i1", "S1", "f8", "u8"]


@pytest.mark.parametrize(
    ("column", "each"),
    [
        ("i2", ["i2"] * N),
        (np.float32, ["f4"] * N),
        (np.dtype(">f8"), ["f8"] * N),
        (str, ["S1"] * N),
        (EACH, EACH),
        (tuple(EACH), EACH),
        (np.array(EACH), EACH),
        ([np.dtype(t) for t in EACH], EACH),
        (arrow(EACH), EACH),
    ],
    ids=str,
)
def test_types(tmp_path, column, each):
    expected = one_by_one(tmp_path / "a", each, [("x",)] * N, [None] * N)
    assert in_columns(tmp_path / "b", NAMES, column, ("x",)) == expected


MIXED = [("x",), (), ("y", "x"), ("x", "y"), ("y",)]
IDS = [0, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("column", "each"),
    [
        ((), [()] * N),
        ("x", [("x",)] * N),
        (("x", "y"), [("x", "y")] * N),
        (MIXED, MIXED),
        ([list(d) for d in MIXED], MIXED),
        (["x", "y", "x", "x", "y"], [("x",), ("y",), ("x",), ("x",), ("y",)]),
        (np.array(["x", "y", "x", "x", "y"]), [("x",), ("y",), ("x",), ("x",), ("y",)]),
        (np.array([0, 1, 0, 0, 1]), [("x",), ("y",), ("x",), ("x",), ("y",)]),
        (np.array([[0, 1]] * N), [("x", "y")] * N),
        ((np.array([0, 1, 0, 0, 1, 1]), np.array([1, 1, 3, 5, 6])), MIXED),
    ],
    ids=str,
)
def test_dimensions(tmp_path, column, each):
    expected = one_by_one(tmp_path / "a", ["f4"] * N, each, [None] * N)
    assert in_columns(tmp_path / "b", NAMES, "f4", column) == expected


@pytest.mark.parametrize(
    ("column", "each"),
    [
        (None, [None] * N),
        ({"units": "K", "n": 3}, [{"units": "K", "n": 3}] * N),
        ({"range": (1.0, 2.0)}, [{"range": [1.0, 2.0]}] * N),
        ({"u": ["a", "b", None, "é", ""]}, [{"u": "a"}, {"u": "b"}, {}, {"u": "é"}, {"u": ""}]),
        ({"k": arrow([1, None, 3, None, 5])}, [{"k": 1}, {}, {"k": 3}, {}, {"k": 5}]),
        ({"u": arrow(["a", None, "b", "", None])}, [{"u": "a"}, {}, {"u": "b"}, {"u": ""}, {}]),
        ({"k": np.arange(N, dtype="u2")}, [{"k": np.uint16(i)} for i in range(N)]),
        ({"k": list(range(N)), "u": "K"}, [{"k": i, "u": "K"} for i in range(N)]),
        ({"k": [1.5, 2, 2**40, np.int8(3), [1, 2]]}, [{"k": k} for k in (1.5, 2, 2**40, np.int8(3), [1, 2])]),
        ({"u": np.array(list("abcde"))}, [{"u": u} for u in "abcde"]),
        ([{"a": 1}, None, {}, {"b": "c", "d": 2.5}, {"e": b"f"}],) * 2,
    ],
    ids=shown,
)
def test_attributes(tmp_path, column, each):
    expected = one_by_one(tmp_path / "a", ["f4"] * N, [("x",)] * N, each)
    assert in_columns(tmp_path / "b", NAMES, "f4", ("x",), column) == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("one", "f4"), "one text"),
        ((3, "f4"), "not a column"),
        (([1, 2], "f4"), "int in row 0"),
        ((NAMES, ["f4"]), "5 names of variables, but 1 types"),
        ((NAMES, "c16"), "no type"),
        ((NAMES, "f4", [("x",)]), "5 names of variables, but 1"),
        ((NAMES, "f4", ("z",)), "no dimension `z`"),
        ((NAMES, "f4", [("x",), (), (1,), (), ()]), "dims has an int in row 2"),
        ((NAMES, "f4", np.array([9] * N)), "number 9"),
        ((NAMES, "f4", np.array([-1] * N)), "holds -1"),
        ((NAMES, "f4", (), [{}]), "5 names of variables, but 1"),
        ((NAMES, "f4", (), {"k": [1]}), "1 values for 5"),
        ((NAMES, "f4", (), {"k": [[[1]]] * N}), "2 dimensions"),
        ((NAMES, "f4", (), 3), "attrs holds an int"),
        ((["a", "a/b/", *NAMES], "f4"), "a/b/"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_columns_that_cannot_be(tmp_path, columns, message):
    with container.create(tmp_path / "a") as f:
        f.def_dims(["x", "y"], [2, 3])
        with pytest.raises(fst.Invalid, match=message):
            f.def_many(*columns)
        assert len(f.vars) == 0
        f.def_many(NAMES, "f4")
        assert len(f.vars) == N


def test_a_name_twice_is_found(tmp_path):
    with pytest.raises(fst.Conflict, match="event_1/hits"), container.create(tmp_path / "a") as f:
        f.def_many([*NAMES, NAMES[1]], "f4")
        f.enddef()
    assert not (tmp_path / "a").exists() or not (tmp_path / "a").read_bytes().startswith(b"CDF")


def test_dimensions_in_columns(tmp_path):
    with container.create(tmp_path / "a") as f:
        assert f.def_dims([f"e{i}/n" for i in range(3)], [1, 2, 3]) == range(3)
        assert f.def_dims(["a", "b"], 7) == range(3, 5)
        assert f.def_dims(np.array(["t", "c"]), [None, 4]) == range(5, 7)
        assert f.def_dims(["d"], np.array([5], "u1")) == range(7, 8)
        for lengths in ([1], [-1, 1], ["a", 1], 2.5, [1.5, 1], [1, 2**63]):
            with pytest.raises(fst.Invalid):
                f.def_dims(["p", "q"], lengths)
        f.enddef()
        assert dict(f.dims) == {"e0/n": 1, "e1/n": 2, "e2/n": 3, "a": 7, "b": 7, "t": 0, "c": 4, "d": 5}
        assert f.record_dim == "t"


@pytest.mark.parametrize("lengths", [2**64 - 1, [2**64 - 1], np.array([2**64 - 1], "u8")], ids=type)
def test_the_largest_number_is_no_record_dimension(tmp_path, lengths):
    with container.create(tmp_path / "a") as f:
        with pytest.raises(fst.Invalid, match=str(2**63 - 1)):
            f.def_dims(["x"], lengths)
        assert len(f.dims) == 0


@pytest.mark.parametrize("given", ["text", np.float64(1), [1.0, 2.0], 1])
def test_a_fill_value_must_be_one_of_its_variable(tmp_path, given):
    with container.create(tmp_path / "a") as f, pytest.raises(fst.Invalid) as single:
        f.def_var("v", "f4", (), {"_FillValue": given})
    with container.create(tmp_path / "b") as f:
        for column in ({"_FillValue": given}, [{"_FillValue": given}]):
            if isinstance(given, list) and isinstance(column, dict):
                column = {"_FillValue": [given]}
            with pytest.raises(fst.Invalid) as columns:
                f.def_many(["v"], "f4", (), column)
            assert "must have one of the variable's type float" in str(columns.value)
            assert str(columns.value) == str(single.value)
        assert len(f.vars) == 0
        f.def_many(["v"], "f4", (), {"_FillValue": np.float32(-1)})


def rows_of(count: int) -> tuple[list[str], list[object]]:
    """Names, and dimensions in every form of a row; more than one batch of look-ups."""
    names = [f"event_{i}/hits" for i in range(count)]
    forms = [("x",), ["y", "x"], "y", (), ("own", "y")]
    return names, [forms[i % 5] for i in range(count)]


def test_long_columns_are_those_of_single_calls(tmp_path):
    names, rows = rows_of(20_000)
    own = [f"event_{i}/own" for i in range(4, 20_000, 5)]

    def made(path, define):
        with container.create(path) as f:
            f.def_dims(["x", "y", *own], 2)
            define(f)
        return path.read_bytes()

    def single(f):
        for name, row in zip(names, rows, strict=True):
            f.def_var(name, "f4", (row,) if isinstance(row, str) else row)

    expected = made(tmp_path / "a", single)
    assert made(tmp_path / "b", lambda f: f.def_many(names, "f4", rows)) == expected


def test_one_unknown_dimension_in_a_long_column_defines_nothing(tmp_path):
    names, rows = rows_of(20_000)
    with container.create(tmp_path / "a") as f:
        f.def_dims(["x", "y", "own"], 2)
        for wrong in (("z",), (7,)):
            with pytest.raises(fst.errors.Invalid):
                f.def_many(names, "f4", [*rows[:-2], wrong, rows[-1]])
        with pytest.raises(fst.errors.Invalid, match="20000 names of variables, but 19999 lists"):
            f.def_many(names, "f4", rows[:-1])
        assert len(f.def_many(names, "f4", rows)) == 20_000


def test_long_columns_of_names_that_are_not_in_nfc(tmp_path):
    names = [f"o\u0308_{i}/hits" for i in range(9000)]
    with container.create(tmp_path / "a") as f:
        f.def_dims(["\u00f6_0/n", "n"], [3, 5])
        f.def_many(names, "f4", [("n",)] * 9000)
        f.enddef()
        assert f["\u00f6_0/hits"].shape == (3,)
        assert f["\u00f6_8999/hits"].shape == (5,)


def test_long_columns_after_a_redefinition(tmp_path):
    names, rows = rows_of(20_000)
    with container.create(tmp_path / "a") as f:
        f.def_dims(["x", "y", "own"], 2)
        f.def_var("first", "f4", ("x",))
        f.enddef()
        f.redef()
        f.def_many(names, "f4", rows)
        f.enddef()
        assert f["event_19996/hits"].dims == ("y", "x")


def test_dimensions_by_the_numbers_that_their_definition_gave(tmp_path):
    with container.create(tmp_path / "a.nc") as f:
        f.def_dim("other", 7)
        dims = f.def_dims([f"x{i}" for i in range(5)], range(1, 6))
        f.def_many([f"v{i}" for i in range(5)], "f4", dims)
        for wrong in (range(3), range(2, 7)):
            with pytest.raises(fst.Invalid):
                f.def_many([f"w{i}" for i in range(5)], "f4", wrong)
        f.enddef()
        assert [f[f"v{i}"].dims for i in range(5)] == [(f"x{i}",) for i in range(5)]

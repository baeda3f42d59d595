"""Variables of containers, written and read through views, by one process."""

from __future__ import annotations

import fieldstone as fst
import numpy as np
import pytest
from fieldstone import container


@pytest.fixture
def file(tmp_path):
    with container.create(tmp_path / "v.nc") as f:
        f.def_dim("time", None)
        f.def_dim("y", 6)
        f.def_dim("x", 5)
        f.def_var("t", "f4", ("y", "x"))
        f.def_var("p", "i4", ("time", "x"))
        f.enddef()
        yield f


METHODS = ["auto", "direct", "exchange", "view"]


@pytest.mark.parametrize("method", METHODS)
def test_views_are_numpys_selections(file, method):
    full = np.arange(30.0).reshape(6, 5)
    t = file["t"]
    wide = np.full((8, 5), np.nan)
    wide[1:7] = full
    t.put(wide, view=fst.block(grid=(1, 1), halo=[(1, 1), 0]), method=method)
    assert (t[:] == full).all()
    map = np.array([4, -1, 0, 2])
    got = t.get(view=fst.irregular(map, dim=1), method=method)
    assert got.dtype == "f4"
    assert (got[:, [0, 2, 3]] == full[:, [4, 0, 2]]).all()
    assert (got[:, 1] == 0).all()
    got = t.get(view=fst.block((1, 0), (2, 3), stride=(3, 2)), method=method, dtype="f8")
    assert got.dtype == "f8"
    assert (got == full[1::3, ::2]).all()
    got = t.get(view=fst.cyclic((1, 1), (2, 3)), method=method)
    assert (got == full).all()
    into = np.full(3, 9, "f4")
    assert t.get(view=fst.irregular([29, -1, 3], dim=None), into=into, method=method) is into
    assert into.tolist() == [29, 9, 3]
    # Fortran order and reversed axes.
    t.put(np.asfortranarray(full)[::-1], view=fst.block((0, 0), (6, 5)), method=method, buffer=64)
    assert (t[:] == full[::-1]).all()


def test_records_are_one_or_as_many_as_views_reach(file):
    p = file["p"]
    done = p.put(np.arange(5), start=2, view=fst.block(0, 5))
    assert (p.shape, done.written, done.holes) == ((3, 5), 20, 0)
    assert p.put(np.ones((4, 5), "i4"), view=fst.joined(4)).method == "direct"
    assert p.shape == (4, 5)
    p.put([[7] * 5], view=fst.irregular([5]))
    assert p.shape == (6, 5)
    assert (p[5] == 7).all()
    assert p.get(start=5, view=fst.block(3, 2)).tolist() == [7, 7]


def test_a_plan_is_made_once_and_says_why(file):
    p = file["p"]
    view = fst.irregular([3, 1, 4, 0, 2])
    first = p.put(np.arange(5), start=0, view=view, method="exchange")
    later = p.put(np.arange(5), start=1, view=fst.irregular(np.array([3, 1, 4, 0, 2])), method="exchange")
    assert (first.planned, later.planned) == (True, False)
    assert (first.method, first.why) == ("exchange", "the caller chose it")
    assert "runs of" in p.put(np.arange(5), start=1, view=view).why
    assert p[1].tolist() == [3, 1, 4, 0, 2]


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda t: t.put(np.zeros((6, 5)), view="block"), "is not a view"),
        (lambda t: t.put(np.zeros((6, 4)), view=fst.block(grid=(1, 1))), "of shape [6, 4], and the view"),
        (lambda t: t.put(np.zeros((6, 5)), view=fst.block(grid=(2, 1))), "grid [2, 1] does not fit 1 ranks"),
        (lambda t: t.put(np.zeros(2), view=fst.irregular([0, 30], dim=None)), "map[1] is 30"),
        (lambda t: t.get(view=fst.irregular([0, 1], owned=3)), "owned is 3, but the map has only 2 entries"),
        (lambda t: t.get(view=fst.block((0, 0), (7, 1))), "7 indices from 0 on reach beyond its 6"),
        (lambda t: t.get(start=1, view=fst.block(grid=(1,))), "has no records"),
        (lambda t: t.get(view=fst.block(grid=(1, 1)), method="fast"), "'fast'"),
        (lambda t: t.get(view=fst.block(grid=(1, 1)), buffer=0), "buffer=0"),
        (lambda t: t.get(view=fst.block(grid=(1, 1)), collective=False), "collective=False"),
        (lambda t: t.get(count=1, view=fst.block(grid=(1, 1))), "a view excludes count"),
        (lambda t: t.put(np.zeros((2, 1)), view=fst.block((0, 0), (2, 1), stride=2)), "with a stride"),
        (lambda t: fst.block((0, 0)), "without start and count"),
        (lambda t: fst.block((0, 0), (1, 1), grid=(1, 1)), "with grid and with start"),
        (lambda t: fst.block((0, -1), (1, 1)), "start=(0, -1)"),
        (lambda t: fst.block((0, 0), (1, 1), halo=[(1, 2, 3), 1]), "halo="),
        (lambda t: fst.irregular([0.5]), "float64"),
        (lambda t: fst.irregular([[1]]), "(1, 1)"),
        (lambda t: fst.irregular(np.array([2**63], "u8")), "map[0] is 9223372036854775808"),
        (lambda t: fst.joined(-1), "count=-1"),
    ],
)
def test_what_is_wrong_is_named(file, ask, text):
    with pytest.raises(fst.Invalid) as raised:
        ask(file["t"])
    assert text in str(raised.value).replace('"', "'")
    assert file["t"].get(view=fst.block(grid=(1, 1))).shape == (6, 5)


def test_views_show_what_they_are():
    assert repr(fst.block((0, 1), (2, 3), halo=1)) == "block(start=(0, 1), count=(2, 3), halo=1)"
    assert repr(fst.irregular([1, 2], owned=1)) == "irregular(map=<2 entries>, owned=1, dim=0)"
    assert (repr(fst.joined(3)), fst.cyclic((1,), (2,)).kind) == ("joined(count=3)", "cyclic")


def test_decomposition_files_of_parallelio_are_views(file, tmp_path):
    text = tmp_path / "decomp.dat"
    text.write_text("version 2001 npes 2 ndims 2 \n6 5 \n0 2\n30 0 \n1 3\n1 2 3 \n\nstack\n")
    view = fst.pio_decomposition(text)
    assert repr(view) == "pio_decomposition(tasks=2, shape=[6, 5], map=<5 entries>)"
    t = file["t"]
    t.put(np.array([9, 8, 1, 2, 3], "f4"), view=view)
    assert t[0, :3].tolist() == [1, 2, 3]
    assert t[5, 4] == 9
    text.write_text("version 2001 npes 2 ndims 2 \n6 5 \n0 2\n31 0 \n")
    with pytest.raises(fst.Corrupt, match="`31` exceeds 30"):
        fst.pio_decomposition(text)
    with pytest.raises(fst.NotFound):
        fst.pio_decomposition(tmp_path / "absent")

"""Levels of an adaptive mesh: queries, reads and Datasets with ``level=`` equal plain loops over cells."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
import xarray as xr
from fieldstone._native import _Query

COARSE = (8, 10)
"""Cells of level 0 over the whole domain; each level halves them."""
LEVELS = range(3)
RUNS = ("declared", "fields")
"""One run declares coordinates along dimensions; those of the other are variables."""
Box = dict[str, fst.Test]


@dataclass
class Level:
    """The rectangle that a level covers, and its contents."""

    y: np.ndarray
    x: np.ndarray
    values: dict[tuple[str, int], np.ndarray]
    patches: list[tuple[int, tuple[int, int], tuple[int, int]]]
    """Step, start and count of the boxes of tagged cells."""


def hierarchy(draw: random.Random) -> list[Level]:
    """Three levels. The second has the same number of cells as the first, so that extents do not distinguish
    them."""
    levels = []
    for number in LEVELS:
        shape = COARSE if number < 2 else (12, 6)
        first = (0, 0) if number == 0 else tuple(draw.randrange(2 ** (number + 1)) for _ in shape)
        y, x = (
            (low + np.arange(n) + 0.5) * 0.5**number * scale
            for low, n, scale in zip(first, shape, (1.0, 0.25), strict=True)
        )
        values = {
            (name, step): np.array([draw.random() for _ in range(shape[0] * shape[1])]).reshape(shape)
            for name in ("rho", "u")
            for step in (0, 6)
        }
        patches = []
        for _ in range(6):
            start = tuple(draw.randrange(n - 1) for n in shape)
            count = tuple(draw.randint(1, n - a) for a, n in zip(start, shape, strict=True))
            patches.append((draw.choice((0, 6)), start, count))
        levels.append(Level(y, x, values, patches))
    return levels


Made = tuple[fst.Store, dict[str, list[Level]]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    draw = random.Random(20)
    store = fst.open(tmp_path_factory.mktemp("levels") / "store")
    held: dict[str, list[Level]] = {}
    for name in RUNS:
        run = store.create_run(name)
        held[name] = hierarchy(draw)
        for number, level in enumerate(held[name]):
            own = {"y": level.y, "x": level.x}
            if name == "fields":
                for dim, values in own.items():
                    run.create_variable(dim, "f8", values.shape, (dim,), level=number)
                    run.write(dim, None, values, level=number)
            for variable in ("rho", "u"):
                coords = own if name == "declared" else None
                shape = level.y.size, level.x.size
                row = run.create_variable(variable, "f8", shape, ("y", "x"), coords=coords, level=number)
                assert (row.name, row.level) == (f"level_{number}/{variable}", number)
                for step in (0, 6):
                    run.write(variable, step, level.values[variable, step], level=number)
            for step, start, count in level.patches:
                run.annotate("patch", 1, variable="rho", level=number, step=step, start=start, count=count)
        run.create_variable("rho", "f8", COARSE, ("y", "x"))  # the same name, on no level
        run.write("rho", 0, np.zeros(COARSE))
        run.annotate("patch", 0, variable="rho", step=0, start=(0, 0), count=COARSE)
        run.annotate("patch", -1)
    store.flush()
    yield store, held
    store.close()


def boxes() -> list[tuple[float, float, float, float]]:
    """South, north, west, east."""
    draw = random.Random(3)
    drawn = []
    for _ in range(25):
        south, west = draw.uniform(-1, 7), draw.uniform(-0.5, 2)
        drawn.append((south, south + draw.uniform(0, 4), west, west + draw.uniform(0, 1.2)))
    return [(-1, 100, -1, 100), (90, 100, 90, 100), *drawn]


def of(box: tuple[float, float, float, float]) -> Box:
    return {"y": fst.between(*box[:2]), "x": fst.between(*box[2:])}


def rows_and_columns(level: Level, box: tuple[float, float, float, float]) -> tuple[list[int], list[int]]:
    south, north, west, east = box
    rows = [i for i, y in enumerate(level.y) if south <= y <= north]
    return rows, [j for j, x in enumerate(level.x) if west <= x <= east]


def cells(level: Level, rows: list[int], columns: list[int]) -> np.ndarray:
    lies = np.zeros((level.y.size, level.x.size), bool)
    for cell in itertools.product(rows, columns):
        lies[cell] = True
    return lies


def own(hit: fst.Hit) -> tuple[int | None, int | None, tuple[int, ...] | None, tuple[int, ...] | None]:
    return hit.level, hit.step, hit.start, hit.count


def touched(level: Level, number: int, lies: np.ndarray) -> list[tuple[int, int, tuple, tuple]]:
    """The patches of a level that have one of these cells."""
    found = []
    for step, start, count in level.patches:
        box = itertools.product(*(range(a, a + n) for a, n in zip(start, count, strict=True)))
        if any(lies[cell] for cell in box):
            found.append((number, step, start, count))
    return found


@pytest.mark.parametrize("run", RUNS)
def test_boxes_in_coordinates_hold_the_cells_of_each_level(made: Made, run: str) -> None:
    store, held = made
    some = 0
    for box in boxes():
        lies = [cells(level, *rows_and_columns(level, box)) for level in held[run]]
        expected = [touched(level, n, lies[n]) for n, level in enumerate(held[run])]
        for n in LEVELS:
            hits = list(store.attributes(run=run, tag="patch", variable="rho", level=n, box=of(box)))
            assert sorted(map(own, hits)) == sorted(expected[n]), (n, box)
            for hit in hits:
                part = np.zeros_like(lies[n])
                part[hit.box] = lies[n][hit.box]
                values = held[run][n].values["rho", hit.step]
                assert hit.read(of(box)).ravel().tolist() == values[part].tolist(), (hit, box)
            data = store.to_xarray({"run": run}, level=n, box=of(box))
            assert set(data.data_vars) == {"rho", "u"}
            for name, step in held[run][n].values:
                rectangle = np.ix_(*rows_and_columns(held[run][n], box))
                expect = held[run][n].values[name, step][rectangle]
                assert data[name].sel(step=step).values.tolist() == expect.tolist(), (name, n, box)
            some += len(hits)
        # Without a level each hit is in the box by its own cells; hits on no level have no coordinates.
        hits = [own(hit) for hit in store.attributes(run=run, tag="patch", box=of(box))]
        assert sorted(hits) == sorted(itertools.chain(*expected)), box
    assert some > 50


@pytest.mark.filterwarnings("ignore:nothing is found")
def test_boxes_of_elements_and_tests_of_levels_choose_levels(made: Made) -> None:
    store, held = made
    box = {"y": slice(2, 5), "x": slice(1, 4)}
    terms = {
        "level=0": (0, {0}),
        "level in (0, 2)": ([0, 2], {0, 2}),
        "level=0:2": (slice(0, 2), {0, 1}),
        "level=1:": (fst.at_least(1), {1, 2}),
        "level between 1 and 2": (fst.between(1, 2), {1, 2}),
        "level<2": (fst.below(2), {0, 1}),
        "level!=1": (~fst.equal(1), {None, 0, 2}),
        "level=:": (fst.exists(), {0, 1, 2}),
        "not level=:": (~fst.exists(), {None}),
        "level=7": (7, set()),
    }
    for run, (text, (level, chosen)) in itertools.product(RUNS, terms.items()):
        expected = [(None, 0, (0, 0), COARSE)] if None in chosen else []
        for n in sorted(chosen - {None}):
            expected += touched(held[run][n], n, cells(held[run][n], [2, 3, 4], [1, 2, 3]))
        by_keyword = store.attributes(run=run, variable="rho", level=level, box=box)
        by_text = store.find(f"run={run} and variable=rho and {text} and box=y:2:5,x:1:4")
        condition = fst.where(level=level) & fst.where(variable="rho")
        by_condition = store.attributes(condition, run=run, box=box)
        for hits in (by_keyword, by_text, by_condition):
            assert sorted(map(own, hits), key=str) == sorted(expected, key=str), (run, text)
        assert str(_Query(None, {"level": level})) == str(_Query.parse(str(_Query.parse(text, None)), None))


def test_a_name_is_that_on_a_level_only_beside_a_level(made: Made) -> None:
    store, _ = made

    def levels(text: str) -> set[int | None]:
        return {hit.level for hit in store.find(f"run=declared and ({text})")}

    assert levels("tag=patch") == {None, 0, 1, 2}
    assert levels("variable=rho") == {None}
    assert levels("variable=level_1/rho") == {1}
    assert levels("variable=level_1/rho and level=1") == {1}
    assert levels("variable=level_1/rho and level=2") == set()
    assert levels("variable=r* and level>0") == {1, 2}
    assert levels("level=1 or variable=rho") == {None, 1}
    assert levels("variable=rho and (level=0 or level=2)") == {0, 2}
    assert levels("variable=rho and level=1 or variable=rho") == {None, 1}
    assert levels("level=1 and not variable=rho") == set()
    assert levels("tag=patch and with same step (level=2)") == {0, 1, 2, None}
    assert levels("variable=rho and with same step (level=2)") == {None}


def test_lists_take_levels(made: Made) -> None:
    store, _ = made
    assert [v.name for v in store.variables(run="declared", level=1)] == ["level_1/rho", "level_1/u"]
    assert [v.level for v in store.variables(run="declared", variable="rho", level=[0, 2])] == [0, 2]
    assert [v.level for v in store.variables(run="declared", variable="rho")] == [None]
    assert [run.name for run in store.runs(variable="x", level=2)] == ["fields"]
    assert len(store.variables(level=fst.at_least(1), box=of((-1, 100, -1, 100)))) == 8
    assert store.run("declared").variables(variable="u", level=2)[0].name == "level_2/u"
    assert [(b.start, b.count) for b in store.attributes(run="declared", level=1).boxes()] != []
    with pytest.warns(UserWarning, match="no level '5'; there are 0, 1, 2"):
        assert not store.variables(level=5)
    with pytest.warns(UserWarning, match="no variable 'rhp'; did you mean `rho`"):
        assert not store.variables(variable="rhp", level=1)


def test_what_a_level_names_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    with fst.open(tmp_path / "store") as store:
        run = store.create_run("a")
        for name, level in (("rho", None), ("rho", 0), ("rho", 1), ("u", 1)):
            run.create_variable(name, "f4", (4,), level=level)
            run.annotate("peak", 1.0, variable=name, level=level)
        store.flush()

        def left() -> list[str]:
            return [hit.variable for hit in store.attributes(run="a")]

        store.delete(tag="peak", run="a", variable="rho", level=1, doit=True)
        assert left() == ["level_0/rho", "level_1/u", "rho"]
        store.delete(run="a", variable="rho", doit=True)
        assert left() == ["level_0/rho", "level_1/u"]
        report = store.delete(run="a", level=1, doit=True)
        assert (report.runs, report.variables) == (0, 2) and left() == ["level_0/rho"]


def test_rows_of_many_are_on_levels(tmp_path: Path) -> None:
    with fst.open(tmp_path / "store") as store:
        run = store.create_run("a")
        run.create_variables(["rho", "rho", "u"], dtype="f4", shape=(4,), level=[0, 1, 1])
        run.annotate_many("one", [1, 2, 3], variable="rho", level=1)
        run.annotate_many("each", [1, 2, 3], variable=["rho", "rho", "u"], level=np.array([0, 1, 1]))
        run.annotate_many("levels", [1, 2], variable="rho", level=[1, 0])
        assert [hit.variable for hit in store.attributes(tag="one")] == ["level_1/rho"] * 3
        order = {"order": "value"}
        each = [hit.variable for hit in store.attributes(tag="each", **order)]
        assert each == ["level_0/rho", "level_1/rho", "level_1/u"]
        assert [hit.level for hit in store.attributes(tag="levels", **order)] == [1, 0]
        with pytest.raises(fst.Invalid, match="variable has 2 rows and level has 3"):
            run.annotate_many("each", [1, 2, 3], variable=["rho", "u"], level=[0, 1, 1])
        run.write("rho", 0, np.arange(4, dtype="f4"), level=1)
        store.flush()
        assert run.read("rho", 0, level=1).tolist() == [0, 1, 2, 3]
        assert run.read("level_1/rho", 0, 1, 2, level=1).tolist() == [1, 2]


def test_a_dataset_is_of_one_level(made: Made) -> None:
    store, held = made
    level = held["fields"][2]
    for request in ({"run": "fields", "variable": "rho", "step": 6}, "run=fields,variable=rho,step=6"):
        data = store.to_xarray(request, level=2)
        assert list(data.data_vars) == ["rho"] and data.rho.dims == ("y", "x")
        assert (data.x.values == level.x).all() and (data.y.values == level.y).all()
        assert (data.rho.values == level.values["rho", 6]).all()
    assert set(store.to_xarray("run=fields,variable=*", level=1).data_vars) == {"rho", "u"}
    on_levels = {"run": "fields", "variable": "level_*"}  # xarray wants equal sizes in a node and below it
    tree = xr.open_datatree(store.url, engine="fieldstone", request=on_levels)
    paths = [node.path for node in tree.subtree if node.data_vars]
    assert paths == [f"/fields/level_{n}" for n in LEVELS]
    assert (tree["fields/level_2/rho"].sel(step=6).values == level.values["rho", 6]).all()
    group = xr.open_dataset(store.url, engine="fieldstone", group="level_2", request={"run": "fields"})
    assert (group.rho.sel(step=6).values == level.values["rho", 6]).all()


def test_an_ingested_file_has_its_groups_as_levels(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "amr.nc", "w") as file:
        for number in LEVELS:
            group = file.createGroup(f"level_{number}")
            group.createDimension("x", 8)
            group.createVariable("x", "f8", ("x",))[:] = np.arange(8) * 0.5**number
            group.createVariable("rho", "f8", ("x",))[:] = np.arange(8) + 10 * number
    with fst.open(tmp_path / "store") as store:
        fst.ingest(store, [tmp_path / "amr.nc"], progress=False)
        run = store.runs()[0]
        for number in LEVELS:
            run.annotate("all", number, variable="rho", level=number)
        store.flush()
        box = {"x": fst.between(0.6, 1.1)}
        assert [hit.level for hit in store.attributes(variable="rho", level=[0, 1, 2], box=box)] == [0, 1, 2]
        for number in LEVELS:
            lies = [i for i in range(8) if 0.6 <= i * 0.5**number <= 1.1]
            expected = [i + 10 * number for i in lies]
            assert store.to_xarray(level=number, box=box).rho.values.tolist() == expected
            assert store.attributes(level=number)[0].read(box).tolist() == expected
        assert not store.attributes(level=2, box={"x": fst.between(3.9, 5)}).count()


def test_wrong_levels_are_refused_with_a_hint(made: Made) -> None:
    store, _ = made
    run = store.run("declared")
    for level in (-1, "fine", 1.5, True, fst.below(0), [0, "1x"], {"a": 1}):
        with warnings.catch_warnings(), pytest.raises(fst.Invalid) as error:
            warnings.simplefilter("ignore")
            store.attributes(level=level)
        assert error.value.hint, level
    for level in (-1, "fine", 1.5, True, [1]):
        for call in (
            lambda: run.create_variable("v", "f4", (2,), level=level),  # noqa: B023
            lambda: run.write("v", 0, np.zeros(2), level=level),  # noqa: B023
            lambda: run.read("v", 0, level=level),  # noqa: B023
            lambda: run.annotate("t", 1, variable="v", level=level),  # noqa: B023
            lambda: store.to_xarray(level=level),  # noqa: B023
        ):
            with pytest.raises(fst.Invalid) as error:
                call()
            assert error.value.hint, level
    with pytest.raises(fst.Invalid, match="'level_2/rho' is not on level 1"):
        run.write("level_2/rho", 0, np.zeros(COARSE), level=1)
    with pytest.raises(fst.Invalid, match="level without a variable"):
        run.annotate("t", 1, level=1)
    with pytest.raises(fst.Invalid, match="`lvel` is not a known term") as error:
        store.find("lvel=1")
    assert "`level`" in error.value.hint
    with pytest.raises(fst.Invalid) as error:
        store.attributes(lvel=1)
    assert "`level`" in error.value.hint
    with pytest.raises(fst.NotFound, match="nothing is on level 7") as missing:
        store.to_xarray(level=7)
    assert "0, 1, 2" in missing.value.hint

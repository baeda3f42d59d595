"""Runs, variables, steps, tags and attributes: the calls of the catalog as users write them."""

from __future__ import annotations

import math
import pickle
import time
from datetime import UTC, datetime, timedelta

import fieldstone as fst
import numpy as np
import pytest


@pytest.fixture
def store(tmp_path):
    with fst.open(tmp_path / "store") as store:
        yield store


@pytest.fixture
def run(store):
    """A run with a variable of 8 by 6 by 4, and steps 0, 6, 12."""
    run = store.create_run("astro3d-42", params={"nx": 256, "solver": "roe"}, job="slurm-17", notes="first")
    run.create_variable("temperature", "f8", (8, 6, 4), ("z", "y", "x"), attrs={"units": "K"})
    run.create_steps([0, 6, 12], [0.0, 0.3, 0.6])
    return run


# -- runs


def test_a_run_is_created_and_found(store, run):
    assert (run.name, run.project, run.job, run.notes) == ("astro3d-42", None, "slurm-17", "first")
    assert run.params == {"nx": 256, "solver": "roe"}
    again = store.run("astro3d-42")
    assert again == run and again.params == run.params and again.declared
    assert abs((again.created - datetime.now(UTC)).total_seconds()) < 600
    assert repr(run) == "<fieldstone.Run 'astro3d-42'>"
    assert "nx" in run._repr_html_()


def test_a_run_keeps_everything_it_is_given(store):
    created = datetime(2026, 11, 21, 6, 30, 0, 123456, tzinfo=UTC)
    store.create_run(
        "a",
        params={"list": [1, None, {"b": 2.5}]},
        project="p",
        created=created,
        grid={"n": 3},
        exist_ok=False,
    )
    run = store.run("a", project="p")
    assert run.project == "p" and run.created == created and run.grid == {"n": 3}
    assert run.params == {"list": [1, None, {"b": 2.5}]}
    assert repr(run) == "<fieldstone.Run 'a' of project p>"


def test_a_run_is_created_once(store, run):
    with pytest.raises(fst.Conflict, match="astro3d-42"):
        store.create_run("astro3d-42")
    same = store.create_run(
        "astro3d-42", params={"nx": 256, "solver": "roe"}, job="slurm-17", notes="first", exist_ok=True
    )
    assert same == run
    with pytest.raises(fst.Conflict):
        store.create_run("astro3d-42", params={"nx": 128}, exist_ok=True)


def test_a_run_says_who_annotates_it(store, run):
    assert run.annotators == "all"
    own = store.create_run("own", annotate="owner")
    assert own.annotators == store.run("own").annotators == "owner"
    own.annotate("q", 1.5)
    store.create_run("own", exist_ok=True)
    with store.transaction() as tx:
        assert tx.create_run("tx", annotate="owner").annotators == "owner"
    with pytest.raises(fst.Conflict, match="who may annotate it"):
        store.create_run(run.name, exist_ok=True, annotate="owner")
    with pytest.raises(fst.Invalid, match="annotate"):
        store.create_run("other", annotate="me")
    assert store.delete(run="own", doit=True).others == 0


def test_a_name_is_unique_within_its_project(store):
    store.create_run("a", project="p", params={"n": 1})
    store.create_run("a", project="q", params={"n": 2})
    assert store.run("a", project="q").params == {"n": 2}
    with pytest.raises(fst.Invalid, match="project"):
        store.run("a")
    store.run("a", project="p").annotate("t", 1)
    assert len(store.run("a", project="p").attributes()) == 1
    assert len(store.run("a", project="q").attributes()) == 0
    store.create_run("a", params={"n": 3})
    assert store.run("a", project="").params == {"n": 3}


def test_an_absent_run_is_not_found(store, run):
    with pytest.raises(fst.NotFound) as error:
        store.run("astro3d-43")
    assert "astro3d-42" in f"{error.value}"
    with pytest.raises(fst.Invalid, match="not a name"):
        store.run(3)
    with pytest.raises(fst.NotFound):
        fst.open(store.url + "-other", "r")


@pytest.mark.parametrize("params", [{"x": None}, {3: 1}, {"x": object()}])
def test_params_are_values(store, params):
    with pytest.raises(fst.Invalid):
        store.create_run("a", params=params)


# -- variables and steps


def test_a_variable_is_declared(run):
    made = run.create_variable(
        "wind",
        np.float32,
        (4, 3),
        ("y", "x"),
        version=2,
        attrs={"units": "m s-1", "levels": [1, 2]},
        coords={"y": fst.uniform(-10.0, 5.0), "x": np.array([0.0, 1.0, 4.0])},
        decomposition=(2, 3),
    )
    (found,) = run.variables(variable="wind")
    assert found == made
    assert (found.run, found.name, found.version) == ("astro3d-42", "wind", 2)
    assert (found.dtype, found.shape, found.dims) == (np.dtype("f4"), (4, 3), ("y", "x"))
    assert found.attrs == {"units": "m s-1", "levels": [1, 2]}
    assert found.coords["y"] == fst.uniform(-10, 5) and found.coords["x"].tolist() == [0, 1, 4]
    assert found.decomposition == (2, 3) and found.declared


def test_declaring_again_is_nothing_and_otherwise_is_conflict(run):
    run.create_variable("temperature", "f8", (8, 6, 4), ("z", "y", "x"), attrs={"units": "K"})
    with pytest.raises(fst.Conflict, match="temperature"):
        run.create_variable("temperature", "f8", (8, 6, 5), ("z", "y", "x"))
    with pytest.raises(fst.Conflict, match="temperature"):
        run.create_variable("temperature", "f4", (8, 6, 4), ("z", "y", "x"))
    run.create_variable("temperature", "f4", (8, 6, 5), version=1)
    assert [v.version for v in run.variables(variable="temperature")] == [0, 1]
    run.create_step(6, time=0.3)
    with pytest.raises(fst.Conflict, match=r"0\.3"):
        run.create_step(6, time=0.4)


def test_variables_and_steps_come_in_columns(store, run):
    run.create_variables(
        ["u", "v"], dtype=["f4", "f8"], shape=(4, 4), dims=("y", "x"), attrs=[{"a": 1}, None]
    )
    assert [(v.name, v.dtype.str, v.attrs) for v in run.variables(variable=["u", "v"])] == [
        ("u", "<f4", {"a": 1}),
        ("v", "<f8", {}),
    ]
    run.create_steps(np.arange(18, 36, 6), times=np.array([0.9, 1.2, 1.5]))
    assert [(s.run, s.step, s.time) for s in run.steps(step=slice(12, 30))] == [
        ("astro3d-42", 12, 0.6),
        ("astro3d-42", 18, 0.9),
        ("astro3d-42", 24, 1.2),
    ]
    run.create_steps(range(100, 103))
    assert [s.time for s in run.steps(step=[100, 102])] == [None, None]
    with pytest.raises(fst.Invalid, match="rows"):
        run.create_steps([1, 2], [0.5])
    with pytest.raises(fst.Invalid, match="2 names"):
        run.create_variables(["u", "v"], dtype=["f4"])


def test_wrong_declarations_are_invalid(run):
    with pytest.raises(fst.Invalid, match="not a dimension"):
        run.create_variable("a", "f8", (3,), ("x",), coords={"y": fst.uniform(0, 1)})
    with pytest.raises(fst.Invalid):
        run.create_variable("a", "f8", (3, 3), ("x",))
    with pytest.raises(fst.Invalid):
        run.create_variable("a", "nonsense", (3,))
    with pytest.raises(fst.Invalid):
        fst.uniform(0, 0)


# -- fields of runs


def test_write_archives_and_read_reads(store, run):
    array = np.random.default_rng(1).random((8, 6, 4))
    run.write("temperature", 6, array)
    store.flush()
    assert np.array_equal(run.read("temperature", 6), array)
    assert np.array_equal(run.read("temperature", 6, (2, 0, 1), (3, 6, 2)), array[2:5, :, 1:3])
    assert np.array_equal(store.get({"run": "astro3d-42", "variable": "temperature", "step": 6}), array)


def test_write_takes_pieces(store, run):
    array = np.arange(192.0).reshape(8, 6, 4)
    run.write("temperature", 6, array[:4], start=(0, 0, 0))
    store.flush()
    with pytest.raises(fst.NotFound):
        run.read("temperature", 6)
    run.write("temperature", 6, array[4:].astype(">f8"), start=(4, 0, 0))
    store.flush()
    assert np.array_equal(run.read("temperature", 6), array)


def test_write_checks_what_was_declared(store, run):
    with pytest.raises(fst.Invalid, match=r"float32.*temperature.*float64") as error:
        run.write("temperature", 6, np.zeros((8, 6, 4), "f4"))
    assert "astype" in error.value.hint
    with pytest.raises(fst.Invalid, match="start="):
        run.write("temperature", 6, np.zeros((4, 6, 4)))
    with pytest.raises(fst.Invalid):
        run.write("temperature", 6, np.zeros((4, 6, 4)), start=(6, 0, 0))
    with pytest.raises(fst.Invalid, match="no shape"):
        run.write("other", 6, np.zeros(4), start=0)


def test_rows_appear_by_themselves(store):
    run = store.create_run("r")
    run.write("u", 3, np.zeros((2, 2), "f4"))
    store.flush()
    (variable,) = run.variables()
    assert (variable.name, variable.dtype, variable.shape, variable.declared) == (
        "u",
        np.dtype("f4"),
        (2, 2),
        False,
    )
    assert [s.step for s in run.steps()] == [3]
    store.archive({"run": "plain", "variable": "v", "step": 1}, np.zeros(3))
    store.flush()
    assert [r.name for r in store.runs()] == ["plain", "r"]
    plain = store.run("plain")
    assert not plain.declared and plain.params == {}
    (field,) = store.list({"run": "plain"})
    assert plain.created == field.time  # as old as its first flushed field
    with pytest.raises(fst.Conflict):
        run.create_variable("u", "f8", (2, 2))


# -- tags


def test_tags_are_shared_by_runs_and_versioned(store):
    tag = store.create_tag("maximum", type="float", unit="K", version=0)
    assert (tag.name, tag.version, tag.type, tag.unit) == ("maximum", 0, "float", "K")
    assert store.create_tag("maximum", type="float", unit="K") == tag
    other = store.create_tag("maximum", type="int")
    assert (other.version, other.type, other.unit) == (1, "int", None)
    assert [(t.version, t.type) for t in store.tags()] == [(0, "float"), (1, "int")]


def test_annotate_says_the_unit_as_the_shell_does(store):
    run = store.create_run("a")
    run.create_steps([0, 6])
    run.annotate("hot", 310.5, unit="K")
    run.annotate("hot", 37.5, step=6, unit="degC")
    run.annotate("hot", 311, step=0, unit="K")  # a float's tag accepts any number that a float holds
    run.annotate_many("hot", [1.0, 2.0], step=[0, 6], unit="mK")
    assert [(t.unit, t.type) for t in store.tags(tag="hot")] == [
        ("K", "float"),
        ("degC", "float"),
        ("mK", "float"),
    ]
    assert [h.value for h in store.attributes(unit="K", order="value")] == [310.5, 311.0]
    assert [h.value for h in store.attributes(unit="degC")] == [37.5]
    tag = store.create_tag("hot", "float", "K")
    assert tag.version == 0
    run.annotate(tag, 312.0, unit="K")
    with pytest.raises(fst.Invalid, match='whose values are in "K"'):
        run.annotate(tag, 1.0, unit="degC")
    with store.transaction() as tx:
        assert tx.create_tag("cold", "float", "K").unit == "K"
        tx.run("a").annotate("cold", 3.0, unit="K")
        assert len(tx.tags(tag="cold")) == 1


def test_tags_come_in_columns(store):
    made = store.create_tags(["a", "b"], type=["bool", "text"], unit=None, version=3)
    assert [(t.name, t.type, t.version) for t in made] == [("a", "bool", 3), ("b", "text", 3)]
    assert list(store.tags()) == list(made)
    with pytest.raises(fst.Invalid, match="type has 1"):
        store.create_tags(["a", "b"], type=["bool"])
    with pytest.raises(fst.Invalid, match="flaot"):
        store.create_tag("c", type="flaot")


VALUES = [
    ("bool", True),
    ("bool", False),
    ("int", -(2**63)),
    ("int", 2**63 - 1),
    ("uint", 2**64 - 1),
    ("float", 0.1),
    ("float", math.inf),
    ("float", -0.0),
    ("text", "Grüße \0 \U0001f30d"),
    ("text", ""),
    ("bytes", b"\0\xff"),
    ("datetime", datetime(2026, 11, 21, 6, 0, 0, 1, tzinfo=UTC)),
    ("datetime", datetime(1815, 12, 10, tzinfo=UTC)),
    ("int_range", fst.int_range(-5, 9)),
    ("float_range", fst.float_range(-math.inf, 2.5)),
    ("json", {"a": [1, None, "x", {"b": True}], "c": 2.5}),
    ("json", [1, [2, []], {}]),
    ("json", 7),
]


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda v: str(v)[:20])
def test_values_come_back_as_they_were(tmp_path, kind, value, flushed):
    with fst.open(tmp_path / "store") as store:
        run = store.create_run("r")
        store.create_tag("t", type=kind)
        run.annotate("t", value)
        if flushed:
            store.flush()
        (hit,) = run.attributes(tag="t")
        assert hit.value == value and type(hit.value) is type(value)
        assert math.copysign(1, hit.value) == math.copysign(1, value) if kind == "float" else True
        assert [h.value for h in run.attributes(value=fst.equal(value))] == [value]


def test_other_spellings_of_values(store):
    run = store.create_run("r")
    given = {
        "f32": (np.float32(0.5), 0.5),
        "i8": (np.int8(-3), -3),
        "u8": (np.uint64(2**64 - 1), 2**64 - 1),
        "flag": (np.bool_(True), True),
        "text": (np.str_("x"), "x"),
        "view": (memoryview(b"ab"), b"ab"),
        "when": (
            np.datetime64("2026-11-21T06:00:00.000000001", "ns"),
            np.datetime64("2026-11-21T06:00:00.000000001"),
        ),
        "naive": (datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),
        "range": (range(5, 10), (5, 9)),
    }
    for tag, (value, _) in given.items():
        run.annotate(tag, value)
    for tag, (_, back) in given.items():
        (hit,) = run.attributes(tag=tag)
        assert hit.value == back
    store.create_tag("pair", type="float_range")
    run.annotate("pair", (1, 2.5))
    (hit,) = run.attributes(tag="pair")
    assert hit.value == fst.float_range(1, 2.5)


@pytest.mark.parametrize("moment", [np.datetime64("3000-01-01"), datetime(9999, 1, 1), datetime(1, 1, 1)])
def test_moments_beyond_nanoseconds_are_refused(store, moment):
    run = store.create_run("r")
    with pytest.raises(fst.Invalid, match="nanoseconds since 1970"):
        run.annotate("t", moment)
    assert len(run.attributes()) == 0


def test_a_run_of_a_clock_at_either_end_of_nanoseconds_is_in_tables(store):
    ends = [datetime(1677, 9, 21, 0, 12, 43, 145224, UTC), datetime(2262, 4, 11, 23, 47, 16, 854775, UTC)]
    for name, created in zip("ab", ends, strict=True):
        store.create_run(name, created=created)
    assert [run.created for run in store.runs()] == ends
    frame = store.runs().to_pandas()
    assert [moment.year for moment in frame["created"]] == [1677, 2262]
    assert store.runs().to_arrow().to_pandas()["created"].notna().all()
    with pytest.raises(fst.Invalid, match="nanoseconds since 1970"):
        store.create_run("c", created=ends[0] - timedelta(microseconds=1))


def test_arrays_are_values(store):
    run = store.create_run("r")
    run.annotate("a", np.array([1, 2, 3]))
    store.create_tag("b", type="array")
    run.annotate("b", [0.5, 2])
    run.annotate("c", np.array(["x", "yy"]))
    values = {h.tag: h.value for h in run.attributes()}
    assert values["a"].tolist() == [1, 2, 3] and values["a"].dtype == np.int64
    assert values["b"].tolist() == [0.5, 2.0]
    assert values["c"].tolist() == ["x", "yy"]
    assert [h.tag for h in run.attributes(value=fst.contains(2))] == ["a", "b"]
    with pytest.raises(fst.Invalid, match="2 dimensions"):
        run.annotate("a", np.zeros((2, 2)))


def test_nan_is_kept_and_matches_nothing_but_exists(store):
    run = store.create_run("r")
    run.annotate("t", math.nan)
    (hit,) = run.attributes(value=fst.exists())
    assert math.isnan(hit.value)
    for test in (fst.above(0), fst.below(0), fst.equal(math.nan), fst.between(-math.inf, math.inf)):
        assert len(run.attributes(value=test)) == 0


def test_numbers_compare_exactly_across_types(store):
    run = store.create_run("r")
    run.annotate("i", 2**53 + 1)
    run.annotate("f", float(2**53))
    run.annotate("b", True)
    assert [h.tag for h in run.attributes(value=fst.above(2.0**53))] == ["i"]
    assert [h.tag for h in run.attributes(value=2**53)] == ["f"]
    assert [h.tag for h in run.attributes(value=1)] == []
    assert [h.tag for h in run.attributes(value=True)] == ["b"]


def test_a_value_must_fit_its_tag(store):
    run = store.create_run("r")
    store.create_tag("t", type="float", unit="K")
    run.annotate("t", 3)
    assert [h.value for h in run.attributes(tag="t")] == [3.0]
    for value in ("x", 2**53 + 1, True, [1.0]):
        with pytest.raises(fst.Invalid, match="t"):
            run.annotate("t", value)
    with pytest.raises(fst.Invalid, match="None"):
        run.annotate("t", None)
    with pytest.raises(fst.Invalid):
        run.annotate("t", 1j)
    with pytest.raises(fst.Invalid):
        run.annotate("t", 2**64)
    with pytest.raises(fst.Invalid, match="not a tag"):
        run.annotate(3, 1.0)


def test_a_tag_is_named_in_three_ways(store):
    run = store.create_run("r")
    store.create_tag("t", type="float")
    second = store.create_tag("t", type="text")
    run.annotate("t", "by the type of the value")
    run.annotate(("t", 0), 1.5, step=1)
    run.annotate(second, "by the tag", step=2)
    assert [(h.tag_version, h.value) for h in run.attributes(order="step")] == [
        (1, "by the type of the value"),
        (0, 1.5),
        (1, "by the tag"),
    ]


# -- places of attributes


def test_an_attribute_stands_on_a_run_a_step_or_a_box(store, run):
    run.annotate("t", 1)
    run.annotate("t", 2, step=6)
    run.annotate("t", 3, variable="temperature")
    run.annotate("t", 4, variable="temperature", step=6)
    run.annotate("t", 5, variable="temperature", step=6, start=(1, 2, 0), count=(3, 1, 4))
    run.annotate("t", 6, variable="temperature", step=12, box=np.s_[0:2, 3:6, 1:2])
    places = {h.value: (h.variable, h.step, h.start, h.count) for h in run.attributes()}
    assert places == {
        1: (None, None, None, None),
        2: (None, 6, None, None),
        3: ("temperature", None, None, None),
        4: ("temperature", 6, None, None),
        5: ("temperature", 6, (1, 2, 0), (3, 1, 4)),
        6: ("temperature", 12, (0, 3, 1), (2, 3, 1)),
    }
    (five,) = run.attributes(value=5)
    assert five.box == (slice(1, 4), slice(2, 3), slice(0, 4)) and five.run == run.name
    assert dict(five.key) == {"run": "astro3d-42", "variable": "temperature", "step": "6"}
    assert five.time == 0.3 and five.variable_version == 0
    assert [h.value for h in run.attributes(scope="run")] == [1]
    assert [h.value for h in run.attributes(scope="step")] == [2]


def test_what_an_attribute_stands_on_must_be_there(store, run):
    with pytest.raises(fst.NotFound) as error:
        run.annotate("t", 1, variable="temprature", step=6)
    assert "temperature" in f"{error.value}"
    for start, count in [((6, 0, 0), (3, 1, 1)), ((0, 0), (1, 1)), ((0, 0, 0), (0, 1, 1))]:
        with pytest.raises(fst.Invalid):
            run.annotate("t", 1, variable="temperature", step=6, start=start, count=count)
    with pytest.raises(fst.Invalid, match="no count"):
        run.annotate("t", 1, variable="temperature", step=6, start=(0, 0, 0))
    with pytest.raises(fst.Invalid):
        run.annotate("t", 1, start=(0,), count=(1,))
    with pytest.raises(fst.Invalid, match="annotate_many"):
        run.annotate("t", 1, step=[1, 2])
    with pytest.raises(fst.Invalid, match="box"):
        run.annotate("t", 1, variable="temperature", box=np.s_[0:2, 1:], step=1)
    assert len(run.attributes()) == 0


def test_annotating_the_same_place_again_is_a_correction(store, run):
    place = {"variable": "temperature", "step": 6, "start": (0, 0, 0), "count": (1, 1, 1)}
    run.annotate("t", 1.0, **place)
    run.annotate("t", 2.0, **place)
    assert [h.value for h in run.attributes()] == [2.0]
    store.flush()
    run.annotate("t", 3.0, **place)
    assert [h.value for h in run.attributes()] == [3.0]


def test_a_step_appears_by_its_attribute(store, run):
    run.annotate("t", 1.0, step=99)
    assert [s.step for s in run.steps()] == [0, 6, 12, 99]


# -- visibility, other processes


def test_changes_are_visible_at_once_here_and_at_flush_to_all(store, run):
    run.annotate("t", 1.0)
    assert len(store.attributes(tag="t")) == 1
    with pytest.raises(fst.NotFound):
        fst.open(store.url, "r")
    store.flush()
    other = fst.open(store.url, "r")
    assert len(other.attributes(tag="t")) == 1
    run.annotate("t", 2.0, step=6)
    assert (len(store.attributes(tag="t")), len(other.attributes(tag="t"))) == (2, 1)
    store.flush()
    assert len(other.attributes(tag="t")) == 2


def test_a_reader_may_not_write(store, run):
    store.flush()
    reader = fst.open(store.url, "r")
    for write in (
        lambda: reader.create_run("b"),
        lambda: reader.create_tag("t", type="int"),
        lambda: reader.run("astro3d-42").annotate("t", 1),
        lambda: reader.run("astro3d-42").create_step(1),
        lambda: reader.delete(run="astro3d-42", doit=True),
    ):
        with pytest.raises(fst.Denied):
            write()


def test_an_older_version_has_its_own_catalog(store, run):
    run.annotate("t", 1.0)
    store.flush()
    before = store.version
    run.annotate("t", 2.0)
    store.flush()
    with fst.open(store.url, at=before) as old:
        assert [h.value for h in old.attributes(tag="t")] == [1.0]


def test_an_exception_discards_and_a_close_keeps(tmp_path):
    url = tmp_path / "store"
    with fst.open(url) as store:
        store.create_run("kept").annotate("t", 1)
    with pytest.raises(RuntimeError), fst.open(url) as store:
        store.create_run("lost")
        raise RuntimeError
    with fst.open(url, "r") as store:
        assert [r.name for r in store.runs()] == ["kept"]
        assert [h.value for h in store.attributes()] == [1]


def test_a_run_pickles(store, run):
    store.flush()
    again = pickle.loads(pickle.dumps(run))
    assert again == run and again.params == run.params
    again.annotate("t", 5)
    again.store.flush()
    assert [h.value for h in run.attributes()] == [5]
    again.store.close()


def test_in_memory(tmp_path):
    with fst.open("memory:") as store:
        run = store.create_run("r")
        run.annotate("t", 1)
        assert [h.value for h in store.attributes()] == [1]
        store.flush()
        assert [h.value for h in store.attributes()] == [1]


def test_rebuild_and_lost_files_change_no_answer(store, run):
    run.annotate_many("t", np.arange(100.0), step=np.arange(100))
    store.flush()
    before = store.attributes(tag="t", order="step").to_arrow().values("value")
    report = store.rebuild()
    assert report.attributes == 100 and report.engine
    assert store.attributes(tag="t", order="step").to_arrow().values("value") == before
    assert store.conflicts() == []


# -- automatic flushes


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


def test_a_long_lived_writer_flushes_by_itself(tmp_path):
    url = tmp_path / "store"
    with fst.open(url, autoflush=0.05) as store:
        run = store.create_run("r")
        run.annotate("t", 1)
        store.archive({"run": "r", "variable": "u", "step": 1}, np.zeros(3))
        until(lambda: store.unflushed == 0)
        with fst.open(url, "r") as reader:
            assert [h.value for h in reader.attributes()] == [1] and len(list(reader.list())) == 1
    for seconds in (-1, math.nan):
        with pytest.raises(fst.Invalid, match="autoflush"):
            fst.open(tmp_path / "other", autoflush=seconds)
    with fst.open(url, "r", autoflush=1) as reader:
        assert reader.runs()[0].name == "r"


def test_what_fails_while_it_flushes_by_itself_is_raised_by_the_next_call(tmp_path):
    url = tmp_path / "store"
    store = fst.open(url, autoflush=0.5)
    store.create_run("r")
    url.write_text("a file where the store's folder should be")

    def failed():
        try:
            store.unflushed  # noqa: B018  (any call raises)
        except fst.Error as error:
            return "flushing automatically" in str(error)
        return False

    until(failed)
    url.unlink()
    store.close()
    with fst.open(url, "r") as reader:
        assert [run.name for run in reader.runs()] == ["r"]

"""Input that is too deep, too large, endless or inconsistent is refused, without other harm."""

from __future__ import annotations

import collections.abc
import contextlib
import gc
import itertools
import re
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import fieldstone as fst
import fieldstone.container
import numpy as np
import pytest
from fieldstone._native import _Query

LEVELS = "nested more than 64 levels"


def own_list() -> list[Any]:
    held: list[Any] = []
    held.append(held)
    return held


def own_dict() -> dict[str, Any]:
    held: dict[str, Any] = {}
    held["x"] = held
    return held


def own_array() -> Any:
    held = np.empty(1, object)
    held[0] = held
    return held


def nested(levels: int) -> Any:
    held: Any = 1
    for _ in range(levels):
        held = [held]
    return held


def doubled(levels: int, of: Any = 1) -> Any:
    """Few objects that represent 2**levels elements."""
    held: Any = [of]
    for _ in range(levels):
        held = [held, held]
    return held


HOLD = {
    "list": own_list,
    "dict": own_dict,
    "array": own_array,
    "20,000 lists": lambda: nested(20_000),
    "a list of dicts": lambda: [{"x": nested(100)}],
}


@pytest.fixture
def store() -> Iterator[fst.Store]:
    with fst.open("memory:") as store:
        run = store.create_run("r")
        run.create_variables(["v"], dtype="f4", shape=(4,))
        store.create_tag("t", type="json")
        store.create_tag("f", type="float")
        store.flush()
        yield store


USES: dict[str, Callable[[fst.Store, Any], Any]] = {
    "above": lambda store, x: fst.above(x),
    "between": lambda store, x: fst.between(1, x),
    "isin": lambda store, x: fst.isin([x]),
    "contains": lambda store, x: fst.contains(x),
    "where value": lambda store, x: fst.where(value=x),
    "where params": lambda store, x: fst.where(params={"a": x}),
    "where time": lambda store, x: fst.where(time=x),
    "create_run params": lambda store, x: store.create_run("a", params={"x": x}),
    "annotate": lambda store, x: store.run("r").annotate("t", x),
    "annotate a new tag": lambda store, x: store.run("r").annotate("new", x),
    "annotate many": lambda store, x: store.run("r").annotate_many("t", [1, x], step=[0, 1]),
    "annotate a variable": lambda store, x: store.run("r").annotate("t", x, variable="v", step=0),
    "attrs": lambda store, x: store.run("r").create_variables(["w"], attrs=[{"a": x}]),
    "attributes": lambda store, x: list(store.attributes(value=x)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", HOLD)
def test_values_that_hold_themselves_and_deep_nests_are_refused(
    store: fst.Store, use: str, kind: str
) -> None:
    with pytest.raises(fst.Invalid, match=LEVELS):
        USES[use](store, HOLD[kind]())
    assert store.run("r").name == "r"  # the store still works


NAMES: dict[str, Callable[[fst.Store, Any], Any]] = {
    **{
        f"where {term}": lambda store, x, term=term: fst.where(**{term: x})
        for term in ("run", "tag", "variable", "project", "job", "unit", "step", "where")
    },
    "runs": lambda store, x: list(store.runs(run=x)),
    "where positional": lambda store, x: fst.where(x),
}


@pytest.mark.parametrize("use", NAMES)
def test_names_and_steps_in_lists_in_lists_are_refused(store: fst.Store, use: str) -> None:
    for held in (own_list(), nested(20_000)):
        with pytest.raises(fst.Invalid, match=LEVELS):
            NAMES[use](store, held)


@pytest.mark.parametrize("held", HOLD)
def test_keys_and_requests_take_no_nests(store: fst.Store, held: str) -> None:
    value = HOLD[held]()
    for call in (
        lambda: store.archive({"run": value, "variable": "v", "step": 0}, b""),
        lambda: store.get({"run": value, "variable": "v", "step": 0}),
        lambda: store.retrieve({"run": [value]}),
        lambda: store.list({"run": value}),
        lambda: fst.Request(run=value),
        lambda: fst.Request({"run": {"run": value}}),
    ):
        with pytest.raises((fst.Invalid, TypeError)):
            call()


def test_attributes_of_containers_take_no_nests(tmp_path: Any) -> None:
    with fieldstone.container.create(tmp_path / "c.nc") as file:
        file.def_dim("x", 2)
        variable = file.def_var("v", "f4", ["x"])
        for make in HOLD.values():
            held = make()
            for call in (
                lambda held=held: file.attrs.__setitem__("a", held),
                lambda held=held: variable.attrs.__setitem__("a", held),
                lambda held=held: file.def_var("w", "f4", ["x"], {"a": held}),
                lambda held=held: file.def_many(["w"], "f4", "x", [{"a": held}]),
            ):
                with pytest.raises((fst.Invalid, TypeError, ValueError)):
                    call()


@pytest.mark.parametrize("inside", [1, [], [1], {"a": None}, np.array([1, 2]), np.array([])])
def test_what_is_taken_at_the_limit_is_read_back(store: fst.Store, inside: Any) -> None:
    taken = []
    for levels in (62, 63, 64, 65):
        held: Any = inside
        for _ in range(levels):
            held = [held]
        try:
            store.run("r").annotate("t", held, step=levels)
        except fst.Invalid as error:
            assert re.search(LEVELS, error.message)
        else:
            taken.append(levels)
    assert 62 in taken and 65 not in taken
    store.flush()
    assert sorted(hit.step for hit in store.attributes(tag="t")) == taken


def test_few_objects_that_stand_for_too_many_values_are_refused(store: fst.Store) -> None:
    for call in (
        lambda: store.run("r").annotate("t", doubled(60)),
        lambda: fst.above(doubled(60)),
        lambda: fst.where(run=doubled(60, "a")),
        lambda: fst.where(step=doubled(60)),
    ):
        with pytest.raises(fst.Invalid, match="more than 1000000 elements"):
            call()
    with pytest.raises(fst.Invalid, match="more than 1000000 elements"):
        empty: list[Any] = []
        for _ in range(60):
            empty = [empty, empty]
        fst.where(empty)


class Endless(list[Any]):
    """A list whose iteration never ends."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(1)


def test_iterables_without_end_are_refused() -> None:
    for endless in (itertools.count(), range(2**63, 2**70), Endless([1])):
        with pytest.raises(fst.Invalid):
            fst.isin(endless)
    with pytest.raises(fst.Invalid, match="more than 1000000 elements"):
        fst.equal(Endless())
    with pytest.raises(fst.Invalid, match="more than 1000000"):
        fst.isin(range(2**62, 2**63))
    with pytest.raises(fst.Invalid):
        fst.where(step=itertools.count())
    with pytest.raises(fst.Invalid):
        fst.open("memory:").archive(
            "run=a,variable=v,step=0", np.zeros(1), start=itertools.count(), shape=(1,)
        )


class Hints:
    """An iterator whose length hint is wrong, or as given."""

    def __init__(self, items: Any, hint: Any) -> None:
        self.items, self.hint = iter(items), hint

    def __iter__(self) -> Hints:
        return self

    def __next__(self) -> Any:
        return next(self.items)

    def __length_hint__(self) -> int:
        if isinstance(self.hint, type):
            raise self.hint("no hint")
        return int(self.hint)


@pytest.fixture
def ignored(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The text that Python would have printed as "Exception ignored"."""
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    return told


def test_hints_of_length_are_not_asked_for(ignored: list[Any]) -> None:
    for hint in (2**62, -5, RuntimeError, KeyboardInterrupt):
        assert repr(fst.isin(Hints([1, 2], hint))) == repr(fst.isin([1, 2]))
        assert repr(fst.where(run=Hints(["a"], hint))) == repr(fst.where(run=["a"]))
        assert repr(fst.where(step=Hints([1, 2], hint))) == repr(fst.where(step=[1, 2]))
        assert fst.Request(step=Hints([0, 6], hint)) == fst.Request(step=[0, 6])
    assert not ignored


def test_an_interrupt_is_heard_while_items_come(ignored: list[Any]) -> None:
    def interrupts(*_: Any) -> None:
        raise KeyboardInterrupt

    # No Python code runs between the items, in which Python itself would notice the signal.
    endless = itertools.repeat("run=a,variable=v,step=0")
    before = signal.signal(signal.SIGALRM, interrupts)
    try:
        with fst.open("memory:") as store, pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            store.archive_many(endless, [])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not ignored


def test_an_interrupt_within_an_argument_is_no_error_of_it(store: fst.Store) -> None:
    class Interrupts:
        def stop(self, *_: Any) -> Any:
            raise KeyboardInterrupt

        __index__ = __float__ = __iter__ = __len__ = stop

    for call in (
        lambda x: fst.where(run=x),
        lambda x: fst.where(step=x),
        lambda x: fst.where(step=[1, x]),
        lambda x: fst.where(step=slice(0, x)),
        lambda x: fst.where(box={0: slice(0, x)}),
        lambda x: fst.where(version=x),
        lambda x: list(store.attributes(limit=x)),
        lambda x: fst.Request(step=x),
        lambda x: fst.Request(step=slice(0, x)),
        lambda x: store.run("r").annotate("f", 1.0, variable="v", step=x),
        lambda x: store.run("r").annotate("f", 1.0, variable="v", step=0, start=[x], count=[1]),
        lambda x: store.archive("run=a,variable=v,step=0", np.zeros(1), start=x, shape=(1,)),
    ):
        with pytest.raises(KeyboardInterrupt):
            call(Interrupts())


class Lies(collections.abc.Sequence[Any]):
    """A sequence with a length of its choice, and two items."""

    def __init__(self, length: Any, items: tuple[Any, ...] = ("run", "step")) -> None:
        self.length, self.items = length, items

    def __len__(self) -> int:
        if isinstance(self.length, type):
            raise self.length("no length")
        return int(self.length)

    def __getitem__(self, place: Any) -> Any:
        return self.items[place]


LENGTHS = [2**62, 2**40, -1, 10**30, RuntimeError, MemoryError]


@pytest.mark.parametrize("length", LENGTHS, ids=str)
def test_a_length_that_is_wrong_is_not_believed(store: fst.Store, tmp_path: Any, length: Any) -> None:
    key = fst.open("memory:")
    key.archive("run=a,variable=v,step=0", b"x")
    key.flush()
    held = next(iter(key.list())).key
    restore, (levels, kinds) = held.__reduce__()

    def lie(items: Any) -> Any:
        return Lies(length, tuple(items))

    assert restore(lie(lie(level) for level in levels), lie(kinds)) == held
    cubes, _ = key._cubes(along=Lies(length, ("step",)))
    assert len(cubes) == 1
    assert len(store.attributes().aggregate(lie(["run"]))) == 0
    assert [tag.name for tag in store.create_tags(lie(["p", "q"]), type=lie(["int", "float"]))] == ["p", "q"]
    assert fst.Request(run=lie(["a"])) == fst.Request(run=["a"])
    store.run("r").create_variables(lie(["w"]), dtype="f4", shape=lie((4,)), dims=lie(("x",)))
    store.run("r").create_variable("u", "f4", (2,), ("x",), coords={"x": lie([1.0, 2.0])})
    with fieldstone.container.create(tmp_path / "c.nc") as file:
        file.def_dim("x", 3)
        variable = file.def_var("v", "f4", lie(["x"]))
        file.enddef()
        variable.put(np.zeros(3, "f4"), start=lie([0]), count=lie([3]))
        assert variable.get(start=lie([0]), count=lie([3])).shape == (3,)
    # The result is an array, or one of our errors.
    calls: list[Callable[[], Any]] = [
        lambda: store.run("r").annotate_many("f", lie([1.0, 2.0]), step=lie([0, 1])),
        lambda: store.run("r").annotate("f", 1.0, variable="v", step=0, start=lie([0]), count=lie([1])),
        lambda: store.run("r").create_steps(lie([0, 1])),
        lambda: fst.where(version=lie([0, 1])),
        lambda: fst.isin(lie([0, 1])),
        lambda: key.retrieve(lie(["run=a"])),
    ]
    for call in calls:
        with contextlib.suppress(fst.Error, TypeError, ValueError):
            call()


def test_hits_of_columns_that_do_not_fit_are_refused(store: fst.Store) -> None:
    store.run("r").annotate_many("f", [1.0, 2.0], variable="v", step=[0, 1], start=[0], count=[1])
    restore, state = store._catalog().hits(_Query(None, {"tag": "f"})).__reduce__()
    assert len(restore(*state)) == 2
    names, when, versions, values, (offsets, start, count, cells, keywords), users = state
    for wrong in (
        (names[:4], when, versions, values, (offsets, start, count, cells, keywords)),
        (
            [(codes[:1], words) for codes, words in names],
            when,
            versions,
            values,
            (offsets, start, count, cells, keywords),
        ),
        (names, (when[0], when[1][:1]), versions, values, (offsets, start, count, cells, keywords)),
        (names, when, (versions[0], []), values, (offsets, start, count, cells, keywords)),
        (names, when, versions, values[:1], (offsets, start, count, cells, keywords)),
        (names, when, versions, values, (offsets[:2], start, count, cells, keywords)),
        (names, when, versions, values, ([0, 2, 1], start, count, cells, keywords)),
        (names, when, versions, values, ([0, 1, 9], start, count, cells, keywords)),
        (names, when, versions, values, (offsets, start, count[:1], cells, keywords)),
        (names, when, versions, values, (offsets, start, count, [(2, 0, [1])], keywords)),
        (names, when, versions, values, (offsets, start, count, [(1, 0, [1]), (0, 0, [1])], keywords)),
        (names, when, versions, values, (offsets, start, count, cells, [(2, [("number", "1")])])),
    ):
        with pytest.raises(fst.Invalid, match="pickled by something else"):
            restore(*wrong, users)
    with pytest.raises(fst.Invalid, match="pickled by something else"):
        restore(
            names,
            when,
            versions,
            values,
            (offsets, start, count, cells, keywords),
            (users[0][:1], *users[1:]),
        )


class Turns(int):
    """A number that changes the dict that contains it while it is read."""

    within: dict[str, Any]

    def __str__(self) -> str:
        self.within.clear()
        self.within.update({str(n): n for n in range(100)})
        return "6"


def test_a_dict_that_changes_while_it_is_read_is_read_as_it_was(store: fst.Store) -> None:
    step = Turns(6)
    key = {"step": step, "run": "a", "variable": "v"}
    step.within = key
    store.archive(key, b"x")
    store.flush()
    assert store.get("run=a,variable=v,step=6") == b"x"


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda w, more: w & more,
    "or": lambda w, more: w | more,
    "and before": lambda w, more: more & w,
    "or before": lambda w, more: more | w,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [lambda: fst.where(run="b"), lambda: fst.above(1)], ids=["where", "test"])
def test_long_chains_are_built_shown_and_dropped(way: str, make: Callable[[], Any]) -> None:
    # With a copy for each term there would be 20,000,000,000 copies, and no test run would end.
    chain = make()
    for _ in range(200_000):
        chain = WAYS[way](chain, make())
    assert len(repr(chain)) < 1000
    del chain
    gc.collect()


def test_chains_are_asked_and_mean_what_they_say(store: fst.Store) -> None:
    chain = fst.where(run="none")
    for i in range(20_000):
        chain = chain | fst.where(run=f"r{i}")
    assert len(store.attributes(chain)) == 0
    assert [run.name for run in store.runs(chain | fst.where(run="r"))] == ["r"]
    assert [run.name for run in store.runs(~chain)] == ["r"]
    store.run("r").annotate("f", 5.0, variable="v", step=0)
    test = fst.above(1)
    for i in range(20_000):
        test = test & fst.below(10 + i)
    assert len(store.attributes(value=test)) == 1
    assert len(store.attributes(value=~test)) == 0
    assert len(store.attributes(value=test & fst.below(4))) == 0
    # The part in between keeps its place.
    either = (fst.where(run="a") & fst.where(tag="f")) | fst.where(run="r") & ~fst.where(tag="f")
    assert repr(either) == "<fieldstone.Where run=a and tag=f or run=r and not tag=f>"
    assert len(store.attributes(either)) == 0
    assert len(store.attributes(~either)) == 1


def test_not_is_taken_back(store: fst.Store) -> None:
    for make in (lambda: fst.where(run="r"), lambda: fst.equal("r")):
        turned = make()
        for _ in range(200_000):
            turned = ~turned
        assert repr(turned) == repr(make())
        assert [run.name for run in store.runs(run="r")] == ["r"]


def test_what_grows_by_levels_or_doubles_is_refused_at_the_limit() -> None:
    def until_refused(step: Callable[[Any], Any], begin: Any) -> tuple[int, str]:
        grown = begin
        for n in range(1000):
            try:
                grown = step(grown)
            except fst.Invalid as error:
                assert error.hint is not None and "ask for less" in error.hint
                repr(grown)
                return n, error.message
        raise AssertionError("nothing was refused")

    where, test = fst.where(run="a"), fst.above(1)
    for begin in (where, test):
        levels, told = until_refused(lambda w, begin=begin: ~(w & begin), begin)
        assert levels == 50 and "100 levels" in told
        levels, told = until_refused(lambda w, begin=begin: (w & begin) | begin, begin)
        assert levels == 50 and "100 levels" in told
        doublings, told = until_refused(lambda w: w & w, begin)
        assert doublings < 20 and "1000000 terms" in told
        doublings, told = until_refused(lambda w: w | w, begin)
        assert doublings < 20 and "1000000 terms" in told
    levels, told = until_refused(lambda w: fst.where(with_related=fst.related("same run", where=w)), where)
    assert levels == 100 and "100 levels" in told
    # A condition in a condition does not count as a level.
    inner = where
    for _ in range(1000):
        inner = fst.where(inner, tag="t")


def test_text_has_the_same_limit(store: fst.Store) -> None:
    with pytest.raises(fst.Invalid, match="more than 100 levels"):
        store.find("with same run (run=a and " * 51 + "run=b" + ")" * 51)
    store.find("with same run (run=a and " * 49 + "run=b" + ")" * 49)
    assert len(store.find(" or ".join(["run=a"] * 50_000))) == 0

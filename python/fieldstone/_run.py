"""Runs: what a simulation declares, writes, tags and reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import index
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ._graph import Graph
from ._hits import Hits
from ._native import Test, _items, _name_at, _write_xdmf
from ._outside import Object, objects
from ._outside import read as outside
from ._rows import Rows, Step, Tag, Variable
from ._terms import TermsOfRun
from ._values import Uniform
from .errors import Invalid, NotFound
from .reports import XdmfReport

if TYPE_CHECKING:
    from ._lineage import Lineage
    from ._native import Table, _Where
    from ._store import Store


class Run:
    """A run: its variables, steps, fields and attributes. Made by ``store.create_run`` and ``store.run``.

    Pickling keeps the store's URL and the run's name. A run of a transaction (``tx.run``) writes into it.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        project: str | None = None,
        txn: str | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        self.store = store
        self.name = name
        self.project = project or None
        self._txn = txn
        self._known = info

    # -- what it is

    @property
    def _info(self) -> dict[str, Any]:
        if self._known is None:
            self._known = self.store._catalog().run(self.project or "", self.name, self._txn)
        return self._known

    @property
    def params(self) -> dict[str, Any]:
        """Its parameters, by name; a dict that refuses to be changed, as they never change."""
        return Params(self._info["params"])

    @property
    def created(self) -> datetime | None:
        """When it was created, in UTC; where only fields name it, when the first of them was flushed."""
        return self._info["created"]

    @property
    def job(self) -> str | None:
        """The job that made it, as the batch system named it."""
        return self._info["job"]

    @property
    def notes(self) -> str | None:
        """Notes."""
        return self._info["notes"]

    @property
    def grid(self) -> Any:
        """What its grid is; free."""
        return self._info["grid"]

    @property
    def outside(self) -> Any:
        """Where its data lie, if outside of the store."""
        return self._info["outside"]

    @property
    def declared(self) -> bool:
        """Whether ``create_run`` declared it; else fields name it."""
        return self._info["declared"]

    @property
    def state(self) -> str:
        """How it goes: "running", "finished", "failed", or "unknown" where nobody said anything, or the
        process that said that it runs is gone.
        """
        return self.store._catalog().state(self._pair, self._txn)[0]

    @property
    def failure(self) -> str | None:
        """Why it failed; None of a run that did not."""
        return self.store._catalog().state(self._pair, self._txn)[1]

    def begin(self) -> None:
        """Says that it is running, and flushes. ``with store.create_run(…) as run:`` does so, and says at the
        end of the block that it finished, or failed. Denied where the run is another's.
        """
        self.store._catalog().set_state(self._pair, "running", "", self._txn)

    def finish(self) -> None:
        """Says that it finished, and flushes."""
        self.store._catalog().set_state(self._pair, "finished", "", self._txn)

    def fail(self, why: str = "") -> None:
        """Says that it failed, and why: visible to all when this returns. What was archived and not
        flushed is not flushed by it.
        """
        self.store._catalog().set_state(self._pair, "failed", why, self._txn)

    def __enter__(self) -> Run:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            self.fail(f"{type(error).__name__}: {error}")

    @property
    def annotators(self) -> str:
        """Who may annotate it: "all", each under the own name, or its "owner" alone."""
        return self._info["annotate"]

    @property
    def _pair(self) -> tuple[str | None, str]:
        return self.project, self.name

    # -- declarations

    def create_variable(
        self,
        name: str,
        dtype: Any = None,
        shape: int | tuple[int, ...] | None = None,
        dims: tuple[str, ...] | None = None,
        *,
        version: int = 0,
        attrs: Mapping[str, Any] | None = None,
        coords: Mapping[str | int, Any] | None = None,
        decomposition: int | tuple[int, ...] | None = None,
        find: Any = None,
        level: int | None = None,
    ) -> Variable:
        """Declares a variable for the whole run: its dtype, global shape and names of dimensions.

        `attrs` are its own attributes, such as ``{"units": "K"}``. `coords` are coordinates by dimension:
        ``fst.uniform(first, spacing)``, an array with one an element, or text that names another kind of
        grid. `decomposition` are the extents in which it is written; `find` the features that ``run.write``
        looks for in each piece: "min", "max", "mean", tests such as ``fst.above(9000)``, or a dict of tags
        and tests. With `level` it is on this level of an adaptive mesh, and ``level_1/rho`` its whole name.
        The same again is no error; other content is Conflict.
        """
        name = _at(name, level)
        row = _variable(name, dtype, shape, dims, version, attrs, coords, decomposition, find)
        self.store._catalog().create_variables(self._pair, [row], self._txn)
        return Variable(**self.store._catalog().declared(self._pair, name, version, self._txn))

    def create_variables(
        self,
        names: Iterable[str],
        *,
        dtype: Any = None,
        shape: Any = None,
        dims: Any = None,
        version: int | Iterable[int] = 0,
        attrs: Any = None,
        coords: Any = None,
        decomposition: Any = None,
        find: Any = None,
        level: Any = None,
    ) -> None:
        """Declares many variables; every other argument is one for all, or a list with one each."""
        names = _items(names)
        names = [_at(name, of) for name, of in zip(names, _each(level, names), strict=True)]
        columns = [dtype, shape, dims, version, attrs, coords, decomposition, find]
        each = [_each(column, names) for column in columns]
        rows = [_variable(name, *row) for name, *row in zip(names, *each, strict=True)]
        self.store._catalog().create_variables(self._pair, rows, self._txn)

    def create_step(self, number: int, time: float | None = None) -> Step:
        """Declares a step and its time, in the run's unit. Another time for the same step is Conflict."""
        self.store._catalog().create_steps(self._pair, [number], None if time is None else [time], self._txn)
        return Step(self.name, int(number), None if time is None else float(time), self.project)

    def create_steps(self, numbers: Any, times: Any = None) -> None:
        """Declares many steps: whole numbers and, where given, as many times."""
        self.store._catalog().create_steps(self._pair, numbers, times, self._txn)

    # -- fields

    def write(
        self,
        variable: str,
        step: int | None,
        array: Any,
        start: int | tuple[int, ...] | None = None,
        *,
        chunks: Any = None,
        compression: str | None = None,
        exist: Literal["new", "error"] | None = None,
        level: int | None = None,
    ) -> None:
        """Takes an array as variable `variable` at `step`: the whole, or the piece that begins at `start`.

        The array has the declared dtype (in either byte order) and, without `start`, the declared shape;
        Invalid otherwise. A variable that was not declared is as its first array is. It is visible after
        ``store.flush()``. Where the field is there, `exist` "error" is Conflict, at the call and again at
        the flush, and "new" makes a newer version; without it as the run says, or else the store. With
        `level` it is the variable of that name on this level of an adaptive mesh.
        """
        import numpy as np

        self.store._catalog().write(
            self._pair,
            _at(variable, level),
            _step(step),
            np.asanyarray(array),
            start,
            chunks,
            compression,
            exist,
            self._txn,
        )

    def to_xdmf(self, path: str | PathLike[str], mesh: str | None = None) -> XdmfReport:
        """Writes a text by which ParaView shows all flushed steps of this run's fields on a mesh.

        No value is copied: the text (XDMF) names places in the store's files, seen from where it stands. Only
        where elements of a mesh are of several kinds their nodes are written beside it. `mesh` is needed
        where the run has groups on several. NotFound where it has none; variables that XDMF cannot show are
        in the report's ``left_out``, with the reason.
        """
        found = _write_xdmf(self.store, self.project or "", self.name, mesh, os.fspath(path), self._txn)
        files, variables, steps, left_out = (tuple(items) for items in found)
        return XdmfReport(files, variables, steps, left_out)

    def lineage(self, **options: Any) -> Lineage:
        """Where it came from, or what came from it: a `Lineage` of the run and of the commits that its fields
        came by. The options are those of ``Graph.trace``.
        """
        return Graph(self.store).trace(self, **options)

    def _key(self, variable: str | None, step: int | None) -> Any:
        return self.store._catalog().key_of(self._pair, variable, _step(step))

    def read(
        self,
        variable: str,
        step: int | None = None,
        start: Any = None,
        count: Any = None,
        *,
        level: int | None = None,
    ) -> Any:
        """The array of a variable at a step, or the box of it at `start` with extents `count`.

        Of a run that was declared with `outside`, what the store does not hold is read from its files:
        those that the box touches. With `level` it is the variable of that name on this level.
        """
        variable = _at(variable, level)
        try:
            return self.store.get(self._key(variable, step), start, count, txn=self._txn)
        except NotFound as missing:
            return outside(self.store, self._pair, variable, None, step, start, count, self._txn, missing)

    def objects(
        self,
        variable: str,
        step: int | None = None,
        start: Any = None,
        count: Any = None,
        *,
        version: int | None = None,
    ) -> list[Object]:
        """The objects outside of the store that a box of a variable lies in, or is to be written to.

        Of a run that was declared with `outside`, for a writer of its own. Each ``Object`` has ``path``,
        ``dataset`` (the variable in it), ``start`` and ``count`` of the object in the variable's index space,
        and ``part``, the slices of a buffer of the box that go into it. In C order. Names are computed; no
        file is opened. Invalid where the run declares no `outside`, and for a box that is not within the
        variable.
        """
        return objects(self.store, self._pair, variable, version, step, start, count, self._txn)

    def last_step(self, variables: Iterable[str] | None = None) -> int | None:
        """The newest step that is whole, or None: at which each variable has its field, every element of it
        is there, and no two are of different attempts of a job. What a simulation goes on from.

        `variables` are those that count; without them the declared ones, or, where none was declared, those
        of the run's fields. A variable that has a field without a step, and none with one, does not count.
        """
        named = None if variables is None else _items(variables)
        return self.store._catalog().last_step(self._pair, named, self._txn)

    # -- attributes

    def annotate(
        self,
        tag: str | tuple[str, int] | Tag,
        value: Any,
        *,
        variable: str | None = None,
        step: int | None = None,
        start: Any = None,
        count: Any = None,
        box: Any = None,
        cells: Any = None,
        keywords: dict[str, Any] | None = None,
        version: int = 0,
        unit: str | None = None,
        level: int | None = None,
    ) -> None:
        """Takes one attribute: `value` under `tag`, on a box of a variable at a step.

        No variable: on the step; no step: on the run; no start: on the whole variable. `start` and `count`
        are elements per dimension, half-open; `box`, a tuple of slices, says the same. `cells`, in place of a
        box: indices along the mesh's dimension of a variable on a mesh, else along its first dimension, in
        any order; all elements of the other dimensions. The variable's shape has to be declared. `keywords`:
        further keywords of the schema, such as ``{"number": 3}``, by which the hit's key names its field.
        `version` is the variable's, `level` the level of an adaptive mesh that it is on. A tag that nobody
        declared is made with the type of the value; with `unit` the tag of the name in this unit is meant,
        beside others of the name. Annotating the same place again is a correction: the newer value counts.
        Visible to this process at once, to all at flush.
        """
        start, count = _start_count(start, count, box)
        place = (variable, version, step, start, count, cells, keywords, level)
        self.store._catalog().annotate(self._pair, _tag(tag), value, *place, unit, False, self._txn)

    def annotate_many(
        self,
        tag: str | tuple[str, int] | Tag,
        values: Any,
        *,
        variable: Any = None,
        step: Any = None,
        start: Any = None,
        count: Any = None,
        cells: Any = None,
        keywords: dict[str, Any] | None = None,
        version: int = 0,
        unit: str | None = None,
        level: Any = None,
    ) -> None:
        """Takes many attributes of one tag, by columns: each argument is one value for all rows, or a numpy
        array, Arrow array, pandas Series or list with one a row; `start` and `count` one box, or arrays of
        shape (rows, dimensions); `cells` one set for all rows, or a list of sets, one a row; each of
        `keywords` one value, or one a row; `unit` as in ``annotate``, `level` as well, or one a row.

        All rows are kept, also several at one place. One call is all or nothing.
        """
        place = (variable, version, step, start, count, cells, keywords, level)
        self.store._catalog().annotate(self._pair, _tag(tag), values, *place, unit, True, self._txn)

    # -- what is there

    def _terms(self, terms: Mapping[str, Any]) -> dict[str, Any]:
        own = {"run": Test().equal(self.name), "project": Test().equal(self.project or "")}
        given = [name for name in own if terms.get(name) is not None]
        if given:
            raise Invalid(f"{given[0]}= on run {self.name}", "ask the store for other runs")
        return {**own, "txn": self._txn, **terms}

    def attributes(self, where: _Where = None, /, *, comm: Any = None, **terms: Unpack[TermsOfRun]) -> Hits:
        """The attributes of this run for which all terms hold; see ``Store.attributes``."""
        return self.store.attributes(where, comm=comm, **self._terms(terms))

    def steps(self, where: _Where = None, /, **terms: Unpack[TermsOfRun]) -> Rows[Step]:
        """Its steps; see ``Store.steps``."""
        return self.store.steps(where, **self._terms(terms))

    def variables(self, where: _Where = None, /, **terms: Unpack[TermsOfRun]) -> Rows[Variable]:
        """Its variables; see ``Store.variables``."""
        return self.store.variables(where, **self._terms(terms))

    def tags(self, where: _Where = None, /, **terms: Unpack[TermsOfRun]) -> Rows[Tag]:
        """The tags of its attributes; see ``Store.tags``."""
        return self.store.tags(where, **self._terms({"tag": Test().exists(), **terms}))

    def aggregate(
        self, where: _Where = None, /, *, by: str | Sequence[str] = (), **terms: Unpack[TermsOfRun]
    ) -> Table:
        """Count, least, greatest and mean number of its attributes; see ``Store.aggregate``."""
        return self.store.aggregate(where, by=by, **self._terms(terms))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return (self.store.url, self._pair) == (other.store.url, other._pair)

    def __hash__(self) -> int:
        return hash((self.store.url, self._pair))

    def __repr__(self) -> str:
        project = f" of project {self.project}" if self.project else ""
        return f"<fieldstone.Run {self.name!r}{project}>"

    def _repr_html_(self) -> str:
        from ._html import run

        return run(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self.store, self.name, self.project, self._txn)


class Params(dict[str, Any]):
    """Parameters of a run as they were declared; whoever changes them hears that this changes nothing."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Invalid(
            "parameters of a run do not change",
            "take dict(run.params), or annotate the run with what changes",
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = pop = popitem = setdefault = clear = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Params, (dict(self),)


def _step(step: Any) -> int | None:
    """A step as the native catalog takes it: anything that is a whole number to Python, a float too."""
    if step is None:
        return None
    try:
        is_whole = getattr(step, "is_integer", None)
        number = int(step) if is_whole is not None and is_whole() else index(step)
    except TypeError:
        raise Invalid(f"step {step!r} is no whole number", "steps are whole numbers, such as 6") from None
    if not -(2**63) <= number < 2**63:
        raise Invalid(f"step {number} is not between -2^63 and 2^63-1", "number steps from 0")
    return number


def _at(name: str, level: Any) -> str:
    """The whole name of a variable, on a level where one is given."""
    return name if level is None else _name_at(name, level)


def _tag(tag: Any) -> Any:
    return tag._row() if isinstance(tag, Tag) else tag


def _start_count(start: Any, count: Any, box: Any) -> tuple[Any, Any]:
    if box is None:
        return start, count
    if start is not None or count is not None:
        raise Invalid("an attribute has box= and start= or count=", "give one of them")
    slices = box if isinstance(box, tuple) else (box,)
    bad = [
        part
        for part in slices
        if not isinstance(part, slice) or part.stop is None or part.step not in (None, 1)
    ]
    if bad:
        raise Invalid(
            f"box has {bad[0]!r}",
            "give a slice with an end per dimension, such as (slice(0, 8), slice(4, 6))",
        )
    starts = tuple(part.start or 0 for part in slices)
    return starts, tuple(part.stop - first for part, first in zip(slices, starts, strict=True))


def _each(column: Any, names: list[str]) -> list[Any]:
    """A list is one each; all else is one for all."""
    if not isinstance(column, list):
        return [column] * len(names)
    if len(column) != len(names):
        raise Invalid(f"a column has {len(column)} rows and there are {len(names)} names", "give one each")
    return column


def _variable(
    name: Any,
    dtype: Any,
    shape: Any,
    dims: Any,
    version: int,
    attrs: Any,
    coords: Any,
    decomposition: Any,
    find: Any,
) -> tuple[Any, ...]:
    """A variable as the native catalog takes it."""
    if not isinstance(name, str):
        raise Invalid(f"{name!r} is no name of a variable", "names are text")
    dims = [dims] if isinstance(dims, str) else None if dims is None else _items(dims)
    placed = []
    for dim, coordinate in (coords or {}).items():
        if isinstance(dim, str) and dim not in (dims or ()):
            have = ", ".join(dims or ()) or "not named"
            raise Invalid(f"coords of {dim!r}, which is no dimension of {name}", f"its dimensions are {have}")
        exact = isinstance(coordinate, str | Uniform)
        placed.append(
            (dims.index(dim) if isinstance(dim, str) else dim, coordinate if exact else _items(coordinate))
        )
    attrs = None if attrs is None else dict(attrs)
    return name, version, dtype, shape, dims, attrs, placed, decomposition, find

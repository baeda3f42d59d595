"""Runs: how a simulation declares, writes, tags and reads its data."""

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

    # -- properties of the run

    @property
    def _info(self) -> dict[str, Any]:
        if self._known is None:
            self._known = self.store._catalog().run(self.project or "", self.name, self._txn)
        return self._known

    @property
    def params(self) -> dict[str, Any]:
        """Its parameters, by name. Parameters never change, so the dict refuses changes."""
        return Params(self._info["params"])

    @property
    def created(self) -> datetime | None:
        """When it was created, in UTC; of a run that only fields name, when the first of them was flushed."""
        return self._info["created"]

    @property
    def job(self) -> str | None:
        """The job that made it, as the batch system named it."""
        return self._info["job"]

    @property
    def notes(self) -> str | None:
        """The notes given when it was created."""
        return self._info["notes"]

    @property
    def grid(self) -> Any:
        """The description of its grid; any value."""
        return self._info["grid"]

    @property
    def outside(self) -> Any:
        """The location of its data, if they are outside the store."""
        return self._info["outside"]

    @property
    def declared(self) -> bool:
        """Whether ``create_run`` declared it; otherwise only fields name it."""
        return self._info["declared"]

    @property
    def state(self) -> str:
        """Its state: "running", "finished", "failed", or "unknown" if no state was recorded or the process
        that recorded "running" has gone.
        """
        return self.store._catalog().state(self._pair, self._txn)[0]

    @property
    def failure(self) -> str | None:
        """Why it failed; None unless it failed."""
        return self.store._catalog().state(self._pair, self._txn)[1]

    def begin(self) -> None:
        """Records that it is running, and flushes. ``with store.create_run(…) as run:`` calls this, and at
        the end of the block records that the run finished or failed. Denied if the run belongs to another
        user.
        """
        self.store._catalog().set_state(self._pair, "running", "", self._txn)

    def finish(self) -> None:
        """Records that it finished, and flushes."""
        self.store._catalog().set_state(self._pair, "finished", "", self._txn)

    def fail(self, why: str = "") -> None:
        """Records that it failed, and why; all readers see this when the call returns. The call does not
        flush what was archived.
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
        """The users who may annotate it: "all", each under their own name, or only its "owner"."""
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
        ``fst.uniform(first, spacing)``, an array with one value for each element, or text that names another
        kind of grid. `decomposition` gives the extents of the pieces in which it is written; `find` the
        features that ``run.write`` looks for in each piece: "min", "max", "mean", tests such as
        ``fst.above(9000)``, or a dict of tags and tests. With `level` it is on this level of an adaptive
        mesh, and its full name is ``level_1/rho``. Declaring the same again is allowed; different content is
        a Conflict.
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
        """Declares many variables; every other argument is one value for all, or a list with one for each."""
        names = _items(names)
        names = [_at(name, of) for name, of in zip(names, _each(level, names), strict=True)]
        columns = [dtype, shape, dims, version, attrs, coords, decomposition, find]
        each = [_each(column, names) for column in columns]
        rows = [_variable(name, *row) for name, *row in zip(names, *each, strict=True)]
        self.store._catalog().create_variables(self._pair, rows, self._txn)

    def create_step(self, number: int, time: float | None = None) -> Step:
        """Declares a step and its time, in the run's unit. Conflict if the step has another time."""
        self.store._catalog().create_steps(self._pair, [number], None if time is None else [time], self._txn)
        return Step(self.name, int(number), None if time is None else float(time), self.project)

    def create_steps(self, numbers: Any, times: Any = None) -> None:
        """Declares many steps: whole numbers and, if given, one time for each."""
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
        if_exists: Literal["new", "error"] | None = None,
        level: int | None = None,
    ) -> None:
        """Archives an array as variable `variable` at `step`: all of it, or the piece that begins at `start`.

        The array must have the declared dtype (in either byte order) and, without `start`, the declared
        shape; otherwise Invalid. The first array of an undeclared variable determines both. Others see the
        field after ``store.flush()``. If the field exists, `if_exists` "error" raises Conflict, here and
        again at the flush, and "new" makes a newer version; by default the run's setting applies, then the
        store's. With `level` the variable is on this level of an adaptive mesh.
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
            if_exists,
            self._txn,
        )

    def to_xdmf(self, path: str | PathLike[str], mesh: str | None = None) -> XdmfReport:
        """Writes a text file with which ParaView shows all flushed steps of this run's fields on a mesh.

        No value is copied: the file (XDMF) points into the store's files, by paths relative to itself. Only
        if elements of a mesh are of several kinds, their nodes are written to a file next to it. Give `mesh`
        if the run has groups on several. NotFound if it has none; the report's ``omitted`` lists the
        variables that XDMF cannot show, with the reason.
        """
        found = _write_xdmf(self.store, self.project or "", self.name, mesh, os.fspath(path), self._txn)
        files, variables, steps, omitted = (tuple(items) for items in found)
        return XdmfReport(files, variables, steps, omitted)

    def lineage(self, **options: Any) -> Lineage:
        """The `Lineage` of the run and of the commits that wrote its fields: upstream its sources, downstream
        everything that came from it. The options are those of ``Graph.trace``.
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

        If the run was declared with `outside`, values that the store does not hold are read from the files
        that the box touches. With `level` the variable is on this level of an adaptive mesh.
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
        """The objects outside the store that hold a box of a variable, or into which it is to be written.

        This is for your own writer of a run that was declared with `outside`. Each ``Object`` has ``path``,
        ``dataset`` (the variable in it), ``start`` and ``count`` of the object in the variable's index space,
        and ``part``, the slices of a buffer of the box that go into it. Objects are in C order. The call
        computes names and opens no file. Invalid if the run declares no `outside`, and for a box that is not
        inside the variable.
        """
        return objects(self.store, self._pair, variable, version, step, start, count, self._txn)

    def last_step(self, variables: Iterable[str] | None = None) -> int | None:
        """The newest complete step, from which a simulation can restart; None if there is none. A step is
        complete if each variable has a field with all its elements, and no two come from different attempts
        of a job.

        `variables` are those that count; by default the declared ones or, if none is declared, those of the
        run's fields. A variable whose fields all lack a step does not count.
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
        """Records one attribute: `value` under `tag`, on a box of a variable at a step.

        Without a variable it is on the step; without a step, on the run; without a start, on the whole
        variable. `start` and `count` have one number for each dimension; the box is half-open. `box`, a tuple
        of slices, is another way to give them. `cells` replaces a box: indices, in any order, along the
        mesh's dimension of a variable on a mesh, otherwise along its first dimension, with all elements of
        the other dimensions. The variable's shape has to be declared. `keywords` are further keywords of the
        schema, such as ``{"number": 3}``, which go into the key of the field that the hit names. `version` is
        the variable's, `level` the level of an adaptive mesh. An undeclared tag is created with the type of
        the value; with `unit` the attribute goes to the tag of this name with this unit, which may exist next
        to others of the name. Annotating the same place again is a correction: the newer value counts. This
        process sees the attribute at once, all others after the flush.
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
        """Records many attributes of one tag, given as columns: each argument is one value for all rows, or a
        numpy array, Arrow array, pandas Series or list with one value for each row. `start` and `count` are
        one box, or arrays of shape (rows, dimensions); `cells` one set for all rows, or a list with one set
        for each; each of `keywords` and `level` one value, or one for each row; `unit` is as in ``annotate``.

        All rows are kept, even several at one place. Either all rows of a call are recorded, or none.
        """
        place = (variable, version, step, start, count, cells, keywords, level)
        self.store._catalog().annotate(self._pair, _tag(tag), values, *place, unit, True, self._txn)

    # -- queries

    def _terms(self, terms: Mapping[str, Any]) -> dict[str, Any]:
        own = {"run": Test().equal(self.name), "project": Test().equal(self.project or "")}
        given = [name for name in own if terms.get(name) is not None]
        if given:
            raise Invalid(f"{given[0]}= on run {self.name}", "ask the store for other runs")
        return {**own, "txn": self._txn, **terms}

    def attributes(self, where: _Where = None, /, *, comm: Any = None, **terms: Unpack[TermsOfRun]) -> Hits:
        """The attributes of this run that match all terms; see ``Store.attributes``."""
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
        """Count, minimum, maximum and mean of its attributes; see ``Store.aggregate``."""
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
    """Parameters of a run as they were declared. Changes raise, because they would have no effect."""

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
    """A step as the native catalog takes it: any whole number, floats included."""
    if step is None:
        return None
    try:
        is_whole = getattr(step, "is_integer", None)
        number = int(step) if is_whole is not None and is_whole() else index(step)
    except TypeError:
        raise Invalid(f"step {step!r} is not a whole number", "steps are whole numbers, such as 6") from None
    if not -(2**63) <= number < 2**63:
        raise Invalid(f"step {number} is not between -2^63 and 2^63-1", "number steps from 0")
    return number


def _at(name: str, level: Any) -> str:
    """The full name of a variable, which includes its level if one is given."""
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
    """A list has one value for each; anything else applies to all."""
    if not isinstance(column, list):
        return [column] * len(names)
    if len(column) != len(names):
        raise Invalid(
            f"a column has {len(column)} rows and there are {len(names)} names", "give one for each"
        )
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
        raise Invalid(f"{name!r} is not the name of a variable", "names are text")
    dims = [dims] if isinstance(dims, str) else None if dims is None else _items(dims)
    placed = []
    for dim, coordinate in (coords or {}).items():
        if isinstance(dim, str) and dim not in (dims or ()):
            have = ", ".join(dims or ()) or "not named"
            raise Invalid(
                f"coords of {dim!r}, which is not a dimension of {name}", f"its dimensions are {have}"
            )
        exact = isinstance(coordinate, str | Uniform)
        placed.append(
            (dims.index(dim) if isinstance(dim, str) else dim, coordinate if exact else _items(coordinate))
        )
    attrs = None if attrs is None else dict(attrs)
    return name, version, dtype, shape, dims, attrs, placed, decomposition, find

"""Containers: create, open, define, close."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from .. import _native
from ..errors import Error, Invalid
from . import _values
from ._attributes import Attributes
from ._names import Dimensions, Variables
from ._report import EnddefReport, Phase
from ._variable import Variable, _numbers

Format = Literal["cdf1", "cdf2", "cdf5", "partitioned"]
Strategy = Literal["scalable", "app", "library-hash", "library-sort", "partitioned"]
Index = Literal["auto", "always", "never"]

SHOWN = 20
"""How many objects a notebook shows."""


def create(
    path: str | os.PathLike[str],
    comm: Any = None,
    format: Format = "cdf5",
    strategy: Strategy | None = None,
    index: Index = "auto",
    fill: bool = False,
    *,
    hash_size: int | None = None,
    v_align: int | None = None,
    r_align: int | None = None,
    h_minfree: int = 0,
    v_minfree: int = 0,
    hints: Mapping[str, Any] | None = None,
) -> Container:
    """Creates a container, in define mode. Until it is complete, a file that was at `path` stays.

    With `comm`, an mpi4py communicator, all its ranks create one file together: they all call it, and each
    defines what it has. `format` is ``cdf1``, ``cdf2`` or ``cdf5`` (netCDF classic) or ``partitioned``;
    `strategy` is how ranks come to one header: ``scalable`` (the default of the classic formats), ``app``,
    ``library-hash`` (with `hash_size` slots), ``library-sort``, or ``partitioned`` for that format. `index`
    says whether a name index follows the last byte: from 1,000 objects on, ``always`` or ``never``. With
    `fill` variables begin with their fill values. `v_align` and `r_align` are the boundaries, in bytes, on
    which fixed data and records begin, `h_minfree` and `v_minfree` the bytes that are left free after the
    header and after fixed data. `hints` are keys and values of MPI_Info, the same on all ranks: MPI follows
    those that it knows (`Container.hints` says which), and ``cb_nodes`` is also how many ranks own a range
    where elements go to owners.
    """
    options = {
        "format": format,
        "strategy": strategy,
        "hash_size": hash_size,
        "index": index,
        "fill": fill,
        "v_align": v_align,
        "r_align": r_align,
        "h_minfree": h_minfree,
        "v_minfree": v_minfree,
    }
    path = os.fspath(path)
    return Container(_native._container_create(path, comm, options, hints), path, comm is None)


def open(
    path: str | os.PathLike[str],
    mode: Literal["r", "a"] = "r",
    comm: Any = None,
    *,
    hints: Mapping[str, Any] | None = None,
) -> Container:
    """Opens a container: ``r`` reads, ``a`` also writes and, after `redef`, defines.

    With `comm` all its ranks open it together, with `hints` as `create`. Raises NotFound where no file is,
    Corrupt with offset and rule where its bytes are no header, and Invalid for a file that was never
    completed.
    """
    path = os.fspath(path)
    return Container(_native._container_open(path, mode, comm, hints), path, comm is None)


class Container:
    """An open container. `create` and `open` make them.

    A ``with`` block closes it; an exception in the block gives up a file that is being created, and the other
    ranks are told why. Containers that one process opened for reading can be pickled: they are opened again.
    """

    def __init__(self, native: _native._Container, path: str, alone: bool) -> None:
        self._native = native
        self._attrs = Attributes(native, None)  # one, which keeps what it has read
        self._alone = alone
        # The folder may be another one when this is pickled. On ranks nothing is, nor may a rank fail alone.
        self._absolute = os.path.abspath(path) if alone else path

    @property
    def path(self) -> str:
        """Where the file is."""
        return self._native.path

    @property
    def hints(self) -> dict[str, str]:
        """The hints in force for the file, in data mode; none for a file that one process opened."""
        return self._native.hints()

    @property
    def mode(self) -> str:
        """``r``, ``a``, or ``w`` where it was created."""
        return self._native.mode

    @property
    def format(self) -> str:
        """``cdf1``, ``cdf2``, ``cdf5`` or ``partitioned``."""
        return self._native.format

    @property
    def defining(self) -> bool:
        """Whether it is in define mode."""
        return self._native.defining

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._native.closed

    def def_dim(self, name: str, length: int | None) -> str:
        """Defines a dimension; `length` None makes it the record dimension. Returns its name."""
        self._native.def_dim(name, length)
        return name

    def def_dims(self, names: Sequence[str], lengths: Any) -> range:
        """Defines many dimensions: `lengths` is one number for all, or one each; None for records.

        Returns their numbers in this rank's order: as `dims` of `def_many`, a number for each variable.
        """
        first, end = self._native.def_dims(names, lengths)
        return range(first, end)

    def def_var(
        self,
        name: str,
        dtype: Any,
        dims: str | Sequence[str] = (),
        attrs: Mapping[str, Any] | None = None,
    ) -> Variable:
        """Defines a variable over dimensions, each looked up in its own path, then in the enclosing ones.

        The look-up knows what this rank has defined so far. Where anything is wrong, also with an attribute,
        nothing is defined.
        """
        held = _attributes(attrs, name)
        dims = [dims] if isinstance(dims, str) else _native._items(dims)
        made = self._native.def_var(name, _values.type_of(dtype, f"variable {name!r}"), dims, held)
        return Variable(self, made)

    def def_many(
        self,
        names: Iterable[str],
        dtypes: Any,
        dims: Any = (),
        attrs: Any = None,
    ) -> range:
        """Defines many variables from columns, at a small part of the cost of one call each.

        `names` is a list, a numpy array of text or an Arrow column. `dtypes` is one dtype or a column of
        them; `dims` one tuple of names for all, a list with a tuple each, or numbers that `def_dims` gave (an
        array of one or two dimensions, a row for each variable, or a range); `attrs` one mapping for all, a
        list with a mapping (or None) each, or a mapping of columns: ``{"units": ["K", "Pa"]}``, where a value
        that is no list stands for all. Returns the numbers of the variables in this rank's order; after
        `enddef` they are had by name. Where anything is wrong, nothing is defined.
        """
        first, end = self._native.def_many(names, dtypes, dims, attrs)
        return range(first, end)

    def put_att(self, name: str, value: Any) -> None:
        """Sets an attribute of the container, or of a path (``event_7/weight``)."""
        self.attrs[name] = value

    def enddef(self) -> EnddefReport:
        """Ends define mode: the ranks' definitions become one header. Collective.

        A name that ranks define differently is `Conflict`, with the difference and the ranks. Returns what
        was done, and how long it took.
        """
        return _report(self._native.enddef())

    @property
    def report(self) -> EnddefReport:
        """What creating the container took on this rank: the last `enddef`, and `close` once it is closed."""
        return _report(self._native.report())

    def redef(self) -> None:
        """Returns to define mode. Collective. Data that must move make `enddef` write a new file."""
        self._native.redef()

    def sync(self) -> None:
        """Makes what was written durable, complete for other programs, and seen by all ranks. Collective."""
        self._native.sync()

    def close(self) -> None:
        """Completes and closes the file. Collective. A second call does nothing."""
        self._native.close()

    def abort(self) -> None:
        """Closes without completing: a file that is being created is given up, other ranks are told."""
        self._native.abort(None, "")

    @property
    def dims(self) -> Dimensions:
        """Dimensions: name to current length."""
        return Dimensions(self)

    @property
    def record_dim(self) -> str | None:
        """Name of the record dimension, where there is one."""
        return self._native.record_dim

    @property
    def vars(self) -> Variables:
        """Variables by name; none is listed before it is asked for."""
        return Variables(self)

    @property
    def attrs(self) -> Attributes:
        """Attributes of the container; in define mode they can be set."""
        return self._attrs

    @property
    def paths(self) -> list[str]:
        """The paths that hold objects, sorted; ``""`` is where names without a path are."""
        return self._native.paths()

    def __getitem__(self, name: str) -> Variable:
        return self.vars[name]

    def __contains__(self, name: object) -> bool:
        return name in self.vars

    def __iter__(self) -> Iterator[str]:
        return iter(self.vars)

    def get_many(
        self,
        variables: Iterable[str | Variable | tuple[Any, ...]],
        *,
        collective: bool = False,
    ) -> list[np.ndarray[Any, Any]]:
        """Reads several variables, or ``(variable, start, count)`` boxes of them, by joined requests.

        Neighbours in the file are read at once. By this rank alone unless `collective`.
        """
        try:
            boxes = [self._box(given) for given in variables]
        except Exception as error:
            self._tell(error, collective)
            raise
        return self._native.get_many(boxes, collective)

    def put_many(self, items: Iterable[tuple[Any, ...]], *, collective: bool = False) -> None:
        """Writes several ``(variable, data)`` or ``(variable, data, start, count)`` by joined requests.

        Where two overlap, the later one holds. By this rank alone unless `collective`.
        """
        puts = []
        try:
            for variable, data, *box in items:
                native, start, count = self._box((variable, *box))
                values = _values.array(data, f"variable {native.name!r}", native.dtype == "S1")
                puts.append((native, values, start, count))
        except Exception as error:
            self._tell(error, collective)
            raise
        self._native.put_many(puts, collective)

    def _box(self, given: Any) -> tuple[_native._Var, list[int] | None, list[int] | None]:
        variable, *box = given if isinstance(given, tuple) else (given,)
        if isinstance(variable, str):
            variable = self.vars[variable]
        if not isinstance(variable, Variable) or len(box) > 2:
            raise Invalid(f"{given!r} is no variable with a box", "give (variable, start, count)")
        if variable._file is not self:
            raise Invalid(
                f"variable {variable.name!r} is one of {variable._file.path}, not of {self.path}",
                "give each container its own variables",
            )
        start, count = (*box, None, None)[:2]
        return variable._native, _numbers(start), _numbers(count)

    def _tell(self, error: Exception, collective: bool) -> None:
        """Tells the other ranks, in a collective call, what went wrong on this one before it took part.

        It is not for errors that came out of such a call, which all ranks have. Raises an error of Fieldstone
        with this rank's number; of another one it returns, and the caller raises it.
        """
        # A closed container is closed on all ranks: nobody waits, and nobody would answer.
        if not collective or self._alone or self.closed:
            return
        if isinstance(error, Error):
            self._native.fail(error.code, error.message, error.hint)
            return
        with suppress(Error):
            self._native.fail(Invalid.kind, _said(error), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            try:
                self.close()
            except Error as failed:
                if not self.closed:  # what was defined cannot be written; nobody will ask again
                    self._native.abort(failed.code, failed.message)
                raise
        elif not self.closed:
            self._native.abort(error.code if isinstance(error, Error) else None, _said(error))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.mode != "r" or not self._alone:
            raise Invalid(
                f"the container {self.path} cannot be pickled", "open it for reading, without comm="
            )
        return open, (self._absolute,)

    def _state(self) -> str:
        return "closed" if self.closed else "define mode" if self.defining else f"mode {self.mode!r}"

    def __repr__(self) -> str:
        if self.closed:
            return f"<container {self.path}: closed>"
        dims, attrs, variables = self._native.counts()
        counted = f"{dims} dimensions, {variables} variables, {attrs} attributes"
        return f"<container {self.path}: {self.format}, {self._state()}, {counted}>"

    def _repr_html_(self) -> str:
        if self.closed:
            return f"<code>{escape(repr(self))}</code>"
        rows = []
        for variable in self.vars.values():
            if len(rows) == SHOWN:
                rows.append(("…", "", f"{len(self.vars) - SHOWN} more"))
                break
            rows.append((variable.name, variable.dtype.str[1:], variable._sizes()))
        body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
        head = "<tr><th>variable</th><th>type</th><th>dimensions</th></tr>"
        return f"<p>{escape(repr(self)[1:-1])}</p><table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _said(error: BaseException) -> str:
    """What other ranks read of an error."""
    return error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"


def _attributes(attrs: Mapping[str, Any] | None, variable: str) -> list[tuple[str, str, bytes]]:
    """Names, types and external bytes: converted before anything is defined."""
    given = (attrs or {}).items()
    return [(name, *_values.attribute(value, f"attribute {variable}:{name}")) for name, value in given]


def _report(raw: dict[str, Any]) -> EnddefReport:
    phases = tuple(Phase(*phase) for phase in raw.pop("phases"))
    return EnddefReport(phases=phases, **raw)

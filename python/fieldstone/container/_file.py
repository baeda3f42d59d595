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
"""The number of objects that a notebook shows."""


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
    """Creates a container, in define mode. An existing file at `path` stays until the new one is complete.

    With `comm`, an mpi4py communicator, all its ranks create one file together: they all call it, and each
    defines its objects. `format` is ``cdf1``, ``cdf2`` or ``cdf5`` (netCDF classic) or ``partitioned``;
    `strategy` is how ranks agree on one header: ``scalable`` (the default of the classic formats), ``app``,
    ``library-hash`` (with `hash_size` slots), ``library-sort``, or ``partitioned`` for that format. `index`
    controls the name index after the last byte: by default from 1,000 objects on, or ``always`` or ``never``.
    With `fill` variables begin with their fill values. `v_align` and `r_align` are the alignments, in bytes,
    of fixed data and records; `h_minfree` and `v_minfree` are the bytes left free after the header and after
    fixed data. `hints` are keys and values of MPI_Info, the same on all ranks: MPI follows those that it
    knows (`Container.hints` lists them), and ``cb_nodes`` also sets how many ranks own a range when elements
    go to owners.
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

    With `comm` all its ranks open it together; `hints` are as in `create`. Raises NotFound if there is no
    file, Corrupt with offset and rule if its header is damaged, and Invalid for a file that was never
    completed.
    """
    path = os.fspath(path)
    return Container(_native._container_open(path, mode, comm, hints), path, comm is None)


class Container:
    """An open container. Made by `create` and `open`.

    A ``with`` block closes it; an exception in the block drops a file that is being created, and the other
    ranks get the error. Containers that one process opened for reading can be pickled; unpickling opens them
    again.
    """

    def __init__(self, native: _native._Container, path: str, alone: bool) -> None:
        self._native = native
        self._attrs = Attributes(native, None)  # one object, because it keeps what it has read
        self._alone = alone
        # An absolute path, because unpickling may happen in another folder. Containers of several ranks
        # cannot be pickled, and no rank may fail alone here.
        self._absolute = os.path.abspath(path) if alone else path

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._native.path

    @property
    def hints(self) -> dict[str, str]:
        """The hints in force for the file, in data mode; none for a file that one process opened."""
        return self._native.hints()

    @property
    def mode(self) -> str:
        """``r``, ``a``, or ``w`` if it was created."""
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
        """Defines many dimensions: `lengths` is one number for all, or one for each; None for records.

        Returns their numbers in this rank's order, which `dims` of `def_many` accepts: a number for each
        variable.
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
        """Defines a variable over dimensions; each name is looked up in its own path, then in the enclosing
        ones.

        The look-up sees what this rank has defined so far. An error, also in an attribute, defines nothing.
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
        """Defines many variables from columns, at a small part of the cost of one call for each.

        `names` is a list, a numpy array of text or an Arrow column. `dtypes` is one dtype or a column of
        them; `dims` is one tuple of names for all, a list with a tuple for each, or numbers that `def_dims`
        returned (an array of one or two dimensions, a row for each variable, or a range); `attrs` is one
        mapping for all, a list with a mapping (or None) for each, or a mapping of columns: ``{"units": ["K",
        "Pa"]}``, in which a value that is not a list applies to all. Returns the numbers of the variables in
        this rank's order; after `enddef`, find them by name. An error defines nothing.
        """
        first, end = self._native.def_many(names, dtypes, dims, attrs)
        return range(first, end)

    def put_att(self, name: str, value: Any) -> None:
        """Sets an attribute of the container, or of a path (``event_7/weight``)."""
        self.attrs[name] = value

    def enddef(self) -> EnddefReport:
        """Ends define mode: the ranks' definitions become one header. Collective.

        Raises `Conflict` if ranks define a name differently, with the difference and the ranks. Returns a
        report with times.
        """
        return _report(self._native.enddef())

    @property
    def report(self) -> EnddefReport:
        """Report on creating the container on this rank: the last `enddef`, and after closing also
        `close`."""
        return _report(self._native.report())

    def redef(self) -> None:
        """Returns to define mode. Collective. If data must move, `enddef` writes a new file."""
        self._native.redef()

    def sync(self) -> None:
        """Makes writes durable, complete for other programs, and visible to all ranks. Collective."""
        self._native.sync()

    def close(self) -> None:
        """Completes and closes the file. Collective. Closing again does nothing."""
        self._native.close()

    def abort(self) -> None:
        """Closes without completing: drops a file that is being created, and raises on other ranks."""
        self._native.abort(None, "")

    @property
    def dims(self) -> Dimensions:
        """Dimensions: name to current length."""
        return Dimensions(self)

    @property
    def record_dim(self) -> str | None:
        """Name of the record dimension; None if there is none."""
        return self._native.record_dim

    @property
    def vars(self) -> Variables:
        """Variables by name; they are listed only when needed."""
        return Variables(self)

    @property
    def attrs(self) -> Attributes:
        """Attributes of the container; in define mode they can be set."""
        return self._attrs

    @property
    def paths(self) -> list[str]:
        """The paths that contain objects, sorted; ``""`` contains names without a path."""
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

        Adjacent parts of the file are read at once. Only by this rank unless `collective`.
        """
        try:
            boxes = [self._box(given) for given in variables]
        except Exception as error:
            self._tell(error, collective)
            raise
        return self._native.get_many(boxes, collective)

    def put_many(self, items: Iterable[tuple[Any, ...]], *, collective: bool = False) -> None:
        """Writes several ``(variable, data)`` or ``(variable, data, start, count)`` by joined requests.

        If two overlap, the later one wins. Only by this rank unless `collective`.
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
            raise Invalid(f"{given!r} is not a variable with a box", "give (variable, start, count)")
        if variable._file is not self:
            raise Invalid(
                f"variable {variable.name!r} belongs to {variable._file.path}, not of {self.path}",
                "give each container its own variables",
            )
        start, count = (*box, None, None)[:2]
        return variable._native, _numbers(start), _numbers(count)

    def _tell(self, error: Exception, collective: bool) -> None:
        """Passes an error that occurred on this rank before it took part in a collective call to the other
        ranks.

        It is not for errors raised by such a call, which all ranks have. Raises an error of Fieldstone with
        this rank's number; for any other error it returns, and the caller raises it.
        """
        # A closed container is closed on all ranks: no rank waits or would answer.
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
                if not self.closed:  # the definitions cannot be written, and no call follows
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
    """The text of an error for other ranks."""
    return error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"


def _attributes(attrs: Mapping[str, Any] | None, variable: str) -> list[tuple[str, str, bytes]]:
    """Names, types and external bytes, converted before anything is defined."""
    given = (attrs or {}).items()
    return [(name, *_values.attribute(value, f"attribute {variable}:{name}")) for name, value in given]


def _report(raw: dict[str, Any]) -> EnddefReport:
    phases = tuple(Phase(*phase) for phase in raw.pop("phases"))
    return EnddefReport(phases=phases, **raw)

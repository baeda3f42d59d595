"""A variable of a container: its properties and its elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._native import View
from .._views import Moved
from ..errors import Invalid
from . import _values
from ._attributes import Attributes
from ._select import select

if TYPE_CHECKING:
    from .._native import _Var
    from ._file import Container

_Numbers = int | Sequence[int] | None

LIMIT = 2**64
"""Upper bound of positions and counts in a file."""

BUFFER = 64 << 20
"""Bytes that may be used to move elements by views."""

SHOWN = 20
"""The number of attributes that a notebook shows."""


class Variable:
    """A variable of an open container.

    numpy's basic indexing reads and writes elements for this rank alone; `get` and `put` are called by all
    ranks together, unless `collective` is false. Values come as they are stored: fill values are not masked,
    packed numbers not unpacked; xarray's engine ``fieldstone`` does both.
    """

    __slots__ = ("_file", "_native")

    def __init__(self, file: Container, native: _Var) -> None:
        self._file = file
        self._native = native

    @property
    def name(self) -> str:
        """Its path."""
        return self._native.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its type, in native byte order; text is ``S1``."""
        return np.dtype(self._native.dtype)

    @property
    def dims(self) -> tuple[str, ...]:
        """Paths of its dimensions, outermost first."""
        return self._native.dims

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its dimensions now."""
        return self._native.shape

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return len(self._native.dims)

    @property
    def size(self) -> int:
        """The current number of its elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """The current bytes of its elements."""
        return self.size * self.dtype.itemsize

    @property
    def attrs(self) -> Attributes:
        """Its attributes; in define mode they can be set."""
        return Attributes(self._file._native, self._native)

    def put(
        self,
        data: Any,
        start: _Numbers = None,
        count: _Numbers = None,
        stride: _Numbers = None,
        *,
        collective: bool = True,
        view: View | None = None,
        method: str = "auto",
        buffer: int = BUFFER,
        writers: int | None = None,
    ) -> Moved | None:
        """Writes an array: its first element goes to `start`, the next ones `stride` apart.

        `count` is the number of elements along each dimension: by default the shape of `data`, with leading
        ones if it has fewer dimensions. Records beyond the last make the record dimension grow. Numbers of
        another type are converted as netCDF does; for one that does not fit, `Invalid` names the element. All
        ranks of the container call it, each with its own box, unless `collective` is false; a rank with
        nothing to write gives an empty array.

        With `view` (`fieldstone.block`, `cyclic`, `irregular`, `joined`) each rank writes its part of the
        variable, or of the record `start`; `data` has the view's local shape. `method` is ``auto``,
        ``direct``, ``exchange`` or ``view``, `buffer` the bytes that may be used to move elements, `writers`
        the number of ranks that write in an exchange. Returns a report.
        """
        if view is not None:
            try:
                given = _values.array(data, f"variable {self.name!r}", self._native.dtype == "S1")
                asked = self._asked(view, (start, count, stride), collective, (method, buffer, writers))
            except Exception as error:
                self._file._tell(error, True)
                raise
            return Moved(*self._native.put_view(given, view, *asked))
        try:
            values = _values.array(data, f"variable {self.name!r}", self._native.dtype == "S1")
            chosen = (_numbers(start), _numbers(count), _numbers(stride))
        except Exception as error:
            self._file._tell(error, collective)
            raise
        self._native.put(values, chosen, collective)
        return None

    def get(
        self,
        start: _Numbers = None,
        count: _Numbers = None,
        stride: _Numbers = None,
        *,
        collective: bool = True,
        into: np.ndarray[Any, Any] | None = None,
        dtype: Any = None,
        view: View | None = None,
        method: str = "auto",
        buffer: int = BUFFER,
        readers: int | None = None,
    ) -> np.ndarray[Any, Any]:
        """Reads a box, or all, as a new array of the native byte order, or `into` an array in C order.

        Without `count` the box extends to the end. With `dtype` the numbers are converted as netCDF does; an
        array given by `into` must have that type. All ranks of the container call it, each with its own box,
        unless `collective` is false.

        With `view` each rank reads its part of the variable, or of the record `start`, as an array of the
        view's local shape; positions without an element are 0, or keep their value in `into`.
        """
        if view is not None:
            try:
                wanted = self._wanted(dtype, into)
                asked = self._asked(view, (start, count, stride), collective, (method, buffer, readers))
            except Exception as error:
                self._file._tell(error, True)
                raise
            return self._native.get_view(view, *asked, wanted, into)[0]
        try:
            wanted = self._wanted(dtype, into)
            chosen = (_numbers(start), _numbers(count), _numbers(stride))
        except Exception as error:
            self._file._tell(error, collective)
            raise
        return self._native.get(chosen, collective, wanted, into)

    def _asked(
        self, view: Any, box: tuple[Any, Any, Any], collective: bool, how: tuple[Any, Any, Any]
    ) -> tuple[int | None, tuple[str, int, int | None]]:
        """The record to which a view applies, and how elements are to be moved."""
        what = f"variable {self.name!r}"
        if not isinstance(view, View):
            hint = "give fieldstone.block, cyclic, irregular or joined"
            raise Invalid(f"{what}: {view!r} is not a view", hint, "argument")
        start, count, stride = box
        if count is not None or stride is not None or not collective:
            hint = "leave out count, stride and collective: all ranks call, and the view has the places"
            raise Invalid(f"{what}: a view excludes count, stride and collective=False", hint, "argument")
        record = _numbers(start)
        if record is not None and len(record) != 1:
            raise Invalid(
                f"{what}: start={start!r} with a view", "with a view, start is one record", "argument"
            )
        method, buffer, owners = how
        for name, number in (("buffer", buffer), ("writers or readers", owners)):
            whole = number is None or (hasattr(number, "__index__") and 0 < number.__index__() < LIMIT)
            if not whole:
                raise Invalid(f"{what}: {name}={number!r}", "give a whole number, 1 or more", "argument")
        return record[0] if record else None, (str(method), int(buffer), owners)

    def _wanted(self, dtype: Any, into: Any) -> str | None:
        """The type in which to read elements; None for the variable's own."""
        what = f"variable {self.name!r}"
        wanted = None if dtype is None else _values.type_of(dtype, what)
        if into is None:
            return wanted
        if not isinstance(into, np.ndarray):
            raise Invalid(f"{what}: {type(into).__name__} is not an array to read into", "give a numpy array")
        held = _values.type_of(into.dtype, what)
        if wanted is not None and held != wanted:
            raise Invalid(
                f"{what}: the array to read into has dtype {into.dtype}, but dtype= is {wanted}",
                "leave out dtype=, or give an array of that dtype",
                "dtype-mismatch",
            )
        if not into.dtype.isnative:
            raise Invalid(f"the array for {self.name!r} is not in native byte order", "give another array")
        return held

    def __getitem__(self, key: Any) -> Any:
        selected = select(self.name, key, self.dims, self.shape)
        if 0 in selected.count:
            return np.empty(selected.shape, self.dtype)
        found = self.get(selected.start, selected.count, selected.strided, collective=False)
        return found[selected.view]

    def __setitem__(self, key: Any, values: Any) -> None:
        data = _values.array(values, f"variable {self.name!r}", self._native.dtype == "S1")
        grows = None
        if self._native.is_record:
            grows = data.shape[0] if data.ndim == self.ndim else -1
        selected = select(self.name, key, self.dims, self.shape, grows)
        if 0 in selected.count:
            return
        try:
            data = np.broadcast_to(data, selected.shape)
        except ValueError:
            raise Invalid(
                f"values of shape {data.shape} for {selected.shape} of variable {self.name!r}",
                "give one value, or an array of that shape",
                "shape-mismatch",
            ) from None
        # Restores dimensions that a number selects, with length 1, and reverses dimensions as when reading.
        full = data.reshape(selected.count)
        turn = tuple(
            slice(None, None, -1 if axis in selected.turned else None) for axis in range(len(selected.count))
        )
        self.put(full[turn], selected.start, selected.count, selected.strided, collective=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("the elements are in a file: they cannot be used without a copy")
        found = self.get(collective=False)
        return found if dtype is None else found.astype(dtype)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError(f"variable {self.name!r} has no dimension to iterate over")
        return (self[i] for i in range(self.shape[0]))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError(f"variable {self.name!r} has no dimension")
        return self.shape[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._file, self.name)

    def _sizes(self) -> str:
        return ", ".join(f"{dim}: {n}" for dim, n in zip(self.dims, self.shape, strict=True))

    def __repr__(self) -> str:
        if self._file.closed:
            return f"<variable {self.name!r}: its container is closed>"
        return f"<variable {self.name!r}: {self._native.dtype} ({self._sizes()})>"

    def _repr_html_(self) -> str:
        if self._file.closed:
            return f"<code>{escape(repr(self))}</code>"
        attrs = list(self.attrs.items())
        rows = [(name, repr(value)[:200]) for name, value in attrs[:SHOWN]]
        if len(attrs) > SHOWN:
            rows.append(("…", f"{len(attrs) - SHOWN} more"))
        body = "".join(f"<tr><td>{escape(n)}</td><td>{escape(v)}</td></tr>" for n, v in rows)
        head = f"<tr><th>{escape(self.name)}</th><th>{self._native.dtype} ({escape(self._sizes())})</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _again(file: Container, name: str) -> Variable:
    return file.vars[name]


def _numbers(given: _Numbers) -> list[int] | None:
    if given is None:
        return None
    one = getattr(given, "ndim", None) == 0 or not hasattr(given, "__iter__")
    found = [given] if one else _native._items(given)  # type: ignore[list-item, arg-type]
    numbers = []
    for number in found:
        whole = not isinstance(number, bool) and hasattr(number, "__index__")
        if not whole or not 0 <= number.__index__() < LIMIT:
            raise Invalid(
                f"{number!r} is not a number of elements",
                "give one whole number, 0 or more, for each dimension",
            )
        numbers.append(number.__index__())
    return numbers

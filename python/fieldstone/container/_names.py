"""Dimensions and variables by name, without a list of all names in memory."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import Error, NotFound
from ._attributes import COMPARED, near
from ._variable import Variable

if TYPE_CHECKING:
    from ._file import Container

PAGE = 1024
"""The number of objects read at a time by an iteration over all."""

SHOWN = 10
"""The number of names that a repr shows."""


class _Names(Mapping[str, Any]):
    __slots__ = ("_file",)

    _listed: ClassVar[str]
    """The expression that lists the names, for hints."""

    def __init__(self, file: Container) -> None:
        self._file = file

    def _named(self) -> Iterator[tuple[str, Any]]:
        raise NotImplementedError

    def _find(self, name: object) -> Any:
        """The object of a name, or None."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        found = self._find(name)
        if found is None:
            kind = type(self).__name__.lower()
            code = "variable-not-found" if kind == "variables" else None
            raise NotFound(f"no {kind[:-1]} {name!r} in {self._file.path}", self._hint(name), code)
        return found

    def _hint(self, name: object) -> str:
        listed = f"{self._listed} lists them"
        with suppress(Error):  # a hint must not cause another error
            if len(self) <= COMPARED and (found := near(name, list(self))):
                return f"{found} {listed}"
        return listed

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """The object of a name, or `default`."""
        found = self._find(name)  # without a search for similar names
        return default if found is None else found

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._named())

    def items(self) -> Any:
        """Names with their objects, read page by page."""
        return _Items(self)

    def values(self) -> Any:
        """The objects of the names, read page by page."""
        return _Values(self)

    def __repr__(self) -> str:
        if self._file.closed:
            return f"<{type(self).__name__.lower()} of a closed container>"
        names = []
        for name in self:
            if len(names) == SHOWN:
                names.append(f"… {len(self) - SHOWN} more")
                break
            names.append(repr(name))
        return f"<{len(self)} {type(self).__name__.lower()}: {', '.join(names)}>"


class Dimensions(_Names):
    """Names and current lengths of dimensions; the length of the record dimension is the number of
    records."""

    __slots__ = ()

    _listed = "f.dims"

    def _named(self) -> Iterator[tuple[str, int]]:
        first = 0
        while page := self._file._native.dims(first, PAGE):
            yield from page
            first += len(page)

    def _find(self, name: object) -> int | None:
        return self._file._native.dim(name) if isinstance(name, str) else None

    def __len__(self) -> int:
        return self._file._native.counts()[0]


class Variables(_Names):
    """Variables by name. They are listed only when iterated over."""

    __slots__ = ()

    _listed = "f.vars"

    def _named(self) -> Iterator[tuple[str, Variable]]:
        first = 0
        while page := self._file._native.vars(first, PAGE):
            for native in page:
                yield native.name, Variable(self._file, native)
            first += len(page)

    def under(self, path: str) -> list[Variable]:
        """The variables directly under a path, in the file's order.

        In a file with very many variables this is faster than looking for them among all; with the
        partitioned header only the blocks of that path are read.
        """
        return [Variable(self._file, native) for native in self._file._native.vars_of(path)]

    def _find(self, name: object) -> Variable | None:
        found = self._file._native.var(name) if isinstance(name, str) else None
        return None if found is None else Variable(self._file, found)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same variables of the same open container; elements are not compared."""
        if isinstance(other, Variables):
            return self._file is other._file
        if not isinstance(other, Mapping):
            return NotImplemented
        return len(self) == len(other) and all(self._is(name, variable) for name, variable in other.items())

    __hash__ = None  # type: ignore[assignment]

    def _is(self, name: object, variable: object) -> bool:
        mine = isinstance(variable, Variable) and variable._file is self._file
        return mine and variable.name == name and name in self

    def __len__(self) -> int:
        return self._file._native.counts()[2]


class _Items(ItemsView[str, Any]):
    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping._named()  # type: ignore[attr-defined]


class _Values(ValuesView[Any]):
    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping._named())  # type: ignore[attr-defined]

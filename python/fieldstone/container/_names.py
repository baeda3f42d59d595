"""Dimensions and variables by name, without a list of all names in memory."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING, Any

from ..errors import NotFound
from ._variable import Variable

if TYPE_CHECKING:
    from ._file import Container

PAGE = 1024
"""How many objects are read at a time when all are asked for."""

SHOWN = 10
"""How many a repr shows."""


class _Names(Mapping[str, Any]):
    __slots__ = ("_file",)

    def __init__(self, file: Container) -> None:
        self._file = file

    def _named(self) -> Iterator[tuple[str, Any]]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._named())

    def items(self) -> Any:
        """Names with what they name, read page by page."""
        return _Items(self)

    def values(self) -> Any:
        """What the names name, read page by page."""
        return _Values(self)

    def __repr__(self) -> str:
        names = []
        for name in self:
            if len(names) == SHOWN:
                names.append(f"… {len(self) - SHOWN} more")
                break
            names.append(repr(name))
        return f"<{len(self)} {type(self).__name__.lower()}: {', '.join(names)}>"


class Dimensions(_Names):
    """Names and current lengths of dimensions; of the record dimension the number of records."""

    __slots__ = ()

    def _named(self) -> Iterator[tuple[str, int]]:
        first = 0
        while page := self._file._native.dims(first, PAGE):
            yield from page
            first += len(page)

    def __getitem__(self, name: str) -> int:
        found = self._file._native.dim(name) if isinstance(name, str) else None
        if found is None:
            raise NotFound(f"no dimension {name!r} in {self._file.path}")
        return found

    def __len__(self) -> int:
        return self._file._native.counts()[0]


class Variables(_Names):
    """Variables by name. Nothing is listed before it is iterated over."""

    __slots__ = ()

    def _named(self) -> Iterator[tuple[str, Variable]]:
        first = 0
        while page := self._file._native.vars(first, PAGE):
            for native in page:
                yield native.name, Variable(self._file, native)
            first += len(page)

    def __getitem__(self, name: str) -> Variable:
        found = self._file._native.var(name) if isinstance(name, str) else None
        if found is None:
            raise NotFound(f"no variable {name!r} in {self._file.path}", "f.vars lists them")
        return Variable(self._file, found)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._file._native.var(name) is not None

    def __len__(self) -> int:
        return self._file._native.counts()[2]


class _Items(ItemsView[str, Any]):
    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping._named()  # type: ignore[attr-defined]


class _Values(ValuesView[Any]):
    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._mapping._named())  # type: ignore[attr-defined]

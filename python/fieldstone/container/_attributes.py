"""Attributes as a mapping."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import NotFound
from . import _values

if TYPE_CHECKING:
    from .._native import _Container, _Var


class Attributes(Mapping[str, Any]):
    """Attributes of a container or of a variable, in the file's order, read when they are asked for.

    Text is `str`, a number a numpy scalar of its type, several numbers an array. In define mode
    ``attrs[name] = value`` sets one and `update` several.
    """

    __slots__ = ("_native", "_variable")

    def __init__(self, native: _Container, variable: _Var | None) -> None:
        self._native = native
        self._variable = variable

    def _all(self) -> dict[str, tuple[str, bytes]]:
        return {name: (dtype, value) for name, dtype, value in self._native.attrs(self._variable)}

    def _find(self, name: object) -> tuple[str, bytes] | None:
        """As it is given, else by the form (NFC) in which names are stored."""
        if not isinstance(name, str):
            return None
        found = self._all()
        return found.get(name) or found.get(unicodedata.normalize("NFC", name))

    def __getitem__(self, name: str) -> Any:
        found = self._find(name)
        if found is None:
            whose = "the container" if self._variable is None else f"variable {self._variable.name!r}"
            raise NotFound(f"{whose} has no attribute {name!r}")
        return _values.decode(name, *found)

    def __setitem__(self, name: str, value: Any) -> None:
        self._native.put_att(self._variable, name, *_values.attribute(value, f"attribute {name!r}"))

    def update(self, values: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Sets several attributes."""
        for name, value in {**(values or {}), **more}.items():
            self[name] = value

    def raw(self) -> list[tuple[str, str, bytes]]:
        """(name, type, external bytes) of each, exactly as the file has them."""
        return self._native.attrs(self._variable)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None

    def items(self) -> Any:
        """Names and values, by one read."""
        return {name: _values.decode(name, *found) for name, found in self._all().items()}.items()

    def values(self) -> Any:
        """The values, by one read."""
        return dict(self.items()).values()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and _plain(self) == _plain(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(dict(self.items()))


def _plain(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes whose values compare by type and value, arrays too."""
    return {
        name: value if isinstance(value, str) else _values.attribute(value, f"attribute {name!r}")
        for name, value in attrs.items()
    }

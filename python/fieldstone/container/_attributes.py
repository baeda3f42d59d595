"""Attributes as a mapping."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import NotFound
from . import _values

if TYPE_CHECKING:
    from .._native import _Container, _Var


SHOWN = 20
"""The number of attributes that a repr shows."""

WIDTH = 100
"""The number of characters of a value that a repr shows."""

COMPARED = 2000
"""With more names than this, none is suggested, because comparing them takes too long."""


class Attributes(Mapping[str, Any]):
    """Attributes of a container or of a variable, in the file's order, read when they are needed.

    Values once read are kept until the container is defined again. Text is `str`, a number a numpy scalar of
    its type, several numbers an array. In define mode ``attrs[name] = value`` sets one and `update` several.
    """

    __slots__ = ("_kept", "_native", "_variable")

    def __init__(self, native: _Container, variable: _Var | None) -> None:
        self._native = native
        self._variable = variable
        self._kept: tuple[Any, dict[str, tuple[str, bytes]]] = (None, {})

    def _all(self) -> dict[str, tuple[str, bytes]]:
        # Another object for the same attributes, or another rank, may set attributes in define mode. Each
        # enddef leaves its own report with times, which identifies it; a file that is only read has none.
        native = self._native
        state = None if native.closed or native.defining else native.report()
        known, held = self._kept
        if state is None or state != known:
            held = {name: (dtype, value) for name, dtype, value in native.attrs(self._variable)}
            self._kept = (state, held)  # in one step, because of other threads
        return held

    def _find(self, name: object) -> tuple[str, bytes] | None:
        """The attribute by the name as given, or by the form (NFC) in which names are stored."""
        if not isinstance(name, str):
            return None
        found = self._all()
        return found.get(name) or found.get(unicodedata.normalize("NFC", name))

    def __getitem__(self, name: str) -> Any:
        found = self._find(name)
        if found is None:
            whose = "the container" if self._variable is None else f"variable {self._variable.name!r}"
            raise NotFound(f"{whose} has no attribute {name!r}", near(name, self._all()))
        return _values.decode(name, *found)

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute's value, or `default`."""
        found = self._find(name)  # without a search for similar names
        return default if found is None else _values.decode(name, *found)

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
        """Names and values, in one read."""
        return {name: _values.decode(name, *found) for name, found in self._all().items()}.items()

    def values(self) -> Any:
        """The values, in one read."""
        return dict(self.items()).values()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and _plain(self) == _plain(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self._native.closed:
            return "<attributes of a closed container>"
        held = self._all()
        shown = [f"{name!r}: {_shown(name, *held[name])}" for name in islice(held, SHOWN)]
        if len(held) > SHOWN:
            shown.append(f"… {len(held) - SHOWN} more")
        return f"{{{', '.join(shown)}}}"


def near(name: object, names: Collection[str]) -> str | None:
    """A hint with the most similar name, unless there are too many names."""
    if not isinstance(name, str) or len(names) > COMPARED:
        return None
    found = difflib.get_close_matches(name, names, 1)
    return f"do you mean {found[0]!r}?" if found else None


def _shown(name: str, dtype: str, value: bytes) -> str:
    """A value, shortened before a text of megabytes is decoded and quoted."""
    found = _values.decode(name, dtype, value[: 4 * WIDTH + 4] if dtype == "S1" else value)
    if isinstance(found, str | bytes):
        return repr(found[:WIDTH]) + ("…" if len(found) > WIDTH else "")
    text = " ".join(repr(found).split())
    return text[:WIDTH] + ("…" if len(text) > WIDTH else "")


def _plain(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes whose values compare by type and value, arrays too."""
    return {
        name: value if isinstance(value, str) else _values.attribute(value, f"attribute {name!r}")
        for name, value in attrs.items()
    }

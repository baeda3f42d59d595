"""``IndexAxis``: the existing values of each keyword, and the keywords of a schema at each level.

Example::

    IndexAxis({"param": ["130", "131"], "step": "0"})["param"]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn


class IndexAxis(Mapping[str, Collection[str]]):
    """Keywords with their values; read-only."""

    def __init__(self, axes: Mapping[str, Any]) -> None:
        if not isinstance(axes, Mapping):
            raise TypeError(f"IndexAxis: {type(axes).__name__} is not a mapping of keywords to values")
        self._axes = {keyword: _values(values) for keyword, values in axes.items()}

    def __getitem__(self, keyword: str) -> Collection[str]:
        if keyword not in self._axes:
            raise KeyError(f"Couldn't find key: {keyword}")
        return self._axes[keyword]

    def __iter__(self) -> Iterator[str]:
        return iter(self._axes)

    def __len__(self) -> int:
        return len(self._axes)

    def __contains__(self, keyword: object) -> bool:
        return keyword in self._axes

    def has_key(self, keyword: str) -> bool:
        """Whether the keyword exists."""
        return keyword in self._axes

    def clear(self) -> NoReturn:
        """Refused."""
        raise TypeError("This mapping is read-only")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return False
        return self._axes == {keyword: _values(values) for keyword, values in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._axes)


def _values(values: Any) -> list[str]:
    if isinstance(values, str) or not isinstance(values, Collection):
        return [str(values)]
    return [str(value) for value in values]


def optional_keywords(schema: str) -> list[tuple[list[str], list[tuple[str, int]]]]:
    """For each rule of a schema its required keywords, and the optional ones with their levels.

    pyfdb's axes include optional keywords that fields lack; only the schema's text has them.
    """
    rules: list[tuple[list[str], list[tuple[str, int]]]] = []
    level = 0
    for part in re.split(r"([\[\]])", re.sub(r"#[^\n]*", "", schema)):
        if part == "[":
            level += 1
            if level == 1:
                rules.append(([], []))
        elif part == "]":
            level -= 1
        elif level:
            for name in re.findall(r"(?:^|,)\s*([A-Za-z_]\w*)([^,]*)", part):
                word, rest = name[0], name[1].split("=")[0]
                if "?" in rest:
                    rules[-1][1].append((word, level))
                elif "-" not in rest:
                    rules[-1][0].append(word)
    return rules

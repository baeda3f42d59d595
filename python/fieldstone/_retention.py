"""Ages and rows of ``store.retain`` and ``store.rules``."""

from __future__ import annotations

from typing import Any

from ._age import seconds_of
from .errors import Invalid
from .reports import RetentionRule


def age(older_than: Any) -> float | None:
    """An age in seconds; None for None. A moment is none: a rule is applied again and again."""
    if older_than is None:
        return None
    seconds = seconds_of(older_than)
    if seconds is None or not 0 <= seconds < 2**34:
        raise Invalid(
            f"older_than={older_than!r} is not an age", 'give seconds, a timedelta, or a text such as "5d"'
        )
    return seconds


class Rules(tuple[RetentionRule, ...]):
    """The rules of retention of a store. A notebook shows them as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from ._html import listed

        return listed("rules", self)

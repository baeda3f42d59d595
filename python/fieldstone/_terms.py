"""Tests and conditions of queries: small functions over the native ``Test``, ``Where`` and ``Related``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypedDict

from ._native import Region, Related, Test, Where


class _Terms(TypedDict, total=False):
    """Terms of every query."""

    job: Any
    params: dict[str, Any]
    attr: dict[str, Any]
    created: Any
    step: Any
    time: Any
    variable: Any
    version: Any
    level: Any
    tag: Any
    tag_version: Any
    unit: Any
    value: Any
    scope: Literal["run", "step", "variable"] | None
    box: Any
    extent: dict[str | int, Any] | None
    volume: Any
    keywords: dict[str, Any] | None
    user: Any
    writer: Any
    with_related: Related | list[Related] | None
    without_related: Related | list[Related] | None
    order: str | list[str] | None
    limit: int | None
    pick: Literal["first", "last"] | None


class TermsOfRun(_Terms, total=False):
    """Terms of a query on a run, which itself selects the run."""

    txn: str | None


class TermsInTransaction(_Terms, total=False):
    """Terms of a query in a transaction, which itself selects what is visible."""

    run: Any
    project: Any


class Terms(TermsOfRun, TermsInTransaction, total=False):
    """Terms of a query; see ``Store.attributes`` and the guide's page "tag and find"."""


_ALL = Test()


def above(x: Any) -> Test:
    """Greater than `x`; for a range: some of it is."""
    return _ALL.above(x)


def at_least(x: Any) -> Test:
    """Greater than or equal to `x`."""
    return _ALL.at_least(x)


def below(x: Any) -> Test:
    """Less than `x`; for a range: some of it is."""
    return _ALL.below(x)


def at_most(x: Any) -> Test:
    """Less than or equal to `x`."""
    return _ALL.at_most(x)


def between(a: Any, b: Any) -> Test:
    """From `a` to `b`, both included; for a range: overlaps them. In a box: coordinates."""
    return _ALL.between(a, b)


def equal(x: Any) -> Test:
    """Equal to `x`; numbers compare exactly across int and float."""
    return _ALL.equal(x)


def isin(xs: Iterable[Any]) -> Test:
    """Equal to one of `xs`."""
    return _ALL.isin(xs)


def contains(x: Any) -> Test:
    """A range that holds `x`, a text or name with the substring `x`, or an array with the element `x`."""
    return _ALL.contains(x)


def glob(pattern: str) -> Test:
    """A text or name that matches a pattern with ``*``, ``?``, ``[abc]``; case-sensitive."""
    return _ALL.glob(pattern)


def exact(name: str) -> Test:
    """Exactly this name, even if it contains a ``*``."""
    return _ALL.equal(name)


def exists() -> Test:
    """Any value, including NaN."""
    return _ALL.exists()


def within(box: Any) -> Region:
    """For ``box=``: attributes whose box is inside `box`."""
    return Region(box, "within")


def covers(box: Any) -> Region:
    """For ``box=``: attributes whose box contains all of `box`."""
    return Region(box, "covers")


def overlaps(box: Any) -> Region:
    """For ``box=``: attributes whose box overlaps `box`, the meaning of a plain box."""
    return Region(box, "overlaps")


def where(condition: Any = None, /, **terms: Any) -> Where:
    """A separate condition: terms that all must hold. ``a & b``, ``a | b`` and ``~a`` combine conditions.

    ``store.attributes(fst.where(tag="a") | fst.where(tag="b", value=fst.above(3)), run="x")``
    """
    return Where(condition, **terms)


def related(
    place: Literal["same run", "same step", "same variable", "overlapping"],
    condition: Any = None,
    /,
    **terms: Any,
) -> Related:
    """Another attribute that must exist next to a found one (``with_related=``), or must not
    (``without_related=``).

    `place`: in the same run; at the same step of it; on the same variable at the same step; or overlapping:
    at the same step, on any variable, with a box that has an element in common.
    """
    return Related(place, Where(condition, **terms))

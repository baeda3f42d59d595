"""Overlays (spec/takeovers.md, 6.2) for the small reader: fields that appear under other values, too."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from handed import HandOvers, Owners

OVERLAY, ABSENT = 5, b"\1"


def take(reader: SimpleNamespace, c: object, one: SimpleNamespace) -> SimpleNamespace:
    """The part of an overlay's range: the values under which fields appear."""
    values = c.list("Btb")
    items = {(level, keyword): found for level, keyword, found in one.items}
    one.values = {(level, keyword): value for level, keyword, value in values}
    one.counts = bool(one.values) and all(
        len(items.get(place, ())) == 1 and not items[place] & {value, ABSENT} and value != ABSENT
        for place, value in one.values.items()
    )
    return one


def in_force(made: list[SimpleNamespace], above: set[int], handed: HandOvers) -> list[SimpleNamespace]:
    """Overlays that have not ended, newest first."""
    left: list[SimpleNamespace] = []
    for one in sorted(made, key=lambda one: one.order):
        if not one.is_end:
            left.append(one)
            continue
        for known in reversed(left):
            same = (known.items, known.values) == (one.items, one.values)
            own = handed.owner(known.user, known.order[0], one.order[0])
            if same and one.user in {own, *above}:
                left.remove(known)
                break
    return [one for one in reversed(left) if one.counts]


def changed(reader: SimpleNamespace, key: bytes, change: Callable) -> bytes:
    """A key with the values that `change` gives for level, keyword and encoded value."""
    found = b""
    with reader.parts_of(key, "key") as c:
        for level in range(3):
            begin, names = c.at, []
            reader.check(c.take(1) == b"\2", "level without a start")
            while c.data[c.at] != 3:
                names.append(c.one("T"))
            c.take(1)
            found += c.data[begin : c.at]
            for name in names:
                begin = c.at
                c.one("V")
                found += change(level, name, c.data[begin : c.at])
    return found


def selects(reader: SimpleNamespace, one: SimpleNamespace, key: bytes) -> bool:
    values = {}
    changed(reader, key, lambda level, name, value: values.setdefault((level, name), value))
    return all(values.get((level, name), ABSENT) in wanted for level, name, wanted in one.items)


def shown(
    reader: SimpleNamespace, made: list[SimpleNamespace], above: set[int], fields: dict, owners: Owners
) -> dict:
    """Fields by key, those that overlays show among them."""
    found = dict(fields)
    for one in in_force(made, above, owners.handed):
        for key, field in fields.items():
            if not selects(reader, one, key):
                continue
            values = one.values
            other = changed(reader, key, lambda level, name, own, of=values: of.get((level, name), own))
            owner = owners.at(reader.parse_key(other)[1], one.order[0])
            if one.user in above or owner in {None, one.user}:
                found.setdefault(other, field)
    return found

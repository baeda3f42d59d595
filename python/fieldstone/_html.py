"""Small, escaped HTML of objects for notebooks: tables that a scientist can read.

Invariants:

* every text is escaped and cut; at most ``_ROWS`` rows are shown, and the table says how many more there are;
* words that all rows have in common stand once, above the table; columns that are empty in all rows are
  left out;
* numbers of bytes, moments, boxes and lists are written out, and no cell is the repr of a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import pairwise
from typing import Any

from .errors import NotFound

_ROWS = 20
_WIDTH = 200
# Those of some runs whose times are seconds since 1970.
_Moments = Callable[[Iterable[tuple[str | None, str]]], set[tuple[str, str]]]
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]], more: str = "", above: str = "") -> str:
    cells = "".join(f"<th>{escape(str(cell))}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cut(_words(cell)))}</td>" for cell in row) + "</tr>" for row in rows
    )
    foot = f"<p>{escape(more)}</p>" if more else ""
    caption = f"<caption>{escape(_cut(above))}</caption>" if above else ""
    return f"<table>{caption}<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{foot}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _words(value: Any) -> str:
    """A value as it is read: none is empty, lists have commas, moments are dates, floats about 6 digits."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}" if abs(value) < 1e6 or value % 1 else f"{value:.0f}"
        case datetime():
            return moment(value)
        case Mapping():
            return ", ".join(f"{_words(name)}: {_words(of)}" for name, of in list(value.items())[:_ROWS])
        case tuple() | list():
            return ", ".join(_words(one) for one in value[:_ROWS])
    return str(value)


def moment(value: datetime) -> str:
    """A moment to the second, in UTC where it has a zone."""
    if value.tzinfo is not None:
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{value:%Y-%m-%d %H:%M:%S}"


def seconds(value: float | None) -> str:
    """Seconds since 1970 as date and time of day."""
    if value is None or value != value:
        return ""
    try:
        return f"{_FIRST + timedelta(seconds=value):%Y-%m-%d %H:%M}"
    except OverflowError:
        return _words(value)


def size(nbytes: int) -> str:
    """A number of bytes in the unit in which it is read: 7.3 kB."""
    value = float(nbytes)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{nbytes} bytes" if unit == "bytes" else f"{value:.3g} {unit}"


def _shape(shape: Sequence[int] | None) -> str:
    return "" if shape is None else " \u00d7 ".join(map(str, shape)) or "scalar"


def _box(start: Sequence[int] | None, count: Sequence[int] | None) -> str:
    """A box as slices: [0:1, 12:13]."""
    if start is None or count is None:
        return ""
    return f"[{', '.join(f'{a}:{a + n}' for a, n in zip(start, count, strict=True))}]"


def text(value: Any) -> str:
    """The repr, line by line."""
    return f"<pre>{escape(repr(value))}</pre>"


def key(value: Any) -> str:
    """A key as a table of keywords and values."""
    return _table(("keyword", "value"), value.items())


def entry(value: Any) -> str:
    """An entry of a list, or a field."""
    rows = [*value.key.items(), ("size", size(value.nbytes))]
    if value.dtype is not None:
        rows += [("type", value.dtype), ("shape", _shape(value.shape))]
    if not value.complete:
        rows.append(("complete", False))
    return _table(("keyword", "value"), rows)


def fields(value: Any) -> str:
    """The first fields of a retrieve: a column for each keyword in which they differ."""
    shown = [value[i] for i in range(min(len(value), _ROWS))]
    keys = [{name: str(of) for name, of in one.key.items()} for one in shown]
    names = list(dict.fromkeys(name for one in keys for name in one))
    common: dict[str, str] = {}
    if 1 < len(value) <= _ROWS:
        # More fields than are shown may differ in what these share.
        common = {name: of for name, of in keys[0].items() if all(one.get(name) == of for one in keys)}
    names = [name for name in names if name not in common]
    rows = (
        (*(of.get(name, "") for name in names), size(one.nbytes), one.dtype or "", _shape(one.shape))
        for one, of in zip(shown, keys, strict=True)
    )
    count = f"{len(value)} field" + ("s" if len(value) != 1 else "")
    above = ", ".join([count, *(f"{name} {of}" for name, of in common.items())])
    more = f"… {len(value) - _ROWS} more" if len(value) > _ROWS else ""
    return _table((*names, "size", "type", "shape"), rows, more, above)


def table(value: Any) -> str:
    """The first rows of a table."""
    columns = [value.values(name, 0, _ROWS) for name in value.columns]
    more = f"… {len(value) - _ROWS} more rows" if len(value) > _ROWS else ""
    return _table(value.columns, zip(*columns, strict=True), more)


def rows(values: Sequence[Any], shown: int, moments: _Moments | None = None) -> str:
    """The first rows of a catalog call: a column for each of their fields that says something.

    `moments` finds the runs whose times are seconds since 1970.
    """
    first = list(values[:shown])
    more = f"… {len(values) - shown} more" if len(values) > shown else ""
    if not first:
        return "<p>none</p>"
    facts = [_facts(one) for one in first]
    if moments is not None:
        dated = moments((one.project, one.run) for one in first)
        for one, fact in zip(first, facts, strict=True):
            if (one.project or "", one.run) in dated:
                fact["time"] = seconds(one.time)
    names = [
        name for name in dict.fromkeys(n for one in facts for n in one) if any(one.get(name) for one in facts)
    ]
    return _table(names, ([one.get(name, "") for name in names] for one in facts), more)


def _facts(row: Any) -> dict[str, str]:
    """The facts of a row, by name, as they are read."""
    if isinstance(row, Mapping):
        facts = dict(row)
    else:
        shown = (field.name for field in fields_of(row) if field.repr and field.compare)
        facts = {name: getattr(row, name) for name in shown}
    if "start" in facts:
        facts["box"] = _box(facts.pop("start"), facts.pop("count"))
    if "attrs" in facts:
        # A variable: its words first, and its grid as a shape with names.
        attrs = facts.pop("attrs")
        facts |= {
            "long name": attrs.get("long_name") or attrs.get("standard_name"),
            "units": attrs.get("units"),
        }
        facts["shape"] = _shape(facts["shape"])
        facts["declared"] = None if facts["declared"] else False
    for version in ("version", "variable_version"):
        if not facts.get(version):
            facts.pop(version, None)
    return {name.replace("_", " "): _words(of) for name, of in facts.items()}


def hits(found: Any, moments: _Moments) -> str:
    """The first hits: where, what and how much. `moments` as in :func:`rows`."""
    columns = {name: found.values(name, 0, _ROWS) for name in found.columns}
    runs = [(project or "", run) for project, run in zip(columns["project"], columns["run"], strict=True)]
    dated = moments(runs)
    columns["time"] = [
        seconds(time) if run in dated else _words(time)
        for run, time in zip(runs, columns["time"], strict=True)
    ]
    columns["box"] = [_box(*box) for box in zip(columns["start"], columns["count"], strict=True)]
    values = zip(columns["value"], columns["unit"], strict=True)
    columns["value"] = [f"{_words(value)} {unit or ''}".rstrip() for value, unit in values]
    order = ["project", "run", "step", "time", "variable", "tag", "value", "box", "cells", "user"]
    names = [name for name in order if any(_words(cell) for cell in columns[name])]
    more = f"… {len(found) - _ROWS} more" if len(found) > _ROWS else ""
    return _table(names, zip(*(columns[name] for name in names), strict=True), more)


def run(value: Any) -> str:
    """A run: its name and what it was declared with."""
    rows = [
        ("project", value.project),
        ("job", value.job),
        ("created", value.created),
        ("notes", value.notes),
    ]
    rows += [(f"param.{name}", of) for name, of in list(value.params.items())[:_ROWS]]
    more = f"… {len(value.params) - _ROWS} more" if len(value.params) > _ROWS else ""
    return _table(("run", value.name), [row for row in rows if _words(row[1])], more)


def store(value: Any) -> str:
    """A store: where, how, and the values present."""
    if value.closed:
        return text(value)
    rows = [("url", value.url), ("mode", value.mode), ("unflushed", value.unflushed)]
    try:
        axes = value.axes()
    except NotFound:
        return _table(("store", ""), [*rows, ("state", "no store is there yet")])
    rows += [(keyword, _axis(values)) for keyword, values in axes.items()]
    return _table(("store", ""), rows)


def _axis(values: Sequence[str]) -> str:
    """The values of a keyword: whole numbers that follow one another as a range."""
    if len(values) > 2 and all(one.isdecimal() for one in values):
        numbers = [int(one) for one in values]
        steps = {b - a for a, b in pairwise(numbers)}
        if len(steps) == 1 and (step := steps.pop()) > 0:
            by = f" by {step}" if step > 1 else ""
            return f"{values[0]} to {values[-1]}{by} ({len(values)})"
    more = f" … ({len(values)})" if len(values) > _ROWS else ""
    return ", ".join(values[:_ROWS]) + more


def counts(by: str, found: Sequence[Any]) -> str:
    """Fields and bytes by owner, dataset, writer or keyword."""
    rows = ((row.name, row.fields, *map(size, row[2:])) for row in found[:_ROWS])
    more = f"… {len(found) - _ROWS} more rows" if len(found) > _ROWS else ""
    return _table((by, "fields", "bytes", "stored", "dead"), rows, more)


def report(value: Any) -> str:
    """A report: its counts, then what it lists, a row each."""
    parts = {field.name: getattr(value, field.name) for field in fields_of(value)}
    lists = {name: part for name, part in parts.items() if isinstance(part, tuple) and _is_list(name, part)}
    counts = [(name, of) for name, of in parts.items() if name not in lists]
    rows = [(name.replace("_", " "), _count(name, of)) for name, of in counts if _words(of)]
    return _table((type(value).__name__, ""), rows) + "".join(
        _listed(name, items) for name, items in lists.items() if items
    )


def _is_list(name: str, part: tuple[Any, ...]) -> bool:
    # A version to which a store is pinned is a pair with a moment, and counts before and after are numbers.
    return name != "format_pinned" and not any(isinstance(item, int) for item in part)


def _count(name: str, of: Any) -> Any:
    """A count as it is read: bytes in their unit, before and after with words."""
    if isinstance(of, tuple) and len(of) == 2 and all(isinstance(item, int) for item in of):
        return f"{of[0]}, now {of[1]}"
    if name.startswith("bytes") and isinstance(of, Mapping):
        return {who: size(nbytes) for who, nbytes in of.items()}
    return size(of) if name.endswith("bytes") and isinstance(of, int) else of


def listed(name: str, items: Sequence[Any]) -> str:
    """A list of reports, a row each."""
    return _listed(name, items) if items else _table((name,), ())


def _listed(name: str, items: Sequence[Any], more: str = "") -> str:
    more = more or (f"… {len(items) - _ROWS} more" if len(items) > _ROWS else "")
    if not is_dataclass(items[0]):
        return _table((name,), ((item,) for item in items[:_ROWS]), more)
    head = [field.name for field in fields_of(items[0])]
    head = [
        column for column in head if any(_words(getattr(item, column)) for item in items[:_ROWS])
    ] or head[:1]
    rows = ([_count(column, getattr(item, column)) for column in head] for item in items[:_ROWS])
    words = [column.replace("_", " ") for column in head]
    return _table((f"{name}: {words[0]}", *words[1:]), rows, more)

"""Small, escaped HTML of objects for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from html import escape
from typing import Any

from .errors import NotFound

_ROWS = 20
_WIDTH = 200


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]], more: str = "") -> str:
    cells = "".join(f"<th>{escape(str(cell))}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cut(str(cell)))}</td>" for cell in row) + "</tr>" for row in rows
    )
    foot = f"<p>{escape(more)}</p>" if more else ""
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{foot}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def text(value: Any) -> str:
    """The repr."""
    return f"<code>{escape(repr(value))}</code>"


def key(value: Any) -> str:
    """A key as a table of keywords and values."""
    return _table(("keyword", "value"), value.items())


def entry(value: Any) -> str:
    """An entry of a list, or a field."""
    rows = [*value.key.items(), ("bytes", value.nbytes)]
    if value.dtype is not None:
        rows += [("dtype", value.dtype), ("shape", value.shape)]
    if not value.complete:
        rows.append(("complete", False))
    return _table(("keyword", "value"), rows)


def fields(value: Any) -> str:
    """The first fields of a retrieve."""
    shown = [(f.key, f.nbytes, f.dtype or "", f.shape or "") for f in (value[i] for i in _first(len(value)))]
    more = f"… {len(value) - _ROWS} more" if len(value) > _ROWS else ""
    return _table(("key", "bytes", "dtype", "shape"), shown, more)


def table(value: Any) -> str:
    """The first rows of a table."""
    columns = [value.values(name, 0, _ROWS) for name in value.columns]
    shown = (("" if cell is None else cell for cell in row) for row in zip(*columns, strict=True))
    more = f"… {len(value) - _ROWS} more rows" if len(value) > _ROWS else ""
    return _table(value.columns, shown, more)


def run(value: Any) -> str:
    """A run: its name and what it was declared with."""
    rows = [("project", value.project or ""), ("job", value.job or ""), ("created", value.created or "")]
    rows += [(f"params[{name}]", of) for name, of in list(value.params.items())[:_ROWS]]
    return _table(("run", value.name), [row for row in rows if row[1] != ""])


def store(value: Any) -> str:
    """A store: where, how, and the values present."""
    if value.closed:
        return text(value)
    rows = [("url", value.url), ("mode", value.mode), ("unflushed", value.unflushed)]
    try:
        axes = value.axes()
    except NotFound:
        return _table(("store", ""), [*rows, ("state", "no store is there yet")])
    for keyword, values in axes.items():
        more = f" … ({len(values)})" if len(values) > _ROWS else ""
        rows.append((keyword, "/".join(values[:_ROWS]) + more))
    return _table(("store", ""), rows)


def report(value: Any) -> str:
    """A report: its counts, then what it lists, a row each."""
    parts = {field.name: getattr(value, field.name) for field in fields_of(value)}
    lists = {name: part for name, part in parts.items() if isinstance(part, tuple)}
    counts = _table(
        (type(value).__name__, ""), [(name, of) for name, of in parts.items() if name not in lists]
    )
    return counts + "".join(_listed(name, items) for name, items in lists.items() if items)


def _listed(name: str, items: tuple[Any, ...]) -> str:
    more = f"… {len(items) - _ROWS} more" if len(items) > _ROWS else ""
    if not is_dataclass(items[0]):
        return _table((name,), ((item,) for item in items[:_ROWS]), more)
    head = [field.name for field in fields_of(items[0])]
    rows = ([getattr(item, column) for column in head] for item in items[:_ROWS])
    return _table((f"{name}: {head[0]}", *head[1:]), rows, more)


def _first(n: int) -> range:
    return range(min(n, _ROWS))

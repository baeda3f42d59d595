"""Tables without Arrow: as text, and as a pandas DataFrame without pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where it is used: pandas is optional
    import pandas as pd

    from ._native import Table

_ROWS = 10
_WIDTH = 24


def text(table: Table) -> str:
    """The first rows, aligned, with the number of all rows."""
    names = table.columns
    columns = [[_cell(value) for value in table.values(name, 0, _ROWS)] for name in names]
    widths = [max(len(name), *map(len, column), 0) for name, column in zip(names, columns, strict=True)]
    lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip()]
    for row in zip(*columns, strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(cells).rstrip())
    if len(table) > _ROWS:
        lines.append(f"… {len(table) - _ROWS} more")
    return "\n".join([f"<fieldstone.Table of {len(table)} rows>", *lines])


def _cell(value: Any) -> str:
    shown = "" if value is None else str(value)
    return shown if len(shown) <= _WIDTH else shown[: _WIDTH - 1] + "…"


def to_pandas(table: Table) -> pd.DataFrame:
    """A DataFrame: int64 (Int64 if values are absent), float64, datetime64 and text columns."""
    import numpy as np
    import pandas as pd

    def column(name: str, kind: str) -> Any:
        # Whole columns at once if numpy has their type; otherwise row by row.
        fast = table._fast(name)
        if isinstance(fast, tuple):
            places, distinct = fast
            texts = np.array([*distinct, None], dtype=object)[:-1]
            return pd.array(texts[places], dtype="str")
        if fast is not None:
            return pd.to_datetime(fast, utc=True).as_unit("ns") if kind.startswith("timestamp") else fast
        values = table.values(name)
        absent = any(value is None for value in values)
        match kind:
            case "int64" | "uint64" | "bool":
                nullable = {"int64": "Int64", "uint64": "UInt64", "bool": "boolean"}[kind]
                return pd.array(values, dtype=nullable) if absent else np.array(values, dtype=kind)
            case "double":
                return np.array(values, dtype="float64")
            case "date32":
                return pd.to_datetime(np.array(values, dtype="datetime64[s]"))
            case "timestamp[ns, UTC]":
                return pd.to_datetime(values, utc=True).as_unit("ns")
            case "string":
                return pd.array(values, dtype="str")
        made = np.empty(len(values), dtype=object)
        made[:] = values
        return made

    return pd.DataFrame({name: column(name, kind) for name, kind in table.types})

"""Parquet tables through the helper: their rows as CSV, with the types of their columns."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from helper_pipe import ask

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def rows(path: Path, table: Any) -> tuple[dict[str, str], list[list[str]]]:
    """Types and cells of a table that was written and requested."""
    pq.write_table(table, path)
    *parts, (last, _) = ask({"op": "rows", "path": str(path)})
    assert last == {"kind": "done"}
    cells = [row for _, payload in parts for row in csv.reader(io.StringIO(payload.decode()))]
    assert [part["done"] for part, _ in parts][-1] == parts[0][0]["of"] == len(cells)
    return parts[0][0]["columns"], cells


def test_every_value_is_told_in_full(tmp_path: Path) -> None:
    columns = {
        "b": pa.array([True, None]),
        "i": pa.array([2**63 - 1, -1]),
        "u": pa.array([2**64 - 1, 0], pa.uint64()),
        "f": pa.array([0.1, 1e300]),
        "h": pa.array([0.5, 2.0], pa.float32()),
        "s": pa.array(['a "quoted", text', ""]),
        "d": pa.array(["word", "word"]).dictionary_encode(),
        "x": pa.array([b"\x0a\xff", b""]),
        "t": pa.array([datetime(2026, 11, 21, 6, tzinfo=timezone(timedelta(hours=1))).astimezone(UTC)] * 2),
        "l": pa.array([[75, 60], [1, 2]]),
        "n": pa.array([{"k": [1, None]}, None]),
    }
    kinds, cells = rows(tmp_path / "t.parquet", pa.table(columns))
    assert kinds == {
        "b": "bool",
        "i": "int",
        "u": "uint",
        "f": "float",
        "h": "float",
        "s": "text",
        "d": "text",
        "x": "bytes",
        "t": "datetime",
        "l": "array",
        "n": "json",
    }
    first, second = cells
    assert first[:3] == ["true", str(2**63 - 1), str(2**64 - 1)]
    assert [float(first[3]), float(second[3]), float(first[4])] == [0.1, 1e300, 0.5]
    assert first[5:8] == ['a "quoted", text', "word", "0x0aff"]
    assert first[8].rstrip("Z").rstrip("0").rstrip(".") == "2026-11-21T05:00:00"
    assert first[9:] == ["[75, 60]", '{"k": [1, null]}']
    assert (second[0], second[5], second[7], second[10]) == ("", "", "0x", "")


def test_an_empty_text_is_told_from_none(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": pa.array(["", None, "a"])}), tmp_path / "s.parquet")
    (_, payload), _ = ask({"op": "rows", "path": str(tmp_path / "s.parquet")})
    assert payload.decode().splitlines() == ['""', "", '"a"']


def test_long_tables_come_in_parts(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": pa.array(range(150_000))}), tmp_path / "long.parquet")
    *parts, _ = ask({"op": "rows", "path": str(tmp_path / "long.parquet")})
    assert len(parts) >= 3
    assert b"".join(payload for _, payload in parts) == b"".join(b"%d\n" % i for i in range(150_000))


@pytest.mark.parametrize(
    ("content", "kind"), [(None, "NotFound"), (b"PAR1 and then nothing", "Invalid"), (b"", "Invalid")]
)
def test_what_is_no_table_is_told(tmp_path: Path, content: bytes | None, kind: str) -> None:
    if content is not None:
        (tmp_path / "f").write_bytes(content)
    ((header, _),) = ask({"op": "rows", "path": str(tmp_path / "f")})
    assert (header["kind"], header["error_kind"]) == ("error", kind)

"""Rows of a Parquet table, as CSV in parts: for ``fieldstone annotate --parquet`` (B-9).

Numbers keep every digit. Moments become RFC 3339 text in UTC, bytes ``0x`` and their digits, lists of
integers numbers with blanks between, all other nested values JSON.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from fieldstone._helper.frames import RequestError

if TYPE_CHECKING:
    from typing import Any

    from fieldstone._helper.frames import Channel

ROWS = 1 << 16
"""The number of rows in a part."""


def rows_request(channel: Channel, header: dict[str, Any]) -> None:
    """Answers ``rows`` with a frame ``rows`` for each part of the file at ``path``."""
    path = header.get("path")
    if not isinstance(path, str):
        raise RequestError("Invalid", "rows needs a path")
    try:
        with pq.ParquetFile(path) as file:
            columns = {field.name: kind(field.type) for field in file.schema_arrow}
            done, of = 0, file.metadata.num_rows
            for batch in file.iter_batches(ROWS):
                done += batch.num_rows
                facts = {"kind": "rows", "columns": columns, "done": done, "of": of}
                channel.send(facts, as_csv(batch))
    except FileNotFoundError:
        hint, code = "check the path", "file-not-found"
        raise RequestError("NotFound", "No such file or directory", hint, code) from None
    except PermissionError:
        hint, code = "check the file's permissions", "permission-denied"
        raise RequestError("Denied", "Permission denied", hint, code) from None
    except (pa.ArrowException, OSError) as error:
        raise RequestError("Invalid", " ".join(str(error).split()), "is it a Parquet file?") from None
    channel.done()


def kind(type_: pa.DataType) -> str:
    """The catalog's name for values of an Arrow type."""
    if pa.types.is_dictionary(type_):
        return kind(type_.value_type)
    tests = {
        "bool": pa.types.is_boolean,
        "int": pa.types.is_signed_integer,
        "uint": pa.types.is_unsigned_integer,
        "float": pa.types.is_floating,
        "datetime": lambda t: pa.types.is_timestamp(t) or pa.types.is_date(t),
        "text": lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t),
        "bytes": lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t),
    }
    named = next((name for name, test in tests.items() if test(type_)), "json")
    if named == "json" and is_list(type_) and pa.types.is_primitive(type_.value_type):
        return "array"
    return named


def is_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)


def as_csv(batch: pa.RecordBatch) -> bytes:
    """The rows without a header; a null is an empty cell, an empty text is a pair of quotes."""
    columns = [plain(column) for column in batch.columns]
    sink = io.BytesIO()
    options = pyarrow.csv.WriteOptions(include_header=False)
    table = pa.table(columns, names=[str(i) for i in range(len(columns))])
    pyarrow.csv.write_csv(table, sink, options)
    return sink.getvalue()


def plain(column: pa.Array) -> pa.Array:
    """A column that CSV can hold."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    match kind(column.type):
        case "datetime":
            # A moment without a zone is taken as UTC; Arrow keeps one with a zone in UTC anyway.
            moments = column.cast(pa.timestamp("ns", getattr(column.type, "tz", None)))
            utc = moments.cast(pa.int64()).cast(pa.timestamp("ns"))
            return pc.strftime(utc, format="%Y-%m-%dT%H:%M:%SZ")
        case "float" if pa.types.is_float16(column.type):
            return column.cast(pa.float32())
        case "bytes":
            return texts(column, lambda value: "0x" + value.hex())
        case "array":
            return texts(column, array_text)
        case "json":
            return texts(column, json.dumps)
    return column


def texts(column: pa.Array, text: Any) -> pa.Array:
    return pa.array([None if value is None else text(value) for value in column.to_pylist()], pa.string())


def array_text(values: list[Any]) -> str:
    """`[1, 2, 3]`; a list of texts in JSON's quotes."""
    return (
        "["
        + ", ".join(json.dumps(value) if isinstance(value, str) else number(value) for value in values)
        + "]"
    )


def number(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)

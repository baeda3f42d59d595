"""Fields of an existing FDB, through pyfdb (``spec/helper-protocol.md``, "FDB").

Output of the library goes to stderr; if it aborts the process, the parent reports it. Memory holds one field;
elements are listed as they are sent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyfdb

from fieldstone._helper.frames import Channel, RequestError

PIECE = 4 << 20
MAX_FIELD = 4 << 30
"""Maximum bytes of a frame."""


def answer(channel: Channel, header: dict[str, Any]) -> None:
    """Sends an FDB's schema, or its fields dataset by dataset."""
    fdb = _open(header["config"])
    if header.get("schema"):
        channel.send({"kind": "schema", "text": _schema(fdb)})
        channel.done()
        return
    fields = 0
    done = 0
    told = time.monotonic()
    for element in _listed(fdb, header.get("request") or {}):
        levels = element.keys()
        # An absent optional keyword is listed with an empty value.
        key = {keyword: value for level in levels for keyword, value in level.items() if value != ""}
        length = element.length() or 0
        if length > MAX_FIELD:
            channel.skipped(str(key), f"{length} bytes are more than a frame can hold")
            continue
        data = _read(element, length, key)
        dataset = ",".join(f"{keyword}={value}" for keyword, value in levels[0].items())
        channel.send({"kind": "field", "key": key, "opaque": True, "dataset": dataset}, data)
        fields += 1
        done += length
        if time.monotonic() - told > 0.1:
            told = time.monotonic()
            channel.progress(done, done)
    channel.progress(done, done)
    channel.done(format="fdb", fields=fields)


def _open(config: str) -> Any:
    try:
        return pyfdb.FDB(Path(config))
    except FileNotFoundError as error:
        raise RequestError(
            "NotFound", f"there is no FDB configuration {error.filename}", "name its YAML file"
        ) from None
    except PermissionError as error:
        raise RequestError("Denied", f"{error.filename} cannot be read: {error.strerror}") from None
    except Exception as error:
        raise RequestError("Invalid", f"{config} is not a configuration of an FDB: {_words(error)}") from None


def _schema(fdb: Any) -> str:
    path = str(fdb.config()[0].get("schema") or "")
    if path.startswith("~fdb/"):
        path = os.path.join(os.environ.get("FDB_HOME", "/"), path[len("~fdb/") :])
    if not path:
        raise RequestError(
            "Invalid",
            "the FDB's configuration does not name a schema",
            "first create the store with a schema of your own",
        )
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise RequestError("NotFound", f"the FDB's schema {path} cannot be read: {error}") from None


def _listed(fdb: Any, request: dict[str, list[str]]) -> Iterator[Any]:
    try:
        yield from fdb.list(request)
    except (BrokenPipeError, RequestError):
        raise
    except Exception as error:
        hint = (
            "FDB's Python interface only accepts keywords and values of MARS; leave others out of the request"
        )
        raise RequestError("Invalid", f"FDB cannot list: {_words(error)}", hint) from None


def _read(element: Any, length: int, key: dict[str, str]) -> bytearray:
    data = bytearray(length)
    view = memoryview(data)
    at = 0
    try:
        with element.data_handle as handle:
            while at < length and (n := handle.readinto(view[at : at + PIECE])) > 0:
                at += n
    except Exception as error:
        raise RequestError("Unavailable", f"FDB cannot read {key}: {_words(error)}") from None
    if at < length:
        raise RequestError("Corrupt", f"FDB returned {at} of the {length} bytes of {key}")
    return data


def _words(error: BaseException) -> str:
    """The error of FDB in one line of limited length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 500 else f"{text[:500]} …"

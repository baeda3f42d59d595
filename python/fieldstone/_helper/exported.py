"""Finds, checks and reads the metadata of an exported file (``spec/exported-metadata.md``).

Invariants:

* a file without metadata, or with its own objects of these names, is read like any other;
* metadata that are damaged, of a later version, or longer than :data:`LONGEST` are skipped, with the reason.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

GROUP = "fieldstone"
VARIABLE = "metadata"
ATTRIBUTE = "fieldstone_metadata"
"""The group and variable of a netCDF-4 file, and the global attribute of one without groups."""

CONVENTION = "Fieldstone exported metadata"
"""The attribute ``convention`` that identifies the variable."""

LOST = "the export had it, but the file no longer has it"
"""The reason for a variable that a file lacks."""

VERSION = 1
LONGEST = 64 << 20
"""Maximum bytes that are written and read."""


@dataclass
class Exported:
    """The metadata in a file: lines about its fields, and its contents when it was written."""

    lines: bytes = b""
    fields: dict[str, dict[str, Any]] | None = None
    """The keys of variables that were fields; None for a file that has a header in the store."""
    made: list[str] = field(default_factory=list)
    """Variables made from keys and declarations."""
    split: list[str] = field(default_factory=list)
    """Variables that are split into steps, of a file with a header."""
    variables: list[str] = field(default_factory=list)
    """Variables that a file with a header had."""


def text_of(lines: list[str], facts: dict[str, Any]) -> str:
    """The text for a file: its head, and the lines."""
    body = "".join(line + "\n" for line in lines)
    head = {"fieldstone": "metadata", "version": VERSION, "lines": len(lines)}
    head["sha256"] = hashlib.sha256(body.encode()).hexdigest()
    return json.dumps(head | facts, ensure_ascii=False, separators=(",", ":")) + "\n" + body


def parse(text: bytes) -> Exported:
    """The contents of a text; ValueError says why it is skipped."""
    first, newline, lines = text.partition(b"\n")
    try:
        head = json.loads(first)
        version = head["version"]
        if head["fieldstone"] != "metadata" or not isinstance(version, int):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("it is damaged: it has no head") from None
    if version > VERSION:
        raise ValueError(f"it has version {version}; this program reads {VERSION}: use a newer Fieldstone")
    if not newline or hashlib.sha256(lines).hexdigest() != head.get("sha256"):
        raise ValueError("it is damaged: its lines were changed")
    fields = head.get("fields")
    if fields is not None and not (isinstance(fields, dict) and all(map(is_sound, fields.values()))):
        raise ValueError("it is damaged: invalid keys of fields")
    names = [head.get(word, []) for word in ("made", "split", "variables")]
    if not all(isinstance(own, list) and all(isinstance(n, str) for n in own) for own in names):
        raise ValueError("it is damaged: invalid names")
    return Exported(lines, fields, *names)


def is_sound(entry: Any) -> bool:
    """Whether an entry has valid keys of fields."""
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
        return False
    key, vary, at = entry.get("key"), entry.get("vary"), entry.get("at")
    if not isinstance(key, dict) or not isinstance(vary, dict) or not isinstance(entry.get("lead"), int):
        return False
    columns = list(vary.values())
    n = entry.get("count")
    return (
        isinstance(n, int)
        and n >= 0
        and entry["lead"] >= 0
        and all(isinstance(text, str) for text in key.values())
        and all(isinstance(c, list) and len(c) == n for c in columns)
        and all(text is None or isinstance(text, str) for c in columns for text in c)
        and (at is None or (isinstance(at, list) and len(at) == n and all(isinstance(i, int) for i in at)))
    )


def key_at(entry: dict[str, Any], number: int) -> dict[str, str]:
    """The key of a field of an entry."""
    vary = {keyword: column[number] for keyword, column in entry["vary"].items()}
    return entry["key"] | {keyword: text for keyword, text in vary.items() if text is not None}


def ends(fields: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
    """Keys that represent all: the first and the last of each variable."""
    found = [key_at(entry, i) for entry in fields.values() if entry["count"] for i in (0, entry["count"] - 1)]
    return [key for i, key in enumerate(found) if key not in found[:i]]


def is_ours(group: Any) -> bool:
    """Whether a netCDF-4 group is the one that an export made."""
    variable = group.variables.get(VARIABLE)
    return (
        variable is not None
        and "convention" in variable.ncattrs()
        and variable.getncattr("convention") == CONVENTION
    )


def of_dataset(dataset: Any) -> bytes | None:
    """The text in an open netCDF file, None if it has none; ValueError if it cannot be read."""
    group = dataset.groups.get(GROUP)
    if group is not None and is_ours(group):
        variable = group.variables[VARIABLE]
        if variable.ndim != 1 or variable.dtype != "S1":
            raise ValueError("it is damaged: it is not text")
        if variable.size > LONGEST:
            raise ValueError(f"it has {variable.size} bytes, more than {LONGEST}")
        variable.set_auto_chartostring(False)
        try:
            return bytes(variable[:].tobytes())
        except (OSError, RuntimeError) as error:
            raise ValueError(f"it cannot be read: {error}") from None
    if ATTRIBUTE in dataset.ncattrs():
        value = dataset.getncattr(ATTRIBUTE)
        if not isinstance(value, str):
            raise ValueError("it is damaged: it is not text")
        return value.encode("utf-8", "surrogateescape")
    return None

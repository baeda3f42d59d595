"""Writes the metadata of fields that an exported file keeps (``spec/exported-metadata.md``).

* A file that a header describes keeps what the header lacks; an ingest of the file declares the rest.
* A file of fields by key keeps their keys and all their metadata.

Invariant: a file without metadata to keep has no additional content.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ._helper import exported
from ._helper.exported import ATTRIBUTE, CONVENTION, GROUP, LONGEST, VARIABLE

Facts = dict[str, Any]
LACK = "the metadata of the fields"
"""The report's name for tags, attributes and declarations that a file lacks."""
KEY = "@metadata"
"""Marks the text among the variables whose values are read."""
DECLARED = ('{"kind":"run"', '{"kind":"steps"', '{"kind":"variable"')
"""The beginnings of lines that an ingest may declare as well."""
COMMENT = "what fieldstone ingest reads back: tags, attributes, steps, parameters; JSON, an object a line"


def of_header(
    header: Facts,
    groups: list[Facts],
    steps: dict[str, list[int]],
    lines: list[str],
    others: Callable[[], list[Facts]],
) -> str | None:
    """The text of a file that a header describes and that holds `groups`; None if it needs none.

    `steps` are the steps of dimensions that are written in part; `others` are the headers of further files of
    the run, which keep what they declare themselves. ValueError explains why nothing can be kept.
    """
    kept = unsaid([header], lines)
    if any(line.startswith(DECLARED) for line in kept):
        kept = unsaid(others(), kept)
    if not without_tags_alone(kept):
        return None
    variables = [(join(g["path"], v["name"]), v) for g in groups for v in g["variables"]]
    if steps:
        wanted = [steps.get(v["dims"][0]) for _, v in variables if v["split"]]
        if any(some != wanted[0] for some in wanted):
            raise ValueError("variables of the file have different steps")
        places = {step: i for i, step in enumerate(wanted[0] or [])} if wanted else {}
        kept = [line for line in (numbered(json.loads(line), places) for line in kept) if line is not None]
        if not without_tags_alone(kept):
            return None
    facts = {"split": [n for n, v in variables if v["split"]], "variables": [n for n, _ in variables]}
    return checked(exported.text_of(kept, facts))


def of_keys(fields: Facts, made: list[str], lines: list[str]) -> str:
    """The text of a file of fields by key; `made` are variables that follow from keys and declarations."""
    return checked(exported.text_of(lines, {"fields": fields, "made": made}))


def checked(text: str) -> str:
    """The text; ValueError if it is too long."""
    if (n := len(text.encode())) > LONGEST:
        raise ValueError(f"it takes {n} bytes, more than {LONGEST}: export less at once")
    return text


def join(at: str, name: str) -> str:
    """Path of a child of a group."""
    return f"{at}/{name}" if at else name


def without_tags_alone(lines: list[str]) -> list[str]:
    """The lines; none if only tags are left."""
    return [] if all(line.startswith('{"kind":"tag"') for line in lines) else lines


def unsaid(headers: list[Facts], lines: list[str]) -> list[str]:
    """The lines that an ingest of these files does not declare."""

    def told(line: str) -> bool:
        # Stores of older releases declare text with the NULs that pad it.
        bare = line.replace("\\u0000", "")
        return line.startswith(DECLARED) and any(is_said(header, json.loads(bare)) for header in headers)

    return [line for line in lines if not told(line)]


def is_said(header: Facts, line: Facts) -> bool:
    """Whether an ingest of the file declares the content of a line."""
    if line["kind"] == "run":
        said = {name: plain(coded) for name, coded in header["groups"][0]["attrs"]}
        own = line.keys() <= {"kind", "run", "params", "created"}
        return own and all(name in said and said[name] == value for name, value in line["params"])
    if line["kind"] == "steps":
        known, timed = steps_of(header)
        return all(
            number in known and (time is None or timed)
            for number, time in zip(line["numbers"], line["times"], strict=True)
        )
    if line["kind"] == "variable":
        return (
            "decomposition" not in line
            and "finders" not in line
            and any(
                declares(facts, line)
                for group in header["groups"]
                for facts in group["variables"]
                if join(group["path"], facts["name"]) == line["name"]
            )
        )
    return False


def steps_of(header: Facts) -> tuple[set[int], bool]:
    """The steps of a file's fields, and whether the file has their times."""
    leading: dict[str, int] = {}
    attrs: Facts = {}
    for group in header["groups"]:
        for facts in group["variables"]:
            attrs[join(group["path"], facts["name"])] = dict(facts["attrs"])
            if facts["split"]:
                leading[facts["dims"][0]] = facts["shape"][0]
    units = [attrs.get(dim, {}).get("units", {}).get("text", "") for dim in leading]
    return {i for n in leading.values() for i in range(n)}, sum(" since " in text for text in units) == 1


def declares(facts: Facts, line: Facts) -> bool:
    """Whether the header declares a variable in the same way as a line."""
    if facts["dtype"] is None:
        return False
    first = 1 if facts["split"] else 0
    said = [[name, plain(coded)] for name, coded in facts["attrs"]]
    alike = facts["shape"][first:] == line.get("shape") and line["dims"] in ([], facts["dims"][first:])
    return alike and sorted(said, key=first_of) == sorted(line["attrs"], key=first_of)


def first_of(pair: list[Any]) -> str:
    """The name of a pair."""
    return str(pair[0])


def plain(coded: Facts) -> Any:
    """An attribute of a header in the form of a line: without the NULs that pad it in the file."""
    if "text" in coded:
        return coded["text"].replace("\0", "")
    items = coded.get("strings")
    if items is not None:
        items = [text.replace("\0", "") for text in items]
    else:
        items = [{"float": v} if isinstance(v, str) else v for v in coded["values"]]
        if any(isinstance(v, int) and v >= 2**63 for v in items):
            items = [{"uint": v} for v in items]
    return items[0] if len(items) == 1 else {"array": items}


def numbered(line: Facts, places: dict[int, int]) -> str | None:
    """A line whose steps are positions in a file that has only some; None if nothing is left."""
    if line["kind"] == "steps":
        pairs = [(places[n], t) for n, t in zip(line["numbers"], line["times"], strict=True) if n in places]
        line |= {"numbers": [n for n, _ in pairs], "times": [t for _, t in pairs]}
        if not pairs:
            return None
    elif line["kind"] == "attributes" and "steps" in line:
        rows = [i for i, step in enumerate(line["steps"]) if step in places]
        if not rows:
            return None
        for word in ("steps", "variable", "start", "count", "cells", "values"):
            if word in line:
                line[word] = [line[word][i] for i in rows]
        if "keywords" in line:
            line["keywords"] = {k: [column[i] for i in rows] for k, column in line["keywords"].items()}
        line["steps"] = [places[step] for step in line["steps"]]
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def keys_of(variables: Any) -> tuple[Facts, list[str]]:
    """Splits the variables of a Dataset: those that are fields by key, with their keys; and the names of
    others."""
    fields, made = {}, []
    for name, variable in variables.items():
        array = fields_under(variable)
        if array is None:
            made.append(str(name))
        elif array.shape == variable.shape and array.is_plain:
            fields[str(name)] = entry(array)
    return fields, made


def fields_under(variable: Any) -> Any:
    """The array of fields behind a variable; None if there is none."""
    from ._xarray.lazy import FieldArray

    data = variable._data
    while data is not None and not isinstance(data, FieldArray | np.ndarray):
        data = getattr(data, "array", None)
    return data if isinstance(data, FieldArray) else None


def entry(array: Any) -> Facts:
    """The keys of an array of fields: the common part, and the varying part field by field."""
    lead = array.shape[: array.leading]
    # Columns instead of keys: they share the texts of the axes, so a field costs 8 bytes for each keyword.
    columns: dict[str, list[str | None]] = {}
    at: list[int] = []
    for i, where in enumerate(itertools.product(*map(range, lead))):
        if (key := array.key_at(where)) is None:
            continue
        for word, text in key.items():
            columns.setdefault(word, [None] * len(at)).append(text)
        at.append(i)
        for column in columns.values():
            if len(column) < len(at):
                column.append(None)
    common = {word: column[0] for word, column in columns.items() if is_one(column)}
    vary = {word: column for word, column in columns.items() if word not in common}
    made = {"dtype": array.stored.str, "lead": array.leading, "count": len(at), "key": common, "vary": vary}
    return made if len(at) == math.prod(lead) else {**made, "at": at}


def is_one(column: list[str | None]) -> bool:
    """Whether all fields have the same text."""
    return column[0] is not None and all(text == column[0] for text in column)


def put(model: str, groups: list[Facts], text: str) -> list[Facts]:
    """Groups of a file with the text added: in a group of its own if the model has groups."""
    if model == "NETCDF4" and GROUP not in {g["path"] for g in groups} and not named(groups[0]):
        n = len(text.encode())
        variable = {
            "name": VARIABLE, "key": KEY, "dtype": "|S1", "dims": [f"{GROUP}/bytes"], "axes": ["bytes"],
            "shape": [n], "split": False, "chunks": [min(n, 1 << 20)],
            "filters": {"zlib": True, "complevel": 4},
            "attrs": [
                ["convention", {"text": CONVENTION}],
                ["comment", {"text": COMMENT}],
                ["_Encoding", {"text": "utf-8"}],
            ],
        }  # fmt: skip
        dims = [{"name": "bytes", "length": n, "unlimited": False}]
        return [*groups, {"path": GROUP, "dims": dims, "attrs": [], "variables": [variable]}]
    root, *rest = groups
    attrs = [a for a in root["attrs"] if a[0] != ATTRIBUTE]
    return [{**root, "attrs": [*attrs, [ATTRIBUTE, {"text": text}]]}, *rest]


def named(root: Facts) -> bool:
    """Whether the root has a child with the group's name."""
    return any(v["name"] == GROUP for v in root["variables"])


def text_part(text: str, box: Any) -> np.ndarray:
    """A part of the text as characters."""
    (first,), (n,) = box
    return np.frombuffer(text.encode()[first : first + n], "S1")

"""What an exported file keeps of what stands on its fields (``spec/exported-metadata.md``): writing it.

* A file that a header describes keeps what it does not say itself: an ingest of it declares the rest.
* A file of fields by key keeps their keys, and all that stands on them.

Invariant: a file of which there is nothing to keep has nothing more than before.
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
LACK = "what stands on the fields"
"""What a report calls tags, attributes and declarations that a file has not."""
KEY = "@metadata"
"""Stands for the text where values of a variable are asked for."""
DECLARED = ('{"kind":"run"', '{"kind":"steps"', '{"kind":"variable"')
"""How lines begin that an ingest may say, too."""
COMMENT = "what fieldstone ingest reads back: tags, attributes, steps, parameters; JSON, an object a line"


def of_header(
    header: Facts,
    groups: list[Facts],
    steps: dict[str, list[int]],
    lines: list[str],
    others: Callable[[], list[Facts]],
) -> str | None:
    """The text of a file that a header describes, of which `groups` are written; None where it needs none.

    `steps` are the steps of dimensions of which not all are written, `others` the headers of further files of
    the run: what these say is theirs. ValueError says why nothing can be kept.
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
            raise ValueError("the file has different steps of different variables")
        places = {step: i for i, step in enumerate(wanted[0] or [])} if wanted else {}
        kept = [line for line in (numbered(json.loads(line), places) for line in kept) if line is not None]
        if not without_tags_alone(kept):
            return None
    facts = {"split": [n for n, v in variables if v["split"]], "variables": [n for n, _ in variables]}
    return checked(exported.text_of(kept, facts))


def of_keys(fields: Facts, made: list[str], lines: list[str]) -> str:
    """The text of a file of fields by key; `made` are variables that keys and declarations give."""
    return checked(exported.text_of(lines, {"fields": fields, "made": made}))


def checked(text: str) -> str:
    """The text, where it is not too long."""
    if (n := len(text.encode())) > LONGEST:
        raise ValueError(f"it takes {n} bytes, more than {LONGEST}: export less at once")
    return text


def join(at: str, name: str) -> str:
    """Path of something in a group."""
    return f"{at}/{name}" if at else name


def without_tags_alone(lines: list[str]) -> list[str]:
    """No lines where only tags are left."""
    return [] if all(line.startswith('{"kind":"tag"') for line in lines) else lines


def unsaid(headers: list[Facts], lines: list[str]) -> list[str]:
    """Lines that say what an ingest of none of these files declares."""

    def told(line: str) -> bool:
        # Stores of older releases declare text with the NULs that pad it.
        bare = line.replace("\\u0000", "")
        return line.startswith(DECLARED) and any(is_said(header, json.loads(bare)) for header in headers)

    return [line for line in lines if not told(line)]


def is_said(header: Facts, line: Facts) -> bool:
    """Whether an ingest of the file declares what a line says."""
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
    """The steps that fields of a file show, and whether it has their times."""
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
    """Whether a variable of a header is declared as a line says."""
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
    """An attribute of a header as a line has it: without the NULs that pad it in the file."""
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
    """A line with the steps by their places in a file that has not all; None where nothing is left."""
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
    """Of the variables of a Dataset those that are fields by key, with their keys; and the others."""
    fields, made = {}, []
    for name, variable in variables.items():
        array = fields_under(variable)
        if array is None:
            made.append(str(name))
        elif array.shape == variable.shape and array.is_plain:
            fields[str(name)] = entry(array)
    return fields, made


def fields_under(variable: Any) -> Any:
    """The array of fields that a variable shows; None where it shows something else."""
    from ._xarray.lazy import FieldArray

    data = variable._data
    while data is not None and not isinstance(data, FieldArray | np.ndarray):
        data = getattr(data, "array", None)
    return data if isinstance(data, FieldArray) else None


def entry(array: Any) -> Facts:
    """The keys of an array of fields: what all have in common, and what varies, field by field."""
    lead = array.shape[: array.leading]
    # Columns, not keys: the texts are those of the axes, and a field costs 8 bytes for each keyword.
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
    """Groups of a file with the text in them: where a group can be, in one of its own."""
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
    """Whether something in the root has the group's name."""
    return any(v["name"] == GROUP for v in root["variables"])


def text_part(text: str, box: Any) -> np.ndarray:
    """A part of the text as characters."""
    (first,), (n,) = box
    return np.frombuffer(text.encode()[first : first + n], "S1")

"""Runs the same random operations on FDB and on Fieldstone and reports every difference.

A round has one schema. It first archives keys into both stores: both must accept the same keys and list each
under the same key. Keys on which both agree go into a fresh pair of stores, which then answers requests: with
equal contents every difference comes from the requests. A field's length, and the number at the beginning of
its bytes, show which field an answer has.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grammar
from peer import Fdb, Operation, Ours, Reply

ARCHIVES = 260
REQUESTS = 240
NUMBER = re.compile(r"<(\d+)>")


@dataclass
class Difference:
    """One operation that the two stores answer differently."""

    seed: int
    kind: str
    """`archive`, `stored`, or for requests `list`, `axes`, `retrieve`."""
    schema: grammar.Schema
    operation: Operation
    fdb: Reply
    ours: Reply
    keyword: str = ""
    """For `stored`: the keyword whose values differ. `fdb` and `ours` then hold the value under ``ok``."""
    given: str = ""
    """For `stored`: the text that was archived."""
    only_fdb: tuple[Any, ...] = ()
    """Parts that only FDB's answer has: keys, values of axes, or fields."""
    only_ours: tuple[Any, ...] = ()
    fields: dict[int, dict[str, str]] = field(default_factory=dict)
    """For requests: the keys of the fields that both stores have, by number."""

    def key_of(self, part: Any) -> dict[str, str]:
        """The key that a part of `only_fdb` or `only_ours` means."""
        return self.fields[part] if self.kind == "retrieve" else dict(part[0])

    @property
    def request(self) -> grammar.Request:
        return self.operation[1]

    @property
    def fdb_error(self) -> str:
        return self.fdb.get("error", "")

    @property
    def our_error(self) -> str:
        return self.ours.get("error", "")

    def __str__(self) -> str:
        text = f"seed {self.seed}: {self.kind} {self.operation[1:]}"
        if self.kind == "retrieve" and "ok" in self.fdb and "ok" in self.ours:
            text += f"\n  FDB:  {retrieved(self.fdb['ok'])}\n  ours: {retrieved(self.ours['ok'])}"
            text += "".join(f"\n  {n}: {self.fields[n]}" for n in (*self.only_fdb, *self.only_ours))
        elif self.keyword:
            text += (
                f"\n  {self.keyword}={self.given!r} is {self.fdb['ok']!r} in FDB, {self.ours['ok']!r} here"
            )
        elif self.fdb_error or self.our_error:
            text += f"\n  FDB:  {self.fdb_error or 'accepted'}"[:400]
            text += f"\n  ours: {self.our_error or 'accepted'}"[:400]
        else:
            text += f"\n  only FDB:  {str(self.only_fdb)[:400]}\n  only ours: {str(self.only_ours)[:400]}"
        return f"{text}\n  schema: {self.schema.text}"


def data(number: int) -> str:
    """The bytes of a field: its number, padded to a length that no other field has."""
    return f"<{number}>".ljust(8 + number, ".")


def round_of(seed: int, fdb: Fdb, ours: Ours, folder: Path) -> Iterator[Difference]:
    """The differences of one round, of `ARCHIVES` + `REQUESTS` operations."""
    rng = random.Random(seed)
    schema = grammar.schema(rng)
    keys = [grammar.key(rng, schema) for _ in range(ARCHIVES)]
    everything: Operation = ["list", {}, 3, True]

    def both(name: str, operations: list[Operation]) -> list[tuple[Reply, Reply]]:
        ours.open(schema.text)
        fdb.run([["open", str(folder / name), schema.text]])
        return list(zip(fdb.run(operations), ours.run(operations), strict=True))

    archives: list[Operation] = [["archive", key, data(i)] for i, key in enumerate(keys)]
    replies = both("archived", [*archives, ["flush"], everything])
    a, b = replies.pop()
    if "ok" not in a:
        # One key made the whole store unlistable, so requests on it cannot be compared.
        empty = "" if any("" in key.values() for key in keys) else "none empty"
        yield Difference(seed, "poisoned", schema, everything, a, b, given=empty)
        return
    theirs, mine = by_length(a), by_length(b)
    agreed = []
    for i, (key, (a, b)) in enumerate(zip(keys, replies, strict=False)):
        length = len(data(i))
        if ("ok" in a) != ("ok" in b):
            yield Difference(seed, "archive", schema, archives[i], a, b)
        elif "ok" in a and theirs.get(length) == mine.get(length):
            # A request to FDB cannot contain a colon.
            if length in mine and not any(":" in value for value in key.values()):
                agreed.append(i)
        elif "ok" in a:
            x, y = theirs.get(length), mine.get(length)
            for keyword, values in differing(x, y):
                given = key.get(keyword, "")
                v, w = ({"ok": value} for value in values)
                yield Difference(seed, "stored", schema, archives[i], v, w, keyword, given)

    fields = {i: flat(mine[len(data(i))]) for i in agreed}
    stored = list(fields.values())
    operations = [request(rng, schema, stored) for _ in range(REQUESTS)]
    setting = [*(archives[i] for i in agreed), ["flush"]]
    replies = both("asked", [*setting, *operations])[len(setting) :]
    for operation, (a, b) in zip(operations, replies, strict=True):
        found = Difference(seed, operation[0], schema, operation, a, b, fields=fields)
        if ("ok" in a) != ("ok" in b):
            yield found
        elif "ok" in a:
            parts = PARTS[operation[0]]
            x, y = parts(a["ok"]), parts(b["ok"])
            if x != y:
                found.only_fdb = tuple(part for part in x if part not in y)
                found.only_ours = tuple(part for part in y if part not in x)
                yield found


def request(rng: random.Random, schema: grammar.Schema, stored: list[grammar.Key]) -> Operation:
    match rng.choice(["list", "list", "retrieve", "retrieve", "axes"]):
        case "list":
            asked = grammar.request(rng, schema, stored, rng.random() < 0.3)
            return ["list", asked, rng.choice([1, 2, 3, 3, 3]), rng.random() < 0.2]
        case "retrieve":
            # pyfdb itself refuses an empty value.
            return ["retrieve", grammar.request(rng, schema, stored, True) or {"class": "rd"}]
        case operation:
            return [operation, grammar.request(rng, schema, stored, False), 3]


def by_length(reply: Reply) -> dict[int, list[dict[str, str]]]:
    """Levels of every listed key by the length of its field; absent keywords are left out."""
    return {length: visible(levels) for levels, length, _ in reply["ok"]}


def visible(levels: list[dict[str, str]]) -> list[dict[str, str]]:
    """FDB lists an absent optional keyword with an empty value, Fieldstone leaves it out."""
    full = [*levels, {}, {}][:3]
    return [{keyword: value for keyword, value in level.items() if value != ""} for level in full]


def flat(levels: list[dict[str, str]]) -> dict[str, str]:
    return {keyword: value for level in levels for keyword, value in level.items()}


def differing(
    x: list[dict[str, str]] | None, y: list[dict[str, str]] | None
) -> list[tuple[str, tuple[Any, Any]]]:
    if x is None or y is None:
        return [("the key", (x, y))]
    a, b = flat(x), flat(y)
    found = [(k, (a.get(k), b.get(k))) for k in sorted(a.keys() | b.keys()) if a.get(k) != b.get(k)]
    return found or [("the levels", (x, y))]


def listed(answer: list[Any]) -> list[Any]:
    """Keys and lengths in one order, because neither store promises the order of the other."""
    return sorted((sorted(flat(visible(levels)).items()), length) for levels, length, _ in answer)


def on_axes(answer: dict[str, list[str]]) -> list[tuple[str, str]]:
    return sorted((k, v) for k, values in answer.items() for v in values if v != "")


def retrieved(answer: str) -> list[int]:
    """Numbers of the fields, in their order."""
    numbers = [int(number) for number in NUMBER.findall(answer)]
    assert "".join(map(data, numbers)) == answer, "the bytes are those of whole fields"
    return numbers


PARTS: dict[str, Any] = {"list": listed, "axes": on_axes, "retrieve": retrieved}

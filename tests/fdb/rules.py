"""The differences between answers of Fieldstone and FDB, with reasons: every difference must fall under a
rule.

A rule has kinds of operation, a test, and a reason. `docs/fdb-differences.md` lists the same differences for
users; the `name` of a rule is the name of a row there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import grammar
from compare import Difference, retrieved

ENUMERATED = {"class", "type", "stream", "levtype", "domain"}
"""Keywords with a list of allowed values in FDB's request language."""


@dataclass(frozen=True)
class Rule:
    """Explains a whole difference."""

    name: str
    kinds: str
    applies: Callable[[Difference], bool]
    reason: str


@dataclass(frozen=True)
class PartRule:
    """Explains single fields, keys or values that only one of two answers has."""

    name: str
    kinds: str
    side: str
    """`fdb` or `ours`: the side whose answer has it."""
    applies: Callable[[Difference, Any], bool]
    reason: str


def explain(d: Difference) -> set[str]:
    """The names of the rules that explain a difference; empty if a part of it falls under none."""
    for rule in RULES:
        if d.kind in rule.kinds.split() and rule.applies(d):
            return {rule.name}
    if d.fdb_error or d.our_error or not (d.only_fdb or d.only_ours):
        return set()
    if d.kind == "retrieve" and order(d, "fdb") != order(d, "ours"):
        return set()
    names = set()
    for side, parts in (("fdb", d.only_fdb), ("ours", d.only_ours)):
        for part in parts:
            rules = (
                r for r in PART_RULES if r.side == side and d.kind in r.kinds.split() and r.applies(d, part)
            )
            if (rule := next(rules, None)) is None:
                return set()
            names.add(rule.name)
    return names


def order(d: Difference, side: str) -> list[int]:
    """The fields that both answers have, each once, in the order of one of them."""
    answer = retrieved((d.fdb if side == "fdb" else d.ours)["ok"])
    return [n for n in dict.fromkeys(answer) if n not in d.only_fdb + d.only_ours]


def values(request: grammar.Request, keyword: str) -> list[str]:
    """The texts of a keyword, split at slashes."""
    found = request.get(keyword, [])
    return found.split("/") if isinstance(found, str) else list(found)


def odd(request: grammar.Request, keywords: Iterable[str]) -> bool:
    """Whether one of the keywords has a spelling other than the canonical one."""
    return any(v not in grammar.PLAIN[k] for k in keywords for v in values(request, k) if k in grammar.PLAIN)


def fdb_says(pattern: str) -> Callable[[Difference], bool]:
    return lambda d: bool(re.search(pattern, d.fdb_error)) and not d.our_error


def we_say(pattern: str) -> Callable[[Difference], bool]:
    return lambda d: bool(re.search(pattern, d.our_error)) and not d.fdb_error


def empty_value(d: Difference) -> bool:
    if d.kind == "poisoned":
        return d.given == ""
    return bool(re.search("has an empty value", d.our_error)) or (d.kind != "archive" and "" in values_of(d))


def values_of(d: Difference) -> list[str]:
    return [v for keyword in d.request for v in values(d.request, keyword)]


def untyped(d: Difference) -> set[str]:
    """Keywords of a request that have a type in FDB's request language and none in this schema."""
    return {k for k in d.request if k in grammar.TYPES and k not in d.schema.types}


def deeper(d: Difference) -> bool:
    """Whether a list of depth 1 or 2 was asked for with keywords below that depth."""
    depth = d.operation[2]
    below = {k for shape in d.schema.shapes for level in shape[depth:] for k in level}
    return depth < 3 and not below.isdisjoint(d.request)


def lacks(d: Difference, part: Any) -> bool:
    """Whether a key lacks a keyword that the request names."""
    return not d.key_of(part).keys() >= d.request.keys()


def has_more(d: Difference, part: Any) -> bool:
    """Whether a key has keywords that the request does not name."""
    return not d.key_of(part).keys() <= d.request.keys()


def same_fields(d: Difference) -> bool:
    """Whether both answers have the same fields, in any order and number."""
    return not d.fdb_error and not d.our_error and d.only_fdb == d.only_ours == ()


def only_again(d: Difference) -> bool:
    """Whether FDB's answer differs only by fields that come more than once."""
    return same_fields(d) and order(d, "fdb") == order(d, "ours")


def several_orders(schema: grammar.Schema) -> bool:
    """Whether two rules have the same keywords in another order."""
    first, *others = [[k for level in shape for k in level] for shape in schema.shapes]
    return any([k for k in first if k in other] != [k for k in other if k in first] for other in others)


RULES = [
    Rule(
        "spelling",
        "archive",
        fdb_says("not in canonical form"),
        "FDB archives dataset and index keywords only in their canonical spelling; here any spelling of the"
        " value is accepted, and the canonical one is stored.",
    ),
    Rule(
        "first-rule",
        "archive",
        fdb_says("Could not find|Keywords not used"),
        "FDB chooses the first rule whose outer levels accept the key and then misses a keyword; here the "
        "first rule that accepts the whole key is used.",
    ),
    Rule(
        "unchecked",
        "archive",
        we_say("is not (a|an) "),
        "FDB archives values that do not have the keyword's type (number=1.5, date=2025), and requests then "
        "cannot name them; here they are refused at once.",
    ),
    Rule(
        "empty",
        "archive poisoned list retrieve axes",
        empty_value,
        "FDB takes empty values, and some make a whole store unlistable; here a keyword has a value or is "
        "absent.",
    ),
    Rule(
        "default",
        "stored",
        lambda d: d.keyword in d.schema.defaults and d.fdb["ok"] is None and not d.given,
        "FDB lists an omitted keyword as empty and applies the default when it reads; here the key "
        "has the default itself.",
    ),
    Rule(
        "kept-as-given",
        "stored",
        lambda d: (
            d.fdb["ok"] == d.given != d.ours["ok"] and d.keyword in {"date", "param", "number", *ENUMERATED}
        ),
        "FDB keeps dates, parameters, numbers and names (type=forecast) as they were spelt, and requests for "
        "the canonical value miss them; here the canonical value is stored.",
    ),
    Rule(
        "once",
        "retrieve",
        only_again,
        "FDB gives a field again for each rule that it matches and for a repeated value; here each field "
        "comes once.",
    ),
    Rule(
        "order-of-rules",
        "retrieve",
        lambda d: same_fields(d) and several_orders(d.schema),
        "FDB gives fields in the order of the keywords in their own rule; here one order holds for the whole "
        "answer, that in which the schema first names the keywords.",
    ),
    Rule(
        "one-value",
        "list retrieve axes",
        fdb_says("Only one value possible"),
        "MARS allows one value of class, expver, stream, type ... in a request; here any keyword may be a "
        "list.",
    ),
    Rule(
        "unlistable",
        "list retrieve axes",
        fdb_says("Assertion failed: (values|tryFill)|Bad value: Invalid param"),
        "A value that FDB archived without a check (an empty one, param=nosuch) makes lists and retrieves "
        "of its dataset fail; here such a value was refused by archive.",
    ),
    Rule(
        "context",
        "list retrieve axes",
        fdb_says("not acceptable with context"),
        "MARS refuses keywords that make no sense together (levelist with levtype=sfc); here the schema "
        "alone decides which keywords a key has.",
    ),
    Rule(
        "enumeration",
        "list retrieve axes",
        fdb_says(r"(TypeEnum|TypeMixed).*cannot expand"),
        "MARS has lists of allowed values of class, type, stream, levtype; under a schema that gives them "
        "no type they are text here, and a value that was never stored selects nothing.",
    ),
    Rule(
        "negative-step",
        "archive list retrieve axes",
        fdb_says(r"Bad StepRange \[-"),
        "FDB has no step before 0; here a step may be negative, as in messages of centres that begin before "
        "their analysis.",
    ),
    Rule(
        "unknown-keyword",
        "list retrieve axes",
        we_say("the schema has no keyword"),
        "FDB takes any keyword of MARS and ignores one that the schema lacks; here it is refused, because it "
        "would select nothing.",
    ),
    Rule(
        "one-key",
        "stored",
        lambda d: d.keyword == "the key" and (d.ours["ok"] is None or d.fdb["ok"] is None),
        "Two spellings of one key are two fields in FDB, or one where here are two (levtype=PL and pl), so "
        "another of them is replaced.",
    ),
    Rule(
        "names",
        "list retrieve axes",
        lambda d: not d.fdb_error and not d.our_error and odd(d.request, ENUMERATED & d.request.keys()),
        "MARS has further names of the values of class, type, stream, levtype (forecast for fc, RD for rd);"
        " under a schema that gives these keywords no type they are text here, compared exactly.",
    ),
    Rule(
        "numbers",
        "list retrieve axes",
        fdb_says(r"TypeToByList\w+\[name=(levelist|number)\]: cannot expand '[+\d.e]+'"),
        "FDB's requests take no sign and no exponent (levelist=1e3, number=+2); here a number is a number.",
    ),
    Rule(
        "range-of-parameters",
        "list retrieve axes",
        fdb_says("Cannot match parameter to"),
        "MARS has no ranges of parameters; here a range goes over their numbers.",
    ),
    Rule(
        "unknown-parameter",
        "list retrieve axes",
        fdb_says("Cannot match parameter"),
        "FDB refuses a request for a parameter that MARS does not know; here it is text and selects nothing.",
    ),
    Rule(
        "untyped",
        "list retrieve axes",
        lambda d: untyped(d) != set(),
        "FDB reads dates, times, steps, levels and numbers of a request as such whatever the schema says; "
        "here a keyword without a type is text, without ranges and other spellings.",
    ),
]

PART_RULES = [
    PartRule(
        "depth",
        "list",
        "fdb",
        lambda d, part: deeper(d),
        "FDB lists at depth 1 and 2 what may hold a match, without looking below; here only what does.",
    ),
    PartRule(
        "axes-exact",
        "axes",
        "fdb",
        lambda d, part: True,
        "FDB lists the axes of every index that a request touches, even of fields that do not match; here "
        "the axes are those of the matching fields.",
    ),
    PartRule(
        "lacking-keyword",
        "list retrieve",
        "fdb",
        lacks,
        "FDB gives fields that lack a keyword which the request names; here such a field does not match.",
    ),
    PartRule(
        "step-end",
        "retrieve",
        "fdb",
        lambda d, part: "-" in "".join([d.fields[part]["step"], *values(d.request, "step")]),
        "FDB's retrieve (not its list) gives for step=24 also spans that end there, 0-24, and for a span "
        "the step it begins with; here a step and a span are two values.",
    ),
    PartRule(
        "parameter-in-context",
        "list retrieve axes",
        "ours",
        lambda d, part: d.request.keys() >= {"class", "type", "stream", "levtype", "param"},
        "MARS takes a parameter's number for that of another where class, type, stream and levtype have no "
        "such parameter (129 at levtype=sfc of stream=wave); here a number is that number.",
    ),
    PartRule(
        "partial",
        "retrieve",
        "ours",
        has_more,
        "FDB's retrieve wants every keyword, and takes an omitted optional one as absent; here an omitted "
        "keyword is free, as in list.",
    ),
]

ALL = [*RULES, *PART_RULES]

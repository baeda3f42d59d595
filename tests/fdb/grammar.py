"""Random schemas, keys and requests in FDB's language, from a seed.

They use only keywords of MARS: FDB's Python interface refuses requests with any other. Values come in the
spellings that people type, and now and then in wrong ones.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

Key = dict[str, str]
Request = dict[str, str | list[str]]

TYPES = {
    "expver": ["Expver"],
    "date": ["Date"],
    "time": ["Time"],
    "step": ["Step"],
    "levelist": ["Double"],
    "param": ["Param"],
    "number": ["Integer"],
}
"""The types that a keyword may have; in some schemas it has none."""

PLAIN = {
    "class": ["rd", "od", "ea"],
    "expver": ["xxxx", "0001", "0002", "abcd"],
    "stream": ["oper", "enfo", "wave"],
    "date": ["20250101", "20250102", "20250103", "20250228", "20240229", "20250301"],
    "time": ["0000", "0600", "1200", "1800", "0030"],
    "domain": ["g", "e"],
    "type": ["fc", "an", "pf", "cf"],
    "levtype": ["pl", "sfc", "ml"],
    "step": ["0", "6", "12", "24", "30m", "0-24", "6-12", "30m-1"],
    "levelist": ["500", "850", "1000", "0.5", "0.333333", "10"],
    "param": ["130", "131", "132", "167", "129", "140229"],
    "number": ["1", "2", "10", "11"],
}
"""Canonical values."""

ODD = {
    "class": ["RD", "Od"],
    "expver": ["1", "2", "ab"],
    "stream": ["OPER"],
    "date": ["2025-01-01", "2024-02-29"],
    "time": ["0", "6", "12", "06:00", "00:30", "12:00:00", "600", "000000"],
    "domain": ["G"],
    "type": ["FC", "forecast"],
    "levtype": ["PL", "pressure levels"],
    "step": ["06", "60m", "1h", "90m", "1h30m", "0-1", "30m-60m", "0024", "1d", "60s", "3600s"],
    "levelist": ["500.0", "1e3", "0500", ".5", "1000.", "+10"],
    "param": ["t", "u", "2t", "130.128", "131.128", "229.140", "T", "0130"],
    "number": ["01", "+2", "010"],
}
"""Other spellings of such values."""

WRONG = {
    "class": ["zz", "r d", ""],
    "expver": ["abcde", ""],
    "stream": ["nosuch", ""],
    "date": ["20250230", "nonsense", "2025", "20251301", ""],
    "time": ["7700", "2460", "noon", "01:23:45:67", ""],
    "domain": [""],
    "type": ["nosuch", ""],
    "levtype": ["nosuch", ""],
    "step": ["abc", "-1", "12-6", "1-2-3", "5x", ""],
    "levelist": ["high", "5oo", ""],
    "param": ["nosuch", "1.2.3", ""],
    "number": ["one", "1.5", ""],
}
"""Texts that are not a value of the keyword, or of any type."""

RANGES = {
    "date": [
        "20250101/to/20250103",
        "20250227/to/20250302",
        "20240228/to/20240301/by/1",
        "2025-01-01/to/2025-01-03",
    ],
    "step": ["0/to/24/by/6", "0/to/12/by/12", "0/to/1/by/30m", "0/to/24", "6/to/12/by/6"],
    "levelist": ["500/to/1000/by/50", "10/to/10/by/5", "500/to/850/by/350"],
    "number": ["1/to/11", "1/to/11/by/5", "10/to/11"],
    "time": ["0000/to/1800/by/6", "00/to/18/by/06"],
}
WRONG_RANGES = {
    "date": ["20250103/to/20250101", "20250101/to"],
    "step": ["0/to", "to/6", "0/to/6/by/0", "0/by/6", "6/to/0"],
    "levelist": ["1000/to/500", "500/to/1000/by/0"],
    "number": ["1/to", "3/to/1"],
    "param": ["130/to/132"],
}

LISTS = {"date", "time", "step", "levelist", "param", "number"}
"""Keywords that may have several values in one MARS request."""


@dataclass
class Schema:
    """A schema and what the grammar knows about it."""

    text: str
    types: dict[str, str]
    shapes: list[list[list[str]]]
    """For each path through the brackets, the keywords of its three levels."""
    optional: set[str] = field(default_factory=set)
    defaults: set[str] = field(default_factory=set)
    values: dict[str, list[str]] = field(default_factory=dict)
    """Canonical values, from which keys of this schema draw: few for datasets, which are slow in FDB."""


def schema(rng: random.Random) -> Schema:
    """One of FDB's usual forms, with types, optional keywords, defaults and conditions drawn at random."""
    types = {k: rng.choice(names) for k, names in TYPES.items() if rng.random() < 0.98}
    optional: set[str] = set()
    defaults: set[str] = set()

    def maybe(keyword: str, *, default: str = "", p: float = 0.5) -> str:
        if rng.random() >= p:
            return keyword
        optional.add(keyword)
        if default and rng.random() < 0.5:
            defaults.add(keyword)
            return f"{keyword}?{default}"
        return f"{keyword}?"

    def inner(local: str) -> tuple[str, list[str]]:
        words = ["step", "param"] if local == "sfc" else ["step", "levelist", "param"]
        texts = [maybe(w, p=0.3) if w == "levelist" else w for w in words]
        if rng.random() < 0.4:
            words.append("number")
            texts.append(maybe("number", p=0.7))
        if rng.random() < 0.3:
            order = rng.sample(range(len(words)), len(words))
            words, texts = [words[i] for i in order], [texts[i] for i in order]
        return ", ".join(texts), words

    texts, shapes = [], []
    streams = rng.choice([[""], ["=enfo/wave", ""], ["=oper", "=enfo/wave"], ["=!wave/enfo", "=wave/enfo"]])
    for stream in streams:
        middle = ["date", "time"] if rng.random() < 0.8 else ["date"]
        top = ["class", "expver", "stream", *middle]
        top_texts = ["class", "expver", f"stream{stream}", *middle]
        if rng.random() < 0.7:
            top.append("domain")
            top_texts.append(maybe("domain", default="g", p=0.8))
        # A keyword of the level above may be further down instead.
        below = [] if "time" in middle else ["time"]
        levels = []
        for levtype in rng.choice([[""], ["=sfc", "=pl/ml"], ["=pl", ""]]):
            text, words = inner(levtype.lstrip("="))
            text = ", ".join([*below, text])
            levels.append(f"    [ type, levtype{levtype}\n      [ {text} ]]")
            shapes.append([top, ["type", "levtype"], [*below, *words]])
        texts.append(f"[ {', '.join(top_texts)}\n" + "\n".join(levels) + " ]")
    declared = "".join(f"{k}: {t};\n" for k, t in types.items())
    comment = "# made at random\n" if rng.random() < 0.5 else ""
    few = {"class": 1, "expver": 1, "stream": 2, "date": 2, "time": 2, "domain": 1, "type": 2, "levtype": 2}
    values = {k: rng.sample(known, few.get(k, 4)) for k, known in PLAIN.items()}
    return Schema(comment + declared + "\n".join(texts) + "\n", types, shapes, optional, defaults, values)


def value(rng: random.Random, of: Schema, keyword: str) -> str:
    luck = rng.random()
    if luck < 0.007:
        return rng.choice(WRONG[keyword])
    return rng.choice(ODD[keyword] if luck < 0.05 else of.values[keyword])


def key(rng: random.Random, of: Schema) -> Key:
    """A key for one of the schema's shapes; sometimes a keyword is missing, surplus, oddly spelt or wrong."""
    shape = [k for level in rng.choice(of.shapes) for k in level]
    made = {k: value(rng, of, k) for k in shape}
    for keyword in sorted(of.optional & made.keys()):
        if rng.random() < 0.4:
            del made[keyword]
    luck = rng.random()
    if luck < 0.02:
        del made[rng.choice(sorted(made))]
    elif luck < 0.04:
        extra = rng.choice(sorted(PLAIN.keys() | {"channel", "colour"}))
        made.setdefault(extra, rng.choice(PLAIN.get(extra, ["1"])))
    return made


def request(rng: random.Random, of: Schema, stored: list[Key], full: bool) -> Request:
    """Keywords of a stored key, all of them if `full`; some spelt differently, listed, ranged or wrong."""
    if not stored or (not full and rng.random() < 0.05):
        return {}
    base = rng.choice(stored)
    keywords = sorted(base)
    if not full:
        keywords = rng.sample(keywords, rng.randint(1, min(5, len(keywords))))
    made: Request = {}
    for keyword in keywords:
        luck = rng.random()
        if luck < 0.60 or (full and luck < 0.66):
            made[keyword] = base[keyword]
        elif luck < 0.80 and (keyword in LISTS or rng.random() < 0.02):
            values = [base[keyword], *rng.choices(of.values[keyword], k=rng.randint(1, 3))]
            rng.shuffle(values)
            made[keyword] = values if rng.random() < 0.5 else "/".join(values)
        elif 0.80 <= luck < 0.88:
            made[keyword] = rng.choice(RANGES.get(keyword, PLAIN[keyword]))
        elif 0.88 <= luck < 0.95:
            made[keyword] = rng.choice(ODD[keyword])
        elif 0.95 <= luck < 0.955:
            made[keyword] = rng.choice(WRONG_RANGES.get(keyword, PLAIN[keyword]))
        elif luck >= 0.995:
            made[keyword] = rng.choice(WRONG[keyword])
        else:
            made[keyword] = base[keyword]
    luck = rng.random()
    if luck < 0.01:
        made["colour"] = "red"
    elif luck < 0.03:
        spare = rng.choice(sorted(PLAIN.keys() - made.keys()) or ["class"])
        made[spare] = rng.choice(PLAIN[spare])
    elif luck < 0.05 and full:
        del made[rng.choice(sorted(made))]
    return made

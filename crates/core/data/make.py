"""Makes the tables of this folder from ECMWF's: `python make.py METKIT_SHARE ECCODES_DEFINITIONS`.

METKIT_SHARE has language.yaml, params.yaml, params-static.yaml, paramids.yaml and
shortname-context.yaml; ECCODES_DEFINITIONS has mars/class.table and similar tables.

words.tsv           vocabulary, canonical word, other names
params.tsv          number, short name, further names; one parameter on each line, in ECMWF's order
param-contexts.tsv  class, levtype, stream, type (- for any) and the names that mean another number there
"""

import collections
import re
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).parent
VOCABULARIES = ("class", "type", "stream", "levtype", "domain", "model", "origin", "product")
VOCABULARIES += ("section", "stattype", "timespan", "activity", "experiment", "resolution")
FROM_ECCODES = ("class", "type", "stream")
LONGEST_NAME = 60


def read(path: Path) -> object:
    # Every scalar stays text: `no` is a class.
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)


def names_of(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def words(share: Path, definitions: Path) -> list[str]:
    fields = read(share / "language.yaml")["_field"]
    lines = []
    for vocabulary in VOCABULARIES:
        table: dict[str, list[str]] = {}
        values = fields[vocabulary].get("values")
        # General entries come last, after those for one class and country.
        sets = [values] if values else [kind["values"] for kind in reversed(fields[vocabulary]["type"])]
        for names in (names_of(value) for values in sets for value in values):
            if any(names[0].lower() in further for further in table.values()):
                continue
            known = table.setdefault(names[0].lower(), [])
            known += [n.lower() for n in names[1:] if not n.isdigit() and n.lower() not in known]
        if vocabulary in FROM_ECCODES:
            for line in (definitions / "mars" / f"{vocabulary}.table").read_text().splitlines():
                code = line.split("#")[0].split()
                if len(code) > 1 and not code[1].isdigit():
                    table.setdefault(code[1].lower(), [])
        if vocabulary == "levtype":
            concept = (definitions / "grib2" / "marsLevtypeConcept.def").read_text()
            for word in re.findall(r"'(\w+)'\s*=", concept):
                table.setdefault(word.lower(), [])
        if vocabulary == "type":
            for line in (definitions / "grib2/tables/34/1.4.table").read_text().splitlines():
                code = line.split("#")[0].split()
                if len(code) > 2 and code[1].isalpha():
                    table.setdefault(code[1].lower(), [])
        taken = set(table)
        for word in sorted(table):
            further = [n for n in table[word] if n not in taken]
            taken.update(further)
            lines.append("\t".join([vocabulary, word, *further]))
    return lines


def mapping(ids: dict[str, list[str]], numbers: list[str]) -> dict[str, str]:
    """Name to number: a name at an earlier place of its line wins, then the earlier line."""
    found: dict[str, str] = {}
    places: dict[str, int] = {}
    for number in numbers:
        for place, name in enumerate(ids.get(number, [])):
            if name not in found or place < places[name]:
                found[name], places[name] = number, place
    return found


def contexts(share: Path, ids: dict[str, list[str]]) -> list[str]:
    everywhere = mapping(ids, list(ids))
    short = set(read(share / "shortname-context.yaml"))
    of_short = {number for number, names in ids.items() if short & set(names)}
    rules: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for file in ("params.yaml", "params-static.yaml"):
        for context, numbers in read(share / file):
            key = tuple(context.get(k, "-") for k in ("class", "levtype", "stream", "type"))
            rules[key] += numbers
    groups: dict[tuple[str, ...], list[str]] = {}
    for key, numbers in rules.items():
        here = mapping(ids, [n for n in numbers if n in of_short])
        other = sorted(f"{name}={number}" for name, number in here.items() if everywhere[name] != number)
        groups[key] = other
    # Contexts of all four keywords first, then the wider ones.
    order = sorted(groups, key=lambda key: (key.count("-"), key))
    return ["\t".join([*key, *groups[key]]) for key in order if groups[key] or "-" not in key]


def main() -> None:
    share, definitions = Path(sys.argv[1]), Path(sys.argv[2])
    ids = {
        number: [n for n in names if len(n) <= LONGEST_NAME]
        for number, names in read(share / "paramids.yaml").items()
    }
    everywhere = mapping(ids, list(ids))
    params = ["\t".join([number, *names]) for number, names in ids.items()]
    tables = {"words": words(share, definitions), "params": params, "param-contexts": contexts(share, ids)}
    for name, lines in tables.items():
        (HERE / f"{name}.tsv").write_text("\n".join(lines) + "\n")
        print(f"{name}.tsv: {len(lines)} lines")
    lower: dict[str, set[str]] = collections.defaultdict(set)
    for name, number in everywhere.items():
        lower[name.lower()].add(number)
    print(sum(len(n) > 1 for n in lower.values()), "names that differ by case alone")


main()

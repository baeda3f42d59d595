"""The real FDB and Fieldstone run random archives and requests: 20,000, or a third of them in the short form.

`FIELDSTONE_FDB_SEEDS=1000:1200` runs these rounds instead of the usual ones.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from importlib.util import find_spec

import compare
import pytest
import rules
from conftest import LONG, require
from peer import Fdb, Ours

ALL = range(1, 41)
USUAL = ALL if LONG else range(1, 14)
DOCUMENT = "docs/fdb-differences.md"


def seeds() -> range:
    first, _, last = os.environ.get("FIELDSTONE_FDB_SEEDS", "").partition(":")
    return range(int(first), int(last or int(first) + 1)) if first else USUAL


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> tuple[Counter[str], list[compare.Difference], int]:
    """How often each rule explains a difference, the differences without a rule, the number of operations."""
    require("pyfdb", find_spec("pyfdb"), "pip install 'fieldstone[fdb]'")
    counts: Counter[str] = Counter()
    unexplained: list[compare.Difference] = []
    fdb, ours = Fdb(), Ours()
    for seed in seeds():
        folder = tmp_path_factory.mktemp(f"seed-{seed}")
        for difference in compare.round_of(seed, fdb, ours, folder):
            names = rules.explain(difference)
            counts.update(names)
            if not names:
                unexplained.append(difference)
        shutil.rmtree(folder)
    fdb.close()
    return counts, unexplained, len(seeds()) * (compare.ARCHIVES + compare.REQUESTS)


def test_random_operations_differ_only_as_documented(found, capsys):
    counts, unexplained, operations = found
    with capsys.disabled():
        listed = ", ".join(f"{name} {n}" for name, n in counts.most_common())
        print(f"\n{operations} operations compared with FDB; differences by rule: {listed}")
    assert operations >= 20_000 or seeds() != ALL
    assert not unexplained, f"{len(unexplained)} differences, the first:\n" + "\n\n".join(
        map(str, unexplained[:3])
    )


def test_every_rule_for_a_difference_is_needed(found):
    """Some rules apply only in some of all seeds."""
    missing = {rule.name for rule in rules.ALL} - found[0].keys()
    assert len(missing) <= (0 if seeds() == ALL else len(rules.ALL) // 4), missing


def test_every_rule_for_a_difference_is_documented(request):
    text = (request.config.rootpath / DOCUMENT).read_text()
    for rule in rules.ALL:
        assert f"| `{rule.name}` |" in text, rule.name

"""The relations of real Darshan logs, as a file of lines that the slots' program puts.

The logs are sample files of the tests: in the folder `darshan` of the folder in `FIELDSTONE_DATA`, or of
`../shared/data` next to the checkout.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from functools import cache
from pathlib import Path

from measure import BENCH

Relation = tuple[str, str, str, str, str]
"""Type, type and id of the source, type and id of the target."""
_FROM_SOURCE = ("run", "exe", "contains", "read", "write")
"""The relations that ingest makes of a log, in the order in which it puts them."""


def logs() -> list[Path]:
    base = Path(os.environ.get("FIELDSTONE_DATA") or BENCH.parent.parent / "shared" / "data")
    return sorted((base / "darshan").glob("*.darshan"))


def missing() -> str:
    """The name of the package or folder that is missing to read the logs; "" if nothing is."""
    absent = [name for name in ("fieldstone", "darshan") if importlib.util.find_spec(name) is None]
    if absent:
        return f"the package {absent[0]} is not installed"
    return "" if logs() else "there are no Darshan logs (FIELDSTONE_DATA names the folder of sample files)"


@cache
def own() -> list[Relation]:
    """The relations of the logs, job by job in the order of their starts."""
    import fieldstone as fst

    found = []
    with tempfile.TemporaryDirectory() as folder, fst.open(str(Path(folder) / "store")) as store:
        fst.ingest(store, logs(), progress=False)
        graph = store.graph
        for kind in ("user", "job", "process"):
            for vertex in graph.find(kind):
                edges = (edge for edge in graph.edges(vertex) if edge.type in _FROM_SOURCE)
                found += [(edge.type, *edge.src, *edge.dst) for edge in edges]

    def order(relation: Relation) -> tuple[int, str, int, Relation]:
        kind, _, source, _, target = relation
        job = (target if kind == "run" else source).partition("/")[0]
        return int(job.split("-")[1]), job, _FROM_SOURCE.index(kind), relation

    return sorted(found, key=order)


def again(relation: Relation, copy: int) -> Relation:
    """The same relations for another job, which did the same."""

    def name(kind: str, text: str) -> str:
        job, slash, process = text.partition("/")
        return f"{job}.{copy}{slash}{process}" if kind in ("job", "process") else text

    kind, source_kind, source, target_kind, target = relation
    return kind, source_kind, name(source_kind, source), target_kind, name(target_kind, target)


def write(path: Path, count: int) -> None:
    """`count` lines: the relations of the logs, and those of the same jobs again, under further numbers."""
    lines = []
    copy = 0
    while len(lines) < count:
        lines += ["\t".join(again(relation, copy)) for relation in own()]
        copy += 1
    for line in lines:
        if line.count("\t") != 4 or len(line.splitlines()) != 1:
            raise ValueError(f"an id with a tab or a line break: {line!r}")
    path.write_text("\n".join(lines[:count]) + "\n")

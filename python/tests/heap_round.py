"""A heap of files through a store and back: how each appears in its own engine, and at each stage.

``python python/tests/heap_round.py FOLDER…`` ingests all files of the folders into one store in one call,
copies the store, exports it, and ingests the export into a third store. A netCDF file is compared group by
group: the decoded Dataset of xarray's netCDF engine, with attributes and coordinates, must be identical to
that of each stage. GRIB messages are compared byte for byte, so that cfgrib shows the same for all. It prints
counts, and each exception with its reason.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fieldstone as fst
import netCDF4
import xarray as xr

STAGES = ("store", "copy", "export", "again")
ABSENT = "!*"
"""In the key of an ingested file: its fields lack this keyword, and those of another file have it."""


@dataclass
class Outcome:
    """The outcome of one heap."""

    files: int = 0
    taken: int = 0
    fields: int = 0
    omitted: dict[str, str] = field(default_factory=dict)
    """Files that were skipped, with the reasons."""
    equal: Counter[str] = field(default_factory=Counter)
    """Groups of netCDF files that are identical at a stage."""
    groups: int = 0
    unshown: dict[str, str] = field(default_factory=dict)
    """Files and groups that their own engine cannot show, with its error."""
    messages: dict[str, Counter[bytes]] = field(default_factory=dict)
    differs: list[tuple[str, str, str]] = field(default_factory=list)
    """File, stage, and the difference."""


def netcdf_groups(path: Path) -> list[str]:
    """The groups of a netCDF file, the root first."""

    def below(group: Any) -> Iterator[str]:
        yield group.path.strip("/")
        for child in group.groups.values():
            yield from below(child)

    with netCDF4.Dataset(path) as file:
        return list(below(file))


def shown(open_: Any, drop: list[str]) -> xr.Dataset | str:
    """A decoded Dataset, except for times that xarray cannot decode; or why there is none."""
    why = ""
    for options in ({}, {"decode_times": False}):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return open_(drop_variables=drop, **options).load()
        except Exception as error:
            why = why or f"{type(error).__name__}: {error}"
    return why


def difference(expected: xr.Dataset, got: xr.Dataset | str) -> str:
    """The differences of two Datasets; empty if they are identical."""
    if isinstance(got, str):
        return got
    try:
        xr.testing.assert_identical(expected, got)
    except AssertionError as error:
        return str(error)
    # From `variables`, because indexing a Dataset collects the coordinates of each one.
    types = {n: (v.dtype, got.variables[n].dtype) for n, v in expected.variables.items()}
    kinds = {n: pair for n, pair in types.items() if pair[0] != pair[1]}
    return f"types: {kinds}" if kinds else ""


def messages(store: fst.Store) -> Counter[bytes]:
    """The GRIB messages of a store."""
    found: Counter[bytes] = Counter()
    if "param" in store.axes():
        for one in store.retrieve("param=?*"):
            found[one.read()] += 1
    return found


def through(heap: list[Path], work: Path) -> Outcome:
    """Ingests a heap of folders and files, takes it through all stages, and compares."""
    report = fst.ingest(work / "store", heap, progress=False)
    store = fst.open(work / "store", "r")
    fst.copy(store, to=work / "copy")
    (work / "out").mkdir()
    exported = store.export("", work / "out")
    fst.ingest(work / "again", work / "out", progress=False)
    stores = {name: fst.open(work / name, "r") for name in ("store", "copy", "again")}
    outcome = Outcome(report.files, len(report.taken), report.fields)
    parts: dict[Path, list[str]] = {}
    for skipped in report.skipped:
        if skipped.what == "the file":
            outcome.omitted[skipped.path.name] = skipped.why
        else:
            parts.setdefault(skipped.path, []).append(skipped.what)
    lost = {s.path: s.why for s in exported.skipped if s.what == "the file"}
    for taken in report.taken:
        if "run" not in taken.key:
            continue
        base = dict(taken.key)
        name = base["run"] + (f"-{base['source']}" if base.get("source", ABSENT) != ABSENT else "")
        out = next((p for p in exported.files if p.stem == name), None)
        dropped = [what.partition("[")[0].partition(":")[0] for what in parts.get(taken.path, [])]
        try:
            groups = netcdf_groups(taken.path)
        except OSError as error:
            outcome.unshown[taken.path.name] = str(error)
            continue
        for group in groups:
            compare(outcome, taken.path, group, dropped, base, out, stores, lost)
    outcome.messages = {name: messages(one) for name, one in stores.items()}
    there = outcome.messages["store"]
    for name, found in outcome.messages.items():
        if found != there:
            outcome.differs.append(("messages", name, f"{(there - found).total()} are not there"))
    return outcome


def compare(
    outcome: Outcome,
    path: Path,
    group: str,
    dropped: list[str],
    base: dict[str, str],
    out: Path | None,
    stores: dict[str, fst.Store],
    lost: dict[Path, str],
) -> None:
    """One group of one file at every stage."""
    prefix = f"{group}/" if group else ""
    drop = [what.removeprefix(prefix) for what in dropped if what.startswith(prefix)]
    where = {"group": group} if group else {}

    def file(of: Path) -> Any:
        return shown(lambda **o: xr.open_dataset(of, engine="netcdf4", **where, **o), drop)

    def of_store(store: fst.Store, key: dict[str, str]) -> Any:
        # A list only has values; an absent keyword has its own form.
        request = {k: v if v == ABSENT else [v] for k, v in key.items()}
        url = store.url
        return shown(
            lambda **o: xr.open_dataset(
                url, engine="fieldstone", request=request, combine=None, **where, **o
            ),
            drop,
        )

    expected, name = file(path), f"{path.name}{':' + group if group else ''}"
    if isinstance(expected, str):
        outcome.unshown[name] = expected
        return
    outcome.groups += 1
    found = {"store": of_store(stores["store"], base), "copy": of_store(stores["copy"], base)}
    if out is None:
        found |= dict.fromkeys(("export", "again"), f"not exported: {list(lost.values())[:3]}")
    else:
        found |= {"export": file(out), "again": of_store(stores["again"], {"run": out.stem})}
    for stage in STAGES:
        why = difference(expected, found[stage])
        if why:
            outcome.differs.append((name, stage, why))
        else:
            outcome.equal[stage] += 1


def main(folders: list[str]) -> None:
    """Prints the outcome of a heap."""
    with tempfile.TemporaryDirectory() as work:
        outcome = through([Path(folder) for folder in folders], Path(work))
    print(f"{outcome.taken} of {outcome.files} files taken, {outcome.fields} fields")
    for why, n in Counter(outcome.omitted.values()).most_common():
        print(f"  left out: {n} files: {why}")
    equal = ", ".join(f"{stage} {outcome.equal[stage]}" for stage in STAGES)
    print(f"{outcome.groups} groups of netCDF files identical to their own engine: {equal}")
    for name, found in outcome.messages.items():
        print(f"{found.total()} GRIB messages in {name}")
    for name, why in outcome.unshown.items():
        print(f"its own engine does not show {name}: {' '.join(why.split())[:200]}")
    for name, stage, why in outcome.differs:
        print(f"differs: {name} at {stage}: {' '.join(why.split())[:300]}")


if __name__ == "__main__":
    main(sys.argv[1:])

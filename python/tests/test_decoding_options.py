"""Each sample file with xarray's decoding options: the store, its copy and its export show the same as the
file.

The short form uses the smaller half of the samples with a few options; ``FIELDSTONE_DECODING=full`` (``make
test-long``) uses all with every combination.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fieldstone as fst
import pytest
from conftest import ROOT, sample

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")

FULL = os.environ.get("FIELDSTONE_DECODING") == "full"
FOLDERS = ("netcdf-classic", "netcdf4", "cfd", "plasma-particles", "mesh")
SMALL = 150_000
"""Maximum bytes of a file in the short form."""

DEFAULTS: dict[str, Any] = {
    "mask_and_scale": True, "decode_times": True, "concat_characters": True, "decode_coords": True,
}  # fmt: skip
SHORT = [
    {},
    {"mask_and_scale": False, "decode_times": False},
    {"concat_characters": False, "decode_coords": "all"},
]


def options() -> list[dict[str, Any]]:
    if not FULL:
        return SHORT
    values = [(True, False), (True, False), (True, False), (True, False, "coordinates", "all")]
    return [dict(zip(DEFAULTS, chosen, strict=True)) for chosen in itertools.product(*values)]


def corpus() -> list[str]:
    base = Path(os.environ.get("FIELDSTONE_DATA") or ROOT.parent / "shared" / "data")
    paths = (p for folder in FOLDERS for p in sorted((base / folder).glob("*")) if p.is_file())
    return [
        str(path.relative_to(base))
        for path in paths
        if path.open("rb").read(4) in (b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF")
        and (FULL or path.stat().st_size <= SMALL)
    ]


def groups_of(path: Path) -> list[str]:
    with netCDF4.Dataset(path) as file:
        found, waiting = [], [file]
        while waiting:
            group = waiting.pop()
            found.append(group.path.strip("/"))
            waiting += group.groups.values()
    return found


@pytest.fixture(scope="module")
def journey(tmp_path_factory):
    """The samples in a store, in a copy of it, exported file by file, and the export in another store."""
    folder = tmp_path_factory.mktemp("decoding")
    names = corpus()
    paths = [sample(name) for name in names] or [sample("netcdf4")]
    store = fst.open(folder / "store")
    report = fst.ingest(store, paths, progress=False)
    fst.copy(store, "", to=str(folder / "copy"))
    (folder / "out").mkdir()
    exported = store.export("", folder / "out")
    fst.ingest(str(folder / "again"), list(exported.files), progress=False)
    keys = {taken.path: dict(taken.key) for taken in report.taken}
    parts: dict[Path, set[str]] = {}
    for skipped in report.skipped:
        parts.setdefault(skipped.path, set()).add(skipped.what.partition("[")[0].partition(":")[0])
    changed = {s.path for s in exported.skipped}
    return folder, dict(zip(names, paths, strict=True)), keys, parts, changed


def shown(path: Path, group: str, chosen: dict[str, Any], **how: Any) -> xr.Dataset | Exception:
    """xarray's Dataset of a group, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return xr.open_dataset(path, group=group or None, **chosen, **how).load()
        except Exception as error:
            return error


def stages(
    folder: Path, key: dict[str, str], changed: set[Path]
) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """The places that show a file: the store, its copy, the export, and the store of that."""
    for name in ("store", "copy"):
        yield name, folder / name, {"engine": "fieldstone", "request": key, "combine": None}
    stem = key["run"] + (f"-{key['source']}" if key.get("source", "!*") != "!*" else "")
    out = next(path for path in (folder / "out").iterdir() if path.stem == stem)
    if out not in changed:
        yield "export", out, {"engine": "netcdf4"}
        yield (
            "again",
            folder / "again",
            {"engine": "fieldstone", "request": {"run": out.stem}, "combine": None},
        )


@pytest.mark.parametrize("name", corpus())
def test_a_file_by_all_options_is_shown_as_xarray_shows_it(journey, name):
    folder, paths, keys, parts, changed = journey
    path = paths[name]
    if path not in keys:
        assert path in parts, "a skipped file is reported"
        return
    for group in groups_of(path):
        prefix = f"{group}/" if group else ""
        dropped = [what.removeprefix(prefix) for what in parts.get(path, ())]
        for chosen in options():
            want = shown(path, group, {**chosen, "drop_variables": dropped}, engine="netcdf4")
            for stage, place, how in stages(folder, keys[path], changed):
                got = shown(place, group, {**chosen, "drop_variables": dropped}, **how)
                where = (name, group, chosen, stage)
                if isinstance(want, Exception):
                    assert isinstance(got, Exception), where
                    continue
                assert isinstance(got, xr.Dataset), (where, got)
                assert got.identical(want), where
                assert {n: v.dtype for n, v in got.variables.items()} == {
                    n: v.dtype for n, v in want.variables.items()
                }, where

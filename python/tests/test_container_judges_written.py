"""Our files before external judges: ncvalidator, ncdump, netCDF-C, scipy, PnetCDF's tools.

They accept random files (500, or 2,000 in the long form) and read them back value for value. The schemas'
coverage is counted, and each rare class must have been met. `test_container_judges.py` judges files of
others, `test_container_judges_limits.py` sizes at the formats' limits.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import container_schemas as schemas
import numpy as np
import pytest
from conftest import LONG
from container_judges import (
    CLASSES,
    dumps,
    program,
    read_netcdf4,
    read_ours,
    read_scipy,
    tell,
    tool,
    validated,
    verdict,
    write_netcdf4,
    write_ours,
)

SEEDS = 2000 if LONG else 500
KINDS = {"cdf1": "classic", "cdf2": "64-bit-offset", "cdf5": "cdf5"}
STRATEGIES = (None, "app", "library-hash", "library-sort")

Pairs = list[tuple[schemas.Schema, Path]]


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> Pairs:
    """The random schemas, each with its file, written by Fieldstone with all strategies in turn."""
    folder = tmp_path_factory.mktemp("ours")
    pairs = []
    for seed in range(SEEDS):
        pairs.append((schemas.schema(seed, paths=True), folder / f"{seed}.nc"))
        write_ours(*pairs[-1], STRATEGIES[seed % len(STRATEGIES)])
    return pairs


def in_two(act, items) -> list[str]:
    """Complaints of judges that are started for each file."""
    with ThreadPoolExecutor(2) as pool:
        return [complaint for complaints in pool.map(act, items) for complaint in complaints]


def has_nan(value: np.ndarray) -> bool:
    """Whether any element is NaN."""
    return value.dtype.kind == "f" and bool(np.isnan(value).any())


def test_all_are_valid(ours):
    tool("ncvalidator")
    coverage: Counter[str] = Counter()
    for found, _ in ours:
        coverage.update(set(schemas.classes(found)))
    paths = [path for _, path in ours]
    verdict(in_two(validated, paths), "ncvalidator")
    done = program("container", "validate", "--json", *paths)
    files = json.loads(done.stdout)["files"]
    # No warnings either.
    wrong = [f"{file['file']}: {file['findings']}" for file in files if not file["ok"] or file["findings"]]
    assert (len(files), done.returncode) == (SEEDS, 0)
    verdict(wrong, "our own validator")
    tell(coverage, "us to all", CLASSES | {"path", "name defined twice"})


@pytest.mark.parametrize("read", [read_netcdf4, read_scipy, read_ours])
def test_all_are_read_value_for_value(ours, read):
    wrong = [f"seed {found.seed}: {text}" for found, path in ours for text in read(found, path)]
    verdict(wrong, read.__name__)


def test_ncdump_prints_what_we_print(ours):
    tool("ncdump")
    verdict(in_two(dumps, [path for _, path in ours[::4]]), "CDL beside ncdump")


def test_strategies_write_the_same_bytes(ours, tmp_path):
    for found, path in ours[::20]:
        for i, strategy in enumerate(STRATEGIES):
            other = tmp_path / f"{i}.nc"
            write_ours(found, other, strategy)
            assert other.read_bytes() == path.read_bytes(), f"seed {found.seed}, {strategy}"


def test_pnetcdf_finds_no_difference_to_files_of_netcdf_c(tmp_path):
    """cdfdiff compares values, to which NaN is never equal, and netCDF4 writes empty text as one zero byte:
    files with these are left out."""
    cdfdiff = tool("cdfdiff")
    compared = 0
    for seed in range(SEEDS, SEEDS + (250 if LONG else 60)):
        found = schemas.schema(seed)
        values = [v.data for v in found.vars if v.data is not None]
        values += [value for holder in [found, *found.vars] for value in holder.attrs.values()]
        if any(value == "" if isinstance(value, str) else has_nan(value) for value in values):
            continue
        ours, theirs = tmp_path / "ours.nc", tmp_path / "theirs.nc"
        write_ours(found, ours)
        write_netcdf4(found, theirs)
        done = subprocess.run([cdfdiff, ours, theirs], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
        compared += 1
    assert compared > (150 if LONG else 35)


def test_offsets_are_those_of_ncoffsets(ours):
    ncoffsets = tool("ncoffsets")
    compared = 0
    for found, path in ours[::15]:
        if not found.vars or any(0 in var.shape for var in found.vars):
            continue
        told = subprocess.run([ncoffsets, "-sg", path], capture_output=True, check=True).stdout.decode()
        theirs = [
            [int(n) for n in re.findall(rf"{label} +=\s+(-?\d+)", told)]
            for label in ("start file offset", "end   file offset", "size in bytes", "gap from prev var")
        ]
        mine = json.loads(program("container", "offsets", "--json", path).stdout)["vars"]
        assert [[var[key] for var in mine] for key in ("begin", "end", "bytes", "gap")] == theirs, path
        compared += 1
    assert compared > SEEDS // 40


def test_nccopy_takes_them_to_other_formats_and_back(ours, tmp_path):
    nccopy = tool("nccopy")
    copied = 0
    for found, path in ours[::25]:
        if any("/" in text for text in [*found.dims, *found.attrs, *(var.name for var in found.vars)]):
            continue
        there, back = tmp_path / "there.nc", tmp_path / "back.nc"
        for form, source, target in (("cdf5", path, there), (found.format, there, back)):
            subprocess.run([nccopy, "-k", KINDS[form], source, target], check=True, capture_output=True)
        assert read_ours(found, back) == [], f"seed {found.seed}"
        copied += 1
    assert copied > SEEDS // 50

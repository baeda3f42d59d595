"""Containers of netCDF-C, read and printed by Fieldstone, before external judges.

Two thousand random files are read value for value, and printed as by ncdump, to the byte. The schemas'
coverage is counted, and each rare class must have been met. `test_container_judges_written.py` judges our own
files.
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
from conftest import LONG, sample
from container_judges import dumps, program, read_ours, same, tell, tool, verdict, write_netcdf4
from fieldstone import container

SEEDS = 2000 if LONG else 500


@pytest.fixture(scope="module")
def theirs(tmp_path_factory) -> list[tuple[schemas.Schema, Path]]:
    """The random schemas, each with its file, written by netCDF-C."""
    folder = tmp_path_factory.mktemp("netcdf_c")
    pairs = []
    for seed in range(SEEDS):
        pairs.append((schemas.schema(seed), folder / f"{seed}.nc"))
        write_netcdf4(*pairs[-1])
    return pairs


def test_random_files_of_netcdf_c_are_read_value_for_value(theirs):
    coverage: Counter[str] = Counter()
    wrong = []
    for found, path in theirs:
        coverage.update(set(schemas.classes(found)))
        wrong += [f"seed {found.seed}: {text}" for text in read_ours(found, path)]
    # Only Fieldstone as the writer tries that.
    del coverage["name defined twice"]
    verdict(wrong, "reading files of netCDF-C")
    tell(coverage, "netCDF-C to us")


def test_random_files_of_netcdf_c_are_printed_as_ncdump_prints_them(theirs):
    tool("ncdump")
    with ThreadPoolExecutor(2) as pool:
        lists = pool.map(dumps, [path for _, path in theirs])
        wrong = [complaint for complaints in lists for complaint in complaints]
    verdict(wrong, "CDL beside ncdump")


def test_what_netcdf_c_writes_is_sound(theirs):
    done = program("container", "validate", "--json", *(path for _, path in theirs))
    files = json.loads(done.stdout)["files"]
    wrong = [f"{file['file']}: {file['findings']}" for file in files if not file["ok"]]
    assert len(files) == SEEDS
    verdict(wrong, "files of netCDF-C")
    assert done.returncode == 0


@pytest.mark.parametrize("folder", ["netcdf-classic", "mesh", "validator"])
def test_real_files_are_printed_as_ncdump_prints_them(folder):
    tool("ncdump")
    seen = 0
    for path in sorted(sample(folder).iterdir()):
        if not path.is_file() or path.open("rb").read(3) != b"CDF" or path.name.startswith("bad_"):
            continue
        seen += 1
        assert dumps(path) == []
    assert seen >= 2


@pytest.mark.parametrize("folder", ["netcdf-classic", "mesh"])
def test_real_files_are_read_value_for_value(folder):
    import netCDF4

    compared = 0
    for path in sorted(sample(folder).iterdir()):
        if not path.is_file() or path.open("rb").read(3) != b"CDF" or path.name.startswith("bad_"):
            continue
        with container.open(path) as ours, netCDF4.Dataset(path) as other:
            other.set_auto_maskandscale(False)
            other.set_auto_chartostring(False)
            assert dict(ours.dims) == {name: dim.size for name, dim in other.dimensions.items()}, path
            assert list(ours.vars) == list(other.variables), path
            for mine, known in [(ours, other), *((ours[name], other[name]) for name in ours.vars)]:
                attrs = {name: known.getncattr(name) for name in known.ncattrs()}
                assert list(mine.attrs) == list(attrs), path
                for name, value in attrs.items():
                    found = mine.attrs[name]
                    if isinstance(found, bytes):
                        found = found.decode()
                    equal = found == value if isinstance(value, str) else same(value, found)
                    assert equal, f"{path}: {name}"
            for name, var in other.variables.items():
                assert same(var[...], ours[name].get()), f"{path}: {name}"
                compared += 1
    assert compared > 50


def test_damaged_files_name_offset_and_rule():
    damaged = [path for path in sorted(sample("validator").iterdir()) if path.name.startswith("bad_")]
    damaged.append(sample("netcdf-classic/bad_cdf5_begin.nc"))
    assert len(damaged) > 15
    for path in damaged:
        done = program("container", "validate", path)
        assert done.returncode == 5, f"{path}: {done.stdout!r}"
        told = done.stdout.decode()
        assert re.search(rf"{re.escape(str(path))}: error: offset \d+: .*\(rule: .+\)", told), told


def test_offsets_are_those_of_ncoffsets(tmp_path):
    ncoffsets = tool("ncoffsets")
    compared = 0
    for seed in range(200 if LONG else 40):
        found = schemas.schema(seed)
        if not found.vars or any(0 in var.shape for var in found.vars):
            continue
        path = tmp_path / "a.nc"
        write_netcdf4(found, path)
        theirs = subprocess.run([ncoffsets, "-sg", path], capture_output=True, check=True).stdout.decode()
        numbers = [
            [int(n) for n in re.findall(rf"{label} +=\s+(-?\d+)", theirs)]
            for label in ("start file offset", "end   file offset", "size in bytes", "gap from prev var")
        ]
        ours = json.loads(program("container", "offsets", "--json", path).stdout)["vars"]
        mine = [[var[key] for var in ours] for key in ("begin", "end", "bytes", "gap")]
        assert mine == numbers, f"seed {seed}"
        compared += 1
    assert compared > (100 if LONG else 20)


def test_a_thousand_dimensions_with_data(tmp_path):
    ncgen = tool("ncgen")
    twos = (3, 500, 999)
    dims = "".join(f"d{i} = {2 if i in twos else 1} ; " for i in range(1000))
    names = ", ".join(f"d{i}" for i in range(1000))
    cdl = tmp_path / "deep.cdl"
    cdl.write_text(
        f"netcdf deep {{ dimensions: {dims} variables: short deep({names}) ; "
        "data: deep = 1, 2, 3, 4, 5, 6, 7, 8 ; }"
    )
    path = tmp_path / "deep.nc"
    subprocess.run([ncgen, "-5", "-o", path, cdl], check=True)
    assert dumps(path) == []
    header = json.loads(program("container", "header", path, "--json").stdout)
    assert (header["dims"], header["data_bytes"]) == (1000, 16)


@pytest.mark.parametrize("form", ["cdf2", "cdf5"])
def test_variables_beyond_4_gib_in_sparse_files(tmp_path, form):
    import netCDF4

    size = 5 << 30
    path = tmp_path / "large.nc"
    with netCDF4.Dataset(path, "w", format=schemas.FORMATS[form]) as file:
        file.set_fill_off()
        # A dimension of CDF-2 has fewer than 2^32 elements.
        file.createDimension("y", 5)
        file.createDimension("x", 1 << 30)
        file.createVariable("small", "i2", ())[...] = 7
        file.createVariable("large", "i1", ("y", "x"))[4, -4:] = np.arange(4, dtype="i1")
    assert path.stat().st_blocks * 512 < 1 << 20, "the file is sparse"
    ours = json.loads(program("container", "offsets", path, "--json").stdout)["vars"]
    assert ours[1]["bytes"] == size
    assert ours[1]["end"] == path.stat().st_size
    assert program("container", "validate", path).returncode == 0
    small = program("container", "dump", "-v", "small", path).stdout
    assert small.endswith(b"data:\n\n small = 7 ;\n}\n")

"""What the program says of containers, before outside judges: ncdump, netCDF-C's writer, PnetCDF's tools.

Two thousand random files of netCDF-C are printed as ncdump prints them, to the byte: every name, attribute
and element is read. The schemas' coverage is counted, and each rare class must have been met.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import container_schemas as schemas
import numpy as np
import pytest
from conftest import require, sample

SEEDS = 2000

# Each of these must have been met.
CLASSES = {
    *(f"format {form}" for form in schemas.FORMATS),
    *(f"type {dtype}" for dtype in schemas.CDF5_TYPES),
    *(f"attribute {dtype}" for dtype in schemas.CDF5_TYPES if dtype != "S1"),
    *(f"lone record variable of odd size: {dtype}" for dtype in schemas.SMALL_TYPES),
    "text attribute",
    "zero-length attribute",
    "zero-length attribute of a variable",
    "scalar",
    "zero-length dimension",
    "a dimension twice",
    "many record variables",
    "no variables",
    "default fill value",
    "own fill value",
    "name in UTF-8",
    "redef",
}


def tool(name: str) -> str:
    """The path of an outside judge."""
    path = shutil.which(name)
    require(name, path, f"{name} is not installed (Debian: netcdf-bin, pnetcdf-bin)")
    assert path
    return path


def program(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Runs the program."""
    fieldstone = Path(sys.executable).with_name("fieldstone")
    return subprocess.run([fieldstone, *arguments], capture_output=True, check=False)


def tell(coverage: Counter[str], what: str) -> None:
    """Prints the coverage, and fails where a class was not met."""
    print(f"\n{what}: " + ", ".join(f"{name} {count}" for name, count in sorted(coverage.items())))
    missing = CLASSES - set(coverage)
    assert not missing, f"{what}: never met: {sorted(missing)}"


def verdict(complaints: list[str], what: str) -> None:
    """Fails with the first complaints."""
    assert not complaints, f"{len(complaints)} complaints, {what}:\n" + "\n".join(complaints[:10])


def dumps(path: Path) -> list[str]:
    """Complaints about our CDL of a file beside ncdump's."""
    theirs = subprocess.run([tool("ncdump"), path], capture_output=True, check=False)
    ours = program("container", "dump", path)
    if theirs.returncode == ours.returncode == 0 and ours.stdout == theirs.stdout:
        return []
    pairs = zip(ours.stdout.splitlines(), theirs.stdout.splitlines(), strict=False)
    line = next(((a, b) for a, b in pairs if a != b), None)
    return [f"{path.name}: {line}, {ours.stderr.decode()}{theirs.stderr.decode()}"]


def test_random_files_of_netcdf_c_are_printed_as_ncdump_prints_them(tmp_path):
    ncdump = tool("ncdump")
    assert ncdump
    coverage: Counter[str] = Counter()
    paths = []
    for seed in range(SEEDS):
        found = schemas.schema(seed)
        coverage.update(set(schemas.classes(found)))
        paths.append(tmp_path / f"f{seed}.nc")
        schemas.write_netcdf4(found, paths[-1])
    with ThreadPoolExecutor(2) as pool:
        wrong = [complaint for complaints in pool.map(dumps, paths) for complaint in complaints]
    verdict(wrong, "CDL beside ncdump")
    tell(coverage, "netCDF-C to us")


def test_what_netcdf_c_writes_is_sound(tmp_path):
    paths = []
    for seed in range(SEEDS):
        paths.append(tmp_path / f"{seed}.nc")
        schemas.write_netcdf4(schemas.schema(seed), paths[-1])
    done = program("container", "validate", "--json", *paths)
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
    for seed in range(200):
        found = schemas.schema(seed)
        if not found.vars or any(0 in var.shape for var in found.vars):
            continue
        path = tmp_path / "a.nc"
        schemas.write_netcdf4(found, path)
        theirs = subprocess.run([ncoffsets, "-sg", path], capture_output=True, check=True).stdout.decode()
        numbers = [
            [int(n) for n in re.findall(rf"{label} +=\s+(-?\d+)", theirs)]
            for label in ("start file offset", "end   file offset", "size in bytes", "gap from prev var")
        ]
        ours = json.loads(program("container", "offsets", "--json", path).stdout)["vars"]
        mine = [[var[key] for var in ours] for key in ("begin", "end", "bytes", "gap")]
        assert mine == numbers, f"seed {seed}"
        compared += 1
    assert compared > 100


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
        # A dimension of CDF-2 has less than 2^32 elements.
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

"""Judges random containers: netCDF-C, scipy and Fieldstone write and read them, and the results are compared.

Readers return a list of complaints, so that a test reports many files at once. `CLASSES` lists the classes of
schemas that a test must have met.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import require
from container_schemas import (
    CDF5_TYPES,
    FORMATS,
    SMALL_TYPES,
    Schema,
    Value,
    Variable,
    classes,
)
from fieldstone import container

# Each of these must have been met, in both directions.
CLASSES = {
    *(f"format {form}" for form in FORMATS),
    *(f"type {dtype}" for dtype in CDF5_TYPES),
    *(f"attribute {dtype}" for dtype in CDF5_TYPES if dtype != "S1"),
    *(f"lone record variable of odd size: {dtype}" for dtype in SMALL_TYPES),
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
    "name not in NFC",
    "redef",
}

# The message that refuses a taken name.
REFUSED = r"defined|taken|already"


def tool(name: str) -> str:
    """The path of an external judge."""
    path = shutil.which(name)
    require(name, path, f"{name} is not installed (Debian: netcdf-bin, pnetcdf-bin)")
    assert path
    return path


def program(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Runs the program."""
    fieldstone = Path(sys.executable).with_name("fieldstone")
    return subprocess.run([fieldstone, *arguments], capture_output=True, check=False)


def tell(coverage: Counter[str], what: str, wanted: set[str] = CLASSES) -> None:
    """Prints the coverage, and fails if a class was not met."""
    print(f"\n{what}: " + ", ".join(f"{name} {count}" for name, count in sorted(coverage.items())))
    missing = wanted - set(coverage)
    assert not missing, f"{what}: never met: {sorted(missing)}"


def verdict(complaints: list[str], what: str) -> None:
    """Fails with the first complaints."""
    assert not complaints, f"{len(complaints)} complaints, {what}:\n" + "\n".join(complaints[:10])


def validated(path: Path) -> list[str]:
    """Complaints of PnetCDF's validator, which accepts one file at a time."""
    done = subprocess.run([tool("ncvalidator"), path], capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"{path.name}: ncvalidator: {done.stdout}{done.stderr}"]


def dumps(path: Path) -> list[str]:
    """Differences between our CDL of a file and ncdump's."""
    theirs = subprocess.run([tool("ncdump"), path], capture_output=True, check=False)
    ours = program("container", "dump", path)
    if theirs.returncode == ours.returncode == 0 and ours.stdout == theirs.stdout:
        return []
    pairs = zip(ours.stdout.splitlines(), theirs.stdout.splitlines(), strict=False)
    line = next(((a, b) for a, b in pairs if a != b), None)
    return [f"{path.name}: {line}, {ours.stderr.decode()}{theirs.stderr.decode()}"]


def write_netcdf4(found: Schema, path: Path) -> None:
    """Writes with netCDF-C. Dimensions are given in NFC, the only form in which netCDF4 finds them."""
    import netCDF4

    given = found.given
    with netCDF4.Dataset(path, "w", format=FORMATS[found.format]) as file:
        file.set_auto_mask(False)
        file.set_fill_on() if found.fill else file.set_fill_off()
        for key, length in found.dims.items():
            file.createDimension(key, length)
        for key, value in found.attrs.items():
            file.setncattr(given(key), value)
        for var in found.vars:
            own = var.attrs.get("_FillValue")
            made = file.createVariable(
                given(var.name),
                var.dtype,
                var.dims,
                fill_value=(None if found.fill else False) if own is None else own[0],
            )
            made.set_auto_maskandscale(False)
            made.set_auto_chartostring(False)
            for key, value in var.attrs.items():
                if key != "_FillValue":
                    made.setncattr(given(key), value)
            if var.data is not None and var.data.size:
                made[...] = var.data


def write_ours(found: Schema, path: Path, strategy: container._file.Strategy | None = None) -> None:
    """Writes with Fieldstone."""
    given = found.given
    with container.create(path, format=found.format, fill=found.fill, strategy=strategy) as file:
        for key, length in found.dims.items():
            file.def_dim(given(key), length)
        for key, value in found.attrs.items():
            file.put_att(given(key), value)
        early = found.late or len(found.vars)
        parts = [found.vars[:early]]
        if found.late:
            parts.append(found.vars[early:])
        for i, part in enumerate(parts):
            if i:
                file.redef()
            made = []
            for var in part:
                attrs = {given(key): value for key, value in var.attrs.items()}
                made.append(file.def_var(given(var.name), var.dtype, [given(dim) for dim in var.dims], attrs))
            if found.twice:
                define_again(found, file, part)
            file.enddef()
            for var, handle in zip(part, made, strict=True):
                if var.data is not None and var.data.size:
                    handle.put(var.data)


def define_again(found: Schema, file: container.Container, part: list[Variable]) -> None:
    """Tries to define taken names, also in their other form: all are refused, and nothing changes."""
    for form in ("NFC", "NFD"):
        for key in list(found.dims)[:2]:
            with pytest.raises((fst.Invalid, fst.Conflict), match=REFUSED):
                file.def_dim(unicodedata.normalize(form, key), 6)
        for var in part[:2]:
            with pytest.raises((fst.Invalid, fst.Conflict), match=REFUSED):
                file.def_var(unicodedata.normalize(form, var.name), "f8", ())


def escaped(found: Schema, text: str) -> str:
    """The name of a path in the file: names are escaped if any of them is a path."""
    texts = [*found.dims, *found.attrs, *(var.name for var in found.vars)]
    if not any("/" in other for other in texts):
        return text
    return text.replace("~", "~~").replace(".", "~.").replace("/", ".")


def read_netcdf4(found: Schema, path: Path) -> list[str]:
    """Complaints about netCDF-C's reading."""
    import netCDF4

    wrong: list[str] = []
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        dims = {key: None if dim.isunlimited() else dim.size for key, dim in file.dimensions.items()}
        expected = {escaped(found, key): length for key, length in found.dims.items()}
        if list(dims.items()) != list(expected.items()):
            wrong.append(f"dimensions {dims}, not {expected}")
        attrs = {key: file.getncattr(key) for key in file.ncattrs() if key != "fieldstone_paths"}
        wrong += same_attributes({escaped(found, k): v for k, v in found.attrs.items()}, attrs, "global")
        names = [escaped(found, var.name) for var in found.vars]
        if list(file.variables) != names:
            return [*wrong, f"variables {list(file.variables)}, not {names}"]
        for var, key in zip(found.vars, names, strict=True):
            theirs = file.variables[key]
            if theirs.dimensions != tuple(escaped(found, dim) for dim in var.dims):
                wrong.append(f"{key}: dimensions {theirs.dimensions}, not {var.dims}")
            attrs = {name: theirs.getncattr(name) for name in theirs.ncattrs()}
            wrong += same_attributes(var.attrs, attrs, key)
            if not same(var.expected(), theirs[...]):
                wrong.append(f"{key}: {theirs[...]!r}, not {var.expected()!r}")
    return wrong


def read_scipy(found: Schema, path: Path) -> list[str]:
    """Complaints about scipy's reading. scipy does not support CDF-5 and reads names as Latin-1.

    It reads a lone record variable as if its records were padded, which they are not (its array is garbage or
    an error, also with files of netCDF-C): such files are left out.
    """
    from scipy.io import netcdf_file

    wrong: list[str] = []
    if found.format == "cdf5" or any(word.startswith("lone record") for word in classes(found)):
        return wrong
    with netcdf_file(path, mmap=False) as file:
        names = [escaped(found, var.name).encode().decode("latin1") for var in found.vars]
        # scipy lists record variables last.
        if sorted(file.variables) != sorted(names):
            return [f"variables {list(file.variables)}, not {names}"]
        for var, key in zip(found.vars, names, strict=True):
            data = file.variables[key].data
            if not same(var.expected(), np.asarray(data)):
                wrong.append(f"{key}: {data!r}, not {var.expected()!r}")
    return wrong


def read_ours(found: Schema, path: Path) -> list[str]:
    """Complaints about Fieldstone's reading."""
    wrong: list[str] = []
    with container.open(path) as file:
        dims = dict(file.dims.items())
        expected = {key: found.numrecs if n is None else n for key, n in found.dims.items()}
        if list(dims.items()) != list(expected.items()):
            wrong.append(f"dimensions {dims}, not {expected}")
        wrong += same_attributes(found.attrs, dict(file.attrs.items()), "global")
        names = [var.name for var in found.vars]
        if list(file.vars) != names:
            return [*wrong, f"variables {list(file.vars)}, not {names}"]
        for var in found.vars:
            ours = file.vars[var.name]
            if tuple(ours.dims) != var.dims:
                wrong.append(f"{var.name}: dimensions {ours.dims}, not {var.dims}")
            wrong += same_attributes(var.attrs, dict(ours.attrs.items()), var.name)
            if not same(var.expected(), ours.get()):
                wrong.append(f"{var.name}: {ours.get()!r}, not {var.expected()!r}")
    return wrong


def same(ours: object, theirs: object) -> bool:
    """Equal values, bit by bit (NaN too)."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return ours == theirs
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.dtype.newbyteorder("=") != b.dtype.newbyteorder("=") or a.shape != b.shape:
        return False
    native = [np.ascontiguousarray(x, x.dtype.newbyteorder("=")).tobytes() for x in (a, b)]
    return native[0] == native[1]


def same_attributes(found: dict[str, Value], read: dict[str, object], what: str) -> list[str]:
    """Complaints about attributes."""
    wrong = []
    if list(found) != list(read):
        return [f"{what}: attributes {list(read)}, not {list(found)}"]
    for key, value in found.items():
        theirs = read[key]
        if len(value) == 0:
            # Every reader shows an attribute without elements in its own way.
            equal = np.size(theirs) == 0 or theirs in ("", b"")
        elif isinstance(value, str):
            equal = theirs == value
        else:
            equal = same(value if len(value) > 1 else value[0], np.squeeze(theirs))
            equal = equal or same(value, theirs)
        if not equal:
            wrong.append(f"{what}: attribute {key!r} is {theirs!r}, not {value!r}")
    return wrong

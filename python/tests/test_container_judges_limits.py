"""Containers at the limits of the formats, before external judges: 4 GiB, CDF-1's 2 GiB, 1,000 dimensions.

Large files are sparse. netCDF4 does not open files whose definitions netCDF-C refuses: Python closes a
Dataset that could not be closed again when it is collected, which ends the process. ncgen checks these
instead.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from container_judges import dumps, program, tool, validated
from container_schemas import FORMATS
from fieldstone import container

TAIL = np.arange(1, 17, dtype="i1")
KINDS = {"cdf1": "classic", "cdf2": "64-bit-offset", "cdf5": "cdf5"}


def is_sparse(path: Path) -> bool:
    """Whether a file takes a small part of its length on disk."""
    return path.stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("form", ["cdf2", "cdf5"])
@pytest.mark.parametrize("records", [False, True])
def test_variables_beyond_4_gib_that_we_write(tmp_path, form, records):
    import netCDF4

    path = tmp_path / "large.nc"
    # In CDF-2 the last variable, or the last one's record, may have more than 4 GiB, but no dimension 2^31.
    lengths = (5, 1 << 30) if form == "cdf2" else (1, 5 << 30)
    with container.create(path, format=form) as file:
        file.def_dims(["t", "y", "x"], [None, *lengths])
        small = file.def_var("small", "i2", ("t",) if records else ())
        large = file.def_var("large", "i1", ("t", "y", "x") if records else ("y", "x"))
        file.enddef()
        small.put(np.int16(7), [1] if records else [], [1] if records else [])
        at = (lengths[0] - 1, lengths[1] - 16)
        large.put(TAIL, (1, *at) if records else at, (1, 1, 16) if records else (1, 16))
    assert path.stat().st_size > (5 << 30) * (1 + records) and is_sparse(path)
    assert validated(path) == []
    with netCDF4.Dataset(path) as file:
        large = file["large"]
        index = (1, -1, slice(-16, None)) if records else (-1, slice(-16, None))
        assert (large[index] == TAIL).all()
        assert not large[(0, 0, slice(16)) if records else (0, slice(16))].any()
        assert file["small"][1 if records else ...] == 7
    done = program("container", "validate", path)
    assert (done.returncode, b"warning" in done.stdout) == (0, False), done.stdout
    with container.open(path) as file:
        assert (file["large"][(1, -1, slice(-16, None)) if records else (-1, slice(-16, None))] == TAIL).all()


@pytest.mark.parametrize("form", ["cdf2", "cdf5"])
@pytest.mark.parametrize("length", [1 << 30, (1 << 32) - 4])
def test_variables_beyond_4_gib_of_netcdf_c(tmp_path, form, length):
    """netCDF-C writes dimensions up to 2^32 - 4 to CDF-2, although the format's numbers end at 2^31 - 1."""
    import netCDF4

    path = tmp_path / "large.nc"
    with netCDF4.Dataset(path, "w", format=FORMATS[form]) as file:
        file.set_fill_off()
        file.createDimension("y", 5)
        file.createDimension("x", length)
        file.createVariable("small", "i2", ())[...] = 7
        file.createVariable("large", "i1", ("y", "x"))[4, -16:] = TAIL
    assert is_sparse(path)
    with container.open(path) as file:
        assert dict(file.dims) == {"y": 5, "x": length}
        assert file["small"][...] == 7
        assert (file["large"][4, -16:] == TAIL).all() and not file["large"][4, :16].any()


def test_many_variables_of_2_gib_in_cdf2(tmp_path):
    import netCDF4

    path = tmp_path / "many.nc"
    with container.create(path, format="cdf2") as file:
        file.def_dim("x", 2**31 - 4)
        made = [file.def_var(f"v{i}", "i1", ("x",)) for i in range(6)]
        file.enddef()
        for i, var in enumerate(made):
            var.put(TAIL + i, (2**31 - 20,), (16,))
    assert validated(path) == [] and is_sparse(path)
    with netCDF4.Dataset(path) as file:
        for i in range(6):
            assert (file[f"v{i}"][-16:] == TAIL + i).all()


CDF1 = [
    # Lengths of byte variables, and the limit that forbids them.
    ((2**31 - 4 - 1024, 8), ""),
    ((1024, 2**31 - 4), ""),
    ((1024, 2**31 - 4, 8), "begin"),
    ((2**31 - 4, 8), "begin"),
    ((2**31 + 1024, 8), "length"),
    ((8, 2**31 + 1024), "length"),
]


@pytest.mark.parametrize(("lengths", "forbids"), CDF1)
@pytest.mark.parametrize("form", ["cdf1", "cdf2"])
def test_2_gib_in_cdf1(tmp_path, lengths, forbids, form):
    """A variable begins below 2 GiB and the last one may end beyond; cdf2 has no such limit on begins."""
    allowed = not forbids or (form == "cdf2" and forbids == "begin")
    cdl = tmp_path / "a.cdl"
    dims = "".join(f"x{i} = {length} ; " for i, length in enumerate(lengths))
    names = "".join(f"byte v{i}(x{i}) ; " for i in range(len(lengths)))
    cdl.write_text(f"netcdf a {{ dimensions: {dims} variables: {names} }}")
    theirs = [tool("ncgen"), "-x", "-k", KINDS[form], "-o", tmp_path / "theirs.nc", cdl]
    done = subprocess.run(theirs, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == allowed, done.stderr
    path = tmp_path / "ours.nc"

    def write() -> None:
        with container.create(path, format=form) as file:
            for i, length in enumerate(lengths):
                file.def_dim(f"x{i}", length)
                file.def_var(f"v{i}", "i1", (f"x{i}",))
            file.enddef()
            last = len(lengths) - 1
            file[f"v{last}"].put(TAIL[:8], (lengths[last] - 8,), (8,))

    if allowed:
        write()
        assert validated(path) == [] and is_sparse(path)
        with container.open(path) as file:
            assert (file[f"v{len(lengths) - 1}"][-8:] == TAIL[:8]).all()
        return
    limit = rf"variable `v\d` would begin .* of {form[:3].upper()}-1 is 2147483647"
    if forbids == "length":
        limit = rf"length of dimension `x\d` is {2**31 + 1024}; the limit of CDF-{form[3]} is 2147483647"
    with pytest.raises(fst.Invalid, match=limit) as refused:
        write()
    assert "cdf5" in (refused.value.hint or "")
    assert not path.exists()


@pytest.mark.parametrize(
    ("form", "sizes", "allowed"),
    [
        # Numbers of doubles in fixed variables; then in the records.
        ("cdf1", ([8, 2**28], []), True),
        ("cdf1", ([2**28, 8], []), False),
        ("cdf1", ([8, 2**28], [8]), False),
        ("cdf1", ([8], [8, 2**28]), True),
        ("cdf1", ([8], [2**28, 8]), False),
        ("cdf2", ([8, 2**29], []), True),
        ("cdf2", ([2**29, 8], []), False),
        ("cdf2", ([8, 2**29], [8]), False),
        ("cdf2", ([8], [8, 2**29]), True),
        ("cdf2", ([8], [2**29, 8]), False),
        ("cdf5", ([2**29, 8], [2**29, 8]), True),
    ],
)
def test_only_the_last_may_be_too_large(tmp_path, form, sizes, allowed):
    fixed, records = sizes
    dims = "".join(f"x{n} = {n} ; " for n in sorted({*fixed, *records}))
    cdl_vars = [f"double f{i}(x{n}) ;" for i, n in enumerate(fixed)]
    cdl_vars += [f"double r{i}(t, x{n}) ;" for i, n in enumerate(records)]
    cdl = tmp_path / "a.cdl"
    cdl.write_text(f"netcdf a {{ dimensions: t = unlimited ; {dims} variables: {' '.join(cdl_vars)} }}")
    theirs = [tool("ncgen"), "-x", "-k", KINDS[form], "-o", tmp_path / "theirs.nc", cdl]
    done = subprocess.run(theirs, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == allowed, done.stderr
    path = tmp_path / "ours.nc"
    refused = None
    try:
        with container.create(path, format=form) as file:
            file.def_dim("t", None)
            for n in sorted({*fixed, *records}):
                file.def_dim(f"x{n}", n)
            for i, n in enumerate(fixed):
                file.def_var(f"f{i}", "f8", (f"x{n}",))
            for i, n in enumerate(records):
                file.def_var(f"r{i}", "f8", ("t", f"x{n}"))
            file.enddef()
    except fst.Invalid as error:
        refused = error
    assert (refused is None) == allowed, refused
    if refused is None:
        assert validated(path) == []
    else:
        assert re.search(r"the (limit|largest offset) of CDF-\d is \d+", str(refused)), refused
        assert not path.exists()


def test_a_thousand_dimensions(tmp_path):
    import netCDF4

    path = tmp_path / "deep.nc"
    twos = (3, 500, 999)
    data = np.arange(8, dtype="i2")
    # PnetCDF's validator up to 1.12 refuses a name index, like any bytes after the data.
    with container.create(path, format="cdf5", index="never") as file:
        file.def_dims([f"d{i}" for i in range(1000)], [2 if i in twos else 1 for i in range(1000)])
        deep = file.def_var("deep", "i2", [f"d{i}" for i in range(1000)])
        file.enddef()
        deep.put(data, None, [2 if i in twos else 1 for i in range(1000)])
    assert validated(path) == [] and dumps(path) == []
    with netCDF4.Dataset(path) as file:
        assert len(file["deep"].dimensions) == 1000
    with container.open(path) as file:
        assert file["deep"].shape == tuple(2 if i in twos else 1 for i in range(1000))
        into = np.empty(8, "i2")
        assert (file["deep"].get(into=into) == data).all()
        one = file["deep"].get(
            [1 if i in twos else 0 for i in range(1000)], [1] * 1000, into=np.empty(1, "i2")
        )
        assert one == [7]


def test_names_are_stored_in_nfc_and_equal_ones_refused(tmp_path):
    import netCDF4

    path = tmp_path / "names.nc"
    decomposed, composed = "cafe\u0301", "caf\u00e9"
    with container.create(path, format="cdf5") as file:
        file.def_dim(decomposed, 3)
        file.def_var(decomposed, "i1", (composed,), attrs={decomposed: 1, composed: 2})
        file.put_att(decomposed, "drink")
        with pytest.raises((fst.Invalid, fst.Conflict), match=composed):
            file.def_var(composed, "i2", ())
        with pytest.raises((fst.Invalid, fst.Conflict), match=composed):
            file.def_dim(composed, 4)
        file.enddef()
    assert validated(path) == []
    with netCDF4.Dataset(path) as file:
        assert list(file.dimensions) == list(file.variables) == file.ncattrs() == [composed]
        assert (file[composed].ncattrs(), file[composed].getncattr(composed)) == ([composed], 2)
    with container.open(path) as file:
        assert file[decomposed].dims == (composed,)
        assert file.dims[decomposed] == 3
        assert file.attrs[decomposed] == "drink"
        assert file[composed].attrs[decomposed] == 2


def test_a_sparse_file_that_moves_stays_sparse(tmp_path):
    path = tmp_path / "sparse.nc"
    length = 64 << 20
    with container.create(path) as file:
        file.def_dim("x", length)
        file.def_var("v", "i1", ("x",)).attrs["units"] = "K"
        file.enddef()
        file["v"].put(TAIL, (length - 16,), (16,))
    with container.open(path, "a") as file:
        begin = file["v"]._native.place[0]
        file.redef()
        file.put_att("history", "x" * 5000)
        file.enddef()
        assert file["v"]._native.place[0] > begin, "it has moved"
    assert path.stat().st_size > length and path.stat().st_blocks * 512 < 8 << 20
    with container.open(path) as file:
        assert (file["v"][-16:] == TAIL).all() and not file["v"][: 1 << 20].any()
    assert validated(path) == []


def test_a_file_that_is_replaced_keeps_its_permissions_and_links_to_it(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    real, link = folder / "real.nc", tmp_path / "link.nc"
    link.symlink_to(real.relative_to(tmp_path))
    with container.create(real) as file:
        file.def_dim("x", 3)
    real.chmod(0o600)
    with container.create(link) as file:
        file.def_dim("y", 3)
        file.def_var("v", "i4", ("y",))
    with container.open(link, "a") as file:
        file.redef()
        file.put_att("history", "x" * 5000)
        file.enddef()
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o600
    with container.open(real) as file:
        assert dict(file.dims) == {"y": 3} and len(file.attrs["history"]) == 5000
    assert [path.name for path in folder.iterdir()] == ["real.nc"]

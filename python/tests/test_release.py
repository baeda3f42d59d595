"""The files that `make wheel` publishes: the rules of `python/release.py`, on an sdist and on broken
wheels."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import require

ROOT = Path(__file__).resolve().parents[2]
WHEEL = "fieldstone-0.1.0-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
PROGRAM = "fieldstone-0.1.0.data/scripts/fieldstone"
INFO = "fieldstone-0.1.0.dist-info"


@pytest.fixture(scope="module")
def release():
    require("git", (ROOT / ".git").exists(), "this is not a git checkout")
    sys.path.insert(0, str(ROOT / "python"))
    try:
        import release as module
    finally:
        sys.path.remove(str(ROOT / "python"))
    return module


@pytest.fixture(scope="module")
def sdist(release, tmp_path_factory):
    require("maturin", importlib.util.find_spec("maturin"), "maturin is not installed here")
    try:
        return release.sdist(tmp_path_factory.mktemp("sdist"))
    except release.Refused as error:
        # A working folder may have files that git does not track yet, and a release is made from a clean
        # checkout.
        status = ["git", "-C", str(ROOT), "status", "--porcelain"]
        if subprocess.run(status, capture_output=True, text=True, check=True).stdout:
            pytest.skip(f"the checkout is not clean: {error}")
        raise


def test_an_sdist_holds_what_a_build_takes_and_nothing_else(sdist):
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"Cargo.lock", "python/build_backend.py", "crates/cli/src/main.rs", "PKG-INFO"} <= names
    assert not [n for n in names if n.endswith((".so", ".pyc")) or n.startswith(("target", "bench", "docs"))]


def changed(sdist, folder, drop=(), add=()):
    """The sdist without some files and with others."""
    made = folder / sdist.name
    stem = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as old, tarfile.open(made, "w:gz", compresslevel=1) as new:
        for member in old:
            if member.name.partition("/")[2] not in drop:
                new.addfile(member, old.extractfile(member))
        for name, content in add:
            member = tarfile.TarInfo(f"{stem}/{name}")
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    return made


def test_what_an_sdist_lacks_or_should_not_hold_is_named(release, sdist, tmp_path):
    for name in ("Cargo.lock", "crates/cli/src/main.rs"):
        with pytest.raises(release.Refused, match=f"lacks {name}"):
            release.check_sdist(changed(sdist, tmp_path, drop={name}))
    for name in ("bench/results.tmp", "python/fieldstone/_native.abi3.so"):
        with pytest.raises(release.Refused, match=f"holds {name}"):
            release.check_sdist(changed(sdist, tmp_path, add=[(name, b"x")]))
    release.SDIST_MOST, most = 1000, release.SDIST_MOST
    try:
        with pytest.raises(release.Refused, match="bytes, more than 1000"):
            release.check_sdist(sdist)
    finally:
        release.SDIST_MOST = most


def wheel(release, folder, name=WHEEL, drop=(), add=(), mode=0o755, first=b"\x7fELF"):
    """A wheel of empty files."""
    files = {path.removeprefix("python/"): b"" for path in release.tracked("python/fieldstone")}
    files |= dict.fromkeys((f"{INFO}/METADATA", f"{INFO}/entry_points.txt", f"{INFO}/licenses/LICENSE"), b"")
    files |= {f"{INFO}/RECORD": b"", "fieldstone/_native.abi3.so": first, PROGRAM: first}
    files = {n: c for n, c in files.items() if n not in drop} | dict.fromkeys(add, b"")
    path = folder / name
    with zipfile.ZipFile(path, "w") as file:
        for entry, content in files.items():
            info = zipfile.ZipInfo(entry)
            info.external_attr = (0o100000 | mode) << 16
            file.writestr(info, content)
    return path


def test_a_wheels_name_and_content(release, tmp_path):
    release.check_wheel(wheel(release, tmp_path))
    release.check_wheel(wheel(release, tmp_path, WHEEL.replace("manylinux2014_x86_64.", "")))
    for name in (
        WHEEL.replace("abi3", "cp311"),
        WHEEL.replace("cp311-", "cp312-"),
        WHEEL.replace("manylinux2014_x86_64.manylinux_2_17_x86_64", "linux_x86_64"),
        WHEEL.replace("manylinux2014_x86_64.manylinux_2_17_x86_64", "manylinux_2_36_x86_64"),
    ):
        with pytest.raises(release.Refused, match="is not a wheel"):
            release.check_wheel(wheel(release, tmp_path, name))
    for name in (PROGRAM, "fieldstone/_native.abi3.so", "fieldstone/py.typed", f"{INFO}/licenses/LICENSE"):
        with pytest.raises(release.Refused, match=f"lacks {name}"):
            release.check_wheel(wheel(release, tmp_path, drop={name}))
    for name in ("fieldstone/tests/test_x.py", "build_backend.py", "fieldstone.libs/libz.so"):
        with pytest.raises(release.Refused, match=f"holds {name}"):
            release.check_wheel(wheel(release, tmp_path, add=[name]))
    with pytest.raises(release.Refused, match="not executable"):
        release.check_wheel(wheel(release, tmp_path, mode=0o644))
    with pytest.raises(release.Refused, match="not a Linux program"):
        release.check_wheel(wheel(release, tmp_path, first=b"#!/b"))


def test_what_is_refused_is_not_left_behind(release, tmp_path):
    made = wheel(release, tmp_path, drop={PROGRAM})
    with pytest.raises(release.Refused), release._removed_where_refused(made):
        release.check_wheel(made)
    assert not made.exists()


def test_the_glibc_that_a_program_asks_for(release, tmp_path):
    assert release.glibc_of(Path(sys.executable).resolve()) >= (2, 2)
    (tmp_path / "program").write_bytes(b"\x7fELF\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.9\0GLIBC_PRIVATE\0")
    assert release.glibc_of(tmp_path / "program") == (2, 17)

"""Builds, checks and tries the published files: a wheel for Linux systems with an old glibc, and an sdist.

    python python/release.py wheel [--out DIR]     builds it with zig's compiler, checks it, tries it
    python python/release.py sdist [--out DIR]     packs it and checks it
    python python/release.py try FILE              installs it in a fresh environment, and uses it there

Invariant: files in the out folder have passed the checks; those that fail are removed. `make wheel` calls the
first two in the environment that has maturin, zig (package ziglang) and auditwheel; docs/release.md lists the
other steps of a release.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

import build_backend

ROOT = build_backend.ROOT
GLIBC = (2, 17)
"""The platform that the wheel requires: the oldest that Rust's own library supports."""
PLATFORM = "manylinux_{}_{}".format(*GLIBC)
TAGS = rf"(manylinux2014_x86_64\.)?{PLATFORM}_x86_64"
"""maturin adds the former name of the platform."""
WHEEL = re.compile(rf"fieldstone-[0-9.a-z]+-cp311-abi3-{TAGS}\.whl")
SDIST_MOST = 6 << 20
"""Maximum bytes of an sdist: a larger one contains data by mistake."""

PROGRAM = """
import subprocess, sys, sysconfig
from pathlib import Path
import numpy as np
import fieldstone as fst

program = Path(sysconfig.get_path("scripts")) / "fieldstone"
values = np.arange(4000, dtype="f4").reshape(40, 100)
with fst.open("tried.store") as store:
    key = {"run": "a", "variable": "t", "step": 0}
    store.archive(key, values, compression="zstd:3")
    store.create_run("b", params={"n": 1}).annotate("maximum", 3.5)
store = fst.open("tried.store", mode="r")
assert np.array_equal(store.get(key), values) and store.attributes(tag="maximum").count() == 1
listed = subprocess.run([program, "list", "tried.store"], check=True, capture_output=True, text=True).stdout
assert "variable=t" in listed, listed
subprocess.run([program, "verify", "tried.store"], check=True, stdout=subprocess.DEVNULL)
print(fst.__file__, fst.__version__)
"""


class Refused(Exception):
    """A built file must not be published."""


def wheel(out: Path) -> Path:
    """Builds the wheel with maturin and zig."""
    command = ["build", "--release", "--locked", "--zig", "--compatibility", PLATFORM, "--out", str(out)]
    with build_backend.program_too():
        made = _made(out, "*.whl", lambda: _maturin(command))
    with _removed_where_refused(made):
        check_wheel(made)
        audit(made)
    return made


def sdist(out: Path) -> Path:
    """Packs the sdist."""
    build_backend.SCRIPTS.mkdir(parents=True, exist_ok=True)
    made = _made(out, "*.tar.gz", lambda: _maturin(["sdist", "--out", str(out)]))
    with _removed_where_refused(made):
        check_sdist(made)
    return made


def check_wheel(path: Path) -> None:
    """Checks a wheel's name and contents."""
    if not WHEEL.fullmatch(path.name):
        raise Refused(f"{path.name} is not a wheel for Python's ABI 3 from 3.11 on and {PLATFORM}")
    with zipfile.ZipFile(path) as file:
        infos = {info.filename: info for info in file.infolist()}
        _, version, *_ = path.name.split("-")
        stem = f"fieldstone-{version}"
        program, info = f"{stem}.data/scripts/fieldstone", f"{stem}.dist-info"
        wanted = {"fieldstone/_native.abi3.so", program, f"{info}/entry_points.txt", f"{info}/METADATA"}
        wanted |= {f"{info}/licenses/LICENSE"}
        # The C interface is built from a checkout; everything for Python is in the package.
        wanted |= {path.removeprefix("python/") for path in tracked("python/fieldstone")}
        _complete(path.name, infos, wanted)
        beside = {name for name in infos if name not in wanted and not name.startswith(f"{info}/")}
        _none(path.name, {name for name in beside if name != f"{stem}.data/" and not name.endswith("/")})
        if not infos[program].external_attr >> 16 & 0o100:
            raise Refused(f"{program} of {path.name} is not executable")
        for name in (program, "fieldstone/_native.abi3.so"):
            if file.read(name)[:4] != b"\x7fELF":
                raise Refused(f"{name} of {path.name} is not a Linux program")


def check_sdist(path: Path) -> None:
    """Checks that an sdist has everything that a build needs, and nothing that the repository does not
    keep."""
    with tarfile.open(path) as file:
        inside = {str(PurePosixPath(m.name).relative_to(path.name.removesuffix(".tar.gz"))) for m in file}
    kept = tracked()
    wanted = {"PKG-INFO", "Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "LICENSE"}
    wanted |= {"python/build_backend.py", "python/Cargo.toml"}
    # The simulation is a program for tests, on which nothing depends.
    crate = r"crates/(?!simulation/)\w+"
    built = re.compile(
        rf"(python/(src|fieldstone)|{crate}/(src|data|schemas))/|{crate}/(Cargo.toml|build.rs)$"
    )
    _complete(path.name, inside, wanted | {name for name in kept if built.match(name)})
    _none(path.name, inside - kept - {"PKG-INFO"})
    if path.stat().st_size > SDIST_MOST:
        raise Refused(f"{path.name} has {path.stat().st_size} bytes, more than {SDIST_MOST}")


def audit(path: Path) -> None:
    """Checks the requirements of the module and the program on a system, with auditwheel and by reading
    them."""
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", str(path)], check=True, capture_output=True, text=True
    ).stdout
    print(shown, flush=True)
    if f'"{PLATFORM}_x86_64"' not in " ".join(shown.split()):
        raise Refused(f"auditwheel reports that {path.name} does not fit {PLATFORM}")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path) as file:
        for name in file.namelist():
            if name.endswith((".so", "/scripts/fieldstone")):
                found = glibc_of(Path(file.extract(name, folder)))
                print(f"{name}: glibc {'.'.join(map(str, found))}", flush=True)
                if found > GLIBC:
                    raise Refused(f"{name} of {path.name} requires glibc {found}")


def glibc_of(path: Path) -> tuple[int, ...]:
    """The newest version of glibc that a program or library requires."""
    named = re.findall(rb"\bGLIBC_(\d+)\.(\d+)", path.read_bytes())
    return max(((int(major), int(minor)) for major, minor in named), default=(0,))


def attempt(path: Path) -> None:
    """Installs a wheel or an sdist in a fresh environment, writes, reads, and runs the program."""
    with tempfile.TemporaryDirectory(prefix="fieldstone-") as folder:
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
        python = f"{folder}/venv/bin/python"
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", str(path.resolve())]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYO3"))}
        subprocess.run(pip, check=True, cwd=folder, env=environment)
        subprocess.run([python, "-c", PROGRAM], check=True, cwd=folder, env=environment)


def tracked(folder: str = ".") -> set[str]:
    """The files below a folder that the repository keeps."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "-z", folder]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name for name in listed.split("\0") if name}


def _complete(name: str, inside: Iterable[str], wanted: set[str]) -> None:
    if lacking := sorted(wanted - set(inside)):
        raise Refused(f"{name} lacks {', '.join(lacking[:5])}" + (" …" if len(lacking) > 5 else ""))


def _none(name: str, beside: set[str]) -> None:
    if beside:
        raise Refused(f"{name} holds {', '.join(sorted(beside)[:5])}, which do not belong there")


def _maturin(arguments: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "maturin", *arguments], check=True, cwd=ROOT)


def _made(out: Path, pattern: str, make: Callable[[], None]) -> Path:
    """The one file that `make` writes into a folder; removes older ones first."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob(pattern):
        old.unlink()
    make()
    (made,) = out.glob(pattern)
    return made


class _removed_where_refused:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._path.unlink(missing_ok=True)


def main() -> int:
    """Runs one of the three commands."""
    about, *_ = (__doc__ or "").partition("\n")
    ap = argparse.ArgumentParser(description=about)
    ap.add_argument("what", choices=["wheel", "sdist", "try"])
    ap.add_argument("file", nargs="?", type=Path, help="the file to try")
    ap.add_argument("--out", type=Path, default=ROOT / "dist")
    options = ap.parse_args()
    try:
        if options.what == "try":
            attempt(options.file)
        elif options.what == "sdist":
            print(sdist(options.out))
        else:
            made = wheel(options.out)
            attempt(made)
            print(made)
    except Refused as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

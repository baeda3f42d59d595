"""PEP 517 backend: maturin's, with the native program `fieldstone` added to the wheel.

One wheel holds the module `fieldstone._native`, the program, its pages for man and its completions. The
program is an ordinary Rust binary (it links no Python and starts in milliseconds), so maturin does not build
it. This file does: it
stands in for cargo, and where maturin has the module built, it first has the program built in the same way,
for the same target and with the same compilers (B-20). The result travels as a script in the wheel's data
folder; what the program says of itself goes below `share`, where it can be run here.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "wheel-data" / "scripts"
SHARE = ROOT / "wheel-data" / "data" / "share"
COMPLETIONS = {
    "bash": "bash-completion/completions/fieldstone",
    "fish": "fish/vendor_completions.d/fieldstone.fish",
    "zsh": "zsh/site-functions/_fieldstone",
}
"""Where shells look for a program's completions, below `share`."""
REAL = "FIELDSTONE_CARGO"
"""The variable that names cargo while this file stands in for it."""
# Named beside the module's crate, so that both have their dependencies with the same features and share them.
COMMAND = ["-p", "fieldstone-cli", "-p", "fieldstone-python", "--bin", "fieldstone"]
TARGETS = ["--lib", "--bins", "--tests", "--examples"]
WHOLE = "FIELDSTONE_BUILD_WORKSPACE"
"""Where this variable is set, module and program come from a build of the whole workspace with its tests, so
that a run of all tests compiles each crate once."""


def get_requires_for_build_wheel(settings=None):
    return _maturin().get_requires_for_build_wheel(settings)


def get_requires_for_build_editable(settings=None):
    return _maturin().get_requires_for_build_editable(settings)


def get_requires_for_build_sdist(settings=None):
    return _maturin().get_requires_for_build_sdist(settings)


def prepare_metadata_for_build_wheel(directory, settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return _maturin().prepare_metadata_for_build_wheel(directory, settings)


def prepare_metadata_for_build_editable(directory, settings=None):
    return prepare_metadata_for_build_wheel(directory, settings)


def build_wheel(directory, settings=None, metadata=None):
    with program_too():
        return _maturin().build_wheel(directory, settings, metadata)


def build_editable(directory, settings=None, metadata=None):
    with program_too():
        return _maturin().build_editable(directory, settings, metadata)


def build_sdist(directory, settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return _maturin().build_sdist(directory, settings)


def _maturin():
    """The backend below, which is not there where this file stands in for cargo."""
    import maturin

    return maturin


@contextlib.contextmanager
def program_too() -> Iterator[None]:
    """Has the program built wherever cargo is asked for the module."""
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    program = SCRIPTS / "fieldstone"
    program.unlink(missing_ok=True)
    before = {name: os.environ.get(name) for name in ("CARGO", REAL)}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "cargo"
        script.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, __file__])} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        os.environ |= {"CARGO": str(script), REAL: before["CARGO"] or "cargo"}
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
    if not program.exists():
        raise RuntimeError("maturin does not call cargo as it used to: the program is not built")


def cargo(arguments: list[str]) -> int:
    """What cargo does, after the program where the module is to be built."""
    command = os.environ.pop(REAL)
    os.environ["CARGO"] = command
    if arguments[:1] == ["rustc"] and "--lib" in arguments:
        options = arguments[1 : arguments.index("--lib")]
        manifest = options.index("--manifest-path")
        del options[manifest : manifest + 2]
        if os.environ.get(WHOLE):
            _as_other_builds(os.environ)
            built = _build_program([command, "build", *options, "--workspace", *TARGETS])
            sys.stdout.write(built)  # maturin finds the module in what cargo reports
            return 0
        _build_program([command, "build", *options, *COMMAND])
    return subprocess.run([command, *arguments], check=False).returncode


def _as_other_builds(environment: MutableMapping[str, str]) -> None:
    """Takes back what pip and maturin set: cargo compiles PyO3 again where these differ."""
    for name in [name for name in environment if name.startswith("PYO3_") and name != "PYO3_PYTHON"]:
        del environment[name]
    own = str(Path(sys.executable).parent)
    folders = environment.get("PATH", "").split(os.pathsep)
    environment["PATH"] = os.pathsep.join(folder for folder in folders if folder != own)


def _build_program(command: list[str]) -> str:
    """Builds the program and puts it where maturin looks for scripts (cargo says where it is).

    Returns what cargo reports.
    """
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    built = (m for m in messages if m.get("executable") and m["target"]["kind"] == ["bin"])
    (program,) = {m["executable"] for m in built if not m["profile"]["test"]}
    copy = SCRIPTS / "fieldstone"
    shutil.copy2(program, copy)
    if strip := shutil.which("strip"):
        # As maturin does with the module: lines for debuggers are most of it.
        subprocess.run([strip, str(copy)], check=True)
    _put_pages(copy)
    return done.stdout


def _put_pages(program: Path) -> None:
    """Has the program write its pages for man and its completions; none where it is for another machine."""
    shutil.rmtree(SHARE, ignore_errors=True)
    try:
        subprocess.run([program, "man", "--into", SHARE / "man" / "man1"], check=True)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return
    for shell, place in COMPLETIONS.items():
        script = subprocess.run([program, "completions", shell], check=True, stdout=subprocess.PIPE).stdout
        (SHARE / place).parent.mkdir(parents=True, exist_ok=True)
        (SHARE / place).write_bytes(script)


if __name__ == "__main__":
    sys.exit(cargo(sys.argv[1:]))

"""PEP 517 backend: maturin's, with the native program `fieldstone` added to the wheel.

One wheel contains the module `fieldstone._native`, the program, its man pages and its completions. The
program is an ordinary Rust binary (it links no Python and starts in milliseconds), so maturin does not build
it. This file does: it acts as cargo, and when maturin builds the module, it first builds the program in the
same way, for the same target and with the same compilers (B-20). The program is a script in the wheel's data
folder; its man pages and completions go below `share`, if the program can run on this machine.
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
"""The places below `share` in which shells look for a program's completions."""
REAL = "FIELDSTONE_CARGO"
"""The variable that names cargo while this file acts as cargo."""
# Named together with the module's crate, so that both compile their dependencies with the same features, only
# once.
COMMAND = ["-p", "fieldstone-cli", "-p", "fieldstone-python", "--bin", "fieldstone"]
TARGETS = ["--lib", "--bins", "--tests", "--examples"]
WHOLE = "FIELDSTONE_BUILD_WORKSPACE"
"""If this variable is set, module and program come from a build of the whole workspace with its tests, so
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
    """maturin's backend, which is not installed where this file acts as cargo."""
    import maturin

    return maturin


@contextlib.contextmanager
def program_too() -> Iterator[None]:
    """Also builds the program whenever maturin calls cargo for the module."""
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
        raise RuntimeError("maturin no longer calls cargo in the expected way, so the program was not built")


def cargo(arguments: list[str]) -> int:
    """Runs cargo, after building the program if cargo is to build the module."""
    command = os.environ.pop(REAL)
    os.environ["CARGO"] = command
    if arguments[:1] == ["rustc"] and "--lib" in arguments:
        options = arguments[1 : arguments.index("--lib")]
        manifest = options.index("--manifest-path")
        del options[manifest : manifest + 2]
        if os.environ.get(WHOLE):
            _as_other_builds(os.environ)
            built = _build_program([command, "build", *options, "--workspace", *TARGETS])
            sys.stdout.write(built)  # maturin finds the module in cargo's report
            return 0
        _build_program([command, "build", *options, *COMMAND])
    return subprocess.run([command, *arguments], check=False).returncode


def _as_other_builds(environment: MutableMapping[str, str]) -> None:
    """Removes settings of pip and maturin, because cargo compiles PyO3 again if they differ."""
    for name in [name for name in environment if name.startswith("PYO3_") and name != "PYO3_PYTHON"]:
        del environment[name]
    own = str(Path(sys.executable).parent)
    folders = environment.get("PATH", "").split(os.pathsep)
    environment["PATH"] = os.pathsep.join(folder for folder in folders if folder != own)


def _build_program(command: list[str]) -> str:
    """Builds the program and puts it where maturin looks for scripts (cargo reports the path).

    Returns cargo's report.
    """
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    built = (m for m in messages if m.get("executable") and m["target"]["kind"] == ["bin"])
    # The workspace has programs for its own tests, too.
    named = (m for m in built if m["target"]["name"] == "fieldstone" and not m["profile"]["test"])
    (program,) = {m["executable"] for m in named}
    copy = SCRIPTS / "fieldstone"
    shutil.copy2(program, copy)
    if strip := shutil.which("strip"):
        # Strips it as maturin does the module: debug lines are most of its bytes.
        subprocess.run([strip, str(copy)], check=True)
    _put_pages(copy)
    return done.stdout


def _put_pages(program: Path) -> None:
    """Makes the program write its man pages and completions; writes none if it is for another machine."""
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

"""PEP 517 backend: maturin's, with the native program `fieldstone` added to the wheel.

One wheel holds the module `fieldstone._native` and the program. The program is an ordinary Rust
binary (it links no Python and starts in milliseconds), so maturin does not build it: cargo does, in
the same target directory, and the result travels as a script in the wheel's data folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import maturin

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "wheel-data" / "scripts"
# Named beside the module's crate, so that both have their dependencies with the same features and share them.
COMMAND = ["build", "--release", "-p", "fieldstone-cli", "-p", "fieldstone-python", "--bin", "fieldstone"]
COMMAND += ["--message-format=json-render-diagnostics"]

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist


def _build_program() -> None:
    """Build the program and put it where maturin looks for scripts (cargo tells where it is)."""
    cargo = os.environ.get("CARGO", "cargo")
    done = subprocess.run([cargo, *COMMAND], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    (program,) = {message["executable"] for message in messages if message.get("executable")}
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, SCRIPTS)


def prepare_metadata_for_build_wheel(directory, settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(directory, settings)


def prepare_metadata_for_build_editable(directory, settings=None):
    return prepare_metadata_for_build_wheel(directory, settings)


def build_wheel(directory, settings=None, metadata=None):
    _build_program()
    return maturin.build_wheel(directory, settings, metadata)


def build_editable(directory, settings=None, metadata=None):
    _build_program()
    return maturin.build_editable(directory, settings, metadata)


def build_sdist(directory, settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.build_sdist(directory, settings)

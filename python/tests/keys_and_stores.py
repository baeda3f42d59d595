"""Support for the tests of the store: the keys of fdb.md, child processes, values of every dtype."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import fieldstone as fst
import numpy as np

BASE = {
    "class": "rd",
    "expver": "xxxx",
    "stream": "oper",
    "date": "20250101",
    "time": "1200",
    "domain": "g",
    "type": "fc",
    "levtype": "pl",
    "step": "0",
    "levelist": "500",
    "param": "130",
}
"""The base key of the behaviours that every field store must show, under the schema `mars`."""


def mars(**changes: Any) -> dict[str, Any]:
    """The base key with changes."""
    return {**BASE, **changes}


def sim(step: Any = 0, variable: str = "t", run: str = "a", **more: Any) -> dict[str, Any]:
    """A key under the schema `simulation`."""
    return {"run": run, "variable": variable, "step": step, **more}


def steps(store: fst.Store, request: Any = None) -> list[str]:
    """The steps of a list."""
    return [e.key["step"] for e in store.list(request)]


def start_python(code: str, *arguments: Any) -> subprocess.Popen[str]:
    """A child that runs `code`; sys.argv[1:] are the arguments."""
    text = "import sys, os\nimport numpy as np\nimport fieldstone as fst\n" + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )


def run_python(code: str, *arguments: Any, fails: bool = False) -> str:
    """The output of a child that runs `code`, which must succeed, or fail if `fails` is set."""
    child = start_python(code, *arguments)
    out, err = child.communicate(timeout=300)
    assert (child.returncode != 0) == fails, err
    return err if fails else out


DTYPES = [
    "?", "i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">i8", "<u8", "<f2", ">f2", "<f4", ">f4", "<f8",
    ">f8", "<c8", ">c8", "<c16", ">c16", "S1", "S7", "<U3", ">U3", "<M8[ns]", ">M8[D]", "<m8[s]", "<M8[25s]",
]  # fmt: skip
"""Every fixed-size kind of numpy."""


def random_array(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array of any dtype with any values."""
    kind = np.dtype(dtype)
    if kind.kind == "?" or kind.kind == "b":
        return rng.integers(0, 2, shape).astype(kind)
    if kind.kind == "S":
        return np.array([b"%d" % i for i in rng.integers(0, 10**6, shape).ravel()], kind).reshape(shape)
    if kind.kind == "U":
        return np.array([f"ä{i}" for i in rng.integers(0, 99, shape).ravel()], kind).reshape(shape)
    if kind.kind in "Mm":
        return rng.integers(-(10**6), 10**6, shape).astype("i8").view(kind.newbyteorder("=")).astype(kind)
    if kind.kind in "iu":
        return rng.integers(0, 120, shape).astype(kind)
    return (rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind.kind == "c" else 0)).astype(kind)

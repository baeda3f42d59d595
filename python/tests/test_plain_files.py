"""Other kinds of file in place of a plain file: no call waits for them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fieldstone as fst
import netCDF4
import numpy as np
import pytest
from fieldstone import container
from own_files_job import PROGRAM, run_job


def fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    path.unlink(missing_ok=True)
    folder = os.getcwd()
    os.chdir(path.parent)  # names of sockets must be short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(folder)


def calls(folder: Path) -> dict[str, tuple[Path, Callable[[], object]]]:
    """For each call the file that it reads, existing or expected."""
    run_job(folder / "s", "m", 0o022)
    with netCDF4.Dataset(folder / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 4)
        file.createVariable("v", "f8", ("x",))[:] = 1
    shutil.copy(folder / "a.nc", folder / "b.nc")
    with fst.open(folder / "o") as store:
        fst.ingest(store, folder / "a.nc", key={"run": "a"}, copy=False, progress=False)
        outside = {"template": "{variable}-{step}.nc", "format": "netcdf", "root": str(folder)}
        store.create_run("n", outside=outside).create_variable("t", "f4", (4,))
    (array,) = (folder / "s" / "arrays").rglob("*.nc")
    (mesh,) = (folder / "s" / "meshes").glob("*.nc")
    (edges,) = (folder / "s" / "histories").glob("*.edges")

    def job(act: Callable[[fst.ArrayJob], object]) -> object:
        with fst.open(folder / "s") as store, store.arrays("m") as job:
            return act(job)

    def first(store: str, request: str) -> object:
        opened = fst.open(folder / store, "r")
        return [opened.get(entry.key) for entry in opened.list(request)]

    raw = {"a": ("<i4", 0, 4)}
    pair = (np.array([0, 1]), np.array([1, 2]))
    memory = lambda: fst.open("memory:")  # noqa: E731
    return {
        "a field outside": (folder / "a.nc", lambda: first("o", "variable=v")),
        "verify of it": (folder / "a.nc", lambda: fst.open(folder / "o", "r").verify()),
        "a run outside": (folder / "t-0.nc", lambda: fst.open(folder / "o", "r").run("n").read("t", 0)),
        "a field of arrays": (array, lambda: first("s", "variable=u")),
        "verify of arrays": (array, lambda: fst.open(folder / "s", "r").verify()),
        "a job's read": (array, lambda: job(lambda job: job.group("g").read("u", 0))),
        "a mesh": (mesh, lambda: fst.open(folder / "s", "r").mesh("m").to_xarray()),
        "a job's mesh": (mesh, lambda: job(lambda job: job.mesh("m"))),
        "kept edges": (edges, lambda: job(lambda job: job.partition("m", "block"))),
        "container": (folder / "p1", lambda: container.open(folder / "p1")),
        "container to write": (folder / "p1", lambda: container.open(folder / "p1", mode="r+")),
        "decomposition": (folder / "p2", lambda: fst.pio_decomposition(folder / "p2")),
        "schema": (folder / "p3", lambda: fst.open("memory:", schema=str(folder / "p3"))),
        "ingest": (folder / "p4.nc", lambda: fst.ingest(memory(), folder / "p4.nc", progress=False)),
        "GRIB": (folder / "p5", lambda: fst.open("memory:", schema="mars").archive_grib(folder / "p5")),
        "METIS": (folder / "p6", lambda: job(lambda j: j.partition(pair, folder / "p6", history=False))),
        "import": (folder / "p7", lambda: job(lambda j: j.import_file(folder / "p7", raw, format="raw"))),
        "a mesh to take": (folder / "p8", lambda: fst.ingest(memory(), folder / "p8", mesh="p")),
    }


@pytest.mark.parametrize("make", [fifo, bound_socket])
def test_no_call_waits_for_what_is_not_a_plain_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    for name, (path, call) in calls(tmp_path).items():
        if path.exists() and path.is_file():
            path.rename(path.with_name(path.name + ".whole"))
        make(path)
        child = os.fork()
        if child == 0:
            signal_of_life = 0
            try:
                call()
            except fst.Error:
                pass
            except BaseException as error:
                print(name, type(error).__name__, error, file=sys.stderr)
                signal_of_life = 1
            os._exit(signal_of_life)
        waited = subprocess.Popen(["sh", "-c", f"sleep 20; kill -9 {child}"], start_new_session=True)
        _, status = os.waitpid(child, 0)
        os.killpg(waited.pid, 9)
        waited.wait()
        assert status == 0, f"{name}: {make.__name__}: wait status {status}"
        path.unlink()
        whole = path.with_name(path.name + ".whole")
        if whole.exists():
            whole.rename(path)


def test_the_standard_input_and_a_shells_pipe_are_taken(tmp_path: Path) -> None:
    text = "[run[variable[step]]]"
    check = f"{PROGRAM} schema check"
    for script in (f"echo '{text}' | {check} /dev/stdin", f"{check} <(echo '{text}')"):
        said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
        assert said.returncode == 0, said.stderr

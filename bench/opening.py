"""Opens a file of 568,480 variables in a fresh process, finds one, and reads it.

`python bench/opening.py LIBRARY FILE VARIABLE` does it once and prints one line of JSON: seconds from the
call of open until the values are there, processor seconds, growth of the highest resident size, and the first
value. Libraries are imported before the clock starts. The file is a copy in a separate folder, so that no
other file there can help.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import creation
from creation import OURS, VARIABLES
from measure import BENCH, Result

if TYPE_CHECKING:
    from steps import Figure, Sitting

PARTITIONED, NETCDF4, HDF5, PNETCDF = "fieldstone-partitioned", "netcdf4-python", "h5py", "pnetcdf"
# netCDF4 is left out: it makes an object of every variable, and had not opened this file after seven minutes.
PEERS = (OURS, PARTITIONED, HDF5, PNETCDF)
ALL = (OURS, PARTITIONED, PNETCDF)


# ---- in the child


def _fieldstone(path: str, name: str) -> Any:
    from fieldstone import container

    def read() -> float:
        with container.open(path) as file:
            return float(file[name][...].ravel()[0])

    return read


def _netcdf4(path: str, name: str) -> Any:
    import netCDF4

    def read() -> float:
        with netCDF4.Dataset(path) as file:
            return float(file[name][...].ravel()[0])

    return read


def _h5py(path: str, name: str) -> Any:
    import h5py

    def read() -> float:
        with h5py.File(path) as file:
            return float(file[name][...].ravel()[0])

    return read


def once(library: str, path: str, name: str) -> None:
    """Reads one variable, and prints times and memory."""
    read = {"fieldstone": _fieldstone, "netcdf4": _netcdf4, "h5py": _h5py}[library](path, name)
    before = _peak()
    start, cpu = time.perf_counter(), time.process_time()
    value = read()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(json.dumps({"seconds": seconds, "cpu": cpu, "growth": _peak() - before, "value": value}))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---- steps of figures


def _variable(variables: int, paths: bool) -> str:
    number = variables * 2 // 3
    return creation.columns(number, number + 1, paths)[2][0]


def setup(fig: Figure, at: Sitting, peer: str) -> Result:
    """Writes the file by the library that reads it (CDF-5 by ours), and copies it to where it is read."""
    root = at.fresh(fig.name, peer)
    (root / "made").mkdir(parents=True)
    (root / "alone").mkdir()
    variables = fig.data.get("variables", VARIABLES) // (50 if at.quick else 1)
    made, paths = root / "made" / "a.nc", peer == PARTITIONED
    dims, lengths, names, over = creation.columns(0, variables, paths)
    if peer == HDF5:
        import h5py

        size = dict(zip(dims, lengths, strict=True))
        with h5py.File(made, "w", libver="latest") as file:
            for name, own in zip(names, over, strict=True):
                file.create_dataset(name, shape=tuple(size[dim] for dim in own), dtype="f4")
            file[_variable(variables, paths)][...] = 3.5
    else:
        from fieldstone import container

        with container.create(made, format="partitioned" if paths else "cdf5") as file:
            file.def_dims(dims, lengths)
            file.def_many(names=names, dtypes="f4", dims=over)
            file.enddef()
            variable = file[_variable(variables, paths)]
            variable[...] = 3.5
    shutil.copyfile(made, root / "alone" / "b.nc")
    made.unlink()
    return {"length": (root / "alone" / "b.nc").stat().st_size}


def read(fig: Figure, at: Sitting, peer: str) -> Result:
    """One fresh process that reads one variable."""
    path = at.root(fig.name, peer) / "alone" / "b.nc"
    if fig.data["cold"]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    name = _variable(VARIABLES // (50 if at.quick else 1), peer == PARTITIONED)
    if peer == PNETCDF:
        command = [str(creation.pnetcdf_program(at.work, "pnetcdf_open")), str(path), name]
    else:
        library = {NETCDF4: "netcdf4", HDF5: "h5py"}.get(peer, "fieldstone")
        command = [sys.executable, str(BENCH / "opening.py"), library, str(path), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"bench: {peer} failed:\n{done.stderr[-3000:]}")
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if result.pop("value") != 3.5:
        raise SystemExit(f"bench: {peer} read a wrong value")
    return result


def read_all(fig: Figure, at: Sitting, peer: str) -> Result:
    """Ranks that each read every object of the header; the slowest counts."""
    path = at.root(fig.name, peer) / "alone" / "b.nc"
    if peer == PNETCDF:
        name = _variable(fig.data["variables"] // (50 if at.quick else 1), False)
        command = [str(creation.pnetcdf_program(at.work, "pnetcdf_open")), str(path), name]
    else:
        command = [str(creation.example("reading")), str(path)]
    command = [creation.mpiexec(), "-n", str(fig.data["ranks"]), *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"bench: {peer} failed:\n{done.stderr[-3000:]}")
    ranks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {"seconds": max(rank.get("opened", rank["seconds"]) for rank in ranks)}


if __name__ == "__main__":
    once(*sys.argv[1:])

"""Elements of containers, written and read: one large variable compared with pread and pwrite of the same
bytes, strided boxes and records compared with netCDF4.

`python bench/container_data.py LIBRARY WHAT FILE SCALE` does one measurement in a fresh process and prints
one line of JSON. Files are in the page cache, and no peer syncs anything. Written values exist before the
clock starts; values that are read go into one array that is allocated while the clock runs. Definition is not
measured: files are open and variables found before the clock starts, and a written file is closed after it
stops.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from measure import BENCH, Counts, Result, Span, parse_trace

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from steps import Figure, Sitting

OURS, PLAIN, NETCDF4 = "fieldstone_store", "pread-pwrite", "netcdf4-python"
LARGE = 1 << 26
"""Doubles of the large variable: 512 MiB."""
SIDE = 1 << 13
"""Rows and columns of the table of floats: 256 MiB."""
RECORDS, VARIABLES, WIDTH = 2_000, 20, 500
BOXES: dict[str, tuple[slice, slice]] = {
    "every fourth row and column": (slice(None, None, 4), slice(None, None, 4)),
    "every 64th column": (slice(None), slice(None, None, 64)),
    "every 64th row": (slice(None, None, 64), slice(None)),
    "an eighth of the columns": (slice(None), slice(SIDE // 8, SIDE // 4)),
}


# ---- in the child


class Plain:
    """The bytes of one variable as in memory, without a header."""

    def __init__(self, path: str, make: bool) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT if make else os.O_RDONLY)

    def define(self, **_: tuple[str, tuple[int | None, ...]]) -> None:
        pass

    def put(self, name: str, where: Any, data: np.ndarray) -> None:
        rest, at = memoryview(data).cast("B"), 0
        while at < len(rest):
            at += os.pwrite(self.fd, rest[at:], at)

    def get(self, name: str, where: Any) -> np.ndarray:
        import numpy as np

        data = np.empty(os.fstat(self.fd).st_size // 8, "f8")
        rest, at = memoryview(data).cast("B"), 0
        while at < len(rest):
            at += os.preadv(self.fd, [rest[at:]], at)
        return data

    def close(self) -> None:
        os.close(self.fd)


class Ours:
    """A CDF-5 file, accessed by Fieldstone."""

    def __init__(self, path: str, make: bool) -> None:
        from fieldstone import container

        self.file = container.create(path, format="cdf5") if make else container.open(path)
        self.found: dict[str, Any] = {}

    def define(self, **variables: tuple[str, tuple[int | None, ...]]) -> None:
        lengths = dict.fromkeys(length for _, shape in variables.values() for length in shape)
        for length in lengths:
            self.file.def_dim(f"d{length}", length)
        for name, (dtype, shape) in variables.items():
            self.file.def_var(name, dtype, tuple(f"d{length}" for length in shape))
        self.file.enddef()

    def find(self, name: str) -> Any:
        if name not in self.found:
            self.found[name] = self.file[name]
        return self.found[name]

    def put(self, name: str, where: Any, data: np.ndarray) -> None:
        self.find(name)[where] = data

    def get(self, name: str, where: Any) -> np.ndarray:
        return self.find(name)[where]

    def close(self) -> None:
        self.file.close()


class Netcdf4(Ours):
    """A CDF-5 file, accessed by netCDF-C through netCDF4-python, without fill values and masks."""

    def __init__(self, path: str, make: bool) -> None:
        import netCDF4

        self.file = netCDF4.Dataset(path, "w" if make else "r", format="NETCDF3_64BIT_DATA")
        self.file.set_auto_mask(False)
        self.found = {}

    def define(self, **variables: tuple[str, tuple[int | None, ...]]) -> None:
        self.file.set_fill_off()
        for length in dict.fromkeys(length for _, shape in variables.values() for length in shape):
            self.file.createDimension(f"d{length}", length)
        for name, (dtype, shape) in variables.items():
            dims = tuple(f"d{length}" for length in shape)
            self.file.createVariable(name, dtype, dims).set_auto_mask(False)
        self.file.sync()


LIBRARIES = {"fieldstone": Ours, "netcdf4": Netcdf4, "plain": Plain}


def _values(dtype: str, *shape: int) -> np.ndarray:
    import numpy as np

    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def _check(found: np.ndarray, expected: np.ndarray) -> None:
    import numpy as np

    if found.shape != expected.shape or not np.array_equal(found, expected):
        raise SystemExit("bench: a wrong value was read")


def large(library: Any, path: str, what: str, scale: int) -> Result:
    """One variable of doubles, whole."""
    elements = LARGE // scale
    data = _values("f8", elements)
    file = library(path, what == "write")
    if what == "write":
        file.define(v=("f8", (elements,)))
    if what == "write":
        with Span() as span:
            file.put("v", slice(None), data)
    else:
        if library is not Plain:
            file.get("v", slice(0, 1))
        with Span() as span:
            found = file.get("v", slice(None))
        _check(found, data)
    file.close()
    return span.result(1, data.nbytes)


def strided(library: Any, path: str, what: str, scale: int) -> Result:
    """Boxes of a table of floats."""
    side = SIDE // scale
    file = library(path, what == "write")
    if what == "write":
        file.define(t=("f4", (side, side)))
    result: Result = {"seconds": 0.0, "cpu": 0.0, "bytes": 0.0}
    data = _values("f4", side, side)
    if what == "write":
        file.put("t", slice(None), data)
    for name, where in BOXES.items():
        if scale > 1:
            where = tuple(
                slice(w.start and w.start // scale, w.stop and w.stop // scale, w.step) for w in where
            )
        box = data[where].copy()
        with Span() as span:
            if what == "write":
                file.put("t", where, box)
            else:
                found = file.get("t", where)
        if what == "read":
            _check(found, box)
        result[name] = span.seconds
        result["seconds"] += span.seconds
        result["cpu"] += span.cpu
        result["bytes"] += box.nbytes
    file.close()
    return result


def records(library: Any, path: str, what: str, scale: int) -> Result:
    """Record variables side by side: written one record of each at a time, read one variable at a time."""
    count, names = RECORDS // scale, [f"v{i}" for i in range(VARIABLES)]
    file = library(path, what == "write")
    if what == "write":
        file.define(**dict.fromkeys(names, ("f4", (None, WIDTH))))
    data = _values("f4", count, WIDTH)
    if what == "write":
        with Span() as span:
            for record in range(count):
                for name in names:
                    file.put(name, slice(record, record + 1), data[record : record + 1])
    else:
        with Span() as span:
            for name in names:
                found = file.get(name, slice(None))
        _check(found, data)
    file.close()
    return span.result(count * VARIABLES, data.nbytes * VARIABLES)


def once(library: str, what: str, path: str, scale: str) -> None:
    """Does one measurement, and prints its result."""
    which, action = what.split("-")
    do = {"large": large, "strided": strided, "records": records}[which]
    print(json.dumps(do(LIBRARIES[library], path, action, int(scale))))


# ---- steps of figures


def _scale(at: Sitting) -> int:
    return 64 if at.quick else 1


def _run(fig: Figure, at: Sitting, peer: str, action: str, path: Path, trace: Path | None = None) -> Result:
    library = {PLAIN: "plain", NETCDF4: "netcdf4"}.get(peer, "fieldstone")
    what, scale = f"{fig.data['what']}-{action}", str(_scale(at))
    command = [sys.executable, str(BENCH / "container_data.py"), library, what, str(path), scale]
    environment = dict(os.environ)
    if trace:
        environment["BENCH_TRACE"] = "1"
        calls = (
            "trace=read,pread64,readv,preadv,preadv2,write,pwrite64,writev,pwritev,pwritev2,access,faccessat,"
        )
        calls += "faccessat2,mmap,fsync,fdatasync,lseek"
        command = ["strace", "-f", "-y", "-s", "80", "--seccomp-bpf", "-o", str(trace), "-e", calls, *command]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"bench: {peer} {what} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def setup(fig: Figure, at: Sitting, peer: str) -> Result:
    """The file to read: each peer reads its own."""
    root = at.fresh(fig.name, peer)
    root.mkdir(parents=True)
    return _run(fig, at, peer, "write", root / "a.nc")


def read(fig: Figure, at: Sitting, peer: str) -> Result:
    """One fresh process that reads."""
    return _rated(_run(fig, at, peer, "read", at.root(fig.name, peer) / "a.nc"))


def write(fig: Figure, at: Sitting, peer: str) -> Result:
    """One fresh process that writes a new file."""
    root = at.fresh(fig.name, peer)
    root.mkdir(parents=True)
    result = _run(fig, at, peer, "write", root / "a.nc")
    shutil.rmtree(root)
    return _rated(result)


def _rated(result: Result) -> Result:
    return {**result, "bytes_s": result["bytes"] / result["seconds"]}


def counts(fig: Figure, at: Sitting, peer: str) -> Result:
    """System calls of one more run."""
    root, action = at.root(fig.name, peer), fig.data["action"]
    if action == "write":
        at.fresh(fig.name, peer)
        root.mkdir(parents=True)
    log = root.parent / "strace"
    _run(fig, at, peer, action, root / "a.nc", log)
    found = parse_trace(log, root).get("measured", Counts())
    log.unlink()
    return {
        "read_calls": found.read_calls,
        "write_calls": found.write_calls,
        "read": found.read,
        "written": found.written,
    }


if __name__ == "__main__":
    once(*sys.argv[1:])

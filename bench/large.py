"""A store of ten million fields, or a hundred million: its index, and how fast it is read and compacted.

`python bench/large.py fill ROOT FIELDS` makes the store and compacts it; `look ROOT` opens it in a fresh
process and times what a user waits for; `wipe ROOT` wipes all of it; `refer ROOT FILES` makes a store of
fields that lie in other files, and `outside ROOT` retrieves them. Each prints one line of JSON. Memory is
the most that the process held, in bytes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import BENCH, Result, Span, tree_size

if TYPE_CHECKING:
    from steps import Figure, Sitting

TEN_MILLION, QUICK = 10_000_000, 100_000
# Fields of a flush, and flushes of a writer.
FLUSH, FLUSHES = 10_000, 10
STEPS = 10_000
PAYLOAD = b"0123456789abcdef"


def key(number: int) -> dict[str, Any]:
    return {"run": f"r{number // 1_000_000}", "variable": f"v{number // STEPS % 100}", "step": number % STEPS}


def memory(who: int = resource.RUSAGE_SELF) -> float:
    return resource.getrusage(who).ru_maxrss * 1024.0


def all_bytes(root: str) -> int:
    """Bytes of all files of the store."""
    return sum(path.stat().st_size for path in Path(root).rglob("*") if path.is_file())


# ---- in the child


def fill(root: str, fields: int) -> None:
    """Makes the store, closes its writers, and compacts it."""
    import fieldstone

    os.environ["FIELDSTONE_CLOSING_MERGES"] = "0"
    start, number = time.perf_counter(), 0
    while number < fields:
        with fieldstone.open(root, "a") as store:
            for _ in range(FLUSHES):
                most = min(number + FLUSH, fields)
                store.archive_many(
                    (key(n) for n in range(number, most)), (PAYLOAD for _ in range(number, most))
                )
                number = most
                store.flush()
    filled = time.perf_counter() - start
    before = all_bytes(root) - fields * len(PAYLOAD)
    with subprocess.Popen([sys.executable, __file__, "compact", root], stdout=subprocess.PIPE) as child:
        line, _ = child.communicate()
    compacted = json.loads(line)
    after = all_bytes(root) - fields * len(PAYLOAD)
    size = tree_size(Path(root))
    print(
        json.dumps(
            {
                "fields": fields,
                "filled_s": fields / filled,
                "index_before": before / fields,
                "index_after": after / fields,
                "entries_s": fields / compacted["seconds"],
                "compact_cpu": compacted["cpu"],
                "compact_memory": compacted["memory"],
                "files": size["files"],
            }
        )
    )


def compact(root: str) -> None:
    import fieldstone

    with fieldstone.open(root, "a") as store, Span() as span:
        store.compact(grace=0)
    print(json.dumps({"seconds": span.seconds, "cpu": span.cpu, "memory": memory()}))
    # The inputs go in a second call, once nobody can read them any more.
    with fieldstone.open(root, "a") as store:
        store.purge(all=True, grace=0, doit=True)


def look(root: str) -> None:
    """Times listing, getting and axes in a process that has not seen the store."""
    import fieldstone

    with fieldstone.open(root, "r") as store:
        start = time.perf_counter()
        listed = iter(store.list({}))
        next(listed)
        first = time.perf_counter() - start
        fields = 1 + sum(1 for _ in listed)
        seconds = time.perf_counter() - start
        used = memory()
        gets = []
        for number in range(1_000):
            at = time.perf_counter()
            store.get(key(number * 9_973 % fields))
            gets.append(time.perf_counter() - at)
        at = time.perf_counter()
        store.axes({})
        axes = time.perf_counter() - at
    result = {"first": first, "list": seconds, "list_s": fields / seconds, "list_memory": used}
    result |= {"get": sorted(gets)[len(gets) // 2], "axes": axes}
    print(json.dumps(result))


def wipe(root: str) -> None:
    """Wipes all fields, and times the calls of a user before and after."""
    import fieldstone

    def looks() -> Result:
        times = {}
        with fieldstone.open(root, "r") as store:
            for name, call in (
                ("first", lambda: next(iter(store.list({})), None)),
                ("axes", lambda: store.axes({})),
                ("runs", lambda: len(store.runs())),
            ):
                at = time.perf_counter()
                call()
                times[name] = time.perf_counter() - at
        return times

    before = looks()
    with fieldstone.open(root, "a") as store:
        size = all_bytes(root)
        with Span() as span:
            report = store.wipe({}, all=True, doit=True)
        written = all_bytes(root) - size
    after = looks()
    result = {"wipe": span.seconds, "fields": report.fields, "written": written}
    result |= {f"{name}_before": value for name, value in before.items()}
    print(json.dumps(result | {f"{name}_after": value for name, value in after.items()}))


def refer(root: str, files: int) -> None:
    """Makes a store that refers to fields under many names of one netCDF file of 1 GB."""
    import fieldstone
    import netCDF4
    import numpy as np

    folder = Path(root).parent / "files"
    folder.mkdir(parents=True)
    with netCDF4.Dataset(folder / "0.nc", "w", format="NETCDF3_64BIT_DATA") as made:
        made.createDimension("time", 10)
        made.createDimension("x", 12_500_000)
        variable = made.createVariable("t", "f8", ("time", "x"))
        for step in range(10):
            variable[step] = np.full(12_500_000, step)
    for number in range(1, files):
        os.link(folder / "0.nc", folder / f"{number}.nc")
    with fieldstone.open(root, "a", schema="mixed") as store:
        taken = fieldstone.ingest(store, [str(folder)], copy=False)
    print(json.dumps({"fields": taken.fields}))


def outside(root: str) -> None:
    """Retrieves all of them."""
    import fieldstone

    store = fieldstone.open(root, "r")
    room, total = bytearray(8 << 20), 0
    with Span() as span, store.retrieve({"variable": "t"}).open() as fields:
        while (n := fields.readinto(room)) > 0:
            total += n
    used = memory()
    print(json.dumps({"bytes": total, "seconds": span.seconds, "cpu": span.cpu, "memory": used}))


# ---- steps of figures


def _child(*arguments: Any) -> Result:
    command = [sys.executable, str(BENCH / "large.py"), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _fields(fig: Figure, at: Sitting) -> int:
    return QUICK if at.quick else fig.data["fields"]


def setup(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.fresh(fig.name, peer)
    made = _child("fill", root, _fields(fig, at))
    (root.parent / "made.json").write_text(json.dumps(made))
    return made


def count(fig: Figure, at: Sitting, peer: str) -> Result:
    """The figures of making the store: its bytes do not differ from run to run."""
    return json.loads((at.root(fig.name, peer).parent / "made.json").read_text())


def run(fig: Figure, at: Sitting, peer: str) -> Result:
    """The calls of Python, and the program: all lines, and the first one of a reader that then hangs up."""
    root = at.root(fig.name, peer)
    result = _child("look", root)
    program = str(Path(sys.prefix) / "bin" / "fieldstone")
    start = time.perf_counter()
    with subprocess.Popen([program, "list", str(root)], stdout=subprocess.DEVNULL) as whole:
        _, _, usage = os.wait4(whole.pid, 0)
        whole.returncode = 0
    seconds = time.perf_counter() - start
    result |= {"program_s": _fields(fig, at) / seconds, "program_memory": usage.ru_maxrss * 1024.0}
    start = time.perf_counter()
    with subprocess.Popen([program, "list", str(root)], stdout=subprocess.PIPE) as piped:
        assert piped.stdout is not None
        piped.stdout.readline()
        result["head"] = time.perf_counter() - start
        piped.stdout.close()
    return result


def run_wipe(fig: Figure, at: Sitting, peer: str) -> Result:
    """Each run makes its store again: a wipe stays."""
    root = at.fresh(fig.name, peer)
    _child("fill", root, _fields(fig, at))
    return _child("wipe", root)


def run_outside(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.fresh(fig.name, peer)
    _child("refer", root, 3 if at.quick else fig.data["files"])
    return _child("outside", root)


if __name__ == "__main__":
    verb, root, *numbers = sys.argv[1:]
    verbs = {"fill": fill, "compact": compact, "look": look, "wipe": wipe, "refer": refer, "outside": outside}
    verbs[verb](root, *map(int, numbers))

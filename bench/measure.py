"""Measuring: spans of wall and processor time, bytes on disk, counted system calls, load.

A child process marks the measured part with `mark(name)`, a system call that fails harmlessly and shows in
the trace of `strace`; counts are then given per mark. Timed runs have no strace, and their marks do nothing.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Result = dict[str, float]
BENCH = Path(__file__).resolve().parent
interpreter = sys.executable
"""The interpreter that runs the peers: `bench/before.py` lets an older release run in another environment."""
_MARK = "/fieldstone-bench-mark/"
# sync_file_range only starts write-back: it waits for nothing and makes nothing durable.
_SYNCS = {"fsync", "fdatasync", "syncfs", "sync", "msync"}
_WRITES = {"write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile"}
_READS = {"read", "pread64", "readv", "preadv", "preadv2"}
_TRACED = sorted(_SYNCS | _WRITES | _READS | {"mmap", "access", "faccessat", "faccessat2"})


def mark(name: str) -> None:
    """Counts the following calls of this process under `name`; "" stops counting."""
    if "BENCH_TRACE" in os.environ:
        os.access(_MARK + name, os.F_OK)


class Span:
    """`with Span("archive") as s:` gives s.seconds (wall) and s.cpu (user + system, all threads)."""

    def __init__(self, name: str = "measured") -> None:
        self.name, self.seconds, self.cpu = name, 0.0, 0.0

    def __enter__(self) -> Span:
        mark(self.name)
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu = time.process_time() - self._start[1]
        self.seconds = time.perf_counter() - self._start[0]
        mark("")

    def result(self, fields: int, nbytes: int = 0) -> Result:
        return {"seconds": self.seconds, "cpu": self.cpu, "fields": fields, "bytes": nbytes}


def children_cpu() -> float:
    """Processor seconds of all children of this process, ended or running."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    for thread in Path("/proc/self/task").iterdir():
        for child in (thread / "children").read_text().split():
            times = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
            total += (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
    return total


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def tree_size(root: Path) -> Result:
    """The files below `root`: their number, the sum of their lengths, and the bytes allocated for them."""
    stats = [p.stat() for p in root.rglob("*") if p.is_file()]
    return {
        "files": len(stats),
        "length": sum(s.st_size for s in stats),
        "allocated": sum(s.st_blocks * 512 for s in stats),
    }


def read_into_cache(root: Path) -> None:
    """Reads every file below `root` once: the writer may have bypassed the page cache."""
    for path in root.rglob("*"):
        if path.is_file():
            with path.open("rb", buffering=0) as f:
                while f.read(8 << 20):
                    pass


@dataclass
class Counts:
    """System calls between one mark and the next, on files below the store's folder."""

    syncs: int = 0
    write_calls: int = 0
    written: int = 0
    read_calls: int = 0
    read: int = 0
    mapped: int = 0
    files_written: set[str] = field(default_factory=set)


def traced(command: list[str], log: Path) -> list[str]:
    """The command under strace, which writes the counted calls to `log`."""
    calls = f"trace={','.join(_TRACED)}"
    return ["strace", "-f", "-y", "-s", "80", "--seccomp-bpf", "-o", str(log), "-e", calls, *command]


def child(
    peer: str, what: str, root: Path, trace: bool = False, **arguments: Any
) -> tuple[dict[str, Any], dict[str, Counts]]:
    """Calls `what` of a peer in a fresh process; with `trace`, under strace with counts per mark."""
    call = json.dumps({"peer": peer, "what": what, "root": str(root), "arguments": arguments})
    command = [interpreter, str(BENCH / "scenarios.py"), call]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FDB", "BENCH_TRACE"))}
    log = root.parent / f"{root.name}.strace"
    if trace:
        environment["BENCH_TRACE"] = "1"
        command = traced(command, log)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"bench: {peer} {what} failed:\n{done.stderr[-3000:]}")
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if not trace:
        return result, {}
    counts = parse_trace(log, root)
    log.unlink()
    return result, counts


_LINE = re.compile(r"^(\d+)\s+(\w+)\((.*)\)\s+= (-?\w+)(?:<([^>]*)>)?")
_BEGUN = re.compile(r"^(\d+)\s+(\w+)\((.*) <unfinished \.\.\.>$")
_ENDED = re.compile(r"^(\d+)\s+<\.\.\. \w+ resumed>(.*)\)\s+= (-?\w+)(?:<([^>]*)>)?")
_PATH = re.compile(r"\d+<([^>]*)>")


def _calls(log: Path) -> Iterator[tuple[str, str, int, str]]:
    """(call, arguments, returned number, path of a returned descriptor), with interrupted lines joined."""
    begun: dict[str, tuple[str, str]] = {}
    with log.open(errors="replace") as lines:
        for line in lines:
            # strace splits a call in two if another thread runs in between; the thread's id joins the halves.
            if m := _BEGUN.match(line):
                begun[m[1]] = (m[2], m[3])
                continue
            if m := _ENDED.match(line):
                name, arguments = begun.pop(m[1], ("", ""))
                arguments, returned, path = arguments + m[2], m[3], m[4]
            elif m := _LINE.match(line):
                name, arguments, returned, path = m[2], m[3], m[4], m[5]
            else:
                continue
            if returned.lstrip("-").isdigit() or returned.startswith("0x"):
                yield name, arguments, int(returned, 0), path or ""


def parse_trace(log: Path, root: Path) -> dict[str, Counts]:
    """Counts per mark from the output of `strace -f -y`; only files below `root` count."""
    marks: dict[str, Counts] = defaultdict(Counts)
    now, inside = "", str(root.resolve())
    for name, arguments, returned, opened in _calls(log):
        if name in ("access", "faccessat", "faccessat2"):
            if (at := arguments.find(_MARK)) >= 0:
                now = arguments[at + len(_MARK) : arguments.index('"', at)]
            continue
        found = _PATH.search(arguments)
        path = opened or (found[1] if found else "")
        if not now or returned < 0 or (not path.startswith(inside) and name != "sync"):
            continue
        c = marks[now]
        if name in _SYNCS:
            c.syncs += 1
        elif name in _WRITES:
            c.write_calls, c.written = c.write_calls + 1, c.written + returned
            c.files_written.add(path)
        elif name in _READS:
            c.read_calls, c.read = c.read_calls + 1, c.read + returned
        elif name == "mmap":
            # No later call shows which pages are read, so the whole range counts.
            c.mapped += int(arguments.split(", ")[1])
    return marks


def run_program(argv: list[str], environment: dict[str, str], output: Path) -> Result:
    """Starts a program with its output in a file; gives wall seconds to its exit, processor seconds."""
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    start = time.perf_counter()
    env = {**os.environ, **environment}
    pid = os.posix_spawn(argv[0], argv, env, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - start
    os.close(out)
    if status:
        raise SystemExit(f"bench: {' '.join(argv)} ended with status {os.waitstatus_to_exitcode(status)}")
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime}


def wait_for_idle(limit: float, patience: float) -> None:
    """Waits until the one-minute load is below `limit`, but no longer than `patience` seconds."""
    end = time.monotonic() + patience
    while os.getloadavg()[0] >= limit and time.monotonic() < end:
        time.sleep(2)


def machine(work: Path) -> dict[str, str]:
    """The facts a figure depends on: processor, cores, memory, kernel, file system."""
    cpu = next(
        (ln.split(":")[1].strip() for ln in _lines("/proc/cpuinfo") if ln.startswith("model name")), "unknown"
    )
    memory = next(int(ln.split()[1]) for ln in _lines("/proc/meminfo") if ln.startswith("MemTotal"))
    mounts = [ln.split()[:3] for ln in _lines("/proc/mounts")]
    within = [m for m in mounts if work.resolve().is_relative_to(m[1])]
    mount = max(within, key=lambda m: len(m[1]))
    return {
        "processor": f"{cpu}, {os.cpu_count()} cores",
        "memory": f"{memory / 2**20:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": f"{mount[2]} on {mount[0].rsplit('/', 1)[-1]}",
        "python": platform.python_version(),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()

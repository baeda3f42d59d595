"""Threads that share one handle, in Rust: `crates/fieldstone/examples/sharing.rs`, run by run.

The same run measures the disk, right after each figure that depends on it: an overwrite of as many
bytes in a file that is already zeroed and synced, and one fdatasync.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from measure import BENCH, Result

if TYPE_CHECKING:
    from steps import Figure, Sitting

PROGRAM = BENCH.parent / "target" / "release" / "examples" / "sharing"
MICRO = 1e-6


def _program(fig: Figure, at: Sitting, peer: str, *arguments: str) -> Result:
    root = at.fresh(fig.name, peer)
    command = [str(PROGRAM), str(root), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def flush(fig: Figure, at: Sitting, peer: str) -> Result:
    """Flushes of ten small fields, followed by the same on the bare disk."""
    ours = _program(fig, at, peer, "flush")
    disk = _program(fig, at, peer, "disk", str(int(ours["frame"])))
    floor = disk["median"] * MICRO
    return {
        "median": ours["median"] * MICRO,
        "p95": ours["p95"] * MICRO,
        "floor": floor,
        "frame": ours["frame"],
        "of_allowed": ours["median"] * MICRO / max(1.6 * floor, floor + 120 * MICRO),
    }


def threads(fig: Figure, at: Sitting, peer: str) -> Result:
    """Flushes per second of one thread and of eight, and gets of a reader while two threads flush."""
    rates = {n: _program(fig, at, peer, "threads", str(n))["flushes_per_second"] for n in (1, 8)}
    reader = _program(fig, at, peer, "reader")
    disk = _program(fig, at, peer, "disk", "1000")
    return {
        "one": rates[1],
        "eight": rates[8],
        "speedup": rates[8] / rates[1],
        "get": reader["median"] * MICRO,
        "get_p99": reader["p99"] * MICRO,
        "sync": disk["median"] * MICRO,
        "of_sync": reader["p99"] / disk["median"],
    }


def archive(fig: Figure, at: Sitting, peer: str) -> Result:
    """Fields of 64 KiB, archived into one handle by one thread and by eight."""
    result: Result = {}
    for how in ("none", "zstd"):
        for n in (1, 8):
            result[f"{how}_{n}"] = _program(fig, at, peer, "archive", str(n), how)["archived_per_second"]
        result[f"{how}_speedup"] = result[f"{how}_8"] / result[f"{how}_1"]
    return result

"""zarr-python reads an array in chunks of 1 MiB: from a Fieldstone store, and from its own LocalStore.

`python bench/zarr_read.py PEER WHAT ROOT` reads all of it once in a fresh process and prints one line of
JSON: seconds and processor seconds. Before the clock starts, the process opens the array and reads one chunk;
it compares the values with the written ones. Both peers hold the same elements in the same chunks behind the
same codecs; LocalStore is also measured without its checksums.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from measure import BENCH, Result, Span, parse_trace, traced, tree_size

if TYPE_CHECKING:
    from steps import Figure, Sitting

OURS, CHECKED, PLAIN = "fieldstone_store", "zarr-crc32c", "zarr-plain"
EXTENTS = (1, 512, 512)
"""The extents of a chunk: 1 MiB of f4."""
CHUNKS, FEW = 954, 24
"""The number of chunks: 1 GB; and in a short run."""
KEPT = 8
"""The number of chunks kept next to the store, for comparison."""


def elements(what: str, chunks: int) -> np.ndarray:
    """Noise that nothing compresses, or a smooth field that zstd takes to about half."""
    rng = np.random.default_rng(7)
    shape = (chunks, *EXTENTS[1:])
    if what != "zstd":
        return rng.integers(0, 2**32, shape, dtype="u4").view("f4")
    y, x = np.mgrid[0 : shape[1], 0 : shape[2]].astype("f4")
    base = np.round(280 + 20 * np.sin(x / 60) * np.cos(y / 90), 2)
    return (base[None] + rng.integers(0, 16, shape).astype("f4") / 8).astype("f4")


def fill(fig: Figure, at: Sitting, peer: str) -> Result:
    """Writes the array for a peer."""
    root, what = at.fresh(fig.name, peer), fig.data["what"]
    values = elements(what, FEW if at.quick else CHUNKS)
    start = time.perf_counter()
    if peer == OURS:
        import fieldstone as fst

        how = "zstd:3" if what == "zstd" else "none"
        key = {"run": "a", "variable": "t", "step": 0}
        with fst.open(root) as store:
            if what == "steps":
                for step, plane in enumerate(values):
                    store.archive({**key, "step": step}, plane, compression=how)
            else:
                store.archive(key, values, chunks=EXTENTS, compression=how)
    else:
        import zarr
        from zarr.codecs import Crc32cCodec, ZstdCodec

        codecs: list[Any] = [ZstdCodec(level=3)] if what == "zstd" else []
        codecs += [Crc32cCodec()] if peer == CHECKED else []
        how = {"shape": values.shape, "dtype": values.dtype, "chunks": EXTENTS, "compressors": codecs or None}
        zarr.create_array(root, **how)[:] = values
    seconds = time.perf_counter() - start
    np.save(root.parent / "kept.npy", values[:: max(len(values) // KEPT, 1)])
    return {"filled": seconds, **tree_size(root)}


def opened(peer: str, root: Path) -> Any:
    """The array in zarr-python. Every peer makes the same imports, so that all clocks start alike."""
    import fieldstone as fst
    import fieldstone._zarr.store
    import zarr

    if peer != OURS:
        return zarr.open_array(root, mode="r")
    return zarr.open_array(fst.zarr_store(root), path="t", mode="r")


def warm(nbytes: int) -> None:
    """Takes memory, writes it and gives it back.

    A virtual machine hands pages that are free for a second back to its host, and taking them again costs
    several times as much: the first peer after a pause would pay for all.
    """
    np.ones(nbytes + nbytes // 2, "u1")


def once(peer: str, what: str, root: Path) -> None:
    """Reads all of it, and prints the times."""
    array = opened(peer, root)
    # LocalStore also uses these codecs, so the figure compares what each store costs zarr-python.
    named = {CHECKED: ["crc32c"], PLAIN: [], OURS: ["crc32c"]}[peer]
    named = [*(["zstd"] if what == "zstd" else []), *named]
    assert array.chunks == EXTENTS and [c.to_dict()["name"] for c in array.compressors] == named, array
    array[0]
    warm(array.nbytes)
    with Span() as span:
        values = array[:]
    expected = np.load(root.parent / "kept.npy")
    assert values[:: max(len(values) // KEPT, 1)].tobytes() == expected.tobytes()
    print(json.dumps({"seconds": span.seconds, "cpu": span.cpu, "bytes": values.nbytes}))


def _command(fig: Figure, at: Sitting, peer: str) -> list[str]:
    root = at.root(fig.name, peer)
    return [sys.executable, str(BENCH / "zarr_read.py"), peer, fig.data["what"], str(root)]


def run(fig: Figure, at: Sitting, peer: str) -> Result:
    """One fresh process that reads it."""
    return _result(peer, _command(fig, at, peer))


def counts(fig: Figure, at: Sitting, peer: str) -> Result:
    """The same under strace: the bytes and calls of its reads."""
    root = at.root(fig.name, peer)
    log = root.parent / "strace"
    _result(peer, traced(_command(fig, at, peer), log), BENCH_TRACE="1")
    found = parse_trace(log, root)["measured"]
    log.unlink()
    return {"read": found.read + found.mapped, "read_calls": found.read_calls, **tree_size(root)}


def _result(peer: str, command: list[str], **more: str) -> Result:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **more})
    if done.returncode:
        raise SystemExit(f"bench: {peer} failed:\n{done.stderr[-3000:]}")
    result: Result = json.loads(done.stdout.strip().splitlines()[-1])
    return {**result, "bytes_s": result["bytes"] / result["seconds"]}


if __name__ == "__main__":
    once(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

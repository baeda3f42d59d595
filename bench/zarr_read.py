"""zarr-python reads 1 GB in chunks of 1 MiB from a store, and from its own LocalStore.

    python bench/zarr_read.py [--work DIR] [--runs N] [--size CHUNKS]

Both hold the same elements in the same chunks: in one field, in a field per step, and in one field compressed
by zstd at level 3; LocalStore with and without zarr-python's codec crc32c. A store checks its own CRC-32C at
every read, and hands chunks over decompressed, so that zarr-python sees the codec `bytes` alone. Peers take
turns, each run in a fresh process that has read one chunk before the clock starts; files are in the page
cache. What is read is compared with what was written. Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measure import Span

CASES = ("raw", "steps", "zstd")
WORDS = {"raw": "one field", "steps": "a field per step", "zstd": "one field, zstd"}
PEERS = ("store", "checked", "plain")
"""A store of ours; LocalStore with crc32c, as ours checks, and without."""
NAMES = {"store": "a store", "checked": "LocalStore with crc32c", "plain": "LocalStore"}
EXTENTS = (1, 512, 512)
"""Of a chunk: 1 MiB of f4."""


def field(case: str, chunks: int) -> np.ndarray:
    """Noise that nothing compresses, or a smooth field that zstd takes to about half."""
    rng = np.random.default_rng(7)
    shape = (chunks, *EXTENTS[1:])
    if case != "zstd":
        return rng.random(shape, dtype="f4")
    y, x = np.mgrid[0 : shape[1], 0 : shape[2]].astype("f4")
    base = np.round(280 + 20 * np.sin(x / 60) * np.cos(y / 90), 2)
    return (base[None] + rng.integers(0, 16, shape).astype("f4") / 8).astype("f4")


def write(root: Path, chunks: int) -> None:
    """The same elements for both peers."""
    import fieldstone as fst
    import zarr
    from zarr.codecs import Crc32cCodec, ZstdCodec

    for case in CASES:
        values = field(case, chunks)
        with fst.open(root / f"{case}.store") as store:
            how = "zstd:3" if case == "zstd" else "none"
            key = {"run": "a", "variable": "t", "step": 0}
            if case == "steps":
                for step, plane in enumerate(values):
                    store.archive({**key, "step": step}, plane, compression=how)
            else:
                store.archive(key, values, chunks=EXTENTS, compression=how)
        for peer in PEERS[1:] if case != "steps" else ():  # LocalStore has one way to keep an array
            codecs = [ZstdCodec(level=3)] if case == "zstd" else []
            made = zarr.create_array(
                root / f"{case}-{peer}.zarr",
                shape=values.shape,
                dtype=values.dtype,
                chunks=EXTENTS,
                compressors=[*codecs, *([Crc32cCodec()] if peer == "checked" else [])] or None,
            )
            made[:] = values
        np.save(root / f"{case}.npy", values[:: max(chunks // 8, 1)])


def opened(root: Path, case: str, peer: str) -> Any:
    """The array as zarr-python has it."""
    import zarr

    if peer != "store":
        held = "raw" if case == "steps" else case
        return zarr.open_array(root / f"{held}-{peer}.zarr", mode="r")
    import fieldstone as fst

    return zarr.open_array(fst.zarr_store(root / f"{case}.store"), path="t", mode="r")


def measured(root: Path, case: str, peer: str) -> dict[str, float]:
    """One run: the whole array."""
    array = opened(root, case, peer)
    assert array.chunks == EXTENTS
    array[0]
    with Span() as span:
        values = array[:]
    expected = np.load(root / f"{case}.npy")
    assert np.array_equal(values[:: max(len(values) // 8, 1)], expected)
    return {"seconds": span.seconds, "cpu": span.cpu, "bytes": values.nbytes}


def main() -> None:
    """Writes, measures in turn, prints."""
    ap = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    ap.add_argument("--work", default=None, help="folder on the disk to measure")
    ap.add_argument("--runs", type=int, default=7)
    ap.add_argument("--size", type=int, default=954, help="chunks of 1 MiB")
    ap.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = ap.parse_args()
    if options.child:
        root, case, peer = options.child
        print(json.dumps(measured(Path(root), case, peer)))
        return
    root = Path(tempfile.mkdtemp(prefix="zarr-read-", dir=options.work))
    try:
        write(root, options.size)
        print(f"load before: {os.getloadavg()[0]:.2f}")
        found: dict[tuple[str, str], list[dict[str, float]]] = {}
        for _ in range(options.runs):
            for case in CASES:
                for peer in PEERS:
                    command = [sys.executable, __file__, "--child", str(root), case, peer]
                    done = subprocess.run(command, capture_output=True, text=True, check=True)
                    found.setdefault((case, peer), []).append(json.loads(done.stdout))
        print(f"load after: {os.getloadavg()[0]:.2f}")
        print("| | GB/s | of LocalStore's speed with crc32c | without | CPU seconds |")
        print("|---|---|---|---|---|")
        for case in CASES:
            for peer in PEERS:
                runs = found[case, peer]
                cells = [
                    f"{WORDS[case]}: {NAMES[peer]}",
                    spread([r["bytes"] / r["seconds"] / 1e9 for r in runs]),
                ]
                for other in PEERS[1:]:
                    pairs = zip(runs, found[case, other], strict=True)
                    ratios = [theirs["seconds"] / ours["seconds"] for ours, theirs in pairs]
                    cells.append(spread(ratios) if peer == "store" else "")
                print(f"| {' | '.join([*cells, spread([r['cpu'] for r in runs])])} |")
    finally:
        shutil.rmtree(root)


def spread(values: list[float]) -> str:
    """Median (lowest-highest)."""
    return f"**{statistics.median(values):.2f}** ({min(values):.2f}-{max(values):.2f})"


if __name__ == "__main__":
    main()

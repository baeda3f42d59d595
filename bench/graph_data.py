"""The graphs that peers store and query: an RMAT graph, and one with a hub.

Vertices are numbers here; a peer gives them the names it needs. The same seed gives the same graph.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

SCALE, EDGES = 18, 1_200_000
"""Of the RMAT graph whose reachability is measured."""
HUB, HUB_EDGES = 0, 30_000
_QUADRANTS = (0.45, 0.15, 0.15, 0.25)
"""The GraphMeta paper's parameters of RMAT."""
_LETTERS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
PROPERTY = 128
"""Bytes of the property of a relation."""


@cache
def rmat(edges: int = EDGES, scale: int = SCALE, seed: int = 42, below: int | None = None) -> np.ndarray:
    """Pairs of source and target, unique, none from a vertex to itself, random order; all below a number."""
    import numpy as np

    rng = np.random.default_rng(seed)
    a, b, c, _ = _QUADRANTS
    known = np.empty(0, dtype=np.uint64)
    while len(known) < edges:
        n = int((edges - len(known)) * 1.3) + 1024
        source, target = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.uint64)
        for _ in range(scale):
            drawn = rng.random(n)
            low = drawn >= a + b
            right = ((drawn >= a) & (drawn < a + b)) | (drawn >= a + b + c)
            source, target = (source << np.uint64(1)) | low, (target << np.uint64(1)) | right
        fit = source != target
        if below is not None:
            fit &= (source < below) & (target < below)
        known = np.unique(np.concatenate([known, (source[fit] << np.uint64(32)) | target[fit]]))
    rng.shuffle(known)
    known = known[:edges]
    return np.stack([known >> np.uint64(32), known & np.uint64(0xFFFFFFFF)], axis=1).astype(np.uint32)


@cache
def power(edges: int = EDGES, seed: int = 7) -> np.ndarray:
    """Most vertices have few relations, by a power law; the hub has 30,000, or a quarter of a small graph."""
    import numpy as np

    rng = np.random.default_rng(seed)
    hub = min(HUB_EDGES, edges // 4)
    most = edges // 4
    rest = edges - hub
    degrees = np.minimum(rng.zipf(2.1, size=most), 2_000)
    source = np.repeat(np.arange(1, most + 1, dtype=np.uint32), degrees)
    rng.shuffle(source)
    source = np.resize(source, rest)
    pairs = np.empty((edges, 2), dtype=np.uint32)
    pairs[:hub, 0] = HUB
    pairs[:hub, 1] = np.arange(1, hub + 1)
    pairs[hub:, 0] = source
    pairs[hub:, 1] = rng.integers(most + 1, most + 1 + edges, size=rest)
    rng.shuffle(pairs)
    return pairs


@cache
def near(edges: int, seed: int = 11) -> np.ndarray:
    """The shape of SNAP's amazon0302: at most five from each vertex, 4.71 in the mean, most near."""
    import numpy as np

    rng = np.random.default_rng(seed)
    vertices = max(int(edges / 4.71), 10)
    degrees = np.where(rng.random(vertices) < 0.884, 5, rng.integers(1, 5, vertices))
    source = np.repeat(np.arange(vertices), degrees)
    far = np.rint(np.exp(rng.normal(4.0, 2.0, len(source)))).astype(np.int64) + 1
    target = (source + np.where(rng.random(len(source)) < 0.5, far, -far)) % vertices
    # A tenth leads to one vertex in 64, ..., 8,192: hundreds of relations reach some vertices.
    width = 1 << rng.integers(6, 14, len(source))
    target = np.where(
        rng.random(len(source)) < 0.1, (source // width * width + width * 3 // 7) % vertices, target
    )
    pairs = np.unique(np.stack([source, target], axis=1)[source != target], axis=0)
    rng.shuffle(pairs)
    return pairs.astype(np.uint32)


def star(edges: int) -> np.ndarray:
    """All relations from one vertex."""
    import numpy as np

    return np.stack([np.full(edges, HUB), np.arange(1, edges + 1)], axis=1).astype(np.uint32)


def edges(shape: str, count: int) -> np.ndarray:
    """The relations of a graph, by its name."""
    return {"rmat": rmat, "power": power}[shape](count)


def write(path: Path, pairs: np.ndarray) -> None:
    """The relations as pairs of little-endian u32."""
    pairs.astype("<u4").tofile(path)


def properties(count: int, seed: int = 1) -> list[str]:
    """Random texts of 128 characters."""
    import numpy as np

    letters = np.frombuffer(_LETTERS, dtype=np.uint8)
    drawn = letters[np.random.default_rng(seed).integers(0, 64, size=(count, PROPERTY), dtype=np.uint8)]
    return drawn.view(f"S{PROPERTY}").ravel().astype(f"U{PROPERTY}").tolist()


def identifier(vertex: int) -> str:
    """The id of a vertex: a path, like that of a file."""
    return f"/scratch/run/{vertex:08d}"


def columns(pairs: np.ndarray, texts: list[str]) -> dict[str, Any]:
    """Relations in the form that `put_many` takes."""
    return {
        "type": "has",
        "src_type": "file",
        "dst_type": "file",
        "src_id": [identifier(vertex) for vertex in pairs[:, 0].tolist()],
        "dst_id": [identifier(vertex) for vertex in pairs[:, 1].tolist()],
        "props": {"note": texts},
    }

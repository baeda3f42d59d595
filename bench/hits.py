"""Reading the boxes that a query finds, compared with reading all; and six read patterns, compared with HDF5.

A run of five variables at two steps, each a global array of doubles, is written chunk by chunk as ranks
would; some of the chunks are tagged, as often as the EMPRESS paper's rare, infrequent and frequent tags (0.1,
5 and 25 %). Every read is the first of a fresh process with nothing of the store in the page cache.

`BENCH_HITS_GIB` (4) is the size of the data and `BENCH_HITS_EDGE` (64) the edge of a chunk. The paper's edge
is 170, which leaves so few chunks in 4 GiB that a rare tag marks only one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Result, Span, child, tree_size

if TYPE_CHECKING:
    import numpy as np
    from steps import Figure, Sitting

HITS = {"fieldstone_store": "hits_fieldstone"}
HDF5 = "hits_hdf5"
RUN, VARIABLES, STEPS = "astro3d", ("temperature", "pressure", "velocity_x", "velocity_y", "velocity_z"), 2
TAGS = {"frequent": 25.0, "infrequent": 5.0, "rare": 0.1}
PATTERNS = {
    "restart": "all variables of a step",
    "variable": "one variable of a step",
    "vector": "three variables of a step",
    "plane_xy": "a plane, x and y, of one variable",
    "plane_xz": "a plane, x and z",
    "plane_yz": "a plane, y and z",
    "volume": "an eighth of one variable, in its middle",
    "area": "a quarter of a plane",
}


@dataclass(frozen=True)
class Data:
    """The arrays: `grid` chunks of `edge` cubed doubles for each variable at each step."""

    edge: int
    grid: tuple[int, int, int]

    @staticmethod
    def of(quick: bool) -> Data:
        if quick:
            return Data(16, (4, 4, 4))
        edge = int(os.environ.get("BENCH_HITS_EDGE", "64"))
        total = float(os.environ.get("BENCH_HITS_GIB", "4")) * 2**30
        chunks = max(1.0, total / (edge**3 * 8 * len(VARIABLES) * STEPS))
        x = max(1, round(chunks ** (1 / 3)))
        y = max(1, round((chunks / x) ** 0.5))
        return Data(edge, (x, y, max(1, round(chunks / x / y))))

    @property
    def shape(self) -> tuple[int, int, int]:
        x, y, z = (self.edge * n for n in self.grid)
        return x, y, z

    @property
    def chunks(self) -> int:
        x, y, z = self.grid
        return x * y * z

    @property
    def variable_bytes(self) -> int:
        return self.chunks * self.edge**3 * 8

    def starts(self) -> list[tuple[int, int, int]]:
        x, y, z = (range(0, extent, self.edge) for extent in self.shape)
        return [(a, b, c) for a in x for b in y for c in z]

    def pieces(self, variable: int, step: int) -> Iterator[tuple[tuple[int, int, int], np.ndarray]]:
        """Start and values of each chunk: random, so that nothing compresses."""
        import numpy as np

        random = np.random.default_rng((variable, step))
        for start in self.starts():
            yield start, random.random((self.edge,) * 3)

    def tagged(self, tag: str, step: int) -> list[tuple[int, int]]:
        """(variable, chunk) of each attribute: at least one of the whole run."""
        import numpy as np

        total = self.chunks * len(VARIABLES)
        number = round(total * STEPS * TAGS[tag] / 100)
        here = max(number // STEPS + (number % STEPS > step), 1 - step)
        drawn = np.random.default_rng((7, step, list(TAGS).index(tag))).permutation(total)[:here]
        return [divmod(int(place), self.chunks) for place in drawn]

    def boxes(self, pattern: str) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        """(variable, start, count) of each read of a pattern."""
        x, y, z = self.shape
        middle = (x // 2, y // 2, z // 2)
        match pattern:
            case "restart":
                return [(v, (0, 0, 0), self.shape) for v in range(len(VARIABLES))]
            case "variable":
                return [(0, (0, 0, 0), self.shape)]
            case "vector":
                return [(v, (0, 0, 0), self.shape) for v in (2, 3, 4)]
            case "plane_xy":
                return [(0, (0, 0, middle[2]), (x, y, 1))]
            case "plane_xz":
                return [(0, (0, middle[1], 0), (x, 1, z))]
            case "plane_yz":
                return [(0, (middle[0], 0, 0), (1, y, z))]
            case "volume":
                return [(0, (x // 4, y // 4, z // 4), middle)]
            case "area":
                return [(0, (middle[0], y // 4, z // 4), (1, y // 2, z // 2))]
        raise KeyError(pattern)


# ---- in the child


def hits_fill(peer: Any, root: Path, quick: bool) -> dict[str, Any]:
    """Writes all data and tags, timed separately; each is durable when its time is over."""
    data, seconds, cpu = Data.of(quick), {"data": 0.0, "tags": 0.0}, 0.0
    store, attributes = peer(root, data), 0
    store.create()
    for step in range(STEPS):
        for variable, name in enumerate(VARIABLES):
            for start, values in data.pieces(variable, step):
                with Span("data") as span:
                    store.write(name, step, start, values)
                seconds["data"] += span.seconds
                cpu += span.cpu
            with Span("data") as span:
                store.flush()
            seconds["data"] += span.seconds
        if hasattr(store, "tag"):
            starts = data.starts()
            for tag in TAGS:
                places = data.tagged(tag, step)
                names = [VARIABLES[variable] for variable, _ in places]
                corners = [starts[chunk] for _, chunk in places]
                with Span("tags") as span:
                    store.tag(tag, step, names, corners)
                seconds["tags"] += span.seconds
                attributes += len(places)
            with Span("tags") as span:
                store.flush()
            seconds["tags"] += span.seconds
    store.close()
    written = data.variable_bytes * len(VARIABLES) * STEPS
    return {**seconds, "cpu": cpu, "bytes": written, "attributes": attributes, "chunks": data.chunks}


def _cold(peer: Any, root: Path) -> None:
    """Imports and makes first calls on a small separate store; then evicts `root` from the page cache."""
    from catalog import _evict

    aside = root.with_name("aside")
    if not aside.exists():
        hits_fill(peer, aside, True)
    small = peer(aside, Data.of(True))
    small.read(VARIABLES[0], 0, (0, 0, 0), (4, 4, 4))
    if hasattr(small, "hits"):
        assert sum(part.nbytes for part in small.hits("rare"))
    small.close()
    _evict(root)


def hits_tag(peer: Any, root: Path, quick: bool, tag: str) -> dict[str, Any]:
    """Reads tagged data: the query, then the boxes that it finds."""
    data = Data.of(quick)
    _cold(peer, root)
    with Span("open") as opening:
        store = peer(root, data)
    with Span("query") as query:
        found = store.find(tag)
        number = found.count()
    expected = sum(len(data.tagged(tag, step)) for step in range(STEPS))
    assert number == expected, (tag, number, expected)
    with Span("read") as read:
        nbytes = sum(hit.read().nbytes for hit in found)
    assert nbytes == number * data.edge**3 * 8, nbytes
    return {
        "open": opening.seconds,
        "query": query.seconds,
        "read": read.seconds,
        "cpu": query.cpu + read.cpu,
        "hits": number,
        "bytes": nbytes,
    }


def hits_all(peer: Any, root: Path, quick: bool) -> dict[str, Any]:
    """Every variable at every step, whole."""
    data, nbytes = Data.of(quick), 0
    _cold(peer, root)
    store = peer(root, data)
    with Span("read") as span:
        for step in range(STEPS):
            for name in VARIABLES:
                nbytes += store.read(name, step, (0, 0, 0), data.shape).nbytes
    return span.result(len(VARIABLES) * STEPS, nbytes)


def hits_pattern(peer: Any, root: Path, quick: bool, pattern: str) -> dict[str, Any]:
    """The reads of one pattern, at the last step; small ones are compared with the written values."""
    data, nbytes = Data.of(quick), 0
    _cold(peer, root)
    with Span("read") as span:
        store = peer(root, data)
        for variable, start, count in data.boxes(pattern):
            part = store.read(VARIABLES[variable], STEPS - 1, start, count)
            nbytes += part.nbytes
    if quick:
        import numpy as np

        variable, start, count = data.boxes(pattern)[-1]
        whole = np.empty(data.shape)
        for first, values in data.pieces(variable, STEPS - 1):
            whole[tuple(slice(a, a + data.edge) for a in first)] = values
        assert np.array_equal(part, whole[tuple(slice(a, a + n) for a, n in zip(start, count, strict=True))])
    return span.result(1, nbytes)


# ---- in the parent


def _module(peer: str) -> str:
    return HITS.get(peer, peer)


def fill(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.fresh(fig.name, peer)
    r, _ = child(_module(peer), "hits_fill", root, quick=at.quick)
    r |= tree_size(root)
    root.with_name("fill.json").write_text(json.dumps(r))
    return r


def hits(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.root(fig.name, peer)
    filled = json.loads(root.with_name("fill.json").read_text())
    everything, _ = child(_module(peer), "hits_all", root, quick=at.quick)
    result = {
        "all": everything["seconds"],
        "rate": everything["bytes"] / everything["seconds"],
        "data": filled["data"],
        "tags": filled["tags"],
        "attributes": filled["attributes"],
        "write_share": filled["tags"] / filled["data"],
    }
    for tag in TAGS:
        r, _ = child(_module(peer), "hits_tag", root, quick=at.quick, tag=tag)
        result |= {f"{name}_{tag}": r[name] for name in ("query", "read", "hits", "bytes")}
        result[f"part_{tag}"] = (r["query"] + r["read"]) / everything["seconds"]
        result[f"query_share_{tag}"] = r["query"] / everything["seconds"]
    return result


def hits_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    """Bytes read from the store's files, including the engine's pages, which SQLite reads."""
    root, result = at.root(fig.name, peer), {}
    for tag in TAGS:
        r, marks = child(_module(peer), "hits_tag", root, trace=True, quick=at.quick, tag=tag)
        read = sum(marks[mark].read for mark in ("open", "query", "read"))
        result |= {
            f"got_{tag}": read,
            f"over_{tag}": read / r["bytes"],
            f"beyond_{tag}": read - 2 * r["bytes"],
        }
    return {**result, "beyond": max(result[f"beyond_{tag}"] for tag in TAGS)}


def patterns(fig: Figure, at: Sitting, peer: str) -> Result:
    result: Result = {}
    for pattern in PATTERNS:
        r, _ = child(_module(peer), "hits_pattern", at.root(fig.name, peer), quick=at.quick, pattern=pattern)
        result |= {pattern: r["seconds"], f"cpu_{pattern}": r["cpu"], f"bytes_{pattern}": r["bytes"]}
    return result


def patterns_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    result: Result = {}
    for pattern in PATTERNS:
        r, marks = child(
            _module(peer),
            "hits_pattern",
            at.root(fig.name, peer),
            trace=True,
            quick=at.quick,
            pattern=pattern,
        )
        result |= {f"got_{pattern}": marks["read"].read, f"over_{pattern}": marks["read"].read / r["bytes"]}
    return result

"""The operations on a catalog that are timed: scenarios that run in fresh processes, and the steps made of
them.

Every peer answers the same queries over the same attributes (`volume.py`); the numbers of rows must agree, or
the program ends. Hot: one process runs each query once untimed and then again and again. Cold: each query has
a process, the files are evicted from the page cache before the clock starts, and opening the store counts.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import BENCH, Result, Span, child
from volume import QUERIES, volume

if TYPE_CHECKING:
    from steps import Figure, Sitting

RECORDS, BULK = "catalog_hdf5", "catalog_hdf5_bulk"
CLUSTERED, CURVE = "catalog_sqlite", "catalog_sqlite_curve"
COPY = "copy"
_MODULES = {"fieldstone_store": "catalog_fieldstone"}

# ---- in the child


def catalog_fill(peer: Any, root: Path, writers: int) -> dict[str, Any]:
    """Writes the catalog that the queries read."""
    return {"attributes": peer(root, volume(writers)).fill()}


def catalog_hot(peer: Any, root: Path, writers: int, budget: float) -> dict[str, Any]:
    """Runs each query until `budget` seconds are over, 3 to 200 times; returns the median."""
    store, result = peer(root, volume(writers)), {}
    for query in QUERIES:
        ask = getattr(store, query)
        rows, seconds, cpu = ask(), [], 0.0
        while len(seconds) < 200 and (sum(seconds) < budget or len(seconds) < 3):
            with Span(query) as span:
                again = ask()
            assert again == rows, (query, rows, again)
            seconds.append(span.seconds)
            cpu += span.cpu
            if span.seconds > 2:
                break
        result |= {
            query: statistics.median(seconds),
            f"rows_{query}": rows,
            f"cpu_{query}": cpu / len(seconds),
        }
    return result


def _evict(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def catalog_cold(peer: Any, root: Path, writers: int, query: str) -> dict[str, Any]:
    """One query, from opening the store; its modules are imported, and used once elsewhere, before."""
    v, aside = volume(writers), root.with_name("aside")
    if not aside.exists():
        peer(aside, volume(64)).fill()
    assert getattr(peer(aside, volume(64)), query)() >= 0
    _evict(root)
    with Span() as span:
        rows = getattr(peer(root, v), query)()
    return {"seconds": span.seconds, "cpu": span.cpu, "rows": rows}


def catalog_insert(peer: Any, root: Path, writers: int) -> dict[str, Any]:
    """Inserts every step from its columns, durable and applied."""
    v = volume(writers)
    steps, store = list(v.steps()), peer(root, v)
    store.create()
    with Span() as span:
        total = sum(store.insert(step, tags) for step, tags in enumerate(steps))
        if hasattr(store, "applied"):
            store.applied()
    sizes = store.sizes()
    return {
        **span.result(total),
        "rate": total / span.seconds,
        "cpu_row": span.cpu / total,
        **{f"{name}_row": size / total for name, size in sizes.items()},
    }


def catalog_visited(peer: Any, root: Path, writers: int) -> dict[str, Any]:
    """Rows visited and returned by each query, as `explain` reports them."""
    store, result = peer(root, volume(writers)), {}
    for query in QUERIES:
        found = re.search(r"(\d+) hits; read (\d+) rows", store.visited(query))
        assert found, query
        returned, visited = map(int, found.groups())
        result |= {f"visited_{query}": visited, f"beyond_{query}": visited - 4 * returned}
    return {**result, "beyond": max(v for k, v in result.items() if k.startswith("beyond"))}


def catalog_apply(peer: Any, root: Path, writers: int, engine: str) -> dict[str, Any]:
    """Applies all attributes of a store's log to an empty engine."""
    with Span() as span:
        store = peer(root, volume(writers), engine)
        store.applied()
    rows = store.store.attributes().count()
    return {**span.result(rows), "rate": rows / span.seconds}


def catalog_unflushed(peer: Any, root: Path, calls: int, rows: int) -> dict[str, Any]:
    """Annotates a run that is looked up by name before each call, or once; creates runs in a transaction.
    Nothing is flushed in between, so that look-ups read unflushed data."""
    import fieldstone as fst
    import numpy as np

    def annotate(name: str, look: bool, inside: bool) -> Span:
        with fst.open(str(root.with_name(name))) as store:
            run = store.create_run("r")
            store.create_tag("max", type="float")
            store.flush()
            owner = store.transaction() if inside else store
            kept = owner.run("r")
            with Span() as span:
                for call in range(calls):
                    at = kept if not look else owner.run("r")
                    steps = np.arange(call * rows, (call + 1) * rows)
                    at.annotate_many("max", steps / 8.0, step=steps)
            if inside:
                owner.commit()
            store.flush()
            assert run.attributes(tag="max").count() == calls * rows
        return span

    def create(name: str, inside: bool) -> Span:
        with fst.open(str(root.with_name(name))) as store:
            owner = store.transaction() if inside else store
            with Span() as span:
                for call in range(calls):
                    owner.create_run(f"r{call}")
            if inside:
                owner.commit()
        return span

    result = {}
    for inside in (False, True):
        where = "in" if inside else "out"
        result[f"kept_{where}"] = annotate(f"kept-{where}", False, inside).seconds
        result[f"named_{where}"] = annotate(f"named-{where}", True, inside).seconds
        result[f"create_{where}"] = create(f"create-{where}", inside).seconds
    return result


def catalog_growth(peer: Any, root: Path, runs: int, each: int) -> dict[str, Any]:
    """Attributes of many runs, two calls and a flush each; the same queries early and again at the end."""
    import fieldstone as fst
    import numpy as np

    store, random = fst.open(str(root)), np.random.default_rng(5)
    store.create_tag("maximum", type="float")
    store.create_tag("minimum", type="float")
    first = max(1, min(1_000_000 // each, runs // 2))
    result: dict[str, Any] = {"attributes": runs * each}
    seconds: list[float] = []
    half = each // 2
    for number in range(runs):
        name = f"run{number:04}"
        run = store.create_run(name, params={"nx": number})
        run.create_variable("temperature", dtype="f8", shape=(4096,) * 3, dims=("z", "y", "x"))
        step = np.repeat(np.arange(10), -(-half // 10))[:half]
        start, count = random.integers(0, 4000, (half, 3)), random.integers(1, 90, (half, 3))
        values = random.random(half) * 1e6
        begin = time.perf_counter()
        for tag in ("maximum", "minimum"):
            run.annotate_many(tag, values, variable="temperature", step=step, start=start, count=count)
        store.flush()
        store.attributes(run=name, tag="maximum", step=0, limit=1).count()
        seconds.append(time.perf_counter() - begin)
        if number + 1 in (first, runs):
            when = "late" if number + 1 == runs else "early"
            result |= {f"{k}_{when}": v for k, v in _growth_queries(fst, store).items()}
    result["rate_early"] = first * each / sum(seconds[:first])
    result["rate_late"] = first * each / sum(seconds[-first:])
    hits = store.attributes(tag="maximum", value=fst.above(1e6 * (1 - 20_000 / (runs * each))))
    result["wide_rows"], result["wide"] = _median(lambda: len(hits.to_arrow()))
    return result


def _median(ask: Any, times: int = 9) -> tuple[int, float]:
    rows, seconds = ask(), []
    for _ in range(times):
        begin = time.perf_counter()
        assert ask() == rows
        seconds.append(time.perf_counter() - begin)
    return rows, statistics.median(seconds)


def _growth_queries(fst: Any, store: Any) -> dict[str, float]:
    one = {"run": "run0000", "tag": "maximum"}
    asked = {
        "value": lambda: len(store.attributes(**one, value=fst.above(0.999e6)).to_arrow()),
        "step": lambda: len(store.attributes(**one, step=3, limit=500).to_arrow()),
        "box": lambda: len(
            store.attributes(**one, step=3, box=dict.fromkeys("zyx", slice(0, 300))).to_arrow()
        ),
        "tags": lambda: len(list(store.tags())),
        "steps": lambda: len(list(store.steps(run="run0000"))),
        "variables": lambda: len(list(store.variables(run="run0000"))),
    }
    return {name: _median(ask)[1] for name, ask in asked.items()}


# ---- in the parent


def _root(at: Sitting, fig: Figure, peer: str) -> Path:
    return at.root(f"catalog-{fig.data['writers']}", peer)


def _writers(fig: Figure, at: Sitting) -> int:
    return 64 if at.quick else int(fig.data["writers"])


_ROWS: dict[tuple[int, str], tuple[int, str]] = {}


def _agree(writers: int, query: str, rows: int, peer: str) -> None:
    """Every peer finds the same number of rows, or nothing is measured."""
    first, who = _ROWS.setdefault((writers, query), (rows, peer))
    if rows != first:
        raise SystemExit(f"bench: {query}: {peer} finds {rows} rows, {who} {first}")


def fill(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.fresh(fig.name, peer)
    r, _ = child(_MODULES.get(peer, peer), "catalog_fill", root, writers=_writers(fig, at))
    _agree(_writers(fig, at), "attributes", r["attributes"], peer)
    return r


def hot(fig: Figure, at: Sitting, peer: str) -> Result:
    writers = _writers(fig, at)
    budget = 0.02 if at.quick else 0.3
    r, _ = child(
        _MODULES.get(peer, peer), "catalog_hot", at.root(fig.name, peer), writers=writers, budget=budget
    )
    for query in QUERIES:
        _agree(writers, query, r[f"rows_{query}"], peer)
    return r


def cold(fig: Figure, at: Sitting, peer: str) -> Result:
    writers, result = _writers(fig, at), {}
    for query in QUERIES:
        r, _ = child(
            _MODULES.get(peer, peer), "catalog_cold", at.root(fig.name, peer), writers=writers, query=query
        )
        _agree(writers, query, r["rows"], peer)
        result |= {query: r["seconds"], f"cpu_{query}": r["cpu"]}
    return result


def visited(fig: Figure, at: Sitting, peer: str) -> Result:
    """Counters: rows that Fieldstone visits."""
    if peer != "fieldstone_store":
        return {}
    r, _ = child(_MODULES[peer], "catalog_visited", at.root(fig.name, peer), writers=_writers(fig, at))
    return r


def insert(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.fresh(fig.name, peer)
    r, _ = child(_MODULES.get(peer, peer), "catalog_insert", root, writers=_writers(fig, at))
    _agree(_writers(fig, at), "attributes", int(r["fields"]), peer)
    return r


def insert_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    root = at.fresh(fig.name, peer)
    _, marks = child(_MODULES.get(peer, peer), "catalog_insert", root, trace=True, writers=_writers(fig, at))
    counts = marks["measured"]
    return {"syncs": counts.syncs, "written": counts.written, "write_calls": counts.write_calls}


def growth(fig: Figure, at: Sitting, peer: str) -> Result:
    runs, each = (20, 2_000) if at.quick else (1000, 30_000)
    r, _ = child(_MODULES[peer], "catalog_growth", at.fresh(fig.name, peer), runs=runs, each=each)
    slower = [k.removesuffix("_late") for k in r if k.endswith("_late") and k != "rate_late"]
    ratios = {k: r[f"{k}_late"] / r[f"{k}_early"] for k in slower}
    return {
        **r,
        "rate_kept": r["rate_late"] / r["rate_early"],
        "one_run": max(ratios[k] for k in ("value", "step", "box")),
        "calls": max(ratios[k] for k in ("tags", "steps", "variables")),
    }


def unflushed(fig: Figure, at: Sitting, peer: str) -> Result:
    root, calls = at.fresh(fig.name, peer), 20 if at.quick else 290
    r, _ = child(_MODULES[peer], "catalog_unflushed", root, calls=calls, rows=273)
    return {
        **r,
        "over_kept": max(r[f"named_{w}"] / r[f"kept_{w}"] for w in ("in", "out")),
        "over_outside": r["create_in"] / r["create_out"],
    }


# ---- PostgreSQL


def _server(at: Sitting) -> Any:
    """One server for all runs, on the measured disk; it ends with this process."""
    sys.path.insert(0, str(BENCH.parent / "python" / "tests"))
    import pg_server

    if not hasattr(at, "server"):
        programs = pg_server.programs()
        if programs is None:
            raise SystemExit("bench: PostgreSQL is needed for this figure (Debian: postgresql)")
        at.work.chmod(0o755)
        settings = "-c shared_buffers=512MB -c max_wal_size=4GB -c checkpoint_timeout=30min"
        at.server = pg_server.Server(programs, at.work, settings)  # type: ignore[attr-defined]
    return at.server  # type: ignore[attr-defined]


def apply_fill(fig: Figure, at: Sitting, peer: str) -> Result:
    """A store with a log, and a file for COPY of the rows that an engine makes of it."""
    if peer == COPY:
        return {}
    r = insert(fig, at, peer)
    server = _server(at)
    child(
        _MODULES[peer], "catalog_apply", at.root(fig.name, peer), writers=_writers(fig, at), engine=server.url
    )
    schema = server.sql("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'fieldstone_%'")
    server.sql(f"COPY {schema}.attr TO '{server.folder}/rows' (FORMAT binary)")
    r["table"] = int(server.sql(f"SELECT pg_total_relation_size('{schema}.attr')"))
    server.sql("CREATE TABLE schema_of(name text)")
    server.sql(f"INSERT INTO schema_of VALUES ('{schema}')")
    return r


def apply(fig: Figure, at: Sitting, peer: str) -> Result:
    """Ours: from the log into an empty schema. COPY: the same rows from a file into the same empty table."""
    server = _server(at)
    schema = server.sql("SELECT name FROM schema_of")
    if peer != COPY:
        server.sql(f"DROP SCHEMA {schema} CASCADE; CHECKPOINT")
        root = at.root(fig.name, peer)
        r, _ = child(_MODULES[peer], "catalog_apply", root, writers=_writers(fig, at), engine=server.url)
        return r
    server.sql(f"CREATE TABLE bare (LIKE {schema}.attr INCLUDING ALL); CHECKPOINT")
    begin = time.perf_counter()
    server.sql(f"SET synchronous_commit = off; COPY bare FROM '{server.folder}/rows' (FORMAT binary)")
    seconds = time.perf_counter() - begin
    rows = int(server.sql("SELECT count(*) FROM bare"))
    server.sql("DROP TABLE bare")
    return {"seconds": seconds, "fields": rows, "rate": rows / seconds}

"""The operations on a graph that are timed, each in a fresh process.

`graph_work.py CALL`, with CALL a JSON object of `what` and arguments, prints the result as JSON. A put is
complete when another process, which looks again and again, has found the last relation from both of its ends.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import graph_data
from measure import Span, mark, percentile, tree_size

Result = dict[str, Any]


def _usage() -> tuple[float, float]:
    """Processor seconds and peak memory, bytes, of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0


def _batched(rows: list[Any], n: int) -> list[list[Any]]:
    return [rows[at : at + n] for at in range(0, len(rows), n)]


def _name(vertex: int) -> tuple[str, str]:
    return ("file", graph_data.identifier(vertex))


# ---- Fieldstone


def watch(root: str, last: list[int]) -> Result:
    """Looks until it finds the last relation at both of its ends."""
    import fieldstone as fst

    source, target = _name(last[0]), _name(last[1])
    with fst.open(root, mode="r") as store:
        graph = store.graph
        graph.edges(source)
        print("looking", flush=True)
        before, _ = _usage()
        while not any(edge.dst == target for edge in graph.edges(source, "has")):
            time.sleep(0.002)
        assert any(edge.dst == source for edge in graph.edges(target, "belongsTo"))
        moment = time.time()
        cpu, peak = _usage()
    return {"moment": moment, "cpu": cpu - before, "peak": peak}


def put(root: str, shape: str, count: int, how: str) -> Result:
    """Puts relations one by one, 1,000 at a time, or as columns, and waits for the watching process."""
    import fieldstone as fst

    pairs = graph_data.edges(shape, count)
    texts = graph_data.properties(count)
    batch = 50_000 if how == "columns" else 1_000
    parts: list[Any]
    if how == "columns":
        parts = [
            graph_data.columns(pairs[at : at + batch], texts[at : at + batch])
            for at in range(0, count, batch)
        ]
    else:
        rows = [
            ("has", _name(source), _name(target), {"note": text})
            for (source, target), text in zip(pairs.tolist(), texts, strict=True)
        ]
        parts = _batched(rows, batch) if how == "batches" else rows
    store = fst.open(root, autoflush=0.1)
    graph = store.graph
    graph.put_vertex("file", "first")
    store.flush()
    call = json.dumps({"what": "watch", "root": root, "last": pairs[-1].tolist()})
    watcher = subprocess.Popen([sys.executable, __file__, call], stdout=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    watcher.stdout.readline()
    begun = time.time()
    with Span() as span:
        if how == "singles":
            put_edge = graph.put_edge
            for kind, source, target, props in parts:
                put_edge(kind, source, target, props=props)
        else:
            for part in parts:
                graph.put_many(edges=part)
        store.flush()
    found = json.loads(watcher.stdout.readline())
    assert watcher.wait() == 0
    store.close()
    seconds = found["moment"] - begun
    path = Path(root)
    view = tree_size(path / "graph")["length"]
    return {
        "seconds": seconds,
        "rate": count / seconds,
        "put_rate": count / span.seconds,
        "cpu": span.cpu,
        "watcher_cpu": found["cpu"],
        "cpu_edge": (span.cpu + found["cpu"]) / count,
        "peak": found["peak"],
        "log_edge": (tree_size(path)["length"] - view) / count,
        "view_edge": view / count,
        "edges": count,
    }


def durable(root: str, threads: int, count: int) -> Result:
    """Puts that are durable when they return, by `threads` threads."""
    import fieldstone as fst

    with fst.open(root, autoflush=0) as store:
        graph = store.graph
        graph.put_edge("has", _name(0), _name(1))

        def work(thread: int) -> None:
            for i in range(count // threads):
                graph.put_edge("has", _name(thread), _name(10 + i))

        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        with Span("puts") as span:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
    return {"seconds": span.seconds, "cpu": span.cpu, "puts": count, "put": span.seconds / count}


def load(root: str, shape: str, count: int) -> Result:
    """A graph in a store, with its view on disk: scans and traversals start from it."""
    import fieldstone as fst

    pairs, texts = graph_data.edges(shape, count), graph_data.properties(count)
    with fst.open(root) as store:
        for at in range(0, count, 100_000):
            part = slice(at, at + 100_000)
            store.graph.put_many(edges=graph_data.columns(pairs[part], texts[part]))
            store.flush()
        store.graph.edges(_name(int(pairs[-1, 0])), limit=1)
    return {"edges": count}


def lineages(root: str, millions: int, count: int, depth: int) -> Result:
    """Times the lineages of some files, up to some hops, in one process."""
    import fieldstone as fst

    times, found = [], 0
    with fst.open(root, mode="r") as store:
        rng, names = random.Random(1), []
        while len(names) < count:
            # Not every file got a relation when relations were made.
            name = ("file", graph_data.identifier(rng.randrange(millions * 400_000)))
            if store.graph.edges(name, limit=1):
                names.append(name)
        for name in names:
            with Span() as span:
                found += len(store.graph.trace(name, depth=depth).vertices)
            times.append(span.seconds)
    cpu, peak = _usage()
    middle, late = percentile(times, 0.5), percentile(times, 0.99)
    return {"median": middle, "p99": late, "found": found, "cpu": cpu, "peak": peak}


def follow(root: str) -> Result:
    """Looks for the relations on its input, one a line, until the input ends."""
    import fieldstone as fst

    with fst.open(root, mode="r") as store:
        graph = store.graph
        for line in sys.stdin:
            source, target = json.loads(line)
            # A file has many readers, so look for it among the job's relations.
            while not any(list(edge.dst) == target for edge in graph.edges(tuple(source))):
                time.sleep(0.002)
            cpu, peak = _usage()
            print(json.dumps({"moment": time.time(), "cpu": cpu, "peak": peak}), flush=True)
    return {}


def _million(number: int) -> tuple[dict[str, Any], list[list[str]]]:
    """Relations like those of Darshan's logs, and the last one: ten a job, of files that few jobs write and
    read, except some that many jobs read."""
    import numpy as np

    n = 1_000_000
    rng = np.random.default_rng(number)
    jobs = number * 100_000 + np.sort(rng.integers(0, 100_000, size=n))
    files = np.abs(number * 400_000 + rng.integers(-400_000, 400_000, size=n))
    shared = rng.random(n) < 0.02
    files[shared] = rng.zipf(1.5, int(shared.sum())) % 1000
    columns = {
        "type": np.where((rng.random(n) < 0.3) & ~shared, "write", "read").tolist(),
        "src_type": "job",
        "src_id": [str(job) for job in jobs.tolist()],
        "dst_type": "file",
        "dst_id": [graph_data.identifier(file) for file in files.tolist()],
    }
    last = [["job", columns["src_id"][-1]], ["file", columns["dst_id"][-1]]]
    return columns, last


def volume(root: str, millions: int) -> Result:
    """Puts millions of relations, one after another, until another process has found the last of each."""
    import fieldstone as fst

    rates, loads, watched, peaks = [], [], 0.0, 0.0
    watcher = None
    with fst.open(root, autoflush=0.1) as store:
        store.graph.put_vertex("file", "first")
        store.flush()
        for number in range(millions):
            columns, last = _million(number)
            texts = graph_data.properties(100_000, number)
            if watcher is None:
                call = json.dumps({"what": "follow", "root": root})
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
                watcher = subprocess.Popen([sys.executable, __file__, call], text=True, **pipes)
            assert watcher.stdin is not None and watcher.stdout is not None
            watcher.stdin.write(json.dumps(last) + "\n")
            watcher.stdin.flush()
            loads.append(os.getloadavg()[0])
            begun = time.time()
            with Span() as span:
                for at in range(0, 1_000_000, 100_000):
                    part = slice(at, at + 100_000)
                    rows = {
                        key: rows if isinstance(rows, str) else rows[part] for key, rows in columns.items()
                    }
                    store.graph.put_many(edges={**rows, "props": {"note": texts}})
                store.flush()
            found = json.loads(watcher.stdout.readline())
            rates.append(1e6 / (found["moment"] - begun))
            peaks = max(found["peak"], _usage()[1])
            print(
                f"million {number + 1}: {rates[-1]:,.0f}/s, put {1e6 / span.seconds:,.0f}/s in "
                f"{span.cpu:.2f} s of CPU, found with {found['cpu'] - watched:.2f} s, "
                f"peak {found['peak'] / 2**20:.0f} MiB, load {loads[-1]:.1f}",
                file=sys.stderr,
                flush=True,
            )
            watched = found["cpu"]
        assert watcher is not None and watcher.stdin is not None
        watcher.stdin.close()
        watcher.wait()
    path = Path(root)
    view = tree_size(path / "graph")["length"]
    return {
        "first": rates[0],
        "last": rates[-1],
        "kept": rates[-1] / rates[0],
        "watcher_cpu": watched,
        "peak": peaks,
        "log_edge": (tree_size(path)["length"] - view) / (millions * 1e6),
        "view_edge": view / (millions * 1e6),
        "load": max(loads),
    }


_STEPS = (2, 4, 8)


def reach(root: str, repeat: int) -> Result:
    """Counts distinct vertices within 2, 4 and 8 steps of vertex 0, first in a process and again, exactly
    three
    steps away, and only along relations whose property passes. Then changes a tenth of the relations."""
    import fieldstone as fst
    import numpy as np

    def walk(name: str, travel: Any, most: int | None) -> None:
        start = travel.v(_name(0))
        for _ in range(3 if most is None else 1):
            start = start.e("has")
        if name == "filtered":
            start = start.ea("note", fst.at_least("a"))
        start = start if most is None else start.repeat(most)
        with Span() as span:
            result[f"found_{name}"] = start.run().count()
        result[name], result[f"cpu_{name}"] = span.seconds, span.cpu

    result: Result = {}
    with fst.open(root) as store:
        graph = store.graph
        walk("cold", graph.travel(), 8)
        for _ in range(repeat):
            for most in _STEPS:
                walk(f"warm_{most}", graph.travel(), most)
            walk("exactly", graph.travel(), None)
        walk("filtered", graph.travel(), 4)
        before = graph.put_vertex(*_name(0))
        rng = np.random.default_rng(5)
        pairs = graph_data.edges("rmat", graph_data.EDGES)
        gone = pairs[rng.choice(len(pairs), len(pairs) // 20, replace=False)]
        graph.delete_many(edges=[("has", _name(a), _name(b)) for a, b in gone.tolist()])
        new = rng.integers(0, 1 << graph_data.SCALE, (len(pairs) // 20, 2))
        graph.put_many(edges=graph_data.columns(new, graph_data.properties(len(new), 9)))
        store.flush()
        for _ in range(repeat):
            for most in _STEPS[1:]:
                walk(f"changed_{most}", graph.travel(), most)
                walk(f"before_{most}", graph.travel(at=before), most)
    assert result["found_before_8"] == result["found_warm_8"]
    return result


# ---- Kuzu


def kuzu_reach(root: str, repeat: int) -> Result:
    """The same sets by Kuzu's shortest paths, warm."""
    import kuzu

    path, result = Path(root), Result()
    database = kuzu.Database(str(path / "db"), buffer_pool_size=1 << 30)
    connection = kuzu.Connection(database, num_threads=2)
    for _ in range(repeat):
        for most in _STEPS:
            with Span() as span:
                asked = f"MATCH (a:V {{id:0}})-[:E* SHORTEST 1..{most}]->(b:V) RETURN count(*)"
                result[f"found_warm_{most}"] = connection.execute(asked).get_next()[0]
            result[f"warm_{most}"], result[f"cpu_warm_{most}"] = span.seconds, span.cpu
    return result


def kuzu_put(root: str, shape: str, count: int, how: str) -> Result:
    """One statement a relation, 1,000 a transaction, or COPY of a Parquet file; vertices exist before."""
    import kuzu
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(root)
    path.mkdir(parents=True)
    pairs, texts = graph_data.edges(shape, count), graph_data.properties(count)
    database = kuzu.Database(str(path / "db"), buffer_pool_size=1 << 30)
    connection = kuzu.Connection(database, num_threads=2)
    connection.execute("CREATE NODE TABLE V(id INT64, PRIMARY KEY(id))")
    connection.execute("CREATE REL TABLE E(FROM V TO V, note STRING)")
    vertices = pa.table({"id": pa.array(np.arange(int(pairs.max()) + 1))})
    pq.write_table(vertices, path / "v.parquet")
    ends = {"f": pa.array(pairs[:, 0].astype("i8")), "t": pa.array(pairs[:, 1].astype("i8"))}
    pq.write_table(pa.table({**ends, "note": pa.array(texts)}), path / "e.parquet")
    connection.execute(f'COPY V FROM "{path / "v.parquet"}"')
    warnings.simplefilter("ignore", DeprecationWarning)
    one = connection.prepare("MATCH (a:V {id:$s}), (b:V {id:$t}) CREATE (a)-[:E {note:$x}]->(b)")
    rows = [
        {"s": source, "t": target, "x": text}
        for (source, target), text in zip(pairs.tolist(), texts, strict=True)
    ]
    with Span() as span:
        if how == "columns":
            connection.execute(f'COPY E FROM "{path / "e.parquet"}"')
        for part in _batched(rows, 1_000 if how == "batches" else 1) if how != "columns" else ():
            if how == "batches":
                connection.execute("BEGIN TRANSACTION")
            for row in part:
                connection.execute(one, row)
            if how == "batches":
                connection.execute("COMMIT")
        # Kuzu refuses another process while this one has the database open, so this one reads it.
        last = {"s": rows[-1]["s"], "t": rows[-1]["t"]}
        for pattern in ("(a:V {id:$s})-[:E]->(b:V {id:$t})", "(b:V {id:$t})<-[:E]-(a:V {id:$s})"):
            found = connection.execute(f"MATCH {pattern} RETURN count(*)", last)
            assert found.get_next()[0] >= 1
    return {
        "seconds": span.seconds,
        "cpu": span.cpu,
        "rate": count / span.seconds,
        "cpu_edge": span.cpu / count,
    }


def main() -> None:
    call = json.loads(sys.argv[1])
    what = call.pop("what")
    mark("")
    print(json.dumps(globals()[what](**call)), flush=True)


def child(what: str, fresh: str | None = None, **arguments: Any) -> Result:
    """Does one operation in a fresh process; `fresh` is emptied of earlier runs."""
    if fresh:
        shutil.rmtree(fresh, ignore_errors=True)
    call = json.dumps({"what": what, **arguments})
    done = subprocess.run([sys.executable, __file__, call], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()

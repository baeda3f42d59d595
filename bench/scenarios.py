"""The operations on a store that are timed: the same code for every peer, each in a fresh process.

`python bench/scenarios.py CALL` with CALL a JSON object of peer, what, root and arguments prints the result
as JSON; `measure.child` makes such processes. Before any clock starts, a process imports libraries, makes
payloads and keys, and (unless a fresh process is measured) makes first calls on a store that is thrown away:
FDB loads its language tables in its first call, which would otherwise count against it.
"""

from __future__ import annotations

import importlib
import json
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import catalog
import commits
import hits
import workload
from measure import Result, Span, children_cpu, percentile, tree_size
from peers import Peer, Runs


def _warm_up(peer: type[Peer], root: Path) -> None:
    aside = root.with_name(root.name + "-warm")
    store = peer(aside)
    store.archive(workload.ARRAY_KEY, b"warm")
    store.flush()
    if hasattr(store, "get"):
        assert bytes(store.get(workload.ARRAY_KEY)) == b"warm"
    del store
    shutil.rmtree(aside)


def archive(peer: type[Peer], root: Path, shape: str, quick: bool) -> Result:
    """Archives every field by key, one flush at the end; from the first archive to the return of flush."""
    s = workload.shape(shape, quick)
    pairs = list(zip(s.keys(), s.payloads(), strict=True))
    _warm_up(peer, root)
    store = peer(root)
    with Span() as span:
        for key, data in pairs:
            store.archive(key, data)
        store.flush()
    return span.result(s.fields, s.total)


def grib(peer: type[Peer], root: Path, cold: bool, quick: bool) -> Result:
    """Archives GRIB messages of distinct headers, one by one, each by the key in its header; one flush at the
    end.

    Processor time is that of all processes, including a helper that reads headers. With `cold` this is the
    first thing that the process does with GRIB; otherwise it has archived the same messages to a throw-away
    store.
    """
    messages = workload.grib_messages(200 if quick else 2000)
    if not cold:
        _warm_up(peer, root)
        aside = peer(root.with_name(root.name + "-aside"))
        for message in messages:
            aside.archive_grib(message)
        aside.flush()
    store = peer(root)
    before = children_cpu()
    with Span() as span:
        for message in messages:
            store.archive_grib(message)
        store.flush()
    result = span.result(len(messages), sum(map(len, messages)))
    return {**result, "cpu": result["cpu"] + children_cpu() - before}


def flushes(peer: type[Peer], root: Path, sizes: bool = False) -> dict[str, Any]:
    """One flush that makes the files, then 100 flushes of ten small fields each, by one writer."""
    s = workload.shape("flush")
    pairs = list(zip(s.keys(), s.payloads(), strict=True))
    _warm_up(peer, root)
    store, spans, trees = peer(root), [], []
    for number in range(s.steps):
        batch = pairs[number * s.params : (number + 1) * s.params]
        with Span(f"flush {number}") as span:
            for key, data in batch:
                store.archive(key, data)
            store.flush()
        spans.append(span)
        if sizes:
            trees.append(tree_size(root))
    seconds = [span.seconds for span in spans[1:]]
    return {
        "median": percentile(seconds, 0.5),
        "p95": percentile(seconds, 0.95),
        "cpu": sum(span.cpu for span in spans[1:]) / len(seconds),
        "payload": s.params * s.nbytes,
        "sizes": trees,
    }


def fill(peer: type[Peer], root: Path, shape: str, quick: bool, flush_every: int = 0) -> Result:
    """Writes the store that read measurements use."""
    s, store = workload.shape(shape, quick), peer(root)
    with Span() as span:
        for i, key in enumerate(s.keys()):
            store.archive(key, s.payload(i))
            if flush_every and (i + 1) % flush_every == 0:
                store.flush()
        store.flush()
    return span.result(s.fields, s.total)


def entries(peer: type[Peer], root: Path, shape: str, quick: bool) -> Result:
    """Lists everything in a process that has not touched a store before, from opening it to the last key."""
    s, n, first = workload.shape(shape, quick), 0, 0.0
    _import(peer, root)
    with Span() as span:
        start = time.perf_counter()
        store = peer(root)
        opened = time.perf_counter()
        last: workload.Key = {}
        for last in store.entries():  # noqa: B007  used after the loop
            if not n:
                first = time.perf_counter()
            n += 1
    assert n == s.fields and {**workload.BASE, "step": last["step"]}.items() <= last.items(), (n, last)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**span.result(n), "open": opened - start, "first": first - opened, "peak": peak}


def _import(peer: type[Peer], root: Path) -> None:
    """Imports only what the peer needs: opening an absent store reads and writes nothing."""
    aside = root.with_name(root.name + "-absent")
    peer(aside)
    shutil.rmtree(aside, ignore_errors=True)


def one(peer: type[Peer], root: Path, shape: str, quick: bool, count: int = 1000) -> Result:
    """Reads single fields by full key, many distinct keys in one process that has read the store before."""
    s = workload.shape(shape, quick)
    keys, spans, store = list(s.keys()), [], peer(root)
    store.get(keys[0])
    for i in range(1, s.fields, max(1, s.fields // count)):
        with Span() as span:
            data = store.get(keys[i])
        assert bytes(data) == s.payload(i), keys[i]
        spans.append(span)
    seconds = [span.seconds for span in spans]
    cpu = sum(span.cpu for span in spans) / len(spans)
    return {"median": percentile(seconds, 0.5), "p95": percentile(seconds, 0.95), "cpu": cpu}


def retrieve(peer: type[Peer], root: Path, shape: str, quick: bool, buffer: int) -> Result:
    """Reads every field by one request, through one buffer that is used again and again."""
    s, room = workload.shape(shape, quick), memoryview(bytearray(b"1") * buffer)
    store = peer(root)
    store.get(next(s.keys()))
    with Span() as span:
        got = store.retrieve(s.request(), room)
    assert got == s.total, (got, s.total)
    return span.result(s.fields, got)


def box_fill(peer: type[Peer], root: Path, box: str, quick: bool) -> Result:
    array, store = workload.box(box, quick).values(), peer(root)
    with Span() as span:
        store.archive_array(array)
        store.flush()
    return span.result(1, array.nbytes)


def box(peer: type[Peer], root: Path, box: str, quick: bool) -> Result:
    """Reads about 1 % of one array."""
    b = workload.box(box, quick)
    b.values(b.start, b.count)
    _warm_up(peer, root)
    store = peer(root)
    with Span() as span:
        part = store.get_box(b)
    assert (part == b.values(b.start, b.count)).all()
    return span.result(1, part.nbytes)


def fill_runs(peer: type[Runs], root: Path, runs: str, quick: bool) -> Result:
    """Writes the runs that are opened."""
    shape = workload.runs(runs, quick)
    with Span() as span:
        peer.fill(root, shape)
    return span.result(shape.runs * shape.variables * shape.steps)


def open_runs(peer: type[Runs], root: Path, runs: str, quick: bool) -> Result:
    """Opens all runs as one object of xarray, in a process that has opened none; then reads one value."""
    shape = workload.runs(runs, quick)
    peer.prepare()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with Span() as span:
        opened = peer.open(root, shape)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    run, variable, step = shape.runs // 2, shape.variables - 1, shape.steps // 3
    with Span("one") as one:
        value = peer.value(opened, shape, run, variable, step)
    assert value == shape.values(run, variable, step)[0, 0], value
    return {**span.result(shape.runs), "peak": peak, "grown": peak - before, "one": one.seconds}


def main() -> None:
    call = json.loads(sys.argv[1])
    module = importlib.import_module(f"peers.{call['peer']}")
    # These names come first: the other modules have steps of the parent, some with the same names.
    places = (sys.modules[__name__], catalog, commits, hits)
    what = next(getattr(place, call["what"]) for place in places if hasattr(place, call["what"]))
    peer = module.Runs if call["what"].endswith("_runs") else module.Store
    print(json.dumps(what(peer, Path(call["root"]), **call["arguments"])))


if __name__ == "__main__":
    main()

"""Times and counts of slots of the graph's view, partitioner by partitioner: the steps of the figures.

    .venv-bench/bin/python bench/slots.py [--quick] [--runs N] [--work DIR]

This is `bench/run.py --only slots`. The slots are threads of `crates/slots/examples/slots`, which puts a
graph and then answers one question after another. The programs of a figure keep running while it is measured,
so that the partitioners take turns.
"""

from __future__ import annotations

import atexit
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import darshan_relations
import graph_data
from measure import BENCH, Result

if TYPE_CHECKING:
    from steps import Figure, Sitting

EDGE_CUT, VERTEX_CUT, GIGA, DIDO = "edge-cut", "vertex-cut", "giga+", "dido"
FOLDER = "folder"
"""Files of a folder, instead of vertices."""
DARSHAN = "darshan"
"""The shape of real logs."""
PAPER = "dido-paper"
"""DIDO with the labels of the paper's Fig. 6."""
SCHEMES = (EDGE_CUT, VERTEX_CUT, GIGA, DIDO)
ENGINES = ("sync", "plain", "async")
DEGREES = (1, 32, 117, 160, 256, 512, 10_000)
"""Scans start from vertices with about this many relations; no vertex has more than the last number."""
FAR = (117, 512, 10_000)
"""Walks of three steps start from these."""
THRESHOLDS = (128, 256, 512, 1_024, 2_048, 4_096)
WALKS = (2, 4, 8)
_PROGRAM = (
    Path(os.environ.get("CARGO_TARGET_DIR", BENCH.parent / "target")) / "release" / "examples" / "slots"
)


class Program:
    """Slots with a graph in them that answer questions."""

    def __init__(self, **how: Any) -> None:
        command = [_PROGRAM, *(f"{name}={value}" for name, value in how.items())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.loaded = self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise SystemExit("bench: the slots stopped")
        return json.loads(line)

    def ask(self, *question: Any) -> dict[str, Any]:
        """The answer to a question, in the program's own text."""
        pipe = self._process.stdin
        if pipe:
            pipe.write(" ".join(map(str, question)) + "\n")
            pipe.flush()
        return self._answer()

    def close(self) -> None:
        self._process.communicate()


_programs: dict[tuple[str, str], Program] = {}


def close() -> None:
    while _programs:
        _programs.popitem()[1].close()


atexit.register(close)


def _how(peer: str) -> dict[str, str]:
    return {"scheme": DIDO, "labels": "paper"} if peer == PAPER else {"scheme": peer, "labels": "low"}


def _program(fig: Figure, peer: str, edges: Path, **how: Any) -> Program:
    """The figure's program for a peer, started at its first run; ends programs of other figures."""
    if any(name != fig.name for name, _ in _programs):
        close()
    key = (fig.name, peer)
    if key not in _programs:
        _programs[key] = Program(edges=edges, **how)
    return _programs[key]


def _graph(at: Sitting, shape: str, count: int) -> Path:
    path = at.work / f"slots-{shape}-{count}.edges"
    if not path.exists():
        at.work.mkdir(parents=True, exist_ok=True)
        if shape == DARSHAN:
            darshan_relations.write(path, count)
            return path
        if shape == "rmat":
            pairs = graph_data.rmat(count, 15, 42, 20_000 if count > 100_000 else 1_250)
        elif shape == "hub":
            pairs = graph_data.star(count)
        else:
            pairs = {"near": graph_data.near, "power": graph_data.power}[shape](count)
        graph_data.write(path, pairs)
    return path


def _size(fig: Figure, at: Sitting) -> int:
    return fig.data["count"] // (20 if at.quick else 1)


def _starts(edges: Path) -> list[int]:
    """For each of the degrees, a vertex with about that many relations from it."""
    import numpy as np

    sources = np.fromfile(edges, dtype="<u4")[::2]
    degrees = np.bincount(sources)
    return [int(np.abs(degrees - wanted).argmin()) for wanted in DEGREES]


def counters(fig: Figure, at: Sitting, peer: str) -> Result:
    """Counts of scans and walks, and the places of relations, which must all equal those of the model."""
    edges = _graph(at, "rmat", _size(fig, at))
    slots, threshold = (8, 32) if at.quick else (32, 128)
    program = Program(edges=edges, slots=slots, threshold=threshold, clients=2, property=0, **_how(peer))
    result: Result = {name: float(value) for name, value in program.loaded.items()}
    model = program.ask("model")
    if not model["same"] or model["splits"] != program.loaded["splits"]:
        raise SystemExit(f"bench: {peer}: relations are not where the model has them: {model}")
    result |= {name: float(model[name]) for name in ("with_far_end", "with_far_end_many", "most_over_mean")}
    for degree, start in zip(DEGREES, _starts(edges), strict=True):
        for steps in (1, 3) if degree in FAR else (1,):
            own = program.ask("walk", "plain", steps, start, "has")
            expected = program.ask("expect", steps, start, "has")
            if any(own[name] != value for name, value in expected.items()):
                raise SystemExit(f"bench: {peer}: {steps} steps from {start}: {own}, not {expected}")
            key = f"{steps}_{degree}"
            result |= {f"comm_{key}": own["requests"] + own["forwards"], f"reads_{key}": own["reads"]}
            result |= {f"requests_{key}": own["requests"], f"frames_{key}": own["frames"]}
            result |= {f"bytes_{key}": own["bytes"]}
    program.close()
    return result


def threshold(fig: Figure, at: Sitting, peer: str) -> Result:
    """Puts relations of one vertex one by one, and scans them, by the threshold."""
    edges, result = _graph(at, "hub", _size(fig, at)), {}
    for limit in THRESHOLDS:
        program = Program(edges=edges, slots=32, threshold=limit, batch=1, **_how(peer))
        scans = [program.ask("walk", "plain", 1, graph_data.HUB, "has") for _ in range(9)]
        busiest = [max(step[3] for step in scan["steps"]) * 1e-9 for scan in scans]
        result |= {
            f"put_{limit}": program.loaded["put"],
            f"cpu_{limit}": program.loaded["cpu"],
            f"splits_{limit}": program.loaded["splits"],
            f"moved_{limit}": program.loaded["moved"],
            f"scan_{limit}": statistics.median(scan["seconds"] for scan in scans),
            f"busiest_{limit}": statistics.median(busiest),
            f"asked_{limit}": scans[0]["requests"] + 1,
            f"reads_{limit}": scans[0]["reads"],
        }
        program.close()
    first, last = THRESHOLDS[0], THRESHOLDS[-1]
    result["put_falls"] = result[f"put_{last}"] / result[f"put_{first}"]
    result["reads_grow"] = result[f"reads_{last}"] / result[f"reads_{first}"]
    return result


def profile(fig: Figure, at: Sitting, engine: str) -> Result:
    """Walks six steps: the time of each slot in each step."""
    edges = _graph(at, "near", _size(fig, at))
    how = {"slots": 8, "delays": "0,20000", "clients": 2, "property": 0}
    program = _program(fig, engine, edges, **how)
    walked = program.ask("walk", engine, 6, 0, "-")
    result: Result = {"seconds": walked["seconds"], "cpu": walked["cpu"], "found": walked["found"]}
    parts = ("vertex", "edge", "prefetch")
    for slot, hop, *times in walked["steps"]:
        for part, nanoseconds in zip(parts, times, strict=True):
            result[f"{part}_{hop + 1}_slot_{slot}"] = nanoseconds * 1e-9
    for hop in range(1, 7):
        for part in parts:
            of_slots = [result.get(f"{part}_{hop}_slot_{slot}", 0.0) for slot in range(8)]
            result[f"{part}_{hop}"] = max(of_slots)
            result[f"{part}_{hop}_others"] = statistics.mean(of_slots[:1] + of_slots[2:])
    return result


def walks(fig: Figure, at: Sitting, peer: str) -> Result:
    """Walks along relations in both directions, by each engine."""
    edges, data = _graph(at, "near", _size(fig, at)), fig.data
    how = {"slots": data["slots"], "clients": 2, "property": 0, **_how(peer)}
    if "delays" in data:
        how["delays"] = data["delays"]
    program, result = _program(fig, peer, edges, **how), {}
    for steps in data["steps"]:
        found = set()
        for engine in ENGINES:
            walked = program.ask("walk", engine, steps, 0, "-")
            found.add(walked["found"])
            result |= {f"{engine}_{steps}": walked["seconds"], f"cpu_{engine}_{steps}": walked["cpu"]}
            result |= {
                f"frames_{engine}_{steps}": walked["frames"],
                f"bytes_{engine}_{steps}": walked["bytes"],
            }
            result |= {
                f"comm_{steps}": walked["requests"] + walked["forwards"],
                f"found_{steps}": walked["found"],
            }
            result[f"reads_{steps}"] = walked["reads"]
        if len(found) > 1:
            raise SystemExit(f"bench: {peer}: engines reach different vertices: {found}")
        result[f"ahead_{steps}"] = result[f"sync_{steps}"] / result[f"async_{steps}"]
        result[f"gain_{steps}"] = result[f"plain_{steps}"] / result[f"sync_{steps}"]
    return result


def puts(fig: Figure, at: Sitting, peer: str) -> Result:
    """Eight clients put relations until all splits are finished, by the number of slots."""
    shape, result = fig.data["shape"], {}
    graph = {"relations" if shape == DARSHAN else "edges": _graph(at, shape, _size(fig, at))}
    for slots in fig.data["slots"]:
        program = Program(**graph, slots=slots, clients=8, **_how(peer))
        loaded = program.loaded
        count = loaded["edges"]
        result |= {
            f"rate_{slots}": count / loaded["settled"],
            f"cpu_{slots}": loaded["cpu"] / count,
            f"busiest_{slots}": loaded["busiest_cpu"],
            f"busiest_rate_{slots}": count / max(loaded["busiest_cpu"], 0.01),
            f"moved_{slots}": loaded["moved"],
            f"redirects_{slots}": loaded["redirects"],
            f"bytes_{slots}": loaded["bytes"] / count,
        }
        if fig.data.get("held"):
            held = program.ask("held")
            result |= {
                f"most_{slots}": held["most"],
                f"most_over_mean_{slots}": held["most"] * slots / held["all"],
            }
        if fig.data.get("model"):
            model = program.ask("model")
            if not model["same"] or model["splits"] != loaded["splits"]:
                raise SystemExit(f"bench: {peer}: relations are not where the model has them: {model}")
            result |= {f"{name}_{slots}": model[name] for name in ("most_over_mean", "with_far_end_many")}
        program.close()
    return result


def mdtest(fig: Figure, at: Sitting, peer: str) -> Result:
    """Clients create files of one directory at once, by their number: one with a call, and many."""
    result: Result = {}
    files = fig.data["files"] // (20 if at.quick else 1)
    for clients in fig.data["clients"]:
        for batch in (1,) if peer == FOLDER else (1, fig.data["batch"]):
            how: dict[str, Any] = {"files": files, "clients": clients, "batch": batch}
            if peer == FOLDER:
                how["folder"] = at.fresh(fig.name, peer)
                how["folder"].mkdir()
            else:
                how |= {"slots": fig.data["slots"], **_how(peer)}
            program = Program(**how)
            made, count = program.loaded, files * clients
            program.close()
            if made["found"] != count:
                raise SystemExit(f"bench: {peer}: {made['found']} files, not {count}")
            key = f"{batch}_{clients}"
            result |= {f"rate_{key}": count / made["settled"], f"cpu_{key}": made["cpu"] / count}
            for name in ("busiest_cpu", "moved"):
                if name in made:
                    result[f"{name}_{key}"] = made[name]
    return result


if __name__ == "__main__":
    command = [sys.executable, str(BENCH / "run.py"), "--only", "slots", *sys.argv[1:]]
    raise SystemExit(subprocess.run(command, check=False).returncode)

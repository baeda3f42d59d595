"""Runs the figures after SDM's paper: a mesh that is imported and partitioned, and its four programs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from arrays import OURS, RANKS, compiled, counts_of, in_python, launch, slow_opens
from measure import Result

if TYPE_CHECKING:
    from steps import Figure, Sitting

BROADCAST = "broadcast"
LEVELS = ("fieldstone-level-1", "fieldstone-level-2", "fieldstone-level-3")
IN_TURN = "in-turn"
DIRECT = "fieldstone-direct"
PEERS = (BROADCAST, *LEVELS, IN_TURN, DIRECT)
MEMORY = Path("/dev/shm")
# Jobs on one mesh, one after another: the vector, and whether there is a history.
_JOBS = (("computed", 0, False), ("first", 1, True), ("edges", 0, True), ("parts", 0, True))

# ---- a mesh


def _lattice(edge: int, folder: Path) -> int:
    """A lattice of nodes with nine edges each, of FUN3D's size, and two vectors; returns its edges."""
    x, y, z = (axis.ravel() for axis in np.indices((edge,) * 3, dtype="i4"))
    number = np.arange(edge**3, dtype="i4")
    steps = (
        (1, 0, 0),
        (0, 1, 0),
        (0, 0, 1),
        (1, 1, 0),
        (1, 0, 1),
        (0, 1, 1),
        (1, 1, 1),
        (1, -1, 0),
        (0, 1, -1),
    )
    firsts, seconds = [], []
    for dx, dy, dz in steps:
        inside = (x + dx < edge) & (y + dy < edge) & (y + dy >= 0) & (z + dz < edge) & (z + dz >= 0)
        firsts.append(number[inside])
        seconds.append(firsts[-1] + np.int32((dx * edge + dy) * edge + dz))
    a, b = np.concatenate(firsts), np.concatenate(seconds)
    # The edges of a node are contiguous, as in a mesh that was numbered for the cache.
    order = np.argsort(a, kind="stable")
    with (folder / "edges.raw").open("wb") as file:
        for column in (a[order], b[order], np.arange(len(a), dtype="f8") % 1024):
            column.tofile(file)
    half = edge // 2
    ((x >= half) * 2 + (y >= half)).astype("u1").tofile(folder / "vector0")
    ((y >= half) * 2 + (z >= half)).astype("u1").tofile(folder / "vector1")
    return len(a)


def mesh(fig: Figure, at: Sitting, peer: str) -> Result:
    """Partitions the edges of a mesh among four ranks; both peers must get the same sums of all parts."""
    folder = _fresh(fig, at, peer)
    given = at.work / fig.name / "mesh"
    edge = 30 if at.quick else 126
    if not given.exists():
        given.mkdir()
        (given / "edges").write_text(str(_lattice(edge, given)))
    edges = int((given / "edges").read_text())
    if peer == BROADCAST:
        program = str(compiled("edges", at.work))
        command = [program, str(given / "edges.raw"), str(edges), str(edge**3), str(given / "vector0")]
        result, _ = launch(RANKS, command)
        check = result.pop("check")
    else:
        result = {}
        for how, vector, history in _JOBS:
            found, _ = in_python(
                "mesh",
                RANKS,
                program="arrays_cases.py",
                folder=str(folder),
                file=str(given / "edges.raw"),
                edges=edges,
                nodes=edge**3,
                vector=str(given / f"vector{vector}"),
                history=history,
                source="computed" if how == "first" else how,
            )
            check = found.pop("check")
            # Parts of one vector are the same, from any source.
            if vector == 0 and result.setdefault("check", check) != check:
                raise SystemExit(f"bench: parts differ: {result['check']}, {how} {check}")
            result |= {f"{how} {what}": value for what, value in found.items()}
        check = result.pop("check")
        result |= {k.removeprefix("computed "): v for k, v in result.items() if k.startswith("computed ")}
        result["seconds"] = result["import"] + result["distribution"]
        for how in ("edges", "parts"):
            result[f"{how} share"] = result[f"{how} distribution"] / result["distribution"]
    result["whole"] = result["seconds"] + result["data"]
    sums = at.work / fig.name / "sums"
    if not sums.exists():
        sums.write_text(repr([float(number) for number in check]))
    elif sums.read_text() != repr([float(number) for number in check]):
        raise SystemExit(f"bench: {peer} has parts of {check}, others of {sums.read_text()}")
    shutil.rmtree(folder)
    return result


# ---- programs


def paper(fig: Figure, at: Sitting, peer: str, trace: bool = False) -> Result:
    """One of the paper's programs at a level of file organisation, or with ranks in turn."""
    folder = _fresh(fig, at, peer)
    scale = 64 if at.quick else 1
    a = {"case": fig.data["case"], "scale": scale}
    work = "in_turn" if peer == IN_TURN else "paper"
    level = peer[-1] if peer in LEVELS else "auto"
    if peer == DIRECT:
        a["hints"] = {"direct_write": "true", "direct_read": "true"}
    preload = slow_opens(at.work) if fig.data.get("slow") else None
    result, marks = in_python(
        work,
        RANKS,
        folder if trace else None,
        program="arrays_cases.py",
        preload=preload,
        folder=str(folder),
        level=level,
        **a,
    )
    shutil.rmtree(folder)
    if trace:
        return counts_of(marks)
    if peer in (OURS, *LEVELS) and preload is None and MEMORY.is_dir():
        result["database"] = _database(fig.data["case"], level)
    return result


def _database(case: str, level: str) -> float:
    """Seconds of the commits of a run with as many sets and dumps, in memory, where a sync costs nothing."""
    folder = MEMORY / "fieldstone-bench"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        result, _ = in_python(
            "paper", RANKS, program="arrays_cases.py", folder=str(folder), level=level, case=case, scale=4096
        )
    finally:
        shutil.rmtree(folder)
    return result["commit phase"]


def paper_counts(fig: Figure, at: Sitting, peer: str) -> Result:
    return paper(fig, at, peer, trace=True)


def _fresh(fig: Figure, at: Sitting, peer: str) -> Path:
    folder = at.fresh(fig.name, peer)
    folder.mkdir()
    return folder

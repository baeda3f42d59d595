"""A partitioning vector by METIS, through the package pymetis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import Invalid, Unavailable

if TYPE_CHECKING:
    import numpy as np


def shares(
    comm: Any,
    ranks: int,
    rank: int,
    ends: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    nodes: int | None,
) -> tuple[np.ndarray[Any, Any], Exception | None]:
    """This rank's share of the vector that rank 0 computes from the edges of all ranks; and the error, on
    rank 0. Collective if there are several ranks.

    Each rank gives both ends of its edges, counted from 0.
    """
    import numpy as np

    all_ends = [ends] if ranks == 1 else comm.gather(ends)
    wrong: Exception | None = None
    parts = [np.empty(0, "i8")] * ranks
    if rank == 0:
        try:
            first, second = (np.concatenate([one[side] for one in all_ends]) for side in (0, 1))
            parts = np.array_split(vector(ranks, first, second, nodes), ranks)
        except Exception as error:  # the call that takes the shares raises it on all ranks
            wrong = error
    return (parts[0] if ranks == 1 else comm.scatter(parts)), wrong


def vector(
    parts: int, first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], nodes: int | None
) -> np.ndarray[Any, Any]:
    """The part of each node; parts have about equal size, and few edges cross them."""
    import numpy as np

    if nodes is None:
        raise Invalid(
            'vector="metis" for edges that are not a mesh', "give nodes=, the number of nodes", "argument"
        )
    if first.shape != second.shape:
        raise Invalid(f"{len(first)} first ends and {len(second)} second ends", "an edge has two", "argument")
    both = np.concatenate([first, second])
    if wrong := both[(both < 0) | (both >= nodes)].tolist():
        raise Invalid(
            f"an edge ends at node {wrong[0]}, but there are {nodes} nodes", "see base=", "argument"
        )
    try:
        import pymetis
    except ImportError as error:
        raise Unavailable(
            f"the Python package pymetis cannot be loaded: {error}",
            'pip install \'fieldstone[mesh]\', or use "hilbert", "block" or a vector',
            "library-missing",
        ) from None
    if parts == 1 or nodes == 0:
        return np.zeros(nodes, "i8")
    # Each edge once in both directions, by its lower end; METIS does not accept loops.
    other = np.concatenate([second, first])
    pairs = np.unique(np.stack([both, other], axis=1)[both != other], axis=0)
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=nodes))])
    _, found = pymetis.part_graph(parts, xadj=starts, adjncy=np.ascontiguousarray(pairs[:, 1]))
    return np.asarray(found, "i8")

"""How often to take a checkpoint, from what one costs."""

from __future__ import annotations

from collections.abc import Iterable

from ._native import _checkpoint_interval, _checkpoint_overhead
from .reports import CheckpointReport

Cost = float | CheckpointReport


def _seconds(cost: Cost | Iterable[Cost]) -> float:
    """One time in seconds: a number, a report, or the mean of several."""
    if isinstance(cost, CheckpointReport):
        return cost.seconds
    if isinstance(cost, Iterable):
        costs = [_seconds(one) for one in cost]
        return sum(costs) / len(costs) if costs else float("nan")
    return float(cost)


def checkpoint_interval(cost: Cost | Iterable[Cost], mtbf: float, restart: float = 0.0) -> float:
    """Seconds of work between two checkpoints that make the whole run shortest: Daly's optimum (2006).

    ``cost``: seconds that a checkpoint takes, the report of one, or several of either, whose mean counts.
    ``mtbf``: mean seconds between failures of all that the run uses: of one node, divided by the nodes.
    ``restart``: seconds to go on after a failure; within the model they do not change the optimum, only
    ``checkpoint_overhead``. Raises Invalid for what is no time.
    """
    return _checkpoint_interval(_seconds(cost), mtbf, restart)


def checkpoint_overhead(
    interval: float, cost: Cost | Iterable[Cost], mtbf: float, restart: float = 0.0
) -> float:
    """Expected time of a run as a multiple of its work, with a checkpoint after every ``interval`` seconds
    of work; the other arguments are those of ``checkpoint_interval``. Infinite where it would not end.
    """
    return _checkpoint_overhead(interval, _seconds(cost), mtbf, restart)

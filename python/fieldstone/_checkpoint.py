"""The best interval between checkpoints, from the cost of one."""

from __future__ import annotations

from collections.abc import Iterable

from ._native import _checkpoint_interval, _checkpoint_overhead
from .reports import CheckpointReport

Cost = float | CheckpointReport


def _seconds(cost: Cost | Iterable[Cost]) -> float:
    """One time in seconds: of a number, of a report, or the mean of several."""
    if isinstance(cost, CheckpointReport):
        return cost.seconds
    if isinstance(cost, Iterable):
        costs = [_seconds(one) for one in cost]
        return sum(costs) / len(costs) if costs else float("nan")
    return float(cost)


def checkpoint_interval(cost: Cost | Iterable[Cost], mtbf: float, restart: float = 0.0) -> float:
    """Seconds of work between two checkpoints that minimise the time of the whole run: Daly's optimum (2006).

    ``cost``: seconds that a checkpoint takes, the report of one, or several of either, of which the mean is
    used. ``mtbf``: mean seconds between failures of everything that the run uses: that of one node, divided
    by the number of nodes. ``restart``: seconds to restart after a failure; in this model they do not change
    the optimum, only ``checkpoint_overhead``. Raises Invalid for a value that is not a time.
    """
    return _checkpoint_interval(_seconds(cost), mtbf, restart)


def checkpoint_overhead(
    interval: float, cost: Cost | Iterable[Cost], mtbf: float, restart: float = 0.0
) -> float:
    """Expected time of a run as a multiple of its work, with a checkpoint after every ``interval`` seconds of
    work; the other arguments are those of ``checkpoint_interval``. Infinite if the run would never end.
    """
    return _checkpoint_overhead(interval, _seconds(cost), mtbf, restart)

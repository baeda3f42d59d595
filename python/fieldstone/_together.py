"""Actions that the ranks of a communicator take together: opening a store, deciding a transaction.

An error on one rank is raised on all, with that rank's number, so that none waits for another. A communicator
has ``rank``, ``size``, ``allgather`` and ``bcast``, like those of mpi4py.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .errors import Error, Invalid

if TYPE_CHECKING:
    from ._transaction import Transaction


def attempt_of(comm: Any, named: str | None) -> tuple[str, int]:
    """The attempt of all ranks, created if none is named, and this rank. Invalid if the ranks differ."""
    names = comm.allgather(named)
    for rank, name in enumerate(names):
        if name != names[0]:
            raise Invalid(
                f"the ranks have different attempts: {names[0]!r} on rank 0, {name!r} on rank {rank}",
                "give the same attempt= on all ranks, or none",
            )
    made = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.urandom(3).hex()}" if comm.rank == 0 else None
    return (comm.bcast(made, root=0) if named is None else named), comm.rank


def agree(comm: Any, error: BaseException | None) -> None:
    """Collective: raises this rank's error, or else the first of another rank."""
    errors = comm.allgather(_told(error))
    if error is not None:
        raise error
    for rank, other in enumerate(errors):
        if other is not None:
            raise type(other)(f"rank {rank}: {other}", other.hint)


def _told(error: BaseException | None) -> Error | None:
    """An error in a form that any process can unpickle, for the other ranks."""
    if error is None or isinstance(error, Error):
        return error
    return Invalid(f"{type(error).__name__}: {error}")


def decide(comm: Any, tx: Transaction, error: BaseException | None, commit: bool) -> None:
    """Collective: flushes on all ranks; then rank 0, which began the transaction, decides. It commits only if
    all ranks arrived without an error; a rank with an error raises its own.
    """
    failed = error
    if failed is None and commit:
        try:
            tx.flush()
        except Exception as lost:
            failed = lost
    errors = comm.allgather(_told(failed))
    good = commit and not any(errors)
    outcome: BaseException | None = None
    if comm.rank == 0:
        try:
            tx._native.decide(good)
        except Exception as undecided:
            outcome = undecided
    else:
        tx._native.leave(good)
    decided = comm.bcast(_told(outcome) if comm.rank == 0 else None, root=0)
    if comm.rank != 0:
        tx._native.detach()
        tx.store.refresh()
    if error is not None:
        return  # Python continues to raise it
    for own, other in ((failed, errors), (outcome, [decided])):
        if own is not None:
            raise own
        for rank, wrong in enumerate(other):
            if wrong is not None:
                raise type(wrong)(f"rank {rank}: {wrong}", wrong.hint)

"""Flushes or discards unflushed fields when a process ends.

A normal end flushes every open store; a program that ends by an uncaught exception discards. A child of
``multiprocessing`` ends without Python's exit functions, so there it is one of multiprocessing's finalizers;
a child flushes only what it archived itself.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from typing import Any

from ._native import _finish, _record_late_reads


def install() -> None:
    """Registers the functions that run at the end of this process and of its children."""
    atexit.register(_at_exit)
    os.register_at_fork(after_in_child=_in_child)
    _prepare_child()


def _at_exit() -> None:
    interactive = bool(sys.flags.interactive) or hasattr(sys, "ps1")
    uncaught = getattr(sys, "last_exc", None) is not None or getattr(sys, "last_type", None) is not None
    _end(uncaught and not interactive)


def _end(discard: bool) -> None:
    try:
        _finish(discard=discard)
    finally:
        try:
            _record_late_reads()
        except Exception as error:  # reads happened, even if they cannot be recorded
            warnings.warn(f"reads are not recorded: {error}", stacklevel=1)


def _in_child() -> None:
    # The child must not end with an error of its parent.
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        if hasattr(sys, name):
            delattr(sys, name)
    _prepare_child()


def _prepare_child() -> None:
    """Registers the end of a child, if it is or becomes a child of multiprocessing."""
    util: Any = sys.modules.get("multiprocessing.util")
    if util is None:
        return
    util.Finalize(None, _child_ends, exitpriority=0)
    # A forked child drops all finalizers before it runs its after-fork functions.
    util.register_after_fork(_child_ends, lambda function: util.Finalize(None, function, exitpriority=0))


def _child_ends() -> None:
    process: Any = sys.modules["multiprocessing.process"]
    if process.parent_process() is None:
        return
    # Runs in a `finally` clause: an exception on its way out is the one that ends the child.
    error = sys.exc_info()[0]
    _end(error is not None and not issubclass(error, SystemExit))

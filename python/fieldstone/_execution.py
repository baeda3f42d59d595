"""Executions: the provenance graph records which part of a program wrote and read data in a store.

::

    with fieldstone.execution("regrid", store, reads=["in.nc"], params={"grid": "n80"}) as x:
        store.archive(key, regrid(store.get(source)))
    store.graph.trace(key).executions  # [x.vertex]
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ._native import _Execution, open
from ._native import _Store as NativeStore
from ._values import plain
from .errors import Invalid

if TYPE_CHECKING:
    from ._graph import Name
    from ._native import _Membership
    from ._store import Store

F = TypeVar("F", bound=Callable[..., Any])

_VARIABLE = "FIELDSTONE_EXECUTION"
_current: ContextVar[_Membership | None] = ContextVar("fieldstone_execution", default=None)
"""The execution to which the calls of this thread or task belong; native code reads it."""
_store: ContextVar[Any] = ContextVar("fieldstone_execution_store", default=None)
"""The store of the execution that this thread or task is in."""
_links: list[str] = []
"""The environment values for child processes, one for each open execution, the newest last."""
_given: str | None = None
# Threads begin and end executions; links and variable change together.
_giving = threading.Lock()
"""The environment value that this process got from its parent."""


class Execution:
    """A part of a program whose reads and writes are recorded. Made by ``fieldstone.execution``.

    ``with`` begins and ends it; as a decorator each call is one. `vertex` and `job` are its names in the
    graph.
    """

    def __init__(
        self,
        name: str | None,
        store: Store | None,
        reads: Iterable[Any],
        writes: Iterable[Any],
        params: Mapping[str, Any] | None,
        env: Iterable[str],
    ) -> None:
        self.name = name
        self.store = store
        self._reads, self._read = _split(reads, "reads")
        self._writes, self._written = _split(writes, "writes")
        self._params = None if params is None else dict(params)
        self._env = [env] if isinstance(env, str) else list(env)
        self._native: _Execution | None = None
        self._tokens: tuple[Token[Any], Token[Any]] | None = None
        self._opened: Store | None = None

    @property
    def _begun(self) -> _Execution:
        if self._native is None:
            raise Invalid("the execution has not begun", "use it in a with statement")
        return self._native

    @property
    def vertex(self) -> Name:
        """Its name in the graph: ("job", id), or ("process", id) in a job."""
        return self._begun.pair

    pair = vertex

    @property
    def job(self) -> Name:
        """The job that it belongs to, or that it is."""
        return self._begun.job

    def __enter__(self) -> Execution:
        if self._tokens is not None:
            raise Invalid("the execution has begun already", "make another one")
        store = self.store if self.store is not None else _store.get()
        if store is None:
            store = self._opened = _job_store()
        self.store = store
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        script = [main] if main and os.path.isfile(main) else []
        begin = _Execution.begin
        self._native = native = begin(
            store,
            self.name,
            script + self._reads,
            self._writes,
            self._params,
            self._env,
            sys.executable or None,
        )
        self._tokens = _current.set(native.membership), _store.set(store)
        _give(native.link)
        for vertex in self._read:
            store.graph.put_edge("read", native.pair, vertex)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        native, tokens = self._begun, self._tokens
        assert tokens is not None and self.store is not None
        self._tokens = None
        try:
            if not self.store.closed:
                for vertex in self._written:
                    self.store.graph.put_edge("write", native.pair, vertex)
            for note in native.end(*_outcome(error)):
                warnings.warn(f"not recorded: {note}", stacklevel=2)
        finally:
            _take_back(native.link)
            for variable, token in zip((_current, _store), tokens, strict=True):
                variable.reset(token)
            if self._opened is not None:
                self._opened.close()
                self.store = self._opened = None

    def _again(self, store: Store | None) -> Execution:
        reads, writes = [*self._reads, *self._read], [*self._writes, *self._written]
        return Execution(self.name, store, reads, writes, self._params, self._env)

    def __call__(self, function: F) -> F:
        """Makes each call of a function an execution. Without a store it uses that of the first argument that
        is one, of the surrounding execution, or of the job of this process.
        """
        if not callable(function):
            raise Invalid(
                f"{function!r} is not a function", "use fieldstone.execution as a decorator, or with"
            )
        named = self if self.name is not None else self._named(getattr(function, "__name__", None))

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Execution:
            given = (one for one in (*args, *kwargs.values()) if isinstance(one, NativeStore))
            return named._again(named.store if named.store is not None else next(given, None))

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def waiting(*args: Any, **kwargs: Any) -> Any:
                with begin(args, kwargs):
                    return await function(*args, **kwargs)

            return waiting  # type: ignore[return-value]

        @functools.wraps(function)
        def calling(*args: Any, **kwargs: Any) -> Any:
            with begin(args, kwargs):
                return function(*args, **kwargs)

        return calling  # type: ignore[return-value]

    def _named(self, name: str | None) -> Execution:
        made = self._again(self.store)
        made.name = name
        return made

    def __repr__(self) -> str:
        name = self.name or "execution"
        where = "not begun" if self._native is None else ":".join(self._native.pair)
        return f"<fieldstone.Execution {name} {where}>"


def execution(
    name: str | None = None,
    store: Store | None = None,
    *,
    reads: Iterable[Any] = (),
    writes: Iterable[Any] = (),
    params: Mapping[str, Any] | None = None,
    env: Iterable[str] = (),
) -> Execution:
    """Records reads and writes of a part of a program: ``with fieldstone.execution("regrid", store) as x:``,
    or ``@fieldstone.execution("regrid")`` above a function.

    Everything archived and read during it, in any store, is recorded in the graph of `store`, with one
    relation for each commit. Its begin flushes what was archived before; its end flushes everything. `reads`
    and `writes` are files, as paths or shell patterns, or vertices; `params` is a dict of values; `env` names
    variables to keep in addition to the usual ones. In another execution, or in a process that belongs to a
    job, it is a process of that job. An exception is recorded and passed on.

    Without a store it uses that of the surrounding execution, or of the job that this process belongs to; a
    decorated function uses the first argument that is a store.
    """
    return Execution(plain(name), store, reads, writes, params, env)


def _split(given: Iterable[Any], what: str) -> tuple[list[str], list[Name]]:
    """Splits what was given into files and vertices."""
    files: list[str] = []
    vertices: list[Name] = []
    for one in [given] if isinstance(given, (str, os.PathLike)) else given:
        pair = getattr(one, "pair", one)
        if isinstance(pair, tuple) and len(pair) == 2:
            vertices.append(pair)
        elif isinstance(one, (str, os.PathLike)):
            files.append(os.fsdecode(one))
        else:
            raise Invalid(f"{what} holds {one!r}", "give paths, shell patterns, or vertices: pairs of texts")
    return files, vertices


def _outcome(error: BaseException | None) -> tuple[int, None, str | None]:
    """Exit code, signal and message for the way in which a block ended."""
    if error is None or isinstance(error, GeneratorExit):
        return 0, None, None
    if isinstance(error, SystemExit):
        code = error.code
        if code is None or isinstance(code, int):
            return code or 0, None, None
        return 1, None, str(code)
    return 1, None, f"{type(error).__name__}: {error}"


def _job_store() -> Store:
    """The store of the job that this process belongs to."""
    import json

    try:
        url = json.loads(os.environ.get(_VARIABLE, "{}")).get("store")
    except (ValueError, AttributeError):
        url = None
    if not url:
        raise Invalid("the execution has no store", "give one: fieldstone.execution(name, store)")
    return open(url)


def _give(link: str) -> None:
    """Passes the execution's identity on to child processes."""
    global _given
    with _giving:
        if not _links:
            _given = os.environ.get(_VARIABLE)
        _links.append(link)
        os.environ[_VARIABLE] = link


def _take_back(link: str) -> None:
    with _giving:
        _links.remove(link)
        if _links:
            os.environ[_VARIABLE] = _links[-1]
        elif _given is not None:
            os.environ[_VARIABLE] = _given
        else:
            os.environ.pop(_VARIABLE, None)


def _renew_lock() -> None:
    """A thread that the child does not have may have held the lock."""
    global _giving
    _giving = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)

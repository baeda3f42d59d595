"""The provenance graph of a store: users, executions and data, their relations, and since when each holds.

``store.graph`` and ``tx.graph`` make a `Graph`; its reads return `Vertex`, `Edge` and `Lineage`::

    with fieldstone.open("memory:") as store:
        g = store.graph
        g.put_edge("read", ("job", "17"), ("file", "/data/mesh.nc"))
        g.put_edge("write", ("job", "17"), ("file", "/data/a.nc"), props={"bytes": 10})
        assert ("file", "/data/mesh.nc") in g.trace(("file", "/data/a.nc")).vertices
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from ._audit import Audit, Difference, audited, differences
from ._lineage import Lineage, subject
from ._native import _export_lineage, _graph_of, _graph_partitions, _lineage_script, _partition_graph
from ._partitions import Partitions
from ._travel import Travel
from ._values import datetime_ns
from .errors import Invalid
from .reports import ArchiveReport

if TYPE_CHECKING:
    from ._native import Listing, _Graph
    from ._store import Store
    from ._transaction import Transaction

Name: TypeAlias = tuple[str, str]
"""A vertex: its type and its id."""

Names: TypeAlias = str | Sequence[str] | None
"""Names of the properties to return; None for all."""


class Stamp(int):
    """The position of a put in the order of all puts. Puts return it; it can be given wherever a time is
    expected.

    It counts nanoseconds since 1970 if clocks are right, and is greater than every stamp that its process had
    read. Adding or subtracting a number of nanoseconds gives another Stamp.
    """

    __slots__ = ()

    def __add__(self, other: int) -> Stamp:
        return Stamp(int(self) + other)

    def __sub__(self, other: int) -> int:
        return int(self) - int(other) if isinstance(other, Stamp) else Stamp(int(self) - other)

    def __repr__(self) -> str:
        return f"Stamp({int(self)})"


def stamp_of(moment: Any, what: str = "time") -> int | None:
    """The stamp of a moment, which is seconds since 1970, a datetime, ISO text, or a Stamp."""
    if moment is None:
        return None
    hint = "give seconds since 1970, a datetime or a stamp"
    if isinstance(moment, Stamp):
        stamp = int(moment)
    elif isinstance(moment, bool):
        raise Invalid(f"{what} is {moment}", hint)
    elif isinstance(moment, float):
        if not abs(moment) < 1e11:
            raise Invalid(f"{what} is {moment}", hint)
        stamp = round(moment * 1_000_000_000)
    elif hasattr(moment, "__index__"):
        stamp = operator.index(moment) * 1_000_000_000
    else:
        stamp = datetime_ns(moment)
    if not 0 <= stamp < 2**63:
        raise Invalid(f"{what} is {moment}, which is before 1970 or too far ahead", hint)
    return stamp


def count(number: Any, what: str) -> int | None:
    """Checks an optional number of things and returns it as an int."""
    if number is None:
        return None
    try:
        number = operator.index(number)
    except TypeError:
        raise Invalid(f"{what} is {number!r}", "give a number, or leave it out") from None
    if not 0 <= number < 2**32:
        raise Invalid(f"{what} is {number}", "give a number that is not negative")
    return number


def between(versions: Any) -> tuple[int, int] | None:
    """The pair of stamps between which versions are wanted; None to read the current state."""
    if versions is True:
        return (0, 2**64 - 1)
    if not versions:
        return None
    if not isinstance(versions, tuple) or len(versions) != 2:
        raise Invalid(f"versions is {versions!r}", "give True, or a pair of times")
    first, last = (stamp_of(moment, "versions") for moment in versions)
    return (0 if first is None else first, 2**64 - 1 if last is None else last)


def _shown(nanoseconds: int) -> datetime:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)


class Vertex:
    """A vertex at one moment. It equals its pair of type and id.

    `archived` is None, or the URL of the store to which the properties of this version were moved; `props`
    and `static` are then empty.
    """

    __slots__ = ("_graph", "_user", "archived", "deleted", "id", "props", "stamp", "static", "time", "type")

    def __init__(self, graph: _Graph, row: tuple[Any, ...]) -> None:
        (self.type, self.id), self.static, self.props, stamp, time, self._user, *rest = row
        self.deleted, self.archived = rest
        self.stamp = Stamp(stamp)
        self.time = _shown(time)
        self._graph = graph

    @property
    def pair(self) -> Name:
        """Type and id."""
        return (self.type, self.id)

    @property
    def user(self) -> str:
        """The user who put it."""
        return self._graph.user_name(self._user)

    def _only(self, names: Names) -> Vertex:
        """The same vertex with only these properties."""
        if names is not None:
            wanted = {names} if isinstance(names, str) else set(names)
            self.static = {name: value for name, value in self.static.items() if name in wanted}
            self.props = {name: value for name, value in self.props.items() if name in wanted}
        return self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Vertex):
            return self.pair == other.pair
        return isinstance(other, tuple) and self.pair == other

    def __hash__(self) -> int:
        return hash(self.pair)

    def __repr__(self) -> str:
        gone = " deleted" if self.deleted else ""
        return f"<fieldstone.Vertex {self.type}:{self.id}{gone}>"


class Edge:
    """A version of a relation, seen from the vertex whose relations were read.

    `src` is that vertex and `dst` the other end, also of a reverse relation such as "wasWrittenBy". `stamp`
    is the stamp at which the version began, `time` the clock time of the user who put it, and `until` the
    stamp at which it ended, or None. `archived` is None, or the URL of the store to which the properties were
    moved; `props` is then empty.
    """

    __slots__ = (
        "_graph",
        "_user",
        "archived",
        "deleted",
        "dst",
        "props",
        "src",
        "stamp",
        "time",
        "type",
        "until",
    )

    def __init__(self, graph: _Graph, row: tuple[Any, ...]) -> None:
        self.type, self.src, self.dst, _, self.props, stamp, time, until, self._user, *rest = row
        self.deleted, self.archived = rest
        self.stamp = Stamp(stamp)
        self.time = _shown(time)
        self.until = None if until is None else Stamp(until)
        self._graph = graph

    @property
    def user(self) -> str:
        """The user who put it."""
        return self._graph.user_name(self._user)

    def __repr__(self) -> str:
        gone = " deleted" if self.deleted else ""
        return f"<fieldstone.Edge {':'.join(self.src)} {self.type} {':'.join(self.dst)}{gone}>"


class GraphStats:
    """Counts of a graph: the segments of its view, their contents, and `archives`: the URLs of the stores to
    which versions were moved, each with the moment before which they were moved.
    """

    __slots__ = ("archives", "nbytes", "problems", "relations", "segments", "vertices")

    def __init__(self, row: tuple[int, int, int, int, list[str], list[tuple[str, int]]]) -> None:
        self.segments, self.vertices, self.relations, self.nbytes, self.problems, archives = row
        self.archives = [(url, Stamp(before)) for url, before in archives]

    def __repr__(self) -> str:
        return (
            f"<fieldstone.GraphStats {self.relations} versions of relations, {self.vertices} vertices, "
            f"{self.segments} segments>"
        )


class GraphCheck:
    """The result of ``g.verify``: `lines`, the number of lines compared; `different`, up to 100 notes on
    where the view differs from the logs; `damaged` records of logs; `ok` if both are empty."""

    __slots__ = ("damaged", "different", "lines")

    def __init__(self, row: tuple[int, list[str], list[str]]) -> None:
        self.lines, self.different, self.damaged = row

    @property
    def ok(self) -> bool:
        """Whether the view matches the logs, and all of both could be read."""
        return not (self.different or self.damaged)

    def __repr__(self) -> str:
        found = "ok" if self.ok else f"{len(self.different)} different, {len(self.damaged)} damaged"
        return f"<fieldstone.GraphCheck of {self.lines} lines: {found}>"


class Graph:
    """The provenance graph of a store. Made by ``store.graph``, or in a transaction by ``tx.graph``.

    A vertex is a pair of texts (type, id). Relations have a direction, and the store keeps the reverse of
    each: "write" from a job to a file is "wasWrittenBy" from the file. This process sees its puts at once,
    all others see them after the flush. Every put and every deletion makes a version. Reads return the
    current state, or the state ``at=`` a moment: seconds since 1970, a datetime, or a stamp that a put
    returned.
    """

    def __init__(self, store: Store, transaction: Transaction | None = None) -> None:
        self.store = store
        self._transaction = transaction
        self._outside = _graph_of(store)

    @property
    def _read(self) -> _Graph:
        """The graph to read from: the store's own once the transaction is decided."""
        within = self._transaction
        return self._outside if within is None else _graph_of(self.store, within._reading())

    @property
    def _write(self) -> _Graph:
        """The graph to write to. Invalid if the transaction is decided."""
        within = self._transaction
        return self._outside if within is None else _graph_of(self.store, within._give())

    # -- types

    def define_vertex(
        self,
        name: str,
        *,
        static: Mapping[str, str] | None = None,
        index: Sequence[str] = (),
        text: Sequence[str] = (),
    ) -> None:
        """Declares a type of vertices: its `static` properties with the types of their values, the properties
        that can be found by value (`index`), and those that can be searched by word (`text`). Conflict if the
        type is declared differently.
        """
        self._write.define_vertex(name, list((static or {}).items()), list(index), list(text))

    def define_edge(
        self,
        name: str,
        *,
        reverse: str,
        source: str | None = None,
        target: str | None = None,
        index: Sequence[str] = (),
    ) -> None:
        """Declares a type of relations and its name as seen from the far end. `source` and `target` are the
        types of its ends (any type if absent), `index` the properties that can be found by value (see
        `find`). Conflict if the type is declared differently or a name is taken.
        """
        self._write.define_edge(name, reverse, source, target, list(index))

    # -- writing

    def put_vertex(
        self,
        type: str,
        id: str,
        *,
        static: dict[str, Any] | None = None,
        props: dict[str, Any] | None = None,
        time: Any = None,
    ) -> Stamp:
        """Puts a version of a vertex. `props` replace all earlier ones; `static` properties stay until they
        are given again. Returns its stamp, which is `time` if that is given. Equal vertices with the same
        time are one version.
        """
        return Stamp(self._write.put_vertex((type, id), static, props, stamp_of(time)))

    def put_edge(
        self,
        type: str,
        src: Name | Vertex,
        dst: Name | Vertex,
        *,
        props: dict[str, Any] | None = None,
        time: Any = None,
        until: Any = None,
    ) -> Stamp:
        """Puts a version of a relation together with its reverse, and creates vertices that do not exist yet.
        Returns the stamp at which it began, which is `time` if that is given. `until` is when it ended.
        """
        return Stamp(self._write.put_edge(type, src, dst, props, stamp_of(time), stamp_of(until, "until")))

    def put_many(
        self,
        *,
        vertices: Iterable[tuple[Any, ...]] | Mapping[str, Any] | None = None,
        edges: Iterable[tuple[Any, ...]] | Mapping[str, Any] | None = None,
    ) -> Stamp:
        """Puts many vertices and relations, vertices first, and returns the last stamp.

        Rows are tuples: ``((type, id), static, props, time)`` for vertices and ``(type, src, dst, props,
        time, until)`` for relations; absent values at the end may be left out. Columns are a mapping of names
        to arrays, lists or one value for all rows: `type`, `id`, `static`, `props`, `time` for vertices;
        `type`, `src_type`, `src_id`, `dst_type`, `dst_id`, `props`, `time`, `until` for relations. `static`
        and `props` map names to such columns.
        """
        return Stamp(self._write.put_many(_rows(vertices, 4, (3,)), _rows(edges, 6, (4, 5))))

    def delete_vertex(self, vertex: Name | Vertex, *, time: Any = None) -> Stamp:
        """Deletes a vertex and ends its relations, as a new version. NotFound if it does not exist, Denied if
        another user put it last. Traces still show what came from it.
        """
        return Stamp(self._write.delete([vertex], [], stamp_of(time)))

    def delete_edge(self, type: str, src: Name | Vertex, dst: Name | Vertex, *, time: Any = None) -> Stamp:
        """Deletes a relation, as a new version. NotFound if it does not exist, Denied if another user put it
        last."""
        return Stamp(self._write.delete([], [(type, src, dst)], stamp_of(time)))

    def delete_many(
        self,
        *,
        vertices: Iterable[Name | Vertex] | Mapping[str, Any] = (),
        edges: Iterable[tuple[str, Name | Vertex, Name | Vertex]] | Mapping[str, Any] = (),
        time: Any = None,
    ) -> Stamp:
        """Deletes many vertices and relations: all of them, or none if one cannot be deleted. Columns are a
        mapping of names to arrays, lists or one value for all rows: `type`, `id` for vertices; `type`,
        `src_type`, `src_id`, `dst_type`, `dst_id` for relations.
        """
        gone = _columns(vertices, "type", "id") if isinstance(vertices, Mapping) else list(vertices)
        if isinstance(edges, Mapping):
            ends = ("src_type", "src_id", "dst_type", "dst_id")
            rows = _columns(edges, "type", *ends)
            ended = [(kind, (s, source), (t, target)) for kind, s, source, t, target in rows]
        else:
            ended = [tuple(edge) for edge in edges]
        return Stamp(self._write.delete(gone, ended, stamp_of(time)))

    def flush(self) -> None:
        """Same as ``store.flush``, or in a transaction ``tx.flush``."""
        (self._transaction or self.store).flush()

    # -- reading

    @overload
    def vertex(self, vertex: Name | Vertex, names: Names = None, *, at: Any = None) -> Vertex: ...
    @overload
    def vertex(
        self, vertex: Name | Vertex, names: Names = None, *, versions: bool | tuple[Any, Any]
    ) -> list[Vertex]: ...
    def vertex(
        self, vertex: Name | Vertex, names: Names = None, *, at: Any = None, versions: Any = None
    ) -> Vertex | list[Vertex]:
        """A vertex in its current state, or as it was `at` a moment. NotFound if there is none. With `names`
        it has only these properties. ``versions=True`` returns all its versions, newest first; a pair of
        moments returns the versions between them; the list is empty if there are none. Also NotFound if
        `archive` moved that version to another store, which the message names; in a list of versions,
        ``.archived`` is its URL.
        """
        asked = between(versions)
        if asked is not None and at is not None:
            raise Invalid(
                "both at and versions are given", "at selects the state at one time, versions all of them"
            )
        native = self._read
        if asked is None:
            return Vertex(native, native.vertex(vertex, stamp_of(at, "at")))._only(names)
        first, last = asked
        found = (Vertex(native, row) for row in native.versions(vertex))
        return [one._only(names) for one in found if first <= one.stamp <= last]

    def versions(self, vertex: Name | Vertex) -> list[Vertex]:
        """All versions of a vertex, newest first; a deletion is a version with ``.deleted``."""
        return self.vertex(vertex, versions=True)

    def edges(
        self,
        vertex: Name | Vertex,
        type: str | None = None,
        *,
        at: Any = None,
        versions: bool | tuple[Any, Any] | None = None,
        limit: int | None = None,
    ) -> list[Edge]:
        """The relations of a vertex, of one type (by its name from either end) or of all types. Returns the
        current ones, those that held `at` a moment, with ``versions=True`` every version, or with a pair of
        moments the versions between them. If `archive` moved the properties of a version to another store, it
        has none, and ``.archived`` is that store's URL.
        """
        asked = between(versions)
        if asked is not None and at is not None:
            raise Invalid(
                "both at and versions are given", "at selects the state at one time, versions all of them"
            )
        native = self._read
        rows = native.edges(vertex, type, stamp_of(at, "at"), asked, count(limit, "limit"))
        return [Edge(native, row) for row in rows]

    def trace(
        self,
        x: Any,
        *,
        direction: Literal["up", "down", "both"] = "up",
        depth: int | None = None,
        at: Any = None,
        since: Any = None,
        causal: bool = True,
        limit: int | None = 10_000,
        stores: bool = True,
    ) -> Lineage:
        """The `Lineage` of `x`: what it came from ("up"), what came from it ("down"), or both.

        `x` is a vertex or its pair of type and id; an execution; fields, given as a key or request, a field,
        an entry of a list, a hit or a run; or a lineage, which stands for its own subject. The lineage of
        fields is that of the commits that wrote them.

        Hops follow cause and effect: upstream, a hop takes only relations that began before the hop that led
        to it, and no writer before the last one that replaced the file; downstream it is the mirror image. A
        job and its processes count as one. Upstream, the walk continues into other stores from which fields
        were read, if they can still be read at the same place; ``.stores`` lists them. Downstream it does
        not: a store does not know its readers. ``stores=False`` stays in this store.

        `depth` limits the hops, `at` selects the state at a moment, `since` is where a walk downstream
        begins, and `limit` limits the vertices (``.truncated``). NotFound if the vertex or the fields do not
        exist. For fields that no execution wrote, the lineage has only their commits.
        """
        if since is not None and direction == "up":
            raise Invalid("since is given for a walk upstream", "give at: a walk upstream begins there")
        native = self._read
        options = trace_options(direction, depth, at, since, causal, limit, stores)
        return Lineage(native, native.trace(subject(x), *options), direction)

    def fields(self, execution: Any) -> Listing:
        """The fields that an execution wrote, as ``store.list`` returns them; a job includes its processes,
        and a commit has the fields that it made visible. Fields replaced or removed since are left out.
        """
        return self._read.fields(execution)

    def find(
        self, type: str | None = None, *, at: Any = None, limit: int | None = None, **tests: Any
    ) -> list[Any]:
        """The vertices of a type whose properties, static or not, pass `tests`: a value, a list of values, or
        a test such as ``fst.above(5)``. Reads the current state, or the state `at` a moment; returns at most
        `limit` vertices, in no particular order. Vertices without relations are found, too.

        If `type` is the name of a relation ("write", a declared one, or a name that only relations have), the
        result is the relations: for each an `Edge` in the version that `edges` returns. A name from the far
        end ("wasWrittenBy") finds the same relations seen from there: ``src`` is their target. If vertices
        and relations share a name, it means the vertices; "~wasRunBy" is the relation "run".
        """
        native = self._read
        vertices, edges = native.find(type, tests, stamp_of(at, "at"), count(limit, "limit"))
        if edges is not None:
            return [Edge(native, row) for row in edges]
        return [Vertex(native, row) for row in vertices or ()]

    def search(self, text: str, type: str | None = None, *, limit: int | None = None) -> list[Vertex]:
        """The vertices that have all words of `text` in their ids, in the property `name`, or in properties
        declared as `text`, in any case. A word matches whole; a ``*`` at its end matches words that begin
        with it. The result is sorted by type and id, with at most `limit` vertices.
        """
        native = self._read
        return [Vertex(native, row) for row in native.search(text, type, count(limit, "limit"))]

    def travel(
        self, *, at: Any = None, causal: bool = False, jobs: bool = False, limit: int | None = None
    ) -> Travel:
        """Begins a traversal, to which steps are added:
        ``g.travel().v(file).e("wasWrittenBy").e("read").run()``.

        `at` reads the state at a moment at every hop; with `causal` a hop takes only relations that can have
        contributed to the next; with `jobs` a job and its processes count as the job; `limit` limits the
        results.
        """
        return Travel(self, (stamp_of(at, "at"), causal, jobs, count(limit, "limit")))

    def archive(self, *, before: Any, to: str | os.PathLike[str], doit: bool = False) -> ArchiveReport:
        """Moves the properties of superseded versions to the graph of the store at `to`, which is created if
        it does not exist. Without ``doit=True`` it only counts.

        A version moves if its user put a newer one at or before `before`: seconds since 1970, a datetime, or
        a stamp. Reads at `before` or later return the same as ever. The store still records that the version
        existed, so a lineage keeps its vertices and relations, also at earlier times; the properties are in
        the other store, whose URL is ``.archived``. Asking for a vertex ``at=`` such a time, or testing its
        properties, raises a NotFound that names the store. Only this user's versions move; the report counts
        those of others. After an interruption, call it again.

        Invalid in a transaction, for a moment in the future, for the store itself and for a store in memory;
        Conflict if the other store declares a type differently.
        """
        native = self._write
        moment = stamp_of(before, "before")
        if moment is None:
            raise Invalid("before is None", "give seconds since 1970, a datetime or a stamp")
        return ArchiveReport(*native.archive(moment, os.fspath(to), doit))

    def stats(self) -> GraphStats:
        """Counts of the graph: segments of the view, vertices and versions of relations in them, bytes,
        problems, and the stores to which versions were moved."""
        return GraphStats(self._read.stats())

    def verify(self) -> GraphCheck:
        """Compares the view with a replay of the logs, line by line. It needs a few times the memory of the
        view. Unavailable if others write too fast to follow.
        """
        return GraphCheck(self._read.verify())

    def partition(
        self, slots: int = 1, partitioner: str = "dido", threshold: int = 128, labels: str = "low"
    ) -> Partitions:
        """Cuts the view into slots, each with its own thread and folder, which walk traversals together. The
        view is rebuilt from the logs and written to disk, so later opens of the store find it partitioned.
        Answers stay the same.

        `partitioner` places the relations of a vertex: "dido" splits them by their far ends if there are more
        than `threshold`, "giga+" by a hash; "edge-cut" keeps them with the vertex, "vertex-cut" spreads all
        of them. `labels` numbers DIDO's slots: "low", or "paper" as in its Fig. 6. Invalid for fewer than 1
        or more than 1024 slots. Source: GraphMeta (TPDS 30 (7), 2019), section 4.
        """
        count(slots, "slots")
        count(threshold, "threshold")
        return Partitions(_partition_graph(self._read, min(slots, 65535), partitioner, threshold, labels))

    def partitions(self) -> Partitions:
        """How the view is cut into slots, and the contents of each."""
        return Partitions(_graph_partitions(self._read))

    # -- showing and sharing

    def export(
        self, x: Any, format: str = "prov-json", path: str | os.PathLike[str] | None = None
    ) -> str | None:
        """Exports the lineage of `x` as "prov-json", "openlineage", "ro-crate", "dot" or "svg", with the
        users who ran each execution. `x` is anything that `trace` takes; a lineage is exported as it is,
        anything else is traced into other stores as `trace` does. Returns the text, or writes it to `path`.
        NotFound if `x` does not exist.
        """
        return _export_lineage(self._read, subject(x), format, path)

    def compare(self, *each: Any) -> list[Difference]:
        """Compares executions, or those that wrote the given results. Rows have ``.what`` (executable,
        argument, environment, folder, host, input, version), ``.name`` and ``.values``: one value for each,
        None if it has none. Values that all share have no row. Each argument is anything that `trace` takes;
        a lineage stands for the executions that wrote its subject. NotFound if no execution did.
        """
        return differences(self._read, each)

    def script(self, x: Any) -> str:
        """Commands for ``sh`` that rebuild `x`, which is anything that `trace` takes: the executions upstream
        in causal order, each in its folder, with its environment and arguments. A lineage gives the
        executions in it, anything else those in this store. The script stops if an input has changed or a
        secret is not set. NotFound if no execution wrote `x`, or its command is not recorded.
        """
        return _lineage_script(self._read, subject(x))

    def audit(
        self,
        user: str | int | None = None,
        file: Name | Vertex | str | os.PathLike[str] | None = None,
        since: Any = None,
        until: Any = None,
    ) -> Audit:
        """Lists the actions of a user (by name or uid), with all processes of the user's jobs, and archives,
        deletions, wipes and decisions without an execution, by commit; or the users of a file and everything
        that came from it (``.derived``); or what a user did to a file. `since` and `until` limit the time.
        Invalid if neither user nor file is given, NotFound if it does not exist.
        """
        return audited(self._read, user, file, stamp_of(since, "since"), stamp_of(until, "until"))

    def __repr__(self) -> str:
        return f"<fieldstone.Graph of {self.store.url}>"


def trace_options(
    direction: str,
    depth: int | None,
    at: Any,
    since: Any,
    causal: bool,
    limit: int | None,
    stores: bool,
) -> tuple[Any, ...]:
    """Options of a trace in the form that native code takes."""
    most = count(limit, "limit")
    return (
        direction,
        count(depth, "depth"),
        stamp_of(at, "at"),
        stamp_of(since, "since"),
        causal,
        2**32 if most is None else most,
        stores,
    )


def _columns(given: Mapping[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """Turns columns into rows; one value applies to all rows."""
    if set(given) != set(names):
        raise Invalid(f"the columns are {', '.join(map(str, given))}", f"give {', '.join(names)}")
    columns = {
        name: column if isinstance(column, str) else getattr(column, "tolist", lambda c=column: list(c))()
        for name, column in given.items()
    }
    lengths = {len(column) for column in columns.values() if not isinstance(column, str)}
    if len(lengths) > 1:
        raise Invalid("the columns differ in length", "a column has one value for each row, or one for all")
    (length,) = lengths or {1}
    full = [
        columns[name] if not isinstance(columns[name], str) else [columns[name]] * length for name in names
    ]
    return list(zip(*full, strict=True))


def _rows(given: Any, length: int, times: tuple[int, ...]) -> Any:
    """Fills up rows with None, or turns columns into rows; moments become stamps."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {
            key: _moments(column, key) if key in ("time", "until") else column
            for key, column in given.items()
        }

    def row(one: tuple[Any, ...]) -> tuple[Any, ...]:
        full = [*one, *[None] * (length - len(one))]
        for place in times:
            full[place] = stamp_of(full[place])
        return tuple(full)

    return map(row, given)


def _moments(column: Any, what: str) -> Any:
    """A column of moments as stamps; arrays of datetimes stay as they are."""
    import numpy as np

    if column is None or isinstance(column, (str, int, float, date)):
        return stamp_of(column, what)
    array = np.asarray(column)
    if array.dtype.kind == "M":
        return array.astype("M8[ns]").astype("i8")
    if array.dtype.kind in "fiu" and not any(isinstance(one, Stamp) for one in column):
        # Larger numbers of seconds do not fit into nanoseconds, and numpy would wrap around.
        if not ((array >= 0) & (array < 9.2e9)).all():
            raise Invalid(
                f"the column {what} has numbers that are not seconds since 1970",
                "give seconds, datetimes, or a list of stamps that puts returned",
            )
        return np.round(array * 1e9).astype("i8") if array.dtype.kind == "f" else array.astype("i8") * 10**9
    return [stamp_of(one, what) for one in column]

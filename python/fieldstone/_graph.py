"""The provenance graph of a store: users, executions and data, how they are related, and since when.

``store.graph`` and ``tx.graph`` make a `Graph`; what it gives back are `Vertex`, `Edge` and `Lineage`::

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
"""Properties that are asked for; None: all."""


class Stamp(int):
    """A moment in the order of all that is put: what a put returns, usable wherever a time is asked for.

    Nanoseconds since 1970 where clocks are right; above every stamp that its process had read. A number added
    or taken away is nanoseconds, and gives a Stamp.
    """

    __slots__ = ()

    def __add__(self, other: int) -> Stamp:
        return Stamp(int(self) + other)

    def __sub__(self, other: int) -> int:
        return int(self) - int(other) if isinstance(other, Stamp) else Stamp(int(self) - other)

    def __repr__(self) -> str:
        return f"Stamp({int(self)})"


def stamp_of(moment: Any, what: str = "time") -> int | None:
    """The stamp of a moment: of seconds since 1970, a datetime, ISO text, or a Stamp."""
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
    """A number of things, where one is given."""
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
    """The stamps between which versions are asked for; None for what holds."""
    if versions is True:
        return (0, 2**64 - 1)
    if not versions:
        return None
    if not isinstance(versions, tuple) or len(versions) != 2:
        raise Invalid(f"versions is {versions!r}", "give True, or the two moments between which they are")
    first, last = (stamp_of(moment, "versions") for moment in versions)
    return (0 if first is None else first, 2**64 - 1 if last is None else last)


def _shown(nanoseconds: int) -> datetime:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)


class Vertex:
    """A vertex as it was at some moment. Equal to its pair of type and id.

    `archived` is None, or the URL of the store that the properties of this version were moved to: `props` and
    `static` are empty then.
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
        """Who put it."""
        return self._graph.user_name(self._user)

    def _only(self, names: Names) -> Vertex:
        """With these properties alone."""
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
    """A version of a relation, as the vertex that was asked for has it.

    `src` is that vertex and `dst` the far end, also of a reverse relation such as "wasWrittenBy". `stamp`
    says when it began; `time` is the clock of who put it; `until` the stamp at which it ended, or None.
    `archived` is None, or the URL of the store that the properties were moved to: `props` is empty then.
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
        """Who put it."""
        return self._graph.user_name(self._user)

    def __repr__(self) -> str:
        gone = " deleted" if self.deleted else ""
        return f"<fieldstone.Edge {':'.join(self.src)} {self.type} {':'.join(self.dst)}{gone}>"


class GraphStats:
    """What there is in a graph: the segments of its view, what stands in them, and `archives`, the URLs of
    stores that versions were moved to, each with the moment that was named.
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
    """What ``g.verify`` found: `lines` that were compared; where the view is `different` from the logs, at
    most 100 notes; `damaged` records of logs; `ok` where there is neither."""

    __slots__ = ("damaged", "different", "lines")

    def __init__(self, row: tuple[int, list[str], list[str]]) -> None:
        self.lines, self.different, self.damaged = row

    @property
    def ok(self) -> bool:
        """Whether the view says what the logs say, and all of it could be read."""
        return not (self.different or self.damaged)

    def __repr__(self) -> str:
        found = "ok" if self.ok else f"{len(self.different)} different, {len(self.damaged)} damaged"
        return f"<fieldstone.GraphCheck of {self.lines} lines: {found}>"


class Graph:
    """The provenance graph of a store. Made by ``store.graph``, and by ``tx.graph`` within a transaction.

    A vertex is a pair of texts (type, id). Relations have a direction; the reverse one is kept by the store:
    "write" from a job to a file is "wasWrittenBy" from the file. What is put is seen by this process at once,
    by all at flush. Every put and every deletion is a version; reads give what holds now, or ``at=`` a
    moment: seconds since 1970, a datetime, or a stamp that a put returned.
    """

    def __init__(self, store: Store, transaction: Transaction | None = None) -> None:
        self.store = store
        self._transaction = transaction
        self._outside = _graph_of(store)

    @property
    def _read(self) -> _Graph:
        """What is read from: after the decision on a transaction there is nothing hidden left to see."""
        within = self._transaction
        return self._outside if within is None else _graph_of(self.store, within._reading())

    @property
    def _write(self) -> _Graph:
        """What is written to; Invalid where the transaction is decided."""
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
        """Declares a type of vertices: `static` properties with the types of their values, properties that
        are found by value (`index`) and by their words (`text`). Conflict where it is declared otherwise.
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
        """Declares a type of relations and what it is called from its far end; `source` and `target` are the
        types of its ends, any where absent; properties that are found by value (`index`, see `find`).
        Conflict where it is declared otherwise, or a name is taken.
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
        """Puts a version of a vertex: `props` replace those it had, `static` stays until given again. Returns
        its stamp, which is `time` where that is given. Equal vertices of one time are one version.
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
        """Puts a version of a relation, with its reverse; vertices that are not there are there then. Returns
        its stamp, which is `time` where that is given: when it began. `until` says when it ended.
        """
        return Stamp(self._write.put_edge(type, src, dst, props, stamp_of(time), stamp_of(until, "until")))

    def put_many(
        self,
        *,
        vertices: Iterable[tuple[Any, ...]] | Mapping[str, Any] | None = None,
        edges: Iterable[tuple[Any, ...]] | Mapping[str, Any] | None = None,
    ) -> Stamp:
        """Puts many, vertices first, and returns the last stamp.

        Rows are tuples: ``((type, id), static, props, time)`` of vertices and ``(type, src, dst, props, time,
        until)`` of relations, cut short where the rest is absent. Columns are a mapping of names to arrays,
        lists or one value for all: `type`, `id`, `static`, `props`, `time`; and `type`, `src_type`, `src_id`,
        `dst_type`, `dst_id`, `props`, `time`, `until`; `static` and `props` are mappings of names to such
        columns.
        """
        return Stamp(self._write.put_many(_rows(vertices, 4, (3,)), _rows(edges, 6, (4, 5))))

    def delete_vertex(self, vertex: Name | Vertex, *, time: Any = None) -> Stamp:
        """Deletes a vertex and ends the relations at it, as a version. NotFound where it is not there, Denied
        where another user put it last. What came from it is still traced.
        """
        return Stamp(self._write.delete([vertex], [], stamp_of(time)))

    def delete_edge(self, type: str, src: Name | Vertex, dst: Name | Vertex, *, time: Any = None) -> Stamp:
        """Deletes a relation, as a version. NotFound where it is not there, Denied where another put it
        last."""
        return Stamp(self._write.delete([], [(type, src, dst)], stamp_of(time)))

    def delete_many(
        self,
        *,
        vertices: Iterable[Name | Vertex] | Mapping[str, Any] = (),
        edges: Iterable[tuple[str, Name | Vertex, Name | Vertex]] | Mapping[str, Any] = (),
        time: Any = None,
    ) -> Stamp:
        """Deletes many: all of them, or nothing where one cannot be deleted. Columns are a mapping of names
        to arrays, lists or one value for all: `type`, `id`; and `type`, `src_type`, `src_id`, `dst_type`,
        `dst_id`.
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
        """As ``store.flush``; within a transaction as ``tx.flush``."""
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
        """A vertex as it is, or as it was `at` a moment. NotFound where there is none. With `names` it has no
        other properties than these. ``versions=True`` gives all its versions, newest first, a pair of moments
        those between; none where there are none. NotFound, too, where what it was is in another store, which
        the message names (`archive`); among versions such a one has that URL as ``.archived``.
        """
        asked = between(versions)
        if asked is not None and at is not None:
            raise Invalid("both at and versions are given", "at asks what held then, versions for all")
        native = self._read
        if asked is None:
            return Vertex(native, native.vertex(vertex, stamp_of(at, "at")))._only(names)
        first, last = asked
        found = (Vertex(native, row) for row in native.versions(vertex))
        return [one._only(names) for one in found if first <= one.stamp <= last]

    def versions(self, vertex: Name | Vertex) -> list[Vertex]:
        """All versions of a vertex, newest first; a deletion is one, with ``.deleted``."""
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
        """The relations at a vertex, of one type (as either end calls it) or all; those that hold now or `at`
        a moment, or, with ``versions=True``, every version; with a pair those between two moments. One whose
        properties were moved to another store (`archive`) has none, and its URL as ``.archived``.
        """
        asked = between(versions)
        if asked is not None and at is not None:
            raise Invalid("both at and versions are given", "at asks what held then, versions for all")
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
        """Where `x` came from ("up"), what came from it ("down"), or both: a `Lineage`.

        `x` is a vertex, a pair of its type and id; an execution; or fields: a key or request, a field, an
        entry of a list, a hit, a run; or a lineage, which stands for what it is of. The lineage of fields is
        that of the commits which they came by.

        By cause: upstream a hop takes only what began before the hop that led to it, and no writer before the
        last that replaced the file; downstream the mirror image. A job and its processes count as one.
        Upstream it goes on in other stores, which fields were read from: those that can be read where they
        were then; ``.stores`` has them. Downstream it does not: a store does not know its readers.
        ``stores=False`` stays in this one.

        `depth` bounds the hops, `at` asks how it was, `since` where a walk downstream begins, `limit` bounds
        the vertices (``.truncated``). NotFound where nothing names the vertex, or no field is there; of
        fields that no execution wrote there are the commits alone.
        """
        if since is not None and direction == "up":
            raise Invalid("since is given for a walk upstream", "give at, from which such a walk begins")
        native = self._read
        options = trace_options(direction, depth, at, since, causal, limit, stores)
        return Lineage(native, native.trace(subject(x), *options), direction)

    def fields(self, execution: Any) -> Listing:
        """The fields that an execution wrote, as ``store.list`` gives them; of a job those of its processes,
        too. A commit has those that came by it. What was replaced or removed since is not among them.
        """
        return self._read.fields(execution)

    def find(
        self, type: str | None = None, *, at: Any = None, limit: int | None = None, **tests: Any
    ) -> list[Any]:
        """The vertices of a type whose properties, static or not, pass `tests`: a value, a list of values, or
        a test such as ``fst.above(5)``. As they are, or were `at` a moment; at most `limit`, in no particular
        order. What nothing connects is found, too.

        Where `type` is the name of a relation ("write", a declared one, one that only relations have), these
        are found: an `Edge` for each, the version that `edges` gives. By its name from the far end
        ("wasWrittenBy") the same relations are seen from there: ``src`` is what they lead to. A name that
        vertices have is theirs; "~wasRunBy" is the relation "run".
        """
        native = self._read
        vertices, edges = native.find(type, tests, stamp_of(at, "at"), count(limit, "limit"))
        if edges is not None:
            return [Edge(native, row) for row in edges]
        return [Vertex(native, row) for row in vertices or ()]

    def search(self, text: str, type: str | None = None, *, limit: int | None = None) -> list[Vertex]:
        """The vertices that have all words of `text` in their ids, in the property `name`, or in properties
        declared as `text`: whole words, or with a ``*`` behind them the beginnings of words, in any case. By
        type and id; at most `limit`.
        """
        native = self._read
        return [Vertex(native, row) for row in native.search(text, type, count(limit, "limit"))]

    def travel(
        self, *, at: Any = None, causal: bool = False, jobs: bool = False, limit: int | None = None
    ) -> Travel:
        """A traversal, to which steps are added: ``g.travel().v(file).e("wasWrittenBy").e("read").run()``.

        `at` asks how it was, at every hop; with `causal` a hop takes only what can have had a part in the
        next; with `jobs` a job and its processes count as the job; `limit` bounds the results.
        """
        return Travel(self, (stamp_of(at, "at"), causal, jobs, count(limit, "limit")))

    def archive(self, *, before: Any, to: str | os.PathLike[str], doit: bool = False) -> ArchiveReport:
        """Moves what versions say that newer ones hide to the graph of the store at `to`, which is made where
        it is absent. Without ``doit=True`` it only counts.

        A version moves where its user has put a newer one that is not younger than `before`: seconds since
        1970, a datetime, or a stamp. Every read at `before` or later gives what it gave. That a version was
        there stays, so a lineage has the same vertices and relations, also of times before; its properties
        are in the other store, and ``.archived`` is that store's URL. Who asks for a vertex ``at=`` such a
        time, or tests its properties, gets NotFound that names the store. Own versions move alone; the report
        counts those of others. Interrupted, it may be called again.

        Invalid within a transaction, for a moment to come, for the store itself and one in memory; Conflict
        where a type is declared otherwise there.
        """
        native = self._write
        moment = stamp_of(before, "before")
        if moment is None:
            raise Invalid("before is None", "give seconds since 1970, a datetime or a stamp")
        return ArchiveReport(*native.archive(moment, os.fspath(to), doit))

    def stats(self) -> GraphStats:
        """What there is: segments of the view, vertices and versions of relations in them, bytes, problems,
        and where versions were moved to."""
        return GraphStats(self._read.stats())

    def verify(self) -> GraphCheck:
        """Compares the view with a replay of the logs, line by line: it takes memory of some times the bytes
        of the view. Unavailable where others write too fast to be followed.
        """
        return GraphCheck(self._read.verify())

    def partition(
        self, slots: int = 1, partitioner: str = "dido", threshold: int = 128, labels: str = "low"
    ) -> Partitions:
        """Cuts the view into slots, each with a thread and a folder of its own, that walk traversals
        together. It is made anew from the logs and written to disk: who opens the store next finds it so.
        Answers stay the same.

        `partitioner` says where relations of a vertex are: "dido" splits them towards their far ends when
        they are more than `threshold`, "giga+" by a hash; "edge-cut" keeps them with the vertex,
        "vertex-cut" spreads all of them. `labels` numbers DIDO's slots: "low", or "paper" as in its Fig.
        6. Invalid for less than 1 or more than 1024 slots. Source: GraphMeta (TPDS 30 (7), 2019), section
        4.
        """
        count(slots, "slots")
        count(threshold, "threshold")
        return Partitions(_partition_graph(self._read, min(slots, 65535), partitioner, threshold, labels))

    def partitions(self) -> Partitions:
        """How the view is cut into slots, and what each has."""
        return Partitions(_graph_partitions(self._read))

    # -- showing and sharing

    def export(
        self, x: Any, format: str = "prov-json", path: str | os.PathLike[str] | None = None
    ) -> str | None:
        """Where `x` came from, for others: as "prov-json", "openlineage", "ro-crate", "dot" or "svg", with
        the users who ran what made it. `x` is what `trace` takes; a lineage is exported as it is, others go
        on in other stores as in `trace`. Returns the text, or writes it to `path`. NotFound where nothing
        names `x`.
        """
        return _export_lineage(self._read, subject(x), format, path)

    def compare(self, *each: Any) -> list[Difference]:
        """What differs between executions, or between those that wrote several results: rows of ``.what``
        (executable, argument, environment, folder, host, input, version), ``.name`` and ``.values``, one for
        each, None where it has none. What is the same for all has no row. Each is what `trace` takes; a
        lineage stands for those that wrote what it is of. NotFound where no execution did.
        """
        return differences(self._read, each)

    def script(self, x: Any) -> str:
        """Commands for ``sh`` that rebuild `x`, which is what `trace` takes: what ran upstream, by cause,
        each in its folder, with its environment and arguments; of a lineage what is in it, else what this
        store has. It stops where an input is not what it was, and where a secret is not set. NotFound where
        no execution wrote `x`, or nothing says its command.
        """
        return _lineage_script(self._read, subject(x))

    def audit(
        self,
        user: str | int | None = None,
        file: Name | Vertex | str | os.PathLike[str] | None = None,
        since: Any = None,
        until: Any = None,
    ) -> Audit:
        """Lists a user's actions, by name or uid, with all processes of his jobs, and archives and deletions
        without an execution, by commits; or the users of a file, and all that came from it
        (``.derived``); or what a user did to a file. `since` and `until` bound the time. Invalid where
        neither is given, NotFound where nothing names them.
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
    """How a lineage is asked for, as native code takes it."""
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
    """Columns as rows; one value stands for all rows."""
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
    """Rows filled up with None, or columns; moments as stamps."""
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
    """A column of moments as stamps; arrays of datetimes as they are."""
    import numpy as np

    if column is None or isinstance(column, (str, int, float, date)):
        return stamp_of(column, what)
    array = np.asarray(column)
    if array.dtype.kind == "M":
        return array.astype("M8[ns]").astype("i8")
    if array.dtype.kind in "fiu" and not any(isinstance(one, Stamp) for one in column):
        # Beyond it nanoseconds do not fit, and numpy would wrap around.
        if not ((array >= 0) & (array < 9.2e9)).all():
            raise Invalid(
                f"the column {what} has numbers that are no seconds since 1970",
                "give seconds, datetimes, or a list of stamps as puts returned them",
            )
        return np.round(array * 1e9).astype("i8") if array.dtype.kind == "f" else array.astype("i8") * 10**9
    return [stamp_of(one, what) for one in column]

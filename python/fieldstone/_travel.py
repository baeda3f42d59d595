"""Traversals of the provenance graph: from vertices along relations, in steps.

``g.travel()`` begins one, each call adds a step, and ``run`` walks it::

    with fieldstone.open("memory:") as store:
        g = store.graph
        g.put_edge("write", ("job", "17"), ("file", "/plot.png"))
        g.put_edge("read", ("job", "17"), ("file", "/a.nc"), props={"bytes": 10})
        sources = g.travel().v(("file", "/plot.png")).e("wasWrittenBy").e("read")
        assert [v.id for v in sources.ea("bytes", fieldstone.above(5)).run()] == ["/a.nc"]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where they are used: they are optional
    import networkx as nx
    import pandas as pd
    import pyarrow as pa

    from ._graph import Edge, Graph, Name, Vertex
    from ._native import _Graph, _Travelled

_CHUNK = 1024
"""Number of results that are read at once."""


class Travel:
    """A traversal in steps. Made by ``g.travel()``; each call returns a new one with one more step.

    Source: GraphMeta (TPDS 30 (7), 2019), GTravel.
    """

    def __init__(
        self, graph: Graph, options: tuple[Any, ...], steps: tuple[tuple[str, Any], ...] = ()
    ) -> None:
        self._graph = graph
        self._options = options
        self._steps = steps

    def _with(self, step: str, taken: Any = None) -> Travel:
        return Travel(self._graph, self._options, (*self._steps, (step, taken)))

    def v(
        self, *vertices: Name | Vertex, type: str | None = None, versions: Any = None, **tests: Any
    ) -> Travel:
        """Selects vertices: these, or those of a `type` whose properties pass `tests`. As the first step it
        starts the walk; later it keeps the vertices of the current set that match. With ``versions=True``, or
        a pair of times, a vertex matches if one of its versions does.
        """
        from ._graph import between

        named = list(vertices) if vertices else None
        return self._with("v", (named, type, tests, between(versions)))

    def e(self, *types: str, versions: Any = None) -> Travel:
        """Follows relations of these types, named as from the near end, to their far ends; without types all
        relations. Follows current relations; with ``versions=True`` every version, with a pair of times the
        versions between them.
        """
        from ._graph import between

        return self._with("e", (list(types), between(versions)))

    def va(self, name: str, test: Any) -> Travel:
        """Keeps only vertices with a property that passes: a value, a list of values, or a test such as
        ``fst.above(5)``. Several tests must all pass."""
        return self._with("va", (name, test))

    def ea(self, name: str, test: Any) -> Travel:
        """Restricts the last `e` to relations with a property that passes."""
        return self._with("ea", (name, test))

    def rtn(self) -> Travel:
        """Also returns the vertices at this point from which the walk reaches its end."""
        return self._with("rtn")

    def repeat(self, max: int | None = None) -> Travel:
        """Repeats all `e` so far, with their tests, until a round reaches nothing new, at most `max` times.
        Returns the distinct vertices of all rounds.
        """
        from ._graph import count

        return self._with("repeat", count(max, "max"))

    def return_fp(self) -> Travel:
        """Returns whole paths instead of vertices: every walk along the steps; of repeated steps, the paths
        to the end of each round in which no vertex occurs twice.
        """
        return self._with("return_fp")

    def text(self, steps: str) -> Travel:
        """Adds steps given as text: ``"v(file:/plot.png).e(wasWrittenBy).e(read).repeat().return_fp()"``."""
        return self._with("text", steps)

    def _travelled(self, engine: str) -> tuple[_Graph, _Travelled]:
        at, causal, jobs, limit = self._options
        native = self._graph._read
        return native, native.travel(list(self._steps), at, causal, jobs, limit, engine)

    def run(self, engine: str = "sync") -> Travelled:
        """Walks the graph as it is now; later puts do not change the result.

        If the view is cut into slots (``g.partition``), `engine` sets the order of hops: "sync" goes step by
        step, and waiting slots read ahead; "plain" goes step by step; "async" continues from each vertex as
        soon as it is reached. All return the same result.
        """
        return Travelled(*self._travelled(engine), self._options[-1])

    def explain(self, engine: str = "sync") -> Explanation:
        """Walks it, and reports each hop of each round, in total and for each slot."""
        travelled = self._travelled(engine)[1]
        return Explanation(travelled.figures(), travelled.slots())

    def __repr__(self) -> str:
        def call(step: str, taken: Any) -> str:
            if step == "v":
                named, type, tests, _ = taken
                words = [repr(getattr(v, "pair", v)) for v in named or []]
                words += [f"type={type!r}"] if type else []
                words += [f"{name}={test!r}" for name, test in tests.items()]
                return f"v({', '.join(words)})"
            if step == "e":
                return f"e({', '.join(map(repr, taken[0]))})"
            if step in ("va", "ea"):
                return f"{step}({taken[0]!r}, {taken[1]!r})"
            return f"{step}({'' if taken is None else repr(taken)})"

        return ".".join(["<fieldstone.Travel", *(call(*step) for step in self._steps)]) + ">"


class Path:
    """A whole path: `vertices` from its start to its end, as pairs, and the `edges` between them."""

    __slots__ = ("edges", "vertices")

    def __init__(self, vertices: list[Name], edges: list[Edge]) -> None:
        self.vertices = vertices
        self.edges = edges

    def __len__(self) -> int:
        return len(self.vertices)

    def __repr__(self) -> str:
        words = [":".join(self.vertices[0])]
        for edge, vertex in zip(self.edges, self.vertices[1:], strict=True):
            words.append(f"{edge.type} {':'.join(vertex)}")
        return f"<fieldstone.Path {' '.join(words)}>"


class VertexSet:
    """Vertices that a traversal reached, read when they are needed."""

    def __init__(self, graph: _Graph, travelled: _Travelled, of: int, length: int) -> None:
        self._graph, self._travelled, self._of, self._length = graph, travelled, of, length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Vertex]:
        from ._graph import Vertex

        for start in range(0, self._length, _CHUNK):
            for row in self._travelled.vertices(self._of, start, _CHUNK):
                yield Vertex(self._graph, row)

    def pairs(self) -> list[Name]:
        """Type and id of each vertex; faster if you need nothing else."""
        return self._travelled.names(self._of, 0, self._length)

    def __contains__(self, vertex: object) -> bool:
        return getattr(vertex, "pair", vertex) in self.pairs()

    def __repr__(self) -> str:
        return f"<fieldstone.VertexSet of {self._length}>"


class Travelled:
    """The result of a traversal: iterate over its vertices, or over its paths. Made by ``Travel.run``.

    It shows the graph at the moment of ``run``. Vertices come in no particular order. After `rtn`, iterating
    gives the union of `sets`.
    """

    def __init__(self, graph: _Graph, travelled: _Travelled, limit: int | None) -> None:
        self._graph, self._travelled, self._limit = graph, travelled, limit
        self._cut = travelled.truncated()

    @property
    def sets(self) -> list[VertexSet]:
        """The sets that `rtn` returns, in order, and the last one; none if paths are returned."""
        lengths = enumerate(self._travelled.sets())
        return [VertexSet(self._graph, self._travelled, of, length) for of, length in lengths]

    @property
    def truncated(self) -> bool:
        """Whether there were more results than the limit; for paths, known after iterating."""
        return self._cut

    def __iter__(self) -> Iterator[Any]:
        return self._paths() if self._travelled.has_paths() else self._vertices()

    def _vertices(self) -> Iterator[Vertex]:
        sets = self.sets
        if len(sets) == 1:
            yield from sets[0]
            return
        known: set[Name] = set()
        for vertices in sets:
            for vertex in vertices:
                if vertex.pair not in known:
                    known.add(vertex.pair)
                    yield vertex

    def _paths(self) -> Iterator[Path]:
        from ._graph import Edge

        paths = self._travelled.paths()
        assert paths is not None
        left = self._limit
        size = 1
        while rows := paths.next(size):
            for vertices, edges in rows:
                if left == 0:
                    self._cut = True
                    return
                left = None if left is None else left - 1
                yield Path(vertices, [Edge(self._graph, edge) for edge in edges])
            size = min(2 * size, _CHUNK)

    def count(self) -> int:
        """The number of distinct vertices, or of paths."""
        sets = self.sets
        if len(sets) == 1:
            return len(sets[0])
        if sets:
            return len({pair for vertices in sets for pair in vertices.pairs()})
        return sum(1 for _ in self._paths())

    def to_arrow(self) -> pa.Table:
        """The result as an Arrow table. Vertices: type, id, static, props (JSON texts), stamp, time, user.
        Paths: a row for each relation: path, position, type, src_type, src_id, dst_type, dst_id, props,
        stamp, until.
        """
        import json

        import pyarrow as pa

        def text(props: dict[str, Any]) -> str:
            return json.dumps(props, default=str)

        if self._travelled.has_paths():
            rows = [(n, i, edge) for n, path in enumerate(self) for i, edge in enumerate(path.edges)]
            return pa.table(
                {
                    "path": pa.array([n for n, _, _ in rows], pa.int64()),
                    "position": pa.array([i for _, i, _ in rows], pa.int64()),
                    "type": pa.array([edge.type for _, _, edge in rows], pa.string()),
                    "src_type": pa.array([edge.src[0] for _, _, edge in rows], pa.string()),
                    "src_id": pa.array([edge.src[1] for _, _, edge in rows], pa.string()),
                    "dst_type": pa.array([edge.dst[0] for _, _, edge in rows], pa.string()),
                    "dst_id": pa.array([edge.dst[1] for _, _, edge in rows], pa.string()),
                    "props": pa.array([text(edge.props) for _, _, edge in rows], pa.string()),
                    "stamp": pa.array([int(edge.stamp) for _, _, edge in rows], pa.uint64()),
                    "until": pa.array(
                        [None if e.until is None else int(e.until) for _, _, e in rows], pa.uint64()
                    ),
                }
            )
        vertices = list(self)
        return pa.table(
            {
                "type": pa.array([v.type for v in vertices], pa.string()),
                "id": pa.array([v.id for v in vertices], pa.string()),
                "static": pa.array([text(v.static) for v in vertices], pa.string()),
                "props": pa.array([text(v.props) for v in vertices], pa.string()),
                "stamp": pa.array([int(v.stamp) for v in vertices], pa.uint64()),
                "time": pa.array([v.time for v in vertices], pa.timestamp("us", "UTC")),
                "user": pa.array([v.user for v in vertices], pa.string()),
            }
        )

    def to_pandas(self) -> pd.DataFrame:
        """The result as a pandas DataFrame, with the columns of `to_arrow`."""
        return self.to_arrow().to_pandas()

    def to_networkx(self) -> nx.MultiDiGraph:
        """A networkx MultiDiGraph: the vertices as pairs with their `props`; for paths also the relations,
        from their near ends."""
        import networkx as nx

        graph = nx.MultiDiGraph()
        for result in self:
            if isinstance(result, Path):
                graph.add_nodes_from(result.vertices)
                for edge in result.edges:
                    key = (edge.type, int(edge.stamp))
                    graph.add_edge(
                        edge.src, edge.dst, key, type=edge.type, stamp=int(edge.stamp), props=edge.props
                    )
            else:
                graph.add_node(result.pair, **{"static": result.static, "props": result.props})
        return graph

    def __repr__(self) -> str:
        if self._travelled.has_paths():
            return "<fieldstone.Travelled of paths>"
        sizes = " + ".join(str(n) for n in self._travelled.sets())
        return f"<fieldstone.Travelled of {sizes} vertices{', cut off' if self._cut else ''}>"


class TravelStep:
    """One hop of one round: `hop` from 0, `round` from 1 (0 after a repeat), `frontier` and `reached`
    vertices, `vertices` and `relations` read, `seconds`."""

    __slots__ = ("frontier", "hop", "reached", "relations", "round", "seconds", "vertices")

    def __init__(self, row: tuple[int, int, int, int, int, int, float]) -> None:
        self.hop, self.round, self.frontier, self.reached, self.vertices, self.relations, self.seconds = row

    def __repr__(self) -> str:
        return (
            f"<fieldstone.TravelStep {self.hop} of round {self.round}: {self.frontier} to {self.reached} "
            f"vertices, {self.relations} relations read, {1e3 * self.seconds:.3f} ms>"
        )


class Explanation(list[TravelStep]):
    """The hops of a traversal, in order. ``print`` shows a table.

    If the view is cut into slots, `slots` has the work of each slot in each hop, and there are the figures of
    GraphMeta (TPDS 30 (7), 2019), section 6.4.2: `stat_comm`, the traffic between slots, as `requests` for
    relations of a vertex in another slot and `forwards` to far ends at home elsewhere; `stat_reads`, the sum
    over the steps of the reads of the busiest slot. In an unpartitioned view they are 0, and `slots` is
    empty.
    """

    def __init__(
        self,
        rows: list[tuple[int, int, int, int, int, int, float]],
        slots: tuple[list[tuple[Any, ...]], int, int, int] | None = None,
    ) -> None:
        from ._partitions import SlotStep

        super().__init__(map(TravelStep, rows))
        steps, self.requests, self.forwards, self.stat_reads = slots or ([], 0, 0, 0)
        self.slots = [SlotStep(step) for step in steps]
        self.stat_comm = self.requests + self.forwards

    def __str__(self) -> str:
        lines = ["hop round  frontier   reached  vertices relations        ms"]
        for s in self:
            counts = f"{s.frontier:9} {s.reached:9} {s.vertices:9} {s.relations:9}"
            lines.append(f"{s.hop:3} {s.round:5} {counts} {1e3 * s.seconds:9.3f}")
        if self.slots:
            lines.append("")
            times = "vertex ms   edge ms  ahead ms"
            lines.append(f"hop round slot  frontier   reached relations requests forwards messages {times}")
        for t in sorted(self.slots, key=lambda t: (t.round == 0, t.round, t.hop, t.slot)):
            counts = (
                f"{t.frontier:9} {t.reached:9} {t.relations:9} {t.requests:8} {t.forwards:8} {t.messages:8}"
            )
            seconds = f"{1e3 * t.vertex_time:9.3f} {1e3 * t.edge_time:9.3f} {1e3 * t.prefetch_time:9.3f}"
            lines.append(f"{t.hop:3} {t.round:5} {t.slot:4} {counts} {seconds}")
        if self.slots:
            lines.append(f"StatComm {self.stat_comm} ({self.requests} requests, {self.forwards} forwards)")
            lines[-1] += f"; StatReads {self.stat_reads}"
        return "\n".join(lines)

"""Lineages: the result of ``g.trace``, and the subjects that can be traced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ._native import Entry, Field, Hit, _export_lineage

if TYPE_CHECKING:  # imported where it is used: networkx and pyarrow are optional
    import networkx as nx
    import pyarrow as pa

    from ._graph import Edge
    from ._native import _Graph

_EXECUTIONS = ("job", "process")


class LineageStore(NamedTuple):
    """Another store into which a lineage leads: its `id`, its `url` when it was read (None if it was not
    recorded), the number of its `commits`, and in `left` why the lineage does not continue there, or None."""

    id: str
    url: str | None
    commits: int
    left: str | None

    def __str__(self) -> str:
        name = f"store {self.url or self.id}"
        return name if self.left is None else f"{name} is not followed: {self.left}"


class Lineage:
    """Vertices and the relations between them, starting from a root. Made by ``g.trace``.

    `root` is the subject of the trace; `roots` are all vertices of it, such as the commits that wrote several
    fields; `vertices` the pairs of type and id (the root first, then by hops), `edges` the relations, each
    from its source, by stamp; `executions` the jobs and processes among the vertices; `truncated` says
    whether a limit cut it off; `stores` lists the other stores in which it continues, or why it does not
    (`LineageStore`). ``print`` shows a tree, a notebook a picture.
    """

    def __init__(self, graph: _Graph, row: tuple[Any, ...], direction: str) -> None:
        from ._graph import Edge

        self.root, self.roots, steps, edges, self.truncated, stores, tree, self._traced = row
        self.stores = [LineageStore(*store) for store in stores]
        self._tree = "\n".join([tree, *(f"… {store}" for store in self.stores if store.left is not None)])
        self.direction = direction
        self._graph = graph
        self.vertices: list[tuple[str, str]] = [pair for pair, _ in steps]
        self.depths: dict[tuple[str, str], int] = dict(steps)
        self.edges: list[Edge] = [Edge(graph, edge) for edge in edges]

    @property
    def executions(self) -> list[tuple[str, str]]:
        """The jobs and processes."""
        return [pair for pair in self.vertices if pair[0] in _EXECUTIONS]

    @property
    def archived(self) -> dict[str, int]:
        """The URLs of stores to which ``g.archive`` moved properties of its relations, each with the number
        of relations; empty if all are here.
        """
        return dict(Counter(edge.archived for edge in self.edges if edge.archived is not None))

    def __len__(self) -> int:
        return len(self.vertices)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.vertices)

    def __contains__(self, vertex: object) -> bool:
        return getattr(vertex, "pair", vertex) in self.depths

    def __repr__(self) -> str:
        more = ", cut off" if self.truncated else ""
        counts = f"{len(self.vertices)} vertices, {len(self.edges)} relations"
        return f"<fieldstone.Lineage of {':'.join(self.root)}: {counts}{more}>"

    def __str__(self) -> str:
        return self._tree

    def to_arrow(self) -> pa.Table:
        """The relations as an Arrow table: type, src_type, src_id, dst_type, dst_id, stamp, time, until and
        user.
        """
        import pyarrow as pa

        edges = self.edges
        return pa.table(
            {
                "type": pa.array([edge.type for edge in edges], pa.string()),
                "src_type": pa.array([edge.src[0] for edge in edges], pa.string()),
                "src_id": pa.array([edge.src[1] for edge in edges], pa.string()),
                "dst_type": pa.array([edge.dst[0] for edge in edges], pa.string()),
                "dst_id": pa.array([edge.dst[1] for edge in edges], pa.string()),
                "stamp": pa.array([int(edge.stamp) for edge in edges], pa.uint64()),
                "time": pa.array([edge.time for edge in edges], pa.timestamp("us", "UTC")),
                "until": pa.array([None if e.until is None else int(e.until) for e in edges], pa.uint64()),
                "user": pa.array([edge.user for edge in edges], pa.string()),
            }
        )

    def to_networkx(self) -> nx.MultiDiGraph:
        """A networkx MultiDiGraph: vertices are pairs; relations have `type`, `stamp` and their
        properties."""
        import networkx as nx

        graph = nx.MultiDiGraph()
        graph.add_nodes_from(self.vertices)
        for edge in self.edges:
            graph.add_edge(edge.src, edge.dst, type=edge.type, stamp=int(edge.stamp), props=edge.props)
        return graph

    def export(self, format: str = "prov-json") -> str:
        """The lineage in a format for other tools: "prov-json" (W3C PROV-JSON), "openlineage" (run events),
        "ro-crate" (metadata of a Process Run Crate), "dot" (for Graphviz) or "svg" (a picture), with the
        users of its executions.
        """
        text = _export_lineage(self._graph, self._traced, format, None)
        return text or ""

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.export("svg")}</div>'


def subject(x: Any) -> Any:
    """The subject of a lineage as native code takes it: the root of a lineage, vertices, or requests; and
    whether it is one vertex.
    """
    from ._run import Run

    if isinstance(x, Lineage):
        return x._traced
    pair = getattr(x, "pair", x)
    if isinstance(pair, tuple):
        return [pair], None, True
    if isinstance(x, Field):
        return [("commit", id) for id in x._commits], None, False
    if isinstance(x, Hit):
        return [("commit", x._commit)], [dict(x.key)] if x.variable is not None else None, False
    if isinstance(x, Run):
        return [("run", x.name)], [dict(x._key(None, None))], False
    return [], x.key if isinstance(x, Entry) else x, False


def of(graph: _Graph, x: Any, options: tuple[Any, ...]) -> Lineage:
    """The lineage of `x` in a graph; `options` are those of ``g.trace``, in their order."""
    from ._graph import trace_options

    return Lineage(graph, graph.trace(subject(x), *trace_options(*options)), options[0])


def of_field(field: Field, *options: Any) -> Lineage:
    """The lineage of a field, in the graph of its store."""
    return of(field._graph(), field, options)


def of_hit(graph: _Graph, hit: Hit, *options: Any) -> Lineage:
    """The lineage of a hit."""
    return of(graph, hit, options)

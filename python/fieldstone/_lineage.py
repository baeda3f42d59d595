"""What a result came from, or what came from it: the result of ``g.trace``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where it is used: networkx and pyarrow are optional
    import networkx as nx
    import pyarrow as pa

    from ._graph import Edge
    from ._native import _Graph

_EXECUTIONS = ("job", "process")
_SHOWN = 40


class Lineage:
    """Vertices and the relations between them, from a root on. Made by ``g.trace``.

    `root` is what was asked for, `vertices` the pairs of type and id (the root first, then by hops), `edges` the
    relations, each from its source, by stamp; `executions` the jobs and processes among the vertices; `truncated`
    says whether a limit cut it off. ``print`` shows a tree.
    """

    def __init__(self, graph: _Graph, row: tuple[Any, ...], direction: str) -> None:
        from ._graph import Edge

        self.root, steps, edges, self.truncated = row
        self.direction = direction
        self.vertices: list[tuple[str, str]] = [pair for pair, _ in steps]
        self.depths: dict[tuple[str, str], int] = dict(steps)
        self.edges: list[Edge] = [Edge(graph, edge) for edge in edges]

    @property
    def executions(self) -> list[tuple[str, str]]:
        """The jobs and processes."""
        return [pair for pair in self.vertices if pair[0] in _EXECUTIONS]

    def __len__(self) -> int:
        return len(self.vertices)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.vertices)

    def __contains__(self, vertex: object) -> bool:
        return getattr(vertex, "pair", vertex) in self.depths

    def __repr__(self) -> str:
        kind, name = self.root
        more = ", cut off" if self.truncated else ""
        return f"<fieldstone.Lineage of {kind}:{name}: {len(self.vertices)} vertices, {len(self.edges)} relations{more}>"

    def __str__(self) -> str:
        return "\n".join([*self._tree(), *(["… cut off at the limit"] if self.truncated else [])])

    def _tree(self) -> list[str]:
        """Each vertex below the first that led to it."""
        below: dict[tuple[str, str], list[tuple[str, tuple[str, str]]]] = {}
        for edge in self.edges:
            ends = [(edge.src, edge.dst, edge.type), (edge.dst, edge.src, edge.type)]
            for near, far, kind in ends:
                if self.depths[far] >= self.depths[near]:
                    below.setdefault(near, []).append((kind, far))
        lines = [":".join(self.root)]
        seen = {self.root}

        def walk(vertex: tuple[str, str], indent: str) -> None:
            further = []
            for kind, far in below.get(vertex, ()):
                if far not in seen:
                    seen.add(far)
                    further.append((kind, far))
            for i, (kind, far) in enumerate(further):
                last = i == len(further) - 1
                if len(lines) >= _SHOWN:
                    if len(lines) == _SHOWN:
                        lines.append(f"… {len(self.vertices)} vertices in all")
                    return
                lines.append(f"{indent}{'└' if last else '├'}─ {kind} {':'.join(far)}")
                walk(far, indent + ("   " if last else "│  "))

        walk(self.root, "")
        return lines

    def to_arrow(self) -> pa.Table:
        """The relations as an Arrow table: type, src_type, src_id, dst_type, dst_id, stamp, time, until, user."""
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
        """A networkx MultiDiGraph: vertices are pairs, relations have `type`, `stamp` and their properties."""
        import networkx as nx

        graph = nx.MultiDiGraph()
        graph.add_nodes_from(self.vertices)
        for edge in self.edges:
            graph.add_edge(edge.src, edge.dst, type=edge.type, stamp=int(edge.stamp), props=edge.props)
        return graph

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

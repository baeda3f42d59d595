"""The partitioning of the provenance graph's view into slots.

Each vertex has a home slot, where its relations begin; if there are many, a partitioner decides which slot
has which of them::

    with fieldstone.open("memory:") as store:
        g = store.graph
        for i in range(100):
            g.put_edge("write", ("job", "17"), ("file", f"/data/{i}.nc"))
        parts = g.partition(slots=4, threshold=16)
        assert len(parts) == 4 and parts.splits > 0
        assert g.travel().v(("job", "17")).e("write").run(engine="async").count() == 100
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Slot:
    """The contents of a slot: `segments`; `vertices` and versions of `relations` that leave one, counted in
    each segment; `nbytes`."""

    __slots__ = ("nbytes", "number", "relations", "segments", "vertices")

    def __init__(self, number: int, row: tuple[int, int, int, int]) -> None:
        self.number = number
        self.segments, self.vertices, self.relations, self.nbytes = row

    def __repr__(self) -> str:
        return f"<fieldstone.Slot {self.number}: {self.relations} relations, {self.nbytes} bytes>"


class Partitions:
    """The partitioning of the view: number of slots (`len`), `partitioner`, `threshold`, `labels`; iterating
    gives its slots. `splits`: partitions of split vertices; `unfinished`: those from which something may
    still move. Made by ``g.partition`` and ``g.partitions``.
    """

    def __init__(self, row: tuple[Any, ...]) -> None:
        (_, self.partitioner, self.threshold, self.labels), slots, self.splits, self.unfinished = row
        self.slots = [Slot(number, slot) for number, slot in enumerate(slots)]

    def __len__(self) -> int:
        return len(self.slots)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self.slots)

    def __getitem__(self, number: int) -> Slot:
        return self.slots[number]

    def __str__(self) -> str:
        lines = ["slot  segments  vertices relations       bytes"]
        for s in self.slots:
            lines.append(f"{s.number:4} {s.segments:9} {s.vertices:9} {s.relations:9} {s.nbytes:11}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<fieldstone.Partitions {len(self)} slots by {self.partitioner}, threshold {self.threshold}: "
            f"{self.splits} splits>"
        )


class SlotStep:
    """The work of a slot in one hop of one round of a traversal: `frontier` and `reached` vertices at home in
    it; `relations` that it read; `requests`: vertices whose relations it requested from another slot;
    `forwards`: relations that it read whose far end is at home elsewhere; `messages` and `nbytes` that it
    sent to slots; seconds in `vertex_time`, `edge_time` and `prefetch_time`; `prefetched` vertices whose
    relations it read before their step."""

    __slots__ = (
        "edge_time",
        "forwards",
        "frontier",
        "hop",
        "messages",
        "nbytes",
        "prefetch_time",
        "prefetched",
        "reached",
        "relations",
        "requests",
        "round",
        "slot",
        "vertex_time",
    )

    def __init__(self, row: tuple[Any, ...]) -> None:
        (self.slot, self.hop, self.round), counts, sent, seconds = row
        self.frontier, self.reached, self.relations, self.requests, self.forwards = counts
        self.messages, self.nbytes, self.prefetched = sent
        self.vertex_time, self.edge_time, self.prefetch_time = seconds

    def __repr__(self) -> str:
        return (
            f"<fieldstone.SlotStep slot {self.slot}, hop {self.hop} of round {self.round}: {self.frontier} "
            f"to {self.reached} vertices, {self.relations} relations read>"
        )

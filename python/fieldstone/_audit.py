"""Results of ``g.audit``, the actions of users, and of ``g.compare``, the differences of executions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from ._lineage import subject
from ._native import _audit_graph, _compare_lineages
from .errors import Invalid

if TYPE_CHECKING:  # pyarrow is optional; the others are imported where they are used
    import pyarrow as pa

    from ._graph import Stamp
    from ._native import _Graph


class Difference:
    """A fact that differs: its kind, its name, and one value for each, None if it has none."""

    __slots__ = ("name", "values", "what")

    def __init__(self, what: str, name: str, values: list[str | None]) -> None:
        self.what, self.name, self.values = what, name, values

    def __repr__(self) -> str:
        return f"<fieldstone.Difference {self.what} {self.name}: {' | '.join(map(str, self.values))}>"


class Action:
    """One action: its time, user and execution, its kind ("run", "exe", "read" or "write"), and its object.
    An action without an execution names its commit instead; its kind is "archive", "declare", "annotate",
    "delete", "wipe", "erase", "retain", "hide", "unhide", "lock", "unlock", "overlay", "end-overlay",
    "hand-over", "accept", "repoint", "end", "commit", "abort" or "activate", or "unreadable" if damage hides
    it."""

    __slots__ = ("action", "execution", "object", "stamp", "time", "user")

    def __init__(self, row: tuple[Any, ...]) -> None:
        from ._graph import Stamp

        stamp, time, self.user, self.execution, self.action, self.object = row
        self.stamp: Stamp = Stamp(stamp)
        seconds, rest = divmod(time, 1_000_000_000)
        self.time = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)

    def __repr__(self) -> str:
        return (
            f"<fieldstone.Action {self.time:%Y-%m-%d %H:%M:%S} {self.user} {':'.join(self.execution)} "
            f"{self.action} {':'.join(self.object)}>"
        )


class Audit(Sequence[Action]):
    """The actions of users, by time. Made by ``g.audit``; a sequence of its rows.

    `rows` are the actions, `derived` the vertices that came from the file, in causal order, the nearest
    first; `truncated` says whether there are more.
    """

    def __init__(self, row: tuple[list[tuple[Any, ...]], list[tuple[str, str]], bool]) -> None:
        rows, self.derived, self.truncated = row
        self.rows = [Action(one) for one in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[Action]:
        return iter(self.rows)

    def __repr__(self) -> str:
        derived = f", {len(self.derived)} vertices derived" if self.derived else ""
        return f"<fieldstone.Audit: {len(self.rows)} actions{derived}>"

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table: time, user, execution, action, object; vertices as ``type:id``."""
        import pyarrow as pa

        rows = self.rows
        return pa.table(
            {
                "time": pa.array([row.time for row in rows], pa.timestamp("us", "UTC")),
                "user": pa.array([row.user for row in rows], pa.string()),
                "execution": pa.array([":".join(row.execution) for row in rows], pa.string()),
                "action": pa.array([row.action for row in rows], pa.string()),
                "object": pa.array([":".join(row.object) for row in rows], pa.string()),
            }
        )

    def _repr_html_(self) -> str:
        names = ("time", "user", "execution", "action", "object")
        head = "".join(f"<th>{name}</th>" for name in names)
        lines = []
        for row in self.rows[:100]:
            execution, object = ":".join(row.execution), ":".join(row.object)
            cells = (row.time.isoformat(), row.user, execution, row.action, object)
            lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
        more = f"<p>{len(self.rows)} actions in all</p>" if len(self.rows) > 100 else ""
        return f"<table><tr>{head}</tr>{''.join(lines)}</table>{more}"


def differences(graph: _Graph, each: tuple[Any, ...]) -> list[Difference]:
    """The differences between several executions."""
    if len(each) < 2:
        raise Invalid(f"compare with {len(each)} given", "give two or more: g.compare(a, b)")
    return [Difference(*row) for row in _compare_lineages(graph, [subject(x) for x in each])]


def audited(graph: _Graph, user: Any, file: Any, since: int | None, until: int | None) -> Audit:
    """An audit of a user, a file, or both."""
    if user is not None:
        if isinstance(user, bool) or not (isinstance(user, str) or hasattr(user, "__index__")):
            raise Invalid(f"user is {user!r}", "give the name of a user, or the uid")
        user = user if isinstance(user, str) else str(user.__index__())
    if isinstance(file, (str, os.PathLike)):
        file = ("file", os.path.realpath(file))
    return Audit(_audit_graph(graph, user, file, since, until))

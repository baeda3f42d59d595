"""Hand-overs (spec/takeovers.md, 6.6) for the small reader: whose something is at a stamp."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

HAND_OVER, NOW = 0x0307, 2**64 - 1


class HandOvers:
    """The hand-overs of a store."""

    def __init__(self, path: Path) -> None:
        self.path, self.made = path, []

    def take(self, reader: SimpleNamespace, body: bytes, user: int, order: tuple) -> None:
        """A hand-over in a log of a user; those of subjects concern nothing that this reader finds."""
        with reader.parts_of(body, "hand-over") as c:
            old, new = reader.Log.owner_of(c), reader.Log.owner_of(c)
        if len(old) == len(new) == 1 and old != new:
            self.made.append((order, user, old[0], new[0]))

    def above(self) -> set[int]:
        """Root and the owner of the folder of logs."""
        return {0, (self.path / "logs").stat().st_uid}

    def owner(self, user: int, made: int, at: int = NOW) -> int:
        """To whom belongs at a stamp what a user made by a commit with the stamp `made`."""
        above = self.above() if self.made else set()
        for (stamp, *_), by, old, new in sorted(self.made):
            if by in above and made < stamp <= at and old == user:
                user = new
        return user


class Owners:
    """Owners of datasets, from the commits into them, oldest first: stamp, writer, dataset, user."""

    def __init__(self, handed: HandOvers, oldest: list[tuple]) -> None:
        self.handed, self.first = handed, {}
        for stamp, _writer, dataset, user in oldest:
            self.first.setdefault(dataset, (user, stamp))

    def at(self, dataset: bytes, stamp: int = NOW) -> int | None:
        """The owner of a dataset at a stamp; none where nobody owns it."""
        first = self.first.get(dataset)
        return self.handed.owner(*first, stamp) if first else None

    def counts(self, e: object, dataset: bytes) -> bool:
        """Whether an entry counts: its user owned the dataset at the stamp of its commit."""
        return self.at(dataset, e.stamp) == e.log.owner

"""Wipes and hides (spec/takeovers.md, 6.1, 6.2) for the small reader: which entries a range hides.

`Wipes` collects the ranges of logs and takeovers, and says of an entry whether it is hidden ("yes"), or old
enough for a wipe with an age ("aged"), which hides whole generations alone.
"""

from __future__ import annotations

from types import SimpleNamespace

import overlays
from handed import HAND_OVER, HandOvers, Owners
from indexed import opened  # noqa: F401 - the reader calls it

RANGE, WIPE, HIDE, END, ABSENT = 0x0303, 1, 2, 3, b"\1"


def parse_version(reader: SimpleNamespace, data: bytes) -> SimpleNamespace:
    """A version in a record: numbers of takeovers by user, and sequences by the first bytes of ids."""
    letter = data[:1].decode()
    reader.check(letter in "vwtT" and letter, f"a version of form {letter!r}")
    size, numbers = (16 if letter in "wT" else 8), {}
    with reader.parts_of(data[1:], "version of a range") as c:
        if letter in "tT":
            for _ in range(c.one("v")):
                form = c.one("B")
                owner = c.one("v") if form == 1 else c.take(8)
                numbers[owner] = c.get("vQ")
        logs = dict((c.take(size), c.one("v")) for _ in range(c.one("v")))
    return SimpleNamespace(numbers=numbers, logs=logs, size=size)


def time_of(stamp: int, coded: int) -> int:
    """The time of a commit, which is coded as its difference from the stamp (6.2)."""
    difference = coded >> 1 if not coded & 1 else -(coded >> 1) - 1
    time = (stamp + difference) % 2**64
    return time - 2**64 if time >= 2**63 else time


class Wipes:
    """The wipes of a store."""

    def __init__(self, reader: SimpleNamespace, store: object) -> None:
        self.reader, self.store, self.all, self.ends, self.overlays = reader, store, [], [], []
        self.handed = HandOvers(store.path)

    def take_frame(self, log: SimpleNamespace, side: tuple, order: tuple) -> None:
        """The ranges among the side records of a frame."""
        self.take_all(log.read(*side[:3]), side[3], log.owner, order)

    def take_all(self, data: bytes, count: int, user: int, order: tuple) -> None:
        """The ranges among side records (store-format.md, 4.3)."""
        with self.reader.parts_of(data, "side records") as c:
            for low, high, record in (c.get("BBb") for _ in range(count)):
                kind = low | high << 8
                if kind not in (RANGE, HAND_OVER):
                    continue
                body = record[1:]
                if record[0] == 1:
                    import zstandard

                    head = self.reader.Cursor(body)
                    length = head.one("v")
                    body = zstandard.ZstdDecompressor().stream_reader(body[head.at :]).read(length + 1)
                if kind == HAND_OVER:
                    self.handed.take(self.reader, body, user, order)
                else:
                    self.take(body, user, order)

    def take(self, body: bytes, user: int, order: tuple) -> None:
        """A range; only wipes, hides, ends of hides, and overlays decide on what is visible."""
        with self.reader.parts_of(body, "range") as c:
            action = c.one("B")
            items = []
            for level, keyword, values in ((*c.get("Bt"), c.list("b")) for _ in range(c.one("v"))):
                items.append((level, keyword, {value for (value,) in values}))
            version, age = c.one("b"), c.one("Q") if c.one("f") else None
            ended = c.one("B") if action == END else 0
            is_end = ended == HIDE
            if overlays.OVERLAY in (action, ended):
                one = SimpleNamespace(order=order, user=user, items=items, is_end=action == END)
                self.overlays.append(overlays.take(self.reader, c, one))
            if action not in (WIPE, HIDE):
                c.at = len(body)
        if not all(level < 2 for level, *_ in items) or not (is_end or action in (WIPE, HIDE)):
            return
        one = SimpleNamespace(order=order, user=user, items=items, action=action, age=age, ended_for=set())
        if is_end:
            self.ends.append(one)
            return
        one.version = parse_version(self.reader, version)
        self.all.append(one)

    def end_hides(self, above: set) -> None:
        """Each end ends the newest hide before it with its selection: for all, or for its user's entries."""
        for end in sorted(self.ends, key=lambda end: end.order):
            for hide in sorted(self.all, key=lambda one: one.order, reverse=True):
                is_its = hide.action == HIDE and hide.order < end.order and hide.items == end.items
                if not is_its or end.user in {user for user, _stamp in hide.ended_for}:
                    continue
                own = self.handed.owner(hide.user, hide.order[0], end.order[0])
                if end.user in above or (hide.user not in above and end.user == own):
                    self.all.remove(hide)
                else:
                    hide.ended_for.add((end.user, end.order[0]))
                break
        self.ends = []

    def overlaid(self, fields: dict, owners: Owners) -> dict:
        """Fields by key, those that overlays show among them."""
        above = {0, (self.store.path / "logs").stat().st_uid}
        return overlays.shown(self.reader, self.overlays, above, fields, owners)

    def levels(self, key: bytes) -> list[dict[str, bytes]]:
        """Keywords of the first two levels with their encoded values."""
        found = []
        with self.reader.parts_of(key, "key") as c:
            for level in range(3):
                self.reader.check(c.take(1) == b"\2", "level without a start")
                names, values = [], {}
                while c.data[c.at] != 3:
                    names.append(c.one("T"))
                c.take(1)
                for name in names:
                    begin = c.at
                    c.one("V")
                    values[name] = c.data[begin : c.at]
                found += [values] if level < 2 else []
        return found

    def number(self, version: SimpleNamespace, user: int) -> int:
        # The digest distinguishes other takeovers of this number, which no store of ours has.
        return version.numbers.get(user, (0, 0))[0]

    def holds(self, version: SimpleNamespace, log: object, sequence: int) -> bool:
        """Whether a version has a commit (7.5)."""
        taken = getattr(log, "taken", 0)
        named = version.logs.get(log.writer[: version.size], 0)
        return 0 < taken <= self.number(version, log.owner) or sequence <= named

    def shows(self, version: SimpleNamespace, e: object) -> bool:
        """Whether a version shows an entry."""
        if not self.holds(version, e.log, e.number):
            return False
        if not e.txn:
            return True
        logs = {
            (log.owner, log.writer): log
            for log in [*self.store.logs.values(), *self.store.taken.logs.values()]
        }

        def held(decision: tuple) -> bool:
            stamp, writer, *_ = decision
            log = logs.get((e.log.owner, writer))
            sequence = self.store.sequences.get((stamp, writer))
            if sequence is not None:
                return log is not None and self.holds(version, log, sequence)
            taken = getattr(log, "taken", 0)  # forgotten: the stamp alone says which commit it is
            upto = version.logs.get(writer[: version.size], 0)
            of_log = self.store.taken.stamps.get(writer, [])
            beyond = [known for number, known in of_log if number > upto]
            return 0 < taken <= self.number(version, e.log.owner) or all(known > stamp for known in beyond)

        return self.store.order(e, held) is not None

    def says(self, e: object, order: tuple) -> str:
        """Their word on a visible entry."""
        said, levels = "", None
        above = {0, (self.store.path / "logs").stat().st_uid}
        if self.ends:
            self.end_hides(above)
        for wipe in self.all:
            if wipe.user not in {*above, self.handed.owner(e.log.owner, e.stamp, wipe.order[0])}:
                continue
            if any(by == self.handed.owner(e.log.owner, e.stamp, at) for by, at in wipe.ended_for):
                continue
            levels = levels or self.levels(e.key)
            selected = all(levels[level].get(name, ABSENT) in values for level, name, values in wipe.items)
            if not selected or not self.shows(wipe.version, e):
                continue
            if wipe.age is None:
                return "yes"
            stamp = order[0] if not e.origin else 0
            said = "aged" if max(e.time, e.stamp, stamp) < wipe.age else said
        return said

    def leave(self, newest_first: list) -> list:
        """The entries of a key that wipes leave (14, step 6); those of attempts go on naming them."""
        said = [self.says(e, self.store.order(e)) for e in newest_first]
        begin = 0
        for at, e in enumerate(newest_first):
            if e.flags & 2 or at + 1 == len(said):  # a generation ends
                stays = any(not said[n] and newest_first[n].place[0] != 9 for n in range(begin, at + 1))
                said[begin : at + 1] = [
                    ("" if stays else "yes") if one == "aged" else one for one in said[begin : at + 1]
                ]
                begin = at + 1

        def left(e: object) -> object:
            attempt = () if e.origin else self.store.attempt(e)
            return e._replace(place=(9, "", *attempt)) if attempt else None

        pairs = zip(newest_first, said, strict=True)
        return [e for e in (left(e) if one else e for e, one in pairs) if e]

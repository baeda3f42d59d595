"""Attributes in plain SQLite tables: the two best layouts of the research before this catalog was built.

`Store` clusters the rows by (run, tag, step, variable); `Curve` keeps them by number, with an index on one
key of a space-filling curve (level and Morton code of the box). Both go through Python's own module.
"""

from __future__ import annotations

import functools
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from volume import (
    RUN,
    RUN_TAGS,
    RUN_VALUE_ABOVE,
    STEPS,
    TAGS,
    THREE,
    VALUE_ABOVE,
    VARIABLES,
    Box,
    Columns,
    Volume,
)

if TYPE_CHECKING:
    import numpy as np

_TAG = {tag.name: i for i, tag in enumerate(TAGS)}
_RUN_TAG = {name: 100 + i for i, name in enumerate(RUN_TAGS)}
_KINDS = {"bool": 1, "float": 2, "text": 3, "int_range": 4}
_COLUMNS = "a.id, a.step, a.variable, x0, x1, y0, y1, z0, z1, a.kind, a.num, a.first, a.last, a.text"
_OVERLAPS = " AND x0 < :x1 AND x1 > :x0 AND y0 < :y1 AND y1 > :y0 AND z0 < :z1 AND z1 > :z0"
_TEMPERATURE = "(SELECT variable FROM variable WHERE run = 0 AND name = 'temperature')"
_LEVELS = 6


def _definition(clustered: bool) -> str:
    key = "id INTEGER NOT NULL" if clustered else "id INTEGER PRIMARY KEY"
    end = ", PRIMARY KEY(run, tag, step, variable, id)) WITHOUT ROWID" if clustered else ", curve INTEGER)"
    index = (
        ""
        if clustered
        else "CREATE INDEX series ON attr(run, tag, step, variable);"
        "CREATE INDEX curves ON attr(run, tag, step, curve);"
    )
    return f"""
        CREATE TABLE run(run INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE variable(variable INTEGER PRIMARY KEY, run INTEGER, name TEXT);
        CREATE TABLE tag(tag INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE run_attr(id INTEGER PRIMARY KEY, run INTEGER, tag INTEGER, num REAL);
        CREATE TABLE attr({key}, run INTEGER NOT NULL, step INTEGER NOT NULL, variable INTEGER NOT NULL,
          tag INTEGER NOT NULL, x0 INTEGER, x1 INTEGER, y0 INTEGER, y1 INTEGER, z0 INTEGER, z1 INTEGER,
          kind INTEGER NOT NULL, num REAL, first INTEGER, last INTEGER, text TEXT{end};
        {index}
        CREATE INDEX number ON attr(tag, num);
        CREATE INDEX run_number ON run_attr(tag, num);
    """


def _rows(columns: Columns, first_id: int) -> Iterator[tuple[Any, ...]]:
    low = columns.start
    box = zip(
        *(c for d in range(3) for c in (low[:, d].tolist(), (low[:, d] + columns.count[:, d]).tolist())),
        strict=True,
    )
    kind, tag, step = columns.tag.kind, _TAG[columns.tag.name], columns.step
    values = columns.values if kind == "text" else columns.values.tolist()
    for i, (variable, b, value) in enumerate(zip(columns.variable.tolist(), box, values, strict=True)):
        num, first, last, text = {
            "bool": lambda v: (int(v), int(v), None, None),
            "float": lambda v: (v, None, None, None),
            "text": lambda v: (None, None, None, v),
            "int_range": lambda v: (v[0], v[0], v[1], None),
        }[kind](value)
        yield first_id + i, 0, step, variable, tag, *b, _KINDS[kind], num, first, last, text


class Store:
    """One open catalog: a file below `root`."""

    clustered = True

    def __init__(self, root: Path, volume: Volume) -> None:
        self.path, self.volume = root / "catalog.db", volume
        self.db = sqlite3.connect(self.path, isolation_level=None) if self.path.exists() else None
        if self.db:
            self._tune()

    def _tune(self) -> None:
        assert self.db
        self.db.execute("PRAGMA cache_size = -65536")
        self.db.execute("PRAGMA synchronous = NORMAL")

    def create(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self._tune()
        self.db.executescript(_definition(self.clustered))
        self.db.executemany(
            "INSERT INTO tag VALUES (?, ?)",
            [*((i, t.name) for i, t in enumerate(TAGS)), *((n, name) for name, n in _RUN_TAG.items())],
        )
        self.db.executemany("INSERT INTO variable VALUES (?, 0, ?)", enumerate(VARIABLES))
        self.db.execute("INSERT INTO run VALUES (0, ?)", (RUN,))
        self.next = 0

    def fill(self) -> int:
        self.create()
        for step, tags in enumerate(self.volume.steps()):
            self.insert(step, tags)
        self.runs()
        return self.next

    def insert(self, step: int, tags: list[Columns]) -> int:
        """One transaction; sorts the rows first if the table is clustered."""
        assert self.db
        rows: list[tuple[Any, ...]] = []
        for columns in tags:
            new = list(_rows(columns, self.next + len(rows)))
            if not self.clustered:
                keys = curve(columns.start, columns.count, self.volume).tolist()
                new = [(*row, key) for row, key in zip(new, keys, strict=True)]
            rows += new
        if self.clustered:
            rows.sort(key=lambda r: (r[4], r[3], r[0]))
        self.next += len(rows)
        self.db.execute("BEGIN")
        self.db.executemany(f"INSERT INTO attr VALUES ({','.join('?' * len(rows[0]))})", rows)
        self.db.execute("COMMIT")
        return len(rows)

    def runs(self) -> None:
        assert self.db
        self.db.execute("BEGIN")
        for number, (name, attributes) in enumerate(self.volume.small_runs(), 1):
            self.db.execute("INSERT INTO run VALUES (?, ?)", (number, name))
            self.db.executemany(
                "INSERT INTO run_attr(run, tag, num) VALUES (?, ?, ?)",
                [(number, _RUN_TAG[tag], value) for tag, value in attributes.items()],
            )
        self.db.execute("COMMIT")
        self.db.execute("ANALYZE")
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def sizes(self) -> dict[str, float]:
        assert self.db
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return {"engine": self.path.stat().st_size}

    def _get(self, sql: str, **parameters: Any) -> int:
        assert self.db
        return len(self.db.execute(sql, parameters).fetchall())

    @staticmethod
    def _corners(box: Box) -> dict[str, int]:
        return {f"{d}{i}": (box.start, box.stop)[i][n] for n, d in enumerate("xyz") for i in range(2)}

    def _boxed(self, what: str, box: Box, tag: str | None, step: int | None, more: str = "") -> int:
        where = " WHERE a.run = 0"
        where += f" AND a.tag = {_TAG[tag]}" if tag else ""
        where += f" AND a.step = {step}" if step is not None else ""
        return self._get(f"SELECT {what} FROM attr a{where}{more}{_OVERLAPS}", **self._corners(box))

    def q1(self) -> int:
        return self._get(
            f"SELECT {_COLUMNS} FROM attr a WHERE a.run = 0 AND a.step = 1 AND a.tag IN "
            f"(SELECT tag FROM tag WHERE name IN {THREE}) AND a.variable = {_TEMPERATURE}"
        )

    def q2(self) -> int:
        one = f" AND a.variable = {_TEMPERATURE}"
        return self._boxed(_COLUMNS, self.volume.box(), "blob_freq", 1, one)

    def q3(self) -> int:
        sql = f"SELECT {_COLUMNS} FROM attr a WHERE a.tag = :tag AND a.num > :above AND a.run = 0"
        return self._get(sql, tag=_TAG["maximum"], above=VALUE_ABOVE)

    def q4(self) -> int:
        return self._boxed("DISTINCT a.step", self.volume.box(), "blob_rare", None)

    def q5(self) -> int:
        sql = "SELECT r.run, r.name FROM run_attr a JOIN run r USING (run) WHERE a.tag = :tag"
        return self._get(f"{sql} AND a.num > :above", tag=_RUN_TAG["max_temp"], above=RUN_VALUE_ABOVE)

    def q6(self) -> int:
        return self._get(
            f"SELECT {_COLUMNS} FROM attr a WHERE a.run = 0 AND a.step = 1 AND a.tag = :tag AND a.variable "
            "IN (SELECT variable FROM variable WHERE run = 0 AND name LIKE '%velocity%')",
            tag=_TAG["note_ifreq"],
        )

    def x7(self) -> int:
        return self._boxed(_COLUMNS, self.volume.box(), None, 1)

    def x8(self) -> int:
        return self._boxed(_COLUMNS, self.volume.tiny(), "maximum", None)


class Curve(Store):
    clustered = False

    def _boxed(self, what: str, box: Box, tag: str | None, step: int | None, more: str = "") -> int:
        ranges = ",".join(f"({a},{b})" for a, b in curve_ranges(box, self.volume))
        tags = f"(SELECT {_TAG[tag]} tag)" if tag else "(SELECT tag FROM tag WHERE tag < 100)"
        steps = " UNION ALL ".join(f"SELECT {s} step" for s in (range(STEPS) if step is None else [step]))
        sql = (
            f"WITH r(lo, hi) AS (VALUES {ranges}) SELECT {what} FROM {tags} g CROSS JOIN ({steps}) t "
            "CROSS JOIN r CROSS JOIN attr a ON a.run = 0 AND a.tag = g.tag AND a.step = t.step "
            "AND a.curve BETWEEN r.lo AND r.hi"
            f" WHERE 1{more}{_OVERLAPS}"
        )
        return self._get(sql, **self._corners(box))


def curve(start: np.ndarray, count: np.ndarray, volume: Volume) -> np.ndarray:
    """Level and Morton code of the cell of the low corner; a cell's edge is at least the box's."""
    import numpy as np

    edge = max(volume.shape)
    level = np.zeros(len(start), np.int64)
    for deeper in range(1, _LEVELS + 1):
        level = np.where(count.max(axis=1, initial=1) <= edge / 2**deeper, deeper, level)
    cell = (start / (edge / 2.0**level)[:, None]).astype(np.int64)
    code = np.zeros(len(start), np.int64)
    for bit in range(_LEVELS):
        for d in range(3):
            code |= ((cell[:, d] >> bit) & 1) << (3 * bit + d)
    return level << 40 | code


@functools.lru_cache
def curve_ranges(box: Box, volume: Volume, budget: int = 96) -> list[tuple[int, int]]:
    """Ranges of keys of all boxes that may meet this one; they may hold other keys too."""
    edge, ranges = max(volume.shape), []
    for level in range(_LEVELS + 1):
        size = edge / 2**level
        low = [max(0, int(v / size) - 1) for v in box.start]
        high = [min(2**level - 1, int((v - 1) / size)) for v in box.stop]
        stop = 0
        while stop < level and math.prod((high[d] >> stop) - (low[d] >> stop) + 1 for d in range(3)) > budget:
            stop += 1
        merged: list[list[int]] = []
        _split(level, (0, 0, 0), low, high, stop, level, merged)
        ranges += [(a, b) for a, b in merged]
    return ranges


def _split(
    k: int,
    origin: tuple[int, int, int],
    low: list[int],
    high: list[int],
    stop: int,
    level: int,
    into: list[list[int]],
) -> None:
    """Cells of a cube of 2^k cells an edge that lie within low..high; small cubes are not split."""
    n = 1 << k
    if any(origin[d] > high[d] or origin[d] + n - 1 < low[d] for d in range(3)):
        return
    if k <= stop or all(low[d] <= origin[d] and origin[d] + n - 1 <= high[d] for d in range(3)):
        code = sum(((origin[d] >> bit) & 1) << (3 * bit + d) for bit in range(level) for d in range(3))
        first = level << 40 | code
        if into and into[-1][1] + 1 == first:
            into[-1][1] = first + (1 << 3 * k) - 1
        else:
            into.append([first, first + (1 << 3 * k) - 1])
        return
    half = n >> 1
    for z in (0, 1):
        for y in (0, 1):
            for x in (0, 1):
                corner = origin[0] + x * half, origin[1] + y * half, origin[2] + z * half
                _split(k - 1, corner, low, high, stop, level, into)

"""The attributes on which the catalog is measured: the volume of the EMPRESS 2.0 paper (PDSW 2018).

W writers hold a chunk each of ten variables at three steps; ten tags mark them as often as the paper's Table
II says: 2.64 attributes a chunk. In addition there are 200 small runs with four attributes each. Queries are
the paper's patterns, as data: every peer answers them in its own way, and the numbers of rows must agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

VARIABLES = (
    "temperature",
    "pressure",
    "density",
    "velocity_x",
    "velocity_y",
    "velocity_z",
    "vorticity",
    "mass_fraction_o2",
    "mass_fraction_h2",
    "heat_release",
)
RUN, STEPS = "astro3d", 3
CHUNK = 170
"""Edge of a chunk: 170 cubed doubles are the paper's 0.039 GB."""
GRIDS = {64: (4, 4, 4), 1000: (10, 10, 10), 2000: (10, 10, 20), 4000: (10, 20, 20)}
SMALL_RUNS = 200
RUN_TAGS = ("max_temp", "min_temp", "wall_time", "n_steps")

VALUE_ABOVE = 0.999e10
RUN_VALUE_ABOVE = 9900.0
THREE = ("blob_freq", "blob_ifreq", "blob_rare")


@dataclass(frozen=True)
class Tag:
    """A tag: bool, float, text or a pair of integers; on a given percentage of the chunks."""

    name: str
    kind: str
    percent: float

    @property
    def whole_chunk(self) -> bool:
        return self.kind in ("float", "text")


TAGS = (
    Tag("blob_freq", "bool", 25),
    Tag("blob_ifreq", "bool", 5),
    Tag("blob_rare", "bool", 0.1),
    Tag("maximum", "float", 100),
    Tag("minimum", "float", 100),
    Tag("note_freq", "text", 20),
    Tag("note_ifreq", "text", 2.5),
    Tag("note_rare", "text", 0.5),
    Tag("range_ifreq", "int_range", 10),
    Tag("range_rare", "int_range", 1),
)


@dataclass
class Columns:
    """The attributes of one tag at one step, in the order in which many clients send them."""

    tag: Tag
    step: int
    variable: np.ndarray
    """Index into VARIABLES."""
    start: np.ndarray
    count: np.ndarray
    values: Any
    """Array of bools, floats or pairs; a list of texts."""

    def __len__(self) -> int:
        return len(self.variable)


@dataclass(frozen=True)
class Box:
    """A half-open box in elements."""

    start: tuple[int, ...]
    stop: tuple[int, ...]


@dataclass(frozen=True)
class Volume:
    """The attributes of `writers` chunks."""

    writers: int

    @property
    def grid(self) -> tuple[int, int, int]:
        return GRIDS[self.writers]

    @property
    def shape(self) -> tuple[int, int, int]:
        x, y, z = self.grid
        return x * CHUNK, y * CHUNK, z * CHUNK

    def steps(self) -> Iterator[list[Columns]]:
        """For each step, the columns of each tag."""
        import numpy as np

        random = np.random.default_rng(2)
        chunk = np.arange(self.writers)
        x, y, _ = self.grid
        origin = np.stack([chunk % x, chunk // x % y, chunk // (x * y)], 1) * CHUNK
        for step in range(STEPS):
            yield [self._columns(random, tag, step, origin) for tag in TAGS]

    def _columns(self, random: np.random.Generator, tag: Tag, step: int, origin: np.ndarray) -> Columns:
        import numpy as np

        chosen = [np.nonzero(random.random(self.writers) * 100 < tag.percent)[0] for _ in VARIABLES]
        variable = np.repeat(np.arange(len(VARIABLES)), [len(c) for c in chosen])
        low = origin[np.concatenate(chosen)]
        n = len(variable)
        if tag.whole_chunk:
            start, count = low, np.full((n, 3), CHUNK)
        else:
            corners = np.sort(random.integers(0, CHUNK, (2, n, 3)), axis=0)
            start, count = low + corners[0], corners[1] - corners[0] + 1
        values: Any
        if tag.kind == "bool":
            values = random.random(n) < 0.5
        elif tag.kind == "float":
            values = random.random(n) * (1e10 if tag.name == "maximum" else -1e10)
        elif tag.kind == "int_range":
            first = random.integers(0, 2**31 - 20_000, n)
            values = np.stack([first, first + 10_000], 1)
        order = random.permutation(n)
        variable, start, count = variable[order], start[order], count[order]
        if tag.kind == "text":
            values = [f"attr data for var{v} timestep{step}" for v in variable.tolist()]
        else:
            values = values[order]
        return Columns(tag, step, variable, start, count, values)

    def small_runs(self) -> list[tuple[str, dict[str, float]]]:
        """Names of the small runs with their attributes."""
        import numpy as np

        random = np.random.default_rng(1)
        return [
            (f"small{i:03}", dict(zip(RUN_TAGS, (random.random(4) * 1e4).tolist(), strict=True)))
            for i in range(SMALL_RUNS)
        ]

    def box(self, low: float = 0.30, high: float = 0.55) -> Box:
        """A part of every dimension, by default 1/64 of the volume, off the chunks' borders."""
        return Box(tuple(int(n * low) for n in self.shape), tuple(int(n * high) for n in self.shape))

    def tiny(self) -> Box:
        """1/4096 of the volume."""
        return self.box(0.40, 0.4625)


@cache
def volume(writers: int) -> Volume:
    """The volume of `writers` writers."""
    return Volume(writers)


QUERIES = {
    "q1": "three tags of one variable and step",
    "q2": "one tag of one variable and step in 1/64 of the volume",
    "q3": "value above a bound, all steps and variables",
    "q4": "steps with a tag in the box",
    "q5": "runs with an attribute above a bound",
    "q6": "a tag on variables by a part of their name",
    "x7": "everything of a step in 1/64 of the volume",
    "x8": "a dense tag, all steps and variables, in 1/4096",
}

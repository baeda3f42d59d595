"""Attributes in Fieldstone's catalog, through the Python package; results as Arrow tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from volume import (
    RUN,
    RUN_TAGS,
    RUN_VALUE_ABOVE,
    TAGS,
    THREE,
    VALUE_ABOVE,
    VARIABLES,
    Box,
    Columns,
    Volume,
)


class Store:
    """One open store below `root`. Its engine is the embedded one, or that of `engine`, a URL."""

    def __init__(self, root: Path, volume: Volume, engine: str | None = None) -> None:
        import fieldstone as fst
        import pyarrow as pa

        self.fst, self.pa, self.root, self.volume = fst, pa, root, volume
        more = {"catalog": engine} if engine else {}
        self.store = fst.open(str(root), **more)

    def create(self) -> None:
        """The run, its variables and the tags."""
        self.run = self.store.create_run(RUN)
        self.run.create_variables(list(VARIABLES), dtype="f8", shape=self.volume.shape, dims=("x", "y", "z"))
        self.run.create_steps(list(range(3)), [0.1 * step for step in range(3)])
        for tag in TAGS:
            self.store.create_tag(tag.name, type=tag.kind)
        for name in RUN_TAGS:
            self.store.create_tag(name, type="float")
        self.store.flush()

    def fill(self) -> int:
        self.create()
        total = sum(self.insert(step, tags) for step, tags in enumerate(self.volume.steps()))
        self.runs()
        self.applied()
        return total

    def insert(self, step: int, tags: list[Columns]) -> int:
        """One call per tag, one flush per step; the data are durable when it returns."""
        for c in tags:
            names = self.pa.DictionaryArray.from_arrays(
                self.pa.array(c.variable, self.pa.int32()), list(VARIABLES)
            )
            values = list(map(tuple, c.values.tolist())) if c.tag.kind == "int_range" else c.values
            self.run.annotate_many(
                c.tag.name, values, variable=names, step=step, start=c.start, count=c.count
            )
        self.store.flush()
        return sum(map(len, tags))

    def runs(self) -> None:
        for name, attributes in self.volume.small_runs():
            run = self.store.create_run(name)
            for tag, value in attributes.items():
                run.annotate(tag, value)
        self.store.flush()

    def applied(self) -> int:
        """Waits until the engine has everything: only then does it answer a query."""
        return self.store.attributes(run=RUN, tag="blob_rare").count()

    def sizes(self) -> dict[str, float]:
        """Bytes of the engine, and of the rest of the store: logs."""
        self.store.close()
        files = [p for p in self.root.rglob("*") if p.is_file()]
        engine = sum(p.stat().st_size for p in files if "catalog" in p.relative_to(self.root).parts)
        return {"engine": engine, "log": sum(p.stat().st_size for p in files) - engine}

    def visited(self, query: str) -> str:
        """The plan of a query, with the number of visited rows."""
        return str(self._hits(query).explain())

    def _arrow(self, hits: Any) -> int:
        return self.pa.table(hits.to_arrow()).num_rows

    def _box(self, box: Box) -> dict[str, slice]:
        return {d: slice(a, b) for d, a, b in zip("xyz", box.start, box.stop, strict=True)}

    def _hits(self, query: str) -> Any:
        fst, get, box = self.fst, self.store.attributes, self._box(self.volume.box())
        match query:
            case "q1":
                return get(run=RUN, step=1, variable="temperature", tag=list(THREE))
            case "q2":
                return get(run=RUN, step=1, variable="temperature", tag="blob_freq", box=box)
            case "q3":
                return get(run=RUN, tag="maximum", value=fst.above(VALUE_ABOVE))
            case "q4":
                return get(run=RUN, tag="blob_rare", box=box)
            case "q5":
                return get(tag="max_temp", value=fst.above(RUN_VALUE_ABOVE))
            case "q6":
                return get(run=RUN, step=1, tag="note_ifreq", variable="*velocity*")
            case "x7":
                return get(run=RUN, step=1, box=box)
            case "x8":
                return get(run=RUN, tag="maximum", box=self._box(self.volume.tiny()))
        raise KeyError(query)

    def q1(self) -> int:
        return self._arrow(self._hits("q1"))

    def q2(self) -> int:
        return self._arrow(self._hits("q2"))

    def q3(self) -> int:
        return self._arrow(self._hits("q3"))

    def q4(self) -> int:
        return self._arrow(self.store.steps(run=RUN, tag="blob_rare", box=self._box(self.volume.box())))

    def q5(self) -> int:
        return self._arrow(self.store.runs(tag="max_temp", value=self.fst.above(RUN_VALUE_ABOVE)))

    def q6(self) -> int:
        return self._arrow(self._hits("q6"))

    def x7(self) -> int:
        return self._arrow(self._hits("x7"))

    def x8(self) -> int:
        return self._arrow(self._hits("x8"))

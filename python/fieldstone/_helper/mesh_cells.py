"""Turns a file's cells of mixed kinds into rows of nodes; each location keeps the order of the file.

Kinds are VTK's numbers of cell types, which SU2 shares; readers of other formats translate theirs.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from fieldstone._helper.mesh_arrays import damaged, no_mesh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fieldstone._helper.frames import RequestError


@dataclasses.dataclass(frozen=True)
class Kind:
    """A type of cell: its location, its number of nodes (None: any), and which of them are its corners."""

    name: str
    location: str | None
    nodes: int | None
    corners: tuple[int, ...] | None


def _kind(name: str, location: str, nodes: int | None, corners: int | tuple[int, ...]) -> Kind:
    return Kind(name, location, nodes, tuple(range(corners)) if isinstance(corners, int) else corners)


# If `corners` is None, all nodes are corners. A kind without a location is not part of a mesh.
KINDS = {
    0: Kind("empty cell", None, 0, None),
    1: Kind("vertex", "points", 1, None),
    2: Kind("polyvertex", "points", None, None),
    3: _kind("line", "edges", 2, 2),
    4: Kind("polyline", None, None, None),
    5: _kind("triangle", "faces", 3, 3),
    6: Kind("triangle strip", None, None, None),
    7: Kind("polygon", "faces", None, None),
    8: _kind("pixel", "faces", 4, (0, 1, 3, 2)),
    9: _kind("quadrilateral", "faces", 4, 4),
    10: _kind("tetrahedron", "volumes", 4, 4),
    11: _kind("voxel", "volumes", 8, (0, 1, 3, 2, 4, 5, 7, 6)),
    12: _kind("hexahedron", "volumes", 8, 8),
    13: _kind("wedge", "volumes", 6, 6),
    14: _kind("pyramid", "volumes", 5, 5),
    15: Kind("pentagonal prism", None, 10, None),
    16: Kind("hexagonal prism", None, 12, None),
    21: _kind("quadratic edge", "edges", 3, 2),
    22: _kind("quadratic triangle", "faces", 6, 3),
    23: _kind("quadratic quadrilateral", "faces", 8, 4),
    24: _kind("quadratic tetrahedron", "volumes", 10, 4),
    25: _kind("quadratic hexahedron", "volumes", 20, 8),
    26: _kind("quadratic wedge", "volumes", 15, 6),
    27: _kind("quadratic pyramid", "volumes", 13, 5),
    28: _kind("biquadratic quadrilateral", "faces", 9, 4),
    29: _kind("triquadratic hexahedron", "volumes", 27, 8),
    30: _kind("quadratic linear quadrilateral", "faces", 6, 4),
    31: _kind("quadratic linear wedge", "volumes", 12, 6),
    32: _kind("biquadratic quadratic wedge", "volumes", 18, 6),
    33: _kind("biquadratic quadratic hexahedron", "volumes", 24, 8),
    34: _kind("biquadratic triangle", "faces", 7, 3),
    35: _kind("cubic line", "edges", 4, 2),
    36: Kind("quadratic polygon", None, None, None),
    37: _kind("triquadratic pyramid", "volumes", 19, 5),
    41: Kind("convex point set", None, None, None),
    42: Kind("polyhedron", None, None, None),
    68: _kind("Lagrange curve", "edges", None, 2),
    69: _kind("Lagrange triangle", "faces", None, 3),
    70: _kind("Lagrange quadrilateral", "faces", None, 4),
    71: _kind("Lagrange tetrahedron", "volumes", None, 4),
    72: _kind("Lagrange hexahedron", "volumes", None, 8),
    73: _kind("Lagrange wedge", "volumes", None, 6),
    74: _kind("Lagrange pyramid", "volumes", None, 5),
    75: _kind("Bezier curve", "edges", None, 2),
    76: _kind("Bezier triangle", "faces", None, 3),
    77: _kind("Bezier quadrilateral", "faces", None, 4),
    78: _kind("Bezier tetrahedron", "volumes", None, 4),
    79: _kind("Bezier hexahedron", "volumes", None, 8),
    80: _kind("Bezier wedge", "volumes", None, 6),
    81: _kind("Bezier pyramid", "volumes", None, 5),
}
_LEAST = {"points": 1, "edges": 2, "faces": 3, "volumes": 4}
# A cell that represents several, unless it has as many nodes as the simple one.
_SIMPLE = {(4, 2): 3, (6, 3): 5}
_CONVERT = {
    4: "split polylines into lines first",
    6: "split strips into triangles first (vtkTriangleFilter)",
    42: "a mesh can have tetrahedra, pyramids, wedges and hexahedra: split polyhedra into tetrahedra first",
}
_NO_PLACE = (
    "a mesh can have lines, faces of any size, tetrahedra, pyramids, wedges and hexahedra: convert the others"
)
# The edges of a volume as pairs of its corners, by the number of corners.
_VOLUME_EDGES = {
    4: ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)),
    5: ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)),
    6: ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)),
    8: (
        *((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)),
        *((0, 4), (1, 5), (2, 6), (3, 7)),
    ),
}


@dataclasses.dataclass(frozen=True)
class Cells:
    """Cells in the order of a file: VTK's type of each, the begin of its nodes in `nodes`, and their
    number."""

    types: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    nodes: np.ndarray

    @classmethod
    def joined(cls, parts: Iterable[Cells]) -> Cells:
        """The cells of several parts, one after another."""
        parts = list(parts)
        if not parts:
            none = np.zeros(0, np.int64)
            return cls(none, none, none, none)
        before = np.cumsum([0] + [len(part.nodes) for part in parts[:-1]])
        return cls(
            np.concatenate([part.types for part in parts]),
            np.concatenate([part.starts + begin for part, begin in zip(parts, before, strict=True)]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate([part.nodes for part in parts]),
        )

    @classmethod
    def block(cls, type_: int, rows: np.ndarray) -> Cells:
        """Cells of one type, a row of nodes for each."""
        count, width = rows.shape
        sizes = np.full(count, width, np.int64)
        starts = np.arange(count, dtype=np.int64) * width
        return cls(np.full(count, type_, np.int64), starts, sizes, rows.reshape(-1).astype(np.int64))

    def compact(self) -> Cells:
        """The same cells, with only their nodes in `nodes`."""
        starts = np.cumsum(self.sizes) - self.sizes
        places = np.repeat(self.starts - starts, self.sizes) + np.arange(int(self.sizes.sum()))
        return Cells(self.types, starts, self.sizes, self.nodes[places])


def rows_of(
    cells: Cells, path: str, type_name: Callable[[int], str] | None = None
) -> tuple[dict[str, np.ndarray], int]:
    """Rows of nodes by location, in the order of the file, and the number of cells that are points.

    `type_name` is the file's name for a type. RequestError: ``Invalid`` for a type that cannot be part of a
    mesh, and for a cell with too few or too many nodes; both name the cell by its number from 0.
    """
    types = cells.types
    for (strange, size), simple in _SIMPLE.items():
        is_simple = (types == strange) & (cells.sizes == size)
        if is_simple.any():
            types = np.where(is_simple, simple, types)
    present = np.unique(types).tolist()
    for type_ in present:
        _check(cells, types, type_, path, type_name)
    _named(cells, path)
    rows = {}
    for location in ("edges", "faces", "volumes"):
        own = [type_ for type_ in present if KINDS[type_].location == location]
        if own:
            rows[location] = _location(cells, types, own)
    points = sum(int((types == type_).sum()) for type_ in present if KINDS[type_].location == "points")
    return rows, points


def _named(cells: Cells, path: str) -> None:
    """Refuses nodes below 0, which would be taken for padding."""
    if cells.nodes.size and cells.nodes.min() < 0:
        own = cells.compact()
        wrong = np.flatnonzero(own.nodes < 0)
        if len(wrong):
            cell = int(np.searchsorted(own.starts + own.sizes, wrong[0], side="right"))
            raise damaged(path, f"cell {cell} has the node {own.nodes[wrong[0]]}, but nodes count from 0")


def _check(
    cells: Cells, types: np.ndarray, type_: int, path: str, type_name: Callable[[int], str] | None
) -> None:
    def refusal(cell: int, why: str, hint: str = _NO_PLACE) -> RequestError:
        named = type_name(type_) if type_name else f"type {type_}"
        return no_mesh(path, f"cell {cell} is of {named}{why}", hint)

    kind = KINDS.get(type_)
    numbers = np.flatnonzero(types == type_)
    if kind is None:
        raise refusal(int(numbers[0]), ", which is unknown")
    called = f" ({kind.name})" if type_name is None else ""
    if kind.location is None:
        more = f", and so are {len(numbers) - 1} more" if len(numbers) > 1 else ""
        raise refusal(
            int(numbers[0]), f"{called}, which cannot be part of a mesh{more}", _CONVERT.get(type_, _NO_PLACE)
        )
    sizes = cells.sizes[numbers]
    least = max(kind.corners) + 1 if kind.corners else _LEAST[kind.location]
    wrong = np.flatnonzero(sizes != kind.nodes) if kind.nodes is not None else np.flatnonzero(sizes < least)
    if len(wrong):
        due = kind.nodes if kind.nodes is not None else f"at least {least}"
        raise refusal(int(numbers[wrong[0]]), f"{called} and has {sizes[wrong[0]]} nodes instead of {due}")


def _location(cells: Cells, types: np.ndarray, own: list[int]) -> np.ndarray:
    """Rows of the cells of some types."""
    is_own = np.isin(types, own)
    numbers = np.flatnonzero(is_own)
    place = np.cumsum(is_own) - 1
    widths = [
        len(corners) if (corners := KINDS[type_].corners) else _widest(cells, types, type_) for type_ in own
    ]
    rows = np.full((len(numbers), max(widths)), -1, np.int64)
    for type_ in own:
        mine = numbers[types[numbers] == type_] if len(own) > 1 else numbers
        corners = KINDS[type_].corners
        if corners is not None:
            rows[place[mine], : len(corners)] = cells.nodes[cells.starts[mine][:, None] + np.array(corners)]
            continue
        for size in np.unique(cells.sizes[mine]).tolist():
            some = mine[cells.sizes[mine] == size]
            rows[place[some], :size] = cells.nodes[cells.starts[some][:, None] + np.arange(size)]
    return rows


def _widest(cells: Cells, types: np.ndarray, type_: int) -> int:
    return int(cells.sizes[types == type_].max())


def numbered(path: str, cells: Cells, tags: np.ndarray) -> Cells:
    """Replaces the file's numbers of nodes (`tags`) by their positions."""
    count = len(tags)
    if np.array_equal(tags, np.arange(1, count + 1)):
        places, is_known = cells.nodes - 1, (cells.nodes >= 1) & (cells.nodes <= count)
    else:
        order = np.argsort(tags, kind="stable")
        ascending = tags[order]
        twice = np.flatnonzero(ascending[1:] == ascending[:-1])
        if len(twice):
            raise damaged(path, f"two nodes have the number {ascending[twice[0]]}")
        if count == 0:
            is_known = np.zeros(len(cells.nodes), bool)
            places = cells.nodes
        else:
            found = np.minimum(np.searchsorted(ascending, cells.nodes), count - 1)
            places, is_known = order[found], ascending[found] == cells.nodes
    if not is_known.all():
        wrong = int(np.argmin(is_known))
        cell = int(np.searchsorted(cells.starts, wrong, side="right")) - 1
        raise damaged(path, f"element {cell} (from 0) has node {cells.nodes[wrong]}, which does not exist")
    return Cells(cells.types, cells.starts, cells.sizes, places)


def without_marks(
    rows: dict[str, np.ndarray], points: int, are_marks: bool
) -> tuple[dict[str, np.ndarray], list[tuple[str, str]]]:
    """Rows without lines next to faces and volumes, and the list of parts left out with them.

    A mesh's edges are those between its faces, so other lines are not edges of it. `are_marks`: if all lines
    are along edges of cells, they mark boundaries, and neither lines nor points are reported as left out.
    """
    omitted = []
    rows = dict(rows)
    if "edges" in rows and ("faces" in rows or "volumes" in rows):
        lines = rows.pop("edges")
        if not (are_marks and _lie_along(lines, rows)):
            why = "lines next to faces or volumes are not edges of a mesh; ingest them from a separate file"
            omitted.append((f"{len(lines)} line{'s' if len(lines) > 1 else ''}", why))
    if points and not (are_marks and rows):
        what = f"{points} cells that are points" if points > 1 else "1 cell that is a point"
        omitted.append((what, "a mesh only has nodes, edges, faces and volumes"))
    return rows, omitted


def _lie_along(lines: np.ndarray, rows: dict[str, np.ndarray]) -> bool:
    """Whether each line is an edge of a face or a volume."""
    span = 1 + max(int(part.max(initial=0)) for part in (lines, *rows.values()))

    def codes(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        return np.minimum(begin, end) * span + np.maximum(begin, end)

    wanted = codes(lines[:, 0], lines[:, 1])
    for begin, end in _edges_of(rows):
        wanted = wanted[~np.isin(wanted, codes(begin, end))]
        if not len(wanted):
            return True
    return not len(wanted)


def _edges_of(rows: dict[str, np.ndarray]) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    for faces in (rows[name] for name in ("faces",) if name in rows):
        for place in range(faces.shape[1]):
            begin, end = faces[:, place], faces[:, (place + 1) % faces.shape[1]]
            end = np.where(end < 0, faces[:, 0], end)
            is_there = begin >= 0
            yield begin[is_there], end[is_there]
    for volumes in (rows[name] for name in ("volumes",) if name in rows):
        sizes = (volumes >= 0).sum(axis=1)
        for size, pairs in _VOLUME_EDGES.items():
            own = volumes[sizes == size]
            for begin, end in pairs if len(own) else ():
                yield own[:, begin], own[:, end]

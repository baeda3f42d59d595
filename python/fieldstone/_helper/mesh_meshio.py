"""Formats that meshio reads with all cells of a file in order; others are refused by name.

Its result is compared with the file: the number of cells, and kinds that alternate. meshio reads more formats
than these, but drops or regroups cells in some: they are refused by name, with a way out.
"""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.frames import RequestError
from fieldstone._helper.mesh_arrays import MeshArrays, damaged, named, no_mesh, placed, stacked
from fieldstone._helper.mesh_cells import without_marks
from fieldstone._helper.mesh_text import read_text

if TYPE_CHECKING:
    from collections.abc import Callable

# Location and corners of a type of cell, by its name without the number of nodes.
TYPES = {
    "line": ("edges", 2),
    "triangle": ("faces", 3),
    "quad": ("faces", 4),
    "tetra": ("volumes", 4),
    "pyramid": ("volumes", 5),
    "wedge": ("volumes", 6),
    "hexahedron": ("volumes", 8),
}
# Formats that meshio supports and this package refuses, by suffix.
OTHERS = {
    ".msh": "ANSYS Fluent",
    ".cas": "ANSYS Fluent",
    ".cgns": "CGNS",
    ".xml": "DOLFIN",
    ".f3grid": "FLAC3D",
    ".h5m": "MOAB",
    ".hmf": "HMF",
    ".mdpa": "Kratos",
    ".vol": "Netgen",
    ".vol.gz": "Netgen",
    ".post": "PERMAS",
    ".dato": "PERMAS",
    ".svg": "SVG",
    ".dat": "Tecplot",
    ".tec": "Tecplot",
    ".wkt": "WKT",
}
_NASTRAN = re.compile(
    rb"^[ \t]{0,7}C(?!ORD|ONM|MASS|DAMP|ELAS[234]|END|HBDY|ONV|REEP|AERO)[A-Z0-9]+\*?", re.MULTILINE
)


def read(path: str) -> MeshArrays:
    """The mesh of a file. RequestError: ``Invalid`` for an unsupported format, or unsupported cells."""
    extension = os.path.splitext(path)[1].lower()
    if extension not in _FORMATS:
        if name := OTHERS.get(extension):
            raise no_mesh(
                path, f"files of {name} ({extension}) are not supported: cells could be lost unnoticed"
            )
        raise no_mesh(
            path, f"its name ({extension or 'without a suffix'}) and first bytes are of no known format"
        )
    name, check = _FORMATS[extension]
    mesh = _read(path, is_text=extension in _NASTRAN_NAMES)
    check(path, mesh)
    blocks: dict[str, list[np.ndarray]] = {}
    points = 0
    for block in mesh.cells:
        base = block.type.rstrip("0123456789")
        if base == "vertex":
            points += len(block.data)
            continue
        if base not in TYPES:
            raise no_mesh(path, f"it has elements of type {block.type}, which cannot be part of a mesh")
        kind, corners = TYPES[base]
        rows = np.asarray(block.data, dtype=np.int64)
        if rows.ndim != 2 or rows.shape[1] < corners:
            raise damaged(path, f"its elements of type {block.type} lack {corners} corners")
        blocks.setdefault(kind, []).append(
            named(path, rows[:, :corners], f"cell of type {block.type}: number")
        )
    rows, omitted = without_marks({kind: stacked(parts) for kind, parts in blocks.items()}, points, False)
    coordinates = np.asarray(mesh.points, dtype=np.float64)
    if coordinates.ndim != 2 or coordinates.shape[1] not in (1, 2, 3):
        raise damaged(path, "its nodes do not have one to three coordinates")
    return placed(name, list(coordinates.T), rows, omitted=omitted)


def _read(path: str, is_text: bool) -> Any:
    from fieldstone._helper.mesh import package, silence

    meshio = package("meshio")
    with tempfile.TemporaryDirectory() as folder:
        source = path
        if is_text and b"\r" in (content := _content(path)):
            # meshio finds the places of numbers from lines that end with LF.
            source = os.path.join(folder, "lf" + os.path.splitext(path)[1])
            with open(source, "wb") as file:
                file.write(content.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        try:
            with warnings.catch_warnings(), silence() as said:
                warnings.simplefilter("ignore")
                return meshio.read(source)
        except ModuleNotFoundError as error:
            message = f"the Python package {error.name}, which {path} needs, cannot be loaded"
            hint = f"pip install {error.name}"
            raise RequestError("Unavailable", message, hint, "library-missing") from None
        # meshio ends the process if none of the readers for a suffix can read the file.
        except (Exception, SystemExit) as error:
            printed = " ".join(said.getvalue().split()).partition("Error: Couldn't read file")[0].strip()
            reason = f"{type(error).__name__} {' '.join(str(error).split())}".strip()
            if isinstance(error, SystemExit):
                reason = printed or "no reason given"
            raise no_mesh(path, f"meshio does not read it ({reason})") from None


def _content(path: str) -> bytes:
    with open_plain(path) as file:
        return file.read()


# -- checks ------------------------------------------------------------------------------------------------


def _one_kind(path: str, mesh: Any) -> None:
    """Refuses faces or volumes of several kinds if a file keeps each kind separately, in no order."""
    kinds: dict[str, set[str]] = {}
    for block in mesh.cells:
        location, _ = TYPES.get(block.type.rstrip("0123456789"), ("others", 0))
        kinds.setdefault(location, set()).add(block.type)
    for location in ("faces", "volumes"):
        if len(found := sorted(kinds.get(location, ()))) > 1:
            why = f"its {location} are of kinds whose order the file does not give: {', '.join(found)}"
            raise no_mesh(path, why)


def _xdmf(path: str, mesh: Any) -> None:
    """Refuses a count of cells that differs from the file's, and cells of one point among others."""
    from xml.etree import ElementTree

    topologies = [one for one in ElementTree.parse(path).iter() if one.tag.endswith("Topology")]
    if len(topologies) != 1:
        raise no_mesh(path, f"it has {len(topologies)} topologies, but a mesh has one")
    kind = topologies[0].get("TopologyType") or topologies[0].get("Type") or ""
    if kind == "Mixed" and any(block.type == "vertex" for block in mesh.cells):
        raise no_mesh(path, "it has cells of one point among others in a mixed topology")
    said = (topologies[0].get("NumberOfElements") or topologies[0].get("Dimensions") or "").split()
    found = sum(len(block.data) for block in mesh.cells)
    if said and all(word.isdigit() for word in said) and int(np.prod([int(word) for word in said])) != found:
        raise damaged(path, f"it declares {' '.join(said)} cells, but has {found}")


def _nastran(path: str, mesh: Any) -> None:
    """Refuses elements that meshio skips, and nodes in their own coordinate systems."""
    content = read_text(path)
    begin = content.find(b"BEGIN BULK")
    cards = [found[0].strip() for found in _NASTRAN.finditer(content, max(begin, 0))]
    found = sum(len(block.data) for block in mesh.cells)
    if len(cards) != found:
        names = ", ".join(sorted({card.decode() for card in cards})[:12])
        raise no_mesh(path, f"it has {len(cards)} elements ({names}), but only {found} of them can be read")
    systems = mesh.point_data.get("nastran:ref")
    if systems is not None and np.any(np.asarray(systems) != 0):
        raise no_mesh(path, "some of its nodes (GRID) have their own coordinate systems")


_NASTRAN_NAMES = (".bdf", ".fem", ".nas")
_FORMATS: dict[str, tuple[str, Callable[[str, Any], None]]] = {
    ".med": ("MED", _one_kind),
    ".xdmf": ("XDMF", _xdmf),
    ".xmf": ("XDMF", _xdmf),
    **dict.fromkeys(_NASTRAN_NAMES, ("Nastran", _nastran)),
}

"""XDMF of fields on meshes: every place in the text is read from the files and compared."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample

PROGRAM = Path(sys.executable).parent / "fieldstone"
CELLS = {4: "Triangle", 5: "Quadrilateral", 6: "Tetrahedron", 7: "Pyramid", 8: "Wedge", 9: "Hexahedron"}


def item(element: ET.Element, folder: Path) -> np.ndarray:
    """The array of a DataItem, read from its place."""
    assert element.get("Format") == "Binary"
    kind = {"Float": "f", "Int": "i", "UInt": "u", "Char": "i", "UChar": "u", "Short": "i", "UShort": "u"}[
        element.get("NumberType", "")
    ]
    order = {"Big": ">", "Little": "<"}[element.get("Endian", "")]
    dtype = np.dtype(f"{order}{kind}{element.get('Precision')}")
    shape = tuple(map(int, element.get("Dimensions", "").split()))
    path = folder / (element.text or "")
    count = int(np.prod(shape))
    return np.fromfile(path, dtype, count, offset=int(element.get("Seek", ""))).reshape(shape)


def cells(topology: ET.Element, folder: Path) -> list[list[int]]:
    """The nodes of each cell."""
    (data,) = topology
    numbers, kind = item(data, folder), topology.get("TopologyType")
    if kind != "Mixed":
        rows = numbers.reshape(int(topology.get("NumberOfElements", "")), -1)
        nodes = {
            "Triangle": 3,
            "Quadrilateral": 4,
            "Tetrahedron": 4,
            "Pyramid": 5,
            "Wedge": 6,
            "Hexahedron": 8,
        }
        assert rows.shape[1] == nodes.get(kind or "", int(topology.get("NodesPerElement", rows.shape[1])))
        return rows.tolist()
    found, place = [], 0
    sizes = {4: 3, 5: 4, 6: 4, 7: 5, 8: 6, 9: 8}
    while place < len(numbers):
        code = int(numbers[place])
        place += 1
        if code == 3:
            size = int(numbers[place])
            place += 1
        else:
            size = sizes[code]
        found.append(numbers[place : place + size].tolist())
        place += size
    assert len(found) == int(topology.get("NumberOfElements", ""))
    return found


def grids(path: Path) -> Iterator[tuple[str, int, ET.Element]]:
    """Name, step and element of each grid."""
    for series in ET.parse(path).getroot().iterfind("Domain/Grid"):
        assert (series.get("GridType"), series.get("CollectionType")) == ("Collection", "Temporal")
        for grid in series:
            time = grid.find("Time")
            assert time is not None
            yield grid.get("Name", ""), int(time.get("Value", "")), grid


def rows(mesh: fst.JobMesh, kind: str) -> list[list[int]]:
    return [[node for node in row if node >= 0] for row in mesh.read(kind).tolist()]


@pytest.mark.parametrize(
    ("name", "topology", "files"),
    [
        ("cfd/mesh_NACA0012_inv_FFD.su2", "Triangle", 1),
        ("mesh/mug.e", "Hexahedron", 1),
        ("mesh/outCSne8.g", "Quadrilateral", 1),
        ("mesh/mesh_NACA0012_lam_hybrid_v2.su2", "Mixed", 2),
        ("mesh/sphere_mixed.1.lb8.ugrid", "Mixed", 2),
        ("mesh/mesh.QU.1920km.151026.nc", "Mixed", 2),
    ],
)
def test_every_place_holds_what_was_written(name: str, topology: str, files: int, tmp_path: Path) -> None:
    pytest.importorskip("uxarray")
    pytest.importorskip("meshio")
    random = np.random.default_rng(3)
    written: dict[tuple[str, int], np.ndarray] = {}
    with fst.open(tmp_path / "store") as store:
        fst.ingest(store, sample(name), mesh="wing", progress=False)
        counts = {word: n for word, n in store.mesh("wing").counts.items() if n}
        with store.arrays("flow") as job:
            for number, (location, count) in enumerate(counts.items()):
                sets = {
                    f"{location}_p": "f8",
                    f"{location}_v": {"dtype": "f4", "shape": (count, 3)},
                    f"{location}_i": "i2",
                }
                group = job.group(location, sets, mesh="wing", location=location, level=1 + number % 3)
                for step in (0, 5):
                    for one, info in group.sets.items():
                        if step == 5 and one.endswith("_i"):
                            continue  # not at every step
                        shape = (count, *info.shape[1:])
                        written[one, step] = (random.normal(size=shape) * 100).astype(info.dtype)
                        group.write(one, step, written[one, step])
        # If a step is written again, the text has the newer one.
        with store.arrays("flow") as job:
            again = np.arange(counts["node"], dtype="f8")
            job.group("node").write("node_p", 5, again)
            written["node_p", 5] = again
        report = store.run("flow").to_xdmf(tmp_path / "out.xdmf")
    assert len(report.files) == files and report.steps == (0, 5) and report.omitted == ()
    assert sorted(report.variables) == sorted({one for one, _ in written})
    seen = set()
    with fst.open(tmp_path / "store") as store, store.arrays("look") as job:
        mesh = job.mesh("wing")
        main = next(word for word in ("volume", "face", "edge", "node") if counts.get(word))
        for grid_name, step, grid in grids(tmp_path / "out.xdmf"):
            location = main if grid_name == "wing" else grid_name.removeprefix("wing_").removesuffix("s")
            where = grid.find("Topology")
            assert where is not None
            assert location != main or where.get("TopologyType") == topology
            assert cells(where, tmp_path) == rows(mesh, f"{location}s")
            geometry = grid.find("Geometry")
            assert geometry is not None
            axes = [axis for axis in "xyz" if axis in mesh.arrays]
            assert geometry.get("GeometryType") == "_".join(axes).upper()
            for axis, element in zip(axes, geometry, strict=True):
                np.testing.assert_array_equal(item(element, tmp_path), mesh.read(axis))
            for attribute in grid.iterfind("Attribute"):
                one = attribute.get("Name", "")
                at_nodes = one.startswith("node_")
                assert attribute.get("Center") == ("Node" if at_nodes else "Cell")
                assert at_nodes or one.startswith(location)
                assert attribute.get("AttributeType") == ("Vector" if one.endswith("_v") else "Scalar")
                np.testing.assert_array_equal(item(attribute[0], tmp_path), written[one, step])
                seen.add((one, step))
    assert seen == set(written)


def test_points_alone_and_what_cannot_be_shown(tmp_path: Path) -> None:
    with fst.open(tmp_path / "store") as store:
        with store.arrays("flow") as job:
            job.create_mesh("dots", nodes={"x": np.arange(4.0), "y": np.zeros(4)})
            job.create_mesh("line", nodes={"x": np.arange(3.0), "y": np.zeros(3)}, edges=[[0, 1], [1, 2]])
            dots = job.group(
                "d",
                {"a<&": "f8", "turned": {"dtype": "f8", "shape": (4, 2)}},
                mesh="dots",
                location="node",
                order="F",
            )
            dots.write("a<&", 0, np.arange(4.0))
            dots.write("turned", 0, np.ones((4, 2)))
            line = job.group("l", {"e": "u4", "big": "u8"}, mesh="line", location="edge")
            line.write("e", 2, np.array([7, 8], "u4"))
            line.write("big", 2, np.array([7, 8], "u8"))
        run = store.run("flow")
        with pytest.raises(fst.Invalid, match="several meshes") as caught:
            run.to_xdmf(tmp_path / "x.xdmf")
        assert "dots, line" in str(caught.value.hint)
        with pytest.raises(fst.NotFound, match="'tail'"):
            run.to_xdmf(tmp_path / "x.xdmf", mesh="tail")
        report = run.to_xdmf(tmp_path / "x.xdmf", mesh="dots")
        assert report.variables == ("a<&",)
        ((what, why),) = report.omitted
        assert what == "turned" and 'order="F"' in why
        ((_, step, grid),) = grids(tmp_path / "x.xdmf")
        topology = grid.find("Topology")
        assert topology is not None and topology.get("TopologyType") == "Polyvertex"
        assert (step, cells(topology, tmp_path)) == (0, [[0], [1], [2], [3]])
    out = tmp_path / "deep" / "line.xdmf"
    out.parent.mkdir()
    words = ["mesh", tmp_path / "store", "line", "--xdmf", "flow", "-o", out, "--json"]
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    (omitted,) = said.pop("omitted")
    assert omitted["what"] == "big" and "uint64" in omitted["why"]
    assert said == {"files": [str(out)], "variables": ["e"], "steps": [2]}
    ((_, _, grid),) = grids(out)
    topology, attribute = grid.find("Topology"), grid.find("Attribute")
    assert topology is not None and attribute is not None
    assert (topology.get("TopologyType"), cells(topology, out.parent)) == ("Polyline", [[0, 1], [1, 2]])
    assert item(attribute[0], out.parent).tolist() == [7, 8]

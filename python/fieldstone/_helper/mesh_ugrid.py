"""Meshes in netCDF files with UGRID's conventions: https://ugrid-conventions.github.io/ugrid-conventions/"""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldstone._helper.mesh_arrays import MeshArrays, no_mesh

_LOCATIONS = (("edges", "edge"), ("faces", "face"), ("volumes", "volume"))
_LATITUDE_UNITS = ("degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN")
_KEPT = ("standard_name", "long_name", "units", "axis", "positive")


def read(dataset: Any, topologies: list[str], path: str) -> MeshArrays:
    """The first mesh of a file. RequestError: ``Invalid`` if its topology is incomplete."""
    name = topologies[0]
    topology = dataset[name].attrs
    names = _coordinates(dataset, name, path)
    nodes = {axis: floats(dataset[one]) for axis, one in zip("xyz", names, strict=False)}
    if len({len(values) for values in nodes.values()}) != 1:
        raise no_mesh(path, f"node_coordinates of `{name}` have different lengths")
    node_attrs = {
        axis: {key: value for key, value in dataset[one].attrs.items() if key in _KEPT}
        for axis, one in zip("xyz", names, strict=False)
    }
    rows = {}
    dimension = int(topology.get("topology_dimension", 0))
    for number, (kind, attribute) in enumerate(_LOCATIONS, start=1):
        variable = topology.get(f"{attribute}_node_connectivity")
        if variable in dataset.variables:
            along = topology.get(f"{attribute}_dimension")
            rows[kind] = _connectivity(dataset, variable, along, len(nodes["x"]), path, kind)
        # A topology may name variables that a reduced file lacks, except for those of its own dimension.
        elif number == dimension:
            raise no_mesh(
                path, f"`{name}` has no {attribute}_node_connectivity, but topology_dimension {dimension}"
            )
    attrs = {"source_mesh": name}
    if isinstance(topology.get("long_name"), str):
        attrs["long_name"] = topology["long_name"]
    why = f"the file's first mesh is `{name}`; ingest another one from its own file"
    others = [(f"mesh `{other}`", why) for other in topologies[1:]]
    return MeshArrays("UGRID", nodes, **rows, node_attrs=node_attrs, attrs=attrs, omitted=tuple(others))


def _coordinates(dataset: Any, name: str, path: str) -> list[str]:
    """Variables of x, y and, if there is one, z."""
    names = str(dataset[name].attrs.get("node_coordinates", "")).split()
    missing = [one for one in names if one not in dataset.variables]
    if not 2 <= len(names) <= 3 or missing:
        raise no_mesh(path, f"node_coordinates of `{name}` are {names or 'absent'}")
    if _is_second(dataset[names[0]].attrs) and not _is_second(dataset[names[1]].attrs):
        names[:2] = names[1::-1]
    # If a tool only knows two coordinates, a third one is a variable whose attributes show that it is a
    # height.
    third = names[0].removesuffix("_x") + "_z"
    if len(names) == 2 and third in dataset.variables and dataset[third].attrs.get("location") == "node":
        names.append(third)
    return names


def _is_second(attrs: dict[str, Any]) -> bool:
    """Whether a coordinate is a latitude, or the second one of a plane."""
    if attrs.get("standard_name") in ("latitude", "grid_latitude", "projection_y_coordinate"):
        return True
    return attrs.get("units") in _LATITUDE_UNITS or attrs.get("axis") == "Y"


def _connectivity(
    dataset: Any, name: str, dimension: str | None, nodes: int, path: str, kind: str
) -> np.ndarray:
    """Rows of nodes from 0. If a file does not give the number of its first node, its last node shows it."""
    variable = dataset[name]
    entries = variable.values
    if entries.ndim != 2:
        raise no_mesh(path, f"`{name}` has {entries.ndim} dimensions instead of two")
    is_turned = dimension is not None and variable.dims[0] != dimension and variable.dims[-1] == dimension
    if dimension is None and kind == "edges":
        is_turned = entries.shape[0] == 2 != entries.shape[1]
    if is_turned:
        entries = entries.T
    fill = variable.attrs.get("_FillValue", variable.encoding.get("_FillValue"))
    is_missing = entries < 0
    if fill is not None:
        is_missing |= entries == fill
    if entries.dtype.kind == "f":
        is_missing |= ~np.isfinite(entries)
    present = entries[~is_missing]
    is_from_one = present.size > 0 and present.min() >= 1 and present.max() == nodes
    start = int(variable.attrs.get("start_index", 1 if is_from_one else 0))
    is_missing |= entries < start
    return np.where(is_missing, -1, np.where(is_missing, 0, entries).astype(np.int64) - start)


def floats(variable: Any) -> np.ndarray:
    """Values of a variable as float64, in one dimension, with scale and offset."""
    scale, offset = (float(variable.attrs.get(key, d)) for key, d in (("scale_factor", 1), ("add_offset", 0)))
    values = np.asarray(variable.values, dtype=np.float64).reshape(-1)
    return values if (scale, offset) == (1, 0) else values * scale + offset

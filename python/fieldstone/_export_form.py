"""Fits datasets into netCDF formats, and turns datasets without a header into groups and variables.

:func:`adapt` turns a description into one that fits a format and lists the differences; it raises Invalid for
names of things that the format cannot hold at all. In a classic file, groups become paths, escaped as names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

import numpy as np

from ._exported import keys_of
from .errors import Invalid

Facts = dict[str, Any]
MODELS = {
    "netcdf4": ("NETCDF4", "NETCDF4_CLASSIC"),
    "netcdf3": ("NETCDF3_64BIT_OFFSET", "NETCDF3_CLASSIC"),
    "netcdf4-classic": ("NETCDF4_CLASSIC",),
    "cdf1": ("NETCDF3_CLASSIC",),
    "cdf2": ("NETCDF3_64BIT_OFFSET",),
    "cdf5": ("NETCDF3_64BIT_DATA",),
}
"""Values of `format` with netCDF-C's data models: the first is made, unless the source has another of
them."""

SMALL = {"u1": "i2", "u2": "i4", "u4": "i4", "i8": "i4", "u8": "i4"}
"""Replacements for types that the smaller formats lack; a value that does not fit is an error."""

PATHS = ("fieldstone_paths", {"text": "names are paths: . stands for /, ~. for ., ~~ for ~"})
"""The attribute by which a classic file says that its names are paths (``spec/netcdf-classic.md``)."""

SPELLED = str.maketrans({"/": ".", ".": "~.", "~": "~~"})
"""The escapes for a path in a classic file's name."""


def model_of(own: str, format: str | None) -> str:
    """The data model of a file: its own, or the requested one."""
    if own not in {m for models in MODELS.values() for m in models}:
        own = "NETCDF4"
    if format is None or own in MODELS[format]:
        return own
    return MODELS[format][0]


LEGAL_FIRST = re.compile(r"[A-Za-z0-9_\u0080-\U0010ffff]")
ILLEGAL = re.compile(r"[\x00-\x1f\x7f/]|\s$")


def legal(name: str, taken: Collection[str]) -> str:
    """A name that netCDF-C allows to create: HDF5's may begin with any character, and reading allows more
    than creating.
    """
    made = ILLEGAL.sub("_", name)
    if not LEGAL_FIRST.match(made):
        made = f"_{made}"
    while made != name and made in taken:
        made += "_"
    return made


def renamed(groups: list[Facts], told: list[tuple[str, str]]) -> list[Facts]:
    """Groups with names that netCDF-C can create; ``key`` and ``axes`` have the names in the store."""
    paths: dict[str, str] = {"": ""}
    dims: dict[str, str] = {}
    made = []
    siblings: dict[str, list[str]] = {}
    for group in groups:
        parent, _, own = group["path"].rpartition("/")
        siblings.setdefault(parent, []).append(own)

    def name_of(what: str, name: str, taken: Collection[str]) -> str:
        new = legal(name, taken)
        if new != name:
            told.append((what, f"netCDF-C cannot create this name; it becomes {new}"))
        return new

    def attrs_of(where: str, attrs: list[Any]) -> list[Any]:
        names = [a[0] for a in attrs]
        return [[name_of(f"{where}: attribute {n}", n, names), coded] for n, coded in attrs]

    # Groups and dimensions first, because variables refer to them by their new names.
    for group in groups:
        at = group["path"]
        parent, _, own = at.rpartition("/")
        if at:
            paths[at] = join(paths[parent], name_of(at, own, siblings[parent]))
        names = [d["name"] for d in group["dims"]]
        for dim in group["dims"]:
            path = join(at, dim["name"])
            dims[path] = join(paths[at], name_of(f"dimension {path}", dim["name"], names))
    for group in groups:
        at = group["path"]
        names = [v["name"] for v in group["variables"]]
        variables = []
        for facts in group["variables"]:
            where = join(at, facts["name"])
            new = {**facts, "key": where, "axes": facts["dims"], "name": name_of(where, facts["name"], names)}
            new["dims"] = [dims[d] for d in facts["dims"]]
            new["attrs"] = attrs_of(where, facts["attrs"])
            if "enum" in facts:
                home, _, word = facts["enum"].rpartition("/")
                new["enum"] = join(paths[home], word)
            variables.append(new)
        held = [{**d, "name": dims[join(at, d["name"])].rpartition("/")[2]} for d in group["dims"]]
        attrs = attrs_of(at or "the file", group["attrs"])
        made.append({**group, "path": paths[at], "dims": held, "attrs": attrs, "variables": variables})
    return made


def join(at: str, name: str) -> str:
    """Path of a child of a group."""
    return f"{at}/{name}" if at else name


def adapt(
    groups: list[Facts], own: str, format: str | None
) -> tuple[str, list[Facts], list[tuple[str, str]]]:
    """The model, the groups in the form that it can hold, and the differences from the description, with
    reasons."""
    model = model_of(own, format)
    told: list[tuple[str, str]] = []
    groups = renamed(groups, told)
    if model == own:
        return *sound(model, groups, told), told
    if model == "NETCDF4":
        return model, groups, told
    small = model != "NETCDF3_64BIT_DATA"
    groups = [{**g, "attrs": attributes_of(g["attrs"], g["path"] or "the file", small, told)} for g in groups]
    group = groups[0] if len(groups) == 1 else escaped(model, groups, told)
    made: Facts = {"path": "", "dims": [], "attrs": group["attrs"], "variables": []}
    variables = group["variables"]
    # A classic file has one record dimension, which must be the first of every variable that has it.
    unlimited = [d["name"] for d in group["dims"] if d["unlimited"]]
    leads = {v["dims"].index(d) == 0 for v in variables for d in unlimited if d in v["dims"]}
    keep = unlimited if len(unlimited) <= 1 and leads <= {True} else []
    for dim in group["dims"]:
        if dim["unlimited"] and dim["name"] not in keep:
            name = dim.get("key", dim["name"])
            told.append(
                (f"dimension {name}", "not unlimited: the format allows only one, the first dimension")
            )
        made["dims"].append({**dim, "unlimited": dim["name"] in keep})
    for facts in variables:
        made["variables"].append(variable_of(facts, small, made["dims"], told))
    return model, [made], told


def escaped(model: str, groups: list[Facts], told: list[tuple[str, str]]) -> Facts:
    """All groups as one, in which names are paths."""
    if model == "NETCDF4_CLASSIC":
        # No reader treats names of an HDF5 file as paths.
        raise Invalid(
            f"netcdf4-classic has no groups, but the file has {groups[1]['path']}",
            "choose format netcdf4, or cdf5, whose names can be paths",
        )
    made: Facts = {"path": "", "dims": [], "attrs": [], "variables": []}
    for group in groups:
        at = group["path"]
        for dim in group["dims"]:
            path = join(at, dim["name"])
            made["dims"].append({**dim, "key": path, "name": path.translate(SPELLED)})
        made["attrs"] += [[join(at, name).translate(SPELLED), coded] for name, coded in group["attrs"]]
        for facts in group["variables"]:
            name = join(at, facts["name"]).translate(SPELLED)
            dims = [dim.translate(SPELLED) for dim in facts["dims"]]
            made["variables"].append({**facts, "name": name, "dims": dims})
    made["attrs"].append(list(PATHS))
    left = "an empty group is left out, because a path exists only by its contents"
    told += [(group["path"], left) for group in empty(groups)]
    return made


def empty(groups: list[Facts]) -> list[Facts]:
    """Groups that are empty, with all groups below them."""
    held = {""}
    for group in groups:
        path = group["path"]
        if group["dims"] or group["attrs"] or group["variables"]:
            while path not in held:
                held.add(path)
                path = path.rpartition("/")[0]
    return [group for group in groups if group["path"] not in held]


def sound(model: str, groups: list[Facts], told: list[tuple[str, str]]) -> tuple[str, list[Facts]]:
    """A file's own model, or the nearest valid one if the file broke the rules of its format."""
    if model == "NETCDF4":
        return model, groups
    (group,) = groups
    if "64BIT_DATA" not in model and (odd := [v for v in group["variables"] if v["dtype"][1:] in SMALL]):
        told.append((odd[0]["key"], "its type needs CDF-5, so the file is CDF-5"))
        model = "NETCDF3_64BIT_DATA"
    one = any(d["unlimited"] for d in group["dims"])
    dims = []
    for dim in group["dims"]:
        if one and not dim["unlimited"] and dim["length"] == 0:
            told.append((f"dimension {dim['name']}", "a fixed dimension cannot have length 0; it has 1"))
            dim = {**dim, "length": 1}
        dims.append(dim)
    return model, [{**group, "dims": dims}]


def variable_of(facts: Facts, small: bool, dims: list[Facts], told: list[tuple[str, str]]) -> Facts:
    """A variable in the form that a classic model can hold."""
    name = facts["key"]
    held = {k: v for k, v in facts.items() if k not in ("enum", "endian", "nofill")}
    held["attrs"] = attributes_of(facts["attrs"], name, small, told)
    if facts.get("strings"):
        # The convention that xarray and other readers support: UTF-8 characters along a further dimension.
        width = max(1, np.dtype(facts["dtype"]).itemsize)
        dim = f"string{width}"
        if dim not in {d["name"] for d in dims}:
            dims.append({"name": dim, "length": width, "unlimited": False})
        held |= {"dtype": "|S1", "strings": False, "chars": width, "chunks": None, "filters": {}}
        held |= {"dims": [*facts["dims"], dim], "shape": [*facts["shape"], width]}
        held["attrs"] = [a for a in held["attrs"] if a[0] != "_FillValue"]
        held["attrs"].append(["_Encoding", {"text": "utf-8"}])
        told.append((name, "texts become characters of fixed width"))
        return held
    kind = np.dtype(facts["dtype"]).str[1:]
    if small and kind in SMALL:
        held["dtype"] = f"<{SMALL[kind]}"
        told.append((name, f"{kind} becomes {SMALL[kind]}"))
    return held


def attributes_of(attrs: list[Any], where: str, small: bool, told: list[tuple[str, str]]) -> list[Any]:
    """Attributes in the form that a classic model can hold."""
    made = []
    for name, coded in attrs:
        if "strings" in coded:
            told.append((f"{where}: attribute {name}", "strings become characters, one string on each line"))
            coded = {
                **{k: v for k, v in coded.items() if k != "strings"},
                "text": "\n".join(coded["strings"]),
            }
        elif "dtype" in coded and small and (kind := coded["dtype"][1:]) in SMALL:
            bounds = np.iinfo(SMALL[kind])
            if any(not bounds.min <= v <= bounds.max for v in coded["values"]):
                raise Invalid(f"{where}: attribute {name} does not fit {SMALL[kind]}", "choose format cdf5")
            told.append((f"{where}: attribute {name}", f"{kind} becomes {SMALL[kind]}"))
            coded = {"dtype": f"<{SMALL[kind]}", "values": coded["values"]}
        made.append([name, coded])
    return made


def cast(values: np.ndarray, facts: Facts) -> np.ndarray:
    """Values in the type that :func:`variable_of` chose; Invalid if they do not fit."""
    if width := facts.get("chars"):
        texts = np.char.encode(np.atleast_1d(values.astype(str)), "utf-8")
        if texts.dtype.itemsize > width:
            raise Invalid(f"a text of {facts['key']} has more than {width} bytes", "choose format netcdf4")
        return texts.astype(f"S{width}").view("S1").reshape((*values.shape, width))
    dtype = np.dtype(facts["dtype"])
    if (
        values.dtype.kind in "iu"
        and dtype.kind == "i"
        and values.dtype.itemsize >= dtype.itemsize
        and values.size
    ):
        bounds = np.iinfo(dtype)
        if values.max() > bounds.max or values.min() < bounds.min:
            raise Invalid(
                f"values of {facts['key']} do not fit {dtype.name}", "choose format cdf5 or netcdf4"
            )
    return values


def shown(source: Any, request: Any) -> dict[str, Any]:
    """The dataset that the xarray engine shows, in the form of a file's content."""
    try:
        from xarray.coding.strings import CharacterArrayCoder

        from . import xarray_engine
        from ._xarray.encoded import encoded
    except ImportError as error:
        from .errors import Unavailable

        raise Unavailable(f"xarray cannot be loaded: {error}", "pip install 'fieldstone[xarray]'") from None
    dataset = xarray_engine.to_xarray(source.store, request)
    variables, attrs = encoded(dataset)
    # The coder reads all values that it gets, so it gets no numbers.
    coder = CharacterArrayCoder()
    held = {n: v if v.dtype.kind in "iuf" else coder.encode(v, name=n) for n, v in variables.items()}
    unlimited = dataset.encoding.get("unlimited_dims", ())
    sizes = {str(d): n for v in held.values() for d, n in v.sizes.items()}
    sizes = {**{str(d): n for d, n in dataset.sizes.items()}, **sizes}
    dims = [{"name": d, "length": n, "unlimited": d in unlimited} for d, n in sizes.items()]
    described = [facts_of(name, variable) for name, variable in held.items()]
    groups = [{"path": "", "dims": dims, "attrs": coded_all(attrs, "the dataset"), "variables": described}]

    def read(facts: Facts, box: Any) -> np.ndarray:
        start, count = box
        values = np.asarray(
            held[facts["key"]][tuple(slice(s, s + c) for s, c in zip(start, count, strict=False))].values
        )
        return values.astype(str) if values.dtype.kind in "OT" else values

    made = {"name": "export", "suffix": ".nc", "model": "NETCDF4", "groups": groups, "read": read}
    return made | {"keys": keys_of(dataset.variables)}


def facts_of(name: Any, variable: Any) -> Facts:
    """Describes a variable of xarray in the header's terms, as it is in a file."""
    dtype = variable.dtype
    strings = dtype.kind in "OUT"
    if strings:
        dtype = np.asarray(variable.values).astype(str).dtype
        dtype = np.dtype(f"<U{max(1, dtype.itemsize // 4)}")
    elif (dtype.kind == "S" and dtype.itemsize != 1) or dtype.kind not in "iufS":
        raise Invalid(f"netCDF has no type for variable {name}, {dtype}", "leave it out of the request")
    shape = list(variable.shape)
    chunks = chunks_of(variable)
    return {
        "name": str(name),
        "dtype": dtype.newbyteorder("<").str,
        "dims": [str(d) for d in variable.dims],
        "shape": shape,
        "split": False,
        "strings": strings,
        "attrs": coded_all(variable.attrs, str(name)),
        "chunks": chunks if chunks and chunks != shape and 0 not in chunks else None,
        "filters": {},
    }


def chunks_of(variable: Any) -> list[int]:
    """The chunks in which a variable reads best: the first one along a dimension with several sizes."""
    preferred = variable.encoding.get("preferred_chunks") or {}
    chosen = [preferred.get(d, n) for d, n in zip(variable.dims, variable.shape, strict=True)]
    return [int(chunk[0] if isinstance(chunk, tuple) else chunk) for chunk in chosen]


def coded_all(attrs: Any, where: str) -> list[list[Any]]:
    """Attributes of a Dataset; a value without a netCDF type is kept as text."""
    from ._helper import attributes

    coded = []
    for name, value in attrs.items():
        try:
            coded.append([str(name), attributes.encode(value)])
        except TypeError:
            coded.append([str(name), {"text": json.dumps(value, default=str)}])
    return coded

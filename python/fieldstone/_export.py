"""Writes netCDF files from a store: ``store.export`` for everything except unchanged GRIB messages.

* A run with a header (``spec/netcdf-header.md``: an ingested file, a Dataset that ``to_store`` wrote) becomes
  the file that the header describes.
* Array fields archived by key, and GRIB fields, become the dataset that the xarray engine shows.

Invariants:

* the file also holds the metadata of its fields (``spec/exported-metadata.md``); without metadata it has
  nothing more;
* a file is written under a temporary name next to its target and renamed when it is complete;
* everything is read from the one version that was current when the export began;
* the report lists what a file lacks; if one of several files cannot be written, the report lists it and the
  others are written.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from ._export_form import MODELS, adapt, join, shown
from ._exported import KEY, LACK, of_header, of_keys, put, text_part
from ._native import _export_grib, _within, _written
from ._xarray.source import Key, Source
from .errors import Conflict, Corrupt, Error, Invalid, NotFound, Unavailable
from .reports import ExportReport, Skipped

HEADER = "@header"
VERSION = 1
MESSAGES = "messages"
"""The name of the file of GRIB messages next to files of runs."""
Facts = dict[str, Any]
Progress = Callable[[int], object]
REFERENCES = (
    "bounds", "climatology", "coordinates", "grid_mapping", "ancillary_variables", "cell_measures",
    "formula_terms", "mesh", "node_coordinates", "edge_coordinates", "face_coordinates",
    "node_count", "part_node_count", "interior_ring", "geometry", "face_node_connectivity",
    "edge_node_connectivity", "face_edge_connectivity", "edge_face_connectivity", "face_face_connectivity",
)  # fmt: skip
"""Attributes whose words name variables without which a variable is not complete."""


@dataclass
class Content:
    """The contents of one file: variables, or the GRIB messages of a request; or why it cannot be written."""

    name: str
    """The file's name in a folder, without a suffix."""
    suffix: str
    model: str
    groups: list[Facts]
    read: Callable[[Facts, Any], np.ndarray | None]
    lacks: list[tuple[str, str]] = field(default_factory=list)
    base: Key = field(default_factory=dict)
    """The keywords that all its fields have in common."""
    fields: int = 0
    run: str = ""
    """The run's name in messages."""
    messages: Any = None
    failed: Error | None = None
    keys: tuple[Facts, list[str]] = field(default_factory=lambda: ({}, []))
    """The keys of variables that are fields by key, and the variables that are made from keys and
    declarations."""
    text: str | None = None
    """The metadata of its fields that it keeps."""


def export(
    store: Any,
    request: Any,
    path: str | os.PathLike[str],
    format: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ExportReport:
    """Writes what `request` selects to netCDF; see ``Store.export``.

    `progress` is called with the bytes of values written so far.
    """
    if format is not None and format not in MODELS:
        raise Invalid(f"{format!r} is not a format", f"formats: grib, {', '.join(MODELS)}")
    try:
        from . import _netcdf_writer  # noqa: F401
    except ImportError as error:
        hint = "pip install 'fieldstone[netcdf]'"
        raise Unavailable(f"netCDF4 cannot be loaded: {error}", hint, "library-missing") from None
    url = str(getattr(store, "url", ""))
    # A store in memory has no URL that could be opened again, so it is read as it is.
    source = Source(store) if url.startswith("memory:") else Source.open(url, store.version)
    try:
        apart = Path(path).is_dir()
        contents = select(source, request, format, apart)
        if len(contents) > 1 and not apart:
            contents = [joined(source, request, contents)]
        targets = place(Path(path), contents, overwrite)
        return written(source, contents, targets, format, overwrite, progress)
    finally:
        source.close()


def written(
    source: Source,
    contents: list[Content],
    targets: list[Path],
    format: str | None,
    overwrite: bool,
    progress: Progress | None,
) -> ExportReport:
    """Writes every file; each appears whole or not at all.

    If one of several files cannot be written, the report lists it and the others are written; an error of the
    target folder or of the store ends the export.
    """
    skipped: list[Skipped] = []
    files: list[Path] = []
    models: list[str] = []
    total = fields = 0
    for content, target in zip(contents, targets, strict=True):
        try:
            if content.failed is not None:
                raise content.failed
            if content.messages is not None:
                report = _export_grib(source.store, content.messages, target, overwrite)
                model, nbytes, told = "GRIB", report.bytes, []
                if progress is not None:
                    progress(total + nbytes)
            else:
                tell = None if progress is None else lambda n, before=total: progress(before + n)
                model, nbytes, told = write_one(content, target, format, overwrite, tell)
        except (Invalid, Corrupt, NotFound) as error:
            what = f"{content.run}: {error.message}" if content.run else error.message
            if len(contents) == 1:
                raise type(error)(what, error.hint, error.code) from error
            skipped.append(
                Skipped(target, "the file", f"{what} (hint: {error.hint})" if error.hint else what)
            )
            continue
        total += nbytes
        fields += content.fields
        files.append(target)
        models.append(model)
        skipped += [Skipped(target, what, why) for what, why in [*content.lacks, *told]]
    if not files:
        raise Invalid(f"nothing was written: {skipped[0].why}", "export the runs one by one", "nothing-taken")
    return ExportReport(tuple(files), models[-1], fields, total, tuple(skipped))


def write_one(
    content: Content, target: Path, format: str | None, overwrite: bool, progress: Progress | None
) -> tuple[str, int, list[tuple[str, str]]]:
    """Writes one netCDF file; returns its model, the bytes of its values, and what differs from its
    description."""
    from . import _netcdf_writer as writer

    total = 0
    model, groups, told = adapt(content.groups, content.model, format)
    text = content.text
    if text is not None:
        groups = put(model, groups, text)

    def read(facts: Facts, box: Any) -> np.ndarray | None:
        nonlocal total
        if text is not None and facts.get("key") == KEY:
            return text_part(text, box)
        values = content.read(facts, box)
        if values is not None:
            total += values.nbytes
        if progress is not None:
            progress(total)
        return values

    part = target.with_name(f".{target.name}.part-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        told += writer.write(os.fspath(part), model, groups, read)
        put_in_place(part, target, overwrite)
    finally:
        writer.discard(os.fspath(part))
    return model, total, told


def put_in_place(part: Path, target: Path, overwrite: bool) -> None:
    """Makes a written file durable and renames it to its target."""
    try:
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        if overwrite:
            os.replace(part, target)
        else:
            os.link(part, target)
    except FileExistsError:
        raise exists(target) from None
    except OSError as error:
        code = "disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "io-failed"
        raise Unavailable(f"cannot write {target}: {error.strerror or error}", code=code) from None


def exists(target: Path) -> Conflict:
    """The error for a target that exists."""
    return Conflict(f"{target} exists", "give overwrite=True to replace it (--overwrite)", "target-exists")


def place(path: Path, contents: list[Content], overwrite: bool) -> list[Path]:
    """The files to write: `path`, or if that is a folder, one for each content in it."""
    if path.is_dir():
        names = [f"{quote(c.name, safe=' +,=@~()[]')}{c.suffix}" for c in contents]
        targets = [path / name for name in names]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise Invalid(f"several runs would be written to {twice[0]}", "narrow the request")
    else:
        targets = [path]
    if not overwrite and (there := [t for t in targets if os.path.lexists(t)]):
        raise exists(there[0])
    return targets


def joined(source: Source, request: Any, contents: list[Content]) -> Content:
    """Several files as one: the dataset into which the xarray engine joins them."""
    names = sorted(c.name for c in contents)
    some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    try:
        content = Content(**shown(source, request))
        from ._xarray.netcdf import first

        if len(first([c.base for c in contents], True)) < len(contents):
            raise Invalid("some have keywords that others lack")
    except Invalid as error:
        raise Invalid(
            f"the request selects {len(contents)} files: {some}; they cannot be joined: {error.message}",
            "give the path of a folder that exists, or choose one, such as run=…",
        ) from error
    content.lacks = [lack for c in contents for lack in c.lacks]
    if any(c.text for c in contents):
        why = "joined files make a new file; export them into a folder, one file for each"
        content.lacks.append((LACK, why))
    content.fields = sum(c.fields for c in contents)
    return content


def select(source: Source, request: Any, format: str | None, apart: bool) -> list[Content]:
    """The contents that a request selects, file by file; `apart`: kinds of files may be mixed."""
    listed = [dict(e.key) for e in source.store.list({} if request is None else request)]
    if not listed:
        hint = "fieldstone axes STORE lists the fields"
        raise NotFound("no field matches the request", hint, "field-not-found")
    messages = [key for key in listed if "param" in key]
    if len(messages) == len(listed):
        return [by_key(source, request, listed)]
    if messages and not apart:
        raise Invalid(
            "the request selects GRIB messages and other fields, which cannot share a file",
            "add param=?* (GRIB) or variable=?* (the rest) to it, or give the path of a folder that exists",
        )
    # Fields of one file differ only in variable and step; the rest of their key identifies the file.
    bases: dict[tuple[tuple[str, str], ...], list[Key]] = {}
    for key in listed:
        if "param" not in key:
            base = tuple((k, v) for k, v in key.items() if k not in ("variable", "step"))
            bases.setdefault(base, []).append(key)
    found: dict[Any, Facts | Error | None] = {}
    for base in bases:
        try:
            found[base] = header_of(source, dict(base))
        except (Invalid, Corrupt) as error:
            if not apart:
                raise
            found[base] = error
    without = [base for base, header in found.items() if header is None]
    if not apart:
        if len(without) == len(bases):
            return [by_key(source, request, listed)]
        if without:
            raise Invalid(
                f"some selected fields have no file header: {label(without[0])}",
                "export runs archived by key separately from ingested ones, or give the path "
                "of a folder that exists",
            )
    contents = []
    for base, header in found.items():
        if isinstance(header, Error):
            contents.append(omitted(dict(base), header))
        elif header is not None:
            some = _within(request, dict(base))
            make = partial(described, source, dict(base), header, bases[base], some)
            contents.append(tried(dict(base), make))
    # Fields archived by key may have further keywords, which become dimensions: one file for each run.
    runs: dict[tuple[tuple[str, str], ...], list[Key]] = {}
    for base in without:
        run = tuple((k, v) for k, v in base if k in ("project", "run"))
        runs.setdefault(run, []).extend(bases[base])
    for run, keys in runs.items():
        contents.append(tried(dict(run), partial(by_key, source, _within(request, dict(run)), keys)))
    if messages:
        part = _within(request, "param=?*")
        contents.append(Content(MESSAGES, ".grib", "GRIB", [], nothing, fields=len(messages), messages=part))
    return with_own_names(contents)


def by_key(source: Source, request: Any, listed: list[Key]) -> Content:
    """The file of fields that were archived by key, with their metadata."""
    content = named(Content(**shown(source, request)), listed)
    lines = _written(source.store, request)
    try:
        if content.keys[0]:
            content.text = of_keys(*content.keys, lines)
        elif any(line.startswith('{"kind":"attributes"') for line in lines):
            content.lacks.append((LACK, "the values are decoded messages; copy them into another store"))
    except ValueError as error:
        content.lacks.append((LACK, str(error)))
    return content


def named(content: Content, listed: list[Key]) -> Content:
    """A dataset of fields that were archived by key, named after its run if it has one."""
    runs = {key["run"] for key in listed if "run" in key}
    content.name = runs.pop() if len(runs) == 1 else content.name
    content.fields = len(listed)
    return content


def with_own_names(contents: list[Content]) -> list[Content]:
    """The same contents; those with equal file names get the full name of their run."""
    names = [content.name for content in contents]
    for content in contents:
        if names.count(content.name) > 1 and content.run:
            content.name = "-".join(pair.partition("=")[2] for pair in content.run.split(","))
    return contents


def tried(base: Key, make: Callable[[], Content]) -> Content:
    """The content of a run's file, or why it cannot be written."""
    run = label(base.items())
    try:
        content = make()
    except (Invalid, Corrupt, NotFound) as error:
        return omitted(base, error)
    content.run = run
    return content


def omitted(base: Key, error: Error) -> Content:
    """The content of a run that gets no file, with the reason."""
    run = label(base.items())
    return Content(base.get("run", "export"), ".nc", "NETCDF4", [], nothing, run=run, failed=error)


def nothing(facts: Facts, box: Any) -> np.ndarray | None:
    """Reads the values of a file that has no variables."""
    return None


def label(base: Iterable[tuple[str, str]]) -> str:
    """The name of a run for messages."""
    return ",".join(f"{k}={v}" for k, v in base)


def header_of(source: Source, base: Key) -> Facts | None:
    """The header of a run, None if it has none."""
    key = {**base, "variable": HEADER}
    for entry in source.store.list({k: [v] for k, v in key.items()}):
        if dict(entry.key) == key:
            header = json.loads(source.bytes(key))
            if header.get("version", 0) > VERSION:
                raise Invalid(
                    f"the netCDF header of {label(base.items())} has version {header['version']}; "
                    f"this program reads {VERSION}"
                )
            return header
    return None


def headers_beside(source: Source, base: Key) -> list[Facts]:
    """The headers of other files of a run."""
    found = source.store.list(
        {k: [base[k]] for k in ("project", "run") if k in base} | {"variable": [HEADER]}
    )
    keys = [dict(entry.key) for entry in found]
    bases = [{k: v for k, v in key.items() if k != "variable"} for key in keys]
    headers = [header_of(source, other) for other in bases if other != base]
    return [header for header in headers if header is not None]


def described(source: Source, base: Key, header: Facts, listed: list[Key], request: Any) -> Content:
    """The file that a header describes, or the part of it that `request` selects; `listed` are the selected
    fields."""
    facts = header.get("source", {})
    chosen = choose(header, listed)
    groups, steps, kept = [], {}, set()
    for group in header["groups"]:
        made = narrowed(group, chosen, steps)
        groups.append(made)
        kept |= {join(group["path"], v["name"]) for v in made["variables"]}
    # Narrowing one variable shortens its dimension for all variables and groups that use it.
    lengths = {d: len(s) for d, s in steps.items()}
    for group in groups:
        group["dims"] = [
            {**d, "length": lengths.get(join(group["path"], d["name"]), d["length"])} for d in group["dims"]
        ]
        group["variables"] = [shortened(v, lengths) for v in group["variables"]]
    skips = [(s["what"], s["why"]) for s in header.get("skipped", [])]
    if chosen is not None:
        skips = [(what, why) for what, why in skips if what.partition("[")[0] in kept]
        groups = used(groups)
    name = base.get("run", "") + (f"-{base['source']}" if "source" in base else "")
    suffix = Path(str(facts.get("name", ""))).suffix or ".nc"
    model = facts.get("format") or "NETCDF4"
    content = Content(name or "export", suffix, model, groups, reader(source, base, steps, skips), skips)
    content.fields = sum(count_fields(v) for g in groups for v in g["variables"])
    content.base = base
    try:
        others = partial(headers_beside, source, base)
        content.text = of_header(header, groups, steps, _written(source.store, request), others)
    except ValueError as error:
        content.lacks.append((LACK, str(error)))
    return content


def choose(header: Facts, listed: list[Key]) -> dict[str, set[int] | None] | None:
    """The selected variables (paths) with their steps, and those to which they refer; None for all."""
    asked: dict[str, set[int]] = {}
    for key in listed:
        steps = asked.setdefault(key["variable"], set())
        if "step" in key:
            steps.add(int(key["step"]))
    if HEADER in asked:
        return None
    known = {join(g["path"], v["name"]): v for g in header["groups"] for v in g["variables"]}
    chosen: dict[str, set[int] | None] = {
        name: steps or None for name, steps in asked.items() if name in known
    }
    # A variable needs its coordinates and the variables that its attributes name, and these may need others.
    waiting = list(chosen)
    while waiting:
        name = waiting.pop()
        facts, at = known[name], name.rpartition("/")[0]
        words = [d for d in facts["dims"] if d in known]
        for word, coded in facts["attrs"]:
            if word in REFERENCES and "text" in coded:
                words += [join(at, w.strip(":")) for w in coded["text"].replace("\0", "").split()]
        for word in words:
            if word in known and known[word]["dtype"] is not None and word not in chosen:
                chosen[word] = None
                waiting.append(word)
    return chosen


def narrowed(group: Facts, chosen: dict[str, set[int] | None] | None, steps: dict[str, list[int]]) -> Facts:
    """A group with the chosen variables; adds to `steps` the chosen indexes of each dimension."""
    made = {**group, "variables": []}
    for facts in group["variables"]:
        name = join(group["path"], facts["name"])
        if facts["dtype"] is None or (chosen is not None and name not in chosen):
            continue
        some = chosen.get(name) if chosen is not None else None
        if facts["split"] and some and len(some) < facts["shape"][0]:
            dim, wanted = facts["dims"][0], sorted(some)
            if steps.setdefault(dim, wanted) != wanted:
                raise Invalid(f"the request selects different steps along {dim} for different variables")
        made["variables"].append(facts)
    return made


def shortened(facts: Facts, lengths: dict[str, int]) -> Facts:
    """A variable with the lengths of its narrowed dimensions."""
    if not any(d in lengths for d in facts["dims"]):
        return facts
    shape = [lengths.get(d, n) for d, n in zip(facts["dims"], facts["shape"], strict=True)]
    chunks = facts.get("chunks")
    return {
        **facts,
        "shape": shape,
        "chunks": chunks and [min(c, n) for c, n in zip(chunks, shape, strict=True)],
    }


def used(groups: list[Facts]) -> list[Facts]:
    """Groups that still have variables or attributes, with the dimensions that they use."""
    dims = {d for g in groups for v in g["variables"] for d in v["dims"]}
    kept = []
    for group in groups:
        own = [d for d in group["dims"] if join(group["path"], d["name"]) in dims]
        kept.append({**group, "dims": own})
    needed = {""}
    for group in kept:
        if group["variables"] or group["dims"] or group.get("types"):
            parts = group["path"].split("/")
            needed |= {"/".join(parts[: n + 1]) for n in range(len(parts))}
    return [g for g in kept if g["path"] in needed]


def count_fields(facts: Facts) -> int:
    """The number of fields of a variable."""
    if 0 in facts["shape"]:
        return 0
    return facts["shape"][0] if facts["split"] else 1


def reader(
    source: Source, base: Key, steps: dict[str, list[int]], skips: list[tuple[str, str]]
) -> Callable[[Facts, Any], np.ndarray | None]:
    """Reads boxes of the variables of one run; `steps` has the indexes of a dimension that are present."""
    partial = {what.partition("[")[0] for what, _ in skips}

    def field_of(name: str, key: Key, start: tuple[int, ...], count: tuple[int, ...]) -> np.ndarray | None:
        try:
            return source.box(key, start, count)
        except NotFound:
            if name in partial:  # the report says so
                return gaps(source, key, start, count)
            raise Corrupt(
                f"{label(key.items())}: the header describes it, but no field has it",
                "ingest the file again, or narrow the request to existing fields",
            ) from None

    def read(facts: Facts, box: Any) -> np.ndarray | None:
        name = facts["key"]
        start, count = list(box[0]), list(box[1])
        lead = 1 if facts["split"] else 0
        takes = []
        for axis, dim in enumerate(facts["axes"]):
            if axis >= lead and dim in steps:
                wanted = steps[dim][start[axis] : start[axis] + count[axis]]
                start[axis], count[axis] = wanted[0], wanted[-1] + 1 - wanted[0]
                takes.append((axis, [w - wanted[0] for w in wanted]))
        key = {**base, "variable": name}
        if not facts["split"]:
            values = field_of(name, key, tuple(start), tuple(count))
        else:
            values = np.empty(count, np.dtype(facts["dtype"]))
            places = steps.get(facts["axes"][0])
            for i in range(count[0]):
                step = places[start[0] + i] if places else start[0] + i
                one = field_of(name, {**key, "step": str(step)}, tuple(start[1:]), tuple(count[1:]))
                values[i] = missing(facts) if one is None else one
        if values is not None:
            for axis, index in takes:
                values = np.take(values, index, axis=axis)
        return values

    return read


def gaps(source: Source, key: Key, start: tuple[int, ...], count: tuple[int, ...]) -> np.ndarray | None:
    """The existing values of a field of which the ingest skipped a part."""
    for held in source.store.retrieve({k: [v] for k, v in key.items()}, strict=False):
        if dict(held.key) == key:
            return np.asarray(held.array(start, count) if start else held.array())
    return None


def missing(facts: Facts) -> Any:
    """The value of missing elements."""
    from ._netcdf_writer import fill_of

    return fill_of(facts)

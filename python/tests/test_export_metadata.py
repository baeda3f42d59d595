"""Metadata of fields go into an exported file, and from it into a store: `spec/exported-metadata.md`."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fieldstone as fst
import netCDF4
import numpy as np
import pytest
import xarray as xr
from fieldstone._helper.exported import ATTRIBUTE, GROUP, VARIABLE

FORMATS = (None, "netcdf3", "cdf5", "netcdf4-classic")


def read(hit: Any) -> Any:
    """The data of a hit on a variable at a step."""
    if hit.variable is None or hit.step is None:
        return None
    try:
        return repr(hit.read())
    except fst.Error as error:
        return str(error)


def content(field: fst.Field) -> Any:
    """The values of a field; none for a header."""
    return field.array() if field.dtype is not None else None


def said(store: fst.Store) -> dict[str, Any]:
    """Everything in a store and the data to which it leads, except writers."""
    sql = "select run, step, variable, tag, number, text from attributes order by 1, 2, 3, 4, 5, 6"
    hits = []
    for h in store.attributes():
        place = (h.run, h.step, h.time, h.variable, h.start, h.count, sorted((h.keywords or {}).items()))
        hits.append((place, h.tag, h.tag_version, h.unit, h.value, read(h)))
    found = {
        "fields": sorted(repr((sorted(f.key.items()), content(f))) for f in store.retrieve({})),
        "types": sorted(repr((sorted(dict(e.key).items()), e.dtype, e.shape)) for e in store.list({})),
        "runs": sorted(repr((r.project, r.name, r.params, r.notes, r.job)) for r in store.runs()),
        "states": sorted(repr((r.name, r.state, r.failure)) for r in store.runs()),
        "steps": sorted(repr((s.run, s.step, s.time)) for s in store.steps()),
        "last": sorted(repr((r.name, r.last_step())) for r in store.runs()),
        "variables": sorted(
            repr((v.run, v.name, v.version, v.dims, v.shape, v.attrs, v.coords)) for v in store.variables()
        ),
        "tags": sorted(repr((t.name, t.version, t.type, t.unit)) for t in store.tags()),
        "hits": sorted(map(repr, hits)),
        "sql": store.sql(sql),
    }
    return {what: repr(rows) for what, rows in found.items()}


def same(one: fst.Store, other: fst.Store, *but: str) -> None:
    """Asserts that two stores are equal."""
    left, right = said(one), said(other)
    for what in left:
        if what not in but:
            assert left[what] == right[what], what


def text_in(path: Path) -> str | None:
    """The text of metadata in a file."""
    with netCDF4.Dataset(path) as file:
        if GROUP in file.groups:
            return bytes(file[GROUP][VARIABLE][:].tobytes()).decode()
        return str(file.getncattr(ATTRIBUTE)) if ATTRIBUTE in file.ncattrs() else None


@pytest.fixture
def rich(tmp_path: Path) -> fst.Store:
    """A store with something at every place that an attribute can have."""
    store = fst.open(tmp_path / "rich")
    for name in ("a", "größe"):
        run = store.create_run(
            name, params={"nx": 4, "dt": 0.1, "who": "Straße", "on": True}, notes="of a test"
        )
        run.create_variable("t", dtype="f4", shape=(4, 5), dims=("y", "x"), attrs={"units": "K"})
        for step in (-3, 0, 6):
            store.archive(
                {"run": name, "variable": "t", "step": step}, np.arange(20, dtype="f4").reshape(4, 5) + step
            )
            store.archive({"run": name, "variable": "n", "step": step}, np.array([step, 2], "i2"))
        store.archive({"run": name, "variable": "mask"}, np.array([[True, False]]))
        store.flush()
        run.create_step(6, time=21600.0)
        run.create_step(99)
        store.create_tag("max", type="float", unit="K")
        run.annotate("max", 26.0, step=6, variable="t", start=(1, 1), count=(2, 3))
        run.annotate("max", float("nan"), step=-3, variable="t")
        run.annotate("note", "grüße\n\x00", step=0)
        run.annotate("good", True)
        run.annotate("count", 7, variable="n")
        run.finish()
        store.flush()
    return store


@pytest.mark.parametrize("format", FORMATS)
def test_all_that_stands_on_a_run_comes_back(rich: fst.Store, tmp_path: Path, format: str | None) -> None:
    path = tmp_path / "a.nc"
    report = rich.export("run=a", path, format=format)
    assert report.skipped == () or format is not None
    fst.copy(rich, "run=a", to=tmp_path / "copy")
    copy = fst.open(tmp_path / "copy")
    taken = fst.ingest(tmp_path / "again", path, progress=False)
    assert taken.skipped == ()
    again = fst.open(tmp_path / "again")
    same(copy, again, "states")
    assert again.run("a").state == "finished"
    shown = [xr.open_dataset(tmp_path / name, engine="fieldstone").load() for name in ("copy", "again")]
    xr.testing.assert_identical(*shown)
    with xr.open_dataset(path) as file:
        xr.testing.assert_equal(file.load(), shown[0])
        assert set(file.attrs) <= {ATTRIBUTE} and (format is not None or not file.attrs)
    version = again.version
    assert (fst.ingest(again, path, progress=False).fields, again.version) == (0, version)


def test_several_runs_share_a_file_and_one_takes_another_name(rich: fst.Store, tmp_path: Path) -> None:
    rich.export({}, tmp_path / "all.nc")
    fst.ingest(tmp_path / "again", tmp_path / "all.nc", progress=False)
    same(rich, fst.open(tmp_path / "again"))
    with pytest.raises(fst.Invalid, match="of 2 runs, but the key names only one"):
        fst.ingest(tmp_path / "one", tmp_path / "all.nc", key={"run": "b"}, progress=False)
    (tmp_path / "out").mkdir()
    rich.export({}, tmp_path / "out")
    fst.ingest(tmp_path / "folder", tmp_path / "out", progress=False)
    same(rich, fst.open(tmp_path / "folder"))
    fst.ingest(tmp_path / "other", tmp_path / "out" / "a.nc", key={"run": "b"}, progress=False)
    other = fst.open(tmp_path / "other")
    assert other.axes()["run"] == ["b"] and [r.name for r in other.runs()] == ["b"]
    (hit,) = other.attributes(tag="max", step=6)
    assert hit.run == "b" and hit.read().shape == (2, 3) and other.run("b").params["nx"] == 4


def test_a_subset_takes_what_stands_on_it(rich: fst.Store, tmp_path: Path) -> None:
    rich.export({"run": "a", "variable": "t", "step": [6]}, tmp_path / "one.nc")
    fst.copy(rich, {"run": "a", "variable": "t", "step": [6]}, to=tmp_path / "copy")
    fst.ingest(tmp_path / "again", tmp_path / "one.nc", progress=False)
    again = fst.open(tmp_path / "again")
    same(fst.open(tmp_path / "copy"), again, "states")
    assert sorted((h.tag, h.step) for h in again.attributes(tag=["max", "note"])) == [("max", 6)]


def test_keywords_of_members_and_missing_fields_lead_to_the_same_fields(tmp_path: Path) -> None:
    store = fst.open(tmp_path / "ens")
    for member in (1, 2, 3):
        for step in (0, 1):
            if (member, step) != (2, 1):
                key = {"run": "a", "variable": "t", "step": step, "member": member}
                store.archive(key, np.full(4, 10 * member + step, "i2"))
    store.flush()
    for member in (1, 3):
        store.run("a").annotate("storm", float(member), variable="t", step=0, keywords={"member": member})
    store.flush()
    for format in FORMATS:
        store.export({}, tmp_path / f"{format}.nc", format=format)
        fst.ingest(tmp_path / f"{format}", tmp_path / f"{format}.nc", progress=False)
        same(store, fst.open(tmp_path / f"{format}"))


def test_what_the_target_says_otherwise_refuses_the_file(rich: fst.Store, tmp_path: Path) -> None:
    rich.export("run=a", tmp_path / "a.nc")
    for n, make in enumerate(
        (
            lambda store: store.create_run("a", params={"nx": 5}),
            lambda store: store.create_run("a").create_step(6, time=1.0),
            lambda store: store.create_tag("max", type="int", unit="K"),
            lambda store: store.create_run("a").create_variable("t", "f4", (4, 5), attrs={"units": "C"}),
        )
    ):
        store = fst.open(tmp_path / f"other{n}")
        make(store)
        store.flush()
        version = store.version
        with pytest.raises(fst.Invalid, match="nothing was taken"):
            fst.ingest(store, tmp_path / "a.nc", progress=False)
        assert store.version == version and not list(store.list({})) and store.attributes().count() == 0


@pytest.fixture
def ingested(tmp_path: Path) -> tuple[Path, fst.Store]:
    """A file, and a store that ingested it."""
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.title, file.levels = "a file", np.int32([1, 2])
        for name, length in (("time", None), ("x", 4)):
            file.createDimension(name, length)
        file.createVariable("time", "f8", ("time",))[:] = [0, 6, 12, 18]
        file["time"].units = "hours since 2026-01-01"
        file.createVariable("x", "f4", ("x",))[:] = [1, 2, 4, 7]
        t = file.createVariable("t", "i2", ("time", "x"), fill_value=-1)
        t.setncatts({"units": "K", "scale_factor": 0.5, "valid_range": np.int16([0, 9])})
        t[:] = np.arange(16).reshape(4, 4) / 2
    fst.ingest(tmp_path / "taken", path, progress=False)
    return path, fst.open(tmp_path / "taken")


def test_a_file_with_nothing_of_its_own_is_as_it_was(
    ingested: tuple[Path, fst.Store], tmp_path: Path
) -> None:
    path, store = ingested
    store.export({}, tmp_path / "out.nc")
    assert (tmp_path / "out.nc").read_bytes() == path.read_bytes()
    for format in ("netcdf4", "cdf5"):
        store.export({}, tmp_path / f"{format}.nc", format=format)
        assert text_in(tmp_path / f"{format}.nc") is None
    store.create_tag("unused", type="int")
    store.flush()
    store.export({}, tmp_path / "out.nc", overwrite=True)
    assert (tmp_path / "out.nc").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("format", [None, "netcdf4"])
def test_what_stands_on_a_file_comes_back_with_it(
    ingested: tuple[Path, fst.Store], tmp_path: Path, format: str | None
) -> None:
    path, store = ingested
    run = store.run("file")
    run.annotate("warm", 3.0, variable="t", step=2, start=(1,), count=(2,))
    run.annotate("seen", "gut", step=2)
    run.annotate("by", "me")
    run.create_step(77, time=5.0)
    store.flush()
    store.export({}, tmp_path / "file.out.nc", format=format)
    text = text_in(tmp_path / "file.out.nc")
    assert text is not None and '"kind":"variable"' not in text and '"kind":"run"' not in text
    with xr.open_dataset(tmp_path / "file.out.nc") as out, xr.open_dataset(path) as file:
        xr.testing.assert_equal(out.load(), file.load())
        out.attrs.pop(ATTRIBUTE, None)
        xr.testing.assert_identical(out, file)
    taken = fst.ingest(tmp_path / "again", tmp_path / "file.out.nc", key={"run": "file"}, progress=False)
    again = fst.open(tmp_path / "again")
    assert taken.skipped == ()
    same(store, again, "fields", "types")  # the header names another file
    with xr.open_dataset(path) as file:
        xr.testing.assert_identical(
            xr.open_dataset(tmp_path / "again", engine="fieldstone").load(), file.load()
        )
    version = again.version
    fst.ingest(again, tmp_path / "file.out.nc", key={"run": "file"}, progress=False)
    assert again.version == version
    store.export("run=file,variable=t,step=1/2", tmp_path / "two.nc", format=format)
    fst.ingest(tmp_path / "two", tmp_path / "two.nc", progress=False)
    two = fst.open(tmp_path / "two")
    (hit,) = two.attributes(tag="warm")
    assert hit.step == 1 and hit.read().tolist() == [9, 10], "steps are those of the file"
    assert [h.step for h in two.attributes(tag="seen")] == [1]
    store.export("run=file,variable=t,step=0", tmp_path / "none.nc", format=format)
    fst.ingest(tmp_path / "none", tmp_path / "none.nc", progress=False)
    assert [h.tag for h in fst.open(tmp_path / "none").attributes()] == ["by"]


def test_a_file_of_groups_keeps_it_as_paths(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "g.nc", "w") as file:
        group = file.createGroup("deep/er")
        group.createDimension("time", None)
        group.createDimension("x", 2)
        group.createVariable("t", "f4", ("time", "x"))[:] = [[1, 2], [3, 4]]
    fst.ingest(tmp_path / "taken", tmp_path / "g.nc", progress=False)
    store = fst.open(tmp_path / "taken")
    store.run("g").annotate("warm", 1.0, variable="deep/er/t", step=1, start=(1,), count=(1,))
    store.flush()
    for format in ("netcdf4", "cdf5"):
        store.export({}, tmp_path / f"{format}.nc", format=format)
        report = fst.ingest(tmp_path / format, tmp_path / f"{format}.nc", progress=False)
        assert report.skipped == ()
        (hit,) = fst.open(tmp_path / format).attributes()
        assert hit.variable == "deep/er/t" and hit.read().tolist() == [4.0]


def changed(path: Path, change: Any) -> None:
    """Changes the text of a file."""
    with netCDF4.Dataset(path, "r+") as file:
        if GROUP in file.groups:
            variable = file[GROUP][VARIABLE]
            variable.set_auto_chartostring(False)
            text = change(bytes(variable[:].tobytes()))
            variable[: len(text)] = np.frombuffer(text, "S1")
        else:
            text = change(str(file.getncattr(ATTRIBUTE)).encode())
            file.setncattr(ATTRIBUTE, text.decode())


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: t.replace(b'"version":1', b'"version":2', 1), "has version 2"),
        (lambda t: t.replace(b"26.0", b"27.0", 1), "its lines were changed"),
        (lambda t: b"x" + t[1:], "it has no head"),
        (lambda t: t.replace(b'"count":', b'"coun_":', 1), "invalid keys of fields"),
    ],
)
def test_a_damaged_text_leaves_the_values(
    rich: fst.Store, tmp_path: Path, format: str | None, change: Any, why: str
) -> None:
    rich.export("run=a,variable=t", tmp_path / "a.nc", format=format)
    changed(tmp_path / "a.nc", change)
    report = fst.ingest(tmp_path / "again", tmp_path / "a.nc", progress=False)
    (skipped,) = report.skipped
    assert skipped.what == "the metadata" and why in skipped.why
    again = fst.open(tmp_path / "again")
    assert again.attributes().count() == 0 and again.axes("variable=t")["run"] == ["a"]
    assert again.get("run=a,variable=t,step=0").shape == (4, 5)


def test_lines_that_no_store_takes_leave_the_values(rich: fst.Store, tmp_path: Path) -> None:
    rich.export("run=a", tmp_path / "a.nc", format="cdf5")

    def forged(text: bytes) -> bytes:
        head, _, lines = text.partition(b"\n")
        lines = lines.replace(b'"count":[[2,3]]', b'"count":[[0,3]]')
        facts = json.loads(head) | {"sha256": hashlib.sha256(lines).hexdigest()}
        return json.dumps(facts).encode() + b"\n" + lines

    changed(tmp_path / "a.nc", forged)
    report = fst.ingest(tmp_path / "again", tmp_path / "a.nc", progress=False)
    (skipped,) = report.skipped
    assert skipped.what == "the metadata" and "a box from 1 with 0 elements" in skipped.why
    assert len(list(fst.open(tmp_path / "again").list({}))) == 7


def test_a_file_that_another_tool_changed_says_what_is_lost(rich: fst.Store, tmp_path: Path) -> None:
    rich.export("run=a", tmp_path / "a.nc")
    with netCDF4.Dataset(tmp_path / "a.nc", "r+") as file:
        file.renameVariable("n", "m")
    report = fst.ingest(tmp_path / "again", tmp_path / "a.nc", progress=False)
    lost = {skipped.what: skipped.why for skipped in report.skipped}
    assert "no longer has it" in lost["n"] and "unknown" in lost["m"] and len(lost) == 2
    again = fst.open(tmp_path / "again")
    assert again.axes()["variable"] == ["mask", "t"] and again.attributes(tag="max").count() == 2


def test_the_tools_of_netcdf_take_the_file(rich: fst.Store, tmp_path: Path) -> None:
    tools = {tool: shutil.which(tool) for tool in ("ncdump", "ncvalidator", "nccopy")}
    if None in tools.values():
        pytest.skip("the programs of netCDF-C are not installed")
    for format in FORMATS:
        path = tmp_path / f"{format}.nc"
        rich.export("run=a", path, format=format)
        subprocess.run([tools["ncdump"], path], check=True, capture_output=True)
        if format in ("netcdf3", "cdf5"):
            subprocess.run([tools["ncvalidator"], path], check=True, capture_output=True)
        subprocess.run(
            [tools["nccopy"], path, tmp_path / f"{format}.copy.nc"], check=True, capture_output=True
        )
        fst.ingest(tmp_path / f"{format}", tmp_path / f"{format}.copy.nc", progress=False)
        same(rich_part(rich, tmp_path / f"{format}.part"), fst.open(tmp_path / f"{format}"), "states")


def rich_part(rich: fst.Store, path: Path) -> fst.Store:
    fst.copy(rich, "run=a", to=path)
    return fst.open(path)


def test_many_attributes_fit(tmp_path: Path) -> None:
    store = fst.open(tmp_path / "many")
    run = store.create_run("a")
    store.archive({"run": "a", "variable": "t", "step": 0}, np.zeros((200, 200), "f4"))
    store.flush()
    n = 4_000
    with store.transaction() as tx:
        for i in range(n):
            tx.run("a").annotate("m", i / 7, variable="t", step=0, start=(i // 200, i % 200), count=(1, 1))
    del run
    for format in FORMATS:
        path = tmp_path / f"{format}.nc"
        store.export({}, path, format=format)
        assert len(text_in(path) or "") > 64 << 10
        fst.ingest(tmp_path / f"{format}", path, progress=False)
        assert fst.open(tmp_path / f"{format}").attributes(tag="m").count() == n
    assert (tmp_path / "None.nc").stat().st_size < (tmp_path / "netcdf3.nc").stat().st_size


def test_the_program_keeps_it_too(rich: fst.Store, tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("fieldstone"))
    env = {**os.environ, "FIELDSTONE_PYTHON": sys.executable}
    for words in (["export", "rich", "run=a", "a.nc"], ["ingest", "again", "a.nc", "--key", "run=b"]):
        subprocess.run([program, *words], check=True, capture_output=True, cwd=tmp_path, env=env)
    again = fst.open(tmp_path / "again")
    assert {h.run for h in again.attributes()} == {"b"} and again.attributes().count() == 5


NUMBERS = [0, -5, 1 << 40, 0.1, float("inf"), float("nan")]
VALUES: list[Any] = [*NUMBERS, "", "größe\n", True, False, [1, 2], {"a": [None]}]


@pytest.mark.parametrize("seed", range(6))
def test_any_store_comes_back(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    store = fst.open(tmp_path / "any")
    for name in draw.sample(["a", "b c", "größe", "x=1"], draw.randint(1, 3)):
        run = None
        if draw.random() < 0.8:
            run = store.create_run(
                name, params={f"p{i}": draw.choice(VALUES) for i in range(draw.randint(0, 4))}
            )
        steps = draw.sample(range(-5, 20), draw.randint(1, 4))
        for variable in draw.sample(["t", "ü", "p.q"], draw.randint(1, 3)):
            kind = draw.choice(["f4", "f8", "i4", "u1", "?", ">f4", "<U3"])
            shape = (draw.randint(1, 3), draw.randint(1, 4))
            rng = np.random.default_rng(seed)
            for step in steps:
                values = rng.integers(0, 100, shape).astype(kind)
                store.archive({"run": name, "variable": variable, "step": step}, values)
            store.flush()
            run = run or store.run(name)
            for _ in range(draw.randint(0, 5)):
                step = draw.choice([None, *steps])
                box = {"start": (0, 0), "count": (1, shape[1])} if draw.random() < 0.5 else {}
                value = draw.choice(VALUES)
                tag = f"{type(value).__name__}{draw.randint(0, 1)}"
                run.annotate(tag, value, variable=variable, step=step, **box)
        if run is not None and draw.random() < 0.5:
            run.annotate("of_run", draw.choice(["x", "y"]))
            run.annotate("of_step", 1.5, step=draw.choice(steps))
        store.flush()
    (tmp_path / "out").mkdir()
    report = store.export({}, tmp_path / "out", format=draw.choice([None, "cdf5"]))
    assert not [s for s in report.skipped if s.what == "the file"]
    fst.ingest(tmp_path / "again", tmp_path / "out", progress=False)
    same(store, fst.open(tmp_path / "again"))

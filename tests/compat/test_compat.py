"""The stores in fixtures/ stay readable, by Fieldstone and by a small reader that knows only spec/."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import fieldstone as fst
import numpy as np
import pytest

HERE = Path(__file__).parent
FIXTURES = sorted(path.parent.name for path in (HERE / "fixtures").glob("*/expected.json"))


def load(name: str) -> ModuleType:
    spec = spec_from_file_location(name, HERE / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reader = sys.modules["reader"] = load("reader")
catalog = load("catalog")


def unpack(fixture: Path, target: Path) -> Path:
    """A copy of a fixture's store, which a test may change."""
    if (fixture / "store.tar.gz").exists():
        shutil.unpack_archive(fixture / "store.tar.gz", target, filter="data")
    else:
        shutil.copytree(fixture / "store", target / "store")
    return target / "store"


def expected(fixture: Path) -> dict[frozenset, dict]:
    fields = json.loads((fixture / "expected.json").read_text())["fields"]
    return {frozenset(field["key"].items()): field for field in fields}


def is_damaged(fixture: Path) -> bool:
    """Whether `verify` names damage in the fixture; nothing is lost by it."""
    return json.loads((fixture / "expected.json").read_text()).get("damaged", False)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check_reader(fixture: Path, store: Path) -> None:
    opened, wanted = reader.open_store(store), expected(fixture)
    found = {frozenset(json.loads(text).items()): text for text in opened.fields()}
    assert found.keys() == wanted.keys()
    assert bool(opened.verify()) == is_damaged(fixture)
    for key, field in wanted.items():
        entry = opened.fields()[found[key]][0]
        if not field["complete"]:
            with pytest.raises(LookupError, match="missing"):
                opened.read(found[key])
            continue
        shape = tuple(field["shape"]) if field["dtype"] else (len(opened.read(found[key])),)
        assert (entry.dtype or None, entry.shape) == (field["dtype"], shape), key
        assert digest(opened.read(found[key])) == field["sha256"], key


@pytest.fixture(params=FIXTURES)
def fixture(request: pytest.FixtureRequest) -> Path:
    return HERE / "fixtures" / request.param


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All fixtures as made today, in another process, because one of them sets resource limits."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, HERE / "make_fixtures.py", folder], check=True, timeout=600)
    return folder


def test_every_fixture_has_a_maker() -> None:
    assert sorted(load("make_fixtures").FIXTURES) == FIXTURES


def test_the_reader_reads_every_fixture(fixture: Path, tmp_path: Path) -> None:
    check_reader(fixture, unpack(fixture, tmp_path))


def test_fieldstone_reads_every_fixture(fixture: Path, tmp_path: Path) -> None:
    wanted = expected(fixture)
    store = fst.open(str(unpack(fixture, tmp_path)), mode="r")
    assert store.verify().ok != is_damaged(fixture)
    listed = {frozenset(dict(entry.key).items()): entry for entry in store.list()}
    assert listed.keys() == wanted.keys()
    for key, field in wanted.items():
        assert listed[key].complete == field["complete"]
        if field["complete"]:
            value = store.get(field["key"])
            array = isinstance(value, np.ndarray)
            assert (value.dtype.str if array else None) == field["dtype"]
            assert (list(value.shape) if array else None) == field["shape"]
            assert digest(value.tobytes() if array else value) == field["sha256"], key


@pytest.mark.parametrize("name", FIXTURES)
def test_the_reader_reads_what_is_written_today(name: str, fresh: Path, tmp_path: Path) -> None:
    check_reader(fresh / name, unpack(fresh / name, tmp_path))


def catalog_of(store: Path) -> dict[str, list]:
    """The catalog as `expected.json` has it."""
    found = catalog.catalog(store)
    return {
        "run": [[name, facts["params"]] for (_, name), facts in found["run"]],
        "step": [[run[1], number, time] for (run, number), time in found["step"]],
        "variable": [
            [run[1], *name, facts["dtype"], facts["shape"]] for (run, name), facts in found["variable"]
        ],
        "tag": [[name, kind, unit] for name, _, kind, unit in found["tag"]],
        "attribute": [
            [run[1], tag[0], step, variable, box, value]
            for (run, tag, step, variable, box), value in found["attribute"]
        ],
    }


def check_catalog(fixture: Path, store: Path) -> None:
    wanted = json.loads((fixture / "expected.json").read_text())["catalog"]
    found = json.loads(json.dumps(catalog_of(store)))
    for name, rows in wanted.items():
        assert sorted(found[name], key=repr) == sorted(rows, key=repr), name


def test_the_reader_reads_the_catalog(fresh: Path, tmp_path: Path) -> None:
    kept = HERE / "fixtures" / "catalog"
    check_catalog(kept, unpack(kept, tmp_path))
    check_catalog(fresh / "catalog", fresh / "catalog" / "store")


def test_fieldstone_reads_the_catalog(tmp_path: Path) -> None:
    kept = HERE / "fixtures" / "catalog"
    store = fst.open(str(unpack(kept, tmp_path)), mode="r")
    wanted = json.loads((kept / "expected.json").read_text())["catalog"]
    value = {"int_range": lambda v: [min(v), max(v)] if isinstance(v, range) else list(v)}
    hits = [
        [
            h.run,
            h.tag,
            h.step,
            [h.variable, h.variable_version] if h.variable else None,
            [list(pair) for pair in zip(h.start, h.count, strict=True)] if h.start else None,
            value.get("int_range")(h.value) if h.tag == "span" else h.value,
        ]
        for h in store.attributes()
    ]
    assert sorted(hits, key=repr) == sorted(wanted["attribute"], key=repr)
    assert [run.name for run in store.runs()] == ["a"]
    assert [[s.run, s.step, s.time] for s in store.steps()] == wanted["step"]
    tags = [[tag.name, tag.type, tag.unit or ""] for tag in store.tags()]
    assert sorted(tags) == sorted(wanted["tag"])


def test_damage_to_a_record_of_the_catalog_is_named(tmp_path: Path) -> None:
    records = [
        side
        for *_, sides in catalog.commits(reader.open_store(HERE / "fixtures" / "catalog" / "store"))
        for side in sides
    ]
    assert len(records) > 5
    for kind, data in records:
        assert catalog.said(kind, data)
        for cut in (0, 1, len(data) // 2, len(data) - 1):
            with pytest.raises((reader.Damage, ImportError)):
                try:
                    catalog.said(kind, data[:cut])
                except Exception as error:
                    if type(error).__name__ == "ZstdError":
                        raise reader.Damage(str(error)) from error
                    raise


def test_the_reader_needs_no_boards_and_no_marker(fresh: Path, tmp_path: Path) -> None:
    store = unpack(fresh / "writers", tmp_path)
    shutil.rmtree(store / "boards")
    check_reader(fresh / "writers", store)
    (store / "fieldstone.store").unlink()
    opened = reader.open_store(store)
    assert len(opened.fields()) == len(expected(fresh / "writers"))
    assert ["fieldstone.store" in problem for problem in opened.problems] == [True]


def test_the_reader_has_at_most_620_lines_and_imports_nothing_of_fieldstone() -> None:
    text = (HERE / "reader.py").read_text()
    assert len(text.splitlines()) <= 620
    assert "import fieldstone" not in text and "from fieldstone" not in text


def blocks_of(store: Path) -> Iterator[tuple[str, Path, int]]:
    """The key of each field without a block table, and the place of its first block."""
    opened = reader.open_store(store)
    for text, entries in opened.fields().items():
        if entries[0].place[0] == 1:
            file = opened.file(entries[0].log, entries[0].place[1])
            yield text, store / file.name, entries[0].place[2]


@pytest.mark.parametrize("name", ["opaque", "chunks", "dtypes", "data_log"])
def test_a_flipped_byte_of_a_block_is_reported_and_the_rest_stays_readable(name: str, tmp_path: Path) -> None:
    store = unpack(HERE / "fixtures" / name, tmp_path)
    places = [
        place for place in blocks_of(store) if json.loads(place[0])["variable"] not in ("empty", "none")
    ]
    text, file, at = places[len(places) // 2]
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    damaged = reader.open_store(store)
    with pytest.raises(reader.Damage, match=f"{file.name}.*{at}"):
        damaged.read(text)
    others = [other for other, _, _ in places if other != text]
    assert others and all(damaged.read(other) is not None for other in others)
    assert any(file.name in problem for problem in damaged.verify())


def test_the_reader_reads_values_that_stay_in_a_file_outside(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    outside, path = tmp_path / "a file.nc", tmp_path / "store"
    with netCDF4.Dataset(outside, "w", format="NETCDF3_CLASSIC") as file:
        for name, length in (("time", None), ("x", 3), ("many", 1_200_000)):
            file.createDimension(name, length)
        file.createVariable("t", "i2", ("time", "x"))[:] = np.arange(30).reshape(10, 3)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(10) * 6.0
        file.createVariable("large", "f8", ("many",))[:] = np.arange(1_200_000)
    fst.ingest(str(path), outside, copy=False, progress=False)
    with fst.open(str(path)) as store:
        fields = {json.dumps(dict(field.key)): field.read() for field in store.retrieve()}
    opened = reader.open_store(path)
    kinds = {opened.fields()[text][0].place[0] for text in fields}
    assert kinds == {1, 3, 5} and opened.fields().keys() == fields.keys()
    # Plain Python computes checksums slowly, so this compares only the small fields.
    for text in fields:
        if "large" not in text:
            assert opened.read(text) == fields[text], text
    outside.touch()
    changed = reader.open_store(path)
    (text,) = [text for text in fields if '"time"' in text]
    with pytest.raises(reader.Damage, match="changed"):
        changed.read(text)
    outside.unlink()
    problems = reader.open_store(path).verify()
    assert len(problems) == len(fields) - 1 and all("a file.nc" in problem for problem in problems)


def test_a_damaged_index_block_makes_its_keys_unreadable_and_no_older_value_shows(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with fst.open(str(path), schema="simulation") as store:
        for flush in range(4):
            store.archive({"run": "a", "variable": "t", "step": 6}, b"%d" % flush)
            store.archive({"run": "a", "variable": "t", "step": 7}, b"7")
            store.flush()
    (log,) = (path / "logs").iterdir()
    data = log.read_bytes()
    opened = reader.open_store(path)
    assert len([run for log in {e.log for e in opened.entries} for run in log.record(log.last())[2]]) == 2
    text = next(iter(opened.fields()))
    assert opened.read(text) == b"3"
    for at in range(0, len(data), 3):
        log.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        try:
            assert reader.open_store(path).read(text) == b"3", f"byte {at}"
        except (reader.Damage, LookupError):
            assert reader.open_store(path).verify(), f"byte {at}"


def test_a_log_of_another_owner_does_not_count_in_a_dataset(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "store"
    key = {"run": "a", "variable": "t", "step": 6}
    logs = []
    for value in (b"mine", b"theirs"):
        with fst.open(str(path), schema="simulation") as store:
            store.archive(key, value)
            store.archive(key | {"run": "of " + value.decode()}, value)
        logs += [log for log in (path / "logs").iterdir() if log not in logs]
    values = [reader.open_store(path).read(text) for text in reader.open_store(path).fields()]
    assert values == [b"theirs", b"mine", b"theirs"]
    real = reader.File.__init__

    def other_owner(file: object, store: Path, name: str) -> None:
        real(file, store, name)
        file.owner += name.endswith(logs[1].name)

    monkeypatch.setattr(reader.File, "__init__", other_owner)
    values = [reader.open_store(path).read(text) for text in reader.open_store(path).fields()]
    assert values == [b"mine", b"mine", b"theirs"]


def test_what_stands_behind_a_sealed_length_does_not_count(fresh: Path, tmp_path: Path) -> None:
    store = unpack(fresh / "sealed", tmp_path)
    logs = sorted((store / "logs").glob("*.log"), key=lambda log: log.stat().st_size)
    opened = {log.stem: reader.Log(store, bytes.fromhex(log.stem), (0, 0, 0)) for log in logs}
    (later,) = [log for log in opened.values() if log.sealed]
    ((writer, length),) = later.sealed.items()
    commits = list(opened[writer.hex()].commits(opened[writer.hex()].frame(0, length)))
    assert len(commits) == 2
    # Seal the log at its first commit, as if the second had never been confirmed.
    path = store / later.name
    data = path.read_bytes()
    ends = [bytes([n & 0x7F | 0x80, n >> 7]) for n in (length, commits[0][0].at)]
    header = data[: later.first - 4].replace(writer + ends[0], writer + ends[1])
    path.write_bytes(header + struct.pack("<I", reader.crc32c(header)) + data[later.first :])
    shutil.rmtree(store / "boards")
    # The writer made an end file, too: without it the header of the next log alone says where the log ends.
    (end,) = (store / "logs").glob("*.end")
    end.unlink()
    steps = [json.loads(text)["step"] for text in reader.open_store(store).fields()]
    assert steps == ["0", "2"]
    assert [dict(entry.key)["step"] for entry in fst.open(str(store), mode="r").list()] == steps


def test_a_commit_behind_what_a_decision_covers_is_not_visible(fresh: Path, tmp_path: Path) -> None:
    opened = reader.open_store(unpack(fresh / "transactions", tmp_path))
    before = {text: opened.read(text) for text in opened.fields()}
    for decisions in opened.decisions.values():
        for *_, covers in decisions:
            covers.update({writer: sequence - 1 for writer, sequence in covers.items()})
    after = {text: opened.read(text) for text in opened.fields()}
    assert [value for value in before.values() if b"committed" in value] and len(after) == len(before) - 1
    assert not [value for value in after.values() if b"committed" in value]


def test_a_log_shorter_than_its_board_says_is_damage(fresh: Path, tmp_path: Path) -> None:
    store = unpack(fresh / "opaque", tmp_path)
    (log,) = (store / "logs").iterdir()
    log.write_bytes(log.read_bytes()[:-1])
    opened = reader.open_store(store)
    assert any("board" in problem for problem in opened.problems)
    assert [opened.read(text) for text in opened.fields()] == [b"hidden by what comes later"]


def test_the_program_lists_gets_and_verifies(fresh: Path, tmp_path: Path) -> None:
    store = unpack(fresh / "opaque", tmp_path)

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, HERE / "reader.py", store, *arguments], capture_output=True)

    listed = run("list")
    assert listed.returncode == 0 and len(listed.stdout.splitlines()) == len(expected(fresh / "opaque"))
    assert run("get", '{"run": "a", "variable": "t", "step": "2"}').stdout == bytes(range(256)) * 2
    assert run("verify").returncode == 0
    data = bytearray((store / "fieldstone.store").read_bytes())
    data[-1] ^= 1
    (store / "fieldstone.store").write_bytes(data)
    assert run("verify").returncode == 5 and b"fieldstone.store" in run("verify").stderr


def test_crc32c_is_castagnoli() -> None:
    assert reader.crc32c(b"123456789") == 0xE3069283
    assert struct.pack("<I", reader.crc32c(b"")) == bytes(4)

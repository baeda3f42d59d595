"""`fst.copy` and `fst.move`: between stores and URLs, by requests of every form."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest


@pytest.fixture
def hot(tmp_path: Path) -> fst.Store:
    store = fst.open(tmp_path / "hot")
    for step in range(4):
        store.archive(
            {"run": "a", "variable": "t", "step": step}, np.full((20, 30), step, ">f4"), chunks=(7, 9)
        )
        store.archive({"run": "a", "variable": "bytes", "step": step}, b"%d" % step, compression="zstd")
    store.flush()
    return store


def contents(store: fst.Store) -> dict[str, bytes]:
    return {str(f.key): f.read() for f in store.retrieve()}


def test_a_copy_is_equal_and_a_second_one_adds_nothing(hot: fst.Store, tmp_path: Path) -> None:
    report = fst.copy(hot, {"variable": "t", "step": range(3)}, to=tmp_path / "cold")
    assert (report.fields, report.bytes, report.unchanged) == (3, 3 * 2400, 0)
    cold = fst.open(tmp_path / "cold")
    assert sorted(contents(cold)) == [str(e.key) for e in hot.list("variable=t,step=0/1/2")]
    (field,) = cold.retrieve("variable=t,step=2")
    assert (field.dtype, field.shape, field.array().tolist()) == (">f4", (20, 30), [[2.0] * 30] * 20)
    version = cold.version
    report = fst.copy(hot, to=cold)
    assert (report.fields, report.unchanged) == (5, 3)
    assert contents(cold) == contents(hot) and cold.version != version
    assert repr(report) == (
        "TransferReport(fields=5, bytes=2404, unchanged=3, attributes=0, removed=0, kept=(), left=())"
    )
    requests = ["step=0", {"step": [0, 1]}]
    assert fst.copy(hot, requests, to=cold).unchanged == 4


def test_a_move_leaves_the_rest_and_older_versions(hot: fst.Store, tmp_path: Path) -> None:
    before, version = contents(hot), hot.version
    report = fst.move(hot, "step=0/1", to=tmp_path / "cold")
    assert (report.fields, report.removed, report.kept) == (4, 4, ())
    assert {**contents(hot), **contents(fst.open(tmp_path / "cold"))} == before
    assert len(contents(hot)) == 4 and hot.axes()["step"] == ["2", "3"]
    assert contents(fst.open(tmp_path / "hot", at=version)) == before
    assert sum(e.key["step"] in ("0", "1") for e in hot.list(masked=True)) == 4
    hot.archive({"run": "a", "variable": "t", "step": 0}, b"back")
    hot.flush()
    assert hot.get({"variable": "t", "step": 0}) == b"back"


def test_a_move_by_age_leaves_what_is_young(hot: fst.Store, tmp_path: Path) -> None:
    for age in (
        "1d",
        86_400,
        timedelta(days=1),
        datetime(2020, 1, 1, tzinfo=UTC),
        date(2020, 1, 1),
        "2020-01-01",
    ):
        assert fst.move(hot, "run=a", to=tmp_path / "cold", older_than=age).fields == 0, age
    time.sleep(0.05)
    moment = datetime.now(UTC)
    hot.archive({"run": "a", "variable": "t", "step": 9}, b"young")
    hot.flush()
    report = fst.move(hot, ["variable=t", "variable=bytes"], to=tmp_path / "cold", older_than=moment)
    assert (report.fields, report.removed, len(contents(hot))) == (8, 8, 1)
    assert fst.copy(hot, "run=a", to=tmp_path / "cold", older_than=0).fields == 1
    for wrong in ("5 days", "", -1, float("nan"), "2026-13-01", object()):
        with pytest.raises(fst.Invalid):
            fst.copy(hot, "run=a", to=tmp_path / "cold", older_than=wrong)


def test_a_new_target_gets_the_schema_of_the_source(tmp_path: Path) -> None:
    schema = "[a [b [c: Integer]]]"
    with fst.open(tmp_path / "hot", schema=schema) as hot:
        hot.archive({"a": "x", "b": "y", "c": 1}, b"1")
    fst.copy(tmp_path / "hot", to=tmp_path / "cold")
    assert fst.open(tmp_path / "cold").schema == schema
    other = fst.open(tmp_path / "other")
    with pytest.raises(fst.Invalid, match=r"a=x.*does not fit the schema"):
        fst.copy(tmp_path / "hot", to=other)
    assert list(other.list()) == []


def test_what_is_wrong_raises_before_anything_moves(hot: fst.Store, tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    with pytest.raises(fst.NotFound, match="step=9"):
        fst.move(hot, "run=a,variable=t,step=3/9", to=cold)
    with pytest.raises(fst.Invalid, match="same store"):
        fst.move(hot, to=tmp_path / "hot")
    with pytest.raises(fst.Denied):
        fst.move(fst.open(tmp_path / "hot", mode="r"), to=cold)
    with pytest.raises(fst.NotFound):
        fst.copy(tmp_path / "nowhere", to=cold)
    assert len(contents(hot)) == 8 and not cold.exists()
    assert fst.move(hot, "run=a,variable=t,step=3/9", to=cold, strict=False).removed == 1


def test_progress_is_told_and_an_exception_ends_it(hot: fst.Store, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    fst.copy(hot, "variable=t", to=tmp_path / "one", progress=lambda done, of: seen.append((done, of)))
    assert seen[0] == (0, 4) and seen[-1] == (4, 4)

    def stop(done: int, of: int) -> None:
        if done == 2:
            raise RuntimeError("enough")

    two = fst.open(tmp_path / "two")
    with pytest.raises(RuntimeError, match="enough"):
        fst.move(hot, to=two, progress=stop)
    assert list(two.list()) == [] and len(contents(hot)) == 8 and two.unflushed == hot.unflushed == 0


def test_a_memory_store_is_handed_to_a_folder(tmp_path: Path) -> None:
    store = fst.open("memory:")
    store.create_field({"run": "a", "variable": "t"}, dtype="f4", shape=(4, 4), fill=7).write(
        np.ones((2, 2), "f4"), start=(1, 1)
    )
    store.flush()
    fst.copy(store, to=tmp_path / "cold")
    cold = fst.open(tmp_path / "cold")
    (entry,) = cold.list()
    assert not entry.complete
    (field,) = cold.retrieve(strict=False)
    expected = np.full((4, 4), 7, "f4")
    expected[1:3, 1:3] = 1
    np.testing.assert_array_equal(field.array(), expected)


def test_fields_keep_their_times_and_older_values_go_along_on_request(hot: fst.Store, tmp_path: Path) -> None:
    key = {"run": "a", "variable": "bytes", "step": 0}
    hot.archive(key, b"newer")
    hot.flush()
    times = {str(e.key): e.time for e in hot.list()}
    report = fst.copy(hot, to=tmp_path / "copies", versions=True)
    assert (report.fields, report.versions) == (8, 1)
    assert "versions=1" in repr(report)
    copies = fst.open(tmp_path / "copies")
    assert {str(e.key): e.time for e in copies.list()} == times
    assert len(list(copies.list(masked=True))) == 9
    report = fst.move(hot, to=tmp_path / "cold")
    assert [(left.kind, left.count) for left in report.left] == [("version", 1)]
    cold = fst.open(tmp_path / "cold")
    assert {str(e.key): e.time for e in cold.list()} == times
    # Old fields are old in their new store, too.
    assert fst.move(cold, to=hot, older_than="1h").fields == 0
    assert fst.move(cold, to=hot, older_than=datetime.now(UTC)).fields == 8
    assert {str(e.key): e.time for e in hot.list()} == times


def test_lineage_is_whole_without_the_source(tmp_path: Path) -> None:
    key = {"run": "a", "variable": "t", "step": 0}
    with fst.open(tmp_path / "hot") as hot:
        with fst.execution("model", hot, params={"nx": 3}) as model:
            hot.archive(key, b"first")
        with fst.execution("regrid", hot) as regrid:
            hot.archive({**key, "variable": "u"}, hot.get(key) + b", regridded")
        report = fst.move(hot, to=tmp_path / "cold")
        assert (report.removed, report.left) == (2, ())
    shutil.rmtree(tmp_path / "hot")
    cold = fst.open(tmp_path / "cold", "r")
    lineage = cold.graph.trace("run=a,variable=u")
    jobs = [vertex for vertex in lineage.vertices if vertex[0] == "job"]
    assert jobs == [tuple(regrid.vertex), tuple(model.vertex)]
    assert [str(e.key["variable"]) for e in cold.graph.fields(model.vertex)] == ["t"]
    assert cold.graph.vertex(model.vertex).props["name"] == "model"


def test_removed_fields_stay_in_older_versions(hot: fst.Store, tmp_path: Path) -> None:
    version = hot.version
    assert hot.remove({"variable": "t", "step": [0, 1]}) == 2
    assert len(contents(hot)) == 8 and hot.unflushed == 2
    hot.flush()
    assert len(contents(hot)) == 6 and len(contents(fst.open(tmp_path / "hot", at=version))) == 8
    with pytest.raises(fst.NotFound):
        hot.get({"run": "a", "variable": "t", "step": 0})
    with pytest.raises(fst.Invalid, match="everything"):
        hot.remove({})
    with hot.transaction() as tx:
        assert tx.remove(["step=2", "step=3,variable=t"]) == 3
        assert len(contents(hot)) == 6
    assert len(contents(hot)) == 3
    hot.archive({"run": "a", "variable": "t", "step": 0}, b"back")
    hot.flush()
    assert hot.get({"run": "a", "variable": "t", "step": 0}) == b"back"


def test_a_killed_move_leaves_each_field_somewhere(tmp_path: Path) -> None:
    fields = {f"{{run=a}}{{variable=t}}{{step={step}}}": b"%d" % step * 5000 for step in range(300)}
    with fst.open(tmp_path / "hot") as store:
        store.archive_many(
            [{"run": "a", "variable": "t", "step": step} for step in range(300)], fields.values()
        )
    code = "import sys, fieldstone as f; print(1, flush=True); f.move(sys.argv[1], to=sys.argv[2])"
    paths = [str(tmp_path / "hot"), str(tmp_path / "cold")]
    for milliseconds in (1, 5, 15, 30, 60):
        child = subprocess.Popen([sys.executable, "-c", code, *paths], stdout=subprocess.PIPE)
        assert child.stdout and child.stdout.readline()
        time.sleep(milliseconds / 1000)
        child.kill()
        child.wait()
        hot, cold = fst.open(paths[0]), fst.open(paths[1])
        made = (tmp_path / "cold" / "fieldstone.store").exists()
        arrived = contents(cold) if made else {}
        assert len(arrived) in (0, 300)
        assert {**contents(hot), **arrived} == fields
        assert hot.verify().ok and (not made or cold.verify().ok)
    fst.move(*paths[:1], to=paths[1])
    assert contents(fst.open(paths[0])) == {} and contents(fst.open(paths[1])) == fields


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "fieldstone"
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done


def test_the_program_copies_and_moves(hot: fst.Store, tmp_path: Path) -> None:
    store, cold = tmp_path / "hot", tmp_path / "cold"
    assert (
        run("copy", store, "variable=bytes", "step=0/1", "--to", cold).stdout == "copied 2 fields, 2 bytes\n"
    )
    done = run("copy", store, "variable=bytes", "--to", cold)
    assert done.stdout == "copied 2 fields, 2 bytes, 2 there already\n"
    report = json.loads(run("move", store, "step=3", "--to", cold, "--json").stdout)
    assert (report["fields"], report["bytes"], report["unchanged"], report["attributes"]) == (1, 2400, 1, 0)
    assert (report["removed"], report["kept"], report["left"]) == (2, [], [])
    assert len(contents(hot)) == 6 and len(contents(fst.open(cold))) == 5
    assert "step=9" in run("move", store, "run=a,variable=t,step=9", "--to", cold, code=3).stderr
    done = run("move", store, "run=a,variable=t,step=2/9", "--to", cold, "--lenient")
    assert done.stdout == "moved 1 field, 2400 bytes\n"
    run("copy", tmp_path / "nowhere", "--to", cold, code=3)
    run("copy", store, code=2)


@pytest.fixture
def annotated(tmp_path: Path) -> fst.Store:
    store = fst.open(tmp_path / "annotated")
    run = store.create_run("a", params={"nx": 3})
    for step in range(3):
        run.create_step(step, time=step / 2)
        run.write("t", step, np.arange(4.0) + step)
    store.flush()
    run.create_variable("p", "f8", (4,), dims=("x",), attrs={"units": "Pa"})
    store.create_tag("max", type="float", unit="K")
    run.annotate("max", 3.0, variable="t", step=1, start=(1,), count=(2,))
    run.annotate("max", 4.0, variable="t", step=2)
    run.annotate("cause", {"of": ["x", None]})
    store.flush()
    return store


def said(store: fst.Store) -> list[tuple[object, ...]]:
    return sorted(
        (h.run, h.tag, h.step or -1, h.variable or "", h.start or (), str(h.value), h.unit or "")
        for h in store.attributes()
    )


def test_what_stands_on_fields_comes_along(annotated: fst.Store, tmp_path: Path) -> None:
    report = fst.copy(annotated, to=tmp_path / "cold")
    assert (report.fields, report.attributes, report.left) == (3, 3, ())
    cold = fst.open(tmp_path / "cold")
    assert said(cold) == said(annotated) and cold.run("a").params == {"nx": 3}
    assert [s.time for s in cold.steps()] == [0.0, 0.5, 1.0]
    (declared,) = cold.variables(variable="p")
    assert (declared.dims, declared.attrs) == (("x",), {"units": "Pa"})
    version = cold.version
    assert fst.copy(annotated, to=cold).attributes == 0 and cold.version == version
    assert fst.copy(annotated, {"run": "a", "step": 1}, to=tmp_path / "part").attributes == 2
    other = fst.open(tmp_path / "other")
    other.create_run("a", params={"nx": 4})
    other.flush()
    with pytest.raises(fst.Conflict, match="nx"):
        fst.copy(annotated, to=other)
    assert list(other.list()) == [] and other.attributes().count() == 0


def test_hits_of_every_form_come_along_with_their_fields(annotated: fst.Store, tmp_path: Path) -> None:
    hits = annotated.attributes(tag="max")
    forms = [hits, hits.collect(), list(hits), tuple(hits), annotated.find("tag=max")]
    for i, form in enumerate(forms):
        report = fst.copy(annotated, form, to=tmp_path / f"cold{i}")
        assert (report.fields, report.attributes) == (2, 2), i
        (first, second) = fst.open(tmp_path / f"cold{i}").attributes()
        assert first.read().tolist() == [2.0, 3.0] and second.value == 4.0
    hit = hits.first()
    assert fst.copy(annotated.url, hit, to=tmp_path / "one").attributes == 1
    assert fst.move(annotated, hit, to=tmp_path / "one").removed == 1
    assert [h.step for h in hits] == [2] and annotated.axes()["step"] == ["0", "2"]
    with pytest.raises(fst.Conflict, match="1 of 1 hits"):
        fst.copy(annotated, [hit], to=tmp_path / "late")
    with annotated.transaction() as tx:
        tx.run("a").annotate("max", 5.0)
        with pytest.raises(fst.Invalid, match="transaction"):
            fst.copy(annotated, annotated.attributes(txn=tx.id), to=tmp_path / "open")


def test_fields_alone_say_what_stays(annotated: fst.Store, tmp_path: Path) -> None:
    report = fst.move(annotated, "run=a", to=tmp_path / "cold", fields=True)
    assert (report.fields, report.attributes, annotated.attributes().count()) == (3, 0, 3)
    left = {row.kind: (row.count, row.names) for row in report.left}
    assert left["attribute"] == (3, ("cause", "max")) and left["step"] == (3, ("0", "1", "2"))
    assert "only fields" in report.left[0].why and "left=(LeftBehind(" in repr(report)


def test_the_program_takes_queries_and_says_what_stays(annotated: fst.Store, tmp_path: Path) -> None:
    def program(*arguments: str) -> tuple[str, str]:
        call = [str(Path(sys.executable).with_name("fieldstone")), *arguments]
        done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, check=True)
        return done.stdout, done.stderr

    assert program("copy", "annotated", "--find", "tag=max", "--to", "found")[0] == (
        "copied 2 fields, 64 bytes, 2 attributes\n"
    )
    out, said = program("copy", "annotated", "run=a", "--to", "bare", "--fields-only")
    assert out == "copied 3 fields, 96 bytes\n"
    assert "3 attributes stayed behind (cause, max): only fields were asked for" in said
    report = json.loads(program("move", "annotated", "--to", "cold", "--json")[0])
    assert (report["attributes"], report["left"], report["removed"]) == (3, [], 3)


def test_further_keywords_of_attributes_come_along(tmp_path: Path) -> None:
    store = fst.open(tmp_path / "hot")
    for number in range(3):
        store.archive({"run": "a", "variable": "t", "step": 0, "member": number}, np.full(4, number, "f4"))
    store.flush()
    run = store.run("a")
    for number in (1, 2):
        run.annotate("storm", float(number), variable="t", step=0, keywords={"member": number})
    run.annotate("storm", 9.0, variable="t", step=0)
    store.flush()
    assert fst.copy(store, to=tmp_path / "cold").attributes == 3
    cold = fst.open(tmp_path / "cold")
    hits = {hit.value: hit for hit in cold.attributes(tag="storm")}
    assert hits[2.0].keywords == {"member": "2"} and hits[2.0].read().tolist() == [2.0] * 4
    assert not hits[9.0].keywords and set(hits) == {1.0, 2.0, 9.0}
    assert fst.copy(store, to=cold).attributes == 0, "each is already there"


def flip(store: Path, value: bytes) -> None:
    """Flips a bit of a value in the file of the store that has it."""
    for path in sorted((store / "logs").iterdir()) + sorted((store / "data").glob("*")):
        content = path.read_bytes()
        if value in content:
            at = content.index(value)
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            return
    raise AssertionError("no file of the store has the value")


def test_a_damaged_field_is_named_and_all_else_goes_along(tmp_path: Path) -> None:
    with fst.open(tmp_path / "hot") as store:
        for step in range(3):
            store.archive({"run": "a", "variable": "t", "step": step}, b"value of step %d" % step * 20)
    flip(tmp_path / "hot", b"value of step 1")
    with pytest.warns(UserWarning, match="1 of the fields cannot be read.*step=1"):
        report = fst.copy(tmp_path / "hot", to=tmp_path / "copy")
    assert (report.fields, report.removed) == (2, 0)
    assert [damaged.key for damaged in report.damaged] == ["{run=a}{variable=t}{step=1}"]
    assert "logs/" in report.damaged[0].why and "damaged=(Unreadable(" in repr(report)
    with pytest.warns(UserWarning):
        report = fst.move(tmp_path / "hot", to=tmp_path / "cold")
    assert (report.fields, report.removed, len(report.damaged)) == (2, 2, 1)
    hot, cold = fst.open(tmp_path / "hot"), fst.open(tmp_path / "cold")
    assert [e.key["step"] for e in hot.list()] == ["1"] and [e.key["step"] for e in cold.list()] == ["0", "2"]
    # After overwriting, the old one is reported as an older version, and nothing is damaged any more.
    hot.archive({"run": "a", "variable": "t", "step": 1}, b"again")
    hot.flush()
    for request in ("run=a", None):
        found = hot.verify(request)
        assert found.ok and any("an older version of {run=a}" in note for note in found.notes)
    assert fst.move(hot, "run=a", to=cold).damaged == ()


def test_hits_of_a_member_take_its_field_alone(tmp_path: Path) -> None:
    hot = fst.open(tmp_path / "hot")
    for number in range(5):
        hot.archive({"run": "a", "variable": "t", "step": 0, "number": number}, np.full(3, number, "f8"))
    hot.flush()
    for number in (2, 4):
        hot.run("a").annotate("storm", number, variable="t", step=0, keywords={"number": number})
    hot.flush()
    hits = hot.attributes(tag="storm", keywords={"number": 4})
    for way, given in enumerate([hits, hits.collect(), hits[0], list(hits)]):
        report = fst.copy(hot, given, to=tmp_path / f"copy{way}")
        assert (report.fields, report.attributes) == (1, 1)
        copied = fst.open(tmp_path / f"copy{way}", mode="r")
        assert [e.key["number"] for e in copied.list()] == ["4"]
    report = fst.copy(hot, hits, to=tmp_path / "bare", fields=True)
    assert (report.fields, report.attributes) == (1, 0)
    report = fst.copy(hot, "run=a,number=2", to=tmp_path / "two")
    assert (report.fields, report.attributes) == (1, 1)
    report = fst.move(hot, hits, to=tmp_path / "cold")
    assert (report.fields, report.removed, len(list(hot.list())), hot.attributes().count()) == (1, 1, 4, 1)

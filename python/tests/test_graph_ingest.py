"""Provenance recorded by others, ingested into the graph by ``fieldstone.ingest``."""

from __future__ import annotations

import json
import os
from datetime import timedelta, timezone
from zoneinfo import ZoneInfo

import fieldstone as fst
import pytest

LISTING = """JobID|JobName|UID|Start|End|State|ExitCode
17|regrid|1000|2026-11-21T07:00:00|2026-11-21T07:01:00|COMPLETED|0:0
17.0|regrid|1000|2026-11-21T07:00:10|2026-11-21T07:00:50|COMPLETED|0:0
"""


def event(kind, time, **data):
    job = {"namespace": "lab", "name": "regrid"}
    return {"eventType": kind, "eventTime": time, "run": {"runId": "r-1"}, "job": job, **data}


def test_a_listing_of_slurm(tmp_path):
    listing = tmp_path / "jobs.txt"
    listing.write_text(LISTING)
    with fst.open("memory:") as store:
        report = fst.ingest(store, listing, progress=False)
        taken = report.taken[0]
        assert not report.skipped and taken.fields == 0 and taken.relations > 2
        jobs = {edge.dst for edge in store.graph.edges(("user", "1000"), "run")}
        assert jobs == {("job", "17"), ("job", "17.0")}
        again = fst.ingest(store, listing, progress=False).taken[0]
        assert (again.relations, again.unchanged) == (0, taken.relations), (
            "history taken twice is stored once"
        )


def test_events_of_one_run_in_two_files(tmp_path):
    first, second = tmp_path / "start.json", tmp_path / "end.json"
    data = {"namespace": "file", "name": "/data/in.nc"}, {"namespace": "file", "name": "/data/out.nc"}
    first.write_text(json.dumps(event("START", "2026-11-21T07:00:00Z", inputs=[data[0]])))
    second.write_text(json.dumps(event("COMPLETE", "2026-11-21T07:05:00Z", outputs=[data[1]])))
    with fst.open("memory:") as store:
        report = fst.ingest(store, [first, second], progress=False)
        assert not report.skipped and len(report.taken) == 2
        lineage = store.graph.trace(("file", "/data/out.nc"))
        assert ("file", "/data/in.nc") in lineage and len(lineage.executions) == 1


def test_a_directory_tree_where_it_is_asked_for(tmp_path):
    root = tmp_path / "data"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.nc").write_bytes(b"12345")
    with fst.open("memory:") as store:
        with pytest.raises(fst.Invalid, match="neither GRIB nor netCDF"):
            fst.ingest(store, root, progress=False)  # only the files in it, not the tree
        assert fst.ingest(store, root, tree=True, progress=False).taken[0].relations > 2
        path = str((root / "sub" / "a.nc").resolve())
        assert store.graph.vertex(("file", path)).static["size"] == 5
        parents = store.graph.edges(("file", path), "belongsTo")
        assert [edge.dst for edge in parents] == [("directory", str((root / "sub").resolve()))]
        assert fst.ingest(store, root, tree=True, progress=False).taken[0].relations == 0


def test_a_tree_taken_again_ends_what_was_removed_and_knows_what_came_back(tmp_path):
    root = (tmp_path / "data").resolve()
    (root / "sub" / "deep").mkdir(parents=True)
    for name in ("kept", "sub/a", "sub/deep/b"):
        (root / name).write_bytes(b"x")
    kept, a, deep, b = (
        ("file", f"{root}/kept"),
        ("file", f"{root}/sub/a"),
        ("directory", f"{root}/sub/deep"),
        ("file", f"{root}/sub/deep/b"),
    )
    top, sub = ("directory", str(root)), ("directory", f"{root}/sub")
    with fst.open("memory:") as store:
        g = store.graph

        def take():
            return fst.ingest(store, root, tree=True, progress=False).taken[0].relations

        def entries(directory):
            return {edge.dst for edge in g.edges(directory, "has")}

        take()
        whole = store.version
        times = os.stat(root / "sub/deep/b")
        (root / "sub/deep/b").rename(tmp_path / "aside")
        (root / "sub/deep").rmdir()
        assert take() >= 2 and take() == 0
        assert entries(sub) == {a} and entries(top) == {kept, sub}
        for gone in (deep, b):
            with pytest.raises(fst.NotFound):
                g.vertex(gone)
            assert g.versions(gone)[0].deleted and not g.versions(gone)[1].deleted
        assert g.vertex(b, at=times.st_mtime + 1e-6).id == b[1], "it exists at its time"
        (root / "sub/deep").mkdir()
        (tmp_path / "aside").rename(root / "sub/deep/b")  # its time of change is earlier
        assert take() >= 2 and take() == 0
        assert g.vertex(b).static["size"] == 1 and entries(deep) == {b} and entries(sub) == {a, deep}
        (root / "kept").unlink()
        (root / "kept").symlink_to(root / "sub/a")
        take()
        assert entries(top) == {sub}, "links are left out"
        store.flush()
    assert whole


def test_files_of_a_tree_are_owned_by_one_user_at_a_time(tmp_path):
    root = (tmp_path / "data").resolve()
    root.mkdir()
    (root / "f").write_bytes(b"x")
    file, me = ("file", f"{root}/f"), ("user", str(os.getuid()))
    with fst.open("memory:") as store:
        fst.ingest(store, root, tree=True, progress=False)
        assert [edge.dst for edge in store.graph.edges(file, "ownedBy")] == [me]
        assert {edge.dst for edge in store.graph.edges(me, "~ownedBy")} == {file, ("directory", str(root))}
        store.graph.delete_edge("ownedBy", file, me)
        store.graph.put_edge("ownedBy", file, ("user", "4711"))  # as if another user owned it
        assert fst.ingest(store, root, tree=True, progress=False).taken[0].relations == 1
        assert [edge.dst for edge in store.graph.edges(file, "ownedBy")] == [me]
        assert fst.ingest(store, root, tree=True, progress=False).taken[0].relations == 0


def test_what_cannot_be_read_is_reported(tmp_path):
    wrong = tmp_path / "jobs.txt"
    wrong.write_text("JobID|Start\n1|yesterday\n")
    with fst.open("memory:") as store:
        with pytest.raises(fst.Invalid) as refused:
            fst.ingest(store, wrong, progress=False)
        assert "jobs.txt" in refused.value.report.skipped[0].why
        assert store.graph.stats().relations == 0


def test_each_change_is_durable_where_that_is_asked_for(tmp_path):
    file = ("file", "/data/a.nc")
    with fst.open(tmp_path / "store", autoflush=0) as store:
        store.graph.put_edge("write", ("job", "1"), file)
        store.archive({"run": "a", "variable": "t"}, b"x")
        store.run("a").annotate("note", "fine")
        with fst.open(tmp_path / "store", mode="r") as other:
            assert [edge.dst for edge in other.graph.edges(file)] == [("job", "1")]
            assert other.get({"run": "a", "variable": "t"}) == b"x"
            assert other.attributes(tag="note").count() == 1
        assert store.unflushed == 0


def test_times_of_a_listing_are_of_the_zone_that_is_given(tmp_path):
    listing = tmp_path / "jobs.txt"
    listing.write_text(LISTING)

    def begins(zone):
        with fst.open("memory:") as store:
            fst.ingest(store, listing, timezone=zone, progress=False)
            return store.graph.vertex(("job", "17")).props["start"].hour

    assert begins("UTC") == 7 and begins("+01:00") == 6 and begins(timezone(timedelta(hours=-2))) == 9
    for zone in ("Europe/Berlin", ZoneInfo("Europe/Berlin")):
        with pytest.raises(fst.Invalid, match="offset"):
            begins(zone)


def test_start_and_end_of_a_run_in_two_calls(tmp_path):
    parts = tmp_path / "start.json", tmp_path / "end.json"
    data = [{"namespace": "file", "name": name} for name in ("/data/in.nc", "/data/out.nc")]
    parts[0].write_text(json.dumps(event("START", "2026-11-21T07:00:00Z", outputs=[data[1]])))
    parts[1].write_text(json.dumps(event("COMPLETE", "2026-11-21T07:05:00Z", inputs=[data[0]])))
    for order in (parts, parts[::-1]):
        with fst.open("memory:") as store:
            for part in order:
                fst.ingest(store, part, progress=False)
            assert ("file", "/data/in.nc") in store.graph.trace(("file", "/data/out.nc"))
            props = store.graph.vertex(("job", "openlineage:lab/regrid/r-1")).props
            assert props["state"] == "COMPLETE" and props["recorded_by"] == "openlineage"

"""Lineages for others: PROV-JSON in the package prov, pictures as XML, events in OpenLineage's own client;
differences, scripts, audits."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import fieldstone as fst
import pytest
from conftest import require

ODD = [
    '/a"b\\c.nc',
    "/new\nline\tand\x01\x1b[31m",
    "<script>alert(1)</script>&amp;",
    "/日本語/été/😀.nc",
    "--> ]]> \u202egnp.exe",
    "/x.",
    " ",
    "é" * 30_000,
    "fst:a@1!{}'$(x)`",
]
PLOT = ("file", "/plots/t.png")


@pytest.fixture
def graph():
    with fst.open("memory:") as store:
        yield store.graph


@pytest.fixture
def story(graph):
    """A model of two ranks, and a plot of its output."""
    graph.put_vertex("job", "17", props={"name": "model", "argv": ["model", "-n", "2"], "env": {"LANG": "C"}})
    graph.put_edge("run", ("user", str(os.getuid())), ("job", "17"), time=1)
    for rank in range(2):
        graph.put_edge("contains", ("job", "17"), ("process", f"17/{rank}"), time=1)
        graph.put_edge("write", ("process", f"17/{rank}"), ("file", "/t.nc"), time=2, props={"bytes": 5})
    graph.put_edge("read", ("job", "18"), ("file", "/t.nc"), time=3)
    graph.put_edge("write", ("job", "18"), PLOT, time=4)
    return graph


@pytest.fixture
def odd(graph):
    """Ids of any characters, as jobs, users, data and types."""
    for id in ODD:
        graph.put_vertex("job", id, props={"name": id, "argv": [id], "error": id, 'odd "prop"\n<': id})
        graph.put_edge("run", ("user", id), ("job", id))
        graph.put_edge("read", ("job", id), ("file", id))
        graph.put_edge("read", ("job", id), ('odd kind "<&\n', id), props={"checksum": id})
        graph.put_edge("write", ("job", id), PLOT)
    return graph


def provs(text):
    require("prov", importlib.util.find_spec("prov") is not None, "the package prov is not installed")
    from prov.model import ProvDocument

    return ProvDocument.deserialize(content=text, format="json")


def test_prov_loads_what_is_exported(story):
    from_prov = provs(story.export(PLOT))
    from prov.model import ProvActivity, ProvAgent, ProvEntity, ProvGeneration

    kinds = [len(list(from_prov.get_records(kind))) for kind in (ProvEntity, ProvActivity, ProvAgent)]
    assert kinds == [2, 4, 1]
    (model,) = from_prov.get_record("fst:job/17")
    assert str(model.label) == "model" and len(list(from_prov.get_records(ProvGeneration))) == 2
    assert provs(from_prov.serialize(format="json")) == from_prov


@pytest.mark.filterwarnings("error")
def test_prov_loads_ids_of_any_characters(odd):
    from_prov = provs(odd.export(PLOT))
    from prov.model import ProvActivity

    names = {str(next(iter(one.get_attribute("fst:id")))) for one in from_prov.get_records(ProvActivity)}
    assert names == set(ODD)
    assert from_prov.get_provn()


def test_openlineages_client_takes_the_events(story):
    there = importlib.util.find_spec("openlineage") is not None
    require("openlineage", there, "the package openlineage-python is not installed")
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState

    events = json.loads(story.export(PLOT, "openlineage"))
    assert len(events) == 4
    for event in events:
        RunEvent(
            eventType=RunState[event["eventType"]],
            eventTime=event["eventTime"],
            run=Run(**event["run"]),
            job=Job(**event["job"]),
            inputs=[InputDataset(**one) for one in event["inputs"]],
            outputs=[OutputDataset(**one) for one in event["outputs"]],
            producer=event["producer"],
        )


def test_ingest_takes_openlineage_back(odd, tmp_path):
    assert odd.export(PLOT, "openlineage", tmp_path / "events.json") is None
    with fst.open("memory:") as other:
        fst.ingest(other, tmp_path / "events.json")

        def facts(graph):
            return {(e.type, e.src, e.dst, int(e.stamp), str(e.props)) for e in graph.trace(PLOT).edges}

        assert facts(other.graph) == facts(odd) and len(facts(odd)) == 3 * len(ODD)
        for id in ODD:
            assert other.graph.vertex(("job", id)).props == odd.vertex(("job", id)).props


def test_a_picture_is_xml_and_has_the_names_in_full(odd):
    svg = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(odd.export(PLOT, "svg"))
    titles = [title.text for title in root.iter(svg + "title")]
    assert any(ODD[3] in title for title in titles) and root.tag == svg + "svg"
    assert not list(root.iter(svg + "script"))
    assert len(list(root.iter(svg + "text"))) == 2 * (1 + 3 * len(ODD)) + 2
    box = [float(number) for number in root.get("viewBox").split()]
    for rect in root.iter(svg + "rect"):
        assert float(rect.get("x", 0)) + float(rect.get("width")) <= box[2]
        assert float(rect.get("y", 0)) + float(rect.get("height")) <= box[3]


def test_graphviz_text_has_all_vertices(story):
    text = story.export(PLOT, "dot")
    assert text.count("shape=") == 2 + 4 + 1 and text.count(" -> ") == 2 + 2 + 1 + 1 + 1
    assert text.startswith("digraph ") and 'label="model\\njob"' in text


def test_a_notebook_shows_the_picture(story):
    lineage = story.trace(PLOT)
    svg = lineage.export("svg")
    assert svg in lineage._repr_html_() and "2 processes" in svg
    down = story.trace(("file", "/t.nc"), direction="down")
    assert "t.png" in down.export("svg") and "model" not in down.export("svg")
    with pytest.raises(fst.Invalid, match="pdf"):
        lineage.export("pdf")


def test_an_export_is_written_to_a_path(story, tmp_path):
    path = tmp_path / "ro-crate-metadata.json"
    path.write_text("older")
    assert story.export(PLOT, format="ro-crate", path=str(path)) is None
    assert path.read_text() == story.export(PLOT, "ro-crate")
    crate = json.loads(path.read_text())
    types = {one["@type"] for one in crate["@graph"]}
    assert types >= {"File", "CreateAction", "Person", "SoftwareApplication"}
    with pytest.raises(fst.NotFound):
        story.export(PLOT, path=tmp_path / "none" / "x")
    with pytest.raises(fst.NotFound):
        story.export(("file", "/nobody"))


def test_within_a_transaction_its_own_relations_are_exported():
    with fst.open("memory:") as store, store.transaction() as tx:
        tx.graph.put_edge("write", ("job", "1"), PLOT)
        assert "fst:job/1" in tx.graph.export(PLOT)
        assert tx.graph.trace(PLOT).export("dot").count(" -> ") == 1
        with pytest.raises(fst.NotFound):
            store.graph.export(PLOT)


def test_one_changed_variable_alone_is_listed(graph):
    for id, threads in (("a", "4"), ("b", "8")):
        props = {"argv": ["model", "x"], "env": {"OMP_NUM_THREADS": threads, "LANG": "C"}, "cwd": "/w"}
        graph.put_vertex("job", id, props=props)
        graph.put_edge("write", ("job", id), ("file", f"/out/{id}"))
    for pair in ((("job", "a"), ("job", "b")), (("file", "/out/a"), ("file", "/out/b"))):
        (row,) = graph.compare(*pair)
        assert (row.what, row.name, row.values) == ("environment", "OMP_NUM_THREADS", ["4", "8"])
    assert graph.compare(("job", "a"), ("job", "a")) == []
    with pytest.raises(fst.Invalid):
        graph.compare(("job", "a"))


def test_a_script_rebuilds_bit_for_bit(graph, tmp_path):
    def step(id, words, reads, writes, **more):
        """Runs a command, and puts what the capture would."""
        subprocess.run(words, cwd=tmp_path, check=True, env={**os.environ, **more})
        graph.put_vertex("job", id, props={"argv": words, "cwd": str(tmp_path), "env": more})
        for kind, names in (("read", reads), ("write", writes)):
            for name in names:
                graph.put_edge(kind, ("job", id), ("file", str(tmp_path / name)))

    (tmp_path / "in").write_text("3\n1\n2\n")
    step("1", ["sh", "-c", "sort in > mid; echo $WORD >> mid"], ["in"], ["mid"], WORD="it's")
    step("2", ["sh", "-c", 'tr "123" "abc" < mid > "out \'1"'], ["mid"], ["out '1"])
    result = tmp_path / "out '1"
    before = result.read_bytes()
    result.unlink()
    (tmp_path / "mid").unlink()
    script = graph.script(("file", str(result)))
    subprocess.run(["sh"], input=script, text=True, check=True, cwd="/")
    assert result.read_bytes() == before
    with pytest.raises(fst.NotFound, match="in"):
        graph.script(("file", str(tmp_path / "in")))


def test_audits_are_sequences_of_what_was_done(story):
    audit = story.audit(file="/t.nc")
    assert [(row.action, row.execution, row.object) for row in audit] == [
        ("write", ("process", "17/0"), ("file", "/t.nc")),
        ("write", ("process", "17/1"), ("file", "/t.nc")),
        ("read", ("job", "18"), ("file", "/t.nc")),
    ]
    assert audit.derived == [("job", "18"), PLOT] and not audit.truncated
    assert audit[0].time.year == 1970 and audit[0].user == story.vertex(("job", "17")).user
    mine = story.audit(user=os.getuid())
    assert [row.action for row in mine] == ["run", "write", "write"] and mine.derived == []
    assert [row.action for row in story.audit(mine[0].user, since=2)] == ["write", "write"]
    assert len(story.audit(user=os.getuid(), file=("file", "/t.nc"), until=2)) == 2
    assert mine.to_arrow().num_rows == 3 and "<td>write</td>" in mine._repr_html_()
    for wrong in ({}, {"user": 1.5}, {"user": True}):
        with pytest.raises(fst.Invalid):
            story.audit(**wrong)
    with pytest.raises(fst.NotFound):
        story.audit(user="nobody-of-this-name")


def test_a_relative_path_is_the_file_there(graph, tmp_path, monkeypatch):
    graph.put_edge("read", ("job", "1"), ("file", str(Path(tmp_path).resolve() / "x")))
    monkeypatch.chdir(tmp_path)
    assert len(graph.audit(file="x")) == 1 and len(graph.audit(file=Path("x"))) == 1

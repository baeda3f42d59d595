"""SDM's Figures 1, 7 and 8 in Python, from examples/, under mpiexec."""

from __future__ import annotations

import runpy
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import ROOT
from mpi_job import mpirun

EXAMPLES = ROOT / "examples"


def example(ranks: int, name: str, store: Path) -> list[str]:
    """The output of an example."""
    script = f"""
    import runpy, sys
    sys.argv = [{name!r}, {str(store)!r}]
    runpy.run_path({str(EXAMPLES / name)!r}, run_name="__main__")
    """
    return mpirun(ranks, script).stdout.splitlines()


def test_figure_1_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    store = tmp_path / "astro3d.store"
    (line,) = example(4, "astro3d.py", store)
    assert line.endswith("pictures up to step 3")
    first, second = example(2, "astro3d.py", store)
    assert (first, second.split(", ")[1]) == ("goes on after step 3", "pictures up to step 7")
    reader = fst.open(store, "r")
    full = slice(None)
    fields = runpy.run_path(str(EXAMPLES / "astro3d.py"))["fields"]
    for step in range(8):
        state = fields(step, full, full)
        there = {field.key["variable"] for field in reader.retrieve(f"run=astro3d,step={step}", strict=False)}
        expected = {f"p{i}" for i in range(7)}
        expected |= {f"a{i}" for i in range(6)} if step % 2 == 0 else set()
        expected |= {f"r{i}" for i in range(6)} if step % 4 == 3 else set()
        assert there == expected
        for name in there:
            values = reader.get(f"run=astro3d,variable={name},step={step}")
            source = state[int(name[1:]) % 6]
            if name[0] == "p":
                source = (source / 16 + int(name[1:])).astype("i8").astype("u1")
            np.testing.assert_array_equal(values, source.astype(values.dtype))
    assert reader.verify().ok


@pytest.mark.parametrize("ranks", [1, 4])
def test_regular_and_irregular_views(ranks: int, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    store = tmp_path / "views.store"
    assert example(ranks, "views.py", store)[-1].endswith(" by rank 0")
    reader = fst.open(store, "r")
    matrix = np.add.outer(np.arange(12) * 100.0, np.arange(10))
    np.testing.assert_array_equal(reader.get("run=views,variable=matrix,step=0"), matrix)
    nodes = np.arange(60.0)[:, None] + np.arange(3) / 10
    for name in ("velocity", "displacement"):
        np.testing.assert_array_equal(reader.get(f"run=views,variable={name},step=0"), nodes)
    for step in range(2):
        ranks_of = np.repeat(np.arange(ranks), np.arange(ranks) + 2 * step)
        x = reader.get(f"run=views,variable=x,step={step}")
        np.testing.assert_array_equal(x, np.repeat(ranks_of[:, None], 3, 1).astype("f4"))


def test_a_flow_goes_on_with_other_ranks_bit_for_bit(tmp_path: Path) -> None:
    """examples/flow.py, as the demo runs it, on the cubed sphere of iris-sample-data."""
    pytest.importorskip("mpi4py")
    pytest.importorskip("uxarray")
    samples = pytest.importorskip("iris_sample_data")
    url, flow = tmp_path / "flow.store", runpy.run_path(str(EXAMPLES / "flow.py"))
    with fst.open(url) as store:
        source = Path(samples.path) / "mesh_C4_synthetic_float.nc"
        assert fst.ingest(store, source, mesh="globe", progress=False).skipped == ()
        with store.arrays("flow") as job:
            mesh, part = job.mesh("globe"), job.partition("globe", "block", history=False)
            whole = flow["Part"](mesh.read("x"), mesh.read("y"), part.edges, part.ends)
            tracer = np.cos(np.radians(whole.lat)) ** 2 * (1 + np.sin(np.radians(whole.lon)))
            job.group("state", {"tracer": "f8"}, mesh="globe", location="node").write("tracer", 0, tracer)
    expected = [tracer]
    for _ in range(5):
        expected.append(flow["advance"](expected[-1], whole))
    for ranks, steps in ((4, 2), (3, 2), (1, 1)):
        script = f"""
        import runpy, sys
        sys.argv = ["flow.py", {str(url)!r}, "{steps}"]
        runpy.run_path({str(EXAMPLES / "flow.py")!r}, run_name="__main__")
        """
        assert len(mpirun(ranks, script).stdout.splitlines()) == ranks
    got = fst.open(url, "r").to_xarray("run=flow").tracer
    assert got.dims == ("step", "nglobe_node")
    np.testing.assert_array_equal(got.values, np.stack(expected))
    assert np.ptp(got.values.sum(axis=1)) < 1e-12 * 98, "the tracer is conserved"
    assert np.abs(got.values[-1] - tracer).max() > 0.05, "it flows"

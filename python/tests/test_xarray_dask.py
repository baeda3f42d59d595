"""The xarray engine with dask: chunks as stored, names that identify their content, no reads before
compute."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap

import fieldstone as fst
import numpy as np
import pytest
from conftest import require

xr = pytest.importorskip("xarray")
dask = pytest.importorskip("dask")
pytest.importorskip("netCDF4")
from dask.base import tokenize  # noqa: E402
from fieldstone._xarray import source as sources  # noqa: E402
from test_helper_netcdf import make  # noqa: E402


def opened(url, **options):
    return xr.open_dataset(url, engine="fieldstone", **options)


@pytest.fixture
def url(tmp_path):
    """Four steps of t (4 x 6, one block), z (in chunks), and w (in pieces)."""
    url = str(tmp_path / "s")
    with fst.open(url) as store:
        for step in range(4):
            key = {"run": "a", "step": step}
            store.archive({**key, "variable": "t"}, np.arange(24.0).reshape(4, 6) + step)
            store.archive({**key, "variable": "z"}, np.zeros((4, 6), "i2"), chunks=(2, 4))
            for y, x in ((0, 0), (0, 3), (2, 0), (2, 3)):
                piece = np.full((2, 3), step, "f4")
                store.archive({**key, "variable": "w"}, piece, start=(y, x), shape=(4, 6))
    return url


def test_chunks_are_those_of_the_store(url):
    ds = opened(url, chunks={})
    ones = (1, 1, 1, 1)
    assert ds.t.chunks == (ones, (4,), (6,))
    assert ds.z.chunks == (ones, (2, 2), (4, 2))
    assert ds.w.chunks == (ones, (2, 2), (3, 3))
    assert ds.t.encoding["preferred_chunks"] == {"step": 1, "dim_0": 4, "dim_1": 6}
    assert ds.z.isel(step=2).compute().shape == (4, 6)
    np.testing.assert_array_equal(ds.w.values, np.broadcast_to(np.arange(4.0)[:, None, None], (4, 4, 6)))


def test_large_arrays_have_the_chunks_that_the_store_cut(tmp_path):
    url = str(tmp_path / "s")
    with fst.open(url) as store:
        store.archive({"run": "a", "variable": "t"}, np.zeros((600, 700)))
    (field,) = fst.open(url, "r").retrieve()
    assert opened(url, chunks={}).t.data.chunksize == field.chunks != (600, 700)
    # `auto` combines stored blocks until they are worth a task.
    auto = opened(url, chunks="auto").t
    assert auto.data.npartitions == 1


def test_automatic_chunks_put_steps_together(url):
    ds = opened(url, chunks="auto")
    assert ds.t.chunks == ((4,), (4,), (6,))
    with dask.config.set({"array.chunk-size": "400B"}):
        assert opened(url, chunks="auto").t.chunks[0] == (2, 2)


def test_chunks_of_an_ingested_file_are_its_fields(tmp_path):
    url = str(tmp_path / "s")
    fst.ingest(url, make(tmp_path / "small.nc"), progress=False)
    ds = opened(url, chunks={})
    assert ds.t.chunks == ((1, 1), (3,), (4,))
    tree = xr.open_datatree(url, engine="fieldstone", chunks={})
    assert tree["small/t"].chunks == ds.t.chunks
    xr.testing.assert_identical(tree["small"].to_dataset().load(), ds.load())


def read_bytes():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


def look_at(ds, tree):
    """The calls of a notebook before anything is computed."""
    for shown in (ds, ds.t, ds.z.isel(step=1), tree):
        assert len(repr(shown)) < 10_000
        assert len(shown._repr_html_()) < 200_000
    return ds.sizes, ds.nbytes, ds.t.isel(step=slice(1, 3)), tokenize(ds)


@pytest.mark.parametrize("chunks", [None, {}])
def test_nothing_is_read_for_a_repr(url, chunks):
    require("linux", sys.platform == "linux", "no /proc")

    def both():
        return opened(url, chunks=chunks), xr.open_datatree(url, engine="fieldstone", chunks=chunks)

    look_at(*both())  # imports what it needs
    ds, tree = both()
    before = read_bytes()
    own = read_bytes() - before
    before = read_bytes()
    look_at(ds, tree)
    assert read_bytes() - before <= own + 2
    # A corner of one step reads one piece of that step.
    before = read_bytes()
    ds.w.isel(step=1, dim_0=0, dim_1=slice(0, 3)).values  # noqa: B018
    assert 0 < read_bytes() - before - own < 1000


def test_what_was_opened_does_not_change(url):
    lazy, chunked = opened(url), opened(url, chunks={})
    tree = xr.open_datatree(url, engine="fieldstone", chunks={})
    with fst.open(url) as store:
        store.archive({"run": "a", "variable": "t", "step": 2}, np.full((4, 6), -1.0))
        store.archive({"run": "a", "variable": "t", "step": 9}, np.full((4, 6), -1.0))
    for ds in (lazy, chunked, tree["a"].to_dataset(), pickle.loads(pickle.dumps(chunked))):
        assert ds.sizes["step"] == 4
        assert float(ds.t.min()) == 0
    assert float(opened(url).t.min()) == -1


SCRIPT = """
    import sys
    import xarray
    from dask.base import tokenize

    url = sys.argv[1]
    for chunks in (None, {}, "auto"):
        ds = xarray.open_dataset(url, engine="fieldstone", chunks=chunks)
        print(tokenize(ds), tokenize(ds.t), tokenize(ds.t.isel(step=1)))
        print(tokenize(ds.chunk({"step": 2})))
        tree = xarray.open_datatree(url, engine="fieldstone", chunks=chunks)
        print(tokenize(tree["a"].to_dataset()))
    print(tokenize(xarray.open_dataset(url, engine="fieldstone", request={"step": [0, 1]}, chunks={})))
"""


def tokens(url):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), url], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_tokens_are_equal_in_two_processes_and_differ_by_version_and_selection(url):
    first = tokens(url)
    assert tokens(url) == first
    # The Dataset, an array, a part of it: for each way to open, and for the tree.
    assert len(set(first)) == len(first), first
    with fst.open(url) as store:
        store.archive({"run": "a", "variable": "t", "step": 2}, np.full((4, 6), -1.0))
    second = tokens(url)
    assert not set(first) & set(second)


def test_a_changed_store_has_other_dask_names(url):
    before = opened(url, chunks={})
    with fst.open(url) as store:
        version = store.version
        store.archive({"run": "a", "variable": "t", "step": 2}, np.full((4, 6), -1.0))
    after, again = opened(url, chunks={}), opened(url, chunks={}, at=version)
    assert before.t.data.name == again.t.data.name != after.t.data.name
    assert before.chunk({"step": 2}).t.data.name != after.chunk({"step": 2}).t.data.name
    # Both versions in one graph.
    assert float((before.t - after.t).isel(step=2, dim_0=0, dim_1=0)) == 3


def test_a_decoded_variable_has_another_name_than_a_raw_one(tmp_path):
    url = str(tmp_path / "s")
    fst.ingest(url, make(tmp_path / "small.nc"), progress=False)
    decoded, raw = opened(url, chunks={}), opened(url, chunks={}, mask_and_scale=False)
    assert decoded.t.data.name != raw.t.data.name
    assert tokenize(opened(url)) == tokenize(opened(url))
    assert tokenize(opened(url)) != tokenize(opened(url, mask_and_scale=False))


def test_arrays_travel_to_other_processes(url):
    ds = opened(url, chunks={})
    expected = float(ds.t.mean())
    assert float(ds.t.mean().compute(scheduler="processes", num_workers=2)) == expected
    small = len(pickle.dumps(opened(url)))
    with fst.open(url) as store:
        keys = [{"run": "a", "variable": "s", "step": i} for i in range(5000)]
        store.archive_many(keys, [np.zeros(1)] * 5000)
    assert len(pickle.dumps(opened(url, request={"variable": "s"}))) < small + 200_000


def test_arrays_travel_to_a_cluster(url):
    distributed = pytest.importorskip("distributed")
    ds = opened(url, chunks={})
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        persisted = ds.persist()
        with fst.open(url) as store:
            store.archive({"run": "a", "variable": "t", "step": 2}, np.full((4, 6), -1.0))
        # The cluster holds the old version; the newly opened one is not mistaken for it.
        assert float(opened(url, chunks={}).t.min().compute()) == -1
        assert float(persisted.t.min().compute()) == 0


def test_a_process_opens_a_store_once_for_all_arrays_that_arrive(url, monkeypatch):
    ds = opened(url)
    data = [pickle.dumps(ds[name]) for name in ("t", "z", "w")]
    opens = []
    real = fst.open
    monkeypatch.setattr(fst, "open", lambda *a, **k: (opens.append(a), real(*a, **k))[1])
    sources._open.clear()
    for text in data:
        pickle.loads(text).load()
    assert len(opens) == 1

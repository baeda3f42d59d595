"""Arrays of a store as Zarr 3: zarr-python and xarray read the same as through the engine."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import threading
import warnings

import fieldstone as fst
import numpy as np
import pytest
from conftest import sample, share

zarr = pytest.importorskip("zarr")
xr = pytest.importorskip("xarray")
from zarr.core.buffer import default_buffer_prototype  # noqa: E402


def keys(store, prefix=""):
    async def found():
        return [key async for key in store.list_prefix(prefix)]

    return asyncio.run(found())


def members(store, path):
    async def found():
        return sorted([name async for name in store.list_dir(path)])

    return asyncio.run(found())


def document(store, path=""):
    return json.loads(store.get_sync(f"{path}/zarr.json".lstrip("/")).to_bytes())


def steps(store, chunks=(2, 3)):
    """Two variables of two steps in one run."""
    for step in (0, 6):
        values = np.arange(24, dtype="f4").reshape(4, 6) + step
        store.archive({"run": "a", "variable": "t", "step": step}, values, chunks=chunks)
        store.archive({"run": "a", "variable": "n", "step": step}, values.astype("i2"))
    store.flush()
    return store


def study(store):
    """Runs that declare names, units, coordinates, times and parameters, one of which a run lacks."""
    for n, power in enumerate((8.5, 9.2, 9.7)):
        run = store.create_run(f"run-{n}", params={"power": power, **({"note": f"#{n}"} if n else {})})
        run.create_variable(
            "t", "f4", (2, 3), ("y", "x"), attrs={"units": "K"}, coords={"x": fst.uniform(0.0, 0.5)}
        )
        run.create_steps([0, 6], times=[0.0, 0.3])
        for step in (0, 6):
            run.write("t", step, np.full((2, 3), step + n, "f4"))
        if n:
            run.write("count", 6, np.arange(4) + n)
    store.flush()
    return store


def test_runs_and_steps_are_leading_dimensions(tmp_path):
    with fst.open(tmp_path / "s") as store:
        study(store)
        found = fst.zarr_store(store)
        made = zarr.open_group(found, mode="r")
        assert made["t"].shape == (3, 2, 2, 3) and made["t"].chunks == (1, 1, 2, 3)
        assert document(found, "t")["dimension_names"] == ["run", "step", "y", "x"]
        assert made["t"].attrs["units"] == "K"
        assert made["t"][2, 1].tolist() == [[8, 8, 8]] * 2
        assert made["run"][:].tolist() == ["run-0", "run-1", "run-2"]
        assert made["x"][:].tolist() == [0, 0.5, 1]


def test_xarray_reads_what_the_engine_reads(tmp_path):
    with fst.open(tmp_path / "s") as store:
        study(store)
        expected = store.to_xarray().load()
        found = xr.open_zarr(fst.zarr_store(store)).load()
        xr.testing.assert_identical(found, expected)
        assert {n: v.dtype for n, v in found.variables.items()} == {
            n: v.dtype for n, v in expected.variables.items()
        }
        assert set(found.coords) == {"run", "power", "note", "step", "time", "x"}
        one = fst.zarr_store(store, "run=run-1,variable=t")
        xr.testing.assert_identical(xr.open_zarr(one).load(), store.to_xarray("run=run-1,variable=t").load())


def test_a_tree_has_a_group_for_each_run(tmp_path):
    with fst.open(tmp_path / "s") as store:
        study(store)
        store.archive({"run": "deep", "variable": "u/v", "step": 0}, np.ones(3))
        store.archive({"project": "p", "run": "own", "variable": "t", "step": 0}, np.ones(3))
        store.flush()
        found = fst.zarr_store(store, tree=True)
        assert members(found, "") == ["deep", "p", "run-0", "run-1", "run-2", "zarr.json"]
        assert members(found, "deep") == ["u", "zarr.json"]
        assert members(found, "deep/u") == ["run", "step", "v", "zarr.json"]
        assert document(found, "p")["node_type"] == "group" and members(found, "p") == ["own", "zarr.json"]
        tree = xr.open_datatree(found, engine="zarr").load()
        assert tree["p/own/t"].values.tolist() == tree["deep/u/v"].values.ravel().tolist() == [1, 1, 1]
        for name in ("run-0", "run-2"):
            expected = store.to_xarray({"run": name}).load()
            xr.testing.assert_identical(tree[name].to_dataset(), expected)


@pytest.mark.parametrize("folder", ["netcdf-classic", "netcdf4"])
def test_real_netcdf_files_are_the_same_by_zarr(tmp_path, folder):
    paths = sorted(p for p in sample(folder).rglob("*") if p.is_file())
    compare(tmp_path, share(paths, 3))


def test_real_grib_files_are_the_same_by_zarr(tmp_path):
    pytest.importorskip("eccodes")
    names = ("era5-levels-members", "hpa_and_pa", "lambert_grid", "step_60m", "t_on_different_level_types")
    compare(tmp_path, [sample(f"grib/{name}.grib") for name in names])


def compare(tmp_path, paths):
    compared = 0
    for number, path in enumerate(paths):
        url = str(tmp_path / str(number))
        try:
            fst.ingest(url, path, progress=False)
        except fst.Invalid as error:
            assert "nothing was taken" in str(error)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # xarray warns of odd times and names
            options = {}
            try:
                expected = xr.open_datatree(url, engine="fieldstone")
            except ValueError:
                options = {"decode_times": False}
                expected = xr.open_datatree(url, engine="fieldstone", **options)
            found = xr.open_datatree(fst.zarr_store(url, tree=True), engine="zarr", **options)
            xr.testing.assert_identical(found.load(), expected.load())
        compared += 1
    assert compared > 3


DTYPES = ["<f2", ">f4", "<f8", "|b1", "|i1", "<i2", ">i8", "|u1", ">u2", "<u8", "<c8", ">c16"]
DTYPES += ["|S5", "<U3", ">U3", "<M8[s]", "<M8[ns]", "<m8[ms]", "<m8[25s]"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_comes_back(tmp_path, dtype):
    values = np.arange(1, 13).astype("U" if dtype[1] in "SU" else dtype).reshape(3, 4).astype(dtype)
    with fst.open(tmp_path / "s") as store:
        store.archive({"run": "a", "variable": "v", "step": 0}, values, chunks=(2, 3))
        store.flush()
        found = zarr.open_array(fst.zarr_store(store, "run=a", chunks="stored"), path="v", mode="r")
        assert found.chunks == (2, 3)
        read = found[:]
        assert read.dtype == values.dtype.newbyteorder("=")
        assert np.array_equal(read, values)


def test_chunks_are_the_stored_ones_or_those_asked_for(tmp_path):
    with fst.open(tmp_path / "s") as store:
        steps(store)

        def chunks(of):
            return tuple(
                document(fst.zarr_store(store, chunks=of), "t")["chunk_grid"]["configuration"]["chunk_shape"]
            )

        assert chunks("stored") == (1, 2, 3)
        assert chunks(None) == (1, 4, 6)
        assert chunks({"dim_1": 4}) == (1, 4, 4)
        assert chunks({"step": 2, "dim_0": 3, "elsewhere": 7}) == (2, 3, 6)
        assert chunks({"step": -1}) == (2, 4, 6)
        for of in ({"dim_0": 0}, {"dim_0": -2}, {"dim_0": True}, {"dim_0": "all"}, "auto", 3):
            with pytest.raises(fst.Invalid):
                fst.zarr_store(store, chunks=of)
        expected = store.to_xarray().t.values
        for of in ("stored", None, {"dim_1": 4}, {"step": 2, "dim_0": 3}, {"dim_0": 3, "dim_1": 1}):
            found = zarr.open_group(fst.zarr_store(store, chunks=of), mode="r")["t"]
            assert np.array_equal(found[:], expected)
            assert np.array_equal(found[1, 1:4, 2:5], expected[1, 1:4, 2:5])


def test_small_blocks_are_taken_together_up_to_a_mebibyte(tmp_path):
    with fst.open(tmp_path / "s") as store:
        values = np.arange(64 * 256 * 256, dtype="f4").reshape(64, 256, 256)
        store.archive({"run": "a", "variable": "t", "step": 0}, values, chunks=(4, 64, 64))
        store.flush()
        found = zarr.open_group(fst.zarr_store(store), mode="r")["t"]
        assert found.chunks == (4, 256, 256)
        assert np.array_equal(found[3:9, 10:200:7, ::50], values[3:9, 10:200:7, ::50])


def test_what_no_field_has_is_an_absent_chunk(tmp_path):
    with fst.open(tmp_path / "s") as store:
        for run, step in (("a", 0), ("a", 6), ("b", 6)):
            store.archive({"run": run, "variable": "n", "step": step}, np.arange(3, dtype="i2"))
        store.flush()
        found = fst.zarr_store(store)
        assert "n/c/0/0/0" in keys(found) and "n/c/1/0/0" not in keys(found)
        assert found.get_sync("n/c/1/0/0") is None
        assert not asyncio.run(found.exists("n/c/1/0/0"))
        values = zarr.open_group(found, mode="r")["n"]
        assert values.dtype == "f8" and np.isnan(values[1, 0]).all() and values[1, 1].tolist() == [0, 1, 2]
        expected = store.to_xarray().load()
        xr.testing.assert_identical(xr.open_zarr(found).load(), expected)
        wide = fst.zarr_store(store, chunks={"step": 2})
        xr.testing.assert_identical(xr.open_zarr(wide).load(), expected)


def test_a_field_that_lacks_pieces_is_an_error_and_not_filled(tmp_path):
    with fst.open(tmp_path / "s") as store:
        store.archive({"run": "a", "variable": "t", "step": 0}, np.ones((2, 4)), start=(0, 0), shape=(4, 4))
        store.flush()
        found = zarr.open_group(fst.zarr_store(store, chunks={"dim_0": 2}), mode="r")["t"]
        assert found[:2].tolist() == [[1] * 4] * 2
        with pytest.raises(fst.NotFound, match="missing"):
            found[:]


def test_damage_reaches_the_reader(tmp_path):
    with fst.open(tmp_path / "s") as store:
        store.archive({"run": "a", "variable": "t", "step": 0}, np.random.default_rng(0).random(1 << 18))
        store.flush()
        (entry,) = store.list("run=a")
    file, _, offset = entry.location.partition(":")
    with open(tmp_path / "s" / file, "r+b") as log:
        log.seek(int(offset) + 100)
        log.write(b"damage")
    found = fst.zarr_store(tmp_path / "s")
    with pytest.raises(fst.Corrupt):
        zarr.open_group(found, mode="r")["t"][:]


def test_a_store_reads_the_version_of_its_making(tmp_path):
    with fst.open(tmp_path / "s") as store:
        steps(store)
        found = fst.zarr_store(store)
        same = fst.zarr_store(tmp_path / "s")
        before = zarr.open_group(found, mode="r")["t"][:]
        store.archive({"run": "a", "variable": "t", "step": 0}, np.zeros((4, 6), "f4"))
        store.archive({"run": "a", "variable": "t", "step": 12}, np.zeros((4, 6), "f4"))
        store.flush()
        assert np.array_equal(zarr.open_group(found, mode="r")["t"][:], before)
        assert zarr.open_group(fst.zarr_store(store), mode="r")["t"].shape == (3, 4, 6)
        assert found == same and found != fst.zarr_store(store)


def test_it_travels_to_other_processes(tmp_path):
    with fst.open(tmp_path / "s") as store:
        steps(store)
        found = fst.zarr_store(store)
    (tmp_path / "pickled").write_bytes(pickle.dumps(found))
    code = (
        "import pickle, sys, zarr\n"
        "store = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(float(zarr.open_group(store, mode='r')['t'][1, 3, 5]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "pickled")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "29.0"
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_store_in_memory(tmp_path):
    with fst.open("memory:") as store:
        steps(store)
        assert xr.open_zarr(fst.zarr_store(store)).t.sum().compute() == 48 * 11.5 + 24 * 6


def test_dask_computes_over_it(tmp_path):
    with fst.open(tmp_path / "s") as store:
        steps(store)
        found = xr.open_zarr(fst.zarr_store(store, chunks="stored"))
        assert found.t.chunks == ((1, 1), (2, 2), (3, 3))
        assert float(found.t.mean().compute(scheduler="threads")) == 14.5


def test_several_readers_at_once(tmp_path):
    with fst.open(tmp_path / "s") as store:
        values = np.random.default_rng(1).random((64, 64, 64))
        store.archive({"run": "a", "variable": "t", "step": 0}, values, chunks=(8, 64, 64))
        store.flush()
        found = fst.zarr_store(store, chunks="stored")
        failed = []

        def read():
            try:
                for i in range(64):
                    index, within = divmod(i, 8)
                    read = np.frombuffer(found.get_sync(f"t/c/{index}/0/0").to_bytes()[:-4]).reshape(
                        8, 64, 64
                    )
                    assert np.array_equal(read[within], values[i])
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed


def test_the_loop_goes_on_while_a_chunk_is_read(tmp_path, monkeypatch):
    with fst.open(tmp_path / "s") as store:
        steps(store)
        found = fst.zarr_store(store)
    at_work, may_end = threading.Event(), threading.Event()
    ready = found.get_sync

    def slow(*args, **options):
        at_work.set()
        assert may_end.wait(60)
        return ready(*args, **options)

    monkeypatch.setattr(found, "get_sync", slow)

    async def both():
        reading = asyncio.ensure_future(found.get("t/c/0/0/0", default_buffer_prototype()))
        while not at_work.is_set():
            await asyncio.sleep(0.001)
        may_end.set()
        return await reading

    assert len(asyncio.run(both())) == 96


def test_keys(tmp_path):
    with fst.open(tmp_path / "s") as store:
        steps(store)
        store.archive({"run": "a", "variable": "c", "step": 0}, np.float64(7))
        store.flush()
        found = fst.zarr_store(store, "run=a,variable=t/n/c", chunks="stored")
    assert [k for k in keys(found) if k.startswith("t/")] == [
        "t/zarr.json",
        *(f"t/c/{s}/{i}/{j}" for s in (0, 1) for i in (0, 1) for j in (0, 1)),
    ]
    assert all(asyncio.run(found.exists(key)) for key in keys(found))
    assert keys(found, "t/c/1/0") == ["t/c/1/0/0", "t/c/1/0/1"]
    assert members(found, "") == ["c", "n", "run", "step", "t", "zarr.json"]
    assert members(found, "t") == ["c", "zarr.json"]
    assert members(found, "t/c") == ["0", "1"] and members(found, "t/c/0/1") == ["0", "1"]
    assert members(found, "nowhere") == []
    for key in ("t/c/2/0/0", "t/c/0/0", "t/c/0/0/0/0", "t/c/-1/0/0", "t/c/00/0/0", "t/c/a/0/0", "t", "t/c"):
        assert found.get_sync(key) is None and not asyncio.run(found.exists(key)), key
    assert zarr.open_group(found, mode="r")["c"][()] == 7


def test_an_array_is_not_confused_with_one_of_a_longer_name(tmp_path):
    with fst.open(tmp_path / "s") as store:
        for name in ("t", "time_of_day"):
            store.archive({"run": "a", "variable": name, "step": 0}, np.zeros(10))
        store.flush()
        found = fst.zarr_store(store, {"variable": ["t", "time_of_day"]})
        made = zarr.open_group(found, mode="r")
        assert made["t"].nbytes_stored() == 84 + len(found.get_sync("t/zarr.json").to_bytes())
        assert made["t"].nchunks_initialized == 1
        assert keys(found, "t") == ["t/zarr.json", "t/c/0"]


def test_a_scalar_is_a_chunk_without_numbers(tmp_path):
    with fst.open(tmp_path / "s") as store:
        store.archive({"run": "a", "variable": "v", "step": 0}, np.float64(7))
        store.flush()
        found = fst.zarr_store(store)
        assert "v/c" in keys(found)
        assert zarr.open_group(found, mode="r")["v"][()] == 7


def test_consolidated_metadata_says_all(tmp_path):
    with fst.open(tmp_path / "s") as store:
        steps(store)
        found = fst.zarr_store(store, tree=True)
    held = document(found)["consolidated_metadata"]["metadata"]
    assert held["a/t"] == document(found, "a/t") and held["a"] == document(found, "a")
    assert set(held) == {key.removesuffix("/zarr.json") for key in keys(found) if key.endswith("/zarr.json")}
    group = zarr.open_group(found, mode="r", use_consolidated=True)
    assert group["a/t"].shape == (2, 4, 6)


def test_text_that_some_runs_lack(tmp_path):
    with fst.open(tmp_path / "s") as store:
        for name, note in (("a", None), ("b", ""), ("c", "x")):
            run = store.create_run(name, params={} if note is None else {"note": note})
            run.write("t", 0, np.zeros(2))
        store.flush()
        found = fst.zarr_store(store)
        assert zarr.open_group(found, mode="r")["note"][:].tolist() == ["?", "", "x"]
        notes = xr.open_zarr(found).note.values.tolist()
        assert notes[1:] == ["", "x"] and notes[0] != notes[0]


def test_a_request_narrows_a_stored_dataset(tmp_path):
    ds = xr.Dataset(
        {"t": (("time", "x"), np.arange(20.0).reshape(4, 5))},
        {
            "time": np.arange("2026-01-01", "2026-01-05", dtype="M8[D]").astype("M8[ns]"),
            "x": np.arange(5) / 2,
        },
    )
    fst.to_store(ds, tmp_path / "s", {"run": "days"})
    with fst.open(tmp_path / "s") as store:
        for request in ("run=days", "run=days,variable=t,step=1/3"):
            found = xr.open_zarr(fst.zarr_store(store, request)).load()
            xr.testing.assert_identical(found, store.to_xarray(request).load())
    assert found.t.values[:, 0].tolist() == [5, 15]


def test_fill_values_of_other_types(tmp_path):
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("a")
        run.create_variable("n", "i2", (3,), attrs={"_FillValue": float("nan")})
        run.create_variable("m", "i2", (3,), attrs={"_FillValue": 2.5, "missing_value": 1})
        run.create_variable("word", "U3", (3,), attrs={"_FillValue": "b"})
        run.write("n", 0, np.arange(3, dtype="i2"))
        run.write("m", 0, np.arange(3, dtype="i2"))
        run.write("word", 0, np.array(["a", "b", "c"], "U3"))
        store.flush()
        expected = store.to_xarray().load()
        found = xr.open_zarr(fst.zarr_store(store)).load()
    xr.testing.assert_identical(found, expected)
    assert np.isnan(found.m.values).tolist() == [False, True, False]
    assert found.word.values.tolist()[::2] == ["a", "c"] and found.word.values[1] != found.word.values[1]


def test_long_coordinates_are_cut(tmp_path):
    with fst.open(tmp_path / "s") as store:
        run = store.create_run("a")
        run.create_variable("t", "u1", (300_000,), ("x",), coords={"x": fst.uniform(0.0, 0.5)})
        run.write("t", 0, np.zeros(300_000, "u1"))
        store.flush()
        found = zarr.open_group(fst.zarr_store(store), mode="r")["x"]
    assert found.chunks == (131_072,)
    assert np.array_equal(found[:], 0.5 * np.arange(300_000))


def test_nothing_to_show_is_an_error_at_once(tmp_path):
    with fst.open(tmp_path / "s") as store:
        steps(store)
        store.archive({"run": "a", "variable": "t", "step": 12}, np.zeros(3))
        store.flush()
        with pytest.raises(fst.NotFound, match="no run 'b'"):
            fst.zarr_store(store, "run=b")
        with pytest.raises(fst.Invalid, match="differ in type or shape"):
            fst.zarr_store(store, "run=a")
    with pytest.raises(fst.NotFound):
        fst.zarr_store(tmp_path / "absent")

"""Blocks as chunks of Zarr: handed over as stored if possible, otherwise made with equal codecs."""

from __future__ import annotations

import asyncio
import itertools
import json
import pickle
import random

import fieldstone as fst
import numpy as np
import pytest
from fieldstone import _native

zarr = pytest.importorskip("zarr")
xr = pytest.importorskip("xarray")
google_crc32c = pytest.importorskip("google_crc32c")
from fieldstone._xarray.source import Source  # noqa: E402

KEY = {"run": "a", "variable": "t", "step": 0}
FRAME = bytes.fromhex("28b52ffd")
RAW, PACKED, PLAIN = ["bytes", "crc32c"], ["bytes", "zstd", "crc32c"], ["bytes"]


def codecs(found, path="t"):
    return [c["name"] for c in json.loads(found.get_sync(f"{path}/zarr.json").to_bytes())["codecs"]]


def value(found, *index, path="t"):
    return found.get_sync("/".join(map(str, (path, "c", *index)))).to_bytes()


def files(root):
    """The contents of a store's logs and data logs."""
    return b"".join(p.read_bytes() for folder in ("logs", "data") for p in sorted(root.glob(f"{folder}/*")))


def smooth(*shape, dtype="f4"):
    """Values that compress."""
    return (np.arange(np.prod(shape)).reshape(shape) % 17).astype(dtype)


def noise(*shape):
    """Values that do not compress."""
    return np.random.default_rng(3).integers(0, 2**32, shape, dtype="u4")


def check(found, expected, path="t"):
    """zarr-python reads the expected values; sizes are those of the chunks; checksums are right."""
    assert np.array_equal(zarr.open_array(found, path=path, mode="r")[:], expected)

    async def keys():
        return [key async for key in found.list_prefix(f"{path}/c")]

    for key in asyncio.run(keys()):
        chunk = found.get_sync(key).to_bytes()
        assert asyncio.run(found.getsize(key)) == len(chunk), key
        if codecs(found, path) != PLAIN:
            assert google_crc32c.value(chunk[:-4]).to_bytes(4, "little") == chunk[-4:], key


def test_raw_blocks_are_chunks_as_they_lie(tmp_path):
    values = noise(4, 6)
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, values, chunks=(2, 3))
    found = fst.zarr_store(tmp_path / "s", chunks="stored")
    assert codecs(found) == RAW
    assert value(found, 1, 1)[:-4] == values[2:4, 3:6].tobytes()
    assert value(found, 1, 1)[:-4] in files(tmp_path / "s")
    check(found, values)


def test_compressed_blocks_are_chunks_as_they_lie(tmp_path):
    values = smooth(64, 96)
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, values, chunks=(32, 32), compression="zstd:3")
    found = fst.zarr_store(tmp_path / "s", chunks="stored")
    assert codecs(found) == PACKED
    held = files(tmp_path / "s")
    for i, j in itertools.product(range(2), range(3)):
        chunk = value(found, i, j)
        assert chunk.startswith(FRAME) and len(chunk) < 1000 and chunk[:-4] in held
    check(found, values)


def test_more_blocks_than_an_index_entry_lists(tmp_path):
    values = smooth(256, 64)
    for name, how, expected in (("p", "zstd:1", PACKED), ("r", "none", RAW)):
        with fst.open(tmp_path / name) as store:
            store.archive(KEY, values, chunks=(8, 64), compression=how)
        found = fst.zarr_store(tmp_path / name, chunks="stored")
        assert codecs(found) == expected and value(found, 31, 0)[:-4] in files(tmp_path / name)
        check(found, values)


def test_a_raw_block_among_compressed_ones_is_framed(tmp_path):
    values = np.concatenate([smooth(512, 600, dtype="u4"), noise(512, 600)])
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, values, chunks=(512, 600), compression="zstd:3")
    found = fst.zarr_store(tmp_path / "s", chunks="stored")
    assert codecs(found) == PACKED
    held = files(tmp_path / "s")
    assert values[512:].tobytes() in held, "noise is stored as it is"
    assert value(found, 0, 0)[:-4] in held
    framed = value(found, 1, 0)
    assert framed.startswith(FRAME) and 512 * 600 * 4 < len(framed) < 512 * 600 * 4 + 100
    check(found, values)


def test_cut_edges_are_made_when_asked_for(tmp_path):
    values = smooth(40, 50)
    for name, how in (("p", "zstd:3"), ("r", "none")):
        with fst.open(tmp_path / name) as store:
            store.archive(KEY, values, chunks=(32, 32), compression=how)
        found = fst.zarr_store(tmp_path / name, chunks="stored")
        held = files(tmp_path / name)
        assert value(found, 0, 0)[:-4] in held
        # A chunk at the edge is as large as any other, so that it cannot be the block.
        assert all(value(found, i, j)[:-4] not in held for i, j in ((0, 1), (1, 0), (1, 1)))
        check(found, values)


def test_fields_that_are_stored_differently_are_one_array(tmp_path):
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, smooth(64, 64), chunks=(32, 64), compression="none")
        store.archive({**KEY, "step": 6}, smooth(64, 64), chunks=(32, 64), compression="zstd:3")
        store.archive({**KEY, "step": 12}, smooth(64, 64), chunks=(16, 64), compression="zstd:3")
        store.archive({**KEY, "step": 18}, smooth(64, 64), chunks=(64, 10), compression="none")
        store.flush()
        found = fst.zarr_store(store, chunks="stored")
        assert codecs(found) == PACKED
        check(found, np.stack([smooth(64, 64)] * 4))
        # If all selected blocks are uncompressed, chunks have no codec of compression.
        found = fst.zarr_store(store, "step=0/18", chunks="stored")
        assert codecs(found) == RAW
        check(found, np.stack([smooth(64, 64)] * 2))


def test_pieces_are_chunks_where_they_lie_on_the_grid(tmp_path):
    values = noise(8, 8)
    with fst.open(tmp_path / "s") as store:
        for i in (0, 4):
            store.archive(KEY, values[i : i + 4], start=(i, 0), shape=(8, 8), chunks=(4, 4))
            store.flush()
        found = fst.zarr_store(store, chunks="stored")
        assert codecs(found) == RAW
        held = files(tmp_path / "s")
        assert all(value(found, i, j)[:-4] in held for i in (0, 1) for j in (0, 1))
        check(found, values)
        # Another piece on top, off the grid: chunks under it are made, others do not change.
        store.archive(KEY, np.full((2, 2), 7, "u4"), start=(1, 1), shape=(8, 8))
        store.flush()
        values[1:3, 1:3] = 7
        found = fst.zarr_store(store, chunks={"dim_0": 4, "dim_1": 4})
        held = files(tmp_path / "s")
        check(found, values)
        block = _native._field(store, KEY)._block
        assert block((0, 0), (4, 4), False) is None
        assert block((0, 4), (4, 4), False).read()[:-4] == values[:4, 4:].tobytes()
        assert block((4, 0), (4, 4), False).read()[:-4] in held


def test_a_newer_generation_hides_blocks(tmp_path):
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, smooth(32, 32), chunks=(16, 16), compression="zstd:3")
        store.flush()
        store.archive(KEY, smooth(32, 32) + 1, chunks=(16, 16), compression="zstd:3")
        store.flush()
        found = fst.zarr_store(store, chunks="stored")
        check(found, smooth(32, 32) + 1)


def test_boxes_that_are_no_blocks(tmp_path):
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, smooth(40, 40), chunks=(16, 16), compression="zstd:3")
        store.archive({**KEY, "step": 6}, b"opaque")
        store.flush()
        block = _native._field(store, KEY)._block
        assert block((16, 16), (16, 16), True).nbytes == len(block((16, 16), (16, 16), True).read())
        assert block((32, 32), (8, 8), True) is not None, "a cut block is a block"
        assert block((16, 16), (16, 16), False) is None, "a compressed block is not a chunk without zstd"
        for start, count in (((0, 0), (15, 16)), ((1, 0), (16, 16)), ((0, 0), (32, 16)), ((0, 0), (0, 16))):
            assert block(start, count, True) is None
        with pytest.raises(fst.Invalid):
            block((32, 32), (16, 16), True)
        with pytest.raises(fst.Invalid):
            _native._field(store, {**KEY, "step": 6})._block((0,), (6,), True)
        with pytest.raises(fst.NotFound):
            _native._field(store, {**KEY, "step": 7})


@pytest.mark.parametrize("packed", [False, True])
def test_other_arrays_are_plain(tmp_path, packed):
    with fst.open(tmp_path / "s") as store:
        for step in (0, 6):
            values = smooth(64, 64)
            store.archive(
                {**KEY, "step": step}, values, chunks=(16, 64), compression="zstd:3" if packed else "none"
            )
        store.archive({"run": "b", "variable": "n", "step": 0}, np.arange(3, dtype="i2"))
        store.archive({"run": "c", "variable": "n", "step": 6}, np.arange(3, dtype="i2"))
        store.flush()
        # Combined blocks, other cuts, combined fields; integers that become floats.
        for chunks in (None, {"dim_0": 10}, {"step": 2, "dim_0": 16}):
            found = fst.zarr_store(store, "run=a", chunks=chunks)
            assert codecs(found) == PLAIN
            check(found, np.stack([values] * 2))
        assert codecs(fst.zarr_store(store, "run=b/c"), "n") == PLAIN
        assert codecs(fst.zarr_store(store, "run=b"), "n") == RAW
        # As stored, requested by name.
        found = fst.zarr_store(store, "run=a", chunks={"dim_0": 16})
        assert codecs(found) == (PACKED if packed else RAW)
        check(found, np.stack([values] * 2))


def test_elements_in_outside_files_are_plain(tmp_path):
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(tmp_path / "f.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 300_000)
        file.createVariable("t", "f4", ("x",))[:] = np.arange(300_000)
    for copy in (False, True):
        fst.ingest(tmp_path / f"{copy}", tmp_path / "f.nc", copy=copy, progress=False)
        found = fst.zarr_store(tmp_path / f"{copy}", tree=True, chunks="stored")
        path = next(path for path in found._nodes if path.rpartition("/")[2] == "t")
        assert codecs(found, path) == PLAIN
        assert np.array_equal(zarr.open_array(found, path=path, mode="r")[:].ravel(), np.arange(300_000))


@pytest.mark.parametrize("how", ["none", "zstd:3"])
def test_damage_is_an_error_that_names_key_and_file(tmp_path, how):
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, smooth(64, 64), chunks=(32, 64), compression=how)
        store.flush()
        (entry,) = store.list("run=a")
    file, _, offset = entry.location.partition(":")
    with open(tmp_path / "s" / file, "r+b") as log:
        log.seek(int(offset) + 20)
        log.write(b"damage")
    found = fst.zarr_store(tmp_path / "s", chunks="stored")
    array = zarr.open_array(found, path="t", mode="r")
    with pytest.raises(fst.Corrupt, match=r"run=a.*logs/"):
        array[0]
    assert np.array_equal(array[32:], smooth(64, 64)[32:]), "the rest can be read"


def test_what_a_reader_gets_is_checked_by_its_own_codec(tmp_path, monkeypatch):
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, smooth(64, 64), compression="zstd:3")
    found = fst.zarr_store(tmp_path / "s")
    ready = type(found._nodes["t"]).value

    def flipped(array, index):
        read = bytearray(ready(array, index))
        read[30] ^= 1
        return bytes(read)

    monkeypatch.setattr(type(found._nodes["t"]), "value", flipped)
    with pytest.raises(ValueError, match="checksum"):
        zarr.open_array(found, path="t", mode="r")[:]


def test_what_lacks_pieces_is_an_error(tmp_path):
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, np.ones((2, 4)), start=(0, 0), shape=(4, 4), chunks=(2, 4))
        store.flush()
        array = zarr.open_array(fst.zarr_store(store, chunks="stored"), path="t", mode="r")
        assert array[:2].tolist() == [[1] * 4] * 2
        with pytest.raises(fst.NotFound, match="nobody has written"):
            array[2:]


def test_a_key_that_also_selects_longer_ones(tmp_path, monkeypatch):
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, smooth(32, 32), compression="zstd:3")
        store.archive({**KEY, "project": "p"}, smooth(32, 32) + 1, compression="zstd:3")
        store.flush()
        found = fst.zarr_store(store, tree=True)
        check(found, smooth(32, 32), "a/t")
        check(found, smooth(32, 32) + 1, "p/a/t")

        def broad(_store, _key):
            """Takes a key for a request."""
            raise fst.Invalid("names more than one field")

        monkeypatch.setattr("fieldstone._xarray.source._field", broad)
        exact = {k: str(v) for k, v in KEY.items()}
        assert np.array_equal(Source(store).field(exact).array(), smooth(32, 32))
        assert np.array_equal(Source(store).field(exact | {"project": "p"}).array(), smooth(32, 32) + 1)
        with pytest.raises(fst.Invalid):
            Source(store).field({"run": "a", "variable": "t"})


def test_where_no_field_is_no_chunk_is(tmp_path):
    with fst.open(tmp_path / "s") as store:
        for run, step in (("a", 0), ("a", 6), ("b", 6)):
            key = {"run": run, "variable": "t", "step": step}
            store.archive(key, smooth(32, 32), chunks=(16, 32), compression="zstd:3")
        store.flush()
        found = fst.zarr_store(store, chunks="stored")
        assert codecs(found) == PACKED
        assert found.get_sync("t/c/1/0/0/0") is None and not asyncio.run(found.exists("t/c/1/0/0/0"))
        assert value(found, 1, 1, 0, 0)[:-4] in files(tmp_path / "s")
        xr.testing.assert_identical(xr.open_zarr(found).load(), store.to_xarray().load())


def test_it_is_the_same_where_it_is_unpickled(tmp_path):
    with fst.open(tmp_path / "s") as store:
        for step in range(6):
            store.archive({**KEY, "step": step}, smooth(64, 64) + step, compression="zstd:3")
            store.flush()
    found = fst.zarr_store(tmp_path / "s")
    before = [value(found, step, 0, 0) for step in range(6)]
    travelled = pickle.dumps(found)
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, smooth(64, 64), compression="none")
    again = pickle.loads(travelled)
    assert codecs(again) == PACKED and [value(again, step, 0, 0) for step in range(6)] == before
    check(again, np.stack([smooth(64, 64) + step for step in range(6)]))


DTYPES = ["<f2", ">f4", "<f8", "|b1", "|i1", "<i2", ">i8", "|u1", ">u2", "<u8", "<c8", ">c16"]
DTYPES += ["|S5", "<U3", ">U3", "<M8[s]", "<M8[ns]", "<m8[ms]"]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_stored_is_read(tmp_path, seed):
    """Random types, byte orders, shapes, cuts, compressions, pieces; blocks that compress and that do not."""
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    dtype = np.dtype(draw.choice(DTYPES))
    shape = tuple(draw.randint(1, 24) for _ in range(draw.randint(1, 3)))
    steps = draw.randint(1, 3)
    expected = []
    with fst.open(tmp_path / "s") as store:
        for step in range(steps):
            numbers = rng.integers(0, 2 if draw.random() < 0.5 else 100, shape)
            if draw.random() < 0.5:  # a part compresses, a part does not
                numbers[: shape[0] // 2] = 1
            values = numbers.astype("U").astype(dtype) if dtype.kind in "SU" else numbers.astype(dtype)
            if dtype.kind in "fc" and draw.random() < 0.5:
                values = (values + rng.random(shape)).astype(dtype)
            chunks = tuple(draw.randint(1, n + 2) for n in shape)
            how = draw.choice(["none", "zstd:1", "zstd:19"])
            key = {**KEY, "step": step}
            store.archive(key, values, chunks=chunks, compression=how)
            values = values.copy()
            for _ in range(draw.choice([0, 0, 1, 3])):
                if draw.random() < 0.5:
                    store.flush()
                start = tuple(draw.randrange(n) for n in shape)
                if draw.random() < 0.5:  # on the grid
                    start = tuple(s // c * c for s, c in zip(start, chunks, strict=True))
                count = tuple(draw.randint(1, n - s) for s, n in zip(start, shape, strict=True))
                box = tuple(slice(s, s + c) for s, c in zip(start, count, strict=True))
                values[box] = np.flip(values[box])
                own = draw.choice([None, chunks])
                store.archive(key, values[box], start=start, shape=shape, chunks=own, compression=how)
                store.flush()
            expected.append(values)
        store.flush()
        whole = expected[0] if steps == 1 else np.stack(expected)
        dims = [f"dim_{i}" for i in range(len(shape))]
        cuts = {dim: draw.randint(1, n) for dim, n in zip(dims, shape, strict=True)}
        (cube,), _ = store._cubes("run=a", by=["run", "variable"])
        named = dict(zip(dims, cube.chunks or shape, strict=True))
        for chunks in ("stored", None, cuts, named):
            found = fst.zarr_store(store, "run=a", chunks=chunks)
            check(found, whole)
            assert codecs(found) != PLAIN or chunks not in ("stored", named)
        found = xr.open_zarr(fst.zarr_store(store, chunks="stored"), decode_cf=False).load()
        assert np.array_equal(found.t.values, whole)


def test_an_execution_that_reads_blocks_has_read_their_elements(tmp_path):
    with fst.open(tmp_path / "s") as store:
        store.archive(KEY, smooth(64, 64), chunks=(32, 64), compression="zstd:3")
        store.flush()
        with fst.execution("plot", store) as x:
            zarr.open_array(fst.zarr_store(store, chunks="stored"), path="t", mode="r")[:]
        (read,) = (e for e in store.graph.edges(x.vertex, "read") if e.dst[0] == "commit")
        assert read.props["bytes"] == 64 * 64 * 4

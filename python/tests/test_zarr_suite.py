"""zarr-python's own tests of stores (``zarr.testing.store``), as far as they apply to a read-only store.

Instead of writing and reading back, they read existing content through the same calls; tests of writing are
left out by name.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import pickle

import fieldstone as fst
import numpy as np
import pytest

zarr = pytest.importorskip("zarr")
google_crc32c = pytest.importorskip("google_crc32c")
pytest.importorskip("xarray")
from fieldstone._zarr.store import FieldstoneZarr  # noqa: E402
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest  # noqa: E402
from zarr.core.buffer import cpu, default_buffer_prototype  # noqa: E402
from zarr.core.sync import _collect_aiterator  # noqa: E402
from zarr.testing.store import StoreTests  # noqa: E402

VALUES = np.arange(24, dtype="<i4").reshape(2, 3, 4)
CHUNKS = {
    f"n/c/{s}/{i}/{j}": VALUES[s, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
    for s in range(2)
    for i in range(2)
    for j in range(2)
}
WHOLE = {key: np.pad(part, ((0, 2 - part.shape[0]), (0, 0))).tobytes() for key, part in CHUNKS.items()}
BYTES = {key: part + google_crc32c.value(part).to_bytes(4, "little") for key, part in WHOLE.items()}
WRITING = (
    "test_set",
    "test_set_not_open",
    "test_set_many",
    "test_set_sync",
    "test_set_if_not_exists",
    "test_delete",
    "test_delete_dir",
    "test_delete_nonexistent_key_does_not_raise",
    "test_delete_sync",
    "test_delete_sync_missing",
    "test_clear",
    "test_list_empty_path",
    "test_store_open_read_only",
)


def now(test):
    """A test that is a coroutine as a plain one."""

    @functools.wraps(test)
    def run(*args, **options):
        return asyncio.run(test(*args, **options))

    return run


class TestZarrStore(StoreTests[FieldstoneZarr, cpu.Buffer]):
    store_cls = FieldstoneZarr
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, tmp_path):
        with fst.open(tmp_path / "s") as store:
            for step, values in enumerate(VALUES):
                store.archive({"run": "a", "variable": "n", "step": step}, values, chunks=(2, 2))
        return {"store": str(tmp_path / "s"), "request": "run=a", "chunks": "stored"}

    @pytest.fixture
    def store(self, store_kwargs):
        return asyncio.run(self.store_cls.open(**store_kwargs))

    @pytest.fixture
    def store_not_open(self, store_kwargs):
        return self.store_cls(**store_kwargs)

    async def set(self, store, key, value):
        """Existing content is what would be set."""
        raise AssertionError("a test that writes")

    async def get(self, store, key):
        return self.buffer_cls.from_bytes(BYTES[key])

    def test_store_repr(self, store):
        assert "5 arrays" not in repr(store) and "3 arrays" in repr(store)

    def test_store_supports_writes(self, store):
        assert not store.supports_writes and not store.supports_deletes

    def test_store_supports_listing(self, store):
        assert store.supports_listing

    def test_store_read_only(self, store):
        assert store.read_only
        with pytest.raises(AttributeError):
            store.read_only = False

    def test_serializable_store(self, store):
        again = pickle.loads(pickle.dumps(store))
        assert again == store and again.read_only
        assert again.get_sync("n/c/0/0/0").to_bytes() == BYTES["n/c/0/0/0"]

    @pytest.mark.parametrize("key", BYTES)
    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            (None, slice(None)),
            (RangeByteRequest(1, 4), slice(1, 4)),
            (RangeByteRequest(4, 1000), slice(4, 20)),
            (OffsetByteRequest(5), slice(5, None)),
            (SuffixByteRequest(3), slice(-3, None)),
            (SuffixByteRequest(1000), slice(None)),
        ],
    )
    async def test_get(self, store, key, part, expected):
        read = await store.get(key, prototype=default_buffer_prototype(), byte_range=part)
        assert read.to_bytes() == BYTES[key][expected]

    async def test_get_not_open(self, store_not_open):
        assert not store_not_open._is_open
        read = await store_not_open.get("n/c/1/1/0", prototype=default_buffer_prototype())
        assert read.to_bytes() == BYTES["n/c/1/1/0"] and store_not_open._is_open

    async def test_get_raises(self, store):
        with pytest.raises(TypeError, match=r"Unexpected byte_range, got.*"):
            await store.get("n/c/0/0/0", prototype=default_buffer_prototype(), byte_range=(0, 2))

    async def test_get_many(self, store):
        asked = [(key, default_buffer_prototype(), None) for key in BYTES]
        found = await _collect_aiterator(store._get_many(asked))
        assert {key: value.to_bytes() for key, value in found} == BYTES

    @pytest.mark.parametrize("key", BYTES)
    async def test_getsize(self, store, key):
        assert await store.getsize(key) == len(BYTES[key])
        assert await store.getsize("zarr.json") == len(store.get_sync("zarr.json").to_bytes())

    async def test_getsize_prefix(self, store):
        assert await store.getsize_prefix("n/c") == 8 * 20

    @pytest.mark.parametrize(
        "asked",
        [
            [],
            [("zarr.json", RangeByteRequest(0, 2))],
            [("n/c/0/0/1", RangeByteRequest(0, 2)), ("absent", None), ("zarr.json", None)],
            [("n/c/0/0/0", SuffixByteRequest(2)), ("n/c/0/0/0", OffsetByteRequest(2))],
        ],
    )
    async def test_get_partial_values(self, store, asked):
        found = await store.get_partial_values(prototype=default_buffer_prototype(), key_ranges=asked)
        assert len(found) == len(asked)
        for (key, part), value in zip(asked, found, strict=True):
            expected = await store.get(key, prototype=default_buffer_prototype(), byte_range=part)
            assert (value and value.to_bytes()) == (expected and expected.to_bytes())

    async def test_exists(self, store):
        assert await store.exists("n/zarr.json") and await store.exists("n/c/1/1/1")
        assert not await store.exists("n") and not await store.exists("n/c/2/0/0")

    async def test_is_empty(self, store):
        assert (
            not await store.is_empty("") and not await store.is_empty("n") and not await store.is_empty("n/")
        )
        assert await store.is_empty("nn") and await store.is_empty("spam/")

    async def test_list(self, store):
        documents = {"zarr.json", "n/zarr.json", "run/zarr.json", "step/zarr.json"}
        assert set(await _collect_aiterator(store.list())) == {*documents, *BYTES, "run/c", "step/c/0"}

    async def test_list_prefix(self, store):
        everything = await _collect_aiterator(store.list())
        for prefix in ("", "n", "n/", "n/c/1", "n/c/1/", "zarr", "s", "nothing"):
            found = await _collect_aiterator(store.list_prefix(prefix))
            below = f"{prefix.rstrip('/')}/" if prefix else ""
            assert sorted(found) == sorted(key for key in everything if key.startswith(below))

    async def test_list_dir(self, store):
        everything = await _collect_aiterator(store.list())
        for path in ("", "n", "n/c", "n/c/1", "run", "run/c", "nothing"):
            below = f"{path}/" if path else ""
            expected = {k[len(below) :].split("/")[0] for k in everything if k.startswith(below)}
            assert set(await _collect_aiterator(store.list_dir(path))) == expected
            assert set(await _collect_aiterator(store.list_dir(f"{path}/"))) == expected

    async def test_get_bytes(self, store):
        assert await store._get_bytes("n/c/0/1/0", prototype=default_buffer_prototype()) == BYTES["n/c/0/1/0"]
        with pytest.raises(FileNotFoundError):
            await store._get_bytes("nonexistent_key", prototype=default_buffer_prototype())

    def test_get_bytes_sync(self, store):
        read = store._get_bytes_sync("n/c/0/1/0", prototype=default_buffer_prototype())
        assert read == BYTES["n/c/0/1/0"]

    async def test_get_json(self, store):
        read = await store._get_json("n/zarr.json", prototype=default_buffer_prototype())
        assert read == json.loads(store.get_sync("n/zarr.json").to_bytes())
        assert read["shape"] == [2, 3, 4]

    def test_get_json_sync(self, store):
        read = store._get_json_sync("n/zarr.json", prototype=default_buffer_prototype())
        assert read["node_type"] == "array"

    def test_get_sync(self, store):
        assert store.get_sync("n/c/0/0/0").to_bytes() == BYTES["n/c/0/0/0"]


for _name in WRITING:
    setattr(TestZarrStore, _name, None)
for _name in dir(TestZarrStore):
    _test = getattr(TestZarrStore, _name)
    if _name.startswith("test_") and inspect.iscoroutinefunction(_test):
        setattr(TestZarrStore, _name, now(_test))

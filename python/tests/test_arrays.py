"""Arrays: every dtype and layout reads back; pieces, boxes, created fields, chunks."""

from __future__ import annotations

import array
import pickle

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import DTYPES, random_array, sim


@pytest.fixture
def store():
    return fst.open("memory:")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 0, 3)])
def test_every_dtype_comes_back_exactly(store, dtype, shape):
    given = random_array(np.random.default_rng(1), dtype, shape)
    store.archive(sim(1), given)
    store.flush()
    got = store.get(sim(1))
    (entry,) = store.list()
    assert got.dtype == given.dtype == entry.dtype and got.dtype.str == given.dtype.str
    assert got.shape == shape == entry.shape and entry.nbytes == given.nbytes
    assert got.tobytes() == given.tobytes()
    assert got.flags.writeable and got.flags.c_contiguous
    assert store.retrieve(sim(1))[0].read() == given.tobytes()
    if shape == (3, 4):
        assert store.get(sim(1), (1, 1), (2, 3)).tobytes() == given[1:3, 1:4].tobytes()


def layouts():
    base = np.arange(60).reshape(3, 4, 5)
    yield "fortran", np.asfortranarray(base)
    yield "transposed", base.transpose(2, 0, 1)
    yield "strided", base[::2, 1:, ::-1]
    yield "broadcast", np.broadcast_to(base[:1], (4, 4, 5))
    yield "read-only", np.frombuffer(base.tobytes(), base.dtype)
    yield "unaligned", np.frombuffer(b"x" + base.tobytes(), base.dtype, offset=1)
    yield "swapped view", base.astype(">i8")[..., ::2]
    yield "subclass", base.view(type("Sub", (np.ndarray,), {}))
    yield "scalar view", base[1, 2, 3, ...]
    yield "numpy scalar", np.float32(1.5)
    yield "numpy bytes", np.bytes_(b"abc")
    yield "unmasked", np.ma.masked_array(base, mask=False)


@pytest.mark.parametrize(("name", "given"), list(layouts()))
def test_every_layout_comes_back(store, name, given):
    store.archive(sim(1), given)
    store.flush()
    got = store.get(sim(1))
    assert got.dtype == given.dtype and got.shape == given.shape
    np.testing.assert_array_equal(got, np.asarray(given))


@pytest.mark.parametrize(
    "given",
    [b"abc", bytearray(b"abc"), memoryview(b"abc"), array.array("B", b"abc"), memoryview(b"xabc")[1:]],
)
def test_bytes_like_data_are_opaque(store, given):
    store.archive(sim(1), given)
    store.flush()
    assert store.get(sim(1)) == b"abc"
    assert next(store.list()).dtype is None
    with pytest.raises(fst.Invalid, match="opaque"):
        store.retrieve(sim(1))[0].array()


def test_the_store_has_its_own_copy(store):
    data, numbers = bytearray(b"before"), np.zeros(3)
    store.archive(sim(1), data)
    store.archive(sim(2), numbers)
    data[:], numbers[:] = b"after!", 9
    store.flush()
    assert store.get(sim(1)) == b"before" and store.get(sim(2)).tolist() == [0, 0, 0]


def test_what_turns_itself_into_an_array_is_taken(store):
    class Grid:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    store.archive(sim(1), Grid())
    store.flush()
    assert store.get(sim(1)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (1.5, "a float"),
        ("text", "encode"),
        (None, "None"),
        ([1, 2], "a list"),
        (np.array([object()]), "object"),
        (np.zeros(2, [("a", "f4"), ("b", "i2")]), "structured"),
        (np.zeros(2, np.longdouble), "long double"),
        (np.ma.masked_array([1, 2], mask=[0, 1]), "masked"),
        (memoryview(b"abcdef")[::2], "contiguous"),
    ],
)
def test_what_has_no_fixed_bytes_is_refused(store, given, named):
    with pytest.raises(fst.Invalid, match=named):
        store.archive(sim(1), given)
    assert store.unflushed == 0


def test_pieces_make_an_array(store):
    whole = np.arange(24.0).reshape(4, 6)
    store.archive(sim(1), whole[:2], start=(0, 0), shape=(4, 6))
    store.flush()
    (entry,) = store.list()
    assert not entry.complete and entry.shape == (4, 6)
    with pytest.raises(fst.NotFound, match=r"2:4,0:6"):
        store.get(sim(1))
    assert store.get(sim(1), (0, 1), (2, 2)).tolist() == whole[:2, 1:3].tolist()
    lenient = store.retrieve(sim(1), strict=False)[0]
    assert not lenient.complete
    np.testing.assert_array_equal(lenient.array()[:2], whole[:2])
    assert np.isnan(lenient.array()[2:]).all()
    store.archive(sim(1), np.asfortranarray(whole[2:]), start=[2, 0], shape=[4, 6])
    store.flush()
    np.testing.assert_array_equal(store.get(sim(1)), whole)
    assert next(store.list()).complete
    store.archive(sim(1), whole[1:3] * 10, start=(1, 0), shape=(4, 6))
    store.flush()
    whole[1:3] *= 10
    np.testing.assert_array_equal(store.get(sim(1)), whole)


def test_pieces_of_a_scalar_and_a_line(store):
    store.archive(sim(1), np.array(3.5), start=(), shape=())
    store.archive(sim(2), np.arange(3), start=2, shape=5)
    store.archive(sim(2), np.arange(2), start=0, shape=5)
    store.flush()
    assert store.get(sim(1)) == 3.5 and store.get(sim(2)).tolist() == [0, 1, 0, 1, 2]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"start": (0, 0)}, "no shape"),
        ({"shape": (4, 4)}, "no start"),
        ({"start": (3, 0), "shape": (4, 4)}, "dimension 0"),
        ({"start": (0,), "shape": (4, 4)}, "1 start|dimension"),
        ({"start": (-1, 0), "shape": (4, 4)}, "start="),
        ({"start": (0.5, 0), "shape": (4, 4)}, "start="),
        ({"start": "00", "shape": (4, 4)}, "start="),
        ({"start": (0, 0), "shape": (2**63, 2**63)}, "shape|2\\^64"),
    ],
)
def test_wrong_pieces_are_refused(store, options, named):
    with pytest.raises(fst.Invalid, match=named):
        store.archive(sim(1), np.ones((2, 2)), **options)
    with pytest.raises(fst.Invalid, match="opaque"):
        store.archive(sim(1), b"x", start=0, shape=4)


def test_pieces_that_disagree_are_a_conflict(store):
    store.archive(sim(1), np.ones(2, "f4"), start=0, shape=4)
    store.flush()
    store.archive(sim(1), np.ones(2, "f8"), start=2, shape=4)
    store.flush()
    with pytest.raises(fst.Conflict):
        store.get(sim(1))


def test_create_field_starts_a_generation(store):
    store.archive(sim(1), np.ones((2, 2), "i4"))
    store.flush()
    made = store.create_field(sim(1), dtype="i4", shape=(2, 3), fill=-9, chunks=(1, 3))
    assert (made.dtype, made.shape, dict(made.key)) == (np.dtype("i4"), (2, 3), next(store.list()).key)
    assert store.get(sim(1)).shape == (2, 2)
    store.flush()
    (entry,) = store.list()
    assert entry.shape == (2, 3) and not entry.complete and entry.location is None
    made.write(np.array([[1, 2]], "i4"), start=(0, 1))
    made.write(np.array([[7]], ">i4"), start=(1, 0))
    store.flush()
    assert store.retrieve(sim(1), strict=False)[0].array().tolist() == [[-9, 1, 2], [7, -9, -9]]
    with pytest.raises(fst.Invalid, match="float64"):
        made.write(np.array([[1.5]]), start=(0, 0))
    with pytest.raises(fst.Invalid):
        made.write(np.array([[1]], "i4"), start=(2, 0))
    store.archive(sim(1), np.zeros(1))
    store.flush()
    assert store.get(sim(1)).tolist() == [0.0], "a whole array hides all older pieces"


@pytest.mark.parametrize("fill", [1.5, 300, "x", [1, 2], 1j])
def test_a_fill_that_is_no_element_is_refused(store, fill):
    with pytest.raises(fst.Invalid, match="fill="):
        store.create_field(sim(1), dtype=np.int8, shape=(2,), fill=fill)


@pytest.mark.parametrize("dtype", ["f4", ">f8", np.float32, np.dtype("M8[s]"), float, bool])
def test_dtypes_are_given_as_numpy_does(store, dtype):
    assert store.create_field(sim(1), dtype=dtype, shape=3).dtype == np.dtype(dtype)
    with pytest.raises(fst.Invalid):
        store.create_field(sim(1), dtype=object, shape=3)
    with pytest.raises(fst.Invalid):
        store.create_field(sim(1), dtype="nonsense", shape=3)


def test_boxes_of_a_chunked_array(tmp_path):
    whole = np.random.default_rng(2).normal(size=(30, 40))
    with fst.open(tmp_path / "store", compression="zstd:1") as store:
        store.archive(sim(1), whole, chunks=(7, 11))
        store.flush()
        field = store.retrieve(sim(1))[0]
        assert field.chunks == (7, 11)
        rng = np.random.default_rng(3)
        for _ in range(50):
            start = [int(rng.integers(n + 1)) for n in whole.shape]
            count = [int(rng.integers(n - s + 1)) for n, s in zip(whole.shape, start, strict=True)]
            box = tuple(slice(s, s + n) for s, n in zip(start, count, strict=True))
            np.testing.assert_array_equal(field.array(start, count), whole[box])
        np.testing.assert_array_equal(field.array(start=(5, 5)), whole[5:, 5:])
        np.testing.assert_array_equal(field.array(count=(5, 5)), whole[:5, :5])
        for start, count in [((31, 0), (0, 0)), ((0, 0), (31, 1)), ((0,), (1,)), ((-1, 0), (1, 1))]:
            with pytest.raises(fst.Invalid):
                field.array(start, count)


def test_numpy_arrays_pickled_elsewhere_are_the_same(store):
    given = pickle.loads(pickle.dumps(np.arange(6, dtype=">i2").reshape(2, 3)))
    store.archive(sim(1), given)
    store.flush()
    np.testing.assert_array_equal(store.get(sim(1)), given)

"""Results of a retrieve: fields in request order, lazily, as bytes, arrays or one file."""

from __future__ import annotations

import array
import io

import fieldstone as fst
import numpy as np
import pytest
from keys_and_stores import sim


@pytest.fixture
def store():
    store = fst.open("memory:")
    store.archive_many([sim(n) for n in range(10)], [b"%d" % n * (n + 1) for n in range(10)])
    store.archive(sim(0, "array"), np.arange(6, dtype="<f8").reshape(2, 3))
    store.flush()
    return store


ALL = b"".join(b"%d" % n * (n + 1) for n in range(10))


def test_strict_names_what_is_missing_before_any_byte(store):
    with pytest.raises(fst.NotFound, match="step=77") as caught:
        store.retrieve("run=a,variable=t,step=1/77/2")
    assert isinstance(caught.value, KeyError) and not str(caught.value).startswith(("'", '"'))
    assert len(store.retrieve("variable=t,step=*")) == 10
    assert len(store.retrieve("run=a")) == 11, "an absent keyword is never missing"
    assert len(store.retrieve()) == 11


def test_10_lenient_gives_what_exists_and_lists_the_rest(store):
    fields = store.retrieve({"run": "a", "variable": "t", "step": [1, 77, 2, 99]}, strict=False)
    assert [f.key["step"] for f in fields] == ["1", "2"]
    assert fields.missing == ["run=a,variable=t,step=77", "run=a,variable=t,step=99"]
    assert fields.missing_count == 2
    assert len(store.retrieve(fields.missing, strict=False)) == 0
    assert store.retrieve("run=a,variable=t,step=1").missing == []


def test_fields_are_a_sequence(store):
    fields = store.retrieve("variable=t,step=0/to/9")
    assert len(fields) == 10 and fields[3].read() == b"3333" and fields[-1].read() == b"9" * 10
    assert [f.nbytes for f in fields] == list(range(1, 11))
    assert [f.read() for f in fields[2:7:2]] == [b"222", b"44444", b"6666666"]
    assert [f.key["step"] for f in fields[2:7:2]] == ["2", "4", "6"]
    assert [f.key["step"] for f in fields[::-1]] == [str(n) for n in range(9, -1, -1)]
    assert fields[20:] == []
    for wrong in (10, -11):
        with pytest.raises(IndexError, match="10 fields"):
            fields[wrong]
    with pytest.raises(TypeError):
        fields["step"]
    assert next(zip(fields, fields, strict=True))[1].read() == b"0"


def test_fields_concatenate(store):
    both = store.retrieve("variable=t,step=1") + store.retrieve("variable=t,step=0")
    assert both.read() == b"110" and len(both) == 2 and both[1].key["step"] == "0"
    assert store.retrieve(["variable=t,step=1", {"variable": "t", "step": 0}]).read() == b"110"
    other = fst.open("memory:", schema="[a [b [c: Integer]]]")
    other.archive("a=1,b=2,c=3", b"other")
    other.flush()
    assert (both + other.retrieve("c=3")).read() == b"110other"
    with pytest.raises(TypeError):
        both + 1


def test_read_and_readinto(store):
    fields = store.retrieve("variable=t,step=0/to/9")
    assert fields.read() == ALL and fields.nbytes == len(ALL)
    for buffer in (bytearray(len(ALL)), array.array("B", bytes(len(ALL))), np.zeros(len(ALL), "u1")):
        assert fields.readinto(buffer) == len(ALL) and bytes(buffer) == ALL
    longer = bytearray(len(ALL) + 5)
    assert fields.readinto(memoryview(longer)) == len(ALL) and longer == ALL + bytes(5)
    with pytest.raises(fst.Invalid, match="buffer"):
        fields.readinto(bytearray(len(ALL) - 1))
    for wrong in (bytes(len(ALL)), np.zeros(2 * len(ALL), "u1")[::2], "text", 5):
        with pytest.raises(fst.Invalid, match=r"into|read-only"):
            fields.readinto(wrong)
    numbers = np.zeros((2, 3))
    assert store.retrieve("variable=array")[0].readinto(numbers) == 48 and numbers[1, 2] == 5
    times = np.zeros(6, "M8[s]")
    assert store.retrieve("variable=array").readinto(times) == 48
    with pytest.raises(fst.Invalid, match="48"):
        store.retrieve("variable=array")[0].readinto(bytearray(49))
    assert store.retrieve("variable=array,step=5", strict=False).read() == b""


def test_open_is_a_file(store):
    whole = ALL + np.arange(6, dtype="<f8").tobytes()
    fields = store.retrieve("variable=t/array,step=0/to/9", strict=False)
    with fields.open() as file:
        assert isinstance(file, io.BufferedReader) and file.readable() and file.seekable()
        assert not file.writable() and file.read() == whole and file.read(1) == b""
        assert file.seek(0) == 0 and file.read(4) == whole[:4] and file.tell() == 4
        assert file.seek(-5, io.SEEK_END) == len(whole) - 5 and file.read() == whole[-5:]
        assert file.seek(10_000) == 10_000 and file.read() == b""
        with pytest.raises((OSError, ValueError)):
            file.seek(-1)
    with pytest.raises(ValueError, match="closed"):
        file.read()
    plain = io.BytesIO(whole)
    rng = np.random.default_rng(4)
    with fields.open(buffer_size=16) as file:
        for _ in range(300):
            at, n = int(rng.integers(len(whole) + 10)), int(rng.integers(40))
            assert file.seek(at) == plain.seek(at) and file.read(n) == plain.read(n)
    with fields.open() as file:
        raw = file.raw
        assert raw.readinto(bytearray(3)) == 3 and raw.readall() == whole[3:]


def test_a_retrieve_is_pinned(store):
    fields, field = store.retrieve("variable=t,step=1"), store.retrieve("variable=t,step=1")[0]
    store.archive(sim(1), b"newer")
    store.flush()
    assert fields.read() == field.read() == b"11" and store.get(sim(1)) == b"newer"


def test_fields_know_what_they_are(store):
    opaque, numbers = store.retrieve("variable=t,step=1")[0], store.retrieve("variable=array")[0]
    assert (opaque.nbytes, opaque.dtype, opaque.shape, opaque.complete) == (2, None, None, True)
    assert (numbers.nbytes, numbers.dtype, numbers.shape) == (48, np.dtype("f8"), (2, 3))
    assert opaque.time.tzinfo is not None and "variable=array" in repr(numbers)
    assert numbers.array((1, 0), (1, 2)).tolist() == [[3.0, 4.0]]

"""Makes the fixture stores that stay readable: python tests/compat/make_fixtures.py [FOLDER [NAME...]]

Each fixture is a folder with a `store` and `expected.json`: the fields that this script archived, taken from
its own values and not read back. Fixtures that a release has written stay. Make other fixtures under new
names, or while the version of the format is 0.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import fieldstone as fst
import numpy as np

Key = dict[str, str]
Value = bytes | np.ndarray | None  # None: listed, but not complete
Expected = list[tuple[Key, Value]]


def key(variable: str, step: int, run: str = "a") -> Key:
    return {"run": run, "variable": variable, "step": str(step)}


def opaque(path: str) -> Expected:
    """Opaque bytes of several lengths, one of them replaced, in the schema `simulation`."""
    values = [(key("t", step), bytes(range(256)) * step) for step in range(6)] + [(key("empty", 0), b"")]
    with fst.open(path, schema="simulation") as store:
        store.archive(key("t", 1), b"hidden by what comes later")
        store.flush()
        for name, value in values:
            store.archive(name, value)
    return values


def mars(path: str) -> Expected:
    """Keys of the schema `mars`."""
    first = {
        "class": "od",
        "expver": "0001",
        "stream": "oper",
        "date": "20240229",
        "time": "1200",
        "domain": "g",
    }
    values = []
    with fst.open(path, schema="mars") as store:
        for step in ("0", "6", "0-24"):
            for param in ("130", "131"):
                name = first | {
                    "type": "fc",
                    "levtype": "pl",
                    "step": step,
                    "levelist": "500",
                    "param": param,
                }
                values.append((name, f"message {step} {param}".encode()))
                store.archive(*values[-1])
    return values


def extended(path: str) -> Expected:
    """A schema that was extended twice: keys from before, of an optional keyword, and of a new rule."""
    with fst.open(path, schema="step: Integer; [run [variable [step]]]") as store:
        values = [(key("t", step), b"before") for step in (0, 1)]
        store.archive(*values[0])
        store.flush()
        store.extend_schema("number?: Integer;")
        values += [(key("t", 0) | {"number": n}, f"member {n}".encode()) for n in ("1", "10")]
        for name, value in values[1:]:
            store.archive(name, value)
        store.flush()
        store.extend_schema("[centre [type [step, number: Text]]]")
        values.append(({"centre": "kwbc", "type": "fc", "step": "6", "number": "01"}, b"another rule"))
        store.archive(*values[-1])
    return values


DTYPES = "|b1 |i1 |u1 <i2 >i2 <u2 <i4 >u4 <i8 <u8 <f2 <f4 >f4 <f8 >f8 <c8 >c16 |S5 <U3"
TIMES = "<M8[ns] >M8[D] <m8[s] <m8[25s]"


def dtypes(path: str) -> Expected:
    """Arrays of every element type, of ranks 0 to 3, with missing values, and one without elements."""
    source, values = random.Random(1), []
    with fst.open(path, schema="simulation") as store:
        for number, dtype in enumerate([*DTYPES.split(), *TIMES.split()]):
            shape = [(), (7,), (3, 4), (2, 3, 2)][number % 4]
            size = int(np.prod(shape, dtype=int))
            numbers = np.array([source.randrange(100) for _ in range(size)]).reshape(shape)
            text = np.array([f"é{n}" if dtype[1] == "U" else f"{n}" for n in numbers.flat]).reshape(shape)
            array = (text if dtype[1] in "SU" else numbers).astype(dtype)
            if dtype[1] in "fcMm" and shape:
                array[(0,) * len(shape)] = (
                    np.datetime64("NaT") if dtype[1] == "M" else "NaT" if dtype[1] == "m" else "nan"
                )
            values.append((key(f"v{number}", 0), array))
        values.append((key("none", 0), np.zeros((0, 3), "<f4")))
        for name, array in values:
            store.archive(name, array)
    return values


def pieces(path: str) -> Expected:
    """Pieces of two writers, overlapping, generations, created fields, and fields that are not complete."""
    first = np.arange(48, dtype="<i4").reshape(6, 8)
    whole, second = first.copy(), -first
    with fst.open(path, schema="simulation") as store:
        store.archive(key("p", 0), first[:3] * 100, start=(0, 0), shape=(6, 8))
        store.archive(key("p", 0), first[3:], start=(3, 0), shape=(6, 8))
        store.archive(key("half", 0), first[:3], start=(0, 0), shape=(6, 8))
        store.archive(key("again", 0), first)
        store.create_field(key("created", 0), dtype="<i4", shape=(6, 8), fill=-1, chunks=(4, 4))
        store.create_field(key("waiting", 0), dtype="<i4", shape=(6, 8))
    with fst.open(path) as store:
        store.archive(key("p", 0), first[:3], start=(0, 0), shape=(6, 8))
        store.archive(key("again", 0), second)
        store.archive(key("created", 0), first[:, :5], start=(0, 0), shape=(6, 8))
        store.flush()
        store.archive(key("created", 0), second[:, 4:], start=(0, 4), shape=(6, 8))
        store.archive(key("again", 0), first[2:4, 2:4], start=(2, 2), shape=(6, 8))
    whole[:, 4:] = second[:, 4:]
    again = second.copy()
    again[2:4, 2:4] = first[2:4, 2:4]
    return [
        (key("p", 0), first),
        (key("again", 0), again),
        (key("created", 0), whole),
        (key("half", 0), None),
        (key("waiting", 0), None),
    ]


def transactions(path: str) -> Expected:
    """Transactions of two writers: one committed, one aborted, one undecided, with flushes between them."""
    with fst.open(path, schema="simulation") as store, fst.open(path) as other:
        store.archive(key("t", 0), b"before")
        store.archive(key("t", 1), b"before")
        store.flush()
        tx = store.transaction()
        tx.archive(key("t", 0), b"committed by the opener")
        joined = other.transaction(id=tx.id)
        joined.archive(key("t", 2), b"committed by another")
        joined.flush()
        other.archive(key("t", 1), b"between")
        other.flush()
        tx.commit()
        late = store.transaction()
        late.archive(key("t", 1), b"aborted")
        late.flush()
        late.abort()
        left = store.transaction()
        left.archive(key("t", 3), b"undecided")
        left.flush()
    return [
        (key("t", 0), b"committed by the opener"),
        (key("t", 1), b"between"),
        (key("t", 2), b"committed by another"),
    ]


def writers(path: str) -> Expected:
    """Four writers of many flushes each, so that writers merge their segments and make a filter."""
    values: dict[tuple[str, int], bytes] = {}
    for writer in range(4):
        with fst.open(path, schema="simulation") as store:
            for flush in range(6):
                for step in range(flush * 2, flush * 2 + 3):
                    values[f"v{writer % 3}", step] = f"{writer} {flush} {step}".encode()
                    store.archive(key(f"v{writer % 3}", step), values[f"v{writer % 3}", step])
                store.flush()
    with fst.open(path) as store:
        for step in range(70):
            values["many", step] = b"%d" % step
            store.archive(key("many", step), values["many", step])
    return [(key(*name), value) for name, value in values.items()]


def chunks(path: str) -> Expected:
    """Compressed chunks: a few, listed in the entry, and many, in a block table."""
    y, x = np.mgrid[0:90, 0:70]
    smooth = (np.sin(y / 20) + np.cos(x / 15)).round(2).astype("<f4")
    large = np.zeros((700, 800), "<i4")
    large[::100] = np.arange(800)
    with fst.open(path, schema="simulation", compression="zstd") as store:
        store.archive(key("many", 0), smooth, chunks=(32, 16))
        store.archive(key("few", 0), smooth[:, :40], chunks=(64, 64))
        store.archive(key("piece", 0), smooth[10:], start=(10, 0), shape=(90, 70), chunks=(7, 33))
        store.archive(key("piece", 0), smooth[:10], start=(0, 0), shape=(90, 70))
        store.archive(key("text", 0), b"again and " * 3000)
        store.flush()
        store.archive(key("large", 0), large)
        store.archive(key("long", 0), b"repeated " * 150_000)
        store.flush()
    names = ("many", smooth), ("few", smooth[:, :40]), ("piece", smooth), ("text", b"again and " * 3000)
    return [
        (key(name, 0), value) for name, value in (*names, ("large", large), ("long", b"repeated " * 150_000))
    ]


def data_log(path: str) -> Expected:
    """A flush of more than 1 MiB, whose payload is in a data log, and a small one after it."""
    array = (np.arange(300_000) % 250).astype("<i4").reshape(600, 500)
    with fst.open(path, schema="simulation") as store:
        store.archive(key("array", 0), array, chunks=(100, 500))
        store.archive(key("bytes", 0), b"0123456789abcdef" * 70_000)
        store.flush()
        store.archive(key("small", 0), b"small")
    assert list(Path(path, "data").iterdir())
    return [
        (key("array", 0), array),
        (key("bytes", 0), b"0123456789abcdef" * 70_000),
        (key("small", 0), b"small"),
    ]


def torn(path: str) -> Expected:
    """A log whose last frame is cut, as by a power cut before its sync, and one whose header is cut."""
    with fst.open(path, schema="simulation") as store:
        store.archive(key("t", 0), b"kept")
        store.flush()
        store.archive(key("t", 1), b"kept too")
        store.flush()
        store.archive(key("t", 0), b"torn")
        store.flush()
    (log,) = Path(path, "logs").iterdir()
    log.write_bytes(log.read_bytes()[:-30])
    Path(path, "logs", "0123456789abcdef" * 2 + ".log").write_bytes(log.read_bytes()[:50])
    shutil.rmtree(Path(path, "boards"))
    return [(key("t", 0), b"kept"), (key("t", 1), b"kept too")]


def killed(path: str, flushes: int) -> Expected:
    """The store of a writer that was killed after this number of small flushes."""
    values = [(key("t", step), bytes([step]) * 40) for step in range(flushes)]
    child = os.fork()
    if child == 0:
        store = fst.open(path, schema="simulation")
        for name, value in values:
            store.archive(name, value)
            store.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return values


def zeroed(path: str) -> Expected:
    """The log of a writer that was killed: it has zeros after its last commit."""
    values = killed(path, 9)
    (log,) = Path(path, "logs").iterdir()
    assert log.read_bytes().endswith(bytes(100))
    return values


def zeroed_head(path: str) -> Expected:
    """The same without boards, and with a damaged frame head in the middle: later commits are still there."""
    values = killed(path, 9)
    (log,) = Path(path, "logs").iterdir()
    data = bytearray(log.read_bytes())
    frames = [at for at in range(len(data)) if data[at : at + 4] == b"FSfr"]
    data[frames[4] + 10] ^= 0xFF
    log.write_bytes(data)
    shutil.rmtree(Path(path, "boards"))
    return values


def sealed(path: str) -> Expected:
    """A write failed half way; the writer continued in a new log, whose header seals the old one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with fst.open(path, schema="simulation") as store:
        store.archive(key("t", 0), b"before")
        store.flush()
        store.archive(key("t", 1), b"before")
        store.flush()
        (log,) = Path(path, "logs").iterdir()
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 200, before[1]))
        try:
            store.archive(key("t", 3), b"lost" * 500)
            store.flush()
            raise AssertionError("the write should have failed")
        except fst.Error:
            pass
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        store.archive(key("t", 2), b"after")
    assert len(list(Path(path, "logs").glob("*.log"))) == 2
    return [(key("t", 0), b"before"), (key("t", 1), b"before"), (key("t", 2), b"after")]


def values(path: str) -> Expected:
    """Values of keys that need care: long, in all scripts, with separators and NUL, numbers of every size."""
    texts = [
        "x" * 3000,
        "größe",
        "温度",
        "🜁",
        "a:b",
        "a/b",
        "nul\0nul",
        "\0",
        "a,b={c}",
        " a ",
        "to",
        "*",
        "é" * 500,
    ]
    found = [({"run": text, "variable": "t", "step": "6"}, text.encode()) for text in texts]
    steps = (0, 1, -1, 127, 255, 256, -255, -256, -257, 2**31, 2**63 - 1, -(2**63))
    found += [(key("steps", step), b"%d" % step) for step in steps]
    with fst.open(path, schema="simulation") as store:
        for name, value in found:
            store.archive(name, value)
    return found


def removals(path: str) -> Expected:
    """Fields removed, moved and restored, and a field of which a move left a newer version alone."""
    array = np.arange(24, dtype=">f4").reshape(4, 6)
    with fst.open(path, schema="simulation") as store, fst.open(path) as other:
        for step in range(8):
            store.archive(key("t", step), b"first %d" % step)
        store.archive(key("p", 0), array)
        store.flush()
        store.remove("variable=t,step=0/1")
        store.archive(key("t", 1), b"again")
        store.remove("variable=p")
        store.flush()
        other.archive(key("p", 0), array[:2], start=(0, 0), shape=(4, 6))
        other.flush()

        def meanwhile(done: int, of: int) -> None:
            if done == 1:
                other.archive(key("t", 3), b"newer than what is moved")
                other.flush()

        with fst.open("memory:") as elsewhere:
            report = fst.move(store, "variable=t,step=2/to/4", to=elsewhere, progress=meanwhile)
            assert (report.removed, len(report.kept)) == (2, 1)
        other.archive(key("t", 4), b"back")
        with store.transaction() as tx:
            tx.remove("variable=t,step=5")
        left = store.transaction()
        left.remove("variable=t,step=6")
        left.flush()
    return [
        (key("t", 1), b"again"),
        (key("t", 3), b"newer than what is moved"),
        (key("t", 4), b"back"),
        (key("t", 6), b"first 6"),
        (key("t", 7), b"first 7"),
        (key("p", 0), None),
    ]


def catalog(path: str) -> Expected:
    """Runs, steps, variables, tags and attributes, with corrections, deletions and transactions."""
    ramp = np.linspace(0, 1, 64)
    with fst.open(path, schema="simulation") as store:
        run = store.create_run(
            "a", params={"nx": 64, "grid": [1, {"k": None}]}, job="17", created="2026-11-21"
        )
        run.create_variable(
            "t", dtype="f8", shape=(64,), dims=("x",), attrs={"units": "K"}, coords={"x": np.sqrt(ramp)}
        )
        run.create_variable("u", dtype="f4", shape=(4, 5), version=1)
        run.create_steps([0, 6, 12], [0.0, 0.25, 0.5])
        run.write("t", 6, ramp)
        for name, kind, unit in (
            ("maximum", "float", "K"),
            ("span", "int_range", None),
            ("word", "text", None),
        ):
            store.create_tag(name, type=kind, unit=unit)
        numbers = np.arange(200)
        run.annotate_many(
            "maximum",
            numbers * 0.1,
            variable="t",
            step=numbers % 3 * 6,
            start=numbers[:, None] % 60,
            count=(3,),
        )
        run.annotate("span", range(5, 10), variable="u", version=1, step=0, start=(1, 2), count=(2, 2))
        run.annotate("word", "first", step=6)
        store.flush()
        run.annotate("word", "corrected", step=6)
        run.annotate("gone", 1)
        store.flush()
        store.delete(tag="gone", doit=True)
        store.delete(where="tag=maximum and value<0.05", doit=True)
        store.flush()
    with fst.open(path) as store:
        aborted = store.transaction()
        aborted.run("a").annotate("word", "aborted", step=12)
        aborted.abort()
        some = store.transaction()
        some.run("a").annotate("word", "of the run")
        some.run("a").annotate("word", "never seen", step=0)
        some.flush()
        some.activate("run_attribute")
    return [({"run": "a", "variable": "t", "step": "6"}, ramp)]


def catalog_expected() -> dict[str, list]:
    """The contents of the fixture `catalog`; attributes as rows of run, tag, step, variable, box, value."""
    maximum = [
        ["a", "maximum", n % 3 * 6, ["t", 0], [[n % 60, 3]], n * 0.1] for n in range(200) if n * 0.1 >= 0.05
    ]
    others = [
        ["a", "span", 0, ["u", 1], [[1, 2], [2, 2]], [5, 9]],
        ["a", "word", 6, None, None, "corrected"],
        ["a", "word", None, None, None, "of the run"],
    ]
    return {
        "run": [["a", {"nx": 64, "grid": [1, {"k": None}]}]],
        "step": [["a", 0, 0.0], ["a", 6, 0.25], ["a", 12, 0.5]],
        "variable": [["a", "t", 0, "<f8", [64]], ["a", "u", 1, "<f4", [4, 5]]],
        "tag": [["maximum", "float", "K"], ["span", "int_range", ""], ["word", "text", ""]],
        "attribute": maximum + others,
    }


FIXTURES: dict[str, Callable[[str], Expected]] = {
    maker.__name__: maker
    for maker in (
        opaque,
        mars,
        dtypes,
        pieces,
        transactions,
        writers,
        chunks,
        data_log,
        torn,
        sealed,
        zeroed,
        zeroed_head,
        values,
        removals,
        catalog,
        extended,
    )
}


# Long, but with little information: kept as an archive.
PACKED = {"data_log"}
# `verify` names their damage, but nothing is lost.
DAMAGED = {"zeroed_head"}


def describe(name: Key, value: Value) -> dict[str, object]:
    if value is None:
        return {"key": name, "complete": False}
    array = isinstance(value, np.ndarray)
    data = value.tobytes() if array else value
    return {
        "key": name,
        "complete": True,
        "dtype": value.dtype.str if array else None,
        "shape": list(value.shape) if array else None,
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def make(folder: Path, name: str) -> None:
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).mkdir(parents=True)
    fields = [describe(*field) for field in FIXTURES[name](str(folder / name / "store"))]
    expected = {"about": FIXTURES[name].__doc__, "fields": fields}
    if name in DAMAGED:
        expected["damaged"] = True
    if name == "catalog":
        expected["catalog"] = catalog_expected()
        # The engine does not belong to the format.
        shutil.rmtree(folder / name / "store" / "catalog", ignore_errors=True)
    text = json.dumps(expected, indent=1, ensure_ascii=True)
    (folder / name / "expected.json").write_text(text + "\n")
    if name in PACKED:
        shutil.make_archive(str(folder / name / "store"), "gztar", folder / name, "store")
        shutil.rmtree(folder / name / "store")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "fixtures"
    for fixture in sys.argv[2:] or FIXTURES:
        make(target, fixture)

"""A small reader that knows only spec/partitioned-header.md reads a partitioned header."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from math import prod
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KEPT = HERE / "partitioned" / "v0.fsp"

spec = spec_from_file_location("partitioned_reader", HERE / "partitioned_reader.py")
reader = sys.modules["partitioned_reader"] = module_from_spec(spec)
spec.loader.exec_module(reader)


def test_the_kept_file_holds_what_three_ranks_wrote() -> None:
    container = reader.Container(KEPT)
    container.check_indexes()
    told = container.describe()
    assert len(container.writers) == 3
    assert told["numrecs"] == 4
    assert told["attrs"] == {"title": [2, "events"]}
    hits = [(f"event_{event}/hits", event + 1) for event in range(9)]
    assert told["dims"] == [("time", None), ("x", 5), *hits]
    names = [f"event_{event}/{name}" for event in range(9) for name in ("v1.5/charge", "energy")]
    assert [var["name"] for var in told["vars"]] == ["grid", *names]
    assert told["vars"][1]["attrs"] == {"units": [2, "pC"]}
    assert container.get("grid") == [1 + 7 * i for i in range(5)]
    for event in range(9):
        assert container.get(f"event_{event}/v1.5/charge") == [3 + 7 * i for i in range(event + 1)]
        assert container.get(f"event_{event}/energy") == [5 + 7 * i for i in range(20)]


def test_path_lists_tell_what_the_objects_do() -> None:
    container = reader.Container(KEPT)
    wanted: dict[str, list[int]] = {}
    objects = [(0, name, 0) for name, _ in container.dims] + [(1, name, 0) for name in container.attrs]
    for var in container.vars:
        lengths = [container.dims[dim][1] for dim in var["dims"]]
        count = prod(container.numrecs if length is None else length for length in lengths)
        objects.append((2, var["name"], count * reader.SIZES[var["type"]]))
    for kind, name, size in objects:
        total = wanted.setdefault("/".join(name.split("/")[:-1]), [0] * 4)
        total[kind] += 1
        total[3] += size
    assert len(wanted) == container.paths == 19
    assert container.path_totals() == wanted
    assert [len(paths) for paths in container.path_lists()] == [7, 6, 6]


@pytest.mark.parametrize("part", ["head", "block", "names", "paths", "list", "table"])
def test_damage_is_seen(part: str, tmp_path: Path) -> None:
    data = bytearray(KEPT.read_bytes())
    sound = reader.Container(KEPT)
    table = int.from_bytes(data[88:96], "big")
    places = {"head": 30, "block": sound.blocks[1][0] + 20, "names": sound.writers[2][1] + 9}
    at = (places | {"paths": sound.paths_at + 9, "list": table - 1, "table": table + 3})[part]
    data[at] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    with pytest.raises(reader.Damage):
        damaged = reader.Container(tmp_path / "damaged")
        damaged.check_indexes()
        damaged.path_totals()


def test_an_unfinished_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "unfinished").write_bytes(b"FSUP" + KEPT.read_bytes()[4:])
    with pytest.raises(reader.Damage, match="never finished"):
        reader.Container(tmp_path / "unfinished")

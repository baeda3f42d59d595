"""The small reader that knows only spec/ reads moved fields (store-format.md, 6.2; 14, step 6)."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import fieldstone as fst
import numpy as np

spec = spec_from_file_location("moved_reader", Path(__file__).parent / "reader.py")
reader = sys.modules["moved_reader"] = module_from_spec(spec)
spec.loader.exec_module(reader)


def by_reader(folder: Path) -> dict[str, bytes]:
    opened = reader.open_store(folder)
    assert opened.verify() == []
    found = {}
    for text in opened.fields():
        key = json.loads(text)
        found[f"{key['variable']}/{key['step']}"] = bytes(opened.read(text))
    return found


def by_program(folder: Path) -> dict[str, bytes]:
    with fst.open(folder, "r") as store:
        return {f"{field.key['variable']}/{field.key['step']}": field.read() for field in store.retrieve()}


def test_moved_fields_have_the_places_of_their_origins(tmp_path: Path) -> None:
    hot, cold = tmp_path / "hot", tmp_path / "cold"

    def put(folder: Path, attempt: str | None, **values: bytes) -> None:
        with fst.open(folder, attempt=attempt) as store:
            for variable, value in values.items():
                store.archive({"run": "a", "variable": variable, "step": 0}, value)

    put(cold, None, both=b"cold", attempts=b"without")
    put(hot, "1", both=b"hot", attempts=b"first", again=b"one")
    put(hot, "2", attempts=b"second", again=b"two")
    with fst.open(hot) as store:
        for n, start in enumerate([0, 3, 6, 2]):
            piece = np.full((2, 3), n, "u1")
            store.archive(
                {"run": "a", "variable": "pieces", "step": 0}, piece, start=(0, start), shape=(2, 9)
            )
            store.flush()
    before = by_program(hot)
    assert fst.move(hot, to=cold, versions=True).removed == 4
    assert by_reader(cold) == by_program(cold) == before
    # There and back, past the removals that a move leaves; then values that are newer.
    fst.move(cold, "variable=both,step=0", to=hot)
    fst.move(hot, "variable=both,step=0", to=cold)
    assert by_reader(cold) == by_program(cold) == before
    assert by_reader(hot) == by_program(hot) == {}
    put(cold, "3", attempts=b"third")
    put(cold, None, again=b"three")
    with fst.open(cold) as store:
        store.remove("variable=both")
        store.flush()
    after = by_program(cold)
    assert (after["attempts/0"], "both/0" in after) == (b"third", False)
    assert by_reader(cold) == after
    with fst.open(cold) as store:
        assert store.compact().logs[0] > 0
    assert by_reader(cold) == by_program(cold) == after

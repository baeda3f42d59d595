"""The cost model of parallel creation gives the same counts as runs on threads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import container_model as model  # noqa: E402

RUNS = model.counted()


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run['ranks']}-ranks")
def test_model_predicts_counts_within_a_tenth(run: dict[str, float]) -> None:
    assert (run["variables"], run["dimensions"]) == (model.PAPER.vars, model.PAPER.dims)
    assert run["header_len"] == model.PAPER.header
    predicted = model.counters(model.PAPER, int(run["ranks"]))
    for key, value in predicted.items():
        assert value == pytest.approx(run[key], rel=0.1), key


def test_counts_reach_256_ranks_and_hold_their_bounds() -> None:
    assert [run["ranks"] for run in RUNS] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    for run in RUNS:
        share = (run["variables"] + run["dimensions"]) / run["ranks"]
        assert run["comparisons"] <= 1.2 * share
        assert run["names_held"] <= 2.4 * share


@pytest.mark.parametrize("strategy", ["LibraryHash", "Partitioned"])
def test_model_predicts_the_other_checks_within_a_tenth(strategy: str) -> None:
    runs = model.checked(strategy)
    assert [run["ranks"] for run in runs] == [1, 2, 4, 8, 16, 32, 64]
    for run in runs:
        assert (run["variables"], run["dimensions"]) == (model.TENTH.vars, model.TENTH.dims)
        ranks = int(run["ranks"])
        hashed = strategy == "LibraryHash"
        told = model.hashed(model.TENTH, ranks, 16_384) if hashed else model.partitioned(model.TENTH, ranks)
        for key, value in told.items():
            assert value == pytest.approx(run[key], rel=0.1), (ranks, key)


def test_the_model_tells_the_ratio_and_the_plateau_of_the_partitioned_header(capsys: Any) -> None:
    times = {1 << power: model.seconds_of_partitioned(model.LARGE, 1 << power) for power in range(13)}
    plateau = min(times, key=lambda ranks: times[ranks])
    ratio = model.seconds_of_hashed(model.LARGE, 4096, model.SLOTS_LARGE) / times[4096]
    assert 64 < plateau < 4096 and ratio > 50
    model.print_checks()
    text = capsys.readouterr().out
    assert f"{ratio:.0f} times as fast as the hash table at 4,096 ranks" in text
    assert f"its plateau is at {plateau} ranks" in text


def test_messages_win_over_names_beyond_some_ranks() -> None:
    total = [sum(model.seconds(model.PAPER, 1 << power).values()) for power in range(13)]
    least = 1 << total.index(min(total))
    assert least == 512
    assert total[-1] > 2 * min(total)

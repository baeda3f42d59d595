"""The cost model of parallel creation says what runs on threads count."""

from __future__ import annotations

import sys
from pathlib import Path

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


def test_messages_win_over_names_beyond_some_ranks() -> None:
    total = [sum(model.seconds(model.PAPER, 1 << power).values()) for power in range(13)]
    least = 1 << total.index(min(total))
    assert least == 512
    assert total[-1] > 2 * min(total)

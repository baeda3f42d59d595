"""The example of a detector in one process: batches contain everything written, each event once."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "examples"))
import detector


@pytest.mark.parametrize("format", ["cdf5", "partitioned"])
def test_batches_hold_what_was_written(tmp_path, format):
    path = str(tmp_path / "events.nc")
    assert detector.write(path, 37, format=format) == 37
    loader = detector.Loader(path, 8, seed=1)
    assert len(loader) == 5
    orders = []
    for _ in range(2):
        seen = []
        for batch in loader:
            seen += batch.events
            for place, number in enumerate(batch.events):
                event = detector.simulate(number)
                own = batch.graph == place
                first = int(np.argmax(own))
                assert np.array_equal(batch.x[own], event["x"])
                assert np.array_equal(batch.charge[own], event["charge"])
                edges = own[batch.edge_index[0]]
                assert np.array_equal(batch.edge_index[:, edges] - first, event["edge_index"])
                assert np.array_equal(batch.label[edges], event["label"])
        assert sorted(seen) == list(range(37))
        orders.append(seen)
    assert orders[0] != orders[1] and orders[0] != sorted(orders[0])
    again = detector.Loader(path, 8, seed=1)
    assert [n for batch in again for n in batch.events] == orders[0]
    shares = [detector.Loader(path, 8, share=s, shares=3) for s in range(3)]
    assert sorted(n for part in shares for batch in part for n in batch.events) == list(range(37))

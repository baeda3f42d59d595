"""Messages of every packing, way of missing, statistic, unit and kind of level: the same as read by ecCodes.

Pairwise, and with ``FIELDSTONE_CRASH=full`` every combination that ecCodes can write; the count is printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import LONG

xr = pytest.importorskip("xarray")
pytest.importorskip("eccodes")
import grib_matrix as matrix  # noqa: E402
from fieldstone._xarray import valid  # noqa: E402

SOME = 2000
"""Number of messages in one store."""
EACH = 40 if LONG else 4
"""One in this number of messages is opened with xarray."""


def test_every_kind_of_message_is_read_as_eccodes_reads_it(tmp_path):
    cells = matrix.product() if LONG else iter(matrix.pairwise())
    count = 0
    while part := list(islice(cells, SOME)):
        check(tmp_path / str(count), part)
        count += len(part)
    sizes = " x ".join(str(len(values)) for values in matrix.AXES.values())
    print(f"{count} cells of {sizes} ({', '.join(matrix.AXES)}), {'all' if LONG else 'pairwise'}")
    assert count > (60_000 if LONG else 100)


def check(folder: Path, cells: Iterable[tuple[matrix.Cell, bytes]]) -> None:
    folder.mkdir()
    by_bytes = {raw: cell for cell, raw in cells}
    path = folder / "cells.grib"
    path.write_bytes(b"".join(by_bytes))
    report = fst.ingest(folder / "s", path, progress=False)
    assert (report.taken[0].fields, report.skipped) == (len(by_bytes), ())
    opened = 0
    with fst.open(folder / "s", "r") as store:
        times = {step.time for step in store.steps()}
        for number, field in enumerate(store.retrieve({})):
            raw, key = field.read(), dict(field.key)
            cell = by_bytes.pop(raw)
            values, moment = matrix.by_eccodes(raw)
            np.testing.assert_array_equal(field.array().ravel(), values, err_msg=str(cell))
            if moment is not None:
                assert valid.moment(key).astype("M8[m]") == moment, (cell, key)
                told = valid.moment(key).astype("M8[s]").astype(float)
                assert told in times or "validity" in key, (cell, key)
            if number % EACH == 0 and len(store.retrieve(request := {k: [v] for k, v in key.items()})) == 1:
                opened += 1
                one(store.to_xarray(request), cell, values, moment)
    assert not by_bytes
    assert opened > 0


def one(ds: xr.Dataset, cell: matrix.Cell, values: np.ndarray, moment: np.datetime64 | None) -> None:
    """A Dataset of one message."""
    (variable,) = ds.data_vars.values()
    np.testing.assert_array_equal(variable.values.ravel(), values, err_msg=str(cell))
    if moment is None:
        return
    assert ds.valid_time.values.astype("M8[m]") == moment, cell
    if cell["statistic"] != "instant":
        begin, end = ds[f"{variable.name}_bounds"].values.astype("M8[m]")
        assert end == moment and begin <= end, cell

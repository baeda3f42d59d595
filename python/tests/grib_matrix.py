"""GRIB messages of every packing, way of missing, statistic, unit and kind of level that ecCodes can write.

A cell is one value of each axis of :data:`AXES`; :func:`message` makes it, or returns None if ecCodes cannot.
Packings that mark missing points themselves are written here: ecCodes reads them but cannot write them.
"""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Iterator
from typing import Any

import eccodes
import numpy as np

NI, NJ = 8, 4
SIMPLE = ("grid_simple", "grid_second_order", "grid_ieee")
AXES: dict[str, tuple[Any, ...]] = {
    "edition": (1, 2),
    "centre": ("ecmf", "kwbc"),
    "packing": (
        "grid_simple",
        "grid_simple_log_preprocessing",
        "grid_complex",
        "grid_complex_spatial_differencing",
        "grid_second_order",
        "grid_ccsds",
        "grid_ieee",
        "grid_png",
        "grid_jpeg",
        "grid_run_length",
        "spectral_complex",
    ),
    "missing": ("none", "bitmap", "own", "own, two kinds"),
    "values": ("ramp", "constant", "with 9999"),
    "statistic": ("instant", "accum", "avg", "max", "min", "diff"),
    "unit": ("s", "m", "15m", "30m", "h", "3h", "6h", "12h", "D", "M", "Y"),
    "level": (
        "surface",
        "heightAboveGround",
        "isobaricInhPa",
        "hybrid",
        "depthBelowLand",
        "depthBelowLandLayer",
        "meanSea",
        "theta",
    ),
}
UNITS = {
    1: {
        "m": 0,
        "h": 1,
        "D": 2,
        "M": 3,
        "Y": 4,
        "3h": 10,
        "6h": 11,
        "12h": 12,
        "15m": 13,
        "30m": 14,
        "s": 254,
    },
    2: {"m": 0, "h": 1, "D": 2, "M": 3, "Y": 4, "3h": 10, "6h": 11, "12h": 12, "s": 13},
}
ABSENT = 1e34
ECMWF = {"setLocalDefinition": 1, "class": "od", "stream": "oper", "type": "fc", "expver": "0001"}
Cell = dict[str, Any]


def message(cell: Cell) -> bytes | None:
    """The message of a cell; None if ecCodes cannot write one."""
    spectral = cell["packing"] == "spectral_complex"
    if cell["unit"] not in UNITS[cell["edition"]] or not is_writable(cell):
        return None
    sample = "sh_ml" if spectral else "regular_ll_sfc"
    handle = eccodes.codes_grib_new_from_samples(f"{sample}_grib{cell['edition']}")
    try:
        if not spectral:
            set_all(handle, {"Ni": NI, "Nj": NJ, **corners()})
        set_all(handle, ECMWF if cell["centre"] == "ecmf" else {"centre": cell["centre"]})
        set_all(handle, {"dataDate": 20260105, "dataTime": 600, "typeOfLevel": cell["level"]})
        set_level(handle, cell)
        set_times(handle, cell)
        if not spectral:
            set_values(handle, cell)
        made = eccodes.codes_get_message(handle)
    except eccodes.CodesInternalError:
        return None
    finally:
        eccodes.codes_release(handle)
    return made if own_packing(cell) is None else with_sections(made, *own_packing(cell))


def is_writable(cell: Cell) -> bool:
    """Whether the packing of a cell allows its ways of missing and its values."""
    packing, missing = cell["packing"], cell["missing"]
    if packing == "spectral_complex":
        return missing == "none" and cell["values"] == "ramp" and cell["level"] == "hybrid"
    if packing == "grid_run_length":
        return cell["edition"] == 2 and missing == "own" and cell["values"] == "ramp"
    if missing.startswith("own"):
        return cell["edition"] == 2 and packing.startswith("grid_complex") and cell["values"] == "ramp"
    if packing == "grid_simple_log_preprocessing" and cell["values"] == "constant":
        return False  # ecCodes would end the process
    return cell["edition"] == 2 or packing in SIMPLE


def set_all(handle: int, keys: dict[str, Any]) -> None:
    for name, value in keys.items():
        eccodes.codes_set(handle, name, value)


def corners() -> dict[str, float]:
    return {
        "latitudeOfFirstGridPointInDegrees": NJ,
        "latitudeOfLastGridPointInDegrees": 1,
        "longitudeOfFirstGridPointInDegrees": 0,
        "longitudeOfLastGridPointInDegrees": NI - 1,
        "iDirectionIncrementInDegrees": 1,
        "jDirectionIncrementInDegrees": 1,
    }


def set_level(handle: int, cell: Cell) -> None:
    level = cell["level"]
    if level in ("surface", "meanSea"):
        return
    if cell["edition"] == 1 or not level.startswith("depth"):
        eccodes.codes_set(handle, "level", 500 if level in ("isobaricInhPa", "theta") else 10)
        return
    first = {"scaleFactorOfFirstFixedSurface": 2, "scaledValueOfFirstFixedSurface": 10}
    second = {"scaleFactorOfSecondFixedSurface": 2, "scaledValueOfSecondFixedSurface": 40}
    set_all(handle, first | (second if level.endswith("Layer") else {}))


def set_times(handle: int, cell: Cell) -> None:
    """A step of 3 units, or the interval from 3 to 5."""
    unit, statistic = UNITS[cell["edition"]][cell["unit"]], cell["statistic"]
    if cell["edition"] == 1:
        indicators = {"instant": 0, "avg": 3, "accum": 4, "diff": 5, "max": 2, "min": 2}
        set_all(
            handle,
            {"unitOfTimeRange": unit, "timeRangeIndicator": indicators[statistic], "P1": 3},
        )
        eccodes.codes_set(handle, "P2", 0 if statistic == "instant" else 5)
        return
    if statistic == "instant":
        set_all(handle, {"indicatorOfUnitForForecastTime": unit, "forecastTime": 3})
        return
    eccodes.codes_set(handle, "stepType", statistic)
    if cell["unit"] in ("s", "m", "h"):
        eccodes.codes_set(handle, "stepUnits", cell["unit"])
        eccodes.codes_set(handle, "stepRange", "3-5")
        return
    hours = {"3h": 3, "6h": 6, "12h": 12, "D": 24, "M": 720, "Y": 8760}[cell["unit"]]
    eccodes.codes_set(handle, "stepRange", f"{3 * hours}-{5 * hours}")
    set_all(handle, {"indicatorOfUnitForForecastTime": unit, "forecastTime": 3})
    set_all(handle, {"indicatorOfUnitForTimeRange": unit, "lengthOfTimeRange": 2})


def set_values(handle: int, cell: Cell) -> None:
    values = np.arange(NI * NJ, dtype=float) + 1
    if cell["values"] == "constant":
        values[:] = 7.0
    elif cell["values"] == "with 9999":
        values[5] = 9999.0
    if cell["missing"] == "bitmap":
        eccodes.codes_set(handle, "bitmapPresent", 1)
        eccodes.codes_set(handle, "missingValue", -ABSENT)
        values[2:9:3] = -ABSENT
    eccodes.codes_set_values(handle, values)
    if cell["packing"] != "grid_run_length":
        eccodes.codes_set(handle, "packingType", cell["packing"])


def own_packing(cell: Cell) -> tuple[bytes, bytes] | None:
    """Sections 5 and 7 of a packing that marks missing points; None for the others.

    Groups of four points; every second one is missing, alternately in both ways.
    """
    if not cell["missing"].startswith("own"):
        return None
    n, template = NI * NJ, {"grid_run_length": 200, "grid_complex": 2}.get(cell["packing"], 3)
    if template == 200:
        # Levels 0 (missing) to 3, each eight times: a run is its level and its length minus one.
        levels = struct.pack(">IHBHHB", n, template, 8, 3, 3, 0) + struct.pack(">3H", 10, 20, 30)
        runs = [part for level in range(4) for part in (level, 4 + n // 4 - 1)]
        return section(5, levels), section(7, bytes(runs))
    kinds = 2 if "two" in cell["missing"] else 1
    groups = n // 4
    # For differences the groups hold the excess over the minimum, which is 1: existing points go up by one.
    present = [10 + g for g in range(groups)] if template == 2 else [0] * groups
    marks = [255, 254] if kinds == 2 else [255, 255]
    references = [present[g] if g % 2 == 0 else marks[g // 2 % 2] for g in range(groups)]
    five = struct.pack(">IHfHHBBBBff", n, template, 0.0, 0, 0, 8, 0, 1, kinds, 9999.0, -1.0)
    five += struct.pack(">IBBIBIB", groups, 0, 8, 4, 1, 4, 8)
    seven = bytes(references) + bytes(2 * groups)
    if template == 3:
        five += bytes([1, 1])
        seven = bytes([10, 1]) + seven
    return section(5, five), section(7, seven)


def section(number: int, content: bytes) -> bytes:
    return (5 + len(content)).to_bytes(4, "big") + bytes([number]) + content


def with_sections(raw: bytes, five: bytes, seven: bytes) -> bytes:
    """A GRIB 2 message with other sections 5 and 7."""
    at, parts = 16, []
    while raw[at : at + 4] != b"7777":
        length = int.from_bytes(raw[at : at + 4], "big")
        parts.append({5: five, 7: seven}.get(raw[at + 4], raw[at : at + length]))
        at += length
    body = b"".join(parts) + b"7777"
    return raw[:8] + (16 + len(body)).to_bytes(8, "big") + body


def by_eccodes(raw: bytes) -> tuple[np.ndarray, np.datetime64 | None]:
    """Values, NaN if missing, and the moment of validity, None if ecCodes has none."""
    handle = eccodes.codes_new_from_message(raw)
    try:
        decoded = []
        for absent in (ABSENT, -ABSENT):
            eccodes.codes_set(handle, "missingValue", absent)
            decoded.append(eccodes.codes_get_values(handle))
        values = np.where(decoded[0] == decoded[1], decoded[0], np.nan)
    finally:
        eccodes.codes_release(handle)
    return values, time_by_eccodes(raw)


def time_by_eccodes(raw: bytes) -> np.datetime64 | None:
    """The moment of validity; None if ecCodes has none.

    For some steps in years of GRIB 1 it returns a time such as 0597, which is not a time of day.
    """
    handle = eccodes.codes_new_from_message(raw)
    try:
        date = eccodes.codes_get_string(handle, "validityDate")
        time = eccodes.codes_get_string(handle, "validityTime").zfill(4)
    except eccodes.CodesInternalError:
        return None
    finally:
        eccodes.codes_release(handle)
    if len(date) != 8 or not time.isdigit() or int(time[:-2]) > 23 or int(time[-2:]) > 59:
        return None
    return np.datetime64(f"{date[:4]}-{date[4:6]}-{date[6:]}T{time[:2]}:{time[2:]}", "m")


def product() -> Iterator[tuple[Cell, bytes]]:
    """Every cell that can be written."""
    for row in itertools.product(*AXES.values()):
        cell = dict(zip(AXES, row, strict=True))
        if (raw := message(cell)) is not None:
            yield cell, raw


def pairwise() -> list[tuple[Cell, bytes]]:
    """Cells that cover all pairs of values of two axes, if a cell can have both."""
    dice, names = random.Random(7), list(AXES)
    pairs = [((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in AXES[a] for y in AXES[b]]
    open_pairs, cells = dict.fromkeys(pairs), []
    while open_pairs:
        (a, x), (b, y) = next(iter(open_pairs))
        best, most = None, 0
        for _ in range(60):
            cell = {name: dice.choice(AXES[name]) for name in names} | {a: x, b: y}
            if cell["unit"] not in UNITS[cell["edition"]] or not is_writable(cell):
                continue
            n = sum(cell[c] == v and cell[d] == w for (c, v), (d, w) in open_pairs)
            if n > most and (raw := message(cell)) is not None:
                best, most = (cell, raw), n
        open_pairs.pop(((a, x), (b, y)))
        if best is not None:
            cells.append(best)
            taken = [p for p in open_pairs if all(best[0][name] == value for name, value in p)]
            for pair in taken:
                del open_pairs[pair]
    return cells

"""The key of a GRIB message, from eccodes' reading of its header.

The rules are in ``spec/helper-protocol.md``, "GRIB keys". They are the same for both readers of headers:
`libeccodes.Header`, which starts quickly, and `grib.Handle`, which is the eccodes package.

Invariant: nothing here loads a library; the first request of a process waits for these imports.

Example: ``key_of(header)`` is ``{"class": "od", "type": "fc", "param": "130.128", ...}``.
"""

from __future__ import annotations

from datetime import date

from fieldstone._helper.frames import Channel, RequestError

TYPE_CHECKING = False
if TYPE_CHECKING:  # loading typing takes longer than the rest of this module
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    class Header(Protocol):
        """A message whose header can be read; a context manager that releases it."""

        def __enter__(self) -> Header: ...
        def __exit__(self, *_: object) -> None: ...
        def text(self, name: str) -> str:
            """A header key as text; empty if it is absent or undetermined."""

        def exact(self, name: str) -> float | None:
            """A header key as its exact double; None if it is absent or undetermined."""

        def whole(self, name: str) -> int | None:
            """A header key as a whole number; None if it is absent or undetermined."""

        def mars(self) -> dict[str, str]:
            """The MARS keys that the message holds, without undetermined and internal ones."""


EPOCH = date(1970, 1, 1).toordinal()
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
ODD_UNITS = {0: (1, "m"), 13: (15, "m"), 14: (30, "m"), 254: (1, "s")}
"""Units of GRIB 1 below an hour: eccodes returns their steps without a unit, or no steps."""
INSTANTS = (0, 1)
INTERVALS = (2, 3, 4, 5, 6, 7)
"""Time range indicators of GRIB 1 whose step is P1, and those whose step ends at P2."""
DATES = ("date", "hdate", "refdate", "offsetdate")
MISSING_STEP = 2.147e9
"""Hours from which on a step is missing: eccodes writes such numbers with six digits."""
MISSING_LONG, MISSING_DOUBLE = 2_147_483_647, -1e100
"""The value that eccodes returns for a number with all bits set."""
UNKNOWN = ("", "unknown", "none", "MISSING", "not_found")
MEASURED = ("isobaric", "hybrid", "sigma", "height", "depth", "theta", "potential", "pressure", "eta")
"""Types of level for which 0 is a level; for others it means that there is none."""
LEVELS = {"level": "level", "toplevel": "topLevel", "bottomlevel": "bottomLevel"}
"""Keywords of surfaces by the keys of their exact values, which eccodes rounds in text."""
APART = (
    ("typeoflevel", "typeOfLevel"),
    *LEVELS.items(),
    ("steptype", "stepType"),
    ("steprange", "stepRange"),
    ("number", "number"),
    ("shortname", "shortName"),
    ("localnumber", "localDefinitionNumber"),
    ("process", "generatingProcessIdentifier"),
    ("grid", "md5GridSection"),
    ("product", "md5Section4"),
    ("product1", "md5Section1"),
)
"""Keywords that distinguish messages with the same key, in the order in which they are tried."""


def keys_request(
    channel: Channel, header: dict[str, Any], payload: bytes, read: Callable[[bytes], Header]
) -> None:
    """Answers `grib_keys`: the key of each message, or why it has none."""
    lengths = header.get("lengths")
    if not isinstance(lengths, list) or sum(lengths) != len(payload):
        raise RequestError("Invalid", "grib_keys needs the lengths of the messages in the payload")
    told: list[dict[str, Any]] = []
    position = 0
    for length in lengths:
        message, position = payload[position : position + length], position + length
        try:
            with read(message) as handle:
                key = key_of(handle)
                told.append({"grib": key, "apart": apart_of(handle, key) if header.get("apart") else []})
        except Exception as error:  # eccodes has an exception type for each return code
            told.append({"why": f"eccodes cannot read its header: {error}"})
    channel.send({"kind": "grib_keys", "keys": told})
    channel.done()


def key_of(handle: Header) -> dict[str, str]:
    """The key of a message in the keywords of the `mars` schema."""
    key = handle.mars()
    if "class" not in key:
        key = foreign(handle, key)
    for keyword in DATES:
        # A year before 1000 has no leading zeros.
        if (text := key.get(keyword, "")).isdigit() and 5 <= len(text) < 8:
            key[keyword] = text.zfill(8)
    key["step"] = step_of(handle, key.get("step", ""))
    if is_missing(key["step"]):
        del key["step"]
    key = {keyword: value for keyword, value in key.items() if value}
    if said := validity_of(handle, key):
        key["validity"] = said
    return key


def step_of(handle: Header, step: str) -> str:
    """The step with its unit, if eccodes' text leaves it open, and with all of its digits."""
    if "e" in step and (hours := handle.whole("endStep")) is not None:
        return str(hours)
    unit = handle.whole("unitOfTimeRange") if handle.text("edition") == "1" else None
    if unit not in ODD_UNITS:
        return step
    size, letter = ODD_UNITS[unit]
    first, second = handle.whole("P1") or 0, handle.whole("P2") or 0
    indicator = handle.whole("timeRangeIndicator")
    if indicator in INSTANTS:
        lead = first
    elif indicator == 10:
        lead = first << 8 | second
    elif indicator in INTERVALS:
        lead = second
    else:
        return step
    return f"{lead * size}{letter}"


def validity_of(handle: Header, key: dict[str, str]) -> str:
    """The time of validity of a message, ``YYYYMMDDHHMM``, if its header differs from its key; otherwise
    empty.

    The header of an interval has its end, and some dates of a key count from another moment.
    """
    if "time" not in key or not ("step" in key or "fcmonth" in key) or (own := moment(key)) is None:
        return ""
    text = handle.text("validityDate") + handle.text("validityTime").zfill(4)
    said = moment({"validity": text})
    return text if said is not None and said != own - own % 60 else ""


def interval_of(handle: Header) -> tuple[int | None, int | None]:
    """Begin and end of the interval of a header, in seconds since 1970; None if it lacks them."""
    end = moment({"validity": handle.text("validityDate") + handle.text("validityTime").zfill(4)})
    start = since_1970(handle.text("dataDate").zfill(8), handle.text("dataTime").zfill(4))
    unit = handle.whole("unitOfTimeRange") if handle.text("edition") == "1" else None
    lead = seconds_of(ends_of(handle.text("stepRange"))[0])
    if unit in ODD_UNITS:
        size, letter = ODD_UNITS[unit]
        lead = seconds_of(f"{(handle.whole('P1') or 0) * size}{letter}")
    return None if start is None or lead is None else start + lead, end


def moment(key: Mapping[str, str]) -> int | None:
    """The time of validity of a message, in seconds since 1970; None if its key does not determine it.

    It counts from the date of a hindcast, if there is one; `fcmonth` counts months, and the time is the end
    of the last.
    """
    if (text := key.get("validity", "")).isdigit():
        return since_1970(text[:-4], text[-4:])
    start = since_1970(key.get("hdate") or key.get("date", ""), key.get("time", "0000"))
    if start is None:
        return None
    months = key.get("fcmonth", "")
    if months.isdigit():
        day = key.get("hdate") or key["date"]
        year, month = divmod(12 * int(day[:4]) + int(day[4:6]) - 1 + int(months), 12)
        return since_1970(f"{year:04}{month + 1:02}01", "0000")
    lead = seconds_of(ends_of(key.get("step", "0"))[1])
    return None if lead is None else start + lead


def ends_of(step: str) -> tuple[str, str]:
    """Begin and end of a step or a span of steps; a leading minus of either is a sign."""
    at = step.find("-", 1)
    return (step, step) if at < 0 else (step[:at], step[at + 1 :])


def seconds_of(step: str) -> int | None:
    """Seconds of a step: hours (``6``), or numbers with their units (``90m``, ``1h30m``, ``15s``)."""
    size = step.removeprefix("-")
    total, number = 0, ""
    for letter in size:
        if letter.isdigit():
            number += letter
        elif number and letter.lower() in SECONDS:
            total += int(number) * SECONDS[letter.lower()]
            number = ""
        else:
            return None
    if (number and number != size) or not size:
        return None
    total += 3600 * int(number or 0)
    return -total if step.startswith("-") else total


def since_1970(day: str, time: str) -> int | None:
    """Seconds from 1970 to ``YYYYMMDD`` and ``HHMM``; None if these are not a moment."""
    if not (day.isdigit() and time.isdigit() and len(day) == 8 and len(time) == 4):
        return None
    clock = 60 * int(time[:2]) + int(time[2:])
    try:
        days = date(int(day[:4]), int(day[4:6]), int(day[6:])).toordinal() - EPOCH
    except ValueError:
        return None
    return 86_400 * days + 60 * clock if int(time[:2]) < 24 and int(time[2:]) < 60 else None


def is_missing(step: str) -> bool:
    """Whether a step is the number with all bits set: 2^32 - 1, or, with a sign, -(2^31 - 1)."""
    try:
        return abs(float(step)) >= MISSING_STEP
    except ValueError:
        return False


def apart_of(handle: Header, key: dict[str, str]) -> list[list[str]]:
    """Values that distinguish a message from another one with the same key."""
    told = [(keyword, fact_of(handle, keyword, name)) for keyword, name in APART if keyword not in key]
    return [[keyword, value] for keyword, value in told if value]


def fact_of(handle: Header, keyword: str, name: str) -> str:
    """A header key as text; levels have all of their digits."""
    return level_of(handle, name) if keyword in LEVELS else handle.text(name)


def level_of(handle: Header, name: str) -> str:
    """A level, with the decimals that eccodes' text lacks."""
    text, value = handle.text(name), handle.exact(name)
    return text if value is None or value.is_integer() else f"{value:.10g}"


def foreign(handle: Header, mars: dict[str, str]) -> dict[str, str]:
    """The key of a message that MARS does not know: its centre replaces class, expver and stream."""
    level_type, level = handle.text("typeOfLevel"), level_of(handle, "level")
    kind = mars.get("type") or handle.text("dataType")
    key = dict(mars)
    key["centre"] = handle.text("centre").lower()
    # af: analysis or forecast. The same for all steps, so that a forecast is not cut in two.
    key["type"] = "fc" if kind in ("", "af") else kind
    key.setdefault("step", handle.text("stepRange") or "0")
    key.setdefault("levtype", "sfc")
    key.setdefault("date", handle.text("dataDate"))
    key.setdefault("time", handle.text("dataTime").zfill(4))
    key.setdefault("number", handle.text("perturbationNumber"))
    key["typeoflevel"] = level_type
    # eccodes rounds the level for MARS: layers of one metre would share it.
    if "." in level and key.get("levelist", "").isdigit():
        key["levelist"] = level
    if "levelist" not in key and level and (level != "0" or is_measured(level_type)):
        key["levelist"] = level
    if key.get("param", "0") == "0":
        # Not in eccodes' tables: the numbers of the code tables name the parameter.
        parts = (
            ("discipline", "parameterCategory", "parameterNumber")
            if handle.text("edition") == "2"
            else ("table2Version", "indicatorOfParameter")
        )
        key["param"] = "0"
        key["parameter"] = "-".join(handle.text(part) or "0" for part in parts)
    return key


def is_measured(level_type: str) -> bool:
    """Whether 0 is a level of this type."""
    level_type = level_type.lower()
    return any(word in level_type for word in MEASURED)

"""The key of a GRIB message by what eccodes says of its header.

The rules stand in ``spec/helper-protocol.md``, "GRIB keys". They are the same whoever reads the header:
`libeccodes.Header`, which starts in little time, or `grib.Handle`, which is the eccodes package.

Invariant: nothing here loads a library; the first question of a process waits for these imports.

Example: ``key_of(header)`` is ``{"class": "od", "type": "fc", "param": "130.128", ...}``.
"""

from __future__ import annotations

from fieldstone._helper.frames import Channel, RequestError

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to load than the rest of this module
    from collections.abc import Callable
    from typing import Any, Protocol

    class Header(Protocol):
        """A message whose header can be read; a context manager that lets go of it."""

        def __enter__(self) -> Header: ...
        def __exit__(self, *_: object) -> None: ...
        def text(self, name: str) -> str:
            """A header key as text; empty where it is absent or undetermined."""

        def mars(self) -> dict[str, str]:
            """The MARS keys that the message holds, without undetermined and internal ones."""


DATES = ("date", "hdate", "refdate", "offsetdate")
MISSING_STEP = 2.147e9
"""Hours from which on a step is missing: eccodes writes such numbers with six digits."""
UNKNOWN = ("", "unknown", "none", "MISSING", "not_found")
MEASURED = ("isobaric", "hybrid", "sigma", "height", "depth", "theta", "potential", "pressure", "eta")
"""Types of level whose 0 is a level; elsewhere it says that there is none."""
APART = (
    ("typeoflevel", "typeOfLevel"),
    ("level", "level"),
    ("toplevel", "topLevel"),
    ("bottomlevel", "bottomLevel"),
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
"""Keywords that tell apart messages of one key, in the order in which they are tried."""


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
        except Exception as error:  # eccodes has an exception type per return code
            told.append({"why": f"eccodes cannot read its header: {error}"})
    channel.send({"kind": "grib_keys", "keys": told})
    channel.done()


def key_of(handle: Header) -> dict[str, str]:
    """The key of a message in the keywords of the `mars` schema."""
    key = handle.mars()
    if "class" not in key:
        key = foreign(handle, key)
    for keyword in DATES:
        # A year before 1000 has no zeros in front.
        if (text := key.get(keyword, "")).isdigit() and 5 <= len(text) < 8:
            key[keyword] = text.zfill(8)
    if is_missing(key.get("step", "")):
        del key["step"]
    return {keyword: value for keyword, value in key.items() if value}


def is_missing(step: str) -> bool:
    """Whether a step is the number whose bits are all set: 2^32 - 1, or, with a sign, -(2^31 - 1)."""
    try:
        return abs(float(step)) >= MISSING_STEP
    except ValueError:
        return False


def apart_of(handle: Header, key: dict[str, str]) -> list[list[str]]:
    """What tells a message from another one of its key."""
    told = [(keyword, handle.text(name)) for keyword, name in APART if keyword not in key]
    return [[keyword, value] for keyword, value in told if value]


def foreign(handle: Header, mars: dict[str, str]) -> dict[str, str]:
    """The key of a message that MARS does not know: its centre stands for class, expver and stream."""
    level_type, level = handle.text("typeOfLevel"), handle.text("level")
    kind = mars.get("type") or handle.text("dataType")
    key = dict(mars)
    key["centre"] = handle.text("centre").lower()
    # af: analysis or forecast. Whatever the step, so that a forecast is not cut in two.
    key["type"] = "fc" if kind in ("", "af") else kind
    key.setdefault("step", handle.text("stepRange") or "0")
    key.setdefault("levtype", "sfc")
    key.setdefault("date", handle.text("dataDate"))
    key.setdefault("time", handle.text("dataTime").zfill(4))
    key.setdefault("number", handle.text("perturbationNumber"))
    key["typeoflevel"] = level_type
    if "levelist" not in key and level and (level != "0" or is_measured(level_type)):
        key["levelist"] = level
    if key.get("param", "0") == "0":
        # No entry in eccodes' tables: the numbers of the code tables name the parameter.
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

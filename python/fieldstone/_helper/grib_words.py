"""The words of a GRIB message above its picture: on which level it lies, and when it is valid."""

from __future__ import annotations

import re
from typing import Protocol


class Texts(Protocol):
    """A message whose header has texts by name, empty where it has none."""

    def text(self, name: str) -> str: ...


# Levels that a reader knows by their unit, or by a word: typeOfLevel, how the level is written.
LEVELS = {
    "isobaricInhPa": "{} hPa",
    "isobaricInPa": "{} Pa",
    "heightAboveGround": "{} m above ground",
    "heightAboveSea": "{} m above sea level",
    "depthBelowSea": "{} m below sea level",
    "depthBelowLand": "{} m below ground",
    "hybrid": "model level {}",
    "surface": "surface",
    "meanSea": "mean sea level",
}


def where_and_when(handle: Texts) -> dict[str, str]:
    """The level and the valid time of a message, as people write them; empty where it has none."""
    said = {}
    kind, level = handle.text("typeOfLevel"), handle.text("level")
    if kind:
        # heightAboveGroundLayer: "height above ground layer".
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower()
        said["level"] = LEVELS.get(kind, f"{words} {{}}").format(level or "").strip()
    date, time = handle.text("validityDate"), handle.text("validityTime")
    if date and time and len(date) == 8:
        said["valid_time"] = f"{date[:4]}-{date[4:6]}-{date[6:]} {int(time) // 100:02}:{int(time) % 100:02}"
        lead = (handle.text("stepRange") or "0").rpartition("-")[2]
        if lead.isdecimal() and lead != "0":
            said["valid_time"] += f" (+{lead} h)"
    return said

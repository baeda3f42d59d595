"""Which variables are split into one field for each step: the rule of ``spec/netcdf-header.md``, for files
and Datasets alike.

A variable is split along its first dimension if that has a coordinate variable that is not horizontal, or is
unlimited and has none.

Example: ``is_horizontal("lat", {})`` and ``is_horizontal("j", {"axis": "Y"})`` hold, and
``is_horizontal("time", {})`` does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HORIZONTAL_NAMES = {"lat", "lon", "latitude", "longitude", "x", "y", "rlat", "rlon", "nav_lat", "nav_lon"}
HORIZONTAL_UNITS = re.compile(r"degrees?_?(n|s|e|w|north|south|east|west)$", re.IGNORECASE)
HORIZONTAL_STANDARD = re.compile(r"(^|_)(latitude|longitude)$|^projection_[xy]_", re.IGNORECASE)


def is_horizontal(name: str, attrs: Mapping[str, object]) -> bool:
    """Whether a coordinate is horizontal, by CF's attributes or its name."""
    held = {word: str(attrs[word]) for word in ("units", "standard_name", "axis") if word in attrs}
    return bool(
        name.lower() in HORIZONTAL_NAMES
        or held.get("axis", "").upper() in ("X", "Y")
        or HORIZONTAL_UNITS.match(held.get("units", ""))
        or HORIZONTAL_STANDARD.search(held.get("standard_name", ""))
    )

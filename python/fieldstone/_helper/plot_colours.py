"""Colours of values: a scale and its bar, and a colour for each reason why an element has no value.

Invariants:

* missing, masked and infinite elements have colours that no scale has; places without an element stay
  paper, hatched;
* a scale that diverges has its middle at zero and reaches as far on either side; it is for values of both
  signs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch

MISSING, MASKED, INFINITE = "#b4b4b4", "#6a6a6a", "#e0007f"
OUTSIDE = "#d8d8d8"
# Values diverge about zero where the smaller side reaches this much of the greater one: rounding does not.
BOTH_SIDES = 0.1


class Colours:
    """The colours of one picture's values."""

    def __init__(self, values: np.ndarray, masked: np.ndarray | None = None) -> None:
        there = np.isfinite(values)
        self.any = bool(there.any())
        low, high = (float(values[there].min()), float(values[there].max())) if self.any else (0.0, 1.0)
        self.low, self.high = low, high
        self.diverges = low < 0 < high and min(-low, high) >= BOTH_SIDES * max(-low, high)
        if self.diverges:
            low, high = -max(-low, high), max(-low, high)
        elif low == high:
            # One value alone stands in the middle of its bar.
            low, high = low - (abs(low) or 1.0) / 10, high + (abs(high) or 1.0) / 10
        self.map = colormaps["RdBu_r" if self.diverges else "viridis"]
        self.norm = Normalize(low, high)
        hidden = np.zeros(values.shape, dtype=bool) if masked is None else np.asarray(masked, dtype=bool)
        self.counts = {
            "missing": int((np.isnan(values) & ~hidden).sum()),
            "masked": int((np.isnan(values) & hidden).sum()),
            "infinite": int(np.isinf(values).sum()),
        }

    def rgba(self, values: np.ndarray, masked: np.ndarray | None = None) -> np.ndarray:
        """The colour of each element."""
        colours = self.map(self.norm(np.where(np.isfinite(values), values, self.norm.vmin)))
        colours[np.isnan(values)] = to_rgba(MISSING)
        colours[np.isinf(values)] = to_rgba(INFINITE)
        if masked is not None:
            colours[np.isnan(values) & masked] = to_rgba(MASKED)
        return colours

    def bar(self, figure: Figure, axes: Any, label: str) -> None:
        """A bar that says which colour is which value, as high as the picture, where there are values."""
        if not self.any:
            return
        values = ScalarMappable(self.norm, self.map)
        if hasattr(axes, "set_zlim"):
            bar = figure.colorbar(values, ax=axes, shrink=0.7, pad=0.1)
        else:
            # Its width is a part of the picture's, however narrow the map is.
            wide, tall = np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())
            scale = axes.get_aspect()
            share = (
                1.0
                if scale == "auto"
                else wide / (tall * float(scale)) / (figure.get_figwidth() / figure.get_figheight())
            )
            share = float(np.clip(share, 0.05, 1.0))
            bar = figure.colorbar(values, cax=axes.inset_axes((1 + 0.02 / share, 0.0, 0.03 / share, 1.0)))
        bar.set_label(label, parse_math=False)

    def legend(self, figure: Figure, others: list[Any]) -> None:
        """The names of the colours that are not the scale's, as far as they occur, and others, below."""
        colours = {"missing": MISSING, "masked": MASKED, "infinite": INFINITE}
        patches = others + [
            Patch(facecolor=colours[name], label=f"{name} ({count})")
            for name, count in self.counts.items()
            if count
        ]
        if patches:
            figure.legend(handles=patches, loc="outside lower left", ncols=4, frameon=False, fontsize="small")


def paper(axes: Any) -> None:
    """Hatches the paper, which is seen where there is no element."""
    axes.patch.set(facecolor="white", edgecolor=OUTSIDE, hatch="////", linewidth=0)

"""The picture of README: a wave on a globe, with its cyclones tagged and outlined.

    .venv/bin/python examples/readme_picture.py docs/images/cyclones.png

The field is the vorticity of a weak Rossby-Haurwitz wave of number 4 (Williamson et al. 1992, test case 6),
with some vortices added.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import fieldstone as fst
import numpy as np

SPACING = 2.0  # degrees
STRONG = 6e-5  # s-1: the vorticity of a cyclone
OMEGA = 3e-6  # s-1: the strength of the wave


def vorticity(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """Relative vorticity of the wave and of four vortices on each hemisphere, in s-1."""
    phi, lam = np.radians(lat)[:, None], np.radians(lon)[None, :]
    wave = 2 * OMEGA * np.sin(phi) - OMEGA * np.sin(phi) * np.cos(phi) ** 4 * 30 * np.cos(4 * lam)
    for n in range(8):
        north = 1 if n % 2 else -1
        away = ((lat[:, None] - north * (35 + 3 * n)) / 5) ** 2 + ((lon[None, :] - 20 - 43 * n) / 7) ** 2
        wave = wave + north * 9e-5 * np.exp(-away)
    return wave


def main(target: str) -> None:
    program = Path(sys.executable).parent / "fieldstone"
    with tempfile.TemporaryDirectory() as folder:
        url = f"{folder}/globe.store"
        lat, lon = np.arange(-89, 90, SPACING), np.arange(0, 360, SPACING)
        field = vorticity(lat, lon)
        with fst.open(url) as store:
            run = store.create_run("rossby-wave")
            run.create_variable(
                "vorticity",
                "f8",
                field.shape,
                ("lat", "lon"),
                attrs={"long_name": "relative vorticity", "units": "s-1"},
                coords={"lat": fst.uniform(lat[0], SPACING), "lon": fst.uniform(lon[0], SPACING)},
            )
            run.write("vorticity", 6, field)
            for row, column in zip(*np.nonzero(np.abs(field) > STRONG), strict=True):
                around = np.abs(field[max(row - 8, 0) : row + 9, max(column - 8, 0) : column + 9])
                if abs(field[row, column]) == around.max() and 6 <= column < lon.size - 6:
                    start = (int(row) - 5, int(column) - 6)
                    run.annotate(
                        "cyclone",
                        abs(field[row, column]),
                        variable="vorticity",
                        step=6,
                        start=start,
                        count=(11, 13),
                    )
        request = ["run=rossby-wave", "variable=vorticity", "step=6"]
        options = ["--tag", "cyclone", "--size", "900x480", "-o", target]
        subprocess.run([program, "plot", url, *request, *options], check=True)


if __name__ == "__main__":
    main(sys.argv[1])

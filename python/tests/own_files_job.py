"""A job that makes each kind of file that a store owns besides its logs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("fieldstone"))
JOB = """
import fieldstone as fst, numpy as np
with fst.open({store!r}) as store, store.arrays({run!r}) as job:
    job.group("g", {{"u": "f4"}}, shape=(8,)).write("u", 0, np.ones(8, "f4"))
    nodes = {{"x": np.arange(6.0) + {umask}, "y": np.arange(6.0) ** 2}}
    mesh = job.create_mesh({run!r}, nodes=nodes, faces=np.array([[0, 1, 2], [1, 2, 3]]))
    job.partition({run!r}, "hilbert")
"""


def run_job(store: Path, run: str, umask: int) -> None:
    code = f"import os; os.umask({umask})\n" + JOB.format(store=str(store), run=run, umask=umask)
    subprocess.run([sys.executable, "-c", code], check=True)

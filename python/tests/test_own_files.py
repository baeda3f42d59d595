"""Files that a store owns besides its logs: their permissions, and changes in them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from conftest import require
from mpi_job import mpirun
from own_files_job import PROGRAM, run_job

OTHER = 12_345
FOLDERS = ("arrays", "meshes", "histories")


def test_own_files_are_as_readable_as_the_stores_folder_whatever_the_umask(tmp_path: Path) -> None:
    store = tmp_path / "s"
    store.mkdir()
    store.chmod(0o3775)
    run_job(store, "a", 0o077)
    run_job(store, "b", 0o022)
    found = [path for name in FOLDERS for path in (store / name).rglob("*")]
    folders = [path for path in found if path.is_dir()] + [store / name for name in FOLDERS]
    files = [path for path in found if path.is_file()]
    assert {path.suffix for path in files} >= {".nc", ".parts", ".edges"} and len(files) >= 8
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in found}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o3775}
    assert all(modes[path] & 0o044 == 0o044 for path in files), modes


def test_so_are_those_that_ranks_make_together(tmp_path: Path) -> None:
    store = tmp_path / "s"
    store.mkdir()
    store.chmod(0o3775)
    mpirun(
        2,
        """
        import os, sys
        os.umask(0o077)
        import fieldstone as fst, numpy as np
        from mpi4py import MPI
        with fst.open(sys.argv[1], comm=MPI.COMM_WORLD) as store:
            for level, method in ((1, "direct"), (2, "exchange"), (3, "view")):
                with store.arrays(f"r{level}") as job:
                    group = job.group("g", {"u": "f4"}, shape=(8,), level=level, method=method)
                    group.view(fst.block(grid=(2,)))
                    for step in range(2):
                        group.write("u", step, np.ones(4, "f4"))
                        job.flush()
        """,
        store,
    )
    files = [path for path in (store / "arrays").rglob("*.nc")]
    assert len(files) >= 4
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in files)
    assert all(path.read_bytes().startswith(b"CDF") for path in files)


def test_a_store_for_a_group_has_the_folders_of_arrays(tmp_path: Path) -> None:
    subprocess.run([PROGRAM, "-q", "init", "s", "--shared"], cwd=tmp_path, check=True)
    modes = [stat.S_IMODE((tmp_path / "s" / name).stat().st_mode) for name in FOLDERS]
    assert modes == [0o3775] * 3


@pytest.mark.parametrize("within", ["arrays", "arrays/r", "meshes", "histories"])
def test_a_folder_that_another_user_could_take_away_is_refused(tmp_path: Path, within: str) -> None:
    require("root", os.geteuid() == 0, "only root gives a folder to another user")
    with fst.open(tmp_path / "s") as store:
        store.archive("run=z,variable=t,step=0", b"z")
    folder = tmp_path / "s" / within
    folder.mkdir(parents=True)
    os.chown(folder, OTHER, OTHER)
    folder.chmod(0o777)

    def job() -> None:
        with fst.open(tmp_path / "s") as store, store.arrays("r") as job:
            job.group("g", {"u": "f4"}, shape=(8,)).write("u", 0, np.ones(8, "f4"))
            job.create_mesh("m", nodes={"x": [0.0, 1, 2], "y": [0.0, 1, 0]}, faces=np.array([[0, 1, 2]]))
            job.partition("m", "hilbert")

    with pytest.raises(fst.Denied, match=f"the folder .*{within} belongs to {OTHER}"):
        job()
    folder.chmod(0o1777)
    job()


def test_a_file_that_may_not_be_read_is_a_line_of_verify(tmp_path: Path) -> None:
    require("root", os.geteuid() == 0, "only root acts as two users")
    store = tmp_path / "s"
    run_job(store, "a", 0o022)
    for path in tmp_path.parents:
        if path != Path("/") and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)
    for folder in FOLDERS:
        for path in (store / folder).rglob("*"):
            if path.is_file():
                path.chmod(0o600)
    code = (
        # Another user may be unable to read Python itself, so root loads all modules first.
        f"import os, fieldstone as fst; assert fst.open({str(store)!r}, 'r').verify().ok\n"
        f"os.setgroups([]); os.setgid({OTHER}); os.setuid({OTHER}); os.environ['HOME'] = '/none'\n"
        f"r = fst.open({str(store)!r}, 'r').verify()\n"
        "print(r.ok, *sorted({d.file.split('/')[0] for d in r.damaged}))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME"}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert said.stdout.split() == ["False", "arrays", "histories", "meshes"], said.stderr


def test_a_changed_mesh_is_no_dataset(tmp_path: Path) -> None:
    run_job(tmp_path / "s", "m", 0o022)
    store = fst.open(tmp_path / "s", "r")
    mesh = store.mesh("m")
    assert mesh.to_xarray().sizes["nm_node"] == 6
    path = Path(mesh.path)
    whole = path.read_bytes()
    for at in (300, 4_100, len(whole) - 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(fst.Corrupt, match=f"{path.name}: the .* bytes from 0 on"):
            store.mesh("m").to_xarray()
        assert [d.file for d in store.verify().damaged] == [f"meshes/{path.name}"]
    path.unlink()
    with pytest.raises(fst.NotFound):
        store.mesh("m").to_xarray()
    assert not store.verify().ok

"""Common parts of all Python tests: requirements that CI may not skip, and real sample files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import fieldstone as fst
import numpy as np
import pg_server
import pytest
from _pytest import runner

ROOT = Path(__file__).resolve().parent.parent.parent

LONG = os.environ.get("FIELDSTONE_CRASH") == "full"
"""Whether campaigns use all their inputs (`make test-long`), or a part of them (docs/faults.md)."""


def share(items: Iterable[Path], part: int) -> list[Path]:
    """Every `part`-th of `items`; all of them in the long form."""
    return list(items)[:: 1 if LONG else part]


def required() -> set[str]:
    """The words of FIELDSTONE_REQUIRE."""
    return set(os.environ.get("FIELDSTONE_REQUIRE", "").replace(",", " ").split())


def pytest_configure() -> None:
    """Sets what tests rely on: Ctrl-C, one environment, and points of grids computed by eccodes."""
    # In the background of a shell Ctrl-C is ignored, also by child processes; tests send it.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # pytest writes the test's name into the environment, and a helper that was started with another
    # environment is not reused: each test would start Python and import its libraries again.
    if hasattr(runner, "_update_current_test_var"):
        runner._update_current_test_var = lambda item, when: None
    # earthkit, which a test imports, makes eccodes ask eckit for points unless eccodes is already in use.
    with contextlib.suppress(ImportError, RuntimeError):
        import fieldstone._helper.grib  # noqa: F401


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fails the run if FIELDSTONE_REQUIRE contains `all` and anything was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if "all" in required() and exitstatus == 0 and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def require(name: str, condition: object, why: str) -> None:
    """Skips the test if `condition` is false; fails it if FIELDSTONE_REQUIRE contains `name` or `all`."""
    if condition:
        return
    if {name, "all"} & required():
        pytest.fail(f"{name} is required (FIELDSTONE_REQUIRE): {why}", pytrace=False)
    pytest.skip(f"{name}: {why}")


def sample(relative: str) -> Path:
    """A real sample file or folder, from FIELDSTONE_DATA or the folder next to the checkout."""
    base = Path(os.environ.get("FIELDSTONE_DATA") or ROOT.parent / "shared" / "data")
    path = base / relative
    require("data", path.exists(), f"no {path}; FIELDSTONE_DATA names the folder of sample files")
    return path


@pytest.fixture(scope="session")
def postgresql() -> Iterator[pg_server.Server]:
    """A PostgreSQL server for the tests of one run."""
    bin = pg_server.programs()
    require("postgresql", bin, "PostgreSQL's server is not installed (Debian: postgresql)")
    assert bin
    server = pg_server.Server(bin)
    yield server
    server.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on its own file system of 4 MiB."""
    require("root", os.geteuid() == 0, "mounting a small file system needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True)
    require("tmpfs", mounted.returncode == 0, "a small tmpfs cannot be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[fst.Store]:
    """A store with a run, fields at two steps and an attribute."""
    field = np.arange(24.0).reshape(4, 6)
    with fst.open(tmp_path / "store") as store:
        run = store.create_run("a", params={"solver": "roe", "power": 3.0})
        run.create_variable("temperature", "f8", (4, 6))
        run.write("temperature", 0, field)
        run.write("T", 0, field)
        run.write("T", 3, field)
        run.annotate("hot", 3.5, variable="T", step=0)
        store.flush()
        yield store


@pytest.fixture
def taken(tmp_path):
    """Makes a netCDF file with a function and ingests it; returns the store's URL and the file's path."""
    netCDF4 = pytest.importorskip("netCDF4")

    def make(fill, name="f.nc", format="NETCDF4", **options):
        path = tmp_path / name
        with netCDF4.Dataset(path, "w", format=format) as file:
            fill(file)
        url = str(tmp_path / f"{name}.store")
        fst.ingest(url, path, progress=False, **options)
        return url, path

    return make

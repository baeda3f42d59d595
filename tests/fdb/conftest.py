"""Fixtures of the tests that compare with the real FDB."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from base import SCHEMA
from conftest import require
from peer import Fdb


@pytest.fixture(scope="session")
def process() -> Iterator[Fdb]:
    """The real FDB, in one process for all tests."""
    require("pyfdb", importlib.util.find_spec("pyfdb"), "pip install 'fieldstone[fdb]'")
    fdb = Fdb()
    yield fdb
    fdb.close()


@pytest.fixture
def source(process: Fdb, tmp_path: Path) -> tuple[Fdb, str]:
    """An empty FDB of SCHEMA, and the path of its configuration."""
    return process, process.call("open", str(tmp_path / "fdb"), SCHEMA)

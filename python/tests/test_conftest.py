"""A missing requirement skips on a laptop and fails in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import require, sample


@pytest.mark.parametrize("required", ["all", "strace", "data,strace", "data strace"])
def test_a_required_thing_that_is_missing_fails(monkeypatch, required):
    monkeypatch.setenv("FIELDSTONE_REQUIRE", required)
    with pytest.raises(pytest.fail.Exception, match="strace is required"):
        require("strace", False, "not installed")
    require("strace", True, "")


@pytest.mark.parametrize("required", ["", "data", "strace-of-another-kind"])
def test_anything_else_that_is_missing_skips(monkeypatch, required):
    monkeypatch.setenv("FIELDSTONE_REQUIRE", required)
    with pytest.raises(pytest.skip.Exception):
        require("strace", False, "not installed")


def test_samples_come_from_the_folder_that_the_environment_names(monkeypatch, tmp_path):
    (tmp_path / "a.nc").touch()
    monkeypatch.setenv("FIELDSTONE_DATA", str(tmp_path))
    monkeypatch.setenv("FIELDSTONE_REQUIRE", "")
    assert sample("a.nc") == tmp_path / "a.nc"
    with pytest.raises(pytest.skip.Exception):
        sample("b.nc")


@pytest.mark.parametrize(("required", "code"), [("all", 1), ("", 0)])
def test_a_skip_of_any_kind_fails_where_everything_is_required(tmp_path, required, code):
    (tmp_path / "test_a.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    (tmp_path / "test_b.py").write_text("def test_b():\n    pass\n")
    run = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "--rootdir", tmp_path, tmp_path]
    paths = {"PYTHONPATH": str(Path(__file__).parent), "FIELDSTONE_REQUIRE": required}
    done = subprocess.run(run, env=os.environ | paths, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code, done.stdout
    assert "1 passed, 1 skipped" in done.stdout

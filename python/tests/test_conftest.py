"""A missing requirement skips on a laptop and fails in CI."""

from __future__ import annotations

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

"""The examples of the README and of the guide do what they show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/guide/*.md"))]


def run(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    bin_folder = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": os.pathsep.join([bin_folder, os.environ["PATH"]]),
        "MPLBACKEND": "agg",
    }
    runner = Path(__file__).with_name("doc_page.py")
    return subprocess.run(
        [sys.executable, runner, page],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, tmp_path):
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n", None),
        ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", "line 6"),
        ("```python\nopen('a', 'w').close()\n```\n```console\n$ test \\\n    -e a\nshown\n```\n", None),
        ("```console\n$ test -e a\n```\n", "page.md:2: exit 1, not 0"),
        ("```console\n$ test -e a  # exit 1\n```\n", None),
        ("```console\n$ true  # exit 1\n```\n", "exit 0, not 1"),
        ("```text\n$ false\n```\n", None),
        ("```python\nassert False\n", "not closed"),
        ("````text\n```python\nassert False\n```\n````\n", None),
    ],
)
def test_a_page_that_does_not_run_is_told(tmp_path, text, complaint):
    page = tmp_path / "page.md"
    page.write_text(text)
    done = run(page, tmp_path)
    if complaint is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0
        assert complaint in done.stderr


def test_examples_find_the_installed_program(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        f"```console\n$ test $(command -v fieldstone) = {Path(sys.executable).parent}/fieldstone\n```\n"
    )
    assert run(page, tmp_path).returncode == 0

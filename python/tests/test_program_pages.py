"""The files that pip installs with the program: man pages, completions for shells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("fieldstone")
SHARE = Path(sys.prefix) / "share"


def test_man_has_a_page_for_the_program_and_each_verb():
    pages = {page.name for page in (SHARE / "man" / "man1").glob("fieldstone*.1")}
    assert {"fieldstone.1", "fieldstone-list.1", "fieldstone-verify.1"} <= pages
    text = (SHARE / "man" / "man1" / "fieldstone-list.1").read_text()
    assert ".TH fieldstone-list 1" in text and "fieldstone list store" in text


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", "bash-completion/completions/fieldstone"),
        ("fish", "fish/vendor_completions.d/fieldstone.fish"),
        ("zsh", "zsh/site-functions/_fieldstone"),
    ],
)
def test_shells_find_their_completions(shell, place):
    said = subprocess.run([PROGRAM, "completions", shell], check=True, capture_output=True).stdout
    assert (SHARE / place).read_bytes() == said

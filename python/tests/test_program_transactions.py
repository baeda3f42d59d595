"""`fieldstone transaction`: scripts begin transactions, and decide when their jobs have ended."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import fieldstone as fst

PROGRAM = Path(sys.executable).with_name("fieldstone")


def program(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, "transaction", *map(str, words)], capture_output=True, text=True)


def rank(url: Path, tx: str, number: int) -> None:
    with fst.open(url) as store, store.transaction(id=tx) as mine:
        mine.archive({"run": "a", "variable": "t", "step": number}, b"x")


def test_a_script_begins_and_decides(tmp_path: Path) -> None:
    url = tmp_path / "s"
    tx = program("begin", url).stdout.strip()
    for number in range(3):
        rank(url, tx, number)
    (listed,) = json.loads(program("list", url, "--json").stdout)
    assert (listed["id"], listed["fields"], len(listed["owners"])) == (tx, 3, 3)
    assert tx in program("list", url).stdout
    with fst.open(url) as store:
        assert store.axes() == {}
    assert program("commit", url, tx).stdout == "committed 3 fields\n"
    with fst.open(url) as store:
        assert store.axes()["step"] == ["0", "1", "2"]
    assert json.loads(program("list", url, "--json").stdout) == []
    assert program("commit", url, tx).returncode == 0
    ended = program("abort", url, tx)
    assert ended.returncode == 4 and "committed already" in ended.stderr


def test_an_aborted_one_shows_nothing(tmp_path: Path) -> None:
    url = tmp_path / "s"
    with fst.open(url) as store:
        store.archive("run=a,variable=t,step=9", b"x")
    tx = json.loads(program("begin", url, "--json").stdout)["id"]
    rank(url, tx, 0)
    assert program("abort", url, tx).stdout == "aborted 1 field\n"
    with fst.open(url) as store:
        assert store.axes()["step"] == ["9"]
    assert program("commit", url, tx).returncode == 4


def test_wrong_ids_are_named(tmp_path: Path) -> None:
    url = tmp_path / "s"
    with fst.open(url) as store:
        store.archive("run=a,variable=t", b"x")
    unknown = program("begin", url).stdout.strip()
    ended = program("commit", url, unknown)
    assert ended.returncode == 3 and "nothing was flushed into" in ended.stderr
    ended = program("commit", url, "tx")
    assert ended.returncode == 2 and "not a valid transaction id" in ended.stderr

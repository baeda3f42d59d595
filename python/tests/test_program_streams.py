"""The program in pipelines: readers that end, late stores, signals, a closed stdin; and URLs of files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest
from fieldstone.errors import Invalid

PROGRAM = Path(sys.executable).with_name("fieldstone")


def _archive(url: Path, step: int) -> str:
    with fst.open(url) as store:
        store.archive({"run": "a", "variable": "t", "step": step}, b"x")
        store.flush()
        return store.version


def test_a_list_that_follows_ends_with_its_reader(tmp_path: Path) -> None:
    seen = _archive(tmp_path / "s", 0)
    words = [PROGRAM, "list", tmp_path / "s", "--follow", "--since", seen]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as follow:
        assert follow.stdout
        _archive(tmp_path / "s", 1)
        assert follow.stdout.readline() == "{run=a}{variable=t}{step=1}\n"
        follow.stdout.close()  # as grep -m1 does: nothing more is written
        try:
            assert follow.wait(10) == 0
        finally:
            follow.kill()


def test_a_list_that_follows_waits_for_the_store(tmp_path: Path) -> None:
    words = [PROGRAM, "list", tmp_path / "s", "--follow", "--timeout", "30"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follow:
        assert follow.stdout and follow.stderr
        assert "waiting" in follow.stderr.readline()
        for step in (1, 2):
            _archive(tmp_path / "s", step)
            assert follow.stdout.readline() == f"{{run=a}}{{variable=t}}{{step={step}}}\n"
        follow.terminate()
    done = subprocess.run(
        [*words[:2], tmp_path / "none", "--follow", "--timeout", "0.2"], capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_get_that_is_interrupted_leaves_nothing(tmp_path: Path, kind: signal.Signals) -> None:
    with fst.open(tmp_path / "s") as store:
        for step in range(60):
            store.archive(
                {"run": "a", "variable": "t", "step": step}, np.random.default_rng(step).random(250_000)
            )
    words = [PROGRAM, "get", "s", "run=a", "-o", "out.bin"]
    for _ in range(20):
        with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL) as get:
            while get.poll() is None and not list(tmp_path.glob("out.bin.part-*")):
                time.sleep(0.001)
            get.send_signal(kind)
            code = get.wait(20)
        if code == 128 + kind:
            break
        (tmp_path / "out.bin").unlink(missing_ok=True)  # the program had finished by then
    assert code == 128 + kind
    assert os.listdir(tmp_path) == ["s"]


def test_a_closed_stdin_is_no_value(tmp_path: Path) -> None:
    words = f"'{PROGRAM}' archive s run=a variable=t"
    done = subprocess.run(["sh", "-c", f"{words} <&-"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "stdin is closed" in done.stderr
    assert not (tmp_path / "s").exists()
    subprocess.run(
        ["sh", "-c", f": | {words} step=0; {words} step=1 </dev/null; {words} step=2 /dev/null"],
        cwd=tmp_path,
        check=True,
    )
    with fst.open(tmp_path / "s", "r") as store:
        assert [entry.nbytes for entry in store.list()] == [0, 0, 0]


def test_urls_of_files_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "my störe 100%"
    _archive(place, 0)
    here = str(tmp_path)
    for url in (
        place.as_uri(),
        place.as_uri().replace("file:///", "file:/"),
        place.as_uri().replace("file:///", "file://localhost/"),
        place.as_uri().replace("file:///", "FILE://LocalHost/"),
        f"file:{here}/my%20st%c3%b6re%20100%25",
        "file:my%20st%C3%B6re%20100%25",
    ):
        with fst.open(url, "r") as store:
            assert len(list(store.list())) == 1, url
        done = subprocess.run([PROGRAM, "list", url], capture_output=True, text=True, check=True)
        assert done.stdout == "{run=a}{variable=t}{step=0}\n"
    for url, why in (
        (f"file://elsewhere{here}/s", "elsewhere"),
        ("file://s", "host 's'"),
        (f"file://{here}/a%2", "%25"),
        (f"file://{here}/a%zz", "%25"),
        (f"file://{here}/a%00", "%25"),
        ("file://", "empty"),
    ):
        with pytest.raises(Invalid, match=why):
            fst.open(url).archive({"run": "a", "variable": "t"}, b"x")
    assert os.listdir(tmp_path) == ["my störe 100%"]


def test_few_files_may_be_open(tmp_path: Path) -> None:
    for step in range(60):
        _archive(tmp_path / "s", step)
    done = subprocess.run(
        ["sh", "-c", f"ulimit -n 32; '{PROGRAM}' list s; '{PROGRAM}' get s run=a | wc -c"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.count("run=a") == 60 and done.stdout.endswith("60\n"), done.stderr

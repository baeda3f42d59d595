"""Purge: hidden versions go, and nothing that anybody sees changes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import fieldstone as fst
import pytest

KEY = {"run": "a", "variable": "t", "step": 0}


def written(path: Path, versions: int = 3) -> str:
    """A store with a field of several versions, each of a process of its own, and a field beside it."""
    for n in range(versions):
        with fst.open(path) as store:
            store.archive(KEY, bytes([n]) * 100_000)
            store.archive({**KEY, "step": n + 1}, b"beside")
    return str(path)


def size(path: Path) -> int:
    """Bytes of a store but for its catalog and the room that maintenance keeps for a full disk."""
    files = [file for file in path.rglob("*") if file.is_file() and "catalog" not in file.parts]
    return sum(file.stat().st_size for file in files if not file.name.startswith("reserve-"))


def test_hidden_versions_go_and_their_space_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "s"
    url = written(path)
    reader = fst.open(url, mode="r")
    before = [(str(e.key), e.nbytes) for e in reader.list()]
    version, room = reader.version, size(path)
    with fst.open(url) as store:
        would = store.purge("run=a", grace=0)
        assert (would.fields, would.versions, would.kept, would.left) == (1, 2, None, ())
        assert would.nbytes >= 200_000 and size(path) == room
        done = store.purge("run=a", grace=timedelta(0), doit=True)
        assert (done.fields, done.versions, done.nbytes) == (1, 2, would.nbytes)
        assert "versions=2" in repr(done) and not done.more and done.waiting == 0
        assert store.verify().ok
    assert size(path) < room - 150_000
    assert [(str(e.key), e.nbytes) for e in reader.list()] == before
    assert reader.get(KEY) == bytes([2]) * 100_000
    assert fst.open(url, mode="r", at=version).get(KEY) == bytes([2]) * 100_000


def test_an_older_version_says_what_was_purged(tmp_path: Path) -> None:
    url = written(tmp_path / "s", 1)
    version = fst.open(url, mode="r").version
    with fst.open(url) as store:
        store.archive(KEY, b"newer")
    with fst.open(url) as store:
        store.purge(all=True, grace=0, doit=True)
    older = fst.open(url, mode="r", at=version)
    with pytest.raises(fst.NotFound) as raised:
        older.get(KEY)
    assert raised.value.code == "version-purged"
    assert older.get({**KEY, "step": 1}) == b"beside"
    with pytest.raises(fst.NotFound, match="purged since"):
        list(older.list())


def test_arguments(tmp_path: Path) -> None:
    url = written(tmp_path / "s")
    with fst.open(url) as store:
        with pytest.raises(fst.Invalid, match="all fields"):
            store.purge()
        with pytest.raises(fst.Invalid, match="step"):
            store.purge({"run": "a", "step": 0})
        with pytest.raises(fst.Invalid, match="grace"):
            store.purge(all=True, grace="soon")
        assert store.purge(all=True, doit=True).versions == 0, "within the hour"
        seen: list[tuple[int, int]] = []
        store.purge(all=True, grace=0, doit=True, progress=lambda *done: seen.append(done))
        assert seen[-1][1] >= 200_000

        def stop(fields: int, nbytes: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.purge(all=True, grace=0, doit=True, progress=stop)
    with fst.open(url, mode="r") as reader, pytest.raises(fst.Denied):
        reader.purge(all=True, doit=True)
    with fst.open("memory:") as memory, pytest.raises(fst.Invalid, match="memory"):
        memory.purge(all=True, doit=True)

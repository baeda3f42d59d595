"""``store.repair``: from a backup, and from what the store itself has; ``accept`` of the rest."""

from pathlib import Path

import fieldstone as fst
import numpy as np
import pytest

KEY = "run=a,variable=t,step=0"


def damage(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A store with a small and a large field, and its backup."""
    folder, copy = tmp_path / "store", tmp_path / "copy"
    with fst.open(folder) as store:
        store.archive(KEY, b"small")
        store.archive({"run": "b", "variable": "t"}, np.random.default_rng(1).random((1 << 19) + 9))
        store.flush()
        fst.backup(store, copy)
    return folder, copy


def test_a_damaged_store_is_mended_from_its_backup(places: tuple[Path, Path]) -> None:
    folder, copy = places
    data = next(folder.glob("data/*.data"))
    before = data.read_bytes()
    damage(data, 1 << 20)
    with fst.open(folder, mode="r") as store:
        assert not store.verify().ok
        seen = store.repair(source=copy)
        assert (seen.done, seen.nbytes, seen.left) == (False, 0, ())
        (part,) = seen.mended
        assert part.key is not None and "run=b" in part.key and str(copy) in part.how
        assert "mended" in repr(seen) and data.read_bytes() != before
        made = store.repair("run=b", source=str(copy), doit=True)
        assert made.mended == seen.mended and made.done
    assert data.read_bytes() == before
    with fst.open(folder, mode="r") as store:
        assert store.verify().ok and store.repair(source=copy, doit=True).mended == ()


def test_what_no_backup_has_is_left_and_accepted(places: tuple[Path, Path]) -> None:
    folder, copy = places
    damage(next(folder.glob("data/*.data")), 1 << 20)
    with fst.open(folder, mode="r+") as store:
        (left,) = store.repair(doit=True).left
        store.accept(left.file, why="no tape")
    with fst.open(folder, mode="r") as store:
        assert store.verify().ok and [str(e.key) for e in store.list()] == ["{run=a}{variable=t}{step=0}"]
        # A loss that was accepted stays one, although its bytes are there again.
        store.repair(source=copy, doit=True)
        with pytest.raises(fst.NotFound):
            store.get("run=b,variable=t")


def test_wrong_sources_are_refused(places: tuple[Path, Path], tmp_path: Path) -> None:
    folder, _ = places
    with fst.open(tmp_path / "other") as other:
        other.archive(KEY, b"x")
    with fst.open(folder, mode="r") as store:
        with pytest.raises(fst.Conflict, match="is of store"):
            store.repair(source=tmp_path / "other", doit=True)
        with pytest.raises(fst.NotFound):
            store.repair(source=tmp_path / "nowhere")
        with pytest.raises(fst.Invalid, match="itself"):
            store.repair(source=folder)
    with fst.open("memory:") as memory, pytest.raises(fst.Invalid, match="not in a folder"):
        memory.repair()

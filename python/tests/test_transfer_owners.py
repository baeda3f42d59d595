"""Moves by root: what others own stays theirs (R35)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import pytest
from conftest import require

ANN, BOB = 12_345, 12_346


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A store of root, to which two users have added a run each, and root a third."""
    require("root", os.geteuid() == 0, "only root acts as two users")
    for path in (tmp_path, *tmp_path.parents):
        if path != Path("/") and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    store = tmp_path / "hot"
    store.mkdir()
    store.chmod(0o1777)
    with fst.open(store) as made:
        made.archive("run=own,variable=t,step=0", b"of root" * 100)
    for uid, run in ((ANN, "a"), (BOB, "b")):
        write(store, uid, run)
    return store


def write(store: Path, uid: int, run: str, *, step: int = 0) -> None:
    # Another user may be unable to read Python itself, so root loads all modules first.
    code = f"""
        import os, numpy, fieldstone as fst
        os.setgroups([]); os.setgid({uid}); os.setuid({uid}); os.environ["HOME"] = "/none"
        with fst.open({str(store)!r}) as store:
            store.archive("run={run},variable=t,step={step}", b"{run}" * 700)
            store.create_run("{run}", exist_ok=True).annotate("quality", "good", step={step}, variable="t")
    """
    done = as_child(code)
    assert done.returncode == 0, done.stderr


def as_child(code: str) -> subprocess.CompletedProcess[str]:
    text = "\n".join(line.removeprefix("        ") for line in code.splitlines())
    environment = {k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME"}
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)


def owners(store: Path) -> dict[str, str]:
    with fst.open(store, "r") as opened:
        return {f.key["run"]: f.owner for f in opened.list()}


def test_r35_what_root_moves_stays_its_owners(shared: Path, tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    with fst.open(shared, "r+") as hot:
        times = {field.key["run"]: field.time for field in hot.list()}
        report = fst.move(hot, "step=0", to=cold)
        assert (report.fields, report.removed, report.attributes) == (3, 3, 2)
        assert "owner" not in {left.kind for left in report.left}
        assert list(hot.list()) == [] and hot.verify().ok
    assert owners(cold) == {"a": str(ANN), "b": str(BOB), "own": "root"}
    with fst.open(cold, "r") as there:
        assert {field.key["run"]: field.time for field in there.list()} == times
        assert [len(there.attributes(tag="quality", user=str(uid))) for uid in (ANN, BOB)] == [1, 1]
        assert there.verify().ok
    made = [path for store in (shared, cold) for path in store.rglob("*.log")]
    assert {path.stat().st_uid for path in made} == {0, ANN, BOB}
    # Caches of theirs would be in the way of their own.
    assert not [path for path in (*shared.iterdir(), *cold.iterdir()) if path.stat().st_uid in (ANN, BOB)]
    # They go on where root went away.
    write(shared, ANN, "a", step=1)
    assert owners(shared) == {"a": str(ANN)}


def test_r35_what_one_of_them_owns_goes_in_one_transaction(shared: Path, tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    write(shared, ANN, "a", step=1)
    report = fst.move(shared, "run=a,step=0/1/2", to=cold, strict=False)
    assert (report.fields, report.removed) == (2, 2)
    assert owners(cold) == {"a": str(ANN)} and owners(shared) == {"b": str(BOB), "own": "root"}
    with pytest.raises(fst.NotFound):
        fst.move(shared, "run=b/own,step=0/7", to=cold)
    assert owners(cold) == {"a": str(ANN)}, "what is missing is an error before anything moves"


def test_r35_others_than_root_are_refused_as_ever(shared: Path, tmp_path: Path) -> None:
    # Another user may be unable to read Python itself, so root loads all modules first.
    code = f"""
        import os, numpy, fieldstone as fst
        os.setgroups([]); os.setgid({ANN}); os.setuid({ANN}); os.environ["HOME"] = "/none"
        fst.move({str(shared)!r}, "run=b", to={str(tmp_path / "cold")!r})
    """
    done = as_child(code)
    assert done.returncode != 0 and "is owned by" in done.stderr
    assert owners(shared) == {"a": str(ANN), "b": str(BOB), "own": "root"}

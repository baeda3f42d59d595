"""The catalog's engine trusts no other user's file or link: the owner of its folder, and files that it
ignores."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from pathlib import Path

import pytest
from conftest import require
from keys_and_stores import run_python

WRITE = """
    s = fst.open(sys.argv[1])
    run = s.create_run("a", exist_ok=True)
    s.create_tag("q", type="text")
    run.annotate("q", "good"); s.flush()
    assert [hit.value for hit in s.attributes(tag="q")] == ["good"]
    """
ANSWER = """
    print([hit.value for hit in fst.open(sys.argv[1], mode="r").attributes(tag="q")])
    """


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A store's folder, with its own cache next to it."""
    monkeypatch.delenv("FIELDSTONE_CATALOG", raising=False)
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    store = tmp_path / "S"
    run_python(WRITE, store)
    return store


def answer(store: Path) -> str:
    """The answer of a new process."""
    return run_python(ANSWER, store).strip()


def cached(store: Path) -> list[Path]:
    """Engines in the user's cache."""
    return sorted((store.parent / "cache").rglob("*.sqlite"))


def forge(engine: Path) -> None:
    """Changes an answer in an engine."""
    connection = sqlite3.connect(engine)
    connection.execute("UPDATE attr SET payload = 'evil' WHERE payload = 'good'")
    assert connection.total_changes > 0
    connection.commit()
    connection.close()


def test_an_engine_is_for_its_user_alone(folder):
    assert not cached(folder)
    assert stat.S_IMODE((folder / "catalog").stat().st_mode) == 0o700
    for name in ("lock", "index.sqlite"):
        assert stat.S_IMODE((folder / "catalog" / name).stat().st_mode) == 0o600


def test_a_folder_that_others_could_write_to_is_left_alone(folder):
    engine = folder / "catalog" / "index.sqlite"
    forge(engine)
    os.chmod(engine.parent, 0o777)
    before = engine.read_bytes()
    assert answer(folder) == "['good']"
    assert engine.read_bytes() == before and len(cached(folder)) == 1


def test_a_link_in_place_of_the_folder_is_not_followed(folder, tmp_path):
    private = tmp_path / "private"
    private.mkdir()
    shutil.rmtree(folder / "catalog")
    (folder / "catalog").symlink_to(private)
    assert answer(folder) == "['good']"
    assert not list(private.iterdir()) and len(cached(folder)) == 1


@pytest.mark.parametrize("name", ["lock", "index.sqlite", "index.sqlite-wal", "index.sqlite-shm"])
def test_a_link_in_place_of_a_file_is_not_followed(folder, tmp_path, name):
    shutil.rmtree(folder / "catalog")
    (folder / "catalog").mkdir(mode=0o755)
    (folder / "catalog" / name).symlink_to(tmp_path / "new")
    assert answer(folder) == "['good']"
    assert not (tmp_path / "new").exists() and not cached(folder)
    precious = tmp_path / "precious.sqlite"
    connection = sqlite3.connect(precious)
    connection.execute("CREATE TABLE mine (a)")
    connection.commit()
    connection.close()
    before = precious.read_bytes()
    shutil.rmtree(folder / "catalog")
    (folder / "catalog").mkdir(mode=0o700)
    os.link(precious, folder / "catalog" / name)
    assert answer(folder) == "['good']"
    assert precious.read_bytes() == before


def test_an_engine_of_an_older_release_is_used_on(folder):
    engine = folder / "catalog" / "index.sqlite"
    os.chmod(engine.parent, 0o755)
    for file in engine.parent.iterdir():
        os.chmod(file, 0o644)
    inode = engine.stat().st_ino
    assert answer(folder) == "['good']"
    assert engine.stat().st_ino == inode and not cached(folder)
    assert stat.S_IMODE(engine.parent.stat().st_mode) == 0o700, "others cannot take locks there"


TWO_USERS = """
import pathlib, shutil, sqlite3, traceback
root = sys.argv[1]

def act(uid, code):
    child = os.fork()
    if child == 0:
        os.setgid(uid); os.setuid(uid); os.umask(0o22)
        os.environ["HOME"] = f"{root}/home{uid}"
        os.environ.pop("XDG_CACHE_HOME", None); os.environ.pop("FIELDSTONE_CATALOG", None)
        try: exec(code, globals()); os._exit(0)
        except BaseException: traceback.print_exc(); os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, code

ASK = '''
assert [hit.value for hit in fst.open(root + "/S", mode="r").attributes(tag="q")] == ["good"]
'''
act(1001, '''
s = fst.open(root + "/S")
run = s.create_run("a", exist_ok=True)
s.create_tag("q", type="text")
run.annotate("q", "good"); s.flush()
assert [hit.value for hit in s.attributes(tag="q")] == ["good"]
''')
act(1002, ASK)
assert not os.path.exists(root + "/S/catalog"), "the store's folder is neither's"
engines = list(pathlib.Path(root).rglob("index.sqlite"))
assert {engine.stat().st_uid for engine in engines} == {1001, 1002}, engines
# The second user puts a forged engine in a place that the first one might use.
act(1002, '''
own = next(pathlib.Path(root + "/home1002").rglob("index.sqlite"))
c = sqlite3.connect(own)
c.execute("update attr set payload = 'evil' where payload = 'good'")
assert c.total_changes == 1
c.commit(); c.close()
os.mkdir(root + "/S/catalog"); os.chmod(root + "/S/catalog", 0o777)
shutil.copy(own, root + "/S/catalog/index.sqlite"); os.chmod(root + "/S/catalog/index.sqlite", 0o666)
''')
act(1001, ASK)
"""


def test_two_users_of_a_shared_folder_have_an_engine_each():
    require("root", os.geteuid() == 0, "only root acts as two users")
    with tempfile.TemporaryDirectory() as root:
        for name in ("", "S", "S/logs", "S/data", "S/boards", "home1001", "home1002"):
            (Path(root) / name).mkdir(exist_ok=True)
            os.chmod(Path(root) / name, 0o1777)
        run_python(TWO_USERS, root)

"""Attributes by their writer: user, process, rank, job and attempt, compared with plain loops."""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import fieldstone as fst
import pytest

PROGRAM = Path(sys.executable).with_name("fieldstone")

WRITE = """
import sys
import fieldstone as fst
url, attempt, value = sys.argv[1], sys.argv[2] or None, float(sys.argv[3])
with fst.open(url, attempt=attempt) as store:
    run = store.create_run("shared", exist_ok=True)
    for step in range(3):
        tag, at = "maximum" if step else "minimum", 10 * int(value) + step
        run.annotate(tag, value + step, step=at)
"""

# attempt, SLURM's job and rank
PROCESSES = [("1", "1177", "0"), ("1", "1177", "1"), ("2", "1177", "0"), ("2", "1178", "1"), ("", "", "")]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[int]]:
    """A store into which five processes wrote, and their numbers."""
    url = str(tmp_path_factory.mktemp("writers") / "store")
    numbers = []
    for value, (attempt, job, rank) in enumerate(PROCESSES):
        of_job = {"SLURM_JOB_ID": job, "SLURM_PROCID": rank, "SLURM_NTASKS": "2"} if job else {}
        env = {name: text for name, text in os.environ.items() if not name.startswith(("SLURM_", "PMI_"))}
        with subprocess.Popen(
            [sys.executable, "-c", WRITE, url, attempt, str(value)], env=env | of_job
        ) as process:
            numbers.append(process.pid)
        assert process.returncode == 0
    return url, numbers


def test_hits_name_the_process_that_wrote_them(written: tuple[str, list[int]]) -> None:
    url, numbers = written
    with fst.open(url, mode="r") as store:
        hits = list(store.attributes())
    assert len(hits) == 3 * len(PROCESSES)
    for h in hits:
        at = int(h.value) - h.step % 10
        attempt, job, rank = PROCESSES[at]
        assert (h.writer.host, h.writer.process) == (socket.gethostname(), numbers[at])
        assert h.writer.attempt == (attempt or None)
        assert h.writer.job == (job or None)
        assert h.writer.rank == (int(rank) if rank else None)
        assert str(h.writer) == f"{socket.gethostname()}:{numbers[at]}"
        assert h.writer.log is not None and len(h.writer.log) == 32


def test_terms_on_writers_agree_with_a_loop(written: tuple[str, list[int]]) -> None:
    url, numbers = written
    store = fst.open(url, mode="r")
    everything = list(store.attributes())
    one = next(h for h in everything if h.writer.process == numbers[1])
    terms = [
        ({"writer": one.writer}, lambda w: w == one.writer),
        ({"writer": str(one.writer)}, lambda w: w.process == numbers[1]),
        ({"writer": one.writer.log}, lambda w: w.log == one.writer.log),
        ({"writer": [h.writer for h in everything[:4]]}, lambda w: w in [h.writer for h in everything[:4]]),
        ({"writer": {"rank": 0}}, lambda w: w.rank == 0),
        ({"writer": {"rank": fst.at_least(0)}}, lambda w: w.rank is not None),
        ({"writer": {"rank": ~fst.exists()}}, lambda w: w.rank is None),
        ({"writer": {"job": "1177"}}, lambda w: w.job == "1177"),
        ({"writer": {"job": 1178}}, lambda w: w.job == "1178"),
        ({"writer": {"job": "117*", "attempt": "2"}}, lambda w: bool(w.job) and w.attempt == "2"),
        ({"writer": {"process": numbers[4]}}, lambda w: w.process == numbers[4]),
        ({"writer": {"host": socket.gethostname()}}, lambda w: True),
        ({"writer": "nobody:1"}, lambda w: False),
    ]
    for term, holds in terms:
        expected = {(h.step, h.value) for h in everything if holds(h.writer)}
        hits = store.attributes(**term)
        assert {(h.step, h.value) for h in hits} == expected, term
        assert hits.count() == len(expected), term
        assert store.attributes(~fst.where(**term)).count() == len(everything) - len(expected), term
        by_type = {tag.name for tag in store.tags(**term)}
        assert by_type == {h.tag for h in everything if holds(h.writer)}, term
        for tag in ("maximum", "minimum"):
            wanted = {(h.step, h.value) for h in everything if holds(h.writer) and h.tag == tag}
            assert {(h.step, h.value) for h in store.attributes(tag=tag, **term)} == wanted, term
    store.close()


def test_users_are_named_or_numbered(written: tuple[str, list[int]]) -> None:
    with fst.open(written[0], mode="r") as store:
        me = store.attributes()[0].user
        all_of_them = store.attributes().count()
        for user in (me, os.getuid(), str(os.getuid()), me[:1] + "*", [me, "nobody-else"]):
            assert store.attributes(user=user).count() == all_of_them, user
            assert [run.name for run in store.runs(user=user)] == ["shared"]
        assert store.attributes(user="nobody-else").count() == 0
        assert [run.name for run in store.runs(user="nobody-else")] == []
        assert [step.step for step in store.steps(user=me, tag="minimum")] == [0, 10, 20, 30, 40]
        with pytest.raises(fst.Invalid, match="a writer has no"):
            store.attributes(writer={"pid": 3}).count()


def test_the_same_as_text_in_the_program_and_in_sql(written: tuple[str, list[int]]) -> None:
    url, numbers = written
    texts = {
        "tag=maximum and writer.rank=0": 4,
        "writer.job=1177 and not writer.attempt=2": 6,
        f"writer.process={numbers[4]}": 3,
        f"user={os.getuid()} and writer='{socket.gethostname()}:{numbers[0]}'": 3,
    }
    with fst.open(url, mode="r") as store:
        for text, count in texts.items():
            assert store.find(text).count() == count, text
            run = subprocess.run([PROGRAM, "find", url, text, "--jsonl"], capture_output=True, check=True)
            rows = [json.loads(line) for line in run.stdout.splitlines()]
            assert [row["writer"]["process"] for row in rows if "writer" in row] == [
                h.writer.process for h in store.find(text)
            ]
        sql = "SELECT process, rank, job, attempt FROM attributes WHERE tag = 'minimum' ORDER BY number"
        table = store.sql(sql)
        columns = [table.values(name) for name in ("process", "rank", "job", "attempt")]
        found = list(zip(*columns, strict=True))
    assert found == [
        (number, int(rank) if rank else None, job or None, attempt or None)
        for number, (attempt, job, rank) in zip(numbers, PROCESSES, strict=True)
    ]


def test_what_is_not_flushed_is_of_this_process(tmp_path: Path) -> None:
    with fst.open(tmp_path / "s", attempt="3") as store:
        run = store.create_run("r")
        run.annotate("a", 1)
        (hit,) = store.attributes(writer={"process": os.getpid(), "attempt": "3"})
        assert hit.writer.log is None and hit.writer.process == os.getpid()
        mine = hit.writer
        store.flush()
        (flushed,) = store.attributes(writer=mine)
        assert flushed.writer == mine and hash(flushed.writer) == hash(mine) and flushed.writer.log
        with store.transaction() as tx:
            tx.run("r").annotate("b", 2)
            (open_,) = store.attributes(tag="b", writer=mine, txn=tx.id)
            assert open_.writer == mine
        assert store.attributes(tag="b", writer=mine).count() == 1


def test_tables_say_the_writer_and_keep_it_when_pickled(written: tuple[str, list[int]]) -> None:
    with fst.open(written[0], mode="r") as store:
        hits = store.attributes(tag="minimum", order="value").collect()
        expected = [str(h.writer) for h in hits]
        assert list(hits.to_arrow().values("writer")) == expected
        again = pickle.loads(pickle.dumps(hits._table))
        assert list(again.table(False).values("writer")) == expected

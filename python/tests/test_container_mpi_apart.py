"""Ranks of a real MPI job that diverge: each gets an error, none waits, and the communicator still works."""

from __future__ import annotations

import pytest
from test_container_mpi import job


def test_one_call_too_many_ends_the_container_on_all_ranks(tmp_path):
    script = """
    import os
    for format in ("cdf5", "partitioned"):
        try:
            with container.create("a.nc", comm, format=format) as f:
                f.def_dim("x", 8)
                v = f.def_var("v", "i4", "x")
                f.enddef()
                for _ in range(2 + rank):
                    v.put([1], start=[rank])
        except fst.Conflict as error:
            say("close" in str(error) and "put" in str(error))
        comm.Barrier()
        say(os.path.exists("a.nc"))
        with container.create("b.nc", comm) as f:
            f.def_dim("x", 2)
    """
    assert job(tmp_path, 3, script) == ["True", "False"] * 2 * 3


def test_an_error_within_nested_containers_reaches_all_in_whichever_they_are(tmp_path):
    script = """
    import os
    with container.create("in.nc", comm) as f:
        f.def_var("v", "i4")
        f.enddef()
        f["v"].put(7)
    for failing in range(size):
        try:
            with container.open("in.nc", comm=comm) as source, container.create("out.nc", comm) as target:
                if rank == failing:
                    raise RuntimeError("boom")
                source["v"].get()
        except (RuntimeError, fst.Error) as error:
            say("boom" in str(error))
        comm.Barrier()
        say(any(name.startswith(("out.nc", ".out.nc")) for name in os.listdir(".")))
    with container.open("in.nc", comm=comm) as f:
        say(f["v"].get())
    """
    assert job(tmp_path, 3, script) == (["True", "False"] * 3 + ["7"]) * 3


def test_a_failed_close_leaves_nothing_beside(tmp_path):
    script = """
    import os
    with container.create("old.nc", comm) as f:
        f.def_dim("x", 3)
    try:
        with container.create("old.nc", comm) as f:
            f.def_dim("x", 1000)
            f.def_var("v", "f8", "x")
            f.enddef()
            if rank == 1:  # the others are in close already
                raise RuntimeError("boom")
    except (RuntimeError, fst.Error):
        pass
    comm.Barrier()
    say([name for name in os.listdir(".") if "old.nc" in name], container.open("old.nc").dims["x"])
    """
    assert job(tmp_path, 2, script) == ["['old.nc'] 3"] * 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"format": "hdf"}, "rank 2"),
        ({"strategy": "partitioned"}, "rank 2"),
        ({"format": "cdf2"}, "format"),
        ({"v_align": 1024}, "v_align"),
        ({"fill": True}, "fill"),
    ],
)
def test_options_of_one_rank_alone_are_an_error_on_all(tmp_path, given, words):
    script = f"""
    try:
        container.create("a.nc", comm, **({given!r} if rank == 2 else {{}}))
    except fst.Error as error:
        say({words!r} in str(error) or rank == 2)
    with container.create("a.nc", comm) as f:
        f.def_dim("x", 2)
    """
    assert job(tmp_path, 3, script) == ["True"] * 3


def test_a_thread_may_ask_for_the_mode_while_ranks_agree(tmp_path):
    script = """
    import threading
    with container.create("a.nc", comm) as f:
        f.def_dims([f"event_{rank}_{i}/x" for i in range(20_000)], np.full(20_000, 3))
        asked, ended = 0, False

        def ask():
            global asked
            while not ended:
                f.closed, f.defining
                asked += 1

        thread = threading.Thread(target=ask)
        thread.start()
        f.enddef()
        ended = True
        thread.join()
    say(asked > 0)
    """
    assert job(tmp_path, 2, script) == ["True"] * 2


def test_files_are_the_same_whoever_puts_records(tmp_path):
    script = """
    with container.create(f"{size}.nc", comm) as f:
        f.def_dim("t", None)
        f.def_dim("x", 3)
        for name, dtype in (("a", "i2"), ("b", "u1")):
            f.def_var(name, dtype, ("t", "x"))
        f.def_var("unwritten", "f8", "t")
        f.enddef()
        n = 8 // size
        for name in "ab":
            rows = np.arange(rank * n, rank * n + n)[:, None]
            f[name].put(np.broadcast_to(rows, (n, 3)), start=[rank * n, 0])
    say(container.open(f"{size}.nc")["unwritten"][:].any())
    """
    for ranks in (1, 2, 4):
        assert job(tmp_path, ranks, script) == ["False"] * ranks
    one = (tmp_path / "1.nc").read_bytes()
    assert (tmp_path / "2.nc").read_bytes() == one and (tmp_path / "4.nc").read_bytes() == one

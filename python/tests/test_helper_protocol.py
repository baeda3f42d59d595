"""The pipe protocol of the helper process: frames, errors, endings."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from fieldstone._helper.frames import Channel
from fieldstone._helper.serve import answer
from helper_pipe import ask, frame, ingest, of_kind, parse, talk

np = pytest.importorskip("numpy")


def test_version_names_protocol_and_libraries():
    first, last = ask({"op": "version"})
    assert first[0]["kind"] == "version"
    assert first[0]["protocol"] == 1
    assert {"python", "numpy", "netCDF4", "eccodes", "matplotlib"} <= set(first[0])
    assert last[0]["kind"] == "done"


def test_several_requests_are_answered_in_order(tmp_path):
    done = talk(frame({"op": "version"}) + frame({"op": "nonsense"}) + frame({"op": "version"}))
    assert [h["kind"] for h, _ in done.frames] == ["version", "done", "error", "version", "done"]
    assert done.code == 0


@pytest.mark.parametrize(
    "request_",
    [{"op": "nonsense"}, {}, {"op": "ingest"}, {"op": "plot"}, {"op": "plot", "dtype": "f8", "shape": [9]}],
)
def test_a_bad_request_is_invalid_and_the_helper_goes_on(request_):
    done = talk(frame(request_) + frame({"op": "version"}))
    assert done.frames[0][0]["error_kind"] == "Invalid"
    assert done.frames[-2][0]["kind"] == "version"


@pytest.mark.parametrize(
    "junk",
    [
        b"\x01",
        struct.pack("<I", 5) + b"ab",
        struct.pack("<I", 2**31) + b"x",
        struct.pack("<I", 3) + b"no!" + bytes(8),
        struct.pack("<I", 2) + b"[]" + bytes(8),
        struct.pack("<I", 2) + b"{}" + struct.pack("<Q", 2**60),
        struct.pack("<I", 2) + b"{}" + struct.pack("<Q", 5) + b"abc",
    ],
)
def test_bytes_that_are_no_frame_end_the_helper_with_an_error(junk):
    done = talk(frame({"op": "version"}) + junk)
    assert [h["kind"] for h, _ in done.frames] == ["version", "done", "error"]
    assert done.frames[-1][0]["error_kind"] == "Internal"
    assert done.code == 2


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF3_CLASSIC", "GRIB2"])
def test_files_are_closed_before_their_request_ends(form, tmp_path):
    # The caller may write to an ingested file at once; HDF5 refuses that while others read.
    path = tmp_path / "taken"
    if form == "GRIB2":
        eccodes = pytest.importorskip("eccodes")
        message = eccodes.codes_grib_new_from_samples(form)
        path.write_bytes(eccodes.codes_get_message(message))
        eccodes.codes_release(message)
    else:
        with pytest.importorskip("netCDF4").Dataset(path, "w", format=form) as file:
            file.createDimension("x", 3)
            file.createVariable("t", "f4", ("x",))[:] = 1
    held = []

    class Replies(io.BytesIO):
        def write(self, data):
            if b'"kind":"done"' in bytes(data):
                links = (Path("/proc/self/fd") / fd for fd in os.listdir("/proc/self/fd"))
                held.append([link for link in links if link.is_symlink() and link.resolve() == path])
            return super().write(data)

    answer(Channel(io.BytesIO(), Replies()), {"op": "ingest", "path": str(path)}, b"")
    assert held == [[]]


def test_what_libraries_print_never_reaches_the_frames(tmp_path):
    # eccodes complains on stderr; a print of Python or C on fd 1 must also go there.
    script = (
        "import os, sys, runpy\n"
        "import fieldstone._helper.serve as serve\n"
        "real = serve.version\n"
        "def noisy():\n"
        "    print('from python'); os.write(1, b'from C\\n'); return real()\n"
        "serve.version = noisy\n"
        "from fieldstone._helper.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=frame({"op": "version"}), capture_output=True, timeout=300
    )
    assert [h["kind"] for h, _ in parse(done.stdout)] == ["version", "done"]
    assert b"from C" in done.stderr
    assert b"from python" in done.stderr


def test_the_helper_ends_quietly_when_the_parent_is_gone():
    child = subprocess.Popen(
        [sys.executable, "-m", "fieldstone._helper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    child.stdout.close()
    child.stdin.write(frame({"op": "version"}) * 3)
    child.stdin.close()
    child.stdin = None
    assert b"Traceback" not in child.stderr.read()
    child.stderr.close()
    assert child.wait(timeout=300) == 0


def test_files_that_are_no_data_are_refused_with_a_kind(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("about GRIB files, at some length\n")
    cases = {"empty": "Invalid", "text": "Invalid", ".": "Invalid", "absent": "NotFound"}
    for name, kind in cases.items():
        (error,) = of_kind(ingest(tmp_path / name), "error")
        assert error["error_kind"] == kind, name


def test_a_path_may_be_bytes_that_are_no_text(tmp_path):
    path = bytes(tmp_path) + b"/\xff.txt"
    with open(path, "wb") as file:
        file.write(b"text")
    (error,) = of_kind(ask({"op": "ingest"}, path), "error")
    assert "neither GRIB nor netCDF" in error["message"]

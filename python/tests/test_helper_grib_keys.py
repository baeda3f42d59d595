"""Keys of GRIB headers in the helper: libeccodes gives the same as the eccodes package, and faster."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONG, require, sample, share
from helper_pipe import ask, frame, parse
from test_helper_grib import message

eccodes = pytest.importorskip("eccodes")

from fieldstone._helper import grib, grib_keys, libeccodes  # noqa: E402


def told(read, data: bytes) -> object:
    """Every fact that the helper reads from a header, or its error."""
    try:
        header = read(data)
    except Exception as error:
        return str(error)
    with header:
        key = grib_keys.key_of(header)
        apart = grib_keys.apart_of(header, {})
        names = ("shortName", "name", "units", "gridType", "experimentVersionNumber", "no such key")
        return header.mars(), key, apart, [header.text(name) for name in names]


def test_libeccodes_says_of_every_real_header_what_the_package_says():
    read, seen = libeccodes.reader(), 0
    for path in share(sorted(sample("grib").iterdir()), 3):
        data = path.read_bytes()
        for found in list(grib.messages(io.BytesIO(data), len(data)))[:10]:
            if not found.why:
                assert told(read, found.message) == told(grib.Handle, found.message), path.name
                seen += 1
    assert seen > (100 if LONG else 30)


def test_libeccodes_says_of_made_headers_what_the_package_says():
    read = libeccodes.reader()
    made = [
        message("reduced_gg_pl_32_grib2", productDefinitionTemplateNumber=1, number=3),
        message("regular_ll_pl_grib1", centre="kwbc"),
        message("regular_ll_sfc_grib2", centre="kwbc", parameterCategory=200, parameterNumber=200),
        message("regular_ll_pl_grib2", setLocalDefinition=1, experimentVersionNumber="abcd"),
        message("sh_ml_grib2"),
        b"",
        b"no message at all",
        b"GRIB" + bytes(60),
    ]
    for data in made:
        assert told(read, data) == told(grib.Handle, data)


def test_what_is_no_message_has_no_key_and_the_next_one_has():
    good = message(level=500)
    (reply, _), _ = ask({"op": "grib_keys", "lengths": [0, len(good)]}, good)
    first, second = reply["keys"]
    assert "eccodes cannot read its header" in first["why"]
    assert second["grib"]["levelist"] == "500"
    assert second["apart"] == []


def by_helper(data: bytes, **environment: str) -> tuple[dict, str]:
    """The reply of a helper with this environment, and the heavy modules that it has loaded."""
    script = (
        "import sys\n"
        "from fieldstone._helper.__main__ import main\n"
        "code = main()\n"
        "print(*sorted({'eccodes', 'numpy', 'findlibs'} & set(sys.modules)), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=frame({"op": "grib_keys", "lengths": [len(data)], "apart": True}, data),
        capture_output=True,
        timeout=600,
        env=os.environ | environment,
    )
    return parse(done.stdout)[0][0], done.stderr.decode().splitlines()[-1]


def test_the_library_is_found_where_the_package_finds_it(tmp_path):
    eccodeslib = pytest.importorskip("eccodeslib")
    data = message(level=500)
    by_wheel, loaded = by_helper(data)
    assert by_wheel["keys"][0]["grib"]["levelist"] == "500"
    assert loaded == ""
    by_package, loaded = by_helper(data, ECCODES_PYTHON_USE_FINDLIBS="1")
    assert by_package == by_wheel
    assert "eccodes" in loaded
    (tmp_path / "lib64").symlink_to(Path(eccodeslib.__file__).parent / "lib64")
    elsewhere = {"FINDLIBS_DISABLE_PACKAGE": "yes", "FINDLIBS_DISABLE_PYTHON": "yes"}
    by_folder, loaded = by_helper(data, ECCODES_DIR=str(tmp_path), **elsewhere)
    assert by_folder == by_wheel
    assert loaded == "findlibs"


def test_without_the_library_the_answer_says_what_to_install():
    places = ("PACKAGE", "PYTHON", "HOME", "CONFIG_PATHS", "LD_PATH", "SYS", "CTYPES_UTIL")
    reply, _ = by_helper(message(), **{f"FINDLIBS_DISABLE_{place}": "yes" for place in places})
    assert (reply["kind"], reply["error_kind"]) == ("error", "Unavailable")
    assert "fieldstone[grib]" in reply["hint"]


def test_keys_cost_neither_numpy_nor_the_package(tmp_path):
    """A process that archives GRIB starts a helper that loads libeccodes and little else."""
    require("/proc", Path("/proc/self/maps").exists(), "no /proc to see what a process has loaded")
    path = tmp_path / "one.grib"
    path.write_bytes(message(level=500))
    script = f"""
import os
import fieldstone as fst
store = fst.open("memory:", schema="mars")
store.archive_grib({str(path)!r})
(child,) = open(f"/proc/self/task/{{os.getpid()}}/children").read().split()
print(open(f"/proc/{{child}}/maps").read())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "libeccodes" in done.stdout
    for heavy in ("numpy", "cffi", "_native"):
        assert heavy not in done.stdout, heavy

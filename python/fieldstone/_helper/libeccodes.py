"""Headers of GRIB messages from libeccodes itself, without its Python package (B-8).

``import eccodes`` costs far more than its library: numpy, cffi, and 2,000 lines of declarations to parse.
Reading the keys of a header needs ten functions. The library is the one that the package would load; if it
cannot be found or loaded in this way, :func:`reader` raises, and the caller uses the package.

Example::

    read = reader()
    with read(message) as header:
        print(header.mars(), header.text("typeOfLevel"))

Invariant: the answers are those of :class:`fieldstone._helper.grib.Handle`, for every message.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_long, c_size_t, c_ulong, c_void_p

from fieldstone._helper.grib_keys import MISSING_DOUBLE, MISSING_LONG, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SUFFIX = {"darwin": ".dylib"}.get(sys.platform, ".so")
SIGNATURES = {
    "grib_handle_new_from_message_copy": (c_void_p, [c_void_p, c_char_p, c_size_t]),
    "grib_handle_delete": (c_int, [c_void_p]),
    "grib_get_length": (c_int, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "grib_get_string": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(c_size_t)]),
    "grib_get_double": (c_int, [c_void_p, c_char_p, POINTER(c_double)]),
    "grib_get_long": (c_int, [c_void_p, c_char_p, POINTER(c_long)]),
    "grib_keys_iterator_new": (c_void_p, [c_void_p, c_ulong, c_char_p]),
    "grib_keys_iterator_next": (c_int, [c_void_p]),
    "grib_keys_iterator_get_name": (c_char_p, [c_void_p]),
    "grib_keys_iterator_delete": (c_int, [c_void_p]),
}
MOST_DEPENDENCIES = 64
"""Maximum number of libraries that are loaded for libeccodes."""


_lib: ctypes.CDLL | None = None


def reader() -> Callable[[bytes], Header]:
    """A class that opens messages. ImportError or OSError if only the package can load the library."""
    global _lib
    lib = _lib = _lib or load()
    return lambda message: Header(lib, message)


def load() -> ctypes.CDLL:
    """The library, with the types of the functions used."""
    if sys.platform == "win32" or os.environ.get("ECCODES_PYTHON_USE_FINDLIBS", "0") != "0":
        raise ImportError("the eccodes package finds the library in its own way here")
    path = wheel()
    if path is None:
        if bundled():
            raise ImportError("the eccodes package brings a library of its own")
        import findlibs

        path = findlibs.find("eccodes")
        if path is None:
            raise OSError("no libeccodes")
    lib = opened(path)
    try:
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise OSError(str(error)) from None
    return lib


def wheel() -> str | None:
    """Path of the library in the wheel `eccodeslib`, where findlibs looks first."""
    if os.environ.get("FINDLIBS_DISABLE_PACKAGE") in ("yes", "1"):
        return None
    try:
        import eccodeslib
    except ImportError:
        return None
    return within(eccodeslib, f"libeccodes{SUFFIX}")


def bundled() -> bool:
    """Whether the eccodes package contains libraries, as its wheels did before eccodeslib existed."""
    from importlib.util import find_spec

    spec = find_spec("eccodes")
    if spec is None or not spec.submodule_search_locations:
        return False
    home = spec.submodule_search_locations[0]
    return any(os.path.isdir(folder) for folder in (f"{home}.libs", os.path.join(home, ".dylibs")))


def opened(path: str) -> ctypes.CDLL:
    """Loads a library, and first the ones that the linker does not find: wheels do not know the paths of
    others."""
    for _ in range(MOST_DEPENDENCIES):
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            # "libeckit_geo.so: cannot open shared object file: No such file or directory"
            missing = str(error).partition(":")[0]
            found = os.path.basename(path) != missing and dependency(missing)
            if not found:
                raise
            ctypes.CDLL(found, mode=ctypes.RTLD_GLOBAL)
    raise OSError(f"{path} needs more than {MOST_DEPENDENCIES} other libraries")


def dependency(name: str) -> str | None:
    """Path of a library in one of the wheels that `eccodeslib` requires."""
    import eccodeslib

    for package in getattr(eccodeslib, "findlibs_dependencies", ()):
        if path := within(__import__(package), name):
            return path
    return None


def within(package: object, name: str) -> str | None:
    """Path of a library in a package."""
    home = os.path.dirname(package.__file__)
    paths = (os.path.join(home, folder, name) for folder in ("lib", "lib64"))
    return next(filter(os.path.exists, paths), None)


class Header:
    """A handle of libeccodes that is released when its block ends."""

    def __init__(self, lib: ctypes.CDLL, message: bytes) -> None:
        self._lib = lib
        self._handle = lib.grib_handle_new_from_message_copy(None, message, len(message))
        if not self._handle:
            raise ValueError("new_from_message failed")

    def __enter__(self) -> Header:
        return self

    def __exit__(self, *_: object) -> None:
        self._lib.grib_handle_delete(self._handle)

    def text(self, name: str) -> str:
        """A header key as text; empty if it is absent or undetermined."""
        return self._text(name.encode())

    def exact(self, name: str) -> float | None:
        """A header key as its exact double; None if it is absent or undetermined."""
        value = c_double()
        failed = self._lib.grib_get_double(self._handle, name.encode(), byref(value))
        return None if failed or value.value == MISSING_DOUBLE else value.value

    def whole(self, name: str) -> int | None:
        """A header key as a whole number; None if it is absent or undetermined."""
        value = c_long()
        failed = self._lib.grib_get_long(self._handle, name.encode(), byref(value))
        return None if failed or value.value == MISSING_LONG else value.value

    def mars(self) -> dict[str, str]:
        """The MARS keys that the message holds, without undetermined and internal ones."""
        lib, found = self._lib, {}
        names = lib.grib_keys_iterator_new(self._handle, 0, b"mars")
        if not names:
            return found
        try:
            while lib.grib_keys_iterator_next(names):
                name = lib.grib_keys_iterator_get_name(names)
                if not name.startswith(b"_") and (value := self._text(name)):
                    found[name.decode("ascii").lower()] = value
        finally:
            lib.grib_keys_iterator_delete(names)
        return found

    def _text(self, name: bytes) -> str:
        size = c_size_t()
        if self._lib.grib_get_length(self._handle, name, byref(size)):
            return ""
        value = ctypes.create_string_buffer(size.value + 1)
        if self._lib.grib_get_string(self._handle, name, value, byref(size)):
            return ""
        raw = value.value
        # All bits set: the value is missing.
        text = "" if raw.count(b"\xff") == len(raw) else raw.decode("ascii", "replace")
        return "" if text in UNKNOWN else text

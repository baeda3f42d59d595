"""HDF5 files with types that netCDF does not support: the rest of their contents is read anyway.

netCDF-C and netCDF4-python describe all types of a file when they open it, and refuse the whole file because
of one that they cannot describe: a compound in another, members of variable length, datasets without a
dataspace. Such a file is copied, objects that cannot be arrays of numbers are removed from the copy, and the
copy is read.

Invariants:

* the file itself is never written, and the copy is removed once it is open;
* :func:`omitted` names everything left out, for these files and for all other HDF5 files;
* a file that is refused for another reason, such as damage, is not copied.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import netCDF4

from fieldstone._helper import libhdf5
from fieldstone._helper.libhdf5 import INNER, Object

KNOWN = ("integer", "float", "string", "enum")
PIECE = 16 << 20


def reopened(
    path: str, content: dict[str, Object] | None, error: Exception, beat: Callable[[], None] = lambda: None
) -> netCDF4.Dataset:
    """Opens a file that was refused with this error, without its unsupported objects; raises the error if it
    has none.

    `beat` is called regularly as a sign of life.
    """
    objects, attrs = odd(content or {})
    if not objects and not attrs:
        raise error
    with tempfile.TemporaryDirectory(prefix="fieldstone-") as folder:
        copy = os.path.join(folder, "copy")
        _copy(path, copy, beat)
        try:
            libhdf5.remove(copy, objects, attrs)
            return netCDF4.Dataset(copy, "r")
        except (libhdf5.HDF5Error, OSError, RuntimeError, KeyError, TypeError, ValueError):
            raise error from None


def odd(content: dict[str, Object]) -> tuple[list[str], list[tuple[str, str]]]:
    """Objects and attributes that cannot be arrays of numbers or text."""
    objects = {there.path: None for there in content.values() if there.kind and there.kind not in KNOWN}
    attrs = [
        (there.path, name)
        for there in content.values()
        if there.path not in objects
        for name, kind in there.attrs.items()
        if kind not in KNOWN and name not in INNER
    ]
    return list(objects), attrs


def _copy(path: str, copy: str, beat: Callable[[], None]) -> None:
    """Copies a file, if possible by a file system's copy that shares its bytes."""
    size, at = os.stat(path).st_size, 0
    free = shutil.disk_usage(os.path.dirname(copy)).free
    with open(path, "rb") as source, open(copy, "wb") as target:
        while at < size:
            beat()
            try:
                n = os.copy_file_range(source.fileno(), target.fileno(), PIECE, at, at)
            except OSError:
                if size > free:
                    raise OSError(
                        f"without its odd types it is read from a copy, which needs {size} bytes in "
                        f"{tempfile.gettempdir()}, where {free} are free; set TMPDIR to another folder"
                    ) from None
                piece = os.pread(source.fileno(), PIECE, at)
                n = os.pwrite(target.fileno(), piece, at)
            if n == 0:
                return
            at += n


def omitted(content: dict[str, Object], dataset: netCDF4.Dataset) -> Iterator[tuple[str, str]]:
    """Objects that HDF5 lists in a file and netCDF does not show: paths, or attributes of paths, and why."""
    groups = {group.path.strip("/"): group for group in _walk(dataset)}
    shown: dict[str, Any] = {_plain(path): group for path, group in groups.items()}
    for path, group in groups.items():
        shown |= {_plain(f"{path}/{name}" if path else name): v for name, v in group.variables.items()}
    for path, there in content.items():
        holder = shown.get(_plain(path))
        if holder is None:
            if there.kind and not there.is_type:
                yield _told(path), why(there.kind)
            continue
        names = {_plain(name) for name in holder.ncattrs()}
        for name, kind in there.attrs.items():
            if name not in INNER and _plain(name) not in names:
                yield f"{_told(path) or 'the file'}: attribute {_told(name)}", why(kind)


def why(kind: str) -> str:
    """The reason to leave out an object with this class of types."""
    if kind == libhdf5.EMPTY:
        return "it has no values (a null dataspace)"
    if kind in KNOWN:
        return f"netCDF does not read it, though its type is {kind}"
    return f"{kind} type not supported"


def _walk(group: Any) -> Iterator[Any]:
    yield group
    for inner in group.groups.values():
        yield from _walk(inner)


def _plain(name: str) -> str:
    """A name in netCDF's form: Unicode's form NFC."""
    return unicodedata.normalize("NFC", name)


def _told(name: str) -> str:
    """A name for a report, in which bytes that are not UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

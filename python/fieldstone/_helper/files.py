"""Common parts of the readers of array files: the digest of a file, and arrays cut into pieces of bounded
size.

Example: ``list(boxes((4, 10), 8, 160))`` is two boxes of two rows each.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO


def open_plain(path: str | os.PathLike[str], buffering: int = -1) -> BinaryIO:
    """Opens a file for reading without waiting for the other end of a pipe. OSError if it is not a plain
    file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            what = "it is not a plain file, but a folder, a pipe, a socket or a device"
            raise OSError(errno.EINVAL, what, os.fspath(path))
        return os.fdopen(descriptor, "rb", buffering=buffering)
    except BaseException:
        os.close(descriptor)
        raise


def sha256(path: str, beat: Callable[[], None] = lambda: None) -> str:
    """Digest of a file's bytes; calls `beat` once a second, as a sign of life."""
    digest, last = hashlib.sha256(), time.monotonic()
    buffer = memoryview(bytearray(1 << 20))
    with open_plain(path, buffering=0) as file:
        while n := file.readinto(buffer):
            digest.update(buffer[:n])
            if (now := time.monotonic()) - last > 1:
                last = now
                beat()
    return digest.hexdigest()


def boxes(
    shape: tuple[int, ...], itemsize: int, limit: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Cuts an array into boxes of at most `limit` bytes, in C order; a scalar is one box."""
    nbytes = itemsize
    for n in shape:
        nbytes *= n
    if nbytes <= limit or not shape:
        yield (0,) * len(shape), tuple(shape)
        return
    row = nbytes // shape[0]
    if row <= limit:
        n = max(1, limit // row)
        for first in range(0, shape[0], n):
            yield (first, *(0,) * (len(shape) - 1)), (min(n, shape[0] - first), *shape[1:])
        return
    for first in range(shape[0]):
        for start, count in boxes(shape[1:], itemsize, limit):
            yield (first, *start), (1, *count)

"""Numbers in text files of meshes, many at a time: rows of any length; errors name the wrong line.

Lines end with LF, CRLF or CR; blank lines are ignored; exponents may be Fortran's (``1.0D+00``).
"""

from __future__ import annotations

import re

import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.mesh_arrays import damaged

_FORTRAN = bytes.maketrans(b"dD", b"eE")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf)", re.IGNORECASE)


def read_text(path: str) -> bytes:
    """A whole file, with lines that end in LF."""
    with open_plain(path) as file:
        content = file.read()
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return content


class Table:
    """The lines of a part of a text, as numbers.

    `counts` has the number of words in each line that is not blank. In the file, `first` lines precede
    `content`.
    """

    def __init__(
        self, path: str, content: bytes, begin: int, end: int, comment: bytes | None = None, first: int = 0
    ) -> None:
        text = content[begin:end]
        if comment is not None and comment in text:
            text = re.sub(re.escape(comment) + rb"[^\n]*", b"", text)
        self._path, self._content, self._begin, self._text, self._first = path, content, begin, text, first
        raw = np.frombuffer(text, np.uint8)
        self._starts = np.concatenate([[0], np.flatnonzero(raw == 10) + 1])
        is_word = raw > 32
        is_word[1:] &= raw[:-1] <= 32
        # The number of words before each line.
        before = np.searchsorted(np.flatnonzero(is_word), np.append(self._starts, raw.size))
        counts = np.diff(before)
        self._lines = np.flatnonzero(counts)
        self.counts = counts[self._lines]

    def __len__(self) -> int:
        return len(self.counts)

    def line(self, row: int) -> int:
        """The number of a row's line in the file, from 1."""
        return self._first + self._content.count(b"\n", 0, self._begin) + 1 + int(self._lines[row])

    def words(self, row: int) -> list[bytes]:
        """The words of one row."""
        begin = int(self._starts[self._lines[row]])
        end = self._text.find(b"\n", begin)
        return self._text[begin : end if end >= 0 else None].split()

    def integers(self) -> np.ndarray:
        """All words as int64. RequestError: ``Corrupt`` for a word that is not one."""
        return self._numbers(self._text, np.int64)

    def floats(self) -> np.ndarray:
        """All words as float64. RequestError: ``Corrupt`` for a word that is not one."""
        text = self._text
        if b"D" in text or b"d" in text:
            text = text.translate(_FORTRAN)
        return self._numbers(text, np.float64)

    def _numbers(self, text: bytes, dtype: type) -> np.ndarray:
        due = int(self.counts.sum())
        if not due:
            return np.zeros(0, dtype)
        try:
            # A number appended at the end reveals an invalid word before it.
            numbers = np.fromstring(text + b" 0", dtype, sep=" ")
        except ValueError:
            numbers = np.zeros(0, dtype)
        if len(numbers) != due + 1:
            raise self._fault(dtype)
        return numbers[:-1]

    def _fault(self, dtype: type) -> Exception:
        is_int = dtype is np.int64
        pattern = re.compile(rb"[+-]?\d+") if is_int else _NUMBER
        for row in range(len(self)):
            for word in self.words(row):
                if not pattern.fullmatch(word if is_int else word.translate(_FORTRAN)):
                    what = "a whole number" if is_int else "a number"
                    shown = word[:40].decode("utf-8", "replace")
                    return damaged(self._path, f"line {self.line(row)}: {shown!r} is not {what}")
        return damaged(self._path, f"the numbers from line {self.line(0)} on cannot be read")

"""The exceptions of Fieldstone: one tree, with a class for each kind. The kind shows the caller how to react,
the code identifies the exact problem."""

from __future__ import annotations

import re
from typing import ClassVar


class Error(Exception):
    """Any error of Fieldstone; the message names the cause.

    ``kind`` is the name of the kind, ``code`` identifies the exact problem ("run-exists"); both are the same
    in every language. ``hint`` gives the next step if one is known; ``message`` is the text without the hint.
    """

    kind: ClassVar[str] = "Internal"

    def __init__(self, message: str, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or re.sub(r"(?<=.)(?=[A-Z])", "-", self.kind).lower()

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later without any change: others hold a lock, or a server
        restarts. Never for a full disk or for damage."""
        from . import _native

        return _native.ERROR_CODES.get(self.code, ("", False))[1]

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} (hint: {self.hint})"


class NotFound(Error, KeyError):
    """The requested thing does not exist: request something else, or read with ``strict=False``."""

    kind = "NotFound"


class Invalid(Error, ValueError):
    """The call itself is wrong (type, range, keyword, syntax): correct it."""

    kind = "Invalid"


class Conflict(Error):
    """Two statements contradict each other: look at both and decide."""

    kind = "Conflict"


class Corrupt(Error):
    """Stored bytes fail their checksum or grammar: restore the named file; the rest is readable."""

    kind = "Corrupt"


class Denied(Error, PermissionError):
    """The caller may not do this: ask the owner named in the message."""

    kind = "Denied"


class Unavailable(Error):
    """The medium failed or is full: repair it and try again."""

    kind = "Unavailable"


class Internal(Error):
    """A defect of Fieldstone: report it."""

    kind = "Internal"


def codes() -> dict[str, tuple[str, bool]]:
    """Every error code with its kind, and whether the same call may be repeated."""
    from . import _native

    return dict(_native.ERROR_CODES)

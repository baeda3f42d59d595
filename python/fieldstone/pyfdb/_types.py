"""Requests, control words, URIs and errors in pyfdb's form.

Example::

    request_of({"param": "130/131", "step": ["0", "to", "24"]})   # a request for our calls
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time
from enum import IntEnum, IntFlag, auto
from pathlib import Path
from typing import Any, TypeVar
from urllib import parse

from fieldstone.errors import Conflict, Corrupt, Denied, Error, Internal, Invalid, NotFound, Unavailable

MarsSelection = Mapping[str, str | int | float | Collection[str | int | float]]
"""A request: a keyword's value, list, or range (``"0/to/24/by/6"``)."""
MarsIdentifier = list[tuple[str, str]] | dict[str, str]
"""A key: one value for each keyword."""

_F = TypeVar("_F", bound=Callable[..., Any])


class UserConflict(Conflict, RuntimeError):
    """Conflict, in the form that programs written for pyfdb catch."""


class UserCorrupt(Corrupt, RuntimeError):
    """Corrupt, in the form that programs written for pyfdb catch."""


class UserDenied(Denied, RuntimeError):
    """Denied, in the form that programs written for pyfdb catch."""


class UserInternal(Internal, RuntimeError):
    """Internal, in the form that programs written for pyfdb catch."""


class UserInvalid(Invalid, RuntimeError):
    """Invalid, in the form that programs written for pyfdb catch."""


class UserNotFound(NotFound, RuntimeError):
    """NotFound, in the form that programs written for pyfdb catch."""


class UserUnavailable(Unavailable, RuntimeError):
    """Unavailable, in the form that programs written for pyfdb catch."""


# pyfdb raises RuntimeError for every error of its library.
_RAISED: dict[type[Error], type[Error]] = {
    Conflict: UserConflict,
    Corrupt: UserCorrupt,
    Denied: UserDenied,
    Internal: UserInternal,
    Invalid: UserInvalid,
    NotFound: UserNotFound,
    Unavailable: UserUnavailable,
}


def user_error(message: str, hint: str | None = None) -> Error:
    """An Invalid that is also a RuntimeError."""
    return UserInvalid(f"UserError: {message}", hint)


@contextmanager
def raised() -> Iterator[None]:
    """Turns our errors into those that programs written for pyfdb catch."""
    try:
        yield
    except Error as error:
        kind = _RAISED.get(type(error))
        if kind is None:
            raise
        raise kind(f"UserError: {error.message}", error.hint, error.code) from error


def raising(call: _F) -> _F:
    """A call whose errors are also RuntimeErrors."""

    @functools.wraps(call)
    def wrapped(*args: Any, **options: Any) -> Any:
        with raised():
            return call(*args, **options)

    return wrapped  # type: ignore[return-value]


def _text(value: Any) -> str | None:
    """One value as text: text, a number (also of numpy), or a day (also of numpy and pandas)."""
    if hasattr(value, "item") and not isinstance(value, str | int | float) and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, datetime):
        return None if value.time() != time() else value.strftime("%Y%m%d")
    return value.strftime("%Y%m%d") if isinstance(value, date) else None


def request_of(given: MarsSelection) -> dict[str, Any]:
    """One of our requests from one of pyfdb's."""
    made: dict[str, Any] = {}
    for keyword, values in given.items():
        if (text := _text(values)) is not None:
            made[keyword] = text
            continue
        if isinstance(values, Mapping | bytes) or not isinstance(values, Iterable):
            raise user_error(
                f"the value of {keyword!r} is {values!r}", "give text, a number, a day, or a list of these"
            )
        texts = []
        for value in values:
            if (text := _text(value)) is None:
                raise user_error(f"{keyword!r} has the value {value!r}", "give texts, numbers or days")
            texts.append(text)
        for text in texts:
            if "/" in text:
                raise user_error(
                    f"Bad value {text!r} for {keyword}: each element of a list is one value",
                    f"give {keyword}={text!r} as text, or a list of its values",
                )
        # "to" and "by" are also words of a range in a list.
        made[keyword] = "/".join(texts) if {"to", "by"} & set(texts) else texts
    return made


def key_of(given: MarsIdentifier) -> dict[str, str]:
    """One of our keys from one of pyfdb's."""
    if not isinstance(given, list | Mapping):
        raise user_error(f"the identifier is {given!r}", "give a dict, or a list of (keyword, value)")
    made: dict[str, str] = {}
    for keyword, value in given.items() if isinstance(given, Mapping) else given:
        if keyword in made:
            raise KeyError(f"the identifier has {keyword!r} twice")
        text = _text(value)
        if text is None or "/" in text:
            raise user_error(f"the identifier has {keyword}={value!r}", "give one value for each keyword")
        made[keyword] = text
    return made


class ControlIdentifier(IntFlag):
    """Actions that can be allowed or forbidden."""

    NONE = 0
    LIST = auto()
    RETRIEVE = auto()
    ARCHIVE = auto()
    WIPE = auto()
    UNIQUEROOT = auto()

    def __str__(self) -> str:
        return "|".join(one.name or "" for one in type(self) if self & one) or "NONE"

    __repr__ = __str__


class ControlAction(IntEnum):
    """The change of a permission."""

    NONE = 0
    DISABLE = auto()
    ENABLE = auto()

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


class URI:
    """A location."""

    def __init__(self, uri: str | Path | URI, scheme: str = "", allow_fragments: bool = True) -> None:
        text = uri.as_posix() if isinstance(uri, Path) else str(uri)
        self._parts = parse.urlsplit(text, scheme=scheme, allow_fragments=allow_fragments)

    def netloc(self) -> str:
        """User, host and port."""
        return self._parts.netloc

    def scheme(self) -> str:
        """The scheme, such as "file"; empty if there is none."""
        return self._parts.scheme

    def username(self) -> str | None:
        """The user."""
        return self._parts.username

    def password(self) -> str | None:
        """The password."""
        return self._parts.password

    def hostname(self) -> str | None:
        """The host."""
        return self._parts.hostname

    def port(self) -> int | None:
        """The port."""
        return self._parts.port

    def path(self) -> str:
        """The path."""
        return self._parts.path

    def query(self) -> str:
        """The part after "?"."""
        return self._parts.query

    def fragment(self) -> str:
        """The part after "#"."""
        return self._parts.fragment

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URI) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return parse.urlunsplit(self._parts)

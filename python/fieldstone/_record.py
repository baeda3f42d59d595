"""Frozen records: dataclasses that share their methods.

``dataclass`` compiles six functions for each class; for the forty records of this package that was a third of
the time of an import. These have the fields of dataclasses, so that ``fields``, ``asdict`` and ``replace``
know them, and inherit the rest.

>>> class Size(Record):
...     name: str
...     nbytes: int = 0
>>> Size("a", nbytes=3)
Size(name='a', nbytes=3)
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, ClassVar, NoReturn, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """Base of frozen records, whose annotations are their fields."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *values: Any, **named: Any) -> None:
        cls, own = type(self), fields(self)
        if len(values) > len(own):
            raise TypeError(f"{cls.__name__} has {len(own)} fields, not {len(values)}")
        given = self.__dict__
        for one, value in zip(own, values, strict=False):
            given[one.name] = value
        for one in own[len(values) :]:
            if one.name in named:
                given[one.name] = named.pop(one.name)
            elif one.default_factory is not MISSING:
                given[one.name] = one.default_factory()
            elif one.default is not MISSING:
                given[one.name] = one.default
            else:
                raise TypeError(f"{cls.__name__} needs a value of {one.name}")
        if named:
            raise TypeError(f"{cls.__name__} has no other field {', '.join(named)}")

    def _compared(self) -> tuple[object, ...]:
        own = fields(self)
        return tuple(getattr(self, one.name) for one in own if one.compare)

    def __repr__(self) -> str:
        own = fields(self)
        shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in own if one.repr)
        return f"{type(self).__qualname__}({shown})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record) or type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        own = fields(self)
        hashed = (one.compare if one.hash is None else one.hash for one in own)
        return hash(tuple(getattr(self, one.name) for one, counts in zip(own, hashed, strict=True) if counts))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

"""A base for small immutable values that say themselves how they are written in JSON.

msgspec encodes dataclasses and its own structs by itself; types and transforms are written as text: they are neither.
"""

from typing import Any, Self


class ValueClass:
    """Immutable value compared by its slots; subclasses name their fields in `__slots__` and `__match_args__`."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    def __init__(self, *values: Any) -> None:
        if len(values) != len(self.__match_args__):
            raise TypeError(f"{type(self).__name__} takes {self.__match_args__}, got {values!r}")
        for name, value in zip(self.__match_args__, values, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._values()))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """The value in decoded JSON; InvalidInputError or TypeError where it is none."""
        raise NotImplementedError(cls)

    def to_json(self) -> Any:
        """This value as plain values for JSON."""
        raise NotImplementedError(type(self))

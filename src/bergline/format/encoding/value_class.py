"""A base class for small immutable values with their own JSON form.

msgspec encodes dataclasses and structs as objects; types and transforms are neither, because their JSON is text.
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
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._values() == other._values())

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._values()))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """The value of decoded JSON; InvalidInputError or TypeError if there is none."""
        raise NotImplementedError(cls)

    def to_json(self) -> Any:
        """This value in JSON's types."""
        raise NotImplementedError(type(self))

"""What a form asks for, and its answers as values."""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from bergline.arguments import shown
from bergline.errors import InvalidInputError

FieldKind = Literal["text", "ref", "branch", "tag", "snapshot", "number", "age", "check"]

_AGE = re.compile(r"(\d{1,12})\s*(d|h|min|m|s|ms)")
_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "m": 60_000, "s": 1000, "ms": 1}
_LONG = 2**63


class Field(msgspec.Struct, frozen=True):
    """One question of a form."""

    name: str
    label: str
    kind: FieldKind = "text"
    help: str = ""
    required: bool = True


class Answers:
    """The answers to a form; every method raises an InvalidInputError that names the question."""

    def __init__(self, fields: tuple[Field, ...], given: Mapping[str, str]) -> None:
        self._fields = {field.name: field for field in fields}
        self._given = given

    def values(self) -> dict[str, str]:
        """The answers as they were given."""
        return {name: self._given.get(name, "").strip() for name in self._fields}

    def text(self, name: str) -> str:
        """An answer that must be there."""
        found = self.optional(name)
        if found is None:
            raise InvalidInputError(f"expected something for `{self._fields[name].label}`, found nothing")
        return found

    def optional(self, name: str) -> str | None:
        """An answer that may be missing."""
        return self._given.get(name, "").strip() or None

    def checked(self, name: str) -> bool:
        """A box."""
        return bool(self._given.get(name))

    def number(self, name: str, least: int = 1) -> int | None:
        """A whole number."""
        found = self.optional(name)
        if found is None:
            return None
        number = int(found) if re.fullmatch(r"-?[0-9]{1,19}", found) else None
        if number is None or not least <= number < _LONG:
            label = self._fields[name].label
            raise InvalidInputError(f"expected a whole number from {least} on for `{label}`, found {shown(found)}")
        return number

    def age_ms(self, name: str) -> int | None:
        """A time span such as `7 d`, in milliseconds."""
        found = self.optional(name)
        if found is None:
            return None
        matched = _AGE.fullmatch(found)
        if matched is None or not int(matched[1]):
            label = self._fields[name].label
            raise InvalidInputError(
                f"expected a time like `7 d`, `12 h` or `30 min` for `{label}`, found {shown(found)}"
            )
        return int(matched[1]) * _UNITS_MS[matched[2]]

    def snapshot(self, name: str) -> int | str | None:
        """A snapshot: an id, or the name of a ref."""
        found = self.optional(name)
        return int(found) if found is not None and re.fullmatch(r"[0-9]{1,19}", found) else found


def age_text(milliseconds: int | None) -> str:
    """A time span as a form shows it; read again it is the same."""
    if milliseconds is None:
        return ""
    unit = next(unit for unit in ("d", "h", "min", "s", "ms") if milliseconds % _UNITS_MS[unit] == 0)
    return f"{milliseconds // _UNITS_MS[unit]} {unit}"

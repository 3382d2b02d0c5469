"""Isolation levels: what another commit may do between the read and the commit of an operation."""

from enum import StrEnum
from typing import Final, Literal

import msgspec

from bergline.arguments import shown
from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import TableMetadata

RowLevelCommand = Literal["delete", "update", "merge"]
ROW_LEVEL_COMMANDS: Final[tuple[RowLevelCommand, ...]] = ("delete", "update", "merge")
NO_ISOLATION: Final = "none"
"""What a caller gives who wants only what would break the table looked after."""


class Isolation(StrEnum):
    """Which commits of others in the meantime an operation does not tolerate."""

    SERIALIZABLE = "serializable"
    """Also rows that were added and that the operation would have looked at."""
    SNAPSHOT = "snapshot"
    """Only changes to the rows that the operation changes."""


class ValidateFrom(msgspec.Struct, frozen=True):
    """The snapshot that an operation read, None for an empty branch, and the isolation level for what came since."""

    snapshot_id: int | None
    isolation: Isolation


def isolation_level(
    metadata: TableMetadata, command: RowLevelCommand, given: str | Isolation | None = None
) -> Isolation:
    """The level that the caller gave, else that of `write.<command>.isolation-level`, else serializable."""
    if given is not None:
        return parse_isolation(given, "the isolation level")
    key = f"write.{command}.isolation-level"
    text = metadata.properties.get(key)
    return Isolation.SERIALIZABLE if text is None else property_isolation(text, key)


def given_isolation(given: str | Isolation | None) -> Isolation | None:
    """The level that the caller gave; None if that is `none`, or none was given."""
    none = given is None or given == NO_ISOLATION
    return None if none else parse_isolation(given, "the isolation level")


def parse_isolation(text: object, place: str) -> Isolation:
    """Parse a level, in upper or lower case; callers handle `none`."""
    return _level(text, f"serializable, snapshot or none for {place}")


def property_isolation(text: str, key: str) -> Isolation:
    """The level in a property of a table, in upper or lower case."""
    return _level(text, f"serializable or snapshot for property `{key}`")


def _level(text: object, expected: str) -> Isolation:
    try:
        return Isolation(text.lower() if isinstance(text, str) else "")
    except ValueError:
        raise InvalidInputError(f"expected {expected}, found {shown(text)}") from None

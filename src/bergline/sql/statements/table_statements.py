"""What statements say about tables: made, dropped, altered."""

from typing import Any, Literal

import msgspec

from bergline.format.types.types import IcebergType
from bergline.sql.statements.statements import Name, Query

ColumnPlacement = tuple[Literal["first"]] | tuple[Literal["after"], str]


class ColumnDefinition(msgspec.Struct, frozen=True):
    """A new column; its default is a literal, None for none."""

    path: Name
    type: IcebergType
    required: bool = False
    doc: str | None = None
    default: Any = None
    position: ColumnPlacement | None = None


class CreateTable(msgspec.Struct, frozen=True):
    """CREATE TABLE, CREATE OR REPLACE TABLE (both flags) and REPLACE TABLE (`replaces` alone).

    With `source`, the query that gives columns and rows; `whole` is then the statement with the tables that it reads.
    """

    table: Name
    provider: str | None = None
    columns: tuple[ColumnDefinition, ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = {}
    location: str | None = None
    if_not_exists: bool = False
    creates: bool = True
    replaces: bool = False
    source: str | None = None
    whole: Query | None = None


class DropTable(msgspec.Struct, frozen=True):
    """DROP TABLE."""

    table: Name
    if_exists: bool = False
    purge: bool = False


class AddColumns(msgspec.Struct, frozen=True):
    """ADD COLUMNS."""

    columns: tuple[ColumnDefinition, ...]


class ReplaceColumns(msgspec.Struct, frozen=True):
    """REPLACE COLUMNS: all columns go, and these are new ones."""

    columns: tuple[ColumnDefinition, ...]


class DropColumns(msgspec.Struct, frozen=True):
    """DROP COLUMNS."""

    paths: tuple[Name, ...]
    if_exists: bool = False


class RenameColumnClause(msgspec.Struct, frozen=True):
    """RENAME COLUMN."""

    path: Name
    name: str


class SetColumnType(msgspec.Struct, frozen=True):
    """ALTER COLUMN … TYPE."""

    path: Name
    type: IcebergType


class SetColumnDoc(msgspec.Struct, frozen=True):
    """ALTER COLUMN … COMMENT."""

    path: Name
    doc: str


class SetColumnRequired(msgspec.Struct, frozen=True):
    """ALTER COLUMN … SET | DROP NOT NULL."""

    path: Name
    required: bool


class SetColumnDefault(msgspec.Struct, frozen=True):
    """ALTER COLUMN … SET DEFAULT; None for DROP DEFAULT."""

    path: Name
    default: Any


class MoveColumnClause(msgspec.Struct, frozen=True):
    """ALTER COLUMN … FIRST | AFTER."""

    path: Name
    position: ColumnPlacement


ColumnChange = SetColumnType | SetColumnDoc | SetColumnRequired | SetColumnDefault | MoveColumnClause


class AlterColumns(msgspec.Struct, frozen=True):
    """ALTER COLUMN, of one or more."""

    changes: tuple[ColumnChange, ...]


class SetTableProperties(msgspec.Struct, frozen=True):
    """SET and UNSET TBLPROPERTIES, and COMMENT ON TABLE."""

    updates: dict[str, str] = {}
    removals: tuple[str, ...] = ()


class SetTableLocation(msgspec.Struct, frozen=True):
    """SET LOCATION."""

    location: str


class AddPartitionField(msgspec.Struct, frozen=True):
    """ADD PARTITION FIELD."""

    term: str
    name: str | None = None


class DropPartitionField(msgspec.Struct, frozen=True):
    """DROP PARTITION FIELD, by name or by term."""

    name_or_term: str


class ReplacePartitionField(msgspec.Struct, frozen=True):
    """REPLACE PARTITION FIELD … WITH."""

    name_or_term: str
    term: str
    name: str | None = None


class SetWriteOrder(msgspec.Struct, frozen=True):
    """WRITE …: how rows of new files are sorted, and how they are spread over tasks; None leaves that as it is."""

    terms: tuple[str, ...]
    distribution: Literal["none", "hash", "range"] | None


class IdentifierFieldsClause(msgspec.Struct, frozen=True):
    """SET IDENTIFIER FIELDS."""

    paths: tuple[str, ...]


class DropIdentifierFields(msgspec.Struct, frozen=True):
    """DROP IDENTIFIER FIELDS."""

    paths: tuple[str, ...]


class RenameTable(msgspec.Struct, frozen=True):
    """RENAME TO."""

    name: Name


Alteration = (
    AddColumns
    | ReplaceColumns
    | DropColumns
    | RenameColumnClause
    | AlterColumns
    | SetTableProperties
    | SetTableLocation
    | AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | SetWriteOrder
    | IdentifierFieldsClause
    | DropIdentifierFields
    | RenameTable
)


class ForgetCached(msgspec.Struct, frozen=True):
    """REFRESH TABLE or UNCACHE TABLE: nothing of a lake's table is kept, so it must only exist."""

    table: Name
    if_exists: bool = False


class AlterTable(msgspec.Struct, frozen=True):
    """ALTER TABLE: one change."""

    table: Name
    change: Alteration

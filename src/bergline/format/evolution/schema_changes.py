"""Changes of a schema as closed variants; `schema_evolution` says what they do."""

from typing import Any

import msgspec

from bergline.format.evolution.columns import ColumnPosition
from bergline.format.schema.schema import Schema
from bergline.format.types.types import IcebergType


class AddColumn(msgspec.Struct, frozen=True):
    """A new column, last of its struct unless `place` says where; `default` is a plain value."""

    path: str
    type: IcebergType
    doc: str | None = None
    required: bool = False
    default: Any = None
    place: ColumnPosition | None = None
    allow_incompatible: bool = False


class DropColumn(msgspec.Struct, frozen=True):
    """No such column any more."""

    path: str


class RenameColumn(msgspec.Struct, frozen=True):
    """Another name for a column."""

    path: str
    name: str


class MoveColumn(msgspec.Struct, frozen=True):
    """Another place for a column in its struct."""

    path: str
    place: ColumnPosition


class SetType(msgspec.Struct, frozen=True):
    """A wider type for a column."""

    path: str
    type: IcebergType


class SetRequired(msgspec.Struct, frozen=True):
    """Whether a column is never null."""

    path: str
    required: bool
    allow_incompatible: bool = False


class SetDoc(msgspec.Struct, frozen=True):
    """Other words about a column."""

    path: str
    doc: str | None


class SetDefault(msgspec.Struct, frozen=True):
    """Another plain value for new rows that give none."""

    path: str
    default: Any


class SetIdentifierFields(msgspec.Struct, frozen=True):
    """The columns that identify rows."""

    paths: tuple[str, ...]


class UnionByName(msgspec.Struct, frozen=True):
    """Every column of another schema: missing ones are added, narrower ones widened; nothing is dropped."""

    schema: Schema


SchemaChange = (
    AddColumn
    | DropColumn
    | RenameColumn
    | MoveColumn
    | SetType
    | SetRequired
    | SetDoc
    | SetDefault
    | SetIdentifierFields
    | UnionByName
)

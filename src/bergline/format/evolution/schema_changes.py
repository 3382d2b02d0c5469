"""Schema changes as closed variants; `schema_evolution` applies them."""

from typing import Any

import msgspec

from bergline.format.evolution.columns import ColumnPosition
from bergline.format.schema.schema import Schema
from bergline.format.types.types import IcebergType


class AddColumn(msgspec.Struct, frozen=True):
    """Add a column at the end of its struct, or where `place` says; `default` is a plain value.

    The path has its parts apart: the last one is the name, which may have a dot in it.
    """

    path: tuple[str, ...]
    type: IcebergType
    doc: str | None = None
    required: bool = False
    default: Any = None
    place: ColumnPosition | None = None
    allow_incompatible: bool = False


class DropColumn(msgspec.Struct, frozen=True):
    """Drop a column."""

    path: str


class RenameColumn(msgspec.Struct, frozen=True):
    """Rename a column."""

    path: str
    name: str


class MoveColumn(msgspec.Struct, frozen=True):
    """Move a column within its struct."""

    path: str
    place: ColumnPosition


class SetType(msgspec.Struct, frozen=True):
    """Promote a column to a wider type."""

    path: str
    type: IcebergType


class SetRequired(msgspec.Struct, frozen=True):
    """Make a column required or optional."""

    path: str
    required: bool
    allow_incompatible: bool = False


class SetDoc(msgspec.Struct, frozen=True):
    """Set the comment of a column."""

    path: str
    doc: str | None


class SetDefault(msgspec.Struct, frozen=True):
    """Set the default for new rows, as a plain value."""

    path: str
    default: Any


class SetIdentifierFields(msgspec.Struct, frozen=True):
    """Set the identifier fields."""

    paths: tuple[str, ...]


class UnionByName(msgspec.Struct, frozen=True):
    """Add the missing columns of another schema and widen narrower ones; nothing is dropped."""

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

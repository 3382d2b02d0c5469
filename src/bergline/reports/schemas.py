"""The schema at a ref, the schemas that a table has had, and what changed between them."""

import msgspec

from bergline.errors import NotFoundError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.table.references.diff import schema_changes
from bergline.table.scans.version import ReadVersion, resolve_version


class ColumnLine(msgspec.Struct, frozen=True):
    """A column or nested field."""

    field_id: int
    name: str
    """Dotted, if it is nested."""
    depth: int
    type: str
    required: bool
    is_identifier: bool
    doc: str | None
    initial_default: str | None
    write_default: str | None


class SchemaVersion(msgspec.Struct, frozen=True):
    """One of the schemas of a table."""

    schema_id: int
    columns: int
    changes: tuple[str, ...]
    """What changed since the schema before it; nothing for the first."""
    is_current: bool
    first_snapshot_id: int | None
    """The oldest existing snapshot that was written with it."""
    first_used_ms: int | None


class SchemaReport(msgspec.Struct, frozen=True):
    """The schema that a ref is read with."""

    ref: str
    schema_id: int | None
    columns: tuple[ColumnLine, ...]
    against: str | None
    """The ref, if any, that it is compared with."""
    changes: tuple[str, ...]
    """The changes from the other ref's schema to this one."""
    versions: tuple[SchemaVersion, ...]
    """The newest first."""


def schema_report(metadata: TableMetadata, ref: str = MAIN, against: str | None = None) -> SchemaReport:
    """The schema at a ref or snapshot id, and how it differs from that at another; NotFoundError for unknown ones."""
    schema = version_at(metadata, ref).schema
    other = None if against is None else version_at(metadata, against).schema
    changes = () if other is None else schema_changes(other, schema)
    return SchemaReport(ref, schema.schema_id, columns_of(schema), against, changes, _versions(metadata))


def version_at(metadata: TableMetadata, chosen: str) -> ReadVersion:
    """A state by the name of a ref, or else by the id of a snapshot as text."""
    try:
        return resolve_version(metadata, ref=chosen)
    except NotFoundError:
        if not (chosen.isascii() and chosen.isdecimal() and int(chosen) in metadata.snapshots_by_id):
            raise
        return resolve_version(metadata, snapshot_id=int(chosen))


def columns_of(schema: Schema) -> tuple[ColumnLine, ...]:
    """All columns and nested fields, each below the one that it is in."""
    lines = []
    for name, field in schema.names.items():
        depth, parent = 0, schema.parents[field.id]
        while parent is not None:
            depth, parent = depth + 1, schema.parents[parent.id]
        lines.append(
            ColumnLine(
                field.id,
                name,
                depth,
                str(field.type),
                field.required,
                field.id in schema.identifier_field_ids,
                field.doc,
                _default(field.initial_default),
                _default(field.write_default),
            )
        )
    return tuple(lines)


def _default(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _versions(metadata: TableMetadata) -> tuple[SchemaVersion, ...]:
    first: dict[int | None, tuple[int, int]] = {}
    for snapshot in metadata.snapshots:
        at = snapshot.timestamp_ms, snapshot.snapshot_id
        first[snapshot.schema_id] = min(first.get(snapshot.schema_id, at), at)
    lines: list[SchemaVersion] = []
    before: Schema | None = None
    for schema in metadata.schemas:
        used = first.get(schema.schema_id)
        lines.append(
            SchemaVersion(
                schema.schema_id or 0,
                len(schema.fields),
                () if before is None else schema_changes(before, schema),
                schema.schema_id == metadata.current_schema_id,
                None if used is None else used[1],
                None if used is None else used[0],
            )
        )
        before = schema
    return tuple(reversed(lines))

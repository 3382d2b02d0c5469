"""Schema changes applied one after the other."""

import pytest

from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.format.evolution.schema_changes import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    SetRequired,
    UnionByName,
)
from bergline.format.evolution.schema_evolution import (
    EvolvingSchema,
    apply_schema_change,
    check_evolved,
    evolving,
    union_changes,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, NestedField


def evolved(metadata: TableMetadata, *changes: SchemaChange) -> EvolvingSchema:
    work = evolving(metadata)
    for change in changes:
        work = apply_schema_change(work, change)
    return work


def test_each_change_sees_those_before_it(metadata: TableMetadata) -> None:
    after = evolved(metadata, AddColumn(("note",), STRING), RenameColumn("note", "remark"), DropColumn("remark"))
    assert after.schema.fields == metadata.schema.fields
    assert after.last_column_id == metadata.last_column_id + 1


def test_dropped_column_added_again_gets_another_id(metadata: TableMetadata) -> None:
    after = evolved(metadata, AddColumn(("note",), STRING), DropColumn("note"), AddColumn(("note",), STRING))
    assert after.schema.find("note").id == metadata.last_column_id + 2


def test_column_that_an_earlier_change_dropped_is_not_found(metadata: TableMetadata) -> None:
    with pytest.raises(NotFoundError, match="no column `remark`"):
        evolved(metadata, AddColumn(("remark",), STRING), DropColumn("remark"), SetRequired("remark", False))


def test_union_adds_what_is_missing_and_is_empty_the_second_time(metadata: TableMetadata) -> None:
    other = Schema(fields=(*metadata.schema.fields, NestedField(900, "note", True, STRING)))
    after = evolved(metadata, UnionByName(other))
    assert [f.name for f in after.schema.fields] == [f.name for f in other.fields]
    assert not after.schema.find("note").required
    assert union_changes(after.schema, other, metadata.format_version) == []


def test_source_column_of_a_partition_field_is_not_dropped(metadata: TableMetadata) -> None:
    source = metadata.schema.ids[metadata.spec.fields[0].source_id]
    check_evolved(evolved(metadata, AddColumn(("other",), LONG)))
    with pytest.raises((RefusedError, InvalidInputError), match="partition field"):
        check_evolved(evolved(metadata, DropColumn(source.name)))

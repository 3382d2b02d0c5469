"""Schema changes as values."""

from typing import get_args

import pytest

from bergline.format.evolution.schema_changes import AddColumn, MoveColumn, RenameColumn, SchemaChange
from bergline.format.evolution.schema_evolution import apply_schema_change, evolving
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.types.types import LONG


def test_changes_are_values() -> None:
    assert RenameColumn("a", "b") == RenameColumn("a", "b") != RenameColumn("a", "c")
    assert len({AddColumn(("a",), LONG), AddColumn(("a",), LONG)}) == 1
    with pytest.raises(AttributeError):
        RenameColumn("a", "b").name = "c"  # type: ignore[misc]


def test_every_change_names_the_column_that_it_is_about_first() -> None:
    first_fields = {kind.__struct_fields__[0] for kind in get_args(SchemaChange)}
    assert first_fields == {"path", "paths", "schema"}


def test_column_is_added_where_its_position_says(metadata: TableMetadata) -> None:
    after = apply_schema_change(evolving(metadata), AddColumn(("note",), LONG, place=MoveColumn("x", ("first",)).place))
    assert after.schema.fields[0].name == "note"

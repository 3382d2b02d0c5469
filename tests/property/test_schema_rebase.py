"""Two writers' changes of one schema: merged attribute by attribute, or a conflict; never anything else."""

from typing import Any

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from bergline.errors import BerglineError, ConflictError
from bergline.format.evolution.schema_changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetDoc,
    SetIdentifierFields,
    SetRequired,
    SetType,
)
from bergline.format.evolution.schema_evolution import apply_schema_change, check_evolved, evolving
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.new_table import new_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import UNPARTITIONED
from bergline.format.schema.schema import Schema
from bergline.format.types.text import parse_type_text
from bergline.format.types.types import INT, LONG, NestedField, StructType, child_fields
from bergline.table.evolution.layout_change import change_schema
from bergline.table.evolution.schema_update import rebase_schema

COLUMNS = parse_type_text(
    "struct<a: int, b: int, c: struct<a: int, b: int>, d: list<struct<a: int, b: decimal(9, 2)>>>"
)
assert isinstance(COLUMNS, StructType)
START = new_metadata(
    schema=Schema((msgspec.structs.replace(COLUMNS.fields[0], required=True), *COLUMNS.fields[1:])),
    spec=UNPARTITIONED,
    location="memory://t",
    properties={},
    table_uuid="00000000-0000-0000-0000-000000000001",
    now_ms=1,
    format_version=3,
)
PATHS = st.sampled_from(["a", "b", "c", "d", "e", "c.a", "c.b", "c.e", "d.element", "d.element.a", "d.b", "d.e"])
NAMES = st.sampled_from(["a", "b", "e", "f"])
TYPES = st.sampled_from([INT, LONG, *map(parse_type_text, ("decimal(9, 2)", "decimal(12, 2)", "struct<a: int>"))])
PLACES: st.SearchStrategy[Any] = st.just(("first",)) | st.tuples(st.sampled_from(["after", "before"]), NAMES)
CHANGES: st.SearchStrategy[SchemaChange] = st.one_of(
    st.builds(AddColumn, PATHS, TYPES, doc=st.none() | NAMES, place=st.none() | PLACES),
    st.builds(DropColumn, PATHS),
    st.builds(RenameColumn, PATHS, NAMES),
    st.builds(MoveColumn, PATHS, PLACES),
    st.builds(SetType, PATHS, TYPES),
    # nothing that takes an own change back: whether that was meant, or nothing was, cannot be told from the result
    st.builds(SetRequired, PATHS, st.just(value=False)),
    st.builds(SetDoc, PATHS, NAMES),
    st.builds(SetIdentifierFields, st.lists(st.sampled_from(["a", "b"]), max_size=1).map(tuple)),
)


def possible(base: TableMetadata, wishes: list[SchemaChange]) -> list[SchemaChange]:
    """Those of the changes that can be made one after the other."""
    work, made = evolving(base), []
    for wanted in wishes:
        try:
            after = apply_schema_change(work, wanted)
            check_evolved(after)
        except BerglineError:
            continue
        work = after
        made.append(wanted)
    return made


def committed(base: TableMetadata, schema: Schema) -> TableMetadata:
    return apply_updates(base, change_schema(base, schema).updates, base_location=None, now_ms=2)


def evolved(wishes: list[SchemaChange]) -> TableMetadata:
    return committed(START, rebase_schema(START, START, wishes))


def attributes(field: NestedField) -> list[Any]:
    return [field.name, None if child_fields(field.type) else field.type, field.doc, field.required]


def around(schema: Schema, field_id: int) -> set[int]:
    """The columns that one is inside of."""
    parent = schema.parents[field_id]
    return set() if parent is None else {parent.id, *around(schema, parent.id)}


@given(st.lists(CHANGES, max_size=6), st.lists(CHANGES, min_size=1, max_size=6))
def test_changes_of_two_writers_merge_or_conflict(first: list[SchemaChange], second: list[SchemaChange]) -> None:
    theirs, mine = possible(START, first), possible(START, second)
    assume(theirs)
    assume(mine)
    base, alone = evolved(theirs), evolved(mine)
    try:
        merged = committed(base, rebase_schema(START, base, mine))
    except ConflictError:
        return
    old, last = START.schema, START.last_column_id
    for field_id, before in old.ids.items():
        kept = field_id in base.schema.ids and field_id in alone.schema.ids
        assert kept == (field_id in merged.schema.ids)
        if kept:
            one, other = (attributes(s.schema.ids[field_id]) for s in (base, alone))
            expected = [o if o != b else t for b, t, o in zip(attributes(before), one, other, strict=True)]
            assert attributes(merged.schema.ids[field_id]) == expected
    dropped = old.ids.keys() - alone.schema.ids.keys()
    assert merged.schema.ids.keys() >= {i for i in base.schema.ids if i > last and not around(base.schema, i) & dropped}
    assert merged.last_column_id >= base.last_column_id
    mine_new = [f.name for i, f in sorted(alone.schema.ids.items()) if i > last]
    found = [f.name for i, f in sorted(merged.schema.ids.items()) if i > base.last_column_id]
    assert found == mine_new


@given(st.lists(st.lists(CHANGES, max_size=4), max_size=5))
def test_ids_are_never_used_again(blocks: list[list[SchemaChange]]) -> None:
    table = START
    for block in blocks:
        fresh = table.last_column_id
        after = committed(table, rebase_schema(table, table, possible(table, block)))
        new = after.schema.ids.keys() - table.schema.ids.keys()
        assert all(i > fresh for i in new)
        assert after.last_column_id >= fresh
        table = after

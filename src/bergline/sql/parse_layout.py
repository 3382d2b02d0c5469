"""Parser for Iceberg's own parts of ALTER TABLE: partition fields, write order, identifier fields."""

from typing import Literal

from bergline.sql.cursor import Cursor
from bergline.sql.parse_terms import parse_partition_term, parse_sort_terms
from bergline.sql.table_statements import (
    AddPartitionField,
    DropPartitionField,
    ReplacePartitionField,
    SetWriteOrder,
)


def parse_add_field(cursor: Cursor) -> AddPartitionField:
    """Behind ADD PARTITION FIELD."""
    return AddPartitionField(parse_partition_term(cursor), _alias(cursor))


def parse_drop_field(cursor: Cursor) -> DropPartitionField:
    """Behind DROP PARTITION FIELD."""
    return DropPartitionField(_name_or_term(cursor))


def parse_replace_field(cursor: Cursor) -> ReplacePartitionField:
    """Behind REPLACE PARTITION FIELD."""
    old = _name_or_term(cursor)
    cursor.expect("WITH")
    return ReplacePartitionField(old, parse_partition_term(cursor), _alias(cursor))


def parse_identifier_fields(cursor: Cursor) -> tuple[str, ...]:
    """Behind SET or DROP IDENTIFIER FIELDS."""
    paths = [".".join(cursor.expect_dotted_name("a column's name"))]
    while cursor.accept_symbol(","):
        paths.append(".".join(cursor.expect_dotted_name("a column's name")))
    return tuple(paths)


def parse_write_order(cursor: Cursor) -> SetWriteOrder:
    """Behind WRITE: `[DISTRIBUTED BY PARTITION] [LOCALLY] ORDERED BY terms | UNORDERED`, the two parts in any order."""
    if not cursor.token.is_word("DISTRIBUTED", "LOCALLY", "ORDERED", "UNORDERED"):
        cursor.fail("`DISTRIBUTED BY PARTITION`, `LOCALLY ORDERED BY`, `ORDERED BY`, `UNORDERED`")
    distributed, order = _distributed(cursor), _order(cursor)
    distributed = distributed or _distributed(cursor)
    terms, mode = order or ((), None)
    return SetWriteOrder(terms, "hash" if distributed else mode)


def _distributed(cursor: Cursor) -> bool:
    if not cursor.accept("DISTRIBUTED"):
        return False
    cursor.expect("BY", "PARTITION")
    return True


def _order(cursor: Cursor) -> tuple[tuple[str, ...], Literal["none", "range"] | None] | None:
    if cursor.accept("UNORDERED"):
        return (), "none"
    locally = cursor.accept("LOCALLY")
    if not cursor.accept("ORDERED"):
        return cursor.fail("`ORDERED BY`") if locally else None
    cursor.expect("BY")
    return parse_sort_terms(cursor), None if locally else "range"


def _alias(cursor: Cursor) -> str | None:
    return cursor.expect_name("a name for the partition field") if cursor.accept("AS") else None


def _name_or_term(cursor: Cursor) -> str:
    """The name of a field as it is, or a term."""
    if cursor.is_at_name and not cursor.following.is_symbol("(") and not cursor.following.is_symbol("."):
        return cursor.expect_name("the name of a partition field")
    return parse_partition_term(cursor)

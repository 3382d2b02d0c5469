"""Parser for ALTER TABLE, all but branches and tags."""

from typing import Literal

from bergline.errors import UnsupportedError
from bergline.sql.parse.columns import parse_added_columns, parse_position, parse_replaced_columns
from bergline.sql.parse.literals import parse_literal
from bergline.sql.parse.properties import check_table_properties, parse_properties, parse_property_keys
from bergline.sql.parse.spark_types import parse_spark_type
from bergline.sql.parse.terms import parse_partition_term, parse_sort_terms
from bergline.sql.statements.statements import Name
from bergline.sql.statements.table_statements import (
    AddColumns,
    AddPartitionField,
    Alteration,
    AlterColumns,
    AlterTable,
    ColumnChange,
    DropColumns,
    DropIdentifierFields,
    DropPartitionField,
    IdentifierFieldsClause,
    MoveColumnClause,
    RenameColumnClause,
    RenameTable,
    ReplaceColumns,
    ReplacePartitionField,
    SetColumnDefault,
    SetColumnDoc,
    SetColumnRequired,
    SetColumnType,
    SetTableLocation,
    SetTableProperties,
    SetWriteOrder,
)
from bergline.sql.text.cursor import Cursor

_COLUMN = "a column's name"


def parse_alter_table(cursor: Cursor) -> AlterTable | None:
    """ALTER TABLE; None if the text is another kind of statement."""
    if not cursor.accept("ALTER", "TABLE"):
        return None
    table = cursor.expect_subject("a table name")
    change = _change(cursor)
    cursor.expect_end()
    return AlterTable(table, change)


def _change(cursor: Cursor) -> Alteration:
    verb = cursor.expect_one_of(
        "ADD", "DROP", "RENAME", "ALTER", "CHANGE", "SET", "UNSET", "REPLACE", "WRITE", "CREATE"
    )
    match verb:
        case "ADD":
            return _add(cursor)
        case "DROP":
            return _drop(cursor)
        case "RENAME":
            return _rename(cursor)
        case "ALTER" | "CHANGE":
            return _alter_columns(cursor, verb)
        case "SET":
            return _set(cursor)
        case "UNSET":
            cursor.expect("TBLPROPERTIES")
            cursor.accept("IF", "EXISTS")
            return SetTableProperties(removals=parse_property_keys(cursor))
        case "REPLACE":
            if cursor.accept("COLUMNS"):
                return ReplaceColumns(parse_replaced_columns(cursor))
            if not cursor.accept("PARTITION", "FIELD"):
                cursor.fail("`COLUMNS`, `PARTITION FIELD`, `BRANCH`, `TAG`")
            return parse_replace_field(cursor)
        case "WRITE":
            return parse_write_order(cursor)
    return cursor.fail("`BRANCH`, `TAG`, `OR REPLACE`")


def _add(cursor: Cursor) -> Alteration:
    if cursor.accept("PARTITION", "FIELD"):
        return parse_add_field(cursor)
    if not cursor.accept("COLUMN") and not cursor.accept("COLUMNS"):
        cursor.fail("`COLUMN`, `COLUMNS`, `PARTITION FIELD`")
    return AddColumns(parse_added_columns(cursor))


def _drop(cursor: Cursor) -> Alteration:
    if cursor.accept("PARTITION", "FIELD"):
        return parse_drop_field(cursor)
    if cursor.accept("IDENTIFIER", "FIELDS"):
        return DropIdentifierFields(parse_identifier_fields(cursor))
    if not cursor.accept("COLUMN") and not cursor.accept("COLUMNS"):
        cursor.fail("`COLUMN`, `COLUMNS`, `PARTITION FIELD`, `IDENTIFIER FIELDS`, `BRANCH`, `TAG`")
    if_exists = cursor.accept("IF", "EXISTS")
    bracket = cursor.accept_symbol("(")
    paths = [cursor.expect_dotted_name(_COLUMN)]
    while cursor.accept_symbol(","):
        paths.append(cursor.expect_dotted_name(_COLUMN))
    if bracket:
        cursor.expect_symbol(")")
    return DropColumns(tuple(paths), if_exists)


def _rename(cursor: Cursor) -> Alteration:
    if cursor.accept("TO"):
        return RenameTable(cursor.expect_dotted_name("a table name"))
    if not cursor.accept("COLUMN"):
        cursor.fail("`COLUMN`, `TO`")
    path = cursor.expect_dotted_name(_COLUMN)
    cursor.expect("TO")
    return RenameColumnClause(path, cursor.expect_name(_COLUMN))


def _set(cursor: Cursor) -> Alteration:
    if cursor.accept("TBLPROPERTIES"):
        return SetTableProperties(check_table_properties(parse_properties(cursor)))
    if cursor.accept("LOCATION"):
        return SetTableLocation(cursor.expect_text("a location in quotes"))
    if cursor.accept("IDENTIFIER", "FIELDS"):
        return IdentifierFieldsClause(parse_identifier_fields(cursor))
    return cursor.fail("`TBLPROPERTIES`, `LOCATION`, `IDENTIFIER FIELDS`")


def _alter_columns(cursor: Cursor, verb: str) -> AlterColumns:
    if not cursor.accept("COLUMN"):
        cursor.accept("COLUMNS")
    changes: list[ColumnChange] = []
    while True:
        path = cursor.expect_dotted_name(_COLUMN)
        changes += _column_changes(cursor, path, may_be_whole=verb == "CHANGE")
        if not cursor.accept_symbol(","):
            return AlterColumns(tuple(changes))


def _column_changes(cursor: Cursor, path: Name, *, may_be_whole: bool) -> list[ColumnChange]:
    if cursor.accept("TYPE"):
        return [SetColumnType(path, parse_spark_type(cursor, ".".join(path)))]
    if cursor.accept("COMMENT"):
        return [SetColumnDoc(path, cursor.expect_text("a comment in quotes"))]
    if cursor.accept("SET", "NOT", "NULL"):
        return [SetColumnRequired(path, required=True)]
    if cursor.accept("DROP", "NOT", "NULL"):
        return [SetColumnRequired(path, required=False)]
    if cursor.accept("SET", "DEFAULT"):
        return [SetColumnDefault(path, parse_literal(cursor))]
    if cursor.accept("DROP", "DEFAULT"):
        return [SetColumnDefault(path, None)]
    if position := parse_position(cursor):
        return [MoveColumnClause(path, position)]
    if may_be_whole and cursor.is_at_name:
        return _whole_column(cursor, path)
    return cursor.fail(
        "`TYPE`, `COMMENT`, `SET NOT NULL`, `DROP NOT NULL`, `SET DEFAULT`, `DROP DEFAULT`, `FIRST`, `AFTER`"
    )


def _whole_column(cursor: Cursor, path: Name) -> list[ColumnChange]:
    """`CHANGE COLUMN name name type …`, as Hive has it."""
    name = cursor.expect_name(_COLUMN)
    if name.casefold() != path[-1].casefold():
        raise UnsupportedError(
            f"cannot rename column `{'.'.join(path)}` with CHANGE", hints=["use ALTER TABLE … RENAME COLUMN … TO …"]
        )
    changes: list[ColumnChange] = [SetColumnType(path, parse_spark_type(cursor, ".".join(path)))]
    if cursor.accept("COMMENT"):
        changes.append(SetColumnDoc(path, cursor.expect_text("a comment in quotes")))
    if position := parse_position(cursor):
        changes.append(MoveColumnClause(path, position))
    return changes


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

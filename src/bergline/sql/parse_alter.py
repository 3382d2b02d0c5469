"""Parser for ALTER TABLE, all but branches and tags."""

from bergline.errors import UnsupportedError
from bergline.sql.cursor import Cursor
from bergline.sql.literals import parse_literal
from bergline.sql.parse_columns import parse_added_columns, parse_position, parse_replaced_columns
from bergline.sql.parse_layout import (
    parse_add_field,
    parse_drop_field,
    parse_identifier_fields,
    parse_replace_field,
    parse_write_order,
)
from bergline.sql.parse_properties import check_table_properties, parse_properties, parse_property_keys
from bergline.sql.spark_types import parse_spark_type
from bergline.sql.statements import Name
from bergline.sql.table_statements import (
    AddColumns,
    Alteration,
    AlterColumns,
    AlterTable,
    ColumnChange,
    DropColumns,
    DropIdentifierFields,
    MoveColumn,
    RenameColumn,
    RenameTable,
    ReplaceColumns,
    SetColumnDefault,
    SetColumnDoc,
    SetColumnRequired,
    SetColumnType,
    SetIdentifierFields,
    SetTableLocation,
    SetTableProperties,
)

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
    return RenameColumn(path, cursor.expect_name(_COLUMN))


def _set(cursor: Cursor) -> Alteration:
    if cursor.accept("TBLPROPERTIES"):
        return SetTableProperties(check_table_properties(parse_properties(cursor)))
    if cursor.accept("LOCATION"):
        return SetTableLocation(cursor.expect_text("a location in quotes"))
    if cursor.accept("IDENTIFIER", "FIELDS"):
        return SetIdentifierFields(parse_identifier_fields(cursor))
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
        return [MoveColumn(path, position)]
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
        changes.append(MoveColumn(path, position))
    return changes

"""ALTER TABLE, all but branches and tags, and COMMENT ON TABLE: each statement is one commit."""

from typing import Literal, assert_never

import msgspec
import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError
from bergline.format.metadata.properties import FORMAT_VERSION, RESERVED_PROPERTIES, asked_format_version
from bergline.lake.lake import Lake
from bergline.sql.grammar.columns import check_no_constraint, parse_added_columns, parse_replaced_columns
from bergline.sql.grammar.properties import check_table_properties, parse_properties, parse_property_keys
from bergline.sql.grammar.spark_types import check_collation
from bergline.sql.grammar.terms import parse_partition_term, parse_sort_terms
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.alter_columns import (
    COLUMN,
    AddColumns,
    AlterColumns,
    ColumnAlteration,
    DropColumns,
    RenameColumnClause,
    ReplaceColumns,
    alter_columns,
    parse_alter_columns,
    parse_drop_columns,
    parse_rename_column,
    spelled,
)
from bergline.sql.statements.namespaces import parse_comment
from bergline.sql.statements.statement import NO_ROWS, LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name
from bergline.table.table import Table

_DISTRIBUTION = "write.distribution-mode"
_SHOWN_ONLY = (RESERVED_PROPERTIES - {FORMAT_VERSION}) | {"format", "sort-order", "identifier-fields"}


class SetTableProperties(msgspec.Struct, frozen=True):
    """SET and UNSET TBLPROPERTIES, and COMMENT ON TABLE."""

    updates: dict[str, str] = msgspec.field(default_factory=dict)
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
    ColumnAlteration
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


class AlterTable(LakeStatement, frozen=True):
    """ALTER TABLE: one change."""

    table: Name
    change: Alteration


def parse_alter_table(cursor: Cursor) -> AlterTable:
    """Parse what follows ALTER TABLE."""
    table = cursor.expect_subject("a table name")
    change = _change(cursor)
    cursor.expect_end()
    return AlterTable(table, change)


def parse_comment_on_table(cursor: Cursor) -> AlterTable:
    """Parse what follows COMMENT ON TABLE."""
    table = cursor.expect_subject("a table name")
    return AlterTable(table, SetTableProperties(*parse_comment(cursor)))


def _change(cursor: Cursor) -> Alteration:
    if cursor.accept("DEFAULT", "COLLATION"):
        check_collation(cursor, f"`{'.'.join(cursor.subject or ())}`")
        return SetTableProperties()
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
            return parse_alter_columns(cursor, may_be_whole=verb == "CHANGE")
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
            return _replace_field(cursor)
        case "WRITE":
            return _write_order(cursor)
    return cursor.fail("`BRANCH`, `TAG`, `OR REPLACE`")


def _add(cursor: Cursor) -> Alteration:
    if cursor.accept("PARTITION", "FIELD"):
        return _add_field(cursor)
    check_no_constraint(cursor)
    if not cursor.accept("COLUMN") and not cursor.accept("COLUMNS"):
        cursor.fail("`COLUMN`, `COLUMNS`, `PARTITION FIELD`")
    return AddColumns(parse_added_columns(cursor))


def _drop(cursor: Cursor) -> Alteration:
    if cursor.accept("PARTITION", "FIELD"):
        return _drop_field(cursor)
    if cursor.accept("IDENTIFIER", "FIELDS"):
        return DropIdentifierFields(_identifier_fields(cursor))
    check_no_constraint(cursor)
    if not cursor.accept("COLUMN") and not cursor.accept("COLUMNS"):
        cursor.fail("`COLUMN`, `COLUMNS`, `PARTITION FIELD`, `IDENTIFIER FIELDS`, `BRANCH`, `TAG`")
    return parse_drop_columns(cursor)


def _rename(cursor: Cursor) -> Alteration:
    if cursor.accept("TO"):
        return RenameTable(cursor.expect_dotted_name("a table name"))
    if not cursor.accept("COLUMN"):
        cursor.fail("`COLUMN`, `TO`")
    return parse_rename_column(cursor)


def _set(cursor: Cursor) -> Alteration:
    if cursor.accept("TBLPROPERTIES"):
        return SetTableProperties(check_table_properties(parse_properties(cursor)))
    if cursor.accept("LOCATION"):
        return SetTableLocation(cursor.expect_text("a location in quotes"))
    if cursor.accept("IDENTIFIER", "FIELDS"):
        return IdentifierFieldsClause(_identifier_fields(cursor))
    return cursor.fail("`TBLPROPERTIES`, `LOCATION`, `IDENTIFIER FIELDS`")


def _add_field(cursor: Cursor) -> AddPartitionField:
    """Parse what follows ADD PARTITION FIELD."""
    return AddPartitionField(parse_partition_term(cursor), _alias(cursor))


def _drop_field(cursor: Cursor) -> DropPartitionField:
    """Parse what follows DROP PARTITION FIELD."""
    return DropPartitionField(_name_or_term(cursor))


def _replace_field(cursor: Cursor) -> ReplacePartitionField:
    """Parse what follows REPLACE PARTITION FIELD."""
    old = _name_or_term(cursor)
    cursor.expect("WITH")
    return ReplacePartitionField(old, parse_partition_term(cursor), _alias(cursor))


def _identifier_fields(cursor: Cursor) -> tuple[str, ...]:
    """Parse what follows SET or DROP IDENTIFIER FIELDS."""
    paths = [".".join(cursor.expect_dotted_name(COLUMN))]
    while cursor.accept_symbol(","):
        paths.append(".".join(cursor.expect_dotted_name(COLUMN)))
    return tuple(paths)


def _write_order(cursor: Cursor) -> SetWriteOrder:
    """Parse what follows WRITE: `DISTRIBUTED BY PARTITION`, `[LOCALLY] ORDERED BY terms`, `UNORDERED`."""
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


def alter_table(statement: AlterTable, lakes: Lakes) -> pa.Table | None:
    """Change a table; None if it is not ours."""
    table = lakes.resolve_table(statement.table)
    if table is None:
        return None
    match statement.change:
        case RenameTable(name):
            _rename_table(statement.table, name, lakes)
        case (AddColumns() | ReplaceColumns() | DropColumns() | RenameColumnClause() | AlterColumns()) as change:
            alter_columns(change, table, lakes.engine)
        case IdentifierFieldsClause(paths):
            with table.update_schema() as schema:
                schema.set_identifier_fields([spelled(schema, (path,)) for path in paths])
        case DropIdentifierFields(paths):
            _drop_identifier_fields(table, paths)
        case SetTableProperties(updates, removals):
            _set_properties(table, updates, removals)
        case SetTableLocation(location):
            table.set_location(location)
        case AddPartitionField(term, name):
            with table.update_spec() as spec:
                spec.add_field(term, name=name)
        case DropPartitionField(name_or_term):
            with table.update_spec() as spec:
                spec.remove_field(name_or_term)
        case ReplacePartitionField(old, term, name):
            with table.update_spec() as spec:
                spec.remove_field(old).add_field(term, name=name)
        case SetWriteOrder(terms, distribution):
            with table.transaction() as changing:
                changing.replace_sort_order(terms)
                if distribution is not None:
                    changing.set_properties({_DISTRIBUTION: distribution})
        case _:
            assert_never(statement.change)
    return NO_ROWS


def _drop_identifier_fields(table: Table, paths: tuple[str, ...]) -> None:
    with table.update_schema() as schema:
        names = schema.schema.names_by_id
        left = [names[i] for i in schema.schema.identifier_field_ids]
        for path in paths:
            name = spelled(schema, (path,))
            if name not in left:
                raise InvalidInputError(
                    f"expected an identifier field of `{table.name}`, found `{name}`, which is none"
                )
            left.remove(name)
        schema.set_identifier_fields(left)


def _set_properties(table: Table, updates: dict[str, str], removals: tuple[str, ...]) -> None:
    for key in (*updates, *removals):
        if key in _SHOWN_ONLY:
            raise InvalidInputError(f"expected a property that can be set, found `{key}`, which only shows a state")
    version = asked_format_version(updates, table.metadata.format_version)
    others = {k: v for k, v in updates.items() if k != FORMAT_VERSION}
    with table.transaction() as changing:
        if version != table.metadata.format_version:
            changing.upgrade_format(version)
        changing.set_properties(others, remove=removals)


def _rename_table(old: Name, new: Name, lakes: Lakes) -> None:
    placed = lakes.place_existing(old)
    if placed is None:
        return
    lake, name = placed
    lake.rename_table(TableName(name[:-1], name[-1]), renamed(lake, name, new, lakes))


def renamed(lake: Lake, name: Name, new: Name, lakes: Lakes) -> TableName:
    """The name that RENAME TO gives a table or view of a lake: one without a namespace stays in that of the old one."""
    if len(new) == 1:
        return TableName(name[:-1], new[0])
    if len(new) > 2 and lakes.has(new[0]):  # noqa: PLR2004
        if lakes.name_of(lake) != new[0]:
            raise InvalidInputError(f"expected a name in the lake `{lakes.name_of(lake)}`, found `{'.'.join(new)}`")
        new = new[1:]
    return TableName(new[:-1], new[-1])


ALTER_TABLE = StatementKind(
    variants=(AlterTable,),
    parsers={"ALTER TABLE": parse_alter_table, "COMMENT ON TABLE": parse_comment_on_table},
    run=alter_table,
)

"""DROP TABLE and UNDROP TABLE; REFRESH TABLE and UNCACHE TABLE, which have something to do where an engine caches."""

import pyarrow as pa

from bergline.errors import NotFoundError
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.alter_table import renamed
from bergline.sql.statements.create_table import table_name
from bergline.sql.statements.statement import NO_ROWS, LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name

_TABLE = "a table name"


class DropTable(LakeStatement, frozen=True):
    """DROP TABLE."""

    table: Name
    if_exists: bool = False
    purge: bool = False


class UndropTable(LakeStatement, frozen=True):
    """UNDROP TABLE: bring a dropped table back from the trash."""

    table: Name
    to: Name | None = None


class ForgetCached(LakeStatement, frozen=True):
    """REFRESH TABLE or UNCACHE TABLE of a table or view."""

    table: Name
    if_exists: bool = False
    is_for_good: bool = False
    """Whether nothing is to be cached any more."""


def parse_drop_table(cursor: Cursor) -> DropTable:
    """Parse what follows DROP TABLE."""
    if_exists = cursor.accept("IF", "EXISTS")
    table = cursor.expect_subject(_TABLE)
    purge = cursor.accept("PURGE")
    cursor.expect_end(*(() if purge else ("`PURGE`",)))
    return DropTable(table, if_exists, purge)


def parse_undrop_table(cursor: Cursor) -> UndropTable:
    """Parse what follows UNDROP TABLE."""
    table = cursor.expect_subject(_TABLE)
    to = cursor.expect_dotted_name(_TABLE) if cursor.accept("TO") else None
    cursor.expect_end(*(() if to else ("`TO`",)))
    return UndropTable(table, to)


def parse_uncache_table(cursor: Cursor) -> ForgetCached:
    """Parse what follows UNCACHE TABLE."""
    if_exists = cursor.accept("IF", "EXISTS")
    return ForgetCached(parse_refresh_table(cursor).table, if_exists, is_for_good=True)


def parse_refresh_table(cursor: Cursor) -> ForgetCached:
    """Parse what follows REFRESH TABLE."""
    table = cursor.expect_subject(_TABLE)
    cursor.expect_end()
    return ForgetCached(table)


def drop_table(statement: DropTable, lakes: Lakes) -> pa.Table | None:
    """DROP TABLE; its files stay, unless it is purged."""
    placed = lakes.place_existing(statement.table)
    if placed is None:
        return None
    lake, name = placed[0], table_name(placed[1])
    try:
        if statement.purge:
            lake.purge_table(name)
        else:
            lake.drop_table(name)
    except NotFoundError as error:
        if not statement.if_exists or error.kind not in {"table", "namespace"}:
            raise
    return NO_ROWS


def undrop_table(statement: UndropTable, lakes: Lakes) -> pa.Table | None:
    """UNDROP TABLE, under its own name or another in the same lake."""
    placed = lakes.place(statement.table)
    if placed is None:
        return None
    lake, name = placed
    to = None if statement.to is None else renamed(lake, name, statement.to, lakes)
    lake.undrop_table(table_name(name), to)
    return NO_ROWS


def forget_cached(statement: ForgetCached, lakes: Lakes) -> pa.Table | None:
    """What is cached is the engine's: without one, the table must only exist."""
    try:
        return None if lakes.resolve_relation(statement.table) is None else NO_ROWS
    except NotFoundError as error:
        if error.kind == "table" and statement.if_exists:
            return NO_ROWS
        raise


DROP_TABLE = StatementKind(variants=(DropTable,), parsers={"DROP TABLE": parse_drop_table}, run=drop_table)
UNDROP_TABLE = StatementKind(variants=(UndropTable,), parsers={"UNDROP TABLE": parse_undrop_table}, run=undrop_table)
FORGET_CACHED = StatementKind(
    variants=(ForgetCached,),
    parsers={"REFRESH TABLE": parse_refresh_table, "UNCACHE TABLE": parse_uncache_table},
    run=forget_cached,
)

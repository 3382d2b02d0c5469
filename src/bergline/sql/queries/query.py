"""What a statement that an engine runs means, as closed variants."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from bergline.errors import BerglineError
from bergline.sql.queries.assignments import Assignment, Expression
from bergline.sql.text.tokens import Name, SqlText

CopiedText = tuple[int, int, int]
"""Where a part of a composed text begins and ends, and where it begins in the statement that it was copied from."""
WrapperKind = Literal["EXPLAIN", "DESCRIBE QUERY", "CREATE VIEW", "CACHE TABLE"]


class AsOf(msgspec.Struct, frozen=True):
    """VERSION AS OF or TIMESTAMP AS OF with its literal, or with an expression that an engine evaluates."""

    kind: Literal["version", "timestamp"]
    value: int | str | None
    expression: SqlText | None = None


class TableUse(msgspec.Struct, frozen=True):
    """A table in a query: where its name and time travel clause are in the text, and whether it has an alias."""

    name: Name
    start: int
    end: int
    as_of: AsOf | None
    add_alias: bool
    alias: Literal["last", "whole", "unclear"] = "last"
    """The last part of the name, or all of it where others in the query are called by that part too.

    Unclear is what `db.orders.id` would mean where columns are qualified by the last part alone as well.
    """
    options: tuple[tuple[str, str], ...] = ()
    """Of `db.orders WITH (…)`."""
    is_stream: bool = False
    """Of `STREAM db.orders`."""


class Query(msgspec.Struct, frozen=True):
    """What a statement reads; `columns` are those of three or more parts, with where each part starts.

    `writes` says that it does more than read: that it puts the rows into a table of the engine's own.
    """

    sql: SqlText
    tables: tuple[TableUse, ...]
    columns: tuple[tuple[Name, tuple[int, ...]], ...] = ()
    writes: bool = False
    within: tuple[str, int] = ("", 0)
    """The statement that it is part of, as the user wrote it, and its offset there: errors show that text."""
    parts: tuple[CopiedText, ...] = ()
    """Where its parts were written in the statement, if it was composed of them."""
    parsed: Any = None
    """What an engine's own parser made of the text, if it was asked; the engine knows what that is."""

    @property
    def text(self) -> str:
        """The text of the query."""
        return self.sql.text


class Insert(msgspec.Struct, frozen=True):
    """INSERT INTO or OVERWRITE; `source` is the query that gives the rows, `whole` the statement with what it reads."""

    table: Name
    overwrite: bool
    columns: tuple[str, ...] | None
    source: Query
    """What comes before the query is blanked in its text, so that offsets are those of the statement."""
    whole: Query
    by_name: bool = False
    partition: tuple[tuple[str, str | None], ...] = ()
    """Columns of PARTITION (…), each with the text of its value or None."""
    if_not_exists: bool = False
    replace_where: str | None = None
    """The condition of INSERT INTO … REPLACE WHERE."""
    options: dict[str, str] = {}
    """Of INSERT INTO t WITH (…)."""
    schema_evolution: bool = False
    """Of INSERT WITH SCHEMA EVOLUTION INTO t."""


class MultiInsert(msgspec.Struct, frozen=True):
    """FROM … INSERT … INSERT …: several inserts from one source, in their order."""

    inserts: tuple[Insert, ...]
    whole: Query


class RowLevel(msgspec.Struct, frozen=True):
    """DELETE FROM, or UPDATE if there are assignments; `whole` is the statement with all tables in it."""

    keyword: Literal["DELETE", "UPDATE"]
    table: Name
    target: TableUse
    """The table as it stands in the text."""
    whole: Query
    start: int
    """Where the keyword is."""
    from_end: int
    """Where the name of the table and its alias end."""
    alias: str | None = None
    assignments: tuple[Assignment, ...] = ()
    set_end: int = 0
    """Where the last value of SET ends."""
    condition: Expression | None = None
    """The condition of WHERE."""


class TruncateTable(msgspec.Struct, frozen=True):
    """TRUNCATE TABLE, or the partitions of it that have these values, as they are written."""

    table: Name
    partition: tuple[tuple[str, str | None], ...] = ()


class QueryWrapper(msgspec.Struct, frozen=True):
    """A statement that wraps a query: `head` is what comes before it, as written.

    Of an INSERT or a CREATE TABLE … AS it is the rows' query that counts where the table is a lake's.
    """

    kind: WrapperKind
    head: SqlText
    query: Query
    target: Name | None = None
    """The table that rows would go to."""
    source: Query | None = None
    """The query that would give them."""


class OtherStatement(msgspec.Struct, frozen=True):
    """A statement that we do not run; `tables` are all names that could be tables, `error` why it could not be read.

    `subject` is the table or namespace that it is about. What an engine's own parser refuses is left to the engine.
    """

    keyword: str
    tables: tuple[Name, ...]
    error: BerglineError | None = None
    subject: Name | None = None
    leave_to_engine: bool = False


QueryReader = Callable[[SqlText], Query | OtherStatement]
"""Finds the tables of a query; for a text that is none, or that cannot be read, what is known of it."""

"""What a statement means, as closed variants."""

import datetime as dt
from typing import Any, Literal

import msgspec

from bergline.errors import BerglineError, InvalidInputError
from bergline.format.metadata.refs import SnapshotRefType
from bergline.table.references.ref_changes import Retention

Name = tuple[str, ...]
WrapperKind = Literal["EXPLAIN", "DESCRIBE QUERY", "CREATE VIEW", "CACHE TABLE"]


class CreateRef(msgspec.Struct, frozen=True):
    """ALTER TABLE … CREATE [OR REPLACE] BRANCH or TAG."""

    table: Name
    ref: str
    kind: SnapshotRefType
    snapshot_id: int | None = None
    retention: Retention = Retention()
    if_not_exists: bool = False
    or_replace: bool = False


class ReplaceRef(msgspec.Struct, frozen=True):
    """ALTER TABLE … REPLACE BRANCH or TAG."""

    table: Name
    ref: str
    kind: SnapshotRefType
    snapshot_id: int | None = None
    retention: Retention = Retention()


class DropRef(msgspec.Struct, frozen=True):
    """ALTER TABLE … DROP BRANCH or TAG."""

    table: Name
    ref: str
    kind: SnapshotRefType
    if_exists: bool = False


class Moment(msgspec.Struct, frozen=True):
    """A point in time as written: a literal still without its zone, or None for now."""

    literal: dt.datetime | None


class SqlParameter(msgspec.Struct, frozen=True):
    """`:name`, or None for `?`: a value that comes with the statement."""

    name: str | None


class CallProcedure(msgspec.Struct, frozen=True):
    """CALL […].system.procedure(…); values are text, numbers, booleans, Moment, SqlParameter, tuples or mappings.

    `error` says why the arguments could not be read: it counts only if the procedure is ours.
    """

    procedure: Name
    positional: tuple[Any, ...] = ()
    named: dict[str, Any] = {}
    error: InvalidInputError | None = None


class AsOf(msgspec.Struct, frozen=True):
    """VERSION AS OF or TIMESTAMP AS OF with its literal, or with the text of an expression that an engine works out."""

    kind: Literal["version", "timestamp"]
    value: int | str | None
    expression: str | None = None


class TableUse(msgspec.Struct, frozen=True):
    """A table in a query: where its name and time travel clause stand in the text, and whether it has an alias."""

    name: Name
    start: int
    end: int
    as_of: AsOf | None
    add_alias: bool
    alias: Literal["last", "whole", "unclear"] = "last"
    """The last part of the name, or all of it where others in the query are called by that part too.

    Unclear is what `db.orders.id` would mean where columns are qualified by the last part alone as well.
    """


class Query(msgspec.Struct, frozen=True):
    """What a statement reads; `columns` are those of three or more parts, with where each part starts.

    `writes` says that it does more than read: that it puts the rows into a table of the engine's own.
    """

    text: str
    tables: tuple[TableUse, ...]
    columns: tuple[tuple[Name, tuple[int, ...]], ...] = ()
    writes: bool = False


class Insert(msgspec.Struct, frozen=True):
    """INSERT INTO or OVERWRITE; `source` is the query that gives the rows, `whole` the statement with what it reads."""

    table: Name
    overwrite: bool
    columns: tuple[str, ...] | None
    source: str
    whole: Query
    by_name: bool = False
    partition: tuple[tuple[str, str | None], ...] = ()
    """Columns of PARTITION (…), each with the text of its value or None."""
    if_not_exists: bool = False
    replace_where: str | None = None
    """The condition of INSERT INTO … REPLACE WHERE."""
    options: dict[str, str] = {}
    """Of INSERT INTO t WITH (…)."""


class QueryWrapper(msgspec.Struct, frozen=True):
    """A statement around a query: `head` is what stands before it, as written.

    Of an INSERT or a CREATE TABLE … AS it is the rows' query that counts where the table is a lake's.
    """

    kind: WrapperKind
    head: str
    query: Query
    target: Name | None = None
    """The table that rows would go to."""
    source: str | None = None
    """The query that would give them."""


class OtherStatement(msgspec.Struct, frozen=True):
    """A statement that we do not run; `tables` are all names that could be tables, `error` why it could not be read.

    `subject` is the table or namespace that it is about.
    """

    keyword: str
    tables: tuple[Name, ...]
    error: BerglineError | None = None
    subject: Name | None = None

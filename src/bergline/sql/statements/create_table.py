"""CREATE TABLE, CREATE OR REPLACE TABLE and REPLACE TABLE."""

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count, pairwise

import msgspec
import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import BerglineError, InvalidInputError, UnsupportedError
from bergline.format.metadata.properties import asked_format_version
from bergline.format.metadata.table_metadata import DEFAULT_FORMAT_VERSION
from bergline.format.schema.schema import Schema, fresh_type
from bergline.format.types.defaults import encode_default
from bergline.format.types.types import NestedField
from bergline.lake.lake import Lake
from bergline.sql.grammar.columns import ColumnDefinition, parse_created_columns
from bergline.sql.grammar.literals import default_value
from bergline.sql.grammar.properties import check_table_properties, parse_properties
from bergline.sql.grammar.spark_types import check_collation, parse_spark_type
from bergline.sql.grammar.table_text import partition_terms
from bergline.sql.grammar.terms import column_term, parse_partition_term
from bergline.sql.names.resolve import Lakes, ViewTarget, new_table_name
from bergline.sql.queries.query import Query
from bergline.sql.statements.statement import NO_ROWS, LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, SqlText, Token, TokenKind
from bergline.table.evolution.column_arguments import plain_default
from bergline.table.scans.version import BranchRead
from bergline.table.table import Table

_ICEBERG, _PARQUET = "iceberg", "parquet"
_QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_SPARKS_CLAUSES = ("ROW", "STORED", "SKEWED", "SORTED", "CLUSTER")
_CLAUSES = "`USING`, `PARTITIONED BY`, `COMMENT`, `LOCATION`, `TBLPROPERTIES`, `AS`, the end of the statement"


class CreateTable(LakeStatement, frozen=True):
    """CREATE TABLE, CREATE OR REPLACE TABLE (both flags) and REPLACE TABLE (`replaces` alone)."""

    table: Name
    provider: str | None = None
    columns: tuple[ColumnDefinition, ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    location: str | None = None
    if_not_exists: bool = False
    creates: bool = True
    replaces: bool = False
    source: SqlText | None = None
    """The text of the query that gives columns and rows: such a table is created and filled by the engine."""
    query: Query | None = None
    """What that query reads."""
    whole: Query | None = None
    """The statement with the tables that it reads, for an engine's own table."""
    like: Name | None = None
    """The table whose columns and partitions it gets."""
    refusal: BerglineError | None = None
    """Why a lake cannot have the table: one of another format is read only as far as an engine needs it."""


def parse_create_table(cursor: Cursor, *, creates: bool, replaces: bool) -> CreateTable:
    """Parse what follows CREATE [OR REPLACE] TABLE or REPLACE TABLE."""
    provider, outline = _provider(cursor.sql.tokens), Cursor(cursor.sql)
    if provider in {None, _ICEBERG}:
        return _parse(cursor, creates=creates, replaces=replaces)
    refusal: BerglineError = InvalidInputError(
        f"expected `USING iceberg` for a table of a lake, found `{provider}`",
        hints=["`spark_catalog.default.t` is a table of Spark's own, which can have any format"],
    )
    if provider == _PARQUET:  # a lake's table whose files are Parquet, as all that are written here
        try:
            return _parse(cursor, creates=creates, replaces=replaces)
        except BerglineError as error:
            refusal = error
    return _parse_outline(outline, provider, refusal, creates=creates, replaces=replaces)


def _parse_outline(
    cursor: Cursor, provider: str | None, refusal: BerglineError, *, creates: bool, replaces: bool
) -> CreateTable:
    """The name of a table in another format, and the query that fills it."""
    while not cursor.accept("TABLE"):
        cursor.advance()
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    table = cursor.expect_subject("a table name")
    depth, before = 0, cursor.token
    while not cursor.is_at_end:
        opens_query = cursor.token.is_word(*_QUERY_WORDS) and not cursor.following.is_word("SERDEPROPERTIES")
        if depth == 0 and opens_query and not before.is_symbol("."):
            break
        before = cursor.advance()
        depth += before.is_symbol("(") - before.is_symbol(")")
    return CreateTable(
        table,
        provider,
        if_not_exists=if_not_exists,
        creates=creates,
        replaces=replaces,
        source=None if cursor.is_at_end else cursor.rest(),
        refusal=refusal,
    )


def _parse(cursor: Cursor, *, creates: bool, replaces: bool) -> CreateTable:
    if_not_exists = creates and not replaces and cursor.accept("IF", "NOT", "EXISTS")
    table = cursor.expect_subject("a table name")
    like = cursor.expect_dotted_name("the name of a table") if cursor.accept("LIKE") else None
    columns: tuple[ColumnDefinition, ...] = ()
    if cursor.token.is_symbol("(") and not cursor.following.is_word("SELECT", "WITH", "VALUES"):
        columns = parse_created_columns(cursor)
    clauses = _Clauses(cursor)
    clauses.parse()
    source = None
    if cursor.accept("AS") or cursor.token.is_word(*_QUERY_WORDS) or cursor.token.is_symbol("("):
        source = cursor.rest()
        if columns or clauses.columns:
            raise UnsupportedError(
                "expected columns or a query, found both", hints=["the columns of AS SELECT are those of the query"]
            )
    else:
        cursor.expect_end(_CLAUSES.rpartition(", ")[0])
    return CreateTable(
        table,
        clauses.provider,
        (*columns, *clauses.columns),
        tuple(clauses.terms),
        clauses.properties,
        clauses.location,
        if_not_exists,
        creates,
        replaces,
        source,
        like=like,
    )


class _Clauses:
    """The clauses after the columns, in any order, each once."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self.provider: str | None = None
        self.location: str | None = None
        self.properties: dict[str, str] = {}
        self.terms: list[str] = []
        self.columns: list[ColumnDefinition] = []

    def parse(self) -> None:
        seen: set[str] = set()
        while clause := self._next():
            if clause in seen:
                self._cursor.fail(f"`{clause}` once")
            seen.add(clause)
            self._read(clause)

    def _next(self) -> str | None:
        cursor = self._cursor
        for words in (
            ("USING",),
            ("PARTITIONED", "BY"),
            ("CLUSTERED", "BY"),
            ("COMMENT",),
            ("LOCATION",),
            ("TBLPROPERTIES",),
            ("OPTIONS",),
            ("DEFAULT", "COLLATION"),
        ):
            if cursor.accept(*words):
                return " ".join(words)
        if cursor.token.is_word(*_SPARKS_CLAUSES):
            table = ".".join(cursor.subject or ())
            raise UnsupportedError(
                f"cannot create `{table}` with `{cursor.rest().text[:40]}`: Iceberg has no such thing"
            )
        return None

    def _read(self, clause: str) -> None:
        cursor = self._cursor
        match clause:
            case "USING":
                self.provider = ".".join(cursor.expect_dotted_name("a format such as `iceberg`")).lower()
            case "PARTITIONED BY":
                self._partitions()
            case "CLUSTERED BY":
                self._buckets()
            case "COMMENT":
                self.properties["comment"] = cursor.expect_text("a comment in quotes")
            case "LOCATION":
                self.location = cursor.expect_text("a location in quotes")
            case "TBLPROPERTIES":
                self.properties.update(check_table_properties(parse_properties(cursor)))
            case "OPTIONS":
                self.properties.update({f"option.{k}": v for k, v in parse_properties(cursor).items()})
            case "DEFAULT COLLATION":
                check_collation(cursor, f"`{'.'.join(cursor.subject or ())}`")

    def _partitions(self) -> None:
        cursor = self._cursor
        cursor.expect_symbol("(")
        while True:
            if cursor.is_at_name and cursor.following.kind is TokenKind.WORD:
                name = cursor.expect_name("a column's name")
                type_ = parse_spark_type(cursor, name)
                doc = cursor.expect_text("a comment in quotes") if cursor.accept("COMMENT") else None
                self.columns.append(ColumnDefinition((name,), type_, doc=doc))
                self.terms.append(column_term((name,)))
            else:
                self.terms.append(parse_partition_term(cursor))
            if cursor.accept_symbol(")"):
                return
            if not cursor.accept_symbol(","):
                cursor.fail("`,`, `)`")

    def _buckets(self) -> None:
        """`CLUSTERED BY (id) INTO 4 BUCKETS` is `bucket(4, id)`."""
        cursor = self._cursor
        cursor.expect_symbol("(")
        column = cursor.expect_dotted_name("a column's name")
        if cursor.token.is_symbol(","):
            raise UnsupportedError("expected one column to make buckets of, found more: Iceberg's buckets have one")
        cursor.expect_symbol(")")
        cursor.expect("INTO")
        number = cursor.expect_whole_number()
        cursor.expect("BUCKETS")
        self.terms.append(f"bucket({number}, {column_term(column)})")


def _provider(tokens: tuple[Token, ...]) -> str | None:
    """The format after USING in CREATE TABLE; joins have a parenthesis there."""
    for using, name in pairwise(tokens):
        if using.is_word("AS", "SELECT"):
            return None
        if using.is_word("USING") and name.kind in {TokenKind.WORD, TokenKind.QUOTED}:
            return name.value.lower()
    return None


def create_table(statement: CreateTable, lakes: Lakes) -> pa.Table | None:
    """A new or replaced table without rows; None if it is not ours."""
    placed = place_new_table(statement, lakes)
    if statement.like is not None:
        return _create_like(statement, statement.like, placed, lakes)
    if placed is None:
        return None
    lake, name = placed
    ids = count(1)
    version = asked_format_version(statement.properties, DEFAULT_FORMAT_VERSION)
    schema = Schema(fields=tuple(_field(column, ids, lakes.engine.time_zone, version) for column in statement.columns))
    if statement.replaces:
        check_exists(statement, lake, name)
        with staged(statement, lakes, placed, schema):
            pass
        return NO_ROWS
    _check_distinct_names(schema)
    lake.create_table(
        name,
        schema,
        partition_by=statement.partition_by,
        properties=_properties(statement, lakes),
        location=statement.location,
        if_not_exists=statement.if_not_exists,
    )
    return NO_ROWS


def _create_like(
    statement: CreateTable, like: Name, placed: tuple[Lake, TableName] | None, lakes: Lakes
) -> pa.Table | None:
    """A table with the columns and partitions of another one, or with the columns of a view."""
    source = lakes.resolve_table_or_view(like)
    if placed is None and source is None:
        return None
    if placed is None or source is None:
        raise UnsupportedError(
            f"cannot create `{'.'.join(statement.table)}` LIKE `{'.'.join(like)}`: one of them is not a lake's table",
            hints=["CREATE TABLE … AS SELECT * FROM … LIMIT 0 takes the columns"],
        )
    if statement.columns or statement.partition_by:
        raise InvalidInputError("expected LIKE or columns and partitions, found both")
    lake, name = placed
    if isinstance(source, ViewTarget):
        schema, terms = source.view.schema, list[str]()
    else:
        schema, terms = source.schema, partition_terms(source.metadata)
    lake.create_table(
        name,
        schema,
        partition_by=terms,
        properties=_properties(statement, lakes),
        location=statement.location,
        if_not_exists=statement.if_not_exists,
    )
    return NO_ROWS


def place_new_table(statement: CreateTable, lakes: Lakes) -> tuple[Lake, TableName] | None:
    """Where a table is to be created; None if it is not ours. Without USING it belongs where its namespace is."""
    placed = lakes.place_existing(statement.table)
    if placed is None and statement.provider == _ICEBERG and not _is_elsewhere(statement.table, lakes):
        placed = lakes.default, statement.table
    if placed is None:
        return None
    if statement.refusal is not None:
        raise statement.refusal
    lake, name = placed[0], table_name(placed[1])
    return lake, new_table_name(lake, (*name.namespace, name.name))


def check_exists(statement: CreateTable, lake: Lake, name: TableName) -> bool:
    """Whether the table exists; NotFoundError for REPLACE if it does not."""
    exists = lake.table_exists(name)
    if not exists and not statement.creates:
        lake.load_table(name)
    return exists


@contextlib.contextmanager
def staged(
    statement: CreateTable,
    lakes: Lakes,
    placed: tuple[Lake, TableName],
    schema: Schema,
    reads: Iterable[BranchRead] = (),
) -> Iterator[Table]:
    """The table that a block fills, created when the block ends; `reads` are the branches that its rows came from."""
    lake, name = placed
    _check_distinct_names(schema)
    with lake.stage_table(
        name,
        schema,
        partition_by=statement.partition_by,
        properties=_properties(statement, lakes),
        location=statement.location,
        replace=statement.replaces,
        reads=reads,
    ) as table:
        yield table


def _properties(statement: CreateTable, lakes: Lakes) -> dict[str, str]:
    owner = {"owner": lakes.engine.user} if lakes.engine.user else {}
    return owner | statement.properties


def _field(column: ColumnDefinition, ids: Iterator[int], time_zone: str, format_version: int) -> NestedField:
    (name,) = column.path
    field_id, type_ = next(ids), fresh_type(column.type, ids)
    default = default_value(column.default, column.type, time_zone, format_version=format_version)
    plain = plain_default(column.type, default, name)
    wire = encode_default(column.type, plain)
    return NestedField(field_id, name, column.required, type_, column.doc, write_default=wire)


def _check_distinct_names(schema: Schema) -> None:
    """SQL ignores case in column names, so a table created by SQL must not depend on it."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if seen.setdefault(name.casefold(), name) != name:
            raise InvalidInputError(
                f"expected column names that differ in more than case, found `{seen[name.casefold()]}` and `{name}`",
                condition="COLUMN_ALREADY_EXISTS",
            )


def _is_elsewhere(table: Name, lakes: Lakes) -> bool:
    return len(table) != 2 and lakes.engine.has_catalog(table[0])  # noqa: PLR2004


def table_name(name: Name) -> TableName:
    """A table's name in its lake, which has a namespace."""
    if len(name) < 2:  # noqa: PLR2004
        raise UnsupportedError(
            f"expected a table name like `db.orders`, found `{'.'.join(name)}`",
            hints=["USE db makes `db` the namespace"],
        )
    return TableName(name[:-1], name[-1])


CREATE_TABLE = StatementKind(
    variants=(CreateTable,),
    parsers={
        "CREATE TABLE": partial(parse_create_table, creates=True, replaces=False),
        "CREATE OR REPLACE TABLE": partial(parse_create_table, creates=True, replaces=True),
        "REPLACE TABLE": partial(parse_create_table, creates=False, replaces=True),
    },
    run=create_table,
)

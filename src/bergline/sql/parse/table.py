"""Parser for CREATE, REPLACE and DROP TABLE."""

from bergline.errors import UnsupportedError
from bergline.sql.parse.columns import parse_created_columns
from bergline.sql.parse.properties import check_table_properties, parse_properties
from bergline.sql.parse.spark_types import parse_spark_type
from bergline.sql.parse.terms import column_term, parse_partition_term
from bergline.sql.statements.table_statements import ColumnDefinition, CreateTable, DropTable, ForgetCached
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import TokenKind

_TABLE = "a table name"
_QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
_SPARKS_CLAUSES = ("ROW", "STORED", "SKEWED", "SORTED", "CLUSTER")
_CLAUSES = "`USING`, `PARTITIONED BY`, `COMMENT`, `LOCATION`, `TBLPROPERTIES`, `AS`, the end of the statement"


def parse_create_table(cursor: Cursor) -> CreateTable | None:
    """CREATE [OR REPLACE] TABLE or REPLACE TABLE; None if the text is another kind of statement."""
    creates = cursor.accept("CREATE")
    replaces = cursor.accept("OR", "REPLACE") if creates else cursor.accept("REPLACE")
    if not cursor.accept("TABLE"):
        return None
    if_not_exists = creates and not replaces and cursor.accept("IF", "NOT", "EXISTS")
    table = cursor.expect_subject(_TABLE)
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
    )


def parse_forget_cached(cursor: Cursor) -> ForgetCached | None:
    """REFRESH TABLE or UNCACHE TABLE; None if the text is another kind of statement."""
    uncaches = cursor.accept("UNCACHE", "TABLE")
    if not uncaches and not cursor.accept("REFRESH", "TABLE"):
        return None
    if_exists = uncaches and cursor.accept("IF", "EXISTS")
    table = cursor.expect_subject(_TABLE)
    cursor.expect_end()
    return ForgetCached(table, if_exists)


def parse_drop_table(cursor: Cursor) -> DropTable | None:
    """DROP TABLE; None if the text is another kind of statement."""
    if not cursor.accept("DROP", "TABLE"):
        return None
    if_exists = cursor.accept("IF", "EXISTS")
    table = cursor.expect_subject(_TABLE)
    purge = cursor.accept("PURGE")
    cursor.expect_end(*(() if purge else ("`PURGE`",)))
    return DropTable(table, if_exists, purge)


class _Clauses:
    """What stands behind the columns, in any order, each once."""

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
        ):
            if cursor.accept(*words):
                return " ".join(words)
        if cursor.token.is_word("LIKE"):
            raise UnsupportedError(
                f"cannot create `{'.'.join(cursor.subject or ())}` LIKE another table",
                hints=["SHOW CREATE TABLE gives the statement to change; CREATE TABLE … AS SELECT takes its columns"],
            )
        if cursor.token.is_word(*_SPARKS_CLAUSES):
            table = ".".join(cursor.subject or ())
            raise UnsupportedError(f"cannot create `{table}` with `{cursor.rest()[:40]}`: Iceberg has no such thing")
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

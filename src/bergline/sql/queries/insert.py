"""INSERT: its head is parsed by tokens, from INSERT to the query that supplies the rows."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from bergline.errors import SqlSyntaxError
from bergline.sql.queries.query import Insert, MultiInsert, OtherStatement, Query, QueryReader
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import Name, SqlText, Token, TokenKind

_QUERY_WORDS = ("SELECT", "VALUES", "TABLE", "FROM", "WITH", "MAP", "REDUCE")
_OPENING, _CLOSING = "([{", ")]}"
_EVOLUTION = ("WITH", "SCHEMA", "EVOLUTION")


class InsertHead(msgspec.Struct, frozen=True):
    """What comes before the rows, and where it is in the text."""

    start: int
    end: int
    table: Name
    overwrite: bool
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    partition: tuple[tuple[str, str | None], ...] = ()
    if_not_exists: bool = False
    replace_where: str | None = None
    options: dict[str, str] = {}
    schema_evolution: bool = False


def read_insert(sql: SqlText, read: QueryReader) -> Insert | MultiInsert | OtherStatement | None:
    """An INSERT into a table, or several; None if the text is none."""
    starts = _insert_starts(sql.tokens)
    return _read_insert(sql, read) if len(starts) < 2 else _read_inserts(sql, starts, read)  # noqa: PLR2004


def _read_inserts(sql: SqlText, starts: Sequence[int], read: QueryReader) -> MultiInsert | OtherStatement | None:
    """FROM … INSERT … INSERT …: each is read without the others."""
    spans = list(pairwise([*starts, len(sql.text)]))
    inserts: list[Insert] = []
    for span in spans:
        insert = _read_insert(sql.blanked([other for other in spans if other != span]), read)
        if not isinstance(insert, Insert):
            return insert
        within = msgspec.structs.replace(insert.source, within=(sql.text, 0))
        inserts.append(msgspec.structs.replace(insert, source=within))
    tables = {use.start: use for insert in inserts for use in insert.whole.tables}
    columns = dict.fromkeys(column for insert in inserts for column in insert.whole.columns)
    whole = Query(sql, tuple(tables[start] for start in sorted(tables)), tuple(columns), writes=True)
    return MultiInsert(tuple(inserts), whole)


def _read_insert(sql: SqlText, read: QueryReader) -> Insert | OtherStatement | None:
    try:
        head = parse_insert_head(sql)
    except SqlSyntaxError as error:
        return OtherStatement("INSERT", dotted_names(sql), error)
    if head is None:
        return None
    source = read(sql.blanked([(head.start, head.end)]).without_semicolon())
    if not isinstance(source, Query):
        if source.leave_to_engine:
            return source
        return OtherStatement("INSERT", dotted_names(sql), source.error)
    return Insert(
        head.table,
        head.overwrite,
        head.columns,
        msgspec.structs.replace(source, within=(sql.text, 0)),
        msgspec.structs.replace(source, sql=sql, writes=True, parsed=None),
        head.by_name,
        head.partition,
        head.if_not_exists,
        head.replace_where,
        head.options,
        head.schema_evolution,
    )


def parse_insert_head(sql: SqlText) -> InsertHead | None:
    """The head of an INSERT into a table, also after WITH or FROM; None if there is none, SqlSyntaxError if broken."""
    cursor = Cursor(sql)
    start = _find_insert(cursor)
    if start is None:
        return None
    cursor.advance()
    schema_evolution = cursor.accept(*_EVOLUTION)
    overwrite = cursor.token.is_word("OVERWRITE")
    cursor.advance()
    if overwrite and (cursor.token.is_word("DIRECTORY") or cursor.following.is_word("DIRECTORY")):
        return None
    cursor.accept("TABLE")
    table = cursor.expect_dotted_name("a table name")
    options = _options(cursor) if cursor.token.is_word("WITH") and cursor.following.is_symbol("(") else {}
    partition = parse_partition_values(cursor) if cursor.accept("PARTITION") else ()
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    by_name = cursor.accept("BY", "NAME")
    columns = None
    if not by_name and cursor.token.is_symbol("(") and not _opens_query(cursor.following):
        columns = _columns(cursor)
    replace_where = _replace_where(cursor) if not overwrite and cursor.accept("REPLACE", "WHERE") else None
    if not (_opens_query(cursor.token) or cursor.token.is_symbol("(")):
        cursor.fail("SELECT, VALUES, TABLE, FROM or WITH")
    end = cursor.token.start
    return InsertHead(
        start,
        end,
        table,
        overwrite,
        columns,
        by_name,
        partition,
        if_not_exists,
        replace_where,
        options,
        schema_evolution,
    )


def _insert_starts(tokens: Sequence[Token]) -> list[int]:
    """Where INSERT INTO and INSERT OVERWRITE stand outside parentheses, perhaps WITH SCHEMA EVOLUTION."""
    depth, found = 0, []
    for place, token in enumerate(tokens):
        if depth == 0 and _is_insert(tokens[place : place + 5]):
            found.append(token.start)
        depth += _step(token)
    return found


def _is_insert(tokens: Sequence[Token]) -> bool:
    if not tokens[0].is_word("INSERT"):
        return False
    evolves = [token.value.upper() for token in tokens[1:4]] == list(_EVOLUTION)
    following = tokens[4:] if evolves else tokens[1:]
    return bool(following) and following[0].is_word("INTO", "OVERWRITE")


def _find_insert(cursor: Cursor) -> int | None:
    """Walk to INSERT INTO or OVERWRITE outside parentheses: the first word, or after WITH and FROM."""
    starts = _insert_starts(cursor.sql.tokens) if cursor.token.is_word("INSERT", "WITH", "FROM") else []
    if not starts:
        return None
    while cursor.token.start < starts[0]:
        cursor.advance()
    return starts[0]


def _step(token: Token) -> int:
    if token.kind is not TokenKind.SYMBOL:
        return 0
    return (token.text in _OPENING) - (token.text in _CLOSING)


def _opens_query(token: Token) -> bool:
    return token.is_word(*_QUERY_WORDS) or token.is_symbol("(")


def _columns(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect_symbol("(")
    names = [cursor.expect_name("a column name")]
    while cursor.accept_symbol(","):
        names.append(cursor.expect_name("a column name"))
    cursor.expect_symbol(")")
    return tuple(names)


def _options(cursor: Cursor) -> dict[str, str]:
    cursor.advance()
    cursor.expect_symbol("(")
    options: dict[str, str] = {}
    while True:
        is_text = cursor.token.kind is TokenKind.STRING
        key = cursor.advance().value if is_text else ".".join(cursor.expect_dotted_name("the name of an option"))
        cursor.accept_symbol("=")
        if cursor.token.kind not in {TokenKind.STRING, TokenKind.NUMBER} and not cursor.token.is_word("TRUE", "FALSE"):
            cursor.fail("a value for the option")
        options[key] = cursor.advance().value
        if not cursor.accept_symbol(","):
            cursor.expect_symbol(")")
            return options


def parse_partition_values(cursor: Cursor) -> tuple[tuple[str, str | None], ...]:
    """The columns after PARTITION, each with the text of its value or None."""
    cursor.expect_symbol("(")
    values: list[tuple[str, str | None]] = []
    while True:
        name = cursor.expect_name("a partition column")
        values.append((name, _value(cursor) if cursor.accept_symbol("=") else None))
        if not cursor.accept_symbol(","):
            cursor.expect_symbol(")")
            return tuple(values)


def _value(cursor: Cursor) -> str:
    """The text of a constant, up to a comma or the closing parenthesis."""
    start, end, depth = cursor.token.start, cursor.token.start, 0
    while depth or not (cursor.token.is_symbol(",") or cursor.token.is_symbol(")")):
        if cursor.token.kind is TokenKind.END:
            cursor.fail("`)`")
        end = cursor.token.end
        depth += _step(cursor.advance())
    if start == end:
        cursor.fail("a value for the partition column")
    return cursor.sql.text[start:end]


def _replace_where(cursor: Cursor) -> str:
    """The text of a condition, up to the keyword that begins the query."""
    start, end, depth = cursor.token.start, cursor.token.start, 0
    before = cursor.token
    while depth or not (cursor.token.is_word(*_QUERY_WORDS) and not before.is_word("DISTINCT")):
        if cursor.token.kind is TokenKind.END:
            cursor.fail("SELECT, VALUES, TABLE, FROM or WITH")
        end = cursor.token.end
        before = cursor.advance()
        depth += _step(before)
    if start == end:
        cursor.fail("a condition")
    return cursor.sql.text[start:end]

"""From SQL text to what it means; text that is not ours comes back as OtherStatement with the names in it."""

import contextlib
import logging
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

import msgspec
import sqlglot
from sqlglot import exp

from bergline.errors import SqlSyntaxError
from bergline.sql.cursor import Cursor
from bergline.sql.parse_call import parse_call
from bergline.sql.parse_insert import parse_insert_head
from bergline.sql.parse_own import OwnStatement, parse_own, parse_subject
from bergline.sql.statements import AsOf, Call, Insert, Name, OtherStatement, Query, TableUse
from bergline.sql.table_statements import CreateTable
from bergline.sql.tokens import Token, TokenKind, tokenize

_LOOSE_NAME = re.compile(r"(?:\w+|`[^`]+`)(?:\.(?:\w+|`[^`]+`))+")
Statement = OwnStatement | Call | Query | Insert | OtherStatement

_READABLE = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "INSERT", "CREATE", "("}
# what Spark could run on a table of its own; other words are mistakes, and Spark says so
_OTHER = {
    "ALTER",
    "ANALYZE",
    "CACHE",
    "COMMENT",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DROP",
    "EXPLAIN",
    "LOAD",
    "MERGE",
    "MSCK",
    "REFRESH",
    "REPAIR",
    "REPLACE",
    "SHOW",
    "TRUNCATE",
    "UNCACHE",
    "UPDATE",
    "USE",
}
_WITH_SUBJECT = {"ANALYZE", "CACHE", "DELETE", "MERGE", "REFRESH", "TRUNCATE", "UNCACHE", "UPDATE"}


def analyze(text: str) -> Statement:
    """What the statement means; why it does not parse is kept in it, and counts only if it is about our tables."""
    try:
        tokens = tokenize(text)
    except SqlSyntaxError as error:
        return OtherStatement(text.split(maxsplit=1)[0].upper(), _loose_names(text), error)
    keyword = tokens[0].text.upper()
    if keyword == "CALL" and (call := parse_call(text)):
        return call
    own = parse_own(text, tokens)
    match own:
        case CreateTable(source=str()):
            return _create_as(text, own, tokens)
        case OtherStatement():
            return msgspec.structs.replace(own, tables=dotted_names(tokens))
        case None:
            return _read(text, tokens) if keyword in _READABLE else _other(text, keyword, tokens)
    return own


def _other(text: str, keyword: str, tokens: list[Token]) -> OtherStatement:
    if keyword not in _OTHER:
        return OtherStatement(keyword, ())
    subject = parse_subject(text) if keyword in _WITH_SUBJECT else None
    return OtherStatement(keyword, dotted_names(tokens), subject=subject)


def _read(text: str, tokens: list[Token]) -> Query | Insert | OtherStatement:
    """A statement that reads or inserts, by sqlglot."""
    keyword = tokens[0].text.upper()
    if keyword in {"INSERT", "WITH"} and (insert := _insert(text, tokens)):
        return insert
    if keyword == "TABLE" and (query := _table_query(text, tokens)):
        return query
    clauses = _time_travel_clauses(tokens)
    try:
        with _without_sqlglots_log():
            tree = sqlglot.parse_one(_blank(text, [(start, end) for start, end, _ in clauses]), dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        return OtherStatement(keyword, dotted_names(tokens), _syntax_error(error))
    match tree:
        case exp.Query() | exp.Values():
            return _query(text, tree, tokens, clauses)
        case exp.Create() if isinstance(tree.expression, exp.Query) and _made(tree) == "TABLE":
            return _query(text, tree.expression, tokens, clauses)
        case exp.Create():
            return OtherStatement(f"CREATE {_made(tree)}", dotted_names(tokens))
    return OtherStatement(keyword, dotted_names(tokens))


def _made(tree: exp.Create) -> str:
    return str(tree.args.get("kind")).upper()


def _create_as(text: str, statement: CreateTable, tokens: list[Token]) -> CreateTable | OtherStatement:
    """CREATE TABLE … AS: what its query reads, should the table be the engine's own."""
    source = statement.source or ""
    start = text.rindex(source)
    query = analyze(source)
    if isinstance(query, OtherStatement):
        return OtherStatement("CREATE", dotted_names(tokens), query.error, statement.table)
    if not isinstance(query, Query):
        return OtherStatement("CREATE TABLE … AS", dotted_names(tokens), subject=statement.table)
    uses = tuple(msgspec.structs.replace(u, start=u.start + start, end=u.end + start) for u in query.tables)
    columns = tuple((name, tuple(s + start for s in starts)) for name, starts in query.columns)
    return msgspec.structs.replace(statement, whole=Query(text, uses, columns))


def dotted_names(tokens: list[Token]) -> tuple[Name, ...]:
    """Every name of two or more parts in the text."""
    names: list[Name] = []
    parts: list[str] = []
    expects_part = True
    for token in tokens:
        is_part = token.kind in {TokenKind.WORD, TokenKind.QUOTED}
        if is_part and expects_part:
            parts.append(token.value)
            expects_part = False
        elif token.is_symbol(".") and parts and not expects_part:
            expects_part = True
        else:
            names += [tuple(parts)] if len(parts) > 1 else []
            parts = [token.value] if is_part else []
            expects_part = not is_part
    return tuple(names)


def _loose_names(text: str) -> tuple[Name, ...]:
    """What could be names in text that has no tokens."""
    return tuple(tuple(part.strip("`") for part in name.split(".")) for name in _LOOSE_NAME.findall(text))


def _query(text: str, tree: exp.Expr, tokens: list[Token], clauses: list[tuple[int, int, AsOf]]) -> Query:
    by_start = {start: (end, as_of) for start, end, as_of in clauses}
    following = {a.end: b for a, b in pairwise(tokens)}
    uses = []
    for table in tree.find_all(exp.Table):
        if not _stands_in(text, table.parts) or (len(table.parts) == 1 and not _may_be_table(table)):
            continue
        spans = [part.meta for part in table.parts]
        start, end = spans[0]["start"], spans[-1]["end"] + 1
        after = following.get(end)
        clause_end, as_of = by_start.get(after.start, (end, None)) if after else (end, None)
        version = table.args.get("version")
        if as_of is None and version is not None:
            as_of = AsOf("timestamp" if version.name == "TIMESTAMP" else "version", None)
        add_alias = not table.alias and not table.args.get("sample")
        uses.append(TableUse(tuple(p.name for p in table.parts), start, clause_end, as_of, add_alias))
    return Query(text, tuple(sorted(uses, key=lambda u: u.start)), _long_columns(text, tree))


def _may_be_table(table: exp.Table) -> bool:
    """Whether a name of one part can be a table: not a function, nor a query that WITH gave this name."""
    if not isinstance(table.this, exp.Identifier):
        return False
    node: exp.Expr = table
    while (parent := node.parent) is not None:
        if any(query.alias.casefold() == table.name.casefold() for query in _named_before(node, parent)):
            return False
        node = parent
    return True


def _named_before(node: exp.Expr, parent: exp.Expr) -> list[exp.Expr]:
    """The queries that WITH names and that a part of a statement sees: inside WITH, those before it."""
    if isinstance(node, exp.With):
        return []
    clause = parent if isinstance(parent, exp.With) else parent.args.get("with_")
    if not isinstance(clause, exp.With):
        return []
    if clause is not parent or clause.args.get("recursive"):
        return list(clause.expressions)
    return list(takewhile(lambda query: query is not node, clause.expressions))


def _stands_in(text: str, parts: Sequence[exp.Expr]) -> bool:
    """Whether names stand in the text where sqlglot says; inside hints its offsets count from the hint's start."""
    return all(
        "start" in p.meta and text[p.meta["start"] : p.meta["end"] + 1].strip("`").replace("``", "`") == p.name
        for p in parts
    ) and not any(p.find_ancestor(exp.Hint) for p in parts[:1])


def _long_columns(text: str, tree: exp.Expr) -> tuple[tuple[Name, tuple[int, ...]], ...]:
    """Columns like `db.orders.id`, which may begin with a table's name."""
    found = []
    for column in tree.find_all(exp.Column):
        parts = _all_parts(column)
        if len(parts) > 2 and _stands_in(text, parts):  # noqa: PLR2004
            found.append((tuple(p.name for p in parts), tuple(p.meta["start"] for p in parts)))
    return tuple(found)


def _all_parts(column: exp.Column) -> list[exp.Expr]:
    """The parts of a column and of the struct fields behind it."""
    parts = list(column.parts)
    node: exp.Expr = column
    while isinstance(node.parent, exp.Dot) and node.parent.this is node:
        node = node.parent
        parts.append(node.expression)
    return parts


def _insert(text: str, tokens: list[Token]) -> Insert | OtherStatement | None:
    """An INSERT into a table; None if the text is none."""
    try:
        head = parse_insert_head(text)
    except SqlSyntaxError as error:
        return OtherStatement("INSERT", dotted_names(tokens), error)
    if head is None:
        return None
    source = _blank(text, [(head.start, head.end)]).rstrip().removesuffix(";")
    query = analyze(source)
    if not isinstance(query, Query):
        why = query.error if isinstance(query, OtherStatement) else None
        return OtherStatement("INSERT", dotted_names(tokens), why)
    return Insert(
        head.table,
        head.overwrite,
        head.columns,
        source,
        msgspec.structs.replace(query, text=text),
        head.by_name,
        head.partition,
        head.if_not_exists,
        head.replace_where,
        head.options,
    )


def _table_query(text: str, tokens: list[Token]) -> Query | None:
    """`TABLE db.orders`, which is short for SELECT * FROM."""
    cursor = Cursor(text)
    cursor.expect("TABLE")
    start = cursor.token.start
    try:
        name = cursor.expect_dotted_name("a table name")
        cursor.expect_end()
    except SqlSyntaxError:
        return None
    end = max(token.end for token in tokens if not token.is_symbol(";") and token.kind is not TokenKind.END)
    return Query(text, (TableUse(name, start, end, None, add_alias=False),))


def _time_travel_clauses(tokens: list[Token]) -> list[tuple[int, int, AsOf]]:
    """`[FOR] VERSION | TIMESTAMP AS OF literal`: where each stands and what it says."""
    clauses = []
    for i, token in enumerate(tokens[:-3]):
        if not token.is_word("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
            continue
        if not (tokens[i + 1].is_word("AS") and tokens[i + 2].is_word("OF")):
            continue
        is_version = token.is_word("VERSION", "SYSTEM_VERSION")
        literal = tokens[i + 3]
        if not is_version and literal.is_word("TIMESTAMP") and tokens[i + 4].kind is TokenKind.STRING:
            literal = tokens[i + 4]
        start = tokens[i - 1].start if i and tokens[i - 1].is_word("FOR") else token.start
        kind = "version" if is_version else "timestamp"
        if literal.kind is TokenKind.STRING:
            clauses.append((start, literal.end, AsOf(kind, literal.value)))  # type: ignore[arg-type]
        elif literal.kind is TokenKind.NUMBER and literal.text.isdecimal():
            clauses.append((start, literal.end, AsOf(kind, int(literal.text))))  # type: ignore[arg-type]
    return clauses


@contextlib.contextmanager
def _without_sqlglots_log() -> Iterator[None]:
    """Text that sqlglot does not know goes to Spark, so its warnings would only confuse."""
    log = logging.getLogger("sqlglot")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _blank(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with these spans as spaces, so that every other offset, line and column stays."""
    for start, end in spans:
        blank = "".join("\n" if c == "\n" else " " for c in text[start:end])
        text = f"{text[:start]}{blank}{text[end:]}"
    return text


def _syntax_error(error: sqlglot.errors.SqlglotError) -> SqlSyntaxError:
    details = getattr(error, "errors", None) or [{}]
    place = details[0]
    found = place.get("highlight") or "the text"
    return SqlSyntaxError(
        f"cannot read the statement near `{found}`", line=place.get("line") or 1, column=place.get("col") or 1
    )

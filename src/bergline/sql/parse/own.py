"""The statements that we run without an engine, by their first word."""

from collections.abc import Callable
from itertools import pairwise

from bergline.errors import BerglineError
from bergline.sql.parse.alter import parse_alter_table
from bergline.sql.parse.namespace import (
    parse_alter_namespace,
    parse_comment,
    parse_create_namespace,
    parse_drop_namespace,
)
from bergline.sql.parse.refs import parse_ref_statement
from bergline.sql.parse.show import parse_describe, parse_show, parse_use
from bergline.sql.parse.table import parse_create_table, parse_drop_table, parse_forget_cached
from bergline.sql.statements.namespace_statements import AlterNamespace, CreateNamespace, DropNamespace
from bergline.sql.statements.show_statements import Show, Use
from bergline.sql.statements.statements import CreateRef, DropRef, OtherStatement, ReplaceRef
from bergline.sql.statements.table_statements import AlterTable, CreateTable, DropTable, ForgetCached
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Token, TokenKind

RefStatement = CreateRef | ReplaceRef | DropRef
NamespaceStatement = CreateNamespace | DropNamespace | AlterNamespace
OwnStatement = RefStatement | CreateTable | DropTable | AlterTable | ForgetCached | NamespaceStatement | Show | Use

_PARSERS: dict[str, tuple[Callable[[Cursor], OwnStatement | None], ...]] = {
    "CREATE": (parse_create_table, parse_create_namespace),
    "REPLACE": (parse_create_table,),
    "DROP": (parse_drop_table, parse_drop_namespace),
    "ALTER": (parse_ref_statement, parse_alter_table, parse_alter_namespace),
    "COMMENT": (parse_comment,),
    "SHOW": (parse_show,),
    "DESCRIBE": (parse_describe,),
    "DESC": (parse_describe,),
    "REFRESH": (parse_forget_cached,),
    "UNCACHE": (parse_forget_cached,),
    "USE": (parse_use,),
}
_LEADING_WORDS = ("FROM", "INTO", "TABLE", "LAZY")


def parse_own(text: str, tokens: list[Token]) -> OwnStatement | OtherStatement | None:
    """The statement, or why it could not be read; None for what we do not know."""
    keyword = tokens[0].text.upper()
    if keyword in {"CREATE", "REPLACE"} and _provider(tokens) not in {None, "iceberg"}:
        return None
    for parse in _PARSERS.get(keyword, ()):
        cursor = Cursor(text)
        try:
            statement = parse(cursor)
        except BerglineError as error:
            return OtherStatement(keyword, (), error, cursor.subject)
        if statement is not None:
            return statement
    return None


def parse_subject(text: str) -> tuple[str, ...] | None:
    """The table that a statement of another kind is about: `DELETE FROM t`, `MERGE INTO t`, `TRUNCATE TABLE t`."""
    cursor = Cursor(text)
    cursor.advance()
    while cursor.token.is_word(*_LEADING_WORDS):
        cursor.advance()
    try:
        return cursor.expect_dotted_name("a table name")
    except BerglineError:
        return None


def _provider(tokens: list[Token]) -> str | None:
    """What CREATE TABLE says after USING; joins have a bracket there."""
    for using, name in pairwise(tokens):
        if using.is_word("AS", "SELECT"):
            return None
        if using.is_word("USING") and name.kind in {TokenKind.WORD, TokenKind.QUOTED}:
            return name.value.lower()
    return None

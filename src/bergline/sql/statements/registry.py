"""All statements that need no engine: which parser reads them, and which function runs them."""

from typing import Any

import pyarrow as pa

from bergline.errors import BerglineError
from bergline.sql.names.resolve import Lakes
from bergline.sql.queries.query import OtherStatement
from bergline.sql.statements.alter_table import ALTER_TABLE
from bergline.sql.statements.analyze_table import ANALYZE_TABLE, ANALYZE_TABLES
from bergline.sql.statements.call import CALL
from bergline.sql.statements.create_table import CREATE_TABLE
from bergline.sql.statements.describe import DESCRIBE
from bergline.sql.statements.drop_table import DROP_TABLE, FORGET_CACHED, UNDROP_TABLE
from bergline.sql.statements.namespaces import NAMESPACES
from bergline.sql.statements.refs import REFS
from bergline.sql.statements.show_names import SHOW_NAMES
from bergline.sql.statements.show_table import SHOW_TABLE
from bergline.sql.statements.statement import LakeStatement, StatementKind
from bergline.sql.statements.views import VIEWS
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import SqlText

STATEMENTS: tuple[StatementKind[Any], ...] = (
    CALL,
    REFS,
    ALTER_TABLE,
    CREATE_TABLE,
    DROP_TABLE,
    UNDROP_TABLE,
    FORGET_CACHED,
    ANALYZE_TABLE,
    ANALYZE_TABLES,
    *NAMESPACES,
    *VIEWS,
    *SHOW_NAMES,
    *SHOW_TABLE,
    *DESCRIBE,
)
"""Where several kinds begin with the same words, the first whose parser accepts a statement takes it."""

HEADS = tuple(dict.fromkeys(head for kind in STATEMENTS for head in kind.parsers))
"""The words that statements of ours begin with."""
FIRST_WORDS = frozenset(head.split()[0] for head in HEADS)
_PARSERS = [(tuple(head.split()), parse) for kind in STATEMENTS for head, parse in kind.parsers.items()]
_BY_VARIANT = {variant: kind for kind in STATEMENTS for variant in kind.variants}


def parse_statement(sql: SqlText) -> LakeStatement | OtherStatement | None:
    """The statement, or why it could not be read; None if it is none of ours."""
    if sql.first_word not in FIRST_WORDS:
        return None
    for words, parse in _PARSERS:
        cursor = Cursor(sql)
        if not cursor.accept(*words):
            continue
        try:
            statement: LakeStatement | None = parse(cursor)
        except BerglineError as error:
            return OtherStatement(sql.first_word, dotted_names(sql), error, cursor.subject)
        if statement is not None:
            return statement
    return None


def run_statement(statement: LakeStatement, lakes: Lakes) -> pa.Table | None:
    """The statement's rows; None if it is about something that is not a lake's."""
    return _BY_VARIANT[type(statement)].run(statement, lakes)


def ref_move(statement: LakeStatement) -> str | None:
    """Which move or drop of a ref a statement is, in words for an error; None if it moves none."""
    return _BY_VARIANT[type(statement)].ref_move(statement)

"""A kind of statement: what it is made of is all that reading and running it needs."""

import pyarrow as pa

from bergline.sql.statements.statement import NO_ROWS, LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, SqlText


class Touch(LakeStatement, frozen=True):
    table: Name


def parse_touch(cursor: Cursor) -> Touch:
    statement = Touch(cursor.expect_subject("a table name"))
    cursor.expect_end()
    return statement


def test_kind_reads_from_behind_its_words_and_moves_no_ref_unless_it_says_so() -> None:
    kind = StatementKind((Touch,), {"TOUCH TABLE": parse_touch}, lambda _, __: NO_ROWS)
    cursor = Cursor(SqlText("TOUCH TABLE db.t;"))
    assert cursor.accept(*["TOUCH", "TABLE"])
    statement = kind.parsers["TOUCH TABLE"](cursor)
    assert statement == Touch(("db", "t"))
    assert cursor.subject == ("db", "t")
    assert kind.ref_move(Touch(("db", "t"))) is None
    assert pa.table({}) == NO_ROWS

"""CALL: arguments as literals."""

import datetime as dt
from decimal import Decimal

import pytest

from bergline.errors import InvalidInputError, SqlSyntaxError
from bergline.sql.parse.call import parse_call
from bergline.sql.statements.statements import CallProcedure, Moment, SqlParameter


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (
            "CALL system.fast_forward('db.orders', 'main', 'staging');",
            CallProcedure(("system", "fast_forward"), ("db.orders", "main", "staging")),
        ),
        (
            "call lake.system.expire_snapshots(table => 'db.orders', OLDER_THAN => TIMESTAMP '2026-01-02 03:04:05')",
            CallProcedure(
                ("lake", "system", "expire_snapshots"),
                (),
                {"table": "db.orders", "older_than": Moment(dt.datetime(2026, 1, 2, 3, 4, 5))},  # noqa: DTZ001
            ),
        ),
        (
            "CALL p(now(), current_timestamp, array(1, -2), true, NULL, 1.5)",
            CallProcedure(("p",), (Moment(None), Moment(None), (1, -2), True, None, Decimal("1.5"))),
        ),
        ("CALL p('it''s', \"d\\nq\")", CallProcedure(("p",), ("it's", "d\nq"))),
        ("CALL p(map('s3a,s3n', 's3', 'a', 'b'), map())", CallProcedure(("p",), ({"s3a,s3n": "s3", "a": "b"}, {}))),
        ("CALL p(:t, n => ?)", CallProcedure(("p",), (SqlParameter("t"),), {"n": SqlParameter(None)})),
        ("CALL p()", CallProcedure(("p",))),
        ("SELECT 1", None),
    ],
)
def test_call_means(text: str, call: CallProcedure | None) -> None:
    assert parse_call(text) == call


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CALL p", "expected `(`, found the end"),
        ("CALL p(1 2)", "expected `,`, found `2`"),
        ("CALL p(a => 1, 2)", "expected a named argument after named ones, found `2`"),
        ("CALL p(concat('a', 'b'))", "found `concat`"),
        ("CALL p(-'a')", "expected a number, found `'a'`"),
        ("CALL p(: 't')", "found `:`"),
        ("CALL p(1) x", "expected the end of the statement, found `x`"),
    ],
)
def test_bad_call_is_a_syntax_error(text: str, message: str) -> None:
    call = parse_call(text)
    assert call is not None
    assert isinstance(call.error, SqlSyntaxError)
    assert message in str(call.error)


@pytest.mark.parametrize("text", ["CALL p(a => 1, a => 2)", "CALL p(TIMESTAMP 'yesterday')"])
def test_bad_arguments_are_refused(text: str) -> None:
    call = parse_call(text)
    assert call is not None
    assert isinstance(call.error, InvalidInputError)


@pytest.mark.parametrize("text", ["CALL", "CALL 1()", "CALL p('a"])
def test_call_without_a_name_or_end_is_a_syntax_error(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_call(text)

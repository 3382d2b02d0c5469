"""CALL: arguments as literals and parameters, and which procedure of which lake runs."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from bergline import Lake, Table
from bergline.errors import (
    InvalidInputError,
    NotFoundError,
    SqlSyntaxError,
)
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.call import CallProcedure, SqlParameter, bind_parameters
from bergline.sql.statements.registry import run_statement
from bergline.sql.text.timestamps import Moment
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import meaning, parsed_call, rows_of, run_text


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
        ("CALL p(`Table` => 'a', `n` => 1)", CallProcedure(("p",), (), {"table": "a", "n": 1})),
        ("CALL p()", CallProcedure(("p",))),
        ("SELECT 1", None),
    ],
)
def test_call_means(text: str, call: CallProcedure | None) -> None:
    assert parsed_call(text) == call


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
    call = parsed_call(text)
    assert call is not None
    assert isinstance(call.error, SqlSyntaxError)
    assert message in str(call.error)


@pytest.mark.parametrize("text", ["CALL p(a => 1, a => 2)", "CALL p(TIMESTAMP 'yesterday')"])
def test_bad_arguments_are_refused(text: str) -> None:
    call = parsed_call(text)
    assert call is not None
    assert isinstance(call.error, InvalidInputError)


@pytest.mark.parametrize("text", ["CALL", "CALL 1()"])
def test_call_without_a_name_is_a_syntax_error_whoever_it_is_for(lake: Lake, text: str) -> None:
    call = parsed_call(text)
    assert call is not None
    assert isinstance(call.error, SqlSyntaxError)
    with pytest.raises(SqlSyntaxError, match=r"expected a procedure like `system\.fast_forward`"):
        run_text(lake, text)


def test_call_without_an_end_is_a_syntax_error() -> None:
    with pytest.raises(SqlSyntaxError):
        parsed_call("CALL p('a")


NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)


def bound(text: str, args: Any) -> CallProcedure:
    call = parsed_call(text)
    assert call is not None
    return bind_parameters(call, args)


@pytest.mark.parametrize(
    ("text", "args", "positional", "named"),
    [
        ("CALL p(:t, n => :n)", {"t": "db.t", "n": 5}, ("db.t",), {"n": 5}),
        ("CALL p(?, ?, 3, n => ?)", ["db.t", True, None], ("db.t", True, 3), {"n": None}),
        ("CALL p(:m)", {"m": NOON}, (Moment(NOON),), {}),
        ("CALL p(:d)", {"d": dt.date(2026, 1, 2)}, (Moment(dt.datetime(2026, 1, 2)),), {}),  # noqa: DTZ001
        ("CALL p(array(:a, 2), :l)", {"a": 1, "l": [3, 4]}, ((1, 2), (3, 4)), {}),
        ("CALL p(map('a', :b))", {"b": "c"}, ({"a": "c"},), {}),
        ("CALL p(1)", None, (1,), {}),
    ],
)
def test_parameters_have_their_values(text: str, args: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert bound(text, args) == CallProcedure(("p",), positional, named)


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("CALL p(:t)", None, "for `:t`, found none"),
        ("CALL p(:t)", ["db.t"], "for `:t`, found none"),
        ("CALL p(:t)", {"T": "db.t"}, "for `:t`, found none"),
        ("CALL p(?, ?)", ["db.t"], "for each `?`, found too few"),
        ("CALL p(?)", "db.t", "for each `?`, found too few"),
        ("CALL p(:t)", {"t": 1.5}, "for `:t`, found 1.5"),
        ("CALL p(1 2)", None, "expected `,`, found `2`"),
    ],
)
def test_parameters_without_a_usable_value_are_the_calls_error(text: str, args: Any, message: str) -> None:
    assert message in str(bound(text, args).error)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ("'db.orders'", InvalidInputError, "expected argument `branch` of `fast_forward`, found none"),
        ("'db.orders', 'main', 'x', 'y'", InvalidInputError, "expected up to 3 arguments"),
        ("table => 'db.orders', brunch => 'x', to => 'y'", NotFoundError, "no argument `brunch`"),
        ("'db.orders', 1, 'x'", InvalidInputError, "expected `string` for argument `branch`"),
        ("'db.nope', 'main', 'x'", NotFoundError, r"no table `db\.nope`"),
        ("'nope.orders', 'main', 'x'", NotFoundError, r"no table `nope\.orders`"),
        ("'db.orders.refs', 'main', 'x'", InvalidInputError, "expected a table, found"),
        ("'db.orders', 'main', 'nope'", NotFoundError, "no branch or tag `nope`"),
    ],
)
def test_bad_arguments_are_one_error(lake: Lake, orders: Table, arguments: str, error: type, message: str) -> None:
    orders.append(order_rows(1))
    with pytest.raises(error, match=message):
        rows_of(lake, f"CALL system.fast_forward({arguments})")


@pytest.mark.parametrize("procedure", ["system.fast_forwad", "fast_forward", "lake.system.fast_forwrd"])
def test_unknown_procedure_lists_near_names_or_the_way_to_call(lake: Lake, procedure: str) -> None:
    with pytest.raises(NotFoundError, match="no procedure") as caught:
        rows_of(lake, f"CALL {procedure}('db.orders', 'a', 'b')")
    assert "fast_forward" in " ".join(caught.value.hints)


def test_procedures_of_other_catalogs_are_not_ours_whatever_their_arguments(lake: Lake) -> None:
    assert rows_of(lake, "CALL other.system.fast_forward('a', 'b', 'c')") is None
    assert rows_of(lake, "CALL other.system.rewrite_data_files(table => 'x', options => struct('a', 'b'))") is None
    with pytest.raises(SqlSyntaxError, match="found `struct`"):
        rows_of(lake, "CALL system.expire_snapshots(table => 'x', options => struct('a', 'b'))")


def test_procedure_of_another_catalog_is_left_to_the_engine(lake: Lake) -> None:
    statement = meaning("CALL other.systems.refresh()")
    assert isinstance(statement, CallProcedure)
    assert run_statement(statement, Lakes({"lake": lake}, "lake")) is None


def test_unknown_procedure_names_those_that_there_are(lake: Lake, orders: Table) -> None:
    with pytest.raises(NotFoundError) as caught:
        run_text(lake, "CALL system.nothing_like_it('db.orders')")
    assert any("create_changelog_view" in hint for hint in caught.value.hints)


def test_argument_that_names_no_namespace_lists_the_near_ones(lake: Lake, orders: Table) -> None:
    lake.create_namespace("sales")
    with pytest.raises(NotFoundError) as caught:
        run_text(lake, "CALL system.ancestors_of('salse.orders')")
    assert "did you mean `sales.orders`?" in caught.value.hints

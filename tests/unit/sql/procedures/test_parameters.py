"""CALL: values for `:name` and `?`."""

import datetime as dt
from typing import Any

import pytest

from bergline.sql.parse.call import parse_call
from bergline.sql.procedures.parameters import bind_parameters
from bergline.sql.statements.statements import CallProcedure, Moment

NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)


def bound(text: str, args: Any) -> CallProcedure:
    call = parse_call(text)
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

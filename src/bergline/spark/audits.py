"""Audits: what must hold of a branch before a pipeline publishes it.

Nulls pass every audit but `not_null`, as in SQL's constraints.
"""

import datetime as dt
import functools
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812

from bergline.arguments import check_list, check_text, shown
from bergline.errors import InvalidInputError
from bergline.spark.pipeline.audit_kinds import (
    Audit,
    ChangeAudit,
    ColumnOf,
    FunctionAudit,
    MeasureAudit,
    QueryAudit,
    ReferenceAudit,
    RowAudit,
    UniqueAudit,
)

Limit = int | float | Decimal | str | dt.date | dt.datetime


def row_count(table: str, *, at_least: int | None = 1, at_most: int | None = None, name: str | None = None) -> Audit:
    """The number of rows is within limits."""
    expected = _limits(at_least=at_least, at_most=at_most)
    return MeasureAudit(
        name=_name(name, "row_count", table),
        table=table,
        expected=f"{expected} rows",
        measure=lambda _: F.count(F.lit(1)),
        holds=lambda count: (at_least is None or count >= at_least) and (at_most is None or count <= at_most),
        found=lambda count: f"{count:,} rows",
    )


def not_null(table: str, *columns: str, name: str | None = None) -> Audit:
    """No row has a null in any of the columns."""
    return RowAudit(
        name=_name(name, "not_null", table, _some(columns)),
        table=table,
        expected=f"no null in {', '.join(columns)}",
        columns=columns,
        is_bad=lambda column: _any([column(c).isNull() for c in columns]),
    )


def in_range(
    table: str,
    column: str,
    *,
    at_least: Limit | None = None,
    at_most: Limit | None = None,
    above: Limit | None = None,
    below: Limit | None = None,
    name: str | None = None,
) -> Audit:
    """All values of a column are within limits."""
    expected = _limits(at_least=at_least, at_most=at_most, above=above, below=below)

    def is_bad(column_of: ColumnOf) -> Column:
        value = column_of(column)
        predicates = [value < limit for limit in (at_least,) if limit is not None]
        predicates += [value > limit for limit in (at_most,) if limit is not None]
        predicates += [value <= limit for limit in (above,) if limit is not None]
        predicates += [value >= limit for limit in (below,) if limit is not None]
        return _any(predicates)

    return RowAudit(
        name=_name(name, "in_range", table, [column]),
        table=table,
        expected=f"{column} {expected}",
        columns=(column,),
        is_bad=is_bad,
    )


def one_of(table: str, column: str, values: Sequence[Any], *, name: str | None = None) -> Audit:
    """All values of a column are among those given."""
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise InvalidInputError(f"expected a list of values for `{column}`, found {shown(values)}")
    return RowAudit(
        name=_name(name, "one_of", table, [column]),
        table=table,
        expected=f"{column} one of {', '.join(map(str, values))}",
        columns=(column,),
        is_bad=lambda column_of: ~column_of(column).isin(*values),
    )


def satisfies(table: str, condition: str, *, name: str | None = None) -> Audit:
    """No row makes a condition in SQL false."""
    check_text(condition, "a condition in SQL")
    return RowAudit(
        name=_name(name, "satisfies", table, [condition]),
        table=table,
        expected=condition,
        is_bad=lambda _: ~F.expr(condition),
    )


def fresh(table: str, column: str, *, within: dt.timedelta, name: str | None = None) -> Audit:
    """The newest value of a column with times or dates is not older than that."""
    if not isinstance(within, dt.timedelta):
        raise InvalidInputError(f"expected a timedelta for `within`, found {shown(within)}")

    def age(column_of: ColumnOf) -> Column:
        newest = F.max(column_of(column)).cast(T.TimestampType())
        return F.unix_timestamp(F.current_timestamp()) - F.unix_timestamp(newest)

    return MeasureAudit(
        name=_name(name, "fresh", table, [column]),
        table=table,
        expected=f"{column} within {within}",
        columns=(column,),
        measure=age,
        holds=lambda seconds: seconds is not None and seconds <= within.total_seconds(),
        found=lambda seconds: "no value" if seconds is None else f"{dt.timedelta(seconds=seconds)} old",
    )


def change(
    table: str,
    measure: str = "count(*)",
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    name: str | None = None,
) -> Audit:
    """An aggregate in SQL differs from that of `main` by a fraction within limits; -0.1 is a tenth less.

    Where `main` has no value or zero there is nothing to compare with, and the audit passes.
    """
    expected = _limits(percent=True, at_least=at_least, at_most=at_most)
    return ChangeAudit(
        name=_name(name, "change", table, [check_text(measure, "an aggregate in SQL")]),
        table=table,
        expected=f"{measure} {expected} against main",
        measure=measure,
        at_least=at_least,
        at_most=at_most,
    )


def unique(table: str, *columns: str, name: str | None = None) -> Audit:
    """No two rows have the same values in the columns; rows with a null there are left out."""
    return UniqueAudit(
        name=_name(name, "unique", table, _some(columns)),
        table=table,
        columns=columns,
        expected=f"no two rows with the same {', '.join(columns)}",
    )


def references(
    table: str, columns: str | Sequence[str], other: str, other_columns: str | Sequence[str], *, name: str | None = None
) -> Audit:
    """Every value of some columns is found in another table of the pipeline; rows with a null there are left out."""
    mine, theirs = _columns(columns), _columns(other_columns)
    if len(mine) != len(theirs):
        raise InvalidInputError(f"expected as many columns on both sides, found {len(mine)} and {len(theirs)}")
    return ReferenceAudit(
        name=_name(name, "references", table, [*mine, other]),
        table=table,
        columns=mine,
        other=other,
        other_columns=theirs,
        expected=f"{', '.join(mine)} in {other} ({', '.join(theirs)})",
    )


def query(name: str, sql: str) -> Audit:
    """A query on the branch gives no rows: those that it gives are what is wrong."""
    return QueryAudit(name=_name(name, "query"), sql=check_text(sql, "a query"))


def check(name: str, function: Callable[[Any], Any]) -> Audit:
    """A function of the run gives True, None or a frame without rows; False, text or rows say what is wrong."""
    if not callable(function):
        raise InvalidInputError(f"expected a function for audit `{name}`, found {shown(function)}")
    return FunctionAudit(name=_name(name, "check"), function=function)


def _name(given: str | None, kind: str, table: str = "", columns: Sequence[str] = ()) -> str:
    check_text(table, "a table name like `db.orders`")
    if given is not None:
        return check_text(given, f"text for the name of {kind}")
    return f"{kind}({', '.join([table, *columns])})"


def _columns(columns: str | Sequence[str]) -> tuple[str, ...]:
    return _some((columns,) if isinstance(columns, str) else check_list(columns, "column"))


def _some(columns: tuple[str, ...]) -> tuple[str, ...]:
    if not check_list(columns, "column"):
        raise InvalidInputError("expected at least one column, found none")
    return columns


def _any(predicates: Sequence[Column]) -> Column:
    return functools.reduce(Column.__or__, predicates)


def _limits(*, percent: bool = False, **limits: Any) -> str:
    given = {word.replace("_", " "): limit for word, limit in limits.items() if limit is not None}
    if not given:
        raise InvalidInputError(f"expected a limit ({', '.join(limits)}), found none")
    return " and ".join(f"{word} {f'{limit:+.1%}' if percent else limit}" for word, limit in given.items())

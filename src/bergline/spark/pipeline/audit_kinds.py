"""The kinds of audits: plain values that say what must hold of a table, for `audits_run` to check."""

from collections.abc import Callable
from typing import Any

import msgspec
from pyspark.sql import Column

ColumnOf = Callable[[str], Column]
"""A table's column by its name."""


class RowAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Holds if no row of the table is bad."""

    name: str
    table: str
    expected: str
    columns: tuple[str, ...] = ()
    is_bad: Callable[[ColumnOf], Column]


class MeasureAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Holds if an aggregate over the table's rows is as it should be."""

    name: str
    table: str
    expected: str
    columns: tuple[str, ...] = ()
    measure: Callable[[ColumnOf], Column]
    holds: Callable[[Any], bool]
    found: Callable[[Any], str]


class ChangeAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Holds if an aggregate is not too far from what it is on `main`."""

    name: str
    table: str
    expected: str
    measure: str
    at_least: float | None
    at_most: float | None


class UniqueAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Holds if no two rows have the same values in some columns."""

    name: str
    table: str
    columns: tuple[str, ...]
    expected: str


class ReferenceAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Holds if every value is one that another table has."""

    name: str
    table: str
    columns: tuple[str, ...]
    other: str
    other_columns: tuple[str, ...]
    expected: str


class QueryAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Holds if a query on the branch gives no rows."""

    name: str
    sql: str
    table: str | None = None
    expected: str = "no rows"


class FunctionAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Holds if a function says so."""

    name: str
    function: Callable[[Any], Any]
    table: str | None = None
    expected: str = "to hold"


Audit = RowAudit | MeasureAudit | ChangeAudit | UniqueAudit | ReferenceAudit | QueryAudit | FunctionAudit

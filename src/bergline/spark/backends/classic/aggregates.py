"""The aggregates of a query that has nothing but them, on one table."""

from collections.abc import Callable
from typing import Any, cast

from pyspark.sql import DataFrame

from bergline.spark.backends.classic.catalyst import class_of, scala_items
from bergline.spark.backends.classic.parsed import analyzed
from bergline.spark.runtime.backend import Aggregate, AggregateFunction

_FUNCTIONS = {"Count": "count", "Min": "min", "Max": "max"}


def asked_aggregates(frame: DataFrame, is_table: Callable[[str], bool]) -> list[Aggregate] | None:
    """What a frame asks of a whole table; None if it is anything else."""
    plan = analyzed(frame)
    if class_of(plan) != "Aggregate" or not plan.groupingExpressions().isEmpty():
        return None
    table = _table(plan.child(), is_table)
    if table is None:
        return None
    columns = {str(a.exprId().toString()): str(a.name()) for a in scala_items(table.output())}
    found = [_aggregate(named, columns) for named in scala_items(plan.aggregateExpressions())]
    return None if None in found else [aggregate for aggregate in found if aggregate is not None]


def _table(node: Any, is_table: Callable[[str], bool]) -> Any | None:
    """The rows of a table, where nothing stands between them and the aggregate but other names."""
    while class_of(node) == "SubqueryAlias":
        if is_table(str(node.alias())):
            return node
        node = node.child()
    return None


def _aggregate(named: Any, columns: dict[str, str]) -> Aggregate | None:
    if class_of(named) != "Alias" or class_of(named.child()) != "AggregateExpression":
        return None
    expression = named.child()
    function = _FUNCTIONS.get(class_of(expression.aggregateFunction()))
    if function is None or expression.isDistinct() or expression.filter().isDefined():
        return None
    arguments = list(scala_items(expression.aggregateFunction().children()))
    if len(arguments) != 1:
        return None
    is_row = function == "count" and class_of(arguments[0]) == "Literal" and str(arguments[0].toString()) == "1"
    is_column = class_of(arguments[0]) == "AttributeReference"
    column = columns.get(str(arguments[0].exprId().toString())) if is_column else None
    if not is_row and column is None:
        return None
    return Aggregate(cast("AggregateFunction", function), None if is_row else column, str(named.name()))

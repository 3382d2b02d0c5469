"""What a query asks of each of its tables, found by Spark's own optimizer before any file is looked up.

The query is optimized once on placeholders: relations of the tables' columns without rows. What then stands directly on
a placeholder is all that the query needs of that table, through CTEs, joins and subqueries, as Spark has proved it.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE, Always, Predicate, any_of
from bergline.format.schema.schema import Schema
from bergline.spark.backends.classic.catalyst import class_of, exact_predicate, known_part, scala_items
from bergline.spark.runtime.types import spark_type

_MARK = "bergline.placeholder"
_PLACEHOLDER = "LogicalRDD"


def placeholder(spark: SparkSession, columns: T.StructType, mark: int | None = None) -> ClassicDataFrame:
    """A relation of these columns that is never run; the mark says which it is in an optimized plan."""
    metadata = {} if mark is None else {_MARK: mark}
    fields = [T.StructField(f.name, f.dataType, True, metadata) for f in columns]
    session = spark._jsparkSession  # noqa: SLF001  (a relation that is not optimized away cannot be made otherwise)
    relation = session.createDataFrame(
        spark.sparkContext._jsc.emptyRDD(),  # noqa: SLF001
        session.parseDataType(T.StructType(fields).json()),
    )
    return ClassicDataFrame(relation, spark)


def pushed_filters(frame: DataFrame, schemas: Sequence[Schema], *, marked: bool = False) -> list[Predicate]:
    """For each placeholder, by its mark, what holds for the rows that the frame can use.

    One alone needs no mark, unless the frame reads other rows too.
    """
    execution = frame._jdf.queryExecution()  # noqa: SLF001  (only the optimizer knows)
    plan, clock = execution.optimizedPlan(), _looks_at_the_clock(execution.analyzed(), frame.sparkSession)
    found: list[list[Predicate]] = [[] for _ in schemas]
    for leaf in _leaves(plan):
        mark = 0 if len(schemas) == 1 and not marked and class_of(leaf.node) == _PLACEHOLDER else _mark(leaf.node)
        if mark is not None:
            condition, schema = leaf.condition, schemas[mark]
            found[mark].append(ALWAYS_TRUE if condition is None else known_part(condition, schema, clock=clock))
    # a table that stands in several places is read once for all of them
    return [ALWAYS_TRUE if not parts or ALWAYS_TRUE in parts else any_of(parts) for parts in found]


def used_columns(frame: DataFrame, number: int) -> list[frozenset[str] | None]:
    """For each of so many placeholders, by its mark, the columns that the frame uses; None if it may use all."""
    execution = frame._jdf.queryExecution()  # noqa: SLF001
    if _looks_at_the_clock(execution.analyzed(), frame.sparkSession):
        return [None] * number  # the frame may run later, and take another branch
    found: list[list[frozenset[str] | None]] = [[] for _ in range(number)]
    for leaf in _leaves(execution.optimizedPlan()):
        mark = _mark(leaf.node)
        if mark is not None:
            found[mark].append(leaf.column_names())
    return [
        None if not parts or None in parts else frozenset().union(*(part for part in parts if part is not None))
        for parts in found
    ]


def optimized_condition(
    spark: SparkSession, schema: Schema, condition: Column | str, alias: str | None = None
) -> Predicate | None:
    """What holds for exactly the rows that a condition on a table's columns keeps; None if we cannot tell."""
    columns = T.StructType()
    for field in schema.fields:
        with contextlib.suppress(UnsupportedError):  # no condition can be about columns that Spark has no type for
            columns.add(field.name, spark_type(field.type, field.name))
    table = placeholder(spark, columns)
    frame = (table if alias is None else table.alias(alias)).where(condition)
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  (only the optimizer knows)
    match class_of(plan):
        case "Filter":
            return exact_predicate(plan.condition(), schema)
        case "LocalRelation":  # nothing can be true
            return Always(False)
        case "LogicalRDD":
            return ALWAYS_TRUE
    return None


def _looks_at_the_clock(plan: Any, spark: SparkSession) -> bool:
    """Whether a plan has `current_date()`, `'today'` and the like, which the optimizer replaces by what it is now."""
    catalyst = spark.sparkContext._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]  # noqa: SLF001
    if plan.containsPattern(catalyst.trees.TreePattern.CURRENT_LIKE()):
        return True
    return not catalyst.optimizer.SpecialDatetimeValues.apply(plan).fastEquals(plan)


class _Leaf(msgspec.Struct):
    """A node of a plan, the condition directly above it, and the ids of the columns that a projection above takes."""

    node: Any
    condition: Any = None
    columns: frozenset[int] | None = None

    def column_names(self) -> frozenset[str] | None:
        """The columns by their own names, which a query may spell otherwise."""
        if self.columns is None:
            return None
        output = scala_items(self.node.output())
        return frozenset(str(column.name()) for column in output if column.exprId().id() in self.columns)


def _leaves(plan: Any) -> Iterator[_Leaf]:
    """Every leaf of a plan and of the subqueries in it."""
    pending = [_Leaf(plan)]
    while pending:
        above = pending.pop()
        node = above.node
        pending += [_Leaf(subquery) for subquery in scala_items(node.subqueries())]
        children = list(scala_items(node.children()))
        if not children:
            yield above
        condition = columns = None
        match class_of(node):
            case "Project":
                columns = _column_ids(node)
            case "Filter":
                condition = node.condition()
                columns = None if above.columns is None else above.columns | _column_ids(node)
        pending += [_Leaf(child, condition, columns) for child in children]


def _column_ids(node: Any) -> frozenset[int]:
    return frozenset(int(column.exprId().id()) for column in scala_items(node.references()))


def _mark(leaf: Any) -> int | None:
    for attribute in scala_items(leaf.output()):
        mark = json.loads(attribute.metadata().json()).get(_MARK)
        return None if mark is None else int(mark)
    return None

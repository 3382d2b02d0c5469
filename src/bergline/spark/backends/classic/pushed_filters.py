"""What a query asks of each of its tables, found by Spark's own optimizer before any file is looked up.

The query is optimized once on placeholders: relations of the tables' columns without rows. What then stands directly on
a placeholder is all that the query needs of that table, through CTEs, joins and subqueries, as Spark has proved it.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE, Always, Predicate, any_of
from bergline.format.schema.schema import Schema
from bergline.spark.backends.classic.catalyst import class_of, exact_predicate, known_part, scala_items
from bergline.spark.runtime.deterministic import not_deterministic
from bergline.spark.runtime.types import spark_type

_PLACEHOLDER = "LogicalRDD"


class Placeholder(NamedTuple):
    """A relation that is never run; its number is found again in every plan that it stands in."""

    number: int
    rows: ClassicDataFrame


def placeholder(spark: SparkSession, columns: T.StructType) -> Placeholder:
    """A relation of these columns."""
    fields = [T.StructField(f.name, f.dataType) for f in columns]
    session: Any = spark._jsparkSession  # noqa: SLF001  (one that is not optimized away cannot be made otherwise)
    rows = spark.sparkContext._jsc.emptyRDD().rdd()  # noqa: SLF001
    relation = session.internalCreateDataFrame(rows, session.parseDataType(T.StructType(fields).json()), False)
    return Placeholder(int(rows.id()), ClassicDataFrame(relation, spark))


def pushed_filters(frame: DataFrame, schemas: Mapping[int, Schema]) -> dict[int, Predicate]:
    """For each placeholder, by its number, what holds for the rows that the frame can use."""
    execution = frame._jdf.queryExecution()  # noqa: SLF001  (only the optimizer knows)
    plan, clock = execution.optimizedPlan(), _looks_at_the_clock(execution.analyzed(), frame.sparkSession)
    found: dict[int, list[Predicate]] = {number: [] for number in schemas}
    for leaf in _leaves(plan):
        number = placeholder_number(leaf.node)
        if number in found:
            condition, schema = leaf.condition, schemas[number]
            found[number].append(ALWAYS_TRUE if condition is None else known_part(condition, schema, clock=clock))
    # a table that stands in several places is read once for all of them
    return {
        number: ALWAYS_TRUE if not parts or ALWAYS_TRUE in parts else any_of(parts) for number, parts in found.items()
    }


def used_columns(frame: DataFrame, numbers: Collection[int]) -> dict[int, frozenset[str] | None]:
    """For each placeholder, by its number, the columns that the frame uses; None if it may use all."""
    execution = frame._jdf.queryExecution()  # noqa: SLF001
    if _looks_at_the_clock(execution.analyzed(), frame.sparkSession):
        return dict.fromkeys(numbers)  # the frame may run later, and take another branch
    found: dict[int, list[frozenset[str] | None]] = {number: [] for number in numbers}
    for leaf in _leaves(execution.optimizedPlan()):
        number = placeholder_number(leaf.node)
        if number in found:
            found[number].append(leaf.column_names())
    return {
        number: None if not parts or None in parts else frozenset().union(*(part for part in parts if part is not None))
        for number, parts in found.items()
    }


def placeholder_numbers(frame: DataFrame) -> list[int]:
    """The placeholders in a frame, without those of its subqueries."""
    leaves = scala_items(frame._jdf.queryExecution().analyzed().collectLeaves())  # noqa: SLF001
    return [number for number in map(placeholder_number, leaves) if number is not None]


def placeholder_number(leaf: Any) -> int | None:
    """The number of a placeholder; None for other leaves of a plan."""
    return int(leaf.rdd().id()) if class_of(leaf) == _PLACEHOLDER else None


def optimized_condition(
    spark: SparkSession, schema: Schema, condition: Column | str, alias: str | None = None
) -> Predicate | None:
    """What holds for exactly the rows that a condition on a table's columns keeps; None if we cannot tell."""
    columns = T.StructType()
    for field in schema.fields:
        with contextlib.suppress(UnsupportedError):  # no condition can be about columns that Spark has no type for
            columns.add(field.name, spark_type(field.type, field.name))
    table = placeholder(spark, columns).rows
    frame = (table if alias is None else table.alias(alias)).where(condition)
    if not frame._jdf.queryExecution().analyzed().deterministic():  # noqa: SLF001
        raise not_deterministic("a statement that changes rows")
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

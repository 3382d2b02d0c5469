"""What a query asks of each of its tables, found by Spark's own optimizer before any file is looked up.

The query is optimized once on placeholders: relations of the tables' columns without rows. What then stands directly on
a placeholder is all that the query needs of that table, through CTEs, joins and subqueries, as Spark has proved it.
"""

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE, Always, Predicate, any_of
from bergline.format.schema.schema import Schema
from bergline.spark.backends.classic.catalyst import exact_predicate, kind_of, known_part, scala_seq
from bergline.spark.backends.classic.java_classes import scala_object
from bergline.spark.query_text.deterministic import not_deterministic
from bergline.spark.runtime.types import spark_type

_PLACEHOLDER = "LogicalRDD"
_BETWEEN = "\0"
_COLUMN = re.compile(r"(.*)#(\d+)L?(?:-T\d+ms)?", re.DOTALL)
"""How Spark shows a column: its name, and what tells it from others of this name."""
_CATALYST = "org.apache.spark.sql.catalyst"


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
    leaves = scala_seq(frame._jdf.queryExecution().analyzed().collectLeaves())  # noqa: SLF001
    return [number for number in map(placeholder_number, leaves) if number is not None]


def placeholder_number(leaf: Any) -> int | None:
    """The number of a placeholder; None for other leaves of a plan."""
    return int(leaf.rdd().id()) if kind_of(leaf) == _PLACEHOLDER else None


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
    match kind_of(plan):
        case "Filter":
            return exact_predicate(plan.condition(), schema)
        case "LocalRelation":  # nothing can be true
            return Always(False)
        case "LogicalRDD":
            return ALWAYS_TRUE
    return None


def _looks_at_the_clock(plan: Any, spark: SparkSession) -> bool:
    """Whether a plan has `current_date()`, `'today'` and the like, which the optimizer replaces by values."""
    if plan.containsPattern(scala_object(spark, f"{_CATALYST}.trees.TreePattern").CURRENT_LIKE()):
        return True
    return not scala_object(spark, f"{_CATALYST}.optimizer.SpecialDatetimeValues").apply(plan).fastEquals(plan)


class _Leaf(msgspec.Struct):
    """A node of a plan, the condition directly above it, and what reads its columns; None if somebody takes all."""

    node: Any
    condition: Any = None
    readers: tuple[Any, ...] | None = None

    def column_names(self) -> frozenset[str] | None:
        """The columns by their own names, which a query may spell otherwise."""
        read = None if self.readers is None else [_columns(reader.references()) for reader in self.readers]
        own = _columns(self.node.output())
        if read is None or own is None or None in read:
            return None
        used = {number for columns in read for _, number in columns or ()}
        return frozenset(name for name, number in own if number in used)


def _leaves(plan: Any) -> Iterator[_Leaf]:
    """Every leaf of a plan and of the subqueries in it."""
    pending = [_Leaf(part) for part in (plan, *scala_seq(plan.subqueriesAll()))]
    while pending:
        above = pending.pop()
        node = above.node
        children = scala_seq(node.children())
        if not children:
            yield above
            continue
        condition = readers = None
        match kind_of(node):
            case "Project":
                readers = (node,)
            case "Filter":
                condition = node.condition()
                readers = None if above.readers is None else (*above.readers, node)
        pending += [_Leaf(child, condition, readers) for child in children]


def _columns(columns: Any) -> list[tuple[str, int]] | None:
    """Names and ids of columns, fetched as one text; None if a name makes that ambiguous."""
    text = str(columns.mkString(_BETWEEN))
    found = [_COLUMN.fullmatch(column) for column in text.split(_BETWEEN)] if text else []
    named = [(column[1], int(column[2])) for column in found if column is not None]
    return named if len(named) == len(found) else None

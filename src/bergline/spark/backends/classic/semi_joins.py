"""The join of a MERGE, in which rows of the target are shuffled only if the source matches them.

Spark cannot broadcast a small source if its rows without a match are kept: it shuffles the whole target. A semi join,
for which Spark does broadcast the source, first reduces the target to the rows that the source matches.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from bergline.spark.backends.classic.catalyst import class_of, scala_seq
from bergline.spark.backends.classic.java_classes import new_object, scala_object, static_member
from bergline.spark.backends.classic.parsed import frame_of

_PLANS: Final = "org.apache.spark.sql.catalyst.plans"
_KEEP_SOURCE: Final = {"RightOuter": 0, "LeftAnti": 1}
"""The joins of a MERGE that keep source rows without a match, and on which side the target is."""
_ABOVE: Final = {"Project", "Filter", "SubqueryAlias"}
_READ_TWICE: Final = {
    *("SubqueryAlias", "View", "Project", "Filter", "Distinct", "Join", "Union"),
    *("LocalRelation", "OneRowRelation", "Range"),
}
"""What gives the same rows if a query reads it twice, as long as its expressions are deterministic."""
_FUNCTIONS: Final = ("PYTHON_UDF", "SCALA_UDF")
_NOT_TWICE: Final = ("PLAN_EXPRESSION", *_FUNCTIONS)


def with_semi_join(changes: DataFrame, spark: SparkSession) -> DataFrame:
    """The same changes of a MERGE; with a semi join if its source is small enough, and its target is not."""
    java: Any = changes._jdf  # noqa: SLF001
    execution = java.queryExecution()
    found = _join_below(execution.analyzed())
    if found is None or not _may_be_read_twice(found[-1], spark):
        return changes
    *above, join = found
    planned, place = _join_below(execution.optimizedPlan()), _target_place(join)
    if planned is None or _target_place(planned[-1]) != place or not _is_worth_it(planned[-1], spark):
        return changes
    sides, semi = [join.left(), join.right()], scala_object(spark, f"{_PLANS}.LeftSemi")
    sides[place] = new_object(
        spark, f"{_PLANS}.logical.Join", sides[place], sides[1 - place], semi, join.condition(), join.hint()
    )
    to_seq = static_member(spark, "org.apache.spark.api.python.PythonUtils", "toSeq")
    plan = join.withNewChildren(to_seq(sides))
    for node in reversed(above):
        plan = node.withNewChildren(to_seq([plan]))
    return frame_of(plan, spark)


def _join_below(plan: Any) -> list[Any] | None:
    """The topmost join of a plan that keeps source rows without a match, with the nodes above it; None for others."""
    nodes = [plan]
    while class_of(nodes[-1]) in _ABOVE:
        nodes.append(nodes[-1].child())
    last = nodes[-1]
    return nodes if class_of(last) == "Join" and _target_place(last) is not None else None


def _target_place(join: Any) -> Any:
    return _KEEP_SOURCE.get(class_of(join.joinType()).removesuffix("$"))


def _may_be_read_twice(join: Any, spark: SparkSession) -> bool:
    """Whether the source of a join gives the same rows twice, and the condition the same answers."""
    source, condition = [join.right(), join.left()][_target_place(join)], join.condition()
    if condition.isEmpty() or not condition.get().deterministic():
        return False
    if any(_has_pattern(each, _NOT_TWICE, spark) for each in (condition.get(), source)):
        return False
    return all(map(_gives_the_same_twice, _all_below(source)))


def calls_functions_of_users(plan: Any, spark: SparkSession) -> bool:
    """Whether a plan calls functions that are not Spark's own."""
    return _has_pattern(plan, _FUNCTIONS, spark)


def _has_pattern(plan: Any, names: Iterable[str], spark: SparkSession) -> bool:
    patterns = scala_object(spark, "org.apache.spark.sql.catalyst.trees.TreePattern")
    return any(plan.containsPattern(getattr(patterns, name)()) for name in names)


def _is_worth_it(join: Any, spark: SparkSession) -> bool:
    """Whether Spark sends the source of a join to every executor, but not the target."""
    java: Any = spark._jsparkSession  # noqa: SLF001
    limit = int(java.sessionState().conf().autoBroadcastJoinThreshold())
    left, right = _size(join.left()), _size(join.right())
    return left <= limit < right if _target_place(join) else right <= limit < left


def _gives_the_same_twice(node: Any) -> bool:
    kind = class_of(node)
    is_files = kind == "LogicalRelation" and class_of(node.relation()) == "HadoopFsRelation"
    return bool((kind in _READ_TWICE or is_files) and node.deterministic())


def _all_below(plan: Any) -> Iterator[Any]:
    yield plan
    for child in scala_seq(plan.children()):
        yield from _all_below(child)


def _size(plan: Any) -> int:
    return int(str(plan.stats().sizeInBytes()))

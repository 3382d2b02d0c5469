"""Frames whose columns count as the same to Spark, so that a column of one can be used on the other."""

from pyspark.sql import Column, DataFrame
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.catalyst import class_of


def with_columns_of(frame: DataFrame, model: DataFrame) -> ClassicDataFrame:
    """The same rows, with columns that count as those of the model; columns after these stay as they are."""
    spark = frame.sparkSession
    jvm = spark.sparkContext._jvm  # noqa: SLF001  (what a column counts as cannot be said in public words)
    catalyst = jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    plan, wanted = (f._jdf.queryExecution().analyzed() for f in (frame, model))  # noqa: SLF001
    sequence, nothing = jvm.PythonUtils.toSeq, jvm.scala.Option.empty()  # type: ignore[union-attr]
    found, same = plan.output(), wanted.output()
    columns = []
    for i in range(found.size()):
        column = found.apply(i)
        if i < same.size():
            identity = same.apply(i).exprId()
            column = catalyst.expressions.Alias(column, column.name(), identity, sequence([]), nothing, sequence([]))
        columns.append(column)
    project = catalyst.plans.logical.Project(sequence(columns), plan)
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, project)  # type: ignore[union-attr]  # noqa: SLF001
    return ClassicDataFrame(rows, spark)


def resolved_condition(filtered: DataFrame) -> Column | None:
    """The condition that a frame was filtered by last, as Spark understands it now; None if that is not to be had.

    It can be put on any frame whose columns count as the same, and means there what the session's time zone and other
    settings, its variables and its functions made of it here.
    """
    plan = filtered._jdf.queryExecution().analyzed()  # noqa: SLF001  (only the plan has it)
    if class_of(plan) != "Filter":
        return None
    jvm = filtered.sparkSession.sparkContext._jvm  # noqa: SLF001
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(plan.condition()))  # type: ignore[union-attr]

"""What statements leave in a session: the rows that they give as frames, and temporary views.

A view keeps what its query was resolved to: its frames have no name that they could look up later.
"""

from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.quoting import back_quoted
from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime.arrow_rows import arrow_frame
from bergline.spark.runtime.backend import RunSql
from bergline.sql.parse.wrappers import ViewHead, cached_view, parse_view_head


def result_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows that a statement gave."""
    return arrow_frame(spark, rows) if rows.num_columns else no_result(spark)


def no_result(spark: SparkSession) -> DataFrame:
    """What a statement gives that has no rows to show."""
    return backend_of(spark).empty_frame()


def create_view(rows: DataFrame, head: str, run_sql: RunSql) -> None:
    """CREATE TEMPORARY VIEW … AS: a view of a frame keeps its plan, with the names and comments that the head gives."""
    view = parse_view_head(head)
    if view is None or len(view.columns) not in {0, len(rows.columns)}:
        # Spark refuses such a head in its own words
        run_sql(head + "SELECT " + ", ".join(f"{i} AS _{i}" for i in range(len(rows.columns))))
        raise UnsupportedError(f"cannot make a temporary view of lake tables by `{head.strip()}`")
    if view.columns:
        numbered = rows.toDF(*(f"_{i}" for i in range(len(rows.columns))))
        rows = numbered.select(*(_named(F.col(f"_{i}"), *column) for i, column in enumerate(view.columns)))
    _creation(rows, view)(back_quoted(view.name))


def cache_rows(rows: DataFrame, head: str, run_sql: RunSql) -> None:
    """CACHE TABLE … AS: a temporary view of the rows, which is cached; nothing is left if that fails."""
    name, statement = cached_view(head)
    rows.createTempView(name)
    try:
        run_sql(statement)
    except PySparkException:
        run_sql(f"DROP VIEW IF EXISTS {name}")
        raise


def _named(column: Column, name: str, comment: str | None) -> Column:
    return column.alias(name) if comment is None else column.alias(name, metadata={"comment": comment})


def _creation(rows: DataFrame, view: ViewHead) -> Callable[[str], None]:
    if view.is_global:
        return rows.createOrReplaceGlobalTempView if view.replaces else rows.createGlobalTempView
    return rows.createOrReplaceTempView if view.replaces else rows.createTempView

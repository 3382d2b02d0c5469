"""Temporary views that keep what their query was resolved to: its frames have no name that they could look up later."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from bergline.spark.session_settings import session_settings
from bergline.sql.parse_around import cached_view

_KEEP_PLAN = "spark.sql.legacy.storeAnalyzedPlanForView"
_LOCK = threading.RLock()


@contextlib.contextmanager
def keeping_plans(spark: SparkSession) -> Iterator[None]:
    """Temporary views that are made in here keep their plan, as those of `createTempView` do."""
    with _LOCK, session_settings(spark, {_KEEP_PLAN: "true"}):  # or one thread would put back what another has set
        yield


def cache_rows(rows: DataFrame, head: str, run_sql: Callable[..., DataFrame]) -> None:
    """CACHE TABLE … AS: a temporary view of the rows, which is cached; nothing is left if that fails."""
    name, statement = cached_view(head)
    rows.createTempView(name)
    try:
        run_sql(statement)
    except PySparkException:
        run_sql(f"DROP VIEW IF EXISTS {name}")
        raise

"""What a Spark session has beside the lakes: temporary views, catalogs, databases."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from bergline.spark.runtime.connect import over_connect

_SESSION_CATALOG = "spark_catalog"


class SparkEngineContext:
    """Asks the session; `run_sql` is its own `sql`, before attach."""

    def __init__(self, spark: SparkSession, run_sql: Callable[..., DataFrame]) -> None:
        self._spark = spark
        self._run_sql = run_sql

    @property
    def user(self) -> str | None:
        """Who runs the session."""
        if over_connect(self._spark):
            return str(self._run_sql("SELECT current_user()").collect()[0][0])
        return str(self._spark.sparkContext.sparkUser())

    def has_temporary_view(self, name: str) -> bool:
        """Whether there is such a temporary view."""
        if over_connect(self._spark):
            views = self._run_sql(f"SHOW VIEWS IN {_SESSION_CATALOG}.default").collect()
            return any(view.isTemporary and view.viewName.casefold() == name.casefold() for view in views)
        state = self._spark._jsparkSession.sessionState()  # noqa: SLF001  (nothing public tells views from tables)
        return bool(state.catalog().getTempView(name).isDefined())

    def has_catalog(self, name: str) -> bool:
        """Whether Spark has a catalog of this name."""
        return name == _SESSION_CATALOG or self._spark.conf.get(f"spark.sql.catalog.{name}", None) is not None

    def namespaces(self) -> list[str]:
        """The namespaces of Spark's current catalog."""
        return [row[0] for row in self._run_sql("SHOW NAMESPACES").collect()]

    def catalogs(self) -> list[str]:
        """The catalogs that Spark has opened so far."""
        return [row[0] for row in self._run_sql("SHOW CATALOGS").collect()]

    def temporary_views(self) -> list[str]:
        """The session's temporary views."""
        return [row.viewName for row in self._run_sql("SHOW VIEWS").collect() if row.isTemporary]

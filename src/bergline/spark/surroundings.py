"""What a Spark session has beside the lakes: temporary views, catalogs, databases."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

_SESSION_CATALOG = "spark_catalog"


class SparkSurroundings:
    """Asks the session; `run_sql` is its own `sql`, before attach."""

    def __init__(self, spark: SparkSession, run_sql: Callable[..., DataFrame]) -> None:
        self._spark = spark
        self._run_sql = run_sql

    @property
    def user(self) -> str | None:
        """Who runs the session."""
        return str(self._spark.sparkContext.sparkUser())

    def has_temporary_view(self, name: str) -> bool:
        """Whether there is such a temporary view."""
        state = self._spark._jsparkSession.sessionState()  # noqa: SLF001  (nothing public tells views from tables)
        return bool(state.catalog().getTempView(name).isDefined())

    def has_catalog(self, name: str) -> bool:
        """Whether Spark has a catalog of this name."""
        return name == _SESSION_CATALOG or self._spark.conf.get(f"spark.sql.catalog.{name}", None) is not None

    def namespaces(self) -> list[str]:
        """The namespaces of Spark's current catalog."""
        return [row[0] for row in self._run_sql("SHOW NAMESPACES").collect()]

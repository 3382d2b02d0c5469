"""One side of a benchmark on Spark: a session in a process of its own, and the clock.

`spark_side.py`, `rows_side.py` and `tpcds_side.py` hold the cases, in parts. `sides.py` starts them with what they need
to know, as JSON, and reads what they found.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import DataFrame, SparkSession

from results import times

EVERY_COLUMN = "count(id), max(ts), max(region), sum(part), max(amount), max(note)"


class Side:
    """Plain PySpark on the tables of one side. A case is named by what is done."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.plain: bool = given["side"] == "parquet"
        """Whether there are only Parquet files, which have no rows that change."""
        self.sizes: Any = given["sizes"]
        self.directory = Path(given["directory"])
        self.lake: Any = None
        self.seconds: dict[str, float] = {}
        self.answers: dict[str, list[str]] = {}
        self._mark: str = given["mark"]
        self._started: float = given["started"]
        self.spark = self._session(given["side"], given["jars"])

    def table(self, name: str) -> str:
        """One of the tables that are read, as SQL names it."""
        return f"parquet.`{self.directory}/parquet/{name}`" if self.plain else f"lake.db.{name}"

    def own(self, name: str) -> str:
        """A table of this process."""
        return f"{name}_{self._mark}" if self.plain else f"lake.db.{name}_{self._mark}"

    def create(self, name: str, columns: str, partition: str = "", properties: str = "") -> str:
        """A new table of this process; Spark's own have no properties."""
        table, kind = self.own(name), "parquet" if self.plain else "iceberg"
        text = f"CREATE TABLE {table} ({columns}) USING {kind}"
        text += f" PARTITIONED BY ({partition})" if partition else ""
        self.spark.sql(text + (f" TBLPROPERTIES ({properties})" if properties and not self.plain else ""))
        return table

    def append(self, rows: DataFrame, table: str) -> None:
        """Add rows, which `writeTo` cannot do with Spark's own tables."""
        if self.plain:
            rows.write.insertInto(table)
        else:
            rows.writeTo(table).append()

    def time(self, case: str, run: Callable[[], Any], rounds: int = 1) -> None:
        """The seconds of what is run once; the mean of several rounds, after one without the clock."""
        if rounds > 1:
            run()
        self.seconds[case] = statistics.fmean(times(rounds, run))
        print(f"{self.seconds[case]:.2f} s {case}", file=sys.stderr, flush=True)  # the log says how far it is

    def query(self, case: str, text: str, rounds: int = 1) -> None:
        """The seconds of a query, and its rows, which must be those of every other side."""
        found: list[Any] = []
        self.time(case, lambda: found.append(self.spark.sql(text).collect()), rounds)
        self.keep(case, found[-1])

    def check(self, case: str, text: str) -> None:
        """The rows of a query without the clock."""
        self.keep(case, self.spark.sql(text).collect())

    def keep(self, case: str, rows: Iterable[Any]) -> None:
        """Rows that every side must have."""
        self.answers[case] = sorted(map(str, rows))

    def time_start(self, text: str) -> None:
        """From the start of the process to the rows of the first query."""
        self.spark.sql(text).collect()
        self.seconds["a new process to the first rows of a table"] = time.time() - self._started

    def _session(self, side: str, jars: str) -> SparkSession:
        """A session whose `lake.db.…` are the same tables on both sides."""
        builder = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", "2g")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", f"{self.directory}/spark-warehouse")
            .config("spark.log.level", "ERROR")
        )
        if side == "bergline":
            import bergline.spark  # noqa: PLC0415  (the other sides must not pay for it)

            self.lake = bergline.connect(f"sqlite:///{self.directory}/catalog.db", create=True)
            return bergline.spark.attach(builder.getOrCreate(), self.lake)
        if side == "official":
            options = {
                "spark.jars": jars,
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.lake.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
                "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{self.directory}/catalog.db",
                "spark.sql.catalog.lake.warehouse": f"{self.directory}/warehouse",
                "spark.sql.catalog.lake.jdbc.schema-version": "V1",
            }
            for key, value in options.items():
                builder = builder.config(key, value)
        return builder.getOrCreate()


def main(*parts: Callable[[Side], None]) -> None:
    """Run the part that is asked for, and print what it found."""
    given = json.loads(sys.argv[1])
    side = Side(given)
    {part.__name__: part for part in parts}[given["part"]](side)
    print(json.dumps({"seconds": side.seconds, "answers": side.answers}))
    side.spark.stop()

"""One side of `bench_spark.py` in a process of its own: runs every case once and prints its seconds as JSON.

`python spark_side.py SIDE DIRECTORY SIZES MARK`, where SIDE is `bergline`, `parquet` or the jars of the official
runtime.
"""
# ruff: noqa: S608  (statements are put together from our own names)

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession

ROWS = (
    "id",
    "timestamp_micros(1700000000000000 + id * 1000) AS ts",
    "concat('region-', cast(id % 8 AS string)) AS region",
    "cast(id % 100 AS int) AS part",
    "rand(7) * 1000 AS amount",
    "concat('note number ', cast(id AS string)) AS note",
)
COLUMNS = "id bigint, ts timestamp, region string, part int, amount double, note string"
PARQUET = "parquet"
REPEATED = 5
EVERY_COLUMN = "count(id), max(ts), max(region), sum(part), max(amount), max(note)"


PlanFiles = Callable[[], int]


def settings(directory: str) -> SparkSession.Builder:
    """What all sides have in common."""
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", f"{directory}/spark-warehouse")
        .config("spark.log.level", "ERROR")
    )


def start(side: str, directory: str) -> tuple[SparkSession, PlanFiles]:
    """A session whose `lake.db.…` are the same tables on both sides, and what plans the files of `lake.db.many`."""
    builder = settings(directory)
    if side == PARQUET:
        return builder.getOrCreate(), lambda: 0
    if side == "bergline":
        import bergline.spark  # noqa: PLC0415  (the other side must not pay for it)

        lake = bergline.connect(f"sqlite:///{directory}/catalog.db", create=True)
        spark = bergline.spark.attach(builder.getOrCreate(), lake)
        return spark, lambda: len(lake.load_table("db.many").scan().plan().files)
    options = {
        "spark.jars": side,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{directory}/catalog.db",
        "spark.sql.catalog.lake.warehouse": f"{directory}/warehouse",
        "spark.sql.catalog.lake.jdbc.schema-version": "V1",
    }
    for key, value in options.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    return spark, lambda: _planned_by_java(spark)


def _planned_by_java(spark: SparkSession) -> int:
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "lake.db.many")  # noqa: SLF001
    size = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size
    return int(size(table.newScan().planFiles()))


class Side:
    """The cases, alike for all sides: plain PySpark. Parquet files have no deletes, and nobody plans them."""

    def __init__(
        self, spark: SparkSession, plan_files: PlanFiles, sizes: dict[str, int], mark: str, files: str | None
    ) -> None:
        self._spark = spark
        self._files = files
        self._plan_files = plan_files
        self._sizes = sizes
        self._mark = mark
        self.seconds: dict[str, float] = {}
        self.answers: dict[str, Any] = {}

    def run(self) -> None:
        """Every case, in order."""
        spark, sizes = self._spark, self._sizes
        few, rows = self._new_table("few"), self._new_table("appended")
        self._time("first append", lambda: self._append(100, few))
        self._time("append 100", lambda: self._append(100, few), REPEATED)
        self.answers["append 100"] = spark.sql(f"SELECT count(*), sum(id) FROM {few}").collect()[0]
        self._time("append", lambda: self._append(sizes["rows"], rows))
        self._time("append again", lambda: self._append(sizes["rows"], rows))
        self._query("full scan", f"SELECT {EVERY_COLUMN} FROM {self.table('rows')}")
        self._query("count", f"SELECT count(*) FROM {self.table('rows')}", REPEATED)
        self._query("one row", f"SELECT * FROM {self.table('rows')} WHERE id = {sizes['rows'] // 2 + 1}", REPEATED)
        if self._files is None:
            self._query("deleted", f"SELECT {EVERY_COLUMN} FROM lake.db.deleted")
            self.answers["plan"] = [self._time("plan", self._plan_files)]
        low, high = sizes["parts"] // 2, sizes["parts"] // 2 + sizes["parts"] // 40
        where = f"WHERE part >= {low} AND part < {high} AND amount < 500"
        self._query("filtered", f"SELECT {EVERY_COLUMN} FROM {self.table('parts')} {where}")
        small = self._new_table("small")
        self._time("small appends", lambda: self._insert_often(small))
        self.answers["small appends"] = spark.sql(f"SELECT count(*), sum(id) FROM {small}").collect()[0]
        self._query("few of many", f"SELECT count(*), sum(c0) FROM {self.table('many')} WHERE c3 > 9")
        self._time("open many", self._open_many)

    def _new_table(self, name: str) -> str:
        table, kind = f"{name}_{self._mark}", PARQUET
        if self._files is None:
            table, kind = f"lake.db.{table}", "iceberg"
        self._spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING {kind}")
        return table

    def table(self, name: str) -> str:
        """One of the tables that are read, as SQL names it."""
        return f"lake.db.{name}" if self._files is None else f"parquet.`{self._files}/{name}`"

    def _append(self, rows: int, table: str) -> None:
        source = self._spark.range(rows).selectExpr(*ROWS)
        if self._files is None:
            source.writeTo(table).append()
        else:
            source.write.insertInto(table)

    def _insert_often(self, table: str) -> None:
        for number in range(self._sizes["appends"]):
            values = f"({number}, timestamp'2026-01-01 00:00:00', 'eu', 1, 1.5, 'a'), ({number}, NULL, 'us', 2, 2, 'b')"
            self._spark.sql(f"INSERT INTO {table} VALUES {values}")

    def _open_many(self) -> int:
        """Until Spark knows the parts that tasks would read."""
        return self._spark.sql(f"SELECT * FROM {self.table('many')}").rdd.getNumPartitions()

    def _query(self, case: str, text: str, times: int = 1) -> None:
        self.answers[case] = self._time(case, lambda: self._spark.sql(text).collect()[0], times)

    def _time(self, case: str, run: Callable[[], Any], times: int = 1) -> Any:
        """What is run once, or as often as that after once without the clock, and the seconds of each time."""
        if times > 1:
            run()
        started = time.perf_counter()
        for _ in range(times):
            found = run()
        self.seconds[case] = (time.perf_counter() - started) / times
        return found


def main() -> None:
    side, directory, sizes, mark = sys.argv[1:]
    spark, plan_files = start(side, directory)
    cases = Side(spark, plan_files, json.loads(sizes), mark, f"{directory}/parquet" if side == PARQUET else None)
    first = spark.sql(f"SELECT count(*), sum(id) FROM {cases.table('start')}").collect()[0]
    ready = time.time()
    cases.run()
    cases.answers["start"] = first
    answers = {case: [str(v) for v in row] for case, row in cases.answers.items()}
    print(json.dumps({"ready": ready, "seconds": cases.seconds, "answers": answers}))
    spark.stop()


if __name__ == "__main__":
    main()

"""The demo: a pipeline over two tables on PySpark. A failed audit, a fix, and a publish in one step, in ./lake.

Set BERGLINE_DEMO_LAKE to use another directory. Running it again starts over.
"""

import os
import time
from pathlib import Path

from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake
from bergline.errors import RefusedError
from bergline.spark import Pipeline
from bergline.spark.audits import change, in_range, not_null, references, row_count, unique
from local_spark import run, say, start_spark

LAKE = Path(os.environ.get("BERGLINE_DEMO_LAKE", "lake"))
SPARK_LOG = LAKE / "spark.log"
MARK = "bergline.demo"
TABLES = ["db.orders", "db.items"]

STEPS = {
    # every thousandth order has a negative amount: the audits should find them
    "orders": """INSERT INTO db.orders
        SELECT 100000 + id, concat('customer-', id % 997),
               cast(if(id % 1000 = 7, -1, id % 9000 / 100 + 1) AS DECIMAL(10, 2)),
               timestampadd(MINUTE, id % 1440, TIMESTAMP '2026-03-31 00:00:00')
        FROM range(20000)""",
    "items": """INSERT INTO db.items
        SELECT id * 10 + n, id, concat('product-', (id + n) % 50)
        FROM db.orders CROSS JOIN (SELECT explode(array(1, 2)) AS n)
        WHERE id >= 100000""",
}
FIX = {"fix": "INSERT OVERWRITE db.orders SELECT id, customer, abs(amount), ordered_at FROM db.orders"}
AUDITS = [
    row_count("db.orders", at_least=1000),
    not_null("db.orders", "id", "customer"),
    unique("db.orders", "id"),
    in_range("db.orders", "amount", above=0),
    references("db.items", "order_id", "db.orders", "id"),
    change("db.orders", at_least=0, at_most=0.5),
]


def main() -> None:
    """Create, run, fail, fix, publish, run again."""
    started = time.monotonic()
    with bergline.connect(f"sqlite:///{LAKE}/catalog.db", create=True) as lake:
        start_over(lake)
        say("starting Spark (plain PySpark, no Iceberg jar) ...")
        spark = start_spark(SPARK_LOG)
        bergline.spark.attach(spark, lake)
        try:
            tell(spark, lake)
        finally:
            bergline.spark.detach(spark)
            spark.stop()
    say(f"\ndone in {time.monotonic() - started:.0f} s; the tables are in {LAKE}/, their history is drawn by")
    say(f"  .venv/bin/bergline log db.orders --graph --catalog sqlite:///{LAKE}/catalog.db")


def tell(spark: SparkSession, lake: Lake) -> None:
    """The story."""
    show("== 1. two tables, with what was there yesterday")
    create_tables(spark)
    show_counts(spark)

    show("\n== 2. the daily run: it writes to a branch of both tables, and an audit fails")
    daily = Pipeline(spark, lake, "daily", tables=TABLES, steps=STEPS, audits=AUDITS)
    show(str(daily.run("2026-03-31", tag="2026-q1-final")))

    show("\n== 3. nobody saw it: main is as it was, the branch is there to look at")
    show_counts(spark, daily.branch("2026-03-31"))

    show("\n== 4. the same run with one more step: only the fix is run, then both tables are published at once")
    fixed = Pipeline(spark, lake, "daily", tables=TABLES, steps=STEPS | FIX, audits=AUDITS)
    show(str(fixed.run("2026-03-31", tag="2026-q1-final").check_published()))

    show("\n== 5. started once more, by a scheduler that never got the response: nothing is written twice")
    show(str(fixed.run("2026-03-31", tag="2026-q1-final")))
    show_counts(spark, "2026-q1-final")


def create_tables(spark: SparkSession) -> None:
    """Orders and items, marked as the demo's own."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS db")
    spark.sql(
        f"""CREATE TABLE db.orders (id BIGINT NOT NULL, customer STRING, amount DECIMAL(10, 2), ordered_at TIMESTAMP)
        USING iceberg PARTITIONED BY (days(ordered_at)) TBLPROPERTIES ('{MARK}' = 'true')"""
    )
    spark.sql(
        f"""CREATE TABLE db.items (id BIGINT NOT NULL, order_id BIGINT, product STRING)
        USING iceberg TBLPROPERTIES ('{MARK}' = 'true')"""
    )
    spark.sql(
        """INSERT INTO db.orders
        SELECT id, concat('customer-', id % 997), cast(id % 9000 / 100 + 1 AS DECIMAL(10, 2)),
               timestampadd(MINUTE, id % 4320, TIMESTAMP '2026-03-28 00:00:00')
        FROM range(100000)"""
    )
    spark.sql("INSERT INTO db.items SELECT id, id, concat('product-', id % 50) FROM range(100000)")


def show_counts(spark: SparkSession, ref: str | None = None) -> None:
    """How many rows main and another ref have."""
    for name in ["main"] if ref is None else ["main", ref]:
        counts = [spark.read.option("versionAsOf", name).table(table).count() for table in TABLES]
        show(f"  {name}: " + ", ".join(f"{t} {c:,} rows" for t, c in zip(TABLES, counts, strict=True)))


def start_over(lake: Lake) -> None:
    """Remove what an earlier run of this demo left; never anything else."""
    found = [table for table in TABLES if lake.table_exists(table)]
    for name in found:
        if lake.load_table(name).properties.get(MARK) != "true":
            raise RefusedError(
                f"{LAKE} holds a table `{name}` that the demo did not make",
                hints=["run it elsewhere: BERGLINE_DEMO_LAKE=/some/directory make demo"],
            )
    for name in found:
        lake.purge_table(name)


def show(line: str) -> None:
    """Data goes to stdout."""
    print(line, flush=True)


if __name__ == "__main__":
    run(main, SPARK_LOG)

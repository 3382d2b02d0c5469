"""The demo: write, audit and publish orders on PySpark, with branches and tags, in ./lake.

Every statement that runs is printed; after each stage come the metadata pointer and the table of refs.
Set BERGLINE_DEMO_LAKE to use another directory. Running it again starts over.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from bergline.errors import RefusedError
from bergline.format.manifest.avro import parse_manifest
from bergline.scan.manifests import load_entries, load_manifest_list
from local_spark import run, say, start_spark

LAKE = Path(os.environ.get("BERGLINE_DEMO_LAKE", "lake"))
SPARK_LOG = LAKE / "spark.log"
MARK = "bergline.demo"
WIDE = 100

CREATE = f"""CREATE TABLE db.orders (id BIGINT NOT NULL, customer STRING, amount DECIMAL(10, 2), ordered_at TIMESTAMP)
USING iceberg PARTITIONED BY (days(ordered_at)) TBLPROPERTIES ('{MARK}' = 'true')"""
LOAD = """INSERT INTO db.orders
SELECT id, concat('customer-', id % 997), cast(id % 9000 / 100 + 1 AS DECIMAL(10, 2)),
       timestampadd(MINUTE, id % 4320, TIMESTAMP '2026-03-28 00:00:00')
FROM range(100000)"""
NEW_ORDERS = """INSERT INTO db.orders
SELECT 100000 + id, concat('customer-', id % 997), cast(if(id % 1000 = 7, -1, id % 9000 / 100 + 1) AS DECIMAL(10, 2)),
       timestampadd(MINUTE, id % 1440, TIMESTAMP '2026-03-31 00:00:00')
FROM range(20000)"""
AUDIT = "SELECT count(*) AS orders, count_if(amount <= 0) AS bad_amounts, count_if(id IS NULL) AS no_id FROM db.orders"
FIX = "INSERT OVERWRITE db.orders SELECT * FROM db.orders WHERE amount > 0"
CANCEL = "INSERT OVERWRITE db.orders SELECT * FROM db.orders WHERE id <> 200001"
LATE_ORDER = "INSERT INTO db.orders VALUES ({id}, 'customer-1', 10.00, TIMESTAMP '2026-04-01 08:00:00')"


def main() -> None:
    """Run all stages."""
    started = time.monotonic()
    with bergline.connect(f"sqlite:///{LAKE}/catalog.db", create=True) as lake:
        start_over(lake)
        say("starting Spark (plain PySpark, no Iceberg jar) ...")
        spark = start_spark(SPARK_LOG)
        bergline.spark.attach(spark, lake)
        try:
            run_stages(Demo(spark, lake))
        finally:
            bergline.spark.detach(spark)
            spark.stop()
    say(f"\ndone in {time.monotonic() - started:.0f} s; the table is in {LAKE}/, its history is drawn by")
    say(f"  .venv/bin/bergline log db.orders --graph --catalog sqlite:///{LAKE}/catalog.db")


class Demo:
    """Runs statements and shows the table after each stage."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self.spark = spark
        self._lake = lake
        self._number = 0

    @property
    def table(self) -> Table:
        """db.orders as it is now."""
        return self._lake.load_table("db.orders")

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """A heading before, pointer and refs after."""
        self._number += 1
        started = time.monotonic()
        show(f"\n== {self._number}. {title}")
        yield
        self._show_table()
        say(f"   ({time.monotonic() - started:.1f} s)")

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement and show it with its rows."""
        show(*(f"sql> {line}" if i == 0 else f"     {line}" for i, line in enumerate(statement.splitlines())))
        frame = self.spark.sql(statement)
        rows = [tuple(row) for row in frame.collect()]
        if frame.columns:
            show_rows(frame.columns, rows)
        return rows

    def write_to(self, branch: str | None) -> None:
        """Point the session at a branch, or back at main."""
        if branch is None:
            show('py>  spark.conf.unset("spark.wap.branch")')
            self.spark.conf.unset("spark.wap.branch")
        else:
            show(f'py>  spark.conf.set("spark.wap.branch", "{branch}")')
            self.spark.conf.set("spark.wap.branch", branch)

    def _show_table(self) -> None:
        table = self.table
        show(f"pointer: {table.metadata_location.rsplit('/', 1)[-1]}")
        rows: list[tuple[object, ...]] = [
            (name, ref.snapshot_ref_type, ref.snapshot_id, self._count(table, name), ref.min_snapshots_to_keep or "")
            for name, ref in table.metadata.refs.items()
        ]
        show_rows(["ref", "type", "snapshot_id", "orders", "min_snapshots_to_keep"], rows)

    @staticmethod
    def _count(table: Table, ref: str) -> str:
        head = table.metadata.head(ref)
        return f"{int(head.summary['total-records']):,}" if head else ""


def run_stages(demo: Demo) -> None:
    """Create, load, branch, write, audit, publish, tag, read the past, expire."""
    with demo.stage("create: an empty table; the pointer names its first metadata file"):
        demo.sql("CREATE NAMESPACE IF NOT EXISTS db")
        demo.sql(CREATE)
    with demo.stage("load: the first snapshot, on main"):
        demo.sql(LOAD)
    with demo.stage("branch: a second name for the same snapshot"):
        demo.sql("ALTER TABLE db.orders CREATE BRANCH staging RETAIN 3 SNAPSHOTS")
    with demo.stage("write: new orders go to the branch, main does not move"):
        demo.write_to("staging")
        demo.sql(NEW_ORDERS)
    with demo.stage("audit: the branch has bad rows; they are fixed there, and nobody saw them"):
        check(demo.sql(AUDIT)[0][1] != 0, "the audit should find the bad rows")
        demo.sql(FIX)
        check(demo.sql(AUDIT)[0][1:] == (0, 0), "the audit should pass now")
        demo.write_to(None)
    with demo.stage("publish: main moves forward to the audited snapshot"):
        demo.sql("CALL system.fast_forward('db.orders', 'main', 'staging')")
    with demo.stage("tag: a name that does not move"):
        demo.sql("ALTER TABLE db.orders CREATE TAG `2026-q1-final`")
    with demo.stage("read the past: main goes on, the tag stays"):
        demo.sql(LATE_ORDER.format(id=200_000))
        demo.sql(LATE_ORDER.format(id=200_001))
        demo.sql(CANCEL)
        demo.sql(LATE_ORDER.format(id=200_002))
        demo.sql("SELECT count(*) AS orders FROM db.orders")
        demo.sql("SELECT count(*) AS orders FROM db.orders VERSION AS OF '2026-q1-final'")
        show("sql> INSERT INTO db.orders.`branch_2026-q1-final` VALUES (...)")
        refused(demo)
    with demo.stage("expire: old snapshots and their files go, what a ref protects stays"):
        before = len(demo.table.metadata.snapshots)
        demo.sql("CALL system.expire_snapshots(table => 'db.orders', older_than => now(), retain_last => 1)")
        show(f"snapshots: {before} before, {len(demo.table.metadata.snapshots)} after")
        demo.sql("SELECT count(*) AS orders FROM db.orders VERSION AS OF '2026-q1-final'")
    with demo.stage("look inside: numbers are null in new manifests, and given by the manifest list"):
        show_numbers(demo.table)


def refused(demo: Demo) -> None:
    """Writing to a tag is refused, and says why."""
    try:
        demo.spark.sql("INSERT INTO db.orders.`branch_2026-q1-final` VALUES (1, 'x', 1.00, now())")
    except RefusedError as error:
        show(f"     {type(error).__name__}: {error}")
    else:
        raise AssertionError("a tag took a write")


def show_numbers(table: Table) -> None:
    """For each manifest of the tagged snapshot: what its entries hold, and what readers resolve them to."""
    head = table.metadata.head("2026-q1-final")
    check(head is not None, "the tag should be there")
    rows: list[tuple[object, ...]] = []
    for manifest in load_manifest_list(table.io, head) if head else []:
        spec = table.metadata.specs_by_id[manifest.partition_spec_id]
        written = parse_manifest(
            table.io.read(manifest.manifest_path), spec, table.metadata.schema, manifest.manifest_path
        )
        resolved = load_entries(table.io, manifest, table.metadata)
        for raw, seen in list(zip(written, resolved, strict=True))[:1]:
            stored = "null" if raw.sequence_number is None else raw.sequence_number
            rows.append((manifest.sequence_number, raw.status.name, stored, seen.sequence_number))
    show_rows(["manifest's number in the list", "first entry", "its number as written", "as resolved"], rows)


def start_over(lake: Lake) -> None:
    """Remove what an earlier run of this demo left; never anything else."""
    if not lake.table_exists("db.orders"):
        return
    table = lake.load_table("db.orders")
    if table.properties.get(MARK) != "true":
        raise RefusedError(
            f"{LAKE} holds a table `db.orders` that the demo did not make",
            hints=["run it elsewhere: BERGLINE_DEMO_LAKE=/some/directory make demo"],
        )
    lake.drop_table("db.orders")
    files = Path(table.location.removeprefix("file://"))
    if files.is_relative_to(LAKE.resolve()):
        shutil.rmtree(files)


def check(holds: bool, otherwise: str) -> None:
    """Stop the demo if it does not show what it says."""
    if not holds:
        raise AssertionError(otherwise)


def show_rows(columns: list[str], rows: list[tuple[object, ...]]) -> None:
    """Rows in aligned columns; a single wide row one value to a line."""
    if len(rows) == 1 and sum(map(len, columns)) > WIDE:
        width = max(map(len, columns))
        show(*(f"     {c.ljust(width)}  {v}" for c, v in zip(columns, rows[0], strict=True)))
        return
    table = [columns, *([str(v) for v in row] for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    show(*("     " + "  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)).rstrip() for row in table))


def show(*lines: str) -> None:
    """Data goes to stdout."""
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    run(main, SPARK_LOG)

"""The cases of `bench_spark.py`, for one side."""
# ruff: noqa: S608  (statements are put together from our own names)

from collections.abc import Callable

from pyspark.sql import DataFrame

from side import EVERY_COLUMN, Side, main

ROWS = (
    "id",
    "timestamp_micros(1700000000000000 + id * 1000) AS ts",
    "concat('region-', cast(id % 8 AS string)) AS region",
    "rand(7) * 1000 AS amount",
    "concat('note number ', cast(id AS string)) AS note",
    "cast(id % 100 AS int) AS part",
)
COLUMNS = "id bigint, ts timestamp, region string, amount double, note string, part int"
PLACE = "named_struct('city', region, 'at', named_struct('x', amount, 'y', amount + 1)) AS place"
NESTED = "id bigint, place struct<city: string, at: struct<x: double, y: double>>, notes array<string>"
ROWS_OF_TASK = 200
REPEATED = 5


def files(side: Side) -> None:
    """Tables that are read, and small appends."""
    spark, sizes = side.spark, side.sizes
    side.time_start(f"SELECT count(*), sum(id) FROM {side.table('start')}")
    few, small, rows = (side.create(name, COLUMNS) for name in ("few", "small", "appended"))
    side.time("append 100 rows, the first of a process", lambda: side.append(made(side, 100), few))
    side.time("append 100 rows", lambda: side.append(made(side, 100), few), REPEATED)
    side.check("append 100 rows", f"SELECT count(*), sum(id) FROM {few}")
    many = f"{sizes['rows']:,} rows"
    side.time(f"append {many}", lambda: side.append(made(side, sizes["rows"]), rows))
    side.time(f"append {many} to a table that has rows", lambda: side.append(made(side, sizes["rows"]), rows))
    side.query(f"read all columns of {many}", f"SELECT {EVERY_COLUMN} FROM {side.table('rows')}")
    side.query(f"count(*) of {many}", f"SELECT count(*) FROM {side.table('rows')}", REPEATED)
    one = f"SELECT * FROM {side.table('rows')} WHERE id = {sizes['rows'] // 2 + 1}"
    side.query(f"read one of {many}, by a filter", one, REPEATED)
    if not side.plain:
        deleted = f"SELECT {EVERY_COLUMN} FROM {side.table('deleted')}"
        side.query(f"read {many}, 1 % of them deleted by delete files", deleted)
    low, wanted = sizes["parts"] // 2, sizes["parts"] // 40
    where = f"WHERE part >= {low} AND part < {low + wanted} AND amount < 500"
    parts = f"read {wanted:,} partitions of {sizes['parts']:,}, a file each, by a filter"
    side.query(parts, f"SELECT {EVERY_COLUMN} FROM {side.table('parts')} {where}")

    def insert_often() -> None:
        for number in range(sizes["appends"]):
            values = f"({number}, timestamp'2026-01-01 00:00:00', 'eu', 1.5, 'a', 1), ({number}, NULL, 'us', 2, 'b', 2)"
            spark.sql(f"INSERT INTO {small} VALUES {values}")

    inserts = f"{sizes['appends']} INSERTs of two rows each"
    side.time(inserts, insert_often)
    side.check(inserts, f"SELECT count(*), sum(id) FROM {small}")
    count = f"{sizes['files']:,} files"
    if not side.plain:
        side.time(f"plan {count}", lambda: side.keep("planned files", [planned_files(side, "many")]))
    needed = f"SELECT count(*), sum(c0) FROM {side.table('many')} WHERE c3 > 9"
    side.query(f"read the 10 files of {count} that a filter needs", needed)
    side.time(f"open {count} for a query", lambda: parts_to_read(side, "many"))


def tasks(side: Side) -> None:
    """Small appends from ever more tasks."""
    warm_up(side)
    for count in (1, 20, 200, 1000):
        if count > side.sizes["tasks"]:
            break
        rows = side.spark.range(0, count * ROWS_OF_TASK, 1, count).selectExpr(*ROWS)
        table = side.create(f"tasks_{count}", COLUMNS)
        case = f"append {ROWS_OF_TASK} rows from each of {count:,} tasks"
        side.time(case, appending(side, rows, table), REPEATED if count < ROWS_OF_TASK else 1)
        side.check(case, f"SELECT count(*), sum(id), count(DISTINCT note) FROM {table}")


def wide(side: Side) -> None:
    """Ever more columns, and a struct of many fields."""
    warm_up(side)
    rows = side.sizes["wide_rows"]
    numbers = {count: [f"id + {n} AS c{n}" for n in range(1, count)] for count in (3, 200, 501)}
    shapes = {f"{count} columns": ["id", *more] for count, more in numbers.items() if count <= side.sizes["columns"]}
    fields = ", ".join(f"'f{n}', id + {n}" for n in range(200))
    shapes["a struct of 200 fields"] = ["id", "id + 1 AS c1", f"named_struct({fields}) AS s"]
    for number, (shape, columns) in enumerate(shapes.items()):
        work_on_columns(side, side.own(f"wide_{number}"), side.spark.range(rows).selectExpr(*columns), shape)


def work_on_columns(side: Side, table: str, rows: DataFrame, shape: str) -> None:
    """A table is made of rows, read, and changed."""
    kind, few = "parquet" if side.plain else "iceberg", f"SELECT * FROM {table} LIMIT 5"
    side.time(f"{shape}: create by a frame", lambda: rows.writeTo(table).using(kind).create())
    side.time(f"{shape}: append", lambda: side.append(rows, table))
    side.time(f"{shape}: first SELECT * LIMIT 5", lambda: side.spark.sql(few).collect())
    side.append(rows.limit(1), table)
    side.time(f"{shape}: SELECT * LIMIT 5 after an append", lambda: side.spark.sql(few).collect())
    side.check(f"{shape}: append", f"SELECT count(*), sum(id), sum(c1) FROM {table}")
    if not side.plain:
        change = f"UPDATE {table} SET c1 = c1 + 1 WHERE id IN (7, 70)"
        side.time(f"{shape}: UPDATE of two rows", lambda: side.spark.sql(change))
        side.time(f"{shape}: SELECT * LIMIT 5 after it", lambda: side.spark.sql(few).collect())
        side.check(f"{shape}: UPDATE of two rows", f"SELECT count(*), sum(id), sum(c1) FROM {table}")


def large(side: Side) -> None:
    """Large appends where large ones have gone before."""
    count = side.sizes["rows"]
    rows, spread = (side.spark.range(0, count, 1, number).selectExpr(*ROWS) for number in (2, 200))
    nested = rows.selectExpr("id", PLACE, "array(note, region) AS notes")
    hashed = "'write.distribution-mode' = 'hash'"
    cases = {
        "from 2 tasks": (rows, side.create("flat", COLUMNS)),
        "from 200 tasks": (spread, side.create("spread", COLUMNS)),
        "with a struct and a list": (nested, side.create("nested", NESTED)),
        "to 100 partitions, distributed by hash": (rows, side.create("parts", COLUMNS, "part", hashed)),
    }
    for says, (source, table) in cases.items():
        case = f"append {count:,} rows {says}, warm"
        side.time(case, appending(side, source, table), 2)
        side.check(case, f"SELECT count(*), sum(id) FROM {table}")


def cold(side: Side) -> None:
    """The first append of a process."""
    count, table = side.sizes["rows"], side.create("cold", COLUMNS)
    case = f"append {count:,} rows, the first of a process"
    side.time(case, lambda: side.append(made(side, count), table))
    side.check(case, f"SELECT count(*), sum(id) FROM {table}")


def warm_up(side: Side) -> None:
    """A little of everything, without the clock."""
    table = side.create("warm", COLUMNS)
    side.append(made(side, 100), table)
    side.spark.sql(f"SELECT * FROM {table}").collect()
    if not side.plain:
        side.spark.sql(f"UPDATE {table} SET amount = 1 WHERE id = 1")
        side.spark.sql(f"SELECT * FROM {table}").collect()


def made(side: Side, count: int) -> DataFrame:
    return side.spark.range(count).selectExpr(*ROWS)


def appending(side: Side, rows: DataFrame, table: str) -> Callable[[], None]:
    return lambda: side.append(rows, table)


def parts_to_read(side: Side, name: str) -> int:
    """How many tasks would read a table: what Spark knows last before it starts."""
    return side.spark.sql(f"SELECT * FROM {side.table(name)}").rdd.getNumPartitions()


def planned_files(side: Side, name: str) -> int:
    """How many files the planner finds, ours or Java's."""
    if side.lake is not None:
        return len(side.lake.load_table(f"db.{name}").scan().plan().files)
    jvm = side.spark.sparkContext._jvm  # noqa: SLF001
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(side.spark._jsparkSession, f"lake.db.{name}")  # noqa: SLF001
    size = jvm.org.apache.iceberg.relocated.com.google.common.collect.Iterables.size
    return int(size(table.newScan().planFiles()))


if __name__ == "__main__":
    main(files, tasks, wide, large, cold)

"""The cases of `bench_rows.py`, for one side."""
# ruff: noqa: S608  (statements are put together from our own names)

import statistics
from collections import defaultdict
from functools import partial

from results import times
from row_changes import CHANGES, SHAPES, WARM, Change, Shape, properties
from side import EVERY_COLUMN, Side, main

MERGE = """
MERGE INTO {table} t USING source s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET amount = s.amount, note = s.note
WHEN NOT MATCHED THEN INSERT *
"""
EIGHT = "(0L), (1L), (2L), (3L), (4L), (5L), (6L), (7L)"
BASE = (("id bigint", "id"), ("region string", "concat('r', id % 3)"), ("amount double", "id * 1.5D"))
READ = ": the read after it"


def many(side: Side) -> None:
    """Changes of 1 % of the rows of a large table."""
    spark, sizes = side.spark, side.sizes
    if side.plain:
        read_parquet(side)
        return
    run(side, WARM)
    read(side, side.own(WARM.table))
    for change in CHANGES:
        table, case = side.own(change.table), said(change, sizes)
        side.time(case, partial(run, side, change))
        side.query(f"{case}{READ}", f"SELECT {EVERY_COLUMN} FROM {table}")
        side.check(case, f"SELECT count(*), sum(id), sum(part), count(DISTINCT note) FROM {table}")
    side.query(equality(sizes), f"SELECT {EVERY_COLUMN} FROM {side.table('equality')}")
    small, case = side.own("small"), f"rewrite_data_files of {sizes['small']:,} small files"
    compact = f"CALL lake.system.rewrite_data_files(table => '{small.removeprefix('lake.')}')"
    side.time(case, lambda: spark.sql(compact).collect())
    side.check(case, f"SELECT (SELECT count(*) FROM {small}), (SELECT count(*) FROM {small}.files)")


def read_parquet(side: Side) -> None:
    """What a read takes where nothing was deleted, for each that comes after a change."""
    read(side, side.table("merged"))
    seconds = {name: times(1, partial(read, side, side.table(name)))[0] for name in ("rows", "merged")}
    for change in CHANGES:
        side.seconds[f"{said(change, side.sizes)}{READ}"] = seconds[change.original]
    side.seconds[equality(side.sizes)] = seconds["rows"]


def said(change: Change, sizes: dict[str, int]) -> str:
    """A change in words."""
    rows = f"{sizes[change.original]:,} rows"
    merged = f"MERGE {sizes['source']:,} rows into {rows}"
    what = merged if change.command == "merge" else f"{change.command.upper()} 1 % of {rows}"
    return f"{what}, {change.mode}, v{change.version}, {change.place}"


def equality(sizes: dict[str, int]) -> str:
    return f"read {sizes['rows']:,} rows, 1 % of them deleted by equality deletes"


def read(side: Side, table: str) -> None:
    side.spark.sql(f"SELECT {EVERY_COLUMN} FROM {table}").collect()


def run(side: Side, change: Change) -> None:
    """Change the copy that is there for it."""
    table, rows, source = side.own(change.table), side.sizes[change.original], side.sizes["source"]
    middle = rows // 2
    if change.command == "merge":
        make_source(side, source, *((rows // source, 3) if change.place == "spread" else (1, middle)))
        side.spark.sql(MERGE.format(table=table))
        return
    where = "id % 100 = 7" if change.place == "spread" else f"id >= {middle} AND id < {middle + rows // 100}"
    text = (
        f"DELETE FROM {table}"
        if change.command == "delete"
        else f"UPDATE {table} SET amount = amount * 2, note = 'new'"
    )
    side.spark.sql(f"{text} WHERE {where}")


def make_source(side: Side, rows: int, step: int, first: int) -> None:
    """What is merged: a row in ten is new."""
    number = f"IF(id % 10 = 0, -1 - id, id * {step} + {first})"
    columns = (
        f"{number} AS id", "timestamp_micros(1700000000000000 + id * 1000) AS ts", "'region-0' AS region",
        "7 AS part", "id * 0.5D AS amount", "'merged' AS note",
    )  # fmt: skip
    side.spark.range(rows).selectExpr(*columns).createOrReplaceTempView("source")


def few(side: Side) -> None:
    """Every statement on tables of eight rows: by statement, the median of all shapes, and by shape, all statements."""
    change_shape(side, "warm", SHAPES[0], 1)
    found = {shape: change_shape(side, f"shape_{n}", shape, 1) for n, shape in enumerate(SHAPES)}
    for statement in found[SHAPES[0]]:
        case = f"{statement}, 8 rows, median of {len(SHAPES)} tables"
        side.seconds[case] = statistics.median(seconds[statement] for seconds in found.values())
    if side.plain:
        return
    for shape, seconds in found.items():
        case = f"all these statements on a table of 8 rows: {shape.says}, {shape.mode}, v{shape.version}"
        side.seconds[case] = sum(seconds.values())
    again = next(shape for shape in SHAPES if shape.partition and shape.mode == "copy-on-write")
    often = side.sizes["again"]
    for statement, median in change_shape(side, "again", again, often).items():
        side.seconds[f"{statement}, 8 rows, {again.says}, {again.mode}, changed {often} times, median"] = median


def change_shape(side: Side, name: str, shape: Shape, often: int) -> dict[str, float]:
    """A new table, and every statement on it, so often: the median seconds of each."""
    spark, table, columns = side.spark, side.own(name), (*BASE, *shape.columns)
    values = ", ".join(f"{value} AS {column.split()[0]}" for column, value in columns)
    seconds = defaultdict(list)

    def read_all() -> None:
        side.keep(f"{name} {len(seconds)}", spark.sql(f"SELECT * FROM {table}").collect())

    def run(statement: str, text: str) -> None:
        seconds[statement] += times(1, lambda: spark.sql(text))
        seconds[f"SELECT after {statement}"] += times(1, read_all)

    given = {**properties(shape.mode), "format-version": str(shape.version)}
    options = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    ddl = ", ".join(column for column, _ in columns)
    partition = "" if side.plain else shape.partition
    seconds["CREATE TABLE"] += times(1, lambda: side.create(name, ddl, partition, options))
    if shape.order and not side.plain:
        spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY {shape.order}")
    run("INSERT", f"INSERT INTO {table} SELECT {values} FROM VALUES {EIGHT} AS v(id)")
    source = f"(SELECT {values} FROM VALUES (2L), (5L), (100L) AS v(id))"
    matched = "WHEN MATCHED THEN UPDATE SET amount = s.amount + 1"
    for number in range(0 if side.plain else often):
        run("UPDATE", f"UPDATE {table} SET amount = amount + 1 WHERE id IN (1, 6)")
        run("DELETE", f"DELETE FROM {table} WHERE id = {number if number < 6 else 100}")
        run("MERGE", f"MERGE INTO {table} t USING {source} s ON t.id = s.id {matched} WHEN NOT MATCHED THEN INSERT *")
    return {statement: statistics.median(each) for statement, each in seconds.items()}


if __name__ == "__main__":
    main(many, few)

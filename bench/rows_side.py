"""One side of `bench_rows.py` in a process of its own: runs every case once and prints its seconds as JSON.

`python rows_side.py SIDE DIRECTORY SIZES MARK`, where SIDE is `bergline` or the jars of the official runtime.
"""
# ruff: noqa: S608  (statements are put together from our own names)

import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from spark_side import EVERY_COLUMN, start

MERGE = """
MERGE INTO {table} t USING source s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET amount = s.amount, note = s.note
WHEN NOT MATCHED THEN INSERT *
"""
MEGABYTE = 1024


def main() -> None:
    side, directory, given, mark = sys.argv[1:]
    sizes = json.loads(given)
    spark, _ = start(side, directory)
    seconds: dict[str, float] = {}
    answers: dict[str, list[str]] = {}

    def timed(case: str, run: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        found = run()
        seconds[case] = time.perf_counter() - started
        return found

    def first_row(text: str) -> Any:
        return spark.sql(text).collect()[0]

    def count(table: str) -> list[str]:
        found = first_row(f"SELECT count(*), sum(id), sum(part), count(DISTINCT note) FROM {table}")
        return [str(value) for value in found]

    spark.sql("SELECT count(*) FROM lake.db.delete_v2_warm").collect()
    spark.sql("DELETE FROM lake.db.delete_v2_warm WHERE part = 3")
    ready = time.time()
    for version in ("v2", "v3"):
        table = f"lake.db.delete_{version}_{mark}"
        timed(f"delete {version}", partial(spark.sql, f"DELETE FROM {table} WHERE part = 7"))
        found = timed(f"read {version}", partial(first_row, f"SELECT {EVERY_COLUMN} FROM {table}"))
        answers[f"read {version}"] = [str(value) for value in found]
    update = "SET amount = amount * 2, note = concat(note, '!') WHERE part = 11"
    first = sizes["merged"] - sizes["source"] // 2
    columns = "id", "timestamp_micros(1700000000000000 + id * 1000) AS ts", "'region-0' AS region", "7 AS part"
    source = spark.range(first, first + sizes["source"]).selectExpr(*columns, "id * 0.5D AS amount", "'merged' AS note")
    source.createOrReplaceTempView("source")
    for mode in ("cow", "mor"):
        updated, merged = f"lake.db.update_{mode}_{mark}", f"lake.db.merge_{mode}_{mark}"
        timed(f"update {mode}", partial(spark.sql, f"UPDATE {updated} {update}"))
        answers[f"update {mode}"] = count(updated)
        timed(f"merge {mode}", partial(spark.sql, MERGE.format(table=merged)))
        answers[f"merge {mode}"] = count(merged)
    small = f"lake.db.small_{mark}"
    call = f"CALL lake.system.rewrite_data_files(table => 'db.small_{mark}')"
    timed("compact", lambda: spark.sql(call).collect())
    answers["compact"] = [
        *count(small),
        *(str(v) for v in spark.sql(f"SELECT count(*) FROM {small}.files").collect()[0]),
    ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE
    print(json.dumps({"ready": ready, "seconds": seconds, "answers": answers, "driver_mb": peak}))
    spark.stop()


if __name__ == "__main__":
    main()

"""One side of `bench_tpcds.py` in a process of its own: runs the queries once, in order, and prints seconds as JSON.

`python tpcds_side.py SIDE DIRECTORY QUERIES MARK`, where SIDE is `bergline`, `parquet` or the jars of the official
runtime.
"""

import json
import sys
import time
from pathlib import Path

from spark_side import settings, start

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support" / "fixtures"))
from tpcds_data import tpcds_queries


def main() -> None:
    side, directory, names, _ = sys.argv[1:]
    queries = tpcds_queries()
    assert queries is not None
    if side == "parquet":
        spark = settings(directory).getOrCreate()
        for path in sorted(Path(directory, "parquet").iterdir()):
            spark.sql(f"CREATE TABLE {path.name} USING parquet LOCATION '{path}'")
    else:
        spark, _ = start(side, directory)
        spark.sql("USE lake.db")
    spark.sql("SELECT count(*) FROM date_dim").collect()
    ready = time.time()
    seconds, answers = {}, {}
    for name in json.loads(names):
        started = time.perf_counter()
        rows = spark.sql(queries[name]).collect()
        seconds[name] = time.perf_counter() - started
        answers[name] = sorted(map(repr, rows))
    print(json.dumps({"ready": ready, "seconds": seconds, "answers": answers}))
    spark.stop()


if __name__ == "__main__":
    main()

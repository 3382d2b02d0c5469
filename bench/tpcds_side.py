"""The queries of `bench_tpcds.py`, for one side: once each, in order."""

import sys
from pathlib import Path

from side import Side, main

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.fixtures.tpcds_data import tpcds_queries


def queries(side: Side) -> None:
    texts = tpcds_queries()
    assert texts is not None
    if side.plain:
        for path in side.directory.joinpath("parquet").iterdir():
            side.spark.sql(f"CREATE TABLE {path.name} USING parquet LOCATION '{path}'")
    else:
        side.spark.sql("USE lake.db")
    side.spark.sql("SELECT count(*) FROM date_dim").collect()
    for name in side.sizes:
        side.query(name, texts[name])


if __name__ == "__main__":
    main(queries)

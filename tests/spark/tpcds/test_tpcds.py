"""The queries of TPC-DS on lake tables and on Parquet files: equal rows.

Their texts are taken from Spark's test jar, which make gets from Maven: TPC's license is not one to copy them under.
"""

from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from support.fixtures.tpcds_data import tpcds_queries, tpcds_tables

pytestmark = pytest.mark.spark

QUERIES = tpcds_queries() or {}
SAMPLE = ("q2", "q9", "q14a", "q23a", "q27", "q38", "q39a", "q47", "q56", "q64", "q88", "q95")
"""Of each kind of grammar some, for `make test`: CTEs, rollups, windows, set operations, subqueries of every kind."""
MOST_WITHOUT_ROWS = 25
"""The tables are small, and some queries ask for very much at once."""

Sides = tuple[SparkSession, SparkSession]


@pytest.fixture(scope="module")
def sides(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """A session of Spark alone in which the tables are Parquet files, and one in which they are those of a lake."""
    if not QUERIES:
        pytest.skip("needs the queries of TPC-DS: no jar of Spark's tests in .venv/tools/tpcds")
    directory = tmp_path_factory.mktemp("tpcds")
    plain, attached = spark_session.newSession(), spark_session.newSession()
    with bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake:
        lake.create_namespace("tpcds")
        plain.sql("CREATE DATABASE plain_tpcds")
        for name, rows in tpcds_tables().items():
            lake.create_table(f"tpcds.{name}", rows.schema).append(rows)
            files = directory / "parquet" / name
            files.mkdir(parents=True)
            pq.write_table(rows, files / "rows.parquet")
            plain.sql(f"CREATE TABLE plain_tpcds.{name} USING parquet LOCATION '{files}'")
        bergline.spark.attach(attached, lake)
        plain.sql("USE plain_tpcds")
        attached.sql("USE tpcds")
        yield plain, attached
        bergline.spark.detach(attached)
        plain.sql("DROP DATABASE plain_tpcds CASCADE")


def check_queries(sides: Sides, names: tuple[str, ...]) -> None:
    """Fail with what is not equal."""
    different, empty = {}, []
    for name in names:
        expected, found = ([repr(row) for row in side.sql(QUERIES[name]).collect()] for side in sides)
        if sorted(found) != sorted(expected):
            different[name] = (expected[:3], found[:3])
        if not expected:
            empty.append(name)
    assert different == {}
    assert len(empty) <= MOST_WITHOUT_ROWS * len(names) / 100, empty


def test_some_of_the_queries_give_what_they_give_on_parquet(sides: Sides) -> None:
    check_queries(sides, SAMPLE)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_all_queries_give_what_they_give_on_parquet(sides: Sides) -> None:
    check_queries(sides, tuple(QUERIES))

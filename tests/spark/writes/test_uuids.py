"""UUIDs are text in Spark: they are written from text, and found by it."""

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import InvalidInputError

pytestmark = pytest.mark.spark

ONE, TWO, THREE = (str(uuid.UUID(int=n << 100)) for n in (1, 2, 3))


@pytest.fixture
def table(lake: Lake) -> Table:
    schema = pa.schema([("id", pa.int64()), ("u", pa.uuid()), ("l", pa.list_(pa.uuid())), ("at", pa.time64("us"))])
    return lake.create_table("db.t", schema, partition_by=["bucket(4, u)"])


def test_uuids_are_written_from_text_and_read_as_text(spark: SparkSession, table: Table) -> None:
    spark.sql(f"INSERT INTO db.t (id, u, l) VALUES (1, '{ONE}', array('{TWO}', null)), (2, upper('{TWO}'), null)")
    spark.createDataFrame([(3, THREE)], "id BIGINT, u STRING").writeTo("db.t").append()
    found = sorted(map(tuple, spark.sql("SELECT id, u, l FROM db.t").collect()))
    assert found == [(1, ONE, [TWO, None]), (2, TWO, None), (3, THREE, None)]
    assert sorted(table.refresh().scan().to_arrow().column("u").to_pylist()) == [
        uuid.UUID(u) for u in (ONE, TWO, THREE)
    ]


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        (f"u = '{TWO}'", [2]),
        (f"u = '{uuid.UUID(int=255 << 120)}'", []),
        (f"u = upper('{uuid.UUID(int=255 << 120)}')", []),
        (f"NOT (u = '{str(uuid.UUID(int=0xAB << 120)).upper()}')", [1, 2, 3, 4]),
        (f"u NOT IN ('{str(uuid.UUID(int=0xAB << 120)).upper()}', 'x')", [1, 2, 3, 4]),
        (f"u IN ('{ONE}', '{THREE}')", [1, 3]),
        (f"u > '{ONE}' AND u <= '{THREE}'", [2, 3]),
        (f"u <=> '{ONE}'", [1]),
        ("u LIKE '0000003%'", [3]),
        ("u > '0'", [1, 2, 3, 4]),
    ],
)
def test_uuids_are_found_as_the_text_that_they_are(
    spark: SparkSession, table: Table, condition: str, ids: list[int]
) -> None:
    rows = [(1, ONE), (2, TWO), (3, THREE), (4, str(uuid.UUID(int=0xAB << 120)))]
    table.append(
        pa.table({"id": [n for n, _ in rows], "u": pa.array([uuid.UUID(u).bytes for _, u in rows], pa.uuid())})
    )
    assert sorted(row.id for row in spark.sql(f"SELECT id FROM db.t WHERE {condition}").collect()) == ids


def test_text_that_is_no_uuid_is_refused_and_nothing_is_written(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInputError, match="expected `uuid`, found 'x' in column `u`"):
        spark.sql(f"INSERT INTO db.t (id, u) VALUES (1, '{ONE}'), (2, 'x')")
    assert not table.refresh().metadata.snapshots
    assert not [f for f in (tmp_path / "warehouse").rglob("*") if f.suffix == ".parquet"]

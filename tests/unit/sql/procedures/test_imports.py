"""`add_files`, `snapshot` and `migrate` without an engine: files by path, and one clear error for Spark's tables."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, UnsupportedError
from support.fixtures.rows import ORDERS, ids
from support.fixtures.sql_statements import run_text


def run(lake: Lake, text: str) -> pa.Table:
    found = run_text(lake, f"CALL system.{text}")
    assert found is not None
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for region, number in (("eu", 1), ("us", 2)):
        home = tmp_path / "hive.d" / f"region={region}"
        home.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), home / "a.parquet")
    return tmp_path / "hive.d"


def test_files_of_a_directory_are_added(lake: Lake, source: Path) -> None:
    table = lake.create_table("db.regions", ORDERS, partition_by=["region"])
    text = f"add_files(table => 'db.regions', source_table => '`parquet`.`{source}`', parallelism => 2)"
    found = run(lake, text.replace("parallelism", "partition_filter => map('region', 'eu'), parallelism"))
    assert found.schema == pa.schema(
        [
            pa.field("added_files_count", pa.int64(), nullable=False),
            pa.field("changed_partition_count", pa.int64()),
        ]
    )
    assert found.to_pylist() == [{"added_files_count": 1, "changed_partition_count": 1}]
    assert ids(table.refresh().scan().to_arrow()) == [1]
    for check in ("", ", check_duplicate_files => false"):
        with pytest.raises(InvalidInputError, match="which is on branch `main` already"):
            run(lake, text.replace(", parallelism", f"{check}, parallelism"))


def test_files_without_partitions_change_none(lake: Lake, orders: Table, source: Path) -> None:
    found = run(lake, f"add_files('db.orders', '`parquet`.`{source}/region=eu`')")
    assert found.to_pylist() == [{"added_files_count": 1, "changed_partition_count": None}]
    assert ids(orders.refresh().scan().to_arrow()) == [1]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("add_files('db.orders', '`orc`.`/x`')", UnsupportedError, "expected Parquet files, found `orc`"),
        ("add_files('db.orders', '`avro`.`/x`')", UnsupportedError, "expected Parquet files, found `avro`"),
        ("add_files('db.orders', 'db.other')", UnsupportedError, "expected a Spark session"),
        ("add_files('db.orders', 'other')", UnsupportedError, "expected a Spark session"),
        ("add_files('db.orders', '`parquet`.`/x`', parallelism => 0)", InvalidInputError, "above 0, found 0"),
        ("snapshot('db.other', 'db.new')", UnsupportedError, "expected a Spark session"),
        ("snapshot('db.other', 'db.new', parallelism => 0)", InvalidInputError, "above 0, found 0"),
        ("migrate('db.other')", UnsupportedError, "expected a Spark session"),
        ("add_files('db.orders')", InvalidInputError, "expected argument `source_table`"),
    ],
)
def test_what_needs_more_is_one_clear_error(
    lake: Lake, orders: Table, text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run(lake, text)
    assert orders.refresh().current_snapshot is None
    assert lake.list_tables() == ["db.orders"]

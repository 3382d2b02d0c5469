"""Scans: reserved columns by name, rows in pieces."""

import pyarrow as pa
import pytest
from rows import ORDERS, order_rows

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError


def test_reserved_columns_are_given_by_name(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region", "bucket(4, id)"])
    table.append(order_rows(1))
    (row,) = (
        table.scan(columns=["id", "_file", "_pos", "_partition", "_spec_id", "_deleted", "_row_id"])
        .to_arrow()
        .to_pylist()
    )
    assert row.pop("_file").endswith(".parquet")
    assert row["_partition"].keys() == {"region", "id_bucket"}
    assert row["_partition"]["region"] == "eu"
    del row["_partition"]
    assert row == {"id": 1, "_pos": 0, "_spec_id": 0, "_deleted": False, "_row_id": None}


def test_own_column_hides_a_reserved_one(lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("_pos", pa.string())]))
    table.append(pa.table({"_pos": ["x"]}))
    assert table.scan(columns=["_pos"]).to_arrow().to_pydict() == {"_pos": ["x"]}


def test_unknown_column_is_not_found(orders: Table) -> None:
    with pytest.raises(NotFoundError, match="no column `_position`"):
        orders.scan(columns=["_position"])
    with pytest.raises(InvalidInputError, match="found"):
        orders.scan(columns=["_pos", "_pos"])


def test_rows_come_in_pieces(orders: Table) -> None:
    orders.append(order_rows(1, 2)).append(order_rows(3))
    scan = orders.scan(row_filter="id > 1")
    assert sorted(i for batch in scan.to_batches() for i in batch.column("id").to_pylist()) == [2, 3]
    reader = scan.to_arrow_batch_reader()
    assert reader.schema.equals(scan.to_arrow().schema)
    assert reader.read_all().num_rows == 2


def test_empty_table_has_no_pieces_and_a_schema(orders: Table) -> None:
    assert list(orders.scan().to_batches()) == []
    assert orders.scan().to_arrow_batch_reader().read_all().num_rows == 0


@pytest.mark.parametrize("keyword", ["", "TIMESTAMP "])
def test_times_compare_to_the_last_digit(lake: Lake, keyword: str) -> None:
    schema = pa.schema([("ns", pa.timestamp("ns")), ("us", pa.timestamp("us"))])
    table = lake.create_table("db.digits", schema, properties={"format-version": "3"})
    table.append(pa.table({"ns": [0, 1, 1000], "us": [0, 1, 2]}, schema=schema))
    literal = f"{keyword}'1970-01-01 00:00:00.000000001'"

    def found(condition: str) -> list[int]:
        rows = table.scan(f"{condition} {literal}").to_arrow()
        return rows.column("us").cast(pa.int64()).to_pylist()

    assert [found(f"ns {op}") for op in ("=", "<", "<=", ">", "!=")] == [[1], [0], [0, 1], [2], [0, 2]]
    assert [found(f"us {op}") for op in ("=", "<", "<=", ">", "!=")] == [[], [0], [0], [1, 2], [0, 1, 2]]

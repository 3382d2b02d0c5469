"""`compute_table_stats` and `compute_partition_stats`: the official arguments and columns."""

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError
from support.fixtures.rows import ORDERS, order_rows
from support.fixtures.sql_statements import rows_of, run_text


def test_table_statistics_are_computed_for_columns_and_a_snapshot(lake: Lake, orders: Table) -> None:
    empty = run_text(lake, "CALL system.compute_table_stats('db.orders')")
    assert empty is not None
    assert (empty.num_rows, empty.schema) == (0, pa.schema([("statistics_file", pa.string())]))
    orders.append(order_rows(1, 2)).append(order_rows(3))
    first = orders.metadata.snapshots[0].snapshot_id
    text = f"system.compute_table_stats(table => 'db.orders', snapshot_id => {first}, columns => array('id', 'amount'))"
    found = rows_of(lake, f"CALL {text}")
    (file,) = orders.refresh().metadata.statistics
    assert found == [{"statistics_file": file.statistics_path}]
    assert [(b.fields, b.properties) for b in file.blob_metadata] == [((1,), {"ndv": "2"}), ((2,), {"ndv": "2"})]
    with pytest.raises(NotFoundError, match="no column `nope`"):
        rows_of(lake, "CALL system.compute_table_stats('db.orders', columns => array('nope'))")


def test_partition_statistics_are_computed(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    with pytest.raises(InvalidInputError, match="expected a partitioned table"):
        rows_of(lake, "CALL system.compute_partition_stats('db.orders')")
    table = lake.create_table("db.regions", ORDERS, partition_by=["region"])
    assert rows_of(lake, "CALL system.compute_partition_stats('db.regions')") == []
    table.append(order_rows(1))
    found = rows_of(lake, "CALL system.compute_partition_stats('db.regions')")
    (file,) = table.refresh().metadata.partition_statistics
    assert found == [{"partition_statistics_file": file.statistics_path}]

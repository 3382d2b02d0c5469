"""Rows that were written for columns which the table has no longer: refused, never stored as nulls."""

from pathlib import Path

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError
from bergline.table.commits.layout_check import check_written_columns
from support.fixtures.rows import ids, order_rows


@pytest.mark.parametrize("way", ["append", "overwrite", "overwrite_partitions"])
@pytest.mark.parametrize("columns", [{"id": pa.string()}, {"other": pa.int64()}], ids=["other type", "other name"])
def test_rows_for_a_table_that_was_replaced_meanwhile_conflict(
    lake: Lake, orders: Table, tmp_path: Path, way: str, columns: dict[str, pa.DataType]
) -> None:
    stale = lake.load_table("db.orders")
    with lake.stage_table("db.orders", pa.schema(list(columns.items())), replace=True):
        pass
    with pytest.raises(ConflictError, match="column `id` would no longer have the id 1"):
        getattr(stale, way)(order_rows(1))
    assert orders.refresh().metadata.snapshots == ()
    assert not list(tmp_path.rglob("*.parquet"))


def test_rows_fit_where_columns_have_other_names_or_were_only_dropped(lake: Lake, orders: Table) -> None:
    columns = orders.schema
    with orders.update_schema() as update:
        update.rename_column("amount", "price")
        update.add_column("amount", "string")
        update.drop_column("region")
    check_written_columns(columns, orders.refresh().schema)
    stale = lake.load_table("db.orders")
    with lake.stage_table("db.orders", pa.schema([("id", pa.int64())]), replace=True):
        pass
    stale.append(pa.table({"id": [2], "price": [1.0]}))
    assert ids(orders.refresh().scan().to_arrow()) == [2]

"""Statistics files are registered, and deleted where that certainly failed."""

import pytest

from bergline import Table
from bergline.errors import NotFoundError
from bergline.format.metadata.table_metadata import PartitionStatisticsFile
from bergline.table.statistics.statistics_file import RegisterStatistics
from support.fixtures.rows import order_rows


def test_file_is_registered(orders: Table) -> None:
    orders.append(order_rows(1))
    assert orders.current_snapshot
    orders.io.create(f"{orders.location}/metadata/a.parquet", b"a")
    file = PartitionStatisticsFile(orders.current_snapshot.snapshot_id, f"{orders.location}/metadata/a.parquet", 1)
    orders.commit(RegisterStatistics(orders.io, file))
    assert orders.refresh().metadata.partition_statistics == (file,)


def test_file_of_an_unknown_snapshot_is_deleted(orders: Table) -> None:
    location = f"{orders.location}/metadata/a.parquet"
    orders.io.create(location, b"a")
    with pytest.raises(NotFoundError, match="no snapshot with id 7"):
        orders.commit(RegisterStatistics(orders.io, PartitionStatisticsFile(7, location, 1)))
    assert not orders.io.exists(location)

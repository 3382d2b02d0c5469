"""Partitions replaced by those of new rows: which files go, and which stay after the partitioning changed."""

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, RefusedError
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows


def create(lake: Lake, version: str = "2", partition_by: tuple[str, ...] = ("region",)) -> Table:
    return lake.create_table("db.t", ORDERS, partition_by=partition_by, properties={"format-version": version})


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_only_the_partitions_of_the_rows_are_replaced(lake: Lake, version: str) -> None:
    table = create(lake, version).append(order_rows(1, 2)).append(order_rows(3, region="us"))
    table.append(order_rows(4), branch="dev").append(order_rows(5, region="jp"), branch="dev")
    table.overwrite_partitions(pa.concat_tables([order_rows(8), order_rows(9, region="cn")]), branch="dev")
    assert ids(table.scan(ref="dev").to_arrow()) == [3, 5, 8, 9]
    assert ids(table.scan().to_arrow()) == [1, 2, 3]
    head = table.metadata.head("dev")
    assert head is not None
    expected = {"operation": "overwrite", "replace-partitions": "true", "deleted-data-files": "2"}
    assert expected.items() <= head.summary.items()


def test_without_partitions_all_rows_are_replaced(lake: Lake) -> None:
    table = create(lake, partition_by=()).append(order_rows(1)).append(order_rows(2))
    table.overwrite_partitions(order_rows(3))
    assert ids(table.scan().to_arrow()) == [3]


def test_without_rows_nothing_happens(lake: Lake) -> None:
    table = create(lake).append(order_rows(1))
    before = table.metadata_location
    table.overwrite_partitions(order_rows())
    assert table.refresh().metadata_location == before


def test_files_of_an_older_spec_stay(lake: Lake) -> None:
    table = create(lake).append(order_rows(1))
    with table.update_spec() as spec:
        spec.add_field("bucket(1, id)")
    table.append(order_rows(2)).overwrite_partitions(order_rows(3))
    assert ids(table.scan().to_arrow()) == [1, 3]


@pytest.mark.parametrize("version", ["1", "2"])
def test_files_of_an_older_spec_go_where_there_are_no_partitions_any_more(lake: Lake, version: str) -> None:
    table = create(lake, version).append(order_rows(1)).append(order_rows(2, region="us"))
    with table.update_spec() as spec:
        spec.remove_field("region")
    table.overwrite_partitions(order_rows(3))
    assert ids(table.scan().to_arrow()) == [3]


@pytest.mark.parametrize(
    ("isolation", "region", "conflicts"),
    [
        (None, "eu", False),
        ("none", "eu", False),
        ("snapshot", "eu", False),
        ("serializable", "eu", True),
        ("serializable", "us", False),
    ],
)
def test_rows_added_to_a_replaced_partition_are_a_conflict_when_asked(
    lake: Lake, isolation: str | None, region: str, conflicts: bool
) -> None:
    create(lake).append(order_rows(1))
    mine = lake.load_table("db.t")
    lake.load_table("db.t").append(order_rows(2, region=region))
    if conflicts:
        with pytest.raises(ConflictError, match="in partition `region=eu`"):
            mine.overwrite_partitions(order_rows(3), isolation=isolation)
    else:
        mine.overwrite_partitions(order_rows(3), isolation=isolation)
        assert ids(mine.scan().to_arrow()) == ([2, 3] if region == "us" else [3])


@pytest.mark.parametrize(("isolation", "conflicts"), [(None, False), ("snapshot", True), ("serializable", True)])
def test_rows_removed_from_a_replaced_partition_are_a_conflict_when_asked(
    lake: Lake, isolation: str | None, conflicts: bool
) -> None:
    create(lake).append(order_rows(1))
    mine = lake.load_table("db.t")
    lake.load_table("db.t").delete("id = 1")
    if conflicts:
        with pytest.raises(ConflictError, match="delete on `main`"):
            mine.overwrite_partitions(order_rows(3), isolation=isolation)
    else:
        mine.overwrite_partitions(order_rows(3), isolation=isolation)
        assert ids(mine.scan().to_arrow()) == [3]


@pytest.mark.parametrize("way", ["overwrite_files", "replace_partitions"])
def test_files_for_a_tag_are_refused_and_removed_where_they_are_handed_over(lake: Lake, way: str) -> None:
    table = create(lake).append(order_rows(1))
    table.refs.create_tag("v1")
    before = table.io.list(table.location)
    with pytest.raises(RefusedError, match="tags do not move"):
        getattr(table, way)(
            written_files(table, order_rows(2)), branch="v1", isolation="serializable", discard_on_failure=True
        )
    assert {f for f in table.io.list(table.location) if f.endswith("parquet")} <= set(before)

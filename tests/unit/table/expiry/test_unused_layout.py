"""Partition specs and schemas that nothing uses are removed with expiry, and no others."""

import datetime as dt
import json

import pyarrow as pa
import pytest

from bergline import Lake, Table
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long


FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)


def evolved(lake: Lake) -> Table:
    """Three schemas and three specs, of which the snapshots to come use the last.

    A snapshot that removes files still has manifests that say so.
    """
    table = lake.create_table("db.evolved", ORDERS, partition_by=["region"]).append(order_rows(1))
    with table.update_schema() as schema:
        schema.add_column("note", "string")
    with table.update_spec() as spec:
        spec.add_field("bucket(4, id)")
    table.append(order_rows(2))
    with table.update_schema() as schema:
        schema.rename_column("note", "remark")
    with table.update_spec() as spec:
        spec.remove_field("region")
    return table


def layout(table: Table) -> tuple[list[int], list[int | None]]:
    metadata = table.refresh().metadata
    return sorted(metadata.specs_by_id), sorted(s.schema_id or 0 for s in metadata.schemas)


def test_unused_specs_and_schemas_are_removed_if_asked_for(lake: Lake) -> None:
    table = evolved(lake).overwrite(order_rows(2)).overwrite(order_rows(3))
    assert table.expire(older_than=FUTURE).removed_specs == ()
    assert layout(table) == ([0, 1, 2], [0, 1, 2])
    planned = table.expire(older_than=FUTURE, clean_metadata=True, dry_run=True)
    assert layout(table) == ([0, 1, 2], [0, 1, 2])
    result = table.expire(older_than=FUTURE, clean_metadata=True)
    assert result == planned
    assert (result.removed_specs, result.removed_schemas) == ((0, 1), (0, 1))
    assert layout(table) == ([2], [2])
    assert ids(table.scan().to_arrow()) == [3]


def test_specs_and_schemas_of_kept_snapshots_and_files_stay(lake: Lake) -> None:
    table = evolved(lake)
    table.refs.create_tag("then")
    table.append(order_rows(3))
    result = table.expire(older_than=FUTURE, clean_metadata=True)
    assert (result.removed_specs, result.removed_schemas) == ((), (0,))
    assert layout(table) == ([0, 1, 2], [1, 2])
    assert ids(table.scan(ref="then").to_arrow()) == [1, 2]
    assert ids(table.scan().to_arrow()) == [1, 2, 3]


def test_schema_that_knows_the_columns_of_a_spec_stays(lake: Lake) -> None:
    table = lake.create_table("db.dropped", ORDERS, partition_by=["region"]).append(order_rows(1))
    with table.update_spec() as spec:
        spec.remove_field("region")
    with table.update_schema() as schema:
        schema.drop_column("region")
    table.append(pa.table({"id": [2], "amount": [1.0]}))
    assert table.expire(older_than=FUTURE, clean_metadata=True).removed_schemas == ()
    assert ids(table.refresh().scan().to_arrow()) == [1, 2]


def test_schema_that_knows_the_columns_of_equality_deletes_stays(lake: Lake) -> None:
    table = lake.create_table("db.deleted", ORDERS).append(order_rows(1)).append(order_rows(2, region="us"))
    add_deletes(table, equality_deletes(table, pa.table({"region": ["us"]}), [3]))
    with table.update_schema() as schema:
        schema.drop_column("region")
    table.append(pa.table({"id": [3], "amount": [1.0]}))
    assert table.expire(older_than=FUTURE, clean_metadata=True).removed_schemas == ()
    assert ids(table.refresh().scan().to_arrow()) == [1, 3]


def test_latest_schema_stays_so_that_its_number_is_not_given_again(lake: Lake) -> None:
    table = lake.create_table("db.back", ORDERS).append(order_rows(1))
    for old, new in (("amount", "price"), ("price", "amount")):
        with table.update_schema() as schema:
            schema.rename_column(old, new)
    assert table.metadata.current_schema_id == 0
    table.append(order_rows(2))
    assert table.expire(older_than=FUTURE, clean_metadata=True).removed_schemas == ()
    assert layout(table)[1] == [0, 1]


def test_specs_and_schemas_go_although_no_snapshot_does(lake: Lake) -> None:
    table = evolved(lake).overwrite(order_rows(2)).overwrite(order_rows(3))
    table.expire(older_than=FUTURE)
    assert table.expire(clean_metadata=True).removed_schemas == (0, 1)
    before = table.metadata_location
    assert table.expire(clean_metadata=True).removed_schemas == ()
    assert table.metadata_location == before
    written = json.loads(table.io.read(before))
    assert [s["schema-id"] for s in written["schemas"]] == [2]


def test_unused_layout_is_removed_in_a_transaction(lake: Lake) -> None:
    table = evolved(lake)
    with table.transaction() as tx:
        tx.overwrite(order_rows(2)).overwrite(order_rows(3))
        tx.refs.create_branch("dev")
        tx.overwrite(order_rows(4), branch="dev")
        result = tx.expire(older_than=FUTURE, clean_metadata=True)
    assert result.removed_schemas == (0, 1)
    assert layout(table) == ([2], [2])
    assert ids(table.scan(ref="dev").to_arrow()) == [4]


def test_table_without_snapshots_can_be_cleaned(lake: Lake) -> None:
    table = lake.create_table("db.empty", ORDERS)
    with table.update_schema() as schema:
        schema.add_column("note", "string")
    assert table.expire(clean_metadata=True).removed_schemas == (0,)

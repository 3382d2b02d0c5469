"""Tables of every format version, from the oldest writers on: read, written to, upgraded."""

import json
import uuid

import pytest

from bergline import Lake, Table
from bergline.catalog.identifiers import parse_table_name
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.format.metadata.json import render_metadata
from bergline.scan.manifests import load_manifest_list
from support.fixtures.rows import ORDERS, ids, order_rows


@pytest.fixture
def oldest(lake: Lake) -> Table:
    """A v1 table as the first writers left it: no uuid, no ids, manifests named by the snapshot itself."""
    made = lake.create_table("db.made", ORDERS, partition_by=["region"], properties={"format-version": "1"})
    made.append(order_rows(1, 2)).append(order_rows(3, region="us"))
    document = json.loads(render_metadata(made.metadata))
    for snapshot, known in zip(document["snapshots"], made.metadata.snapshots, strict=True):
        snapshot["manifests"] = [m.manifest_path for m in load_manifest_list(made.io, known)]
        for key in ("manifest-list", "summary", "schema-id"):
            del snapshot[key]
    for key in ("table-uuid", "schemas", "current-schema-id", "partition-specs", "default-spec-id", "refs"):
        del document[key]
    for key in ("last-partition-id", "sort-orders", "default-sort-order-id"):
        del document[key]
    del document["schema"]["schema-id"]
    del document["partition-spec"][0]["field-id"]
    location = f"{made.metadata.location}/metadata/v1.metadata.json"
    made.io.create(location, json.dumps(document).encode())
    assert isinstance(lake.catalog, PointerCatalog)
    assert lake.catalog.store.create(parse_table_name("db.old"), location)
    return lake.load_table("db.old")


def test_rows_of_the_oldest_tables_are_read(oldest: Table) -> None:
    assert oldest.metadata.table_uuid is None
    assert ids(oldest.scan().to_arrow()) == [1, 2, 3]
    assert ids(oldest.scan("region = 'us'").to_arrow()) == [3]


def test_first_commit_gives_the_oldest_tables_a_uuid_and_keeps_their_rows(oldest: Table) -> None:
    oldest.append(order_rows(4))
    assert ids(oldest.scan().to_arrow()) == [1, 2, 3, 4]
    metadata = oldest.metadata
    assert metadata.table_uuid is not None
    assert uuid.UUID(metadata.table_uuid).version == 4
    assert (metadata.format_version, metadata.last_sequence_number) == (1, 0)
    again = oldest.append(order_rows(5)).metadata
    assert again.table_uuid == metadata.table_uuid


def test_refs_of_the_oldest_tables_can_be_made(oldest: Table) -> None:
    oldest.refs.create_tag("first")
    assert oldest.metadata.refs["first"].snapshot_id == oldest.metadata.current_snapshot_id
    assert oldest.metadata.table_uuid is not None


def test_table_is_upgraded_through_every_version(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"format-version": "1"})
    table.append(order_rows(1))
    assert (table.metadata.last_sequence_number, table.metadata.snapshots[-1].sequence_number) == (0, 0)
    table.set_properties({"format-version": "2"})
    table.append(order_rows(2))
    assert (table.metadata.format_version, table.metadata.last_sequence_number) == (2, 1)
    table.set_properties({"format-version": "3"})
    table.append(order_rows(3))
    metadata = table.metadata
    assert (metadata.format_version, metadata.last_sequence_number) == (3, 2)
    # all three rows have got ids: those of older manifests too
    assert (metadata.snapshots[-1].first_row_id, metadata.snapshots[-1].added_rows, metadata.next_row_id) == (0, 3, 3)
    assert "format-version" not in metadata.properties
    assert ids(lake.load_table("db.t").scan().to_arrow()) == [1, 2, 3]

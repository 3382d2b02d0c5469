"""Transactions and replaced tables next to Java's: the same metadata after them, readable by both."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official
Official = Callable[[str], list[tuple[Any, ...]]]
VERSIONS = ["1", "2", "3"]
TRANSACTION = """
table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
transaction = table.newTransaction()
transaction.newAppend().commit()
transaction.updateProperties().set("team", "us").commit()
transaction.newAppend().commit()
second = transaction.table().currentSnapshot().snapshotId()
transaction.manageSnapshots().createTag("v1", second).commit()
transaction.updateSchema().addColumn("note", getattr(jvm.org.apache.iceberg.types, "Types$StringType").get()).commit()
transaction.newAppend().toBranch("dev").commit()
transaction.newDelete().deleteFromRowFilter(jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()).commit()
transaction.commitTransaction()
result = None
"""


def shape(table: Table) -> dict[str, Any]:
    """The metadata without ids, times and places that two writers never share."""
    metadata = table.metadata
    number = {s.snapshot_id: n for n, s in enumerate(metadata.snapshots)}
    return {
        "snapshots": [
            (
                str(s.operation),
                s.sequence_number,
                s.schema_id,
                (s.first_row_id, s.added_rows),
                None if s.parent_snapshot_id is None else number[s.parent_snapshot_id],
            )
            for s in metadata.snapshots
        ],
        "log": [number[e.snapshot_id] for e in metadata.snapshot_log],
        "refs": {name: (ref.snapshot_ref_type, number[ref.snapshot_id]) for name, ref in metadata.refs.items()},
        "numbers": (metadata.last_sequence_number, metadata.next_row_id, metadata.last_column_id),
        "schemas": [s.names_by_id for s in metadata.schemas],
        "specs": [[(f.source_id, f.field_id, f.name) for f in s.fields] for s in metadata.partition_specs],
        "defaults": (metadata.current_schema_id, metadata.default_spec_id, metadata.default_sort_order_id),
        "metadata files": len(metadata.metadata_log),
        "team": metadata.properties.get("team"),
    }


@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_transaction_leaves_the_same_metadata(
    official: Official, official_runtime: OfficialRuntime, lake: Lake, version: str
) -> None:
    for name in ("ours", "theirs"):
        lake.create_table(f"db.{name}", ORDERS, properties={"format-version": version}).append(order_rows(1, 2))
    official_runtime.python(TRANSACTION, name="db.theirs")
    ours = lake.load_table("db.ours")
    with ours.transaction() as tx:
        tx.append_files([])
        tx.set_properties({"team": "us"})
        tx.append_files([])
        tx.refs.create_tag("v1")
        with tx.update_schema() as update:
            update.add_column("note", "string")
        tx.append_files([], branch="dev")
        tx.overwrite_files([])
    assert shape(ours) == shape(lake.load_table("db.theirs"))
    assert official("SELECT id FROM db.ours VERSION AS OF 'v1' ORDER BY id") == [(1,), (2,)]
    assert official("SELECT id, note FROM db.ours.branch_dev ORDER BY id") == [(1, None), (2, None)]
    assert official("SELECT * FROM db.ours") == []


@pytest.mark.parametrize("version", ["2", "3"])
def test_replaced_table_has_the_same_metadata(official: Official, lake: Lake, version: str) -> None:
    for name in ("ours", "theirs"):
        table = lake.create_table(
            f"db.{name}", ORDERS, partition_by=["region"], properties={"format-version": version, "team": "us"}
        )
        table.append(order_rows(1, 2))
        table.refs.create_tag("before")
    official(
        "CREATE OR REPLACE TABLE db.theirs USING iceberg PARTITIONED BY (kind, region) "
        "AS SELECT 'a' AS kind, CAST(7 AS BIGINT) AS id, 'eu' AS region"
    )
    schema = pa.schema([("kind", pa.string()), ("id", pa.int64()), ("region", pa.string())])
    with lake.stage_table("db.ours", schema, partition_by=["kind", "region"], replace=True) as table:
        table.overwrite(pa.table({"kind": ["a"], "id": [7], "region": ["eu"]}, schema=schema))  # as Spark does it
    assert shape(lake.load_table("db.ours")) == shape(lake.load_table("db.theirs"))
    for name in ("ours", "theirs"):
        assert official(f"SELECT kind, id, region FROM db.{name}") == [("a", 7, "eu")]
        assert official(f"SELECT id, region FROM db.{name} VERSION AS OF 'before' ORDER BY id") == [
            (1, "eu"),
            (2, "eu"),
        ]
        assert lake.load_table(f"db.{name}").scan().to_arrow().to_pylist() == [{"kind": "a", "id": 7, "region": "eu"}]
        assert ids(lake.load_table(f"db.{name}").scan(ref="before").to_arrow()) == [1, 2]


def test_staged_table_has_the_same_metadata_and_official_goes_on_with_it(official: Official, lake: Lake) -> None:
    official("CREATE TABLE db.theirs USING iceberg AS SELECT CAST(7 AS BIGINT) AS id, 'eu' AS region")
    schema = pa.schema([("id", pa.int64()), ("region", pa.string())])
    with lake.stage_table("db.ours", schema) as table:
        table.append(pa.table({"id": [7], "region": ["eu"]}, schema=schema))
    assert shape(lake.load_table("db.ours")) == shape(lake.load_table("db.theirs"))
    official("INSERT INTO db.ours VALUES (8, 'us')")
    assert ids(lake.load_table("db.ours").scan().to_arrow()) == [7, 8]


def test_official_reads_all_tables_of_a_transaction(official: Official, lake: Lake) -> None:
    for name in ("orders", "items"):
        lake.create_table(f"db.{name}", ORDERS)
    with lake.transaction() as tx:
        tx.load_table("db.orders").append(order_rows(1)).append(order_rows(2))
        tx.load_table("db.items").append(order_rows(3))
    assert official("SELECT id FROM db.orders ORDER BY id") == [(1,), (2,)]
    assert official("SELECT id FROM db.items") == [(3,)]
    official("INSERT INTO db.orders SELECT * FROM db.items")
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1, 2, 3]

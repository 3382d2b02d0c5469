"""PyIceberg and bergline on one catalog: each reads what the other wrote, and writes next to it."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform

from bergline import Lake, Table
from bergline.errors import RefusedError
from bergline.scan.manifests import live_entries, load_manifest_list
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

WIDE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("dec", pa.decimal128(12, 3)),
        ("day", pa.date32()),
        ("t", pa.time64("us")),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", tz="UTC")),
        ("s", pa.string()),
        ("bin", pa.binary()),
        ("fixed", pa.binary(4)),
        ("list", pa.list_(pa.int32())),
        ("who", pa.struct([("name", pa.string()), ("tags", pa.list_(pa.string()))])),
        ("m", pa.map_(pa.string(), pa.float64())),
    ]
)
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001
WIDE_ROWS = pa.Table.from_pylist(
    [
        {
            "id": 1,
            "flag": True,
            "i": -7,
            "f": 1.5,
            "d": float("nan"),
            "dec": Decimal("-12.345"),
            "day": MOMENT.date(),
            "t": MOMENT.time(),
            "ts": MOMENT,
            "tz": MOMENT.replace(tzinfo=dt.UTC),
            "s": "long text with ünïcode 🧊 that is cut in bounds",
            "bin": b"\x00\xff" * 20,
            "fixed": b"abcd",
            "list": [1, None, 3],
            "who": {"name": "x", "tags": ["a", None]},
            "m": [("k", -0.0)],
        },
        {"id": 2, "d": -0.0, "list": [], "who": {"name": None, "tags": None}, "m": []},
        {"id": 3},
    ],
    schema=WIDE,
)
PARTITIONS = ["day(tz)", "bucket(4, id)", "truncate(3, s)", "flag", "dec"]


def plain(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows in one order, NaN made comparable."""
    by_id = sorted(rows.to_pylist(), key=lambda row: row["id"])
    return [{k: "NaN" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in by_id]


@pytest.mark.parametrize("partition_by", [[], PARTITIONS], ids=["unpartitioned", "partitioned"])
def test_pyiceberg_reads_every_type_that_we_write(lake: Lake, pyiceberg: Any, partition_by: list[str]) -> None:
    lake.create_table("db.wide", WIDE, partition_by=partition_by).append(WIDE_ROWS)
    table = pyiceberg.load_table("db.wide")
    assert plain(table.scan().to_arrow().cast(WIDE)) == plain(WIDE_ROWS)
    assert [r["id"] for r in plain(table.scan("id > 1").to_arrow())] == [2, 3]
    assert [r["id"] for r in plain(table.scan("s like 'long%'").to_arrow())] == [1]


@pytest.mark.parametrize("partitioned", [False, True])
def test_we_read_every_type_that_pyiceberg_writes(lake: Lake, pyiceberg: Any, partitioned: bool) -> None:
    theirs = pyiceberg.create_table("db.wide", WIDE)
    if partitioned:
        with theirs.update_spec() as update:
            update.add_field("tz", DayTransform()).add_field("id", BucketTransform(4)).add_field(
                "flag", IdentityTransform()
            )
            update.add_field("s", TruncateTransform(3))
    theirs.append(WIDE_ROWS)
    ours = lake.load_table("db.wide")
    assert plain(ours.scan().to_arrow()) == plain(WIDE_ROWS)
    assert [r["id"] for r in plain(ours.scan("id > 1 AND d IS NOT NULL").to_arrow())] == [2]


def test_pyiceberg_reads_main_branch_and_tag(pyiceberg: Any, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1", max_ref_age_ms=1000)
    orders.append(order_rows(2)).append(order_rows(3), branch="dev")
    orders.refs.set_retention("dev", min_snapshots_to_keep=3, max_snapshot_age_ms=5)
    table = pyiceberg.load_table("db.orders")
    rows = {n: ids(table.scan(snapshot_id=r.snapshot_id).to_arrow()) for n, r in table.metadata.refs.items()}
    assert rows == {"main": [1, 2], "dev": [1, 2, 3], "v1": [1]}
    dev, v1 = table.metadata.refs["dev"], table.metadata.refs["v1"]
    assert (dev.min_snapshots_to_keep, dev.max_snapshot_age_ms, v1.max_ref_age_ms) == (3, 5, 1000)
    assert table.metadata.snapshots[-1].summary["total-records"] == "3"


def test_writers_take_turns_and_nothing_is_lost(pyiceberg: Any, orders: Table) -> None:
    for number in range(0, 6, 2):
        orders.append(order_rows(number))
        theirs = pyiceberg.load_table("db.orders")
        theirs.append(order_rows(number + 1).cast(theirs.schema().as_arrow()))
        assert ids(theirs.scan().to_arrow()) == list(range(number + 2))
    assert ids(orders.refresh().scan().to_arrow()) == list(range(6))
    assert [s.sequence_number for s in orders.metadata.snapshots] == [1, 2, 3, 4, 5, 6]


def test_pyiceberg_overwrites_and_deletes_what_we_wrote(pyiceberg: Any, orders: Table) -> None:
    orders.append(order_rows(1, 2)).append(order_rows(3))
    theirs = pyiceberg.load_table("db.orders")
    theirs.delete("id = 2")
    assert ids(orders.refresh().scan().to_arrow()) == [1, 3]
    theirs.overwrite(order_rows(9).cast(theirs.schema().as_arrow()))
    assert ids(orders.refresh().scan().to_arrow()) == [9]
    orders.overwrite(order_rows(10))
    assert ids(pyiceberg.load_table("db.orders").scan().to_arrow()) == [10]


def test_pyiceberg_commit_from_an_older_pointer_is_refused_by_the_swap(pyiceberg: Any, orders: Table) -> None:
    theirs = pyiceberg.load_table("db.orders")
    orders.append(order_rows(1))
    theirs.append(order_rows(2).cast(theirs.schema().as_arrow()))
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]


def test_entries_resolve_to_the_same_numbers(pyiceberg: Any, lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    table.append(order_rows(1)).append(order_rows(2, region="us"))
    table.replace_partitions(written_files(table, order_rows(3)))
    theirs = pyiceberg.load_table("db.parts")
    theirs.append(order_rows(4).cast(theirs.schema().as_arrow()))
    head = table.refresh().current_snapshot
    assert head is not None
    ours = {
        e.data_file.file_path: (e.snapshot_id, e.sequence_number, e.file_sequence_number)
        for e in live_entries(table.io, load_manifest_list(table.io, head), table.metadata)
    }
    seen = {
        r["data_file"]["file_path"]: (r["snapshot_id"], r["sequence_number"], r["file_sequence_number"])
        for r in pyiceberg.load_table("db.parts").inspect.entries().to_pylist()
        if r["status"] != 2
    }
    assert ours == seen
    assert sorted(n for _, n, _ in ours.values()) == [2, 3, 4]


def test_namespaces_and_tables_are_the_same_for_both(lake: Lake, pyiceberg: Any, orders: Table) -> None:
    pyiceberg.create_namespace("theirs")
    lake.create_namespace("ours", {"owner": "us"})
    assert lake.list_namespaces() == ["db", "ours", "theirs"]
    assert sorted(pyiceberg.list_namespaces()) == [("db",), ("ours",), ("theirs",)]
    assert pyiceberg.load_namespace_properties("ours")["owner"] == "us"
    assert pyiceberg.list_tables("db") == [("db", "orders")]
    pyiceberg.drop_table("db.orders")
    assert lake.list_tables("db") == []


def test_v1_table_of_pyiceberg_is_written_by_both(lake: Lake, pyiceberg: Any) -> None:
    theirs = pyiceberg.create_table("db.old", ORDERS, properties={"format-version": "1"})
    theirs.append(order_rows(1).cast(theirs.schema().as_arrow()))
    ours = lake.load_table("db.old").append(order_rows(2))
    assert (ours.metadata.format_version, ours.metadata.last_sequence_number) == (1, 0)
    theirs = pyiceberg.load_table("db.old")
    theirs.append(order_rows(3).cast(theirs.schema().as_arrow()))
    assert ids(pyiceberg.load_table("db.old").scan().to_arrow()) == [1, 2, 3]
    assert ids(lake.load_table("db.old").scan().to_arrow()) == [1, 2, 3]


def test_purge_knows_of_what_pyiceberg_has_committed_and_renamed_since_the_last_one(
    lake: Lake, pyiceberg: Any, orders: Table
) -> None:
    """What is kept of where files are is never taken for the directories of a table that PyIceberg moved on."""
    orders.append(order_rows(1))
    items = lake.create_table("db.items", ORDERS).append(order_rows(2))
    orders.plan_orphans()  # keeps where the files of both are
    theirs = pyiceberg.load_table("db.items")
    with theirs.transaction() as transaction:
        transaction.set_properties({"write.data.path": f"{orders.location}/data"})
    theirs.refresh().append(order_rows(3).cast(theirs.schema().as_arrow()))
    pyiceberg.rename_table("db.items", "db.renamed")
    with pytest.raises(RefusedError, match=r"table `db\.renamed` has files in"):
        orders.plan_orphans()
    lake.purge_table("db.orders")
    found = lake.load_table("db.renamed")
    assert found.metadata.table_uuid == items.metadata.table_uuid
    assert ids(found.scan().to_arrow()) == [2, 3]

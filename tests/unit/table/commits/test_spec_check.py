"""Writes under way while another changes the partition spec, expires, and removes the spec that they were made for."""

import datetime as dt
from collections.abc import Callable

import msgspec
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, FormatError
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import Bucket
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.snapshot_producer import check_specs
from support.fixtures.competing_writers import files, once, rival_lake
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)


def _in_transaction(table: Table) -> None:
    with table.transaction() as tx:
        tx.append(order_rows(7))


WRITES: dict[str, Callable[[Table], object]] = {
    "append": lambda t: t.append(order_rows(7)),
    "fast append": lambda t: t.append(order_rows(7), fast=True),
    "overwrite": lambda t: t.overwrite(order_rows(7)),
    "overwrite partitions": lambda t: t.overwrite_partitions(order_rows(7)),
    "new branch": lambda t: t.append(order_rows(7), branch="dev"),
    "staged": lambda t: t.append(order_rows(7), wap_id="w"),
    "given files": lambda t: t.append_files(written_files(t, order_rows(7))),
    "transaction": _in_transaction,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_for_a_spec_that_is_removed_meanwhile_is_a_conflict_and_the_table_stays_readable(
    lake: Lake, write: Callable[[Table], object]
) -> None:
    table = lake.create_table("db.t", ORDERS)
    table.append(order_rows(1))

    def clean() -> None:
        other = lake.load_table("db.t")
        with other.update_spec() as update:
            update.add_field("region")
        other.overwrite(order_rows(2)).overwrite(order_rows(3))
        assert other.expire(older_than=FUTURE, clean_metadata=True).removed_specs == (0,)

    slow, _ = rival_lake(lake, before_swap=once(clean))
    with pytest.raises(ConflictError, match=r"expected partition spec 0, .* found it removed meanwhile"):
        write(slow.load_table("db.t"))
    assert ids(table.refresh().scan().to_arrow()) == [3]
    assert len(table.metadata.snapshots) == 1
    assert len(files(table, "snap-*.avro")) == 1


def test_a_list_that_names_an_unknown_spec_is_refused(orders: Table) -> None:
    orders.append(order_rows(1))
    snapshot = orders.current_snapshot
    assert snapshot is not None
    (manifest,) = load_manifest_list(orders.io, snapshot)
    strange = msgspec.structs.replace(manifest, partition_spec_id=9)
    with pytest.raises(FormatError, match="found 9 for"):
        check_specs(orders.metadata, [strange], {})


def test_an_id_that_another_spec_has_now_is_a_conflict(orders: Table) -> None:
    orders.append(order_rows(1))
    snapshot = orders.current_snapshot
    assert snapshot is not None
    (manifest,) = load_manifest_list(orders.io, snapshot)
    own = orders.metadata.specs_by_id[manifest.partition_spec_id]
    check_specs(orders.metadata, [manifest], {manifest.manifest_path: own})
    field = PartitionField(source_id=1, field_id=1000, name="id_bucket", transform=Bucket(4))
    other = PartitionSpec(own.spec_id, (field,))
    with pytest.raises(ConflictError, match="removed meanwhile"):
        check_specs(orders.metadata, [manifest], {manifest.manifest_path: other})

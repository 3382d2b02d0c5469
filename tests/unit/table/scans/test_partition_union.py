"""One struct of the partition fields of all specs."""

import msgspec
import pytest

from bergline import Table
from bergline.errors import UnsupportedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import parse_transform
from bergline.format.types.types import INT, STRING
from bergline.table.scans.partition_union import partition_union
from support.fixtures.rows import order_rows

Field = tuple[int, int, str, str]
"""Source id, field id, name and transform; orders have the columns id, amount and region, 1 to 3."""


def with_specs(orders: Table, *specs: list[Field]) -> TableMetadata:
    made = [
        PartitionSpec(number, tuple(PartitionField(s, f, name, parse_transform(t)) for s, f, name, t in fields))
        for number, fields in enumerate(specs)
    ]
    return msgspec.structs.replace(orders.metadata, partition_specs=tuple(made))


def names(metadata: TableMetadata) -> list[str]:
    return [f.name for f in partition_union(metadata).fields]


def test_fields_stand_by_id_under_their_latest_names(orders: Table) -> None:
    metadata = with_specs(
        orders,
        [(3, 1000, "region", "identity"), (1, 1001, "shard", "bucket[4]")],
        [(1, 1002, "id", "identity"), (3, 1000, "place", "identity")],
    )
    assert names(metadata) == ["place", "shard", "id"]


def test_fields_that_v1_gave_up_keep_their_type(orders: Table) -> None:
    metadata = with_specs(orders, [(3, 1000, "old", "bucket[4]")], [(3, 1000, "old_1000", "void")])
    (field,) = partition_union(metadata).fields
    assert (field.name, field.type, field.required) == ("old_1000", INT, False)


def test_fields_whose_column_is_gone_are_left_out(orders: Table) -> None:
    assert names(with_specs(orders, [(9, 1000, "gone", "identity"), (3, 1001, "region", "identity")])) == ["region"]


def test_of_two_fields_with_one_name_the_older_has_its_id_in_it(orders: Table) -> None:
    metadata = with_specs(orders, [(1, 1000, "shard", "bucket[4]")], [(1, 1001, "shard", "bucket[8]")])
    assert names(metadata) == ["shard_1000", "shard"]


def test_values_of_unknown_transforms_are_text(orders: Table) -> None:
    (field,) = partition_union(with_specs(orders, [(1, 1000, "curve", "zorder[2]")])).fields
    assert field.type == STRING


@pytest.mark.parametrize("second", [(1, 1000, "a", "identity"), (3, 1000, "b", "truncate[2]")])
def test_an_id_with_two_meanings_is_refused(second: Field, orders: Table) -> None:
    metadata = with_specs(orders, [(3, 1000, "region", "identity")], [second])
    with pytest.raises(UnsupportedError, match="expected one meaning of partition field 1000"):
        partition_union(metadata)


def test_scans_show_the_same_struct(orders: Table) -> None:
    with orders.update_spec() as spec:
        spec.add_field("region")
    orders.append(order_rows(1))
    assert orders.scan(columns=["_partition"]).to_arrow().to_pylist() == [{"_partition": {"region": "eu"}}]
